"""xxd: show bytes as hexadecimal or binary digits, and reverse it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ramet.commands.binary.od import bytes_number, window
from ramet.commands.framework.command import Command, UsageError, flag, help_text, quote, value, version_text
from ramet.commands.framework.inputs import PART, Inputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core import ops
from ramet.core.errors import LimitExceeded, reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, FileStream, Reader, Writer, line_blocks


@dataclass(frozen=True, slots=True)
class XxdOptions:
    autoskip: bool = flag("-a", "-autoskip", help="toggle autoskip: a single '*' replaces nul lines")
    bits: bool = flag("-b", "-bits", help="binary digit dump")
    capitalize: bool = flag("-C", "-capitalize", help="capitalize variable names in C include file style")
    cols: str | None = value("-c", "-cols", metavar="COLS", help="format COLS octets per line")
    decimal: bool = flag("-d", help="show offset in decimal instead of hex")
    little: bool = flag("-e", help="little-endian dump")
    ebcdic: bool = flag("-E", "-EBCDIC", help="show characters in EBCDIC")
    group: str | None = value("-g", "-groupsize", metavar="BYTES", help="number of octets per group in normal output")
    include: bool = flag("-i", "-include", help="output in C include file style")
    length: str | None = value("-l", "-len", metavar="LEN", help="stop after LEN octets")
    name: str | None = value("-n", "-name", metavar="NAME", help="set the variable name used in C include output")
    offset: str = value("-o", metavar="OFF", default="0", help="add OFF to the displayed file position")
    plain: bool = flag("-p", "-ps", "-postscript", "-plain", help="output in postscript plain hexdump style")
    reverse: bool = flag("-r", "-revert", help="reverse operation: convert hexdump into binary")
    seek: str = value("-s", "-seek", metavar="SEEK", default="0", help="start at SEEK bytes")
    upper: bool = flag("-u", help="use upper case hex letters")
    asked: bool = flag("-h", help="print this summary")
    version: bool = flag("-v", help="show version")


_XXD_LONG = {
    "-autoskip": "-a",
    "-bits": "-b",
    "-capitalize": "-C",
    "-cols": "-c",
    "-EBCDIC": "-E",
    "-groupsize": "-g",
    "-include": "-i",
    "-len": "-l",
    "-name": "-n",
    "-ps": "-p",
    "-postscript": "-p",
    "-plain": "-p",
    "-revert": "-r",
    "-seek": "-s",
}


def _xxd_words(words: list[str]) -> list[str]:
    out: list[str] = []
    for word in words:
        bare = word[1:] if word.startswith("--") and len(word) > 2 else word
        out.append(_XXD_LONG.get(bare, word))
    return out


async def xxd(proc: Proc, o: XxdOptions, operands: list[str]) -> int:
    if o.asked or o.version:
        about = help_text(COMMANDS[0]) if o.asked else version_text(COMMANDS[0])
        (proc.stderr if o.asked else proc.stdout).write(encode(about))
        return 1 if o.asked else 0
    source = operands[0] if operands else "-"
    try:
        reader = await proc.open(source)
    except OSError as error:
        proc.complain(f"{source}: {reason(error)}")
        return 2
    target = operands[1] if len(operands) > 1 and operands[1] != "-" else None
    if o.reverse and not o.plain:
        return await _patch(proc, o, reader, target)
    out = await proc.create(target) if target is not None else proc.stdout
    if o.reverse:
        await _xxd_revert_plain(proc, reader, out)
        await proc.close(out)
        return 0
    inputs = Inputs(proc, [source])
    seek_text = o.seek.lstrip("+")
    skip = bytes_number(seek_text.lstrip("-") or "0", "-s")
    if seek_text.startswith("-") and not isinstance(reader, FileStream):
        proc.complain("Sorry, cannot seek.")
        return 4
    if seek_text.startswith("-") and isinstance(reader, FileStream):
        size = (await reader.stat()).size
        if size is None:  # computed while reading, which finds the end
            size = 0
            while block := await reader.read():
                size += len(block)
                await proc.budget.yield_turn()
        skip = max(0, size - skip)
    count = None if o.length is None else bytes_number(o.length, "-l")
    for text in (o.cols, o.group):
        if text is not None and not text.isdecimal():
            raise UsageError(f"invalid number {quote(text)}", hint=False)
    if o.cols is not None and int(o.cols) > 256 and not o.plain:
        raise UsageError("invalid number of columns (max. 256).", hint=False)
    if not re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", o.offset):
        raise UsageError(f"invalid offset {quote(o.offset)}", hint=False)
    default = 6 if o.bits else 12 if o.include else 30 if o.plain else 16
    cols = int(o.cols) if o.cols is not None and (int(o.cols) or o.plain) else default
    if o.include:
        cols = cols or 12
        await _xxd_include(proc, o, out, window(proc, inputs, skip, count, cols * _ROWS), source, cols)
    else:
        group = int(o.group) if o.group is not None else 1 if o.bits else 4 if o.little else 2
        base = int(o.offset, 16 if "x" in o.offset.lower() else 10)
        await _xxd_rows(proc, o, out, window(proc, inputs, skip, count, (cols or 16) * _ROWS), skip + base, cols, group)
    await proc.close(out)
    await proc.close(reader)
    return inputs.status


_ROWS = 512
"""Rows formatted between two yields."""
_PRINTED = bytes(byte if 32 <= byte < 127 else 46 for byte in range(256))
_MAINFRAME = b"." * 64 + (
    b" ...........<(+|&.........!$*);~-/.........,%_>?.........`:#@'=\""
    b".abcdefghi.......jklmnopqr^.......stuvwxyz...[...............].."
    b"{ABCDEFGHI......}JKLMNOPQR......\\.STUVWXYZ......0123456789......"
)
"""Text of each byte for EBCDIC."""
_BITS = [f"{byte:08b}" for byte in range(256)]


async def _xxd_rows(
    proc: Proc, o: XxdOptions, out: Writer, chunks: AsyncIterator[bytes], at: int, cols: int, group: int
) -> None:
    """Yield chunks of whole rows; with `autoskip`, repeated rows of zeros become a star."""
    zeros, held, any_bytes = 0, "", False
    async for chunk in chunks:
        if o.plain:
            text = chunk.hex()
            text = text.upper() if o.upper else text
            wide = 2 * cols or len(text)
            made = "\n".join([text[i : i + wide] for i in range(0, len(text), wide)]) + ("\n" if cols else "")
        else:
            rows = _xxd_lines(o, chunk, at, cols, group)
            if o.autoskip:
                kept: list[str] = []
                for i, row in enumerate(rows):
                    zeros = 0 if any(chunk[i * cols : (i + 1) * cols]) else zeros + 1
                    if zeros < 3:
                        kept.append("*\n" if zeros == 2 else row)
                    held = row
                rows = kept
            made = "".join(rows)
        at, any_bytes = at + len(chunk), True
        out.write(made.encode())
        if out.full:
            await out.drain()
        await proc.budget.yield_turn()
    if o.plain and not cols and any_bytes:
        out.write(b"\n")
    elif zeros > 1:
        out.write(held.encode())


def _xxd_lines(o: XxdOptions, data: bytes, at: int, cols: int, group: int) -> list[str]:
    """Format many rows; the last may be short."""
    shown_text = data.translate(_MAINFRAME if o.ebcdic else _PRINTED).decode("ascii")
    size = group or cols
    width = cols * (8 if o.bits else 2) + -(-cols // size) - 1
    starts = range(0, len(data), cols)
    if o.bits or o.little or cols % size or len(data) % cols:
        texts = [_xxd_text(o, data[i : i + cols], size).ljust(width) for i in starts]
    else:
        # Slices only: the digits of all rows are computed together.
        digits = data.hex(" ", -size)
        texts = [digits[i : i + width] for i in range(0, len(digits), width + 1)]
        if o.upper:
            texts = [text.upper() for text in texts]
    form = "{:08d}: {}  {}\n" if o.decimal else "{:08x}: {}  {}\n"
    return [form.format(at + i, text, shown_text[i : i + cols]) for i, text in zip(starts, texts, strict=True)]


def _xxd_text(o: XxdOptions, chunk: bytes, size: int) -> str:
    if o.bits:
        texts = [_BITS[byte] for byte in chunk]
        text = " ".join(["".join(texts[i : i + size]) for i in range(0, len(texts), size)])
    elif o.little:
        text = " ".join([chunk[i : i + size][::-1].hex().rjust(size * 2) for i in range(0, len(chunk), size)])
    else:
        text = chunk.hex(" ", -size)
    return text.upper() if o.upper else text


async def _xxd_include(
    proc: Proc, o: XxdOptions, out: Writer, chunks: AsyncIterator[bytes], source: str, cols: int
) -> None:
    """Print a C array; for standard input only the bytes between the braces."""
    cells = [f"0X{byte:02X}" if o.upper else f"0x{byte:02x}" for byte in range(256)]
    name = re.sub(r"[^A-Za-z0-9_]", "_", o.name or source)
    name = "__" + name if name[:1].isdigit() else name
    name = name.upper() if o.capitalize else name
    named = source != "-" or o.name is not None
    if named:
        out.write(f"unsigned char {name}[] = {{\n".encode())
    size = 0
    async for chunk in chunks:
        texts = [cells[byte] for byte in chunk]
        rows = ["  " + ", ".join(texts[at : at + cols]) for at in range(0, len(texts), cols)]
        out.write(((",\n" if size else "") + ",\n".join(rows)).encode())
        size += len(chunk)
        if out.full:
            await out.drain()
        await proc.budget.yield_turn()
    if named:
        lead = "\n" if size else ""
        out.write(f"{lead}}};\nunsigned int {name}_{'LEN' if o.capitalize else 'len'} = {size};\n".encode())
    elif size:
        out.write(b"\n")


_NOT_DIGITS = bytes(byte for byte in range(256) if byte not in b"0123456789abcdefABCDEF")
_HEAD = re.compile(rb"\s*([0-9a-fA-F]+): ")


async def _xxd_revert_plain(proc: Proc, reader: Reader, out: Writer) -> None:
    rest = b""
    while block := await reader.read():
        digits = rest + block.translate(None, _NOT_DIGITS)
        even = len(digits) & ~1
        rest = digits[even:]
        out.write(bytes.fromhex(digits[:even].decode()))
        if out.full:
            await out.drain()
        await proc.budget.yield_turn()


async def _patch(proc: Proc, o: XxdOptions, reader: Reader, target: str | None) -> int:
    """Reverse a dump to bytes, or patch them into a file."""
    there = bytearray()
    if target is not None and await ops.exists(proc.fs, proc.path(target)):
        there += await ops.read_bytes(proc.fs, proc.path(target))
    shift = int(o.seek, 0) if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", o.seek) else 0
    await _xxd_revert(proc, reader, there, shift)
    out = await proc.create(target) if target is not None else proc.stdout
    for at in range(0, len(there), BLOCK):
        out.write(bytes(there[at : at + BLOCK]))
        if out.full:
            await out.drain()
        await proc.budget.yield_turn()
    await proc.close(out)
    return 0


async def _xxd_revert(proc: Proc, reader: Reader, made: bytearray, shift: int) -> None:
    """Write rows at their offsets, in any order."""
    limit = proc.budget.limits.string_bytes
    async for block in line_blocks(reader, size=PART):
        for line in block.split(b"\n"):
            head = _HEAD.match(line)
            if head is None:
                continue
            digits = line[head.end() :].split(b"  ", 1)[0].translate(None, _NOT_DIGITS)
            raw = bytes.fromhex(digits[: len(digits) & ~1].decode())
            offset = max(int(head[1], 16) + shift, 0)
            if offset + len(raw) > limit:
                raise LimitExceeded("string_bytes", limit)
            if offset > len(made):
                made += bytes(offset - len(made))
            made[offset : offset + len(raw)] = raw
        await proc.budget.yield_turn()


COMMANDS = [
    Command(
        "xxd",
        xxd,
        XxdOptions,
        summary="Make a hex dump or do the reverse.",
        usage="[OPTION]... [INFILE [OUTFILE]]",
        rewrite=_xxd_words,
        stdin_error=StdinError("{}", status=2, fatal=True),
    ),
]
