"""Version pins: the versions of all paths of a remote mount, recorded by a revision as a tree.

Opening a revision reports every pinned version that the resource no longer has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Resource
from ramet.core.stat import Kind, Stat
from ramet.store.model import trees
from ramet.store.model.ids import TreeId, tree_id
from ramet.store.model.revisions import Revision
from ramet.store.model.trees import DIR, LINK, Node
from ramet.store.packs.writer import PackWriter
from ramet.store.verbs.diff import compare

PIN: Final = 3
"""Node kind of a pinned file: its payload is a version, not content."""
PinPolicy = Literal["config", "versions"]
MAX_REPORTED: Final = 100
"""Reported paths per mount."""


class VersionPins(NamedTuple):
    """The pin trees of one mount, ready to be written."""

    top: TreeId
    objects: dict[bytes, bytes]

    def write(self, writer: PackWriter) -> TreeId:
        for identity, encoded in self.objects.items():
            writer.add(identity, encoded)
        return self.top


def check_policies(policies: Mapping[str, str]) -> None:
    for prefix, policy in policies.items():
        if policy not in ("config", "versions"):
            raise RametError("invalid_argument", f"unknown pin policy {policy!r} of {prefix}", "use config or versions")


async def pin_versions(resource: Resource) -> VersionPins:
    """Pin every path of a resource to its version, without reading content."""
    objects: dict[bytes, bytes] = {}
    return VersionPins(await _directory(resource, ROOT, objects), objects)


async def _directory(resource: Resource, path: Path, objects: dict[bytes, bytes]) -> TreeId:
    nodes: list[Node] = []
    for name, stat in await ops.scan_sorted(resource, path):
        raw, mode, when = encode(name), stat.mode or 0, stat.mtime_ns or 0
        if stat.kind is Kind.DIR:
            below = await _directory(resource, path / name, objects)
            nodes.append(Node(raw, DIR, mode, when, 0, below))
        elif stat.kind is Kind.LINK:
            nodes.append(Node(raw, LINK, mode, when, 0, encode(stat.target or "")))
        else:
            nodes.append(Node(raw, PIN, mode, when, stat.size or 0, _version(stat)))
    encoded = trees.encode(nodes)
    identity = tree_id(encoded)
    objects[identity] = encoded
    return identity


def _version(stat: Stat) -> bytes:
    """Return the version of the backend, or size and time without one."""
    return encode(stat.version if stat.version is not None else f"{stat.size}:{stat.mtime_ns}")


async def changed_pins(
    base: Revision | None, resources: Mapping[str, Resource], read: Callable[[bytes], bytes]
) -> list[str]:
    """Return a sentence for each pinned version that a mount lacks or has replaced."""
    problems: list[str] = []
    for mount in base.mounts if base is not None else ():
        resource = resources.get(mount.prefix)
        if mount.pin is None or resource is None:
            continue
        try:
            now = await pin_versions(resource)
        except OSError as error:
            problems.append(f"{mount.prefix}: cannot compare pinned versions: {error.strerror or error}")
            continue
        if now.top != mount.pin:
            problems += await asyncio.to_thread(_changed_paths, read, mount.prefix, mount.pin, now)
    return problems


def _changed_paths(read: Callable[[bytes], bytes], prefix: str, pinned: TreeId, now: VersionPins) -> list[str]:
    told: list[str] = []
    count = 0

    def either(identity: bytes) -> bytes:
        return now.objects[identity] if identity in now.objects else read(identity)

    for difference in compare(either, pinned, now.top, renames=False):
        if difference.what == "added" or (difference.before is not None and difference.before.kind == DIR):
            continue
        count += 1
        if count <= MAX_REPORTED:
            what = "is gone" if difference.what == "removed" else "has changed"
            told.append(f"{prefix.rstrip('/')}{difference.path}: the pinned version {what}")
    return (
        told
        if count <= MAX_REPORTED
        else [*told, f"{prefix}: {count - MAX_REPORTED} more paths differ from the pinned versions"]
    )
