"""The lines of a block that hold a match, or that hold none, in as few steps as their number allows.

Blocks are made of complete lines.
"""

from __future__ import annotations

from collections.abc import Iterator

from ramet.patterns.matcher import Matcher


def select(matcher: Matcher, block: bytes, invert: bool) -> tuple[bytes, int]:
    """The selected lines as a block of their own, and how many they are."""
    parts: list[bytes] = []
    if not invert:
        parts = [block[start : stop + 1] for start, stop in matcher.lines(block)]
        return b"".join(parts), len(parts)
    at = matched = 0
    for start, stop in matcher.lines(block):
        matched += 1
        if at < start:
            parts.append(block[at:start])
        at = stop + 1
    if not matched:
        return block, block.count(b"\n")
    parts.append(block[at:])
    return b"".join(parts), block.count(b"\n") - matched


def numbered(matcher: Matcher, block: bytes, invert: bool, first: int) -> Iterator[tuple[int, bytes]]:
    """The selected lines without their newlines, each with its number; `first` is that of the block's first line."""
    if not invert:
        return _numbered_hits(matcher, block, first)
    lines = block.split(b"\n")
    lines.pop()
    matched = {number for number, _ in _numbered_hits(matcher, block, first)}
    rest = enumerate(lines, first)
    return (pair for pair in rest if pair[0] not in matched) if matched else iter(rest)


def _numbered_hits(matcher: Matcher, block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    count, last = block.count, 0
    for start, stop in matcher.lines(block):
        number += count(b"\n", last, start)
        last = start
        yield number, block[start:stop]
