"""Open a port to listen on, or fail with the reason before anything is announced."""

from __future__ import annotations

import errno
import socket

from ramet.core.errors import RametError


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free port."""
    if not 0 <= port <= 65535:
        raise RametError("invalid_argument", f"{port} is not a port", "use 1 to 65535, or 0 for any free port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if (error.errno or 0) < 0:  # the resolver's own numbers
            raise RametError("not_found", f"cannot find host {host}", "use an address of this machine") from None
        if error.errno == errno.EADDRINUSE:
            raise RametError(
                "already_exists", f"cannot listen on {host}:{port}: address in use", "use another --port, or 0 for any"
            ) from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise RametError(
                "invalid_argument", f"{host} is not an address of this machine", "use one that is, or 127.0.0.1"
            ) from None
        if error.errno == errno.EACCES:
            raise RametError(
                "permission_denied", f"cannot listen on port {port}: permission denied", "use a port from 1024 up"
            ) from None
        raise
