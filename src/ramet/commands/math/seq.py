"""seq: print a sequence of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.width import bounded, number_of


@dataclass(frozen=True, slots=True)
class SeqOptions:
    format: str | None = value("-f", "--format", metavar="FORMAT", help="use printf style floating-point FORMAT")
    separator: str = value("-s", "--separator", metavar="STRING", default="\n", help="use STRING to separate numbers")
    equal: bool = flag("-w", "--equal-width", help="equalize width by padding with leading zeroes")


def _seq_words(words: list[str]) -> list[str]:
    """A negative number is an operand, not an option."""
    out: list[str] = []
    for i, word in enumerate(words):
        if word == "--":
            return [*out, *words[i:]]
        if re.match(r"-[.\d]", word) and (not out or out[-1] not in ("-s", "-f", "--separator", "--format")):
            return [*out, "--", *words[i:]]
        out.append(word)
        if not word.startswith("-") and not (len(out) > 1 and out[-2] in ("-s", "-f", "--separator", "--format")):
            return [*out[:-1], "--", *words[i:]]
    return out


def _seq_number(text: str) -> Decimal:
    body = text.strip()
    try:
        if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F.]+(?:[pP][+-]?\d+)?", body):
            return Decimal(float.fromhex(body))
        if "_" in body or re.fullmatch(r"[+-]?s?nan\d*", body, re.I):
            if "nan" in body.lower():
                raise UsageError(f"invalid 'not-a-number' argument: {quote(text)}")
            raise InvalidOperation
        return Decimal(body)
    except InvalidOperation:
        raise UsageError(f"invalid floating point argument: {quote(text)}") from None


def _places(text: str) -> int:
    body = text.strip().lower()
    mantissa, _, power = body.partition("e")
    places = len(mantissa.partition(".")[2])
    return bounded(max(0, places - int(power or 0))) if "0x" not in body else 0


def _width(text: str, places: int) -> int:
    """Return the width of a limit as written, with leading zeros and `places` decimals."""
    body = text.strip().removeprefix("+")
    if not re.fullmatch(r"-?\d*\.?\d*", body):
        return len(f"{_seq_number(text):.{places}f}")
    whole = body.partition(".")[0]
    return len(whole) + (0 if whole.lstrip("-") else 1) + (1 + places if places else 0)


async def seq(proc: Proc, o: SeqOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if len(operands) > 3:
        raise UsageError(f"extra operand {quote(operands[3])}")
    texts = (
        ["1", "1", operands[0]]
        if len(operands) == 1
        else [operands[0], "1", operands[1]]
        if len(operands) == 2
        else operands
    )
    if o.format is not None:
        _seq_format(o.format)
    first, step, last = (_seq_number(text) for text in texts)
    if step == 0:
        raise UsageError(f"invalid Zero increment value: {quote(texts[1])}")
    if o.format is not None and o.equal:
        raise UsageError("format string may not be specified when printing equal width strings")
    separator, end = encode(o.separator), b"\n"
    if o.format is not None:
        show: Callable[[Decimal], str] = _seq_format(o.format)
    else:
        places = max(_places(texts[0]), _places(texts[1]))
        finite = first.is_finite() and step.is_finite() and last.is_finite()
        whole = finite and first == first.to_integral() and step == step.to_integral()
        # A negative zero keeps its sign, which an integer would lose.
        if places == 0 and whole and (first or not first.is_signed()):
            return await _integers(proc, int(first), int(step), last, o.equal, separator, texts)
        width = max(_width(texts[0], places), _width(texts[2], places)) if o.equal else 0
        show = lambda number: f"{number:.{places}f}".zfill(width)  # noqa: E731

    out: list[str] = []
    number, index = first, 0
    started = False
    while (number <= last) if step > 0 else (number >= last):
        out.append(show(number))
        index += 1
        number = first + step * index
        if len(out) >= 4096:
            await proc.emit((separator if started else b"") + separator.join(map(encode, out)))
            started = True
            out.clear()
            await proc.budget.yield_turn()
    if out or started:
        await proc.emit((separator if started and out else b"") + separator.join(map(encode, out)) + end)
    return 0


async def _integers(
    proc: Proc, first: int, step: int, last: Decimal, equal: bool, separator: bytes, texts: list[str]
) -> int:
    stop = int(last.to_integral(rounding="ROUND_FLOOR" if step > 0 else "ROUND_CEILING"))
    numbers = range(first, stop + (1 if step > 0 else -1), step)
    if not numbers:
        return 0
    width = 0
    if equal:
        width = max(_width(texts[0], 0), _width(texts[2], 0), len(str(numbers[-1])))
    at = 0
    while at < len(numbers):
        part = numbers[at : at + _THOUSAND - numbers[at] % _THOUSAND]
        if step == 1 and first >= 0 and len(part) == _THOUSAND:
            data = _thousand(part[0] // _THOUSAND, width, separator)
        else:
            data = "\n".join([str(n).zfill(width) for n in part] if width else map(str, part)).encode()
            if separator != b"\n":
                data = data.replace(b"\n", separator)
        at += len(part)
        # The last newline goes with the last number: the reader of a pipe may get its turn between two writes.
        await proc.emit(data + (separator if at < len(numbers) else b"\n"))
        await proc.budget.yield_turn()
    return 0


_THOUSAND = 1000
_DIGITS = "\n".join([f"{n:03d}" for n in range(_THOUSAND)]).encode()


def _thousand(thousands: int, width: int, separator: bytes) -> bytes:
    """Format a thousand consecutive numbers, which share all but the last digits."""
    lead = str(thousands).zfill(width - 3).encode() if width > 3 or thousands else b""
    if not lead:
        return b"\n".join([b"%d" % n for n in range(_THOUSAND)]).replace(b"\n", separator)
    return lead + _DIGITS.replace(b"\n", separator + lead)


def _seq_format(text: str) -> Callable[[Decimal], str]:
    from ramet.text import printf

    specs = re.findall(r"%(?:%|[-+ #0']*\d*(?:\.\d*)?[a-zA-Z]?)", text)
    real = [s for s in specs if s != "%%"]
    if not real:
        raise UsageError(f"format {quote(text)} has no % directive", hint=False)
    if len(real) > 1:
        raise UsageError(f"format {quote(text)} has too many % directives", hint=False)
    found = re.fullmatch(r"%([-+ #0']*)(\d*)(?:\.(\d*))?([aefgAEFG])", real[0])
    if re.fullmatch(r"%[-+ #0']*\d*(?:\.\d*)?", real[0]):
        raise UsageError(f"format {quote(text)} ends in %", hint=False)
    if found is None:
        raise UsageError(f"format {quote(text)} has unknown %{real[0][-1:]} directive", hint=False)
    flags, precision, conv = found[1], None if found[3] is None else number_of(found[3]), found[4]
    width = number_of(found[2])
    before, _, after = text.partition(real[0])

    def show(number: Decimal) -> str:
        body = printf.real(number, conv, flags, width, precision)
        return before.replace("%%", "%") + body + after.replace("%%", "%")

    return show


COMMANDS = [
    Command(
        "seq",
        seq,
        SeqOptions,
        summary="Print numbers from FIRST to LAST, in steps of INCREMENT.",
        usage="[OPTION]... [FIRST [INCREMENT]] LAST",
        rewrite=_seq_words,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
