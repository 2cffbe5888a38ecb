"""`DiskCache`: file contents cached in a directory that processes share.

Rules that this file keeps:
- Nothing from the directory is trusted by age: it is used only after the backend confirmed its version, so another
  process can never make this one read something stale.
- Entries are keyed by what the resource is (its description), not by where it is mounted. A resource that cannot
  describe itself, or a content without a version, stays in memory.
- A file appears whole or not at all, and one that was damaged or cannot be read counts as absent.
- A directory that is full or gone costs speed, never a read.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path as LocalPath

from ramet.core.paths import Path
from ramet.core.resource import Described, Resource, extension
from ramet.layers.memory_cache import MIB, Entry, MemoryCache

SWEEP_EVERY = 64
"""Files stored between two looks at how much there is."""


@dataclass
class DiskCache(MemoryCache):
    """A `MemoryCache` whose contents are also kept in `directory`, bounded by `max_disk_bytes`."""

    directory: LocalPath = field(default_factory=LocalPath)
    max_disk_bytes: int = 4096 * MIB
    max_file_bytes: int = 32 * MIB
    """Bytes above which a content stays in memory: reading it from disk would block the event loop."""
    _identities: dict[Path, str] = field(default_factory=dict)
    _stored: int = SWEEP_EVERY - 1

    def __post_init__(self) -> None:
        self.directory = LocalPath(self.directory).expanduser()
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def claim(self, prefix: Path, resource: Resource) -> None:
        described = extension(resource, Described)  # type: ignore[type-abstract]
        if described is not None:
            description = described.describe()
            text = json.dumps([description.type, description.config], sort_keys=True, default=str)
            self._identities[prefix] = hashlib.sha256(text.encode()).hexdigest()

    def get(self, path: Path) -> Entry | None:
        found = super().get(path)
        if found is None and (file := self._file(path)) is not None:
            return _read(file)
        return found

    def put(self, path: Path, entry: Entry) -> None:
        super().put(path, entry)
        file = self._file(path)
        if file is None or entry.fingerprint is None or len(entry.data) > self.max_file_bytes:
            return
        if _fingerprint(file) == entry.fingerprint:
            return
        try:
            _write(file, entry)
            self._stored += 1
            if self._stored % SWEEP_EVERY == 0:
                self._sweep()
        except OSError:
            return  # the content is in memory; the next process will read it from the backend

    def forget(self, path: Path) -> None:
        super().forget(path)
        file = self._file(path)
        if file is not None:
            try:
                file.unlink(missing_ok=True)
            except OSError:
                return  # what stays is still checked by its version before anybody uses it

    def _file(self, path: Path) -> LocalPath | None:
        prefix = path
        while prefix not in self._identities:
            if len(prefix) <= 1:
                return None
            prefix = prefix.parent
        key = f"{self._identities[prefix]}\0{path.below(prefix)}".encode("utf-8", "surrogateescape")
        name = hashlib.sha256(key).hexdigest()
        return self.directory / name[:2] / name[2:]

    def _sweep(self) -> None:
        """Evict the least recently used files, including those of other processes."""
        files: list[tuple[float, int, str]] = []
        for folder in self.directory.iterdir():
            for entry in os.scandir(folder):
                try:
                    stat = entry.stat()
                except FileNotFoundError:
                    continue  # another process swept it
                files.append((stat.st_mtime, stat.st_size, entry.path))
        total = sum(size for _, size, _ in files)
        files.sort(reverse=True)
        while total > self.max_disk_bytes:
            _, size, name = files.pop()
            LocalPath(name).unlink(missing_ok=True)
            total -= size


def _write(file: LocalPath, entry: Entry) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    header = {"fingerprint": entry.fingerprint, "size": len(entry.data), "crc": zlib.crc32(entry.data)}
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(json.dumps(header).encode() + b"\n")
            out.write(entry.data)
        os.replace(temporary, file)
    except OSError:
        os.unlink(temporary)
        raise


def _read(file: LocalPath) -> Entry | None:
    """Return the stored content as an entry whose version is still to be confirmed."""
    try:
        with file.open("rb") as source:
            header = json.loads(source.readline())
            data = source.read()
        os.utime(file)
        if header["size"] != len(data) or header["crc"] != zlib.crc32(data):
            return None
        return Entry(data, str(header["fingerprint"]), 0.0, float("-inf"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _fingerprint(file: LocalPath) -> str | None:
    try:
        with file.open("rb") as source:
            found = json.loads(source.readline())["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) else None
