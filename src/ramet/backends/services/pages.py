"""Pagers: collections that a service gives page by page, as one stream of entries.

- A reader that stops early stops the paging: no page is asked for before it is needed.
- A service that leads to the same page twice fails with EIO instead of paging forever.
- Entries may shift between pages while they are read; with `key`, none is yielded twice.
"""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Final

from ramet.backends.services.rest import Params, Rest, patiently
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.streams import closing

_NEXT: Final = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')


def next_link(header: str) -> str | None:
    """The address of the next page in a `Link` header."""
    found = _NEXT.search(header)
    return found[1] if found is not None else None


async def linked(
    rest: Rest,
    address: str,
    *,
    path: Path,
    params: Params | None = None,
    pick: Callable[[Any], Any] = lambda page: page,
    key: str = "",
    missing: str = "",
    patient: bool = False,
) -> AsyncIterator[Any]:
    """Entries of pages that a `Link` header joins; `pick` finds the list in a page that is an object.

    `patient` waits for a service that is busy: for callers without a retrying layer.
    """
    asked: set[str] = set()
    seen: set[object] = set()
    following: str | None = rest.url(address, params)
    while following is not None:
        if following in asked:
            raise fail(errno.EIO, path, "the service leads to the same page twice")
        asked.add(following)
        ask = partial(rest.get, following, path=path, missing=missing)
        answer = await (patiently(ask) if patient else ask())
        entries = pick(answer.json())
        if not isinstance(entries, list):
            raise fail(errno.EIO, path, "the service answers with something that is not a list")
        for entry in entries:
            if not key or entry[key] not in seen:
                if key:
                    seen.add(entry[key])
                yield entry
        link = next_link(answer.headers.get("link", ""))
        following = None if link is None else rest.url(link)


async def by_cursor(
    ask: Callable[[str | None], Awaitable[tuple[list[Any], str | None]]], path: Path
) -> AsyncIterator[Any]:
    """Entries of pages that `ask` returns with the cursor of the next one; no cursor is the end."""
    asked: set[str] = set()
    cursor: str | None = None
    while True:
        entries, cursor = await ask(cursor)
        for entry in entries:
            yield entry
        if not cursor:
            return
        if cursor in asked:
            raise fail(errno.EIO, path, "the service leads to the same page twice")
        asked.add(cursor)


def inside(name: str) -> Callable[[Any], Any]:
    """Pick the list `name` of a page."""
    return lambda page: page.get(name) if isinstance(page, dict) else None


def any_entries(page: Any) -> list[Any]:
    """The entries of a page of unknown shape: a list, the one list of a counted page, or the page itself."""
    if isinstance(page, list):
        return page
    lists = [value for value in page.values() if isinstance(value, list)] if isinstance(page, dict) else []
    return lists[0] if len(lists) == 1 and "total_count" in page else [page]


async def first_of(entries: AsyncIterator[Any], limit: int | None) -> AsyncIterator[Any]:
    """At most `limit` entries; the pages behind them are not asked for."""
    count = 0
    async with closing(entries) as stream:
        while limit is None or count < limit:
            entry = await anext(stream, None)
            if entry is None:
                return
            yield entry
            count += 1
