"""printf: format arguments as GNU printf does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ramet.commands.framework.command import Command, UsageError, quote, typographic
from ramet.core.errors import LimitExceeded
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text import escapes
from ramet.text import printf as conversions
from ramet.text.strftime import NANO, at, strftime, zone_of
from ramet.text.width import bounded

if TYPE_CHECKING:
    from decimal import Decimal

_SPEC = re.compile(
    rb"%(?P<flags>[-+ "
    rb"#0']*)(?P<width>\*|\d+)?(?:(?P<dot>\.)(?P<prec>\*|-?\d*))?(?P<mod>[hlLjzt]*)(?P<conv>\([^)]*\)T|[a-zA-Z%])?",
    re.S,
)


class Stop(Exception):
    """Nothing more is printed: `\\c`, or an invalid conversion."""


@dataclass
class PrintfFormat:
    """Apply a format to arguments; collects the output and the exit status."""

    proc: Proc
    out: list[bytes] = field(default_factory=list)
    status: int = 0
    values: list[str] = field(default_factory=list)
    used: int = 0

    def complain(self, message: str) -> None:
        self.proc.complain(typographic(self.proc, message))
        self.status = 1

    def next(self) -> str | None:
        if self.used < len(self.values):
            self.used += 1
            return self.values[self.used - 1]
        self.used += 1
        return None

    def run(self, template: str, values: list[str]) -> None:
        raw = encode(template)
        self.values = values
        try:
            while True:
                before = self.used
                self._once(raw)
                if self.used >= len(values) or self.used == before:
                    break
        except Stop:
            return
        if self.used == 0 and values:
            first = typographic(self.proc, quote(values[0]))
            self.proc.complain(f"warning: ignoring excess arguments, starting with {first}")

    def _once(self, raw: bytes) -> None:
        at_ = 0
        while at_ < len(raw):
            percent = raw.find(b"%", at_)
            text = raw[at_:] if percent < 0 else raw[at_:percent]
            literal, stopped = escapes.decode(escapes.GNU_FORMAT, text)
            self.out.append(literal)
            if stopped:
                raise Stop
            if percent < 0:
                return
            found = _SPEC.match(raw, percent)
            assert found is not None
            at_ = found.end()
            if found["conv"] is None:
                # The message includes the invalid conversion character.
                self._bad(raw[percent : at_ + 1])
            self._convert(found)

    def _bad(self, spec: bytes) -> None:
        self.complain(f"{spec.decode('utf-8', 'surrogateescape')}: invalid conversion specification")
        raise Stop

    def _convert(self, found: re.Match[bytes]) -> None:
        conv = found["conv"].decode("utf-8", "surrogateescape")
        flags = found["flags"].decode()
        if conv == "%":
            if found[0] != b"%%":
                self._bad(found[0])
            self.out.append(b"%")
            return
        width = self._size(found["width"]) if found["width"] else 0
        if width < 0:
            flags, width = flags + "-", -width
        precision = None
        if found["dot"]:
            precision = self._size(found["prec"] or b"0")
            if precision < 0:
                precision = None
        if conv in "sbcq" and len(conv) == 1:
            self._text(conv, flags, width, precision)
        elif conv in ("d", "i"):
            number = self._integer(self.next(), signed=True)
            self.out.append(conversions.integer(number, "d", flags, width, precision).encode())
        elif conv in ("o", "u", "x", "X"):
            number = self._integer(self.next(), signed=False)
            self.out.append(conversions.integer(number, conv, flags, width, precision).encode())
        elif conv in tuple("eEfFgGaA"):
            value = self._real(self.next())
            self.out.append(conversions.real(value, conv, flags, width, precision).encode())
        elif conv.endswith(")T"):
            self._time(conv[1:-2], flags, width)
        else:
            self._bad(found[0])

    def _size(self, text: bytes) -> int:
        size = self._integer(self.next(), signed=True) if text == b"*" else int(text)
        allowed = self.proc.budget.limits.string_bytes
        if abs(size) > allowed:
            raise LimitExceeded("string_bytes", allowed)
        return bounded(size)

    def _text(self, conv: str, flags: str, width: int, precision: int | None) -> None:
        value = self.next() or ""
        stop = False
        if conv == "b":
            raw, stop = escapes.decode(escapes.GNU_ECHO, encode(value))
        elif conv == "q":
            from ramet.commands.framework.command import shown

            raw = encode(shown(value))
        else:
            raw = encode(value)
            if conv == "c":
                raw = raw[:1]
        if precision is not None:
            raw = raw[:precision]
        self.out.append(conversions.pad(raw, flags, width))
        if stop:
            raise Stop

    def _integer(self, text: str | None, *, signed: bool) -> int:
        if text is None:
            return 0
        if text[:1] in ("'", '"'):
            return (
                ord(text[1])
                if len(text) > 1 and ord(text[1]) < 0xDC80
                else (encode(text[1])[0] if len(text) > 1 else 0)
            )
        body = text.lstrip(" \t\n")
        found = re.match(r"([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)", body)
        if found is None:
            if text:
                self.complain(f"{quote(text)}: expected a numeric value")
            return 0
        digits = found[2].lower()
        number = (
            int(digits, 16) if digits.startswith("0x") else int(digits, 8) if digits.startswith("0") else int(digits)
        )
        if found[1] == "-":
            number = -number
        if found.end() < len(body):
            self.complain(f"{quote(text)}: value not completely converted")
        low, high = (-(1 << 63), (1 << 63) - 1) if signed else (-((1 << 64) - 1), (1 << 64) - 1)
        if not low <= number <= high:
            self.complain(f"{quote(text)}: Numerical result out of range")
            return low if number < low and signed else high
        return number if signed else number & ((1 << 64) - 1)

    def _real(self, text: str | None) -> Decimal:
        from decimal import Decimal

        from ramet.text import float_format

        if text is None or text == "":
            return Decimal(0)
        if text[0] in "'\"":
            return Decimal(ord(text[1])) if len(text) > 1 else Decimal(0)
        body = text.lstrip()
        found = re.match(
            r"[+-]?(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?\d+)?|inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)",
            body,
            re.I,
        )
        if found is None or not found[0]:
            self.complain(f"{quote(text)}: expected a numeric value")
            return Decimal(0)
        if found.end() < len(body):
            self.complain(f"{quote(text)}: value not completely converted")
        value, out_of_range = float_format.parse(found[0])
        if out_of_range:
            self.complain(f"{quote(text)}: Numerical result out of range")
        return value

    def _time(self, pattern: str, flags: str, width: int) -> None:
        text = self.next()
        seconds = int(self.proc.now()) if text is None or text in ("-1", "-2") else self._integer(text, signed=True)
        when, nanos = at(seconds * NANO, zone_of(self.proc))
        raw = encode(strftime(pattern or "%X", when, nanos))
        self.out.append(conversions.pad(raw, flags, width))


async def printf(proc: Proc, o: None, words: list[str]) -> int:
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        raise UsageError("missing operand")
    engine = PrintfFormat(proc)
    engine.run(words[0], words[1:])
    await proc.emit(b"".join(engine.out))
    return engine.status


COMMANDS = [
    Command(
        "printf",
        printf,
        raw=True,
        summary="Print ARGUMENT(s) according to FORMAT.",
        usage="FORMAT [ARGUMENT]...",
        details="Conversions: %s %b %q %c %d %i %o %u %x %X %e %f %g %a %(FORMAT)T %%;\n"
        "escapes \\n \\t \\\\ \\NNN \\xHH \\uHHHH \\c.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
