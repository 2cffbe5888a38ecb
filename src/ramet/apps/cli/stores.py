"""Open the store that `--store` names: a directory, a bucket or a server. Heavy imports happen on opening."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ramet.apps.cli.errors import at_end, suggest
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore
    from ramet.workspace.config import Config
    from ramet.workspace.stored.store import Store

HOME: Final = "~/.ramet"
SERVERS: Final = ("http://", "https://", "unix:")
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def local_store(where: str) -> Store:
    """Open a store directly. `RAMET_REFS` puts its refs in PostgreSQL, `RAMET_KEY` decrypts it."""
    from ramet.workspace.stored.store import Store

    if where.startswith(SERVERS):
        raise RametError("unsupported", f"cannot do this on a server ({where})", "run it where the store is")
    key = "env:RAMET_KEY" if os.environ.get("RAMET_KEY") else None
    store = Store(where, refs=os.environ.get("RAMET_REFS") or None, key=key)
    suggest(store.ls)
    return store


def any_store(where: str) -> Store | RemoteStore:
    """Open a store, or connect to a server at `http(s)://...` or `unix:/PATH`; both have the same methods."""
    return remote_store(where) if where.startswith(SERVERS) else local_store(where)


def remote_store(where: str) -> RemoteStore:
    """Connect to the store of a server until the verb ends."""
    from ramet.apps.client.client import connect

    store = connect(where, token_of(where))
    at_end(store.close)
    suggest(store.ls)
    return store


def token_of(where: str) -> str | None:
    """Return `RAMET_TOKEN`; for a local server, fall back to the token file in its store."""
    token = os.environ.get("RAMET_TOKEN")
    if token or where.startswith("unix:"):
        return token or None
    from urllib.parse import urlsplit

    if urlsplit(where).hostname not in LOOPBACK:
        return None
    for home in (os.environ.get("RAMET_HOME") or HOME, HOME):
        try:
            with open(os.path.expanduser(f"{home}/server-token")) as file:
                return file.read().strip()
        except OSError:
            continue
    return None


def config_of(file: str | None) -> Config | None:
    """Load the file that `--config` names."""
    if file is None:
        return None
    from ramet.workspace.config import load_config

    return load_config(file)


def store_for(store: str, config: Config) -> str:
    """Return the store from the command line, else the one from the configuration file."""
    return config.store if config.store is not None and store == HOME else store


def namespace_of(store: str, namespace: str) -> str:
    """Return the address of a namespace's store, as `AgentRun(namespace=...)` does."""
    from ramet.workspace.agent.sandbox import namespace_address

    if store.startswith(SERVERS):
        raise RametError("unsupported", "a server serves one namespace", "use the server of that namespace")
    return namespace_address(store, namespace)
