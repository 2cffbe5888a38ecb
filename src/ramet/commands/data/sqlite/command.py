"""sqlite3: run SQL on a database file of the tree, which is read whole and written back when changed.

- No statement reaches the host: the engine only sees databases in memory. Attached databases are read from the tree.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ramet.commands.data.sqlite.error_position import context
from ramet.commands.data.sqlite.output_modes import COLUMN_SEPARATORS, ROW_SEPARATORS, Look
from ramet.commands.data.sqlite.statements import is_empty, may_end, some
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, choose, flag, several, value
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import Abandoned, interrupt_check, offload, offload_large
from ramet.concurrency.sizes import LARGE, SMALL
from ramet.core import ops
from ramet.core.errors import LimitExceeded, reason
from ramet.core.limits import Cancelled, TimeUp
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.streams import BytesReader, Reader, line_blocks

_MODES = ("list", "csv", "column", "json", "line", "table", "box", "markdown", "html", "quote", "tabs", "ascii")


@dataclass(frozen=True, slots=True)
class SqliteOptions:
    mode: str | None = choose({f"--{m}": m for m in _MODES}, help="set output mode")
    header: bool | None = choose({"--header": True, "--noheader": False}, help="turn headers on or off")
    separator: str | None = value("--separator", metavar="SEP", help="set output column separator")
    nullvalue: str = value("--nullvalue", metavar="TEXT", default="", help="set text string for NULL values")
    newline: str | None = value("--newline", metavar="SEP", help="set output row separator")
    commands: tuple[str, ...] = several("--cmd", metavar="COMMAND", help="run COMMAND before reading stdin")
    bail: bool = flag("--bail", help="stop after hitting an error")
    batch: bool = flag("--batch", help="force batch I/O")
    readonly: bool = flag("--readonly", help="open the database read-only")
    echo: bool = flag("--echo", help="print inputs before execution")
    init: str | None = value("--init", metavar="FILENAME", help="read/process named file")


_FLAGS = {*_MODES, "header", "noheader", "bail", "batch", "readonly", "echo", "interactive", "version", "help"}
_TAKES = {"separator", "nullvalue", "newline", "cmd", "init"}


def _long(words: list[str]) -> list[str]:
    """Return options are whole words behind one dash or two, wherever they stand."""
    out: list[str] = []
    operands: list[str] = []
    i = 0
    while i < len(words):
        word = words[i]
        name = word.lstrip("-")
        if not word.startswith("-"):
            operands.append(word)
        elif name in _TAKES:
            out += [f"--{name}", *words[i + 1 : i + 2]]
            i += 1
        elif name in _FLAGS:
            out.append(f"--{name}")
        else:
            raise UsageError(f"Error: unknown option: -{name}\nUse -help for a list of options.", hint=False)
        i += 1
    return [*out, "--", *operands]


class QuitShell(Exception):
    """`.quit` and `.exit`."""


class CannotOpen(Exception):
    """A database that is not there, or not one."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Database:
    """A file of the tree that the engine holds in memory under a name."""

    path: Path
    before: bytes


@dataclass
class Shell:
    proc: Proc
    connection: sqlite3.Connection
    look: Look
    name: str = ""
    readonly: bool = False
    bail: bool = False
    echo: bool = False
    changes: bool = False
    plans: bool = False
    status: int = 0
    out: list[str] = field(default_factory=list)
    output: str | None = None
    """Where the output goes: a file, "" for nowhere, None for stdout."""
    once: bool = False
    kept: list[bytes] = field(default_factory=list)
    parameters: dict[str, tuple[str, object]] = field(default_factory=dict)
    """Values of `:name`, `@name` and `$name`, with how each was spelled when it was set."""
    scripted: bool = False
    """Whether statements come from a file rather than from an argument."""
    trusted: int = 0
    """Statements left that run inline without another check."""
    databases: dict[str, Database] = field(default_factory=dict)

    def fail(self, message: str, status: int = 1) -> None:
        self.proc.stderr.write(encode(message + "\n"))
        self.status = status

    async def flush(self) -> None:
        texts, self.out = self.out, []
        if not any(texts):
            return
        if self.output is None:
            await self.proc.emit_texts(texts)
        elif self.output:
            self.kept.append(encode("".join(texts)))

    async def redirect(self, target: str | None, once: bool = False) -> None:
        """Redirect the output; flush to the last target first."""
        await self.flush()
        if self.output:
            await self.proc.fs.write(self.proc.path(self.output), b"".join(self.kept))
        self.kept.clear()
        if target and self.proc.descriptor(target) is self.proc.stdout:
            target = None
        if target:
            try:
                await self.proc.fs.write(self.proc.path(target), b"")
            except OSError:
                self.output = ""
                self.fail(f'Error: cannot open "{target}"\nError: cannot write to "{target}"')
                return
        self.output, self.once = target, once

    # ------------------------------------------------------------------ databases

    async def open(self, name: str) -> None:
        """Open the database of a file, or an empty one."""
        self.name, self.trusted = name, 0
        self.connection.close()
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        self.connection = connection
        limits = self.proc.budget.limits
        connection.setlimit(
            sqlite3.SQLITE_LIMIT_LENGTH, min(limits.string_bytes, connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH))
        )
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {max(limits.whole // page, 1)}")
        if name not in (":memory:", ""):
            await self.load("main", name)  # SQLite bounds a loaded database itself, by 1 GiB
        connection.set_authorizer(_authorize)
        connection.set_progress_handler(self._progress(), 20_000)
        connection.create_function("regexp", 2, _regexp, deterministic=True)
        if self.readonly:
            connection.execute("PRAGMA query_only = 1")
        try:
            connection.execute("PRAGMA schema_version")
        except sqlite3.DatabaseError as error:
            raise CannotOpen(f"Error: {error}", 26) from None

    def _progress(self) -> Callable[[], int]:
        check = interrupt_check(self.proc.budget)

        def progress() -> int:
            try:
                check()
            except (TimeUp, Cancelled, Abandoned):
                return 1
            return 0

        return progress

    async def load(self, schema: str, name: str) -> None:
        path = self.proc.path(name)
        before = b""
        try:
            if await lookup(self.proc, path, follow=True) is not None:
                before = await ops.read_bytes(self.proc.fs, path)
                if before:
                    self.connection.deserialize(before, name=schema)
            elif await lookup(self.proc, path.parent, follow=True) is None:
                raise CannotOpen(f'Error: unable to open database "{name}": unable to open database file')
        except OSError as error:
            raise CannotOpen(f'Error: unable to open database "{name}": {reason(error)}') from None
        self.databases[schema] = Database(path, before)

    async def save(self) -> None:
        """Write back what has changed."""
        for schema, database in self.databases.items():
            if self.readonly:
                continue
            after = self.content(schema)
            if after != database.before and (after or database.before):
                await self.proc.fs.write(database.path, after)
                database.before = after

    def content(self, schema: str = "main") -> bytes:
        pages = self.connection.execute(f'PRAGMA "{schema}".page_count').fetchone()[0]
        return bytes(self.connection.serialize(name=schema)) if pages else b""

    async def close(self) -> None:
        await self.save()
        self.connection.close()
        self.databases.clear()


def _regexp(pattern: str | None, text: str | None) -> bool | None:
    # RE2 cannot hang, whatever the pattern.
    import re2

    if pattern is None or text is None:
        return None
    return re2.search(str(pattern), str(text)) is not None


async def sqlite3_(proc: Proc, o: SqliteOptions, operands: list[str]) -> int:
    mode = o.mode or "list"
    look = Look(
        mode,
        header=bool(o.header),
        header_set=o.header is not None,
        separator=COLUMN_SEPARATORS.get(mode, "|") if o.separator is None else o.separator,
        newline=(ROW_SEPARATORS["ascii"] if mode == "ascii" else "\n") if o.newline is None else o.newline,
        null=o.nullvalue,
    )
    shell = Shell(proc, sqlite3.connect(":memory:"), look, readonly=o.readonly, bail=o.bail, echo=o.echo)
    try:
        await shell.open(operands[0] if operands else ":memory:")
    except CannotOpen as error:
        shell.fail(str(error))
        return error.status
    try:
        if o.init is not None:
            await run_script(shell, await proc.open(o.init))
        for command in o.commands:
            await run(shell, command)
        if len(operands) > 1:
            for command in operands[1:]:
                await run(shell, command)
                if shell.status:
                    break
        else:
            await _run(shell, proc.stdin, script=True)
    except QuitShell:
        pass
    await shell.redirect(None)
    await shell.close()
    return shell.status


_DENIED = frozenset(("load_extension", "readfile", "writefile", "fts3_tokenizer"))


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    # Without a name (VACUUM attaches such a database), or in memory, nothing of the host is attached.
    if action == sqlite3.SQLITE_ATTACH and first not in ("", ":memory:"):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second in _DENIED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() in ("temp_store_directory", "data_store_directory"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


async def run(shell: Shell, text: str) -> None:
    """Run the statements and dot commands of an argument."""
    await _run(shell, BytesReader(encode(text)), script=False)


async def run_script(shell: Shell, reader: Reader) -> None:
    """Run the statements and dot commands of a file, and close it."""
    try:
        await _run(shell, reader, script=True)
    finally:
        await shell.proc.close(reader)


async def _run(shell: Shell, reader: Reader, script: bool) -> None:
    from ramet.commands.data.sqlite.dot_commands import dot

    shell.scripted = script
    proc = shell.proc
    pending: list[str] = []  # the lines of a statement that is not complete
    start = number = 0
    async for block in line_blocks(reader, size=PART):
        for raw in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            try:
                line = raw.decode()
            except UnicodeDecodeError:
                shell.fail(f"Error: line {number} is not UTF-8 text")
                if shell.bail or not script:
                    return
                continue
            if not pending:
                if line.startswith("."):
                    if shell.echo and script:
                        shell.out.append(line + "\n")
                    await dot(shell, line)
                    if shell.status and shell.bail:
                        return
                    continue
                if not line or line.isspace():
                    continue
                start = number
            if "\0" in line:
                shell.fail(f"Error: line {number} contains a NUL byte")
                if shell.bail or not script:
                    return
                continue
            pending += (line, "\n")
            if not may_end(line):
                continue
            pending[:] = ["".join(pending)]
            if not sqlite3.complete_statement(pending[0]):
                continue
            await _statements(shell, pending.pop(), start if script else None)
            if shell.status and (shell.bail or not script):
                return
        await proc.budget.yield_turn()
    if pending:
        await _statements(shell, "".join(pending), start if script else None)


async def _statements(shell: Shell, text: str, line: int | None) -> None:
    proc, at, stop = shell.proc, 0, len(text.rstrip())
    while at < stop and (spans := await offload_large(proc.budget, stop, partial(some, text, at, stop), LARGE)):
        for at, end in spans:
            if is_empty(text, at, end):
                continue
            statement = text[at:end]
            if shell.echo and shell.scripted:
                shell.out += (statement.strip(), "\n")
            try:
                await _statement(shell, statement)
            except sqlite3.OperationalError as error:
                if str(error) == "interrupted":
                    raise TimeUp from None
                await _sql_error(shell, error, text[at:stop], line)
                return
            except (sqlite3.Error, sqlite3.Warning) as error:
                await _sql_error(shell, error, text[at:stop], line)
                return
            except CannotOpen as error:
                shell.fail(str(error))
                return
            await proc.budget.yield_turn()
        at = end


_ATTACH = re.compile(r"\s*attach(?:\s+database)?\s+(?:'([^']*)'|\"([^\"]*)\")\s+as\s+[\"']?(\w+)[\"']?\s*;?\s*", re.I)
_PLAN = re.compile(r"\s*explain\s+query\s+plan\b", re.I)


async def _statement(shell: Shell, statement: str) -> None:
    attached = _ATTACH.fullmatch(statement)
    if attached is not None:
        name = attached[1] or attached[2] or ""
        shell.connection.execute("ATTACH ':memory:' AS " + attached[3])
        if name not in ("", ":memory:"):
            await shell.load(attached[3], name)
        return
    if shell.plans and not _PLAN.match(statement):
        _plan(shell, shell.connection.execute("EXPLAIN QUERY PLAN " + statement).fetchall())
    placed = _placed(statement) if shell.parameters else statement
    used = {name: stored for name, (_, stored) in shell.parameters.items() if ":" + name in placed}

    most = shell.proc.budget.limits.whole

    def work() -> tuple[list[Any], str] | None:
        cursor = shell.connection.execute(placed if used else statement, used or ())
        if cursor.description is None:
            return None
        rows = _fetched(cursor, most)
        planned = _PLAN.match(statement) is not None
        return rows, "" if planned else shell.look.show([column[0] for column in cursor.description], rows)

    made = work() if _is_short(shell, statement) else await offload(shell.proc.budget, work, shell.connection.interrupt)
    if made is not None:
        rows, shown = made
        if _PLAN.match(statement):
            _plan(shell, rows)
        else:
            shell.out.append(shown)
    if shell.changes and shell.scripted:
        done = shell.connection.execute("SELECT changes()").fetchone()[0]
        shell.out.append(f"changes: {done}   total_changes: {shell.connection.total_changes}\n")
    await shell.flush()
    if shell.once:
        await shell.redirect(None)


_FETCHED = 1024
"""Rows between two looks at how much they hold."""


def _fetched(cursor: sqlite3.Cursor, most: int) -> list[Any]:
    """All rows of a statement; LimitExceeded if they hold more than `most` bytes."""
    rows: list[Any] = []
    held = 0
    while part := cursor.fetchmany(_FETCHED):
        rows += part
        held += sum([len(cell) if isinstance(cell, (str, bytes)) else 8 for row in part for cell in row])
        if held + 64 * len(rows) > most:
            raise LimitExceeded("whole_bytes", most)
    return rows


_SEARCHING = re.compile(
    r"\b(?:select|with|pragma|vacuum|explain|trigger|randomblob|zeroblob|hex|printf|format|replace)\b|\|\|", re.I
).search
_SMALL = 1000
"""Pages of a database that one statement may change inline."""


_TRUSTED = 64
"""Statements that run inline after one check: a small database cannot become large by these."""


def _is_short(shell: Shell, statement: str) -> bool:
    """Return whether a statement cannot take long: it searches nothing, changes little, and sets nothing off."""
    if len(statement) > SMALL or _SEARCHING(statement) is not None or len(shell.databases) > 1 or shell.plans:
        shell.trusted = 0
        return False
    if shell.trusted:
        shell.trusted -= 1
        return True
    ask = shell.connection.execute
    try:
        if ask("PRAGMA page_count").fetchone()[0] > _SMALL:
            return False
        if ask("SELECT 1 FROM sqlite_master WHERE type = 'trigger'").fetchone() is not None:
            return False
    except sqlite3.Error:
        return False
    shell.trusted = _TRUSTED
    return True


def _placed(statement: str) -> str:
    """Parameters spelled `@x` and `$x` as Python's library wants them."""
    return re.sub(r"(?<![\w'\"])[@$:](?=[A-Za-z_])", ":", statement)


def _plan(shell: Shell, rows: list[tuple[int, int, int, str]]) -> None:
    """Print the steps of a query plan as a tree."""
    shell.out.append("QUERY PLAN\n")

    def below(parent: int, indent: str) -> None:
        steps = [row for row in rows if row[1] == parent]
        for row in steps:
            last = row is steps[-1]
            shell.out.append(f"{indent}{'`' if last else '|'}--{row[3]}\n")
            below(row[0], indent + ("   " if last else "|  "))

    below(0, "")


_RUNTIME = ("constraint", "readonly", "overflow", "full", "mismatch", "malformed", "locked", "not a database")


async def _sql_error(shell: Shell, error: sqlite3.Error | sqlite3.Warning, sql: str, line: int | None) -> None:
    code = getattr(error, "sqlite_errorcode", 1) & 0xFF
    text = str(error)

    def placed() -> tuple[bool, str]:
        known = text.startswith("no such") or (code in (1, 21, 23) and not any((word in text) for word in _RUNTIME))
        return known, context(shell.connection, sql, text) if known else ""

    preparing, where = await offload_large(shell.proc.budget, len(sql), placed)
    suffix = f" ({code})" if code > 1 and code not in (21, 23) else ""
    if line is None:
        lead = f"Error: {'in prepare' if preparing else 'stepping'}, "
    else:
        lead = f"{'Parse' if preparing else 'Runtime'} error near line {line}: "
    await shell.proc.emit_texts((lead, text, suffix, where, "\n"), shell.proc.stderr)
    shell.status = 1 if line is not None else code


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
        stdin_error=StdinError("", status=0),
    )
]
