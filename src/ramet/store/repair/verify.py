"""`verify`: check every digest and every reference of a store, and report affected revisions.

Packs are read whole, one at a time: memory is bounded by the largest pack and the set of ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from blake3 import blake3

from ramet.core.errors import RametError
from ramet.core.progress import Progress, silent
from ramet.store.crypto.codec import FrameCodec, frame_codec
from ramet.store.model import trees
from ramet.store.model.ids import SIZE, RevisionId, TreeId, kind_of, revision_id
from ramet.store.model.revisions import Revision, decode
from ramet.store.objects.compression import DamagedFrame
from ramet.store.objects.objects import Objects
from ramet.store.packs.index import Index, Location
from ramet.store.packs.reader import PackReader
from ramet.store.refs.drafts import Draft, read_drafts
from ramet.store.refs.gc_log import GcLog, GcState
from ramet.store.refs.refs import Refs
from ramet.store.refs.refs import decode as decode_entry
from ramet.store.refs.tags import Tags

DamageKind = Literal["object", "pack", "index", "revision", "head", "tag", "entry", "draft"]


@dataclass(frozen=True)
class Damage:
    """One damage, and the revisions that need the damaged object."""

    what: DamageKind
    name: str
    why: str
    revisions: tuple[str, ...] = ()
    elsewhere: bool = False
    """Whether the store has a good copy, which `repair` restores."""

    def __str__(self) -> str:
        text = f"{self.what} {self.name}: {self.why}"
        if self.revisions:
            text += f"; affects {', '.join(self.revisions[:8])}"
            text += f" and {len(self.revisions) - 8} more" if len(self.revisions) > 8 else ""
        return text


@dataclass
class Report:
    """What `verify` found. `damaged` names objects, `affected` revisions, `damages` has the details."""

    objects: int = 0
    packs: int = 0
    revisions: int = 0
    damaged: list[str] = field(default_factory=list)
    affected: list[str] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.damages and not self.damaged and not self.affected


@dataclass
class PackScan:
    """The packs of a store with every object checked."""

    good: set[bytes] = field(default_factory=set)
    bad: dict[bytes, str] = field(default_factory=dict)
    """Unreadable copies, and why."""
    packs: dict[str, str] = field(default_factory=dict)
    """Damaged packs, and why."""
    indexes: dict[str, str] = field(default_factory=dict)
    """Damaged indexes, and why."""
    names: list[str] = field(default_factory=list)
    objects: int = 0


def scan_packs(objects: Objects, progress: Progress = silent) -> PackScan:
    """Read all packs, and check every object."""
    found = PackScan()
    keys = list(objects.list("packs/"))
    found.names = sorted({key[6:].rpartition(".")[0] for key in keys})
    for number, name in enumerate(found.names):
        progress("packs", number, len(found.names))
        if f"packs/{name}.idx" not in keys:
            continue  # of a dead or active writer: the index follows its pack
        _scan_pack(objects, name, found)
    progress("packs", len(found.names), len(found.names))
    return found


def _scan_pack(objects: Objects, name: str, found: PackScan) -> None:
    codec = frame_codec(objects)
    try:
        raw = objects.get(f"packs/{name}.idx")
    except RametError as error:
        if is_shredded(error):
            return  # shredded on purpose
        raw = b""
    try:
        data = objects.get(f"packs/{name}.pack")
        if blake3(data).hexdigest() != name:
            found.packs[name] = "its digest is wrong"
    except KeyError:
        found.packs[name] = "missing"
        data = b""
    index = read_index(objects, name)
    if index is None:
        found.indexes[name] = "its bytes are not an index"
        return
    if (why := _index_fault(raw, index, data, codec)) and name not in found.packs:
        found.indexes[name] = why
    for identity, held in pack_objects(data, index, codec):
        found.objects += 1
        if held is not None and kind_of(identity, held) is not None:
            found.good.add(identity)
        else:
            found.bad[identity] = "cannot be read" if held is None else "has a wrong digest"
            if name not in found.packs:
                found.indexes[name] = "it names objects that are not there"


def is_shredded(error: RametError) -> bool:
    """Return whether an object is unreadable because its key was destroyed on purpose."""
    return bool(error.context.get("shredded"))


def _index_fault(raw: bytes, index: Index, pack: bytes, codec: FrameCodec) -> str:
    """Return the fault of an index, without checking the objects it names; empty for none."""
    ids = list(index.ids())
    if int.from_bytes(raw[8:12], "big") != len(ids):
        return "its count is wrong"
    if any(one >= other for one, other in pairwise(ids)):
        return "it is out of order"
    spans = sorted({(place.start, place.start + place.length) for key in ids if (place := index.find(key)) is not None})
    edges = [(0, len(codec.magic)), *spans]
    joined = all(one[1] == other[0] for one, other in pairwise(edges))
    return "" if joined and codec.is_end(pack, edges[-1][1]) else "its frames are not those of its pack"


def read_index(objects: Objects, name: str) -> Index | None:
    try:
        return Index(name, objects.get(f"packs/{name}.idx"))
    except (RametError, KeyError):
        return None


def pack_objects(pack: bytes, index: Index, codec: FrameCodec) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield every object of an index with its bytes; None when they are unreadable."""
    places = sorted(((place, key) for key in index.ids() if (place := index.find(key)) is not None), key=_start)
    found = {key for _, key in places}
    yield from ((key, None) for key in index.ids() if key not in found)  # an unsorted index does not find its ids
    at, block = -1, b""
    for place, key in places:
        if place.start != at:
            at, block = place.start, _unpack(pack[place.start : place.start + place.length], codec)
        held = block[place.offset : place.offset + place.size]
        yield key, held if len(held) == place.size else None


def _start(row: tuple[Location, bytes]) -> tuple[int, int]:
    return row[0].start, row[0].offset


def _unpack(frame: bytes, codec: FrameCodec) -> bytes:
    try:
        return codec.unpack(frame) if frame else b""
    except (DamagedFrame, RametError):
        return b""


def open_whole_first(objects: Objects, scan: PackScan) -> PackReader:
    """Open a reader that prefers undamaged packs."""
    reader = PackReader(objects)
    for name in sorted(scan.names, key=lambda name: name not in scan.packs and name not in scan.indexes):
        try:
            reader.load(name)
        except (RametError, KeyError):
            continue
    return reader


class Reachability:
    """Finds missing objects of revisions. Each tree is read once."""

    def __init__(self, scan: PackScan, reader: PackReader) -> None:
        self._good, self._reader = scan.good, reader
        self._whole: set[bytes] = set()
        self._holes: dict[bytes, frozenset[bytes]] = {}

    def missing(self, revision: Revision) -> frozenset[bytes]:
        """Return the ids that a revision needs and that are unreadable."""
        lost: set[bytes] = set()
        for mount in revision.mounts:
            for tree in mount.trees:
                lost |= self._below(tree)
        lost.update(chunk for chunk in revision.chunks if chunk not in self._good)
        return frozenset(lost)

    def missing_for(self, draft: Draft) -> frozenset[bytes]:
        """Return the ids that a draft needs and that are unreadable."""
        lost = {chunk for chunk in draft.chunks if chunk not in self._good}
        for tree in draft.trees:
            lost |= self._below(tree)
        return frozenset(lost)

    def _below(self, top: TreeId) -> frozenset[bytes]:
        stack: list[tuple[bytes, list[bytes] | None, set[bytes]]] = [(top, None, set())]
        while stack:
            tree, pending, lost = stack.pop()
            if pending is None:
                if tree in self._whole or tree in self._holes:
                    continue
                pending = self._scan_tree(tree, lost)
            while pending and (pending[-1] in self._whole or pending[-1] in self._holes):
                lost |= self._holes.get(pending.pop(), frozenset())
            if pending:
                stack.append((tree, pending, lost))
                stack.append((pending[-1], None, set()))
            elif lost:
                self._holes[tree] = frozenset(lost)
            else:
                self._whole.add(tree)
        return self._holes.get(top, frozenset())

    def _scan_tree(self, tree: bytes, lost: set[bytes]) -> list[bytes]:
        """Return the subtrees of a tree; adds missing chunks of its files to `lost`."""
        try:
            if tree not in self._good:
                raise ValueError("not there")
            nodes = trees.decode(self._reader.read(tree))
        except (ValueError, RametError):
            lost.add(tree)
            return []
        for node in nodes:
            if node.kind == trees.FILE:
                payload = node.payload
                for at in range(0, len(payload), SIZE):
                    if payload[at : at + SIZE] not in self._good:
                        lost.add(payload[at : at + SIZE])
        return [node.payload for node in nodes if node.kind == trees.DIR]


def read_revisions(objects: Objects, progress: Progress = silent) -> tuple[dict[RevisionId, Revision], dict[str, str]]:
    """Read all revisions by id, and the keys of damaged ones with the reason."""
    whole: dict[RevisionId, Revision] = {}
    broken: dict[str, str] = {}
    for number, key in enumerate(objects.list("revisions/")):
        if number % 256 == 0:
            progress("revisions", number, None)
        name = key.rpartition("/")[2]
        try:
            data = objects.get(key)
            identity = RevisionId(bytes.fromhex(name))
            if revision_id(data) != identity:
                raise ValueError("its digest is wrong")
            whole[identity] = decode(data)
        except RametError as error:
            if not is_shredded(error):
                broken[name] = error.cause
        except (ValueError, KeyError, TypeError) as error:
            broken[name] = str(error) or "unreadable"
    return whole, broken


def verify(objects: Objects, refs: Refs, tags: Tags, decisions: GcLog, progress: Progress = silent) -> Report:
    drafts = read_drafts(objects)  # before the packs: objects of a draft exist before the draft
    scan = scan_packs(objects, progress)
    report = Report(objects=scan.objects, packs=len(scan.names))
    revisions, broken = read_revisions(objects, progress)
    report.revisions = len(revisions) + len(broken)
    reach = Reachability(scan, open_whole_first(objects, scan))
    users: dict[bytes, list[str]] = {}
    affected: set[str] = set()
    faults = [Damage("entry", f"gc/{number}", "it cannot be understood") for number in decisions.damaged()]
    state = GcState() if faults else decisions.now()
    for number, revision in enumerate(revisions.values()):
        progress("references", number, len(revisions))
        if state.is_doomed(revision.id):
            continue  # unreachable; its objects may be gone
        lost = reach.missing(revision)
        parents = {parent for parent in revision.parents if parent not in revisions and parent not in state.shallow}
        for identity in lost | parents:
            users.setdefault(identity, []).append(revision.name)
        if lost:
            affected.add(revision.name)
    report.affected = sorted(affected)
    _objects(scan, users, report)
    for name, why in broken.items():
        children = users.pop(bytes.fromhex(name), []) if len(name) == 2 * SIZE else []
        report.damages.append(Damage("revision", name, why, tuple(children)))
        report.damaged.append(name)
    for identity, names in sorted(users.items()):
        kind: DamageKind = "object" if identity not in scan.bad and not _is_parent(identity, revisions) else "revision"
        report.damages.append(Damage(kind, identity.hex(), "missing", tuple(names)))
    report.damages += [*_ends(refs, tags, revisions), *_of_drafts(drafts, reach), *faults]
    _forgive(report, state)
    return report


def _forgive(report: Report, state: GcState) -> None:
    """Drop damages of objects that a collection is removing and no revision needs."""
    gone = {key.rpartition("/")[2] for key in state.sweeping}
    kept = [d for d in report.damages if d.revisions or d.name not in gone]
    if len(kept) != len(report.damages):
        report.damages = kept
        report.damaged = [name for name in report.damaged if name not in gone]


def _is_parent(identity: bytes, revisions: dict[RevisionId, Revision]) -> bool:
    return any(identity in revision.parents for revision in revisions.values())


def _objects(scan: PackScan, users: dict[bytes, list[str]], report: Report) -> None:
    """Add the damages of packs, indexes and objects."""
    for name, why in scan.packs.items():
        report.damages.append(Damage("pack", name, why))
    for name, why in scan.indexes.items():
        report.damages.append(Damage("index", name, why))
    for identity, why in sorted(scan.bad.items()):
        elsewhere = identity in scan.good
        names = tuple(users.pop(identity, ()))
        report.damages.append(Damage("object", identity.hex(), why, names, elsewhere))
    report.damaged = sorted(identity.hex() for identity in scan.bad)
    report.damaged += [name for name in (*scan.packs, *scan.indexes) if not scan.bad]


def _of_drafts(drafts: list[Draft], reach: Reachability) -> Iterator[Damage]:
    """Yield damages of drafts: unreadable steps and missing objects."""
    for draft in drafts:
        affected = (draft.workspace,)
        yield from (Damage("draft", key, why, affected) for key, why in draft.broken.items())
        yield from (Damage("draft", key, "a step before it is missing", affected) for key in draft.unreached)
        if draft.opened is not None and (lost := reach.missing_for(draft)):
            yield Damage("draft", draft.keys[0], f"{len(lost)} objects that it needs are missing", affected)


def _ends(refs: Refs, tags: Tags, revisions: dict[RevisionId, Revision]) -> Iterator[Damage]:
    """Yield damages of heads, tags and log entries."""
    for name in refs.all_names():
        entry = None
        for number, data in refs.raw(name):
            try:
                entry = decode_entry(name, number, data)
            except RametError:
                entry = None
                yield Damage("entry", f"{name}/{number}", "it cannot be understood", (name,))
        if entry is None:
            continue
        if not entry.deleted and entry.head is not None and entry.head not in revisions:
            yield Damage("head", name, f"its revision {entry.head.hex()[:12]} cannot be read", (name,))
        if not entry.deleted and entry.latest is not None and entry.latest not in revisions:
            yield Damage("head", name, f"its latest records {entry.latest.hex()[:12]} cannot be read", (name,))
        try:
            found = [] if entry.deleted else tags.of(name)
        except RametError as error:
            yield Damage("tag", name, error.cause, (name,))
            continue
        for tag in found:
            if tag.target not in revisions:
                yield Damage("tag", f"{name}@{tag.name}", f"its revision {tag.target.hex()[:12]} cannot be read")
