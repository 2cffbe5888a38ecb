"""`python -m bench.store_many FOLDER FILES`: very many tiny files through one process, and what it held at most.

Prints JSON: seconds of each step, and megabytes of memory after it. A process of its own, so that nothing else counts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from ramet.store.checkout.directory import checkout
from ramet.store.commit.directory import commit_directory
from ramet.store.commit.stat_cache import StatCache
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter
from ramet.store.verbs.diff import compare

T = TypeVar("T")
FOLDER = 500
"""Files in a directory; a hundred directories are in one."""


def place(base: str, number: int) -> str:
    return f"{base}/tree/d{number // (100 * FOLDER)}/e{number // FOLDER % 100}"


def make(base: str, files: int) -> None:
    for number in range(files):
        if number % FOLDER == 0:
            os.makedirs(place(base, number))
        with open(f"{place(base, number)}/f{number}", "w") as file:
            file.write(str(number))


def change(base: str, files: int) -> None:
    for number in range(0, files, 100):
        with open(f"{place(base, number)}/f{number}", "a") as file:
            file.write(" changed")


def peak() -> float:
    with open("/proc/self/status") as file:
        return int(next(line.split()[1] for line in file if line.startswith("VmHWM"))) / 1024


def main(base: str, files: int) -> dict[str, float]:
    found: dict[str, float] = {}
    packs = PackReader(objects := DirectoryObjects(f"{base}/store"))

    def timed(step: str, act: Callable[[], T]) -> T:
        began = time.perf_counter()
        result = act()
        found[step], found[f"{step}: MB"] = time.perf_counter() - began, peak()
        return result

    def commit() -> TreeId:
        packs.refresh()
        writer = PackWriter(objects, packs)
        stats = StatCache.load(packs.local, f"{base}/tree", packs.names())
        tree = commit_directory(f"{base}/tree", writer, stats, now=lambda: time.time_ns() + 10**10).tree
        writer.finish()
        return tree

    make(base, files)
    first = timed("first commit", commit)
    timed("unchanged", commit)
    change(base, files)
    second = timed("1% changed", commit)
    differing = timed("diff", lambda: sum(1 for _ in compare(packs.read, first, second)))
    whole = timed("checkout", lambda: checkout(packs, second, f"{base}/out"))
    part = timed("checkout 99% there", lambda: checkout(packs, first, f"{base}/out"))
    assert differing == part.written == len(range(0, files, 100)) and whole.written == files
    return found


if __name__ == "__main__":
    json.dump(main(sys.argv[1], int(sys.argv[2])), sys.stdout)
