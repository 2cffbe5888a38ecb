"""Split a record into fields: at blanks, by a separator, by content (FPAT) or by widths."""

from __future__ import annotations

import re
from collections.abc import Callable

from ramet.commands.awk.run import regex
from ramet.commands.awk.syntax.tree import AwkError
from ramet.concurrency.offload import checkpoint

_WIDTH = re.compile(r"[0-9]+|\*")
_SPACES = re.compile(r"[^ \t\n]+")


def split_blanks(text: str) -> list[str]:
    """By runs of spaces, tabs and newlines; `str.split` knows more kinds of white space, so it may only help."""
    if text.isascii() and not any(odd in text for odd in "\r\x0b\x0c\x1c\x1d\x1e\x1f"):
        return text.split()
    return _SPACES.findall(text)


def cut(rx: regex.Rx, text: str) -> list[tuple[str, str]]:
    """Return the pieces of a text between matches, each with the separator behind it."""
    if not text:
        return []
    pieces: list[tuple[str, str]] = []
    start = pos = 0
    while True:
        found = rx.search(text, pos)
        if found is None:
            break
        if found[0] == found[1]:
            pos = found[1] + 1
            if pos >= len(text):
                break
            continue
        pieces.append((text[start : found[0]], text[found[0] : found[1]]))
        start = pos = found[1]
        if not len(pieces) & 1023:
            checkpoint()
    pieces.append((text[start:], ""))
    return pieces


def contents(rx: regex.Rx, text: str) -> list[tuple[int, int]]:
    """Return the spans of the fields that a pattern describes (FPAT, patsplit)."""
    spans: list[tuple[int, int]] = []
    pos, last = 0, -1
    while pos <= len(text):
        found = rx.search(text, pos)
        if found is None:
            break
        if found[0] == found[1]:
            if found[0] != last:
                spans.append(found)
            pos = found[1] + 1
        else:
            spans.append(found)
            pos = last = found[1]
    return spans


def by_widths(widths: str) -> Callable[[str], list[str]]:
    plan: list[tuple[int, int | None]] = []
    designators = widths.split()
    for place, word in enumerate(designators, 1):
        skip, colon, width = word.rpartition(":")
        if width == "*" and place < len(designators):
            raise AwkError("fatal: `*' must be the last designator in FIELDWIDTHS")
        if not _WIDTH.fullmatch(width) or (colon and not skip.isdecimal()):
            raise AwkError(f"fatal: invalid FIELDWIDTHS value, for field {place}, near `{word}'")
        plan.append((int(skip or 0), None if width == "*" else int(width)))

    def split(text: str) -> list[str]:
        fields: list[str] = []
        pos = 0
        for skip, width in plan:
            pos += skip
            if pos >= len(text):
                break
            stop = len(text) if width is None else pos + width
            fields.append(text[pos:stop])
            pos = stop
        return fields

    return split
