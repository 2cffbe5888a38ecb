"""Bytes made visible: od, and the names and windows that hexdump shares."""

from __future__ import annotations

import re
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from ramet.commands.declare import Command, UsageError, choose, flag, mixed, optional, ordered, quote, several, value
from ramet.commands.inputs import Inputs, size_suffix
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import FileStream

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
        )
    if kind == "c":
        return _Format(1, 3, lambda b: printable(b[0]), z)
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
            size, {2: 11, 4: 15, 8: 24}[size], lambda b: _shortest(struct.unpack(mark + code, b)[0], digits, size), z
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

    return _Format(size, width, show, z)


def _shortest(number: float, digits: int, size: int) -> str:
    for precision in range(1, digits + 1):
        text = f"{number:.{precision}g}"
        back = (
            struct.unpack("<f", struct.pack("<f", float(text)))[0]
            if size == 4 and abs(float(text)) < 3.4e38
            else float(text)
        )
        if back == number or number != number:
            return text
    return f"{number:.{digits}g}"


def _old_od(words: list[str]) -> list[str]:
    """`od FILE +10`: the historical offset."""
    if words and re.fullmatch(r"\+\d+[.]?[bB]?", words[-1]):
        offset = words[-1][1:]
        number = int(offset.rstrip(".bB"), 10 if "." in offset else 8) * (512 if offset[-1] in "bB" else 1)
        return ["-j", str(number), *words[:-1]]
    return words


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
    """The wanted part of the input in pieces of `size` bytes, the last one shorter."""
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
            block = await reader.read() if left is None or to_skip else await reader.read(left)
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
            await proc.budget.breathe()
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
    texts: list[str] = [str(v) for name, v in o.order if name in ("types", "traditional")]
    formats = [f for text in texts for f in _od_formats(text, o.endian)] or _od_formats("o2", o.endian)
    inputs = Inputs(proc, operands)
    address = {"o": "{:07o}", "d": "{:07d}", "x": "{:06x}", "n": ""}[o.radix]
    if o.strings is not None:
        return await _od_strings(proc, o, inputs, skip, count, address)
    unit = 1
    for item in formats:
        unit = max(unit, item.size)
    width = 16 if o.width is None else bytes_number(o.width, "-w")
    if width == 0 or width % unit:
        width = unit
    widest = max((f.width + 1) * (width // f.size) for f in formats)
    rows = [_od_row(item, width, widest) for item in formats]
    at = skip
    out: list[str] = []
    before: bytes | None = None
    starred = False
    async for chunk in window(proc, inputs, skip, count, width):
        if not o.duplicates and chunk == before and len(chunk) == width:
            if not starred:
                out.append("*\n")
                starred = True
            at += len(chunk)
            continue
        before, starred = chunk, False
        for index in range(len(formats)):
            lead = (
                (address.format(at) if o.radix != "n" else "")
                if index == 0
                else " " * (len(address.format(0)) if o.radix != "n" else 0)
            )
            out.append(lead + rows[index](chunk) + "\n")
        at += len(chunk)
        if len(out) > 1000:
            await proc.emit(encode("".join(out)))
            out.clear()
            await proc.budget.breathe()
    if o.radix != "n" and not (inputs.status and at == skip):
        out.append(address.format(at) + "\n")
    await proc.emit(encode("".join(out)))
    return inputs.status


class _Cells(dict[bytes, str]):
    """Cells of one width, each made when its bytes are first met."""

    def __init__(self, item: _Format, width: int) -> None:
        self.item, self.width = item, width

    def __missing__(self, raw: bytes) -> str:
        made = self[raw] = self.item.show(raw).rjust(self.width)
        return made


def _od_row(item: _Format, width: int, widest: int) -> Callable[[bytes], str]:
    """What shows a chunk; where all cells are alike and few, by looking them up."""
    cells = width // item.size
    if item.text or widest % cells or item.size > 2:
        return lambda chunk: _od_line(item, chunk, width, widest)
    made = _Cells(item, widest // cells)
    size = item.size

    def row(chunk: bytes) -> str:
        if len(chunk) % size:
            chunk += b"\0"
        return "".join([made[chunk[i : i + size]] for i in range(0, len(chunk), size)])

    return row


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
    for found in re.finditer(rb"[\t-\r -~]{%d,}(?=\0)" % max(1, minimum), data):
        lead = address.format(skip + found.start()) + " " if o.radix != "n" else ""
        out.append(lead + found[0].decode("latin-1").translate({k: v for k, v in _ESCAPES.items() if k}) + "\n")
    await proc.emit(encode("".join(out)))
    return inputs.status


COMMANDS = [
    Command(
        "od",
        od,
        OdOptions,
        summary="Write an unambiguous representation, octal bytes by default, of FILE.",
        usage="[OPTION]... [FILE]...",
        rewrite=_old_od,
    ),
]
