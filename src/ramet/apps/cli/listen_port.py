"""Open a port to listen on, or fail with the reason before anything is announced."""

from __future__ import annotations

import errno
import socket

from ramet.core.errors import RametError


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free."""
    if not 0 <= port <= 65535:
        raise RametError(
            "invalid_argument", f"{port} is no port", "give one from 1 to 65535, or 0 for any that is free"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        if (error.errno or 0) < 0:  # the resolver's own numbers
            raise RametError("not_found", f"the host {host} was not found", "give an address of this machine") from None
        if error.errno == errno.EADDRINUSE:
            raise RametError(
                "already_exists", f"something listens on {host}:{port} already", "take another --port, or 0 for any"
            ) from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise RametError(
                "invalid_argument", f"{host} is no address of this machine", "give one that is, or 127.0.0.1"
            ) from None
        if error.errno == errno.EACCES:
            raise RametError(
                "permission_denied", f"port {port} needs more rights than you have", "take one from 1024 on"
            ) from None
        raise
