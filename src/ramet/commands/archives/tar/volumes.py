"""Archives in several volumes: each is a file of bounded size, and what does not fit goes on in the next.

What continues a member says so in a header of its own, with how much came before; readers check that it fits.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

from ramet.commands.archives.tar.format import BLOCK, CONTINUED, LABEL, Layout, Member, Members, checked, header
from ramet.commands.archives.tar.job import Failed, Job, environment
from ramet.commands.archives.tar.names import quoted, shown_name
from ramet.commands.archives.tar.sparse import number
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import UsageError
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.streams import Reader, Writer

_UNITS = {
    "": 1024, "c": 1, "w": 2, "b": 512, "B": 1024, "k": 1024, "K": 1024, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
}  # fmt: skip
_HELP = (
    b" n name        Give a new file name for the next (and subsequent) volume(s)\n"
    b" q             Abort tar\n"
    b" y or newline  Continue operation\n"
    b" ?             Print this list\n"
)


def tape_length(text: str | None) -> int:
    """How many bytes a volume may have; 0 when there is no limit."""
    if text is None:
        return 0
    found = re.fullmatch(r"(\d+)([a-zA-Z]?)", text)
    if found is None or found[2] not in _UNITS:
        raise UsageError(f"{text}: Invalid tape length", 2)
    return int(found[1]) * _UNITS[found[2]]


class Volumes:
    """The volumes of one run, one after the other: those that were named, and then those that somebody names."""

    def __init__(self, job: Job, *, writing: bool) -> None:
        self.job, self.writing = job, writing
        self.names = [str(given) for kind, given in job.o.order if kind == "file"] or [job.o.file or "-"]
        self.at = 0
        self.asks = False
        """Whether all names have been used."""

    @property
    def name(self) -> str:
        return self.names[self.at]

    async def begin(self) -> None:
        word = self.job.o.volno_file
        if word is None or await lookup(self.job.proc, self.job.proc.path(word), follow=True) is None:
            return
        text = decode(await ops.read_bytes(self.job.proc.fs, self.job.proc.path(word))).strip()
        if not text.isdecimal():
            raise Failed(f"{shown_name(self.job, word)}: contains invalid volume number")
        self.job.volume = int(text)

    async def end(self) -> None:
        """Remember how many there were."""
        word = self.job.o.volno_file
        if word is not None:
            await ops.write_bytes(self.job.proc.fs, self.job.proc.path(word), b"%d\n" % self.job.volume)

    async def turn(self) -> None:
        """Go on to the next volume."""
        self.at += 1
        if self.at >= len(self.names):
            self.at, self.asks = 0, True
        if self.asks:
            await (self._ask() if self.job.o.info_script is None else self._consult(self.job.o.info_script))
        self.job.volume += 1

    async def _consult(self, script: str) -> None:
        """A script prepares the volume, and may write its name to where `TAR_FD` leads."""
        proc, job = self.job.proc, self.job
        answer = f"/tmp/tar.{secrets.token_hex(4)}"
        await ops.make_dirs(proc.fs, proc.path("/tmp"))
        await ops.write_bytes(proc.fs, proc.path(answer), b"")
        told = environment(job) | {"TAR_ARCHIVE": self.name, "TAR_VOLUME": str(job.volume + 1), "TAR_FD": answer}
        try:
            status = await proc.run(["sh", "-c", script], env={**proc.env, **told})
            name = decode(await ops.read_bytes(proc.fs, proc.path(answer))).partition("\n")[0]
        finally:
            await proc.fs.remove(proc.path(answer))
        if status:
            raise Failed(f"{quoted(job, script)} command failed")
        if name:
            self.names[self.at] = name

    async def _ask(self) -> None:
        proc = self.job.proc
        while True:
            text = f"\aPrepare volume #{self.job.volume + 1} for {quoted(self.job, self.name)} and hit return: "
            proc.stderr.write(encode(text))
            reply = decode(await proc.stdin.readline())
            if not reply:
                raise self._incomplete("EOF where user reply was expected")
            if reply[0] in "\nyY":
                return
            if reply[0] == "q":
                raise self._incomplete("No new volume; exiting.\n")
            if reply[0] == "n" and reply[1:].strip():
                self.names[self.at] = reply[1:].strip()
                return
            proc.stderr.write(_HELP if reply[0] == "?" else b"Invalid input. Type ? for help.\n")

    def _incomplete(self, why: str) -> Failed:
        self.job.proc.complain(why)
        if self.writing:
            self.job.proc.complain("WARNING: Archive is incomplete")
        self.job.proc.complain("Error is not recoverable: exiting now")
        return Failed()


@dataclass(frozen=True, slots=True)
class _Extent:
    name: str
    start: int
    """Where its data begins in the archive, were it in one piece."""
    size: int


class Writing:
    """Takes an archive as it is made and cuts it into volumes, record by record."""

    def __init__(self, job: Job, layout: Layout) -> None:
        self.job, self.layout = job, layout
        self.volumes = Volumes(job, writing=True)
        self.most = tape_length(job.o.tape_length)
        self.writer: Writer | None = None
        self.written = 0
        self.position = 0
        self.extents: list[_Extent] = []
        """Members whose data has not been written yet, or not all of it."""
        self.held = bytearray()
        self.front = b""

    async def begin(self) -> None:
        await self.volumes.begin()
        await self._open()

    async def _open(self) -> None:
        proc = self.job.proc
        try:
            self.writer = proc.stdout if self.volumes.name == "-" else await proc.create(self.volumes.name)
        except OSError as error:
            raise Failed(f"{shown_name(self.job, self.volumes.name)}: Cannot open: {reason(error)}") from None
        self.written = 0

    def note(self, member: Member, start: int) -> None:
        """The data of a member begins here."""
        self.extents.append(_Extent(member.name, start, member.size))

    async def emit(self, data: bytes) -> None:
        self.held += data
        while len(self.held) + len(self.front) >= self.layout.record:
            await self._record()

    async def _record(self) -> None:
        if self.most and self.written >= self.most:
            await self._next()
        assert self.writer is not None
        room = self.layout.record - len(self.front)
        block = self.front + bytes(self.held[:room])
        del self.held[:room]
        self.front = b""
        self.position += room
        while self.extents and self.extents[0].start + self.extents[0].size <= self.position:
            del self.extents[0]
        self.written += len(block)
        self.writer.write(block)
        if self.writer.full:
            await self.writer.drain()

    async def _next(self) -> None:
        assert self.writer is not None
        await self.job.proc.close(self.writer)
        await self.volumes.turn()
        await self._open()
        parts: list[bytes] = []
        if self.job.o.label is not None:
            label = f"{self.job.o.label} Volume {self.job.volume}"
            parts.append(header(Member(label, LABEL, 0, 0, self.job.proc.now())))
        if self.extents and self.extents[0].start <= self.position:
            parts.append(_continuation(self.extents[0], self.position - self.extents[0].start))
        self.front = b"".join(parts)

    async def end(self) -> None:
        if self.held or self.front:
            self.held += b"\0" * (self.layout.record - len(self.held) - len(self.front))
            await self._record()
        assert self.writer is not None
        await self.job.proc.close(self.writer)
        await self.volumes.end()


def _continuation(extent: _Extent, done: int) -> bytes:
    """The header of what is left of a member; nothing else is said of it than its name and where it goes on."""
    head = encode(extent.name)[:100].ljust(124, b"\0") + b"%011o\0" % (extent.size - done)
    block = head.ljust(156, b"\0") + CONTINUED
    return checked((block.ljust(369, b"\0") + b"%011o\0" % done).ljust(BLOCK, b"\0"))


class Reading:
    """The volumes of an archive as one stream, in which nothing shows where one ended."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.volumes = Volumes(job, writing=False)
        self.members: Members | None = None
        self.reader: Reader | None = None

    async def open(self) -> Reader:
        name, proc = self.volumes.name, self.job.proc
        try:
            self.reader = proc.stdin if name == "-" else await proc.open(name)
        except OSError as error:
            raise Failed(f"{shown_name(self.job, name)}: Cannot open: {reason(error)}") from None
        return self.reader

    async def blocks(self) -> AsyncIterator[bytes]:
        await self.volumes.begin()
        reader = await self.open()
        while True:
            while block := await reader.read(1 << 18):
                yield block
                await self.job.proc.budget.yield_turn()
            await self.job.proc.close(reader)
            while True:
                await self.volumes.turn()
                reader = await self.open()
                first = await self._continued(reader)
                if first is not None:
                    break
                await self.job.proc.close(reader)
                self.job.volume -= 1
            if first:
                yield first

    async def _continued(self, reader: Reader) -> bytes | None:
        """What stands behind the headers that a volume begins with; None when it is not the one that follows."""
        assert self.members is not None
        member, left = self.members.member, self.members.left
        block = await reader.read_exactly(BLOCK)
        if block[156:157] == LABEL:
            block = await reader.read_exactly(BLOCK)
        if block[156:157] != CONTINUED:
            if member is not None and left:
                self.job.proc.complain(f"{quoted(self.job, member.name)} is not continued on this volume")
                return None
            return block
        if member is None or not left:
            return b""
        name = decode(block[:100].partition(b"\0")[0])
        if name != decode(encode(member.name)[:100]):
            self.job.proc.complain(f"{quoted(self.job, member.name)} is not continued on this volume")
            return None
        size, done, total = number(block[124:136]), number(block[369:381]), member.size
        if size != left or (member.map is None and member.kind != CONTINUED and total != size + done):
            where = f"{quoted(self.job, self.volumes.name)}: This volume is out of sequence"
            self.job.proc.complain(f"{where} ({total} - {size} != {done})")
            return None
        return b""
