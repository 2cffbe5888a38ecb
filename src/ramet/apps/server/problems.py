"""Problem JSON for errors: the HTTP status of each code. No message contains a secret or a host path."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Final

import msgspec

from ramet.apps.server.models import Problem
from ramet.core.errors import LimitExceeded, RametError, Unavailable, reason

STATUS: Final[Mapping[str, int]] = {
    "unauthenticated": 401, "permission_denied": 403, "principal_mismatch": 403, "wrong_key": 403,
    "not_found": 404, "session_not_found": 404, "workspace_not_found": 404, "revision_not_found": 404,
    "already_exists": 409, "workspace_exists": 409, "workspace_busy": 409, "lease_lost": 409, "head_moved": 409,
    "workspace_held": 409, "content_collected": 409, "revision_expired": 410,
    "merge_conflict": 409, "revision_not_committed": 409, "revision_workspace_mismatch": 409, "no_diff": 409,
    "closed": 409, "outcome_unknown": 409, "precondition_failed": 412, "limit_exceeded": 413, "too_many_requests": 429,
    "unavailable": 503, "store_corrupt": 500, "store_unsafe_refs": 500, "internal": 500,
}  # fmt: skip
"""All other codes are client errors: 400."""

TITLES: Final[Mapping[int, str]] = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    409: "Conflict", 410: "Gone", 412: "Precondition Failed", 413: "Content Too Large", 416: "Range Not Satisfiable",
    421: "Misdirected Request", 429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout", 507: "Insufficient Storage",
}  # fmt: skip

_ERRNO: Final[Mapping[int, tuple[int, str]]] = {
    errno.ENOENT: (404, "not_found"), errno.EEXIST: (409, "already_exists"), errno.ENOTEMPTY: (409, "already_exists"),
    errno.EBUSY: (409, "already_exists"), errno.EACCES: (403, "permission_denied"),
    errno.EPERM: (403, "permission_denied"), errno.EROFS: (403, "permission_denied"),
    errno.ESTALE: (412, "precondition_failed"), errno.ENOTSUP: (400, "unsupported"),
    errno.ENOSPC: (507, "limit_exceeded"), errno.EDQUOT: (507, "limit_exceeded"), errno.EFBIG: (413, "limit_exceeded"),
    errno.EIO: (503, "unavailable"),
}  # fmt: skip


class Refusal(Exception):
    """Refuses a request with a problem; `headers` go into the response."""

    def __init__(
        self, code: str, cause: str, remediation: str = "", *, status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cause)
        self.problem = make_problem(code, cause, remediation, status=status)
        self.headers = dict(headers or {})


def make_problem(
    code: str, cause: str, remediation: str = "", *, status: int | None = None,
    context: Mapping[str, object] | None = None,
) -> Problem:  # fmt: skip
    number = status if status is not None else STATUS.get(code, 400)
    title = TITLES.get(number, "Error")
    plain = {name: value for name, value in (context or {}).items() if isinstance(value, str | int | float | bool)}
    return Problem(number, title, code, cause, remediation, cause, context=plain)


def problem_of(error: BaseException) -> Problem | None:
    """Return the problem for an error; None for an unexpected one."""
    if isinstance(error, Refusal):
        return error.problem
    if isinstance(error, LimitExceeded):
        return make_problem("limit_exceeded", str(error), "request less, or raise the limit of the workspace")
    if isinstance(error, RametError):
        context = {name: value for name, value in error.context.items() if name != "holder"}
        return make_problem(error.code, error.cause, error.remediation, context=context)
    if isinstance(error, msgspec.ValidationError | msgspec.DecodeError):
        return make_problem("invalid_argument", str(error), "see /openapi.json for the parameters")
    if isinstance(error, Unavailable):
        return make_problem("unavailable", reason(error), "try again later")
    if isinstance(error, OSError):
        status, code = _ERRNO.get(error.errno or 0, (400, "invalid_argument"))
        name = error.filename if isinstance(error.filename, str) else None
        return make_problem(code, f"{name}: {reason(error)}" if name else reason(error), status=status)
    if isinstance(error, ValueError | TypeError | NotImplementedError):
        return make_problem("invalid_argument", str(error))
    return None


def internal() -> Problem:
    return make_problem("internal", "internal error", "see the server's log; this is a bug in Ramet")
