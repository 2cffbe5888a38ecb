"""Copy a directory of the host, with several threads."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor

from ramet.backends.local.disk import copy_content

COPIERS = 4
"""Threads that copy files."""


def copy_tree(source: str, target: str) -> None:
    """Copy everything below `source` into the empty directory `target`, with links, modes and times.

    Directories are created first, then files are copied by several threads, then times are restored. FIFOs, sockets and
    devices are skipped.
    """
    directories, first_names = [(source, target)], dict[tuple[int, int], str]()
    with ThreadPoolExecutor(COPIERS) as pool:
        copies: list[Future[None]] = []
        aliases: list[tuple[str, str]] = []
        for old, new in directories:  # grows during the loop
            for entry in os.scandir(old):
                place = os.path.join(new, entry.name)
                stat = entry.stat(follow_symlinks=False)
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), place)
                    os.utime(place, ns=(stat.st_atime_ns, stat.st_mtime_ns), follow_symlinks=False)
                elif entry.is_dir():
                    os.mkdir(place)
                    directories.append((entry.path, place))
                elif entry.is_file():
                    first = first_names.setdefault((stat.st_dev, stat.st_ino), place) if stat.st_nlink > 1 else place
                    if first == place:
                        copies.append(pool.submit(_copy_file, entry.path, place))
                    else:
                        aliases.append((first, place))
        for copied in copies:
            copied.result()
    for first, place in aliases:
        os.link(first, place)
    for old, new in reversed(directories):
        shutil.copystat(old, new)


def _copy_file(source: str, target: str) -> None:
    with open(source, "rb", buffering=0) as src, open(target, "xb", buffering=0) as dst:
        copy_content(src.fileno(), dst.fileno())
    shutil.copystat(source, target, follow_symlinks=False)
