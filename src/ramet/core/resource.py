"""`Resource`: the one interface of everything that holds files. Ten verbs, one spelling from backend to facade.

Rules that every resource keeps:
- Paths are absolute inside the resource. A resource never follows a symbolic link: `stat` describes the link itself,
  and a path that would have to cross or read one fails with ELOOP. The VFS resolves links: only it knows all mounts.
- `write` is all or nothing: a reader sees the old content or the new one, and an interrupted write leaves the old.
- Errors are `OSError`s with the errno POSIX has for the case (`ramet.core.errors`).
"""

from __future__ import annotations

import enum
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from ramet.core.paths import Path
from ramet.core.stat import Attrs, Stat

Data = bytes | AsyncIterator[bytes]
"""What `write` takes: small content as bytes, or a stream of blocks."""


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
    ON_CLOSE = enum.auto()  # each write is a commit or an edit: an open file is written once, when it is closed
    LOCAL = enum.auto()  # answers at memory or disk speed: caching it would only cost


class Resource(Protocol):
    """A tree of files somewhere. Three verbs make it readable, the rest make it writable."""

    @property
    def caps(self) -> Cap: ...

    async def stat(self, path: Path) -> Stat: ...

    def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        """Yield the entries of a directory with their stats, in no particular order: `ls -l` is one call."""
        ...

    def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Yield blocks of the content in [start, stop); a start beyond the end yields nothing."""
        ...

    async def write(
        self, path: Path, data: Data, how: How = How.REPLACE, *, at: int = 0, if_version: str | None = None
    ) -> Stat:
        """Store content; `if_version` fails with ESTALE if the file has another version."""
        ...

    async def mkdir(self, path: Path) -> None: ...

    async def remove(self, path: Path) -> None:
        """Remove a file, a link, or an empty directory."""
        ...

    async def rename(self, src: Path, dst: Path) -> None:
        """As rename(2): replaces a file or an empty directory of the same kind at `dst`."""
        ...

    async def copy(self, src: Path, dst: Path) -> None:
        """Copy one file's content and mode on the server, or raise Unsupported."""
        ...

    async def setattr(self, path: Path, attrs: Attrs) -> None: ...

    async def close(self) -> None: ...


# ------------------------------------------------------------------ optional powers, found by `extension`


@runtime_checkable
class HardLinks(Protocol):
    async def link(self, src: Path, dst: Path) -> None:
        """Make `dst` a hard link to `src`."""
        ...


@runtime_checkable
class Fifos(Protocol):
    async def mkfifo(self, path: Path) -> None:
        """Make a named pipe: a name, a mode and an inode. The VFS moves its data. EEXIST as `mkdir`."""
        ...


@runtime_checkable
class Pinned(Protocol):
    """Interrupted reads can resume: an `Unavailable` in the middle of a read names the version."""

    def read_version(self, path: Path, version: str, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """Read exactly this version; ESTALE if the file has changed."""
        ...


@runtime_checkable
class Remembering(Protocol):
    def forget(self, path: Path) -> None:
        """Drop cached answers for this path: the next one comes from the backend."""
        ...


@runtime_checkable
class Forkable(Protocol):
    def fork(self) -> Resource:
        """Return an independent copy in O(1)."""
        ...


@runtime_checkable
class Digestible(Protocol):
    def digest(self, path: Path) -> bytes:
        """Return a digest of everything at and below `path` without reading what has not changed."""
        ...


class Handle(Protocol):
    """An open file that survives rename and removal of its name; every call is synchronous."""

    def pread(self, offset: int, size: int) -> bytes: ...

    def block(self, offset: int) -> bytes:
        """Read from `offset`, as many bytes as are cheap to return; empty at the end."""
        ...

    def pwrite(self, offset: int, data: bytes) -> int: ...
    def truncate(self, size: int) -> None: ...
    def stat(self) -> Stat: ...
    def close(self) -> None: ...


@runtime_checkable
class Measured(Protocol):
    def usage(self) -> tuple[int, int | None]:
        """Return the bytes that are used, and how many there are; None if nothing bounds them."""
        ...


@runtime_checkable
class KernelFifos(Protocol):
    """Named pipes that programs of the machine open, too."""

    def open_fifo(self, path: Path, flags: int) -> int:
        """Return a descriptor of an end; blocks until the other end is open, as open(2) does."""
        ...


@runtime_checkable
class Openable(Protocol):
    def open(self, path: Path, *, write: bool) -> Handle:
        """Open an existing regular file."""
        ...


class Whole:
    """A resource that returns whole directories and files without the cost of a stream (see `ops`)."""

    async def read_bytes(self, path: Path) -> bytes:
        raise NotImplementedError

    async def entries(self, path: Path) -> list[tuple[str, Stat]]:
        raise NotImplementedError

    async def kinds(self, path: Path) -> list[tuple[str, Stat]]:
        """List entries of which only the kinds must be known: a disk then needs no stat."""
        return await self.entries(path)

    async def small_files(self, directory: Path, names: Sequence[str]) -> list[bytes | None]:
        """Read these files if they are small; None for a file that must be read on its own."""
        return [None] * len(names)


ROW: Final = 1024
"""Directory entries between two turns of the event loop."""


@runtime_checkable
class Quick(Protocol):
    """Synchronous verbs of a resource that never waits; same contract as the verbs of the same names."""

    def stat_now(self, path: Path) -> Stat: ...
    def scan_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]:
        """Yield the entries in lists, between which the caller may yield the event loop."""
        ...

    def kinds_now(self, path: Path) -> Iterator[list[tuple[str, Stat]]]: ...
    def read_now(self, path: Path, need: int = 0, most: int = sys.maxsize) -> bytes:
        """Return the whole content; EACCES if its mode lacks the bits `need`, EFBIG if it has over `most` bytes."""
        ...


@runtime_checkable
class Gathering(Protocol):
    """A resource that reads many small files of a directory in one call."""

    def small_now(self, directory: Path, names: Sequence[str], need: int = 0) -> list[bytes | None]:
        """Return contents; None for a file that is large, not regular, unreadable or lacks the bits `need`."""
        ...


@runtime_checkable
class Bulk(Protocol):
    """A resource that changes many files of a directory in one call.

    Both verbs handle a prefix of the names and return its length; the caller does the rest one by one.
    """

    def copy_files_now(self, src: Path, dst: Path, names: Sequence[str], need: int = 0) -> int:
        """Copy content and mode into another directory, replacing nothing; stop at a file without the bits `need`."""
        ...

    def remove_files_now(self, directory: Path, names: Sequence[str]) -> int: ...


REDACTED: Final = "<REDACTED>"
"""Placeholder of a redacted secret; None would mean that there was none."""


class Description(NamedTuple):
    """The form of a resource in a snapshot. Never contains a secret."""

    type: str
    config: dict[str, object]
    redacted_fields: tuple[str, ...] = ()
    needs_override: bool = True
    """Whether `load` needs a fresh resource from the caller."""


@runtime_checkable
class Described(Protocol):
    def describe(self) -> Description: ...


@runtime_checkable
class Dumpable(Protocol):
    """A remote resource that snapshots save with its content. Both calls block."""

    def dump(self) -> Iterator[tuple[bytes, bytes]]: ...
    def restore(self, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Replace the content by a dump."""
        ...


@runtime_checkable
class Searchable(Protocol):
    def search(self, path: Path, text: str, *, fold: bool = False) -> AsyncIterator[Path]:
        """Return every file below `path` that may contain `text`; the caller verifies.

        With `fold` the text is lower-case ASCII and case is ignored. ENOTSUP if the backend cannot answer.
        """
        ...


@runtime_checkable
class Queryable(Protocol):
    def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """Run a query of the service and yield JSON lines; it may change data only with `write`."""
        ...


class Edit(NamedTuple):
    """One change of several that belong together."""

    path: Path
    content: bytes | None
    """The new content; None removes the file."""
    version: str | None = None
    """The version that the file must have; None does not check."""


@runtime_checkable
class Batching(Protocol):
    def batches(self, path: Path) -> bool:
        """Return whether files at `path` can be changed together with others."""
        ...

    async def apply(self, edits: Sequence[Edit]) -> None:
        """Make all of these changes or none; ESTALE if a file has another version."""
        ...


class Letter(NamedTuple):
    """An outgoing message."""

    subject: str
    to: tuple[str, ...]
    body: bytes
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    attachments: tuple[tuple[str, bytes], ...] = ()
    answers: Path | None = None
    """The message of this resource that it replies to."""
    place: Path | None = None
    """Where it is posted: a channel, a thread, an issue."""


@runtime_checkable
class Posting(Protocol):
    async def post(self, letter: Letter) -> str:
        """Send it once and return its id; after an error the caller decides whether to send again."""
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
    """Return an optional power of this resource, looking through layers that do not change bytes."""
    found: object = resource
    while not _has(found, power):
        if not (isinstance(found, Layer) and found.transparent):
            return None
        found = found.inner
    return found  # type: ignore[return-value]


_powers: dict[tuple[type, type], bool] = {}


def _has(thing: object, power: type) -> bool:
    """Return `isinstance`, cached per class: a runtime protocol check looks at every method."""
    key = type(thing), power
    known = _powers.get(key)
    if known is None:
        known = _powers[key] = isinstance(thing, power)
    return known
