"""The source of an awk program: files and texts of the command line, with the origin of each line.

- Inside, a program is one text, and a message names a line of it as `cmd. line:N`; `Sources.located` turns that into
  the file and line that the user knows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from ramet.commands.awk.syntax.tree import AwkError
from ramet.commands.framework.inputs import slurp
from ramet.core.errors import reason
from ramet.core.paths import decode
from ramet.core.proc import Proc

COMMAND_LINE = "cmd. line"
_PLACE = re.compile(r"cmd\. line:(\d+)(?=:)")
_INCLUDE = re.compile(r'(?m)^[ \t]*@include[ \t]+"([^"\n]*)"')


@dataclass
class Sources:
    """The pieces of a program, in their order."""

    pieces: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Files that are included once."""
    _first: list[int] = field(default_factory=list)
    """The line of the whole text that a piece begins in."""
    _origin: list[tuple[str, int, str]] = field(default_factory=list)
    """Where it lies: a file, the line there, and the place that includes the file, if any."""
    _lines: int = 1

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def add(self, text: str, name: str = COMMAND_LINE, line: int = 1, includer: str = "") -> None:
        within = bool(self.pieces) and not self.pieces[-1].endswith("\n")  # the line is of what came before
        if text:
            self._first.append(self._lines + within)
            self._origin.append((name, line + within, includer))
            self.pieces.append(text)
        self._lines += text.count("\n")

    def begin_part(self) -> None:
        """Begin a new part, in a new line."""
        if self.pieces:
            self.pieces.append("\n")
            self._lines += 1

    def place(self, line: int) -> str:
        at = bisect_right(self._first, line) - 1
        if at < 0:
            return f"{COMMAND_LINE}:{line}"
        name, first, _ = self._origin[at]
        return f"{name}:{first + line - self._first[at]}"

    def located(self, message: str) -> str:
        """Return the message with the places as the user knows them."""
        return _PLACE.sub(lambda found: self.place(int(found[1])), message)

    def in_reading(self, message: str) -> str:
        """The same for what is wrong with the text, which also says by whom a file is included."""
        found = _PLACE.match(message)
        at = bisect_right(self._first, int(found[1])) - 1 if found else -1
        includer = self._origin[at][2] if at >= 0 else ""
        located = self.located(message)
        return f"In file included from {includer}:\nawk: {located}" if includer else located

    async def read(self, proc: Proc, name: str, severity: str, *, library: bool = False, includer: str = "") -> None:
        """A file, as `take` does it."""
        await self.take(proc, await _read(proc, name, severity, library), name, includer)

    async def take(self, proc: Proc, text: str, name: str = COMMAND_LINE, includer: str = "") -> None:
        """A text with the files that it includes, each of them once."""
        end, line = 0, 1
        for found in _INCLUDE.finditer(text):
            self.add(before := text[end : found.start()], name, line, includer)
            end, line = found.end(), line + before.count("\n")
            if found[1] not in self.seen:
                self.seen.add(found[1])
                here = f"{name}:{line}"
                await self.read(proc, found[1], f"{here}: error", library=True, includer=here)
        self.add(text[end:], name, line, includer)


async def _read(proc: Proc, name: str, severity: str, library: bool) -> str:
    """Return the text of a part of the program; a part that is included may leave `.awk` away."""
    try:
        data = await slurp(proc, name)
    except OSError as error:
        if library and not name.endswith(".awk"):
            try:
                return decode(await slurp(proc, name + ".awk"))
            except OSError:
                pass  # the name that was given is the one to complain of
        raise AwkError(
            f"{severity}: cannot open source file `{name}' for reading: {reason(error)}",
            2 if severity == "fatal" else 1,
        ) from None
    return decode(data)


async def read_program(proc: Proc, sources: Sources, order: Sequence[tuple[str, object]], operands: list[str]) -> bool:
    """Read what the options name, in their order, or else the first operand; whether there is a program at all."""
    main = False
    for name, stored in order:
        if name in ("files", "executed", "sources") or (name == "includes" and stored != "inplace"):
            sources.begin_part()
        if name in ("files", "executed"):
            await sources.read(proc, str(stored), "fatal")
            main = True
        elif name == "sources":
            await sources.take(proc, str(stored))
            main = True
        elif name == "includes" and stored != "inplace":
            await sources.read(proc, str(stored), "fatal", library=True)
    if not main:
        if not operands:
            return False
        sources.begin_part()
        await sources.take(proc, operands.pop(0))
    return True
