"""`gzip -l`: sizes and names from headers and trailers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import FileStream, Reader
from ramet.text.strftime import shown_at, zone_of

HEAD = 64 * 1024
TAIL = 8
_EXTRA, _NAME, _COMMENT, _CHECK = 4, 8, 16, 2


@dataclass(frozen=True)
class GzipListing:
    """Sizes, checksum and time of one file, and the bytes of its headers."""

    packed: int
    whole: int
    crc: int
    modified_ns: int
    frame: int


class NotGzip(Exception):
    """Why a file is not listed; `fatal` ends the listing."""

    def __init__(self, why: str, *, fatal: bool = False) -> None:
        super().__init__(why)
        self.fatal = fatal


async def list_gzip(proc: Proc, operands: list[str], named: Callable[[str], str], *, quiet: bool, verbose: bool) -> int:
    """Return the table of these files; `named` says what a file is called without its suffix."""
    status, begun, rows = 0, False, 0
    packed = whole = frame = 0
    for word in operands or ["-"]:
        try:
            if word != "-" and not word.endswith(".gz") and not await ops.exists(proc.fs, proc.path(word)):
                word += ".gz"
            found = await _look(proc, word)
        except NotGzip as unfit:
            proc.stderr.write(encode(f"\ngzip: {'stdin' if word == '-' else word}: {unfit}\n"))
            status = 1
            if unfit.fatal:
                return status
            continue
        except OSError as error:
            proc.stderr.write(encode(f"gzip: {word}: {reason(error)}\n"))
            status = 1
            continue
        if not begun and not quiet:
            titles = "         compressed        uncompressed  ratio uncompressed_name\n"
            await proc.emit(encode(("method  crc     date  time  " if verbose else "") + titles))
        begun, frame = True, found.frame
        when = shown_at("%b %e %H:%M", found.modified_ns, zone_of(proc))
        left = encode(f"defla {found.crc:08x} {when:>11} ") if verbose else b""
        await proc.emit(left + _row(found.packed, found.whole, frame, "stdout" if word == "-" else named(word)))
        packed, whole, rows = packed + found.packed, whole + found.whole, rows + 1
    if rows > 1 and not quiet:
        await proc.emit(b" " * 28 * verbose + _row(packed, whole, frame, "(totals)"))
    return status


def _row(packed: int, whole: int, frame: int, name: str) -> bytes:
    ratio = (1 - (packed - frame) / whole) * 100 if whole else 0.0
    return encode(f"{packed:19d} {whole:19d} {ratio:5.1f}% {name}\n")


async def _look(proc: Proc, word: str) -> GzipListing:
    reader = await proc.open(word)
    try:
        head = await reader.read_exactly(HEAD)
        size, tail, modified = await _end(proc, reader, head)
        several = isinstance(reader, FileStream) and await _is_several(proc, reader)
    finally:
        await proc.close(reader)
    if head[:2] != b"\x1f\x8b":
        raise NotGzip("unexpected end of file" if len(head) < 2 else "not in gzip format", fatal=len(head) < 2)
    length = _header(head)
    if length is None or size < length + TAIL:
        raise NotGzip("unexpected end of file", fatal=True)
    crc, whole = int.from_bytes(tail[:4], "little"), int.from_bytes(tail[4:], "little")
    # Headers between several members count as data.
    return GzipListing(size, whole, crc, modified, 0 if several else length + TAIL)


async def _is_several(proc: Proc, reader: FileStream) -> bool:
    """Return whether another part follows the first; only unpacking tells where that ends."""
    import zlib

    reader.seek(0)
    unpacker = zlib.decompressobj(31)
    while not unpacker.eof:
        block = unpacker.unconsumed_tail or await reader.read(HEAD)
        if not block:
            return False
        try:
            unpacker.decompress(block, 1 << 20)
        except zlib.error:
            return False
        await proc.budget.yield_turn()
    return bool(unpacker.unused_data or await reader.read(1))


async def _end(proc: Proc, reader: Reader, head: bytes) -> tuple[int, bytes, int]:
    """Return the size of an input, its last bytes, and when it was changed, if that is known."""
    if isinstance(reader, FileStream):
        stat = await reader.stat()
        if stat.size is not None:
            reader.seek(max(0, stat.size - TAIL))
            return stat.size, await reader.read_exactly(TAIL), stat.mtime_ns or 0
    size, tail = len(head), head[-TAIL:]
    while block := await reader.read():
        size, tail = size + len(block), (tail + block)[-TAIL:]
        await proc.budget.yield_turn()
    return size, tail, 0


def _header(head: bytes) -> int | None:
    """Return how long the header is; None when it is cut off."""
    if len(head) < 10:
        return None
    flags, at = head[3], 10
    if flags & _EXTRA:
        at += 2 + int.from_bytes(head[at : at + 2], "little")
    for text in (_NAME, _COMMENT):
        if flags & text:
            end = head.find(b"\0", at)
            if end < 0:
                return None
            at = end + 1
    return at + 2 if flags & _CHECK else at
