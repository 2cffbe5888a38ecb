"""Errors of object stores, translated from the client's and free of secrets."""

from __future__ import annotations

import errno
import re
from typing import Final

from ramet.backends.redacted_urls import REFUSED, UNKNOWN
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path

_STATUS: Final = re.compile(r"status(?: code)?: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_HOST: Final = re.compile(r"https?://(?:[^/@\s]*@)?([^/?\s,]+)")
_CAUSES: Final = (
    ("dns error", UNKNOWN),
    ("ConnectionRefused", REFUSED),
    ("InvalidContentType", "it does not speak TLS (an address that begins with http:// is asked without)"),
    ("UnknownIssuer", "its certificate cannot be verified"),
    ("certificate", "its certificate cannot be verified"),
    ("TimedOut", "there is no answer"),
    ("timed out", "there is no answer"),
)
"""Phrases that tell why a request could not be made; the first match counts."""


def translated(error: Exception, path: Path, where: str) -> OSError:
    from obstore import exceptions as raised

    if not isinstance(error, raised.BaseError):
        raise error
    text = str(error)
    found = _CODE.search(text)
    code = "" if found is None else found[1]
    if code in ("NoSuchBucket", "ContainerNotFound") or "NoSuchBucket" in text or "ContainerNotFound" in text:
        return fail(errno.ENODEV, path, f"{where} does not exist")
    if isinstance(error, raised.NotFoundError):
        return fail(errno.ENOENT, path)
    if isinstance(error, raised.AlreadyExistsError):
        return fail(errno.EEXIST, path)
    if isinstance(error, raised.PreconditionError | raised.NotModifiedError):
        return fail(errno.ESTALE, path)
    if "AuthorizationHeaderMalformed" in text or "301 Moved" in text or "PermanentRedirect" in text:
        return fail(errno.EINVAL, path, f"{where} is in another region than the configured one")
    if "token request" in text or "api/token" in text:
        return fail(errno.EACCES, path, f"Permission denied: {where} needs credentials, and this machine has none")
    status = _STATUS.search(text)
    refused = isinstance(error, raised.PermissionDeniedError | raised.UnauthenticatedError)
    if refused or (status is not None and status[1] in ("401", "403")):
        why = f" ({code})" if code else ""
        return fail(errno.EACCES, path, f"Permission denied: {where} refuses these credentials{why}")
    if isinstance(error, raised.NotSupportedError):
        return fail(errno.ENOTSUP, path)
    host = _HOST.search(text)
    at = f" at {host[1]}" if host is not None else ""
    cause = code or _cause(text)
    return unavailable(path, f"{where} could not be reached{at}: {cause}", absent=cause in (UNKNOWN, REFUSED))


def _cause(text: str) -> str:
    return next((words for sign, words in _CAUSES if sign in text), None) or brief(text)


def brief(text: str) -> str:
    """Return the last part of an error's first line, without the query of a URL."""
    line = text.split("\n", 1)[0].rsplit(" - ", 1)[-1]
    return re.sub(r"\?[^\s\"')]*", "", re.sub(r"//[^/@\s]*@", "//", line))[:300]
