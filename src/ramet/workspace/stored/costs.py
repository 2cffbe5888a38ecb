"""Cost totals of records: commands, failures, time, bytes, tokens and money, by agent, session, run or principal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ramet.core.errors import RametError
from ramet.store.model.ids import ChunkId
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository
from ramet.workspace.record.history import ExecutionRecord, decode_records
from ramet.workspace.stored.saved_state import newest_records

GROUPS: Final[dict[str, Callable[[ExecutionRecord], str]]] = {
    "agent": lambda record: record.agent_id,
    "session": lambda record: record.session_id,
    "run": lambda record: record.run,
    "principal": lambda record: record.principal,
}
"""What totals are grouped by. A run is what `execute(..., meta={"run": ...})` names, else the session."""


@dataclass
class CostRow:
    """Totals of one agent, session, run or principal. `meta` sums the numbers that callers gave, such as `tokens`."""

    name: str
    commands: int = 0
    """Records of any kind."""
    failures: int = 0
    """Records whose exit code is not 0."""
    seconds: float = 0.0
    cpu: float = 0.0
    bytes_read: dict[str, int] = field(default_factory=dict)
    """By mount."""
    bytes_written: dict[str, int] = field(default_factory=dict)
    files: int = 0
    """Distinct paths that they wrote or removed; of a record with more paths than it lists, the listed ones."""
    network_requests: int = 0
    network_bytes: int = 0
    meta: dict[str, float] = field(default_factory=dict)
    first: float = 0.0
    """When the first of them began, in seconds since the epoch."""
    last: float = 0.0


class CostTotals:
    """Totals of records by group, which can be added to those of other records."""

    def __init__(self, by: str) -> None:
        group = GROUPS.get(by)
        if group is None:
            raise RametError("invalid_argument", f"cannot total costs by {by!r}", f"Use one of {', '.join(GROUPS)}.")
        self._group = group
        self._rows: dict[str, CostRow] = {}
        self._paths: dict[str, set[str]] = {}

    def add(self, records: Iterable[ExecutionRecord], since: float | None = None, until: float | None = None) -> None:
        """Add the records that began in a span of time."""
        rows, paths, group = self._rows, self._paths, self._group
        for record in records:
            if (since is not None and record.started_at < since) or (until is not None and record.started_at >= until):
                continue
            name = group(record)
            row = rows.setdefault(name, CostRow(name, first=record.started_at))
            row.commands += 1
            row.failures += bool(record.exit_code)
            row.seconds += record.duration
            row.cpu += record.cpu
            _add(row.bytes_read, record.bytes_read)
            _add(row.bytes_written, record.bytes_written)
            paths.setdefault(name, set()).update(record.paths_written, record.paths_removed)
            row.network_requests += record.network_requests
            row.network_bytes += record.network_bytes
            for key, value in record.meta.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    row.meta[key] = row.meta.get(key, 0) + value
            row.first, row.last = min(row.first, record.started_at), max(row.last, record.ended_at)

    def merge(self, other: CostTotals) -> None:
        """Add totals of other records by the same group."""
        for name, more in other._rows.items():
            row = self._rows.setdefault(name, CostRow(name, first=more.first))
            row.commands += more.commands
            row.failures += more.failures
            row.seconds += more.seconds
            row.cpu += more.cpu
            _add(row.bytes_read, more.bytes_read)
            _add(row.bytes_written, more.bytes_written)
            row.network_requests += more.network_requests
            row.network_bytes += more.network_bytes
            for key, value in more.meta.items():
                row.meta[key] = row.meta.get(key, 0) + value
            row.first, row.last = min(row.first, more.first), max(row.last, more.last)
            self._paths.setdefault(name, set()).update(other._paths[name])

    def rows(self) -> list[CostRow]:
        """Return one row per group, by name."""
        for name, row in self._rows.items():
            row.files = len(self._paths[name])
        return [self._rows[name] for name in sorted(self._rows)]


def total_costs(
    records: Iterable[ExecutionRecord], *, by: str = "agent", since: float | None = None, until: float | None = None
) -> list[CostRow]:
    """Total the records that began in a span of time, one row per group, by name."""
    totals = CostTotals(by)
    totals.add(records, since, until)
    return totals.rows()


_SEGMENTS: Final[dict[tuple[ChunkId, str], CostTotals]] = {}
"""Totals of full segments of histories, which never change, by their id and the group."""
KEPT_SEGMENTS: Final = 200
"""Segments whose totals are kept, at about 50 KB each: mostly paths."""


def costs_of(
    repository: Repository, revision: Revision, newer: Iterable[ExecutionRecord] = (), *, by: str = "agent"
) -> list[CostRow]:
    """Total the records up to a revision, and newer ones. Segments of the history are read once."""
    totals = CostTotals(by)
    for segment in revision.history:
        totals.merge(_segment_totals(repository, segment, by))
    totals.add(newest_records(repository, revision))
    totals.add(newer)
    return totals.rows()


def _segment_totals(repository: Repository, segment: ChunkId, by: str) -> CostTotals:
    found = _SEGMENTS.get((segment, by))
    if found is None:
        found = CostTotals(by)
        found.add(decode_records(repository.packs.read(segment)))
        if len(_SEGMENTS) >= KEPT_SEGMENTS:
            _SEGMENTS.clear()
        _SEGMENTS[segment, by] = found
    return found


def _add(total: dict[str, int], moved: Mapping[str, int]) -> None:
    """Add bytes by mount; a mount without any is left out."""
    for mount, size in moved.items():
        if size:
            total[mount] = total.get(mount, 0) + size
