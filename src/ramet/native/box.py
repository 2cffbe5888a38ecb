"""`Box`: build a bubblewrap sandbox around the trees of a workspace, start programs in it, end it.

- Built once and kept; a worker that waits in the box starts each program (`helper/`).
- The first process of the box waits on a pipe: when Ramet dies, the kernel ends everything in the box.
- A box that died (a program may kill what it can see) is built again for the next program, on the same trees.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from ramet.core.errors import RametError
from ramet.native import fuse
from ramet.native.bubblewrap import find_bubblewrap, reachable_copy
from ramet.native.confinement import Point, Reach, View
from ramet.native.fuse.callers import Callers
from ramet.native.helper.protocol import MESSAGE_BYTES, send
from ramet.native.layout import INSIDE, SYSTEM_LINKS, Layout, TreePlace, etc_binds
from ramet.native.limits.cgroups import NOTHING, create_cgroup
from ramet.native.mapped_mount import open_mapped
from ramet.native.options import Native
from ramet.native.seccomp import build_filter
from ramet.native.server import SERVER, Process

BUILD_SECONDS: Final = 20.0
"""How long building a box may take on a busy machine."""
SHARED: Final = 2
"""Files in /dev/shm may have this part of the memory: they outlive the program that wrote them."""
VIEW_BYTES: Final = 1 << 20
"""Above what the answer about a view with thousands of rules takes."""
NO_REMOTE: Final[Mapping[str, bool]] = MappingProxyType({})
_REAPING: Final = ("env", "--ignore-signal=CHLD")
_FIRST_PROCESS: Final = 'echo; exec "$@" cat > /dev/null'
"""`cat` ends when Ramet does. With SIGCHLD ignored the kernel reaps orphans; old coreutils leave zombies."""
_FIRST_OF_IMAGE: Final = 'trap "" CHLD; echo; read -r _'
"""An image may have nothing but a shell."""
_CAUSES: Final = (
    (r"namespace failed|user namespaces|uid map", "user namespaces are not allowed here ({})",
     "sysctl user.max_user_namespaces=10000; in a container, allow them (docker: --security-opt seccomp=unconfined)."),
    (r"Can't make overlay mount", "an overlay cannot be made in {1} ({0})",
     "Give Native(directory=...) a place on a disk or tmpfs: no overlay lies on a container's root, NFS or FUSE."),
    (r"execvp /bin/sh", "its /bin/sh cannot be started ({})",
     "An image needs all of a system: the loader and the libraries of its shell, too."),
    (r"Can't mount proc", "/proc cannot be mounted ({})",
     "In a container, show all of /proc (docker: --security-opt systempaths=unconfined)."),
)  # fmt: skip
"""What bubblewrap says, and what it means for a user."""


def _explain(said: str, directory: str) -> tuple[str, str]:
    """Return why a box could not be built, and what to do."""
    for pattern, why, remedy in _CAUSES:
        if re.search(pattern, said):
            return why.format(said.rpartition(": ")[2], directory), remedy
    return said or "bubblewrap ended without a message", "`ramet doctor` checks what native programs need."


@cache
def _can_reap() -> bool:
    return subprocess.run([*_REAPING, "true"], stderr=subprocess.DEVNULL, check=False, env={}).returncode == 0


@dataclass(frozen=True)
class Bind:
    """A host directory that programs see at a path of the workspace."""

    directory: str
    prefix: str
    writable: bool


@dataclass(frozen=True)
class Request:
    """One program to start. `fds` maps its descriptor numbers to descriptors of this process."""

    path: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    fds: Mapping[int, int]
    umask: int = 0o022
    ignored: Sequence[int] = ()
    terminal: tuple[int, int] | None = None
    """Rows and columns of the program's terminal, if it has one."""
    lines: Sequence[int] = (0, 1, 2)
    """The descriptors that lead to its terminal."""
    caller: int = 0
    """Its number among the callers of the box."""
    rlimits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The own limits of the program below those of the box, soft and hard; -1 for none."""
    points: tuple[Point, ...] = ()
    """What it may do where; empty when it may do all that the box may."""


class Box:
    """A sandbox over `trees` (workspace prefix to overlay) and `binds`."""

    def __init__(
        self, options: Native, layout: Layout, trees: Mapping[str, TreePlace], binds: Sequence[Bind] = (),
        fixed: Collection[str] = (), remote: Mapping[str, bool] = NO_REMOTE, callers: Callers | None = None,
    ) -> None:  # fmt: skip
        self._fixed = fixed
        """Trees that programs cannot write to."""
        self._remote = remote
        """Prefixes of mounts that Ramet serves, and whether programs may write to them."""
        self._callers = callers or Callers()
        self.devices: dict[str, int] = {}
        """Where their requests arrive, by prefix; `build` opens them, who serves them closes them."""
        self.remote_problem = ""
        """Why some of them are missing."""
        self._options, self._layout, self._trees, self._binds = options, layout, dict(trees), list(binds)
        self._mapped: dict[str, int] = {}
        """Detached mounts of bound directories, by prefix, until the box has them."""
        self._helper: Process | None = None
        self._socket: socket.socket | None = None
        self._zygote: socket.socket | None = None
        self._views: dict[tuple[Point, ...], View] = {}
        self._first: Process | None = None
        """The first process of the box."""
        self._life = -1
        self.owner = layout.owner
        self._seccomp = build_filter()
        self._cgroup = NOTHING
        self._shown: dict[str, str] = {}
        """Files of the host that programs see read-only, by their path inside."""
        self._listen = 0
        """The port of the listener inside; 0 for none."""
        self.listener: socket.socket | None = None
        """What listens inside of the box, for the proxy of the network."""
        self.generation = 0
        """Counts how often the box was built: its tree descriptors are new each time."""

    # ------------------------------------------------------------------------------------------------- building

    def build(self) -> dict[str, int]:
        """Start the helper and the box; return a descriptor of each tree and system directory, by prefix."""
        program = find_bubblewrap()
        if program is None:
            raise RametError(
                "native_unavailable", "cannot run native programs: bubblewrap 0.11 or newer is not installed",
                "pip install 'ramet[native]'",
            )  # fmt: skip
        if self._layout.owner.foreign:
            program = reachable_copy(program, self._layout.common)
        self._cgroup = create_cgroup(self._options.limits)
        if self.owner.foreign and "pids" not in self._cgroup.controllers:
            raise RametError(
                "native_unavailable", "cannot bound native programs: root has no pids controller",
                "Run Ramet as an ordinary user, or on a machine whose cgroups have the pids controller.",
            )  # fmt: skip
        self._map_binds()
        try:
            self._socket, self._helper = SERVER.fork(self._layout.owner)
            self._cgroup.add(self._helper.pid)  # it waits for the first request, so nothing has started outside
            self._start_box(program)
            found = self._enter(sorted(self._trees), [f"/{name}" for name in self._layout.readable], self._remote)
        except BaseException:
            self.kill()
            raise
        finally:
            self._release_mapped()
        self.generation += 1
        return found

    def _map_binds(self) -> None:
        """Make the box's user the owner of bound directories, where that is another user."""
        for bind in self._binds if self.owner.foreign else ():
            fd = open_mapped(bind.directory, self.owner, writable=bind.writable)
            if fd >= 0:
                self._mapped[bind.prefix] = fd

    def _release_mapped(self) -> None:
        while self._mapped:
            os.close(self._mapped.popitem()[1])

    def _start_box(self, program: str) -> None:
        assert self._socket is not None
        life_read, self._life = os.pipe2(os.O_CLOEXEC)
        ready_read, ready_write = os.pipe2(os.O_CLOEXEC)
        error_read, error_write = os.pipe2(os.O_CLOEXEC)
        info_read, info_write = os.pipe2(os.O_CLOEXEC)
        filter_fd = os.memfd_create("seccomp", os.MFD_CLOEXEC)
        try:
            os.write(filter_fd, self._seccomp)
            os.lseek(filter_fd, 0, os.SEEK_SET)
            numbers = {0: life_read, 1: ready_write, 2: error_write, 3: info_write, 4: filter_fd}
            argv = [program, *self._arguments(), "--", "/bin/sh", "-c"]
            if self._layout.image.is_host:
                argv += [_FIRST_PROCESS, "sh", *(_REAPING if _can_reap() else ())]
            else:
                argv += [_FIRST_OF_IMAGE]
            send(self._socket, {"build": argv, "fds": list(numbers)}, list(numbers.values()))
        finally:
            for fd in (life_read, ready_write, error_write, info_write, filter_fd):
                os.close(fd)
        try:
            if not _read_some(ready_read, BUILD_SECONDS):
                said = _read_some(error_read, 1.0).decode(errors="replace").strip().removeprefix("bwrap: ")
                why, remedy = _explain(said, self._layout.base)
                raise RametError("native_unavailable", f"cannot build the box: {why}", remedy)
            self._first = Process(int(json.loads(_read_some(info_read, 1.0))["child-pid"]))
        finally:
            for fd in (ready_read, error_read, info_read):
                os.close(fd)

    def _arguments(self) -> list[str]:
        layout = self._layout
        found = [
            "--unshare-all", "--unshare-user", "--disable-userns", "--uid", str(INSIDE), "--gid", str(INSIDE),
            "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--as-pid-1", "--info-fd", "3",
            "--hostname", "ramet", "--clearenv", "--setenv", "PATH", "/usr/bin:/bin",
        ]  # fmt: skip
        if self._seccomp:
            found += ["--add-seccomp-fd", "4"]
        for prefix, place in sorted(self._trees.items()):
            system = ["--overlay-src", layout.system, "--overlay-src", layout.points] if prefix == "/" else []
            for layer in place.lowers:
                system += ["--overlay-src", layer]
            found += [*system, "--overlay", place.upper, place.work, prefix]
        for name in ("usr", *SYSTEM_LINKS, *layout.extras):
            if layout.image.has_directory(name):
                found += ["--ro-bind", layout.image.at(f"/{name}"), f"/{name}"]
        found += [*self._etc(), "--proc", "/proc", "--dev", "/dev"]
        shared = max(1, self._options.limits.memory_bytes // SHARED)
        found += ["--perms", "1777", "--size", str(shared), "--tmpfs", "/dev/shm"]
        for inside, file in sorted(self._shown.items()):
            if layout.image.is_host or not inside.startswith("/etc/"):
                found += ["--ro-bind", file, inside]
        found += ["--remount-ro", "/dev"]  # after what is shown there
        for bind in self._binds:
            if bind.prefix in self._mapped:
                found += ["--dir", bind.prefix]
            else:
                found += ["--bind" if bind.writable else "--ro-bind", bind.directory, bind.prefix]
        for prefix in sorted(self._fixed):
            found += ["--remount-ro", prefix]
        return [*found, "--chdir", "/"]

    def _etc(self) -> list[str]:
        """The /etc of the box: that of an image below what Ramet makes, or some of the host's."""
        layout = self._layout
        if layout.image.is_host:
            found = ["--ro-bind", layout.etc, "/etc"]
            for name in etc_binds():
                found += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
            return found
        layers = [layout.image.at("/etc")] if layout.image.has_directory("etc") else []
        layers.append(layout.etc)
        shown = {inside: file for inside, file in self._shown.items() if inside.startswith("/etc/")}
        if shown:  # nothing can be bound where the image has no such file
            layers.append(layer := f"{layout.root}/etc")
            for inside, file in shown.items():
                os.makedirs(os.path.dirname(place := layer + inside.removeprefix("/etc")), exist_ok=True)
                shutil.copyfile(file, place)
        if len(layers) == 1:
            return ["--ro-bind", layout.etc, "/etc"]
        return [*(word for layer in layers for word in ("--overlay-src", layer)), "--ro-overlay", "/etc"]

    def listen(self, port: int) -> None:
        """Have the next `build` listen at a port of the box's own loopback."""
        self._listen = port

    def show(self, file: str, inside: str) -> None:
        """Have the next `build` show a file of the host, read-only."""
        self._shown[inside] = file

    def _enter(
        self, trees: Sequence[str] = (), system: Sequence[str] = (), remote: Mapping[str, bool] = NO_REMOTE
    ) -> dict[str, int]:
        """Leave a zygote in the box, and mount what is remote; returns a descriptor for each tree and system path."""
        assert self._socket is not None and self._first is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            request = {
                "box": self._first.pid, "trees": list(trees), "system": list(system), "limits": self._bounds(),
                "seccomp": self._seccomp.hex(), "listen": 0 if self.listener is not None else self._listen,
                "mounts": sorted(self._mapped), "remote": sorted(remote.items()), "device": fuse.DEVICE,
            }  # fmt: skip
            mapped = [self._mapped[prefix] for prefix in sorted(self._mapped)]
            send(self._socket, request, [theirs.fileno(), self._callers.voice.fileno(), *mapped])
        if self._zygote is not None:
            self._zygote.close()
        self._zygote = ours
        ours.settimeout(BUILD_SECONDS)
        payload, fds, _, _ = socket.recv_fds(self._socket, MESSAGE_BYTES, len(trees) + len(system) + len(remote) + 2)
        answer: dict[str, Any] = json.loads(payload or b'{"error": "the helper process ended"}')
        if "error" in answer:
            raise RametError(
                "native_unavailable", f"cannot enter the box: {answer['error']}",
                "`ramet doctor` checks what native programs need.",
            )  # fmt: skip
        paths = [*trees, *answer["system"]]
        if remote:
            self.devices = dict(zip(sorted(remote), fds[len(paths) :][: answer["devices"]], strict=False))
            self.remote_problem = answer["problem"]
        if len(fds) > len(paths) + answer["devices"]:
            self.listener = socket.socket(fileno=fds.pop())
        return dict(zip(paths, fds, strict=False))

    def _bounds(self) -> dict[str, object]:
        """What bounds each program beyond the cgroup of the box."""
        limits, controllers = self._options.limits, self._cgroup.controllers
        rlimits = {"RLIMIT_FSIZE": limits.file_bytes, "RLIMIT_NOFILE": limits.open_files, "RLIMIT_CORE": 0}
        if "pids" not in controllers:
            rlimits["RLIMIT_NPROC"] = limits.processes
        if "memory" in controllers:
            return {"rlimits": rlimits}
        rlimits["RLIMIT_DATA"] = limits.memory_bytes
        return {"rlimits": rlimits, "watch_memory": limits.memory_bytes}

    # ------------------------------------------------------------------------------------------------- programs

    @property
    def alive(self) -> bool:
        """Whether programs can be started."""
        helper, first = self._helper, self._first
        return helper is not None and first is not None and helper.alive and first.alive

    @property
    def first_pid(self) -> int:
        """The first process of the box, which is built."""
        assert self._first is not None
        return self._first.pid

    @property
    def bounded_by_cgroup(self) -> frozenset[str]:
        return self._cgroup.controllers

    def start(self, request: Request) -> socket.socket:
        """Start a program; returns the socket to its worker. The caller closes its own copies of the descriptors."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        message = {
            "path": request.path, "argv": list(request.argv), "env": dict(request.env), "cwd": request.cwd,
            "fds": list(request.fds), "umask": request.umask, "ignored": list(request.ignored),
            "terminal": request.terminal, "lines": list(request.lines), "caller": request.caller,
            "rlimits": dict(request.rlimits),
        }  # fmt: skip
        with theirs:
            fds = [theirs.fileno(), *request.fds.values()]
            try:
                try:
                    send(self._door(request.points), message, fds)
                except ConnectionError:  # a program has killed the zygote
                    self._enter_again(request.points)
                    send(self._door(request.points), message, fds)
            except BaseException:
                ours.close()
                raise
        return ours

    def _door(self, points: tuple[Point, ...]) -> socket.socket:
        """Return the zygote's socket of a view, which is built when it is not there or no longer what it was."""
        if not points:
            assert self._zygote is not None
            return self._zygote
        view = self._views.get(points)
        if view is not None and not view.holds():
            self._views.pop(points).close()  # its last programs keep it
            view = None
        if view is None:
            view = self._views[points] = self._make_view(points)
        return view.zygote

    def check_view(self) -> str:
        """Build a view that hides a path; return why that is impossible."""
        points = (Point("/", Reach.WRITE), Point("/hidden", Reach.HIDDEN, makes=True))
        try:
            self._make_view(points).close()
        except RametError as error:
            return error.cause
        return ""

    def _enter_again(self, points: tuple[Point, ...]) -> None:
        if not points:
            self._enter()
        elif points in self._views:
            self._views.pop(points).close()

    def _make_view(self, points: tuple[Point, ...]) -> View:
        assert self._socket is not None and self._first is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            request = {
                "box": self._first.pid, "view": points, "system": sorted(self._layout.names), "limits": self._bounds(),
                "seccomp": self._seccomp.hex(),
            }  # fmt: skip
            send(self._socket, request, [theirs.fileno(), self._callers.voice.fileno()])
        ours.settimeout(BUILD_SECONDS)
        try:
            payload, fds, _, _ = socket.recv_fds(self._socket, VIEW_BYTES, 1)
            return View.of(payload, fds, ours)
        except BaseException:
            ours.close()
            raise

    # ---------------------------------------------------------------------------------------------------- ending

    def kill(self) -> None:
        """End every process of the box, by the kernel: its first process is the init of their pid namespace."""
        if self._life >= 0:
            os.close(self._life)
            self._life = -1
        for sock in (self._zygote, self._socket, self.listener):
            if sock is not None:
                sock.close()
        self._zygote = self._socket = self.listener = None
        while self._views:
            self._views.popitem()[1].close()
        if self._first is not None:
            self._first.kill()
            self._first = None
        if self._helper is not None:
            self._helper.kill()
        self._cgroup.remove()
        self._cgroup = NOTHING
        if self._helper is not None:
            self._helper = None
            SERVER.release()  # last: the server reaps what the cgroup still counts


def _read_some(fd: int, seconds: float) -> bytes:
    """Read what arrives at a pipe within a time; empty at its end."""
    ready, _, _ = select.select([fd], [], [], seconds)
    return os.read(fd, 65536) if ready else b""
