"""Where the statements of an SQL text end, and its tokens, however long they are.

Statements longer than a piece (`concurrency.bigbytes`) are read piece by piece, so all of this may run in a thread.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Final

from ramet.concurrency.bigbytes import PIECE, SEARCHED, run_end
from ramet.concurrency.offload import checkpoint

_TOKENS: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL)
_WORD: Final = re.compile(r"\w*")
_SPACE: Final = re.compile(r"\s*")
_NOTHING: Final = re.compile(r"[ \t\n;]*")
_NOTABLE: Final = re.compile(r"[;'\"`\[]|--|/\*")
_ENDS: Final = {"'": "'", '"': '"', "`": "`", "[": "]", "--": "\n", "/*": "*/"}
_COMPOUND: Final = frozenset(("create", "explain"))
"""How statements begin that may have others in them."""
_SOME: Final = 256
"""Statements that are looked for at a time."""


def may_end(line: str) -> bool:
    """Whether a statement may be complete with this line that was not before."""
    if len(line) <= PIECE:
        return ";" in line or "*/" in line
    return (";" in line) or ("*/" in line)


def is_complete(text: str) -> bool:
    """Whether a text ends with the end of a statement, but for comments."""
    if len(text) <= PIECE:
        return sqlite3.complete_statement(text)
    at = 0
    while (end := _end(text, at)) >= 0:
        at = end
    return at > 0 and all(_is_blank(text, start, end) for start, end in tokens(text, at))


def some(text: str, at: int, stop: int) -> list[tuple[int, int]]:
    """Where the next statements begin and end; the last one of a text may be incomplete. None are behind the last."""
    at = run_end(_SPACE, text, at) if text[at : at + 1].isspace() else at
    if stop - at <= PIECE and text.find(";", at, stop - 1) < 0:
        return [(at, stop)] if at < stop else []
    found: list[tuple[int, int]] = []
    limit = at + PIECE
    while len(found) < _SOME and (at := run_end(_SPACE, text, at)) < min(stop, limit):
        end = _end(text, at)
        end = stop if end < 0 else end
        found.append((at, end))
        at = end
    return found


def without_tail(text: str) -> int:
    """The length of a text without the white space at its end."""
    if len(text) <= PIECE:
        return len(text.rstrip())
    size = len(text)
    while size and text[size - 1].isspace():
        size -= 1
        if not size & 4095:
            checkpoint()
    return size


def is_empty(text: str, start: int, end: int) -> bool:
    """Whether nothing but semicolons is there."""
    return text[start] in " \t\n;" and run_end(_NOTHING, text, start) >= end


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
    """Whether a token is white space or a comment."""
    return text[start].isspace() or (end - start > 1 and text.startswith(("--", "/*"), start))


def _simple_end(text: str, at: int) -> int:
    """The first semicolon that stands neither in quotes nor in a comment."""
    while at < len(text):
        checkpoint()
        found = _NOTABLE.search(text, at, at + SEARCHED)
        if found is None:
            # One character again: half of the beginning of a comment may be in front of the border.
            at = at + SEARCHED - 1 if at + SEARCHED < len(text) else len(text)
        elif found[0] == ";":
            return found.end()
        else:
            close = _ENDS[found[0]]
            at = _find(text, close, found.end())
            if at < 0:
                return -1
            at += len(close)
    return -1


def _find(text: str, part: str, at: int) -> int:
    """`text.find(part, at)`."""
    while at < len(text):
        checkpoint()
        found = text.find(part, at, at + PIECE)
        if found >= 0:
            return found
        at += PIECE - len(part) + 1
    return -1


def tokens(sql: str, at: int = 0) -> Iterator[tuple[int, int]]:
    """Where each token begins and ends, those of white space and comments among them."""
    if len(sql) <= PIECE:
        for found in _TOKENS.finditer(sql, at):
            yield found.span()
        return
    while at < len(sql):
        checkpoint()
        end = _token_end(sql, at)
        yield at, end
        at = end


def _token_end(sql: str, at: int) -> int:
    char = sql[at]
    if char in "'\"":
        last, end = at, at + 1
        while (end := _find(sql, char, end)) >= 0:
            last = end
            if sql[end + 1 : end + 2] != char:
                break
            end += 2
        return last + 1  # two quotes stand for one, unless no other one follows
    for opening in ("--", "/*"):
        if sql.startswith(opening, at):
            end = _find(sql, _ENDS[opening], at + 2)
            if end >= 0:
                return end + (2 if opening == "/*" else 0)
            return len(sql) if opening == "--" else at + 1
    if char.isspace():
        return run_end(_SPACE, sql, at)
    return max(run_end(_WORD, sql, at), at + 1)


def is_token(sql: str, start: int, end: int, token: str) -> bool:
    """Whether the token that stands there is this one."""
    return end - start == len(token) and sql[start:end] == token
