"""Blame: follow the lines of a file back through revisions, merges and renames.

An unchanged file costs one comparison of ids; its text is read only where it changed.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.checkout.walk import content, find_node, no_such_path
from ramet.store.commit.kernel_state import records_of
from ramet.store.model.graph import newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.model.trees import FILE, Node

if TYPE_CHECKING:
    from ramet.store.repository import Repository

MAX_BYTES: Final = 16 * 1024 * 1024
"""Largest file in bytes; a larger one is refused."""
MIN_SIMILARITY: Final = 0.5
CANDIDATES: Final = 64
"""Removed files per revision that are compared to find a changed rename."""


@dataclass(frozen=True)
class LineWriter:
    """The command that wrote a line."""

    number: int
    session_id: str
    agent_id: str
    command: str


@dataclass(frozen=True)
class BlameLine:
    """A line with the revision that added it, its path there, and the command that wrote it if known."""

    number: int
    text: bytes
    revision: Revision
    path: str
    writer: LineWriter | None = None

    @property
    def author(self) -> str:
        """The author by the best known name."""
        known = self.revision.author or self.revision.agent
        return known or (self.writer.agent_id if self.writer is not None else "")


def blame(repository: Repository, revision: Revision, path: str) -> list[BlameLine]:
    """Return every line of a file with its origin."""
    return _Blame(repository).run(revision, path)


class _Blame:
    def __init__(self, repository: Repository) -> None:
        self._repository, self._read = repository, repository.packs.read
        self._writers: dict[tuple[RevisionId, str], LineWriter | None] = {}
        self._named: dict[str, Revision] = {}

    def run(self, start: Revision, path: str) -> list[BlameLine]:
        node = find_node(self._read, start, path)
        if node is None or node.kind != FILE:
            raise no_such_path(start, path)
        lines = self._lines(node, path)
        found: list[BlameLine | None] = [None] * len(lines)
        # For each revision: the lines to find there by path, as (line there, line in the result).
        open_: dict[RevisionId, dict[str, list[tuple[int, int]]]] = {
            start.id: {path: [(number, number) for number in range(len(lines))]}
        }
        known = self._repository.ancestors(start)
        self._named = {revision.name: revision for revision in known.values()}
        for revision in newest_first(known.values()):
            for where, wanted in open_.pop(revision.id, {}).items():
                for _, here in self._passed_on(revision, where, wanted, open_):
                    found[here] = BlameLine(here + 1, lines[here], revision, where, self._writer(revision, where))
        return [line for line in found if line is not None]

    def _passed_on(
        self,
        revision: Revision,
        where: str,
        wanted: list[tuple[int, int]],
        open_: dict[RevisionId, dict[str, list[tuple[int, int]]]],
    ) -> list[tuple[int, int]]:
        """Hand lines over to the parents that have them; returns the lines written here."""
        node = find_node(self._read, revision, where)
        assert node is not None
        for parent in self._sources(revision):
            if not wanted:
                break
            source = self._source(parent, revision, where, node)
            if source is None:
                continue
            old_path, old = source
            if old.payload == node.payload:
                given, kept = wanted, []
            else:
                same = _match_lines(self._lines(old, old_path), self._lines(node, where))
                given = [(same[there], here) for there, here in wanted if there in same]
                kept = [(there, here) for there, here in wanted if there not in same]
            if given:
                open_.setdefault(parent.id, {}).setdefault(old_path, []).extend(given)
            wanted = kept
        return wanted

    def _sources(self, revision: Revision) -> list[Revision]:
        """Return the revisions whose lines this one may have: what it reverted to, then its parents."""
        how, _, name = revision.lineage.partition(":")
        target = self._named.get(name) if how == "revert" else None
        return [*([] if target is None else [target]), *self._repository.parents_of(revision)]

    def _source(self, parent: Revision, revision: Revision, where: str, node: Node) -> tuple[str, Node] | None:
        """Return the path of the file in a parent: the same path, or the one it was renamed from."""
        old = find_node(self._read, parent, where)
        if old is not None:
            return (where, old) if old.kind == FILE else None
        gone: list[tuple[str, Node]] = []
        for difference in self._repository.diff(parent, revision):
            if difference.path == where and difference.what == "renamed" and difference.before is not None:
                return str(difference.old), difference.before
            if difference.what == "removed" and difference.before is not None and difference.before.kind == FILE:
                gone.append((difference.path, difference.before))
        return self._most_similar(gone[:CANDIDATES], where, node)

    def _most_similar(self, gone: list[tuple[str, Node]], where: str, node: Node) -> tuple[str, Node] | None:
        best, most = None, MIN_SIMILARITY
        if node.size > MAX_BYTES:
            return None
        mine = self._lines(node, where)
        for path, old in gone:
            if not old.size or not 0.5 <= old.size / max(node.size, 1) <= 2:
                continue
            theirs = self._lines(old, path)
            score = 2 * len(set(mine) & set(theirs)) / max(len(set(mine)) + len(set(theirs)), 1)
            if score > most:
                best, most = (path, old), score
        return best

    def _lines(self, node: Node, path: str) -> list[bytes]:
        if node.size > MAX_BYTES:
            raise RametError(
                "limit_exceeded", f"cannot blame {path}: it has {node.size} bytes", f"use files up to {MAX_BYTES} bytes"
            )
        return b"".join(content(self._read, node)).splitlines(keepends=True)

    def _writer(self, revision: Revision, path: str) -> LineWriter | None:
        key = (revision.id, path)
        if key not in self._writers:
            self._writers[key] = writer_of(self._repository, revision, path)
        return self._writers[key]


def writer_of(repository: Repository, revision: Revision, path: str) -> LineWriter | None:
    """Return the command that wrote a path for a revision: the recorded one, or the only candidate."""
    ops = revision.ops
    if ops is None or revision.kernel is None:
        return None
    records = records_of(repository.packs, revision, ops["first"], ops["last"])
    number = ops.get("writers", {}).get(path)
    if number is not None:
        found = [record for record in records if record["number"] == number]
    else:
        # A path may be recorded under another name (`mv new old`): a single writer is still certain.
        found = [record for record in records if record.get("bytes_written")] if len(records) > 1 else records
    if len(found) != 1:
        return None
    record = found[0]
    return LineWriter(record["number"], str(record["session_id"]), str(record["agent_id"]), str(record["command"]))


def _match_lines(old: list[bytes], new: list[bytes]) -> dict[int, int]:
    """Map line numbers of `new` to equal lines of `old`."""
    top = 0
    while top < len(old) and top < len(new) and old[top] == new[top]:
        top += 1
    end = 0
    while end < min(len(old), len(new)) - top and old[-1 - end] == new[-1 - end]:
        end += 1
    same = {number: number for number in range(top)}
    same.update({len(new) - 1 - number: len(old) - 1 - number for number in range(end)})
    matcher = difflib.SequenceMatcher(None, old[top : len(old) - end], new[top : len(new) - end], autojunk=False)
    for block in matcher.get_matching_blocks():
        same.update({top + block.b + number: top + block.a + number for number in range(block.size)})
    return same
