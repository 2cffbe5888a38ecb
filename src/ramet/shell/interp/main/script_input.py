"""The standard input of a shell that reads its script from it: commands find there what the script has not come to."""

from __future__ import annotations

import re
from typing import Final

from ramet.core.paths import decode, encode
from ramet.core.streams import Reader
from ramet.shell.interp.process.descriptors import Description
from ramet.shell.interp.state.shell_state import ShellState

_ODD: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z").search


def without_open_end(text: str) -> str:
    """The text of a file without a backslash at its very end, which continues a line that does not come."""
    return text[:-1] if text.endswith("\\") and _ODD(text) else text


class ScriptInput(Reader):
    """All of the input; before a command runs, `offer` leaves it what follows the command's line."""

    __slots__ = ("_chars", "_data", "_place", "lasting", "text")

    def __init__(self, data: bytes, lasting: bool) -> None:
        super().__init__()
        self.lasting = lasting
        self.restart(data)

    def restart(self, data: bytes) -> None:
        """Go on with other text."""
        self._data = data
        self._place = self._chars = 0
        self.text = without_open_end(decode(data))

    async def _fill(self) -> bytes:
        return b""

    def _fill_now(self) -> bytes:
        return b""

    def offer(self, left: int) -> None:
        """The script was read but for so many characters at its end."""
        chars = max(len(self.text) - left, self._chars)
        self._place += len(encode(self.text[self._chars : chars]))
        self._chars = chars
        self._buffer, self._pos = self._data, self._place

    async def moved(self, sh: ShellState) -> bool:
        """Whether the script goes on elsewhere than where its last line ended: a command has read some of it, or `exec`
        has put another input in its place."""
        description = sh.fds.get(0)
        if description is not None and description.stream is self:
            if len(self._buffer) - self._pos == len(self._data) - self._place:
                return False
            self.restart(self.rest())
            return True
        try:
            self.restart(await sh.reader(0).read_all(sh.budget.limits.string_bytes))
        except OSError:
            self.restart(b"")
        if description is not None:
            closing = description.release()
            if closing is not None:
                await closing
        sh.fds[0] = Description(self)
        return True

    async def close(self) -> None:
        """The shell is gone, what it has not read is there for others still."""

    def rest(self) -> bytes:
        """What nobody has read."""
        return self._buffer[self._pos :]
