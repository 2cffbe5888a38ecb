"""sqlite3: SQL on a database file of the tree, which is read whole and written back when it has changed."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from ramet.commands.copy import lookup
from ramet.commands.declare import Command, UsageError, choose, flag, several, value
from ramet.core import ops
from ramet.core.limits import TimeUp
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc

_MODES = (
    "list",
    "csv",
    "column",
    "json",
    "line",
    "table",
    "box",
    "markdown",
    "html",
    "insert",
    "quote",
    "tabs",
    "ascii",
)


@dataclass(frozen=True, slots=True)
class SqliteOptions:
    mode: str | None = choose({f"--{m}": m for m in _MODES}, help="set output mode")
    header: bool | None = choose({"--header": True, "--noheader": False}, help="turn headers on or off")
    separator: str | None = value("--separator", metavar="SEP", help="set output column separator")
    nullvalue: str = value("--nullvalue", metavar="TEXT", default="", help="set text string for NULL values")
    newline: str = value("--newline", metavar="SEP", default="\n", help="set output row separator")
    commands: tuple[str, ...] = several("--cmd", metavar="COMMAND", help="run COMMAND before reading stdin")
    bail: bool = flag("--bail", help="stop after hitting an error")
    batch: bool = flag("--batch", help="force batch I/O")
    readonly: bool = flag("--readonly", help="open the database read-only")
    echo: bool = flag("--echo", help="print inputs before execution")
    init: str | None = value("--init", metavar="FILENAME", help="read/process named file")


_FLAGS = {*_MODES, "header", "noheader", "bail", "batch", "readonly", "echo", "interactive", "version", "help"}
_TAKES = {"separator", "nullvalue", "newline", "cmd", "init"}


def _long(words: list[str]) -> list[str]:
    """Options are whole words behind one dash or two."""
    out: list[str] = []
    i = 0
    while i < len(words):
        word = words[i]
        name = word.lstrip("-")
        if not word.startswith("-") or not name:
            return [*out, "--", *words[i:]]
        if name in _TAKES:
            out += [f"--{name}", *words[i + 1 : i + 2]]
            i += 1
        elif name in _FLAGS:
            out.append(f"--{name}")
        else:
            raise UsageError(f"Error: unknown option: -{name}\nUse -help for a list of options.", hint=False)
        i += 1
    return out


@dataclass
class _Shell:
    proc: Proc
    connection: sqlite3.Connection
    mode: str = "list"
    header: bool = False
    separator: str = "|"
    null: str = ""
    newline: str = "\n"
    bail: bool = False
    status: int = 0
    out: list[str] = field(default_factory=list)
    table: str = "table"
    widths: list[int] = field(default_factory=list)

    def fail(self, message: str) -> None:
        self.proc.stderr.write(encode(message + "\n"))
        self.status = 1


async def sqlite3_(proc: Proc, o: SqliteOptions, operands: list[str]) -> int:
    name = operands[0] if operands else ":memory:"
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    before = b""
    file = name not in (":memory:", "")
    try:
        if file and await lookup(proc, proc.path(name), follow=True) is not None:
            before = await ops.read_bytes(proc.fs, proc.path(name))
            if before:
                connection.deserialize(before)
        elif file and await lookup(proc, proc.path(name).parent, follow=True) is None:
            proc.stderr.write(encode(f'Error: unable to open database "{name}": unable to open database file\n'))
            return 1
    except OSError as error:
        proc.stderr.write(encode(f'Error: unable to open database "{name}": {error.strerror}\n'))
        return 1
    # No statement may reach the host: attaching and extensions are refused by the engine itself.
    connection.set_authorizer(_authorize)
    deadline = proc.budget

    def progress() -> int:
        try:
            deadline.check()
        except TimeUp:
            return 1
        return 0

    connection.set_progress_handler(progress, 20_000)
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.DatabaseError as error:
        proc.stderr.write(encode(f"Error: {error}\n"))
        return 26
    mode = o.mode or "list"
    separators = {"csv": ",", "tabs": "\t", "ascii": "\x1f"}
    shell = _Shell(
        proc,
        connection,
        mode,
        bool(o.header)
        if o.header is not None
        else mode in ("column", "table", "box", "markdown") and o.header is not False,
        o.separator if o.separator is not None else separators.get(mode, "|"),
        o.nullvalue,
        o.newline,
        o.bail,
    )
    try:
        for command in o.commands:
            await _run(shell, command)
        if len(operands) > 1:
            for command in operands[1:]:
                await _run(shell, command)
                if shell.status:
                    break
        else:
            await _run(shell, decode(await proc.stdin.read_all()), script=True)
    except _Quit:
        pass
    await _flush(shell)
    if file and not o.readonly:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        after = bytes(connection.serialize()) if pages else b""
        if after != before and (after or before):
            await proc.fs.write(proc.path(name), after)
    connection.close()
    return shell.status


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second in ("load_extension", "readfile", "writefile", "fts3_tokenizer"):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in ("temp_store_directory", "data_store_directory"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


class _Quit(Exception):
    pass


async def _run(shell: _Shell, text: str, script: bool = False) -> None:
    pending = ""
    number = 0
    for line in text.split("\n"):
        number += 1
        if not pending.strip() and line.startswith("."):
            await _dot(shell, line)
            continue
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            await _statements(shell, pending, number if script else None)
            pending = ""
            if shell.status and (shell.bail or not script):
                return
    if pending.strip():
        await _statements(shell, pending, number if script else None)


async def _statements(shell: _Shell, text: str, line: int | None) -> None:
    rest = text
    while rest.strip():
        statement, rest = _first(rest)
        if not statement.strip(" \t\n;"):
            continue
        try:
            cursor = shell.connection.execute(statement)
            if cursor.description is not None:
                rows = cursor.fetchall()
                _show(shell, [d[0] for d in cursor.description], rows)
                if len(shell.out) > 1000:
                    await _flush(shell)
        except sqlite3.OperationalError as error:
            if str(error) == "interrupted":
                raise TimeUp from None
            kind = "in prepare" if _is_prepare(str(error)) else "stepping"
            _sql_error(shell, str(error), line, kind)
            return
        except (sqlite3.Error, sqlite3.Warning) as error:
            _sql_error(shell, str(error), line, "stepping")
            return
        await shell.proc.budget.breathe()


def _is_prepare(text: str) -> bool:
    return any(
        w in text
        for w in (
            "no such",
            "syntax error",
            "incomplete input",
            "unrecognized token",
            "already exists",
            "ambiguous",
            "misuse",
            "wrong number",
            "has no column",
            "values for",
        )
    )


def _sql_error(shell: _Shell, text: str, line: int | None, kind: str) -> None:
    codes = {"UNIQUE constraint": 19, "NOT NULL constraint": 19, "FOREIGN KEY constraint": 19, "CHECK constraint": 19}
    code = next((c for k, c in codes.items() if k in text), None)
    suffix = f" ({code})" if code and line is None else ""
    if line is None:
        shell.fail(f"Error: {kind}, {text}{suffix}")
    else:
        name = "Parse error" if kind == "in prepare" else "Runtime error"
        shell.fail(f"{name} near line {line}: {text}{f' ({code})' if code else ''}")


def _first(text: str) -> tuple[str, str]:
    """The first complete statement and the rest."""
    at = 0
    while True:
        end = text.find(";", at)
        if end < 0:
            return text, ""
        if sqlite3.complete_statement(text[: end + 1]):
            return text[: end + 1], text[end + 1 :]
        at = end + 1


async def _flush(shell: _Shell) -> None:
    if shell.out:
        data = encode("".join(shell.out))
        shell.out.clear()
        await shell.proc.emit(data)


# ------------------------------------------------------------------------------------------------------- showing


def _cell(shell: _Shell, value_: object) -> str:
    if value_ is None:
        return shell.null
    if isinstance(value_, float):
        return _real(value_)
    if isinstance(value_, bytes):
        return decode(value_)
    return str(value_)


def _real(number: float) -> str:
    if number != number or number in (float("inf"), float("-inf")):
        return "Inf" if number > 0 else "-Inf"
    text = f"{number:.15g}"
    if "e" in text:
        mantissa, _, power = text.partition("e")
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{power}"
    return text if "." in text else text + ".0"


def _quoted(value_: object) -> str:
    if value_ is None:
        return "NULL"
    if isinstance(value_, bytes):
        return f"X'{value_.hex()}'"
    if isinstance(value_, str):
        return "'" + value_.replace("'", "''") + "'"
    return _real(value_) if isinstance(value_, float) else str(value_)


def _show(shell: _Shell, names: list[str], rows: Sequence[Sequence[object]]) -> None:
    out, mode = shell.out, shell.mode
    if mode in ("list", "tabs", "ascii"):
        if shell.header and rows:
            out.append(shell.separator.join(names) + shell.newline)
        out.extend(shell.separator.join([_cell(shell, v) for v in row]) + shell.newline for row in rows)
    elif mode == "csv":
        buffer = io.StringIO()
        writer = csv.writer(
            buffer,
            delimiter=shell.separator[:1] or ",",
            lineterminator=shell.newline,
        )
        if shell.header and rows:
            writer.writerow(names)
        writer.writerows([_cell(shell, v) for v in row] for row in rows)
        out.append(buffer.getvalue())
    elif mode == "json":
        if rows:
            out.append(
                "["
                + ",\n".join(
                    "{"
                    + ",".join(
                        f"{json.dumps(n, ensure_ascii=False)}:{_json(v)}" for n, v in zip(names, row, strict=True)
                    )
                    + "}"
                    for row in rows
                )
                + "]\n"
            )
    elif mode == "line":
        width = max(5, *map(len, names))
        for i, row in enumerate(rows):
            out.append(
                ("\n" if i else "")
                + "".join(f"{n.rjust(width)} = {_cell(shell, v)}\n" for n, v in zip(names, row, strict=True))
            )
    elif mode in ("insert", "quote"):
        for row in rows:
            body = ",".join(_quoted(v) for v in row)
            out.append(
                f"INSERT INTO {shell.table if shell.table != 'table' else chr(34) + 'table' + chr(34)} "
                f"VALUES({body});\n"
                if mode == "insert"
                else body + "\n"
            )
    elif mode == "html":
        if shell.header:
            out.append("<TR>" + "\n".join(f"<TH>{n}</TH>" for n in names) + "\n</TR>\n")
        out.extend("<TR>" + "\n".join(f"<TD>{_cell(shell, v)}</TD>" for v in row) + "\n</TR>\n" for row in rows)
    elif rows:
        _grid(shell, names, [[_cell(shell, v) for v in row] for row in rows])


def _json(value_: object) -> str:
    if isinstance(value_, bytes):
        return json.dumps(decode(value_), ensure_ascii=False)
    return _real(value_) if isinstance(value_, float) else json.dumps(value_, ensure_ascii=False)


def _grid(shell: _Shell, names: list[str], rows: list[list[str]]) -> None:
    widths = [max(len(n), *(len(r[i]) for r in rows)) for i, n in enumerate(names)]
    out, mode = shell.out, shell.mode
    if mode == "column":
        widths = [shell.widths[i] if i < len(shell.widths) and shell.widths[i] else w for i, w in enumerate(widths)]
        if shell.header:
            out.append("  ".join(n.ljust(w) for n, w in zip(names, widths, strict=True)) + "\n")
            out.append("  ".join("-" * w for w in widths) + "\n")
        out.extend("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + "\n" for row in rows)
        return
    bar, cross = ("|", "+") if mode == "table" else ("|", "|") if mode == "markdown" else ("│", "┼")
    line = [("-" if mode != "box" else "─") * (w + 2) for w in widths]

    def row_text(cells: list[str], center: bool = False) -> str:
        return (
            bar
            + bar.join(f" {c.center(w) if center else c.ljust(w)} " for c, w in zip(cells, widths, strict=True))
            + bar
            + "\n"
        )

    if mode == "table":
        border = cross + cross.join(line) + cross + "\n"
        out.append(border + row_text(names, True) + border + "".join(map(row_text, rows)) + border)
    elif mode == "markdown":
        out.append(row_text(names, True) + bar + bar.join(line) + bar + "\n" + "".join(map(row_text, rows)))
    else:
        out.append(
            "┌"
            + "┬".join(line)
            + "┐\n"
            + row_text(names, True)
            + "├"
            + "┼".join(line)
            + "┤\n"
            + "".join(map(row_text, rows))
            + "└"
            + "┴".join(line)
            + "┘\n"
        )


# ------------------------------------------------------------------------------------------------- dot commands


async def _dot(shell: _Shell, line: str) -> None:
    words = [
        w[1:-1] if w[:1] in "'\"" and w[-1:] == w[:1] and len(w) > 1 else w
        for w in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", line[1:])
    ]
    if not words:
        return
    name, args = words[0], words[1:]
    full = next((n for n in _DOTS if n == name), None) or next((n for n in _DOTS if n.startswith(name)), None)
    if full is None:
        shell.fail(f'Error: unknown command or invalid arguments:  "{name}". Enter ".help" for help')
        return
    if full in ("quit", "exit"):
        raise _Quit
    if full == "mode" and args:
        if args[0] not in _MODES:
            shell.fail(f"Error: mode should be one of: {' '.join(_MODES)}")
            return
        shell.mode = args[0]
        shell.newline = "\r\n" if args[0] == "csv" else "\n"
        shell.separator = {"csv": ",", "tabs": "\t", "ascii": "\x1f"}.get(args[0], "|")
        shell.header = shell.header or args[0] in ("column", "table", "box", "markdown")
        if args[0] == "insert" and len(args) > 1:
            shell.table = args[1]
    elif full == "headers" and args:
        shell.header = args[0] in ("on", "yes", "1", "true")
    elif full == "separator" and args:
        shell.separator = args[0].replace("\\t", "\t").replace("\\n", "\n")
    elif full == "nullvalue" and args:
        shell.null = args[0]
    elif full == "width":
        shell.widths = [int(a) for a in args if a.lstrip("-").isdigit()]
    elif full == "print":
        shell.out.append(" ".join(args) + "\n")
    elif full == "bail" and args:
        shell.bail = args[0] == "on"
    elif full in ("tables", "schema", "indexes", "databases", "dump"):
        _catalog(shell, full, args)
    elif full == "read" and args:
        try:
            text = decode(await ops.read_bytes(shell.proc.fs, shell.proc.path(args[0])))
        except OSError:
            shell.fail(f'Error: cannot open "{args[0]}"')
            return
        await _run(shell, text, script=True)
    elif full == "import" and len(args) >= 2:
        await _import(shell, [a for a in args if not a.startswith("-")], "--csv" in args, "--skip" in args)
    elif full == "help":
        shell.out.append("".join(f".{n}\n" for n in _DOTS))


_DOTS = (
    "quit",
    "exit",
    "mode",
    "headers",
    "separator",
    "nullvalue",
    "width",
    "print",
    "bail",
    "tables",
    "schema",
    "indexes",
    "databases",
    "dump",
    "read",
    "import",
    "help",
    "echo",
    "timer",
    "changes",
    "stats",
    "timeout",
)


def _catalog(shell: _Shell, what: str, args: list[str]) -> None:
    connection = shell.connection
    pattern = args[0] if args else "%"
    if what == "tables":
        names = [
            r[0]
            for r in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND name NOT LIKE 'sqlite_%' AND "
                "name LIKE ? ORDER BY 1",
                (pattern,),
            )
        ]
        if not names:
            return
        width = max(map(len, names))
        columns = max(1, 80 // (width + 2))
        rows = -(-len(names) // columns)
        for row in range(rows):
            shell.out.append("  ".join(n.ljust(width) for n in names[row::rows]) + "\n")
    elif what == "schema":
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name NOT LIKE 'sqlite_%' AND tbl_name LIKE ? "
            "ORDER BY rowid",
            (pattern,),
        ):
            shell.out.append(sql + ";\n")
    elif what == "indexes":
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type='index' AND tbl_name LIKE ? ORDER BY 1", (pattern,)
        ):
            shell.out.append(name + "\n")
    elif what == "databases":
        shell.out.append('main: "" r/w\n')
    else:
        shell.out.append("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n")
        for name, sql in connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type='table' AND sql NOT NULL AND name NOT LIKE "
            "'sqlite_%' ORDER BY rowid"
        ).fetchall():
            shell.out.append(sql + ";\n")
            quoted = '"' + name.replace('"', '""') + '"'
            label = name if re.fullmatch(r"[A-Za-z_]\w*", name) else quoted
            for row in connection.execute(f"SELECT * FROM {quoted}"):
                shell.out.append(f"INSERT INTO {label} VALUES({','.join(_quoted(v) for v in row)});\n")
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_schema WHERE type IN ('index','trigger','view') AND sql NOT NULL ORDER BY rowid"
        ).fetchall():
            shell.out.append(sql + ";\n")
        shell.out.append("COMMIT;\n")


async def _import(shell: _Shell, args: list[str], as_csv: bool, skip: bool) -> None:
    try:
        text = decode(await ops.read_bytes(shell.proc.fs, shell.proc.path(args[0])))
    except OSError:
        shell.fail(f'Error: cannot open "{args[0]}"')
        return
    delimiter = "," if as_csv or shell.mode == "csv" else shell.separator[:1] or "|"
    rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    if skip:
        rows = rows[1:]
    table = '"' + args[-1].replace('"', '""') + '"'
    exists = shell.connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (args[-1],)).fetchone()
    if not exists and rows:
        columns = ", ".join('"' + c.replace('"', '""') + '" TEXT' for c in rows[0])
        shell.connection.execute(f"CREATE TABLE {table} ({columns})")
        rows = rows[1:]
    if rows:
        width = len(shell.connection.execute(f"SELECT * FROM {table} LIMIT 0").description)
        marks = ",".join("?" * width)
        shell.connection.executemany(
            f"INSERT INTO {table} VALUES ({marks})", [(row + [None] * width)[:width] for row in rows]
        )


COMMANDS = [
    Command(
        "sqlite3",
        sqlite3_,
        SqliteOptions,
        summary="SQL on a database file.",
        usage="[OPTIONS] [FILENAME [SQL]]",
        rewrite=_long,
        ignored=("--interactive",),
        examples=[
            ("sqlite3 a.db 'select * from t'", "run a statement"),
            ("sqlite3 -header -csv a.db 'select 1 as x'", "as CSV with names"),
        ],
    )
]
