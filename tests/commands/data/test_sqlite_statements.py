"""Statements of SQL end where SQLite says so, however long they are."""

from __future__ import annotations

import random
import sqlite3

import pytest

from ramet.commands.data.sqlite import statements as sqlite_statements
from ramet.commands.data.sqlite.statements import is_complete, may_end, some, tokens
from ramet.concurrency import bigbytes as longbytes

PARTS = [
    "select", " ", "1", ";", "\n", "'a;b'", "''", "'", '"x"', '"', "`;`", "[;]", "[", "--;", "-- c\n", "/* ; */", "/*",
    "*/", "create ", "trigger ", "end", "end;", "explain ", "-", "/", "temp ", "é",
]  # fmt: skip


def texts() -> list[str]:
    rng = random.Random(11)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 14))) for _ in range(4000)]


@pytest.fixture
def _tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sqlite_statements, longbytes):
        monkeypatch.setattr(module, "PIECE", 3)


def by_sqlite(text: str) -> list[str]:
    """The statements of a text, found by asking about every beginning of it."""
    found, at = [], 0
    while rest := text[at:].strip():
        at = len(text) - len(text[at:].lstrip())
        ends = (place + 1 for place, char in enumerate(text) if char == ";" and place >= at)
        end = next((end for end in ends if sqlite3.complete_statement(text[at:end])), at + len(rest))
        found.append(text[at:end])
        at = end
    return found


def by_us(text: str) -> list[str]:
    found, at, stop = [], 0, len(text.rstrip())
    while at < stop and (spans := some(text, at, stop)):
        found += [text[start:end] for start, end in spans]
        at = spans[-1][1]
    return found


@pytest.mark.usefixtures("_tiny_pieces")
def test_pieces_of_any_size_are_cut_as_sqlite_cuts_them() -> None:
    assert [(text, by_us(text)) for text in texts()] == [(text, by_sqlite(text)) for text in texts()]


@pytest.mark.usefixtures("_tiny_pieces")
def test_a_text_in_pieces_is_complete_where_sqlite_says_so() -> None:
    assert [text for text in texts() if is_complete(text) != sqlite3.complete_statement(text)] == []


def test_no_line_completes_a_statement_that_may_not() -> None:
    for text in texts():
        before, _, line = text.rpartition("\n")
        complete = sqlite3.complete_statement
        assert may_end(line) or complete(before + "\n") or not complete(text + "\n"), text


@pytest.mark.usefixtures("_tiny_pieces")
def test_tokens_are_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = texts()
    in_pieces = [list(tokens(text)) for text in inputs]
    monkeypatch.setattr(sqlite_statements, "PIECE", 1 << 19)
    assert in_pieces == [list(tokens(text)) for text in inputs]
