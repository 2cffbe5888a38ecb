"""`ramet exec`, and the quick way to it: an ordinary line is understood without building a command line first."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ramet.apps.cli.entry import loaded
from ramet.apps.cli.errors import at_end, reported, suggest
from ramet.apps.cli.progress import watched
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore
    from ramet.workspace.config import Config
    from ramet.workspace.execution import Execution
    from ramet.workspace.result import IOResult
    from ramet.workspace.stored.store import Store

HOME: Final = "~/.ramet"
SERVERS: Final = ("http://", "https://", "unix:")
SCRATCH: Final = ("/tmp", "/home/user", "/dev")
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Line(NamedTuple):
    """What `ramet exec` was asked for."""

    name: str
    command: str | None = None
    store: str = HOME
    timeout: float | None = None
    cwd: str | None = None
    message: str = ""
    author: str = ""
    config: str | None = None
    quiet: bool = False
    as_json: bool = False


FLAGS: Final = {"-q": "quiet", "--quiet": "quiet", "--json": "as_json"}
OPTIONS: Final = {
    "--store": "store", "--timeout": "timeout", "--cwd": "cwd", "--message": "message", "-m": "message",
    "--author": "author", "--config": "config",
}  # fmt: skip


def understood(words: list[str]) -> Line | None:
    """The words after `exec` when there is nothing unusual in them; None leaves them to the command line proper."""
    given: dict[str, Any] = {"store": os.environ.get("RAMET_HOME") or HOME}
    given["config"] = os.environ.get("RAMET_CONFIG") or None
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            places += rest
        elif word in FLAGS:
            given[FLAGS[word]] = True
        elif word.startswith("-"):
            option, equals, value = word.partition("=")
            field = OPTIONS.get(option)
            if field is None or (equals and not option.startswith("--")):
                return None
            found = value if equals else next(rest, None)
            if found is None:
                return None
            given[field] = found
        else:
            places.append(word)
    if not 1 <= len(places) <= 2 or (len(places) == 1 and given["config"] is None):
        return None
    if "timeout" in given:
        try:
            given["timeout"] = float(given["timeout"])
        except ValueError:
            return None
    return Line(places[0], places[1] if len(places) > 1 else None, **given)


def run(line: Line) -> int:
    """Do it; the status of the command."""
    import asyncio

    with reported():
        return asyncio.run(_run(line))
    raise AssertionError("what is reported ends the program")


async def _run(line: Line) -> int:
    opening, text = _opening(line)
    loaded()
    async with opening as ws:
        stdin = None if sys.stdin.isatty() else _input()
        told = {"message": line.message, "author": line.author} if line.store.startswith(SERVERS) else {}
        execution = ws.execute(text, stdin=stdin, timeout=line.timeout, cwd=line.cwd, **told)
        try:
            result = await execution if line.as_json else await _shown(execution)
        finally:  # also when it is interrupted, or nobody reads any more: what it did until then is its doing
            if getattr(ws, "lease", None) is not None:
                subject = ws.secrets.scrub_text(text.strip().partition("\n")[0][:72])
                with watched(line.quiet) as progress:
                    await ws.commit(line.message or subject, author=line.author, progress=progress)
        if (
            getattr(ws, "lease", None) is None
            and "@" in line.name
            and any(n for at, n in result.bytes_written.items() if at not in SCRATCH)
        ):
            print(f"ramet: what was written to {line.name} is not kept", file=sys.stderr)
            print(f"       `ramet fork {line.name} NEW_NAME` goes on from there", file=sys.stderr)
        if line.as_json:
            _tell(result)
        return int(result.exit_code)


async def _shown(execution: Execution) -> IOResult:
    """What a command writes, as it does so; where that cannot be written any more, it is over."""
    async with aclosing(aiter(execution)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            stream = sys.stdout.buffer if piece.fd == 1 else sys.stderr.buffer
            stream.write(piece.data)
            stream.flush()
    assert execution.result is not None
    return execution.result


def _tell(result: IOResult) -> None:
    """The whole result, in the words of `POST /v1/workspaces/{name}/exec`; said when it is committed."""
    import msgspec

    from ramet.apps.server.serialize import exec_result

    sys.stdout.buffer.write(msgspec.json.encode(exec_result(result)) + b"\n")


def _opening(line: Line) -> tuple[Any, str]:
    """What is opened, and the text that runs in it."""
    from ramet.store.model.address import parse_address

    config = configured(line.config)
    if line.command is None:
        if config is None:
            raise RametError("invalid_argument", "there is no command", "write ramet exec NAME 'COMMAND'")
        if config.name is None:
            return config.workspace(), line.name
        return config.open(opened(chosen(line.store, config))), line.name
    where = parse_address(line.name)
    if where.path is not None:
        raise RametError("invalid_argument", f"{line.name!r} names a path", "write NAME or NAME@REVISION")
    if config is None:
        return anywhere(line.store).open(where.name, where.revision), line.command
    return config.open(opened(chosen(line.store, config)), where.name, where.revision), line.command


def within(namespace: str) -> str:
    """The store of a namespace, as `AgentRun(namespace=...)` has it."""
    from ramet.workspace.agent.sandbox import namespace_address

    store = os.environ.get("RAMET_HOME") or HOME
    if store.startswith(SERVERS):
        raise RametError("unsupported", "a server serves one namespace", "ask the server that serves this one")
    return namespace_address(store, namespace)


async def _input() -> AsyncIterator[bytes]:
    import asyncio

    while block := await asyncio.to_thread(os.read, 0, 65536):
        yield block


def opened(where: str) -> Store:
    """The store itself; its refs are in PostgreSQL when `RAMET_REFS` says so, and `RAMET_KEY` opens it."""
    from ramet.workspace.stored.store import Store

    if where.startswith(SERVERS):
        raise RametError(
            "unsupported", f"{where} is a server, and this needs the store itself", "run it where the store is"
        )
    key = "env:RAMET_KEY" if os.environ.get("RAMET_KEY") else None
    store = Store(where, refs=os.environ.get("RAMET_REFS") or None, key=key)
    suggest(store.ls)
    return store


def anywhere(where: str) -> Store | RemoteStore:
    """The store, or the one behind the server at `http(s)://...` or `unix:/PATH`: they are used alike."""
    return connected(where) if where.startswith(SERVERS) else opened(where)


def connected(where: str) -> RemoteStore:
    """The store behind a server, until the verb has ended."""
    from ramet.apps.client.client import connect

    store = connect(where, _token(where))
    at_end(store.close)
    suggest(store.ls)
    return store


_homes: list[str] = []


def asked_before(home: str | None) -> None:
    """What `RAMET_HOME` was before a `--store` in front of the verb took its place: a server left its token there."""
    _homes[:] = [home] if home else []


def _token(where: str) -> str | None:
    """`RAMET_TOKEN`; for a server of this machine, else what `ramet serve` left in its store."""
    token = os.environ.get("RAMET_TOKEN")
    if token or where.startswith("unix:"):
        return token or None
    from urllib.parse import urlsplit

    if urlsplit(where).hostname not in LOOPBACK:
        return None
    for home in (*_homes, os.environ.get("RAMET_HOME") or HOME, HOME):
        try:
            with open(os.path.expanduser(f"{home}/server-token")) as file:
                return file.read().strip()
        except OSError:
            continue
    return None


def configured(file: str | None) -> Config | None:
    """What `--config` names."""
    if file is None:
        return None
    from ramet.workspace.config import load_config

    return load_config(file)


def chosen(store: str, config: Config) -> str:
    """The store that was asked for; the file's where nobody asked."""
    return config.store if config.store is not None and store == HOME else store
