"""The pool of threads: a share for each owner, and no thread that keeps the process."""

from __future__ import annotations

import subprocess
import sys
import threading

from ramet.concurrency.threads import Threads


def test_an_owner_has_its_share_and_others_theirs() -> None:
    pool, gate, started = Threads(4, 2, "test"), threading.Event(), threading.Semaphore(0)
    other = threading.Event()

    def block() -> None:
        started.release()
        gate.wait()

    for _ in range(10):
        pool.submit("one", block)
    assert started.acquire(timeout=60) and started.acquire(timeout=60)
    pool.submit("two", other.set)
    assert other.wait(60)
    assert pool.busy("one") == 2
    gate.set()
    for _ in range(8):
        assert started.acquire(timeout=60)


def test_work_of_many_owners_is_all_done() -> None:
    pool, done = Threads(3, 2, "test"), threading.Semaphore(0)
    for number in range(200):
        pool.submit(number % 7, done.release)
    for _ in range(200):
        assert done.acquire(timeout=60)


DEEP = """
import threading
from ramet import Workspace
from ramet.workspace.loop_thread import LoopThread
threading.stack_size(256 * 1024)  # smaller than any system's
script = "while :; do " * 7000 + "echo deep" + "; break; done" * 7000

async def act():
    async with Workspace() as ws:
        print((await ws.execute(script)).text, end="")

with LoopThread() as loop:
    loop.run(act())
print(threading.stack_size())
"""


def test_a_deep_script_runs_in_a_thread_of_ours_whatever_stack_threads_have() -> None:
    done = subprocess.run([sys.executable, "-c", DEEP], capture_output=True, timeout=250, check=False)
    assert (done.returncode, done.stdout) == (0, b"deep\n262144\n"), done.stderr


def test_work_that_never_ends_does_not_keep_the_interpreter() -> None:
    script = "from ramet.concurrency.threads import Threads; import threading\n"
    script += "began = threading.Event()\n"
    script += "def stuck():\n    began.set()\n    threading.Event().wait()\n"
    script += "Threads(2, 2, 'x').submit(1, stuck); began.wait(); print('out')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    assert done.stdout == b"out\n"
