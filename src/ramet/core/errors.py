"""The one error language: `OSError` with a POSIX errno inside, `{code, cause, remediation}` at the surfaces.

A command prints `strerror(error.errno)` and is GNU-exact for free. No message here ever carries a secret.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final


class Unsupported(OSError):
    """The resource cannot do this at all (ENOTSUP)."""


class Unavailable(OSError):
    """The backend could not be reached or asked for patience (EIO); the only error that is worth a retry."""

    version: str | None = None
    """What the bytes that a broken read has given are the beginning of, when that is known (see `Pinned`)."""
    wait: float = 0.0
    """Seconds that the backend asks to be left alone."""
    absent: bool = False
    """Nobody is at the address: its name is not known, or it refuses connections. Where nobody has ever answered, that
    is rather a mistake than a fault that passes."""


class LimitExceeded(Exception):
    """A limit of the workspace was reached; `limit` names the field of `Limits`."""

    def __init__(self, limit: str, allowed: object, doing: str = "") -> None:
        self.limit, self.allowed, self.doing = limit, allowed, doing
        super().__init__(f"{doing + ': ' if doing else ''}limit reached: {limit} ({allowed})")


def out_of_range(error: Exception) -> bool:
    """Whether a number had more digits than Python reads, or was larger than what it counts with."""
    return isinstance(error, OverflowError) or (
        isinstance(error, ValueError) and str(error).startswith("Exceeds the limit")
    )


def fail(number: int, path: str | None = None, detail: str | None = None) -> OSError:
    """An `OSError` of the right subclass for `number`, to be raised by the caller."""
    message = detail or strerror(number)
    if number == errno.ENOTSUP:
        return Unsupported(number, message, path)
    return OSError(number, message, path)


def unavailable(path: str | None, detail: str, version: str | None = None, *, absent: bool = False) -> Unavailable:
    error = Unavailable(errno.EIO, detail, path)
    error.version, error.absent = version, absent
    return error


@cache
def strerror(number: int) -> str:
    """glibc's text for an errno."""
    return os.strerror(number)


def reason(error: OSError) -> str:
    """What a GNU tool prints after the file name and a colon."""
    if error.errno is None:
        return str(error)
    return error.strerror or strerror(error.errno)


# ---------------------------------------------------------------- errors that reach a person or a model

CODES: Final[Mapping[str, str]] = {
    "invalid_argument": "An argument has a value that is not allowed.",
    "invalid_config": "A configuration value is missing or not allowed.",
    "missing_extra": "An optional dependency is not installed.",
    "not_found": "The named thing does not exist.",
    "already_exists": "The named thing exists already.",
    "session_not_found": "No session has this id.",
    "permission_denied": "A policy or a grant refuses this.",
    "unauthenticated": "The server needs a token.",
    "precondition_failed": "The thing is not at the version that the request names.",
    "too_many_requests": "A client asks for more than the server gives to one.",
    "outcome_unknown": "An earlier request with this key took effect, and its answer was lost.",
    "internal": "The server failed at a request.",
    "limit_exceeded": "A limit of the workspace was reached.",
    "unsupported": "The backend cannot do this.",
    "unavailable": "The backend could not be reached.",
    "closed": "The workspace is closed.",
    "snapshot_invalid": "The snapshot cannot be loaded.",
    "workspace_not_found": "No workspace has this name.",
    "workspace_exists": "A workspace of this name exists already.",
    "workspace_busy": "Another writer holds the workspace.",
    "revision_not_found": "No revision has this name.",
    "revision_expired": "The revision was removed by retention.",
    "workspace_held": "A legal hold keeps the workspace from being removed.",
    "secret_found": "New content seems to hold a secret.",
    "content_collected": "Content that a writer relied on was collected meanwhile.",
    "revision_not_committed": "The revision has not been committed.",
    "revision_workspace_mismatch": "The revision belongs to another workspace.",
    "lease_lost": "The writer's lease expired and was taken over.",
    "head_moved": "The head is not the revision that the writer started from.",
    "merge_conflict": "Both sides changed the same thing.",
    "no_diff": "There is nothing to compare with.",
    "invalid_output": "An output entry cannot be understood.",
    "invalid_git_credentials": "The git credentials cannot be used.",
    "wrong_key": "The key does not open this workspace.",
    "principal_mismatch": "The memory image belongs to another principal.",
    "checkpoint_unavailable": "This machine cannot checkpoint processes.",
    "store_corrupt": "The store holds damaged or missing objects.",
    "store_unsafe_refs": "The object store does not honour create-if-absent.",
}


@dataclass
class RametError(Exception):
    """A refusal with everything its reader needs: a stable code, what happened, and what to do about it."""

    code: str
    cause: str
    remediation: str = ""
    context: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"unknown error code {self.code!r}")
        super().__init__(self.cause)

    def __str__(self) -> str:
        return f"{self.cause} ({self.remediation})" if self.remediation else self.cause

    def as_dict(self) -> dict[str, object]:
        return {"code": self.code, "cause": self.cause, "remediation": self.remediation, "context": dict(self.context)}


def missing_extra(extra: str, needed_for: str) -> RametError:
    return RametError("missing_extra", f"{needed_for} needs an optional dependency", f"pip install 'ramet[{extra}]'")
