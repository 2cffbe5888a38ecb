"""`Resource`: the one interface of everything that holds files. Ten verbs, one spelling from backend to facade.

Rules that every resource keeps:
- Paths are absolute inside the resource. A resource never follows a symbolic link: `stat` describes the link itself,
  and a path that would have to cross or read one fails with ELOOP. The VFS resolves links: only it knows all mounts.
- `write` is all or nothing: a reader sees the old content or the new one, and an interrupted write leaves the old.
- Errors are `OSError`s with the errno POSIX has for the case (`ramet.core.errors`).
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from ramet.core.paths import Path
from ramet.core.stat import Attrs, Stat

Data = bytes | AsyncIterator[bytes]
"""What `write` takes: a small content at once, or a stream of blocks."""


class How(enum.Enum):
    REPLACE = "replace"  # the whole content; creates the file when it is not there
    CREATE = "create"  # EEXIST when anything is there: all that locks and refs need
    APPEND = "append"  # at the end; creates the file when it is not there
    PATCH = "patch"  # at offset `at` of an existing file, which grows with zeros when needed
    LINK = "link"  # a symbolic link whose target is the data; EEXIST when anything is there


class Cap(enum.Flag):
    """What a resource does natively. Read in one place: `layers/emulate.py`."""

    READ = 0
    WRITE = enum.auto()  # write, mkdir, remove
    RANGES = enum.auto()  # read(start, stop) costs what it returns
    CREATE = enum.auto()  # How.CREATE is atomic
    APPEND = enum.auto()
    PATCH = enum.auto()
    RENAME = enum.auto()
    COPY = enum.auto()
    LINKS = enum.auto()  # symbolic links
    HARDLINKS = enum.auto()  # implements HardLinks
    MODES = enum.auto()  # setattr(mode)
    MTIMES = enum.auto()  # setattr(mtime_ns)
    ATIMES = enum.auto()  # setattr(atime_ns)
    TRUNCATE = enum.auto()  # setattr(size)
    DIRS = enum.auto()  # keeps empty directories
    VERSIONS = enum.auto()  # every Stat of a file has a version
    PRECONDITIONS = enum.auto()  # honours if_version atomically
    LOCAL = enum.auto()  # answers at memory or disk speed: caching it would only cost


class Resource(Protocol):
    """A tree of files somewhere. Three verbs make it readable, the rest make it writable."""

    @property
    def caps(self) -> Cap: ...

    async def stat(self, path: Path) -> Stat: ...

    def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        """The entries of a directory with their stats, in no particular order: `ls -l` is one call."""
        ...

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Blocks of the content of [start, stop); a start beyond the end yields nothing."""
        ...

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        """Store content; `if_version` refuses with ESTALE when the file is not at that version any more."""
        ...

    async def mkdir(self, path: Path) -> None: ...

    async def remove(self, path: Path) -> None:
        """A file, a link, or an empty directory."""
        ...

    async def rename(self, src: Path, dst: Path) -> None:
        """As rename(2): replaces a file or an empty directory of the same kind at `dst`."""
        ...

    async def copy(self, src: Path, dst: Path) -> None:
        """One file's content and mode, without moving the bytes through us; or Unsupported."""
        ...

    async def setattr(self, path: Path, attrs: Attrs) -> None: ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------ optional powers, found by `extension`


@runtime_checkable
class HardLinks(Protocol):
    async def link(self, src: Path, dst: Path) -> None:
        """`dst` becomes another name of the file `src`."""
        ...


@runtime_checkable
class Fifos(Protocol):
    async def mkfifo(self, path: Path) -> None:
        """A named pipe: a name, a mode and an inode. What flows through it belongs to the VFS; EEXIST as `mkdir`."""
        ...


@runtime_checkable
class Pinned(Protocol):
    """Its broken reads can be gone on with: each `Unavailable` in the middle of one names the version that it read."""

    def read_version(self, path: Path, version: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """As `read`, of exactly this version: ESTALE when the file is another one by now."""
        ...


@runtime_checkable
class Remembering(Protocol):
    def forget(self, path: Path) -> None:
        """What is remembered of this path is not trusted any more: the next answer is the backend's."""
        ...


@runtime_checkable
class Forkable(Protocol):
    def fork(self) -> Resource:
        """An independent copy in O(1)."""
        ...


@runtime_checkable
class Digestible(Protocol):
    def digest(self, path: Path) -> bytes:
        """A digest of everything at and below `path`, without reading what has not changed."""
        ...


class Handle(Protocol):
    """An open file that stays itself when its name is renamed or removed; every call answers at once."""

    def pread(self, offset: int, size: int) -> bytes: ...

    def block(self, offset: int) -> bytes:
        """Some bytes from `offset` on, as many as are cheap to give; empty at the end."""
        ...

    def pwrite(self, offset: int, data: bytes) -> int: ...
    def truncate(self, size: int) -> None: ...
    def stat(self) -> Stat: ...
    def close(self) -> None: ...


@runtime_checkable
class Openable(Protocol):
    def open(self, path: Path, *, write: bool) -> Handle:
        """A handle on an existing regular file."""
        ...


class Whole:
    """Marks what can give a whole directory or a whole file without the cost of a stream (see `ops`)."""

    async def read_bytes(self, path: Path) -> bytes:
        raise NotImplementedError

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        raise NotImplementedError

    async def kinds(self, path: Path) -> list[tuple[str, Stat]]:
        """As `entries`, but only the kinds need be known: a disk then asks for no stat at all."""
        return await self.entries(path)

    async def small_files(self, directory: Path, names: Sequence[str]) -> list[bytes | None]:
        """The contents of these files where they are small and at hand; None for one that is to be read by itself."""
        return [None] * len(names)


ROW: Final = 1024
"""Entries of a directory between which others may run."""


@runtime_checkable
class Quick(Protocol):
    """Synchronous answers for what needs no waiting; the same contract as the verbs of the same names."""

    def stat_now(self, path: Path) -> Stat: ...
    def scan_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        """The entries, some at a time: between them others may run."""
        ...

    def kinds_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]: ...
    def read_now(self, path: Path, need: int = 0) -> bytes:
        """The whole content; EACCES when the file's mode lacks the bits `need`."""
        ...


@runtime_checkable
class Gathering(Protocol):
    """What reads many small files of a directory faster than one after the other."""

    def small_now(self, directory: Path, names: Sequence[str], need: int = 0) -> list[bytes | None]:
        """Their contents; None for what is large, is not a file, lacks the bits `need` or cannot be read."""
        ...


@runtime_checkable
class Bulk(Protocol):
    """What changes many plain files of a directory faster than one after the other.

    Both do the first so many of the names that need no more than that, and say how many these were.
    """

    def copy_files_now(self, src: Path, dst: Path, names: Sequence[str], need: int = 0) -> int:
        """Content and mode into another directory, never over something; files lacking the bits `need` stay."""
        ...

    def remove_files_now(self, directory: Path, names: Sequence[str]) -> int: ...


REDACTED: Final = "<REDACTED>"
"""What stands in the place of a secret: it was there and was taken out, which None would not say."""


class Description(NamedTuple):
    """How a resource is written into a snapshot: never with a secret in it."""

    type: str
    config: dict[str, object]
    redacted_fields: tuple[str, ...] = ()
    needs_override: bool = True
    """Whether loading needs a fresh resource from the caller."""


@runtime_checkable
class Described(Protocol):
    def describe(self) -> Description: ...


@runtime_checkable
class Dumpable(Protocol):
    """A resource that lives elsewhere and yet is saved with its content. Both calls block: they run in a snapshot."""

    def dump(self) -> Iterator[tuple[bytes, bytes]]: ...
    def restore(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Replace everything by what was dumped."""
        ...


@runtime_checkable
class Searchable(Protocol):
    def search(self, path: Path, text: str, *, fold: bool = False) -> AsyncIterator[Path]:
        """Files below `path` that may contain `text`, all of them; the caller verifies.

        With `fold` the text is ASCII in lower case and capitals do not matter. ENOTSUP where it cannot be answered.
        """
        ...


@runtime_checkable
class Queryable(Protocol):
    def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """What the service itself finds, as JSON lines; it changes something only where `write` says that it may."""
        ...


class Letter(NamedTuple):
    """A message that leaves the workspace."""

    subject: str
    to: tuple[str, ...]
    body: bytes
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    attachments: tuple[tuple[str, bytes], ...] = ()
    answers: Path | None = None
    """The message on this resource that it replies to."""


@runtime_checkable
class Posting(Protocol):
    async def post(self, letter: Letter) -> str:
        """Send it; the id that it got. It leaves once, or there is an error: nobody may send it again unasked."""
        ...


@runtime_checkable
class Layer(Protocol):
    """A resource around a resource. `transparent` says that bytes and names pass through unchanged."""

    @property
    def inner(self) -> Resource: ...
    @property
    def transparent(self) -> bool: ...


Power = TypeVar("Power")


def extension(resource: Resource, power: type[Power]) -> Power | None:
    """The optional power of this resource, looked up through the layers that do not change bytes."""
    found: object = resource
    while not _has(found, power):
        if not (isinstance(found, Layer) and found.transparent):
            return None
        found = found.inner
    return found  # type: ignore[return-value]


_powers: dict[tuple[type, type], bool] = {}


def _has(thing: object, power: type) -> bool:
    """As `isinstance`, which looks at every method of a protocol each time; a class has a power or has it not."""
    key = type(thing), power
    known = _powers.get(key)
    if known is None:
        known = _powers[key] = isinstance(thing, power)
    return known
