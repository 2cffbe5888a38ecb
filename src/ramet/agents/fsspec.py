"""`RametFileSystem`: a workspace, or any revision of a stored one, for fsspec.

    pandas.read_csv("ramet://proj-x@v1/data/table.csv")        # a revision, read-only, fetched as it is needed
    RametFileSystem(workspace=ws).ls("/")                      # a live workspace, readable and writable

Operations run on fsspec's own thread; *do not* change a live workspace from elsewhere at the same time.
"""

from __future__ import annotations

import asyncio
import errno
import io
import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar, Final

from ramet.core import ops
from ramet.core.errors import RametError, fail, missing_extra
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import How, Resource
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing
from ramet.workspace.stored.store import Store
from ramet.workspace.workspace import Workspace

try:
    from fsspec.asyn import AsyncFileSystem, sync, sync_wrapper
    from fsspec.callbacks import DEFAULT_CALLBACK
    from fsspec.spec import AbstractBufferedFile
except ImportError as error:
    raise missing_extra("fsspec", "the file system for fsspec") from error

PROTOCOL: Final = "ramet"
BLOCK: Final = 1 << 20
SPOOLED: Final = 8 << 20
"""Bytes of a file being written that are kept in memory; more goes to a temporary file."""
TYPES: Final = {Kind.FILE: "file", Kind.DIR: "directory", Kind.LINK: "link"}


class RametFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """A file system with the workspace's paths. `name` and `revision` select a stored one, `workspace` a live one.

    `resources` replace remote mounts, of which a revision has only the configuration.
    """

    protocol: ClassVar[str] = PROTOCOL
    cachable = False  # a live workspace changes; a stored one is cheap to open

    def __init__(
        self,
        name: str | None = None,
        revision: str | None = None,
        *,
        workspace: Workspace | None = None,
        store: str | Store | None = None,
        resources: Mapping[str, Resource] | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(asynchronous=asynchronous, loop=loop, **options)
        if (workspace is None) is (name is None):
            raise RametError(
                "invalid_argument", "need exactly one of workspace= and name=",
                "pass workspace=..., or name=... for one of a store (ramet://NAME@REVISION/path)",
            )  # fmt: skip
        self._tree: Resource | None = None if workspace is None else workspace.fs
        self._name, self._revision = name, revision
        self._store, self._resources = store, resources
        self._opening: asyncio.Lock | None = None

    # ------------------------------------------------------------------------------------------------ names

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        """Return the path inside the workspace; `_get_kwargs_from_urls` parses `ramet://name@rev` before it."""
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = os.fspath(path)
        if text.startswith(PROTOCOL + "://"):
            text = "/" + text[len(PROTOCOL) + 3 :].partition("/")[2]
        return "/" + text.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        if not path.startswith(PROTOCOL + "://"):
            return {}
        place = path[len(PROTOCOL) + 3 :].partition("/")[0]
        name, _, revision = place.partition("@")
        return {"name": name, "revision": revision or None} if name else {}

    def unstrip_protocol(self, name: str) -> str:
        if self._name is None:
            return str(super().unstrip_protocol(name))
        where = self._name if self._revision is None else f"{self._name}@{self._revision}"
        return f"{PROTOCOL}://{where}{self._strip_protocol(name)}"

    async def _fs(self) -> Any:
        """Return the live workspace's tree, or the revision's, opened on first use."""
        if self._tree is None:
            if self._opening is None:
                self._opening = asyncio.Lock()
            async with self._opening:
                if self._tree is None:
                    store = self._store if isinstance(self._store, Store) else _store_at(self._store)
                    opening = store.open(str(self._name), self._revision, readonly=True, resources=self._resources)
                    self._tree = (await opening.__aenter__()).fs
        return self._tree

    def _changing(self, path: str) -> None:
        if self._name is not None:
            raise fail(errno.EROFS, path, "Read-only file system: revisions are immutable")

    @staticmethod
    def _at(path: str) -> Path:
        return parse(path)

    # --------------------------------------------------------------------------------------------- reading

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        where = self._strip_protocol(path)
        fs = await self._fs()
        stat = await fs.stat(self._at(where))
        if stat.kind is Kind.LINK:
            try:
                return {**_entry(where, await fs.stat(self._at(where), follow=True)), "islink": True,
                        "destination": stat.target}  # fmt: skip
            except OSError:
                pass  # a dangling link: report the link itself
        return _entry(where, stat)

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        where = self._strip_protocol(path)
        info = await self._info(where)
        if info["type"] != "directory":
            return [info] if detail else [where]
        fs = await self._fs()
        top = "" if where == ROOT else where
        found = [_entry(f"{top}/{name}", stat) for name, stat in await ops.scan_sorted(fs, self._at(where))]
        return found if detail else [entry["name"] for entry in found]

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        where = self._strip_protocol(path)
        if (start or 0) < 0 or (end or 0) < 0:
            size = (await self._info(where))["size"] or 0
            start, end = (n + size if n is not None and n < 0 else n for n in (start, end))
        fs = await self._fs()
        return b"".join([block async for block in fs.read(self._at(where), start or 0, end)])

    async def _get_file(self, rpath: str, lpath: Any, callback: Any = DEFAULT_CALLBACK, **_: Any) -> None:
        where = self._strip_protocol(rpath)
        if (info := await self._info(where))["type"] == "directory":
            os.makedirs(lpath, exist_ok=True)
            return
        callback.set_size(info["size"])
        fs = await self._fs()
        target = lpath if hasattr(lpath, "write") else _open_local(lpath, "wb")
        try:
            async with closing(fs.read(self._at(where))) as blocks:
                async for block in blocks:
                    target.write(block)
                    callback.relative_update(len(block))
        finally:
            if target is not lpath:
                target.close()

    # -------------------------------------------------------------------------------------------- writing

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        await self._store_at(path, bytes(value), How.CREATE if mode == "create" else How.REPLACE)

    async def _put_file(
        self, lpath: str, rpath: str, mode: str = "overwrite", callback: Any = DEFAULT_CALLBACK, **_: Any
    ) -> None:
        size = _local_size(lpath)
        if size is None:
            await self._makedirs(rpath, exist_ok=True)
            return
        callback.set_size(size)
        with _open_local(lpath, "rb") as source:
            await self._store_at(rpath, _blocks(source, callback), How.CREATE if mode == "create" else How.REPLACE)

    async def _store_at(self, path: str, data: bytes | AsyncIterator[bytes], how: How) -> None:
        where = self._at(self._strip_protocol(path))
        self._changing(where)
        fs = await self._fs()
        await ops.make_dirs(fs, where.parent)
        await fs.write(where, data, how)

    async def _rm_file(self, path: str, **_: Any) -> None:
        where = self._at(self._strip_protocol(path))
        self._changing(where)
        await (await self._fs()).remove(where)

    async def _rm(
        self, path: Any, recursive: bool = False, batch_size: Any = None, maxdepth: Any = None, **_: Any
    ) -> None:
        for one in reversed(await self._expand_path(path, recursive=recursive, maxdepth=maxdepth)):
            await self._rm_file(one)

    async def _rmdir(self, path: str) -> None:
        await self._rm_file(path)

    rmdir = sync_wrapper(_rmdir)  # fsspec creates no sync version of this one

    async def _cp_file(self, path1: str, path2: str, **_: Any) -> None:
        source, target = self._at(self._strip_protocol(path1)), self._at(self._strip_protocol(path2))
        self._changing(target)
        fs = await self._fs()
        if (await fs.stat(source, follow=True)).is_dir:
            await ops.make_dirs(fs, target)
            return
        await ops.make_dirs(fs, target.parent)
        await fs.copy(source, target)

    async def _mv_file(self, path1: str, path2: str) -> None:
        source, target = self._at(self._strip_protocol(path1)), self._at(self._strip_protocol(path2))
        self._changing(target)
        fs = await self._fs()
        await ops.make_dirs(fs, target.parent)
        try:
            await fs.rename(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            await fs.copy(source, target)
            await fs.remove(source)

    async def _mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        where = self._at(self._strip_protocol(path))
        self._changing(where)
        fs = await self._fs()
        if create_parents:
            await ops.make_dirs(fs, where.parent)
        await fs.mkdir(where)

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        where = self._at(self._strip_protocol(path))
        self._changing(where)
        fs = await self._fs()
        if not exist_ok and await ops.exists(fs, where):
            raise fail(errno.EEXIST, where)
        await ops.make_dirs(fs, where)

    # ----------------------------------------------------------------------------------------------- files

    def _open(
        self, path: str, mode: str = "rb", block_size: int | None = None, autocommit: bool = True,
        cache_options: Any = None, **options: Any,
    ) -> RametFile:  # fmt: skip
        if mode != "rb":
            self._changing(path)
        if mode == "xb" and sync(self.loop, self._exists, path):
            raise fail(errno.EEXIST, path)
        return RametFile(self, path, mode, block_size or BLOCK, autocommit, cache_options=cache_options, **options)

    def created(self, path: str) -> Any:
        return self.modified(path)

    def modified(self, path: str) -> Any:
        from datetime import UTC, datetime

        found = self.info(path).get("mtime")
        if found is None:
            raise NotImplementedError(f"the modification time of {path} is unknown")
        return datetime.fromtimestamp(found, UTC)

    def ukey(self, path: str) -> str:
        """Return a token that changes with the content: the version if there is one."""
        info = self.info(path)
        return str(info.get("version") or (info["size"], info.get("mtime")))


class RametFile(AbstractBufferedFile):  # type: ignore[misc]
    """An open file. Reads fetch ranges; writes are spooled to a temporary file and stored on close."""

    def __init__(
        self, fs: RametFileSystem, path: str, mode: str, block_size: int, autocommit: bool, **options: Any
    ) -> None:
        self._gathered = tempfile.SpooledTemporaryFile(SPOOLED) if mode != "rb" else None
        if mode == "ab" and self._gathered is not None and fs.exists(path):
            self._gathered.write(fs.cat_file(path))
        super().__init__(fs, path, mode, block_size, autocommit, **options)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(sync(self.fs.loop, self.fs._cat_file, self.path, start, end))

    def _initiate_upload(self) -> None:
        """Do nothing: writes become visible on close."""

    def _upload_chunk(self, final: bool = False) -> bool:
        assert self._gathered is not None
        self._gathered.write(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        assert self._gathered is not None
        self._gathered.seek(0)
        how = How.CREATE if self.mode == "xb" else How.REPLACE
        try:
            sync(self.fs.loop, self.fs._store_at, self.path, _blocks(self._gathered, DEFAULT_CALLBACK), how)
        finally:
            self._gathered.close()

    def discard(self) -> None:
        if self._gathered is not None:
            self._gathered.close()


def _entry(path: str, stat: Stat) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": path, "size": 0 if stat.kind is Kind.DIR else stat.size,
                             "type": TYPES.get(stat.kind, "other")}  # fmt: skip
    if stat.mtime is not None:
        entry["mtime"] = stat.mtime
    if stat.mode is not None:
        entry["mode"] = stat.mode
    if stat.version is not None:
        entry["version"] = stat.version
    if stat.target is not None:
        entry.update(islink=True, destination=stat.target)
    return entry


async def _blocks(source: io.IOBase | Any, callback: Any) -> AsyncIterator[bytes]:
    while block := source.read(BLOCK):
        callback.relative_update(len(block))
        yield block


def _local_size(path: str) -> int | None:
    """Return the size of a local file; None for a directory."""
    return None if os.path.isdir(path) else os.path.getsize(path)


def _open_local(path: str, mode: str) -> Any:
    """Read a local file; blocking is fine on fsspec's own thread."""
    return open(path, mode)


def _store_at(where: str | None) -> Store:
    """Open the store at an address, or the one in the environment, which also names its key."""
    key = "env:RAMET_KEY" if os.environ.get("RAMET_KEY") else None
    return Store(where or os.environ.get("RAMET_HOME", "~/.ramet"), key=key)
