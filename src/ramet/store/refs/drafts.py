"""Drafts: uncommitted changes of an open workspace, from which a later open recovers after a crash.

    drafts/<workspace>/<20-digit fence>/<20-digit number>

Number 0 is the header of the draft of one lease holder; the others are steps, each durable before its changes are
acknowledged.

- A step is one self-contained object: it includes content that no pack has. A `fresh` step starts from a revision and
  trees of the store; the steps before it are obsolete, and are removed over time.
- The header is written right after the lease is taken, and removed first. Steps without a header belong to a writer
  that came too late or has finished: they are ignored.
- Collections keep what a draft names for as long as the draft exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from blake3 import blake3

from ramet.core.errors import RametError
from ramet.store.crypto.codec import as_encrypted
from ramet.store.model.ids import RevisionId, TreeId
from ramet.store.model.revisions import MountState
from ramet.store.objects.compression import DamagedFrame, compress, decompress
from ramet.store.objects.objects import Objects, delete_all
from ramet.store.refs.refs import RefEntry

if TYPE_CHECKING:
    from ramet.store.repository import Repository

SPACE: Final = "drafts"
MAGIC: Final = b"RAMETDR1"
DIGEST: Final = 32
DELETE_BATCH: Final = 32
"""Obsolete steps that are deleted with one request."""
READ_RETRIES: Final = 20
"""Retries of reading a draft that changes concurrently."""


class Removal(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """A path and everything below it was removed."""

    path: bytes


class DirectoryChange(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A directory; with a tree, it is that tree of the store."""

    path: bytes
    mode: int
    mtime_ns: int
    tree: bytes = b""


class FileChange(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A file: its old content up to `keep`, then these chunks."""

    path: bytes
    mode: int
    mtime_ns: int
    keep: int
    chunks: list[bytes]


class LinkChange(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """A symbolic link."""

    path: bytes
    target: bytes
    mtime_ns: int


Change = Removal | DirectoryChange | FileChange | LinkChange


class DraftHeader(msgspec.Struct, frozen=True, array_like=True, tag="opened"):
    """Header of a draft: the host, the log entry of the lease, the base revision, and the mode of the secret scan."""

    host: str
    lease: int
    base: bytes
    scan: str = "off"


class DraftStep(msgspec.Struct, frozen=True, array_like=True, tag="step"):
    """One step of a draft. `base` is the id of the revision that the draft is based on, empty for none."""

    base: bytes
    fresh: bool
    time: float
    lineage: str
    mounts: list[dict[str, Any]] | None = None
    """The mounts, as in a revision but without trees; None while they are as in the step before."""
    trees: dict[str, bytes] = {}
    """Mounts that are these trees of the store from here on; an empty id is an empty directory."""
    changes: dict[str, list[Change]] = {}
    """Changes below each mount since then, in order."""
    chunks: dict[bytes, bytes] = {}
    """Content that is stored in this step."""
    state: bytes = b""
    """Sessions and jobs, encoded as the kernel state of a revision; empty while unchanged."""
    records: bytes = b""
    """Commands since the last step, as JSON."""
    withheld: list[str] = []
    """Paths that the ignore rules left out."""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[DraftHeader | DraftStep]] = msgspec.msgpack.Decoder(DraftHeader | DraftStep)


def encode(value: DraftHeader | DraftStep) -> bytes:
    packed = compress(_encoder.encode(value))
    return MAGIC + blake3(packed).digest() + packed


def decode(data: bytes) -> DraftHeader | DraftStep:
    """Decode a header or step; ValueError when the bytes are damaged."""
    start = len(MAGIC) + DIGEST
    packed = data[start:]
    if data[: len(MAGIC)] != MAGIC or blake3(packed).digest() != data[len(MAGIC) : start]:
        raise ValueError("its digest is wrong")
    try:
        return _decoder.decode(decompress(packed))
    except (msgspec.DecodeError, DamagedFrame) as error:
        raise ValueError(str(error)) from None


def key_of(name: str, fence: int, number: int) -> str:
    return f"{SPACE}/{name}/{fence:020d}/{number:020d}"


def plain_mounts(mounts: Iterable[MountState]) -> list[dict[str, Any]]:
    return [
        {
            "prefix": mount.prefix, "type": mount.type, "mode": mount.mode, "config": dict(mount.config),
            "redacted_fields": list(mount.redacted_fields), "needs_override": mount.needs_override,
            "scratch": mount.scratch,
        }
        for mount in mounts
    ]  # fmt: skip


def mounts_of(plain: Iterable[Mapping[str, Any]]) -> list[MountState]:
    return [MountState(**{**row, "redacted_fields": tuple(row["redacted_fields"])}) for row in plain]


class DraftWriter:
    """Writes the draft of one lease holder."""

    def __init__(self, repository: Repository, name: str, lease: RefEntry) -> None:
        self._repository, self.name, self.fence = repository, name, lease.fence
        self._number, self._kept, self._needless = 0, list[int](), list[int]()
        """The number of the last step, the numbers of live steps, and those of obsolete steps."""

    def _objects(self) -> Objects:
        sealed = as_encrypted(self._repository.objects)
        return self._repository.objects if sealed is None else sealed.for_workspace(self.name)

    def open(self, opened: DraftHeader) -> None:
        self._objects().put(key_of(self.name, self.fence, 0), encode(opened))

    def add(self, step: DraftStep) -> int:
        """Write a step, and return its size in bytes. A fresh step also survives a power loss."""
        data, objects = encode(step), self._objects()
        put = None if step.fresh else getattr(objects, "put_unsynced", None)
        (objects.put if put is None else put)(key_of(self.name, self.fence, self._number + 1), data)
        self._number += 1
        if step.fresh:
            self._needless += self._kept
            self._kept = []
        self._kept.append(self._number)
        # On a disk one at a time, to bound the latency of a call; elsewhere many with one request.
        drop = None if getattr(objects, "remote", False) else getattr(objects, "delete_unsynced", None)
        many = DELETE_BATCH if drop is None else 1
        if len(self._needless) >= many:
            keys = [key_of(self.name, self.fence, number) for number in self._needless[:many]]
            delete_all(objects, keys) if drop is None else drop(keys[0])
            del self._needless[:many]
        return len(data)

    @property
    def steps(self) -> int:
        return len(self._kept)

    def close(self) -> None:
        """Remove the draft. The header goes first: steps without it are ignored."""
        objects = self._repository.objects
        objects.delete(key_of(self.name, self.fence, 0))
        delete_all(objects, [key_of(self.name, self.fence, number) for number in (*self._needless, *self._kept)])
        self._kept, self._needless = [], []


@dataclass
class Draft:
    """A draft as it is stored."""

    workspace: str
    fence: int
    opened: DraftHeader | None = None
    """None when the draft is to be ignored."""
    steps: list[DraftStep] = field(default_factory=list)
    """The steps from the last fresh one on, without gaps."""
    keys: list[str] = field(default_factory=list)
    """All keys of the draft, the header first."""
    broken: dict[str, str] = field(default_factory=dict)
    """Keys of damaged objects, and why."""
    unreached: list[str] = field(default_factory=list)
    """Keys of steps after a damaged or missing one."""

    @property
    def base(self) -> RevisionId | None:
        """The revision that it is based on."""
        base = self.steps[-1].base if self.steps else b"" if self.opened is None else self.opened.base
        return RevisionId(base) if base else None

    @property
    def chunks(self) -> Iterator[bytes]:
        """Chunks that packs must have for this draft."""
        inside = {key for step in self.steps for key in step.chunks}
        for step in self.steps:
            for rows in step.changes.values():
                for row in rows:
                    if isinstance(row, FileChange):
                        yield from (chunk for chunk in row.chunks if chunk not in inside)

    @property
    def trees(self) -> Iterator[TreeId]:
        """Trees that packs must have for this draft."""
        for step in self.steps:
            yield from (TreeId(tree) for tree in step.trees.values() if tree)
            for rows in step.changes.values():
                yield from (TreeId(row.tree) for row in rows if isinstance(row, DirectoryChange) and row.tree)


def read_drafts(objects: Objects, name: str | None = None) -> list[Draft]:
    """Read the drafts of a workspace, or of all, by fence. Damaged objects are in `broken`."""
    prefix = f"{SPACE}/" if name is None else f"{SPACE}/{name}/"
    for _ in range(READ_RETRIES):
        try:
            return _read(objects, list(objects.list(prefix)))
        except KeyError:
            continue  # its writer started over concurrently
    raise RametError("head_moved", "cannot read drafts: they change too fast", "try again")


def _read(objects: Objects, keys: list[str]) -> list[Draft]:
    found: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for key in keys:
        _, workspace, fence, number = key.split("/")
        found.setdefault((workspace, int(fence)), []).append((int(number), key))
    return [_draft(objects, Draft(*which), rows) for which, rows in sorted(found.items())]


def _draft(objects: Objects, draft: Draft, rows: list[tuple[int, str]]) -> Draft:
    draft.keys = [key for _, key in rows]
    if not rows or rows[0][0]:
        return draft
    steps: dict[int, DraftStep] = {}
    for number, key in rows:
        try:
            value = decode(objects.get(key))
        except RametError as error:
            if error.context.get("shredded"):
                return draft  # shredded on purpose
            draft.broken[key] = error.cause
            continue
        except ValueError as error:
            draft.broken[key] = str(error)
            continue
        if number and isinstance(value, DraftStep):
            steps[number] = value
        elif not number and isinstance(value, DraftHeader):
            draft.opened = value
        else:
            draft.broken[key] = "it is not what belongs there"
    number = max((number for number, step in steps.items() if step.fresh), default=0)
    while number in steps:
        draft.steps.append(steps[number])
        number += 1
    draft.unreached = [key for other, key in rows if other > number and key not in draft.broken] if draft.steps else []
    return draft


def live_drafts(repository: Repository) -> Iterator[Draft]:
    """Yield all valid drafts, whose content a collection must keep; `store_corrupt` when one is damaged."""
    for draft in read_drafts(repository.objects):
        if draft.broken:
            first = min(draft.broken)
            raise RametError("store_corrupt", f"the draft {first} is damaged", "run repair, then try again")
        if draft.opened is not None:
            yield draft


def remove_drafts(objects: Objects, name: str) -> None:
    """Remove all drafts of a workspace."""
    remove_draft_objects(objects, list(objects.list(f"{SPACE}/{name}/")))


def remove_draft_objects(objects: Objects, keys: list[str]) -> None:
    """Delete objects of drafts, the headers first."""
    first = [key for key in keys if not int(key.rpartition("/")[2])]
    for key in first:
        objects.delete(key)
    delete_all(objects, [key for key in keys if key not in first])
