"""The helper process: enter the box by setns, start one program per request, watch its process tree.

It runs as `python -I -S helper.py`, single-threaded, with the standard library only: setns into a user namespace
refuses threads, and a fork of a small process is cheap. Its standard input is a SEQPACKET socket to Ramet.

    {"build": argv, "fds"}                          start bubblewrap
    {"box": pid of its first process, "trees"}      enter this box from now on; answers with the tree descriptors
    {"path", "argv", "env", "cwd", "fds", ...}      start a program; its descriptors follow the message

Three processes serve one program: the *middle* enters the namespaces and ends, the *supervisor* lives in the box's pid
namespace and adopts every orphan below it, the *program* is what was asked for. The supervisor speaks over two pipes:

    status    `S` started, `E<errno>[:cwd]` cannot be executed, `X<wait status>` ended, `L<limit>` killed by a limit,
              end of file when its whole process tree is gone
    control   `s<number>\\n` signal the program's group, `K` kill the tree; end of file means the same as `K`
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

NS_GET_USERNS = 0xB701
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, 0o2000000
SYS_OPEN_TREE = 428
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 24, 36, 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
CAPABILITIES = 64
NAMESPACES = ("mnt", "pid", "net", "ipc", "uts", "cgroup")
WATCH_SECONDS = 0.25
"""Between two looks at the memory of a process tree that no cgroup bounds."""
KILL_SECONDS = 2.0
"""After which the supervisor gives up on processes that fork faster than it kills; Ramet then ends the whole box."""
OWN_DESCRIPTORS = 512
"""Descriptors of the helper are moved here, above those that a program may ask for."""

Request = dict[str, Any]
libc = ctypes.CDLL(None, use_errno=True)


class CannotEnter(Exception):
    """The working directory is not visible in the box."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


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

    def enter(self, trees: Sequence[str] = ()) -> list[int]:
        """Join the box; returns detached copies of the mounts at `trees`, without what is mounted below them."""
        check(libc.setns(self.outer, 0), "setns user")
        for fd in self.namespaces:
            check(libc.setns(fd, 0), "setns")
        found = []
        for path in trees:
            flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
            found.append(check(libc.syscall(SYS_OPEN_TREE, -100, os.fsencode(path), flags), f"open_tree {path}"))
        if self.nested:
            check(libc.setns(self.inner, 0), "setns user")
        return found

    def close(self) -> None:
        for fd in (*self.namespaces, self.outer, self.inner):
            os.close(fd)


def serve(sock: socket.socket) -> None:
    box: Namespaces | None = None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        payload, fds, _, _ = socket.recv_fds(sock, 1 << 16, 64)
        if not payload:
            return
        if payload == b"@":  # too large for a message: in a memfd
            with os.fdopen(fds.pop(0), "rb") as file:
                payload = file.read()
        request = json.loads(payload)
        try:
            if "box" in request:
                if box is not None:
                    box.close()
                box = Namespaces(request["box"])
                offer_trees(sock, box, request["trees"])
            elif "build" in request:
                build(request, fds)
            elif box is None:
                raise OSError(errno.EINVAL, "no box yet")
            else:
                start(sock, box, request, fds)
        except OSError as error:
            if "box" in request:
                sock.send(json.dumps({"error": str(error)}).encode())
        finally:
            for fd in fds:
                os.close(fd)


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


def offer_trees(sock: socket.socket, box: Namespaces, trees: Sequence[str]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            found = box.enter(trees)
            socket.send_fds(sock, [b'{"trees": true}'], found)
        except OSError as error:
            sock.send(json.dumps({"error": str(error)}).encode())
        finally:
            os._exit(0)


def start(sock: socket.socket, box: Namespaces, request: Request, fds: list[int]) -> None:
    """Fork the middle process; `fds` are status, control, then one per number in request["fds"]."""
    if os.fork():
        return
    status, control, *given = fds
    try:
        sock.close()
        os.setsid()
        box.enter()
        if os.fork():
            os._exit(0)
        box.close()
        supervise(request, status, control, given)
    except OSError as error:
        report(status, b"E%d\n" % (error.errno or errno.EIO))
    finally:
        os._exit(1)


def report(status: int, text: bytes) -> None:
    try:
        os.write(status, text)
    except OSError:
        os._exit(1)  # Ramet has gone


def supervise(request: Request, status: int, control: int, given: list[int]) -> None:
    check(libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0), "prctl")
    check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl")  # programs of the box cannot look into it
    drop_capabilities()
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    failed_read, low = os.pipe2(os.O_CLOEXEC)
    failed_write = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, OWN_DESCRIPTORS)
    os.close(low)
    program = os.fork()
    if program == 0:
        try:
            become(request, given)
        except CannotEnter as error:
            os.write(failed_write, b"E%d:cwd\n" % error.number)
        except OSError as error:
            os.write(failed_write, b"E%d\n" % (error.errno or errno.EIO))
        finally:
            os._exit(127)
    os.close(failed_write)
    for fd in given:
        os.close(fd)
    for fd in (0, 1, 2):
        if fd not in (status, control, wake_read, wake_write, failed_read):
            os.close(fd)
    failure = os.read(failed_read, 64)
    os.close(failed_read)
    if failure:
        os.waitpid(program, 0)
        report(status, failure)
        return
    report(status, b"S\n")
    watch(request, status, control, wake_read, program)


def watch(request: Request, status: int, control: int, wake: int, program: int) -> None:
    """Reap what ends and obey the control pipe until the whole tree is gone."""
    memory = request["limits"].get("watch_memory")
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    pending = b""
    while True:
        try:
            while True:
                pid, code = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == program:
                    report(status, b"X%d\n" % code)
        except ChildProcessError:
            return
        ready = poll.poll(WATCH_SECONDS * 1000 if memory else None)
        if memory and tree_memory() > memory:
            report(status, b"Lmemory_bytes\n")
            kill_tree(status, program)
            return
        for fd, _ in ready:
            if fd == wake:
                os.read(wake, 4096)
                continue
            data = os.read(control, 4096)
            if not data or b"K" in data:
                kill_tree(status, program)
                return
            pending += data
            while b"\n" in pending:
                word, _, pending = pending.partition(b"\n")
                try:
                    os.killpg(program, int(word[1:]))
                except (ProcessLookupError, PermissionError):
                    pass  # it ended meanwhile


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


def tree_memory() -> int:
    total, page = 0, resource.getpagesize()
    for pid, _ in descendants():
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                resident, shared = file.read().split()[1:3]
        except (OSError, ValueError):
            continue  # it ended meanwhile
        total += (int(resident) - int(shared)) * page
    return total


def kill_tree(status: int, program: int) -> None:
    """Kill everything below this process. Orphans come to it, so a round finds what the round before left."""
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        alive = [pid for pid, state in descendants() if state != b"Z"]
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass  # it ended meanwhile
        try:
            while True:
                pid, code = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == program:
                    report(status, b"X%d\n" % code)
        except ChildProcessError:
            return
        time.sleep(0.001)
    report(status, b"Lprocesses\n")  # a program that forks faster than this: Ramet ends the box


def become(request: Request, given: list[int]) -> None:
    """Turn this process into the program."""
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    signal.set_wakeup_fd(-1)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass  # reserved by the C library
    for number in request.get("ignored", ()):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    place_descriptors(dict(zip(request["fds"], given, strict=True)))
    os.umask(request["umask"])
    for name, most in request["limits"]["rlimits"].items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")  # the program dies before what watches it
    except OSError:
        pass  # a kernel without it
    try:
        os.chdir(os.fsencode(request["cwd"]))
    except OSError as error:
        raise CannotEnter(error.errno or errno.EIO) from None
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    install_filter(bytes.fromhex(request["seccomp"]))
    argv = [word.encode("utf-8", "surrogateescape") for word in request["argv"]]
    env = {
        name.encode("utf-8", "surrogateescape"): value.encode("utf-8", "surrogateescape")
        for name, value in request["env"].items()
    }
    path = os.fsencode(request["path"])
    try:
        os.execve(path, argv, env)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        os.execve(b"/bin/sh", [b"sh", path, *argv[1:]], env)  # a script without `#!`, as the shell runs it


def place_descriptors(wanted: dict[int, int]) -> None:
    """Give each descriptor its number; exec closes all others, or a pipe would never end."""
    moved = {number: fcntl.fcntl(fd, fcntl.F_DUPFD, OWN_DESCRIPTORS) for number, fd in wanted.items()}
    for number, fd in moved.items():
        os.dup2(fd, number, inheritable=True)
    for number in {0, 1, 2} - moved.keys():
        os.dup2(os.open("/dev/null", os.O_RDWR), number, inheritable=True)
    keep = {*moved, 0, 1, 2}
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number not in keep:
            try:
                os.set_inheritable(number, False)
            except OSError:
                pass  # the descriptor of the listing


def install_filter(program: bytes) -> None:
    if not program:
        return
    data = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    described = Program(len(program) // 8, ctypes.cast(data, ctypes.c_void_p))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(described), 0, 0), "seccomp")


def main() -> None:
    libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0)  # supervisors whose middle process has ended come here
    if len(sys.argv) == 3:  # Ramet is root; this process and its box are not
        uid, gid = map(int, sys.argv[1:])
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    os.umask(0o022)
    with socket.socket(fileno=0) as sock:
        serve(sock)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    main()
