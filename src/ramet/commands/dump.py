"""Bytes made visible: od and hexdump."""

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

_NAMES = [
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


def _printable(byte: int) -> str:
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
            lambda b: _NAMES[b[0] & 127] if b[0] & 127 <= 32 else "del" if b[0] & 127 == 127 else chr(b[0] & 127),
            z,
        )
    if kind == "c":
        return _Format(1, 3, lambda b: _printable(b[0]), z)
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
        for index, item in enumerate(formats):
            lead = (
                (address.format(at) if o.radix != "n" else "")
                if index == 0
                else " " * (len(address.format(0)) if o.radix != "n" else 0)
            )
            out.append(lead + _od_line(item, chunk, width, widest) + "\n")
        at += len(chunk)
        if len(out) > 1000:
            await proc.emit(encode("".join(out)))
            out.clear()
    if o.radix != "n" and not (inputs.status and at == skip):
        out.append(address.format(at) + "\n")
    await proc.emit(encode("".join(out)))
    return inputs.status


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


# ------------------------------------------------------------------------------------------------------ hexdump


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
    length: str | None = value("-n", "--length", metavar="LENGTH", help="interpret only LENGTH bytes of input")
    skip: str = value("-s", "--skip", metavar="OFFSET", default="0", help="skip OFFSET bytes from the beginning")
    squeeze: bool = flag("-v", "--no-squeezing", help="output identical lines")


async def hexdump(proc: Proc, o: HexdumpOptions, operands: list[str]) -> int:
    skip = bytes_number(o.skip, "-s")
    count = None if o.length is None else bytes_number(o.length, "-n")
    inputs = Inputs(proc, operands)
    if o.formats:
        return await _hexdump_formats(proc, o, inputs, skip, count)
    canonical = o.canonical or proc.argv[0].endswith("hd")
    show = _canonical if canonical else _hexdump_line(o)
    address = "{:08x}" if canonical else "{:07x}"
    at = skip
    before: bytes | None = None
    starred = False
    out: list[str] = []
    async for chunk in window(proc, inputs, skip, count, 16):
        if chunk == before and not o.squeeze:
            if not starred:
                out.append("*\n")
                starred = True
            at += len(chunk)
            continue
        before, starred = chunk, False
        out.append(address.format(at) + show(chunk) + "\n")
        at += len(chunk)
        if len(out) > 1000:
            await proc.emit(encode("".join(out)))
            out.clear()
    if at > skip:
        out.append(address.format(at) + "\n")
    await proc.emit(encode("".join(out)))
    return inputs.status


def _canonical(chunk: bytes) -> str:
    left, right = chunk[:8].hex(" "), chunk[8:].hex(" ")
    text = "".join(chr(b) if 32 <= b < 127 else "." for b in chunk)
    return f"  {left:<23}  {right:<23}  |{text}|"


def _hexdump_line(o: HexdumpOptions) -> Callable[[bytes], str]:
    if o.one_octal:
        return lambda chunk: "".join(f" {b:03o}" for b in chunk).ljust(64)
    if o.one_char:
        return lambda chunk: "".join(f" {_printable(b):>3}" for b in chunk).ljust(64)

    def words(chunk: bytes) -> list[int]:
        padded = chunk + b"\0" * (len(chunk) % 2)
        return list(struct.unpack(f"<{len(padded) // 2}H", padded))

    if o.two_decimal:
        return lambda chunk: "".join(f"   {w:05d}" for w in words(chunk)).ljust(64)
    if o.two_octal:
        return lambda chunk: "".join(f"  {w:06o}" for w in words(chunk)).ljust(64)
    if o.two_hex:
        return lambda chunk: "".join(f"    {w:04x}" for w in words(chunk)).ljust(64)
    return lambda chunk: "".join(f" {w:04x}" for w in words(chunk)).ljust(40)


_UNIT = re.compile(r'\s*(?:(\d+)?/(\d+)?\s*)?(\d+)?\s*"((?:[^"\\]|\\.)*)"')


async def _hexdump_formats(proc: Proc, o: HexdumpOptions, inputs: Inputs, skip: int, count: int | None) -> int:
    """`-e` with iteration and byte counts and printf conversions, applied until the input ends."""
    units: list[tuple[int, int, str]] = []
    for text in o.formats:
        for found in _UNIT.finditer(text):
            times = int(found[1] or found[3] or 1)
            pattern = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "0": "\0", "a": "\a"}.get(m[1], m[1]), found[4])
            spec = re.search(r"%[-+ #0]*\d*(?:\.\d+)?(?:_[acpu]\w?|[diouxXcsfeEgG])", pattern)
            size = int(found[2] or 0) or (
                0 if spec is None or "_a" in spec[0] else 1 if re.search(r"c$|_c|_p|_u", spec[0]) else 4
            )
            units.append((times, size, pattern))
    if not units:
        raise UsageError("bad format")
    data = b"".join([part async for part in window(proc, inputs, skip, count, 65536)])
    at = 0
    out: list[str] = []
    total = sum(times * size for times, size, _ in units)
    before, starred = b"", False
    while at < len(data) or (not total and not out):
        block = data[at : at + total]
        if total and not o.squeeze and len(block) == total and block == before:
            # Like blocks are shown once, and then as one star.
            if not starred:
                out.append("*\n")
            starred, at = True, at + total
            continue
        before, starred = block, False
        for times, size, pattern in units:
            for turn in range(times):
                if at >= len(data) and size:
                    break
                piece = data[at : at + size].ljust(size, b"\0")
                text = _hexdump_unit(pattern, piece, skip + at)
                out.append(text.rstrip(" ") if size and turn == times - 1 and times > 1 else text)
                at += size
        if not total:
            break
        await proc.budget.breathe()
    await proc.emit(encode("".join(out)))
    return inputs.status


def _hexdump_unit(pattern: str, piece: bytes, offset: int) -> str:
    def expand(found: re.Match[str]) -> str:
        flags, conv = found[1], found[2]
        if conv == "_c":
            return f"%{flags}s" % _printable(piece[0])
        if conv == "_p":
            return f"%{flags}s" % (chr(piece[0]) if 32 <= piece[0] < 127 else ".")
        if conv == "_u":
            return f"%{flags}s" % (_NAMES[piece[0]] if piece[0] < 33 else chr(piece[0]) if piece[0] < 127 else "del")
        if conv.startswith("_a"):
            return f"%{flags}{ {'d': 'd', 'o': 'o', 'x': 'x'}[conv[2:] or 'x'] }".replace(" ", "") % offset
        if conv == "c":
            return f"%{flags}c" % chr(piece[0])
        if conv == "s":
            return f"%{flags}s" % piece.rstrip(b"\0").decode("latin-1")
        if conv in "feEgG":
            return str(f"%{flags}{conv}" % struct.unpack("<f" if len(piece) == 4 else "<d", piece)[0])
        number = int.from_bytes(piece, "little", signed=conv in "di")
        return f"%{flags}{'d' if conv in 'iu' else conv}" % number

    return re.sub(r"%([-+ #0]*\d*(?:\.\d+)?)(_a[dox]?|_[cpu]|[diouxXcsfeEgG])", expand, pattern)


COMMANDS = [
    Command(
        "od",
        od,
        OdOptions,
        summary="Write an unambiguous representation, octal bytes by default, of FILE.",
        usage="[OPTION]... [FILE]...",
        rewrite=_old_od,
    ),
    Command(
        "hexdump", hexdump, HexdumpOptions, summary="Display file contents in hexadecimal, decimal, octal, or ascii."
    ),
    Command("hd", hexdump, HexdumpOptions, summary="Display file contents in canonical hex+ASCII."),
]
