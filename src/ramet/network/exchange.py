"""What a client asks the door for, what it gets back, and what is recorded of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ramet.network.credentials import Headers
from ramet.network.relay import Connection


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    client: str
    session_id: str = ""
    agent_id: str = ""


@dataclass(frozen=True)
class Waits:
    """How long a client waits, and whom it trusts."""

    connect: float | None = None
    silence: float | None = 300.0
    """Seconds without a byte."""
    verify: bool = True
    authorities: str | None = None
    """Certificates (PEM) to trust instead of the machine's."""


@dataclass
class Marks:
    """Seconds since the beginning of the request."""

    connected: float = 0.0
    secured: float = 0.0
    began: float = 0.0
    """When the first byte of the answer came."""


@dataclass
class Progress:
    """What is known of a request so far."""

    rule: str = ""
    address: str = ""
    status: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    error: str = ""


class Switched(Protocol):
    """A connection that speaks another protocol from here on."""

    async def relay(self, first: bytes, client: Connection) -> None:
        """Copy in both directions until one has ended; `first` was read from the client already."""
        ...


@dataclass
class Exchange:
    """An answer whose body is unread. `headers` and `blocks` have no secret of Ramet in them."""

    status: int
    reason: str
    version: str
    headers: Headers
    address: str
    marks: Marks
    blocks: AsyncIterator[bytes] = field(repr=False)
    switched: Switched | None = field(default=None, repr=False)
    """The connection, after the server has changed its protocol (101)."""

    def header(self, name: str) -> str | None:
        """The last header of a name."""
        found = [text for given, text in self.headers if given.lower() == name]
        return found[-1] if found else None


class NetworkRecord(NamedTuple):
    """One decision, and the request that followed. The path has no query, and nothing has a secret."""

    at: float
    session_id: str
    agent_id: str
    client: str
    """What asked: `curl`, `wget`, `native`."""
    method: str
    scheme: str
    host: str
    port: int
    path: str
    verdict: str
    """`allow` or `deny`; a question is what it was answered."""
    rule: str
    """The rule that decided; empty where none did."""
    address: str
    status: int
    """0 without an answer."""
    bytes_sent: int
    bytes_received: int
    seconds: float
    error: str
