"""The user's terminal: input of programs, raw while one of them runs, and the place of questions."""

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

    def __init__(self, fd: int | None = None) -> None:
        self._fd = sys.stdin.fileno() if fd is None else fd
        self._before: list[Any] | None = None
        self._reading: asyncio.Future[bool] | None = None
        self._turns: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self.input = TerminalInput(self._keys, self._size, self._raw)

    def _turn(self) -> asyncio.Lock:
        """What a reader of the terminal holds: a program, or a question."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _keys(self) -> bytes:
        while True:
            async with self._turn():
                if await self._readable():
                    return os.read(self._fd, KEYS)
            # A question has come up, and waits for its turn.

    async def _readable(self) -> bool:
        """Wait until a key was typed; False where a question comes first."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bool] = loop.create_future()
        self._reading = ready
        loop.add_reader(self._fd, lambda: None if ready.done() else ready.set_result(True))
        try:
            return await ready
        finally:
            self._reading = None
            loop.remove_reader(self._fd)

    async def ask(self, question: str) -> str:
        """Show a question, also while a program draws on the terminal, and return the line that the user types."""
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(False)
        async with self._turn():
            raw = self._before is not None
            self._raw(False)
            try:
                termios.tcflush(self._fd, termios.TCIFLUSH)  # what was typed before is no answer
                os.write(self._fd, question.encode("utf-8", "replace"))
                await self._readable()
                return os.read(self._fd, KEYS).decode("utf-8", "replace")
            finally:
                self._raw(raw)

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
