"""od: show bytes as numbers and characters; type names and windows are shared with hexdump."""

from __future__ import annotations

import functools
import re
import struct
import sys
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import add, eq

from ramet.commands.framework.command import (
    Command,
    UsageError,
    choose,
    flag,
    mixed,
    optional,
    ordered,
    quote,
    several,
    value,
)
from ramet.commands.framework.inputs import Inputs, size_suffix
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, FileStream

# ----------------------------------------------------------------------------------------------------------- od

NAMES = [
    "nul",
    "soh",
    "stx",
    "etx",
    "eot",
    "enq",
    "ack",
    "bel",
    "bs",
    "ht",
    "nl",
    "vt",
    "ff",
    "cr",
    "so",
    "si",
    "dle",
    "dc1",
    "dc2",
    "dc3",
    "dc4",
    "nak",
    "syn",
    "etb",
    "can",
    "em",
    "sub",
    "esc",
    "fs",
    "gs",
    "rs",
    "us",
    "sp",
]
_ESCAPES = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_TRADITIONAL = {
    "-a": "a",
    "-b": "o1",
    "-c": "c",
    "-d": "u2",
    "-D": "u4",
    "-e": "fD",
    "-f": "fF",
    "-F": "fD",
    "-h": "x2",
    "-H": "x4",
    "-i": "dI",
    "-I": "dL",
    "-l": "dL",
    "-L": "dL",
    "-o": "o2",
    "-O": "o4",
    "-s": "d2",
    "-x": "x2",
    "-X": "x4",
}


@dataclass(frozen=True, slots=True)
class OdOptions:
    radix: str = value(
        "-A", "--address-radix", metavar="RADIX", default="o", help="output format for file offsets: d, o, x or n"
    )
    endian: str = value(
        "--endian",
        metavar="ORDER",
        default="little",
        choices=("big", "little"),
        help="swap input bytes according to the specified order",
    )
    skip: str = value("-j", "--skip-bytes", metavar="BYTES", default="0", help="skip BYTES input bytes first")
    count: str | None = value("-N", "--read-bytes", metavar="BYTES", help="limit dump to BYTES input bytes")
    strings: str | None = mixed(
        value("-S", metavar="BYTES", help="show only NUL terminated strings of at least BYTES characters"),
        optional("--strings", metavar="BYTES", const="3", help="like -S; BYTES defaults to 3"),
        default=None,
    )
    types: tuple[str, ...] = mixed(
        several(
            "-t",
            "--format",
            metavar="TYPE",
            help="select output format or formats: a, c, d[SIZE], f[SIZE], o[SIZE], u[SIZE], x[SIZE], with z for text",
        ),
        default=(),
    )
    compatible: bool = flag("--traditional", help="accept arguments as in [FILE] [[+]OFFSET[b] [[+]LABEL[b]]]")
    traditional: str | None = choose(_TRADITIONAL, help="a traditional format")
    order: tuple[tuple[str, object], ...] = ordered()
    duplicates: bool = flag("-v", "--output-duplicates", help="do not use * to mark line suppression")
    width: str | None = optional(
        "-w", "--width", metavar="BYTES", const="32", help="output BYTES bytes per output line"
    )


@dataclass(frozen=True, slots=True)
class _Format:
    size: int
    width: int
    show: Callable[[bytes], str]
    text: bool = False
    kind: str = ""


def printable(byte: int) -> str:
    return _ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"{byte:03o}")


def _od_formats(text: str, order: str) -> list[_Format]:
    out: list[_Format] = []
    rest = text
    while rest:
        found = re.match(r"([acdfoux])(\d+|[CSILFDL])?(z?)", rest)
        if found is None:
            raise UsageError(f"invalid character {quote(rest[0])} in type string {quote(text)}", hint=False)
        kind, size_text, z = found.groups()
        if kind in "ac" and size_text:
            z = ""
            found = re.match(r"([ac])(z?)", rest)
            assert found is not None
            z = found[2]
            size_text = None
        rest = rest[found.end() :]
        out.append(_od_format(kind, size_text, bool(z), order, text))
    return out


_WIDTHS = {
    ("o", 1): 3,
    ("o", 2): 6,
    ("o", 4): 11,
    ("o", 8): 22,
    ("d", 1): 4,
    ("d", 2): 6,
    ("d", 4): 11,
    ("d", 8): 20,
    ("u", 1): 3,
    ("u", 2): 5,
    ("u", 4): 10,
    ("u", 8): 20,
    ("x", 1): 2,
    ("x", 2): 4,
    ("x", 4): 8,
    ("x", 8): 16,
}


def _od_format(kind: str, size_text: str | None, z: bool, order: str, text: str) -> _Format:
    if kind == "a":
        return _Format(
            1,
            3,
            lambda b: NAMES[b[0] & 127] if b[0] & 127 <= 32 else "del" if b[0] & 127 == 127 else chr(b[0] & 127),
            z,
            kind,
        )
    if kind == "c":
        return _Format(1, 3, lambda b: printable(b[0]), z, kind)
    names = {"C": 1, "S": 2, "I": 4, "L": 8, "F": 4, "D": 8}
    size = (
        (8 if kind == "f" else 4) if size_text is None else names[size_text] if size_text in names else int(size_text)
    )
    if kind == "f":
        if size not in (2, 4, 8):
            raise UsageError(
                f"invalid type string {quote(text)};\nthis system doesn't provide a {size}-byte floating point type",
                hint=False,
            )
        code = {2: "e", 4: "f", 8: "d"}[size]
        mark = "<" if order == "little" else ">"
        digits = {2: 5, 4: 9, 8: 17}[size]
        return _Format(
            size,
            {2: 11, 4: 15, 8: 24}[size],
            lambda b: _shortest(struct.unpack(mark + code, b)[0], digits, size),
            z,
            kind,
        )
    if (kind, size) not in _WIDTHS:
        raise UsageError(
            f"invalid type string {quote(text)};\nthis system doesn't provide a {size}-byte integral type", hint=False
        )
    width = _WIDTHS[kind, size]
    endian = "little" if order == "little" else "big"

    def show(raw: bytes) -> str:
        number = int.from_bytes(raw, endian, signed=kind == "d")  # type: ignore[arg-type]
        if kind == "o":
            return f"{number:0{width}o}"
        return f"{number:0{width}x}" if kind == "x" else str(number)

    return _Format(size, width, show, z, kind)


_USUAL = {2: (1, 6e-5), 4: (6, 1.17549435e-38), 8: (15, 2.2250738585072014e-308)}
"""By size: digits that every number has, and the number below which it has fewer."""


def _shortest(number: float, digits: int, size: int) -> str:
    """Format a float with the fewest digits that round-trip, but no fewer than the guaranteed ones."""
    usual, least = _USUAL[size]
    for precision in range(usual if abs(number) >= least else 1, digits + 1):
        text = f"{number:.{precision}g}"
        back = float(text)
        if size == 4 and abs(back) < 3.4028235677973366e38:
            back = struct.unpack("<f", struct.pack("<f", back))[0]
        if back == number or number != number:
            return text
    return f"{number:.{digits}g}"


_MODERN = frozenset({"radix", "skip", "count", "strings", "types", "duplicates", "width"})
"""Options that forbid the historical operands."""


def _old_offset(word: str) -> int | None:
    """Parse a historical offset: octal or hexadecimal, `b` for blocks; None for another word."""
    found = re.fullmatch(r"\+?(?:0[xX]([0-9a-fA-F]+)|([0-7]+))([bB]?)", word)
    if found is None:
        return None
    number = int(found[1], 16) if found[1] else int(found[2], 8)
    return number * {"": 1, "b": 512, "B": 1024}[found[3]]


def _old_operands(o: OdOptions, operands: list[str]) -> tuple[list[str], int | None, int | None]:
    """Split operands into files, offset and label (`od FILE +10`)."""
    old = o.compatible
    if not old and any(name in _MODERN for name, _ in o.order):
        return operands, None, None
    offsets = [_old_offset(word) for word in operands[:4]]
    match offsets:
        case [int(skip)] if old or operands[0][0] == "+":
            return [], skip, None
        case [int(skip), int(label)] if old:
            return [], skip, label
        case [_, int(skip)] if old or operands[1][0] in "+0123456789":
            return operands[:1], skip, None
        case [_, int(skip), int(label)] if old:
            return operands[:1], skip, label
    if old and len(operands) > 1:
        raise UsageError(f"extra operand {quote(operands[1])}\nod: compatibility mode supports at most one file")
    return operands, None, None


def bytes_number(text: str, what: str) -> int:
    found = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([A-Za-z]*)", text)
    factor = size_suffix(found[2]) if found else None
    if found is None or factor is None:
        raise UsageError(f"invalid {what} argument {quote(text)}", hint=False)
    digits = found[1]
    return (
        int(digits, 16 if digits.lower().startswith("0x") else 8 if digits.startswith("0") and len(digits) > 1 else 10)
        * factor
    )


async def window(proc: Proc, inputs: Inputs, skip: int, count: int | None, size: int) -> AsyncIterator[bytes]:
    """Yield the selected part of the input in pieces of `size` bytes, the last one shorter."""
    held = b""
    left = count
    to_skip = skip
    async for _, reader in inputs.each():
        if to_skip and isinstance(reader, FileStream):
            length = (await reader.stat()).size
            if length is not None:
                step = min(to_skip, max(0, length - reader.tell()))
                reader.seek(reader.tell() + step)
                to_skip -= step
        while left is None or left > 0:
            block = await reader.read(BLOCK if left is None or to_skip else min(BLOCK, left))
            if not block:
                break
            if to_skip:
                cut = min(to_skip, len(block))
                block, to_skip = block[cut:], to_skip - cut
                if left is not None and len(block) > left:
                    block = block[:left]
            if left is not None:
                left -= len(block)
            held += block
            whole = len(held) - len(held) % size
            for at in range(0, whole, size):
                yield held[at : at + size]
            held = held[whole:]
            await proc.budget.yield_turn()
    if to_skip and not inputs.status:
        proc.complain("cannot skip past end of combined input")
        inputs.status = 1
    if held:
        yield held


async def od(proc: Proc, o: OdOptions, operands: list[str]) -> int:
    if o.radix not in ("d", "o", "x", "n"):
        raise UsageError(
            f"invalid output address radix {quote(o.radix)}; it must be one character from [doxn]", hint=False
        )
    skip = bytes_number(o.skip, "-j")
    count = None if o.count is None else bytes_number(o.count, "-N")
    operands, offset, label = _old_operands(o, operands)
    skip = skip if offset is None else offset
    texts: list[str] = [str(v) for name, v in o.order if name in ("types", "traditional")]
    formats = [f for text in texts for f in _od_formats(text, o.endian)] or _od_formats("o2", o.endian)
    inputs = Inputs(proc, operands)
    address = {"o": "{:07o}", "d": "{:07d}", "x": "{:06x}", "n": ""}[o.radix]
    if o.strings is not None and texts:
        raise UsageError("no type may be specified when dumping strings", hint=False)
    if o.strings is not None:
        return await _od_strings(proc, o, inputs, skip, count, address)
    unit = 1
    for item in formats:
        unit = max(unit, item.size)
    width = 16 if o.width is None else bytes_number(o.width, "-w")
    if width == 0 or width % unit:
        proc.complain(f"warning: invalid width {width}; using {unit} instead")
        width = unit
    widest = max((f.width + 1) * (width // f.size) for f in formats)
    makers = [_od_rows(item, width, widest, o.endian) for item in formats]
    pattern = {"o": "%07o", "d": "%07d", "x": "%06x", "n": ""}[o.radix]
    blank = " " * len(address.format(0))
    if label is not None and not pattern:
        pattern, blank = "(%07o)", " " * 7

    def place(at: int) -> str:
        return pattern % at if label is None or o.radix == "n" else f"{pattern} ({pattern})" % (at, at + label - skip)

    at = skip
    squeezed = Squeezed(width, not o.duplicates)
    most = 2048 if any(item.kind == "f" for item in formats) else 8192
    async for chunk in window(proc, inputs, skip, count, width * max(1, most // width)):
        kept, offsets, stars = squeezed.take(chunk)
        leads = [place(at + offset) for offset in offsets] if pattern else [""] * len(offsets)
        rows = [list(map(add, leads, makers[0](kept)))]
        rows += [[blank + row for row in make(kept)] for make in makers[1:]]
        lines = ["\n".join(parts) for parts in zip(*rows, strict=True)] if len(rows) > 1 else rows[0]
        for star in reversed(stars):
            lines.insert(star, "*")
        at += len(chunk)
        await proc.emit(encode("\n".join(lines) + "\n" if lines else ""))
        await proc.budget.yield_turn()
    too_far = at == skip and inputs.status and not inputs.failed
    if pattern and inputs.missing < len(inputs.words) and not too_far:
        await proc.emit(encode(place(at) + "\n"))
    return inputs.status


class Squeezed:
    """Suppress repeated rows: the first is shown, then a star."""

    def __init__(self, width: int, squeeze: bool) -> None:
        self._width, self._squeeze = width, squeeze
        self._before = b""
        self._starred = False

    def take(self, chunk: bytes) -> tuple[bytes, Sequence[int], list[int]]:
        """Return the rows to show, their offsets, and the indexes after which a star follows."""
        width = self._width
        offsets = range(0, len(chunk), width)
        if not self._squeeze:
            return chunk, offsets, []
        rows = [chunk[at : at + width] for at in offsets]
        before = [self._before, *rows]
        self._before = rows[-1]
        alike = list(map(eq, rows, before))
        if True not in alike:
            self._starred = False
            return chunk, offsets, []
        kept, stars = list[int](), list[int]()
        for index, same in enumerate(alike):
            if not same:
                kept.append(index)
                self._starred = False
            elif not self._starred:
                stars.append(len(kept))
                self._starred = True
        return b"".join([rows[index] for index in kept]), [offsets[index] for index in kept], stars


class Cells(dict[int, str]):
    """Cache of formatted numbers."""

    def __init__(self, show: Callable[[int], str]) -> None:
        self.show = show

    def __missing__(self, number: int) -> str:
        made = self[number] = self.show(number)
        return made

    def rows(self, numbers: Iterable[int], count: int) -> list[str]:
        """Format numbers in rows of `count` cells."""
        cells = list(map(self.__getitem__, numbers))
        return ["".join(cells[at : at + count]) for at in range(0, len(cells), count)]


def words(data: bytes, size: int, order: str = "little", signed: bool = False) -> array[int]:
    """Unpack the numbers of some bytes."""
    found = array({1: "b", 2: "h", 4: "i", 8: "q"}[size] if signed else {1: "B", 2: "H", 4: "I", 8: "Q"}[size])
    found.frombytes(data)
    if order != sys.byteorder:
        found.byteswap()
    return found


PRINTED = bytes(byte if 32 <= byte < 127 else 46 for byte in range(256))
"""Text of each byte in the text column."""


def _od_rows(item: _Format, width: int, widest: int, order: str) -> Callable[[bytes], list[str]]:
    """Return a formatter of rows, which formats many at once for cells of equal width."""
    cells = width // item.size

    def slowly(data: bytes) -> list[str]:
        return [_od_line(item, data[at : at + width], width, widest) for at in range(0, len(data), width)]

    if widest % cells or item.kind == "f":
        return slowly
    whole = _od_quickly(item, cells, widest // cells, order)

    def many(data: bytes) -> list[str]:
        full = len(data) - len(data) % width
        rows = whole(data[:full])
        if item.text:
            text = data.translate(PRINTED).decode("ascii")
            rows = [f"{row}  >{text[at : at + width]}<" for row, at in zip(rows, range(0, full, width), strict=True)]
        return rows + slowly(data[full:]) if full < len(data) else rows

    return many


def _od_quickly(item: _Format, cells: int, cell: int, order: str) -> Callable[[bytes], list[str]]:
    """Return a formatter of whole rows of `cells` cells, each `cell` columns wide."""
    size, length = item.size, cells * cell
    if size == 1:
        return functools.partial(Cells(lambda byte: item.show(bytes([byte])).rjust(cell)).rows, count=cells)
    if item.kind == "x" and cell == item.width + 1:

        def digits(data: bytes) -> list[str]:
            numbers = words(data, size, order)
            if sys.byteorder == "little":
                numbers.byteswap()
            shown = " " + numbers.tobytes().hex(" ", -size)
            return [shown[at : at + length] for at in range(0, len(numbers) * cell, length)]

        return digits
    if item.kind == "o" and size == 2:

        def octal(data: bytes) -> list[str]:
            made = bytearray(b" " * (len(data) // 2 * cell))
            for place, column in enumerate(octal_columns(data, order), cell - item.width):
                made[place::cell] = column
            shown = made.decode("ascii")
            return [shown[at : at + length] for at in range(0, len(shown), length)]

        return octal
    form = {"o": f"%0{item.width}o", "x": f"%0{item.width}x"}.get(item.kind, f"%{item.width}d")
    row = f"{' ' * (cell - item.width)}{form}" * cells + "\n"

    def formatted(data: bytes) -> list[str]:
        numbers = words(data, size, order, item.kind == "d")
        return (row * (len(numbers) // cells) % tuple(numbers)).split("\n")[:-1]

    return formatted


def _octal_digit(shift: int) -> bytes:
    return bytes([48 + (byte >> shift & 7) for byte in range(256)])


_OCTAL = {shift: _octal_digit(shift) for shift in (0, 1, 3, 4, 6, 7)}
_HIGH = bytes([(byte & 1) << 2 for byte in range(256)])


def octal_columns(data: bytes, order: str) -> list[bytes]:
    """Format two-byte words as six octal digits, digit by digit for all words."""
    low, high = (data[::2], data[1::2]) if order == "little" else (data[1::2], data[::2])
    # Only the fourth digit has bits of both bytes.
    both = int.from_bytes(high.translate(_HIGH), "little") | int.from_bytes(low.translate(_OCTAL[6]), "little")
    return [
        *(high.translate(_OCTAL[shift]) for shift in (7, 4, 1)),
        both.to_bytes(len(low), "little"),
        *(low.translate(_OCTAL[shift]) for shift in (3, 0)),
    ]


def _od_line(item: _Format, chunk: bytes, width: int, widest: int) -> str:
    cells = width // item.size
    room = widest
    text = ""
    padded = chunk + b"\0" * (-len(chunk) % item.size)
    used = 0
    count = len(padded) // item.size
    for i in range(count):
        # Spread the extra columns over the cells as GNU does.
        following = room * (cells - i - 1) // cells if cells else 0
        following = (widest * (cells - i - 1)) // cells
        cell = room - following
        text += item.show(padded[i * item.size : (i + 1) * item.size]).rjust(cell)
        room = following
        used += cell
    if item.text:
        text += " " * (widest - used) if count < cells else ""
        text += "  >" + "".join(chr(b) if 32 <= b < 127 else "." for b in chunk) + "<"
    return text


async def _od_strings(proc: Proc, o: OdOptions, inputs: Inputs, skip: int, count: int | None, address: str) -> int:
    minimum = bytes_number(o.strings or "3", "-S")
    data = b"".join([part async for part in window(proc, inputs, skip, count, 65536)])
    out: list[str] = []
    for found in re.finditer(rb"[ -~]{%d,}(?=\0)" % max(1, minimum), data):
        lead = address.format(skip + found.start()) + " " if o.radix != "n" else ""
        out.append(lead + found[0].decode("latin-1") + "\n")
    await proc.emit(encode("".join(out)))
    return inputs.status


COMMANDS = [
    Command(
        "od",
        od,
        OdOptions,
        summary="Write an unambiguous representation, octal bytes by default, of FILE.",
        usage="[OPTION]... [FILE]...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("'standard input': {}", "standard input: {}"),
    ),
]
