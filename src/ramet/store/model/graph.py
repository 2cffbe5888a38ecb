"""Topological order of a history, and the graph that `log --graph` draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision, decode


class Descent(NamedTuple):
    """What a revision is in a history: enough to order and to find it, and small enough to keep for all of them."""

    id: RevisionId
    parents: tuple[RevisionId, ...]
    time: float
    seq: int
    name: str
    workspace: str
    first: int
    last: int
    """The numbers of the first and the last record that it holds; 0 for none."""


class _Records(msgspec.Struct):
    """The fields of `Revision.ops` that a descent needs."""

    first: int = 0
    last: int = 0


class _Plain(msgspec.Struct):
    """The fields of a stored revision that its descent needs."""

    workspace: str
    seq: int
    parents: list[str]
    time: float
    ops: _Records | None = None


_decoder: Final = msgspec.json.Decoder(_Plain)


def descent_of(identity: RevisionId, revision: Revision | bytes) -> Descent:
    """Return the descent of a revision, or of the bytes of one."""
    if isinstance(revision, bytes):
        try:
            one = _decoder.decode(revision)
        except msgspec.DecodeError:  # a name that is not UTF-8 somewhere in it
            revision = decode(revision)
        else:
            parents = tuple(RevisionId(bytes.fromhex(parent)) for parent in one.parents)
            held = one.ops or _Records()
            name = f"{one.workspace}-{one.seq}"
            return Descent(identity, parents, one.time, one.seq, name, one.workspace, held.first, held.last)
    ops = revision.ops or {}
    return Descent(
        identity, revision.parents, revision.time, revision.seq, revision.name, revision.workspace,
        ops.get("first", 0), ops.get("last", 0),
    )  # fmt: skip


class Ordered(Protocol):
    """What `newest_first` sorts: revisions, or their `Descent`."""

    @property
    def id(self) -> RevisionId: ...
    @property
    def parents(self) -> tuple[RevisionId, ...]: ...
    @property
    def time(self) -> float: ...
    @property
    def seq(self) -> int: ...


One = TypeVar("One", bound=Ordered)


def newest_first(revisions: Iterable[One]) -> list[One]:
    """Sort children before their parents, and the newer of two unrelated revisions first. Deterministic."""
    import heapq

    known = {revision.id: revision for revision in revisions}
    children = dict.fromkeys(known, 0)
    for revision in known.values():
        for parent in set(revision.parents) & known.keys():
            children[parent] += 1
    ready = [_rank(revision) for revision in known.values() if not children[revision.id]]
    heapq.heapify(ready)
    found: list[One] = []
    while ready:
        revision = known[heapq.heappop(ready)[-1]]
        found.append(revision)
        for parent in set(revision.parents) & known.keys():
            children[parent] -= 1
            if not children[parent]:
                heapq.heappush(ready, _rank(known[parent]))
    return found


def _rank(revision: Ordered) -> tuple[float, int, RevisionId]:
    return -revision.time, -revision.seq, revision.id


@dataclass(frozen=True)
class GraphRow:
    """One line of the graph; `revision` is None on connecting lines."""

    lines: str
    revision: Revision | None = None


def draw_graph(revisions: Sequence[Revision]) -> list[GraphRow]:
    """Draw a history, newest first, with one column per open line of descent."""
    present = {revision.id for revision in revisions}
    columns: list[RevisionId] = []
    rows: list[GraphRow] = []
    for revision in revisions:
        if revision.id not in columns:
            columns.append(revision.id)
        here = columns.index(revision.id)
        rows.append(GraphRow(_marks(len(columns), here), revision))
        parents = [parent for parent in dict.fromkeys(revision.parents) if parent in present]
        _advance(columns, here, parents, rows)
    return rows


def _advance(columns: list[RevisionId], here: int, parents: list[RevisionId], rows: list[GraphRow]) -> None:
    """Replace a revision by its parents in the columns, and draw the connecting lines."""
    width = len(columns)
    first = parents[0] if parents else None
    for parent in parents[1:]:
        if parent in columns:
            there = columns.index(parent)
            rows.append(GraphRow(_bridge(width, here, there)))
        else:
            columns.insert(here + 1, parent)
            rows.append(GraphRow("| " * here + "|\\" + " \\" * (width - here - 1)))
            width = len(columns)
    if first is not None and first in columns and columns.index(first) != here:
        there = columns.index(first)
        left, right = min(here, there), max(here, there)
        rows.append(GraphRow("| " * left + "|" + "_" * (2 * (right - left) - 2) + "/" + " /" * (width - right - 1)))
        del columns[right]
        columns[left] = first
    elif first is not None:
        columns[here] = first
    else:
        del columns[here]
        if here < len(columns):
            rows.append(GraphRow("| " * here + " /" * (len(columns) - here)))


def _marks(width: int, here: int) -> str:
    return " ".join("*" if number == here else "|" for number in range(width))


def _bridge(width: int, here: int, there: int) -> str:
    left, right = min(here, there), max(here, there)
    middle = "\\" if there > here else "/"
    row = ["|" if number % 2 == 0 else " " for number in range(2 * width - 1)]
    row[2 * left + 1 : 2 * right] = ["_"] * (2 * (right - left) - 2) + [middle]
    return "".join(row)
