"""`ramet cp`: copy files and directories into a workspace, out of one, or between two."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from ramet.apps.cli.addresses import address
from ramet.apps.cli.options import AsJson, Message, Where, known_names, user_name
from ramet.apps.cli.output import plural, say
from ramet.apps.cli.parameters import Argument, Option
from ramet.apps.cli.stores import HOME, SERVERS, any_store, config_for, local_store, open_local
from ramet.core.errors import RametError
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind, Stat

BLOCK: Final = 1 << 20
"""Bytes per block of a file that is read."""


class Place(NamedTuple):
    """A path in a workspace, or with an empty `name` on this machine."""

    name: str
    revision: str | None
    path: str


class Entry(NamedTuple):
    """A file, directory or link to copy: its path below the source, its stat, and its content."""

    below: str
    stat: Stat
    blocks: Iterator[bytes]


def copy(
    source: Annotated[str, Argument(help="File or directory: ./path, or NAME[@REVISION]:/path.", complete=known_names)],
    target: Annotated[str, Argument(help="Where it goes: ./path, or NAME:/path.", complete=known_names)],
    recursive: Annotated[
        bool, Option("--recursive", "-r", help="Accepted, and not needed: directories are always copied whole.")
    ] = False,
    store: Where = HOME,
    message: Message = "",
    as_json: AsJson = False,
) -> None:
    """Copy a file or directory into a workspace, out of one, or between two. A target that is a directory receives it
    under its own name.
    """
    before, after = _place(source), _place(target)
    if not before.name and not after.name:
        raise RametError("invalid_argument", "neither path is in a workspace", "write NAME:/path for one of them")
    if after.revision is not None:
        raise RametError("invalid_argument", f"cannot write to {target}: it is a past revision", "write NAME:/path")
    entries = _from_store(before, store) if before.name else _from_disk(before.path)
    if after.name:
        command = f"cp {source} {target}"
        count, made = asyncio.run(_into_store(entries, before.path, after, store, message, command))
    else:
        count, made = _to_disk(entries, before.path, Path(after.path)), ""
    if as_json:
        say({"copied": count, **({"revision": made} if made else {})}, "", True)
        return
    if made:
        print(made)
    print(f"copied {plural(count, 'file')}", file=sys.stderr)


def _place(text: str) -> Place:
    """Read `NAME[@REVISION]:/path` as a path of a workspace, anything else as one of this machine."""
    if text.startswith((".", "/", "~")) or ":" not in text:
        return Place("", None, os.path.expanduser(text))
    found = address(text)
    return Place(found.name, found.revision, found.path or "/")


# ---------------------------------------------------------------------------------------------------- sources


def _from_store(place: Place, store: str) -> Iterator[Entry]:
    handle = any_store(store)[place.name]
    top = place.path.rstrip("/")
    listed = handle.ls(top.rpartition("/")[0] or "/", place.revision) if top else []
    mine = [found for name, found in listed if name == top.rpartition("/")[2]]
    if top and not mine:
        raise RametError(
            "not_found",
            f"cannot copy {place.name}:{place.path}: no such file or directory",
            f"see `ramet ls {place.name}:/`",
        )

    def walk(below: str, found: Stat) -> Iterator[Entry]:
        path = f"{top}{below}"
        yield Entry(below, found, handle.show(path, place.revision) if found.kind is Kind.FILE else iter(()))
        if found.kind is Kind.DIR:
            for name, inner in handle.ls(path or "/", place.revision):
                yield from walk(f"{below}/{name}", inner)

    yield from walk("", mine[0] if mine else Stat(Kind.DIR))


def _from_disk(path: str) -> Iterator[Entry]:
    def walk(below: str) -> Iterator[Entry]:
        at = f"{path}{below}"
        found = os.stat(at) if not below else os.lstat(at)
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISDIR(found.st_mode):
            yield Entry(below, Stat(Kind.DIR, mode=mode), iter(()))
            for name in sorted(os.listdir(at)):
                yield from walk(f"{below}/{name}")
        elif stat.S_ISLNK(found.st_mode):
            yield Entry(below, Stat(Kind.LINK, target=os.readlink(at)), iter(()))
        elif stat.S_ISREG(found.st_mode):
            yield Entry(below, Stat(Kind.FILE, found.st_size, mode=mode), _blocks(at))
        else:
            print(f"ramet: left out {at}: not a file, directory or link", file=sys.stderr)

    yield from walk("")


def _blocks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            yield block


# ---------------------------------------------------------------------------------------------------- targets


def _to_disk(entries: Iterator[Entry], source: str, target: Path) -> int:
    if target.is_dir() and (name := os.path.basename(source.rstrip("/"))):
        target = target / name
    count, modes = 0, []
    for entry in entries:
        at = Path(f"{target}{entry.below}")
        if entry.below and at.is_symlink():  # an earlier copy may have left it: nothing is written through a link
            at.unlink()
        if entry.stat.kind is Kind.DIR:
            at.mkdir(exist_ok=True)
            modes.append((at, entry.stat.mode))
            continue
        if entry.stat.kind is Kind.LINK:
            at.unlink(missing_ok=True)
            at.symlink_to(entry.stat.target or "")
        else:
            with open(at, "wb") as file:
                file.writelines(entry.blocks)
            modes.append((at, entry.stat.mode))
        count += 1
    for at, mode in reversed(modes):
        if mode is not None:
            at.chmod(mode)
    return count


async def _into_store(
    entries: Iterator[Entry], source: str, place: Place, store: str, message: str, command: str
) -> tuple[int, str]:
    remote = store.startswith(SERVERS)
    count = 0
    opening: Any
    if remote:
        opening = any_store(store).open(place.name)
    else:
        found = local_store(store)
        opening = open_local(found, place.name, None, config_for(found, place.name, None), commit="never")
    async with opening as ws:
        top = place.path.rstrip("/")
        name = os.path.basename(source.rstrip("/"))
        if name and (place.path.endswith("/") or await _is_dir(ws, top or "/")):
            top = f"{top}/{name}"
        # Over HTTP each write is a record; here all of them are one.
        with nullcontext() if remote else ws.recording("import", command, agent_id=user_name()):
            for entry in entries:
                await _write(ws, f"{top}{entry.below}", entry, remote)
                count += entry.stat.kind is not Kind.DIR
        made = await ws.commit(message, subject=command)
        for path in made.withheld:
            print(f"withheld: {path} may hold credentials and is in no revision", file=sys.stderr)
    return count, made.name


async def _write(ws: Any, path: str, entry: Entry, remote: bool) -> None:
    known = entry.stat
    if known.kind is Kind.DIR:
        if not await _is_dir(ws, path or "/"):
            await ws.dispatch("mkdir", path)
    elif known.kind is Kind.LINK and remote:
        await ws.symlink(path, known.target or "")
    elif known.kind is Kind.LINK:
        await ws.dispatch("write", path, known.target or "", How.LINK)
    else:
        await ws.dispatch("write", path, _stream(entry.blocks))
        if known.mode is not None:
            await ws.dispatch("setattr", path, Attrs(mode=known.mode))


async def _is_dir(ws: Any, path: str) -> bool:
    try:
        return bool((await ws.dispatch("stat", path)).is_dir)
    except FileNotFoundError:
        return False


async def _stream(blocks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block
