"""xxd: bytes as hexadecimal or binary digits and back again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.declare import Command, UsageError, flag, quote, value
from ramet.commands.dump import bytes_number, window
from ramet.commands.inputs import Inputs
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import FileStream


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
    source = operands[0] if operands else "-"
    try:
        reader = await proc.open(source)
    except OSError as error:
        proc.complain(f"{source}: {reason(error)}")
        return 2
    out = await proc.create(operands[1]) if len(operands) > 1 and operands[1] != "-" else proc.stdout
    if o.reverse:
        out.write(_xxd_revert(await reader.read_all(), o.plain))
        await proc.close(out)
        return 0
    inputs = Inputs(proc, [source])
    seek_text = o.seek.lstrip("+")
    skip = bytes_number(seek_text.lstrip("-") or "0", "-s")
    if seek_text.startswith("-") and isinstance(reader, FileStream):
        size = (await reader.stat()).size
        if size is None:  # made when it is read: only that tells where the end is
            size = 0
            while block := await reader.read():
                size += len(block)
                await proc.budget.breathe()
        skip = max(0, size - skip)
    count = None if o.length is None else bytes_number(o.length, "-l")
    for text in (o.cols, o.group):
        if text is not None and not text.isdecimal():
            raise UsageError(f"invalid number {quote(text)}", hint=False)
    if not re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", o.offset):
        raise UsageError(f"invalid offset {quote(o.offset)}", hint=False)
    cols = int(o.cols) if o.cols is not None else 6 if o.bits else 12 if o.include else 30 if o.plain else 16
    if o.include:
        out.write(await _xxd_include(proc, o, inputs, source, skip, count, cols or 12))
    else:
        group = int(o.group) if o.group is not None else 1 if o.bits else 4 if o.little else 2
        base = int(o.offset, 16 if "x" in o.offset.lower() else 10)
        at = skip
        lines: list[str] = []
        zeros = 0
        async for chunk in window(proc, inputs, skip, count, cols or (1 << 20 if o.plain else 16)):
            if o.plain:
                text = chunk.hex()
                lines.append((text.upper() if o.upper else text) + "\n")
            else:
                line = _xxd_line(o, chunk, at + base, cols, group)
                if o.autoskip and not any(chunk):
                    zeros += 1
                    if zeros == 2:
                        lines.append("*\n")
                    if zeros > 1:
                        at += len(chunk)
                        held = line
                        continue
                elif zeros > 1:
                    zeros = 0
                else:
                    zeros = 0
                lines.append(line)
            at += len(chunk)
            if len(lines) > 1000:
                out.write(encode("".join(lines)))
                lines.clear()
                if out.full:
                    await out.drain()
        if zeros > 1:
            lines.append(held)
        out.write(encode("".join(lines)))
    await proc.close(out)
    await proc.close(reader)
    return inputs.status


def _xxd_line(o: XxdOptions, chunk: bytes, at: int, cols: int, group: int) -> str:
    unit = 8 if o.bits else 2
    size = group or cols
    pieces: list[str] = []
    for i in range(0, len(chunk), size):
        part = chunk[i : i + size]
        if o.bits:
            pieces.append("".join(f"{b:08b}" for b in part))
        elif o.little:
            pieces.append(part[::-1].hex().rjust(size * 2))
        else:
            pieces.append(part.hex())
    text = " ".join(pieces)
    if o.upper:
        text = text.upper()
    groups = -(-cols // size)
    width = cols * unit + groups - 1
    lead = f"{at:08d}" if o.decimal else f"{at:08x}"
    shown_text = "".join(chr(b) if 32 <= b < 127 else "." for b in chunk)
    return f"{lead}: {text.ljust(width)}  {shown_text}\n"


async def _xxd_include(
    proc: Proc, o: XxdOptions, inputs: Inputs, source: str, skip: int, count: int | None, cols: int
) -> bytes:
    data = b"".join([part async for part in window(proc, inputs, skip, count, 65536)])
    mark = "0X" if o.upper else "0x"
    items = [f"{mark}{b:02X}" if o.upper else f"{mark}{b:02x}" for b in data]
    rows = ["  " + ", ".join(items[i : i + cols]) for i in range(0, len(items), cols)]
    body = ",\n".join(rows)
    name = o.name or source
    if source == "-" and o.name is None:
        return (body + "\n" if body else "").encode()
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    name = "__" + name if name[:1].isdigit() else name
    if o.capitalize:
        name = name.upper()
    size = "LEN" if o.capitalize else "len"
    return f"unsigned char {name}[] = {{\n{body}\n}};\nunsigned int {name}_{size} = {len(data)};\n".encode()


def _xxd_revert(data: bytes, plain: bool) -> bytes:
    if plain:
        digits = re.sub(rb"[^0-9a-fA-F]", b"", data)
        return bytes.fromhex(digits[: len(digits) & ~1].decode())
    out = bytearray()
    for line in data.split(b"\n"):
        found = re.match(rb"\s*([0-9a-fA-F]+):\s?((?:[0-9a-fA-F]{2}|[0-9a-fA-F ](?! ))*)", line)
        head = re.match(rb"\s*([0-9a-fA-F]+): ", line)
        if head is None:
            continue
        body = line[head.end() :].split(b"  ")[0]
        raw = bytes.fromhex(
            re.sub(rb"[^0-9a-fA-F]", b"", body).decode()[: len(re.sub(rb"[^0-9a-fA-F]", b"", body)) & ~1]
        )
        offset = int(head[1], 16)
        if offset > len(out):
            out += b"\0" * (offset - len(out))
        out[offset : offset + len(raw)] = raw
        del found
    return bytes(out)


COMMANDS = [
    Command(
        "xxd",
        xxd,
        XxdOptions,
        summary="Make a hex dump or do the reverse.",
        usage="[OPTION]... [INFILE [OUTFILE]]",
        rewrite=_xxd_words,
    ),
]
