"""`ServerSettings`: all settings of a server."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ramet.core.errors import RametError
from ramet.core.resource import Resource
from ramet.network.network import Network
from ramet.workspace.config import Config
from ramet.workspace.mounts import MountForm

MIB = 1 << 20
Durable = Literal["answer", "timer", "close"]


@dataclass(frozen=True)
class Bounds:
    """Limits of one client, and of the server's memory."""

    header_bytes: int = 64 * 1024
    """Size of the head of a request, and of its trailers; larger ones are answered with 431."""
    headers: int = 100
    """Headers of a request."""
    head_seconds: float = 10.0
    """Seconds in which a whole head must arrive, from the connection or the first byte on."""
    connections: int = 2048
    """Connections of all clients."""
    peer_connections: int = 512
    """Connections from one address, which is that of a proxy where one is in front."""
    command_seconds: float = 600.0
    """Seconds after which a command ends whose request names no timeout."""
    concurrency: int = 64
    """Concurrent requests per client; more are refused at once."""
    rate: float = 0.0
    """Sustained requests per second and client; 0 sets no limit."""
    burst: int = 200
    """Requests that a client may send in a burst above `rate`."""
    json_bytes: int = 16 * MIB
    """Largest JSON body in bytes."""
    upload_bytes: int = 64 << 30
    """Largest uploaded file or snapshot in bytes."""
    output_bytes: int = 16 * MIB
    """Largest stdout, and stderr, of a buffered response in bytes."""
    workspaces: int = 256
    """Workspaces open at once."""
    sessions: int = 1024
    """Sessions per workspace."""
    jobs: int = 256
    """Detached commands per workspace, including ended ones that are remembered."""
    frame_bytes: int = MIB
    """Largest message of a WebSocket in bytes."""
    terminals: int = 64
    """Terminals of people that are open at once."""
    terminal_idle_seconds: float = 3600.0
    """Seconds after which a terminal in which nothing is typed is closed, and its command ended."""
    ports: int = 512
    """Requests and WebSockets to programs of workspaces that are open at once."""
    port_head_seconds: float = 300.0
    """Seconds in which a program must begin its answer to a request that is passed on to it."""
    port_idle_seconds: float = 3600.0
    """Seconds without a byte after which an answer or a WebSocket of a program is ended."""
    events: int = 10_000
    """Events kept for clients that reconnect."""
    keys: int = 10_000
    """Idempotency keys kept in memory."""
    key_seconds: float = 86_400.0


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server. An empty `token` trusts the connection, which is allowed on a unix socket only."""

    token: str = ""
    principals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Principals by token; the store's grants decide their access."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Accepted Host headers, without port. `*` accepts all."""
    durable: Durable = "answer"
    """When to commit a request's changes: before the response, on a timer, or when the workspace closes."""
    every: float = 5.0
    """Seconds between commits with `timer`."""
    idle: float = 600.0
    """Seconds after which an idle workspace is committed and closed, and its lease released."""
    wait: float = 10.0
    """Seconds to wait for a workspace that is in use."""
    answer_seconds: float = 300.0
    """Seconds that a command waits for the answer to a question of an `ask` rule; then the rule denies it."""
    bounds: Bounds = field(default_factory=Bounds)
    push_to: tuple[str, ...] = ()
    """URL prefixes that clients may push to; none by default."""
    mounts: Mapping[str, Mapping[str, MountForm]] = field(default_factory=dict)
    """Mounts that workspaces get from this server: `{"name": {"/data": DiskResource(...)}}`; `*` names all."""
    resources: Mapping[str, Mapping[str, Resource]] = field(default_factory=dict)
    """Resources for mounts that were saved without credentials, by workspace and prefix."""
    configs: Mapping[str, Config] = field(default_factory=dict)
    """Configurations by workspace name; `*` is the default."""
    native: bool = False
    """Whether workspaces that were created native run real programs on this machine."""
    network: Network | None = None
    """What commands may reach, in workspaces whose configuration says nothing about it; None for nothing."""
    tune_gc: bool = False
    """Collect garbage between requests instead of during them. Process-wide: only for a dedicated process."""


def read_principals(file: str | Path) -> dict[str, str]:
    """Read principals by token from a file with lines `PRINCIPAL TOKEN`; refuse a file that others can read."""
    path = Path(file).expanduser()
    with open(path) as found:
        if os.fstat(found.fileno()).st_mode & 0o077:
            raise RametError("invalid_config", f"others can read the tokens in {path}", f"chmod 600 {path}")
        lines = [line.split() for line in found if line.strip() and not line.startswith("#")]
    if any(len(line) != 2 or len(line[1]) < 16 for line in lines):
        raise RametError(
            "invalid_config",
            f"cannot parse a line of {path}",
            "write `NAME TOKEN`, with a token of 16 or more characters",
        )
    if own := next((line[0] for line in lines if line[0].startswith("@")), None):
        raise RametError("invalid_config", f"a principal cannot be called {own!r}", "begin it with another character")
    return {token: principal for principal, token in lines}


def read_token(file: str | Path) -> str:
    """Read the token in a file, created (mode 0600) if missing; refuse a file that others can read."""
    path = Path(file).expanduser()
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        token = secrets.token_urlsafe(32)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w") as new:
            new.write(token + "\n")
        return token
    with os.fdopen(handle) as found:
        if os.fstat(found.fileno()).st_mode & 0o077:
            raise RametError("invalid_config", f"others can read the token in {path}", f"chmod 600 {path}")
        token = found.read().strip()
    if len(token) < 16:
        raise RametError(
            "invalid_config", f"the token in {path} is too short", "remove the file, and the server creates a new one"
        )
    return token
