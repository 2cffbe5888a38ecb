"""What zip makes of archives rather than of files: copies of some members (-U), and what can be saved (-F, -FF, -J)."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.glob import fnmatch

Members = list[tuple[zipfile.ZipInfo, bytes]]
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_REQUIRED = {
    "copy": "-U (--copy) requires -O (--out)",
    "fix": "fix options require --out",
    "salvage": "fix options require --out",
}


async def repaired(proc: Proc, how: str, name: str, target: str | None, words: list[str], *, quiet: bool) -> int:
    """An archive written anew from the members of another: `copy`, `fix`, `salvage` or `junk` what precedes it."""
    if target is None and how in _REQUIRED:
        if how != "copy":
            await proc.emit(
                b"\tzip warning: fix options -F and -FF require --out:\n"
                b"                     zip -F indamagedarchive --out outfixedarchive\n"
            )
        await proc.emit(encode(f"\nzip error: Invalid command arguments ({_REQUIRED[how]})\n"))
        return 16
    if how in ("fix", "salvage") and not quiet:
        said = "-F) - assume mostly intact archive" if how == "fix" else "-FF) - salvage what can"
        await proc.emit(encode(f"Fix archive ({said}\n"))
    try:
        data = await ops.read_bytes(proc.fs, proc.path(name))
    except OSError as error:
        message = f"zip I/O error: {reason(error)}\nzip error: File not found or no read permission ({name})\n"
        await proc.emit(encode(message))
        return 18
    try:
        members = salvaged(data) if how == "salvage" else _listed(data)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        await proc.emit(encode(f"\nzip error: Zip file structure invalid ({name})\n"))
        return 3
    if how == "fix" and not quiet:
        await proc.emit(b"Zip entry offsets do not need adjusting\n")
    if how == "copy" and words:
        for word in words:
            if not any(fnmatch(info.filename, word) for info, _ in members):
                await proc.emit(encode(f"\tzip warning: not in archive: {word}\n"))
        members = [item for item in members if any(fnmatch(item[0].filename, word) for word in words)]
        if not members:
            await proc.emit(encode(f"\nzip error: Nothing to do! ({name})\n"))
            return 12
    if not members and how == "salvage":
        await proc.emit(b"\tzip warning: zip file empty\n")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for info, content in members:
            if not quiet and how != "junk":
                size = f"  ({info.compress_size} bytes)" if how == "salvage" else ""
                await proc.emit(encode(f" copying: {info.filename}{size}\n"))
            archive.writestr(info, content)
            await proc.budget.yield_turn()
    await proc.fs.write(proc.path(target or name), buffer.getvalue())
    return 0


def _listed(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(info, archive.read(info)) for info in archive.infolist()]


def salvaged(data: bytes) -> Members:
    """The members whose headers and contents are whole, found without the directory at the end."""
    found: Members = []
    place = data.find(b"PK\x03\x04")
    while 0 <= place <= len(data) - _LOCAL.size:
        member = _at(data, place)
        if member is not None:
            info, content, end = member
            found.append((info, content))
            place = end
        else:
            place += 4
        place = data.find(b"PK\x03\x04", place)
    return found


def _at(data: bytes, place: int) -> tuple[zipfile.ZipInfo, bytes, int] | None:
    """The member that begins at a place, and where it ends; None where it is not whole."""
    _, _, flags, method, time, date, crc, size, _, name_size, extra_size = _LOCAL.unpack_from(data, place)
    begin = place + _LOCAL.size
    raw = data[begin : begin + name_size]
    begin += name_size + extra_size
    if flags & 1 or method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return None
    if method == zipfile.ZIP_DEFLATED:
        unpacker = zlib.decompressobj(-15)
        try:
            content = unpacker.decompress(data[begin:])
        except zlib.error:
            return None
        if not unpacker.eof:
            return None
        end = len(data) - len(unpacker.unused_data)
    else:
        content, end = data[begin : begin + size], begin + size
        if flags & 8 or len(content) < size:
            return None
    if not flags & 8 and zlib.crc32(content) != crc:
        return None
    month, day = max(1, date >> 5 & 15), max(1, date & 31)
    when = (1980 + (date >> 9), month, day, time >> 11, time >> 5 & 63, (time & 31) * 2)
    info = zipfile.ZipInfo(raw.decode("utf-8" if flags & 0x800 else "cp437", "replace"), when)
    info.compress_type, info.create_system = method, 3
    info.external_attr = (0o40755 << 16 | 16) if info.filename.endswith("/") else 0o100644 << 16
    info.compress_size = end - begin
    return info, content, end
