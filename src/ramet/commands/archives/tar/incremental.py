"""Incremental dumps: what a snapshot file knows of the last one, what a directory held, and what that makes go again.

A directory goes into the archive with the names it holds, each with a letter: Y in the archive, N unchanged, D another
directory. What is unchanged is told by the time of its last change and by its name having been there.
"""

from __future__ import annotations

import zlib
from collections import deque
from dataclasses import dataclass, field

from ramet.commands.archives.tar.job import Failed, Job
from ramet.commands.archives.tar.names import quoted, safe_name, shown_name, within
from ramet.commands.archives.tar.select import is_excluded
from ramet.commands.files.cp import lookup
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.stat import Stat
from ramet.text.strftime import NANO

_HEAD = b"GNU tar-1.34-2\n"
RANGES = """This tar's snapshot file field ranges are
   (field name      => [ min, max ]):

    nfs             => [ 0, 1 ],
    timestamp_sec   => [ -9223372036854775808, 9223372036854775807 ],
    timestamp_nsec  => [ 0, 999999999 ],
    dev             => [ 0, 18446744073709551615 ],
    ino             => [ 0, 18446744073709551615 ],

"""


@dataclass
class Folder:
    """A directory that is dumped: what it is, and the letters of the names in it."""

    name: str
    path: Path
    stat: Stat
    letters: dict[str, str] = field(default_factory=dict)
    below: dict[str, Stat] = field(default_factory=dict)

    @property
    def dump(self) -> bytes:
        return b"".join(encode(letter + name) + b"\0" for name, letter in sorted(self.letters.items())) + b"\0"


@dataclass
class Snapshot:
    """What is known of the dump before, and what will be known of this one."""

    word: str | None
    """The file; None where there is none and only a date counts."""
    since: int
    """The nanosecond from which on changes are dumped."""
    known: dict[str, set[str]] = field(default_factory=dict)
    """Directories of the dump before, with the names in them."""
    began: int = 0
    folders: list[Folder] = field(default_factory=list)


async def opened(job: Job, limit: int | None) -> Snapshot:
    """The snapshot that the options name; a missing or empty one makes a dump of everything."""
    proc, o = job.proc, job.o
    began = int(proc.now() * NANO)
    if o.snapshot is None:
        return Snapshot(None, -(1 << 63) if limit is None else limit, began=began)
    data = b""
    try:
        path = proc.path(o.snapshot)
        if o.level != "0" and await lookup(proc, path, follow=True) is not None:
            reader = await proc.open(o.snapshot)
            while block := await reader.read(1 << 18):
                data += block
            await proc.close(reader)
    except OSError as error:
        raise Failed(f"{shown_name(job, o.snapshot)}: Cannot open: {reason(error)}") from None
    found = Snapshot(o.snapshot, -(1 << 63), began=began)
    if data:
        _read(job, data, found)
    return found


def _read(job: Job, data: bytes, into: Snapshot) -> None:
    head, newline, rest = data.partition(b"\n")
    if not newline or not head.startswith(b"GNU tar-") or not head.endswith(b"-2"):
        version = decode(head.rpartition(b"-")[2]) if head.startswith(b"GNU tar-") else "0"
        raise Failed(f"Unsupported incremental format version: {version}")
    fields = rest.split(b"\0")
    try:
        into.since = int(fields[0]) * NANO + int(fields[1])
        at = 2
        while at + 5 < len(fields):
            name = decode(fields[at + 5])
            at += 6
            names: set[str] = set()
            while fields[at]:
                names.add(decode(fields[at][1:]))
                at += 1
            into.known[name] = names
            at += 2  # the end of the names, and of the record
    except (ValueError, IndexError):
        raise Failed(f"{shown_name(job, into.word or '')}: Unexpected EOF in snapshot file") from None


async def saved(job: Job, snapshot: Snapshot) -> None:
    """Write down what this dump saw, for the next one."""
    if snapshot.word is None:
        return
    out = [_HEAD, b"%d\0%d\0" % divmod(snapshot.began, NANO)]
    for folder in snapshot.folders:
        device = zlib.crc32(encode(str(job.proc.fs.mount_of(folder.path))))
        seconds, nanos = divmod(folder.stat.mtime_ns or 0, NANO)
        out.append(b"0\0%d\0%d\0%d\0%d\0" % (seconds, nanos, device, folder.stat.inode or 0))
        out.append(encode(folder.name) + b"\0" + folder.dump + b"\0")
    try:
        writer = await job.proc.create(snapshot.word)
        writer.write(b"".join(out))
        await job.proc.close(writer)
    except OSError as error:
        raise Failed(f"{shown_name(job, snapshot.word)}: Cannot open: {reason(error)}") from None


async def scanned(job: Job, snapshot: Snapshot, name: str, path: Path, stat: Stat) -> list[Folder]:
    """A directory and all below it, in the order in which they go into the archive."""
    todo = deque([Folder(name.rstrip("/") or "/", path, stat)])
    out: list[Folder] = []
    while todo:
        folder = todo.popleft()
        before = snapshot.known.get(folder.name)
        if before is None and job.verbose:
            job.proc.complain(f"{shown_name(job, folder.name)}: Directory is new")
        try:
            entries = sorted([entry async for entry in job.proc.fs.scan(folder.path)])
        except OSError as error:
            job.complain(f"{shown_name(job, folder.name)}: Cannot open: {reason(error)}")
            continue
        for child, below in entries:
            full = f"{folder.name.rstrip('/')}/{child}"
            if is_excluded(job, full):
                folder.letters[child] = "N"  # it is there, and is not to be deleted when this is extracted
                continue
            if below.is_dir:
                other = job.o.one_system and job.proc.fs.mount_of(folder.path / child) != job.proc.fs.mount_of(path)
                folder.letters[child] = "N" if other else "D"
                if not other:
                    todo.append(Folder(full, folder.path / child, below))
                continue
            changed = before is None or child not in before or (below.mtime_ns or 0) >= snapshot.since
            folder.letters[child] = "Y" if changed else "N"
            folder.below[child] = below
        out.append(folder)
        await job.proc.budget.yield_turn()
    out.sort(key=lambda folder: folder.name.split("/"))
    snapshot.folders += out
    return out


# --------------------------------------------------------------------------------------------------- reading


def letters(dump: bytes) -> list[tuple[str, str]]:
    """Each letter with its name, in the order of the archive."""
    return [(chr(entry[0]), decode(entry[1:])) for entry in dump.split(b"\0") if entry]


async def purge(job: Job, name: str, path: Path, dump: bytes) -> None:
    """Make a directory what it was at the time of the dump: what was renamed since is, what had gone goes."""
    held = letters(dump)
    await _rename(job, held)
    found = await lookup(job.proc, path)
    if found is None or not found.is_dir:
        return  # a link: what is behind it is not ours to delete
    kept = {child: letter for letter, child in held if letter in "YND"}
    for child, below in sorted([entry async for entry in job.proc.fs.scan(path)]):
        letter = kept.get(child)
        if letter is None or (letter == "D" and not below.is_dir) or (letter == "Y" and below.is_dir):
            full = f"{name.rstrip('/')}/{child}"
            if job.verbose:
                job.say(f"{job.proc.name}: Deleting {quoted(job, full)}")
            try:
                await ops.remove_tree(job.proc.fs, path / child)
            except OSError as error:
                job.complain(f"{shown_name(job, full)}: Cannot unlink: {reason(error)}")


async def _rename(job: Job, held: list[tuple[str, str]]) -> None:
    temporary = source = ""
    for letter, given in held:
        if letter == "X":
            temporary = f"{given.rstrip('/')}/tar{id(held):x}"
        elif letter == "R":
            source = given or temporary
        elif letter == "T":
            names = [safe_name(job, word, "r") for word in (source, given or temporary)]
            if None in names or not source:
                continue
            old, new = (job.path(word or "") for word in names)
            if await lookup(job.proc, old) is None or not (await within(job, old) and await within(job, new)):
                continue  # done already, or never there
            try:
                await job.proc.fs.rename(old, new)
            except OSError as error:
                target = quoted(job, given or temporary)
                job.complain(f"Cannot rename {quoted(job, source)} to {target}: {reason(error)}")
