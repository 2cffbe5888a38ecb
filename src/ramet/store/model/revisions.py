"""Revisions: committed states of a workspace as canonical JSON, named by their digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

from ramet.store.model.ids import ChunkId, RevisionId, TreeId, revision_id

RECORDS: Final = "Records"
"""Phase of a value that adds records to a head and is no part of a history."""


@dataclass(frozen=True)
class MountState:
    """One mount of a revision: its tree, or the description of a remote resource."""

    prefix: str
    type: str
    mode: str = "write"
    tree: TreeId | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    redacted_fields: tuple[str, ...] = ()
    needs_override: bool = False
    scratch: bool = False
    pin: TreeId | None = None
    """For a remote resource: a tree of the versions of its paths."""

    @property
    def trees(self) -> tuple[TreeId, ...]:
        """Every tree that this mount needs."""
        return tuple(tree for tree in (self.tree, self.pin) if tree is not None)


class MemoryImage(NamedTuple):
    """Reference to a process image, which makes a head resumable, and the principal that owns it."""

    ref: str
    principal: str = ""


class Note(NamedTuple):
    """A message about a revision that was given later."""

    message: str
    author: str = ""
    time: float = 0.0
    path: str = ""
    """The file that it is about; empty is the revision."""
    line: int = 0
    """The line of the file, from 1; 0 is the whole file."""

    def __str__(self) -> str:
        """The message behind the place that it is about."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}" if place else self.message


@dataclass(frozen=True)
class Revision:
    """What a commit recorded. `name` (`proj-x-3`) is for people; the id is the digest of all fields."""

    workspace: str
    seq: int
    parents: tuple[RevisionId, ...]
    lineage: str
    mounts: tuple[MountState, ...]
    kernel: ChunkId | None = None
    """Sessions, jobs and the newest history, stored as one chunk."""
    history: tuple[ChunkId, ...] = ()
    """The older history in segments, oldest first."""
    withheld: tuple[str, ...] = ()
    """Paths that were left out by the ignore rules."""
    suspected: tuple[str, ...] = ()
    """Paths whose new content looked like a secret, each with its kind; never the content."""
    outputs: tuple[str, ...] = ()
    """The paths to which this revision was narrowed; empty means everything."""
    author: str = ""
    agent: str = ""
    time: float = 0.0
    message: str = ""
    trace_id: str = ""
    phase: str = "Committed"
    diff: Mapping[str, Any] | None = None
    ops: Mapping[str, Any] | None = None
    """The records that led here: `first` and `last` number, and who wrote what.

    - `writers`: the record per path that wrote all lines which were not there before.
    - `lines`: for files with several writers, `[first line, count, record]`; record 0 is unknown. Revisions without
      this key are of an older version, where `writers` names the last record that wrote a path.
    - `from`: the path in the parent that a file was moved or copied from; empty for a new file.
    - `moves`: renamed directories, `[old, new]`, in order.
    """

    memory: MemoryImage | None = None
    """Reference to an image of the running processes, never the bytes."""
    notes: tuple[Note, ...] = field(default=(), compare=False)
    """Messages of later commits that had nothing to write; not part of the id. `log` and `commit` fill them in."""

    def __repr__(self) -> str:
        return f"<Revision {self.name} {self.id.hex()[:12]} {self.message!r}>"

    @property
    def resumable(self) -> bool:
        return self.memory is not None

    @property
    def is_in_history(self) -> bool:
        """Whether this is a revision; false for the records of calls after a head that changed no file."""
        return self.phase != RECORDS

    @property
    def chunks(self) -> tuple[ChunkId, ...]:
        """Every chunk that this revision needs, without its trees."""
        return self.history if self.kernel is None else (self.kernel, *self.history)

    @property
    def name(self) -> str:
        return f"{self.workspace}-{self.seq}"

    def encode(self) -> bytes:
        plain = {
            "workspace": self.workspace,
            "seq": self.seq,
            "parents": [parent.hex() for parent in self.parents],
            "lineage": self.lineage,
            "mounts": [
                {
                    "prefix": mount.prefix, "type": mount.type, "mode": mount.mode,
                    **({} if mount.tree is None else {"tree": mount.tree.hex()}),
                    **({"config": dict(mount.config)} if mount.config else {}),
                    **({"redacted_fields": list(mount.redacted_fields)} if mount.redacted_fields else {}),
                    **({"needs_override": True} if mount.needs_override else {}),
                    **({"scratch": True} if mount.scratch else {}),
                    **({} if mount.pin is None else {"pin": mount.pin.hex()}),
                }
                for mount in self.mounts
            ],
            "kernel": None if self.kernel is None else self.kernel.hex(),
            "author": self.author, "agent": self.agent, "time": self.time, "message": self.message,
            "trace_id": self.trace_id, "phase": self.phase, "diff": self.diff,
            **({} if self.ops is None else {"ops": self.ops}),
            **({} if not self.history else {"history": [segment.hex() for segment in self.history]}),
            **({"withheld": list(self.withheld)} if self.withheld else {}),
            **({"outputs": list(self.outputs)} if self.outputs else {}),
            **({"suspected": list(self.suspected)} if self.suspected else {}),
            **({} if self.memory is None else {"memory": self.memory._asdict()}),
        }  # fmt: skip
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()

    @cached_property
    def id(self) -> RevisionId:
        return revision_id(self.encode())

    @property
    def content(self) -> tuple[tuple[str, TreeId | None], ...]:
        """The trees by prefix; two revisions with equal trees hold the same files."""
        return tuple((mount.prefix, mount.tree) for mount in self.mounts)

    @property
    def content_manifest(self) -> str:
        """Lowercase hex SHA-256 over the trees of all mounts: equal for equal files in any store."""
        import hashlib

        parts = [
            f"{m.prefix}\0{'' if m.tree is None else m.tree.hex()}\n"
            for m in sorted(self.mounts, key=lambda m: m.prefix)
        ]
        return hashlib.sha256("".join(parts).encode()).hexdigest()


def decode(data: bytes) -> Revision:
    """Decode a revision. Optional keys are absent when empty, so encoding it again gives the same id."""
    plain = json.loads(data)
    mounts = tuple(
        MountState(
            prefix=m["prefix"], type=m["type"], mode=m["mode"],
            tree=TreeId(bytes.fromhex(m["tree"])) if m.get("tree") else None, config=m.get("config", {}),
            redacted_fields=tuple(m.get("redacted_fields", ())), needs_override=m.get("needs_override", False),
            scratch=m.get("scratch", False),
            pin=TreeId(bytes.fromhex(m["pin"])) if "pin" in m else None,
        )
        for m in plain["mounts"]
    )  # fmt: skip
    return Revision(
        workspace=plain["workspace"],
        seq=plain["seq"],
        parents=tuple(RevisionId(bytes.fromhex(parent)) for parent in plain["parents"]),
        lineage=plain["lineage"],
        mounts=mounts,
        kernel=None if plain["kernel"] is None else ChunkId(bytes.fromhex(plain["kernel"])),
        author=plain["author"],
        agent=plain["agent"],
        time=plain["time"],
        message=plain["message"],
        trace_id=plain["trace_id"],
        phase=plain["phase"],
        diff=plain["diff"],
        ops=plain.get("ops"),
        history=tuple(ChunkId(bytes.fromhex(segment)) for segment in plain.get("history", ())),
        withheld=tuple(plain.get("withheld", ())),
        outputs=tuple(plain.get("outputs", ())),
        suspected=tuple(plain.get("suspected", ())),
        memory=MemoryImage(**plain["memory"]) if "memory" in plain else None,
    )
