"""What an overlay changed in a directory of the host, and how to apply it there.

- The directory is the lower layer, which programs never write to: nothing of it changes before `apply`.
- A path conflicts when the directory's own entry changed after the overlay was made, or since it was looked at.
- `apply` opens every parent beneath the directory, without following a link.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat as modes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ramet.backends.local.overlay_marks import is_opaque, is_removed
from ramet.backends.local.safe_open import open_beneath, open_parent
from ramet.core.errors import fail
from ramet.core.paths import Path

BLOCK: Final = 1 << 20
Stamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class OverlayChange:
    """A path that the overlay changed (`/a/b`); `before` or `after` is None where nothing was or is."""

    path: Path
    before: os.stat_result | None
    after: os.stat_result | None

    @property
    def what(self) -> Literal["added", "modified", "removed"]:
        return "added" if self.before is None else "removed" if self.after is None else "modified"


class LayerStack:
    """The layers below an upper directory as one tree, lowest first."""

    def __init__(self, layers: Sequence[str]) -> None:
        self._layers = tuple(reversed(layers))

    def find(self, path: str) -> str | None:
        """Return where a path is on the host."""
        for layer in self._layers:
            found = _look(layer + path)
            if found is not None:
                return None if is_removed(found) else layer + path
            if _hides(layer, path):
                return None
        return None

    def look(self, path: str) -> os.stat_result | None:
        place = self.find(path)
        return None if place is None else _look(place)

    def names(self, path: str) -> list[str]:
        """List a directory; nothing where there is none."""
        found = {name for layer in self._layers for name in _listed(layer + path)}
        return sorted(name for name in found if self.find(f"{path}/{name}") is not None)


def _hides(layer: str, path: str) -> bool:
    """Whether a layer has something in the way of what is below it."""
    above = path.rpartition("/")[0]
    while above:
        found = _look(layer + above)
        if found is not None:
            return not modes.S_ISDIR(found.st_mode) or is_opaque(layer + above)
        above = above.rpartition("/")[0]
    return False


def overlay_changes(lowers: Sequence[str], upper: str) -> list[OverlayChange]:
    """List what differs, parents first; what was written with the same content is no change."""
    return list(_changes(LayerStack(lowers), upper, "", hidden=False))


def _changes(lower: LayerStack, upper: str, folder: str, *, hidden: bool) -> Iterator[OverlayChange]:
    """Compare one directory; `hidden` where the upper one replaced the lower one."""
    names = sorted(os.listdir(upper + folder))
    if hidden:
        names = sorted({*names, *lower.names(folder)})
    for name in names:
        path = f"{folder}/{name}"
        before, after = lower.look(path), _look(upper + path)
        if after is not None and is_removed(after):
            after = None
        yield from _entry(lower, upper, path, before, after)


def _entry(
    lower: LayerStack, upper: str, path: str, before: os.stat_result | None, after: os.stat_result | None
) -> Iterator[OverlayChange]:
    was_directory = before is not None and modes.S_ISDIR(before.st_mode)
    is_directory = after is not None and modes.S_ISDIR(after.st_mode)
    if was_directory and not is_directory:
        for name in lower.names(path):
            yield from _entry(lower, upper, f"{path}/{name}", lower.look(f"{path}/{name}"), None)
    if before is None and after is None:
        return
    if before is None or after is None or not _same(lower.find(path), upper + path, before, after):
        yield OverlayChange(Path(path), before, after)
    if is_directory:
        replaced = was_directory and is_opaque(upper + path)
        yield from _changes(lower, upper, path, hidden=replaced)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _same(old: str | None, new: str, before: os.stat_result, after: os.stat_result) -> bool:
    if before.st_mode != after.st_mode or old is None:
        return False
    if modes.S_ISLNK(before.st_mode):
        return os.readlink(old) == os.readlink(new)
    if not modes.S_ISREG(before.st_mode):
        return True
    if before.st_size != after.st_size:
        return False
    with open(old, "rb") as first, open(new, "rb") as second:
        while (block := first.read(BLOCK)) == second.read(BLOCK):
            if not block:
                return True
    return False


def conflicts(directory: str, changes: Sequence[OverlayChange], began: int) -> list[Path]:
    """Return the paths that something else changed in the directory since `began` (ns), or since they were listed."""
    return [change.path for change in changes if _conflicts(directory, change, began)]


def _conflicts(directory: str, change: OverlayChange, began: int) -> bool:
    now = _look(directory + change.path)
    if _stamp(now) != _stamp(change.before):
        return True
    if now is not None:
        return now.st_ctime_ns >= began and not modes.S_ISDIR(now.st_mode)
    above = change.path.parent
    while (found := _look(directory + above)) is None and above != "/":
        above = above.parent
    # Something of this name may have been removed meanwhile.
    return found is None or found.st_ctime_ns >= began


def _stamp(found: os.stat_result | None) -> Stamp | None:
    return None if found is None else (found.st_ino, found.st_mode, found.st_ctime_ns, found.st_size)


def apply(directory: str, upper: str, changes: Sequence[OverlayChange]) -> list[Path]:
    """Make changes in the directory, one path after the other; returns those that no directory takes (sockets, ...)."""
    root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for change in changes:  # children come first where something is removed
            if change.after is None or (change.before is not None and _kind(change.before) != _kind(change.after)):
                _remove(root, change.path)
        there = [(change.path, change.after) for change in changes if change.after is not None]
        return [path for path, after in there if not _put(root, upper, path, after)]
    finally:
        os.close(root)


def _kind(found: os.stat_result) -> int:
    return modes.S_IFMT(found.st_mode)


def _remove(root: int, path: Path) -> None:
    parent, name, close = open_parent(root, path)
    try:
        if modes.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.rmdir(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass  # removed with its directory
    finally:
        if close:
            os.close(parent)


def _put(root: int, upper: str, path: Path, after: os.stat_result) -> bool:
    _make_parents(root, upper, path)
    parent, name, close = open_parent(root, path)
    try:
        if modes.S_ISDIR(after.st_mode):
            try:
                os.mkdir(name, dir_fd=parent)
            except FileExistsError:
                pass  # its mode differs
            _finish(parent, name, after)
            return True
        if not (modes.S_ISREG(after.st_mode) or modes.S_ISLNK(after.st_mode)):
            return False
        made = f".ramet-{secrets.token_hex(8)}"
        try:
            if modes.S_ISLNK(after.st_mode):
                os.symlink(os.readlink(upper + path), made, dir_fd=parent)
            else:
                _copy(upper + path, parent, made)
            _finish(parent, made, after, name)
            os.replace(made, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            try:
                os.unlink(made, dir_fd=parent)
            except FileNotFoundError:
                pass  # it was not made
            raise
        return True
    finally:
        if close:
            os.close(parent)


def _make_parents(root: int, upper: str, path: Path) -> None:
    """Make the directories above a path that was chosen without them."""
    above = path.parent
    if above == "/":
        return
    try:
        os.close(open_beneath(root, above, os.O_PATH | os.O_DIRECTORY))
    except FileNotFoundError:
        _put(root, upper, above, os.lstat(upper + above))
    except OSError as error:
        raise fail(error.errno or errno.EIO, path) from None


def _copy(source: str, parent: int, name: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(source, "rb", buffering=0) as old, open(os.open(name, flags, 0o600, dir_fd=parent), "wb", 0) as new:
        while block := old.read(BLOCK):
            new.write(block)


def _finish(parent: int, made: str, after: os.stat_result, name: str | None = None) -> None:
    """Give an entry its mode and time, and, as root, the owner of what it replaces, or else of its directory."""
    link = modes.S_ISLNK(after.st_mode)
    if os.geteuid() == 0:
        try:
            like = os.stat(name or made, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            like = os.fstat(parent)
        os.chown(made, like.st_uid, like.st_gid, dir_fd=parent, follow_symlinks=False)
    if not link:
        os.chmod(made, after.st_mode & 0o7777, dir_fd=parent)
    os.utime(made, ns=(after.st_atime_ns, after.st_mtime_ns), dir_fd=parent, follow_symlinks=False)
