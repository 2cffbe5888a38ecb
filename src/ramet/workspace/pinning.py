"""Pins: what a resource whose bytes live elsewhere looked like when a revision was made, path by path, as a tree."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, encode
from ramet.core.resource import Resource
from ramet.core.stat import Kind, Stat
from ramet.store import trees
from ramet.store.ids import TreeId, tree_id
from ramet.store.packs import PackWriter
from ramet.store.trees import DIR, LINK, Node

PIN: Final = 3
"""The kind of a file that is only pinned: its payload is its version, not its content."""
PinPolicy = Literal["config", "versions"]


class Pins(NamedTuple):
    """The trees of one mount's pins, ready to be written."""

    top: TreeId
    objects: dict[bytes, bytes]

    def write(self, writer: PackWriter) -> TreeId:
        for identity, encoded in self.objects.items():
            writer.add(identity, encoded)
        return self.top


def check_policies(policies: dict[str, str]) -> None:
    for prefix, policy in policies.items():
        if policy not in ("config", "versions"):
            raise RametError("invalid_argument", f"unknown pin policy {policy!r} of {prefix}", "use config or versions")


async def pin(resource: Resource) -> Pins:
    """Every path of a resource with its version, without reading any content."""
    objects: dict[bytes, bytes] = {}
    return Pins(await _directory(resource, ROOT, objects), objects)


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
    """The version that the backend gives, or what comes nearest to one."""
    return encode(stat.version if stat.version is not None else f"{stat.size}:{stat.mtime_ns}")
