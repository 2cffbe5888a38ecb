"""Split SQL into statements and tokens."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Final

from ramet.concurrency.offload import checkpoint
from ramet.concurrency.sizes import SMALL

_TOKENS: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL)
_SPACE: Final = re.compile(r"\s*")
_NOTHING: Final = re.compile(r"[ \t\n;]*")
_NOTABLE: Final = re.compile(r"[;'\"`\[]|--|/\*")
_ENDS: Final = {"'": "'", '"': '"', "`": "`", "[": "]", "--": "\n", "/*": "*/"}
_COMPOUND: Final = frozenset(("create", "explain"))
"""First words of statements that may contain others."""
_SOME: Final = 256
"""Most statements per batch."""


def may_end(line: str) -> bool:
    """Return whether this line may complete a statement."""
    return ";" in line or "*/" in line


def some(text: str, at: int, stop: int) -> list[tuple[int, int]]:
    """Return the spans of the next statements; the last one of a text may be incomplete. Empty behind the last."""
    found: list[tuple[int, int]] = []
    limit = at + SMALL
    while len(found) < _SOME and (at := _past(_SPACE, text, at)) < min(stop, limit):
        end = _end(text, at)
        end = stop if end < 0 else end
        found.append((at, end))
        at = end
    return found


def is_empty(text: str, start: int, end: int) -> bool:
    """Return whether there is nothing but semicolons."""
    return text[start] in " \t\n;" and _past(_NOTHING, text, start) >= end


def _past(blanks: re.Pattern[str], text: str, at: int) -> int:
    found = blanks.match(text, at)
    return found.end() if found is not None else at


def _end(text: str, at: int) -> int:
    if not _is_compound(text, at):
        return _simple_end(text, at)
    end = at
    while (end := text.find(";", end) + 1) > 0:
        checkpoint()
        if sqlite3.complete_statement(text[at:end]):
            return end
    return -1


def _is_compound(text: str, at: int) -> bool:
    for start, end in tokens(text, at):
        if not _is_blank(text, start, end):
            return end - start <= 7 and text[start:end].lower() in _COMPOUND
    return False


def _is_blank(text: str, start: int, end: int) -> bool:
    """Return whether a token is white space or a comment."""
    return text[start].isspace() or (end - start > 1 and text.startswith(("--", "/*"), start))


def _simple_end(text: str, at: int) -> int:
    """Return the first semicolon that stands neither in quotes nor in a comment."""
    while (found := _NOTABLE.search(text, at)) is not None:
        checkpoint()
        if found[0] == ";":
            return found.end()
        close = _ENDS[found[0]]
        at = text.find(close, found.end())
        if at < 0:
            return -1
        at += len(close)
    return -1


def tokens(sql: str, at: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the span of each token, white space and comments included."""
    for found in _TOKENS.finditer(sql, at):
        yield found.span()


def is_token(sql: str, start: int, end: int, token: str) -> bool:
    """Return whether the token that stands there is this one."""
    return end - start == len(token) and sql[start:end] == token
