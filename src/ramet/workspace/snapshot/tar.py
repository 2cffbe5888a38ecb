"""Streaming tar writer and tar index: bounded memory, raw-byte names, no extraction.

The standard library's tarfile is an order of magnitude slower for many small members. The writer supports regular
files, directories, symbolic and hard links; the reader accepts any tar and indexes its regular members by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final, Protocol

from ramet.core.paths import decode, encode
from ramet.text import tar_header
from ramet.text.tar_header import BLOCK, RECORD

COPY: Final = 1024 * 1024
ZEROS: Final = bytes(RECORD)
_SKIPPED: Final = frozenset(b"2134567xgLK")
_MAX_HEADER_DATA: Final = 1024 * 1024


class ByteSink(Protocol):
    def write(self, data: bytes, /) -> object: ...


class TarWriter:
    """Writes members in order; `close()` ends the archive."""

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._total = 0

    def file(self, name: str, size: int, blocks: Iterator[bytes], *, mode: int = 0o644, mtime_ns: int = 0) -> None:
        """Write a regular member; ValueError unless the blocks add up to `size`."""
        self._header(encode(name), size, b"0", mode, mtime_ns)
        written = 0
        for block in blocks:
            written += len(block)
            self._put(block)
        if written != size:
            raise ValueError(f"{name!r} changed while it was written: {written} bytes instead of {size}")
        if rest := -size % BLOCK:
            self._put(ZEROS[:rest])

    def directory(self, name: str, *, mode: int = 0o755, mtime_ns: int = 0) -> None:
        self._header(encode(name.rstrip("/")) + b"/", 0, b"5", mode, mtime_ns)

    def link(self, name: str, target: str, *, mtime_ns: int = 0) -> None:
        self._header(encode(name), 0, b"2", 0o777, mtime_ns, encode(target))

    def hard_link(self, name: str, first: str, *, mode: int = 0o644, mtime_ns: int = 0) -> None:
        """Write a hard link to an earlier member."""
        self._header(encode(name), 0, b"1", mode, mtime_ns, encode(first))

    def exact_time(self, mtime_ns: int) -> None:
        """Write a pax header with the time of the next member in nanoseconds."""
        sign = b"-" if mtime_ns < 0 else b""
        record = b" mtime=%b%d.%09d\n" % (sign, *divmod(abs(mtime_ns), 1_000_000_000))
        length = len(record) + len(str(len(record) + 2))
        data = b"%d%b" % (length, record)
        self._put(tar_header.gnu_header(b"././@PaxHeader", len(data), b"x", 0o644, 0))
        self._put(data + bytes(-len(data) % BLOCK))

    def flush(self) -> None:
        """Flush everything to the sink."""
        self._flush()

    def close(self) -> None:
        self._put(ZEROS[: 2 * BLOCK])
        if rest := -self._total % RECORD:
            self._put(ZEROS[:rest])
        self._flush()

    def _put(self, data: bytes) -> None:
        self._total += len(data)
        if len(data) >= COPY:
            self._flush()
            self._sink.write(data)
            return
        self._pending.append(data)
        self._pending_size += len(data)
        if self._pending_size >= COPY:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._sink.write(b"".join(self._pending))
            self._pending.clear()
            self._pending_size = 0

    def _header(self, name: bytes, size: int, kind: bytes, mode: int, mtime_ns: int, target: bytes = b"") -> None:
        for text, flag in ((target, b"K"), (name, b"L")):
            if len(text) > 100:
                self._put(tar_header.long_name(text, flag))
        self._put(tar_header.gnu_header(name[:100], size, kind, mode, mtime_ns // 1_000_000_000, target[:100]))


@dataclass(frozen=True, slots=True)
class TarMember:
    """Offset and size of a regular member."""

    offset: int
    size: int


@dataclass
class TarIndex:
    """Regular members of a seekable tar by name; bytes are read on demand."""

    file: BinaryIO
    members: dict[str, TarMember] = field(default_factory=dict)

    def read(self, name: str) -> bytes:
        return b"".join(self.blocks(name))

    def blocks(self, name: str) -> Iterator[bytes]:
        member = self.members[name]
        at, left = member.offset, member.size
        while left:
            self.file.seek(at)
            block = self.file.read(min(left, COPY))
            if not block:
                raise ValueError(f"the archive ends in the middle of {name!r}")
            at += len(block)
            left -= len(block)
            yield block


def read_tar_index(file: BinaryIO, max_members: int = 10_000_000) -> TarIndex:
    """Read all headers of a seekable tar. ValueError for damaged, truncated or oversized archives."""
    found = TarIndex(file)
    end = file.seek(0, os.SEEK_END)
    at, long_name = 0, None
    while True:
        if at + BLOCK > end:
            raise ValueError("the archive is truncated: it has no end marker")
        file.seek(at)
        head = file.read(BLOCK)
        if head == ZEROS[:BLOCK]:
            return found
        size, kind = _check_header(head)
        at += BLOCK
        data_end = at + size
        if data_end > end:
            raise ValueError("the archive is truncated: a member is longer than what is left")
        if kind == b"L":
            long_name = _header_data(file, size).rstrip(b"\0")
        elif kind == b"x":
            long_name = _pax_path(_header_data(file, size)) or long_name
        elif kind in (b"0", b"\0", b"7"):
            name = decode(long_name if long_name is not None else tar_header.name(head))
            long_name = None
            if name in found.members:
                raise ValueError(f"the archive has two members named {name!r}")
            found.members[name] = TarMember(at, size)
            if len(found.members) > max_members:
                raise ValueError(f"the archive has more than {max_members} members")
        elif kind[0] in _SKIPPED:
            if kind not in (b"g", b"K"):
                long_name = None
        else:
            raise ValueError(f"the archive has a member of unknown type {kind!r}")
        at = data_end + -size % BLOCK


def _check_header(head: bytes) -> tuple[int, bytes]:
    """Return size and type of a header after checking its checksum."""
    if not tar_header.has_checksum(head):
        raise ValueError("this is not a tar archive, or its headers are damaged")
    return _number(head[124:136]), head[156:157]


def _number(raw: bytes) -> int:
    try:
        value = tar_header.number(raw)
    except ValueError:
        value = -1
    if not 0 <= value <= 1 << 62:
        raise ValueError("the archive has a member of impossible size")
    return value


def _header_data(file: BinaryIO, size: int) -> bytes:
    if size > _MAX_HEADER_DATA:
        raise ValueError("the archive has an extended header of absurd size")
    return file.read(size)


def _pax_path(data: bytes) -> bytes | None:
    try:
        return dict(tar_header.pax_records(data)).get(b"path")
    except ValueError:
        raise ValueError("the archive has a damaged extended header") from None
