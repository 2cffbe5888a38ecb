"""Open descriptors of a session as plain data: what was open, how, and where it stood.

Before its next call they are opened again: files with their offset, and duplicates share it. A pipe, or
a stream that somebody lent, cannot be carried.
"""

from __future__ import annotations

from typing import Any

from ramet.core.errors import reason
from ramet.core.fs import FileSystem, Open
from ramet.core.paths import parse
from ramet.shell.interp.descriptors import Description
from ramet.shell.interp.session import Session as ShellState
from ramet.vfs.streams import LocalStream, RemoteStream

STANDARD = 3
"""Descriptors below this one are given anew with every call."""


def dump_descriptors(state: ShellState) -> tuple[list[dict[str, Any]], list[int]]:
    """The open files beyond the standard streams, and the numbers of what is open but cannot be carried."""
    groups: dict[Description, list[int]] = {}
    for number, description in sorted(state.fds.items()):
        if number >= STANDARD:
            groups.setdefault(description, []).append(number)
    saved: list[dict[str, Any]] = []
    lost: list[int] = []
    for description, numbers in groups.items():
        stream = description.stream
        if isinstance(stream, LocalStream | RemoteStream) and description.path:
            how = [flag.name for flag in (Open.READ, Open.WRITE, Open.APPEND) if flag in stream.how]
            saved.append({"fds": numbers, "path": description.path, "how": how, "offset": stream.tell()})
        else:
            lost.extend(numbers)
    return saved, lost


def check_descriptors(data: object) -> list[dict[str, Any]]:
    """Dumped descriptors from untrusted data: a ValueError when they are malformed."""
    if not isinstance(data, list):
        raise ValueError("'descriptors' of a session is not a list")
    for item in data:
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
    """Open what was open; texts about what could not be."""
    problems: list[str] = []
    for item in saved:
        how = Open(0)
        for name in item["how"]:
            how |= Open[name]
        numbers = [number for number in item["fds"] if number not in state.fds]
        try:
            stream = await fs.open(parse(item["path"]), how)
        except OSError as error:
            listed = ", ".join(map(str, item["fds"]))
            problems.append(f"descriptor {listed} could not be opened again: {item['path']}: {reason(error)}")
            continue
        stream.seek(item["offset"])
        description = Description(stream, path=item["path"], reads=bool(how & Open.READ), writes=bool(how & Open.WRITE))
        description.refs = len(numbers)
        for number in numbers:
            state.fds[number] = description
    return problems
