"""Directories of boxes whose process was killed: the next one deletes them, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.native.conftest import TEST_LIMITS, missing
from tests.workspace.native.conftest import box_directory

from ramet.native.layout import Layout
from ramet.native.leftovers import COLLECTOR, KEPT, LOCK, collect_dead, keep_layout, make_locked, remove_layout
from ramet.native.options import Native
from ramet.native.runtime import Runtime

SECONDS = 30.0
PROGRAM = """
import asyncio, sys
from ramet import Workspace
from ramet.native.options import Native
async def main():
    async with Workspace(native=Native(directory=sys.argv[1])) as ws:
        await ws.execute("mkdir -p d/e; echo x > d/e/f; chmod 0 d; sleep 1000 &", native=True)
        print(ws.programs._runtime.layout.root, flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""


@pytest.fixture
def base() -> Iterator[str]:
    with box_directory() as made:
        yield made


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def boxes(base: str) -> list[str]:
    return sorted(name for name in os.listdir(base) if len(name) in (16, 20))


def test_the_next_box_deletes_what_a_killed_process_left(base: str) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    with subprocess.Popen([sys.executable, "-c", PROGRAM, base], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = process.stdout.readline().strip()
        living = Runtime(Native(TEST_LIMITS, directory=base))
        wait_for(lambda: not COLLECTOR.busy)
        collect_dead(base)
        assert os.path.isdir(left)  # its process lives
        process.send_signal(signal.SIGKILL)
        process.wait()
    try:
        assert os.path.isdir(left)
        runtime = Runtime(Native(TEST_LIMITS, directory=base))
        try:
            wait_for(lambda: not os.path.exists(left))
            assert os.path.isdir(living.layout.root) and os.path.isdir(runtime.layout.root)
        finally:
            runtime.close()
    finally:
        living.close()
    assert boxes(base) == []


def test_what_recovery_will_read_stays(base: str) -> None:
    root, lock = make_locked(base)
    keep_layout(root)
    os.close(lock)
    collect_dead(base)
    assert boxes(base) == [os.path.basename(root)]
    os.unlink(f"{root}/{KEPT}")
    collect_dead(base)
    assert boxes(base) == []


def test_what_is_not_of_a_box_stays(base: str) -> None:
    for name in ("lowers", "common", "0123456789abcdef", "x" * 16):
        os.mkdir(f"{base}/{name}")  # the third is of a version without locks
    collect_dead(base)
    assert sorted(os.listdir(base)) == ["0123456789abcdef", "common", "lowers", "x" * 16]


def test_a_process_killed_while_it_starts_leaves_nothing_for_long(base: str) -> None:
    os.mkdir(f"{base}/0123456789abcdef.new")
    Path(base, "0123456789abcdef.new", LOCK).touch()
    collect_dead(base)
    assert boxes(base) == []


def test_starting_and_collecting_at_once(base: str) -> None:
    """A directory is never taken from a box that starts."""
    ended = threading.Event()

    def collect() -> None:
        while not ended.is_set():
            collect_dead(base)

    threads = [threading.Thread(target=collect) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        made = [Layout(base) for _ in range(100)]
        assert all(os.path.isdir(one.root) for one in made)
        for one in made:
            one.add_tree()
            one.remove()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert boxes(base) == []


def test_no_link_in_a_directory_is_followed(base: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").touch()
    root, lock = make_locked(base)
    os.mkdir(f"{root}/trees")
    os.symlink(outside, f"{root}/trees/link")
    os.symlink(outside, f"{root}/link")
    remove_layout(root)
    os.close(lock)
    assert (outside / "f").exists() and boxes(base) == []
