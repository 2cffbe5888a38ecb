"""Sessions, jobs and command history of a revision, without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ramet.store.commit.kernel_state import kernel_of
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository
from ramet.workspace.record.history import ExecutionRecord, RecordFilter


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
    found = kernel_of(repository.packs, revision).get("history", {}).get("records", [])
    if where is None:
        return [ExecutionRecord.from_dict(plain) for plain in (found[-last:] if last else found)]
    fitting = [record for plain in found if where.fits(record := ExecutionRecord.from_dict(plain))]
    return fitting[-last:] if last else fitting


def sessions_of(repository: Repository, revision: Revision) -> list[SavedSession]:
    return [
        SavedSession(plain["session_id"], plain["cwd"], plain["env"], plain["last_exit_code"])
        for plain in kernel_of(repository.packs, revision).get("sessions", [])
    ]


def jobs_of(repository: Repository, revision: Revision) -> list[EndedJob]:
    return [job_of(plain) for plain in kernel_of(repository.packs, revision).get("jobs", [])]


def job_of(plain: Mapping[str, Any]) -> EndedJob:
    """Decode a job."""
    return EndedJob(plain["session_id"], plain["id"], plain["command"], plain["status"], plain["exit_code"])
