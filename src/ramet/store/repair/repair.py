"""`repair`: restore damaged objects from any readable copy, and report what is lost.

- Nothing damaged is deleted without `drop`: it moves to `damaged/`, outside of all lookups.
- A replacement is durable before the damaged object moves.
- Heads move only with `drop`, only to complete revisions, and the log records it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ramet.core.errors import RametError
from ramet.core.progress import Progress, silent
from ramet.store.crypto.codec import FrameCodec, as_encrypted, frame_codec
from ramet.store.model.ids import RevisionId, kind_of
from ramet.store.model.revisions import Revision
from ramet.store.objects.log import joined_rows
from ramet.store.objects.objects import Objects
from ramet.store.packs.index import Index
from ramet.store.packs.reader import PackReader
from ramet.store.packs.repack import RepackWriters
from ramet.store.refs.drafts import read_drafts
from ramet.store.refs.refs import decode as decode_entry
from ramet.store.repair.salvage import MissingObjects, find_objects
from ramet.store.repair.verify import (
    Damage,
    PackScan,
    Reachability,
    open_whole_first,
    pack_objects,
    read_index,
    read_revisions,
    scan_packs,
    verify,
)

if TYPE_CHECKING:
    from ramet.store.repository import Repository


@dataclass
class Repaired:
    """What a repair did."""

    salvaged: int = 0
    """Objects that were recovered from damaged packs."""
    rebuilt: list[str] = field(default_factory=list)
    """Packs whose index was rebuilt."""
    moved: list[str] = field(default_factory=list)
    """Damaged objects that were moved to `damaged/`, or deleted with `drop`."""
    heads: dict[str, str] = field(default_factory=dict)
    """Workspaces whose head moved to a complete revision, and its name (empty for none)."""
    tags: list[str] = field(default_factory=list)
    """Tags that were removed because their revision is lost."""
    lost: list[Damage] = field(default_factory=list)
    """Damage that remains."""

    @property
    def ok(self) -> bool:
        return not self.lost


def repair(repository: Repository, drop: bool = False, progress: Progress = silent) -> Repaired:
    done = Repaired()
    objects = repository.objects
    scan = scan_packs(objects, progress)
    wants = _find_missing(objects, scan)
    broken = sorted({*scan.packs, *scan.indexes, *_without_index(objects, scan, wants)})
    if broken:
        _salvage(objects, scan, broken, wants, done, progress)
        for name in broken:
            for key in (f"packs/{name}.idx", f"packs/{name}.pack"):
                quarantine(objects, key, drop, done)
    for name in read_revisions(objects)[1]:
        quarantine(objects, f"revisions/{name}", drop, done)
    for draft in read_drafts(objects):
        for key in (*draft.broken, *draft.unreached):
            quarantine(objects, key, drop, done)
    for key in [key for key in objects.list("past/") if not _is_past(objects, key)]:
        quarantine(objects, key, drop, done)
    repository.gc_log.mend(repository.clock())
    if drop:
        _drop(repository, done, progress)
    done.lost = verify(objects, repository.refs, repository.tags, repository.gc_log, progress).damages
    return done


def _is_past(objects: Objects, key: str) -> bool:
    """Return whether compacted log entries are readable; the log works without them."""
    try:
        return joined_rows(objects.get(key)) is not None
    except RametError:
        return False


def _find_missing(objects: Objects, scan: PackScan) -> MissingObjects:
    """Return the objects that revisions need and no complete copy has."""
    reader = open_whole_first(objects, scan)

    def size_of(identity: bytes) -> int | None:
        place = reader.find(identity)
        return None if place is None else place.size

    wants = MissingObjects(scan.good, reader.read, size_of)
    for revision in read_revisions(objects)[0].values():
        for mount in revision.mounts:
            for tree in mount.trees:
                wants.tree(tree)
        for chunk in revision.chunks:
            wants.chunk(chunk)
    return wants


def _without_index(objects: Objects, scan: PackScan, wants: MissingObjects) -> list[str]:
    """Return packs without an index, when a missing object may be in them."""
    if not wants.missing:
        return []
    keys = set(objects.list("packs/"))
    return [name for name in scan.names if f"packs/{name}.idx" not in keys]


def _salvage(
    objects: Objects, scan: PackScan, broken: list[str], wants: MissingObjects, done: Repaired, progress: Progress
) -> None:
    """Repack the readable objects of damaged packs.

    An object found in one pack may tell what to search in another: repeat until nothing new is found.
    """
    reader = PackReader(objects)
    for name in scan.names:
        if name not in broken and (whole := read_index(objects, name)) is not None:
            reader.load(whole.pack)
    codec = frame_codec(objects)
    writers = RepackWriters(objects, reader)
    rebuilt: set[str] = set()
    more = True
    try:
        while more:
            before = done.salvaged
            for number, name in enumerate(broken):
                progress("salvage", number, len(broken))
                try:
                    data = objects.get(f"packs/{name}.pack")
                except KeyError:
                    continue
                index = read_index(objects, name)
                writer = writers.for_pack(name)
                for identity, held in _readable(data, index, wants, codec) if writer is not None else ():
                    assert writer is not None
                    wants.take(identity, held)
                    if not writer.has(identity):
                        writer.add(identity, held)
                        done.salvaged += 1
                    if index is None or name in scan.indexes:
                        rebuilt.add(name)
            more = done.salvaged > before and (wants.learn() or bool(wants.missing))
        writers.finish()
    except BaseException:
        writers.abandon()
        raise
    done.rebuilt += sorted(rebuilt)


def _readable(
    data: bytes, index: Index | None, wants: MissingObjects, codec: FrameCodec
) -> Iterator[tuple[bytes, bytes]]:
    """Yield valid objects of a pack: those in its index, and wanted ones between them."""
    taken: dict[int, list[tuple[int, int]]] = {}
    if index is not None:
        for identity, held in pack_objects(data, index, codec):
            place = index.find(identity)
            if held is not None and place is not None and kind_of(identity, held) is not None:
                taken.setdefault(place.start, []).append((place.offset, place.offset + place.size))
                yield identity, held
    gaps: list[bytes] = []
    for start, block in codec.blocks(data):
        at = 0
        for begin, end in [*sorted(taken.get(start, [])), (len(block), len(block))]:
            if begin > at:
                gaps.append(block[at:begin])
            at = max(at, end)
    yield from find_objects(gaps, wants).items()


def quarantine(objects: Objects, key: str, drop: bool = False, done: Repaired | None = None) -> None:
    """Move a damaged object to `damaged/`, or delete it with `drop`."""
    sealed = as_encrypted(objects)
    objects = objects if sealed is None else sealed.raw_objects  # damaged bytes do not decrypt
    try:
        data = objects.get(key)
    except KeyError:
        return
    if not drop:
        objects.put(f"damaged/{key}", data)
    objects.delete(key)
    if done is not None:
        done.moved.append(key)


# --------------------------------------------------------------------------------------------- dropping what is lost


def _drop(repository: Repository, done: Repaired, progress: Progress) -> None:
    """Point every workspace and tag to a complete revision."""
    objects = repository.objects
    scan = scan_packs(objects, progress)
    reach = Reachability(scan, open_whole_first(objects, scan))
    revisions = read_revisions(objects)[0]
    sound = {identity for identity, revision in revisions.items() if not reach.missing(revision)}
    for draft in read_drafts(objects):
        if draft.opened is not None and reach.missing_for(draft):
            for key in draft.keys:
                quarantine(objects, key, False, done)
    for name in repository.refs.all_names():
        _mend_head(repository, name, revisions, sound, done)
        try:
            repository.refs.require(name)
        except RametError:
            continue
        for tag in repository.tags.of(name):
            if tag.target not in sound:
                repository.tags.delete(name, tag.name)
                done.tags.append(f"{name}@{tag.name}")


def _mend_head(
    repository: Repository, name: str, revisions: dict[RevisionId, Revision], sound: set[RevisionId], done: Repaired
) -> None:
    """Move a lost head to its newest complete predecessor."""
    heads: list[RevisionId] = []
    number, fence, damaged, deleted, latest = 0, 0, False, False, None
    for number, data in repository.refs.raw(name):
        try:
            entry = decode_entry(name, number, data)
        except RametError:
            damaged = True
            continue
        damaged, fence, deleted, latest = False, entry.fence, entry.deleted, entry.latest
        if entry.head is not None and (not heads or heads[-1] != entry.head):
            heads.append(entry.head)
    shallow = repository.gc_log.now().shallow
    damaged |= latest is not None and latest not in sound
    if deleted or (not damaged and (not heads or _whole_history(heads[-1], revisions, sound, shallow))):
        return
    best = next((head for head in reversed(heads) if head in sound), None)
    if best is not None and not _whole_history(best, revisions, sound, shallow):
        best = _cut_off(repository, name, revisions[best])
    repository.refs.mend(name, number + 1, best, fence + 1)
    done.heads[name] = "" if best is None else repository.read_revision(best).name


def _whole_history(
    head: RevisionId,
    revisions: dict[RevisionId, Revision],
    sound: set[RevisionId],
    shallow: frozenset[RevisionId] = frozenset(),
) -> bool:
    """Return whether a revision is complete and its unexpired history is readable."""
    if head not in sound:
        return False
    pending, seen = [head], set[RevisionId](shallow)
    while pending:
        identity = pending.pop()
        if identity in seen:
            continue
        seen.add(identity)
        if identity not in revisions:
            return False
        pending.extend(revisions[identity].parents)
    return True


def _cut_off(repository: Repository, name: str, revision: Revision) -> RevisionId:
    """Store the same content as the first revision of a history, since its ancestors are unreadable."""
    made = replace(
        revision, workspace=name, seq=revision.seq + 1, parents=(), lineage=f"repair:{revision.name}",
        time=repository.clock(), message=f"repair: what came before {revision.name} is lost", diff=None, ops=None,
    )  # fmt: skip
    repository.objects_of(name).put(f"revisions/{made.id.hex()}", made.encode())
    return made.id
