"""Detached mounts: clone a directory, make a file system in memory, set attributes, attach it somewhere."""

from __future__ import annotations

import os
from ctypes import c_uint64

from .kernel import call, check, libc

SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_FSOPEN, SYS_FSCONFIG, SYS_FSMOUNT, SYS_OPENAT2, SYS_MOUNT_SETATTR = (
    428, 429, 430, 431, 432, 437, 442,
)  # fmt: skip
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, 0o2000000
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 0x4, 0x40
FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE = 1, 6
CLOEXEC = 1
"""Of fsopen and fsmount."""
RESOLVE_NO_SYMLINKS = 4
RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
"""Attributes of a mount; mount(2) has the same bits."""
CONFINED = NOSUID | NODEV | NOEXEC


def open_path(path: str, flags: int = os.O_PATH) -> int:
    """Open a path without following a link; ELOOP where there is one."""
    how = (c_uint64 * 3)(flags | os.O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS)
    return call(SYS_OPENAT2, AT_FDCWD, os.fsencode(path), how, 24)


def clone(fd: int, *, recursive: bool = False) -> int:
    """Return a detached clone of what a descriptor leads to."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0)
    return call(SYS_OPEN_TREE, fd, b"", flags)


def clone_path(path: str, *, recursive: bool = False) -> int:
    """Return a detached clone of what is at a path, links followed."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (AT_RECURSIVE if recursive else 0)
    return check(libc.syscall(SYS_OPEN_TREE, AT_FDCWD, os.fsencode(path), flags), f"open_tree {path}")


def attach(mount: int, target: int) -> None:
    """Attach a detached mount to what a descriptor leads to."""
    call(SYS_MOVE_MOUNT, mount, b"", target, b"", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)


def attach_at(mount: int, path: str) -> None:
    """Attach a detached mount to a path."""
    moved = libc.syscall(SYS_MOVE_MOUNT, mount, b"", AT_FDCWD, os.fsencode(path), MOVE_MOUNT_F_EMPTY_PATH)
    check(moved, f"mount {path}")


def set_attributes(mount: int, attributes: int) -> None:
    wanted = (c_uint64 * 4)(attributes, 0, 0, 0)
    call(SYS_MOUNT_SETATTR, mount, b"", AT_EMPTY_PATH, wanted, 32)


def new_tmpfs(mode: int) -> int:
    """Return a new empty file system in memory, which is not attached yet."""
    return new_mount(b"tmpfs", {b"mode": b"%o" % mode, b"size": b"256k", b"nr_inodes": b"4k"})


def new_mount(kind: bytes, options: dict[bytes, bytes]) -> int:
    """Return a new file system of a kind, which is not attached yet."""
    made = call(SYS_FSOPEN, kind, CLOEXEC)
    try:
        for key, value in options.items():
            call(SYS_FSCONFIG, made, FSCONFIG_SET_STRING, key, value, 0)
        call(SYS_FSCONFIG, made, FSCONFIG_CMD_CREATE, None, None, 0)
        return call(SYS_FSMOUNT, made, CLOEXEC, CONFINED)
    finally:
        os.close(made)
