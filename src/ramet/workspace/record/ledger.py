"""`Ledger`: which record wrote which lines of the files that changed since the last commit.

- Before a record changes a file that another one wrote, the ledger keeps the version that the other one left. Lines are
  compared only at the commit, and only in files with several writers.
- Renames and copies take the writers of the lines along.
- A line has the record that wrote it, or none: what changed behind the ledger, and what is too large to be kept, is
  unknown.
- Versions in memory share their blocks with the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ramet.backends.local.buffers import Blocks
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram_nodes import Fifo, File, Node
from ramet.core.paths import Path
from ramet.core.stat import Kind
from ramet.store.model import lines
from ramet.workspace.mounts import Mount

if TYPE_CHECKING:
    from ramet.workspace.record.recorder import OpenRecord

FILE_BYTES: Final = 1024 * 1024
"""Bytes of a file of which versions are kept."""
LEDGER_BYTES: Final = 64 * 1024 * 1024
"""Bytes of all kept versions."""
PENDING: Final = 16
"""Versions of a file from which on they are compared at once, so that only the newest one is kept."""
MAX_MOVES: Final = 1000
"""Renamed directories between two commits."""
MAX_WRITERS: Final = 1000
"""Files of a revision whose writers are stored with it."""
MAX_RANGES: Final = 4096
"""Ranges of lines that are stored with a revision."""

Data = Blocks | bytes


class _Committed:
    """The content of the last commit, which is read when it is needed."""


COMMITTED: Final = _Committed()
Start = Data | _Committed | None


class _Unknown:
    """The writer of a line that nothing recorded wrote."""

    number = 0


BASE: Final = None
UNKNOWN: Final = _Unknown()
"""Writers of a line: a record, `UNKNOWN`, or `BASE` for a line that was there at the last commit."""


class _Recorded(NamedTuple):
    """A record of a branch under its number in the parent's history."""

    number: int


class Look(NamedTuple):
    """A regular file as it is now. `data` is None for one that cannot be kept; `identity` tells versions on a disk."""

    exists: bool = False
    data: Data | None = b""
    alone: bool = True
    """Whether it has one name only."""
    identity: object = None


def look_at(mount: Mount | None, path: Path) -> Look:
    """Describe a file of a memory or disk mount by its path inside it; others hold nothing that is committed."""
    try:
        if mount is None:
            return Look()
        if mount.memory is not None:
            return look_at_node(mount.memory.node(path))
        if isinstance(mount.resource, DiskResource):
            return _look_on_disk(mount.resource, path)
    except (FileNotFoundError, NotADirectoryError):
        return Look(identity=None if mount is None or mount.memory is not None else ())
    except OSError:
        return Look(True, None, identity=object())  # unreadable: equal to nothing
    return Look()


def look_at_node(node: Node) -> Look:
    if not isinstance(node, File) or isinstance(node, Fifo):
        return Look()
    return Look(True, node.content.copy() if node.content.size <= FILE_BYTES else None, node.nlink == 1)


def _look_on_disk(disk: DiskResource, path: Path) -> Look:
    stat = disk.stat_now(path)
    if stat.kind is not Kind.FILE:
        return Look(identity=())
    identity = (stat.inode, stat.mtime_ns, stat.size)
    data = disk.read_now(path) if (stat.size or 0) <= FILE_BYTES else None
    return Look(True, data, stat.nlink in (None, 1), identity)


@dataclass
class FileLedger:
    """The versions of one file since the last commit."""

    source: str | None
    """The path at the last commit; None for a new file."""
    start: Start
    """The content before the first version; None if it was too large."""
    last: Any
    """The record that wrote what is there now; None if `versions` or `start` hold it."""
    owners: list[Any] | None = None
    """The writers of the lines of `start`; None if all are BASE."""
    versions: list[tuple[Any, Data]] = field(default_factory=list)
    """Earlier records, each with what it left."""
    lost: bool = False
    """Whether something changed behind the ledger."""
    foreign: bool = False
    """Whether `start` is not of the last commit, so that nothing is known about its lines."""
    identity: object = None
    changes: int = 0
    before: tuple[int, int] | None = None
    """mtime_ns and size of a file before a program changed it, which tell whether it was as in the last commit."""

    def is_new_by(self, record: OpenRecord) -> bool:
        """Whether this record alone made the file."""
        return self.source is None and self.last is record and not self.versions and not self.lost

    def clone(self, now: Start) -> FileLedger:
        """The ledger of a copy, whose content is `now`."""
        twin = FileLedger(self.source, self.start, None, self.owners, list(self.versions), self.lost, self.foreign)
        twin.before = self.before
        if self.last is not None:
            if now is None or isinstance(now, _Committed):
                twin.lost = True
            else:
                twin.versions.append((self.last, now))
        return twin

    def fold(self) -> None:
        """Compare the kept versions, and keep the newest one with the writers of its lines."""
        if self.start is None or isinstance(self.start, _Committed) or not self.versions:
            return
        text, owners = _lines(self.start), self.owners
        if owners is None:
            owners = [UNKNOWN if self.foreign else BASE] * len(text)
        for record, data in self.versions:
            new = _lines(data)
            text, owners = new, _advance(text, owners, new, record)
        self.start, self.owners, self.versions = self.versions[-1][1], owners, []

    def final(self, data: bytes) -> list[Any]:
        """Return the writers of the lines of the committed content."""
        self.fold()
        assert self.start is not None and not isinstance(self.start, _Committed)
        text = _lines(self.start)
        owners = self.owners
        if owners is None:
            owners = [UNKNOWN if self.foreign else BASE] * len(text)
        return _advance(text, owners, _lines(data), UNKNOWN if self.last is None else self.last)


def _advance(old: list[bytes], owners: list[Any], new: list[bytes], who: Any) -> list[Any]:
    same = lines.match(old, new)
    if same is None:
        return [UNKNOWN] * len(new)
    return [who if (there := same.old(number)) is None else owners[there] for number in range(len(new))]


def _lines(data: Data) -> list[bytes]:
    return lines.split(data if isinstance(data, bytes) else data.join())


def _size(data: Start) -> int:
    return 0 if data is None or isinstance(data, _Committed) else len(data) if isinstance(data, bytes) else data.size


class _Mark(NamedTuple):
    """A file just before a change."""

    file: FileLedger | None
    changes: int
    look: Look


@dataclass
class Taken:
    """What a ledger held at a commit."""

    files: dict[str, FileLedger] = field(default_factory=dict)
    moves: list[tuple[str, str]] = field(default_factory=list)
    overflow: bool = False
    foreign: set[str] = field(default_factory=set)
    """Prefixes of mounts whose content is in no commit yet."""


class Ledger:
    """The files that changed since the last commit of one workspace. `look` describes a file synchronously."""

    def __init__(self, look: Callable[[Path], Look], current: Callable[[], OpenRecord | None]) -> None:
        self._look, self._current = look, current
        self._taken = Taken()
        self._held = 0
        self._open: dict[OpenRecord, list[tuple[Path, FileLedger]]] = {}
        """Files on a disk that open records wrote."""

    # --------------------------------------------------------------------------------------------- changes

    def before(self, path: Path) -> object:
        found = self._taken.files.get(path)
        if found is not None and found.last is self._current() and found.last is not None:
            return _Mark(found, found.changes, Look())
        if found is not None and found.lost:
            return _Mark(found, found.changes, Look(True, None))
        return _Mark(found, 0 if found is None else found.changes, self._see(path))

    def _see(self, path: Path) -> Look:
        look = self._look(path)
        size = _size(look.data)
        if size > FILE_BYTES or self._held + size > LEDGER_BYTES:
            return look._replace(data=None)
        return look

    def wrote(self, path: Path, mark: object, record: OpenRecord) -> None:
        if not isinstance(mark, _Mark):
            return
        found = self._taken.files.get(path)
        if found is not mark.file or (found is not None and found.changes != mark.changes):
            # Another record changed the file while this one did.
            found = self._taken.files.setdefault(path, FileLedger(None, None, record))
            if found.last is not record:
                found.lost = True
            found.last = record
        else:
            found = self._take_over(path, found, mark.look, record)
        found.changes += 1

    def _take_over(self, path: Path, found: FileLedger | None, look: Look, record: OpenRecord) -> FileLedger:
        if found is None:
            source = lines.origin(self._taken.moves, path) if look.exists else None
            found = FileLedger(source, look.data, record, foreign=look.exists and self._is_foreign(path))
            found.lost = not look.alone
            self._taken.files[path] = found
            self._held += _size(look.data)
        elif found.last is not record:
            ended = found.last is None or found.last.number
            outside = ended and found.identity is not None and found.identity != look.identity
            if look.data is None or found.start is None or not look.alone or outside:
                found.lost = True
            elif found.last is not None:
                self._keep(found, found.last, look.data)
            found.last = record
        if look.identity is not None or found.identity is not None:
            self._open.setdefault(record, []).append((path, found))
        return found

    def _keep(self, found: FileLedger, record: Any, data: Data) -> None:
        """Keep what a record left."""
        found.versions.append((record, data))
        self._held += _size(data)
        if len(found.versions) >= PENDING and not isinstance(found.start, _Committed):
            self._held -= _size(found.start) + sum(_size(data) for _, data in found.versions[:-1])
            found.fold()

    # ------------------------------------------------------------------- changes by programs of the machine

    def changed_outside(self, path: Path) -> None:
        """A path differs from the last look; what no record did to it is unknown."""
        found = self._taken.files.get(path)
        if found is not None and (found.last is None or found.last.number):
            found.lost |= found.identity != self._look(path).identity

    def program_begins(self) -> None:
        """Keep what records left: after a program has written a file, only its own version is there."""
        for path, found in self._taken.files.items():
            ended = found.last is not None and found.last is not self._current() and found.last.number
            if not ended or found.lost:
                continue
            look = self._see(Path(path))
            if look.data is None or found.start is None or not look.alone or found.identity != look.identity:
                found.lost = True
            else:
                self._keep(found, found.last, look.data)
                found.last = None

    def program_wrote(self, path: Path, record: OpenRecord, *, made: bool, before: tuple[int, int] | None) -> None:
        """A program has changed a file. `made` says that it was not there before."""
        found, look = self._taken.files.get(path), self._see(path)
        if found is None:
            source = None if made else lines.origin(self._taken.moves, path)
            foreign = not made and self._is_foreign(path)
            found = FileLedger(source, b"" if made else COMMITTED, None, foreign=foreign, before=before)
            self._taken.files[path] = found
        found.changes += 1
        if found.last is record:
            return
        if look.data is None or found.last is not None or not look.alone:
            found.lost = True
        else:
            self._keep(found, record, look.data)
        found.last, found.identity = None, look.identity

    def _is_foreign(self, path: str) -> bool:
        return any(path == top or path.startswith(top.rstrip("/") + "/") for top in self._taken.foreign)

    def mounted(self, prefix: Path) -> None:
        """What is at and below a prefix is in no commit: something was mounted there, or is no longer."""
        self._taken.foreign.add(str(prefix))
        for path in [path for path in self._taken.files if Path(path).under(prefix)]:
            self._drop(self._taken.files.pop(path))

    def streamed(self, path: Path, record: OpenRecord) -> None:
        """An open file is about to be written."""
        found = self._taken.files.get(path)
        if found is None or found.last is not record:
            found = self._take_over(path, found, self._see(path), record)
        found.changes += 1

    def removed(self, path: Path) -> None:
        self._drop(self._taken.files.pop(path, None))

    def _drop(self, found: FileLedger | None) -> None:
        if found is not None:
            self._held -= _size(found.start) + sum(_size(data) for _, data in found.versions)

    def renamed(self, src: Path, dst: Path, mark: object, record: OpenRecord) -> None:
        files = self._taken.files
        look = self._look(dst)
        if not look.exists:  # a directory: everything below it moves
            self._taken.moves.append((str(src), str(dst)))
            self._taken.overflow |= len(self._taken.moves) > MAX_MOVES
            for path in [path for path in files if path.startswith(f"{src}/")]:
                files[f"{dst}{path[len(src) :]}"] = files.pop(path)
            return
        moved = files.pop(src, None)
        if (
            moved is not None
            and moved.source is None
            and moved.last is record
            and not moved.versions
            and not moved.lost
        ):
            # A file of this record replaces another one, as `sed -i` does it: a new version of the other one.
            there = isinstance(mark, _Mark) and (mark.look.exists or mark.file is not None)
            if isinstance(mark, _Mark) and there and files.get(dst) is mark.file:
                self._take_over(dst, mark.file, mark.look, record).changes += 1
                self._drop(moved)
                return
        self._drop(files.get(dst))
        if moved is None:
            moved = FileLedger(lines.origin(self._taken.moves, src), None, None, foreign=self._is_foreign(src))
            if moved.foreign:
                moved.lost = True
            else:
                moved.start = self._see(dst).data
                self._held += _size(moved.start)
        files[str(dst)] = moved
        moved.changes += 1

    def copied(self, src: Path, dst: Path, mark: object, record: OpenRecord) -> None:
        files = self._taken.files
        now = self._see(src)
        origin = files.get(src)
        if origin is not None and origin.is_new_by(record):
            self.wrote(dst, mark or _Mark(files.get(dst), 0, Look()), record)  # of this record, as the source is
            return
        if origin is None:
            origin = FileLedger(lines.origin(self._taken.moves, src), now.data, None, foreign=self._is_foreign(src))
        twin = origin.clone(now.data)
        twin.lost |= not now.exists or (now.identity is not None and origin.identity not in (None, now.identity))
        self._drop(files.get(dst))
        files[str(dst)] = twin
        twin.identity = None if now.identity is None else self._look(dst).identity
        twin.changes += 1
        self._held += _size(twin.start) + sum(_size(data) for _, data in twin.versions)

    def linked(self, src: Path, dst: Path) -> None:
        for path in (src, dst):
            found = self._taken.files.setdefault(path, FileLedger(str(path), None, None))
            found.lost = True

    def finish(self, record: OpenRecord) -> None:
        """A record ended: note what it left on disks."""
        for path, found in self._open.pop(record, ()):
            if found.last is record:
                found.identity = self._look(path).identity

    # --------------------------------------------------------------------------------------------- commits

    def take(self) -> Taken:
        """Hand over everything, and begin anew; a commit has the state of this moment."""
        taken, self._taken, self._held, self._open = self._taken, Taken(), 0, {}
        for path, found in taken.files.items():
            if found.identity is not None and self._look(Path(path)).identity != found.identity:
                found.lost = True
        return taken

    def give_back(self, taken: Taken) -> None:
        """A commit failed: what it took is not stored. What changed since then is unknown."""
        for path, found in self._taken.files.items():
            found.lost = True
            taken.files[path] = found
        taken.moves += self._taken.moves
        taken.foreign |= self._taken.foreign
        self._taken = taken
        self._held = sum(_size(f.start) + sum(_size(data) for _, data in f.versions) for f in taken.files.values())

    def absorb(self, branch: Ledger, changes: Iterable[tuple[str, bool]], numbers: Mapping[int, int]) -> None:
        """Take over the files that a branch changed, as pairs of path and whether it exists.

        `numbers` leads from the numbers of records in the branch to those in this history.
        """

        def ours(owner: Any) -> Any:
            if owner is BASE or owner is UNKNOWN:
                return owner
            return _Recorded(numbers[owner.number]) if owner.number in numbers else UNKNOWN

        files, done, removed = self._taken.files, dict[str, FileLedger](), list[str]()
        for path, exists in changes:
            if not exists:
                removed.append(path)
                continue
            theirs = branch._taken.files.get(path)
            source = lines.origin(branch._taken.moves, path) if theirs is None else theirs.source
            if theirs is None and source == path:
                done[path] = FileLedger(path, None, None, lost=True)
                continue
            mine = None if source is None else files.get(source)
            if theirs is None:
                now = self._look(Path(path)).data
                theirs = FileLedger(source, now, None)
            if mine is None:
                base = None if source is None else lines.origin(self._taken.moves, source)
                foreign = source is not None and self._is_foreign(source)
                made = FileLedger(base, theirs.start, None, foreign=foreign, before=theirs.before)
                made.owners = None if theirs.owners is None else [ours(owner) for owner in theirs.owners]
            else:
                made = mine.clone(theirs.start)
                made.lost |= theirs.owners is not None
            made.lost |= theirs.lost or branch._taken.overflow
            made.versions += [(ours(record), data) for record, data in theirs.versions]
            made.last = ours(theirs.last)
            made.identity = self._look(Path(path)).identity
            done[path] = made
        for path in removed:
            files.pop(path, None)
        files.update(done)


@dataclass(frozen=True)
class Attribution:
    """Reads what a commit needs to tell the writers of lines: nodes of the last commit, and committed content."""

    had: Callable[[str], bool]
    """Whether a path was there at the last commit."""
    same: Callable[[str, bytes], bool]
    """Whether a file had exactly this content at the last commit."""
    content: Callable[[str], bytes | None]
    """The committed content of a path; None if it is no file, or too large."""
    committed: Callable[[str], tuple[tuple[int, int], bytes | None] | None]
    """mtime_ns, size and content of a path at the last commit; None if it was no file."""
    on_disk: Callable[[str], bool]

    def plain(self, taken: Taken) -> dict[str, Any]:
        """Return `writers`, `lines`, `from` and `moves` of a revision."""
        if taken.overflow:
            return {"writers": {}, "lines": {}}
        writers: dict[str, int] = {}
        ranges: dict[str, list[list[int]]] = {}
        sources: dict[str, str] = {}
        left = MAX_RANGES
        for path, found in sorted(taken.files.items()):
            if len(writers) + len(ranges) + len(sources) >= MAX_WRITERS:
                break
            if isinstance(found.start, _Committed):
                self._read_start(path, found)
            implied = lines.origin(taken.moves, path)
            if found.source is not None and found.source != implied:
                sources[path] = found.source
            elif found.source is None and implied is not None and self.had(implied):
                sources[path] = ""
            if found.lost:
                continue
            if not found.versions and found.owners is None and found.last is None:
                continue  # moved or copied as it was
            known = not found.foreign and (found.source is None or not self.on_disk(path) or self._as_before(found))
            if known and not found.versions and found.owners is None:
                if found.last.number:
                    writers[path] = found.last.number
                continue
            if found.start is None or (data := self.content(path)) is None:
                continue
            numbers = [None if owner is BASE else owner.number for owner in found.final(data)]
            written = {number for number in numbers if number is not None}
            if known and found.source is None and len(written) == 1 and 0 not in written:
                writers[path] = written.pop()
            elif written:
                # With several records between two commits, the two versions alone do not tell which lines are new: of
                # a line that one record removed and another one wrote again, a comparison may take either.
                made = lines.ranges(numbers)
                left -= len(made)
                if left >= 0:
                    ranges[path] = made
        plain: dict[str, Any] = {"writers": writers, "lines": ranges}
        if sources:
            plain["from"] = sources
        if taken.moves:
            plain["moves"] = [list(move) for move in taken.moves]
        return plain

    def _read_start(self, path: str, found: FileLedger) -> None:
        """Set what a file was before a program changed it first."""
        there = None if found.source is None else self.committed(found.source)
        found.start = None
        if there is not None:
            stamp, data = there
            if found.before == stamp or (found.before is None and not self.on_disk(path)):
                found.start = data
        elif not found.foreign and not self.on_disk(path):
            found.source, found.start = None, b""

    def _as_before(self, found: FileLedger) -> bool:
        """Whether a file on a disk was as in the last commit before its first change."""
        data = found.start if found.owners is None else None
        return isinstance(data, bytes) and found.source is not None and self.same(found.source, data)
