"""PostgreSQL logs: refs, leases and tags for object stores without create-if-absent.

One table of entries has the primary key (store, space, name, number): appending is an insert that does nothing when the
number is taken, so exactly one of many writers wins. It needs no session state, no advisory lock and no isolation level
above the default.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ramet.concurrency.fork import renew_after_fork
from ramet.core.errors import RametError, missing_extra
from ramet.store.objects.log import Log
from ramet.store.objects.objects import DirectoryObjects, Objects

TABLE: Final = """
create table if not exists ramet_entries (
    store text not null, space text not null, name text not null, number bigint not null, data bytea not null,
    primary key (store, space, name, number)
)
"""
_INSERT: Final = (
    "insert into ramet_entries (store, space, name, number, data) values (%s, %s, %s, %s, %s) on conflict do nothing"
)
_NEWEST: Final = (
    "select number, data from ramet_entries where store = %s and space = %s and name = %s and number > %s "
    "order by number desc limit 1"
)
_ENTRIES: Final = (
    "select number, data from ramet_entries where store = %s and space = %s and name = %s and number > %s "
    "order by number limit 1000"
)
_NAMES: Final = (
    "select distinct name from ramet_entries where store = %s and space = %s and starts_with(name, %s) order by name"
)
_SCHEME: Final = re.compile(r"(?:postgres|postgresql)://")


def is_postgres(url: str) -> bool:
    return _SCHEME.match(url) is not None


class QueryResult(NamedTuple):
    """The result of a statement: rows changed, rows returned, and whether it was sent twice."""

    changed: int
    rows: list[tuple[Any, ...]]
    repeated: bool


class PostgresConnection:
    """One connection, opened on first use and reopened once when the server closed it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connections: list[Any] = []
        self._lock = threading.Lock()
        renew_after_fork(self, _lock=threading.Lock)
        weakref.finalize(self, _close, self._connections)

    def run(self, query: str, values: tuple[object, ...]) -> QueryResult:
        """Run a statement; retry once on a broken connection, as every statement here is idempotent."""
        psycopg = _driver()
        with self._lock:
            for last in (False, True):
                try:
                    cursor = self._open(psycopg).execute(query, values)
                    return QueryResult(cursor.rowcount, cursor.fetchall() if cursor.description else [], last)
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    _close(self._connections)
                    if last:
                        raise _unreachable(error) from None
        raise AssertionError("the loop ends by returning or raising")

    def _open(self, psycopg: Any) -> Any:
        if not self._connections:
            connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
            try:
                connection.execute(TABLE)
            except psycopg.errors.UniqueViolation:
                pass  # another process created the table concurrently
            self._connections.append(connection)
        return self._connections[0]

    def close(self) -> None:
        with self._lock:
            _close(self._connections)


class PostgresLog:
    """The entries of one store and one space in a shared table."""

    def __init__(self, server: PostgresConnection, store: str, space: str = "refs") -> None:
        self._server, self._where = server, (store, space)

    def names(self, start: str = "") -> list[str]:
        return sorted(row[0] for row in self._server.run(_NAMES, (*self._where, start)).rows)

    def newest(self, name: str, after: int = 0) -> tuple[int, bytes] | None:
        rows = self._server.run(_NEWEST, (*self._where, name, after)).rows
        return (int(rows[0][0]), bytes(rows[0][1])) if rows else None

    def entries(self, name: str, after: int = 0) -> Iterator[tuple[int, bytes]]:
        while found := self._after(name, after):
            yield from found
            after = found[-1][0]

    def append(self, name: str, number: int, data: bytes) -> bool:
        answer = self._server.run(_INSERT, (*self._where, name, number, data))
        if answer.changed or not answer.repeated:
            return answer.changed == 1
        # The first attempt may have succeeded before the connection broke: then the stored entry is this one.
        return (number, data) == next((entry for entry in self._after(name, number - 1)), None)

    def _after(self, name: str, after: int) -> list[tuple[int, bytes]]:
        rows = self._server.run(_ENTRIES, (*self._where, name, after)).rows
        return [(int(number), bytes(data)) for number, data in rows]


def logs_of(where: str | Objects, objects: Objects, refs: str, refs_name: str | None) -> Callable[[str], Log]:
    """Return a function from a space to its log in PostgreSQL."""
    if not is_postgres(refs):
        raise RametError("invalid_argument", "refs= is not a PostgreSQL address", "write postgresql://user@host/base")
    raw = getattr(objects, "raw", objects)  # below the encryption of an encrypted store
    if refs_name is None and isinstance(raw, DirectoryObjects):
        refs_name = os.path.realpath(raw.root)
    elif refs_name is None and isinstance(where, str):
        refs_name = where.rstrip("/")
    if refs_name is None:
        raise RametError("invalid_argument", "the refs of this store have no name", "pass refs_name=")
    server, store = PostgresConnection(refs), refs_name
    return lambda space: PostgresLog(server, store, space)


class MarkerClaim:
    """Decides which marker wins when several processes create an encrypted store: the first in the log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def __call__(self, marker: bytes) -> bytes:
        if self._log.append("marker", 1, marker):
            return marker
        return next(data for _, data in self._log.entries("marker"))


def _close(connections: list[Any]) -> None:
    while connections:
        connections.pop().close()


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise missing_extra("postgres", "keeping refs in PostgreSQL") from None
    return psycopg


def _unreachable(error: Exception) -> RametError:
    # The driver's text may name the server and the user, never the password; its first line is enough.
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return RametError("unavailable", f"cannot reach PostgreSQL: {text}", "check the refs= address and the server")
