"""Parsed scripts kept by their text, so that a repeated command costs one lookup.

Rule: only what depends on nothing but the text, the number of its first line and the options is kept: no script read
with aliases, none that failed, none that warned. And only what comes a second time: most commands never do, and a tree
with all that was made of it is hundreds of objects, which Python would look through whenever it collects garbage.
"""

from __future__ import annotations

import sys
import threading
from typing import Final, NamedTuple

from ramet.concurrency.fork import renew_after_fork
from ramet.shell.syntax.nodes import Script
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.scanner import Options

_KEPT: Final = 512
_CHARACTERS: Final = 100_000
"""Characters of all texts that are kept, unless one is longer than that by itself."""
LONGEST: Final = 500_000
"""Characters of a text that is kept: a longer one rarely comes again, and its tree takes much memory."""
_REMEMBERED: Final = 4096
"""Texts of which it is known that they came once."""
_DEFAULT: Final = Options()


class ParsedLines(NamedTuple):
    """The lines of a text as far as it was read: a script may end before its text does, and may change options."""

    lines: tuple[Script, ...]
    ends: tuple[int, ...]
    """Where each of them ends in the text."""
    options: tuple[Options, ...]
    """What each of them was read under."""
    whole: bool


_Key = tuple[str, Options, int]
_scripts: dict[_Key, ParsedLines] = {}
_once: dict[int, None] = {}
"""Texts that came once, by their hashes."""
_size = 0
_lock = threading.Lock()
renew_after_fork(sys.modules[__name__], _lock=threading.Lock)
"""Held by who changes these: programs may have event loops in several threads."""


def parse(text: str, options: Options = _DEFAULT) -> Script:
    """The whole text as one list. Raises SyntaxFailure."""
    lines = parse_lines(text, options)
    if len(lines) == 1:
        return lines[0]
    return Script(tuple(statement for line in lines for statement in line.statements))


def parse_lines(text: str, options: Options = _DEFAULT) -> tuple[Script, ...]:
    """The complete command lines of the text, for a caller that has no aliases; kept for the next time."""
    found = recall(text, options)
    if found is not None and found.whole and all(own == options for own in found.options):
        return found.lines
    parser = Parser(text, None, options)
    lines, ends = [], []
    while (line := parser.next()) is not None:
        lines.append(line)
        ends.append(parser.pos)
    result = tuple(lines)
    if not parser.warnings and comes_again(text):
        remember(text, options, ParsedLines(result, tuple(ends), (options,) * len(result), True))
    return result


def recall(text: str, options: Options, line: int = 1) -> ParsedLines | None:
    """The lines of a text, the first of which has this number, that was read before with these options and without
    aliases."""
    return _scripts.get((text, options, line)) if len(text) <= LONGEST else None


def comes_again(text: str, line: int = 1) -> bool:
    """Whether a text has come before, so that it is worth keeping; the next time it has."""
    if len(text) > LONGEST:
        return False
    mark = hash((text, line))
    if mark in _once:
        return True
    with _lock:
        if len(_once) >= _REMEMBERED:
            del _once[next(iter(_once))]
        _once[mark] = None
    return False


def remember(text: str, options: Options, known: ParsedLines, line: int = 1) -> None:
    """Keeps what a caller read line by line, provided that neither options nor aliases changed on the way."""
    global _size
    if len(text) > LONGEST:
        return
    key = (text, options, line)
    with _lock:
        if key not in _scripts:
            _make_room(len(text))
            _size += len(text)
        _scripts[key] = known


def _make_room(size: int) -> None:
    global _size
    while _scripts and (len(_scripts) >= _KEPT or _size + size > _CHARACTERS):
        # Oldest first; a dictionary keeps the order of insertion.
        key = next(iter(_scripts))
        del _scripts[key]
        _size -= len(key[0])
