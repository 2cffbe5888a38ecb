"""Count the memory of a program's process tree where no cgroup bounds it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from .process_tree import descendants, figures


class MemoryWatch:
    """Counts what the tree below this process takes: private pages, shared ones, and files in memory."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.files_before = memory_of_files()

    def exceeded(self) -> bool:
        found = {pid: figures(f"/proc/{pid}/status") for pid, _ in descendants()}
        private = sum(one.get(b"RssAnon", 0) for one in found.values())
        shared = sum(one.get(b"RssShmem", 0) for one in found.values())
        if private + shared > self.most:  # what several processes map counts once
            shared = sum(
                figures(f"/proc/{pid}/smaps_rollup").get(b"Pss_Shmem", one.get(b"RssShmem", 0))
                for pid, one in found.items()
            )
        if private + memory_of_files() - self.files_before > self.most:
            shared = max(shared, open_memory_files(found))
        return private + shared > self.most


def memory_of_files() -> int:
    """What files in memory take on the whole machine: cheap to ask for."""
    return figures("/proc/meminfo").get(b"Shmem", 0)


def open_memory_files(pids: Iterable[int]) -> int:
    """What the open files without a name take, such as those of memfd_create."""
    found = {}
    for pid in pids:
        try:
            for name in os.listdir(f"/proc/{pid}/fd"):
                at = f"/proc/{pid}/fd/{name}"
                if os.readlink(at).startswith("/memfd:"):
                    stat = os.stat(at)
                    found[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
        except OSError:
            continue  # it ended, or cannot be looked at
    return sum(found.values())
