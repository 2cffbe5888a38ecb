"""hexdump and hd: show bytes in fixed layouts or by format strings."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ramet.commands.binary.od import (
    NAMES,
    PRINTED,
    Cells,
    Squeezed,
    bytes_number,
    octal_columns,
    printable,
    window,
    words,
)
from ramet.commands.framework.command import Command, UsageError, flag, ordered, quote, several, value
from ramet.commands.framework.inputs import Inputs, slurp
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.text.width import bounded, bounded_spec


@dataclass(frozen=True, slots=True)
class HexdumpOptions:
    one_octal: bool = flag("-b", "--one-byte-octal", help="one-byte octal display")
    one_char: bool = flag("-c", "--one-byte-char", help="one-byte character display")
    canonical: bool = flag("-C", "--canonical", help="canonical hex+ASCII display")
    two_decimal: bool = flag("-d", "--two-bytes-decimal", help="two-byte decimal display")
    two_octal: bool = flag("-o", "--two-bytes-octal", help="two-byte octal display")
    two_hex: bool = flag("-x", "--two-bytes-hex", help="two-byte hexadecimal display")
    formats: tuple[str, ...] = several(
        "-e", "--format", metavar="FORMAT", help="format string to be used for displaying data"
    )
    files: tuple[str, ...] = several(
        "-f", "--format-file", metavar="FILE", help="file that contains format strings, one a line"
    )
    length: str | None = value("-n", "--length", metavar="LENGTH", help="interpret only LENGTH bytes of input")
    skip: str = value("-s", "--skip", metavar="OFFSET", default="0", help="skip OFFSET bytes from the beginning")
    order: tuple[tuple[str, object], ...] = ordered()
    squeeze: bool = flag("-v", "--no-squeezing", help="output identical lines")


async def hexdump(proc: Proc, o: HexdumpOptions, operands: list[str]) -> int:
    inputs = Inputs(proc, operands, dash=False, name=str)
    status = await _dump(proc, await _with_files(proc, o), inputs)
    if inputs.failed == len(operands) > 0:
        proc.complain("all input file arguments failed")
    return status


async def _with_files(proc: Proc, o: HexdumpOptions) -> HexdumpOptions:
    """Insert the formats of -f files into the options."""
    if not o.files:
        return o
    order: list[tuple[str, object]] = []
    for name, given in o.order:
        if name != "files":
            order.append((name, given))
            continue
        try:
            text = decode(await slurp(proc, str(given)))
        except OSError as error:
            raise UsageError(f"can't read {given}: {reason(error)}", hint=False) from None
        lines = (line.strip() for line in text.split("\n"))
        order += [("formats", line) for line in lines if line and not line.startswith("#")]
    return replace(o, order=tuple(order), formats=tuple(str(given) for name, given in order if name == "formats"))


def _amount(text: str, option: str, what: str) -> int:
    try:
        return bytes_number(text, option)
    except UsageError:
        raise UsageError(f"failed to parse {what}: {quote(text)}: Invalid argument", hint=False) from None


async def _dump(proc: Proc, o: HexdumpOptions, inputs: Inputs) -> int:
    skip = _amount(o.skip, "-s", "offset")
    count = None if o.length is None else _amount(o.length, "-n", "length")
    chosen = [name for name, _ in o.order if name in _NAMED or name == "formats"]
    hd = proc.argv[0].rpartition("/")[2] == "hd"
    if hd and chosen and not o.canonical:
        o = replace(o, order=(("canonical", True), *o.order))
    if o.formats or len(chosen) + hd > 1:
        return await show_formats(proc, o, inputs, skip, count)
    canonical = o.canonical or hd
    show = _canonical if canonical else _layout(o)
    address = "%08x" if canonical else "%07x"
    at = skip
    squeezed = Squeezed(_ROW, not o.squeeze)
    async for chunk in window(proc, inputs, skip, count, _ROW * 512):
        kept, offsets, stars = squeezed.take(chunk)
        lines = [address % (at + offset) + row for offset, row in zip(offsets, show(kept), strict=True)]
        for star in reversed(stars):
            lines.insert(star, "*")
        at += len(chunk)
        await proc.emit(encode("\n".join(lines) + "\n" if lines else ""))
        await proc.budget.yield_turn()
    if at > skip:
        await proc.emit(encode(address % at + "\n"))
    return inputs.status


_NAMED = {
    "one_octal": ('"%07.7_ax " 16/1 "%03o " "\\n"',),
    "one_char": ('"%07.7_ax " 16/1 "%3_c " "\\n"',),
    "canonical": ('"%08.8_ax  " 8/1 "%02x " "  " 8/1 "%02x " ', '"  |" 16/1 "%_p" "|\\n"'),
    "two_decimal": ('"%07.7_ax " 8/2 "  %05u " "\\n"',),
    "two_octal": ('"%07.7_ax " 8/2 " %06o " "\\n"',),
    "two_hex": ('"%07.7_ax " 8/2 "   %04x " "\\n"',),
}
"""Formats of the display options; several are shown below each other."""


def _texts(o: HexdumpOptions) -> tuple[str, ...]:
    """Return all formats in option order; a display option adds the final address."""
    texts: list[str] = []
    ending = ""
    for name, given in o.order:
        if name == "formats":
            texts.append(str(given))
        elif name in _NAMED:
            texts += _NAMED[name]
            ending = '"%08.8_Ax\\n"' if name == "canonical" else '"%07.7_Ax\\n"'
    return (ending, *texts) if ending else tuple(texts)


_ROW = 16
_SIXTEEN = 3 * _ROW
"""Columns of a row of digit pairs, each followed by a blank."""


def _canonical(data: bytes) -> list[str]:
    """Format rows as two halves of bytes and as text; the last row may be short."""
    digits = data.hex(" ")
    text = data.translate(PRINTED).decode("ascii")
    starts = range(0, len(data), _ROW)
    rows = [digits[3 * at : 3 * at + _SIXTEEN - 1] for at in starts]
    return [f"  {row[:23]:<23}  {row[24:]:<23}  |{text[at : at + _ROW]}|" for row, at in zip(rows, starts, strict=True)]


def _layout(o: HexdumpOptions) -> Callable[[bytes], list[str]]:
    """Return a formatter of rows in a fixed layout."""
    if o.one_octal or o.one_char:
        cells = Cells(lambda byte: f" {byte:03o}" if o.one_octal else f" {printable(byte):>3}")
        return lambda data: _filled(cells.rows(data, _ROW), 64)
    if o.two_octal:

        def octal(data: bytes) -> list[str]:
            padded = data + b"\0" * (len(data) % 2)
            made = bytearray(b" " * (len(padded) * 4))
            for place, column in enumerate(octal_columns(padded, "little"), 2):
                made[place::8] = column
            text = made.decode("ascii")
            return _filled([text[at : at + 64] for at in range(0, len(text), 64)], 64)

        return octal
    if o.two_decimal:

        def decimal(data: bytes) -> list[str]:
            numbers = words(data + b"\0" * (len(data) % 2), 2)
            text = "   %05d" * len(numbers) % tuple(numbers)
            return _filled([text[at : at + 64] for at in range(0, len(text), 64)], 64)

        return decimal
    gap, width = ("    ", 64) if o.two_hex else (" ", 40)

    def hexadecimal(data: bytes) -> list[str]:
        numbers = words(data + b"\0" * (len(data) % 2), 2, "big")
        text = gap + numbers.tobytes().hex(" ", -2).replace(" ", gap)
        return _filled([text[at : at + width] for at in range(0, len(numbers) * (4 + len(gap)), width)], width)

    return hexadecimal


def _filled(rows: list[str], width: int) -> list[str]:
    """Pad a short last row."""
    if rows:
        rows[-1] = rows[-1].ljust(width)
    return rows


# ------------------------------------------------------------------------------------------------ format strings

_UNIT = re.compile(r'\s*(?:(\d+)?\s*(?:/\s*(\d+))?\s*)"((?:[^"\\]|\\.)*)"\s*')
_CONVERSION = re.compile(r"%([-+ #0]*)(\d*)(\.\d+)?(_[aA][dox]|_[cpu]|[diouxXcsfeEgG%])")
_ESCAPED = {"n": "\n", "t": "\t", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "r": "\r", "v": "\v"}


@dataclass(frozen=True, slots=True)
class _Part:
    """Text, or a conversion after text: the bytes it consumes and how it formats them."""

    text: str
    kind: str = ""
    flags: str = ""
    width: str = ""
    precision: str = ""
    size: int = 0

    def show(self, piece: bytes, address: int) -> str:
        kind, shape = self.kind, f"%{self.flags}{self.width}{self.precision}"
        if not kind:
            return self.text
        if kind[:2] in ("_a", "_A"):
            return self.text + f"{shape}{kind[2:]}" % address
        if kind in ("_c", "_p", "_u"):
            return self.text + f"%{self.flags.replace('0', '')}{self.width}s" % _named(kind, piece[0])
        if kind == "c":
            return self.text + f"%{self.width}s" % piece.decode("ascii", "surrogateescape")
        if kind == "s":
            return self.text + f"{shape}s" % piece.partition(b"\0")[0].decode("utf-8", "surrogateescape")
        if kind in "feEgG":
            return self.text + str(f"{shape}{kind}" % struct.unpack("<f" if len(piece) == 4 else "<d", piece)[0])
        number = int.from_bytes(piece, "little", signed=kind in "di")
        if kind == "o" and "#" in self.flags:
            return self.text + f"%{self.flags.replace('#', '')}{self.width}s" % f"0{number:o}"
        return self.text + f"{shape}{'d' if kind in 'iu' else kind}" % number

    def blank(self) -> str:
        """Format missing bytes at the end of input."""
        return self.text + " " * int(self.width or 0) if self.kind else self.text


def _named(kind: str, byte: int) -> str:
    if kind == "_p":
        return chr(byte) if 32 <= byte < 127 else "."
    if kind == "_c":
        return printable(byte)
    if byte == 127:
        return "del"
    named = {10: "lf", 32: " "}.get(byte) or (NAMES[byte] if byte < 32 else "")
    return named or (chr(byte) if byte < 127 else f"{byte:02x}")


@dataclass(frozen=True, slots=True)
class _Unit:
    """`ITERATIONS/BYTES "FORMAT"`."""

    times: int
    fixed: bool
    parts: tuple[_Part, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def at_end(self) -> bool:
        return any(part.kind.startswith("_A") for part in self.parts)


def _unit(times: str | None, size: str | None, pattern: str) -> _Unit:
    pattern = re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), pattern)
    parts: list[_Part] = []
    at, eaters, text = 0, 0, ""
    while found := _CONVERSION.search(pattern, at):
        text += pattern[at : found.start()]
        at = found.end()
        flags, width, precision, kind = found[1], found[2], found[3] or "", found[4]
        if kind == "%":
            raise UsageError("bad conversion character %%", hint=False)
        bounded_spec(width + precision)
        eats = bounded(_eaten(kind, size, precision))
        eaters += eats > 0
        if eaters > 1 and size is not None:
            raise UsageError("byte count with multiple conversion characters", hint=False)
        parts.append(_Part(text, kind, flags, width, precision, eats))
        text = ""
    text += pattern[at:]
    if "%" in pattern[at:]:
        raise UsageError(f"bad conversion character {pattern[at:][pattern[at:].index('%') :][:2]}", hint=False)
    if text:
        parts.append(_Part(text))
    return _Unit(int(times) if times else 1, times is not None, tuple(parts))


def _eaten(kind: str, size: str | None, precision: str) -> int:
    """Return the bytes that a conversion consumes."""
    if kind[:2] in ("_a", "_A"):
        return 0
    if kind == "s":
        if size is None and not precision:
            raise UsageError("%s requires a precision or a byte count", hint=False)
        return int(size or precision[1:])
    good: tuple[int, ...] = (1, 2, 4, 8)
    usual = 4
    if kind in ("_c", "_p", "_u", "c"):
        good, usual = (1,), 1
    elif kind in "feEgG":
        good, usual = (4, 8), 8
    wanted = int(size) if size else usual
    if wanted not in good:
        raise UsageError(f"bad byte count for conversion character {kind}", hint=False)
    return wanted


_COPIES: Final = 16
"""Characters that one byte of a row may become: a row is shown at once."""


def _formats(texts: tuple[str, ...]) -> tuple[list[list[_Unit]], int]:
    """Parse the format strings; the last unit of a short one repeats up to the longest, whose length is returned."""
    strings: list[list[_Unit]] = []
    for text in texts:
        at, units = 0, []
        while at < len(text):
            found = _UNIT.match(text, at)
            if found is None:
                raise UsageError(f"bad format {{{text}}}", hint=False)
            units.append(_unit(found[1], found[2], found[3]))
            at = found.end()
        strings.append(units)
    lengths = [sum(u.times * u.size for u in units if not u.at_end) for units in strings]
    block = bounded(max(lengths, default=0) * _COPIES) // _COPIES
    for units, length in zip(strings, lengths, strict=True):
        if units and length < block and not units[-1].fixed and units[-1].size:
            units[-1] = replace(units[-1], times=1 + (block - length) // units[-1].size)
    return strings, block


async def show_formats(proc: Proc, o: HexdumpOptions, inputs: Inputs, skip: int, count: int | None) -> int:
    """Show each block by every format string; missing bytes at the end leave blanks."""
    strings, size = _formats(_texts(o))
    out: list[str] = []
    at, before, starred = skip, b"", False
    if not size:
        raise UsageError("bad format", hint=False)
    async for block in window(proc, inputs, skip, count, size):
        if not o.squeeze and block == before:
            # Repeated blocks are shown as one star.
            if not starred:
                out.append("*\n")
            starred, at = True, at + len(block)
            continue
        before, starred = block, False
        for units in strings:
            _show(units, block, at, size, out)
        at += len(block)
        if len(out) > 4096:
            await proc.emit(encode("".join(out)))
            out.clear()
            await proc.budget.yield_turn()
    for units in strings:
        for unit in units:
            if unit.at_end and at > skip:
                out += [part.show(b"", at) for part in unit.parts]
    await proc.emit(encode("".join(out)))
    return inputs.status


def _parted(unit: _Unit) -> bool:
    last = unit.parts[-1] if unit.parts else _Part("")
    return not last.kind and last.text[-1:].isspace()


def _show(units: list[_Unit], block: bytes, address: int, size: int, out: list[str]) -> None:
    at, end = 0, len(block)
    padded = block.ljust(size, b"\0")
    for unit in units:
        if unit.at_end:
            break
        for turn in range(unit.times):
            for part in unit.parts:
                if at >= end and end < size and part.kind:
                    out.append(part.blank())
                else:
                    out.append(part.show(padded[at : at + part.size], address + at))
                at += part.size
            if unit.times > 1 and turn == unit.times - 1 and _parted(unit):
                # The last repetition has no trailing blank.
                out[-1] = out[-1][:-1]


COMMANDS = [
    Command(
        "hexdump",
        hexdump,
        HexdumpOptions,
        summary="Display file contents in hexadecimal, decimal, octal, or ascii.",
        version_letters="V",
        help_letters="h",
        stdin_error=StdinError("{last}: {}", status=0),
    ),
    Command(
        "hd",
        hexdump,
        HexdumpOptions,
        summary="Display file contents in canonical hex+ASCII.",
        version_letters="V",
        help_letters="h",
        stdin_error=StdinError("{last}: {}", status=0),
    ),
]
