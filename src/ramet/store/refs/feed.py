"""Change feed: every move of a head as a CloudEvents 1.0 event, read from the ref logs.

The log of a workspace is the outbox: an event exists from the moment its revision is the head, in order, with an id
that never changes. A consumer stores its `Cursor` after each event, so each event is delivered at least once. An event
carries names and ids, never content.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from heapq import merge
from typing import TYPE_CHECKING, Any, Final

from ramet.core.errors import RametError
from ramet.store.refs.refs import RefEntry

if TYPE_CHECKING:
    from ramet.store.repository import Repository

TYPE: Final = "dev.ramet.workspace.revision.created"
REMOVED: Final = "dev.ramet.workspace.removed"
COLLECTED: Final = "dev.ramet.store.collected"
COLLECTOR: Final = "@gc"
"""Name of the collector among workspaces; no workspace name begins with `@`."""
SOURCE: Final = "/ramet/store"


@dataclass(frozen=True)
class Cursor:
    """Position of a consumer: the last entry it has seen of each workspace's log."""

    seen: Mapping[str, int]

    def encode(self) -> str:
        return base64.urlsafe_b64encode(json.dumps(dict(self.seen), sort_keys=True).encode()).decode()

    @classmethod
    def decode(cls, text: str | None) -> Cursor:
        if not text:
            return cls({})
        try:
            plain = json.loads(base64.urlsafe_b64decode(text.encode()))
            if not isinstance(plain, dict) or not all(type(number) is int for number in plain.values()):
                raise ValueError
        except (ValueError, binascii.Error):
            raise RametError("invalid_argument", "not a cursor of the feed", "start without one") from None
        return cls(plain)

    def after(self, name: str, number: int) -> Cursor:
        return Cursor({**self.seen, name: number})


@dataclass(frozen=True)
class Event:
    """One event. `envelope` is the CloudEvent; `cursor` is the position after it."""

    envelope: Mapping[str, Any]
    cursor: str

    @property
    def id(self) -> str:
        return str(self.envelope["id"])

    @property
    def data(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.envelope["data"]
        return found

    def encode(self) -> bytes:
        return json.dumps(self.envelope, sort_keys=True, separators=(",", ":")).encode()


def events(repository: Repository, since: str | None = None) -> Iterator[Event]:
    """Yield the events after a cursor, oldest first; of one workspace in the order of its log."""
    cursor = Cursor.decode(since)
    names = [n for n in repository.refs.all_names() if repository.grants.allows(repository.principal, n)]
    feeds = [_of_workspace(repository, name, cursor.seen.get(name, 0)) for name in names]
    feeds.append(_of_collections(repository, cursor.seen.get(COLLECTOR, 0)))
    for _, name, number, envelope in merge(*feeds, key=lambda row: row[:3]):
        cursor = cursor.after(name, number)
        yield Event(envelope, cursor.encode())


def _of_workspace(repository: Repository, name: str, after: int) -> Iterator[tuple[float, str, int, dict[str, Any]]]:
    head, latest = None, 0.0
    for entry in repository.refs.history(name, max(0, after - 1)):  # the entry before has the previous head
        moved = entry.head is not None and entry.head != head
        gone = entry.kind == "delete"
        head = None if gone else entry.head
        latest = max(latest, entry.time)  # writers' clocks differ; the order of a log does not
        if (moved or gone) and entry.number > after:
            yield latest, name, entry.number, _envelope(repository, name, entry, entry.time)


def _of_collections(repository: Repository, after: int) -> Iterator[tuple[float, str, int, dict[str, Any]]]:
    """Yield one event for each collection that removed something, with counts."""
    latest = 0.0
    for state in repository.gc_log.history():
        latest = max(latest, state.time)
        if state.kind == "swept" and state.number > after:
            data = {"kind": "gc", **state.removed}
            yield latest, COLLECTOR, state.number, _event(COLLECTED, "store", f"gc:{state.number}", latest, data)


def _envelope(repository: Repository, name: str, entry: RefEntry, at: float) -> dict[str, Any]:
    data: dict[str, Any] = {"workspace": name, "kind": entry.kind.partition(":")[0]}
    subject = name
    if entry.kind != "delete" and entry.head is not None:
        subject = f"{name}/{entry.head.hex()[:12]}"
        try:
            revision = repository.read_revision(entry.head, expired=True)
        except RametError as error:
            if error.code not in ("revision_not_found", "revision_expired"):
                raise
            data.update(revisionId=entry.head.hex(), expired=True)  # the event remains
        else:
            subject = f"{name}/{revision.name}"
            data.update(
                revision=revision.name, revisionId=revision.id.hex(), contentManifest=revision.content_manifest,
                lineage=revision.lineage,
            )  # fmt: skip
            if revision.memory is not None:
                data["memorySnapshotRef"] = revision.memory.ref
            if revision.trace_id:
                data["traceId"] = revision.trace_id
    return _event(REMOVED if entry.kind == "delete" else TYPE, subject, f"{name}:{entry.number}", at, data)


def _event(kind: str, subject: str, identity: str, at: float, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "type": kind,
        "source": SOURCE,
        "subject": subject,
        "id": identity,
        "time": datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
    }
