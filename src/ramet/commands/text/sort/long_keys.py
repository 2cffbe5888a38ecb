"""Keys of lines of many megabytes: the same values, found and made a part at a time, in a thread."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ramet.commands.text.sort.compare import comparer, exact, letters_of, month_key, numeric_key
from ramet.commands.text.sort.keys import Key, Line
from ramet.concurrency.bigbytes import PIECE, changed, run_end
from ramet.concurrency.bigtext import spanned
from ramet.concurrency.offload import checkpoint

_BLANKS: Final = re.compile(r"[ \t\n]*")
_WORD: Final = re.compile(r"[^ \t\n]*")
_ZEROS: Final = re.compile(r"0*")
_DIGITS: Final = re.compile(r"[0-9]*")


def _behind_fields(line: Line, count: int, separator: str | None) -> tuple[int, int]:
    """Where so many fields end, and where the next one begins."""
    at = stop = 0
    for _ in range(count):
        if separator is None:
            at = stop = run_end(_WORD, line, run_end(_BLANKS, line, at))
        else:
            stop = _find(line, separator, at)
            at = min(stop + 1, len(line))
        if stop >= len(line):
            break
    return stop, at


def _find(line: Line, char: str, at: int) -> int:
    """Where a character comes next; the end of the line if it does not."""
    while at < len(line):
        checkpoint()
        found = line.find(char, at, at + PIECE)
        if found >= 0:
            return found
        at += PIECE
    return len(line)


def region(key: Key, separator: str | None) -> Callable[[Line], Line]:
    """A function from a line to the text that the key covers."""

    def find(line: Line) -> Line:
        begin = _behind_fields(line, key.first_field - 1, separator)[1]
        if key.skip_start:
            begin = run_end(_BLANKS, line, begin)
        begin = min(begin + key.first_char - 1, len(line))
        if key.last_field is None:
            end = len(line)
        elif key.last_char == 0:
            end = _behind_fields(line, key.last_field, separator)[0]
        else:
            end = _behind_fields(line, key.last_field - 1, separator)[1]
            if key.skip_end:
                end = run_end(_BLANKS, line, end)
            end = min(end + key.last_char, len(line))
        return line[begin : max(begin, end)]

    return find


def without_blanks(line: Line) -> Line:
    """What comes behind the blanks that a line begins with."""
    return line[run_end(_BLANKS, line, 0) :]


def compare_by(ordering: frozenset[str], salt: bytes) -> Callable[[str], Any] | None:
    """What `comparer` gives, for texts of any length."""
    usual = comparer(ordering, salt)
    if usual is numeric_key:
        return _number
    if usual is month_key:
        return lambda text: month_key(text[(at := run_end(_BLANKS, text, 0)) : at + 3])
    letters = letters_of(ordering)
    if "R" in ordering:
        return lambda text: _random(salt, text if letters is None else letters(text))
    if letters is not None and "V" not in ordering:
        return partial(changed, change=letters)
    return usual


def _random(salt: bytes, text: str) -> bytes:
    made = hashlib.md5(salt)
    for part in spanned(text, 0, len(text)):
        checkpoint()
        made.update(part.encode("latin-1"))
    made.update(b"\0")
    return made.digest()


def _number(text: str) -> Any:
    """The value of a leading decimal number."""
    start = run_end(_BLANKS, text, 0)
    minus = text[start : start + 1] == "-"
    begin = run_end(_ZEROS, text, start + minus)
    point = run_end(_DIGITS, text, begin)
    end = run_end(_DIGITS, text, point + 1) if text[point : point + 1] == "." else point
    if end - start <= PIECE:
        return numeric_key(text[start:end])
    return exact(minus, text[begin:point], text[point + 1 : end] if end > point else "")
