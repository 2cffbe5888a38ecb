"""`Links`: one-time codes for tokens, that travel in the place of them."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import Final

LINK_SECONDS: Final = 600.0
LINKS: Final = 1000
"""Unused links kept; the oldest is dropped for a new one."""


class Links:
    """One-time codes for tokens, valid until used or expired."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: dict[bytes, tuple[str, float]] = {}

    def make(self, token: str) -> str:
        code = secrets.token_urlsafe(32)
        while len(self._made) >= LINKS:
            del self._made[next(iter(self._made))]
        self._made[_digest(code.encode())] = token, self._clock() + LINK_SECONDS
        return code

    def redeem(self, code: bytes) -> str | None:
        """Return the token of a code once. The lookup is by digest, so that timing reveals nothing."""
        token, until = self._made.pop(_digest(code), ("", 0.0))
        return token if token and self._clock() <= until else None


def _digest(code: bytes) -> bytes:
    return hashlib.sha256(code).digest()
