"""`$BASH_COMMAND`: the text of the command that runs, or of the one that a trap is about.

It is made when somebody asks for it. One that takes its time is made before a trap runs, which may ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import (
    AnsiQuoted,
    ArithCommand,
    ArithSub,
    ArrayElement,
    ArrayLiteral,
    Assignment,
    Case,
    CommandSub,
    DoubleQuoted,
    For,
    Literal,
    Param,
    ProcessSub,
    Redirect,
    Select,
    Simple,
    SingleQuoted,
    Word,
)
from ramet.shell.syntax.printer import command_text, word_text


def command_shown(sh: ShellState) -> str:
    node = sh.trap_command if sh.in_trap else sh.last_command
    if node is None:
        return ""
    kept = sh.bash_command_text
    return kept[1] if kept is not None and kept[0] is node else _text(node)


async def ready_command(sh: ShellState) -> None:
    """Make the text for a trap where that takes its time."""
    node = sh.trap_command
    if not _is_long(node):
        sh.bash_command_text = None
    elif sh.bash_command_text is None or sh.bash_command_text[0] is not node:
        sh.bash_command_text = (node, await offload(sh.budget, partial(_text, node)))


def _text(node: Any) -> str:
    if isinstance(node, For | Select):
        head = f"{'for' if isinstance(node, For) else 'select'} {node.name} in "
        return head + '"$@"' if node.words is None else "".join(chain((head,), _spaced(node.words)))
    if isinstance(node, Case):
        return "".join(("case ", word_text(node.word, bash=True), " in "))
    return command_text(node)


def _spaced(words: tuple[Word, ...]) -> Iterator[str]:
    for place, word in enumerate(words):
        if place:
            yield " "
        yield word_text(word, bash=True)


def _is_long(item: Any, depth: int = 0) -> bool:
    """Whether there is so much of a command, or a part of it, that nobody should wait for its text."""
    if isinstance(item, str):
        return len(item) > LONG_SCRIPT
    if isinstance(item, int):
        return item > LONG_SCRIPT
    if depth > _DEEP:
        return True
    if isinstance(item, tuple):
        return len(item) > _MANY or any(_is_long(one, depth + 1) for one in item)
    return any(_is_long(getattr(item, field), depth + 1) for field in _SHOWN.get(type(item), ()))


_MANY: Final = 256
_DEEP: Final = 64
_SHOWN: Final[dict[type, tuple[str, ...]]] = {
    Simple: ("assigns", "words", "redirects"),
    For: ("words",),
    Select: ("words",),
    Case: ("word",),
    ArithCommand: ("body",),
    Redirect: ("target",),
    Assignment: ("value",),
    ArrayLiteral: ("elements",),
    ArrayElement: ("subscript", "value"),
    Word: ("parts",),
    Literal: ("text",),
    SingleQuoted: ("text",),
    AnsiQuoted: ("value",),
    DoubleQuoted: ("parts",),
    Param: ("subscript", "args"),
    ArithSub: ("body",),
    CommandSub: ("size",),
    ProcessSub: ("size",),
}
"""What there may be much of, where it is shown."""
