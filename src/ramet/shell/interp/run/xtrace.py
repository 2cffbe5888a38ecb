"""`set -x`: write the trace lines of commands and assignments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import is_number
from ramet.shell.interp.run.assign import AssignWord
from ramet.shell.interp.state.shell_state import ShellState


def trace(sh: ShellState, fields: list[str], raw: bool = False) -> None:
    """Write a line of `set -x`; `raw` fields are quoted already."""
    prefix = _prefix(sh)
    quoted = fields if raw else [quote.word(quote.as_locale(sh, str(field))) for field in fields]
    _write(sh, f"{prefix}{' '.join(quoted)}\n")


def trace_value(sh: ShellState, head: str, value: str) -> None:
    """Write the line of an assignment."""
    trace(sh, [head + (quote.word(quote.as_locale(sh, value)) if value else "")], raw=True)


def trace_command(sh: ShellState, argv: list[str]) -> None:
    """Write the trace of a command; arrays among the arguments of a declaration get lines before it."""
    words: list[str] = []
    for word in argv:
        if isinstance(word, AssignWord) and word.items is not None:
            trace_array(sh, word)
            words.append(word.name)
        else:
            words.append(word)
    trace(sh, words)
    while argv and argv[0] in ("command", "builtin"):
        argv = argv[1:]
    if argv and argv[0] in ("export", "readonly"):
        for head, value in _assigned(argv):
            trace_value(sh, head, value)


def _assigned(argv: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the assignments among the words of `export` and `readonly`, which make them one by one."""
    options = True
    for word in islice(argv, 1, None):
        if isinstance(word, AssignWord):
            if word.items is None:
                yield f"{word.name}{'+' if word.append else ''}=", word.value
            options = False
        elif options and word.startswith("-"):
            if "a" in word or "A" in word:  # arrays are assigned otherwise
                return
            options = word != "--"
        else:
            options = False
            if (assigned := _ASSIGNED(word)) is not None:
                yield assigned[0], word[assigned.end() :]


_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+\+?=", re.ASCII).match


def trace_array(sh: ShellState, word: AssignWord) -> None:
    """Write the trace of an array among the arguments of a declaration."""
    inner = " ".join(
        (f"[{quote.single(item.key)}]=" if item.key is not None else "") + quote.single(item.value)
        for item in word.items or ()
    )
    trace(sh, [f"{word.name}{'+' if word.append else ''}=({inner})"], raw=True)


def _prefix(sh: ShellState) -> str:
    prefix = sh.variables.get("PS4")
    if prefix is None:
        return ""
    if any(char in prefix for char in "$`\\"):
        status, sh.xtrace = sh.status, False
        try:
            prefix = sh.prompt(prefix)
        finally:
            sh.status, sh.xtrace = status, True
    return (prefix[0] * sh.trace_level + prefix) if prefix and sh.trace_level else prefix


def _write(sh: ShellState, text: str) -> None:
    target = sh.variables.get("BASH_XTRACEFD")
    if not target or sh.trace_fd_invalid:
        sh.err(text)
        return
    description = sh.fds.get(int(target)) if is_number(target) else None
    if description is not None and description.writer is not None:
        description.writer.write(encode(text))
    else:
        sh.trace_fd_invalid = True
        sh.err(text)
