"""Consolidate small packs: frequent commits create many, which every open must list.

- A pack is deleted only after all its objects are durable in another one. Nothing is judged: garbage is copied until a
  collection removes it.
- A consolidation is a decision in the gc log: appending from an outdated state fails. So no collection relies on a pack
  that is being removed, and no pack is removed for the sake of one that a collection has removed.
- One process consolidates at a time, announced in the log; a dead one is ignored after `DEAD_AFTER`.
- In an encrypted store only packs with the same key are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.model.ids import kind_of
from ramet.store.objects.objects import delete_all
from ramet.store.packs.index import Index, Location
from ramet.store.packs.reader import LARGE_PACK_BYTES, PackReader
from ramet.store.packs.repack import RepackWriters
from ramet.store.packs.writer import SALT_BYTES, PackWriter
from ramet.store.refs.gc_log import JOINED, JOINING, PACKS, Condemnation, GcState

if TYPE_CHECKING:
    from ramet.store.repository import Repository

MIN_SMALL_PACKS: Final = 64
"""Small packs with one key from which on they are merged."""
MIN_MERGED_PACKS: Final = 16
"""Merged packs from which on these are merged in turn."""
MERGED_PACK_OBJECTS: Final = 16 * 1024
"""Objects up to which a pack counts as merged, not large."""
DEAD_AFTER: Final = 120.0
"""Seconds after which a consolidation in progress counts as dead."""


@dataclass
class ConsolidationReport:
    """What a consolidation did."""

    packs: int = 0
    """Removed packs."""
    into: list[str] = field(default_factory=list)


def consolidate_packs(repository: Repository) -> ConsolidationReport:
    """Merge the small packs of a store. Does nothing while another process does, or without enough small packs."""
    reader, decisions = repository.packs, repository.gc_log
    state = decisions.now()
    now = repository.clock()
    if state.kind == JOINING and abs(now - state.time) < DEAD_AFTER:
        return ConsolidationReport()
    reader.refresh()
    if state.kind == JOINING:
        state = _remove_packs(repository, state, _redundant_packs(reader, state))  # leftovers of a dead process
    chosen = _choose_packs(reader, state)
    if not chosen:
        return ConsolidationReport()
    begun = decisions.append(replace(state, kind=JOINING, time=now, removed={}))
    if begun is None:
        return ConsolidationReport()
    made = PackReader(repository.objects)  # empty, so that every object is written
    made.low_memory = reader.low_memory
    gone = _copy_packs(repository, chosen, made)
    # The removal is recorded first; the next consolidation or collection completes it after a crash.
    if not gone or not _record_removal(repository, begun, gone):
        return ConsolidationReport()
    for name in made.names():
        reader.add(name, made.index(name).data, made.key_of(name))
    _remove_packs(repository, decisions.now(), gone)
    reader.record_consolidation(gone, made.names())
    decisions.compact(repository.clock())
    return ConsolidationReport(len(gone), made.names())


def _remove_packs(repository: Repository, state: GcState, gone: list[str]) -> GcState:
    """Delete packs whose removal is recorded, then record that they are gone."""
    for kind in ("idx", "pack"):  # an index without its pack would be a hole
        delete_all(repository.objects, [f"{PACKS}{name}.{kind}" for name in gone])
    repository.packs.refresh()
    keys = {PACKS + name for name in gone}
    if not keys <= state.sweeping or not keys:
        return state  # a collection has recorded it
    left = {key: sentence for key, sentence in state.doomed.items() if key not in keys}
    said = replace(state, kind=JOINED, time=repository.clock(), doomed=left, sweeping=state.sweeping - keys, removed={})
    return repository.gc_log.append(said) or repository.gc_log.now()


def _redundant_packs(reader: PackReader, state: GcState) -> list[str]:
    """Return packs in removal whose objects are all in packs that stay."""
    opened, there = set(reader.opened()), reader.all_names()
    staying = [reader.index(name) for name in opened if PACKS + name not in state.doomed]
    found: list[str] = []
    for name in sorted(key[len(PACKS) :] for key in state.sweeping if key.startswith(PACKS)):
        if name in opened:
            if all(any(other.find(one) for other in staying) for one in _contents(reader.index(name))):
                found.append(name)
        elif name not in there:
            found.append(name)  # the index is deleted; delete the pack as well
    return found


def _record_removal(repository: Repository, begun: GcState, gone: list[str]) -> bool:
    """Record that packs go. Fails when a collection made any decision since: it may rely on them.

    The new packs are then just one more copy, and are collected as such.
    """
    now, going = repository.clock(), {PACKS + name for name in gone}
    doomed = {**begun.doomed, **{key: Condemnation(now, now) for key in going}}
    said = replace(begun, kind=JOINING, time=now, doomed=doomed, sweeping=begun.sweeping | going)
    return repository.gc_log.append(said) is not None


def _choose_packs(reader: PackReader, state: GcState) -> list[str]:
    """Return the packs to merge, without those that a collection suspects."""
    chosen: list[str] = []
    for names in reader.small_packs():
        small = [name for name in names if PACKS + name not in state.doomed and name not in reader.unreadable]
        if len(small) >= MIN_SMALL_PACKS:
            chosen += small
            chosen += _merged_packs(reader, reader.key_of(small[0]), {*chosen, *state.doomed})
    return chosen


def _merged_packs(reader: PackReader, key: bytes, but: set[str]) -> list[str]:
    """Return earlier results of merging, when they are many."""
    found: list[str] = []
    for name in reader.opened():
        mine = reader.key_of(name) == key and name not in reader.unreadable and not but & {name, PACKS + name}
        if mine and reader.index(name).count <= MERGED_PACK_OBJECTS and _size(reader.index(name)) < LARGE_PACK_BYTES:
            found.append(name)
    return found if len(found) >= MIN_MERGED_PACKS else []


def _size(index: Index) -> int:
    return max((start + length for start, length, _, _ in index.table().values()), default=0)


def _copy_packs(repository: Repository, chosen: list[str], made: PackReader) -> list[str]:
    """Copy the objects of packs; returns the packs that were copied completely. A damaged pack stays."""
    reader = repository.packs
    writers = RepackWriters(repository.objects, made)
    gone: list[str] = []
    try:
        for name in chosen:
            writer = writers.for_pack(name)
            try:
                if writer is None:
                    raise RametError("store_corrupt", f"the key of pack {name} is not available", "run verify")
                _copy(reader, reader.index(name), writer)
                gone.append(name)
            except RametError as error:
                if error.code != "store_corrupt":
                    raise
                reader.unreadable.add(name)
        writers.finish()
    except BaseException:
        writers.abandon()
        raise
    return gone


def _contents(index: Index) -> set[bytes]:
    """Return all ids of a pack except its salt."""
    first = min((start for start, _, _, _ in index.table().values()), default=0)
    begun = [key for key, (start, _, _, _) in index.table().items() if start == first]
    salt = set(begun) if len(begun) == 1 and index.table()[begun[0]][3] == SALT_BYTES else set()
    return set(index.ids()) - salt


def _copy(reader: PackReader, index: Index, writer: PackWriter) -> None:
    """Copy all objects of a pack except its salt, checked, in storage order."""
    wanted, frames = _contents(index), dict[int, list[tuple[int, int, int, bytes]]]()
    for key, (start, length, offset, size) in index.table().items():
        if key in wanted:
            frames.setdefault(start, []).append((offset, size, length, key))
    for start, rows in sorted(frames.items()):
        end = max(offset + size for offset, size, _, _ in rows)
        frame = reader.fetch(Location(index.pack, start, rows[0][2], 0, end))
        for offset, size, _, key in sorted(rows):
            data = frame[offset : offset + size]
            kind = kind_of(key, data)
            if kind is None:
                raise RametError("store_corrupt", f"object {key.hex()} has a wrong digest", "run verify")
            (writer.add_tree if kind == "tree" else writer.add)(key, data)
