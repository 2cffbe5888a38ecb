"""`Proc`: everything a running command may touch. `Exec`: the type of every command.

- A command opens files by `proc.open(word)`, so that `-`, `/dev/stdin`, `/dev/fd/N` and every mount work alike.
- A command never touches the host.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from ramet.concurrency.sizes import BATCH, LARGE
from ramet.core import paths
from ramet.core.errors import fail
from ramet.core.fs import FileSystem, Open
from ramet.core.limits import Budget
from ramet.core.paths import Path
from ramet.core.stat import Stat
from ramet.core.streams import Reader, Writer

PROGRAM: Final = b"\x7fRAMET\0"
"""Magic of a file that stands for a command of the table; the name follows. Running the file, a link to it or a copy of
it runs the command."""


@dataclass(frozen=True, slots=True)
class User:
    """The user that commands run as. Nothing of the host shows."""

    name: str = "user"
    uid: int = 1000
    group: str = "user"
    gid: int = 1000
    home: str = "/home/user"
    host: str = "ramet"


class Run(Protocol):
    """Run another command by the shell's lookup (`xargs`, `find -exec`, `env`); missing arguments are inherited.

    `signals` maps a signal to True (ignore it) or False (restore its default).
    """

    async def __call__(
        self,
        argv: Sequence[str],
        *,
        stdin: Reader | None = None,
        stdout: Writer | None = None,
        stderr: Writer | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        signals: Mapping[str, bool] | None = None,
    ) -> int: ...


class JobTable(Protocol):
    """The processes of a workspace."""

    def processes(self) -> Iterable[tuple[int, int, str, float]]:
        """pid, parent's pid, command line and start time (seconds since the epoch)."""
        ...

    def own_pid(self) -> int:
        """The pid of the shell that runs this command."""
        ...

    def next_pid(self) -> int:
        """A new pid, for this command."""
        ...

    def signal(self, pid: int, number: int) -> bool:
        """Deliver a signal; False when there is no such process."""
        ...


@dataclass(frozen=True, slots=True)
class Daemon:
    """Processes that a program of the machine has left behind."""

    text: str
    ended: Callable[[], Awaitable[object]]
    """Wait until none is left."""
    signal: Callable[[int], None]
    """Signal all of them."""
    silent: Callable[[], Awaitable[object]]
    """Wait until they print nothing more that anybody reads."""
    outputs: Sequence[int] = ()
    """The descriptors of the program at which they still print."""


@dataclass(frozen=True, slots=True)
class Services:
    """What a shell offers to its commands besides files and streams; None where a command runs without a shell."""

    jobs: JobTable | None = None
    commands: Container[str] | None = None
    """The names of the commands that need no file."""
    workspace: object = None
    """The identity of the workspace; file locks are per workspace."""
    programs: Programs | None = None
    """Programs beyond the table."""
    signal_group: Callable[[int], bool] | None = None
    """Signal all that this command started, for `timeout`; False when no trap handles the signal."""
    network: object = None
    """The session's door to the network (`ramet.network.door.SessionDoor`); None where it is off."""
    receive: Callable[[Callable[[int], None] | None], None] | None = None
    """Give the function that delivers signals to a program of the machine, and None when it has ended."""
    ignored: Callable[[], Iterable[int]] = tuple
    """The signals that a program of the machine is to ignore."""
    rlimits: Callable[[], Mapping[str, tuple[int, int]]] = dict
    """The soft and hard limits of a program of the machine beyond those of its box, by the name of the limit."""
    adopt: Callable[[Daemon], None] | None = None
    """Put what a program has left behind into the job table."""


@dataclass(slots=True)
class Proc:
    argv: list[str]
    fs: FileSystem
    cwd: Path
    env: Mapping[str, str]
    stdin: Reader
    stdout: Writer
    stderr: Writer
    run: Run
    budget: Budget
    now: Callable[[], float]
    """Seconds since the epoch, as this workspace sees time."""
    fds: Mapping[int, Reader | Writer] = field(default_factory=dict)
    umask: int = 0o022
    user: User = field(default_factory=User)
    services: Services = field(default_factory=Services)

    @property
    def name(self) -> str:
        return self.argv[0]

    def path(self, word: str) -> Path:
        """Return the path that a command-line word names."""
        return self.fs.named(word, self.cwd) if "/.." in word else paths.parse(word, self.cwd)

    async def stat(self, word: str, follow: bool = False) -> Stat:
        """Stat what a word names; a trailing slash follows a link and requires a directory."""
        stat = await self.fs.stat(self.path(word), follow or word.endswith("/"))
        if word.endswith("/") and not stat.is_dir:
            raise fail(errno.ENOTDIR, word)
        return stat

    async def emit(self, data: bytes) -> None:
        """Write to stdout and wait for room when it is full."""
        self.stdout.write(data)
        if self.stdout.full:
            await self.stdout.drain()

    async def emit_texts(self, texts: Iterable[str], writer: Writer | None = None) -> None:
        """Write texts in batches, to stdout by default, and yield the event loop between batches."""
        out = self.stdout if writer is None else writer
        row: list[str] = []
        size = 0
        for text in texts:
            row.append(text)
            size += len(text)
            if size > LARGE or len(row) > BATCH:
                out.write(paths.encode("".join(row)))
                if out.full:
                    await out.drain()
                await self.budget.yield_turn()
                row, size = [], 0
        out.write(paths.encode("".join(row)))
        if out.full:
            await out.drain()

    def complain(self, message: str) -> None:
        """Write `name: message` to stderr."""
        self.stderr.write(paths.encode(f"{self.argv[0]}: {message}\n"))

    def descriptor(self, word: str) -> Reader | Writer | None:
        """Return the stream behind `/dev/stdin`, `/dev/fd/N` and so on; None for an ordinary word."""
        if word.startswith("/proc/self/fd/"):
            word = "/dev/fd/" + word[14:]
        if not word.startswith("/dev/"):
            return None
        if word in ("/dev/stdin", "/dev/fd/0"):
            return self.stdin
        if word in ("/dev/stdout", "/dev/fd/1"):
            return self.stdout
        if word in ("/dev/stderr", "/dev/fd/2"):
            return self.stderr
        if word.startswith("/dev/fd/") and word[8:].isdecimal():
            found = self.fds.get(int(word[8:]))
            if found is None:
                raise fail(errno.ENOENT, word)
            return found
        return None

    async def open(self, word: str, *, dash: bool = True) -> Reader:
        """Open a word for reading; `-` is stdin if `dash`. Directories fail with EISDIR. Close with `close()`."""
        if dash and word == "-":
            if self.stdin.refused:
                raise fail(self.stdin.refused, word)
            return self.stdin
        found = self.descriptor(word)
        if found is not None:
            if not isinstance(found, Reader):
                raise fail(errno.EACCES, word)
            return found
        if word.endswith("/"):
            await self.stat(word)
        try:
            reader = await self.fs.open(self.path(word), Open.READ)
        except OSError as error:
            if isinstance(linked := await self._linked_descriptor(word, error), Reader):
                return linked
            raise
        reader.budget = self.budget
        return reader

    async def close(self, stream: Reader | Writer) -> None:
        """Close a stream of `open` or `create`; the command's inherited descriptors stay open."""
        if stream is self.stdin or stream is self.stdout or stream is self.stderr or stream in self.fds.values():
            return
        await stream.close()

    async def create(self, word: str, *, append: bool = False) -> Writer:
        """Open a word for writing, truncated or appended to; `/dev/stdout` and so on are the inherited streams."""
        found = self.descriptor(word)
        if found is not None:
            if not isinstance(found, Writer):
                raise fail(errno.EACCES, word)
            return found
        if word.endswith("/"):
            raise fail(errno.EISDIR, word)
        how = Open.WRITE | Open.CREATE | (Open.APPEND if append else Open.TRUNCATE)
        try:
            return await self.fs.open(self.path(word), how)
        except OSError as error:
            if isinstance(linked := await self._linked_descriptor(word, error), Writer):
                return linked
            raise

    async def _linked_descriptor(self, word: str, error: OSError) -> Reader | Writer | None:
        """Return the stream behind a link to `/dev/stdout` and so on, which the tree cannot open."""
        if error.errno != errno.ENXIO:
            return None
        return self.descriptor(str(await self.fs.resolve(self.path(word))))


Exec = Callable[[Proc], Awaitable[int]]


class Programs(Protocol):
    """Programs beyond the command table that a shell may run."""

    @property
    def processors(self) -> int:
        """How many of them run at the same time."""
        ...

    def has(self, path: str) -> bool:
        """Whether an absolute path names such a program."""
        ...

    def processes(self) -> Iterable[tuple[int, int, str, float]]:
        """What programs have started, as in a `JobTable`."""
        ...

    def signal(self, pid: int, number: int) -> bool:
        """Signal one of those; False when there is no such process."""
        ...

    def command(self, path: str) -> Exec:
        """Return the program at a path, which may also be a file of the tree, as a command."""
        ...
