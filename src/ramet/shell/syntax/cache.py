"""Parsed scripts kept by their text, so that a repeated command costs one lookup.

Rule: only what depends on nothing but the text and the options is kept: no script that was read with aliases, none that
failed, none that warned.
"""

from __future__ import annotations

from typing import NamedTuple

from ramet.shell.freeing import let_go
from ramet.shell.syntax.nodes import Script
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.scanner import Options

_KEPT = 512
_CHARACTERS = 4_000_000
LONGEST = 500_000
"""Characters of a text that is kept: what is longer hardly comes again, and its tree takes very much memory."""
_LARGE = 20_000
"""Characters of a text whose tree is not let go of at once."""
_DEFAULT = Options()


class Known(NamedTuple):
    """The lines of a text as far as it was read: a script may end before its text does, and may change options."""

    lines: tuple[Script, ...]
    ends: tuple[int, ...]
    """Where each of them ends in the text."""
    options: tuple[Options, ...]
    """What each of them was read under."""
    whole: bool


_scripts: dict[tuple[str, Options], Known] = {}
_size = 0


def parse(text: str, options: Options = _DEFAULT) -> Script:
    """The whole text as one list. Raises SyntaxFailure."""
    lines = parse_lines(text, options)
    if len(lines) == 1:
        return lines[0]
    return Script(tuple(statement for line in lines for statement in line.statements))


def parse_lines(text: str, options: Options = _DEFAULT) -> tuple[Script, ...]:
    """The complete command lines of the text, for a caller that has no aliases; kept for the next time."""
    key = (text, options)
    found = _scripts.get(key)
    if found is not None and found.whole and all(own == options for own in found.options):
        return found.lines
    parser = Parser(text, None, options)
    lines, ends = [], []
    while (line := parser.next()) is not None:
        lines.append(line)
        ends.append(parser.pos)
    result = tuple(lines)
    if not parser.warnings:
        remember(text, options, Known(result, tuple(ends), (options,) * len(result), True))
    return result


def recall(text: str, options: Options) -> Known | None:
    """The lines of a text that was read before with these options and without aliases."""
    return _scripts.get((text, options)) if len(text) <= LONGEST else None


def remember(text: str, options: Options, known: Known) -> None:
    """Keeps what a caller read line by line, provided that neither options nor aliases changed on the way."""
    global _size
    if len(text) > LONGEST:
        return
    while _scripts and (len(_scripts) >= _KEPT or _size + len(text) > _CHARACTERS):
        # Oldest first; a dictionary keeps the order of insertion.
        key = next(iter(_scripts))
        _size -= len(key[0])
        if len(key[0]) > _LARGE:
            let_go(_scripts[key])
        del _scripts[key]
    if (text, options) not in _scripts:
        _size += len(text)
    _scripts[text, options] = known
