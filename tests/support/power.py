"""A disk that loses power: records what a process does to a directory, and makes the states that could be left of it.

The disk promises what POSIX does, and no more:

- Bytes of a file are there after `fsync` or `fdatasync` of it; before that they are lost, torn, zero or there.
- Names of a directory are there after `fsync` of the directory; before that any of its changes are lost or there, in
  any combination. A rename is lost or there as a whole.

Calls with `dir_fd` are not seen; a store makes none below its directory.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

DIRECTORY = -1
"""What a name stands for that is no file."""


@dataclass
class Recording:
    """What happened below a directory, in order: `(kind, ...)` rows, and marks of the test between them."""

    root: str
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    files: int = 0

    def mark(self, what: object) -> None:
        """Note that something was acknowledged."""
        self.rows.append(("mark", what))


@contextmanager
def recording(root: str) -> Iterator[Recording]:
    """Record every change below a directory that this process makes meanwhile."""
    found, lock = Recording(os.path.realpath(root)), threading.RLock()
    names: dict[str, int] = {}
    open_files: dict[int, int] = {}
    open_folders: dict[int, str] = {}
    real: dict[str, Callable[..., Any]] = {
        name: getattr(os, name)
        for name in ("open", "close", "write", "fsync", "fdatasync", "rename", "replace", "link", "unlink", "mkdir")
    }
    plain_open = builtins.open

    def inside(path: object) -> str | None:
        if not isinstance(path, str | os.PathLike):
            return None
        text = os.path.join(os.path.realpath(os.path.dirname(os.fspath(path))), os.path.basename(os.fspath(path)))
        return text if text == found.root or text.startswith(found.root + "/") else None

    def change(path: str, number: int | None) -> tuple[str, str, int | None]:
        return *os.path.split(path), number

    def new_file(path: str) -> int:
        found.files += 1
        names[path] = found.files
        found.rows.append(("names", [change(path, found.files)]))
        return found.files

    def open_(path: Any, flags: int, *args: Any, **options: Any) -> int:
        where = None if "dir_fd" in options else inside(path)
        with lock:
            fd: int = real["open"](path, flags, *args, **options)
            if where is not None and os.path.isdir(where):
                open_folders[fd] = where
            elif where is not None and flags & (os.O_WRONLY | os.O_RDWR):
                assert not flags & (os.O_APPEND | os.O_TRUNC), "appending is not modelled"
                open_files[fd] = new_file(where) if where not in names else names[where]
            return fd

    def close(fd: int) -> None:
        with lock:
            open_files.pop(fd, None)
            open_folders.pop(fd, None)
            real["close"](fd)

    def write(fd: int, data: Any) -> int:
        with lock:
            size: int = real["write"](fd, data)
            if fd in open_files:
                found.rows.append(("write", open_files[fd], bytes(data[:size])))
            return size

    def sync(fd: int) -> None:
        with lock:
            if fd in open_files:
                found.rows.append(("sync", open_files[fd]))
            elif fd in open_folders:
                found.rows.append(("sync names", open_folders[fd]))

    def rename(source: Any, target: Any, **options: Any) -> None:
        old, new = inside(source), inside(target)
        with lock:
            real["rename"](source, target, **options)
            if old is not None and new is not None and not options:
                number = names.pop(old)
                names[new] = number
                found.rows.append(("names", [change(old, None), change(new, number)]))

    def link(source: Any, target: Any, **options: Any) -> None:
        old, new = inside(source), inside(target)
        with lock:
            real["link"](source, target, **options)
            if old is not None and new is not None and not options:
                names[new] = names[old]
                found.rows.append(("names", [change(new, names[old])]))

    def unlink(path: Any, **options: Any) -> None:
        where = inside(path)
        with lock:
            real["unlink"](path, **options)
            if where is not None and not options:
                names.pop(where, None)
                found.rows.append(("names", [change(where, None)]))

    def mkdir(path: Any, *args: Any, **options: Any) -> None:
        where = inside(path)
        with lock:
            real["mkdir"](path, *args, **options)
            if where is not None and not options:
                found.rows.append(("names", [change(where, DIRECTORY)]))

    def open_stream(path: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        where = inside(path)
        if where is None or not set(mode) & set("wxa+"):
            return plain_open(path, mode, *args, **options)
        assert "a" not in mode and "+" not in mode, "appending is not modelled"
        with lock:
            stream = plain_open(path, mode, *args, **options)
            return _Stream(stream, where, new_file(where), found)

    patches: dict[str, Any] = {
        "open": open_, "close": close, "write": write, "fsync": sync, "fdatasync": sync, "rename": rename,
        "replace": rename, "link": link, "unlink": unlink, "remove": unlink, "mkdir": mkdir,
    }  # fmt: skip
    streams = mock.patch.object(builtins, "open", open_stream), mock.patch.object(io, "open", open_stream)
    with mock.patch.multiple(os, **patches), streams[0], streams[1]:
        yield found


class _Stream:
    """A file of `open`, whose bytes are written when it is closed, and are never synced."""

    def __init__(self, stream: Any, where: str, number: int, found: Recording) -> None:
        self._stream, self._where, self._number, self._found = stream, where, number, found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._stream.closed:
            self._stream.close()
            self._found.rows.append(("write", self._number, Path(self._where).read_bytes()))


@dataclass
class _File:
    synced: bytes = b""
    written: bytes = b""


@dataclass
class Disk:
    """The state of a disk after some rows of a recording: what is certain, and what is not."""

    root: str
    files: dict[int, _File] = field(default_factory=dict)
    names: dict[str, dict[str, int]] = field(default_factory=dict)
    """Names that are certain, by directory."""
    pending: list[list[tuple[str, str, int | None]]] = field(default_factory=list)
    """Changes of names that are not."""
    marks: list[Any] = field(default_factory=list)

    def apply(self, row: tuple[Any, ...]) -> None:
        if row[0] == "mark":
            self.marks.append(row[1])
        elif row[0] == "write":
            self.files.setdefault(row[1], _File()).written += row[2]
        elif row[0] == "sync":
            file = self.files.setdefault(row[1], _File())
            file.synced = file.written
        elif row[0] == "names":
            self.pending.append(row[1])
        else:
            certain = [changes for changes in self.pending if any(folder == row[1] for folder, *_ in changes)]
            self.pending = [changes for changes in self.pending if changes not in certain]
            for changes in certain:
                _rename(self.names, changes)

    def after_power_loss(self, target: Path, rng: random.Random) -> None:
        """Write a state that could be left to a directory."""
        names = {folder: dict(entries) for folder, entries in self.names.items()}
        luck = rng.choice((0.0, 0.3, 0.7, 1.0))
        for changes in self.pending:
            if rng.random() < luck:
                _rename(names, changes)
        target.mkdir()
        self._write(self.root, target, names, rng)

    def _write(self, folder: str, target: Path, names: dict[str, dict[str, int]], rng: random.Random) -> None:
        for name, number in names.get(folder, {}).items():
            if number == DIRECTORY:
                (target / name).mkdir(mode=0o700)
                self._write(f"{folder}/{name}", target / name, names, rng)
            else:
                (target / name).write_bytes(_left(self.files.get(number, _File()), rng))


def _rename(names: dict[str, dict[str, int]], changes: list[tuple[str, str, int | None]]) -> None:
    for folder, name, number in changes:
        entries = names.setdefault(folder, {})
        if number is None:
            entries.pop(name, None)
        else:
            entries[name] = number


def _left(file: _File, rng: random.Random) -> bytes:
    """Return what could be left of a file: of bytes that were not synced, none, some, zeros or all."""
    extra = file.written[len(file.synced) :]
    if not extra:
        return file.synced
    return file.synced + rng.choice((b"", extra[: rng.randrange(len(extra))], bytes(len(extra)), extra))
