"""Joining small packs: whoever commits often writes many of them, and nobody should have to list them all for ever.

Rules that this file keeps:
- A pack goes only after everything that was in it is durable in another one, so that no id is ever without a place.
  Nothing is judged: what nobody refers to is carried along until a collection takes it.
- It is a decision among those of collections and in their log: who decides from an older state fails to append. So no
  collection counts on a pack that goes, and nothing goes that was joined into what a collection has taken meanwhile.
- One joins at a time: who begins says so first. One that died is not waited for longer than `PATIENCE`.
- In an encrypted store packs are joined with those that have the same key.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.model.ids import chunk_id, tree_id
from ramet.store.packs.index import Index, Location
from ramet.store.packs.reader import LARGE, PackReader
from ramet.store.packs.repack import RepackWriters
from ramet.store.packs.writer import SALT, PackWriter
from ramet.store.refs.gc_log import JOINED, JOINING, PACKS, Condemnation, GcState

if TYPE_CHECKING:
    from ramet.store.repository import Repository

WORTH: Final = 64
"""Small packs with one key that are worth the work."""
TIERS: Final = 16
"""Joined packs from which on these are joined in turn."""
MEDIUM: Final = 16 * 1024
"""Objects from which on it is, too."""
PATIENCE: Final = 120.0
"""Seconds after which one that began to join is taken for dead."""


@dataclass
class ConsolidationReport:
    """What was done."""

    packs: int = 0
    """Packs that were removed."""
    into: list[str] = field(default_factory=list)


def consolidate_packs(repository: Repository) -> ConsolidationReport:
    """Join the small packs of a store. Nothing happens while another one does, or where there is nothing to gain."""
    reader, decisions = repository.packs, repository.gc_log
    state = decisions.now()
    now = repository.clock()
    if state.kind == JOINING and abs(now - state.time) < PATIENCE:
        return ConsolidationReport()
    reader.refresh()
    if state.kind == JOINING:
        state = _finished(repository, state, _doubled(reader, state))  # what one that died has left
    chosen = _chosen(reader, state)
    if not chosen:
        return ConsolidationReport()
    begun = decisions.append(replace(state, kind=JOINING, time=now, removed={}))
    if begun is None:
        return ConsolidationReport()
    made = PackReader(repository.objects)  # knows nothing, so that everything is written anew
    made.low_memory = reader.low_memory
    gone = _copied(repository, chosen, made)
    # Going is written down before it begins; what is left by who dies then, the next who joins or collects removes.
    if not gone or not _decided(repository, begun, gone):
        return ConsolidationReport()
    for name in made.names():
        reader.add(name, made.index(name).data, made.key_of(name))
    _finished(repository, decisions.now(), gone)
    reader.record_consolidation(gone, made.names())
    decisions.compact(repository.clock())
    return ConsolidationReport(len(gone), made.names())


def _finished(repository: Repository, state: GcState, gone: list[str]) -> GcState:
    """Remove packs of which it is written down that they go, and then that they are gone."""
    for name in gone:
        repository.objects.delete(f"{PACKS}{name}.idx")
        repository.objects.delete(f"{PACKS}{name}.pack")
    repository.packs.refresh()
    keys = {PACKS + name for name in gone}
    if not keys <= state.sweeping or not keys:
        return state  # a collection was quicker to say it
    left = {key: sentence for key, sentence in state.doomed.items() if key not in keys}
    said = replace(state, kind=JOINED, time=repository.clock(), doomed=left, sweeping=state.sweeping - keys, removed={})
    return repository.gc_log.append(said) or repository.gc_log.now()


def _doubled(reader: PackReader, state: GcState) -> list[str]:
    """Packs that are going and hold nothing that others do not hold which stay."""
    opened, there = set(reader.opened()), reader.all_names()
    staying = [reader.index(name) for name in opened if PACKS + name not in state.doomed]
    found: list[str] = []
    for name in sorted(key[len(PACKS) :] for key in state.sweeping if key.startswith(PACKS)):
        if name in opened:
            if all(any(other.find(one) for other in staying) for one in _contents(reader.index(name))):
                found.append(name)
        elif name not in there:
            found.append(name)  # its index went, and so must the rest
    return found


def _decided(repository: Repository, begun: GcState, gone: list[str]) -> bool:
    """Have it said that packs go. Where a collection has decided anything meanwhile, it may have counted on them.

    What was written is one more copy then, and goes as such.
    """
    now, going = repository.clock(), {PACKS + name for name in gone}
    doomed = {**begun.doomed, **{key: Condemnation(now, now) for key in going}}
    said = replace(begun, kind=JOINING, time=now, doomed=doomed, sweeping=begun.sweeping | going)
    return repository.gc_log.append(said) is not None


def _chosen(reader: PackReader, state: GcState) -> list[str]:
    """Packs that are worth joining; none of which a collection thinks that it may go."""
    chosen: list[str] = []
    for names in reader.small_packs():
        small = [name for name in names if PACKS + name not in state.doomed and name not in reader.unreadable]
        if len(small) >= WORTH:
            chosen += small
            chosen += _medium(reader, reader.key_of(small[0]), {*chosen, *state.doomed})
    return chosen


def _medium(reader: PackReader, key: bytes, but: set[str]) -> list[str]:
    """Packs that earlier ones were joined into, when they are many."""
    found: list[str] = []
    for name in reader.opened():
        mine = reader.key_of(name) == key and name not in reader.unreadable and not but & {name, PACKS + name}
        if mine and reader.index(name).count <= MEDIUM and _size(reader.index(name)) < LARGE:
            found.append(name)
    return found if len(found) >= TIERS else []


def _size(index: Index) -> int:
    return max((start + length for start, length, _, _ in index.table().values()), default=0)


def _copied(repository: Repository, chosen: list[str], made: PackReader) -> list[str]:
    """Write what is in packs anew; which of them are whole in what was written. One that is damaged stays."""
    reader = repository.packs
    writers = RepackWriters(repository.objects, made)
    gone: list[str] = []
    try:
        for name in chosen:
            writer = writers.for_pack(name)
            try:
                if writer is None:
                    raise RametError("store_corrupt", f"the key of pack {name} is not to be had", "run verify")
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
    """The ids of everything in a pack but what it was begun with."""
    first = min((start for start, _, _, _ in index.table().values()), default=0)
    begun = [key for key, (start, _, _, _) in index.table().items() if start == first]
    salt = set(begun) if len(begun) == 1 and index.table()[begun[0]][3] == SALT else set()
    return set(index.ids()) - salt


def _copy(reader: PackReader, index: Index, writer: PackWriter) -> None:
    """Everything in a pack but what it was begun with, checked, in the order in which it lies there."""
    wanted, frames = _contents(index), dict[int, list[tuple[int, int, int, bytes]]]()
    for key, (start, length, offset, size) in index.table().items():
        if key in wanted:
            frames.setdefault(start, []).append((offset, size, length, key))
    for start, rows in sorted(frames.items()):
        frame = reader.fetch(Location(index.pack, start, rows[0][2], 0, 0))
        for offset, size, _, key in sorted(rows):
            data = frame[offset : offset + size]
            is_tree = chunk_id(data) != key
            if is_tree and tree_id(data) != key:
                raise RametError("store_corrupt", f"object {key.hex()} does not have its digest", "run verify")
            (writer.add_tree if is_tree else writer.add)(key, data)
