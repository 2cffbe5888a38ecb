"""Cost totals of records: commands, failures, time, bytes, tokens and money, by agent, session, run or principal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ramet.core.errors import RametError
from ramet.workspace.record.history import ExecutionRecord

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


def total_costs(
    records: Iterable[ExecutionRecord], *, by: str = "agent", since: float | None = None, until: float | None = None
) -> list[CostRow]:
    """Total the records that began in a span of time, one row per group, by name."""
    group = GROUPS.get(by)
    if group is None:
        raise RametError("invalid_argument", f"cannot total costs by {by!r}", f"Use one of {', '.join(GROUPS)}.")
    rows: dict[str, CostRow] = {}
    paths: dict[str, set[str]] = {}
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
    for name, row in rows.items():
        row.files = len(paths[name])
    return [rows[name] for name in sorted(rows)]


def _add(total: dict[str, int], moved: Mapping[str, int]) -> None:
    """Add bytes by mount; a mount without any is left out."""
    for mount, size in moved.items():
        if size:
            total[mount] = total.get(mount, 0) + size
