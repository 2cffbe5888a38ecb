"""Sessions, jobs and command history of a revision, without opening it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ramet.store.commit.kernel_state import SEGMENT, newest_kernel_of, segments_of
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository
from ramet.workspace.record.history import ExecutionRecord, RecordFilter, decode_records


@dataclass(frozen=True)
class SavedSession:
    """A session of a revision, with secrets redacted."""

    session_id: str
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=dict)
    last_exit_code: int = 0


@dataclass(frozen=True)
class EndedJob:
    """A finished background job (`cmd &`)."""

    session_id: str
    id: int
    command: str
    status: str
    exit_code: int


def history_of(
    repository: Repository, revision: Revision, where: RecordFilter | None = None, last: int | None = None
) -> list[ExecutionRecord]:
    """List the records up to a revision, newest last: those that fit, the last ones of them, or all."""
    number = None if where is None else where.number
    found: deque[ExecutionRecord] = deque()
    for records in _newest_first(repository, revision):
        found.extendleft(reversed(records if where is None else list(filter(where.fits, records))))
        if (last and len(found) >= last) or (number is not None and records and records[0].number <= number):
            break
    return list(found)[-(last or 0) :]


def count_history(repository: Repository, revision: Revision) -> int:
    """Count the records up to a revision, without reading them where their numbers tell."""
    newest = _kernel(repository, revision)
    records = newest.get("history", {}).get("records", [])
    numbers = segments_of(revision, newest)
    if numbers is None:
        return sum(map(len, _newest_first(repository, revision)))
    return int(records[-1]["number"]) - max(1, numbers.start * SEGMENT) + 1


def newest_records(repository: Repository, revision: Revision) -> list[ExecutionRecord]:
    """Return the records after the last full segment of the history."""
    newest = _kernel(repository, revision).get("history", {}).get("records", [])
    return list(map(ExecutionRecord.from_dict, newest))


def last_number(repository: Repository, revision: Revision) -> int:
    """Return the number of the last record up to a revision; 0 for none."""
    return next((records[-1].number for records in _newest_first(repository, revision) if records), 0)


def _newest_first(repository: Repository, revision: Revision) -> Iterator[list[ExecutionRecord]]:
    """Yield the history in pieces, the newest piece first; records of a piece are in order."""
    yield newest_records(repository, revision)
    for segment in reversed(revision.history):
        yield decode_records(repository.packs.read(segment))


def _kernel(repository: Repository, revision: Revision) -> dict[str, Any]:
    return {} if revision.kernel is None else newest_kernel_of(repository.packs, revision)


def sessions_of(repository: Repository, revision: Revision) -> list[SavedSession]:
    return [
        SavedSession(plain["session_id"], plain["cwd"], plain["env"], plain["last_exit_code"])
        for plain in _kernel(repository, revision).get("sessions", [])
    ]


def jobs_of(repository: Repository, revision: Revision) -> list[EndedJob]:
    return [job_of(plain) for plain in _kernel(repository, revision).get("jobs", [])]


def job_of(plain: Mapping[str, Any]) -> EndedJob:
    """Decode a job."""
    return EndedJob(plain["session_id"], plain["id"], plain["command"], plain["status"], plain["exit_code"])
