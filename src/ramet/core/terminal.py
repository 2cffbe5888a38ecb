"""`TerminalInput`: what a user types at a terminal, for programs of the machine that want a terminal.

Such a program gets its own terminal (a PTY). While it runs, the user's terminal is `raw`: it passes on every key,
and the program's terminal echoes and interprets them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ramet.core.streams import Reader

DEFAULT_SIZE: Final = (24, 80)


class TerminalInput(Reader):
    """A terminal as input; `read_keys` waits for what is typed next, empty at its end."""

    __slots__ = ("_raw", "_read_keys", "_size", "on_resize")
    terminal = True

    def __init__(
        self,
        read_keys: Callable[[], Awaitable[bytes]],
        size: Callable[[], tuple[int, int]] = lambda: DEFAULT_SIZE,
        raw: Callable[[bool], None] = lambda _: None,
    ) -> None:
        super().__init__()
        self._read_keys, self._size, self._raw = read_keys, size, raw
        self.on_resize: Callable[[int, int], None] | None = None
        """Tells the program's terminal the new number of rows and columns."""

    async def _fill(self) -> bytes:
        return await self._read_keys()

    @property
    def size(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return self._size()

    def raw(self, on: bool) -> None:
        """Pass on every key, or edit lines again."""
        self._raw(on)

    def resized(self) -> None:
        if self.on_resize is not None:
            self.on_resize(*self.size)
