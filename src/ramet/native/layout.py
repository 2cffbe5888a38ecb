"""The directories of a box on the host: system layer, trees (lower, upper, work), and their owner.

/var/tmp/ramet-native-UID/BOX/          mode 0710, group of the box's user
    system/                             lowest layer of `/`: mount points and links into /usr
    etc/                                the box's /etc
    trees/N/{lower,upper,work}          one overlay per mount that was in memory
"""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ramet.core.errors import RametError

BOX_USER: Final = 1_900_000_000
"""Uid and gid of root's boxes on the host: above every range that distributions and systemd hand out."""
INSIDE: Final = 1000
"""Uid and gid that programs see."""
SYSTEM_LINKS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
SYSTEM_DIRECTORIES: Final = ("usr", "proc", "dev", "etc", "sys")
SYSTEM_NAMES: Final = frozenset((*SYSTEM_LINKS, *SYSTEM_DIRECTORIES))
"""Names in `/` that belong to the box and are no part of the workspace."""
ETC_NAMES: Final = (
    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "magic", "nsswitch.conf",
    "protocols", "services", "ssl/certs", "ca-certificates", "pki/tls/certs", "os-release", "debian_version",
    "terminfo", "inputrc", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "python3", "python3.11",
    "python3.12", "python3.13", "perl", "login.defs",
)  # fmt: skip
"""What programs need of the host's /etc; nothing in it is a secret."""


@dataclass(frozen=True)
class Owner:
    """The user of the box on the host."""

    uid: int
    gid: int

    @property
    def foreign(self) -> bool:
        """Whether files must be handed over: Ramet runs as root, its box never does."""
        return self.uid != os.geteuid()


_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def file_owner(owner: Owner) -> Iterator[None]:
    """Create files and pipes as the box's user, in this thread: the box could not open those of root."""
    if not owner.foreign:
        yield
        return
    gid, uid = _libc.setfsgid(owner.gid), _libc.setfsuid(owner.uid)
    try:
        yield
    finally:
        _libc.setfsuid(uid)
        _libc.setfsgid(gid)


def box_owner() -> Owner:
    return Owner(BOX_USER, BOX_USER) if os.geteuid() == 0 else Owner(os.geteuid(), os.getegid())


@dataclass(frozen=True)
class TreePlace:
    """The directories of one overlay."""

    folder: str

    @property
    def lower(self) -> str:
        return f"{self.folder}/lower"

    @property
    def upper(self) -> str:
        return f"{self.folder}/upper"

    def has(self, name: str) -> bool:
        """Whether a name at the top belongs to the workspace, not to the box."""
        return os.path.lexists(f"{self.lower}/{name}") or os.path.lexists(f"{self.upper}/{name}")

    @property
    def work(self) -> str:
        return f"{self.folder}/work"


class Layout:
    """The directory of one box. `remove` deletes it."""

    def __init__(self, base: str | None = None) -> None:
        self.owner = box_owner()
        self.base = base or f"/var/tmp/ramet-native-{os.geteuid()}"
        _make_base(self.base)
        self.root = f"{self.base}/{secrets.token_hex(8)}"
        os.mkdir(self.root, 0o700)
        if self.owner.foreign:
            os.chown(self.root, -1, self.owner.gid)
            os.chmod(self.root, 0o710)
        self._count = 0
        os.mkdir(f"{self.root}/trees", 0o755)
        self.system, self.etc = f"{self.root}/system", f"{self.root}/etc"
        _make_system(self.system)
        _make_etc(self.etc)

    def add_tree(self) -> TreePlace:
        place = TreePlace(f"{self.root}/trees/{self._count}")
        self._count += 1
        os.mkdir(place.folder, 0o755)
        for folder in (place.lower, place.upper, place.work):
            os.mkdir(folder, 0o755)
            self.give(folder)
        return place

    def give(self, path: str) -> None:
        """Make the box's user the owner of a path."""
        if self.owner.foreign:
            os.chown(path, self.owner.uid, self.owner.gid, follow_symlinks=False)

    def remove(self) -> None:
        remove_layout(self.root)


def remove_layout(root: str) -> None:
    """Delete the directory of a box; the kernel and programs leave directories without permissions."""
    for folder, names, _ in os.walk(root):
        for name in names:
            mode = os.lstat(f"{folder}/{name}").st_mode
            if modes.S_ISDIR(mode) and mode & 0o700 != 0o700:
                os.chmod(f"{folder}/{name}", 0o700)
    shutil.rmtree(root)


def _make_base(base: str) -> None:
    try:
        os.mkdir(base, 0o711)
    except FileExistsError:
        pass
    except OSError as error:
        raise RametError(
            "native_unavailable", f"cannot create {base}: {error.strerror}", "Give Native(directory=...) a place."
        ) from None
    found = os.lstat(base)
    if not modes.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise RametError(
            "native_unavailable", f"cannot use {base}: it belongs to another user", "Give Native(directory=...)."
        )
    if found.st_mode & 0o777 != 0o711:
        os.chmod(base, 0o711)


def _make_system(folder: str) -> None:
    os.mkdir(folder, 0o755)
    for name in SYSTEM_DIRECTORIES:
        os.mkdir(f"{folder}/{name}", 0o755)
    for name in SYSTEM_LINKS:
        try:
            os.symlink(os.readlink(f"/{name}").lstrip("/"), f"{folder}/{name}")
        except OSError:
            if os.path.isdir(f"/{name}"):  # a system without merged /usr: bound by the box
                os.mkdir(f"{folder}/{name}", 0o755)


def _make_etc(folder: str) -> None:
    os.mkdir(folder, 0o755)
    for name in etc_binds():
        target = f"{folder}/{name}"
        os.makedirs(target if os.path.isdir(f"/etc/{name}") else os.path.dirname(target), exist_ok=True)
        if not os.path.isdir(target):
            open(target, "x").close()
    made = {
        "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:{INSIDE}:{INSIDE}::/home/user:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
        "group": f"root:x:0:\nuser:x:{INSIDE}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost ramet\n::1 localhost\n",
        "hostname": "ramet\n",
        "resolv.conf": "",
    }
    for name, text in made.items():
        with open(f"{folder}/{name}", "w") as file:
            file.write(text)


def etc_binds() -> list[str]:
    """Return what is bound from the host's /etc: what exists there and every user may read."""
    found = []
    for name in ETC_NAMES:
        try:
            mode = os.stat(f"/etc/{name}").st_mode
        except OSError:
            continue
        if mode & 0o004:
            found.append(name)
    return found
