"""The directories of a box on the host: system layer, trees (lower, upper, work), and their owner.

/var/tmp/ramet-native-UID/BOX/          mode 0710, group of the box's user
    lock                                locked as long as its process lives
    kept                                there where recovery will read the trees of a dead process
    points/                             layer of `/` with the mount points of this workspace
    trees/N/{lower,upper,work}          one overlay per mount that was in memory
/var/tmp/ramet-native-UID/lowers/       layers of stored trees, see `lowers.py`
/var/tmp/ramet-native-UID/images/       unpacked images, see `image/store.py`
/var/tmp/ramet-native-UID/common/       what all boxes share and none changes
    system-KEY/system                   lowest layer of `/`: directories and links into /usr
    system-KEY/etc                      the /etc of boxes
    bubblewrap-KEY/                     bubblewrap, where the user of root's boxes can reach it
"""

from __future__ import annotations

import ctypes
import os
import secrets
import stat as modes
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

from ramet.core.errors import RametError
from ramet.native.image.root import ImageRoot
from ramet.native.leftovers import COLLECTOR, make_locked, remove_layout

BOX_USER: Final = 1_900_000_000
"""Uid and gid of root's boxes on the host: above every range that distributions and systemd hand out."""
INSIDE: Final = 1000
"""Uid and gid that programs see."""
SYSTEM_LINKS: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
SYSTEM_DIRECTORIES: Final = ("usr", "proc", "dev", "etc", "sys")
IMAGE_DIRECTORIES: Final = ("opt", "srv", "var")
"""What an image may bring in addition, where the workspace does not have it."""
SYSTEM_NAMES: Final = frozenset((*SYSTEM_LINKS, *SYSTEM_DIRECTORIES))
"""Names in `/` that belong to the box and are no part of the workspace."""
ETC_NAMES: Final = (
    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "magic", "nsswitch.conf",
    "protocols", "services", "ssl/certs", "ca-certificates", "pki/tls/certs", "os-release", "debian_version",
    "terminfo", "inputrc", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "python3", "python3.11",
    "python3.12", "python3.13", "perl", "login.defs",
)  # fmt: skip
"""What programs need of the host's /etc; nothing in it is a secret."""
_ETC_FILES: Final = {
    "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:{INSIDE}:{INSIDE}::/home/user:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\nuser:x:{INSIDE}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost ramet\n::1 localhost\n",
    "hostname": "ramet\n",
    "resolv.conf": "",
}
_HOST_FILES: Final = {"gitconfig": "[core]\n\tcreateObject = rename\n"}
"""Beside those, where no image has its own: git makes an object without a hard link, which the kernel asks about."""


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
    """Return the user of boxes: this one, or another one where this is root, here or outside of a container."""
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    if _outside(BOX_USER) is not None:
        return Owner(BOX_USER, BOX_USER)
    if _outside(0) != 0:
        return Owner(0, os.getegid())
    raise RametError(
        "native_unavailable", "cannot run native programs as root: this user namespace has no other user",
        "Run Ramet as an ordinary user.",
    )  # fmt: skip


def _outside(uid: int) -> int | None:
    """Return what a user is outside of this user namespace; None for one that is not in it."""
    with open("/proc/self/uid_map") as file:
        for line in file:
            first, outside, count = map(int, line.split())
            if first <= uid < first + count:
                return outside + uid - first
    return None


@dataclass(frozen=True)
class TreePlace:
    """The directories of one overlay."""

    folder: str
    shared: tuple[str, ...] = ()
    """Lower layers that other overlays use too, lowest first."""
    key: str | None = None
    """Names the content of the lower layers; None where only this overlay knows it."""
    frozen: tuple[str, ...] = ()
    """Those of the shared layers that were upper layers of this workspace, lowest first."""

    @property
    def lower(self) -> str:
        """Its own lower layer, above the shared ones."""
        return f"{self.folder}/lower"

    @property
    def lowers(self) -> tuple[str, ...]:
        return (*self.shared, self.lower)

    @property
    def upper(self) -> str:
        return f"{self.folder}/upper"

    def has(self, name: str) -> bool:
        """Whether a name at the top belongs to the workspace, not to the box."""
        return any(os.path.lexists(f"{layer}/{name}") for layer in (*self.lowers, self.upper))

    @property
    def work(self) -> str:
        return f"{self.folder}/work"


class Layout:
    """The directory of one box. `remove` deletes it."""

    def __init__(self, base: str | None = None) -> None:
        self.owner = box_owner()
        self.base = base or f"/var/tmp/ramet-native-{os.geteuid()}"
        _make_base(self.base)
        if self.owner.foreign and (closed := closed_above(self.base)) is not None:
            raise RametError(
                "native_unavailable",
                f"cannot use {self.base}: root's programs run as a user who cannot enter {closed}",
                "Open it (chmod o+x), or give Native(directory=...) another place.",
            )  # fmt: skip
        self.root, self._lock = make_locked(self.base)
        COLLECTOR.start(self.base)
        if self.owner.foreign:
            os.chown(self.root, -1, self.owner.gid)
            os.chmod(self.root, 0o710)
        self._count = 0
        self._users = 1
        self._borrowed: list[Layout] = []
        make_directory(f"{self.root}/trees")
        self.points = f"{self.root}/points"
        make_directory(self.points)
        self.common = f"{self.base}/common"
        _make_shared(self.common)
        self.image = ImageRoot("/")
        """Where programs come from."""
        self.use(self.image)
        self.extras: list[str] = []
        """Directories that only an image has, at the top."""

    @property
    def names(self) -> frozenset[str]:
        """What belongs to the box at the top, and is no part of the workspace."""
        return SYSTEM_NAMES | {*self.extras}

    @property
    def readable(self) -> list[str]:
        """Return the names of the box that commands in process can read, too: all but /proc, /dev and /sys."""
        return ["usr", "etc", *SYSTEM_LINKS, *self.extras]

    def use(self, image: ImageRoot) -> None:
        """Take programs from an image; no box may be built yet."""
        self.image = image
        made = make_once(f"{self.common}/system-{_system_key(image)}", partial(_make_system, image))
        self.system, self.etc = f"{made}/system", f"{made}/etc"

    def add_tree(self) -> TreePlace:
        place = TreePlace(f"{self.root}/trees/{self._count}")
        self._count += 1
        make_directory(place.folder)
        for folder in (place.lower, place.upper, place.work):
            make_directory(folder)
            self.give(folder)
        return place

    def give(self, path: str) -> None:
        """Make the box's user the owner of a path."""
        if self.owner.foreign:
            os.chown(path, self.owner.uid, self.owner.gid, follow_symlinks=False)

    def borrow(self, other: Layout) -> None:
        """Keep the directories of another box as long as these: its layers are part of them."""
        if other is not self and other not in self._borrowed:
            other._users += 1
            self._borrowed.append(other)

    def remove(self) -> None:
        """Delete the directories when no other box uses them."""
        self._users -= 1
        if not self._users:
            remove_layout(self.root)
            os.close(self._lock)
            for other in self._borrowed:
                other.remove()


def own_everything(folder: str, owner: Owner, *, files: bool = True) -> None:
    """Make the user of the box the owner of a directory and all below it, or of the directories only."""
    if not owner.foreign:
        return
    os.chown(folder, owner.uid, owner.gid, follow_symlinks=False)
    for here, folders, others in os.walk(folder):
        for name in (*folders, *others) if files else folders:
            os.chown(f"{here}/{name}", owner.uid, owner.gid, follow_symlinks=False)


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


def closed_above(path: str) -> str | None:
    """Return the directory on the way to a path that other users cannot enter, such as the user of root's boxes."""
    folder = os.path.realpath(path)
    while os.stat(folder).st_mode & modes.S_IXOTH:
        if folder == "/":
            return None
        folder = os.path.dirname(folder)
    return folder


def make_directory(path: str) -> None:
    """Create a directory that the user of the box can enter, whatever the umask is."""
    os.mkdir(path)
    os.chmod(path, 0o755)


def _make_shared(folder: str) -> None:
    os.makedirs(folder, mode=0o711, exist_ok=True)
    os.chmod(folder, 0o711)


def make_once(target: str, fill: Callable[[str], None]) -> str:
    """Create a directory that never changes afterwards; another process may be faster."""
    if not os.path.isdir(target):
        made = f"{target}.{secrets.token_hex(8)}"
        make_directory(made)
        fill(made)
        for folder, names, files in os.walk(made):
            for path in (f"{folder}/{name}" for name in (*names, *files)):
                mode = os.lstat(path).st_mode
                if not modes.S_ISLNK(mode):
                    os.chmod(path, 0o755 if mode & 0o100 else 0o644)
        try:
            os.rename(made, target)
        except OSError:
            if not os.path.isdir(target):
                raise
            remove_layout(made)
    return target


def _system_key(image: ImageRoot) -> str:
    """Name what the system layer is made of."""
    links = [_link_of(image, name) for name in SYSTEM_LINKS]
    binds = etc_binds() if image.is_host else None
    return sha256(repr((SYSTEM_DIRECTORIES, links, binds, _etc_files(image))).encode()).hexdigest()[:16]


def _link_of(image: ImageRoot, name: str) -> str | None:
    """Where a name at the top of a system leads; empty for a directory, None for nothing."""
    try:
        return os.readlink(image.at(f"/{name}"))
    except OSError:
        return "" if os.path.isdir(image.at(f"/{name}")) else None


def _make_system(image: ImageRoot, made: str) -> None:
    folder = f"{made}/system"
    _make_etc(f"{made}/etc", etc_binds() if image.is_host else [], _etc_files(image))
    os.mkdir(folder, 0o755)
    for name in SYSTEM_DIRECTORIES:
        os.mkdir(f"{folder}/{name}", 0o755)
    for name in SYSTEM_LINKS:
        link = _link_of(image, name)
        if link:
            os.symlink(link.lstrip("/"), f"{folder}/{name}")
        elif link is not None:  # a system without merged /usr: bound by the box
            os.mkdir(f"{folder}/{name}", 0o755)


def _etc_files(image: ImageRoot) -> dict[str, str]:
    return {**_ETC_FILES, **(_HOST_FILES if image.is_host else {})}


def _make_etc(folder: str, binds: Sequence[str], files: Mapping[str, str]) -> None:
    os.mkdir(folder, 0o755)
    for name in binds:
        target = f"{folder}/{name}"
        os.makedirs(target if os.path.isdir(f"/etc/{name}") else os.path.dirname(target), exist_ok=True)
        if not os.path.isdir(target):
            open(target, "x").close()
    for name, text in files.items():
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
