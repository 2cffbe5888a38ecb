"""Notion's API for its mount: paged answers, whole pages, and errors."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from typing import Any, Final

from ramet.backends.services.pages import by_cursor
from ramet.backends.services.rest import Answer, Params, Rest, token_refused
from ramet.core.errors import fail, unavailable
from ramet.core.paths import Path

PAGE: Final = 100
"""Entries of a page; Notion gives no more."""
MOST_VALUES: Final = 25
"""Values of a property that come with a page; the rest is asked for."""


class NotionAPI:
    def __init__(self, rest: Rest) -> None:
        self.rest = rest

    def posted(self, address: str, path: Path, body: dict[str, Any]) -> AsyncIterator[Any]:
        """The results of a POST that only reads, over all pages."""

        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            given = {**body, "page_size": PAGE, **({"start_cursor": cursor} if cursor else {})}
            said = (await self.rest.send("POST", address, path=path, json_body=given, reads=True)).json()
            return said["results"], said["next_cursor"] if said["has_more"] else None

        return by_cursor(page, path)

    def got(self, address: str, path: Path, **params: str) -> AsyncIterator[Any]:
        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            given: Params = {**params, "page_size": PAGE, "start_cursor": cursor}
            said = (await self.rest.get(address, path=path, params=given)).json()
            return said["results"], said["next_cursor"] if said["has_more"] else None

        return by_cursor(page, path)

    async def whole(self, page: Any, path: Path) -> Any:
        """A page with all values of its properties."""
        for one in page["properties"].values():
            kind = one["type"]
            values = one.get(kind)
            if isinstance(values, list) and (one.get("has_more") or len(values) >= MOST_VALUES):
                found = self.got(f"/pages/{page['id']}/properties/{one['id']}", path)
                one[kind] = [part[kind] async for part in found]
                one.pop("has_more", None)
        return page


def explain(said: Any) -> str:
    return str(said.get("message", "")) if isinstance(said, dict) else ""


def judge(answer: Answer) -> OSError | None:
    """Errors that Notion's codes tell better than the status."""
    if answer.status == 529:
        return unavailable(answer.path, "Notion is overloaded")
    if answer.status not in (400, 401, 403, 404, 409):
        return None
    try:
        said = answer.json()
    except OSError:
        return None
    code, words = (str(said.get("code", "")), explain(said)) if isinstance(said, dict) else ("", "")
    words = " ".join(words.split())[:200]
    match code:
        case "unauthorized":
            return token_refused(answer.path, f"Notion refuses the secret: {words}")
        case "restricted_resource":
            return fail(errno.EACCES, answer.path, f"Permission denied: the integration lacks a capability: {words}")
        case "object_not_found":
            return fail(
                errno.ENOENT,
                answer.path,
                "No such file or directory: it is not there, or not shared with the integration",
            )
        case "conflict_error":
            error = unavailable(answer.path, "Notion says that another change is under way")
            error.wait = 1.0  # nothing was changed
            return error
    return fail(errno.EINVAL, answer.path, f"Invalid argument: Notion says {words}") if answer.status == 400 else None
