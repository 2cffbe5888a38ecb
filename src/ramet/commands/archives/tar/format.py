"""Read and write tar members as streams: ustar, GNU long names, pax headers, sparse files."""

from __future__ import annotations

import re
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from ramet.commands.archives.tar import sparse_map
from ramet.core.paths import decode, encode
from ramet.core.streams import Reader
from ramet.text import tar_header
from ramet.text.tar_header import BLOCK as BLOCK
from ramet.text.tar_header import RECORD as RECORD
from ramet.text.tar_header import with_checksum

REGULAR = (b"0", b"\0", b"7")
DIRECTORY, SYMLINK, HARDLINK, FIFO, DEVICE, LABEL = b"5", b"2", b"1", b"6", b"3", b"V"
DUMPDIR, CONTINUED, SPARSE = b"D", b"M", b"S"
_WITHOUT_DATA = frozenset((HARDLINK, SYMLINK, DEVICE, b"4", DIRECTORY, FIFO, LABEL))


_KNOWN = frozenset((*REGULAR, *_WITHOUT_DATA, DUMPDIR, CONTINUED, SPARSE))
_LONGEST_MAP = 64 << 20
_GNU_MAGIC = b"ustar  \0"


class BadArchive(Exception):
    """This is not a tar archive, or it ends too early."""


@dataclass
class Member:
    """One entry of an archive."""

    name: str
    kind: bytes = b"0"
    mode: int = 0o644
    size: int = 0
    mtime: float = 0
    link: str = ""
    uid: int = 0
    gid: int = 0
    owner: str = ""
    group: str = ""
    offset: int = 0
    map: sparse_map.Map | None = None
    """The data ranges of a sparse file."""
    numbers: tuple[int, int] = (0, 0)
    """Major and minor number of a device."""

    @property
    def is_dir(self) -> bool:
        return self.kind in (DIRECTORY, DUMPDIR)

    @property
    def is_file(self) -> bool:
        return self.kind in REGULAR or self.kind == SPARSE

    @property
    def has_data(self) -> bool:
        return self.kind not in _WITHOUT_DATA


class TooLong(Exception):
    """A name that the format has no room for."""


def header(member: Member, form: str = "gnu", extra: Mapping[str, str] | None = None) -> bytes:
    """Return the blocks that announce a member."""
    pax = form in ("pax", "posix")
    info = tarfile.TarInfo(member.name)
    info.type = b"0" if member.map is not None else member.kind
    info.mode = member.mode
    info.size = member.size if member.has_data else 0
    info.mtime = member.mtime if pax else int(member.mtime)
    info.linkname = member.link
    info.uid, info.gid, info.uname, info.gname = member.uid, member.gid, member.owner, member.group
    info.devmajor, info.devminor = member.numbers
    if pax and extra is not None:
        info.pax_headers = dict(extra)
    if form in ("ustar", "v7"):
        return _old_header(info, form)
    try:
        return info.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    except ValueError:
        raise TooLong("a number is too large for its header; not dumped") from None


def _old_header(info: tarfile.TarInfo, form: str) -> bytes:
    if form == "v7" and len(encode(info.name)) > 99:
        raise TooLong("file name is too long (max 99); not dumped")
    if len(encode(info.name)) > 100 and not _splits(encode(info.name).rstrip(b"/")):
        raise TooLong("file name is too long (cannot be split); not dumped")
    try:
        block = info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape")
    except ValueError as error:
        what = "link name is too long" if "link" in str(error) else "file name is too long (cannot be split)"
        raise TooLong(f"{what}; not dumped") from None
    return block if form == "ustar" else with_checksum(block[:257] + b"\0" * (BLOCK - 257))


def _splits(name: bytes) -> bool:
    """Return whether a name can be cut at a slash into two parts that there is room for."""
    return any(name[at : at + 1] == b"/" for at in range(max(0, len(name) - 101), min(156, len(name))))


def named_extension(blocks: bytes, name: str) -> bytes:
    """Return a member's blocks in which the header of its extension, if there is one, has this name."""
    if blocks[156:157] != b"x":
        return blocks
    return with_checksum(encode(name)[:100].ljust(100, b"\0") + blocks[100:BLOCK]) + blocks[BLOCK:]


def padding(size: int) -> bytes:
    return b"\0" * (-size % BLOCK)


class Members:
    """Read an archive member by member; read the content of a member before the next `next`."""

    def __init__(self, reader: Reader, *, past_zeros: bool = False) -> None:
        self.reader, self.past_zeros = reader, past_zeros
        self.left = 0
        self.pad = 0
        self.at = 0
        self.first = True
        self.member: Member | None = None
        self.unknown = ""
        """An unknown type of member that was read as a plain file."""
        self.ended: int | None = None
        """Offset of the zero blocks that end the archive."""

    async def _exactly(self, size: int) -> bytes:
        data = await self.reader.read_exactly(size)
        self.at += len(data)
        if len(data) < size:
            raise BadArchive("Unexpected EOF in archive")
        return data

    async def next(self) -> Member | None:
        """Return the next member; None at the end."""
        await self.skip()
        long_name = long_link = None
        pairs: list[tuple[str, str]] = []
        while True:
            start = self.at
            block = await self.reader.read_exactly(BLOCK)
            self.at += len(block)
            if not block:
                if self.first:
                    raise BadArchive("empty")
                return None
            if len(block) < BLOCK:
                raise BadArchive("short" if self.first else "Unexpected EOF in archive")
            if not any(block):
                if self.past_zeros:
                    continue
                self.ended = start
                return None
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise BadArchive(
                    "This does not look like a tar archive" if self.first else "Skipping to next header"
                ) from error
            self.first = False
            if info.type in (b"L", b"K"):
                data = await self._exactly(info.size + (-info.size % BLOCK))
                text = decode(data[: info.size].rstrip(b"\0"))
                if info.type == b"L":
                    long_name = text
                else:
                    long_link = text
                continue
            if info.type in (b"x", b"X"):
                data = await self._exactly(info.size + (-info.size % BLOCK))
                pairs += _pax(data[: info.size])
                continue
            if info.type == b"g":
                await self._exactly(info.size + (-info.size % BLOCK))
                continue
            break
        pax = dict(pairs)
        if block[257:265] == _GNU_MAGIC:
            # GNU headers may hold times in the place of the ustar name prefix.
            info.name = decode(block[:100].partition(b"\0")[0])
        name = long_name or pax.get("GNU.sparse.name") or pax.get("path") or info.name
        if block[156:157] == b"5" or (info.type in REGULAR and name.endswith("/")):
            info.type = DIRECTORY
        size = int(pax.get("size", info.size))
        if info.type not in _KNOWN:
            self.unknown = decode(info.type)
            info.type = b"0"
        member = Member(
            name,
            info.type,
            info.mode & 0o7777,
            0,
            float(pax.get("mtime", info.mtime)),
            long_link or pax.get("linkpath") or info.linkname,
            int(pax.get("uid", info.uid)),
            int(pax.get("gid", info.gid)),
            pax.get("uname", info.uname),
            pax.get("gname", info.gname),
            start,
            numbers=(info.devmajor, info.devminor),
        )
        if member.is_dir and not member.name.endswith("/"):
            member.name += "/"
        member.size = self.left = size if member.has_data else 0
        self.pad = -self.left % BLOCK
        self.member = member
        try:
            await self._find_holes(member, block, pairs)
        except (sparse_map.BadMap, ValueError):
            raise BadArchive(f"{member.name}: invalid sparse archive member") from None
        return member

    async def _find_holes(self, member: Member, block: bytes, pairs: list[tuple[str, str]]) -> None:
        """Set the map of a sparse file, and its size with holes."""
        found: list[tuple[int, int]] | None = None
        pax = dict(pairs)
        if member.kind == SPARSE:
            found = sparse_map.entries(block[386:], sparse_map.IN_HEADER)
            member.size = sparse_map.number(block[483:495])
            more = block[482:483]
            while more not in (b"", b"\0"):
                block = await self._exactly(BLOCK)
                found += sparse_map.entries(block, sparse_map.IN_EXTENSION)
                more = block[504:505]
        elif pax.get("GNU.sparse.major") == "1":
            member.size = int(pax["GNU.sparse.realsize"])
            count, *numbers = [int(text) for text in await self._lines()]
            found = list(zip(numbers[: 2 * count : 2], numbers[1 : 2 * count : 2], strict=True))
        elif (found := sparse_map.from_pax(pairs)) is not None:
            member.size = int(pax["GNU.sparse.size"])
        if found is not None:
            member.map = sparse_map.checked(found, member.size, self.left)

    async def _lines(self) -> list[bytes]:
        """Read the pax 1.0 sparse map before the data: a count, and two numbers for each range."""
        data = b""
        while True:
            data += await self._exactly(BLOCK)
            self.left -= BLOCK
            lines = data.split(b"\n")
            if len(lines) > 1 and len(lines) > 2 * int(lines[0]) + 1:
                return lines[: 2 * int(lines[0]) + 1]
            if len(data) > _LONGEST_MAP:
                raise sparse_map.BadMap

    async def content(self) -> AsyncIterator[bytes]:
        """Yield the content of the member that was returned last."""
        if self.member is None or self.member.map is None:
            async for block in self.stored():
                yield block
            return
        async for block in sparse_map.filled(self.member.map, self.member.size, self.stored()):
            yield block

    async def stored(self) -> AsyncIterator[bytes]:
        """Yield the stored bytes of the member, without its holes."""
        while self.left > 0:
            block = await self.reader.read(min(self.left, 1 << 18))
            if not block:
                raise BadArchive("Unexpected EOF in archive")
            self.left -= len(block)
            self.at += len(block)
            yield block

    async def skip(self) -> None:
        """Skip the rest of the current member."""
        async for _ in self.stored():
            pass
        if self.pad:
            await self._exactly(self.pad)
            self.pad = 0


def _pax(data: bytes) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    try:
        for key, value in tar_header.pax_records(data):
            out.append((decode(key), decode(value)))
    except ValueError:
        return out  # the records before the damage count
    return out


@dataclass(frozen=True, slots=True)
class Layout:
    """How to write an archive: format, record size and extra pax keywords."""

    form: str = "gnu"
    record: int = RECORD
    extra: Mapping[str, str] = field(default_factory=dict)
    extension_name: str = ""
    """Template for the names of extended headers: %d is the directory, %f the file name."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """Keywords of the global pax header."""
    whole_seconds: bool = False

    def header(self, member: Member) -> bytes:
        if self.whole_seconds:
            member.mtime = int(member.mtime)
        blocks = header(member, self.form, self.extra)
        if not self.extension_name:
            return blocks
        folder, _, name = member.name.rstrip("/").rpartition("/")
        named = re.sub(
            "%([dfp%])", lambda m: {"d": folder or ".", "f": name, "p": "1", "%": "%"}[m[1]], self.extension_name
        )
        return named_extension(blocks, named)


class TarOutput:
    """Writes members; the end is two empty blocks, filled up to a whole record."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]], layout: Layout, *, at: int = 0) -> None:
        self._write, self._layout = write, layout
        self.size = at

    async def start(self) -> None:
        """Write the global pax header."""
        if self._layout.shared and not self.size:
            await self.put(tarfile.TarInfo.create_pax_global_header(dict(self._layout.shared)))

    async def put(self, data: bytes) -> None:
        self.size += len(data)
        await self._write(data)

    async def member(self, member: Member, content: AsyncIterator[bytes] | None = None) -> None:
        await self.put(self._layout.header(member))
        if content is None or not member.has_data:
            return
        written = 0
        async for block in content:
            if written + len(block) > member.size:
                # The file grew while it was read: the header's size is what counts.
                block = block[: member.size - written]
            written += len(block)
            await self.put(block)
        await self.put(b"\0" * (member.size - written) + padding(member.size))

    async def finish(self) -> None:
        await self.put(b"\0" * (2 * BLOCK))
        await self.put(b"\0" * (-self.size % self._layout.record))
