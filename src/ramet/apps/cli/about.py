"""Verbs about Ramet itself: its version, whether it is well, and what it is."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from ramet.apps.cli.config import reached
from ramet.apps.cli.shared import HOME, AsJson, ConfigFile, Where, chosen, configured, reported, show
from ramet.core.errors import RametError


def version() -> None:
    """Print the version."""
    from ramet import __version__

    print(__version__)


def demo() -> None:
    """Show the whole idea in a few seconds, in a temporary directory."""
    from ramet.apps.cli.demo import main

    asyncio.run(main())


EXTRAS = {
    "server": ("starlette", "no `ramet serve`"),
    "client": ("httpx2", "no `ramet.connect`"),
    "mcp": ("mcp", "no `ramet mcp`"),
    "yaml": ("yaml", "configuration files in JSON and TOML only, no `yq`"),
    "watch": ("watchfiles", "a commit of a mounted directory looks at all of it"),
    "fsspec": ("fsspec", "no fsspec mounts, no ramet:// for pandas and others"),
    "http": ("httpx2", "no mounts of web servers"),
    "redis": ("redis", "no Redis mounts"),
    "ssh": ("asyncssh", "no SSH mounts"),
    "postgres": ("asyncpg", "no PostgreSQL mounts, no refs in PostgreSQL"),
    "mongo": ("pymongo", "no MongoDB mounts"),
    "kms": ("boto3", "no keys in AWS KMS"),
    "parquet": ("pyarrow", "Parquet files cannot be read as text"),
    "xlsx": ("openpyxl", "XLSX files cannot be read as text"),
    "pdf": ("pypdf", "PDF files cannot be read as text"),
    "openai-agents": ("agents", "no sandbox for the OpenAI Agents SDK"),
}
"""Optional parts: the module that shows that one is installed, and what is missing without it."""
PROGRAMS = {"git": "no `export --git`, no pushes, no rendezvous"}
NATIVE = {"bubblewrap": "bwrap", "FUSE": "fusermount3", "CRIU": "criu"}
"""What running real programs on a workspace will need. Nothing in this version does, so nothing is lost without it."""


def doctor(
    store: Where = HOME,
    as_json: AsJson = False,
    full: Annotated[bool, typer.Option("--full", help="Read and check everything in the store as well.")] = False,
    config: ConfigFile = None,
) -> None:
    """Look whether everything that Ramet needs is here and works. Status 1 when something does not."""
    with reported():
        described = configured(config)
        place = store if described is None else chosen(store, described)
        rows = [{"check": name, "state": state, "detail": detail} for name, state, detail in _checks(place, full)]
        if described is not None:
            rows += [
                {"check": f"mount {row['mount']}", "state": row["state"], "detail": row["detail"]}
                for row in asyncio.run(reached(described))
            ]
        show(rows, ("check", "state", "detail"), as_json)
        if any(row["state"] == "bad" for row in rows):
            raise typer.Exit(1)


def _checks(where: str, full: bool) -> Iterator[tuple[str, str, str]]:
    found = ".".join(map(str, sys.version_info[:3]))
    yield "python", "ok" if sys.version_info >= (3, 11) else "bad", found
    for package in ("google-re2", "regex", "msgspec", "obstore", "blake3", "pyfastcdc", "cryptography"):
        yield _tried(package, lambda package=package: importlib.metadata.version(package))  # type: ignore[misc]
    yield _tried("shell", _shell_works)
    yield _tried(f"store {where}", lambda: _store_works(where, full))
    for name, (module, cost) in EXTRAS.items():
        there = importlib.util.find_spec(module) is not None
        yield f"extra {name}", "ok" if there else "absent", "" if there else f"{cost}; pip install 'ramet[{name}]'"
    for name, cost in PROGRAMS.items():
        found_at = shutil.which(name)
        yield name, "ok" if found_at else "absent", found_at or cost
    for name, program in NATIVE.items():
        found_at = shutil.which(program)
        if name == "FUSE" and found_at and not os.path.exists("/dev/fuse"):
            found_at = None
        detail = "not used: this version runs no real programs on a workspace"
        yield name, "ok" if found_at else "absent", f"{found_at}; {detail}" if found_at else detail


def _tried(name: str, act: Callable[[], str]) -> tuple[str, str, str]:
    try:
        return name, "ok", act()
    except RametError as error:
        return name, "bad", f"{error.cause}: {error.remediation}"
    except (OSError, ValueError, ImportError) as error:
        return name, "bad", str(error) or type(error).__name__


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


def _store_works(where: str, full: bool) -> str:
    from ramet.apps.cli.shared import anywhere
    from ramet.workspace.store import Store

    store = anywhere(where)
    if isinstance(store, Store):
        store.repository.prove()
    names = store.ls()
    if full:
        report = store.verify()
        if not report.ok:
            raise ValueError(f"{len(report.damages)} damages; run `ramet verify`")
    return f"{len(names)} workspace{'' if len(names) == 1 else 's'}" + (", all of it sound" if full else "")
