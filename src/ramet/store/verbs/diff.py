"""Diff of two trees: reads only directories that differ, and compares content by id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, Literal

from ramet.core.paths import decode as decode_name
from ramet.store.model import trees
from ramet.store.model.ids import TreeId
from ramet.store.model.trees import DIR, Node

ChangeKind = Literal["added", "removed", "modified", "renamed"]
KEPT: Final[tuple[ChangeKind, ...]] = ("added", "removed", "modified")
Read = Callable[[bytes], bytes]
MAX_RENAME_CANDIDATES: Final = 50_000
"""Differences up to which renames are detected; beyond it all are reported as added and removed."""


@dataclass(frozen=True)
class Difference:
    """One path that differs. `old` is the previous path of a renamed file."""

    path: str
    what: ChangeKind
    before: Node | None = None
    after: Node | None = None
    old: str | None = None


def compare(read: Read, before: TreeId | None, after: TreeId | None, renames: bool = True) -> Iterable[Difference]:
    """Yield differences in the order of paths; with `renames`, a moved file is one difference.

    At most `MAX_RENAME_CANDIDATES` differences are held in memory.
    """
    found = _compare(read, before, after, "")
    if not renames or before is None or after is None:
        return found
    first = list(islice(found, MAX_RENAME_CANDIDATES + 1))
    return _detect_renames(first) if len(first) <= MAX_RENAME_CANDIDATES else chain(first, found)


def _compare(read: Read, before: TreeId | None, after: TreeId | None, where: str) -> Iterator[Difference]:
    if before == after:
        return
    earlier = trees.decode(read(before)) if before is not None else []
    later = trees.decode(read(after)) if after is not None else []
    for name, was, now in _pair_entries(earlier, later):
        path = f"{where}/{decode_name(name)}"
        if was is not None and now is not None and was.kind == now.kind == DIR:
            if was.mode != now.mode:
                yield Difference(path, "modified", was, now)
            yield from _compare(read, was.tree, now.tree, path)
            continue
        if was is not None and now is not None and was.kind == now.kind:
            if (was.payload, was.mode) != (now.payload, now.mode):
                yield Difference(path, "modified", was, now)
            continue
        if was is not None:
            yield Difference(path, "removed", was)
            if was.kind == DIR:
                yield from _compare(read, was.tree, None, path)
        if now is not None:
            yield Difference(path, "added", None, now)
            if now.kind == DIR:
                yield from _compare(read, None, now.tree, path)


def _pair_entries(earlier: list[Node], later: list[Node]) -> Iterable[tuple[bytes, Node | None, Node | None]]:
    """Pair differing entries by name. Mostly the names are equal, and two sorted lists need no dictionary."""
    pairs = [(a, b) for a, b in zip(earlier, later, strict=False) if a != b]
    if len(earlier) == len(later) and all(a.name == b.name for a, b in pairs):
        return [(a.name, a, b) for a, b in pairs]
    old, new = {node.name: node for node in earlier}, {node.name: node for node in later}
    names = [name for name, node in new.items() if old.get(name) != node] + [name for name in old if name not in new]
    return [(name, old.get(name), new.get(name)) for name in sorted(names)]


def _detect_renames(found: list[Difference]) -> list[Difference]:
    """Combine removed and added files with equal content to renames; empty files are never renames."""
    gone: dict[bytes, list[Difference]] = {}
    for difference in found:
        node = difference.before
        if difference.what == "removed" and node is not None and node.kind != DIR and node.payload:
            gone.setdefault(node.payload, []).append(difference)
    moved: set[str] = set()
    result: list[Difference] = []
    for difference in found:
        node = difference.after
        if difference.what == "added" and node is not None and node.kind != DIR and gone.get(node.payload):
            source = gone[node.payload].pop(0)
            moved.add(source.path)
            result.append(Difference(difference.path, "renamed", source.before, node, source.path))
        else:
            result.append(difference)
    return [d for d in result if not (d.what == "removed" and d.path in moved)]


@dataclass
class DiffSummary:
    """Names and counts of differences as recorded on a revision; bounded."""

    limit: int = 200
    counts: dict[ChangeKind, int] = field(default_factory=dict)
    names: dict[ChangeKind, list[str]] = field(default_factory=dict)
    renamed: list[list[str | None]] = field(default_factory=list)

    @classmethod
    def of(cls, differences: Iterable[Difference]) -> DiffSummary:
        made = cls()
        for difference in differences:
            made.add(difference)
        return made

    def add(self, difference: Difference) -> None:
        count = self.counts[difference.what] = self.counts.get(difference.what, 0) + 1
        if count > self.limit:
            return
        if difference.what == "renamed":
            self.renamed.append([difference.old, difference.path])
        else:
            self.names.setdefault(difference.what, []).append(difference.path)

    def written(self) -> list[str]:
        """Return the first paths with new content."""
        return sorted(self.names.get("added", []) + self.names.get("modified", []))[: self.limit]

    def plain(self) -> dict[str, object]:
        shown: dict[str, object] = {}
        for what in KEPT:
            shown[what], shown[f"{what}_count"] = self.names.get(what, []), self.counts.get(what, 0)
        return {**shown, "renamed": self.renamed, "renamed_count": self.counts.get("renamed", 0)}
