"""The messages between Ramet and its helper, zygote and workers.

Every socket but that of a worker is SEQPACKET, one JSON object per message, with the descriptors that it names:

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

A worker speaks over the first descriptor of its request, a stream socket:

    from it   `T` taken, `S` started, `E<errno>[:cwd]` cannot be executed, `X<wait status>` ended, `L<limit>` killed by
              a limit, end of file when its whole process tree is gone. With a terminal, `S` carries its descriptor.
    to it     `s<number>` signal the program's group, `K` kill the tree; end of file means the same as `K`
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False  # as typing has it: that module alone is 0.6 MB of the server
if TYPE_CHECKING:
    from typing import Any

    Request = dict[str, Any]

MESSAGE_BYTES = 32 * 1024
"""Requests above this size travel in a memfd: a socket message has a bound."""
IN_MEMFD = b"@"


def send(sock: socket.socket, message: Mapping[str, object], fds: Sequence[int]) -> None:
    """Send a request with its descriptors, of which the sender keeps its own."""
    payload = json.dumps(message).encode()
    if len(payload) <= MESSAGE_BYTES:
        socket.send_fds(sock, [payload], list(fds))
        return
    held = os.memfd_create("request", os.MFD_CLOEXEC)
    try:
        with open(held, "wb", closefd=False) as file:
            file.write(payload)
        os.lseek(held, 0, os.SEEK_SET)
        socket.send_fds(sock, [IN_MEMFD], [held, *fds])
    finally:
        os.close(held)


def receive(sock: socket.socket) -> tuple[Request | None, list[int]]:
    """Return the next request with its descriptors; None at the end."""
    payload, fds, _, _ = socket.recv_fds(sock, 1 << 16, 64, socket.MSG_CMSG_CLOEXEC)
    if payload == IN_MEMFD:
        with os.fdopen(fds.pop(0), "rb") as file:
            payload = file.read()
    return (json.loads(payload) if payload else None), fds


def answer(sock: socket.socket, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
    """Answer a request to the helper."""
    socket.send_fds(sock, [json.dumps(message).encode()], fds)


def report(status: int, text: bytes) -> None:
    """Say what became of a program, at the first descriptor of its request; end where Ramet has gone."""
    try:
        os.write(status, text)
    except OSError:
        os._exit(1)
