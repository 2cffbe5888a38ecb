"""The user's terminal as input of programs: raw while one of them runs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ramet.core.terminal import TerminalInput

KEYS = 4096


def has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


class UserTerminal:
    """The terminal of this process. `input` is read on the event loop that runs the command."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._before: list[Any] | None = None
        self.input = TerminalInput(self._keys, self._size, self._raw)

    async def _keys(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._fd, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(self._fd)
        return os.read(self._fd, KEYS)

    def _size(self) -> tuple[int, int]:
        found = os.get_terminal_size(self._fd)
        return found.lines, found.columns

    def _raw(self, on: bool) -> None:
        if on and self._before is None:
            self._before = termios.tcgetattr(self._fd)
            tty.setraw(self._fd, termios.TCSADRAIN)
        elif not on and self._before is not None:
            before, self._before = self._before, None
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    @contextmanager
    def watched(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        """Tell programs when the window changes; for the main thread."""
        old = signal.signal(signal.SIGWINCH, lambda *_: loop.call_soon_threadsafe(self.input.resized))
        try:
            yield
        finally:
            signal.signal(signal.SIGWINCH, old)
            self._raw(False)
