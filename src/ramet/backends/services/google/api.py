"""Google's APIs for its mounts: clients, errors, pages, listings of Drive, export table."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from ramet.backends.remote.http_client import HTTPClient
from ramet.backends.services.auth import TokenAuth
from ramet.backends.services.contents import json_object
from ramet.backends.services.google.token import GoogleConfig
from ramet.backends.services.names import time_ns
from ramet.backends.services.pages import by_cursor
from ramet.backends.services.rest import Answer, Params, Rest, patiently, rate_limited
from ramet.core.errors import fail
from ramet.core.paths import Path, encode

SCOPES: Final = {
    "drive": "https://www.googleapis.com/auth/drive",
    "documents": "https://www.googleapis.com/auth/documents",
    "spreadsheets": "https://www.googleapis.com/auth/spreadsheets",
    "presentations": "https://www.googleapis.com/auth/presentations",
    "gmail": "https://www.googleapis.com/auth/gmail.modify",
}
SIGNED: Final = ("*.googleusercontent.com",)
"""Hosts that signed downloads come from; they get no token."""
FOLDER: Final = "application/vnd.google-apps.folder"
SHORTCUT: Final = "application/vnd.google-apps.shortcut"
DOCUMENT: Final = "application/vnd.google-apps.document"
SPREADSHEET: Final = "application/vnd.google-apps.spreadsheet"
PRESENTATION: Final = "application/vnd.google-apps.presentation"
DRAWING: Final = "application/vnd.google-apps.drawing"
SCRIPT: Final = "application/vnd.google-apps.script"
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
FIELDS: Final = (
    "id,name,mimeType,size,modifiedTime,md5Checksum,version,headRevisionId,shortcutDetails(targetId,targetMimeType),"
    "capabilities/canEdit,driveId,parents,trashed,webViewLink"
)
EVERYWHERE: Final[Mapping[str, str]] = {"supportsAllDrives": "true", "includeItemsFromAllDrives": "true"}
_SLOW: Final = frozenset(
    ("rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "sharingRateLimitExceeded")
)
_SCOPE: Final = frozenset(("insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"))
_OFF: Final = frozenset(("accessNotConfigured", "SERVICE_DISABLED"))
_DAY: Final = frozenset(("dailyLimitExceeded", "quotaExceeded"))
_FULL: Final = frozenset(("storageQuotaExceeded", "teamDriveFileLimitExceeded", "numChildrenInNonRootLimitExceeded"))
_REQUEST: Final = re.compile(r"(GET|POST|PUT|PATCH|DELETE)\s+(/\S*)")


class Export(NamedTuple):
    """A form of a file that has no bytes itself."""

    suffix: str
    mime: str


EXPORTS: Final[Mapping[str, Mapping[str, Export]]] = {
    "md": {
        DOCUMENT: Export(".gdoc.md", "text/markdown"),
        PRESENTATION: Export(".gslides.txt", "text/plain"),
        DRAWING: Export(".gdraw.svg", "image/svg+xml"),
        SCRIPT: Export(".gscript.json", "application/vnd.google-apps.script+json"),
    },
    "office": {
        DOCUMENT: Export(".gdoc.docx", f"{_OFFICE}.wordprocessingml.document"),
        SPREADSHEET: Export(".gsheet.xlsx", f"{_OFFICE}.spreadsheetml.sheet"),
        PRESENTATION: Export(".gslides.pptx", f"{_OFFICE}.presentationml.presentation"),
        DRAWING: Export(".gdraw.png", "image/png"),
        SCRIPT: Export(".gscript.json", "application/vnd.google-apps.script+json"),
    },
    "pdf": {
        DOCUMENT: Export(".gdoc.pdf", "application/pdf"),
        SPREADSHEET: Export(".gsheet.pdf", "application/pdf"),
        PRESENTATION: Export(".gslides.pdf", "application/pdf"),
        DRAWING: Export(".gdraw.pdf", "application/pdf"),
        SCRIPT: Export(".gscript.json", "application/vnd.google-apps.script+json"),
    },
}
"""What Google's own files are shown as; spreadsheets are directories of CSV with `md`."""


def google_rest(
    config: GoogleConfig, auth: TokenAuth, base: str, scope: str, *, headers: Mapping[str, str] | None = None
) -> Rest:
    """The client of the API at `base`, whose errors name the scope that it needs."""
    host = urlsplit(base).hostname or ""
    client = HTTPClient((host, *SIGNED, *config.allow), private=config.private, home=(host,), timeout=config.timeout)

    def judge(answer: Answer) -> OSError | None:
        return _judge(answer, host, SCOPES[scope])

    return Rest(client, base, auth, headers=headers, judge=judge, explain=explain, bounds=config.bounds)


def explain(found: Any) -> str:
    error = found.get("error") if isinstance(found, dict) else None
    return str(error.get("message", "")) if isinstance(error, dict) else str(error or "")


def reasons(found: Any) -> set[str]:
    """Why Google refuses: the older `errors` and the newer `details` say it."""
    error = found.get("error") if isinstance(found, dict) else None
    if not isinstance(error, dict):
        return set()
    told = [*(error.get("errors") or ()), *(error.get("details") or ())]
    return {str(one["reason"]) for one in told if isinstance(one, dict) and "reason" in one}


def _judge(answer: Answer, host: str, scope: str) -> OSError | None:
    if answer.status not in (400, 403, 404, 409):
        return None
    try:
        found = answer.json()
    except OSError:
        found = None
    said, why, path = explain(found)[:200], reasons(found), answer.path
    if answer.status == 404:
        words = "it is not there, or not shared with this account"
        return fail(errno.ENOENT, path, f"No such file or directory: {words}")
    if answer.status == 409:
        return fail(errno.ESTALE, path, f"Stale file handle: Google says {said}")
    if answer.status == 400:
        return fail(errno.EINVAL, path, f"Invalid argument: Google says {said or 'nothing'}")
    if why & _SLOW:
        return rate_limited(path, host, 0.0)
    if why & _SCOPE:
        return fail(errno.EACCES, path, f"Permission denied: the token lacks a scope; sign in again with {scope}")
    if why & _OFF:
        words = f"the API of {host} is off in the token's project; enable it in the Cloud console"
        return fail(errno.EACCES, path, f"Permission denied: {words}")
    if why & _DAY:
        words = f"today's quota of {host} is used up; wait until tomorrow, or raise it in the Cloud console"
        return fail(errno.EACCES, path, f"Permission denied: {words}")
    if why & _FULL:
        return fail(errno.ENOSPC, path, f"No space left on device: {said}")
    if "exportSizeLimitExceeded" in why:
        return fail(errno.EFBIG, path, "File too large: Google exports at most 10 MB")
    return None


def paged(rest: Rest, address: str, inside: str, path: Path, params: Params) -> AsyncIterator[Any]:
    """The entries of all pages of a listing."""

    async def page(token: str | None) -> tuple[list[Any], str | None]:
        said = (await rest.get(address, path=path, params={**params, "pageToken": token})).json()
        return said.get(inside) or [], said.get("nextPageToken")

    return by_cursor(page, path)


def listed_files(rest: Rest, query: str, path: Path, **params: str) -> AsyncIterator[Any]:
    """Files of Drive that a query finds, with all that a mount shows of them."""
    given: Params = {
        **EVERYWHERE, "q": query, "fields": f"nextPageToken,files({FIELDS})", "pageSize": 1000, **params,
    }  # fmt: skip
    return paged(rest, "/drive/v3/files", "files", path, given)


def quoted(text: str) -> str:
    """A text in a query of Drive."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class DriveFile(NamedTuple):
    """What Drive says about a file."""

    id: str
    name: str
    mime: str
    size: int | None
    mtime_ns: int | None
    version: str | None
    editable: bool
    target: str
    """The file that a shortcut stands for."""
    parents: tuple[str, ...]
    data: Mapping[str, Any]

    @property
    def is_folder(self) -> bool:
        return self.mime == FOLDER


def drive_file(data: Mapping[str, Any]) -> DriveFile:
    size, version = data.get("size"), data.get("headRevisionId") or data.get("md5Checksum")
    if version is None and data.get("version") is not None:
        version = f"v{data['version']}"
    return DriveFile(
        str(data["id"]),
        str(data.get("name") or "untitled"),
        str(data.get("mimeType") or "application/octet-stream"),
        int(size) if size is not None else None,
        time_ns(data.get("modifiedTime")),
        version,
        bool((data.get("capabilities") or {}).get("canEdit", True)),
        str((data.get("shortcutDetails") or {}).get("targetId") or ""),
        tuple(data.get("parents") or ()),
        data,
    )


async def raw_query(
    rest: Rest,
    config: GoogleConfig,
    path: Path,
    text: str,
    values: Sequence[str],
    write: bool,
    prefixes: Collection[str],
) -> bytes | None:
    """The answer to a query that is a request: `GET /...`, or another method with -w and a JSON body; else None."""
    found = _REQUEST.fullmatch(text.strip())
    if found is None:
        return None
    method, address = found[1], found[2]
    if not address.startswith(tuple(prefixes)):
        raise fail(errno.EINVAL, path, f"an address of this mount begins with {' or '.join(sorted(prefixes))}")
    if method == "GET":
        if values:
            raise fail(errno.EINVAL, path, "a GET has no body: put what you ask for into the address")
        answer = await patiently(lambda: rest.get(address, path=path))
    else:
        check_writes(config, path, method, write)
        body = json_object(values[0], path) if values else None
        answer = await patiently(lambda: rest.send(method, address, path=path, json_body=body))
    kind = answer.headers.get("content-type", "")
    if answer.body and not kind.startswith("application/json"):
        raise fail(errno.EINVAL, path, f"the answer is {kind or 'no JSON'}; read the file instead")
    return encode(json.dumps(answer.json(), ensure_ascii=False)) + b"\n" if answer.body else b""


def check_writes(config: GoogleConfig, path: Path, method: str, write: bool) -> None:
    if not write:
        raise fail(errno.EROFS, path, f"a {method} changes the service; that takes -w")
    if not config.writable:
        raise fail(errno.EROFS, path, f"this mount is read-only: set writable=True in {type(config).__name__}")


async def comment_on(rest: Rest, file: str, text: str, path: Path) -> str:
    """Add a comment to a file of Drive."""
    body = {"content": text}
    address = f"/drive/v3/files/{file}/comments?fields=id"
    return str((await rest.send("POST", address, path=path, json_body=body)).json()["id"])


def comments_of(rest: Rest, file: str, path: Path) -> AsyncIterator[Any]:
    fields = (
        "nextPageToken,comments(id,author/displayName,content,createdTime,modifiedTime,resolved,quotedFileContent/value,"
        "replies(id,author/displayName,content,createdTime,action))"
    )
    return paged(rest, f"/drive/v3/files/{file}/comments", "comments", path, {"fields": fields, "pageSize": 100})
