"""wget -r: a page and what it links to, breadth first, each once."""

from __future__ import annotations

import posixpath
from collections import deque
from functools import partial
from html.parser import HTMLParser
from typing import Final
from urllib.parse import unquote

from ramet.commands.network.wget.download import Download, Run, complain, name_of, parsed, pause_for
from ramet.commands.network.wget.options import GENERIC, WgetError, WgetOptions
from ramet.concurrency.offload import offload_large
from ramet.network.targets import BadURL, Target

MOST_PAGES: Final = 100_000


class _Links(HTMLParser):
    """The addresses that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, text in attrs:
            if text and ((name == "href" and tag in ("a", "area", "link")) or (name == "src")):
                self.found.append(text)


async def download_site(run: Run, url: str) -> int:
    """Download a page and all below it; returns the exit status."""
    o, status = run.o, 0
    try:
        first = parsed(url)
    except WgetError as error:
        return complain(run, error)
    top = first.path.rpartition("/")[0] + "/"
    waiting: deque[tuple[Target, int, str]] = deque([(first.bare(), 0, "")])
    seen = {first.bare()}
    while waiting:
        target, depth, referer = waiting.popleft()
        if o.wait and depth:
            await pause_for(o.wait)
        try:
            at, text = await Download(run, target, place_of(target, o), page=True, referer=referer).carry_out()
        except WgetError as error:
            status = complain(run, error)
            continue
        if not text or (o.level and depth >= o.level):
            continue
        links = await offload_large(run.proc.budget, len(text), partial(_links, text))
        for link in links:
            try:
                following = at.join(link.partition("#")[0])
            except BadURL:
                continue
            beyond = o.no_parent and not following.path.startswith(top)
            if following.origin != first.origin or beyond or following in seen:
                continue
            seen.add(following)
            if len(seen) > MOST_PAGES:
                return complain(
                    run, WgetError(GENERIC, f"wget: the site has more than {MOST_PAGES} pages", always=True)
                )
            waiting.append((following, depth + 1, at.bare().url))
        await run.proc.budget.yield_turn()
    return status


def _links(text: bytes) -> list[str]:
    parser = _Links()
    parser.feed(text.decode(errors="replace"))
    return parser.found


def place_of(target: Target, o: WgetOptions) -> str:
    """Where a page of a site is saved: below a directory of its host."""
    name = name_of(target, o)
    if o.no_directories:
        return name
    folders = [unquote(part, errors="surrogateescape").replace("/", "%2F") for part in target.path.split("/")[1:-1]]
    host = [] if o.no_host_directories else [target.authority]
    kept = [part for part in folders if part not in ("", ".", "..")]
    return posixpath.join(o.prefix, *host, *kept, posixpath.basename(name)) if o.prefix else "/".join(
        [*host, *kept, name]
    )  # fmt: skip
