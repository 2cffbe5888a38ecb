"""Addresses of services as they may be shown, without what opens them; and where what opens them comes from."""

from __future__ import annotations

import errno
import os
import re
import socket
from typing import Final

from ramet.core.errors import fail
from ramet.core.resource import REDACTED

# Up to the last `@`: a password that should have been escaped and was not is hidden whole.
_USER: Final = re.compile(r"^([\w+.-]+://[^:@/?#]*):.*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"([?&][^=&]*(?:password|passwd|secret|token)[^=&]*=)[^&]*", re.IGNORECASE)
_WORD: Final = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)


def secret_in(address: str) -> str:
    """The password of a URL as it is written; the whole of what may be one where that is not well formed."""
    found = re.match(r"^[\w+.-]+://[^:@/?#]*:(.+)@", address, re.DOTALL)
    return found[1] if found is not None else "\0"


_REASONS: Final = (
    (socket.gaierror, "the host was not found"),
    (ConnectionRefusedError, "the connection is refused"),
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
    """Why somebody could not be reached, in words."""
    at: BaseException | None = error
    while at is not None and not isinstance(at, OSError):
        at = at.__cause__
    if "WRONG_VERSION_NUMBER" in str(error):
        return "it does not speak TLS"
    for kind, words in _REASONS:
        if isinstance(at, kind):
            return words
    return str(at or error) or type(error).__name__


def secret_from(variable: str | None) -> str | None:
    """The secret that an environment variable holds; None when none was named."""
    if variable is None:
        return None
    value = os.environ.get(variable)
    if value is None:
        raise fail(errno.EACCES, None, f"Permission denied: the environment variable {variable} is not set")
    return value
