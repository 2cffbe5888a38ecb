"""flock: advisory locks between the commands of a workspace, held by open file descriptions.

- A file of the machine is locked in the kernel, where programs see it.
- Elsewhere a hold is an object that the open file description owns; locks refer to their holds weakly, so a close or
  the end of a session releases them.
"""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import Hashable
from dataclasses import dataclass
from weakref import WeakSet, WeakValueDictionary

from ramet.commands.framework.command import Command, UsageError, choose, flag, shown, value
from ramet.core.errors import reason
from ramet.core.fs import Open
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import FileStream

USAGE, DATA, NO_INPUT, OS_ERROR = 64, 65, 66, 71
LOOK_AGAIN = 0.01
"""Seconds between two attempts to take a lock."""


@dataclass(frozen=True, slots=True)
class FlockOptions:
    kind: str = choose(
        {"-s --shared": "shared", "-x -e --exclusive": "exclusive", "-u --unlock": "unlock"},
        default="exclusive",
        help={
            "-s --shared": "get a shared lock",
            "-x -e --exclusive": "get an exclusive lock (default)",
            "-u --unlock": "remove a lock",
        },
    )
    nonblock: bool = flag("-n", "--nonblock", "--nb", help="fail rather than wait")
    wait: str | None = value("-w", "--timeout", "--wait", metavar="SECS", help="wait for a limited amount of time")
    conflict: str = value(
        "-E", "--conflict-exit-code", metavar="NUMBER", default="1", help="exit code after conflict or timeout"
    )
    close: bool = flag("-o", "--close", help="close file descriptor before running command")
    no_fork: bool = flag("-F", "--no-fork", help="execute command without forking")
    verbose: bool = flag("--verbose", help="increase verbosity")


class _Lock:
    """A lock with one exclusive or several shared holders."""

    def __init__(self) -> None:
        self.holds: WeakSet[_Hold] = WeakSet()

    def is_free(self, mine: object, shared: bool) -> bool:
        return all(hold is mine or (shared and hold.shared) for hold in self.holds)


class _Hold:
    def __init__(self, lock: _Lock, shared: bool) -> None:
        self.lock, self.shared = lock, shared
        lock.holds.add(self)


class _Owner:
    """Stands for the open file of a locked directory."""

    locked: object = None


_locks: WeakValueDictionary[Hashable, _Lock] = WeakValueDictionary()


async def flock(proc: Proc, o: FlockOptions, operands: list[str]) -> int:
    if not operands and len(proc.argv) == 1:
        raise UsageError("not enough arguments")
    if not operands:
        raise UsageError("requires file descriptor, file or directory", hint=False)
    conflict = int(o.conflict) if o.conflict.isdecimal() else 256
    if conflict > 255:
        raise UsageError("exit code out of range (expected 0 to 255)", hint=False)
    patience = _seconds(o.wait)
    word, *command = operands
    if not command:
        if not word.isdecimal():
            raise UsageError(f"bad file descriptor: '{word}'", hint=False)
        number = int(word)
        stream = {0: proc.stdin, 1: proc.stdout, 2: proc.stderr}.get(number) or proc.fds.get(number)
        if stream is None:
            proc.complain(f"{word}: Bad file descriptor")
            return DATA
        if not isinstance(stream, FileStream):
            return 0  # a pipe or terminal of this session, which no other file can be
        return await _locked(proc, o, stream, await _key(proc, stream), patience, conflict)
    if command[0] in ("-c", "--command"):
        if len(command) != 2:
            raise UsageError("-c requires exactly one command argument", hint=False)
        command = [proc.env.get("SHELL") or "/bin/sh", "-c", command[1]]
    if patience is not None and patience < 0:
        proc.complain("cannot set up timer: Invalid argument")
        return OS_ERROR
    try:
        owner, key = await _open(proc, word)
    except OSError as error:
        proc.complain(f"cannot open lock file {shown(word)}: {reason(error)}")
        return NO_INPUT
    try:
        status = await _locked(proc, o, owner, key, patience, conflict)
        if status:
            return status
        if o.verbose:
            proc.complain(f"executing {command[0]}")
        return await proc.run(command) & 255
    finally:
        owner.locked = None
        if isinstance(owner, FileStream):
            await owner.close()


async def _open(proc: Proc, word: str) -> tuple[FileStream | _Owner, Hashable]:
    """Return a lock file, made where there is none; a directory serves as well."""
    path = await proc.fs.resolve(proc.path(word), missing_ok=True)
    try:
        stat = await proc.fs.stat(path)
    except FileNotFoundError:
        stat = None
    if stat is not None and stat.kind is Kind.DIR:
        return _Owner(), (id(proc.services.workspace), path)
    stream = await proc.fs.open(path, Open.READ if stat is not None else Open.READ | Open.WRITE | Open.CREATE)
    return stream, await _key(proc, stream)


async def _key(proc: Proc, stream: FileStream) -> Hashable:
    """Return what a file is by, whatever it is called: its number in this workspace; where it has none, only itself."""
    inode = (await stream.stat()).inode
    return (id(proc.services.workspace), inode) if inode is not None else id(stream)


async def _locked(
    proc: Proc, o: FlockOptions, owner: FileStream | _Owner, key: Hashable, patience: float | None, conflict: int
) -> int:
    """Take the lock for `owner`; return whether that worked in time."""
    kernel = owner.lend() if isinstance(owner, FileStream) and owner.lendable and isinstance(key, tuple) else -1
    if o.kind == "unlock":
        owner.locked = None
        if kernel >= 0:
            fcntl.flock(kernel, fcntl.LOCK_UN)
        return 0
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = _Lock()
    shared = o.kind == "shared"
    begun = asyncio.get_running_loop().time()
    while not (_take(kernel, shared) if kernel >= 0 else lock.is_free(owner.locked, shared)):
        waited = asyncio.get_running_loop().time() - begun
        if o.nonblock or (patience is not None and waited >= patience):
            if o.verbose:
                proc.complain("failed to get lock" if o.nonblock else "timeout while waiting to get lock")
            return conflict
        await asyncio.sleep(LOOK_AGAIN if patience is None else min(LOOK_AGAIN, patience - waited))
    owner.locked = _Hold(lock, shared)
    if o.verbose:
        proc.complain(f"getting lock took {asyncio.get_running_loop().time() - begun:.6f} seconds")
    return 0


def _take(fd: int, shared: bool) -> bool:
    """Lock an open file of the machine, unless another process holds it."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"invalid timeout value: '{text}'", hint=False) from None


COMMANDS = [
    Command(
        "flock",
        flock,
        FlockOptions,
        summary="Hold a lock while a command runs, or for as long as a descriptor is open.",
        usage="[OPTION]... FILE|DIRECTORY COMMAND [ARG]... | -c COMMAND, or [OPTION]... DESCRIPTOR",
        operands_first=True,
        bad_usage=USAGE,
        version_letters="V",
        help_letters="h",
    )
]
