"""Sockets in the network of a box, which Ramet uses from outside."""

from __future__ import annotations

import errno
import os
import socket

from . import protocol
from .kernel import check, libc
from .namespaces import owner_of

LENT = 8
"""Sockets of each family that one request lends."""


def listen(port: int) -> int:
    """Listen on the loopback of the box; Ramet answers there, from outside."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.bind(("127.0.0.1", port))
    made.listen(128)
    return made.detach()


def lend(sock: socket.socket, request: protocol.Request) -> None:
    """Send sockets of the box's network: wherever they are connected, they reach its loopback only."""
    network = os.open(f"/proc/{request['lend']}/ns/net", os.O_RDONLY)
    try:
        if os.fstat(network).st_ino != request["network"]:
            raise OSError(errno.ESRCH, "the box has ended")
        if os.fork():
            return
        try:
            check(libc.setns(owner_of(network), 0), "setns user")
            check(libc.setns(network, 0), "setns")
            made = [socket.socket(socket.AF_INET) for _ in range(LENT)]
            if os.path.exists("/proc/net/tcp6"):
                made += [socket.socket(socket.AF_INET6) for _ in range(LENT)]
            protocol.answer(sock, {}, [one.fileno() for one in made])
        except OSError as error:
            protocol.answer(sock, {"error": str(error)})
        finally:
            os._exit(0)
    finally:
        os.close(network)
