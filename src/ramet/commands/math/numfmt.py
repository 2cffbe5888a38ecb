"""numfmt: convert numbers to and from human-readable forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, ROUND_UP, Context, Decimal
from functools import partial
from typing import Final

from ramet.commands.framework.command import Command, UsageError, flag, optional, ordered, quote, typographic, value
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.text.cut import END, parse_ranges
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import HUGE
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks
from ramet.text.width import bounded

_SCALES = ("none", "auto", "si", "iec", "iec-i")
_OUT_SCALES = ("none", "si", "iec", "iec-i")
_ROUNDS: Final = {
    "up": ROUND_CEILING,
    "down": ROUND_FLOOR,
    "from-zero": ROUND_UP,
    "towards-zero": ROUND_DOWN,
    "nearest": ROUND_HALF_UP,
}
_POWERS: Final = "KMGTPEZY"
_EXACT: Final = 18
"""Digits of a number without a scale."""
_MOST: Final = 27
_WIDE: Final = Context(prec=80)


@dataclass(frozen=True, slots=True)
class NumfmtOptions:
    debug: bool = flag("--debug", help="print warnings about invalid input")
    delimiter: str | None = value(
        "-d", "--delimiter", metavar="X", help="use X instead of whitespace for field delimiter"
    )
    field: str = value("--field", metavar="FIELDS", default="1", help="replace the numbers in these input fields")
    format: str | None = value("--format", metavar="FORMAT", help="use printf style floating-point FORMAT")
    from_: str = value(
        "--from", metavar="UNIT", default="none", choices=_SCALES, help="auto-scale input numbers to UNITs"
    )
    from_unit: str = value("--from-unit", metavar="N", default="1", help="specify the input unit size")
    grouping: bool = flag("--grouping", help="use locale-defined grouping of digits")
    header: str | None = optional(
        "--header", metavar="N", const="1", help="print (without converting) the first N header lines"
    )
    invalid: str = value(
        "--invalid",
        metavar="MODE",
        default="abort",
        choices=("abort", "fail", "warn", "ignore"),
        help="failure mode for invalid numbers",
    )
    padding: str | None = value("--padding", metavar="N", help="pad the output to N characters")
    round: str = value(
        "--round",
        metavar="METHOD",
        default="from-zero",
        choices=tuple(_ROUNDS),
        help="use METHOD for rounding when scaling",
    )
    suffix: str = value(
        "--suffix", metavar="SUFFIX", default="", help="add SUFFIX to output numbers, and accept it in input"
    )
    to: str = value(
        "--to", metavar="UNIT", default="none", choices=_OUT_SCALES, help="auto-scale output numbers to UNITs"
    )
    to_unit: str = value("--to-unit", metavar="N", default="1", help="the output unit size")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")
    order: tuple[tuple[str, object], ...] = ordered()


class _BadNumber(Exception):
    """A number that cannot be parsed or printed; the arguments are quoted in the message."""

    def __init__(self, form: str, *texts: str) -> None:
        super().__init__(form)
        self.form, self.texts = form, texts

    def __str__(self) -> str:
        return self.form.format(*map(quote, self.texts))


@dataclass(frozen=True, slots=True)
class _Shape:
    """Layout of a number by --padding and --format."""

    before: str = ""
    after: str = ""
    padding: int = 0
    """Columns, negative for flush left."""
    zeros: int = 0
    precision: int | None = None
    grouping: bool = False


def _unit(text: str) -> int:
    found = re.fullmatch(r"(\d*)(?:([KMGTPEZY])(i?))?", text)
    size = 0
    if found is not None and text:
        size = int(found[1] or 1)
        if found[2]:
            size *= (1024 if found[3] else 1000) ** (_POWERS.index(found[2]) + 1)
    if not 0 < size < 1 << 64:
        raise UsageError(f"invalid unit size: {quote(text)}", hint=False)
    return size


def _fields(o: NumfmtOptions) -> list[tuple[int, int]]:
    if sum(name == "field" for name, _ in o.order) > 1:
        raise UsageError("multiple field specifications", hint=False)
    parts = re.split(r"[, \t]", o.field)
    some = [part for part in parts if part != "-"]
    ranges = parse_ranges(",".join(some), "f") if some else []
    return ranges if len(some) == len(parts) else [(1, END)]


def _shape(text: str, padding: int) -> _Shape:
    """Parse --format; its width overrides --padding."""

    def bad(reason: str) -> UsageError:
        return UsageError(reason, hint=False)

    at = count = 0
    while at < len(text) and not (text[at] == "%" and text[at + 1 : at + 2] != "%"):
        at += 2 if text[at] == "%" else 1
        count += 1
    if at >= len(text):
        raise bad(f"format {quote(text)} has no % directive")
    # As in GNU, `%%` counts as one character here and stays doubled.
    before = text[:count]
    found = re.compile(r"([ '0]*)([+-]?\d*)").match(text, at + 1)
    assert found is not None
    flags, width = found[1], int(found[2] or 0) if found[2] not in ("+", "-") else 0
    at = found.end() if found[2] not in ("+", "-") else found.end(1)
    if abs(width) >= 1 << 63:
        raise bad(f"invalid format {quote(text)} (width overflow)")
    if at >= len(text):
        raise bad(f"format {quote(text)} ends in %")
    precision = None
    if text[at] == ".":
        digits = re.compile(r"-?\d*").match(text, at + 1)
        assert digits is not None
        if text[at + 1 : at + 2] in ("+", " ", "\t") or digits[0].startswith("-") or int(digits[0] or 0) >= 1 << 63:
            raise bad(f"invalid precision in format {quote(text)}")
        precision = int(digits[0] or 0)
        at = digits.end()
    if text[at : at + 1] != "f":
        raise bad(f"invalid format {quote(text)}, directive must be %[0]['][-][N][.][N]f")
    after = text[at + 1 :]
    if re.search(r"%(?!%)", after.replace("%%", "")):
        raise bad(f"format {quote(text)} has too many % directives")
    zeros = width if "0" in flags and width > 0 else 0
    bounded(width)
    bounded(precision or 0)
    return _Shape(before, after, padding if zeros or not width else width, zeros, precision, "'" in flags)


async def numfmt(proc: Proc, o: NumfmtOptions, operands: list[str]) -> int:
    header = 0
    if o.header is not None:
        if not re.fullmatch(r"\+?\d+", o.header) or int(o.header) == 0:
            raise UsageError(f"invalid header value {quote(o.header)}", hint=False)
        header = int(o.header)
    job = _Numfmt(proc, o, _fields(o), _unit(o.from_unit), _unit(o.to_unit), _layout(proc, o))
    end = "\0" if o.zero else "\n"
    if operands:
        if o.debug and header:
            proc.complain("--header ignored with command-line input")
        for word in operands:
            if not await job.line(word, end):
                return 2
            await proc.budget.yield_turn()
        return job.finish()
    async for block in line_blocks(proc.stdin, encode(end), PART):
        *lines, tail = decode(block).split(end)
        if header:
            for line in lines[:header]:
                await proc.emit(encode(line + end))
            lines, header = lines[header:], max(0, header - len(lines))
        if not o.zero and b"\0" in block:
            lines, tail = [line.partition("\0")[0] for line in lines], tail.partition("\0")[0]
        if not await job.lines(lines, end) or (tail and not await job.line(tail, "")):
            return 2
        await proc.budget.yield_turn()
    return job.finish()


def _layout(proc: Proc, o: NumfmtOptions) -> _Shape:
    padding = 0
    if o.padding is not None:
        padding = int(o.padding) if re.fullmatch(r"[+-]?\d+", o.padding) else 0
        if not padding:
            raise UsageError(f"invalid padding value {quote(o.padding)}", hint=False)
        bounded(padding)
    if o.delimiter is not None and len(encode(o.delimiter)) > 1:
        raise UsageError("the delimiter must be a single character", hint=False)
    if o.format is not None and o.grouping:
        raise UsageError("--grouping cannot be combined with --format", hint=False)
    idle = o.from_ == o.to == "none" and not (o.grouping or padding) and o.format is None
    if o.debug and idle:
        proc.complain("no conversion option specified")
    shape = _Shape(padding=padding, grouping=o.grouping) if o.format is None else _shape(o.format, padding)
    if shape.grouping and o.to != "none":
        raise UsageError("grouping cannot be combined with --to", hint=False)
    if o.debug and shape.grouping:
        proc.complain("grouping has no effect in this locale")
    return shape


_FIELD = re.compile(r"[ \t\n]*[^ \t\n]*")
_PARTING = re.compile(r"(?<=[^ \t\n])[ \t\n]")
_ORDINARY = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?([KMGTPEZY])(i?)")


def quick_conversion(from_: str, to: str) -> Callable[[str], str | None]:
    """Return a fast conversion of short unsigned numbers, rounding up; it returns None for other numbers.

    It computes with integers instead of decimals, with the same results.
    """
    base = 1000 if to == "si" else 1024
    steps = [base**power for power in range(len(_POWERS) + 2)]
    letters = ["", *(letter + ("i" if to == "iec-i" else "") for letter in _POWERS)]

    def parted(word: str) -> tuple[int, int] | None:
        """Parse a number with a suffix to a fraction."""
        found = _ORDINARY.fullmatch(word)
        if found is None or from_ == "none" or (from_ != "auto" and (from_ == "iec-i") != bool(found[4])):
            return None
        factor = 1024 if from_ in ("iec", "iec-i") or found[4] else 1000
        fraction = found[2] or ""
        return int(found[1] + fraction) * factor ** (_POWERS.index(found[3]) + 1), 10 ** len(fraction)

    def convert(word: str) -> str | None:
        over = 1
        if len(word) < 16 and word.isdecimal() and word.isascii():
            number = int(word)
        else:
            fraction = parted(word)
            if fraction is None:
                return None
            number, over = fraction
        if to == "none":
            number = -(-number // over)
            return str(number) if number < 10**_EXACT else None
        if number < base * over:
            return str(number) if over == 1 else None
        if number >= 10 ** (_MOST - 1) * over:
            return None
        power = 1
        while number >= steps[power + 1] * over:
            power += 1
        unit = steps[power] * over
        if number < 10 * unit:
            tenths = -(-number * 10 // unit)
            return f"{tenths // 10}.{tenths % 10}{letters[power]}" if tenths < 100 else f"10{letters[power]}"
        whole = -(-number // unit)
        return f"{whole}{letters[power]}" if whole < base else f"1.0{letters[power + 1]}"

    return convert


@dataclass
class _Numfmt:
    """One run over its lines."""

    proc: Proc
    o: NumfmtOptions
    fields: list[tuple[int, int]]
    from_unit: int
    to_unit: int
    shape: _Shape
    failed: bool = field(default=False)
    aborted: bool = field(default=False)
    """Whether an invalid number aborted the run."""
    quick: Callable[[str], str | None] | None = field(init=False)
    """Fast conversion of most numbers; None if the options exclude it."""

    def __post_init__(self) -> None:
        o, units = self.o, self.from_unit != 1 or self.to_unit != 1
        plain = not (units or o.suffix or o.debug or o.grouping) and self.shape.precision is None
        self.quick = quick_conversion(o.from_, o.to) if plain and o.round in ("from-zero", "up") else None
        if self.shape.zeros or self.shape.before or self.shape.after:
            self.quick = None

    def finish(self) -> int:
        if self.failed and self.o.debug:
            self.proc.complain("failed to convert some of the input numbers")
        return 2 if self.failed and self.o.invalid == "fail" else 0

    async def lines(self, lines: list[str], end: str) -> bool:
        """Convert lines; return False if an invalid number aborts."""
        simple = self._simple()
        out: list[str] = []
        for line in lines:
            made = simple(line) if simple is not None else None
            if made is not None:
                out += (made, end)
                continue
            await self.proc.emit(encode("".join(out)))
            out.clear()
            if not await self.line(line, end):
                return False
            await self.proc.budget.yield_turn()
        await self.proc.emit(encode("".join(out)))
        return True

    def _simple(self) -> Callable[[str], str | None] | None:
        """Return a fast conversion of lines with one ordinary number, which returns None for other lines."""
        quick, delimiter = self.quick, self.o.delimiter
        (low, high), *more = self.fields
        if quick is None or more or low != high or self.shape.padding or delimiter == "":
            return None
        if delimiter is None:
            if low > 1:
                return None

            def first(line: str) -> str | None:
                word, blank, rest = line.partition(" ")
                text = quick(word)
                return None if text is None or "\t" in rest or "\n" in rest else text + blank + rest

            return first

        def one(line: str) -> str | None:
            parts = line.split(delimiter, low)
            if len(parts) < low:
                return line
            text = quick(parts[low - 1])
            if text is None:
                return None
            parts[low - 1] = text
            return delimiter.join(parts)

        return one

    async def line(self, text: str, end: str) -> bool:
        """Convert one line; return False if an invalid number aborts."""
        steps: Iterable[bytes | str] = self._steps(text, end)
        if len(text) > HUGE:
            steps = await offload(self.proc.budget, partial(list, steps))
        for made in steps:
            await self._say(made)
        return not self.aborted

    async def _say(self, made: bytes | str) -> None:
        if isinstance(made, bytes):
            await self.proc.emit(made)
        else:
            self.proc.complain(made)
        await self.proc.budget.yield_turn()

    def _steps(self, text: str, end: str) -> Iterator[bytes | str]:
        """Yield the output (bytes) and messages (str) of a line, in order."""
        out: list[str] = []
        for number, (piece, parting) in enumerate(self._pieces(text), 1):
            if not number & 255:
                yield encode("".join(out))
                out.clear()
            done = piece
            if any(low <= number <= high for low, high in self.fields):
                try:
                    done = self.convert(piece, number)
                except _BadNumber as bad:
                    self.failed = True
                    if self.o.invalid != "ignore":
                        # Output before the message.
                        yield encode("".join(out))
                        out.clear()
                        yield typographic(self.proc, str(bad))
                    if self.o.invalid == "abort":
                        self.aborted = True
                        return
            out += (done, parting)
        out.append(end)
        yield encode("".join(out))

    def _pieces(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the fields of a line with their separators; the rest after the last number is one field."""
        delimiter, last = self.o.delimiter, max(high for _, high in self.fields)
        if delimiter == "":
            yield text, ""
            return
        at, number = 0, 0
        while True:
            if delimiter is None:
                # A field includes its leading blanks, except the separator.
                found = _FIELD.match(text, at)
                assert found is not None
                stop = found.end()
            else:
                stop = text.find(delimiter, at)
                stop = len(text) if stop < 0 else stop
            number += 1
            piece = text[at:stop]
            yield piece, delimiter or " " if stop < len(text) else ""
            at = stop + 1
            if stop >= len(text):
                return
            if number >= last:
                rest = text[at:]
                yield (_PARTING.sub(" ", rest) if delimiter is None else rest), ""
                return

    def convert(self, piece: str, number: int) -> str:
        o, shape = self.o, self.shape
        body = piece
        if o.suffix and len(body) > len(o.suffix) and body.endswith(o.suffix):
            body = body[: -len(o.suffix)]
        word = body.lstrip(" \t")
        padding = shape.padding
        if not padding and o.delimiter is None and (len(word) < len(body) or number > 1):
            padding = len(body)
        if self.quick is not None and (ready := self.quick(word)) is not None:
            return ready.ljust(-padding) if padding < 0 else ready.rjust(padding)
        amount, places = self.read(word)
        if self.from_unit != 1 or self.to_unit != 1:
            amount = _WIDE.divide(_WIDE.multiply(amount, self.from_unit), Decimal(self.to_unit))
        text = self.show(amount, places if shape.precision is None else shape.precision) + o.suffix
        text = text.ljust(-padding) if padding < 0 else text.rjust(padding)
        return shape.before + text + shape.after

    def read(self, text: str) -> tuple[Decimal, int]:
        """Parse a number; return it and its decimal places."""
        scale = self.o.from_
        found = re.match(r"(-?)(\d*)(?:(\.)(-?\d*))?", text)
        assert found is not None
        sign, whole, point, fraction = found.groups()
        for digits in (whole, fraction or ""):
            if len(digits.lstrip("0")) > _MOST:
                raise _BadNumber("value too large to be converted: {}", text)
        again = text[found.end() : found.end() + 1] == "."
        if (not whole and not point) or (point and (fraction or "").startswith("-")):
            raise _BadNumber("invalid number: {}", text)
        if point and not fraction and not again:
            raise _BadNumber("invalid number: {}", text)
        loss = max(len(whole.lstrip("0")), len((fraction or "").lstrip("0"))) > _EXACT
        if loss and self.o.debug:
            self.proc.complain(f"large input value {quote(text)}: possible precision loss")
        number, places = Decimal(f"{whole or 0}.{fraction or 0}"), len(fraction or "")
        if sign and number:
            number = number.copy_negate()
        rest = text[found.end() :]
        if not rest:
            return number, places
        rest = rest.lstrip(" \t")
        if rest[:1] not in tuple(_POWERS):
            raise _BadNumber("invalid suffix in input: {}", text)
        if scale == "none":
            raise _BadNumber("rejecting suffix in input: {} (consider using --from)", text)
        base, power, rest = 1024 if scale in ("iec", "iec-i") else 1000, _POWERS.index(rest[0]) + 1, rest[1:]
        if scale == "auto" and rest.startswith("i"):
            base, rest = 1024, rest[1:]
        elif scale == "iec-i":
            if not rest.startswith("i"):
                raise _BadNumber("missing 'i' suffix in input: {} (e.g Ki/Mi/Gi)", text)
            rest = rest[1:]
        if rest:
            raise _BadNumber("invalid suffix in input {}: {}", text, rest)
        return _WIDE.multiply(number, Decimal(base) ** power), 0

    def show(self, number: Decimal, places: int) -> str:
        o = self.o
        size = max(0, number.adjusted()) if number else 0
        if o.to == "none" and size + places > _EXACT:
            amount = f"{float(number):g}" + (f"/{places}" if places else "")
            what = "value/precision" if places else "value"
            raise _BadNumber(f"{what} too large to be printed: '{amount}' (consider using --to)")
        if size > _MOST - 1:
            raise _BadNumber(f"value too large to be printed: '{float(number):g}' (cannot handle values > 999Y)")
        if o.to == "none":
            return self.digits(self.rounded(number, places), places)
        base, power = 1000 if o.to == "si" else 1024, 0
        while abs(number) >= base:
            number = _WIDE.divide(number, Decimal(base))
            power += 1
        given = self.shape.precision
        keep = min(3 * power, given) if given is not None else 1 if abs(number) < 10 else 0
        number = self.rounded(number, keep)
        if abs(number) >= base:
            number = _WIDE.divide(number, Decimal(base))
            power += 1
        places = given if given is not None else 1 if number and abs(number) < 10 and power else 0
        letter = _POWERS[power - 1] if power else ""
        return self.digits(number, places) + letter + ("i" if power and o.to == "iec-i" else "")

    def rounded(self, number: Decimal, places: int) -> Decimal:
        return number.quantize(Decimal(1).scaleb(-places), _ROUNDS[self.o.round], _WIDE)

    def digits(self, number: Decimal, places: int) -> str:
        text = f"{_WIDE.quantize(number, Decimal(1).scaleb(-places)):f}"
        return text.zfill(self.shape.zeros) if self.shape.zeros else text


COMMANDS = [
    Command(
        "numfmt",
        numfmt,
        NumfmtOptions,
        summary="Convert numbers from/to human-readable strings.",
        usage="[OPTION]... [NUMBER]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("error reading input: {}", status=0),
    ),
]
