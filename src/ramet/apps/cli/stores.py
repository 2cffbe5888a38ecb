"""Open the store that `--store` names: a directory, a bucket or a server. Heavy imports happen on opening."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

from ramet.apps.cli.errors import at_end, suggest
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore
    from ramet.workspace.config import Config
    from ramet.workspace.stored.store import Store, WorkspaceOpener

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


def config_for(store: Store, name: str, file: str | None, revision: str | None = None) -> Config | None:
    """Return the configuration of a workspace: of `--config`, else the one that the workspace was made with.

    With `--config`, a new workspace is created and keeps the file.
    """
    from ramet.workspace.config.attachment import attach, attached, without_mounts

    if file is not None:
        config = config_of(file)
        if config is not None and revision is None and name not in store:
            store.create(name, native=config.native or False)
            try:
                attach(store, name, file)
            except RametError as error:
                if error.code != "secret_found":
                    raise
                print(f"ramet: {error.cause}; pass --config next time too", file=sys.stderr)
        return config
    found = attached(store, name)
    if found is None:
        return None
    if found.outdated and revision is None:
        print(f"ramet: {found.file} has changed since {name} was made with it", file=sys.stderr)
        print(f"       `ramet config use {name} {found.file}` takes it over", file=sys.stderr)
    return found.config if revision is None else without_mounts(found.config)


def open_local(store: Store, name: str, revision: str | None, config: Config | None, **options: Any) -> WorkspaceOpener:
    """Open a workspace of a local store, as its configuration says where it has one."""
    if config is None:
        return store.open(name, revision, **options)
    return config.open(store, name, revision, **options)


def namespace_of(store: str, namespace: str) -> str:
    """Return the address of a namespace's store, as `AgentRun(namespace=...)` does."""
    from ramet.workspace.agent.sandbox import namespace_address

    if store.startswith(SERVERS):
        raise RametError("unsupported", "a server serves one namespace", "use the server of that namespace")
    return namespace_address(store, namespace)
