"""`printf`: parse formats once (cached) and apply them to the arguments."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from ramet.concurrency.offload import checkpoint, offload
from ramet.concurrency.sizes import BATCH, LARGE, SMALL
from ramet.core.paths import decode, encode
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import is_name
from ramet.shell.expand.c_locale import bytewise
from ramet.shell.expand.errors import BadNumber, BadSubscript, Fatal, Readonly, ShellError
from ramet.shell.interp.builtins.usage import bad_option
from ramet.shell.interp.main.time_text import time_text
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.scopes import split_subscript
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.text import escapes
from ramet.text import printf as conversions
from ramet.text.strftime import NANO, at, zone
from ramet.text.width import bounded

if TYPE_CHECKING:
    from decimal import Decimal

_SPEC: Final = re.compile(
    rb"%([-+ #0']*)(\*|[0-9]+)?(?:\.(\*|-?[0-9]*))?(?:hh|h|ll|l|j|z|t|L)?"
    rb"(?:\(((?>(?:[^()]++|\([^()]*+\))*))\)(?=T))?(.)",
    re.DOTALL,
)
_OTHER_TIME: Final = re.compile(rb"\((?>(?:[^()]++|\([^()]*+\))*)\)?(.?)", re.DOTALL)
_NUMBER: Final = re.compile(r"[ \t\n]*([-+]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_FLOAT: Final = re.compile(
    r"[ \t\n]*[-+]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][-+]?[0-9]+)?"
    r"|[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?"
    r"|\.[0-9]+(?:[eE][-+]?[0-9]+)?|inf(?:inity)?|nan)",
    re.I,
)


_UNFINISHED: Final = tuple(b"%c" % char for char in b"-+ #0123456789.*'hljztL")
"""What a conversion cannot end with."""


_WARNING: Final = "warning"
"""The kind of a `Spec` that only writes a message."""


class Spec(NamedTuple):
    """One conversion."""

    flags: str
    width: str
    precision: str | None
    time: str | None
    kind: str


@lru_cache(maxsize=512)
def _parse(text: str, plain: bool = False) -> tuple[bytes | Spec, ...]:
    """The format as literal bytes and conversions."""
    data = encode(text)
    parts: list[bytes | Spec] = []
    pos = 0
    while pos < len(data):
        percent = data.find(b"%", pos)
        literal = data[pos : percent if percent >= 0 else len(data)]
        if literal:
            parts += [Spec("", "", None, message, _WARNING) for message in escapes.digit_warnings(literal)]
            parts.append(escapes.decode(escapes.FORMAT, literal, plain)[0])
        if percent < 0:
            break
        if data[percent : percent + 2] == b"%%":
            parts.append(b"%")
            pos = percent + 2
            continue
        match = _SPEC.match(data, percent)
        if match is None or (match.end() == len(data) and match[5] in _UNFINISHED):
            # `time` holds the text of an unfinished conversion.
            parts.append(Spec("", "", None, decode(data[percent:]), ""))
            break
        if match[5] == b"(":
            # An invalid time format is literal text, after a warning.
            other = _OTHER_TIME.match(data, match.start(5))
            parts.append(Spec("", "", None, decode(other[1]) if other is not None else "", "("))
            pos = percent + 1
            continue
        flags, width, precision, time, kind = match.groups()
        shown = "" if kind is None else kind.decode("latin-1")
        parts.append(
            Spec(
                flags.decode(),
                (width or b"").decode(),
                None if precision is None else precision.decode() or "0",
                None if time is None else decode(time),
                shown,
            )
        )
        pos = match.end()
    return tuple(parts)


class _Bad(Exception):
    """A format that ends the output, with its message."""


class _PrintfCall:
    """The state of one call."""

    def __init__(self, sh: ShellState, arguments: list[str], used: int) -> None:
        self.sh, self.arguments, self.used = sh, arguments, used
        self.status = 0
        self.size = 0
        self.format_start = 0
        """Bytes that were printed before this use of the format."""
        self.out: list[bytes] = []
        self.direct = False
        """Whether complete lines are written before a message, so that both appear in order."""

    def complain(self, message: str) -> None:
        if self.direct and self.out:
            lines, newline, rest = b"".join(self.out).rpartition(b"\n")
            description = self.sh.fds.get(1)
            if newline and description is not None and description.writer is not None:
                try:
                    description.writer.write(lines + newline)
                    self.out = [rest]
                except OSError:
                    self.direct = False  # the last write reports it
        self.sh.complain(f"printf: {message}")

    def next(self) -> str | None:
        if self.used < len(self.arguments):
            self.used += 1
            return str(self.arguments[self.used - 1])
        self.used += 1
        return None

    def emit(self, data: bytes) -> None:
        self.out.append(data)
        self.size += len(data)
        limit = self.sh.budget.limits.string_bytes
        if self.size > limit:
            raise self.sh.budget.exceeded("string_bytes", "printf")

    def integer(self, text: str | None, unsigned: bool = False) -> int:
        if not text:
            return 0
        if text[0] in "'\"":
            return _char_code(quote.as_locale(self.sh, text[1:]))
        match = _NUMBER.match(text)
        if match is None:
            self._wrong(text)
            return 0
        digits = match[2]
        if digits[:2] in ("0x", "0X"):
            value = int(digits, 16)
        elif digits[0] == "0" and len(digits) > 1:
            octal = re.match("[0-7]+", digits)
            value = int(octal[0], 8) if octal is not None else 0
            if octal is not None and len(octal[0]) < len(digits):
                self._wrong(text)
                return -value if match[1] == "-" else value
        else:
            value = int(digits) if len(digits) < 40 else 1 << 130
        value = -value if match[1] == "-" else value
        if match.end() < len(text):
            self._wrong(text)
        low, high = (-(1 << 64) + 1, (1 << 64) - 1) if unsigned else (-(1 << 63), (1 << 63) - 1)
        if not low <= value <= high:
            self.complain(f"warning: {text}: Numerical result out of range")
            return high if unsigned or value > 0 else low
        return value

    def real(self, text: str | None) -> Decimal:
        from decimal import Decimal

        from ramet.text import float_format

        if not text:
            return Decimal(0)
        if text[0] in "'\"":
            return Decimal(_char_code(quote.as_locale(self.sh, text[1:])))
        match = _FLOAT.match(text)
        if match is None:
            self._wrong(text)
            return Decimal(0)
        if match.end() < len(text):
            self._wrong(text)
        value, out_of_range = float_format.parse(match[0].strip())
        if out_of_range:
            self.complain(f"warning: {text}: Numerical result out of range")
        return value

    def _wrong(self, text: str) -> None:
        base = "octal " if text[:1] == "0" and text[1:2].isdigit() else "hex " if text.startswith("0x") else ""
        self.complain(f"{text}: invalid {base}number")
        self.status = 1

    # ----------------------------------------------------------------------------------------- conversions

    def measure(self, spec: Spec) -> tuple[str, int, int | None]:
        flags = spec.flags
        width = self.integer(self.next()) if spec.width == "*" else int(spec.width or 0)
        if width < 0:
            flags, width = flags + "-", -width
        precision: int | None = None
        if spec.precision is not None:
            precision = self.integer(self.next()) if spec.precision == "*" else int(spec.precision)
            if precision < 0:
                precision = None
        bounded(width)
        if spec.kind not in "sbqQ":
            bounded(precision or 0)
        limit = self.sh.budget.limits.string_bytes
        if width > limit or ((precision or 0) > limit and spec.kind not in "sbqQ"):
            raise self.sh.budget.exceeded("string_bytes", "printf")
        return flags, width, precision

    def convert(self, spec: Spec) -> bool:
        """Emit one conversion; False when `\\c` in a `%b` argument ends the output."""
        if not spec.kind or spec.kind not in "diouxXcsqQbfFeEgGaAT":
            self._special(spec)
            return True
        flags, width, precision = self.measure(spec)
        if spec.kind in "di":
            self.emit(conversions.integer(self.integer(self.next()), "d", flags, width, precision).encode())
        elif spec.kind in "ouxX":
            number = self.integer(self.next(), True) & ((1 << 64) - 1)
            self.emit(conversions.integer(number, spec.kind, flags, width, precision).encode())
        elif spec.kind in "fFeEgGaA":
            self.emit(conversions.real(self.real(self.next()), spec.kind, flags, width, precision).encode())
        elif spec.kind == "c":
            self._text(encode((self.next() or "\0")[:1])[:1], flags, width, None)
        elif spec.kind == "s":
            self._text(encode(self.next() or ""), flags, width, precision)
        elif spec.kind in "qQ":
            text = self.next() or ""
            if spec.kind == "Q" and precision is not None:
                text, precision = text[:precision], None
            self._text(encode(quote.backslashed(quote.as_locale(self.sh, text))), flags, width, precision)
        elif spec.kind == "b":
            source = encode(self.next() or "")
            for message in escapes.digit_warnings(source):
                self.complain(message)
            data, stopped = escapes.decode(escapes.PERCENT_B, source, bytewise(self.sh))
            self._text(data, flags, width, precision)
            return not stopped
        else:
            self._text(encode(self._time(spec)), flags, width, precision)
        return True

    def _special(self, spec: Spec) -> None:
        """What converts nothing."""
        if spec.kind == "n":
            name = self.next()
            if name and not is_name(name):
                raise _Bad(f"`{name}': not a valid identifier")
            if name:
                try:
                    self.sh.variables.set(name, str(self.size - self.format_start))
                except Readonly as error:
                    self.sh.complain(error.message)
        elif spec.kind == _WARNING:
            self.complain(spec.time or "")
        elif spec.kind == "(":
            self.complain(f"warning: `{spec.time}': invalid time format specification")
            self.emit(b"%")
        elif spec.kind:
            raise _Bad(f"`{spec.kind}': invalid format character")
        else:
            raise _Bad(f"`{spec.time or '%'}': missing format character")

    def _text(self, data: bytes, flags: str, width: int, precision: int | None) -> None:
        if precision is not None:
            data = data[:precision]
        self.emit(conversions.pad(data, flags, width))

    def _time(self, spec: Spec) -> str:
        argument = self.next()
        when = -1 if argument is None else self.integer(argument)
        seconds = self.sh.shell.now() if when == -1 else self.sh.seconds_base if when == -2 else when
        name = self.sh.variables.get("TZ") or ""
        tz = zone(name if len(name) <= _LONGEST_ZONE else "")
        try:
            moment, _ = at(int(seconds) * NANO, tz)
        except (OverflowError, ValueError):
            moment, _ = at(0, tz)  # no calendar reaches that far
        return time_text(spec.time or "%X", moment)


_LONGEST_ZONE: Final = 256
"""Characters of the name of a time zone: there is none for what is longer."""


def _char_code(text: str) -> int:
    """The number of a quoted character argument."""
    if not text:
        return 0
    char = text[0]
    return ord(char) - 0xDC00 if "\udc80" <= char <= "\udcff" else ord(char)


_Target = tuple[str, str | None]
"""The variable of `-v`, and the subscript behind it."""


def printf(sh: ShellState, argv: list[str]) -> Result:
    i = 1
    target: _Target | None = None
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = argv[i]
        if word == "--":
            i += 1
            break
        if not word.startswith("-v"):
            sh.complain(f"printf: {word[:2]}: invalid option")
            sh.err("printf: usage: printf [-v var] format [arguments]\n")
            return 2
        if word == "-v" and i + 1 >= len(argv):
            return bad_option(sh, "printf", "-v", "option requires an argument")
        named = word[2:] or (argv[i + 1] if i + 1 < len(argv) else "")
        i += 1 if word[2:] else 2
        target = split_subscript(named)
        if not is_name(target[0]) or target[1] == "":
            sh.complain(f"printf: `{named}': not a valid identifier")
            return 2
    if i >= len(argv):
        sh.err("printf: usage: printf [-v var] format [arguments]\n")
        return 2
    given = argv[i]
    plain = "\\" in given and ("\\u" in given or "\\U" in given) and bytewise(sh)
    printer = _PrintfCall(sh, argv, i + 1)
    if len(argv) > BATCH or sum(map(len, argv)) > LARGE:
        return drive(_print_large(printer, str(given), plain, target))
    printer.direct = target is None
    _run(printer, _parse(given, plain))
    return _finish(printer, target)


async def _print_large(printer: _PrintfCall, given: str, plain: bool, target: _Target | None) -> int:
    """Convert large or many arguments in a thread."""
    parse = _parse if len(given) <= SMALL else _parse.__wrapped__  # the cache keeps no large formats
    await offload(printer.sh.budget, lambda: _run(printer, parse(given, plain)))
    written = _finish(printer, target)
    return written if isinstance(written, int) else await written


def _finish(printer: _PrintfCall, target: _Target | None) -> Result:
    """Write what was printed, or store it."""
    data = b"".join(printer.out)
    if target is not None:
        return _stored(printer, target, decode(data.partition(b"\0")[0]))
    written = printer.sh.out(data, "printf")
    return written if not printer.status else printer.status


def _stored(printer: _PrintfCall, target: _Target, text: str) -> int:
    sh = printer.sh
    name, subscript = target
    try:
        if subscript is None:
            sh.variables.set(name, text)
        else:
            sh.variables.set_element(name, subscript, text)
    except Readonly as error:
        return sh.error(error.message)
    except (BadSubscript, Fatal):
        raise
    except BadNumber as error:
        raise BadNumber(f"printf: {error.message}") from None
    except ShellError as error:
        return sh.error(error.message)
    return printer.status


def _run(printer: _PrintfCall, parts: tuple[bytes | Spec, ...]) -> None:
    """Apply the format until the arguments are used up."""
    try:
        while True:
            checkpoint()
            before = printer.used
            printer.format_start = printer.size
            for part in parts:
                if isinstance(part, bytes):
                    printer.emit(part)
                elif not printer.convert(part):
                    return
            if printer.used >= len(printer.arguments) or printer.used == before:
                return
    except _Bad as bad:
        printer.complain(str(bad))
        printer.status = 1


TABLE: Final[dict[str, Builtin]] = {"printf": printf}
