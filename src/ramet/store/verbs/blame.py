"""Blame: follow the lines of a file back through revisions, merges, reverts, undos, renames and copies.

- An unchanged file costs one comparison of ids; its text is read only where it changed, and once for each change.
- A revision says which record wrote which lines (`ops`, see `workspace/record/ledger.py`). Where it does not know,
  neither does blame: a line has the right writer or none.
- Revisions of older versions recorded only the last writer of a path. It counts where no other record of the revision
  wrote anything.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ramet.core.errors import RametError
from ramet.store.checkout.walk import content, find_node, no_such_path
from ramet.store.commit.kernel_state import records_of
from ramet.store.model import lines as text
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.model.trees import FILE, Node
from ramet.store.verbs.undo import undone_by

if TYPE_CHECKING:
    from ramet.store.repository import Repository

MAX_BYTES: Final = 16 * 1024 * 1024
"""Largest file in bytes; a larger one is refused."""
MIN_SIMILARITY: Final = 0.5
CANDIDATES: Final = 64
"""Removed files per revision that are compared to find a changed rename."""
REMEMBERED: Final = 4
"""Files that are kept for the next comparison."""
UNNAMED: Final = "default"
"""The agent of calls that name none."""
Pairs = list[tuple[int, int]]
"""Lines as pairs: line in the file of a revision, line in the result."""


@dataclass(frozen=True)
class LineWriter:
    """The command that wrote a line."""

    number: int
    session_id: str
    agent_id: str
    command: str
    kind: str = "command"
    principal: str = ""


@dataclass(frozen=True)
class BlameLine:
    """A line with the revision that added it, its path there, and the command that wrote it if known."""

    number: int
    text: bytes
    revision: Revision
    path: str
    writer: LineWriter | None = None

    def __repr__(self) -> str:
        by = "" if self.writer is None else f" by {self.writer.agent_id}: {self.writer.command!r}"
        return f"<BlameLine {self.number} {self.revision.name}{by}>"

    @property
    def author(self) -> str:
        """Who wrote the line, by the best known name; empty when unknown."""
        if self.writer is not None:
            named = self.writer.agent_id if self.writer.agent_id != UNNAMED else ""
            return named or self.revision.author or self.writer.agent_id
        return self.revision.author or (self.revision.agent if self.revision.ops is None else "")


def blame(repository: Repository, revision: Revision, path: str) -> list[BlameLine]:
    """Return every line of a file with its origin."""
    return _Blame(repository).run(revision, path)


class _Blame:
    def __init__(self, repository: Repository) -> None:
        self._repository, self._read = repository, repository.packs.read
        self._records: dict[tuple[RevisionId, int], LineWriter | None] = {}
        self._names: dict[str, RevisionId] | None = None
        self._texts: dict[bytes, list[bytes]] = {}
        """The lines of the last files that were read: each is compared with a newer and with an older one."""
        self._nodes: dict[tuple[RevisionId, str], Node | None] = {}
        """The last files that were found."""

    def run(self, start: Revision, path: str) -> list[BlameLine]:
        node = find_node(self._read, start, path)
        if node is None or node.kind != FILE:
            raise no_such_path(start, path)
        lines = self._lines(node, path)
        found: list[tuple[Revision, str, int] | None] = [None] * len(lines)
        open_: dict[RevisionId, dict[str, Pairs]] = {
            start.id: {path: [(number, number) for number in range(len(lines))]}
        }
        self._start = start
        line, following = set[RevisionId](), start.id  # the first parents
        for one in self._repository.descents_of(start):
            if not open_:
                break  # every line has its origin
            if one.id == following:
                line.add(one.id)
                following = one.parents[0] if one.parents else following
            if one.id not in open_:
                continue
            revision = self._repository.read_revision(one.id)
            for where, wanted in open_.pop(one.id).items():
                for here, record in self._written_here(revision, where, wanted, open_):
                    found[here] = revision, where, record
        self._read_writers(start, {(r.id, number) for r, _, number in filter(None, found) if number and r.id in line})
        return [
            BlameLine(number + 1, lines[number], one[0], one[1], self._writer(one[0], one[2]))
            for number, one in enumerate(found)
            if one is not None
        ]

    def _read_writers(self, start: Revision, wanted: set[tuple[RevisionId, int]]) -> None:
        """Read records of first parents, which have the same numbers in the whole line."""
        if not wanted:
            return
        numbers = [number for _, number in wanted]
        plain = records_of(self._repository.packs, start, min(numbers), max(numbers))
        known = {record["number"]: record for record in plain}
        for identity, number in wanted:
            if number in known:  # a long history has lost the oldest records, which older revisions still have
                self._records[identity, number] = _line_writer(known[number])

    def _find(self, revision: Revision, path: str) -> Node | None:
        key = revision.id, path
        if key not in self._nodes:
            _forget_old(self._nodes)
            self._nodes[key] = find_node(self._read, revision, path)
        return self._nodes[key]

    def _named(self, name: str) -> Revision | None:
        """Return the revision of the history that has a name."""
        if self._names is None:
            self._names = {one.name: one.id for one in self._repository.descents_of(self._start)}
        found = self._names.get(name)
        return None if found is None else self._repository.read_revision(found)

    def _written_here(
        self, revision: Revision, where: str, wanted: Pairs, open_: dict[RevisionId, dict[str, Pairs]]
    ) -> list[tuple[int, int]]:
        """Hand lines over to the revisions that they come from; returns the others, with their records."""
        node = self._find(revision, where)
        assert node is not None
        own = _OwnLines(revision, where)
        written: list[tuple[int, int]] = []
        if own.records:
            written = [(here, own.records[there]) for there, here in wanted if there in own.records]
            wanted = [pair for pair in wanted if pair[0] not in own.records]
        doubtful = False
        for parent, old_path, old in self._sources(revision, where, node):
            if not wanted:
                break
            given: Pairs
            kept: Pairs
            if old.payload == node.payload:
                given, kept = wanted, []
            elif (same := self._match(old, old_path, node, where, own)) is not None:
                given, kept = _hand_over(wanted, same)
            else:
                doubtful, given, kept = True, [], wanted
            barred = self._undone_lines(revision, parent, old_path)
            if barred:
                back = {here for there, here in given if there in barred}
                given = [pair for pair in given if pair[1] not in back]
                kept = kept + [pair for pair in wanted if pair[1] in back]
            if given:
                open_.setdefault(parent.id, {}).setdefault(old_path, []).extend(given)
            wanted = kept
        record = 0 if doubtful else own.only or self._only_record(revision, where)
        return written + [(here, record) for _, here in wanted]

    def _match(self, old: Node, old_path: str, node: Node, where: str, own: _OwnLines) -> text.Matched | None:
        """Match the lines of a file to those of its earlier version; None when the comparison would take too long."""
        before, after = self._lines(old, old_path), self._lines(node, where)
        if not own.records:
            return text.match(before, after)
        # Without the lines that are known to be new, the rest is the earlier version without some lines.
        left = [number for number in range(len(after)) if number not in own.records]
        kept = [after[number] for number in left]
        matched = text.match(before, kept)
        same = None if matched is None else matched.pairs(len(kept))
        if same is None or len(same) < len(kept):
            whole = text.embed(before, kept)
            same = whole if len(whole) == len(kept) else same
        if same is None:
            return None
        return text.Matched(0, len(after), 0, {left[number]: there for number, there in same.items()})

    def _sources(self, revision: Revision, where: str, node: Node) -> list[tuple[Revision, str, Node]]:
        """Return where the lines may come from: parents, and what a revert or undo restored. Equal files come first."""
        how, _, name = revision.lineage.partition(":")
        found: list[tuple[Revision, str, Node]] = []
        for parent in self._repository.parents_of(revision):
            source = self._source(parent, revision, where, node)
            if source is not None:
                found.append((parent, *source))
        found += self._restored(revision, where)
        target = self._named(name) if how == "revert" else None
        if target is not None:
            old = find_node(self._read, target, where)
            if old is not None and old.kind == FILE:
                found.insert(0, (target, where, old))
        # A file that the revert did not touch comes from the parent.
        return sorted(found, key=lambda one: (one[2].payload != node.payload, one[0] is target and len(found) > 1))

    def _restored(self, revision: Revision, where: str) -> list[tuple[Revision, str, Node]]:
        """Return the file as it was before each change of it that an undo took back, newest first."""
        found: list[tuple[Revision, str, Node]] = []
        for undone in filter(None, map(self._named, undone_by(revision))):
            for before in self._repository.parents_of(undone)[:1]:
                old, new = find_node(self._read, before, where), find_node(self._read, undone, where)
                if old is not None and old.kind == FILE and (new is None or new.payload != old.payload):
                    found.append((before, where, old))
        return found

    def _undone_lines(self, revision: Revision, source: Revision, path: str) -> set[int]:
        """Return the lines of a source that come from an older revision which the same undo took back."""
        undone = undone_by(revision)
        if len(undone) < 2 or source.id in revision.parents:
            return set()
        return {one.number - 1 for one in _Blame(self._repository).run(source, path) if one.revision.name in undone}

    def _source(self, parent: Revision, revision: Revision, where: str, node: Node) -> tuple[str, Node] | None:
        """Return the path of the file in a parent: the same path, or the one it was renamed or copied from."""
        ops = revision.ops or {}
        if "lines" in ops:
            path = ops.get("from", {}).get(where)
            if path is None:
                path = text.origin(ops.get("moves", ()), where)
            old = self._find(parent, path) if path else None
            if path is not None and old is None and ops.get("writers", {}).get(where):
                return self._most_similar(self._removed_by(revision, parent, ops["writers"][where]), where, node)
            return (path, old) if path and old is not None and old.kind == FILE else None
        old = self._find(parent, where)
        if old is not None:
            return (where, old) if old.kind == FILE else None
        gone: list[tuple[str, Node]] = []
        for difference in self._repository.diff(parent, revision):
            if difference.path == where and difference.what == "renamed" and difference.before is not None:
                return str(difference.old), difference.before
            if difference.what == "removed" and difference.before is not None and difference.before.kind == FILE:
                gone.append((difference.path, difference.before))
        return self._most_similar(gone[:CANDIDATES], where, node)

    def _removed_by(self, revision: Revision, parent: Revision, number: int) -> list[tuple[str, Node]]:
        """Return the files that a record removed: `sed ... old > new; rm old` is a rename with changes."""
        paths = [path for one in self._plain(revision, number) for path in one.get("paths_removed", ())]
        found = [(str(path), find_node(self._read, parent, str(path))) for path in paths[:CANDIDATES]]
        return [(path, old) for path, old in found if old is not None and old.kind == FILE]

    def _plain(self, revision: Revision, number: int) -> list[dict[str, Any]]:
        return records_of(self._repository.packs, revision, number, number) if number else []

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
        found = self._texts.get(node.payload)
        if found is None:
            _forget_old(self._texts)
            found = self._texts[node.payload] = text.split(b"".join(content(self._read, node)))
        return found

    def _only_record(self, revision: Revision, path: str) -> int:
        """Return the record that wrote a path in a revision of an older version; 0 when that is not certain."""
        ops = revision.ops
        if ops is None or "lines" in ops or revision.kernel is None:
            return 0
        number = int(ops.get("writers", {}).get(path, 0))
        records = records_of(self._repository.packs, revision, ops["first"], ops["last"])
        wrote = {int(record["number"]) for record in records if record.get("bytes_written")}
        return number if wrote <= {number} else 0

    def _writer(self, revision: Revision, number: int) -> LineWriter | None:
        key = (revision.id, number)
        if key not in self._records:
            found = self._plain(revision, number)
            self._records[key] = _line_writer(found[0]) if found else None
        return self._records[key]


def _hand_over(wanted: Pairs, same: text.Matched) -> tuple[Pairs, Pairs]:
    """Return the lines that were there before, as they are in the older file, and the others."""
    wanted.sort()
    above = bisect_left(wanted, (same.top, -1))
    below = bisect_left(wanted, (same.bottom, -1))
    given = wanted[:above]
    kept: Pairs = []
    for there, here in wanted[above:below]:
        if there in same.inside:
            given.append((same.inside[there], here))
        else:
            kept.append((there, here))
    rest, shift = wanted[below:], same.shift
    given += [(there - shift, here) for there, here in rest] if shift else rest
    return given, kept


def _forget_old(memo: dict[Any, Any]) -> None:
    """Make room in a memo of what is needed again soon."""
    while len(memo) >= REMEMBERED:
        del memo[next(iter(memo))]


class _OwnLines:
    """The lines of a file that its revision says were written in it."""

    def __init__(self, revision: Revision, path: str) -> None:
        ops = revision.ops or {}
        self.records: dict[int, int] = {}
        """The record of each such line; 0 for an unknown one."""
        for first, count, record in ops.get("lines", {}).get(path, ()):
            self.records.update(dict.fromkeys(range(first, first + count), record))
        self.only = int(ops.get("writers", {}).get(path, 0)) if "lines" in ops else 0
        """The record that wrote all lines that are not from before."""


def _line_writer(record: dict[str, Any]) -> LineWriter:
    return LineWriter(
        record["number"], str(record["session_id"]), str(record["agent_id"]), str(record["command"]),
        str(record.get("kind", "command")), str(record.get("principal", "")),
    )  # fmt: skip
