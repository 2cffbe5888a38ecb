"""Disk usage per workspace: unique bytes, and bytes shared with others.

Sizes are compressed sizes in packs; unreferenced bytes are counted separately.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ramet.core.progress import Progress, silent
from ramet.store.gc.collect import LiveObjects, object_shares, pack_size
from ramet.store.refs.retention import keep_set

if TYPE_CHECKING:
    from ramet.store.repository import Repository


@dataclass(frozen=True)
class Cost:
    """Disk usage of one workspace."""

    workspace: str
    unique: int
    """Bytes that only this workspace needs."""
    shared: int
    """Bytes that other workspaces need as well."""
    revisions: int

    @property
    def total(self) -> int:
        return self.unique + self.shared


@dataclass(frozen=True)
class Costs:
    workspaces: list[Cost] = field(default_factory=list)
    shared: int = 0
    """Bytes that several workspaces need, counted once."""
    unused: int = 0
    """Unreferenced bytes, for the next collection."""
    total: int = 0
    """Bytes of all packs and indexes."""


def compute_costs(repository: Repository, progress: Progress = silent) -> Costs:
    repository.packs.refresh()
    keep = keep_set(repository, repository.clock())
    mine: dict[str, set[bytes]] = {}
    counts: dict[str, int] = {}
    marks: dict[str, LiveObjects] = {}
    for number, (identity, revision) in enumerate(keep.revisions.items()):
        progress("cost", number, len(keep.revisions))
        for name in keep.owners[identity]:
            marked = marks.setdefault(name, LiveObjects(repository.packs, ()))
            mine.setdefault(name, set()).update(marked.of(revision))
            counts[name] = counts.get(name, 0) + revision.is_in_history
    sizes = _sizes(repository)
    users: dict[bytes, int] = {}
    for ids in mine.values():
        for key in ids:
            users[key] = users.get(key, 0) + 1
    found = []
    for name in sorted({*mine, *repository.refs.names()}):
        ids = mine.get(name, set())
        own = sum(sizes.get(key, 0.0) for key in ids if users[key] == 1)
        both = sum(sizes.get(key, 0.0) for key in ids if users[key] > 1)
        found.append(Cost(name, round(own), round(both), counts.get(name, 0)))
    total = sum(pack_size(repository.packs.index(name)) for name in repository.packs.packs())
    needed = sum(sizes.get(key, 0.0) for key in users)
    together = sum(sizes.get(key, 0.0) for key, number in users.items() if number > 1)
    progress("cost", len(keep.revisions), len(keep.revisions))
    return Costs(found, round(together), max(0, total - round(needed)), total)


def _sizes(repository: Repository) -> dict[bytes, float]:
    """Return the size of each object in its pack, with its index record."""
    found: dict[bytes, float] = {}
    for name in repository.packs.packs():
        found.update(object_shares(repository.packs.index(name)))
    return found
