"""URL globbing: `{a,b}` and `[1-3]` in URLs, `#1` in the names of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from ramet.commands.network.curl.options import CurlError, Status

MOST_URLS: Final = 10_000
_RANGE: Final = re.compile(
    r"(?P<escaped>\\[\[\]{}])|(?P<plain>\[\])|(?P<six>\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.%]*\])"
    r"|\[(?P<low>\d+)-(?P<high>\d+)(?::(?P<step>\d+))?\]"
    r"|\[(?P<first>[A-Za-z])-(?P<last>[A-Za-z])(?::(?P<stride>\d+))?\]|\{(?P<list>[^{}]*)\}|(?P<stray>[\[\]{}])"
)
_STRAY: Final = {"[": "bad range", "{": "unmatched brace"}


def expand(url: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """All URLs, each with what its patterns stood for."""
    texts: list[str] = [""]
    choices: list[list[str]] = []
    at, total = 0, 1
    for found in _RANGE.finditer(url):
        texts[-1] += url[at : found.start()]
        at = found.end()
        if found["escaped"] or found["plain"] or found["six"]:
            texts[-1] += found[0].removeprefix("\\")
            continue
        if found["stray"]:
            why = _STRAY.get(found[0], "unmatched close brace/bracket")
            raise CurlError(Status.URL, f"{why} in URL position {at}:\n{url}\n{' ' * (at - 1)}^")
        choices.append(_choices(found))
        texts.append("")
        total *= len(choices[-1])
        if total > MOST_URLS:
            raise CurlError(Status.URL, f"the URL stands for more than {MOST_URLS} URLs")
    texts[-1] += url[at:]
    for chosen in product(*choices):
        pairs = zip(texts, (*chosen, ""), strict=True)
        yield "".join(text + choice for text, choice in pairs), chosen


def _choices(found: re.Match[str]) -> list[str]:
    if found["list"] is not None:
        return found["list"].split(",")
    if found["first"] is not None:
        step = int(found["stride"] or 1) or 1
        return [chr(code) for code in range(ord(found["first"]), ord(found["last"]) + 1, step)]
    low, high = found["low"], found["high"]
    if len(high) > 12 or (int(high) - int(low)) > MOST_URLS:
        raise CurlError(Status.URL, f"the URL stands for more than {MOST_URLS} URLs")
    width = len(low) if low.startswith("0") else 0
    return [str(number).zfill(width) for number in range(int(low), int(high) + 1, int(found["step"] or 1) or 1)]


def named(output: str, chosen: tuple[str, ...]) -> str:
    """The name of a file, with `#1` and so on replaced."""
    return re.sub(
        r"#(\d+)", lambda found: chosen[int(found[1]) - 1] if 0 < int(found[1]) <= len(chosen) else found[0], output
    )
