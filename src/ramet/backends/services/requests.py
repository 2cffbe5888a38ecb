"""Raw requests of `query`: `GET /address?x=y`, or another method with -w and a JSON body."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Final

from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import json_line, json_lines
from ramet.backends.services.pages import any_entries, first_of
from ramet.backends.services.rest import Rest, patiently
from ramet.core.errors import fail
from ramet.core.paths import Path
from ramet.core.streams import closing

_REQUEST: Final = re.compile(r"(GET|POST|PUT|PATCH|DELETE)\s+(/\S*)")


def request_of(text: str) -> tuple[str, str] | None:
    """Method and address; None for a text that is no request."""
    found = _REQUEST.fullmatch(text.strip())
    return None if found is None else (found[1], found[2])


async def raw_request(
    rest: Rest,
    config: ServiceConfig,
    path: Path,
    request: tuple[str, str],
    values: Sequence[str],
    *,
    limit: int | None,
    write: bool,
    entries: Callable[[Any], list[Any]] = any_entries,
) -> AsyncIterator[bytes]:
    """The answer as JSON lines; only a GET needs no -w. `entries` finds the list in an answer."""
    method, address = request
    if method == "GET":
        if values:
            raise fail(errno.EINVAL, path, "a GET has no body: put what you ask for into the address")
        found = (await patiently(partial(rest.get, address, path=path))).json()
        async with closing(json_lines(first_of(_each(entries(found)), limit))) as lines:
            async for block in lines:
                yield block
        return
    if not write:
        raise fail(errno.EROFS, path, f"a {method} changes the service; that takes -w")
    config.check_writable(path)
    try:
        body = json.loads(values[0]) if values else None
    except ValueError as error:
        raise fail(errno.EINVAL, path, f"the body is not JSON: {error}") from None
    answer = await patiently(partial(rest.send, method, address, path=path, json_body=body))
    if answer.body:
        yield json_line(answer.json())


async def _each(entries: Sequence[Any]) -> AsyncIterator[Any]:
    for entry in entries:
        yield entry
