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
from ramet.workspace.config import Config
from ramet.workspace.mounts import MountForm

MIB = 1 << 20
Durable = Literal["answer", "timer", "close"]


@dataclass(frozen=True)
class Bounds:
    """What one client may do, and how much the server remembers."""

    concurrency: int = 64
    """Requests of one client at the same time; more wait for nothing and are refused."""
    rate: float = 0.0
    """Requests per second of one client over time; 0 does not count them."""
    burst: int = 200
    """Requests that a client may make at once before `rate` counts."""
    json_bytes: int = 16 * MIB
    """Size of a JSON body."""
    upload_bytes: int = 64 << 30
    """Size of an uploaded file or snapshot."""
    output_bytes: int = 16 * MIB
    """Size of stdout and of stderr in a buffered answer."""
    workspaces: int = 256
    """Workspaces that are open at the same time."""
    sessions: int = 1024
    """Sessions of one workspace."""
    jobs: int = 256
    """Detached commands per workspace, with those that have ended and are still remembered."""
    events: int = 10_000
    """Events that a client which lost its connection can catch up with."""
    keys: int = 10_000
    """Idempotency keys that are remembered in memory."""
    key_seconds: float = 86_400.0


@dataclass(frozen=True)
class ServerSettings:
    """How to serve. `token` empty means that the connection itself is trusted, which only a unix socket may be."""

    token: str = ""
    principals: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further tokens, and whom each stands for: the grants of the store say what they may do."""
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Values of the Host header, without port, that are answered. `*` answers all."""
    durable: Durable = "answer"
    """When what a request changed is committed: before it is answered, on a timer, or when the workspace closes."""
    every: float = 5.0
    """Seconds between commits with `timer`."""
    idle: float = 600.0
    """Seconds after which a workspace that nobody uses is committed and closed, and its lease given back."""
    wait: float = 10.0
    """Seconds to wait for a workspace that others are using."""
    bounds: Bounds = field(default_factory=Bounds)
    push_to: tuple[str, ...] = ()
    """Beginnings of the URLs that clients may have revisions pushed to; none by itself."""
    mounts: Mapping[str, Mapping[str, MountForm]] = field(default_factory=dict)
    """Mounts that workspaces get from this server: `{"name": {"/data": DiskResource(...)}}`; `*` names all."""
    resources: Mapping[str, Mapping[str, Resource]] = field(default_factory=dict)
    """Stand-ins for mounts that were saved without credentials, by workspace and prefix."""
    configs: Mapping[str, Config] = field(default_factory=dict)
    """Descriptions of workspaces by name; `*` describes those that have none of their own."""
    tune_gc: bool = False
    """Collect garbage between requests instead of inside them. Process-wide: only for a process of its own."""


def read_principals(file: str | Path) -> dict[str, str]:
    """Tokens and whom they stand for, from a file with lines `PRINCIPAL TOKEN`; one that others can read is refused."""
    path = Path(file).expanduser()
    with open(path) as found:
        if os.fstat(found.fileno()).st_mode & 0o077:
            raise RametError("invalid_config", f"others can read the tokens in {path}", f"chmod 600 {path}")
        lines = [line.split() for line in found if line.strip() and not line.startswith("#")]
    if any(len(line) != 2 or len(line[1]) < 16 for line in lines):
        raise RametError(
            "invalid_config", f"a line of {path} is no principal and token", "write `NAME TOKEN`, a token of 16 or more"
        )
    return {token: principal for principal, token in lines}


def read_token(file: str | Path) -> str:
    """The token in a file, which is made (mode 0600) when missing; a file that others can read is refused."""
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
        raise RametError("invalid_config", f"the token in {path} is too short", "remove the file to have one made")
    return token
