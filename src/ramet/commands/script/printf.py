"""printf: format arguments as GNU printf does."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ramet.commands.framework.command import Command, UsageError, quote, typographic
from ramet.commands.script.escapes import Stop, unescape
from ramet.core.errors import LimitExceeded
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.strftime import NANO, at, strftime, zone_of

_SPEC = re.compile(
    rb"%(?P<flags>[-+ "
    rb"#0']*)(?P<width>\*|\d+)?(?:(?P<dot>\.)(?P<prec>\*|-?\d*))?(?P<mod>[hlLjzt]*)(?P<conv>\([^)]*\)T|[a-zA-Z%])?",
    re.S,
)


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
            try:
                self.out.append(unescape(text, octal_zero=False))
            except Stop as stop:
                self.out.append(stop.args[0])
                raise
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
        width = self._size(found["width"])
        if width is not None and width < 0:
            flags, width = flags + "-", -width
        precision = None
        if found["dot"]:
            precision = self._size(found["prec"] or b"0")
            if precision is not None and precision < 0:
                precision = None
        if conv in "sbcq" and len(conv) == 1:
            self._text(conv, flags, width, precision)
        elif conv in ("d", "i"):
            self._pad_number(self._integer(self.next(), signed=True), "d", flags, width, precision)
        elif conv in ("o", "u", "x", "X"):
            self._pad_number(self._integer(self.next(), signed=False), conv, flags, width, precision)
        elif conv in tuple("eEfFgGaA"):
            self._float(conv, flags, width, precision)
        elif conv.endswith(")T"):
            self._time(conv[1:-2], flags, width)
        else:
            self._bad(found[0])

    def _size(self, text: bytes | None) -> int | None:
        if text is None:
            return None
        size = self._integer(self.next(), signed=True) if text == b"*" else int(text or b"0")
        allowed = self.proc.budget.limits.string_bytes
        if abs(size) > allowed:
            raise LimitExceeded("string_bytes", allowed)
        return size

    def _text(self, conv: str, flags: str, width: int | None, precision: int | None) -> None:
        value = self.next() or ""
        stop = False
        if conv == "b":
            try:
                raw = unescape(encode(value), octal_zero=True)
            except Stop as halt:
                raw, stop = halt.args[0], True
        elif conv == "q":
            from ramet.commands.framework.command import shown

            raw = encode(shown(value))
        else:
            raw = encode(value)
            if conv == "c":
                raw = raw[:1]
        if precision is not None:
            raw = raw[:precision]
        self.out.append(raw.ljust(width or 0) if "-" in flags else raw.rjust(width or 0))
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

    def _pad_number(self, number: int, conv: str, flags: str, width: int | None, precision: int | None) -> None:
        digits = format(abs(number), "d" if conv == "u" else conv)
        if precision is not None:
            digits = digits.rjust(precision, "0") if number or precision else ""
        if "'" in flags and conv in "du":
            pass  # the C locale has no thousands separator
        prefix = ""
        if conv == "d":
            prefix = "-" if number < 0 else "+" if "+" in flags else " " if " " in flags else ""
        elif "#" in flags and number:
            prefix = {"x": "0x", "X": "0X", "o": "" if digits.startswith("0") else "0", "u": ""}[conv]
        self.out.append(pad(prefix, digits, flags, width, zeros=precision is None).encode())

    def _float(self, conv: str, flags: str, width: int | None, precision: int | None) -> None:
        number = long_double(self._real(self.next()))
        self.out.append(format_float(number, conv, flags, width, precision).encode())

    def _real(self, text: str | None) -> object:
        from decimal import Decimal

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
        if "x" in found[0].lower():
            return Decimal(float.fromhex(found[0]))
        return Decimal(found[0])

    def _time(self, pattern: str, flags: str, width: int | None) -> None:
        text = self.next()
        seconds = int(self.proc.now()) if text is None or text in ("-1", "-2") else self._integer(text, signed=True)
        when, nanos = at(seconds * NANO, zone_of(self.proc))
        raw = encode(strftime(pattern or "%X", when, nanos))
        self.out.append(raw.ljust(width or 0) if "-" in flags else raw.rjust(width or 0))


def pad(prefix: str, digits: str, flags: str, width: int | None, *, zeros: bool) -> str:
    room = (width or 0) - len(prefix) - len(digits)
    if room <= 0:
        return prefix + digits
    if "-" in flags:
        return prefix + digits + " " * room
    if "0" in flags and zeros:
        return prefix + "0" * room + digits
    return " " * room + prefix + digits


def long_double(number: object) -> object:
    """Round a decimal to the 64-bit mantissa of a C long double."""
    from decimal import Decimal, localcontext
    from fractions import Fraction

    assert isinstance(number, Decimal)
    if not number.is_finite() or not number or abs(number.adjusted()) > 4931:
        return number
    part = abs(Fraction(number))
    power = part.numerator.bit_length() - part.denominator.bit_length() - 64
    scaled = part / Fraction(2) ** power
    if scaled >= 1 << 64:
        power, scaled = power + 1, scaled / 2
    digits = round(scaled)
    with localcontext() as context:
        context.prec = 100 + abs(power)
        made = Decimal(digits) * Decimal(2) ** power
        return made.copy_sign(number)


def format_float(number: object, conv: str, flags: str, width: int | None, precision: int | None) -> str:
    """C's %e %f %g %a of a Decimal, with more digits than a double has (long double shows 18)."""
    from decimal import Decimal

    assert isinstance(number, Decimal)
    sign = "-" if number.is_signed() else "+" if "+" in flags else " " if " " in flags else ""
    if not number.is_finite():
        word = "inf" if number.is_infinite() else "nan"
        return pad(sign, word.upper() if conv.isupper() else word, flags.replace("0", ""), width, zeros=False)
    number = number.copy_abs()
    lower = conv.lower()
    if lower == "a":
        body = _hex_float(float(number), precision)
    else:
        digits = 6 if precision is None else precision
        if lower == "f":
            body = f"{number:.{digits}f}"
        elif lower == "e":
            body = _exponent(f"{number or 0.0:.{digits}e}")
        else:
            body = _general(number, digits or 1, "#" in flags)
        if "#" in flags and "." not in body:
            head, mark, tail = body.partition("e")
            body = f"{head}.{mark}{tail}"
    return pad(sign, body.upper() if conv.isupper() else body, flags, width, zeros=True)


def _exponent(text: str) -> str:
    mantissa, _, exponent = text.lower().partition("e")
    number = int(exponent)
    return f"{mantissa}e{'-' if number < 0 else '+'}{abs(number):02d}"


def _general(number: object, digits: int, keep: bool) -> str:
    from decimal import Decimal

    assert isinstance(number, Decimal)
    if number == 0:
        return "0" if not keep else "0." + "0" * (digits - 1)
    exponent = int(_exponent(f"{number:.{digits - 1}e}").partition("e")[2])
    if -4 <= exponent < digits:
        text = f"{number:.{digits - 1 - exponent}f}"
        return text if keep or "." not in text else text.rstrip("0").rstrip(".")
    mantissa, _, power = _exponent(f"{number:.{digits - 1}e}").partition("e")
    if not keep and "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{power}"


def _hex_float(number: float, precision: int | None) -> str:
    """As printf %La on x86: the leading digit is normalized to 8..f."""
    if number == 0:
        return "0x0p+0"
    import math

    fraction, exponent = math.frexp(number)
    scaled = int(fraction * (1 << 64))
    digits = f"{scaled:016x}"
    exponent -= 4
    head, tail = digits[0], digits[1:].rstrip("0")
    if precision is not None:
        value = round(scaled / (1 << (60 - 4 * precision))) if precision < 15 else scaled
        digits = f"{value:x}"
        head, tail = digits[0], digits[1 : precision + 1].ljust(precision, "0")
    return f"0x{head}{'.' + tail if tail else ''}p{exponent:+d}"


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
