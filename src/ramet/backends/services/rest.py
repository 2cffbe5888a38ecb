"""`Rest`: requests to the API of a service, with conditional GETs and one error table.

Rules that this file keeps:
- Equal GETs at the same time are one request; an answer with an ETag is asked for again with If-None-Match.
- A request that changes something raises `Unavailable` only if it was certainly not carried out, so that repeating it
  is safe. When its answer is lost, the error says that it may have happened, and nothing is sent again.
- The words of the service are part of an error, shortened and without secrets.
- A refused token is renewed once; the request that was refused is then sent again.
- At most `concurrency` requests wait for an answer at a time; a content that is being read is not counted.
"""

from __future__ import annotations

import asyncio
import errno
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from ramet.backends.remote.http_client import GZIP, HTTPClient, is_rate_limit, refusal
from ramet.backends.services.auth import TokenAuth
from ramet.backends.services.bounds import Bounds
from ramet.backends.services.config import ServiceConfig
from ramet.core.errors import Unavailable, fail, unavailable
from ramet.core.paths import Path
from ramet.core.resource import REDACTED
from ramet.core.streams import closing

LARGEST_ANSWER: Final = 32 << 20
"""Bytes of one answer that is held in memory."""
REMEMBERED: Final = 32 << 20
"""Bytes of answers that are kept for conditional requests."""
WORDS: Final = 200
"""Characters of a service's explanation that an error shows."""
ATTEMPTS: Final = 4
PATIENCE: Final = 60.0
"""Seconds that `patiently` waits in all."""

T = TypeVar("T")
Params = Mapping[str, str | int | None]


@dataclass(frozen=True)
class Answer:
    """A whole answer of a service."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    path: Path

    def json(self) -> Any:
        try:
            return json.loads(self.body) if self.body else None
        except ValueError:
            raise fail(errno.EIO, self.path, "the service answers with something that is not JSON") from None


class TokenRefused(PermissionError):
    """The service does not accept the token; another one may do."""


def token_refused(path: Path, words: str) -> TokenRefused:
    return TokenRefused(errno.EACCES, f"Permission denied: {words}", path)


Judge = Callable[[Answer], OSError | None]
"""Finds an error that the status of an answer does not tell; None leaves it to the status."""
Explain = Callable[[Any], str]
"""Finds the service's words in the JSON of a refusal."""


class Rest:
    def __init__(
        self,
        client: HTTPClient,
        base: str,
        auth: TokenAuth,
        *,
        headers: Mapping[str, str] | None = None,
        judge: Judge = lambda answer: None,
        explain: Explain = lambda found: "",
        bounds: Bounds | None = None,
    ) -> None:
        self._client, self._base, self.auth = client, base.rstrip("/"), auth
        self._bounds = bounds or Bounds(8)
        self._headers = {"Accept": "application/json", "Accept-Encoding": GZIP, **(headers or {})}
        self._judge, self._explain = judge, explain
        self._host = urlsplit(base).hostname or ""
        self._kept: OrderedDict[tuple[str, str], Answer] = OrderedDict()
        self._kept_bytes = 0
        self._flights: dict[tuple[asyncio.AbstractEventLoop, str, str], asyncio.Task[Answer]] = {}

    @classmethod
    def of(
        cls,
        config: ServiceConfig,
        auth: TokenAuth,
        *,
        home: Sequence[str] = (),
        signed: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        judge: Judge = lambda answer: None,
        explain: Explain = lambda found: "",
    ) -> Rest:
        """The client of a service. Hosts of `home` get the token too; those of `signed` are read without it."""
        homes = (config.host, *home)
        client = HTTPClient((*homes, *signed), private=config.private, home=homes, timeout=config.timeout)
        return cls(
            client, config.base_url, auth, headers=headers, judge=judge, explain=explain, bounds=config.bounds
        )  # fmt: skip

    def url(self, address: str, params: Params | None = None) -> str:
        """The URL of an address below the base; a whole URL, as pagers find it, keeps only its path and query."""
        if not address:
            return self._base
        if not address.startswith("/"):
            parts, base = urlsplit(address), urlsplit(self._base)
            return f"{base.scheme}://{base.netloc}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        given = urlencode({name: value for name, value in (params or {}).items() if value is not None})
        return self._base + address + (("&" if "?" in address else "?") + given if given else "")

    # ---------------------------------------------------------------------------------------------- reading

    async def get(
        self, address: str, *, path: Path, params: Params | None = None, accept: str = "", missing: str = ""
    ) -> Answer:
        """The answer to a GET; `missing` explains a 404."""
        url = self.url(address, params)
        key = asyncio.get_running_loop(), url, accept
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.ensure_future(self._get(url, accept, path, missing))
            flight.add_done_callback(lambda done: self._end_flight(key, done))
        return await asyncio.shield(flight)

    def _end_flight(self, key: tuple[asyncio.AbstractEventLoop, str, str], flight: asyncio.Task[Answer]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # all callers may have gone

    async def _get(self, url: str, accept: str, path: Path, missing: str) -> Answer:
        known = self._kept.get((url, accept))
        headers = {"Accept": accept} if accept else {}
        if known is not None:
            headers["If-None-Match"] = known.headers["etag"]
        answer = await self._exchange("GET", url, path, headers, None, missing)
        if answer.status == 304 and known is not None:
            self._kept.move_to_end((url, accept))
            return known
        self._keep((url, accept), answer)
        return answer

    def _keep(self, key: tuple[str, str], answer: Answer) -> None:
        old = self._kept.pop(key, None)
        self._kept_bytes -= 0 if old is None else len(old.body)
        if answer.headers.get("etag") and len(answer.body) <= REMEMBERED // 4:
            self._kept[key] = answer
            self._kept_bytes += len(answer.body)
            while self._kept_bytes > REMEMBERED:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1].body)

    async def stream(
        self, address: str, *, path: Path, accept: str = "", missing: str = "", start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        """The content at an address, block by block, of which a part may do; redirects to signed links get no token."""
        async with closing(self._blocks(self.url(address), path, accept, missing, start, stop)) as blocks:
            async for block in blocks:
                yield block

    async def download(self, url: str, *, path: Path) -> AsyncIterator[bytes]:
        """The content at a URL that the service gave, which may be on another of its hosts."""
        async with closing(self._blocks(url, path, "*/*", "")) as blocks:
            async for block in blocks:
                yield block

    async def _blocks(
        self, url: str, path: Path, accept: str, missing: str, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        headers = {**self._headers, "Accept-Encoding": "identity", **({"Accept": accept} if accept else {})}
        if stop is not None and stop <= start:
            return
        if start or stop is not None:
            headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        for attempt in (1, 2):
            secret = await self.auth.headers()
            async with AsyncExitStack() as stack:
                async with self._bounds.turn():
                    response = await stack.enter_async_context(
                        self._client.ask("GET", url, path=path, headers=headers, secret=secret, also=range(300, 600))
                    )
                if response.status_code == 416 and "Range" in headers:
                    return
                if response.status_code >= 300:
                    body = await self._client.body(response, path, LARGEST_ANSWER)
                    answer = Answer(response.status_code, dict(response.headers.items()), body, path)
                    error = self._error(answer, missing)
                    if isinstance(error, TokenRefused) and attempt == 1 and await self.auth.renew(secret):
                        continue
                    raise error or fail(errno.EIO, path)
                blocks = await stack.enter_async_context(closing(self._client.blocks(response, path)))
                at = start if response.status_code == 206 else 0
                async for block in blocks:
                    end = at + len(block)
                    if at >= start and (stop is None or end <= stop):
                        yield block
                    elif end > start:  # the service does not know ranges
                        yield block[max(0, start - at) : None if stop is None else max(0, stop - at)]
                    at = end
                    if stop is not None and at >= stop:
                        return
                return

    # --------------------------------------------------------------------------------------------- changing

    async def send(
        self,
        method: str,
        address: str,
        *,
        path: Path,
        json_body: Any = None,
        form: Params | None = None,
        content: bytes | None = None,
        reads: bool = False,
        repeatable: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request with a body. `reads`: it changes nothing; `repeatable`: done twice it is as done once."""
        given = dict(headers or {})
        if form is not None:
            content = urlencode({name: value for name, value in form.items() if value is not None}).encode()
            given["Content-Type"] = "application/x-www-form-urlencoded"
        elif json_body is not None:
            content = json.dumps(json_body).encode()
            given["Content-Type"] = "application/json"
        try:
            return await self._exchange(method, self.url(address), path, given, content or b"", "")
        except Unavailable as error:
            if reads or repeatable or error.absent or error.wait:
                raise
            words = f"{error.strerror}; the change may have been made: look before you send it again"
            raise fail(errno.EIO, path, words) from None

    async def upload(self, url: str, content: bytes, *, path: Path) -> None:
        """Send a content to a URL that the service gave for it; what becomes of it is decided by a later request."""
        async with (
            self._bounds.turn(),
            self._client.ask("POST", url, path=path, content=content, headers=self._headers),
        ):
            return

    async def put(self, url: str, content: bytes, *, path: Path, headers: Mapping[str, str]) -> Answer:
        """Send a part of a content to a URL that the service gave for it; 308 asks for the next part."""
        return await self._exchange("PUT", self.url(url), path, headers, content, "", passing=(308,))

    async def _exchange(
        self,
        method: str,
        url: str,
        path: Path,
        headers: Mapping[str, str],
        content: bytes | None,
        missing: str,
        passing: Container[int] = (),
    ) -> Answer:
        for attempt in (1, 2):
            secret = await self.auth.headers()
            async with (
                self._bounds.turn(),
                self._client.ask(
                    method, url, path=path, headers={**self._headers, **headers}, secret=secret, content=content,
                    also=range(300, 600),
                ) as response,
            ):  # fmt: skip
                body = await self._client.body(response, path, LARGEST_ANSWER)
                answer = Answer(response.status_code, dict(response.headers.items()), body, path)
            if answer.status in passing or (answer.status == 304 and "If-None-Match" in headers):
                return answer
            error = self._error(answer, missing)
            if error is None:
                return answer
            if not isinstance(error, TokenRefused) or attempt == 2 or not await self.auth.renew(secret):
                raise error
        raise AssertionError("the second attempt returns or raises")

    def _error(self, answer: Answer, missing: str) -> OSError | None:
        error = self._judge(answer)
        if error is None and answer.status >= 300:
            error = self._refused(answer, missing)
        if error is not None:
            error.strerror = self.redacted(error.strerror or "")
        return error

    def _refused(self, answer: Answer, missing: str) -> OSError:
        try:
            said = self._explain(json.loads(answer.body)) if answer.body else ""
        except ValueError:
            said = ""
        said = self.redacted(" ".join(said.split())[:WORDS])
        if answer.status == 401:
            words = f"{self._host} refuses the token"
            return token_refused(answer.path, f"{words}: {said}" if said else words)
        if answer.status in (404, 410) and missing:
            return fail(errno.ENOENT, answer.path, missing)
        error = refusal(answer.status, answer.headers, self._host, answer.path, said)
        if is_rate_limit(answer.status, answer.headers):
            assert isinstance(error, Unavailable)
            return rate_limited(answer.path, self._host, error.wait)
        return error

    def redacted(self, text: str) -> str:
        for secret in self.auth.secrets:
            text = text.replace(secret, REDACTED)
        return text

    async def close(self) -> None:
        for flight in tuple(self._flights.values()):
            flight.cancel()
        await self.auth.close()
        await self._client.close()


def rate_limited(path: Path, host: str, wait: float) -> Unavailable:
    """The error for a spent quota: nothing was carried out, and it says when to ask again."""
    until = time.strftime("%H:%M:%S", time.gmtime(time.time() + wait))
    words = f"{host} limits the rate of requests" + (f" until {until} UTC" if wait else "")
    error = unavailable(path, words)
    error.wait = wait or 1.0
    return error


async def patiently(act: Callable[[], Awaitable[T]], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> T:
    """Repeat what failed with `Unavailable`: for powers, which no retrying layer surrounds."""
    waited = 0.0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await act()
        except Unavailable as error:
            pause = max(error.wait, 0.2 * 2.0**attempt)
            if attempt == ATTEMPTS or waited + pause > PATIENCE:
                raise
            waited += pause
        await sleep(pause)
    raise AssertionError("the last attempt returns or raises")
