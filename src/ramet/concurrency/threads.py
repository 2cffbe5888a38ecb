"""Threads for scripts and for offloaded work: with stacks that are large enough, in a pool with fair shares.

- An owner (a workspace) has at most its share of the threads; more of its work waits, and owners are served in turn.
- The threads are daemons: work that cannot be interrupted does not keep the interpreter from exiting.
- A forked child starts with an empty pool.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from ramet.concurrency.fork import renew_after_fork

STACK: Final = 8 << 20
"""Bytes of a thread's stack. Python from 3.13 on takes 2.5 MB to free what nests 10,000 levels; threads have 2 MB where
the stack of the process is unlimited, and 1 MB with musl."""
_sizing = threading.Lock()
renew_after_fork(sys.modules[__name__], _sizing=threading.Lock)


def start_thread(work: Callable[[], object], name: str) -> threading.Thread:
    """Start a daemon thread that scripts of any depth may run in."""
    made = threading.Thread(target=work, name=name, daemon=True)
    with _sizing:
        usual = threading.stack_size()
        threading.stack_size(max(usual, STACK))
        try:
            made.start()
        finally:
            threading.stack_size(usual)
    return made


class _Share:
    """The work of one owner."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Callable[[], None]] = deque()


class Threads:
    """At most `size` threads, and at most `share` of them for one owner."""

    def __init__(self, size: int, share: int, name: str) -> None:
        self._size, self._share, self._name = size, share, name
        self._empty()
        renew_after_fork(self, _wake=self._empty)

    def _empty(self) -> threading.Condition:
        self._started = self._idle = 0
        self._shares: dict[object, _Share] = {}
        self._ready: deque[object] = deque()
        """Owners that have waiting work and are below their share."""
        self._wake = threading.Condition()
        return self._wake

    def submit(self, owner: object, work: Callable[[], None]) -> None:
        """Run `work`, which must not raise, as soon as a thread is free for its owner."""
        with self._wake:
            share = self._shares.setdefault(owner, _Share())
            share.waiting.append(work)
            if len(share.waiting) > 1 or share.running >= self._share:
                return  # the owner waits for its turn already, or for an end of its work
            self._ready.append(owner)
            if self._idle:
                self._wake.notify()
            elif self._started < self._size:
                self._started += 1
                number = self._started
                start_thread(self._serve, f"{self._name}_{number}")

    def busy(self, owner: object) -> int:
        """Return how many threads work for an owner."""
        with self._wake:
            share = self._shares.get(owner)
            return 0 if share is None else share.running

    def _serve(self) -> None:
        while True:
            owner, work = self._next()
            work()
            del work
            self._done(owner)
            del owner

    def _next(self) -> tuple[object, Callable[[], None]]:
        with self._wake:
            while not self._ready:
                self._idle += 1
                self._wake.wait()
                self._idle -= 1
            owner = self._ready.popleft()
            share = self._shares[owner]
            share.running += 1
            work = share.waiting.popleft()
            if share.waiting and share.running < self._share:
                self._give_turn(owner)
            return owner, work

    def _done(self, owner: object) -> None:
        with self._wake:
            share = self._shares[owner]
            share.running -= 1
            if share.waiting and share.running == self._share - 1:
                self._give_turn(owner)
            elif not share.running and not share.waiting:
                del self._shares[owner]

    def _give_turn(self, owner: object) -> None:
        self._ready.append(owner)
        if self._idle:
            self._wake.notify()
        elif self._started < self._size:
            self._started += 1
            start_thread(self._serve, f"{self._name}_{self._started}")
