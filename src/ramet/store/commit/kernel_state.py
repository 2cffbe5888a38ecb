"""Kernel state of a revision: sessions, jobs and recent history in one chunk, older history in segments.

A full segment never changes, so a commit writes only new ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ramet.store.model.ids import ChunkId, chunk_id
from ramet.store.model.revisions import Revision
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

SEGMENT: Final = 256
"""Records per segment: segment k holds the records with numbers in [k * SEGMENT, (k + 1) * SEGMENT)."""

Plain = dict[str, Any]


def encode_json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value, order="sorted")
    except (UnicodeEncodeError, TypeError):  # a name that is not UTF-8, kept as surrogates; keys that are numbers
        return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()


def write_chunk(writer: PackWriter, data: bytes) -> ChunkId:
    identity = chunk_id(data)
    writer.add(identity, data)
    return identity


def kernel_of(packs: PackReader, revision: Revision) -> Plain:
    """Return the kernel state of a revision with its whole history; empty when it has none."""
    if revision.kernel is None:
        return {}
    state = newest_kernel_of(packs, revision)
    older = [record for segment in revision.history for record in read_segment(packs, segment)]
    state["history"] = {"records": older + list(state.get("history", {}).get("records", []))}
    return state


def newest_kernel_of(packs: PackReader, revision: Revision) -> Plain:
    """Return the kernel state of a revision with the newest part of its history."""
    assert revision.kernel is not None
    found: Plain = json.loads(packs.read(revision.kernel))
    return found


def segments_of(revision: Revision, newest: Plain) -> range | None:
    """Return the numbers of the history segments, derived from the first record of the newest part.

    None when they cannot be derived and the segments must be read.
    """
    records = newest.get("history", {}).get("records", [])
    if not revision.history or not records:
        return None
    first = int(records[0]["number"])
    numbers = range(first // SEGMENT - len(revision.history), first // SEGMENT)
    return numbers if first % SEGMENT == 0 and numbers.start >= 0 else None


def read_segment(packs: PackReader, segment: ChunkId) -> list[Plain]:
    found: list[Plain] = json.loads(packs.read(segment))
    return found


def records_of(packs: PackReader, revision: Revision, first: int, last: int) -> list[Plain]:
    """Return the records in a range of numbers, reading as few segments as possible."""
    if revision.kernel is None:
        return []
    found = list(json.loads(packs.read(revision.kernel)).get("history", {}).get("records", []))
    for segment in reversed(revision.history):
        if found and found[0].get("number", 0) <= first:
            break
        found = read_segment(packs, segment) + found
    return [record for record in found if first <= record.get("number", 0) <= last]


def append_records(
    packs: PackReader,
    writer: PackWriter,
    head: Revision | None,
    new: Sequence[Plain],
    sessions: Revision | None = None,
) -> tuple[ChunkId, tuple[ChunkId, ...], int]:
    """Write the kernel state of a revision that follows `head`: its history and more records, numbered anew.

    Sessions and jobs are those of `sessions`, or of `head`. Returns the kernel, the segments and the first number.
    """
    history = newest_kernel_of(packs, head) if head is not None and head.kernel is not None else {}
    records = list(history.get("history", {}).get("records", []))
    segments = [] if head is None else list(head.history)
    if not records and segments:
        records = read_segment(packs, segments.pop())
    first = int(records[-1]["number"]) + 1 if records else 1
    records += [{**record, "number": first + at} for at, record in enumerate(new)]
    tail = (first + len(new)) // SEGMENT * SEGMENT
    while records and int(records[0]["number"]) < tail:
        end = (int(records[0]["number"]) // SEGMENT + 1) * SEGMENT
        segments.append(write_chunk(writer, encode_json([one for one in records if one["number"] < end])))
        records = [one for one in records if one["number"] >= end]
    source = head if sessions is None else sessions
    state = newest_kernel_of(packs, source) if source is not None and source.kernel is not None else {}
    kernel = write_chunk(writer, encode_json({**state, "history": {"records": records}}))
    return kernel, tuple(segments), first


def plain_record(kind: str, actor: str, command: str, time: float) -> Plain:
    """Return the record of a change of a whole workspace by its caller."""
    return {
        "kind": kind, "session_id": "", "agent_id": actor, "principal": actor, "command": command,
        "started_at": time, "ended_at": time, "exit_code": 0,
    }  # fmt: skip


def no_writers(first: int, last: int) -> Plain:
    """Return the `ops` of a revision whose lines come from other revisions, or are unknown."""
    return {"first": first, "last": last, "writers": {}, "lines": {}}


class Segments:
    """Tracks which segments of a growing history are stored."""

    def __init__(self) -> None:
        self._ids: dict[int, ChunkId] = {}

    def adopt(self, revision: Revision | None, records: Sequence[Plain]) -> None:
        """Adopt the segments of the opened revision; `records` is its whole history."""
        if revision is None or not revision.history:
            return
        numbers = sorted({int(record["number"]) // SEGMENT for record in records})
        self._ids = dict(zip(numbers, revision.history, strict=False))

    def know(self, numbers: Sequence[int], segments: Sequence[ChunkId]) -> None:
        """Adopt the segments of the opened revision by their numbers."""
        self._ids = dict(zip(numbers, segments, strict=True))

    def stored(self) -> dict[int, ChunkId]:
        return dict(self._ids)

    def restore(self, stored: dict[int, ChunkId]) -> None:
        """Drop the segments of a failed commit."""
        self._ids = dict(stored)

    def tail(self, next_number: int) -> int:
        """Return the number of the first record in the kernel chunk."""
        return next_number // SEGMENT * SEGMENT

    def missing(self, oldest: int, next_number: int) -> range:
        """Return the numbers of full, completely remembered segments that are not stored."""
        whole = 0 if oldest <= 1 else -(-oldest // SEGMENT)
        return range(max((whole, *(number + 1 for number in self._ids))), next_number // SEGMENT)

    def write(self, writer: PackWriter, new: Mapping[int, Sequence[Plain]], oldest: int) -> tuple[ChunkId, ...]:
        """Write new segments, and return the ids of all that are still needed."""
        for number, records in new.items():
            if records:
                self._ids[number] = write_chunk(writer, encode_json(list(records)))
        self._ids = {number: found for number, found in self._ids.items() if (number + 1) * SEGMENT > oldest}
        return tuple(found for _, found in sorted(self._ids.items()))
