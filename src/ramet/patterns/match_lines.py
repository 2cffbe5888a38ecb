"""Select the lines of a block that match, or that do not. Blocks consist of complete lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, count, repeat
from operator import add

from ramet.patterns.count import occurrences
from ramet.patterns.matcher import Matcher

_SAMPLE = 16 * 1024
_OFTEN = 5
"""Matches in a sample from which on cutting the block at all of them is cheaper than a search for each."""


def select(matcher: Matcher, block: bytes, invert: bool) -> tuple[bytes, int]:
    """Return the selected lines as one block, and their number."""
    pieces = _cut(matcher, block)
    if pieces is not None:
        ahead, hits = pieces
        if invert:
            parts = [text[: text.rfind(b"\n") + 1] for text in ahead]
            return b"".join(parts), occurrences(block, b"\n") - len(hits)
        parts = [*_whole(ahead, hits), b""]
        return b"\n".join(parts), len(hits)
    if not invert:
        parts = [block[start : stop + 1] for start, stop in matcher.lines(block)]
        return b"".join(parts), len(parts)
    parts = []
    at = matched = 0
    for start, stop in matcher.lines(block):
        matched += 1
        if at < start:
            parts.append(block[at:start])
        at = stop + 1
    if not matched:
        return block, occurrences(block, b"\n")
    parts.append(block[at:])
    return b"".join(parts), occurrences(block, b"\n") - matched


def numbered(matcher: Matcher, block: bytes, invert: bool, first: int) -> Iterator[tuple[int, bytes]]:
    """The selected lines without their newlines, each with its number; `first` is that of the block's first line."""
    hits = _numbered_hits(matcher, block, first)
    if not invert:
        return hits
    matched = {number for number, _ in hits}
    lines = block.split(b"\n")
    lines.pop()
    rest = enumerate(lines, first)
    return (pair for pair in rest if pair[0] not in matched) if matched else iter(rest)


def _numbered_hits(matcher: Matcher, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    pieces = _cut(matcher, block)
    if pieces is None:
        return _numbered_spans(matcher, block, number)
    ahead, hits = pieces
    # The newline behind a match is cut off, so each match is one line further than the newlines ahead of it say.
    between = accumulate(map(bytes.count, ahead, repeat(b"\n")))
    return zip(map(add, count(number), between), _whole(ahead, hits), strict=False)


def _numbered_spans(matcher: Matcher, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    last = 0
    for start, stop in matcher.lines(block):
        number += occurrences(block, b"\n", last, start)
        last = start
        yield number, block[start:stop]


def _cut(matcher: Matcher, block: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """What is ahead of each match of a plain text, and the match with the rest of its line; None where it is rare."""
    text = matcher.literal
    if not text or b"\n" in text or occurrences(block, text, 0, _SAMPLE) < _OFTEN:
        return None
    pieces = re.split(b"(" + re.escape(text) + b".*)\n", block)
    return pieces[::2], pieces[1::2]


def _whole(ahead: list[bytes], hits: list[bytes]) -> Iterator[bytes]:
    """The lines of the matches that a block was cut at."""
    return map(add, [text[text.rfind(b"\n") + 1 :] for text in ahead], hits)
