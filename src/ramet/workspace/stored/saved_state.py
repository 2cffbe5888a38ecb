"""Sessions, jobs and command history of a revision, without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ramet.store.commit.kernel_state import kernel_of
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository
from ramet.workspace.history import ExecutionRecord


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
    repository: Repository, revision: Revision, session: str | None = None, last: int | None = None
) -> list[ExecutionRecord]:
    """List the commands up to a revision, newest last: of one session, the last ones, or all."""
    found = kernel_of(repository.packs, revision).get("history", {}).get("records", [])
    wanted = [plain for plain in found if session is None or plain.get("session_id") == session]
    return [ExecutionRecord.from_dict(plain) for plain in (wanted[-last:] if last else wanted)]


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
