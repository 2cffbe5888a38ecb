"""The worker of one program: take a request, start the program, obey Ramet until its whole process tree is gone."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time

from . import hard_links, protocol
from .descriptors import high
from .kernel import PR_SET_SUBREAPER, check, libc
from .memory_watch import MemoryWatch
from .process_tree import descendants
from .program import CannotEnter, Program, spawn
from .protocol import receive, report
from .signals import wake_on_children

WATCH_SECONDS = 0.25
"""Between two looks at the memory of a process tree that no cgroup bounds."""
KILL_SECONDS = 2.0
"""After which the worker gives up on processes that fork faster than it kills; Ramet then ends the whole box."""


def work(sock: socket.socket, voice: socket.socket, limits: protocol.Request, taken: int) -> None:
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
    """Signal the program's group, or all that it has left behind."""
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
