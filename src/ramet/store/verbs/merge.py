"""Three-way merge of trees: disjoint changes combine, text merges by lines, the rest is a conflict.

Conflicts are data: a merge with conflicts that nothing resolves has no tree. `conflict_text` is for editors.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ramet.core.errors import RametError
from ramet.core.paths import decode as decode_name
from ramet.store.model import trees
from ramet.store.model.chunker import WHOLE
from ramet.store.model.ids import TreeId, chunk_id, tree_id
from ramet.store.model.trees import DIR, FILE, Node

Read = Callable[[bytes], bytes]


class MergeWriter(Protocol):
    """Takes new trees and chunks."""

    def add(self, key: bytes, data: bytes, /) -> None: ...


Why = Literal["both changed", "changed and removed", "different kinds"]


@dataclass(frozen=True)
class MergeConflict:
    """A path that both sides changed incompatibly."""

    path: str
    why: Why
    base: Node | None
    ours: Node | None
    theirs: Node | None


Side = Literal["ours", "theirs"]
Edit = tuple[int, int, list[bytes]]


@dataclass(frozen=True)
class Resolution:
    """How conflicts are resolved: by the side to take, or by a new content, for each path. `*` is any path."""

    take: Mapping[str, Side] = field(default_factory=dict)
    edited: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path, side in self.take.items():
            if side not in ("ours", "theirs"):
                raise RametError("invalid_argument", f"cannot take {side!r} of {path}", "Take `ours` or `theirs`.")
        for path, content in self.edited.items():
            if len(content) > WHOLE:
                raise RametError(
                    "limit_exceeded", f"cannot resolve {path} with more than {WHOLE} bytes", "Take one side of it."
                )

    def below(self, prefix: str) -> Resolution:
        """Return the part for a mount, with paths inside it."""
        top = prefix.rstrip("/")

        def inside(path: str) -> bool:
            return path.startswith(f"{top}/")

        take = {
            path if path == "*" else path[len(top) :]: v for path, v in self.take.items() if path == "*" or inside(path)
        }
        return Resolution(take, {path[len(top) :]: v for path, v in self.edited.items() if inside(path)})

    def paths(self) -> set[str]:
        return ({*self.take} | {*self.edited}) - {"*"}


@dataclass
class TreeMerge:
    """The tree of a clean merge, or the conflicts."""

    tree: TreeId | None
    conflicts: list[MergeConflict] = field(default_factory=list)
    resolved: set[str] = field(default_factory=set)


def merge_trees(
    read: Read,
    writer: MergeWriter,
    base: TreeId | None,
    ours: TreeId | None,
    theirs: TreeId | None,
    resolution: Resolution | None = None,
) -> TreeMerge:
    """Combine two trees that come from `base`; conflicts that `resolution` names are resolved by it."""
    work = _Merge(read, writer, resolution or Resolution())
    tree = work.directory(base, ours, theirs, "")
    return TreeMerge(None if work.conflicts else tree, work.conflicts, work.resolved)


@dataclass
class _Merge:
    read: Read
    writer: MergeWriter
    resolution: Resolution
    conflicts: list[MergeConflict] = field(default_factory=list)
    resolved: set[str] = field(default_factory=set)

    def nodes(self, tree: TreeId | None) -> dict[bytes, Node]:
        return {} if tree is None else {node.name: node for node in trees.decode(self.read(tree))}

    def directory(self, base: TreeId | None, ours: TreeId | None, theirs: TreeId | None, where: str) -> TreeId:
        if ours == theirs or theirs == base:
            return ours if ours is not None else self.store([])
        if ours == base:
            return theirs if theirs is not None else self.store([])
        old, mine, yours = self.nodes(base), self.nodes(ours), self.nodes(theirs)
        kept: list[Node] = []
        for name in sorted({*old, *mine, *yours}):
            node = self.entry(old.get(name), mine.get(name), yours.get(name), f"{where}/{decode_name(name)}")
            if node is not None:
                kept.append(node)
        return self.store(kept)

    def store(self, nodes: list[Node]) -> TreeId:
        encoded = trees.encode(nodes)
        identity = tree_id(encoded)
        self.writer.add(identity, encoded)
        return identity

    def entry(self, base: Node | None, ours: Node | None, theirs: Node | None, path: str) -> Node | None:
        if _same(ours, theirs) or _same(theirs, base):
            return ours
        if _same(ours, base):
            return theirs
        if ours is None or theirs is None:
            return self.conflict(path, "changed and removed", base, ours, theirs)
        if ours.kind == theirs.kind == DIR:
            before = base.tree if base is not None and base.kind == DIR else None
            below = self.directory(before, ours.tree, theirs.tree, path)
            mode = theirs.mode if base is not None and ours.mode == base.mode else ours.mode
            return ours._replace(payload=below, mode=mode, mtime_ns=max(ours.mtime_ns, theirs.mtime_ns))
        if ours.kind != theirs.kind:
            return self.conflict(path, "different kinds", base, ours, theirs)
        if ours.kind == FILE and base is not None and base.kind == FILE:
            return self.file(base, ours, theirs, path)
        return self.conflict(path, "both changed", base, ours, theirs)

    def conflict(self, path: str, why: Why, base: Node | None, ours: Node | None, theirs: Node | None) -> Node | None:
        edited = self.resolution.edited.get(path)
        side = self.resolution.take.get(path) or self.resolution.take.get("*")
        if edited is None and side is None:
            self.conflicts.append(MergeConflict(path, why, base, ours, theirs))
            return ours
        self.resolved.add(path)
        if edited is None:
            return ours if side == "ours" else theirs
        like = next((node for node in (ours, theirs, base) if node is not None and node.kind == FILE), None)
        if like is None:
            raise RametError(
                "invalid_argument", f"cannot resolve {path} with text: it is no file", "Take one side of it."
            )
        payload = chunk_id(edited) if edited else b""
        if edited:
            self.writer.add(payload, edited)
        return like._replace(payload=payload, size=len(edited))

    def file(self, base: Node, ours: Node, theirs: Node, path: str) -> Node | None:
        mode = theirs.mode if ours.mode == base.mode else ours.mode
        mtime_ns = max(ours.mtime_ns, theirs.mtime_ns)
        if ours.payload == base.payload or ours.payload == theirs.payload:
            return theirs._replace(mode=mode, mtime_ns=mtime_ns)
        if theirs.payload == base.payload:
            return ours._replace(mode=mode, mtime_ns=mtime_ns)
        if max(base.size, ours.size, theirs.size) > WHOLE:
            return self.conflict(path, "both changed", base, ours, theirs)
        merged = merge_text(self.content(base), self.content(ours), self.content(theirs))
        if merged is None:
            return self.conflict(path, "both changed", base, ours, theirs)
        payload = chunk_id(merged) if merged else b""
        if merged:
            self.writer.add(payload, merged)
        return ours._replace(payload=payload, size=len(merged), mode=mode, mtime_ns=mtime_ns)

    def content(self, node: Node) -> bytes:
        return b"".join(self.read(chunk) for chunk in node.chunks)


def _same(one: Node | None, other: Node | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.mode, one.payload) == (other.kind, other.mode, other.payload)


def merge_text(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge the changes of both sides; None when they overlap, or the content is binary."""
    if b"\0" in base or b"\0" in ours or b"\0" in theirs:
        return None
    old = base.splitlines(keepends=True)
    mine, yours = _edits(old, ours.splitlines(keepends=True)), _edits(old, theirs.splitlines(keepends=True))
    result: list[bytes] = []
    at = 0
    while mine or yours:
        first = min((edits[0] for edits in (mine, yours) if edits), key=lambda edit: edit[:2])
        for edits in (mine, yours):
            if edits and edits[0] != first and (edits[0][0] < first[1] or edits[0][0] == first[0]):
                return None  # overlapping edits, or two insertions at the same line
        result += old[at : first[0]] + first[2]
        at = first[1]
        for edits in (mine, yours):
            if edits and edits[0] == first:
                edits.pop(0)
    result += old[at:]
    return b"".join(result)


def conflict_text(base: bytes, ours: bytes, theirs: bytes, names: tuple[str, str]) -> bytes | None:
    """Return the merged text with git's markers around what conflicts; None for binary content."""
    if b"\0" in base or b"\0" in ours or b"\0" in theirs:
        return None
    old = base.splitlines(keepends=True)
    sides = [text.splitlines(keepends=True) for text in (ours, theirs)]
    edits = [_edits(old, side) for side in sides]
    result: list[bytes] = []
    at = 0
    while edits[0] or edits[1]:
        start, end = min(rows[0][:2] for rows in edits if rows)
        group: list[list[Edit]] = [[], []]
        grown = True
        while grown:
            grown = False
            for which, rows in enumerate(edits):
                while rows and (rows[0][0] < end or rows[0][0] == start):
                    group[which].append(rows.pop(0))
                    end, grown = max(end, group[which][-1][1]), True
        mine, yours = (_apply(old, start, end, rows) for rows in group)
        result += old[at:start]
        at = end
        if not group[1] or mine == yours:
            result += mine
        elif not group[0]:
            result += yours
        else:
            result += [b"<<<<<<< %s\n" % names[0].encode(), *_ended(mine), b"=======\n", *_ended(yours)]
            result.append(b">>>>>>> %s\n" % names[1].encode())
    return b"".join(result + old[at:])


def _apply(old: list[bytes], start: int, end: int, edits: list[Edit]) -> list[bytes]:
    """Lines [start, end) of the old text with the edits made."""
    result: list[bytes] = []
    for first, last, lines in edits:
        result += old[start:first] + lines
        start = last
    return result + old[start:end]


def _ended(lines: list[bytes]) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + b"\n" for line in lines]


def _edits(old: list[bytes], new: list[bytes]) -> list[Edit]:
    """Return the edits: from line, to line, replacement."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(a, b, new[c:d]) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


class TreeStage:
    """New trees that are readable before they are durable."""

    def __init__(self, read: Read, writer: MergeWriter) -> None:
        self._read, self._writer = read, writer
        self._made: dict[bytes, bytes] = {trees.EMPTY_ID: trees.EMPTY}

    def read(self, key: bytes) -> bytes:
        made = self._made.get(key)
        return made if made is not None else self._read(key)

    def add(self, nodes: Iterable[Node]) -> TreeId:
        encoded = trees.encode(nodes)
        identity = tree_id(encoded)
        self._made[identity] = encoded
        self._writer.add(identity, encoded)
        return identity


def graft(drafts: TreeStage, tree: TreeId, past: TreeId | None, parts: list[str]) -> TreeId:
    """Return `tree` with the entry at `parts` as in `past`: replaced, restored, or removed."""
    nodes = {node.name: node for node in trees.decode(drafts.read(tree))}
    name = parts[0].encode("utf-8", "surrogateescape")
    then = None
    if past is not None:
        then = next((node for node in trees.decode(drafts.read(past)) if node.name == name), None)
    if len(parts) == 1:
        if then is None:
            nodes.pop(name, None)
        else:
            nodes[name] = then
        return drafts.add(nodes.values())
    now = nodes.get(name)
    below = now.tree if now is not None and now.kind == DIR else trees.EMPTY_ID
    if now is None or now.kind != DIR:
        if then is None or then.kind != DIR:
            return tree
        now = then
    source = then.tree if then is not None and then.kind == DIR else None
    nodes[name] = now._replace(payload=graft(drafts, below, source, parts[1:]))
    return drafts.add(nodes.values())
