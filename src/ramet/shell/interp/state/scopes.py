"""`Scope`: the variables that a function call hides; parsing of `name[subscript]`."""

from __future__ import annotations

import re
from typing import Final

from ramet.shell.expand.values import Value


class Missing:
    """Marks a name that had no value."""


class HiddenGlobal:
    """Marks a global variable that a local reference hides; its value is under `hidden_key(name)`."""


MISSING: Final = Missing()
HIDDEN_GLOBAL: Final = HiddenGlobal()
Saved = tuple[Value | Missing | HiddenGlobal, int]


def split_subscript(text: str) -> tuple[str, str | None]:
    """Split `a[i]` into (`a`, `i`); any other text gives (text, None)."""
    if text.endswith("]"):
        opens = text.find("[")
        if opens >= 0:
            inner = text[opens + 1 : len(text) - 1]
            return (text[:opens], inner) if is_subscript(inner) else (text, None)
    return text, None


def is_subscript(inner: str) -> bool:
    """Return whether quotes and brackets in a subscript are balanced."""
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


def hidden_key(name: str) -> str:
    """Return the key of a hidden global variable; names in scripts never contain NUL."""
    return name + "\0"


class Scope(dict[str, Saved]):
    """The outer values of names that a function, or assignments before a command, replaced."""

    __slots__ = ("looked_through", "temporary", "temps")

    def __init__(self, temporary: bool = False) -> None:
        super().__init__()
        self.temporary = temporary
        self.looked_through = False
        """Whether a fork disowned its arrays; it is shared since, and copied before it changes."""
        self.temps: set[str] = set()
        """Names that came with the call (`x=1 f`): unsetting one shows the outer value again. `x=` stands for one that
        the function has made to outlive it; of assignments before a command, `=` for a command that declares."""

    def twin(self) -> Scope:
        copy = Scope(self.temporary)
        copy.update(self)
        copy.temps = set(self.temps)
        return copy
