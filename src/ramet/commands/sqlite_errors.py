"""Where in a statement SQLite found its error; the library knows, but does not tell Python."""

from __future__ import annotations

import re
import sqlite3

_TOKENS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\w+|\s+|.", re.DOTALL)
_NAMED = re.compile(
    r"no such column: (?:[\w.]*\.)?(?P<column>\w+)|no such function: (?P<function>\w+)"
    r"|(?:table|view|index) (?P<table>\w+) already exists|wrong number of arguments to function (?P<arguments>\w+)"
    r"|ambiguous column name: (?P<ambiguous>\w+)"
)
_NEAR = re.compile(r'near "(.*)": syntax error', re.DOTALL)
_ODD = re.compile(r'unrecognized token: "(.*)"', re.DOTALL)


def context(connection: sqlite3.Connection, sql: str, message: str) -> str:
    """The statement with a mark below the place of the error, in lines that begin with a newline; "" if not known."""
    place = _place(connection, sql, message)
    if place is None:
        return ""
    while place > 50:
        sql, place = sql[1:], place - 1
    shown = re.sub(r"\s", " ", sql[:78])
    mark = " " * place + "^--- error here" if place < 25 else " " * (place - 14) + "error here ---^"
    return f"\n  {shown}\n  {mark}"


def _place(connection: sqlite3.Connection, sql: str, message: str) -> int | None:
    near = _NEAR.fullmatch(message)
    if near is not None and not sql.lstrip().lower().startswith(("pragma", "explain")):
        return _offending(connection, sql, near[1])
    odd = _ODD.fullmatch(message)
    if odd is not None:
        at = sql.find(odd[1])
        return at if at >= 0 else None
    named = _NAMED.match(message)
    if named is None:
        return None
    name = next(part for part in named.groups() if part)
    for found in _TOKENS.finditer(sql):
        if found[0].strip('"').lower() == name.lower():
            return found.start()
    return None


def _offending(connection: sqlite3.Connection, sql: str, token: str) -> int | None:
    """The first place of the token at which a statement that ends there is wrong rather than incomplete."""
    for found in _TOKENS.finditer(sql):
        if found[0] != token:
            continue
        try:
            connection.execute("EXPLAIN " + sql[: found.end()])
        except sqlite3.Error as error:
            if "syntax error" in str(error):
                return found.start()
        except sqlite3.Warning:
            return None
    return None
