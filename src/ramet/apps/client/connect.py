"""`connect` without its optional dependencies, which are imported when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore


def connect(url: str, token: str | None = None, *, timeout: float | None = None) -> RemoteStore:
    """Connect to the store of a server at `http(s)://...` or `unix:/path`."""
    from ramet.apps.client import client

    return client.connect(url, token, timeout=timeout)
