"""`Stat`: what is known about a path without reading it. None means unknown, never zero."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Kind(enum.Enum):
    FILE = "file"
    DIR = "dir"
    LINK = "link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"


class Stat(NamedTuple):
    """What is known about a path. A tuple, because a walk builds one per file."""

    kind: Kind
    size: int | None = None
    """Bytes that a full read yields; None for content rendered on read."""
    mtime_ns: int | None = None
    version: str | None = None
    """Etag, sha or sequence: equal versions promise equal bytes."""
    ttl: float | None = None
    """Seconds a cache may trust this answer; None is forever (until a write through us), 0 is never."""
    mode: int | None = None
    """Permission bits only (0o7777)."""
    target: str | None = None
    """Where a link points."""
    inode: int | None = None
    """Equal inodes on one resource are one file (hard links)."""
    nlink: int | None = None
    atime_ns: int | None = None
    """Access time, if it was set or the backend keeps it. Reading a file here does not change it."""

    @property
    def mtime(self) -> float | None:
        return None if self.mtime_ns is None else self.mtime_ns / 1e9

    @property
    def accessed_ns(self) -> int | None:
        """Return the access time to show: the modification time if no other is known."""
        return self.mtime_ns if self.atime_ns is None else self.atime_ns

    @property
    def is_dir(self) -> bool:
        return self.kind is Kind.DIR

    @property
    def is_file(self) -> bool:
        return self.kind is Kind.FILE

    @property
    def is_link(self) -> bool:
        return self.kind is Kind.LINK


class Attrs(NamedTuple):
    """What `setattr` changes; None leaves a field as it is."""

    mode: int | None = None
    mtime_ns: int | None = None
    size: int | None = None
    """Truncate, or grow with a hole."""
    follow: bool = True
    """Follow a link at the path. False sets the times of the link itself."""
    atime_ns: int | None = None
    """Access time. A resource that keeps none ignores it together with `mtime_ns`, and refuses it alone."""


def default_mode(kind: Kind) -> int:
    """The mode to show if a backend has none."""
    return 0o755 if kind is Kind.DIR else 0o777 if kind is Kind.LINK else 0o644
