"""Statements of SQL end where SQLite says so."""

from __future__ import annotations

import random
import sqlite3

from ramet.commands.data.sqlite.statements import may_end, some

PARTS = [
    "select", " ", "1", ";", "\n", "'a;b'", "''", "'", '"x"', '"', "`;`", "[;]", "[", "--;", "-- c\n", "/* ; */", "/*",
    "*/", "create ", "trigger ", "end", "end;", "explain ", "-", "/", "temp ", "é",
]  # fmt: skip


def texts() -> list[str]:
    rng = random.Random(11)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 14))) for _ in range(4000)]


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


def test_statements_end_where_sqlite_ends_them() -> None:
    assert [(text, by_us(text)) for text in texts()] == [(text, by_sqlite(text)) for text in texts()]


def test_no_line_completes_a_statement_that_may_not() -> None:
    for text in texts():
        before, _, line = text.rpartition("\n")
        complete = sqlite3.complete_statement
        assert may_end(line) or complete(before + "\n") or not complete(text + "\n"), text
