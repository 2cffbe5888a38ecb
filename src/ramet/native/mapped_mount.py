"""Let the user of root's box own what a mounted host directory's owner owns, by an idmapped mount.

Root's boxes run as another user, who could not write to a directory of root. The kernel translates the owner at the
mount; on the disk nothing changes. A file system that cannot do that (overlayfs, NFS) is bound as it is.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from functools import cache
from typing import Final

from ramet.native.layout import Owner

_SYS_OPEN_TREE, _SYS_MOUNT_SETATTR = 428, 442
_CLONE, _CLOEXEC = 1, 0o2000000
_EMPTY_PATH, _RECURSIVE = 0x1000, 0x8000
_CURRENT: Final = -100  # AT_FDCWD
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _MAPPED = 0x1, 0x2, 0x4, 0x00100000
_IDS: Final = 65536
"""Ids on the disk that are translated; files of others have no owner."""
_UNSHARE: Final = (
    "import ctypes, sys\nfailed = ctypes.CDLL(None).unshare(0x10000000)\nprint(failed, flush=True)\nsys.stdin.read()\n"
)
_libc = ctypes.CDLL(None, use_errno=True)


def open_mapped(directory: str, owner: Owner, *, writable: bool) -> int:
    """Return a detached mount of a directory in which `owner` owns what its owner does; -1 where the kernel cannot."""
    found = os.stat(directory)
    try:
        namespace = _translation(found.st_uid, found.st_gid, owner)
    except OSError:
        return -1
    path = os.fsencode(directory)
    fd = _libc.syscall(_SYS_OPEN_TREE, _CURRENT, path, _CLONE | _CLOEXEC | _RECURSIVE)
    if fd < 0:
        return -1
    attributes = _MAPPED | _NO_SETUID | _NO_DEVICES | (0 if writable else _READ_ONLY)
    wanted = struct.pack("=QQQQ", attributes, 0, 0, namespace)
    if _libc.syscall(_SYS_MOUNT_SETATTR, fd, b"", _EMPTY_PATH | _RECURSIVE, wanted, len(wanted)) < 0:
        os.close(fd)
        return -1
    return int(fd)


@cache
def _translation(uid: int, gid: int, owner: Owner) -> int:
    """Return a user namespace that translates ids of the disk to those of the box's user; it stays open."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _UNSHARE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}, cwd="/"
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        if child.stdout.readline() != b"0\n":
            raise OSError("cannot make a user namespace")
        for name, here, there in (("uid_map", uid, owner.uid), ("gid_map", gid, owner.gid)):
            with open(f"/proc/{child.pid}/{name}", "w") as file:
                file.write(_ranges(here, there))
        return os.open(f"/proc/{child.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)


def _ranges(here: int, there: int) -> str:
    """Translate one id to the box's user, and the others to unused ids above it."""
    lines = [(here, there, 1)]
    if here:
        lines.append((0, there + 1, min(here, _IDS)))
    if here + 1 < _IDS:
        lines.append((here + 1, there + 1 + here, _IDS - here - 1))
    return "".join(f"{one[0]} {one[1]} {one[2]}\n" for one in lines)
