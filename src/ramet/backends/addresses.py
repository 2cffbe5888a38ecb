"""Addresses of services as they may be shown: without what opens them, also where they are not well formed."""

from __future__ import annotations

import re
from typing import Final

from ramet.core.resource import REDACTED

# Up to the last `@`: a password that should have been escaped and was not is hidden whole.
_USER: Final = re.compile(r"^([\w+.-]+://[^:@/?#]*):.*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"([?&][^=&]*(?:password|passwd|secret|token)[^=&]*=)[^&]*", re.IGNORECASE)
_WORD: Final = re.compile(r"(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)", re.IGNORECASE)


def without_password(address: str) -> str:
    """A URL, or `key=value` words as PostgreSQL takes them."""
    if "://" not in address:
        return _WORD.sub(rf"\1{REDACTED}", address)
    return _PARAMETER.sub(rf"\1{REDACTED}", _USER.sub(rf"\1:{REDACTED}@", address))
