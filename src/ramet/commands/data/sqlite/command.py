"""sqlite3: SQL on a database file of the tree, which is read whole and written back when it has changed.

No statement reaches the host: the engine only ever sees databases in memory. What is attached is read from the tree.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ramet.commands.data.sqlite.error_position import context
from ramet.commands.data.sqlite.output_modes import COLUMN_SEPARATORS, ROW_SEPARATORS, Look
from ramet.commands.data.sqlite.statements import is_complete, is_empty, may_end, some, without_tail
from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, choose, flag, several, value
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency import bigbytes as longbytes
from ramet.concurrency.bigbytes import PIECE
from ramet.concurrency.bigtext import decoded, grown
from ramet.concurrency.offload import Abandoned, interrupt_check, offload, offload_large
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.limits import Cancelled, TimeUp
from ramet.core.paths import Path, decode, encode
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
    """Options are whole words behind one dash or two, wherever they stand."""
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


class Quit(Exception):
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
    """How many statements are known not to find much to do."""
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
            size = sum(map(len, texts))
            self.kept.append(await offload_large(self.proc.budget, size, lambda: encode("".join(texts))))

    async def redirect(self, target: str | None, once: bool = False) -> None:
        """Send what follows elsewhere; what was meant for the last place is written there first."""
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
        """Begin with the database of a file, or with an empty one."""
        self.name, self.trusted = name, 0
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        self.connection = connection
        if name not in (":memory:", ""):
            await self.load("main", name)
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
    except Quit:
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
    """Statements and dot commands, as an argument has them."""
    await _run(shell, BytesReader(encode(text)), script=False)


async def run_script(shell: Shell, reader: Reader) -> None:
    """The same, as a file has them, which is closed then."""
    try:
        await _run(shell, reader, script=True)
    finally:
        await shell.proc.close(reader)


async def _rows(proc: Proc, reader: Reader) -> AsyncIterator[list[bytes]]:
    """Lines without their ends, some at a time."""
    async for block in line_blocks(reader, size=PART):
        row = await offload_large(proc.budget, len(block), partial(longbytes.split, block, b"\n"))
        if not row[-1]:
            row.pop()
        yield row


async def _run(shell: Shell, reader: Reader, script: bool) -> None:
    from ramet.commands.data.sqlite.dot_commands import dot

    shell.scripted = script
    proc = shell.proc
    pending: list[str] = []  # the lines of a statement that is not complete
    size = start = number = 0
    async for row in _rows(proc, reader):
        row.reverse()
        while row:
            number += 1
            # What is decoded, joined or done goes at once: to let go of several very long texts takes a while.
            raw = row.pop()
            line = decode(raw) if len(raw) <= PIECE else await offload(proc.budget, partial(decoded, raw))
            del raw
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
                size, start = 0, number
            pending += (line, "\n")
            size += len(line) + 1
            if not (may_end(line) if len(line) <= PIECE else await offload(proc.budget, partial(may_end, line))):
                continue
            del line
            await _collect(proc, pending, size)
            if size <= PIECE:
                complete = sqlite3.complete_statement(pending[0])
            else:
                complete = await offload(proc.budget, partial(is_complete, pending[0]))
            if not complete:
                continue
            await _statements(shell, pending.pop(), start if script else None)
            if shell.status and (shell.bail or not script):
                return
        await proc.budget.yield_turn()
    if pending:
        await _collect(proc, pending, size)
        await _statements(shell, pending.pop(), start if script else None)


async def _collect(proc: Proc, texts: list[str], size: int) -> None:
    """Make one text of several, which stands in the place of them."""
    texts[:] = ["".join(texts) if size <= PIECE else await offload(proc.budget, partial(grown, texts))]


async def _statements(shell: Shell, text: str, line: int | None) -> None:
    proc, size, at = shell.proc, len(text), 0
    stop = await offload_large(proc.budget, size, partial(without_tail, text), PIECE)
    while at < stop and (spans := await offload_large(proc.budget, size, partial(some, text, at, stop), PIECE)):
        for at, end in spans:
            if is_empty(text, at, end):
                continue
            cut = partial(longbytes.cut, text, at, end)
            statement = text[at:end] if end - at <= PIECE else await offload(proc.budget, cut)
            if shell.echo and shell.scripted:
                shell.out += (statement.strip(), "\n")
            try:
                await _statement(shell, statement)
            except sqlite3.OperationalError as error:
                if str(error) == "interrupted":
                    raise TimeUp from None
                await _sql_error(
                    shell,
                    error,
                    await offload_large(proc.budget, stop - at, partial(longbytes.cut, text, at, stop)),
                    line,
                )
                return
            except (sqlite3.Error, sqlite3.Warning) as error:
                await _sql_error(
                    shell,
                    error,
                    await offload_large(proc.budget, stop - at, partial(longbytes.cut, text, at, stop)),
                    line,
                )
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

    def work() -> tuple[list[Any], str] | None:
        cursor = shell.connection.execute(placed if used else statement, used or ())
        if cursor.description is None:
            return None
        rows = cursor.fetchall()
        planned = _PLAN.match(statement) is not None
        return rows, "" if planned else shell.look.show([column[0] for column in cursor.description], rows)

    made = work() if _is_short(shell, statement) else await offload(shell.proc.budget, work)
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


_SEARCHING = re.compile(r"\b(?:select|with|pragma|vacuum|explain|trigger)\b", re.I).search
_SMALL = 1000
"""Pages of a database that a statement may have to change all of."""


_TRUSTED = 64
"""Statements that are short if the first of them is: so many cannot make a small database a large one."""


def _is_short(shell: Shell, statement: str) -> bool:
    """Whether a statement cannot take long: it searches nothing, changes little, and sets nothing off."""
    if len(statement) > 1 << 16 or _SEARCHING(statement) is not None or len(shell.databases) > 1 or shell.plans:
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
    """The steps of a plan as the tree that they are."""
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
