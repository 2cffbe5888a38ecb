"""File tests of `test`, `[` and `[[ ]]`: what `-f`, `-x` or `-nt` asks of a file's status.

- The grammars around them differ and stay with their users: bash decides by the number of words before it looks at `!`,
  has `-v`, `-o` and `-R`, and reports in its own words; GNU's `test` knows none of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ramet.core.fs import FileSystem
from ramet.core.paths import Path
from ramet.core.stat import Kind, Stat, default_mode

NUMERIC: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
FILE_PAIRS: Final = frozenset(("-nt", "-ot", "-ef"))
OF_LINKS: Final = frozenset(("-h", "-L"))
"""Tests of a link itself: get its status without following it."""
_KINDS: Final = {
    "-b": None,  # all devices are character devices
    "-c": Kind.DEVICE,
    "-d": Kind.DIR,
    "-f": Kind.FILE,
    "-h": Kind.LINK,
    "-L": Kind.LINK,
    "-p": Kind.FIFO,
    "-S": Kind.SOCKET,
}
_BITS: Final = {"-r": 0o444, "-w": 0o222, "-x": 0o111, "-u": 0o4000, "-g": 0o2000, "-k": 0o1000}


def holds(op: str, stat: Stat, uid: int) -> bool:
    """Return whether a test of an existing file holds for a user."""
    if op in _KINDS:
        return stat.kind is _KINDS[op]
    if op == "-s":
        return stat.kind is Kind.DIR or (stat.kind is not Kind.DEVICE and (stat.size is None or stat.size > 0))
    if op in _BITS:
        if uid == 0 and op in ("-r", "-w"):
            return True
        return bool((default_mode(stat.kind) if stat.mode is None else stat.mode) & _BITS[op])
    if op == "-N":
        if stat.atime_ns is None:
            return stat.is_file and stat.size != 0  # written, and not known to be read since
        return (stat.mtime_ns or 0) > stat.atime_ns
    return True  # -a, -e, -G, -O


async def compare(fs: FileSystem, op: str, first: tuple[Path, Stat | None], second: tuple[Path, Stat | None]) -> bool:
    """Return whether one file is newer (`-nt`) or older (`-ot`) than another, or the same (`-ef`)."""
    (left, a), (right, b) = first, second
    if op == "-ef":
        if a is None or b is None:
            return False
        x, y = await fs.resolve(left), await fs.resolve(right)
        return x == y or (a.inode is not None and a.inode == b.inode and fs.mount_of(x) == fs.mount_of(y))
    if op == "-ot":
        a, b = b, a
    return a is not None and (b is None or (a.mtime_ns or 0) > (b.mtime_ns or 0))
