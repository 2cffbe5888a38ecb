"""Directories of boxes whose process was killed: lock those that live, delete the others.

- A box holds a lock (flock) on a file in its directory; the kernel drops it with the process. A directory gets its name
  when it is locked, so that no process finds one that is not.
- What recovery will read is `kept`: the trees of a stored workspace, until its next open has committed them.
- Each process deletes what others left while it works, in a thread; what it does not finish waits for the next one.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import threading
from typing import Final

LOCK: Final = "lock"
KEPT: Final = "kept"
_NAME: Final = re.compile(r"[0-9a-f]{16}(\.new)?")


def make_locked(base: str) -> tuple[str, int]:
    """Make the directory of a box; returns it, and the descriptor that is its lock."""
    while True:
        root = f"{base}/{secrets.token_hex(8)}"
        made = f"{root}.new"
        os.mkdir(made, 0o700)
        lock = os.open(f"{made}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(made, root)
        except (BlockingIOError, FileNotFoundError):  # another process took it for a leftover
            os.close(lock)
            continue
        return root, lock


def keep_layout(root: str) -> None:
    """Keep the directory of a box for recovery, should this process be killed."""
    with open(f"{root}/{KEPT}", "w"):
        pass


def collect_dead(base: str) -> None:
    """Delete the directories of boxes that no process owns and that no recovery reads."""
    for name in os.listdir(base):
        root = f"{base}/{name}"
        if not _NAME.fullmatch(name) or os.path.exists(f"{root}/{KEPT}"):
            continue
        try:
            lock = os.open(f"{root}/{LOCK}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # it has just gone, or is not locked yet
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.exists(f"{root}/{KEPT}"):
                remove_layout(root, last=LOCK)
        except OSError:
            continue  # its process lives, or another one deletes it
        finally:
            os.close(lock)


class _Collector:
    """Collects the leftovers of a directory in a thread, once at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @property
    def busy(self) -> bool:
        return self._lock.locked()

    def start(self, base: str) -> None:
        if self._lock.acquire(blocking=False):
            threading.Thread(target=self._collect, args=(base,), name="ramet-leftovers", daemon=True).start()

    def _collect(self, base: str) -> None:
        try:
            collect_dead(base)
        except FileNotFoundError:
            return  # the directory of a box that was deleted meanwhile
        finally:
            self._lock.release()


COLLECTOR: Final = _Collector()


def remove_layout(root: str, *, last: str = "") -> None:
    """Delete the directory of a box, however deep it is: a directory moves to the top before it is emptied.

    The kernel and programs leave directories without permissions. No link is followed: a program of a killed process
    may live for another millisecond. The file `last` goes when all else has gone.
    """
    mark, count = secrets.token_hex(4), 0
    top = _open_directory(root)
    try:
        todo = [""]
        while todo:
            place = todo.pop()
            folder = _open_directory(place, top) if place else top
            try:
                with os.scandir(folder) as entries:
                    found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
                for name, is_directory in found:
                    if not is_directory:
                        if place or name != last:
                            os.unlink(name, dir_fd=folder)
                    elif place:
                        count += 1
                        os.close(_open_directory(name, folder))  # what cannot be written cannot be moved
                        os.rename(name, moved := f"{mark}-{count}", src_dir_fd=folder, dst_dir_fd=top)
                        todo.append(moved)
                    else:
                        todo.append(name)
            finally:
                if place:
                    os.close(folder)
            if place:
                os.rmdir(place, dir_fd=top)
        if last:
            os.unlink(last, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(root)


def _open_directory(name: str, parent: int | None = None) -> int:
    """Open a directory, and no link, with all permissions of its owner."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{found}", 0o700)
        return os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(found)
