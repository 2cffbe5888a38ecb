"""URL globbing: `{a,b}` and `[1-3]` in URLs, `#1` in the names of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from ramet.commands.network.curl.options import CurlError, Status

MOST_URLS: Final = 10_000
_RANGE: Final = re.compile(r"\[(\d+)-(\d+)(?::(\d+))?\]|\[([A-Za-z])-([A-Za-z])(?::(\d+))?\]|\{([^{}]*)\}")


def expand(url: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All URLs, each with what its patterns stood for."""
    texts: list[str] = []
    choices: list[list[str]] = []
    at = total = 0
    for found in _RANGE.finditer(url):
        texts.append(url[at : found.start()])
        choices.append(_choices(found))
        at = found.end()
        total = (total or 1) * len(choices[-1])
        if total > MOST_URLS:
            raise CurlError(Status.URL, f"the URL stands for more than {MOST_URLS} URLs")
    texts.append(url[at:])
    for chosen in product(*choices):
        pairs = zip(texts, (*chosen, ""), strict=True)
        yield "".join(text + choice for text, choice in pairs), chosen


def _choices(found: re.Match[str]) -> list[str]:
    if found[7] is not None:
        return found[7].split(",")
    if found[4] is not None:
        return [chr(code) for code in range(ord(found[4]), ord(found[5]) + 1, int(found[6] or 1) or 1)]
    low, high = found[1], found[2]
    if len(high) > 12 or (int(high) - int(low)) > MOST_URLS:
        raise CurlError(Status.URL, f"the URL stands for more than {MOST_URLS} URLs")
    width = len(low) if low.startswith("0") else 0
    return [str(number).zfill(width) for number in range(int(low), int(high) + 1, int(found[3] or 1) or 1)]


def named(output: str, chosen: tuple[str, ...]) -> str:
    """The name of a file, with `#1` and so on replaced."""
    return re.sub(
        r"#(\d+)", lambda found: chosen[int(found[1]) - 1] if 0 < int(found[1]) <= len(chosen) else found[0], output
    )
