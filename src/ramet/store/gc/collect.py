"""Garbage collection (mark and sweep), concurrent with writers and readers on any number of machines.

- Nothing is removed at first sight. An unreferenced object is suspected, condemned after half of the grace period, and
  removed after the other half, if a new mark after a barrier still finds no reference.
- The barrier: before that mark, the log of every workspace with a writer gets an entry. A writer with an older view of
  the decisions cannot move its head over that entry; it reads them again, and rewrites what it relied on.
- Revisions go before their packs, an index before its pack: a crash leaves garbage, never a missing object.
- A store in which a needed object cannot be read is not collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ramet.core.errors import RametError
from ramet.core.progress import Progress, silent
from ramet.store.crypto.codec import as_encrypted
from ramet.store.model import trees
from ramet.store.model.ids import SIZE, RevisionId, kind_of
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import dead_probes, delete_all
from ramet.store.packs.index import RECORD, Index
from ramet.store.packs.reader import PackReader
from ramet.store.packs.repack import RepackWriters
from ramet.store.packs.writer import PackWriter
from ramet.store.refs.drafts import read_drafts
from ramet.store.refs.gc_log import PACKS, REVISIONS, Condemnation, GcState
from ramet.store.refs.leases import CLOCK_SKEW
from ramet.store.refs.retention import GRACE, KeepSet, keep_set

if TYPE_CHECKING:
    from ramet.store.repository import Repository

REPACK_DEAD_FRACTION: Final = 0.5
"""Fraction of dead bytes from which on a pack is repacked."""
REPACK_DEAD_BYTES: Final = 4096
"""Dead bytes from which on repacking is worth it."""
TINY_PACK_BYTES: Final = 1024 * 1024
REPACK_TINY_PACKS: Final = 64
"""Tiny packs from which on they are repacked."""
REMOVAL_BATCH: Final = 256
"""Objects that are deleted between two reports of progress, with one sync or request."""
ORPHAN_SECONDS: Final = 600.0
"""Seconds before a pack without an index is removed at any grace: its writer may be alive."""
ATTEMPTS: Final = 5


@dataclass
class Collected:
    """What a collection did, or with `dry` would do once the grace period is over."""

    dry: bool = False
    expired: list[str] = field(default_factory=list)
    """Revisions that became unreachable in this pass."""
    kept: int = 0
    suspected: int = 0
    condemned: int = 0
    rewritten: int = 0
    """Packs whose live objects were repacked."""
    removed: int = 0
    """Removed packs."""
    revisions: int = 0
    """Removed revisions."""
    reclaimed: int = 0
    """Removed bytes."""
    waiting: int = 0
    """Unreferenced bytes that are not removed yet."""
    written: int = 0
    temporary: int = 0
    """Removed temporary files of dead writers."""

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "expired": list(self.expired)}


class LiveObjects:
    """Ids of all objects that kept revisions need."""

    def __init__(self, packs: PackReader, revisions: Iterable[Revision], progress: Progress = silent) -> None:
        self._packs, self._seen = packs, set[bytes]()
        self.live: set[bytes] = set()
        for number, revision in enumerate(revisions):
            progress("mark", number, None)
            self.live |= self.of(revision)

    def of(self, revision: Revision) -> set[bytes]:
        """Return the ids that a revision needs and that were not returned before."""
        found: set[bytes] = set(revision.chunks)
        return found | self.below(tree for mount in revision.mounts for tree in mount.trees)

    def below(self, tops: Iterable[bytes]) -> set[bytes]:
        """Return the ids of trees and everything below them that were not returned before."""
        found: set[bytes] = set()
        pending = list(tops)
        while pending:
            tree = pending.pop()
            if tree in self._seen:
                continue
            self._seen.add(tree)
            found.add(tree)
            for node in trees.decode(self._packs.read(tree)):
                if node.kind == trees.DIR:
                    pending.append(node.payload)
                elif node.kind == trees.FILE:
                    payload = node.payload
                    found.update(payload[at : at + SIZE] for at in range(0, len(payload), SIZE))
        return found


def mark_live(repository: Repository, keep: KeepSet, progress: Progress = silent) -> set[bytes]:
    """Return the ids to keep. A damaged revision that only its age keeps is dropped."""
    marked = LiveObjects(repository.packs, (r for i, r in keep.revisions.items() if i not in keep.strays), progress)
    for identity in list(keep.strays):
        try:
            marked.live |= marked.of(keep.revisions[identity])
        except RametError as error:
            if error.code != "store_corrupt":
                raise
            del keep.revisions[identity]
    for draft in keep.drafts:
        marked.live |= marked.below(draft.trees)
        marked.live.update(draft.chunks)
    lost = [key for key in marked.live if not repository.packs.has(key)]
    if lost:  # a revision that was added meanwhile may have its only new object in a new pack
        repository.packs.refresh()
        lost = [key for key in lost if not repository.packs.has(key)]
    if lost:
        raise RametError(
            "store_corrupt",
            f"cannot collect: {len(lost)} needed objects are missing",
            "run verify and repair before gc",
        )
    return marked.live


@dataclass
class PackUsage:
    """Usage of one pack: its size, the live bytes, and the ids that are counted for it."""

    name: str
    size: int
    home: set[bytes] = field(default_factory=set)
    living: float = 0.0

    @property
    def dead(self) -> float:
        return 1.0 - self.living / max(self.size, 1)


def pack_usages(
    packs: PackReader, live: set[bytes], late: frozenset[str], keys: frozenset[bytes] | None = None
) -> list[PackUsage]:
    """Assign each live id to one pack. Packs in `late` come last, otherwise the packs with most live bytes come first.

    In an encrypted store each id gets one pack per key, as a reader may have only one key. `keys` are those of
    workspaces that keep something; packs of other keys are dead.
    """
    found: list[tuple[bool, float, PackUsage, Index]] = []
    for name in packs.packs():
        index = packs.index(name)
        use = PackUsage(name, pack_size(index))
        use.living = sum(object_shares(index, live).values())
        found.append((name in late, use.dead, use, index))
    left: dict[bytes, set[bytes]] = {}
    for _, _, use, index in sorted(found, key=lambda row: (row[0], row[1], row[2].name)):
        key = packs.key_of(use.name)
        mine = left.setdefault(key, set(live) if keys is None or key in keys else set())
        use.home = mine.intersection(index.ids())
        mine -= use.home
        use.living = sum(object_shares(index, use.home).values())
    return [row[2] for row in found]


def pack_size(index: Index) -> int:
    """Return the bytes of a pack and its index."""
    ends = (start + length for start, length, _, _ in index.table().values())
    return max(ends, default=0) + len(index.data)


def object_shares(index: Index, wanted: set[bytes] | None = None) -> dict[bytes, float]:
    """Return the share of each object of the bytes of its pack, with its index record."""
    whole: dict[int, int] = {}
    table = index.table()
    for start, _, offset, size in table.values():
        whole[start] = max(whole.get(start, 0), offset + size)
    here = table.keys() if wanted is None else table.keys() & wanted
    rows = ((key, table[key]) for key in here)
    return {key: length * size / max(whole[start], 1) + RECORD.size for key, (start, length, _, size) in rows}


# ------------------------------------------------------------------------------------------------------------ a pass


def collect(
    repository: Repository,
    *,
    grace: float | None = None,
    dry: bool = False,
    pays: float = REPACK_DEAD_FRACTION,
    progress: Progress = silent,
) -> Collected:
    """Run one pass. `grace` is in seconds; 0 removes everything unreferenced at once."""
    if grace is None:
        said = repository.policies.own().grace
        grace = GRACE if said is None else said
    if not grace >= 0:
        raise RametError("invalid_argument", f"invalid grace {grace!r}", "pass 0 or more seconds")
    for _ in range(ATTEMPTS):
        before = repository.gc_log.now().number
        try:
            done = _GcPass(repository, grace, dry, pays, progress).run()
        except RametError as error:
            gone = error.code in ("revision_not_found", "revision_expired", "store_corrupt")
            if not gone or repository.gc_log.now().number == before:
                raise  # else a concurrent collector removed what this one needs
            continue
        if done is not None:
            return done
    raise RametError(
        "head_moved", "cannot collect: another collection is running on this store", "wait for it, then try again"
    )


class _GcPass:
    def __init__(self, repository: Repository, grace: float, dry: bool, pays: float, progress: Progress) -> None:
        self.repository, self.grace, self.dry = repository, grace, dry
        self.pays, self.progress = pays, progress
        self.done = Collected(dry)
        self.now = repository.clock()

    def run(self) -> Collected | None:
        """Run the pass; None when a concurrent collector made a decision, which makes this one stale."""
        repository, done = self.repository, self.done
        state = repository.gc_log.now()
        repository.packs.condemn(state.condemned_packs)
        keys = list(repository.objects.list(PACKS))  # before the heads are read: newer packs are not judged
        repository.packs.refresh()
        stored = list(repository.objects.list(REVISIONS))
        notes = [*dead_probes(repository.objects, self.now), *self._dead_pushes(), *self._dead_drafts()]
        keep = keep_set(repository, self.now)
        live = mark_live(repository, keep, self.progress)
        done.kept = sum(revision.is_in_history for revision in keep.revisions.values())
        done.expired = sorted(
            repository.read_revision(identity, expired=True).name
            for identity in self._reachable_revisions(state, stored)
            if identity not in keep.revisions
        )
        found = pack_usages(
            repository.packs, live, state.condemned_packs | self._sweeping_packs(state), self._keys(keep)
        )
        listed = {key[len(PACKS) :].rpartition(".")[0] for key in keys}
        readable = {use.name for use in found}
        idle = {PACKS + use.name for use in found if not use.home and use.name in listed}
        idle |= {PACKS + name for name in listed if f"{PACKS}{name}.idx" in keys and name not in readable}
        orphans = {PACKS + name for name in listed if f"{PACKS}{name}.idx" not in keys}
        idle |= orphans | set(notes)
        idle |= {key for key in stored if RevisionId(bytes.fromhex(key[len(REVISIONS) :])) not in keep.revisions}
        rewrite = self._packs_to_repack(found)
        sizes = {PACKS + use.name: use.size for use in found}
        if self.dry:
            done.rewritten, done.suspected = len(rewrite), len(idle)
            done.removed = sum(1 for key in idle if key in sizes)
            done.revisions = sum(1 for key in idle if key.startswith(REVISIONS))
            done.waiting = sum(sizes.get(key, 0) for key in idle)
            done.waiting += int(sum(use.size * use.dead for use in rewrite))
            return done
        idle |= self._repack(rewrite)
        doomed = {key: self._condemnation(state, key, key in orphans, rewrite) for key in sorted(idle)}
        decided = replace(
            state, kind="mark", time=self.now, doomed=doomed, shallow=keep.shallow, removed={},
            sweeping=frozenset(k for k in state.sweeping if k in doomed),
        )  # fmt: skip
        if (decided.doomed, decided.shallow, decided.sweeping) != (state.doomed, state.shallow, state.sweeping):
            appended = repository.gc_log.append(decided)
            if appended is None:
                return None
            state = appended
        repository.packs.condemn(state.condemned_packs)
        done.suspected = sum(1 for s in doomed.values() if not s.condemned)
        done.condemned = len(doomed) - done.suspected
        if not self._sweep(state, orphans):
            return None
        done.waiting = sum(sizes.get(key, 0) for key in repository.gc_log.now().doomed)
        repository.pins.clean()
        repository.refs.compact_all()
        repository.gc_log.compact(self.now)
        clean = getattr(repository.objects, "clean", None)
        if clean is not None:
            done.temporary = clean(max(self.grace, ORPHAN_SECONDS))
        return done

    def _sweeping_packs(self, state: GcState) -> frozenset[str]:
        return frozenset(key[len(PACKS) :] for key in state.sweeping if key.startswith(PACKS))

    def _dead_pushes(self) -> Iterator[str]:
        """Yield recorded pushes of revisions that were never committed."""
        import json

        for key in self.repository.objects.list("pushes/"):
            try:
                plain = json.loads(self.repository.objects.get(key))
            except KeyError:
                continue
            if not self.repository.committed(plain["workspace"], RevisionId(bytes.fromhex(plain["revision"]))):
                yield key

    def _dead_drafts(self) -> Iterator[str]:
        """Yield drafts of removed workspaces and of late writers."""
        for draft in read_drafts(self.repository.objects):
            if not self.repository.refs.exists(draft.workspace) or (draft.opened is None and not draft.broken):
                yield from draft.keys

    def _reachable_revisions(self, state: GcState, stored: list[str]) -> list[RevisionId]:
        """Return the revisions that were reachable from existing workspaces so far."""
        there = set(stored)
        found: set[RevisionId] = set()
        for name in self.repository.refs.names():
            head = self.repository.refs.last(name).head
            if head is not None:
                top = self.repository.read_revision(head, expired=True)
                found.update(self.repository.ancestors(top))
        return sorted(i for i in found if REVISIONS + i.hex() in there and not state.is_doomed(i))

    def _condemnation(self, state: GcState, key: str, orphan: bool, rewrite: list[PackUsage]) -> Condemnation:
        old = state.doomed.get(key, Condemnation(self.now))
        if old.condemned:
            return old
        half = max(self.grace / 2, ORPHAN_SECONDS if orphan else 0.0)
        fresh = any(PACKS + use.name == key for use in rewrite)
        return Condemnation(old.since, self.now if fresh or self.now - old.since >= half else 0.0)

    # --------------------------------------------------------------------------------------------- rewriting

    def _packs_to_repack(self, found: list[PackUsage]) -> list[PackUsage]:
        """Return the packs that are worth repacking."""
        used = [use for use in found if use.home and use.name not in self.repository.packs.condemned]
        tiny = [use for use in used if use.size < TINY_PACK_BYTES]
        chosen = {use.name: use for use in used if use.dead >= self.pays and use.dead * use.size >= REPACK_DEAD_BYTES}
        if len(tiny) > REPACK_TINY_PACKS:
            chosen.update((use.name, use) for use in tiny)
        return sorted(chosen.values(), key=lambda use: use.name)

    def _repack(self, rewrite: list[PackUsage]) -> set[str]:
        """Repack the live objects of these packs; durable before the old packs are condemned."""
        if not rewrite:
            return set()
        packs = self.repository.packs
        before = packs.condemned
        packs.condemn(before | {use.name for use in rewrite})
        writers = RepackWriters(self.repository.objects, packs)
        try:
            for number, use in enumerate(rewrite):
                writer = writers.for_pack(use.name)
                if writer is None:
                    raise RametError("store_corrupt", f"the key of pack {use.name} is not available", "run verify")
                self.progress("rewrite", number, len(rewrite))
                _copy(packs, use, writer)
            writers.finish()
        except BaseException:
            writers.abandon()
            packs.condemn(before)
            raise
        self.progress("rewrite", len(rewrite), len(rewrite))
        self.done.rewritten, self.done.written = len(rewrite), writers.bytes_written
        return {PACKS + use.name for use in rewrite}

    # ---------------------------------------------------------------------------------------------- sweeping

    def _sweep(self, state: GcState, orphans: set[str]) -> bool:
        """Remove what was condemned long enough. False when a concurrent collector was first."""
        repository = self.repository
        half = self.grace / 2 + (CLOCK_SKEW if self.grace else 0.0)
        due = {
            key
            for key, s in state.doomed.items()
            if s.condemned
            and self.now - s.condemned >= half
            and (key not in orphans or self.now - s.since >= ORPHAN_SECONDS)
        }
        due |= state.sweeping
        if not due:
            return True
        begun = repository.gc_log.append(replace(state, kind="sweep", time=self.now, sweeping=frozenset(due)))
        if begun is None:
            return False
        for name in repository.refs.names():
            repository.refs.barrier(name)
        repository.packs.refresh()
        keep = keep_set(repository, self.now)
        live = mark_live(repository, keep, self.progress)
        needed = self._needed_packs(live, due, self._keys(keep))
        removed = sorted(key for key in due if key not in needed and not self._kept_revision(key, keep))
        counts = self._remove(removed)
        # A history that ended in this pass must still end there, even if its end is no longer kept.
        ends = frozenset((begun.shallow | keep.shallow) - keep.revisions.keys())
        after = replace(
            begun, kind="swept", time=repository.clock(), sweeping=frozenset(), removed=counts, shallow=ends,
            doomed={key: s for key, s in begun.doomed.items() if key not in due},
        )  # fmt: skip
        self.done.removed, self.done.revisions = counts["packs"], counts["revisions"]
        self.done.reclaimed = counts["bytes"]
        repository.gc_log.append(after)  # else another collector completes the sweep
        repository.packs.refresh()
        repository.forget({RevisionId(bytes.fromhex(k[len(REVISIONS) :])) for k in removed if k.startswith(REVISIONS)})
        return True

    def _needed_packs(self, live: set[bytes], due: set[str], keys: frozenset[bytes] | None) -> set[str]:
        """Return the packs among those due that live objects need."""
        names = frozenset(key[len(PACKS) :] for key in due if key.startswith(PACKS))
        found = pack_usages(self.repository.packs, live, names, keys)
        return {PACKS + use.name for use in found if use.home and use.name in names}

    def _keys(self, keep: KeepSet) -> frozenset[bytes] | None:
        """In an encrypted store, return the keys of all workspaces that exist or keep something."""
        sealed = as_encrypted(self.repository.objects)
        if sealed is None:
            return None
        names = {*self.repository.refs.names(), *(name for owners in keep.owners.values() for name in owners)}
        names.update(revision.workspace for revision in keep.revisions.values())
        return frozenset(key for ring in sealed.keychain.rings.rings() if ring.workspace in names for key in ring.ids)

    def _kept_revision(self, key: str, keep: KeepSet) -> bool:
        return key.startswith(REVISIONS) and RevisionId(bytes.fromhex(key[len(REVISIONS) :])) in keep.revisions

    def _remove(self, keys: list[str]) -> dict[str, int]:
        """Delete revisions first, then indexes, then their packs. Each kind is gone for good before the next goes."""
        objects, packs = self.repository.objects, self.repository.packs
        revisions = [key for key in keys if key.startswith(REVISIONS)]
        doomed = [key for key in keys if key.startswith(PACKS)]
        known = set(packs.packs())
        names = [key[len(PACKS) :] for key in doomed]
        size = sum(pack_size(packs.index(name)) for name in names if name in known)
        pushed = [note for key in revisions for note in objects.list(f"pushed/{key[len(REVISIONS) :]}/")]
        rest = [key for key in keys if not key.startswith((REVISIONS, PACKS))]
        kinds = (
            [*pushed, *revisions, *rest], [f"{key}.idx" for key in doomed], [f"{key}.pack" for key in doomed],
        )  # fmt: skip
        total, done = sum(map(len, kinds)), 0
        for kind in kinds:
            for batch in (kind[at : at + REMOVAL_BATCH] for at in range(0, len(kind), REMOVAL_BATCH)):
                self.progress("remove", done, total)
                delete_all(objects, batch)
                done += len(batch)
        self.progress("remove", total, total)
        return {"packs": len(doomed), "revisions": len(revisions), "bytes": size}


def _copy(packs: PackReader, use: PackUsage, writer: PackWriter) -> None:
    """Copy the live objects of a pack in storage order."""
    index = packs.index(use.name)
    for place, key in sorted((place, key) for key in use.home if (place := index.find(key)) is not None):
        frame = packs.frame(place)
        data = frame[place.offset : place.offset + place.size]
        kind = kind_of(key, data)
        if kind is None:
            raise RametError("store_corrupt", f"object {key.hex()} has a wrong digest", "run verify, then repair")
        (writer.add_tree if kind == "tree" else writer.add)(key, data)
