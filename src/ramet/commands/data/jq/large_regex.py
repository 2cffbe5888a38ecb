"""Patterns of very many alternatives, compiled some at a time: what is abandoned ends soon, and nobody is held up."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from ramet.concurrency.offload import checkpoint
from ramet.patterns.multi import groups

_ALTERNATIVE: Final = re.compile(r"(?:[^|\\]+|\\.)*", re.S)
_BRACKETS: Final = re.compile(r"[(\[]|\\[QE]")
"""Within which a bar may be no border between alternatives."""


def alternatives(source: str) -> list[str]:
    """The alternatives of a pattern; all of it is one where some may be nested."""
    if _BRACKETS.search(source) is not None:
        return [source]
    found: list[str] = []
    at = 0
    while at <= len(source):
        if not len(found) & 1023:
            checkpoint()
        one = _ALTERNATIVE.match(source, at)
        assert one is not None
        if one.end() < len(source) and source[one.end()] != "|":
            return [source]  # it ends with a backslash, which is an error
        found.append(one[0])
        at = one.end() + 1
    return found


class Parted:
    """Alternatives in groups, each of them a pattern: the leftmost match counts, and of those the first one's."""

    groups = 0
    groupindex: Final[dict[str, int]] = {}

    def __init__(self, source: list[str], compile_one: Callable[[str], Any], longest: bool) -> None:
        self._parts: list[Any] = []
        self._longest = longest
        for group in groups(source):
            checkpoint()
            self._parts.append(compile_one("|".join(group)))

    def finditer(self, text: str, pos: int, timeout: float) -> Iterator[Any]:
        """All matches; behind an empty one the caller begins anew."""
        end = time.monotonic() + timeout
        heads = [self._search(part, text, pos, end) for part in self._parts]
        while True:
            best: Any = None
            for place, head in enumerate(heads):
                if head is not None and head.start() < pos:
                    head = heads[place] = self._search(self._parts[place], text, pos, end)
                if head is not None and (best is None or self._before(head, best)):
                    best = head
            if best is None:
                return
            yield best
            pos = best.end()

    def _search(self, part: Any, text: str, pos: int, end: float) -> Any:
        checkpoint()
        return part.search(text, pos, timeout=max(end - time.monotonic(), 0.001))

    def _before(self, one: Any, other: Any) -> bool:
        if self._longest and one.start() == other.start():
            return bool(one.end() > other.end())
        return bool(one.start() < other.start())
