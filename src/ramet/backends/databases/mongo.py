"""`MongoResource`: the databases of a MongoDB server as a tree, to be read; `query` finds what files do not answer.

    /<database>/database.json                    its collections
    /<database>/<collection>/schema.json         fields of a sample, indexes, rules
    /<database>/<collection>/documents.jsonl     all documents, one a line, in the order of `_id`
    /<database>/<collection>/documents/<id>.json one document, by its `_id`

Rules that this file keeps:
- A read is one cursor. It is never continued by another, which would mix two states: a cursor that breaks is an error.
- A reader that stops closes the cursor: what was not asked for is not sent.
- Nothing but `find` and `aggregate` is asked, and a pipeline that writes only where the configuration and the mount
  allow it.
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ramet.backends.databases.config import Database, DatabaseConfig
from ramet.backends.file_names import as_name, from_name
from ramet.backends.redacted_urls import REFUSED, UNKNOWN, secret_in
from ramet.core.errors import fail, missing_extra, unavailable, wrong_type
from ramet.core.paths import Path
from ramet.core.resource import REDACTED
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
BLOCK: Final = 256 * 1024
FIRST: Final = 16
"""Documents that are given on without waiting for more. Of how many a batch is made, the server knows best: about a
hundred at first, then megabytes.
"""
SAMPLE: Final = 100
OWN: Final = frozenset({"admin", "config", "local"})
"""Databases that are the server's own."""
FILES: Final = ("schema.json", "documents.jsonl")
WRITES: Final = frozenset({"$out", "$merge"})


@dataclass(frozen=True, kw_only=True, repr=False)
class MongoConfig(DatabaseConfig):
    """Which server. The password may stand in the address; better, an environment variable is named that has it."""

    url: str = "mongodb://localhost:27017"
    """The address, as MongoDB's own tools take it; better without a password."""
    username: str | None = None
    """Who logs in; as the address says when not given."""
    password_env: str | None = None
    """The environment variable that holds the password."""
    databases: tuple[str, ...] = ()
    """The databases to show; all but the server's own when not given."""
    writable: bool = False
    """Let a pipeline of `query` write where the mount is writable too. Files stay read-only."""
    seconds: float = 60.0
    """How long the server may work on one request; 0 is forever."""
    ttl: float = 5.0
    """Seconds for which what was seen may be trusted."""
    timeout: float = 30.0
    """Seconds without an answer, beyond those that it may work, after which the server counts as unreachable."""

    kind = "mongo"
    address = "url"


class MongoResource(Database):
    """`MongoResource(MongoConfig(url="mongodb://reader@db.example", password_env="MONGO_PASSWORD"))`."""

    def __init__(self, config: MongoConfig | None = None, *, url: str | None = None) -> None:
        if config is not None and not isinstance(config, MongoConfig):
            raise wrong_type("the configuration of MongoResource", config, "Pass a MongoConfig, or url=...")
        self.config = config or (MongoConfig() if url is None else MongoConfig(url=url))
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}
        self._names: dict[str, tuple[list[dict[str, Any]], float]] = {}

    # ------------------------------------------------------------------------------------------------ asking

    def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            try:
                from pymongo import AsyncMongoClient, errors
            except ModuleNotFoundError:
                raise missing_extra("mongo", "a mount of a MongoDB server") from None
            patience = int(self.config.timeout * 1000)
            options: dict[str, Any] = {
                "appname": "ramet", "serverSelectionTimeoutMS": min(1500, patience),
                "connectTimeoutMS": min(10_000, patience),
                "socketTimeoutMS": int(self.config.seconds * 1000) + patience if self.config.seconds else None,
                "uuidRepresentation": "standard", "datetime_conversion": "DATETIME_AUTO", "tz_aware": True,
            }  # fmt: skip
            given = self.config.url.lower()
            options = {name: value for name, value in options.items() if f"{name.lower()}=" not in given}
            if self.config.username is not None:
                options["username"] = self.config.username
            if (password := self.config.password) is not None:
                options["password"] = password
            if any(character in "@/" for character in secret_in(self.config.url)):
                # What follows would be taken for the host, and be shown as one.
                raise fail(errno.EINVAL, None, f"{self.config.where}: the password has to be percent-encoded")
            try:
                found = self._clients[loop] = AsyncMongoClient(self.config.url, **options)
            except (errors.ConfigurationError, ValueError) as error:
                said = f"{self.config.where} cannot be used: {error}"
                raise fail(errno.EINVAL, None, said.replace(secret_in(self.config.url), REDACTED)) from None
        return found

    @contextmanager
    def _translated(self, path: Path) -> Iterator[None]:
        """Errors of the client become ours here, and nowhere else."""
        from bson.errors import BSONError
        from pymongo import errors

        where = self.config.where
        try:
            yield
        except errors.ExecutionTimeout as error:
            raise fail(errno.ETIMEDOUT, path, str((error.details or {}).get("errmsg") or error)) from None
        except errors.OperationFailure as error:
            said = str((error.details or {}).get("errmsg") or error)
            if error.code == 18:
                raise fail(errno.EACCES, path, f"Permission denied: {where} refuses these credentials") from None
            if error.code == 13:
                raise fail(errno.EACCES, path, f"Permission denied: {said}") from None
            raise fail(errno.ENOENT if error.code == 26 else errno.EINVAL, path, said) from None
        except (errors.ConnectionFailure, errors.ProtocolError, BSONError) as error:
            raise _unreached(path, where, error) from None
        except (errors.InvalidName, errors.ConfigurationError, errors.InvalidOperation) as error:
            raise fail(errno.EINVAL, path, str(error)) from None
        except errors.PyMongoError as error:
            raise fail(errno.EIO, path, str(error)) from None

    async def _ask(self, path: Path, request: Awaitable[T]) -> T:
        with self._translated(path):
            return await request

    async def _cursor(self, path: Path, cursor: Any) -> AsyncIterator[Any]:
        """What a cursor gives; an error behind the first document ends the reading for good."""
        begun = False
        try:
            with self._translated(path):
                async for document in cursor:
                    begun = True
                    yield document
        except OSError as error:
            raise fail(errno.EIO, path, f"the documents ended early: {error.strerror}") if begun else error from None
        finally:
            with self._translated(path):
                await cursor.close()

    @property
    def _limits(self) -> dict[str, int]:
        return {"max_time_ms": int(self.config.seconds * 1000)} if self.config.seconds else {}

    # ----------------------------------------------------------------------------------------------- looking

    async def _databases(self, path: Path) -> list[str]:
        if self.config.databases:
            return list(self.config.databases)
        found = await self._ask(path, self._client().list_database_names())
        return sorted(name for name in found if name not in OWN)

    async def _collections(self, path: Path, database: str) -> list[dict[str, Any]]:
        known = self._names.get(database)
        if known is None or known[1] < time.monotonic():
            with self._translated(path):
                cursor = await self._client()[database].list_collections()
                found = [info async for info in cursor if not info["name"].startswith("system.")]
            known = (sorted(found, key=lambda info: info["name"]), time.monotonic() + self.config.ttl)
            self._names[database] = known
        return known[0]

    async def _place(self, path: Path) -> tuple[str, dict[str, Any], str, str]:
        """Database, collection, file and document that a path names; empty where it names none."""
        parts = path.parts
        if not parts:
            return "", {}, "", ""
        database = from_name(parts[0])
        if not database or database not in await self._databases(path):
            raise fail(errno.ENOENT, path)
        if len(parts) == 1:
            return database, {}, "", ""
        if parts[1] == "database.json":
            if len(parts) > 2:
                raise fail(errno.ENOTDIR, path)
            return database, {}, parts[1], ""
        found = [info for info in await self._collections(path, database) if _segment(info["name"]) == parts[1]]
        if not found or (len(parts) > 2 and parts[2] not in (*FILES, "documents")):
            raise fail(errno.ENOENT, path)
        if (len(parts) > 3 and parts[2] in FILES) or len(parts) > 4:
            raise fail(errno.ENOTDIR, path)
        return database, found[0], parts[2] if len(parts) > 2 else "", parts[3] if len(parts) > 3 else ""

    async def stat(self, path: Path) -> Stat:
        database, info, file, document = await self._place(path)
        if document:
            return self._file._replace(size=len(await self._document(path, database, info, document)))
        return self._directory if file in ("", "documents") else self._file

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        database, info, file, document = await self._place(path)
        if document:
            await self._document(path, database, info, document)
        if document or file not in ("", "documents"):
            raise fail(errno.ENOTDIR, path)
        if not database:
            for name in await self._databases(path):
                yield as_name(name), self._directory
        elif not info:
            yield "database.json", self._file
            for one in await self._collections(path, database):
                yield _segment(one["name"]), self._directory
        elif not file:
            for name in FILES:
                yield name, self._file
            yield "documents", self._directory
        else:
            from ramet.backends.databases.mongo_names import file_name

            cursor = self._client()[database][info["name"]].find({}, {"_id": 1}, **self._limits).sort("_id", 1)
            async with closing(self._cursor(path, cursor)) as found:
                async for entry in found:
                    yield file_name(entry.get("_id")), self._file

    # ----------------------------------------------------------------------------------------------- reading

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        """The whole content; a layer cuts ranges out of it, and closes it behind what it needs."""
        database, info, file, document = await self._place(path)
        if file in ("", "documents") and not document:
            raise fail(errno.EISDIR, path)
        if document:
            yield await self._document(path, database, info, document)
        elif file == "database.json":
            yield await self._database(path, database)
        elif file == "schema.json":
            yield await self._schema(path, database, info)
        else:
            cursor = self._client()[database][info["name"]].find({}, **self._limits).sort("_id", 1)
            async with closing(self._lines(path, cursor)) as blocks:
                async for block in blocks:
                    yield block

    async def _lines(self, path: Path, cursor: Any) -> AsyncIterator[bytes]:
        """Documents as lines: the first few at once, then in blocks."""
        from ramet.backends.databases.mongo_names import line

        lines: list[bytes] = []
        size = count = 0
        async with closing(self._cursor(path, cursor)) as documents:
            async for document in documents:
                lines.append(line(document))
                size += len(lines[-1])
                count += 1
                if size >= BLOCK or count == FIRST:
                    yield b"".join(lines)
                    lines, size = [], 0
        if lines:
            yield b"".join(lines)

    async def _document(self, path: Path, database: str, info: dict[str, Any], name: str) -> bytes:
        from ramet.backends.databases.mongo_names import LONG, file_name, line, value_of

        collection = self._client()[database][info["name"]]
        value: tuple[Any] | None = value_of(name)
        if name.startswith(LONG):
            async with closing(self._cursor(path, collection.find({}, {"_id": 1}, **self._limits))) as found:
                async for entry in found:
                    if file_name(entry["_id"]) == name:
                        value = (entry["_id"],)
                        break
        # `$eq`, since an `_id` that is an object could otherwise be taken for an operator.
        document: dict[str, Any] | None = None
        if value is not None:
            document = await self._ask(path, collection.find_one({"_id": {"$eq": value[0]}}, **self._limits))
        if document is None or file_name(document["_id"]) != name:
            raise fail(errno.ENOENT, path)
        return line(document)

    async def _database(self, path: Path, database: str) -> bytes:
        from ramet.backends.databases.mongo_names import pretty

        rows = []
        for info in await self._collections(path, database):
            row: dict[str, object] = {"name": info["name"], "type": info.get("type", "collection")}
            if row["type"] != "view":
                collection = self._client()[database][info["name"]]
                row["estimated_documents"] = await self._ask(path, collection.estimated_document_count())
            rows.append(row)
        return pretty({"name": database, "collections": rows})

    async def _schema(self, path: Path, database: str, info: dict[str, Any]) -> bytes:
        from ramet.backends.databases.mongo_names import fields, pretty

        collection = self._client()[database][info["name"]]
        cursor = collection.find({}, **self._limits).sort("_id", 1).limit(SAMPLE)
        sample = [document async for document in self._cursor(path, cursor)]
        indexes: dict[str, object] = {}
        if info.get("type") != "view":
            indexes = dict(await self._ask(path, collection.index_information()))
        return pretty({
            "database": database, "name": info["name"], "type": info.get("type", "collection"),
            "options": info.get("options", {}), "indexes": indexes, "sampled_documents": len(sample),
            "fields": fields(sample),
        })  # fmt: skip

    # --------------------------------------------------------------------------------------------- searching

    async def search(self, path: Path, text: str, *, fold: bool = False) -> AsyncIterator[Path]:
        """The documents that hold `text`, from one cursor over each collection and not one request for each file."""
        database, info, file, document = await self._place(path)
        if document or (file and file != "documents"):
            yield path
        elif info:
            from ramet.backends.databases.mongo_names import file_name, folded, line

            top = Path(f"/{as_name(database)}/{_segment(info['name'])}")
            for name in () if file else FILES:
                yield top / name
            wanted = text.encode()
            cursor = self._client()[database][info["name"]].find({}, **self._limits)
            async with closing(self._cursor(path, cursor)) as documents:
                async for found in documents:
                    written = line(found)
                    if wanted in written or (fold and wanted in folded(written)):
                        yield top / "documents" / file_name(found["_id"])
        else:
            async for name, stat in self.scan(path):
                if stat.kind is Kind.FILE:
                    yield path / name
                    continue
                async for below in self.search(path / name, text, fold=fold):
                    yield below

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A filter (an object) or a pipeline (an array) in extended JSON, asked of the collection at `path`."""
        from bson.errors import BSONError

        from ramet.backends.databases.mongo_names import parsed

        database, info, _, _ = await self._place(path)
        if not info:
            raise fail(errno.EINVAL, path, "a query is asked of a collection: /<database>/<collection>")
        if values:
            raise fail(errno.EINVAL, path, "a query of MongoDB takes no values")
        if write and not self.config.writable:
            raise fail(errno.EROFS, path, "this mount was not configured to be writable")
        try:
            wanted = parsed(text)
        except (ValueError, TypeError, BSONError) as error:
            raise fail(errno.EINVAL, path, f"not extended JSON: {error}") from None
        collection = self._client()[database][info["name"]]
        if isinstance(wanted, dict):
            cursor = collection.find(wanted, limit=limit or 0, **self._limits)
        elif isinstance(wanted, list) and all(isinstance(stage, dict) for stage in wanted):
            writes = any(WRITES & stage.keys() for stage in wanted)
            if writes and not write:
                raise fail(errno.EROFS, path, "this pipeline writes; that takes -w")
            if limit and not writes:
                wanted.append({"$limit": limit})
            options = {"maxTimeMS": int(self.config.seconds * 1000)} if self.config.seconds else {}
            cursor = await self._ask(path, collection.aggregate(wanted, **options))
        else:
            raise fail(errno.EINVAL, path, "a query is a filter {...} or a pipeline [{...}, ...]")
        if limit != 0:
            async with closing(self._lines(path, cursor)) as blocks:
                async for block in blocks:
                    yield block

    def forget(self) -> None:
        """Look at the collections anew."""
        self._names.clear()

    async def close(self) -> None:
        for loop, client in tuple(self._clients.items()):
            if loop is asyncio.get_running_loop():
                await client.close()
            del self._clients[loop]


def _unreached(path: Path, where: str, error: Exception) -> OSError:
    """The client tells in one sentence what went wrong at each member; of many, the first thing that was refused."""
    said = str(error).partition(" (configured")[0].partition(", Timeout:")[0] or type(error).__name__
    words = UNKNOWN if _UNKNOWN.search(said) else REFUSED if "refused" in said or "[Errno 111]" in said else said
    return unavailable(path, f"{where} could not be reached: {words}", absent=words in (UNKNOWN, REFUSED))


_UNKNOWN: Final = re.compile(r"\[Errno -\d+\]|Name or service not known|nodename nor servname|getaddrinfo failed")


def _segment(name: str) -> str:
    """A collection as a directory; one that is called like our file does not get into its way."""
    return "%64atabase.json" if name == "database.json" else as_name(name)
