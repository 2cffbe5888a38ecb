"""`Resolver`: the addresses of a name, looked up once for a while, so that the address checked is the one used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

REMEMBERED: Final = 60.0
"""Seconds for which the addresses of a name are used again."""
MOST_NAMES: Final = 1024

Lookup = Callable[[str, int], Awaitable[list[str]]]


async def system_lookup(host: str, port: int) -> list[str]:
    """Ask the resolver of the machine; OSError for an unknown name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)  # SOCK_STREAM
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Resolver:
    """Looks names up. It checks nothing: who connects checks each address at each request."""

    def __init__(self, lookup: Lookup = system_lookup, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup, self._clock = lookup, clock
        self._known: dict[str, tuple[list[str], float]] = {}

    async def addresses(self, host: str, port: int) -> list[str]:
        known = self._known.get(host)
        if known is not None and self._clock() < known[1]:
            return known[0]
        found = await self._lookup(host, port)
        if len(self._known) >= MOST_NAMES:
            self._known.clear()
        self._known[host] = found, self._clock() + REMEMBERED
        return found
