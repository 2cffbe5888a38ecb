"""The helper process: enter the box by setns, keep a worker ready inside, start one program per request.

It runs as `python -I -S helper.py`, single-threaded, with the standard library only: setns into a user namespace
refuses threads, and a fork of a small process is cheap. One *server* per Ramet process forks a *helper* for each box,
so that all boxes share its memory. Every socket is SEQPACKET, one message per request:

    server    any message with a socket             fork a helper that serves this socket; answers with its pid
    helper    {"build": argv, "fds"}                start bubblewrap
              {"box": pid, "trees", "system", ...}  enter this box; answers with descriptors of trees and system
                                                    directories, with devices of the FUSE mounts at `remote`, and with
                                                    a socket that listens at the port `listen`; the second socket is
                                                    the zygote's
              {"box": pid, "view": points, ...}     make a view of this box (`view.py`) with a zygote in it; answers
                                                    with the root of the view
              {"lend": pid, "network": inode}       create sockets in the network of this box; answers with them
    zygote    {"path", "argv", "env", "cwd", ...}   start a program; its descriptors follow the message

The *zygote* lives in the box's pid namespace. It keeps one *worker* forked and waiting, so that a program starts
without a fork of Python: the worker takes a request, spawns the program by vfork, and adopts every orphan below it. A
worker speaks over the first descriptor of its request, a stream socket:

    from it   `T` taken, `S` started, `E<errno>[:cwd]` cannot be executed, `X<wait status>` ended, `L<limit>` killed by
              a limit, end of file when its whole process tree is gone. With a terminal, `S` carries its descriptor.
    to it     `s<number>` signal the program's group, `K` kill the tree; end of file means the same as `K`
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Iterable, Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

NS_GET_USERNS = 0xB701
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, 0o2000000
AT_RECURSIVE = 0x8000
SYS_OPEN_TREE, SYS_MOVE_MOUNT = 428, 429
MOVE_MOUNT_FROM_DESCRIPTOR = 4
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 24, 36, 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
CAPABILITIES = 64
CLONE_NEWNS, CLONE_NEWPID = 0x20000, 0x20000000
NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
WATCH_SECONDS = 0.25
"""Between two looks at the memory of a process tree that no cgroup bounds."""
KILL_SECONDS = 2.0
"""After which the worker gives up on processes that fork faster than it kills; Ramet then ends the whole box."""
FORK_SECONDS = 0.05
"""Between two attempts to fork a worker while the box has no process left."""
OWN_DESCRIPTORS = 512
"""Descriptors of the helper are moved here, above those that a program may ask for."""
TERMINAL_DESCRIPTOR = 511
"""Where a program's terminal is opened, before it becomes its standard streams."""
LENT = 8
"""Sockets of each family that one request lends."""
HARMLESS = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_MEMLOCK", "RLIMIT_STACK")
"""Limits of a program under which its worker can live; others are lowered for the program alone, once it runs."""
LEAST_DATA = 64 << 20
"""The worker lives under the limits of its program: RLIMIT_DATA below this would hit the worker."""
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGSYS, signal.SIGTRAP)
CATCHABLE = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]

Request = dict[str, Any]
libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


# ------------------------------------------------------------------------------------------------------------ server


def serve_boxes(sock: socket.socket) -> None:
    """Fork a helper for each box until Ramet closes the socket."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # pages that no collection touches stay shared with all helpers
    while True:
        payload, fds, _, _ = socket.recv_fds(sock, 16, 1, socket.MSG_CMSG_CLOEXEC)
        if not payload:
            return
        pid = os.fork()
        if pid == 0:
            try:
                sock.close()
                os.setsid()
                with socket.socket(fileno=fds[0]) as own:
                    serve(own)
            finally:
                os._exit(0)
        os.close(fds[0])
        sock.send(str(pid).encode())


# ------------------------------------------------------------------------------------------------------------ helper


def drop_capabilities() -> None:
    """Empty every capability set of this process; its bounding set too, so that no exec brings one back."""
    for number in range(CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


class Namespaces:
    """Descriptors of the namespaces of a running box."""

    def __init__(self, pid: int) -> None:
        self.namespaces = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in NAMESPACES]
        # `--disable-userns` nests a second user namespace: the outer one owns the others.
        self.outer = fcntl.ioctl(self.namespaces[0], NS_GET_USERNS)
        self.inner = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
        self.nested = os.fstat(self.outer).st_ino != os.fstat(self.inner).st_ino

    def enter(
        self,
        trees: Sequence[str] = (),
        system: Sequence[str] = (),
        mounts: Sequence[tuple[str, int]] = (),
        remote: Sequence[tuple[str, bool]] = (),
        device: str = "",
    ) -> tuple[list[int], list[str], list[int], str]:
        """Join the box, attach detached mounts, and mount what Ramet serves at `remote` (path, writable) by `device`.

        Returns detached copies of the mounts at `trees`, without what is mounted below them, and of the directories at
        `system`, with it; those of `system` that are there; the devices of remote mounts; and why there are none.
        """
        check(libc.setns(self.outer, 0), "setns user")
        devices, problem = open_devices(device, len(remote))
        self._join_rest()
        for path, fd in mounts:
            moved = libc.syscall(SYS_MOVE_MOUNT, fd, b"", -100, os.fsencode(path), MOVE_MOUNT_FROM_DESCRIPTOR)
            check(moved, f"mount {path}")
        seen = [path for path in system if os.path.isdir(path)]
        found = [open_tree(path, 0) for path in trees] + [open_tree(path, AT_RECURSIVE) for path in seen]
        if devices:
            problem = mount_devices(devices, remote)
        self.leave_rights()
        return found, seen, devices, problem

    def join(self) -> None:
        """Join the box with the rights to change its mounts."""
        check(libc.setns(self.outer, 0), "setns user")
        self._join_rest()

    def _join_rest(self) -> None:
        for fd in self.namespaces:
            check(libc.setns(fd, 0), "setns")

    def leave_rights(self) -> None:
        """Go to the user namespace of programs, which owns nothing of the box."""
        if self.nested:
            check(libc.setns(self.inner, 0), "setns user")

    def close(self) -> None:
        for fd in (*self.namespaces, self.outer, self.inner):
            os.close(fd)


def open_tree(path: str, more: int) -> int:
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | more
    return check(libc.syscall(SYS_OPEN_TREE, -100, os.fsencode(path), flags), f"open_tree {path}")


def open_devices(device: str, count: int) -> tuple[list[int], str]:
    """Open FUSE devices of the host as the user of a box; they mount in its namespace only."""
    try:
        return [os.open(device, os.O_RDWR | os.O_CLOEXEC) for _ in range(count)], ""
    except OSError as error:
        return [], f"cannot open {device}: {os.strerror(error.errno or errno.EIO)}"


def mount_devices(devices: list[int], remote: Sequence[tuple[str, bool]]) -> str:
    """Mount devices at paths of the box, without one that cannot be; returns why that is."""
    problem = ""
    for at, (path, writable) in enumerate(remote):
        options = f"fd={devices[at]},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()},allow_other"
        flags = MS_NOSUID | MS_NODEV | (0 if writable else MS_RDONLY)
        if libc.mount(b"ramet", os.fsencode(path), b"fuse", flags, options.encode()) < 0:
            problem = f"cannot mount {path}: {os.strerror(ctypes.get_errno())}"
    return problem


def listen(port: int) -> int:
    """Listen on the loopback of the box; Ramet answers there, from outside."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.bind(("127.0.0.1", port))
    made.listen(128)
    return made.detach()


def lend(sock: socket.socket, request: Request) -> None:
    """Send sockets of the box's network: wherever they are connected, they reach its loopback only."""
    network = os.open(f"/proc/{request['lend']}/ns/net", os.O_RDONLY)
    try:
        if os.fstat(network).st_ino != request["network"]:
            raise OSError(errno.ESRCH, "the box has ended")
        if os.fork():
            return
        try:
            check(libc.setns(fcntl.ioctl(network, NS_GET_USERNS), 0), "setns user")
            check(libc.setns(network, 0), "setns")
            made = [socket.socket(socket.AF_INET) for _ in range(LENT)]
            if os.path.exists("/proc/net/tcp6"):
                made += [socket.socket(socket.AF_INET6) for _ in range(LENT)]
            socket.send_fds(sock, [b"{}"], [one.fileno() for one in made])
        except OSError as error:
            sock.send(json.dumps({"error": str(error)}).encode())
        finally:
            os._exit(0)
    finally:
        os.close(network)


def serve(sock: socket.socket) -> None:
    while True:
        request, fds = receive(sock)
        if request is None:
            return
        try:
            if "build" in request:
                build(request, fds)
            elif "lend" in request:
                lend(sock, request)
            elif "view" in request:
                enter_view(sock, request, fds)
            else:
                enter(sock, request, fds)
        except OSError as error:
            if "build" not in request:
                sock.send(json.dumps({"error": str(error)}).encode())
        finally:
            for fd in fds:
                os.close(fd)


def receive(sock: socket.socket) -> tuple[Request | None, list[int]]:
    """Return the next request with its descriptors; None at the end."""
    payload, fds, _, _ = socket.recv_fds(sock, 1 << 16, 64, socket.MSG_CMSG_CLOEXEC)
    if payload == b"@":  # too large for a message: in a memfd
        with os.fdopen(fds.pop(0), "rb") as file:
            payload = file.read()
    return (json.loads(payload) if payload else None), fds


def build(request: Request, fds: list[int]) -> None:
    """Become bubblewrap in a child: the box belongs to the user and the cgroup of this process."""
    if os.fork():
        return
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        place_descriptors(dict(zip(request["fds"], fds, strict=True)))
        os.execve(request["build"][0], request["build"], {})
    except OSError as error:
        os.write(2, f"{request['build'][0]}: {error.strerror}".encode())
    finally:
        os._exit(127)


def enter(sock: socket.socket, request: Request, fds: Sequence[int]) -> None:
    """Complete the mounts of a box, offer its trees to Ramet, and leave a zygote in it."""
    zygote, voice, *mounts = fds
    box = Namespaces(request["box"])
    if os.fork():
        box.close()
        return
    try:
        os.setsid()
        attached = list(zip(request["mounts"], mounts, strict=True))
        found, seen, devices, problem = box.enter(
            request["trees"], request["system"], attached, request["remote"], request["device"]
        )
        box.close()
        found += devices
        if request.get("listen"):
            found.append(listen(request["listen"]))
        if os.fork() == 0:
            sock.close()
            for fd in found:
                os.close(fd)
            breed(socket.socket(fileno=zygote), socket.socket(fileno=voice), request)
            os._exit(0)
        answer = {"system": seen, "devices": len(devices), "problem": problem}
        socket.send_fds(sock, [json.dumps(answer).encode()], found)
    except OSError as error:
        sock.send(json.dumps({"error": str(error)}).encode())
    finally:
        os._exit(0)


def enter_view(sock: socket.socket, request: Request, fds: Sequence[int]) -> None:
    """Leave a zygote in a new view of a box: the first process of a pid namespace that ends with it."""
    zygote, voice = fds
    box = Namespaces(request["box"])
    if os.fork():
        box.close()
        return
    try:
        os.setsid()
        box.join()
        if os.fork():  # only a process of the box's pid namespace can make one below it
            os._exit(0)
        check(libc.unshare(CLONE_NEWNS | CLONE_NEWPID), "unshare")
        if os.fork():
            os._exit(0)
        try:
            root, seen = view.confine(request["view"], request["system"])
        except view.CannotHold as error:
            sock.send(json.dumps({"cannot": str(error)}).encode())
            os._exit(0)
        box.leave_rights()
        box.close()
        socket.send_fds(sock, [json.dumps({"seen": seen}).encode()], [root])
        os.close(root)
        sock.close()
        breed(socket.socket(fileno=zygote), socket.socket(fileno=voice), request, lasting=True)
    except OSError as error:
        sock.send(json.dumps({"error": str(error)}).encode())
    finally:
        os._exit(0)


view, hard_links = ModuleType("view"), ModuleType("hard_links")
"""Neighbours of this file: none of them belongs to a package here."""


# ------------------------------------------------------------------------------------------------------------ zygote


def breed(sock: socket.socket, voice: socket.socket, request: Request, *, lasting: bool = False) -> None:
    """Keep one worker waiting at the socket until Ramet closes it; workers speak of themselves through `voice`.

    A `lasting` zygote stays until the workers have ended: it is the first process of their pid namespace.
    """
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")  # programs of the box cannot look into it
    drop_capabilities()
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    install_filter(bytes.fromhex(request["seccomp"]))
    for number in CATCHABLE:
        if number not in FAULTS:
            signal.signal(number, signal.SIG_IGN)  # a program that signals all processes ends no worker
    wake = wake_on_children()
    taken_read, taken_write = map(high, os.pipe2(os.O_CLOEXEC))
    gc.collect()
    gc.freeze()  # pages that no collection touches stay shared with all workers
    poll = select.poll()
    for fd in (wake, taken_read):
        poll.register(fd, select.POLLIN)
    poll.register(sock, 0)
    spare = 0
    while True:
        if not spare:
            try:
                spare = os.fork()
            except OSError:
                refuse(sock)
            else:
                if spare == 0:
                    work(sock, voice, request["limits"], taken_write)
        ready = {fd for fd, _ in poll.poll(None if spare else FORK_SECONDS * 1000)}
        if sock.fileno() in ready:
            break
        if taken_read in ready:
            os.read(taken_read, 1)
            spare = 0
        if wake in ready:
            os.read(wake, 4096)
        try:
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                if pid == spare:
                    spare = 0
        except ChildProcessError:
            spare = 0
    sock.close()  # the spare worker finds it closed
    try:
        while lasting:
            os.wait()
    except ChildProcessError:
        return


def refuse(sock: socket.socket) -> None:
    """Answer a request while the box has no process left for a worker."""
    if select.select([sock], [], [], 0)[0]:
        _, fds = receive(sock)
        if fds:
            report(fds[0], b"T\nE%d\n" % errno.EAGAIN)
        for fd in fds:
            os.close(fd)


def wake_on_children() -> int:
    """Return a pipe that becomes readable when a child ends."""
    wake_read, wake_write = map(high, os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    return wake_read


def high(fd: int) -> int:
    """Move a descriptor above those that a program may ask for."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, OWN_DESCRIPTORS)
    os.close(fd)
    return moved


# ------------------------------------------------------------------------------------------------------------ worker


def work(sock: socket.socket, voice: socket.socket, limits: Request, taken: int) -> None:
    """Take one request, run its program, and end when the last process below this one has."""
    try:
        os.setsid()
        check(libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0), "prctl")
        wake = wake_on_children()
        request, fds = receive(sock)
        sock.close()
        if request is None:
            return
        status, *given = map(high, fds)
        report(status, b"T\n")
        announce(voice, request["caller"])
        links = hard_links.listen()
        links = high(links) if links >= 0 else links
        try:
            program = spawn(request, limits, given, status)
        except CannotEnter as error:
            report(status, b"E%d:cwd\n" % error.number)
            return
        except OSError as error:
            report(status, b"E%d\n" % (error.errno or errno.EIO))
            return
        finally:
            os.write(taken, b"t")
            os.close(taken)
        watch(limits.get("watch_memory"), status, wake, links, program)
    finally:
        os._exit(0)


def announce(voice: socket.socket, caller: int) -> None:
    """Say which program this worker runs: the kernel adds its process id."""
    with voice:
        try:
            voice.send(b"%d" % caller)
        except OSError:
            os._exit(1)  # Ramet has gone


def report(status: int, text: bytes) -> None:
    try:
        os.write(status, text)
    except OSError:
        os._exit(1)  # Ramet has gone


class CannotEnter(Exception):
    """The working directory is not visible in the box."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Program:
    """A running program."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = False


def spawn(request: Request, limits: Request, given: list[int], status: int) -> Program:
    """Start the program with the descriptors, directory, mask and limits of this process."""
    try:
        os.chdir(request["cwd"].encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise CannotEnter(error.errno or errno.EIO) from None
    os.umask(request["umask"])
    terminal = -1
    actions: list[Any] = []
    if request["terminal"]:
        terminal, line = map(high, os.openpty())
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *request["terminal"], 0, 0))
        # The first terminal that a session leader opens becomes its controlling terminal.
        actions = [(os.POSIX_SPAWN_OPEN, TERMINAL_DESCRIPTOR, os.ttyname(line), os.O_RDWR, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, TERMINAL_DESCRIPTOR, number) for number in request["lines"]]
        actions += [(os.POSIX_SPAWN_CLOSE, TERMINAL_DESCRIPTOR)]
    place_descriptors(dict(zip(request["fds"], given, strict=True)))
    for name, most in limits["rlimits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        most = max(most, LEAST_DATA) if name == "RLIMIT_DATA" else most
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    path = request["path"].encode("utf-8", "surrogateescape")
    argv = [word.encode("utf-8", "surrogateescape") for word in request["argv"]]
    env = {
        name.encode("utf-8", "surrogateescape"): value.encode("utf-8", "surrogateescape")
        for name, value in request["env"].items()
    }
    own = request["rlimits"]
    early = {name: limits for name, limits in own.items() if name != "RLIMIT_AS"}
    before = {name: resource.getrlimit(getattr(resource, name)) for name in early}
    defaults = [number for number in CATCHABLE if number not in request["ignored"]]
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    lower_limits(0, early)
    try:
        pid = os.posix_spawn(path, argv, env, file_actions=actions, setsid=True, setsigdef=defaults, setsigmask=())
    except OSError as error:
        if error.errno != errno.ENOEXEC or is_binary(path):
            raise
        argv = [b"sh", path, *argv[1:]]  # a script without `#!`, as the shell runs it
        pid = os.posix_spawn("/bin/sh", argv, env, file_actions=actions, setsid=True, setsigdef=defaults, setsigmask=())
    lower_limits(0, before)
    lower_limits(pid, own)
    try:
        with open(f"/proc/{pid}/oom_score_adj", "w") as file:
            file.write("500")  # the program dies before what watches it
    except OSError:
        pass  # a kernel without it, or the program has ended
    for fd in {0, 1, 2, *request["fds"]}:
        os.close(fd)
    if terminal < 0:
        report(status, b"S\n")
    else:
        os.close(line)
        with socket.socket(fileno=os.dup(status)) as channel:
            socket.send_fds(channel, [b"S\n"], [terminal])
        os.close(terminal)
    return Program(pid)


def lower_limits(pid: int, limits: dict[str, tuple[int, int]]) -> None:
    """Set limits of a process as far as its hard limits allow; 0 is this one, which must live on after its program."""
    for name, (soft, hard) in limits.items():
        which = getattr(resource, name)
        try:
            most = resource.prlimit(pid, which)[1]
            keeps = hard < 0 or (not pid and name not in HARMLESS)
            hard = most if keeps else hard if most < 0 else min(hard, most)
            soft = hard if soft < 0 else soft if hard < 0 else min(soft, hard)
            resource.prlimit(pid, which, (soft, hard))
        except ProcessLookupError:
            return


def is_binary(path: bytes) -> bool:
    """Whether a file is no script: as bash, by a zero byte in its first line."""
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(80).partition(b"\n")[0]
    except OSError:
        return False


def watch(most: int | None, status: int, wake: int, links: int, program: Program) -> None:
    """Reap what ends and obey Ramet until the whole tree is gone."""
    poll = select.poll()
    poll.register(status, select.POLLIN)
    poll.register(wake, select.POLLIN)
    if links >= 0:
        poll.register(links, select.POLLIN)
    pending = b""
    memory = MemoryWatch(most) if most else None
    due = time.monotonic() + WATCH_SECONDS
    while True:
        if reap(status, program):
            return
        ready = poll.poll(max(0.0, due - time.monotonic()) * 1000 if memory else None)
        if memory and time.monotonic() >= due:
            if memory.exceeded():
                report(status, b"Lmemory_bytes\n")
                kill_tree(status, program)
                return
            due = time.monotonic() + WATCH_SECONDS
        for fd, _ in ready:
            if fd == wake:
                os.read(wake, 4096)
                continue
            if fd == links:
                hard_links.answer(links)
                continue
            try:
                data = os.read(status, 4096)
            except ConnectionResetError:
                data = b""
            if not data or b"K" in data:
                kill_tree(status, program)
                return
            *words, pending = (pending + data).split(b"\n")
            for word in words:
                obey(word, program)


def obey(word: bytes, program: Program) -> None:
    number = int(word[1:])
    try:
        if not program.ended:
            os.killpg(program.pid, number)
            return
        for pid, _ in descendants():  # daemons have groups and sessions of every kind
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it ended meanwhile


def reap(status: int, program: Program) -> bool:
    """Collect processes that have ended; whether none is left."""
    try:
        while True:
            pid, code = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return False
            if pid == program.pid:
                program.ended = True
                report(status, b"X%d\n" % code)
    except ChildProcessError:
        return True


def descendants() -> list[tuple[int, bytes]]:
    """Every process below this one: the box shows only the processes of its own pid namespace."""
    parents: dict[int, list[tuple[int, bytes]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b") ")[2].split()
            except OSError:
                continue  # it ended meanwhile
            parents.setdefault(int(fields[1]), []).append((int(name), fields[0]))
    found: list[tuple[int, bytes]] = []
    todo = [os.getpid()]
    while todo:
        for pid, state in parents.get(todo.pop(), ()):
            todo.append(pid)
            found.append((pid, state))
    return found


class MemoryWatch:
    """Count the memory of the tree where no cgroup does: private pages, shared ones, and files in memory."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.files_before = memory_of_files()

    def exceeded(self) -> bool:
        found = {pid: figures(f"/proc/{pid}/status") for pid, _ in descendants()}
        private = sum(one.get(b"RssAnon", 0) for one in found.values())
        shared = sum(one.get(b"RssShmem", 0) for one in found.values())
        if private + shared > self.most:  # what several processes map counts once
            shared = sum(
                figures(f"/proc/{pid}/smaps_rollup").get(b"Pss_Shmem", one.get(b"RssShmem", 0))
                for pid, one in found.items()
            )
        if private + memory_of_files() - self.files_before > self.most:
            shared = max(shared, open_memory_files(found))
        return private + shared > self.most


def figures(path: str) -> dict[bytes, int]:
    """Read lines such as `RssAnon: 12 kB`, in bytes; nothing of a process that has ended."""
    found = {}
    try:
        with open(path, "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                if rest.endswith(b" kB\n"):
                    found[name] = int(rest[:-4]) * 1024
    except (OSError, ValueError):
        return {}
    return found


def memory_of_files() -> int:
    """What files in memory take on the whole machine: cheap to ask for."""
    return figures("/proc/meminfo").get(b"Shmem", 0)


def open_memory_files(pids: Iterable[int]) -> int:
    """What the open files without a name take, such as those of memfd_create."""
    found = {}
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                at = f"/proc/{pid}/fd/{name}"
                if os.readlink(at).startswith("/memfd:"):
                    stat = os.stat(at)
                    found[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
        except OSError:
            continue  # it ended, or cannot be looked at
    return sum(found.values())


def kill_tree(status: int, program: Program) -> None:
    """Kill everything below this process. Orphans come to it, so a round finds what the round before left."""
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        for pid, state in descendants():
            try:
                if state != b"Z":
                    os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it ended meanwhile
        if reap(status, program):
            return
        time.sleep(0.001)
    report(status, b"Lprocesses\n")  # a program that forks faster than this: Ramet ends the box


def place_descriptors(wanted: dict[int, int]) -> None:
    """Give each descriptor its number; exec closes all others, or a pipe would never end."""
    moved = {number: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, OWN_DESCRIPTORS) for number, fd in wanted.items()}
    for fd in wanted.values():
        os.close(fd)
    for number, fd in moved.items():
        os.dup2(fd, number, inheritable=True)
        os.close(fd)
    for number in {0, 1, 2} - moved.keys():
        null = os.open("/dev/null", os.O_RDWR)
        if null != number:
            os.dup2(null, number)
            os.close(null)
        os.set_inheritable(number, True)


def install_filter(program: bytes) -> None:
    if not program:
        return
    data = ctypes.create_string_buffer(program, len(program))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    described = Filter(len(program) // 8, ctypes.cast(data, ctypes.c_void_p))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0), "seccomp")


def main() -> None:
    for module in (view, hard_links):
        path = os.path.join(os.path.dirname(__file__), f"{module.__name__}.py")
        SourceFileLoader(module.__name__, path).exec_module(module)
    libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0)  # what a helper leaves is reaped here: not every init does it
    if len(sys.argv) == 3:  # Ramet is root; this process and its boxes are not
        uid, gid = map(int, sys.argv[1:])
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(0o022)
    with socket.socket(fileno=high(0)) as sock:
        os.open("/dev/null", os.O_RDWR)  # it becomes descriptor 0
        serve_boxes(sock)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
