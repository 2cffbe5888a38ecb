"""`Transport`: HTTP exchanges with an address that the caller has checked, over one pool per loop, host and trust.

The connection goes to the address; Host header and certificate are those of the name. Nothing of the environment
counts: no proxy, no `.netrc`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from ramet.core.errors import missing_extra
from ramet.network.targets import Target

if TYPE_CHECKING:
    import httpx2

Body = bytes | AsyncIterator[bytes] | None
Dial = Callable[[int], Awaitable[socket.socket]]
"""Connects to a port of the workspace's own loopback."""
MOST_POOLS: Final = 64
"""Hosts to which connections are kept; beyond that the ones unused for longest are closed."""


class Transport:
    """Call `send` for each hop, and `close` at the end."""

    def __init__(self, needed_for: str = "a mount over HTTP", authorities: str = "") -> None:
        """`authorities` are certificates (PEM) that are trusted besides the machine's."""
        self._needed_for, self._authorities = needed_for, authorities
        self._pools: dict[tuple[asyncio.AbstractEventLoop, str, bool, str, bool], httpx2.AsyncClient] = {}

    async def send(
        self,
        method: str,
        target: Target,
        address: str,
        headers: Sequence[tuple[str, str]],
        body: Body = None,
        *,
        request_line: str | None = None,
        timeout: float | None = 30.0,
        connect_timeout: float | None = None,
        verify: bool = True,
        authorities: str | None = None,
        exact: bool = False,
        dial: Dial | None = None,
        trace: Callable[[str, dict[str, Any]], Awaitable[None]] | None = None,
    ) -> httpx2.Response:
        """The answer with its body unread, and no redirect followed.

        The size of a body is added to `headers`, unless they are `exact`. `dial` replaces the address.
        """
        pool = await self._pool(target.host, verify, authorities, dial)
        import httpx2

        line = target.request_line if request_line is None else request_line
        waits = httpx2.Timeout(timeout, connect=connect_timeout or timeout, pool=None)
        request = httpx2.Request(
            method,
            httpx2.URL(scheme=target.scheme, host=address, port=target.port, raw_path=line.encode()),
            headers=[(name.encode(), _header(text)) for name, text in headers],
            content=body,
            extensions={
                "sni_hostname": target.host,
                "target": line.encode(),
                "timeout": waits.as_dict(),
                **({} if trace is None else {"trace": trace}),
            },
        )
        if exact:
            request.headers = httpx2.Headers([(name.encode(), _header(text)) for name, text in headers])
        return await pool.send(request, stream=True, follow_redirects=False)

    async def _pool(self, host: str, verify: bool, authorities: str | None, dial: Dial | None) -> httpx2.AsyncClient:
        """Connections of one loop to one host: hosts that share an address share no connection."""
        try:
            import httpx2
        except ImportError:
            raise missing_extra("http", self._needed_for) from None

        key = asyncio.get_running_loop(), host, verify, authorities or "", dial is not None
        found = self._pools.get(key)
        if found is None or found.is_closed:
            only, more = (authorities, "") if verify and authorities is not None else (None, self._authorities)
            trust = await asyncio.to_thread(_trust, verify, only, more)
            await self._make_room()
            options: dict[str, Any] = {"trust_env": False, "headers": {"User-Agent": "ramet"}}
            if dial is None:
                options["verify"] = trust
            else:
                from ramet.network.inside import InsideTransport

                options["transport"] = InsideTransport(dial, trust)
            found = self._pools.get(key)
            if found is None or found.is_closed:  # another request may have been faster
                found = httpx2.AsyncClient(**options)
        self._pools.pop(key, None)
        self._pools[key] = found  # the last is the one used last
        return found

    async def _make_room(self) -> None:
        """Close the pools that were unused for longest, when there are many."""
        here = asyncio.get_running_loop()
        for key, pool in list(self._pools.items()):  # loops of other threads come and go meanwhile
            if key[0].is_closed():
                self._pools.pop(key, None)
            elif key[0] is here and len(self._pools) >= MOST_POOLS and _is_idle(pool):
                self._pools.pop(key, None)
                await pool.aclose()

    async def close(self) -> None:
        here = asyncio.get_running_loop()
        pools, self._pools = self._pools, {}
        for (loop, *_), pool in pools.items():
            if loop is here:
                await pool.aclose()


@lru_cache(maxsize=16)
def _trust(verify: bool, authorities: str | None, more: str) -> ssl.SSLContext:
    """Whom a client trusts: `authorities` only, or the machine's and `more` (PEM). Reading them takes a while."""
    import httpx2

    if authorities is not None:
        return ssl.create_default_context(cadata=authorities)
    made = httpx2.create_ssl_context(verify=verify, trust_env=False)
    if verify and more:
        made.load_verify_locations(cadata=more)
    return made


def _is_idle(pool: httpx2.AsyncClient) -> bool:
    transport = pool._transport
    connections = getattr(getattr(transport, "_pool", None), "connections", ())
    return all(connection.is_idle() or connection.is_closed() for connection in connections)


def _header(text: str) -> bytes:
    """Header text as bytes: what came in as bytes goes out as the same bytes."""
    return text.encode("utf-8", "surrogateescape")
