"""Unpack the layers of an image into a directory, as the root of a box.

- Links are resolved as in the box: the kernel keeps every path inside of the directory.
- Devices, pipes and setuid bits are left out; all files belong to the user of the box.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import stat as modes
import tarfile
from typing import IO, Final

from ramet.core.errors import RametError
from ramet.native.image.root import cannot_use, open_in_root
from ramet.native.image.source import DAMAGED, Member
from ramet.native.layout import Owner

REMOVED: Final = ".wh."
OPAQUE: Final = ".wh..wh..opq"
MOST_FILES: Final = 4_000_000
"""Entries of all layers of an image."""
BLOCK: Final = 1 << 20
PATH_MAX: Final = 4096
LATEST: Final = 1 << 33
"""What the times of files can be: the year 2242."""


class Unpacker:
    """Applies the layers of one image, lowest first, to an empty directory."""

    def __init__(self, name: str, target: str, owner: Owner, most: int) -> None:
        """At most `most` bytes."""
        self._name, self._owner, self._left, self._entries = name, owner, most, MOST_FILES
        self._root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._made: set[str] = set()
        """Paths of the present layer."""
        self._times: list[tuple[str, int]] = []
        """Directories whose times are set at the end."""

    def close(self) -> None:
        for path, mtime in reversed(self._times):
            try:
                fd = open_in_root(self._root, path, os.O_RDONLY | os.O_DIRECTORY)
            except OSError:
                continue  # a later layer has removed it
            os.utime(fd, (mtime, mtime))
            os.close(fd)
        os.close(self._root)

    def apply(self, layer: IO[bytes]) -> None:
        """Unpack one layer."""
        self._made.clear()
        try:
            with tarfile.open(fileobj=layer, mode="r|", tarinfo=Member) as tar:
                for member in tar:
                    self._entries -= 1
                    self._left -= member.size
                    if self._entries < 0 or self._left < 0:
                        raise self._wrong("it is larger than the bound native.disk_bytes")
                    self._put(tar, member)
        except DAMAGED as error:
            raise self._wrong(f"it is damaged: {error}") from None

    def _wrong(self, why: str) -> RametError:
        return cannot_use(self._name, why, "Save or download the image again, or take another one.")

    def _put(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = posixpath.normpath("/" + member.name)
        if len(os.fsencode(path)) >= PATH_MAX:
            raise self._wrong("it has a path that is too long")
        if ".." in member.name.split("/") or "\0" in member.name:
            raise self._wrong(f"the path {member.name!r} leads out of it")
        if path == "/":
            return
        above, name = posixpath.split(path)
        if not (member.isdir() or member.isreg() or member.issym() or member.islnk()):
            return
        parent = self._directory(above)
        try:
            if name == OPAQUE:
                for other in os.listdir(parent):
                    if posixpath.join(above, other) not in self._made:
                        _remove(other, parent)
                return
            if name.startswith(REMOVED):
                _remove(name.removeprefix(REMOVED), parent)
                return
            self._make(tar, member, path, name, parent)
        finally:
            os.close(parent)
        while path != "/" and path not in self._made:
            self._made.add(path)
            path = posixpath.dirname(path)

    def _directory(self, path: str) -> int:
        """Open a directory of the image; make what is missing of it."""
        try:
            return open_in_root(self._root, path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            if path == "/":
                raise
        here = ""
        for name in path.split("/")[1:]:
            parent = open_in_root(self._root, here, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.mkdir(name, 0o755, dir_fd=parent)
                self._own(name, parent)
            except FileExistsError:
                pass  # perhaps a link to a directory
            finally:
                os.close(parent)
            here = f"{here}/{name}"
        return open_in_root(self._root, path, os.O_RDONLY | os.O_DIRECTORY)

    def _make(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, name: str, parent: int) -> None:
        mode = member.mode & 0o777
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            found = None
        if found is not None and not (member.isdir() and modes.S_ISDIR(found.st_mode)):
            _remove(name, parent)
            found = None
        if member.isdir():
            if found is None:
                os.mkdir(name, dir_fd=parent)
            fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            os.fchmod(fd, mode | 0o700)
            os.close(fd)
            self._times.append((path, _time(member)))
        elif member.issym():
            os.symlink(member.linkname, name, dir_fd=parent)
        elif member.islnk():
            self._link(member, name, parent)
            return
        else:
            self._write(tar, member, name, parent, mode)
        self._own(name, parent)

    def _link(self, member: tarfile.TarInfo, name: str, parent: int) -> None:
        target = posixpath.normpath("/" + member.linkname)
        try:
            folder = open_in_root(self._root, posixpath.dirname(target), os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            raise self._wrong(f"the link {member.name!r} leads to nothing") from None
        try:
            os.link(posixpath.basename(target), name, src_dir_fd=folder, dst_dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            raise self._wrong(f"the link {member.name!r} leads to nothing") from None
        finally:
            os.close(folder)

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, parent: int, mode: int) -> None:
        data = tar.extractfile(member)
        assert data is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=parent), "wb", buffering=0) as file:
            while block := data.read(BLOCK):
                view = memoryview(block)
                while view:
                    view = view[file.write(view) or 0 :]
            os.fchmod(file.fileno(), mode | 0o400)
            os.utime(file.fileno(), (_time(member),) * 2)

    def _own(self, name: str, parent: int) -> None:
        if self._owner.foreign:
            os.chown(name, self._owner.uid, self._owner.gid, dir_fd=parent, follow_symlinks=False)


def _time(member: tarfile.TarInfo) -> int:
    return max(0, min(int(member.mtime), LATEST))


def _remove(name: str, parent: int) -> None:
    if name in ("", ".", ".."):
        return
    try:
        if modes.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return
