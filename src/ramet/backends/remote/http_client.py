"""`HTTPClient`: the HTTP client of all backends. It decides which hosts are contacted, not the server.

Rules that this file keeps:
- Only hosts of the allow-list are asked, first and after every redirect; https never becomes http.
- A name is resolved once, every address is checked, and the connection goes to the checked address, so DNS rebinding
  gains nothing. Private addresses are refused unless allowed.
- Credentials go to the host that they are for, and neither into an error nor into a `repr`.
- Only a GET or HEAD follows redirects: a body is never sent to an address that the caller did not name.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Collection, Container, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from ramet.backends.redacted_urls import unreached
from ramet.core.errors import fail, missing_extra, unavailable
from ramet.core.paths import Path

if TYPE_CHECKING:
    import httpx2

REDIRECTS: Final = 5
REMEMBERED: Final = 60.0
"""Seconds for which the address of a host is used again."""
MISSING: Final = frozenset((404, 410))
REFUSED: Final = frozenset((401, 403, 407, 451))
PASSING: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Answers that may be others when asked again."""
BLOCK: Final = 256 * 1024
IDENTITY: Final = "identity"
GZIP: Final = "gzip"


_WRAPPING: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0:0/96")))
"""IPv6 networks whose last 32 bits are an IPv4 address: translated, compatible."""
_LOCAL: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b:1::/48", "fec0::/10", "5f00::/16", "3fff::/20")))
"""IPv6 networks that are not of the internet, which a Python may take for global."""


def is_public(address: str) -> bool:
    """Whether an address belongs to the internet at large, also when it is wrapped in an IPv6 one."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo and found.teredo[1])
        if inner:
            return is_public(str(inner))
        if any(found in network for network in _WRAPPING):
            return is_public(str(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)))
        if any(found in network for network in _LOCAL):
            return False
    return found.is_global and not found.is_multicast


class HTTPClient:
    """Contacts only `hosts`. One connection pool per event loop."""

    def __init__(
        self,
        hosts: Collection[str],
        *,
        private: bool = False,
        headers: Mapping[str, str] | None = None,
        home: str | Collection[str] = (),
        timeout: float = 30.0,
    ) -> None:
        """`headers` go to the hosts `home` only; `private` allows loopback, link-local and private addresses.

        A host `*.example.org` stands for every host below example.org.
        """
        names = [host.lower().rstrip(".") for host in hosts]
        self._hosts = frozenset(name for name in names if not name.startswith("*."))
        self._below = tuple(name[1:] for name in names if name.startswith("*."))
        self._private = private
        self.headers = dict(headers or {})
        self._home = frozenset(host.lower() for host in ((home,) if isinstance(home, str) else home))
        self._timeout = timeout
        self._addresses: dict[str, tuple[str, float]] = {}
        self._pools: dict[tuple[asyncio.AbstractEventLoop, str], httpx2.AsyncClient] = {}

    # ----------------------------------------------------------------------------------------------- asking

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        url: str,
        *,
        path: Path,
        headers: Mapping[str, str] | None = None,
        secret: Mapping[str, str] | None = None,
        content: bytes | None = None,
        also: Container[int] = (),
    ) -> AsyncIterator[httpx2.Response]:
        """The answer with its body unread, redirects followed; an error unless its status is below 300 or in `also`.

        `secret` are headers of this request for the hosts `home` only.
        """
        import httpx2

        at = httpx2.URL(url)
        for _ in range(REDIRECTS + 1):
            response = await self._send(method, at, path, headers or {}, secret or {}, content)
            try:
                if response.is_redirect and response.headers.get("location"):
                    following = at.join(response.headers["location"])
                    if at.scheme == "https" and following.scheme != "https":
                        raise fail(errno.EACCES, path, f"Permission denied: {at.host} redirects away from https")
                    if method not in ("GET", "HEAD"):
                        raise fail(errno.EIO, path, f"{at.host} redirects a {method}; nothing was changed")
                    at = following.copy_with(fragment=None)
                    continue
                if response.status_code >= 300 and response.status_code not in also:
                    raise refusal(response.status_code, response.headers, at.host, path)
                response.extensions["asked"] = str(at)
                yield response
                return
            finally:
                await response.aclose()
        raise fail(errno.ELOOP, path, f"{at.host} redirects too often")

    def _allows(self, host: str) -> bool:
        return host in self._hosts or host.endswith(self._below)

    async def _send(
        self,
        method: str,
        url: httpx2.URL,
        path: Path,
        headers: Mapping[str, str],
        secret: Mapping[str, str],
        content: bytes | None,
    ) -> httpx2.Response:
        import httpx2

        host = url.host.lower().rstrip(".")
        if url.scheme not in ("http", "https") or not self._allows(host):
            raise fail(errno.EACCES, path, f"Permission denied: {host or url.scheme} is not among the allowed hosts")
        address = await self._address(host, url.port or (443 if url.scheme == "https" else 80), path)
        own = {**self.headers, **secret} if host in self._home else {}
        request = httpx2.Request(
            method,
            url.copy_with(host=address),
            headers={"Host": url.netloc.decode("ascii"), "Accept-Encoding": IDENTITY, **own, **headers},
            content=content,
            # The connection goes to the address; the certificate must still be the host's.
            extensions={"sni_hostname": host, "timeout": httpx2.Timeout(self._timeout).as_dict()},
        )
        try:
            return await self._pool(host).send(request, stream=True, follow_redirects=False)
        except httpx2.HTTPError as error:
            raise self.failure(error, host if url.port is None else f"{host}:{url.port}", path) from None

    async def blocks(self, response: httpx2.Response, path: Path, version: str | None = None) -> AsyncIterator[bytes]:
        """The body as it is sent; a connection that breaks is `Unavailable`, with the version that was read."""
        import httpx2

        try:
            async for block in response.aiter_raw(BLOCK):
                yield block
        except httpx2.HTTPError as error:
            raise self.failure(error, httpx2.URL(response.extensions["asked"]).host, path, version) from None

    async def body(self, response: httpx2.Response, path: Path, most: int) -> bytes:
        """The whole body, inflated if it is gzip; EFBIG beyond `most` bytes, before they are in memory."""
        packed = response.headers.get("content-encoding", IDENTITY).lower()
        if packed not in (IDENTITY, GZIP, ""):
            raise fail(errno.EIO, path, f"the answer has the encoding {packed}, which was not asked for")
        inflater = zlib.decompressobj(31) if packed == GZIP else None
        parts: list[bytes] = []
        size = 0
        try:
            async for block in self.blocks(response, path):
                piece = block if inflater is None else inflater.decompress(block, most - size + 1)
                size += len(piece)
                if size > most:
                    raise fail(errno.EFBIG, path, f"the answer is larger than {most >> 20} MiB")
                parts.append(piece)
        except zlib.error:
            raise unavailable(path, "the compressed answer is damaged") from None
        if inflater is not None and not inflater.eof:
            raise unavailable(path, "the compressed answer ends early")
        return b"".join(parts)

    def failure(self, error: Exception, host: str, path: Path, version: str | None = None) -> OSError:
        """What a broken exchange is to a caller."""
        if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return fail(errno.EACCES, path, f"Permission denied: the certificate of {host} cannot be verified")
        return unreached(path, host, error, version)

    def _pool(self, host: str) -> httpx2.AsyncClient:
        """Connections of one loop to one host: hosts that share an address share no connection."""
        try:
            import httpx2
        except ImportError:
            raise missing_extra("http", "a mount over HTTP") from None

        key = asyncio.get_running_loop(), host
        found = self._pools.get(key)
        if found is None or found.is_closed:
            for other in [other for other in self._pools if other[0].is_closed()]:
                del self._pools[other]
            found = self._pools[key] = httpx2.AsyncClient(trust_env=False, headers={"User-Agent": "ramet"})
        return found

    async def _address(self, host: str, port: int, path: Path) -> str:
        known = self._addresses.get(host)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)  # SOCK_STREAM
        except OSError as error:
            raise unreached(path, host, error) from None
        addresses = [str(entry[4][0]) for entry in found]
        chosen = next((address for address in addresses if self._private or is_public(address)), None)
        if chosen is None:
            raise fail(errno.EACCES, path, f"Permission denied: {host} has a private address (private=True allows it)")
        self._addresses[host] = chosen, time.monotonic() + REMEMBERED
        return chosen

    async def close(self) -> None:
        here = asyncio.get_running_loop()
        pools, self._pools = self._pools, {}
        for (loop, _), pool in pools.items():
            if loop is here:
                await pool.aclose()


def refusal(status: int, headers: Mapping[str, str], host: str, path: Path, said: str = "") -> OSError:
    """What a status of 300 and more is to a caller; `said` is what the service explains, without secrets."""
    words = f"{host} answers {status}" + (f": {said}" if said else "")
    if status in PASSING or is_rate_limit(status, headers):
        error = unavailable(path, words)
        error.wait = wait_of(headers)
        return error
    if status in MISSING:
        return fail(errno.ENOENT, path)
    if status in REFUSED:
        return fail(errno.EACCES, path, f"Permission denied: {words}")
    if status == 412:
        return fail(errno.ESTALE, path)
    if status == 413:
        return fail(errno.EFBIG, path, words)
    return fail(errno.EIO, path, words)


def is_rate_limit(status: int, headers: Mapping[str, str]) -> bool:
    """Whether an answer asks to slow down: some services use 403 for a spent quota."""
    return status == 429 or (
        status == 403 and ("retry-after" in headers or headers.get("x-ratelimit-remaining") == "0")
    )


def wait_of(headers: Mapping[str, str]) -> float:
    """Seconds to wait: `Retry-After` as a number or a date, else the reset of a spent quota."""
    after = headers.get("retry-after", "")
    if after.isascii() and after.isdigit():
        return float(after)
    if after:
        try:
            return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
        except ValueError:
            return 0.0
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isascii() and reset.isdigit():
        return max(0.0, float(reset) - time.time())
    return 0.0
