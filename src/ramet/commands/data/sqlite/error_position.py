"""Find the position of an SQL error, which SQLite does not pass on to Python."""

from __future__ import annotations

import re
import sqlite3

from ramet.commands.data.sqlite.statements import is_token, tokens

_NAMED = re.compile(
    r"no such column: (?:[\w.]*\.)?(?P<column>\w+)|no such function: (?P<function>\w+)"
    r"|(?:table|view|index) (?P<table>\w+) already exists|wrong number of arguments to function (?P<arguments>\w+)"
    r"|ambiguous column name: (?P<ambiguous>\w+)"
)
_NEAR = ('near "', '": syntax error')
_LONGEST = 1 << 16
"""Characters of a name, and of the white space in front of a statement."""
_ODD = ('unrecognized token: "', '"')


def context(connection: sqlite3.Connection, sql: str, message: str) -> str:
    """The statement with a mark below the place of the error, in lines that begin with a newline; "" if not known."""
    place = _place(connection, sql, message)
    if place is None:
        return ""
    begin = max(0, place - 50)
    place -= begin
    shown = re.sub(r"\s", " ", sql[begin : begin + 78])
    mark = " " * place + "^--- error here" if place < 25 else " " * (place - 14) + "error here ---^"
    return f"\n  {shown}\n  {mark}"


def _within(message: str, around: tuple[str, str]) -> str | None:
    """Return what a message is about; None when it is another one."""
    before, behind = around
    if len(message) < len(before) + len(behind) or not (message.startswith(before) and message.endswith(behind)):
        return None
    return message[len(before) : len(message) - len(behind)]


def _place(connection: sqlite3.Connection, sql: str, message: str) -> int | None:
    near = _within(message, _NEAR)
    if near is not None and not sql[:_LONGEST].lstrip().lower().startswith(("pragma", "explain")):
        return _offending(connection, sql, near)
    odd = _within(message, _ODD)
    if odd is not None:
        at = sql.find(odd)
        return at if at >= 0 else None
    named = _NAMED.match(message)
    if named is None:
        return None
    name = next(part for part in named.groups() if part)
    for start, end in tokens(sql):
        if end - start <= _LONGEST and sql[start:end].strip('"').lower() == name.lower():
            return start
    return None


def _offending(connection: sqlite3.Connection, sql: str, token: str) -> int | None:
    """Return the first place of the token at which a statement that ends there is wrong rather than incomplete."""
    for start, end in tokens(sql):
        if not is_token(sql, start, end, token):
            continue
        if len(token) > _LONGEST:  # which hardly comes twice, and SQLite would say it again
            return start
        try:
            connection.execute("EXPLAIN " + sql[:end])
        except sqlite3.Error as error:
            if "syntax error" in str(error):
                return start
        except sqlite3.Warning:
            return None
    return None
