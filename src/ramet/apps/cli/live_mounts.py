"""Carry what changes in a workspace's history into the directories that it mounts live.

A revert, undo or merge makes a revision in the store; a directory of this machine that is mounted in the workspace
does not follow by itself, and the next commit would take the change back.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ramet.apps.cli.stores import SERVERS, any_store, config_for, local_store
from ramet.core.paths import parse
from ramet.core.resource import How
from ramet.core.stat import Attrs
from ramet.store.checkout.walk import Read, content
from ramet.store.model.trees import DIR, LINK, Node

if TYPE_CHECKING:
    from ramet.apps.client.reference import RemoteRef
    from ramet.store.model.revisions import Revision
    from ramet.store.verbs.diff import Difference
    from ramet.workspace.config import Config
    from ramet.workspace.stored.reference import StoredWorkspaceRef
    from ramet.workspace.stored.store import Store
    from ramet.workspace.stored.workspace import StoredWorkspace

T = TypeVar("T")


def change_history(store: str, name: str, act: Callable[[StoredWorkspaceRef | RemoteRef], T]) -> T:
    """Call `act` with a workspace; where that moves its head, carry the difference into its live directories."""
    if store.startswith(SERVERS):
        return act(any_store(store)[name])
    found = local_store(store)
    handle = found[name]
    config = config_for(found, name, None)
    if config is None or not live_prefixes(config):
        return act(handle)
    asyncio.run(_commit(found, name, config))
    before = handle.head
    done = act(handle)
    asyncio.run(_carry(found, name, config, before))
    return done


def live_prefixes(config: Config) -> tuple[str, ...]:
    """Return the mounts that are directories of this machine and that commands may write."""
    return tuple(one.prefix for one in config.mounts if one.resource == "disk" and one.mode == "write")


async def _commit(store: Store, name: str, config: Config) -> None:
    async with config.open(store, name, commit="never") as ws:
        await ws.commit()


async def _carry(store: Store, name: str, config: Config, before: Revision | None) -> None:
    async with config.open(store, name, commit="never") as ws:
        await carry(ws, config, before)


async def carry(ws: StoredWorkspace, config: Config, before: Revision | None) -> None:
    """Carry the difference between a revision and the head into the live directories of an open workspace."""
    head = ws.base
    if before is None or head is None or head.id == before.id:
        return
    tops = tuple(f"{prefix.rstrip('/')}/" for prefix in live_prefixes(config))
    found = await asyncio.to_thread(lambda: ws.repository.diff(before, head, renames=False))
    mine = [one for one in found if one.path.startswith(tops)]
    if mine:
        with ws.recording("revert", f"{head.message}: {', '.join(one.path for one in mine[:3])}"):
            await restore(ws, mine)
        await ws.save(head.message)


async def restore(ws: StoredWorkspace, found: list[Difference]) -> None:
    """Make files what they are after these differences; files in no revision, such as credentials, stay."""
    fs, read = ws.fs, ws.repository.packs.read
    for one in sorted(found, key=lambda one: one.path, reverse=True):
        link = one.after is not None and one.after.kind == LINK
        if one.before is not None and (one.after is None or link or one.before.kind != one.after.kind):
            try:
                await fs.remove(parse(one.path))
            except FileNotFoundError:
                pass  # removed meanwhile
            except OSError as error:  # a directory keeps files that are in no revision
                if one.after is not None or error.errno != errno.ENOTEMPTY:
                    raise
    for one in sorted(found, key=lambda one: one.path):
        if (node := one.after) is None:
            continue
        path = parse(one.path)
        if node.kind == DIR:
            try:
                await fs.mkdir(path)
            except FileExistsError:
                pass  # its mode differs
        elif node.kind == LINK:
            await fs.write(path, node.payload, How.LINK)
            continue
        else:
            await fs.write(path, await asyncio.to_thread(_content, read, node))
        await fs.setattr(path, Attrs(mode=node.mode, mtime_ns=node.mtime_ns))


def _content(read: Read, node: Node) -> bytes:
    return b"".join(content(read, node))
