"""`NativePrograms`: bind the box of real programs to a workspace: its mounts, its shells, its record.

- Mounts in memory become kernel trees that in-process commands and native programs share.
- Host directories are bound at their prefix; other mounts are served by FUSE, from the tree of the session.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.host_copy import copy_tree
from ramet.concurrency.sizes import BATCH
from ramet.core.errors import RametError, reason
from ramet.core.paths import Path, encode, parse
from ramet.core.proc import Exec, Proc
from ramet.core.resource import Cap, Resource
from ramet.core.streams import Writer
from ramet.native.box_processes import list_processes, signal_process
from ramet.native.confinement import Point
from ramet.native.fuse.mounts import REMEDY
from ramet.native.lowers import StoredTrees
from ramet.native.options import Native
from ramet.native.program import cannot_execute
from ramet.native.runtime import ProgramChange, Runtime
from ramet.native.system_files import KernelFiles
from ramet.native.tree import OverlaidDirectory, SharedLayers, TreeResource
from ramet.network.door import Door
from ramet.network.proxy import Proxy
from ramet.workspace.mounts import Mount, MountMode
from ramet.workspace.policy import Policy
from ramet.workspace.record.recorder import Recorder

REAL_SHELLS: Final = ("/usr/./bin/bash", "/bin/./bash", "/usr/./bin/sh", "/bin/./sh")
"""The box's bash, or its shell: `/usr/bin/bash` is the shell of the workspace."""
PROC: Final = parse("/proc")
OF_USER: Final = frozenset(("HOME", "LOGNAME", "USER"))
USUAL: Final = frozenset((
    "bun", "cargo", "cc", "clang", "cmake", "deno", "docker", "g++", "gcc", "gdb", "gh", "git", "go", "gradle",
    "java", "javac", "ld", "make", "mvn", "mypy", "ninja", "node", "npm", "npx", "perl", "php", "pip", "pip3",
    "pnpm", "poetry", "psql", "pytest", "python", "python3", "ruby", "ruff", "rustc", "strace", "swift", "tox",
    "tsc", "uv", "uvx", "yarn",
))  # fmt: skip
"""Programs whose absence is explained: other unknown words are typing errors."""
OFF: Final = (
    "ramet: real programs are off in this workspace. Open it with --native, or Workspace(native=True), "
    "to run python3, git and others.\n"
)


class NativePrograms:
    """What a shell asks for programs that are not commands of the table."""

    def __init__(
        self, options: Native, recorder: Recorder, door: Door | None = None, policy: Policy | None = None
    ) -> None:
        self._recorder, self._policy = recorder, policy
        self._proxy = None if door is None or door.network is None else Proxy(door)
        with _prepared():
            self._runtime = Runtime(options, self._proxy)
        self.ports = self._runtime.ports
        """What listens on the loopback of the box."""
        if door is not None:
            door.inside = self.ports.connect
        self._unseen: list[str] = []
        """Mounts that programs do not see."""
        self._seen_runs = 0
        self._stale = False
        """Whether calls without a program may have changed the trees since the last look."""
        self.trees: Mapping[str, TreeResource] = {}

    def adopt_mounts(self, mounts: Mapping[Path, Mount]) -> dict[Path, Mount]:
        """Move mounts in memory to kernel trees, and bind host directories."""
        with _prepared():
            return self._adopt(mounts)

    def _adopt(self, mounts: Mapping[Path, Mount]) -> dict[Path, Mount]:
        runtime, found = self._runtime, dict(mounts)
        try:
            for prefix, mount in sorted(mounts.items()):
                if isinstance(mount.resource, SharedLayers):
                    runtime.add_layers(str(prefix), mount.resource)
                elif isinstance(mount.resource, OverlaidDirectory):
                    root = mount.resource.root
                    runtime.add_overlay(str(prefix), root, partial(copy_tree, root))
                elif mount.memory is not None and mount.checkout is not None:
                    runtime.add_checkout(str(prefix), mount.checkout)
                elif mount.memory is not None:
                    runtime.add_memory(str(prefix), mount.memory)
                elif mount.directory is not None:
                    writable = mount.mode is MountMode.WRITE
                    runtime.add_directory(str(prefix), mount.directory, writable=writable)
                else:
                    self._add_remote(mount)
                if mount.memory is not None and mount.mode is MountMode.READ:
                    runtime.protect(str(prefix))
            if self._policy is not None:
                self._policy.check_programs([*runtime.remote.outermost])
            self.trees = runtime.open()
            self._note_unseen(mounts.values())
        except BaseException:
            runtime.close()
            raise
        for text, tree in self.trees.items():
            found[parse(text)] = replace(mounts[parse(text)], resource=tree, checkout=None)
        self._keep_covered(found)
        return found

    def _keep_covered(self, mounts: Mapping[Path, Mount]) -> None:
        """Have files that a policy covers written in place, so that they stay covered for programs that run."""
        covered = [] if self._policy is None else list(map(parse, self._policy.covered_files()))
        for prefix, mount in mounts.items():
            if isinstance(mount.resource, DiskResource):
                below = {str(path.below(prefix)) for path in covered if path.under(prefix)}
                mount.resource.kept = frozenset(mount.resource.kept) | below

    def add_mount(self, mount: Mount) -> Mount:
        """Show a mount that was added later to programs; while one runs, it stays in process."""
        runtime, prefix = self._runtime, str(mount.prefix)
        if prefix in self.trees or not runtime.idle:
            self._unseen.append(f"{_shown(mount)}: it was added while a program ran")
            return mount
        if mount.memory is None:
            if mount.directory is None:
                self._add_remote(mount)
            else:
                runtime.add_directory(prefix, mount.directory, writable=mount.mode is MountMode.WRITE)
            runtime.reopen()
            self._note_unseen([mount])
            self._keep_covered({mount.prefix: mount})
            return mount
        runtime.add_memory(prefix, mount.memory)
        if mount.mode is MountMode.READ:
            runtime.protect(prefix)
        runtime.reopen()
        made = replace(mount, resource=self.trees[prefix])
        self._keep_covered({mount.prefix: made})
        return made

    def _points(self) -> tuple[Point, ...]:
        """Return what the policy lets programs of this call do where."""
        policy, runtime, entry = self._policy, self._runtime, self._recorder.current()
        if policy is None or not policy.watches_files:
            return ()
        session, agent = (None, "") if entry is None else (entry.session_id, entry.actor.agent_id)
        found = policy.points(session, agent, runtime.mounted, [*runtime.remote.outermost])
        return tuple(point for point in found if point.path[1:].partition("/")[0] not in runtime.layout.names)

    def _add_remote(self, mount: Mount) -> None:
        """Serve a mount to programs by FUSE."""
        late = Cap.ON_CLOSE in mount.resource.caps
        self._runtime.remote.add(str(mount.prefix), writable=mount.mode is MountMode.WRITE, late=late)

    def _note_unseen(self, mounts: Iterable[Mount]) -> None:
        remote = self._runtime.remote
        lost = remote.unseen
        found = [_shown(mount) for mount in mounts if str(mount.prefix) in lost]
        if found:
            self._unseen.append(f"{', '.join(found)}: {remote.problem}. {REMEDY}")

    @property
    def system(self) -> dict[Path, Resource]:
        """Return what commands see of the directories of the box."""
        return {**{parse(path): files for path, files in self._runtime.system.items()}, PROC: KernelFiles()}

    def freeze(self) -> dict[str, SharedLayers]:
        """Return the trees as they are now, for copies that share their bytes; none while a program runs."""
        return self._runtime.freeze() if self._runtime.idle and not self.compared else {}

    may_fold: Callable[[], bool] = staticmethod(lambda: True)
    """Whether the trees may be exchanged: no command runs, and no file is open."""
    compared = False
    """Whether the upper layers are what a branch or a trial has changed: they never become lower layers then."""
    folds_at_commits = False
    """Whether the trees are folded when they are stored: the layers then have a name there."""

    def fold(self, stored: StoredTrees | None = None) -> None:
        """Make what has changed a lower layer, when it is much and nothing runs."""
        if self.may_fold() and not self.compared:
            self._runtime.fold(stored)

    def discard(self) -> None:
        """Undo all changes of the trees."""
        if not self._runtime.idle:
            raise RametError("workspace_busy", "cannot discard changes: a program runs", "End it, or close the branch.")
        self._runtime.discard()

    # ------------------------------------------------------------------------------------- for the shell

    @property
    def processors(self) -> int:
        """Return how many programs run at the same time."""
        return len(os.sched_getaffinity(0))

    def has(self, path: str) -> bool:
        """Whether a path names a program of the host that the box sees."""
        return self._runtime.has(path)

    def processes(self) -> list[tuple[int, int, str, float]]:
        """List what programs have started; nothing for a session with a view."""
        first = 0 if self._points() else self._runtime.first_pid
        return [(one.pid, one.parent, one.text, one.started) for one in list_processes(first)] if first else []

    def signal(self, pid: int, number: int) -> bool:
        """Signal a process by the number that programs know it by."""
        first = 0 if self._points() else self._runtime.first_pid
        return first > 0 and signal_process(first, pid, number)

    def names(self, folder: str) -> list[str]:
        """List what a directory of PATH has, if it is one of the host or the image."""
        return self._runtime.names(folder)

    @property
    def shell(self) -> str:
        """Return the start of a command that runs the real shell of the box."""
        found = next((path for path in REAL_SHELLS if self.has(path)), REAL_SHELLS[0])
        return f"exec -a {found.rpartition('/')[2]} {found}"

    def environment(self, usual_path: str) -> dict[str, str]:
        """Return the variables that an image asks for; its PATH has all of the usual one."""
        found = {name: value for name, value in self._runtime.layout.image.env.items() if name not in OF_USER}
        if "PATH" in found:
            own = found["PATH"].split(":")
            found["PATH"] = ":".join([*own, *(one for one in usual_path.split(":") if one not in own)])
        return found

    def command(self, path: str) -> Exec:
        """Return a program of the box as a command; `path` is how the box finds it."""

        async def run(proc: Proc) -> int:
            if self._unseen:
                shown, self._unseen = "; ".join(self._unseen), []
                proc.stderr.write(f"ramet: native programs do not see these mounts: {shown}\n".encode())
            if self._runtime.used == self._seen_runs:  # the first program of this call
                await self._settle()
            try:
                return await self._runtime.run(path, proc, self._points())
            except RametError as error:
                proc.complain(str(error))
                return 126
            except OSError as error:
                missing = error.errno == errno.ENOENT  # the file is there, so it is its interpreter
                why = "cannot execute: required file not found" if missing else reason(error)
                if error.errno == errno.ENOEXEC:
                    why = f"cannot execute binary file: {why}"
                proc.stderr.write(encode(f"bash: {path}: {why}\n"))
                return cannot_execute(error)

        return run

    # ------------------------------------------------------------------------------------- for the workspace

    async def stop_network(self) -> None:
        """Answer no program any more."""
        if self._proxy is not None:
            await self._proxy.stop()

    def let_go(self, writers: Sequence[Writer]) -> None:
        """Discard what daemons print to the streams of a call that has ended."""
        self._runtime.daemons.let_go(writers)

    async def record_changes(self) -> None:
        """Add what programs changed since the last call to the open record."""
        runtime = self._runtime
        if runtime.used == self._seen_runs:
            self._stale = True
            return
        self._seen_runs = runtime.used
        recorder = self._recorder
        known = recorder.current()
        for one in await self._changes():
            place = parse(one.path)
            if one.verb == "remove":
                if known is None or one.path not in known.removed:
                    recorder.removed(place)
            elif one.verb == "write" and (known is None or one.path not in known.written):
                recorder.program_wrote(place, one.size, made=one.made, before=one.before)
        if not self.folds_at_commits:
            self.fold()

    async def _settle(self) -> None:
        """Look at the trees before a program: what has changed up to here is not its work."""
        known = self._recorder.current()
        changed = self._stale or (known is not None and known.changed)
        for one in await self._changes(hosts_only=not changed):
            if one.rewritten:
                self._recorder.changed_outside(parse(one.path))
        self._stale = False
        self._recorder.program_begins()

    async def _changes(self, *, hosts_only: bool = False) -> list[ProgramChange]:
        look = self._runtime.host_changes if hosts_only else self._runtime.changes
        if self._runtime.entries < BATCH:
            return look()
        return await asyncio.to_thread(look)

    def end(self) -> None:
        """End all programs; the trees stay on the disk for recovery."""
        self._runtime.end()

    def close(self, stored: StoredTrees | None = None) -> None:
        """End all programs and delete the trees; what is stored may be a lower layer of the next box."""
        self._runtime.close(stored)


@contextmanager
def _prepared() -> Iterator[None]:
    """Say in a user's words why the directories of a box could not be made."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise RametError(
            "native_unavailable", f"cannot prepare native programs: {reason(error)}{where}",
            "Make room there, or give Native(directory=...) another place.",
        ) from error  # fmt: skip


def _shown(mount: Mount) -> str:
    return f"{mount.prefix} ({type(mount.resource).__name__})"
