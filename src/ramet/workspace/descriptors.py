"""Save and restore the open descriptors of a session as plain data.

The next call reopens them: files with their offset, which duplicates share; a copy of a standard stream becomes that of
the next call. Here-documents, and pipes without a writer, are saved with their remaining bytes. Other ends of pipes
cannot be saved.
"""

from __future__ import annotations

import errno
from typing import Any, Final

from ramet.core.errors import fail, reason
from ramet.core.fs import FileSystem, Open
from ramet.core.paths import decode, encode, parse
from ramet.core.stat import Kind
from ramet.core.streams import BytesReader, FileStream, Null, OpenDirectory
from ramet.shell.interp.process.descriptors import Description
from ramet.shell.interp.state.shell_state import ShellState as ShellState
from ramet.vfs.fifo import FifoStream
from ramet.vfs.open_files import DeviceStream, LocalStream, RemoteStream

STANDARD = 3
"""Descriptors below this number are new in every call."""
_FILES: Final = (LocalStream, RemoteStream)


def dump_descriptors(state: ShellState) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the saved descriptors, and the numbers of those that cannot be saved."""
    groups: dict[Description, list[int]] = {}
    for number, description in sorted(state.fds.items()):
        if number >= STANDARD:
            groups.setdefault(description, []).append(number)
    saved: list[dict[str, Any]] = []
    lost: list[int] = []
    for description, numbers in groups.items():
        if description.standard is not None:
            saved.append({"fds": numbers, "standard": description.standard})
        elif description.path and (how := _open_modes(description)):
            offset = description.stream.tell() if isinstance(description.stream, _FILES) else 0
            saved.append({"fds": numbers, "path": description.path, "how": how, "offset": offset})
        elif (reader := description.reader) is not None and (left := reader.left()) is not None:
            saved.append({"fds": numbers, "left": decode(left)})
        else:
            lost.extend(numbers)
    return saved, lost


def _open_modes(description: Description) -> list[str]:
    """Return the modes to reopen a named file with; empty when that would block or open something else."""
    stream = description.stream
    if isinstance(stream, _FILES):
        return [str(flag.name) for flag in (Open.READ, Open.WRITE, Open.APPEND) if flag in stream.how]
    both = [name for name, end in (("READ", description.reader), ("WRITE", description.writer)) if end is not None]
    if isinstance(stream, FifoStream):
        return both if len(both) == 2 else []
    return both if isinstance(stream, DeviceStream | Null | OpenDirectory) else []


def _is_standard(number: object) -> bool:
    return type(number) is int and 0 <= number < STANDARD


def check_descriptors(data: object) -> list[dict[str, Any]]:
    """Check saved descriptors from untrusted data; ValueError when they are malformed."""
    if not isinstance(data, list):
        raise ValueError("'descriptors' of a session is not a list")
    for item in data:
        if isinstance(item, dict) and (_is_standard(item.get("standard")) or isinstance(item.get("left"), str)):
            item = {"path": "/", "offset": 0, "how": ["READ"], "fds": item.get("fds")}
        if not (
            isinstance(item, dict)
            and isinstance(item.get("path"), str)
            and item["path"].startswith("/")
            and "\0" not in item["path"]
            and type(item.get("offset")) is int
            and 0 <= item["offset"] < 1 << 62
            and isinstance(item.get("how"), list)
            and item["how"]
            and all(name in ("READ", "WRITE", "APPEND") for name in item["how"])
            and isinstance(item.get("fds"), list)
            and item["fds"]
            and all(type(number) is int and STANDARD <= number < 1 << 20 for number in item["fds"])
        ):
            raise ValueError("a descriptor of a session is malformed")
    return data


async def reopen(state: ShellState, fs: FileSystem, saved: list[dict[str, Any]]) -> list[str]:
    """Reopen saved descriptors; returns a message for each failure."""
    problems: list[str] = []
    for item in saved:
        numbers = [number for number in item["fds"] if number not in state.fds]
        try:
            description = await _open(fs, item)
        except OSError as error:
            listed = ", ".join(map(str, item["fds"]))
            problems.append(f"descriptor {listed} could not be opened again: {item['path']}: {reason(error)}")
            continue
        description.refs = len(numbers)
        for number in numbers:
            state.fds[number] = description
    return problems


async def _open(fs: FileSystem, item: dict[str, Any]) -> Description:
    if "standard" in item:
        description = Description(Null(), lent=True)
        description.standard = item["standard"]
        return description
    if "left" in item:
        return Description(BytesReader(encode(item["left"])))
    how = Open(0)
    for name in item["how"]:
        how |= Open[name]
    reads, writes = bool(how & Open.READ), bool(how & Open.WRITE)
    stream: FileStream | OpenDirectory
    path = parse(item["path"])
    found = await fs.stat(path, follow=True)
    if found.is_dir and not writes:
        stream = OpenDirectory()
    elif found.kind is Kind.FIFO and not (reads and writes):
        raise fail(errno.ENXIO, item["path"])  # opening it would block until the other end is opened
    else:
        stream = await fs.open(path, how)
        if isinstance(stream, _FILES):
            stream.seek(item["offset"])
    return Description(stream, path=item["path"], reads=reads, writes=writes)
