"""Open paths below a directory descriptor without leaving it: no `..`, no symlink, no rename race.

One `openat2` call if the kernel has it, else a walk with `O_NOFOLLOW` per component.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat as modes
from functools import cache
from typing import Any, Final

from ramet.core.paths import Path

_SYS_OPENAT2: Final = 437
_RESOLVE: Final = 0x04 | 0x08  # RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH
_DIRECTORY: Final = os.O_DIRECTORY | os.O_PATH | os.O_CLOEXEC


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_syscall.restype = ctypes.c_long


@cache
def _how(flags: int, mode: int) -> Any:
    """The kernel only reads it, so one per combination is enough."""
    return ctypes.byref(_OpenHow(flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, _RESOLVE))


def _openat2(root: int, path: str, flags: int, mode: int) -> int:
    fd: int = _syscall(_SYS_OPENAT2, root, path.encode("utf-8", "surrogateescape"), _how(flags, mode), 24)
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd


def _walk(root: int, path: str, flags: int, mode: int) -> int:
    """The same for kernels without openat2: each component is opened on its own, links are refused."""
    *parents, name = path.split("/")
    here = os.dup(root)
    try:
        for part in parents:
            try:
                below = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            except NotADirectoryError:
                if modes.S_ISLNK(os.stat(part, dir_fd=here, follow_symlinks=False).st_mode):
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from None
                raise
            os.close(here)
            here = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=here)
    finally:
        os.close(here)


def _probe() -> bool:
    try:
        fd = os.open("/", _DIRECTORY)
    except OSError:
        return False
    try:
        os.close(_openat2(fd, ".", os.O_PATH, 0))
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


_open = _openat2 if _probe() else _walk


def open_beneath(root: int, path: Path, flags: int, mode: int = 0o666) -> int:
    """A descriptor for `path` seen from `root`. A link in it is ELOOP (with O_PATH a last link opens itself)."""
    return _open(root, path[1:] or ".", flags | os.O_NOFOLLOW, mode)


def open_parent(root: int, path: Path) -> tuple[int, str, bool]:
    """Descriptor of the directory that holds `path`, the last name, and whether the descriptor is to be closed."""
    cut = path.rfind("/")
    if cut == 0:
        return root, path[1:], False
    return _open(root, path[1:cut], _DIRECTORY | os.O_NOFOLLOW, 0), path[cut + 1 :], True
