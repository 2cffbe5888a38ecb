"""The dot commands of sqlite3: output settings, schema, import and export."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from ramet.commands.data.sqlite.command import CannotOpen, QuitShell, Shell, run_script
from ramet.commands.data.sqlite.output_modes import MODES, identifier, quoted
from ramet.commands.framework.inputs import slurp
from ramet.concurrency.offload import interruptible, offload_large
from ramet.core.paths import decode
from ramet.text.width import bounded

_Dot = Callable[[Shell, list[str]], Awaitable[None]]
_WORDS = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\S+")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\", '"': '"', "'": "'"}


async def dot(shell: Shell, line: str) -> None:
    words = [_plain(word) for word in _WORDS.findall(line[1:])]
    if not words:
        return
    name, args = words[0], words[1:]
    full = name if name in _DOTS else next((known for known in _DOTS if known.startswith(name)), None)
    if full is None:
        shell.fail(f'Error: unknown command or invalid arguments:  "{name}". Enter ".help" for help')
        return
    await _DOTS[full](shell, args)


def _plain(word: str) -> str:
    if len(word) > 1 and word[0] == word[-1] == "'":
        return word[1:-1]
    if len(word) > 1 and word[0] == word[-1] == '"':
        word = word[1:-1]
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), word)


def _boolean(shell: Shell, word: str) -> bool:
    if word.isdecimal():
        return int(word) != 0
    if word.lower() not in ("on", "yes", "off", "no"):
        shell.proc.stderr.write(f'ERROR: Not a boolean value: "{word}". Assuming "no".\n'.encode())
    return word.lower() in ("on", "yes")


# ------------------------------------------------------------------------------------------------ how things look


async def _mode(shell: Shell, args: list[str]) -> None:
    if not args:
        shell.out.append(f"current output mode: {shell.look.mode}\n")
    elif args[0] not in MODES:
        shell.fail(f"Error: mode should be one of: {' '.join(MODES)}")
    elif len(args) > 2:
        shell.fail(f'extra argument: "{args[2]}"')
    else:
        shell.look.change(args[0])
        if args[0] == "insert":
            shell.look.table = args[1] if len(args) > 1 else "table"


async def _headers(shell: Shell, args: list[str]) -> None:
    if len(args) != 1:
        shell.fail("Usage: .headers on|off")
        return
    shell.look.header, shell.look.header_set = _boolean(shell, args[0]), True


async def _separator(shell: Shell, args: list[str]) -> None:
    if not 1 <= len(args) <= 2:
        shell.fail("Usage: .separator COL ?ROW?")
        return
    shell.look.separator = args[0]
    if len(args) > 1:
        shell.look.newline = args[1]


async def _nullvalue(shell: Shell, args: list[str]) -> None:
    if len(args) != 1:
        shell.fail("Usage: .nullvalue STRING")
        return
    shell.look.null = args[0]


async def _width(shell: Shell, args: list[str]) -> None:
    shell.look.widths = [bounded(int(word)) for word in args if re.fullmatch(r"-?\d+", word)]


async def _print(shell: Shell, args: list[str]) -> None:
    shell.out.append(" ".join(args) + "\n")
    await shell.flush()


async def _show(shell: Shell, args: list[str]) -> None:
    look = shell.look
    settings = (
        ("echo", "on" if shell.echo else "off"),
        ("eqp", "on" if shell.plans else "off"),
        ("explain", "auto"),
        ("headers", "on" if look.header else "off"),
        ("mode", look.mode),
        ("nullvalue", f'"{look.null}"'),
        ("output", shell.output or "stdout"),
        ("colseparator", _shown(look.separator)),
        ("rowseparator", _shown(look.newline)),
        ("stats", "off"),
        ("width", "".join(f"{width} " for width in look.widths)),
        ("filename", shell.name),
    )
    shell.out += [f"{name:>12}: {stored}\n" for name, stored in settings]


def _shown(text: str) -> str:
    backwards = {stored: char for char, stored in _ESCAPES.items() if char not in "\"'"}
    return '"' + "".join(f"\\{backwards[char]}" if char in backwards else char for char in text) + '"'


def _switch(name: str) -> _Dot:
    async def switch(shell: Shell, args: list[str]) -> None:
        if len(args) != 1:
            shell.fail(f"Usage: .{name} on|off")
            return
        setattr(shell, {"eqp": "plans"}.get(name, name), _boolean(shell, args[0]))

    return switch


async def _nothing(shell: Shell, args: list[str]) -> None:
    """Settings of what is not measured here."""


async def _version(shell: Shell, args: list[str]) -> None:
    shell.out.append(f"SQLite {sqlite3.sqlite_version}\n")


async def _help(shell: Shell, args: list[str]) -> None:
    shell.out.append("".join(f".{name}\n" for name in sorted(_DOTS)))


async def _quit(shell: Shell, args: list[str]) -> None:
    if args and args[0].isdecimal():
        shell.status = int(args[0]) & 0xFF
    raise QuitShell


# ------------------------------------------------------------------------------------------- files and databases


async def _output(shell: Shell, args: list[str]) -> None:
    target = args[0] if args else "stdout"
    await shell.redirect(None if target == "stdout" else "" if target == "off" else target)


async def _once(shell: Shell, args: list[str]) -> None:
    if len(args) != 1 or args[0].startswith("-"):
        shell.fail("Usage: .once FILE")
        return
    await shell.redirect(args[0])


async def _read(shell: Shell, args: list[str]) -> None:
    if len(args) != 1:
        shell.fail("Usage: .read FILE")
        return
    try:
        reader = await shell.proc.open(args[0])
    except OSError:
        shell.fail(f'Error: cannot open "{args[0]}"')
        return
    await run_script(shell, reader)


async def _open(shell: Shell, args: list[str]) -> None:
    names = [word for word in args if not word.startswith("-")]
    await shell.flush()
    await shell.close()
    try:
        await shell.open(names[0] if names else ":memory:")
    except CannotOpen as error:
        shell.fail(str(error), error.status)


async def _save(shell: Shell, args: list[str]) -> None:
    names = [word for word in args if not word.startswith("-")]
    if not 1 <= len(names) <= 2:
        shell.fail("missing FILENAME argument on .backup")
        return
    schema = names[0] if len(names) == 2 else "main"
    try:
        await shell.proc.fs.write(shell.proc.path(names[-1]), shell.content(schema))
    except (OSError, sqlite3.Error):
        shell.fail(f'Error: cannot open "{names[-1]}"')


async def _parameter(shell: Shell, args: list[str]) -> None:
    what, rest = (args[0], args[1:]) if args else ("list", [])
    if what == "set" and len(rest) == 2:
        name = rest[0].lstrip(":@$")
        stored: object = rest[1]
        with suppress(sqlite3.Error):  # Text that is not an expression stands for itself.
            stored = shell.connection.execute(f"SELECT {rest[1]}").fetchone()[0]
        shell.parameters[name] = rest[0], stored
    elif what == "unset" and len(rest) == 1:
        shell.parameters.pop(rest[0].lstrip(":@$"), None)
    elif what == "clear":
        shell.parameters.clear()
    elif what == "list":
        width = max((len(spelled) for spelled, _ in shell.parameters.values()), default=0)
        shell.out += [f"{spelled:<{width}} {quoted(stored)}\n" for spelled, stored in shell.parameters.values()]
    elif what != "init":
        shell.fail("Usage: .parameter clear|init|list|set NAME VALUE|unset NAME")


# ------------------------------------------------------------------------------------------------- what there is


async def _tables(shell: Shell, args: list[str]) -> None:
    _in_columns(shell, "type IN ('table','view') AND name NOT LIKE 'sqlite_%' AND name LIKE ?", args)


async def _indexes(shell: Shell, args: list[str]) -> None:
    _in_columns(shell, "type = 'index' AND tbl_name LIKE ?", args)


def _in_columns(shell: Shell, condition: str, args: list[str]) -> None:
    query = f"SELECT name FROM sqlite_schema WHERE {condition} ORDER BY 1"
    names = [row[0] for row in shell.connection.execute(query, (args[0] if args else "%",))]
    if not names:
        return
    width = max(map(len, names))
    rows = -(-len(names) // max(1, 80 // (width + 2)))
    shell.out += ["  ".join(name.ljust(width) for name in names[row::rows]) + "\n" for row in range(rows)]


async def _schema(shell: Shell, args: list[str]) -> None:
    names = [word for word in args if not word.startswith("-")]
    query = "SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%' AND "
    order = "tbl_name LIKE ? ORDER BY rowid" if names else "? NOT NULL ORDER BY rowid"
    for kind, name, sql in shell.connection.execute(query + order, (names[0] if names else "%",)).fetchall():
        shell.out.append(_declared(sql) + _columns_of(shell, kind, name) + ";\n")


def _declared(sql: str) -> str:
    """Tables whose names are in quotes may be there already."""
    return re.sub(r"^CREATE TABLE (?=['\"])", "CREATE TABLE IF NOT EXISTS ", sql)


def _columns_of(shell: Shell, kind: str, name: str) -> str:
    if kind != "view":
        return ""
    columns = [row[1] for row in shell.connection.execute(f'PRAGMA table_info("{name}")')]
    return f"\n/* {identifier(name)}({','.join(map(identifier, columns))}) */"


async def _fullschema(shell: Shell, args: list[str]) -> None:
    query = "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    shell.out += [_declared(sql) + ";\n" for (sql,) in shell.connection.execute(query)]
    shell.out.append("/* No STAT tables available */\n")


async def _databases(shell: Shell, args: list[str]) -> None:
    for _, schema, _ in shell.connection.execute("PRAGMA database_list").fetchall():
        held = shell.databases.get(schema)
        rights = "r/o" if shell.readonly else "r/w"
        shell.out.append(f"{schema}: {held.path if held is not None else chr(34) * 2} {rights}\n")


async def _dump(shell: Shell, args: list[str]) -> None:
    patterns = [word for word in args if not word.startswith("-")]
    chosen = " OR ".join(["name LIKE ?"] * len(patterns)) or "1"
    rows = shell.connection.execute(
        f"SELECT type, name, sql FROM sqlite_schema WHERE sql NOT NULL AND ({chosen}) ORDER BY rowid", patterns
    ).fetchall()
    shell.out.append("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
    for kind, name, sql in rows:
        if kind != "table" or name.startswith("sqlite_"):
            continue
        shell.out.append(_declared(sql) + ";\n")
        for row in shell.connection.execute(f"SELECT * FROM {_named(name)}"):
            shell.out.append(f"INSERT INTO {identifier(name)} VALUES({','.join(map(_dumped, row))});\n")
            if len(shell.out) > 1000:
                await shell.flush()
    if any(name == "sqlite_sequence" for _, name, _ in rows):
        shell.out.append("DELETE FROM sqlite_sequence;\n")
        for row in shell.connection.execute("SELECT * FROM sqlite_sequence"):
            shell.out.append(f"INSERT INTO sqlite_sequence VALUES({','.join(map(quoted, row))});\n")
    shell.out += [f"{sql};\n" for kind, _, sql in rows if kind in ("index", "trigger", "view")]
    shell.out.append("COMMIT;\n")


def _dumped(value: object) -> str:
    """Return a literal in one line, whatever it holds."""
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        mark = "\\n" if "\\n" not in value else "\\012"
        back = "\\r" if "\\r" not in value else "\\015"
        text = quoted(value.replace("\n", mark).replace("\r", back))
        if "\n" in value:
            text = f"replace({text},'{mark}',char(10))"
        return f"replace({text},'{back}',char(13))" if "\r" in value else text
    return quoted(value)


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --------------------------------------------------------------------------------------------------------- import


_SOME = 256
"""Rows that are inserted at once."""


async def _import(shell: Shell, args: list[str]) -> None:
    as_csv = shell.look.mode == "csv"
    names: list[str] = []
    skip, words = 0, iter(args)
    for word in words:
        if word in ("--csv", "-csv"):
            as_csv = True
        elif word in ("--skip", "-skip"):
            skip = int(next(words, "0"))
        elif not word.startswith("-"):
            names.append(word)
    if len(names) != 2:
        shell.fail("Usage: .import FILE TABLE")
        return
    try:
        text = decode(await slurp(shell.proc, names[0]))
    except OSError:
        shell.fail(f'Error: cannot open "{names[0]}"')
        return
    if shell.look.mode == "csv" and shell.look.newline == "\r\n":
        shell.look.newline = "\n"
    separator = "," if as_csv else shell.look.separator[:1] or "|"

    def read() -> list[list[Any]]:
        return list(interruptible(csv.reader(io.StringIO(text), delimiter=separator)))[skip:]

    rows = await offload_large(shell.proc.budget, len(text), read)
    table = _named(names[1])
    exists = shell.connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (names[1],)).fetchone()
    number = skip + 1
    if not exists and rows:
        columns = ", ".join(f"{_named(column)} TEXT" for column in rows[0])
        shell.connection.execute(f"CREATE TABLE {table}(\n{columns})")
        rows, number = rows[1:], number + 1
    if rows:
        width = len(shell.connection.execute(f"SELECT * FROM {table} LIMIT 0").description)
        for place, row in enumerate(rows, number):
            if len(row) != width:
                what = "extras ignored" if len(row) > width else "filling the rest with NULL"
                said = f"{names[0]}:{place}: expected {width} columns but found {len(row)} - {what}\n"
                shell.proc.stderr.write(said.encode("utf-8", "surrogateescape"))
        insert = f"INSERT INTO {table} VALUES ({','.join('?' * width)})"
        for start in range(0, len(rows), _SOME):
            some = rows[start : start + _SOME]
            shell.connection.executemany(insert, [(row + [None] * width)[:width] for row in some])
            await shell.proc.budget.yield_turn()


_DOTS: dict[str, _Dot] = {
    "quit": _quit,
    "exit": _quit,
    "mode": _mode,
    "headers": _headers,
    "separator": _separator,
    "nullvalue": _nullvalue,
    "width": _width,
    "print": _print,
    "bail": _switch("bail"),
    "echo": _switch("echo"),
    "changes": _switch("changes"),
    "eqp": _switch("eqp"),
    "tables": _tables,
    "schema": _schema,
    "fullschema": _fullschema,
    "indexes": _indexes,
    "indices": _indexes,
    "databases": _databases,
    "dump": _dump,
    "read": _read,
    "import": _import,
    "output": _output,
    "once": _once,
    "open": _open,
    "save": _save,
    "backup": _save,
    "parameter": _parameter,
    "show": _show,
    "version": _version,
    "help": _help,
    "timer": _nothing,
    "stats": _nothing,
    "timeout": _nothing,
}
