"""`ImageRoot`: the directory of an image on the host, in which no link of the image leads out."""

from __future__ import annotations

import ctypes
import errno
import os
import stat as modes
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ramet.core.errors import RametError

_SYS_OPENAT2: Final = 437
_IN_ROOT: Final = 0x10 | 0x02  # RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
_MACHINES: Final = {62: "x86_64", 183: "aarch64", 243: "riscv64", 40: "arm", 3: "i386", 21: "ppc64le", 22: "s390x"}
"""e_machine of ELF files."""
SHELL: Final = "/bin/sh"

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)
_syscall.restype = ctypes.c_long


def open_in_root(root: int, path: str, flags: int) -> int:
    """Open a path as a process would whose root is this directory: links stay inside."""
    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, 0, _IN_ROOT)
    fd: int = _syscall(_SYS_OPENAT2, root, os.fsencode(path.strip("/") or "."), how, 24)
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd


@dataclass(frozen=True)
class ImageRoot:
    """The root directory of programs; `/` for the host's."""

    path: str
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that the image asks for."""
    key: str | None = None
    """Names the content of an image that Ramet has unpacked."""

    @property
    def is_host(self) -> bool:
        return self.path == "/"

    def has_directory(self, name: str) -> bool:
        """Whether a name at the top is a directory, and no link."""
        place = self.at(f"/{name}")
        return os.path.isdir(place) and not os.path.islink(place)

    def at(self, path: str) -> str:
        """Return where a path of the image is on the host; for names that are known to be no links."""
        return path if self.is_host else self.path + path

    def is_program(self, path: str) -> bool:
        """Whether a path of the image leads to a file that can be executed."""
        if self.is_host:
            return os.path.isfile(path) and os.access(path, os.X_OK)
        found = self.look(path)
        return found is not None and modes.S_ISREG(found.st_mode) and bool(found.st_mode & 0o111)

    def look(self, path: str) -> os.stat_result | None:
        """Describe what a path of the image leads to; None for nothing."""
        fd = self._open(path, os.O_PATH)
        if fd < 0:
            return None
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def names(self, folder: str) -> list[str]:
        """List a directory of the image; nothing where there is none."""
        if self.is_host:
            try:
                return os.listdir(folder)
            except OSError:
                return []
        fd = self._open(folder, os.O_RDONLY | os.O_DIRECTORY)
        if fd < 0:
            return []
        try:
            return os.listdir(fd)
        finally:
            os.close(fd)

    def _open(self, path: str, flags: int) -> int:
        try:
            root = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return -1
        try:
            return open_in_root(root, path, flags)
        except OSError:
            return -1
        finally:
            os.close(root)

    def check(self, name: str) -> None:
        """Raise RametError where no program of it could run."""
        if not self.is_program(SHELL):
            raise cannot_use(name, f"it has no {SHELL}", "Name the root of a Linux system with a shell.")
        fd = self._open(SHELL, os.O_RDONLY)
        if fd < 0:
            raise cannot_use(name, f"its {SHELL} cannot be read", "Make it readable for this user.")
        with open(fd, "rb") as file:
            head = file.read(20)
        here = os.uname().machine
        if head[:4] == b"\x7fELF" and len(head) == 20:
            order = ">" if head[5] == 2 else "<"
            number = struct.unpack(f"{order}H", head[18:20])[0]
            found = _MACHINES.get(number, f"machine {number}")
            if found != here:
                raise wrong_machine(name, [found])


def cannot_use(name: str, why: str, remedy: str) -> RametError:
    return RametError("native_unavailable", f"cannot use the image {name}: {why}", remedy)


def wrong_machine(name: str, found: list[str]) -> RametError:
    here = os.uname().machine
    return cannot_use(
        name, f"it is for {', '.join(found)}, and this machine is {here}", f"Get the image for {here} (--platform)."
    )


def failed(name: str, error: OSError) -> RametError:
    """Say why an image could not be read or unpacked."""
    if error.errno == errno.ENOSPC:
        return cannot_use(name, "the disk is full", "Make room, or give Native(directory=...) a larger file system.")
    return cannot_use(name, error.strerror or str(error), "Name a directory or a tar that this user can read.")
