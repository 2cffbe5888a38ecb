"""Call frames, function definitions, and `Killed`, the death of a shell by a signal."""

from __future__ import annotations

from typing import NamedTuple

from ramet.shell.interp.run.maybe_async import Run
from ramet.shell.syntax import nodes


class Killed(Exception):
    """This shell dies of a signal; caught where the shell was started."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class FunctionDef(NamedTuple):
    """A function: its tree, its compiled body, and where it was defined."""

    node: nodes.Function
    body: Run
    source: str
    further: int = 0
    """How many lines further on bash counts its lines, where a substitution has defined it."""


class Frame:
    """A call of a function or a sourced file."""

    __slots__ = (
        "arguments",
        "function",
        "hidden",
        "line",
        "loops",
        "name",
        "options",
        "params",
        "replaced",
        "scope",
        "source",
        "special",
        "trapped",
    )

    def __init__(self, name: str, source: str, line: int, params: list[str], loops: int, function: bool = True) -> None:
        self.name, self.source, self.line = name, source, line
        self.params, self.loops, self.function = params, loops, function
        self.options: tuple[set[str], set[str]] | None = None
        self.hidden: dict[str, tuple[str, int]] | None = None
        """Traps of its callers, which it does not see, that it has replaced by others."""
        self.arguments: list[str] | None = None
        """What it was called with, where that is remembered."""
        self.scope = True
        self.special = self.trapped = self.replaced = False
        """Something is to be done after the call; an ERR trap was set in it where there had been none; it has given
        itself other parameters."""
