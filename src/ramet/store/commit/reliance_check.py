"""Check before a head moves that all objects a new revision refers to will stay.

A commit trusts memos, stat caches and indexes. Before the head moves, every reference that the previous revision does
not have is checked against the decisions of collections; objects in condemned packs are written again, and a missing
object is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ramet.core.errors import RametError
from ramet.store.model import trees
from ramet.store.model.ids import SIZE
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import Objects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


def content_collected(revision: Revision) -> RametError:
    return RametError(
        "content_collected", f"cannot commit {revision.name}: a collection removed content that it needs",
        "commit again; missing content is written again",
    )  # fmt: skip


def secure_content(objects: Objects, packs: PackReader, revision: Revision, before: Revision | None) -> None:
    """Write objects in condemned packs again, unless the previous revision has them too."""
    writer = PackWriter(objects, packs)
    shaky = {key for key in new_object_ids(packs, revision, before) if not writer.has(key)}
    if not shaky:
        return
    try:
        for key in sorted(shaky):
            writer.add(key, packs.read(key))
        writer.finish()
    except RametError as error:
        writer.abandon()
        if error.code == "store_corrupt":
            raise content_collected(revision) from None
        raise


def new_object_ids(packs: PackReader, revision: Revision, before: Revision | None) -> Iterator[bytes]:
    """Yield ids that a revision needs, without those below trees that its predecessor has at the same path."""
    known = set(before.chunks) if before is not None else set()
    yield from (chunk for chunk in revision.chunks if chunk not in known)
    old = {mount.prefix: mount.trees for mount in before.mounts} if before is not None else {}
    pending: list[tuple[bytes, tuple[bytes, ...]]] = [
        (tree, old.get(mount.prefix, ())) for mount in revision.mounts for tree in mount.trees
    ]
    seen: set[bytes] = set()
    while pending:
        tree, siblings = pending.pop()
        if tree in siblings or tree in seen:
            continue
        seen.add(tree)
        yield tree
        nodes = _read(packs, tree, revision)
        theirs: dict[tuple[bytes, int], list[bytes]] = {}
        for other in siblings:
            for node in _read(packs, other, revision):
                theirs.setdefault((node.name, node.kind), []).append(node.payload)
        for node in nodes:
            same = theirs.get((node.name, node.kind), ())
            if node.kind == trees.DIR:
                pending.append((node.payload, tuple(same)))
            elif node.kind == trees.FILE and node.payload not in same:
                yield from _parts(node.payload)


def _parts(payload: bytes) -> Iterable[bytes]:
    return (payload[at : at + SIZE] for at in range(0, len(payload), SIZE))


def _read(packs: PackReader, tree: bytes, revision: Revision) -> list[trees.Node]:
    try:
        return trees.decode(packs.read(tree))
    except RametError as error:
        if error.code == "store_corrupt":
            raise content_collected(revision) from None
        raise
