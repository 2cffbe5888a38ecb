"""Deliver the change feed to files and webhooks, each event at least once, across crashes.

A sink has a name; the store keeps its cursor under that name, updated after each event.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from ramet.core.errors import RametError
from ramet.network.addresses import is_public
from ramet.network.resolver import Resolver
from ramet.network.targets import BadURL, parse_url
from ramet.network.transport import Transport
from ramet.store.refs.feed import Event, events
from ramet.store.repository import Repository

SIGNATURE: Final = "X-Ramet-Signature-256"
POLL_SECONDS: Final = 1.0


class EventRefused(RametError):
    """The receiver refused this event for good (a 4xx response)."""

    def __init__(self, cause: str) -> None:
        super().__init__("permission_denied", cause, "Look at what the receiver logged.")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.cause,)


class Sink(Protocol):
    async def send(self, event: Event) -> None:
        """Send one event; OSError for a temporary failure, EventRefused for a permanent one."""
        ...


@dataclass
class DeliveryReport:
    """What one delivery did."""

    sent: int = 0
    refused: list[str] = field(default_factory=list)
    """Ids of permanently refused events, with the response."""


class JsonLines:
    """Appends one line per event to a file, synced before the next event."""

    def __init__(self, path: str) -> None:
        self._path = os.path.expanduser(path)

    async def send(self, event: Event) -> None:
        await asyncio.to_thread(self._append, event.encode() + b"\n")

    def _append(self, line: bytes) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
            os.fsync(fd)
        finally:
            os.close(fd)


class Webhook:
    """POSTs each event in structured mode, with retries and backoff; a 4xx response except 429 is final.

    A name must not lead to a private address, unless `private`; an address is what it is. Redirects are not followed.
    With a secret, the body is signed: `X-Ramet-Signature-256: sha256=<hex of HMAC-SHA256>`.
    """

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        private: bool = False,
        timeout: float = 10.0,
        attempts: int = 6,
        first_pause: float = 0.5,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        try:
            if not url.startswith(("http://", "https://")):
                raise BadURL
            self._target = parse_url(url)
        except BadURL:
            raise RametError("invalid_argument", "a webhook has an http or https URL", "give http(s)://...") from None
        self._private = private or self._target.is_address or self._target.host == "localhost"
        self._resolver = Resolver()
        self._transport = Transport("a webhook")
        self._secret, self._timeout = secret, timeout
        self._attempts, self._first, self._sleep = attempts, first_pause, sleep

    async def send(self, event: Event) -> None:
        import httpx2

        body = event.encode()
        headers = {
            "Host": self._target.authority, "User-Agent": "ramet", "Accept": "*/*",
            "content-type": "application/cloudevents+json; charset=utf-8",
        }  # fmt: skip
        if self._target.user is not None:
            given = f"{self._target.user}:{self._target.password or ''}"
            headers["Authorization"] = f"Basic {base64.b64encode(given.encode()).decode()}"
        if self._secret is not None:
            headers[SIGNATURE] = "sha256=" + hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()
        failure = ""
        try:
            for attempt in range(self._attempts):
                if attempt:
                    await self._sleep(self._first * 2 ** (attempt - 1) * (0.5 + random.random() / 2))
                try:
                    answer = await self._post(body, headers)
                except httpx2.HTTPError as error:
                    failure = type(error).__name__
                    continue
                except OSError:
                    failure = "its host was not found"
                    continue
                if answer < 300:
                    return
                if 400 <= answer < 500 and answer not in (408, 429):
                    raise EventRefused(f"the webhook answered {answer}")
                failure = f"the webhook answered {answer}"
        finally:
            await self._transport.close()
        raise ConnectionError(f"{failure}; it was tried {self._attempts} times")

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> int:
        target = self._target
        found = await self._resolver.addresses(target.host, target.port)
        address = next((one for one in found if self._private or is_public(one)), None)
        if address is None:
            raise RametError(
                "permission_denied", f"the webhook's host {target.host} has a private address",
                "Name the address itself, or allow private ones (--private).",
            )  # fmt: skip
        answer = await self._transport.send(
            "POST", target, address, list(headers.items()), body, timeout=self._timeout
        )  # fmt: skip
        await answer.aclose()
        return answer.status_code


async def deliver(repository: Repository, sink: Sink, name: str) -> DeliveryReport:
    """Send all events after the cursor of this sink, which moves after each event."""
    if not name or "/" in name:
        raise RametError("invalid_argument", f"{name!r} cannot name a sink", "use letters and digits")
    key = f"feeds/{name}"
    done = DeliveryReport()
    async for event in pending(repository, await asyncio.to_thread(_cursor, repository, key)):
        try:
            await sink.send(event)
            done.sent += 1
        except EventRefused as refusal:
            done.refused.append(f"{event.id}: {refusal.cause}")
        await asyncio.to_thread(repository.objects.put, key, event.cursor.encode())
    return done


async def pending(repository: Repository, since: str | None) -> AsyncIterator[Event]:
    """Yield the events after a cursor; the store is read in a thread."""
    found = events(repository, since)
    while (event := await asyncio.to_thread(next, found, None)) is not None:
        yield event


async def follow(repository: Repository, since: str | None, poll: float = POLL_SECONDS) -> AsyncIterator[Event]:
    """As `pending`, then poll for new events."""
    while True:
        async for event in pending(repository, since):
            since = event.cursor
            yield event
        await asyncio.sleep(poll)


def _cursor(repository: Repository, key: str) -> str | None:
    try:
        return repository.objects.get(key).decode()
    except (FileNotFoundError, KeyError):
        return None
