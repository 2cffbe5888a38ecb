"""Authentication of services: tokens by value, by variable, from a function, or by a refresh grant.

Rules that this file keeps:
- Requests that are refused together wait for one renewal: a token is renewed once.
- A token whose end is known is renewed `EARLY` seconds before it.
- Every secret that was used is in `secrets`, so that no message shows it.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import inspect
import json
import logging
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

from ramet.backends.remote.http_client import HTTPClient, refusal
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.paths import ROOT
from ramet.core.resource import REDACTED

EARLY: Final = 60.0
"""Seconds before its end at which a token is renewed."""
LARGEST_GRANT: Final = 1 << 20
"""Bytes of an answer to a refresh."""


@dataclass(frozen=True, repr=False)
class ServiceToken:
    """A token, when it ends, and other secrets that it was made from."""

    value: str
    ends: float | None = None
    """Seconds since the epoch; None if it is not known."""
    secrets: tuple[str, ...] = ()


Found = str | ServiceToken | None
TokenSource = Callable[[], Found | Awaitable[Found]]
"""Returns the token to use now. It is called again when that has ended, or when the service has refused it."""


class TokenAuth:
    """An `Authorization` header from a token. `scheme` is empty for services that want the bare token."""

    def __init__(
        self, source: TokenSource, scheme: str | Callable[[str], str] = "Bearer", clock: Callable[[], float] = time.time
    ) -> None:
        self._source, self._clock = source, clock
        self._scheme = scheme if callable(scheme) else lambda token: scheme
        self._token: ServiceToken | None = None
        self._known = False
        self._used: deque[str] = deque(maxlen=16)
        self._renewal = LoopLocal(asyncio.Lock)

    async def headers(self) -> Mapping[str, str]:
        async with self._renewal.get():
            ends = None if self._token is None else self._token.ends
            if not self._known or (ends is not None and self._clock() >= ends - EARLY):
                await self._load()
            return self._header()

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """After a refusal of these headers: whether there are others to try now."""
        async with self._renewal.get():
            if self._header() == refused:
                await self._load()
            return self._header() != refused

    async def _load(self) -> None:
        answer = self._source()
        found = await answer if inspect.isawaitable(answer) else answer
        self._token = ServiceToken(found) if isinstance(found, str) else found
        self._known = True
        if self._token is not None:
            self._used.extend(one for one in (self._token.value, *self._token.secrets) if one not in self._used)

    def _header(self) -> Mapping[str, str]:
        if self._token is None:
            return {}
        return {"Authorization": f"{self._scheme(self._token.value)} {self._token.value}".lstrip()}

    async def close(self) -> None:
        close = getattr(self._source, "close", None)
        if close is not None:
            await close()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may contain."""
        return tuple(one for one in self._used if one)


class PathToken(TokenAuth):
    """A token that stands in the addresses of requests, not in a header. The client's log shows no such address."""

    def _header(self) -> Mapping[str, str]:
        return {}

    async def value(self) -> str | None:
        """The token to use now."""
        await self.headers()
        if self._token is None:
            return None
        _HIDDEN.secrets.add(self._token.value)
        logging.getLogger("httpx2").addFilter(_HIDDEN)
        return self._token.value


class _HiddenFromLogs(logging.Filter):
    """Replaces tokens in the addresses that the HTTP client logs."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        for secret in self.secrets:
            if secret in message:
                message = message.replace(secret, REDACTED)
                record.msg, record.args = message, ()
        return True


_HIDDEN: Final = _HiddenFromLogs()


def basic(user: Callable[[], str | None], password: Callable[[], str | None]) -> TokenSource:
    """A user and a password, for `TokenAuth(..., "Basic")`."""

    def source() -> ServiceToken | None:
        name, secret = user(), password()
        if name is None or secret is None:
            return None
        return ServiceToken(base64.b64encode(f"{name}:{secret}".encode()).decode(), secrets=(secret,))

    return source


class RefreshGrant:
    """Tokens by OAuth's refresh grant, as a source for `TokenAuth`.

    A service that answers with another refresh token gets that one the next time; it lives as long as this object.
    """

    def __init__(
        self,
        url: str,
        secret: Callable[[], str | None],
        form: Mapping[str, str | None],
        *,
        private: bool = False,
        timeout: float = 30.0,
    ) -> None:
        """`secret` returns the refresh token; `form` are further fields, such as client_id and client_secret."""
        self._url, self._secret = url, secret
        self._host = urlsplit(url).hostname or ""
        self._client = HTTPClient((self._host,), private=private, timeout=timeout)
        self._form = {name: value for name, value in form.items() if value is not None}
        self._rotated: str | None = None

    async def __call__(self) -> ServiceToken | None:
        refresh = self._rotated or self._secret()
        if refresh is None:
            return None
        body = urlencode({"grant_type": "refresh_token", "refresh_token": refresh, **self._form}).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        asked = time.time()
        async with self._client.ask(
            "POST", self._url, path=ROOT, headers=headers, content=body, also=range(400, 600)
        ) as response:
            content = await self._client.body(response, ROOT, LARGEST_GRANT)
            status, answered = response.status_code, response.headers
        said = _object(content)
        if status in (400, 401):
            word = str(said.get("error", ""))
            shown = f": {word}" if re.fullmatch(r"[a-z_]{1,60}", word) else ""
            raise fail(errno.EACCES, ROOT, f"Permission denied: the refresh token is refused{shown}; sign in again")
        if status >= 300:
            raise refusal(status, answered, self._host, ROOT)
        value, lasts = said.get("access_token"), said.get("expires_in")
        if not isinstance(value, str) or not value:
            raise fail(errno.EIO, ROOT, "the answer to the refresh holds no access token")
        rotated = said.get("refresh_token")
        self._rotated = rotated if isinstance(rotated, str) and rotated else self._rotated
        ends = asked + float(lasts) if isinstance(lasts, int | float) else None
        hidden = [given for name, given in self._form.items() if "secret" in name]
        return ServiceToken(value, ends, (refresh, *hidden))

    async def close(self) -> None:
        await self._client.close()


def _object(content: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
