"""`Objects`: the object storage interface of a store, with a directory, memory and obstore behind it.

- An object appears whole or not at all.
- `create` succeeds for exactly one of many callers.
- What `put` or `create` has returned from survives a crash of this process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypedDict, Unpack

from ramet.core.errors import RametError, missing_extra

TEMPORARY: Final = ".tmp-"


class Objects(Protocol):
    def get(self, key: str) -> bytes:
        """Return the whole object; KeyError when there is none."""
        ...

    def get_range(self, key: str, start: int, size: int) -> bytes: ...

    def put(self, key: str, data: bytes) -> None: ...

    def create(self, key: str, data: bytes) -> bool:
        """Create an object; False when the key exists, which is then unchanged."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; a missing one is no error."""
        ...

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        """Yield the keys below a prefix that sort after `after`, in order."""
        ...


class ObjectWriter(Protocol):
    """Writes one object in pieces; the object is invisible until `name` publishes it."""

    def write(self, data: bytes) -> None: ...

    def name(self, key: str) -> None:
        """Publish the object under a key, as durable as `put`."""
        ...

    def drop(self) -> None:
        """Discard the object; does nothing once it is published."""
        ...


class MemoryObjects:
    """Objects in memory, for tests and temporary stores."""

    local: str | None = None
    remote = False

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def get(self, key: str) -> bytes:
        return self._objects[key]

    def get_range(self, key: str, start: int, size: int) -> bytes:
        return self._objects[key][start : start + size]

    def put(self, key: str, data: bytes) -> None:
        self._objects[key] = data

    def create(self, key: str, data: bytes) -> bool:
        return self._objects.setdefault(key, data) is data

    def delete(self, key: str) -> None:
        self._objects.pop(key, None)

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        there = list(self._objects)  # a copy: other threads write concurrently
        yield from sorted(key for key in there if key.startswith(prefix) and key > after)


class DirectoryObjects:
    """Objects as files. Writes go to a temporary name, are synced, then renamed or linked. Deletions are synced too:
    what a later deletion relies on does not come back.

    The directory is created by the first write, for its owner only: opening a missing store leaves nothing behind.
    """

    def __init__(self, root: str, *, sync: bool = True) -> None:
        self.root = os.path.abspath(os.path.expanduser(root))
        self._sync = sync
        self._made: set[str] = set()
        if os.path.lexists(self.root) and not os.path.isdir(
            self.root
        ):  # in this order: another process may be creating it
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), self.root)
        self.local: str | None = f"{self.root}/local"
        """Directory for caches, which can be rebuilt at any time and never hold objects."""
        self.remote = False

    def _path(self, key: str) -> str:
        return f"{self.root}/{key}"

    def get(self, key: str) -> bytes:
        try:
            with open(self._path(key), "rb", buffering=0) as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            raise KeyError(key) from None

    def get_range(self, key: str, start: int, size: int) -> bytes:
        try:
            fd = os.open(self._path(key), os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise KeyError(key) from None
        try:
            return os.pread(fd, size, start)
        finally:
            os.close(fd)

    def put(self, key: str, data: bytes) -> None:
        temporary = self._write_temporary(key, data)
        os.rename(temporary, self._path(key))
        self._sync_parent(key)

    def adopt(self, temporary: str, fd: int, key: str) -> None:
        """Publish a written temporary file under a key."""
        if self._sync:
            os.fdatasync(fd)
        os.rename(temporary, self._path(key))
        self._sync_parent(key)

    def put_unsynced(self, key: str, data: bytes) -> None:
        """As `put` without fsync: survives a crash of the process, not of the machine."""
        os.rename(self._write_temporary(key, data, sync=False), self._path(key))

    def create(self, key: str, data: bytes) -> bool:
        temporary = self._write_temporary(key, data)
        try:
            os.link(temporary, self._path(key))
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        self._sync_parent(key)
        return True

    def open_writer(self, folder: str, head: bytes) -> ObjectWriter:
        """Start writing an object in a folder piece by piece, in bounded memory; it will begin with `head`."""
        return _FileWriter(self, self._open_temporary(self._path(folder)))

    def _open_temporary(self, folder: str) -> tuple[str, int]:
        """Create a temporary file in a folder, open for writing."""
        if folder not in self._made:
            self._make(folder)
            self._made.add(folder)
        temporary = f"{folder}/{TEMPORARY}{os.urandom(8).hex()}"
        return temporary, os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def _write_temporary(self, key: str, data: bytes, sync: bool = True) -> str:
        temporary, fd = self._open_temporary(os.path.dirname(self._path(key)))
        try:
            _write(fd, data)
            if sync and self._sync:
                os.fdatasync(fd)
        except BaseException:
            os.unlink(temporary)
            raise
        finally:
            os.close(fd)
        return temporary

    def _make(self, folder: str) -> None:
        """Create a directory, and sync its parent."""
        if os.path.isdir(folder):
            return
        above = os.path.dirname(folder)
        self._make(above)
        mode = 0o700 if folder == self.root or folder.startswith(self.root + "/") else 0o777
        with suppress(FileExistsError):  # another writer created it first and may not have synced it yet
            os.mkdir(folder, mode)
        self._sync_dir(above)

    def _sync_parent(self, key: str) -> None:
        self._sync_dir(os.path.dirname(self._path(key)))

    def _sync_dir(self, folder: str) -> None:
        if not self._sync:
            return
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def delete(self, key: str) -> None:
        if self._unlink(key):
            self._sync_parent(key)

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete many objects, in any order, with one sync for each directory."""
        gone = {os.path.dirname(key): key for key in keys if self._unlink(key)}
        for key in gone.values():
            self._sync_parent(key)

    def delete_unsynced(self, key: str) -> None:
        """As `delete` without fsync: a loss of power may bring the object back."""
        self._unlink(key)

    def _unlink(self, key: str) -> bool:
        try:
            os.unlink(self._path(key))
        except FileNotFoundError:
            return False
        return True

    def clean(self, older: float) -> int:
        """Remove temporary files of dead writers that are `older` than this many seconds."""
        limit, gone = time.time() - older, 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                path = f"{folder}/{name}"
                try:
                    if name.startswith(TEMPORARY) and os.stat(path).st_mtime < limit:
                        os.unlink(path)
                        gone += 1
                except FileNotFoundError:
                    continue  # its writer has published it
        return gone

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        folder, _, start = prefix.rpartition("/")
        yield from self._walk(folder, start, after)

    def _walk(self, folder: str, start: str, after: str) -> Iterator[str]:
        top = self._path(folder) if folder else self.root
        below = f"{folder}/" if folder else ""
        entries = {one.name: one for one in _entries(top) if one.name.startswith(start)}
        for name in sorted(name for name in entries if f"{below}{name}/\U0010ffff" > after):
            if name.startswith(TEMPORARY):
                continue
            key = below + name
            if entries[name].is_dir():
                yield from self._walk(key, "", after)
            elif key > after:
                yield key

    def folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders below a prefix that hold objects, each without what may be below it."""
        above, _, start = prefix.rpartition("/")
        for entry in _entries(self._path(above) if above else self.root):
            folder = f"{above}/{entry.name}" if above else entry.name
            if not entry.name.startswith(start) or not entry.is_dir():
                continue
            if any(not one.name.startswith(TEMPORARY) and one.is_file() for one in _entries(self._path(folder))):
                yield folder
            else:
                yield from self.folders(f"{folder}/")


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a directory, in any order; none where there is no directory."""
    try:
        with os.scandir(folder) as found:
            yield from found
    except (FileNotFoundError, NotADirectoryError):
        return


class _FileWriter:
    def __init__(self, objects: DirectoryObjects, begun: tuple[str, int]) -> None:
        self._objects = objects
        self._temporary, self._fd = begun

    def write(self, data: bytes) -> None:
        _write(self._fd, data)

    def name(self, key: str) -> None:
        self._objects.adopt(self._temporary, self._fd, key)
        self._fd = self._close()

    def drop(self) -> None:
        if self._fd >= 0:
            self._fd = self._close()
            with suppress(FileNotFoundError):  # published before the failure
                os.unlink(self._temporary)

    __del__ = drop  # an abandoned writer leaves no file behind

    def _close(self) -> int:
        os.close(self._fd)
        return -1


def _write(fd: int, data: bytes) -> None:
    """Write all bytes: one write call may take only a part."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class ObstoreObjects:
    """Objects of any service that obstore supports: S3 and its family, GCS, Azure."""

    def __init__(self, store: Any, prefix: str = "", local: str | None = None) -> None:
        self._store = store
        self._prefix = prefix.strip("/") + "/" if prefix.strip("/") else ""
        self.local = local
        self.remote = True

    def get(self, key: str) -> bytes:
        import obstore

        try:
            return bytes(obstore.get(self._store, self._prefix + key).bytes())
        except FileNotFoundError:
            raise KeyError(key) from None

    def get_range(self, key: str, start: int, size: int) -> bytes:
        import obstore

        try:
            return bytes(obstore.get_range(self._store, self._prefix + key, start=start, length=size))
        except FileNotFoundError:
            raise KeyError(key) from None

    def put(self, key: str, data: bytes) -> None:
        import obstore

        obstore.put(self._store, self._prefix + key, data)

    def create(self, key: str, data: bytes) -> bool:
        import obstore
        from obstore.exceptions import AlreadyExistsError

        try:
            obstore.put(self._store, self._prefix + key, data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def delete(self, key: str) -> None:
        import obstore

        try:
            obstore.delete(self._store, self._prefix + key)
        except FileNotFoundError:
            return

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete many objects with few requests, in any order."""
        import obstore

        try:
            obstore.delete(self._store, [self._prefix + key for key in keys])
        except FileNotFoundError:
            for key in keys:
                self.delete(key)

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        import obstore

        offset = self._prefix + after if after else None
        keys: list[str] = []
        for batch in obstore.list(self._store, self._prefix + prefix, offset=offset):
            keys.extend(meta["path"] for meta in batch)
        for key in sorted(keys):
            yield key[len(self._prefix) :]


def delete_all(objects: Objects, keys: Sequence[str]) -> None:
    """Delete many objects, in any order."""
    at_once = getattr(objects, "delete_all", None)
    if at_once is not None and len(keys) > 1:
        at_once(keys)
        return
    for key in keys:
        objects.delete(key)


class ObjectKeywords(TypedDict, total=False):
    """How an object store is reached, beyond its URL and the environment. A path and memory take none of these."""

    cache: str
    """The directory of this machine that keeps objects; by default one per store below the user's cache directory."""
    endpoint: str
    region: str
    access_key_id: str
    secret_access_key: str
    session_token: str
    virtual_hosted_style_request: bool
    skip_signature: bool
    config: Mapping[str, Any]
    """Any other setting of obstore's S3, GCS and Azure stores."""
    client_options: Mapping[str, Any]
    retry_options: Mapping[str, Any]
    credential_provider: Callable[[], Any]


def open_objects(url: str, **options: Unpack[ObjectKeywords]) -> Objects:
    """Open the objects at `memory:`, a path, or a URL that obstore understands (`s3://bucket/prefix`, `gs://`,
    `az://`)."""
    if unknown := sorted(set(options) - set(ObjectKeywords.__annotations__)):
        raise TypeError(f"got an unexpected keyword argument {unknown[0]!r}")
    if options and "://" not in url and not url.startswith("memory:"):
        raise RametError("invalid_argument", f"{', '.join(options)}: {url} is no object store", "Omit these options.")
    if url in ("memory:", "memory://"):
        return MemoryObjects()
    if "://" not in url:
        return DirectoryObjects(url)
    try:
        from obstore.store import from_url
    except ImportError:
        raise missing_extra("s3", f"a store at {url.split('://')[0]}://") from None
    cache = options.pop("cache", "") or _cache_folder(url)
    made: Any = from_url
    return ObstoreObjects(made(url, **options), local=cache)


def _cache_folder(url: str) -> str:
    """Return the cache directory of a remote store, one per store, below the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return f"{base}/ramet/{hashlib.sha256(url.encode()).hexdigest()[:24]}"


PROBE_AGE: Final = 3600.0
"""Seconds after which the process that wrote a probe is done with it, or dead."""


def prove_create(objects: Objects, clock: Callable[[], float] = time.time) -> None:
    """Refuse a server that ignores the condition of `create`: refs on it would lose updates."""
    key = f"probes/{int(clock()):020d}-{os.urandom(8).hex()}"
    try:
        if not objects.create(key, b"1") or objects.create(key, b"2") or objects.get(key) != b"1":
            raise RametError(
                "store_unsafe_refs",
                "the object store does not honour create-if-absent",
                "use another server, or keep the refs in PostgreSQL",
            )
    finally:
        objects.delete(key)


def dead_probes(objects: Objects, now: float) -> list[str]:
    """List the probes of dead processes. A younger one may be in use: removing it would make a sound server fail."""
    return [key for key in objects.list("probes/") if abs(now - _probed_at(key)) > PROBE_AGE]


def _probed_at(key: str) -> float:
    """Return when a probe was written, by its name; 0 when it does not tell."""
    stamp = key.removeprefix("probes/").partition("-")[0]
    return float(stamp) if len(stamp) == 20 and stamp.isdecimal() else 0.0
