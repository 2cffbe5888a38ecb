"""`$BASH_COMMAND`: the text of the command that runs, or of the one that a trap is about."""

from __future__ import annotations

from typing import Any

from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import Case, For, Select
from ramet.shell.syntax.printer import command_text, word_text


def bash_command(sh: ShellState) -> str:
    node = sh.trap_command if sh.in_trap else sh.last_command
    return "" if node is None else _text(node)


def _text(node: Any) -> str:
    if isinstance(node, For | Select):
        head = f"{'for' if isinstance(node, For) else 'select'} {node.name} in "
        words = ['"$@"'] if node.words is None else [word_text(word, bash=True) for word in node.words]
        return head + " ".join(words)
    if isinstance(node, Case):
        return f"case {word_text(node.word, bash=True)} in "
    return command_text(node)
