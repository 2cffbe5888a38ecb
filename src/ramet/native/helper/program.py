"""Start a program of a box by posix_spawn: its descriptors, terminal, directory, limits and signals."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import termios

from . import protocol
from .descriptors import high, place_descriptors
from .limits import can_start_under, lower_limits, set_limits_of_box
from .protocol import report
from .signals import CATCHABLE

TERMINAL_DESCRIPTOR = 511
"""Where a program's terminal is opened, before it becomes its standard streams."""


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


def spawn(request: protocol.Request, limits: protocol.Request, given: list[int], status: int) -> Program:
    """Start the program with the descriptors, directory, mask and limits of this process."""
    try:
        os.chdir(encoded(request["cwd"]))
    except OSError as error:
        raise CannotEnter(error.errno or errno.EIO) from None
    os.umask(request["umask"])
    terminal = -1
    actions: list[tuple[object, ...]] = []
    if request["terminal"]:
        terminal, line = map(high, os.openpty())
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *request["terminal"], 0, 0))
        # The first terminal that a session leader opens becomes its controlling terminal.
        actions = [(os.POSIX_SPAWN_OPEN, TERMINAL_DESCRIPTOR, os.ttyname(line), os.O_RDWR, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, TERMINAL_DESCRIPTOR, number) for number in request["lines"]]
        actions += [(os.POSIX_SPAWN_CLOSE, TERMINAL_DESCRIPTOR)]
    place_descriptors(dict(zip(request["fds"], given, strict=True)))
    set_limits_of_box(limits["rlimits"])
    path = encoded(request["path"])
    argv = [encoded(word) for word in request["argv"]]
    env = {encoded(name): encoded(value) for name, value in request["env"].items()}
    own = request["rlimits"]
    early = {name: (soft, hard) for name, (soft, hard) in own.items() if can_start_under(name, soft)}
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
        with open(f"/proc/{pid}/oom_score_adj", "wb") as file:
            file.write(b"500")  # the program dies before what watches it
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


def encoded(text: str) -> bytes:
    """The bytes of a path, a word or a variable, which JSON carries as text."""
    return text.encode("utf-8", "surrogateescape")


def is_binary(path: bytes) -> bool:
    """Whether a file is no script: as bash, by a zero byte in its first line."""
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(80).partition(b"\n")[0]
    except OSError:
        return False
