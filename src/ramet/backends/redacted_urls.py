"""Redacted URLs for messages, and secrets read from environment variables."""

from __future__ import annotations

import errno
import os
import re
import socket
from typing import Final

from ramet.core.errors import Unavailable, fail, unavailable
from ramet.core.resource import REDACTED

# Up to the last `@`: a password that should have been escaped and was not is hidden whole.
_USER: Final = re.compile(r"^([\w+.-]+://[^:@/?#]*):.*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"([?&][^=&]*(?:password|passwd|secret|token)[^=&]*=)[^&]*", re.IGNORECASE)
_WORD: Final = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)


def secret_in(address: str) -> str:
    """The password of a URL as it is written; the whole of what may be one where that is not well formed."""
    found = re.match(r"^[\w+.-]+://[^:@/?#]*:(.+)@", address, re.DOTALL)
    return found[1] if found is not None else "\0"


UNKNOWN: Final = "the host was not found; check its name"
REFUSED: Final = "the connection is refused; check the port, and that the server runs"
_ALL_FAILED: Final = "All connection attempts failed"
"""How a library says that each address of a host failed; what it came from tells more."""
_REASONS: Final = (
    (socket.gaierror, UNKNOWN),
    (ConnectionRefusedError, REFUSED),
    (TimeoutError, "there is no answer"),
    (FileNotFoundError, "nothing is there"),
    (ConnectionResetError, "the connection broke"),
)


def without_password(address: str) -> str:
    """A URL, or `key=value` words as PostgreSQL takes them; also where they are not well formed."""
    if "://" not in address:
        return _WORD.sub(rf"\1{REDACTED}", address)
    return _PARAMETER.sub(rf"\1{REDACTED}", _USER.sub(rf"\1:{REDACTED}@", address))


def why(error: BaseException) -> str:
    """Say why a host could not be reached."""
    if "WRONG_VERSION_NUMBER" in str(error):
        return "it does not speak TLS"
    at: BaseException | None = error
    while at is not None and (not isinstance(at, OSError) or str(at) == _ALL_FAILED):
        inside = at.exceptions if isinstance(at, BaseExceptionGroup) else at.args
        at = at.__cause__ or next((one for one in inside if isinstance(one, OSError)), None)
    for kind, words in _REASONS:
        if isinstance(at, kind):
            return words
    if "Connect call failed" in str(at) and "Errno 111" in str(at):
        return REFUSED  # one sentence for all addresses of the host
    return str(at or error) or type(error).__name__


def unreached(path: str | None, where: str, error: BaseException, version: str | None = None) -> Unavailable:
    """Return the error for an unreachable host: which, why, and what to check."""
    words = why(error)
    return unavailable(path, f"{where} could not be reached: {words}", version, absent=words in (UNKNOWN, REFUSED))


def secret_from(variable: str | None) -> str | None:
    """The secret that an environment variable holds; None when none was named."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if value is None:
        raise fail(errno.EACCES, None, f"Permission denied: the environment variable {variable} is not set")
    return value
