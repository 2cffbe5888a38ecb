"""`HTTPClient`: the HTTP client of all backends. It decides which hosts are contacted, not the server.

Rules that this file keeps:
- Only hosts of the allow-list are asked, first and after every redirect; https never becomes http.
- A name is resolved once, every address is checked, and the connection goes to the checked address, so DNS rebinding
  gains nothing. Private addresses are refused unless allowed.
- Credentials go to the host that they are for, and neither into an error nor into a `repr`.
- Only a GET or HEAD follows redirects: a body is never sent to an address that the caller did not name.
"""

from __future__ import annotations

import errno
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Collection, Container, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

from ramet.backends.redacted_urls import unreached
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path
from ramet.network.addresses import is_public
from ramet.network.resolver import Resolver
from ramet.network.rules import NetworkRule, NetworkVerdict, Outgoing
from ramet.network.targets import BadScheme, BadURL, Target, parse_url
from ramet.network.transport import Transport

if TYPE_CHECKING:
    import httpx2

REDIRECTS: Final = 5
MISSING: Final = frozenset((404, 410))
REFUSED: Final = frozenset((401, 403, 407, 451))
PASSING: Final = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Answers that may be others when asked again."""
BLOCK: Final = 256 * 1024
AGENT: Final = "ramet"
IDENTITY: Final = "identity"
GZIP: Final = "gzip"


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

        Hosts are written as in a network policy (`network.rules`): `*.example.org` stands for every host below it.
        """
        self._rules = tuple(NetworkRule.parse(NetworkVerdict.ALLOW, host) for host in hosts)
        self._private = private
        self.headers = dict(headers or {})
        self._home = frozenset(host.lower() for host in ((home,) if isinstance(home, str) else home))
        self._timeout = timeout
        self.resolver = Resolver()
        self._transport = Transport()

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
        at = _target(url, path)
        for _ in range(REDIRECTS + 1):
            response = await self._send(method, at, path, headers or {}, secret or {}, content)
            try:
                if response.is_redirect and response.headers.get("location"):
                    following = _target(response.headers["location"], path, at)
                    if at.scheme == "https" and following.scheme != "https":
                        raise fail(errno.EACCES, path, f"Permission denied: {at.host} redirects away from https")
                    if method not in ("GET", "HEAD"):
                        raise fail(errno.EIO, path, f"{at.host} redirects a {method}; nothing was changed")
                    at = following
                    continue
                if response.status_code >= 300 and response.status_code not in also:
                    raise refusal(response.status_code, response.headers, at.host, path)
                response.extensions["asked"] = at.url
                yield response
                return
            finally:
                await response.aclose()
        raise fail(errno.ELOOP, path, f"{at.host} redirects too often")

    def _allows(self, method: str, target: Target) -> bool:
        return any(rule.matches(Outgoing(method, target)) for rule in self._rules)

    async def _send(
        self,
        method: str,
        target: Target,
        path: Path,
        headers: Mapping[str, str],
        secret: Mapping[str, str],
        content: bytes | None,
    ) -> httpx2.Response:
        if not self._allows(method, target):
            raise fail(errno.EACCES, path, f"Permission denied: {target.host} is not among the allowed hosts")
        address = await self._address(target, path)
        own = {**self.headers, **secret} if target.host in self._home else {}
        sent = {"Host": target.authority, "User-Agent": AGENT, "Accept-Encoding": IDENTITY, **own, **headers}
        try:
            return await self._transport.send(
                method, target, address, list(sent.items()), content, timeout=self._timeout
            )  # fmt: skip
        except OSError as error:
            raise self.failure(error, target.authority, path) from None
        except Exception as error:
            import httpx2

            if not isinstance(error, httpx2.HTTPError):
                raise
            raise self.failure(error, target.authority, path) from None

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

    async def _address(self, target: Target, path: Path) -> str:
        try:
            found = await self.resolver.addresses(target.host, target.port)
        except OSError as error:
            raise unreached(path, target.host, error) from None
        chosen = next((address for address in found if self._private or is_public(address)), None)
        if chosen is None:
            why = f"{target.host} has a private address (private=True allows it)"
            raise fail(errno.EACCES, path, f"Permission denied: {why}")
        return chosen

    async def close(self) -> None:
        await self._transport.close()


def _target(url: str, path: Path, seen_from: Target | None = None) -> Target:
    """Read a URL, or a `Location` as seen from another."""
    url = url.strip().replace(" ", "%20")
    try:
        return parse_url(url).bare() if seen_from is None else seen_from.join(url).bare()
    except BadScheme as error:
        raise fail(errno.EACCES, path, f"Permission denied: {error.scheme} is not among the allowed hosts") from None
    except BadURL as error:
        raise fail(errno.EACCES, path, f"Permission denied: the address cannot be read: {error}") from None


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
