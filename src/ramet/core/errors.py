"""Errors: `OSError` with a POSIX errno inside, `{code, cause, remediation}` at the surfaces.

- A command prints `strerror(error.errno)`, which is exactly what GNU prints.
- No message carries a secret.
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
    """The backend is unreachable or asks to wait (EIO). The only error that `retry` retries."""

    version: str | None = None
    """The version that an interrupted read was reading, if known (see `Pinned`)."""
    wait: float = 0.0
    """Seconds to wait before the next attempt, as the backend asks (Retry-After)."""
    absent: bool = False
    """The host name is unknown or the connection was refused. Before the first answer this is a wrong address rather
    than a passing fault."""


def out_of_range(error: Exception) -> bool:
    """Return whether the error is Python's limit on integer digits or an overflow."""
    return isinstance(error, OverflowError) or (
        isinstance(error, ValueError) and str(error).startswith("Exceeds the limit")
    )


def fail(number: int, path: str | None = None, detail: str | None = None) -> OSError:
    """Return the `OSError` subclass for an errno, for the caller to raise."""
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
    """Return glibc's text for an errno."""
    return os.strerror(number)


def reason(error: OSError) -> str:
    """Return what a GNU tool prints after `FILE: `."""
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
    "command_failed": "A command ended with a non-zero exit code, and its caller asked for an error.",
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
    "native_unavailable": "This machine cannot run native programs in a box.",
    "checkpoint_unavailable": "This machine cannot checkpoint processes.",
    "store_corrupt": "The store holds damaged or missing objects.",
    "store_unsafe_refs": "The object store does not honour create-if-absent.",
}


@dataclass(eq=False)
class RametError(Exception):
    """A refusal with a stable code, the cause, and what to do about it. Hashable, and survives pickling."""

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

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.code, self.cause, self.remediation, dict(self.context))

    def as_dict(self) -> dict[str, object]:
        return {"code": self.code, "cause": self.cause, "remediation": self.remediation, "context": dict(self.context)}


class LimitExceeded(RametError):
    """A limit was reached; `limit` names the field of `Limits`."""

    def __init__(self, limit: str, allowed: object, doing: str = "") -> None:
        self.limit, self.allowed, self.doing = limit, allowed, doing
        super().__init__("limit_exceeded", f"{doing + ': ' if doing else ''}limit reached: {limit} ({allowed})")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.limit, self.allowed, self.doing)


class WrongType(RametError, TypeError):
    """An argument of a type that the call does not take."""


def wrong_type(what: str, value: object, remediation: str) -> WrongType:
    return WrongType("invalid_argument", f"cannot use a {type(value).__name__} as {what}", remediation)


def missing_extra(extra: str, needed_for: str) -> RametError:
    return RametError("missing_extra", f"{needed_for} needs an optional dependency", f"pip install 'ramet[{extra}]'")
