"""`PostgresResource`: a database as a tree, to be read; `query` asks it anything else.

    /<schema>/<table>/schema.json   columns, key, constraints, indexes
    /<schema>/<table>/rows.jsonl    all rows, one object a line, in the order of the primary key
    /<schema>/<table>/rows.csv      the same with a header
    /<schema>/<table>/rows/<key>.json   one row, by its primary key (parts joined by commas)

Rules that this file keeps:
- A read is one snapshot of the database: a repeatable-read, read-only transaction and a cursor on the server. It is
  never continued by another, so a connection that breaks in the middle is an error and not a retry.
- A reader that stops ends the query: what was not asked for is not computed.
- Names are quoted, values are parameters, and a statement is one statement.
- Nothing is written unless the configuration, the mount and the database's role all say so, and then only by `query`.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from ramet.backends.databases import postgres_catalog as catalog
from ramet.backends.databases.config import Database, DatabaseConfig
from ramet.backends.databases.postgres_catalog import Table
from ramet.backends.file_names import as_name, fits, from_name
from ramet.backends.redacted_urls import unreached
from ramet.concurrency.tasks import give_up
from ramet.core.errors import fail, missing_extra, unavailable, wrong_type
from ramet.core.paths import Path
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

BLOCK: Final = 256 * 1024
CSV_BLOCK: Final = 64 * 1024
FIRST_ROWS: Final = 16
"""Rows of the first batch; more follow as they are read."""
MOST_ROWS: Final = 10_000
IDLE: Final = 8
"""Idle connections that are kept."""
FOREVER: Final = 10.0**6
LONG_KEY: Final = "%sha256-"
"""How a name begins that stands for a key too long to be one."""
SETTINGS: Final = {"application_name": "ramet", "TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "iso_8601"}


@dataclass(frozen=True, kw_only=True, repr=False)
class PostgresConfig(DatabaseConfig):
    """Which database. The password may stand in the address; better, an environment variable is named that has it."""

    dsn: str = "postgresql://localhost/postgres"
    """The address, as PostgreSQL's own tools take it; better without a password."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    schemas: tuple[str, ...] = ()
    """The schemas to show; all that the role may use when not given."""
    writable: bool = False
    """Let `query` change data where the mount is writable too. Files stay read-only."""
    statement_seconds: float = 60.0
    """How long the server may work on one statement before it gives up; 0 is forever."""
    ttl: float = 5.0
    """Seconds for which what was seen may be trusted."""
    timeout: float = 30.0
    """Seconds without an answer, beyond those of a statement, after which the server counts as unreachable."""

    kind = "postgres"
    address = "dsn"


class PostgresResource(Database):
    """`PostgresResource(PostgresConfig(dsn="postgresql://reader@db.example/shop", password_env="SHOP_PASSWORD"))`."""

    def __init__(self, config: PostgresConfig | None = None, *, dsn: str | None = None) -> None:
        if config is not None and not isinstance(config, PostgresConfig):
            raise wrong_type("the configuration of PostgresResource", config, "Pass a PostgresConfig, or dsn=...")
        self.config = config or (PostgresConfig() if dsn is None else PostgresConfig(dsn=dsn))
        self._idle: dict[asyncio.AbstractEventLoop, list[Any]] = {}
        self._tables: dict[tuple[str, str], tuple[Table | None, float]] = {}
        self._checked = False

    # ------------------------------------------------------------------------------------------- connections

    async def _connect(self) -> Any:
        try:
            import asyncpg
        except ModuleNotFoundError:
            raise missing_extra("postgres", "a mount of a PostgreSQL database") from None
        settings = {**SETTINGS, "statement_timeout": str(int(self.config.statement_seconds * 1000))}
        if not self.config.writable:
            settings["default_transaction_read_only"] = "on"
        making = asyncio.ensure_future(asyncpg.connect(
            self.config.dsn, password=self.config.password, timeout=min(20.0, self.config.timeout),
            command_timeout=self._patience, server_settings=settings, statement_cache_size=64,
        ))  # fmt: skip
        try:
            connection = await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_let_go)  # cancelled itself, the client may lose one that was made just then
            raise
        try:
            await self._check_role(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    @property
    def _patience(self) -> float | None:
        """Seconds after which a server that says nothing is given up; it may work for `statement_seconds` of them."""
        return self.config.statement_seconds + self.config.timeout if self.config.statement_seconds else None

    async def _check_role(self, connection: Any) -> None:
        if self._checked:
            return
        role = await connection.fetchrow(catalog.ROLE)
        self._checked = True
        if not self.config.writable and (role["super"] or role["writes"]):
            what = "is a superuser" if role["super"] else "could write"
            warnings.warn(
                f"the role of {self.config.where} {what}; reads are read-only transactions, but a role that may only "
                "select is safer",
                RuntimeWarning,
                stacklevel=2,
            )

    @asynccontextmanager
    async def _connected(self, path: Path, *, fresh: bool = False) -> AsyncIterator[Any]:
        """A connection, given back when it is in order. Errors of the client become ours here, and nowhere else."""
        loop = asyncio.get_running_loop()
        idle = self._idle.setdefault(loop, [])
        connection, done = None, False
        try:
            while idle and not fresh and connection is None:
                connection = idle.pop()
                connection = None if connection.is_closed() else connection
            if connection is None:
                connection = await self._connect()
            yield connection
            done = True
        except GeneratorExit:
            done = True  # the reader has enough
            raise
        except Exception as error:
            done = _is_refusal(error)
            raise self._translated(error, path, verbose=fresh) from None
        finally:
            if connection is not None:
                kept = done and not fresh and len(idle) < IDLE and self._idle.get(loop) is idle  # not closed since
                if kept and _is_at_rest(connection):
                    idle.append(connection)
                else:
                    connection.terminate()  # whatever the server was still doing for it ends here

    def _translated(self, error: Exception, path: Path, *, verbose: bool) -> Exception:
        """Translate client errors. `verbose` passes on the server's message about the user's own statement."""
        import asyncpg

        where = self.config.where
        if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
            return fail(errno.EACCES, path, f"Permission denied: {where} refuses these credentials")
        if isinstance(error, asyncpg.InvalidCatalogNameError):
            return fail(errno.ENODEV, path, f"{where}: there is no such database")
        for kinds, number in _errors():
            if isinstance(error, kinds):
                return fail(
                    number, path, _text(error) if verbose else None if number == errno.ENOENT else _text(error, number)
                )
        lost = (
            asyncpg.PostgresConnectionError, asyncpg.TooManyConnectionsError, asyncpg.CannotConnectNowError,
            asyncpg.AdminShutdownError, asyncpg.CrashShutdownError, asyncpg.IdleSessionTimeoutError,
            asyncpg.TransactionRollbackError, asyncpg.InternalClientError,
        )  # fmt: skip
        if isinstance(error, lost) or (isinstance(error, asyncpg.InterfaceError) and "closed" in str(error)):
            return unavailable(path, f"{where} could not be reached: {_text(error)}")
        if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError | asyncpg.InternalClientError):
            return fail(errno.EINVAL, path, _text(error))
        if isinstance(error, UnicodeError):
            return fail(errno.EILSEQ, path)
        if isinstance(error, ValueError):
            return fail(errno.EINVAL, path, f"{where} is not the address of a PostgreSQL database")
        if isinstance(error, OSError) and not isinstance(error.filename, Path):
            if error.errno == errno.EACCES:
                return fail(errno.EACCES, path, error.strerror)
            return unreached(path, where, error)
        return error

    # ----------------------------------------------------------------------------------------------- looking

    async def _table(self, path: Path, schema: str, name: str) -> Table:
        key, now = (schema, name), time.monotonic()
        known = self._tables.get(key)
        if known is None or known[1] < now:
            table = None
            if not self.config.schemas or schema in self.config.schemas:
                async with self._connected(path) as connection:
                    table = await catalog.look_up(connection, schema, name)
            known = self._tables[key] = (table, now + self.config.ttl)
            if len(self._tables) > MOST_ROWS:
                self._tables.clear()
        if known[0] is None:
            raise fail(errno.ENOENT, path)
        return known[0]

    async def _schemas(self, path: Path) -> list[str]:
        async with self._connected(path) as connection:
            found = [row[0] for row in await connection.fetch(catalog.SCHEMAS)]
        return [name for name in found if not self.config.schemas or name in self.config.schemas]

    async def _place(self, path: Path) -> tuple[str | None, Table | None, str | None, str | None]:
        """Schema, table, file and row that a path names; ENOENT and ENOTDIR as in any tree."""
        parts = path.parts
        if not parts:
            return None, None, None, None
        schema = from_name(parts[0])
        if schema is None:
            raise fail(errno.ENOENT, path)
        if len(parts) == 1:
            if schema not in await self._schemas(path):
                raise fail(errno.ENOENT, path)
            return schema, None, None, None
        name = from_name(parts[1])
        if name is None:
            raise fail(errno.ENOENT, path)
        table = await self._table(path, schema, name)
        if len(parts) == 2:
            return schema, table, None, None
        if parts[2] not in FILES and (parts[2] != "rows" or not table.key):
            raise fail(errno.ENOENT, path)
        if (len(parts) > 3 and parts[2] in FILES) or len(parts) > 4:
            raise fail(errno.ENOTDIR, path)
        return schema, table, parts[2], parts[3] if len(parts) == 4 else None

    async def stat(self, path: Path) -> Stat:
        _, table, file, row = await self._place(path)
        if row is not None and table is not None:
            return Stat(Kind.FILE, len(await self._row(path, table, row)), ttl=self.config.ttl)
        return self._file if file in FILES else self._directory

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        schema, table, file, row = await self._place(path)
        if row is not None and table is not None:
            await self._row(path, table, row)
        if file in FILES or row is not None:
            raise fail(errno.ENOTDIR, path)
        if schema is None:
            for name in await self._schemas(path):
                yield as_name(name), self._directory
        elif table is None:
            async with self._connected(path) as connection:
                tables = await connection.fetch(catalog.TABLES, schema)
            for (name,) in tables:
                yield as_name(name), self._directory
        elif file is None:
            for name in FILES:
                yield name, self._file
            if table.key:
                yield "rows", self._directory
        else:
            async with closing(self._batches(path, table.keys())) as batches:
                async for batch in batches:
                    for key in batch:
                        yield key_name(key), self._file

    # ----------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """The whole content; a layer cuts ranges out of it, and closes it behind what it needs."""
        _, table, file, row = await self._place(path)
        if table is None or file is None or (file == "rows" and row is None):
            raise fail(errno.EISDIR, path)
        if row is not None:
            yield await self._row(path, table, row)
        elif file == "schema.json":
            async with self._connected(path) as connection:
                yield await catalog.described(connection, table)
        elif file == "rows.jsonl":
            async with closing(self._batches(path, table.rows())) as batches:
                async for batch in batches:
                    yield ("\n".join([line for (line,) in batch]) + "\n").encode()
        else:
            async with closing(self._csv(path, table)) as blocks:
                async for block in blocks:
                    yield block

    async def _row(self, path: Path, table: Table, name: str) -> bytes:
        import asyncpg

        if not name.endswith(".json"):
            raise fail(errno.ENOENT, path)
        name = name[:-5]
        if name.startswith(LONG_KEY):
            statement, values = table.hashed_row(), [name[len(LONG_KEY) :]]
        else:
            parts = [from_name(part, ",") for part in name.split(",")]
            if len(parts) != len(table.key) or None in parts:
                raise fail(errno.ENOENT, path)
            statement, values = table.row(), [part or "" for part in parts]
        async with self._connected(path) as connection:
            try:
                line = await connection.fetchval(statement, *values)
            except asyncpg.DataError:
                line = None  # nothing of the key's type is spelled like this
        if line is None:
            raise fail(errno.ENOENT, path)
        return f"{line}\n".encode()

    async def _batches(self, path: Path, statement: str, *values: object) -> AsyncIterator[list[Any]]:
        """The rows of a statement from a cursor on the server, few at first: a reader may want no more."""
        begun = False
        try:
            async with (
                self._connected(path) as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                cursor = await connection.cursor(statement, *values)
                count = FIRST_ROWS
                while rows := await cursor.fetch(count):
                    begun = True
                    yield rows
                    if len(rows) < count:
                        return
                    size = sum(map(len, (row[0] for row in rows)))
                    count = min(MOST_ROWS, count * 4 if size * 4 <= BLOCK else max(1, count * BLOCK // max(1, size)))
        except OSError as error:
            raise _final(error, path) if begun else error from None

    async def _csv(self, path: Path, table: Table) -> AsyncIterator[bytes]:
        """The server writes the CSV; what it has written waits in a queue that is short."""
        blocks: asyncio.Queue[bytes | None] = asyncio.Queue(4)
        begun = False
        try:
            async with self._connected(path) as connection:
                await connection.execute("begin isolation level repeatable read, read only")
                task = asyncio.ensure_future(_copied(connection, table.cells(), blocks))
                try:
                    while (block := await asyncio.wait_for(blocks.get(), self._patience)) is not None:
                        begun = True
                        yield block
                    await task
                    await connection.execute("commit")
                finally:
                    if not task.done():
                        connection.terminate()  # the one way to stop a COPY
                    await give_up((task,))
        except OSError as error:
            raise _final(error, path) if begun else error from None

    # --------------------------------------------------------------------------------------------- searching

    async def search(self, path: Path, text: str, *, fold: bool = False) -> AsyncIterator[Path]:
        """Let the server find rows with `text`; files of whole tables are always candidates."""
        _, table, file, row = await self._place(path)
        if row is not None or file in FILES:
            yield path
        elif table is not None:
            top = Path(f"/{as_name(table.schema)}/{as_name(table.name)}")
            for name in FILES if file is None else ():
                yield top / name
            if table.key:
                async with closing(self._batches(path, table.keys(holding=True, fold=fold), text)) as batches:
                    async for batch in batches:
                        for key in batch:
                            yield top / "rows" / key_name(key)
        else:
            for name in [entry async for entry, _ in self.scan(path)]:
                async for found in self.search(path / name, text, fold=fold):
                    yield found

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """Run one SQL statement with `$1`, `$2`... for the values, in a separate session."""
        if write and not self.config.writable:
            raise fail(errno.EROFS, path, "this mount was not configured to be writable")
        async with (
            self._connected(path, fresh=True) as connection,
            connection.transaction(isolation=None if write else "repeatable_read", readonly=not write),
        ):
            # A snapshot is taken before the statement runs: from here on nothing makes the transaction writable.
            await connection.fetchval("select 1")
            statement, is_json = await _prepared(connection, text)
            if not write and not statement.get_attributes():
                # Not all that has effects is stopped by a read-only transaction: COPY writes files of the server.
                raise fail(errno.EINVAL, path, "the statement gives no rows; what changes something takes -w")
            cursor = await statement.cursor(*_arguments(path, statement, values))
            left, count = limit, FIRST_ROWS
            while left is None or left > 0:
                rows = await cursor.fetch(count if left is None else min(count, left))
                if not rows:
                    break
                left = None if left is None else left - len(rows)
                lines = [row[0].replace("\n", " ") if is_json else _as_json(row) for row in rows]
                yield ("\n".join(lines) + "\n").encode()
                count = min(MOST_ROWS, count * 4)

    def forget(self) -> None:
        """Look at the tables anew."""
        self._tables.clear()

    async def close(self) -> None:
        for loop, connections in tuple(self._idle.items()):
            for connection in connections:
                if loop is asyncio.get_running_loop():
                    await connection.close(timeout=5)
                elif not loop.is_closed():
                    loop.call_soon_threadsafe(connection.terminate)
            del self._idle[loop]


FILES: Final = ("schema.json", "rows.jsonl", "rows.csv")

DECODERS: Final[dict[str, Callable[[str], object]]] = {
    "int2": int, "int4": int, "int8": int, "float4": float, "float8": float, "bool": "t".__eq__,
}  # fmt: skip
"""What a value of a type is in JSON that a statement both takes and gives."""


def key_name(key: Sequence[str]) -> str:
    """The file of a row."""
    name = ",".join(as_name(part, ",") for part in key) + ".json"
    if fits(name):
        return name
    return f"{LONG_KEY}{hashlib.sha256(chr(31).join(key).encode()).hexdigest()}.json"


async def _copied(connection: Any, statement: str, blocks: asyncio.Queue[bytes | None]) -> None:
    """CSV into a queue, rows gathered to blocks, None behind the last."""
    gathered: list[bytes] = []
    size = 0

    async def take(data: bytes) -> None:
        nonlocal size
        gathered.append(data)
        size += len(data)
        if size >= CSV_BLOCK or blocks.empty():
            await blocks.put(b"".join(gathered))
            gathered.clear()
            size = 0

    try:
        # Who reads may take any time; that the server goes on saying something is seen to where the queue is read.
        await connection.copy_from_query(statement, output=take, format="csv", header=True, timeout=FOREVER)
        if gathered:
            await blocks.put(b"".join(gathered))
    finally:
        await blocks.put(None)


async def _prepared(connection: Any, text: str) -> tuple[Any, bool]:
    """The statement so that each row is one JSON text, made by the server; as it is where it cannot be a subquery.

    Its parameters are taken as text, as words of a command line are.
    """
    import asyncpg

    statement, is_json = f"select row_to_json(ramet)::text from (\n{text.strip().rstrip(';')}\n) as ramet", True
    try:
        async with connection.transaction():
            found = await connection.prepare(statement)
    except (asyncpg.PostgresSyntaxError, asyncpg.FeatureNotSupportedError):
        statement, is_json = text, False
        found = await connection.prepare(statement)
    kinds = {(kind.name.removesuffix("[]"), kind.schema) for kind in found.get_parameters()}
    known = [(name, schema) for name, schema in kinds if name not in ("text", "varchar")]
    for name, schema in known:
        await connection.set_type_codec(
            name, schema=schema, encoder=str, decoder=DECODERS.get(name, str), format="text"
        )
    return (await connection.prepare(statement) if known else found), is_json


def _arguments(path: Path, statement: Any, values: Sequence[str]) -> list[object]:
    kinds = statement.get_parameters()
    if len(kinds) != len(values):
        raise fail(errno.EINVAL, path, f"the statement takes {len(kinds)} values, {len(values)} were given")
    found: list[object] = []
    for kind, value in zip(kinds, values, strict=True):
        if not kind.name.endswith("[]"):
            found.append(value)
            continue
        try:
            items = json.loads(value)
        except ValueError:
            items = None
        if not isinstance(items, list):
            raise fail(errno.EINVAL, path, f"a value of type {kind.name} is given as a JSON array")
        found.append([item if item is None or isinstance(item, str) else json.dumps(item) for item in items])
    return found


def _as_json(row: Any) -> str:
    return json.dumps(dict(row.items()), default=str, ensure_ascii=False)


def _let_go(making: asyncio.Future[Any]) -> None:
    """Close a connection whose request was cancelled."""
    if not making.cancelled() and making.exception() is None:
        making.result().terminate()


def _is_at_rest(connection: Any) -> bool:
    return not connection.is_closed() and not connection.is_in_transaction()


def _is_refusal(error: Exception) -> bool:
    """Whether the server refused a statement, after which the connection is as good as before."""
    import asyncpg

    return isinstance(error, asyncpg.PostgresError) and not isinstance(error, asyncpg.PostgresConnectionError)


def _final(error: OSError, path: Path) -> OSError:
    """Rows were given already: going on in another snapshot would mix two states of the table."""
    return fail(errno.EIO, path, f"the rows ended early: {error.strerror}")


def _text(error: Exception, number: int | None = None) -> str:
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{os.strerror(number)}: {first}" if number is not None else first


def _errors() -> tuple[tuple[Any, int], ...]:
    import asyncpg

    return (
        ((asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError), errno.ENOENT),
        (asyncpg.InsufficientPrivilegeError, errno.EACCES),
        (asyncpg.ReadOnlySQLTransactionError, errno.EROFS),
        (asyncpg.QueryCanceledError, errno.ETIMEDOUT),
    )
