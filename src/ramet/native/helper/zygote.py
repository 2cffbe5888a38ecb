"""The zygote, in the box: keep one worker forked and waiting, so that a program starts without a fork of Python."""

from __future__ import annotations

import errno
import gc
import os
import select
import socket

from . import protocol
from .descriptors import high
from .privileges import give_up_privileges
from .protocol import receive, report
from .signals import ignore_signals, wake_on_children
from .worker import work

FORK_SECONDS = 0.05
"""Between two attempts to fork a worker while the box has no process left."""


def keep_worker(sock: socket.socket, voice: socket.socket, request: protocol.Request, *, lasting: bool = False) -> None:
    """Keep one worker waiting at the socket until Ramet closes it; workers speak of themselves through `voice`.

    A `lasting` zygote stays until the workers have ended: it is the first process of their pid namespace.
    """
    give_up_privileges(bytes.fromhex(request["seccomp"]))
    ignore_signals()
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
