"""The messages of the kernel's FUSE protocol 7.31: numbers, layouts, and replies that are built in several places."""

from __future__ import annotations

import enum
import stat as modes
import struct
from typing import Final

from ramet.core.stat import Kind, Stat, default_mode

MAJOR: Final = 7
MINOR: Final = 31
"""What Linux 5.4 speaks; newer kernels lower themselves to it."""
LARGEST: Final = 1 << 20
"""Bytes of one write; as many pages as the kernel allows."""
PAGES: Final = LARGEST >> 12
BUFFER: Final = LARGEST + 4096
READAHEAD: Final = 512 * 1024
ROOT_NODE: Final = 1


class Op(enum.IntEnum):
    """The requests that are answered; the kernel learns from ENOSYS not to send the others again."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    RENAME2 = 45


class Init(enum.IntFlag):
    """What this server wants of the kernel."""

    ATOMIC_O_TRUNC = 1 << 3
    BIG_WRITES = 1 << 5
    AUTO_INVAL_DATA = 1 << 12
    PARALLEL_DIROPS = 1 << 18
    MAX_PAGES = 1 << 22


class Opened(enum.IntFlag):
    """How the kernel treats an open file."""

    DIRECT = 1
    """Ask for every read: the size is not known before."""
    NO_FLUSH = 32
    """Ask for nothing when a descriptor is closed."""


class Set(enum.IntFlag):
    """The attributes that a SETATTR changes."""

    MODE = 1
    UID = 2
    GID = 4
    SIZE = 8
    ATIME = 16
    MTIME = 32
    HANDLE = 64
    ATIME_NOW = 128
    MTIME_NOW = 256


HEADER: Final = struct.Struct("=IIQQIIII")
"""Length, opcode, number of the request, node, uid, gid, pid, padding."""
REPLY: Final = struct.Struct("=IiQ")
INIT_IN: Final = struct.Struct("=IIII")
INIT_OUT: Final = struct.Struct("=IIIIHHIIHHII24x")
ATTR: Final = struct.Struct("=QQQQQQIIIIIIIIII")
ENTRY: Final = struct.Struct("=QQQQII")
ATTR_VALID: Final = struct.Struct("=QII")
SETATTR_IN: Final = struct.Struct("=IIQQQQQQIIIIIIII")
OPEN_IN: Final = struct.Struct("=II")
CREATE_IN: Final = struct.Struct("=IIII")
OPEN_OUT: Final = struct.Struct("=QII")
READ_IN: Final = struct.Struct("=QQIIQII")
"""Also of WRITE, whose data follows."""
HANDLE_IN: Final = struct.Struct("=Q")
WRITE_OUT: Final = struct.Struct("=II")
RENAME_IN: Final = struct.Struct("=Q")
RENAME2_IN: Final = struct.Struct("=QII")
LINK_IN: Final = struct.Struct("=Q")
FORGET_IN: Final = struct.Struct("=Q")
BATCH_IN: Final = struct.Struct("=II")
FORGET_ONE: Final = struct.Struct("=QQ")
INTERRUPT_IN: Final = struct.Struct("=Q")
ACCESS_IN: Final = struct.Struct("=II")
MAKE_IN: Final = struct.Struct("=II")
"""Of MKDIR: mode and umask, before the name."""
MKNOD_IN: Final = struct.Struct("=IIII")
STATFS_OUT: Final = struct.Struct("=QQQQQIII28x")
DIRENT: Final = struct.Struct("=QQII")

NO_REPLACE: Final = 1
"""Flag of RENAME2."""
_KINDS: Final = {
    Kind.FILE: modes.S_IFREG,
    Kind.DIR: modes.S_IFDIR,
    Kind.LINK: modes.S_IFLNK,
    Kind.FIFO: modes.S_IFIFO,
    Kind.SOCKET: modes.S_IFSOCK,
    Kind.DEVICE: modes.S_IFCHR,
}
_BLOCK: Final = 512


def format_of(kind: Kind) -> int:
    """Return the file type bits of a kind."""
    return _KINDS[kind]


def pack_attr(stat: Stat, inode: int, uid: int, gid: int) -> bytes:
    """Return the `fuse_attr` of a file that belongs to this user."""
    size = stat.size or 0
    if stat.kind is Kind.LINK and stat.target is not None:
        size = len(stat.target.encode("utf-8", "surrogateescape"))
    mtime, mtime_ns = divmod(stat.mtime_ns or 0, 1_000_000_000)
    atime, atime_ns = divmod(stat.accessed_ns or 0, 1_000_000_000)
    mode = _KINDS[stat.kind] | (default_mode(stat.kind) if stat.mode is None else stat.mode)
    return ATTR.pack(
        inode, size, -(-size // _BLOCK), atime & _WHOLE, mtime & _WHOLE, mtime & _WHOLE, atime_ns, mtime_ns, mtime_ns,
        mode, 1 if stat.kind is Kind.DIR else stat.nlink or 1, uid, gid, 0, 4096, 0,
    )  # fmt: skip


_WHOLE: Final = (1 << 64) - 1
"""Times before 1970 are negative numbers of 64 bits."""


def pack_entry(node: int, attr: bytes) -> bytes:
    """Return a `fuse_entry_out` that the kernel asks for again each time: programs and commands share the tree."""
    return ENTRY.pack(node, 0, 0, 0, 0, 0) + attr


def pack_dirent(inode: int, offset: int, kind: int, name: bytes) -> bytes:
    """Return one entry of a directory; `offset` is where the next one is asked for."""
    return DIRENT.pack(inode, offset, len(name), kind >> 12) + name + bytes(-len(name) % 8)
