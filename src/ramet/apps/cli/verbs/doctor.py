"""`ramet doctor`: check that everything Ramet needs is installed and works.

A row is `ok`, `absent` (something cannot be done, and the row says what), `skipped` (nobody asked for it) or `bad`
(something is broken, and the row says what to do). Only `bad` makes the status 1.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from ramet.apps.cli.options import AsJson, ConfigFile, Where
from ramet.apps.cli.output import show
from ramet.apps.cli.parameters import Option
from ramet.apps.cli.stores import HOME, any_store, config_of, store_for
from ramet.apps.cli.verbs.config import check_mounts
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore
    from ramet.workspace.config import Config
    from ramet.workspace.stored.store import Store

State = Literal["ok", "absent", "skipped", "bad"]


class Finding(NamedTuple):
    """What was looked at, how it is, and what that means."""

    check: str
    state: State
    detail: str = ""


class Extra(NamedTuple):
    """An optional part: the modules that it consists of, and what cannot be done without it."""

    modules: tuple[str, ...]
    cost: str


PACKAGES: Final = (
    "google-re2", "regex", "rich", "msgspec", "obstore", "blake3", "pyfastcdc", "cryptography",
)  # fmt: skip
EXTRAS: Final = {
    "server": Extra(("starlette", "uvicorn"), "no `ramet serve`, no `ramet ui`"),
    "client": Extra(("httpx2",), "no `ramet.connect`, no `--store http://...`"),
    "mcp": Extra(("mcp", "starlette", "uvicorn"), "no `ramet mcp`"),
    "yaml": Extra(("yaml",), "configuration files in JSON and TOML only, no `yq`"),
    "watch": Extra(("watchfiles",), "a commit of a mounted directory looks at all of it"),
    "fsspec": Extra(("fsspec",), "no fsspec mounts, no ramet:// for pandas and others"),
    "http": Extra(("httpx2",), "no mounts of web servers"),
    "redis": Extra(("redis",), "no Redis mounts"),
    "ssh": Extra(("asyncssh",), "no SSH mounts"),
    "postgres": Extra(("asyncpg", "psycopg"), "no PostgreSQL mounts, no refs in PostgreSQL"),
    "mongo": Extra(("pymongo",), "no MongoDB mounts"),
    "kms": Extra(("boto3",), "no keys in AWS KMS"),
    "parquet": Extra(("pyarrow",), "Parquet files cannot be read as text"),
    "xlsx": Extra(("openpyxl",), "XLSX files cannot be read as text"),
    "pdf": Extra(("pypdf",), "PDF files cannot be read as text"),
    "openai-agents": Extra(("agents",), "no sandbox for the OpenAI Agents SDK"),
    "pydantic-ai": Extra(("pydantic_ai",), "no workspace for Pydantic AI"),
    "deepagents": Extra(("deepagents",), "no sandbox for Deep Agents"),
    "claude-agent": Extra(("claude_agent_sdk",), "no tools for the Claude Agent SDK"),
    "anthropic": Extra(("anthropic",), "no memory tool for Anthropic's SDK"),
    "langchain": Extra(("langchain_core",), "no tools for LangChain"),
}
PROGRAMS: Final = {"git": "no `export --git`, no pushes, no rendezvous"}
NATIVE: Final = {
    "bubblewrap": ("bwrap", "running real programs on a workspace"),
    "FUSE": ("fusermount3", "mounting a workspace for real programs"),
    "CRIU": ("criu", "checkpoints of running sandboxes"),
}
"""What these would be needed for. This version does none of it, so nothing is lost without them, and a row says so."""
HEADS: Final = 1000
"""Workspaces whose heads are read without `--full`."""
SHOWN: Final = 5


def doctor(
    store: Where = HOME,
    as_json: AsJson = False,
    full: Annotated[bool, Option("--full", help="Read and check everything in the store as well.")] = False,
    config: ConfigFile = None,
) -> int:
    """Look whether everything that Ramet needs is here and works. Status 1 when something does not."""
    described = config_of(config)
    place = store if described is None else store_for(store, described)
    rows = [*_parts(), *_store(place, full, described), *_mounts(described), *_optional()]
    show([row._asdict() for row in rows], ("check", "state", "detail"), as_json)
    return int(any(row.state == "bad" for row in rows))


def _tried(name: str, act: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", act())
    except RametError as error:
        return Finding(name, "bad", f"{error.cause}: {error.remediation}")
    except (OSError, ValueError, ImportError) as error:
        return Finding(name, "bad", str(error) or type(error).__name__)


# --------------------------------------------------------------------------------------------------- what must be


def _parts() -> Iterator[Finding]:
    found = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", "ok" if sys.version_info >= (3, 11) else "bad", found)
    for package in PACKAGES:
        yield _tried(package, lambda package=package: importlib.metadata.version(package))  # type: ignore[misc]
    try:
        yield Finding("stringzilla", "ok", importlib.metadata.version("stringzilla"))
    except importlib.metadata.PackageNotFoundError:
        yield Finding("stringzilla", "absent", "plain texts are searched without vector instructions")
    yield _tried("shell", _shell_works)


def _shell_works() -> str:
    from ramet import Workspace

    async def act() -> str:
        start = time.perf_counter()
        async with Workspace() as ws:
            result = await ws.execute("seq 3 | awk '{s += $1} END {print s}'")
        if result.text != "6\n":
            raise ValueError(f"a pipeline gave {result.text!r}: {result.error_text}")
        return f"a pipeline in {(time.perf_counter() - start) * 1000:.0f} ms"

    return asyncio.run(act())


# ------------------------------------------------------------------------------------------------------ the store


def _store(where: str, full: bool, described: Config | None) -> Iterator[Finding]:
    from ramet.workspace.stored.store import Store

    found: list[Store | RemoteStore] = []
    names: list[str] = []

    def act() -> str:
        store = any_store(where)
        if isinstance(store, Store):
            store.repository.require_safe_refs()
        names.extend(store.ls())
        found.append(store)
        return f"{len(names)} workspace{'' if len(names) == 1 else 's'}"

    yield _tried(f"store {where}", act)
    if not found:
        return
    store = found[0]
    if isinstance(store, Store):
        yield _heads(store, names)
        yield from _token(where)
        yield from _given(store, names, described)
    if full:
        yield _tried("integrity", lambda: _sound(store.verify()))
    else:
        yield Finding("integrity", "skipped", "--full reads everything and checks every digest and reference")


def _sound(report: object) -> str:
    damages = getattr(report, "damages", ())
    if damages:
        raise RametError("store_corrupt", f"{len(damages)} damages", "see `ramet verify`, then `ramet repair`")
    return "all of it is sound"


def _heads(store: Store, names: list[str]) -> Finding:
    """Whether the newest revision of each workspace, and where its trees begin, can be read."""
    repository, broken = store.repository, []
    for name in names[:HEADS]:
        try:
            head = repository.head(name)
            for mount in () if head is None else head.mounts:
                for tree in mount.trees:
                    repository.packs.read(tree)
        except (RametError, OSError, ValueError, KeyError) as error:
            broken.append(f"{name}: {error.cause if isinstance(error, RametError) else error}")
    if broken:
        more = f" and {len(broken) - SHOWN} more" if len(broken) > SHOWN else ""
        return Finding("heads", "bad", f"{'; '.join(broken[:SHOWN])}{more}; see `ramet verify`, then `ramet repair`")
    read = min(len(names), HEADS)
    return Finding(
        "heads", "ok", f"{read} read" + (f", of {len(names)}; --full reads all" if read < len(names) else "")
    )


def _token(where: str) -> Iterator[Finding]:
    """Nobody but its owner may read the token of a server."""
    place = Path(where).expanduser() / "server-token"
    if "://" not in where and place.exists():
        open_to_others = place.stat().st_mode & 0o077
        told = f"others can read {place}: remove it, a server makes a new one" if open_to_others else "its owner's only"
        yield Finding("server token", "bad" if open_to_others else "ok", told)


def _given(store: Store, names: list[str], described: Config | None) -> Iterator[Finding]:
    """Mounts whose bytes and credentials are not in the store: who opens the workspace has to bring them."""
    brought = {mount.prefix for mount in described.mounts} if described is not None else set()
    for name in names[:HEADS]:
        try:
            mounts = store[name].mounts()
        except (RametError, OSError):
            continue  # told with the heads
        mine = described is not None and described.name in (None, name)
        missing = [m for m in mounts if m.needs_override and not (mine and m.prefix in brought)]
        if missing:
            told = ", ".join(f"{mount.prefix} ({mount.type})" for mount in missing[:SHOWN])
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            detail = f"{told}{more}: it cannot be opened without them; describe them in a file, and give --config"
            yield Finding(f"mounts of {name}", "absent", detail)


def _mounts(described: Config | None) -> Iterator[Finding]:
    """Whether each mount of a file can be reached, and lets in who asks with these credentials."""
    for row in () if described is None else asyncio.run(check_mounts(described)):
        yield Finding(f"mount {row['mount']}", row["state"], row["detail"])


# ----------------------------------------------------------------------------------------------------- what may be


def _optional() -> Iterator[Finding]:
    for name, (modules, cost) in EXTRAS.items():
        there = all(importlib.util.find_spec(module) is not None for module in modules)
        yield (
            Finding(f"extra {name}", "ok")
            if there
            else Finding(f"extra {name}", "absent", f"{cost}; pip install 'ramet[{name}]'")
        )
    for name, cost in PROGRAMS.items():
        found = shutil.which(name)
        yield Finding(name, "ok", found) if found else Finding(name, "absent", cost)
    for name, (program, purpose) in NATIVE.items():
        found = shutil.which(program)
        unused = f"for {purpose}, which this version does not do"
        if name == "FUSE" and found and not os.access("/dev/fuse", os.R_OK | os.W_OK):
            yield Finding(name, "absent", f"{found}, but /dev/fuse cannot be used; {unused}: nothing is lost")
        elif found:
            yield Finding(name, "ok", f"{found}; {unused}")
        else:
            yield Finding(name, "absent", f"{unused}: nothing is lost")
