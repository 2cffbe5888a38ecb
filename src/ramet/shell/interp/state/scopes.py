"""What a function call hides of the variables around it, and how the name of an element is read."""

from __future__ import annotations

import re
from typing import Final

from ramet.shell.expand.values import Value


class Missing:
    """The value of a name that was not there."""


class Aside:
    """Stands for the value of a global variable that lives under `aside(name)` while a local reference hides it."""


MISSING: Final = Missing()
ASIDE: Final = Aside()
Saved = tuple[Value | Missing | Aside, int]


def split_subscript(text: str) -> tuple[str, str | None]:
    """`a[i]` as (`a`, `i`); any other text as (text, None)."""
    if text.endswith("]"):
        opens = text.find("[")
        if opens >= 0:
            inner = text[opens + 1 : len(text) - 1]
            return (text[:opens], inner) if is_subscript(inner) else (text, None)
    return text, None


def is_subscript(inner: str) -> bool:
    """Whether the quotes and the brackets within a subscript go in pairs, so that what follows it closes it."""
    if _QUOTED(inner) is None:
        return True
    depth = 0
    for part in _BRACKETS(inner):
        if part == "[":
            depth += 1
        elif part == "]":
            depth -= 1
        if depth < 0 or part in _OPEN:
            return False
    return depth == 0


_QUOTED: Final = re.compile(r"""[][\\"'`]""").search
_OPEN: Final = ("\\", '"', "'", "`")
_BRACKETS: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'|`[^`]*`|[][\\"'`]""", re.DOTALL).findall


def aside(name: str) -> str:
    """Where a hidden global is kept that a circular reference means; no name of a script has a NUL in it."""
    return name + "\0"


class Scope(dict[str, Saved]):
    """What the names that a function (or the assignments before a command) took over meant outside."""

    __slots__ = ("looked_through", "temporary", "temps")

    def __init__(self, temporary: bool = False) -> None:
        super().__init__()
        self.temporary = temporary
        self.looked_through = False
        """Whether a fork has made its arrays nobody's own; it is shared since, and replaced where it would change."""
        self.temps: set[str] = set()
        """Names that came with the call (`x=1 f`): unsetting one shows the outer value again. `x=` stands for one that
        the function has made to outlive it; of assignments before a command, `=` for a command that declares."""

    def twin(self) -> Scope:
        copy = Scope(self.temporary)
        copy.update(self)
        copy.temps = set(self.temps)
        return copy
