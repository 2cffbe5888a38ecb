"""History expansion: `!!`, `!n`, `!text`, `^old^new^`, with word designators and modifiers, as bash reads a line.

Pure: a line and the earlier lines in, a line out. What a search or a substitution leaves behind for the next one is
in a `Memory`.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from ramet.concurrency.offload import checkpoint

_NO_EXPANSION: Final = frozenset(" \t\n\r=")
"""What follows the `!` of a plain exclamation."""
_EVENT_ENDS: Final = frozenset("^$*%;&()|<>")
_DESIGNATORS: Final = frozenset(":$*%^")
_BREAKS: Final = frozenset(" \t\n;&()|<>")
_QUOTES: Final = "\"'`"
_LAST: Final = -2
"""The place of `$`: the last word, whatever its number is."""


class ExpansionFailure(Exception):
    """What is wrong, as bash words it."""


class TooLong(Exception):
    """The line has become longer than a line may be."""


@dataclass(slots=True)
class Memory:
    """What one expansion leaves to the next: the text that was searched for, its word, and the last substitution."""

    search: str = ""
    match: str = ""
    old: str = ""
    new: str = ""


class Chars(NamedTuple):
    """The three characters that `histchars` sets."""

    event: str = "!"
    quick: str = "^"
    comment: str = "#"


class Expanded(NamedTuple):
    text: str
    changed: bool
    shown_only: bool
    """Whether `:p` was there: the line is shown and kept, and not run."""


DEFAULT_CHARS: Final = Chars()
Lines = Sequence[str]
Number = Callable[[int], str | None]


@dataclass(slots=True)
class Past:
    """The earlier lines: `lines` from the oldest to the newest, the first of which has the number `base`."""

    lines: Lines
    base: int = 1

    def number(self, number: int) -> str | None:
        place = number - self.base
        return self.lines[place] if 0 <= place < len(self.lines) else None

    def last(self) -> str | None:
        return self.lines[-1] if self.lines else None


def wants(line: str, chars: Chars = DEFAULT_CHARS, begin: int = 0, end: int = sys.maxsize) -> bool:
    """Whether there can be anything to expand in a line, or between two places of a text."""
    if not chars.event:
        return False
    return line.find(chars.event, begin, end) >= 0 or line.find(chars.quick, begin, end) >= 0


def expand(
    line: str,
    past: Past,
    memory: Memory,
    chars: Chars = DEFAULT_CHARS,
    quoted: str = "",
    extglob: bool = False,
    most: int = sys.maxsize,
) -> Expanded:
    """The line with its history expansions done; `quoted` is the quote in which it begins.

    Raises ExpansionFailure, and TooLong when there are more than `most` characters in it.
    """
    if not chars.event:
        return Expanded(line, False, False)
    text = line
    if chars.quick and line.startswith(chars.quick):
        text = f"{chars.event}{chars.event}:s{line}"
    expansion = _Expansion(text, past, memory, chars, extglob, most)
    return expansion.run(quoted) if expansion.found(quoted) else Expanded(line, False, False)


@lru_cache(16)
def _plain_run(chars: Chars) -> Callable[[str, int], re.Match[str] | None]:
    """Characters that mean nothing to an expansion."""
    return re.compile("[^" + re.escape("\\\"'" + chars.event + chars.comment) + "]{1,65536}+").match


class _Expansion:
    __slots__ = ("chars", "extglob", "length", "line", "memory", "most", "out", "past")

    def __init__(self, line: str, past: Past, memory: Memory, chars: Chars, extglob: bool, most: int) -> None:
        self.line, self.past, self.memory, self.chars, self.extglob = line, past, memory, chars, extglob
        self.out: list[str] = []
        self.length, self.most = 0, most

    def _add(self, text: str) -> None:
        self.length += len(text)
        if self.length > self.most:
            raise TooLong
        self.out.append(text)

    def found(self, quoted: str) -> bool:
        """Whether there is an expansion that neither quotes nor something of the shell's hide.

        Once there is one, only quotes and what follows a `!` hide others on its line.
        """
        line, event, comment = self.line, self.chars.event, self.chars.comment
        plain = _plain_run(self.chars)
        double = quoted == '"'
        visible = _visible(line, event, quoted)
        i = _single_end(line, 0, False) if quoted == "'" else 0
        while i < len(line):
            run = plain(line, i)
            if run is not None:
                i = run.end()
                continue
            char, after = line[i], line[i + 1 : i + 2]
            if char == event:
                if i in visible and not self._plain(i, double) and not self._shells(i):
                    return True
            elif char == comment and not double and (i == 0 or line[i - 1] in " \t\n"):
                return False
            elif char == "\\" and (after == event or after == '"' if double else after in ("'", event)):
                i += 1
            elif char == '"':
                double = not double
            elif char == "'" and not double:
                i = _single_end(line, i + 1, line[i - 1 : i] == "$") - 1
            i += 1
        return False

    def run(self, quoted: str) -> Expanded:
        line, event, comment = self.line, self.chars.event, self.chars.comment
        plain = _plain_run(self.chars)
        changed = shown_only = False
        double = quoted == '"'
        i = 0
        if quoted == "'":
            i = _single_end(line, 0, False)
            self._add(line[:i])
        while i < len(line):
            run = plain(line, i)
            if run is not None:
                self._add(run[0])
                i = run.end()
                continue
            char = line[i]
            if char == "\\" and (not double or line[i + 1 : i + 2] in ('"', "\\", event)):
                self._add(line[i : i + 2])
                i += 2
            elif char == '"':
                double = not double
                self._add(char)
                i += 1
            elif char == "'" and not double:
                end = _single_end(line, i + 1, line[i - 1 : i] == "$")
                self._add(line[i:end])
                i = end
            elif char == comment and not double and (i == 0 or line[i - 1] in " \t\n"):
                self._add(line[i:])
                break
            elif char != event or self._plain(i, double):
                self._add(char)
                i += 1
            else:
                i, text, only = self._expansion(i, '"' if double else "")
                self._add(text)
                changed, shown_only = True, shown_only or only
        return Expanded("".join(self.out), changed, shown_only)

    def _plain(self, i: int, double: bool) -> bool:
        """Whether the character is an exclamation by what follows it."""
        after = self.line[i + 1 : i + 2]
        return not after or after in _NO_EXPANSION or (double and after == '"')

    def _shells(self, i: int) -> bool:
        """Whether the character belongs to a pattern or a parameter of the shell."""
        line = self.line
        before = line[i - 1] if i else ""
        if before == "[" and line.rfind("]") > i:
            return True
        if i > 1 and before == "{" and line[i - 2] == "$" and line.rfind("}") > i:
            return True
        if i > 1 and before == "$":
            return True
        return self.extglob and i > 1 and line[i + 1 : i + 2] == "(" and line.rfind(")") > i

    # ------------------------------------------------------------------------------------------------- one event

    def _expansion(self, start: int, quote: str) -> tuple[int, str, bool]:
        """The end of the expansion at `start`, what it becomes, and whether it is only shown."""
        line = self.line
        after = line[start + 1]
        event: str | None
        if after in _DESIGNATORS:
            i, event = start + 1, self.past.last()
            if event is None:
                raise ExpansionFailure(f"{line[start : start + 1]}: event not found")
        elif after == "#":
            i, event = start + 2, "".join(self.out)
        else:
            i, event = self._event(start + 1, quote)
            if event is None:
                raise ExpansionFailure(f"{line[start:i]}: event not found")
        begin = i
        found, i = self._words(event, i)
        if found is False:
            raise ExpansionFailure(f"{line[begin:i]}: bad word specifier")
        return self._modified(event if found is None else str(found), i)

    def _event(self, i: int, quote: str) -> tuple[int, str | None]:
        """Where the name of an event ends, and its line."""
        line, past = self.line, self.past
        if line[i] == self.chars.event:
            return i + 1, past.last()
        end = i + 1 if line[i] == "-" else i
        while end < len(line) and line[end] in "0123456789":
            end += 1
        if line[end - 1] in "0123456789" and end > i:
            number = int(line[i:end])
            return end, past.number(number if number >= 0 and line[i] != "-" else past.base + len(past.lines) + number)
        if line[i] == "?":
            end = i + 1
            while end < len(line) and line[end] not in "?\n":
                end += 1
            wanted = line[i + 1 : end]
            return min(end + 1, len(line)) if line[end : end + 1] == "?" else end, self._search(wanted)
        end = i
        while end < len(line):
            char = line[end]
            if char in " \t\n:" or char in _EVENT_ENDS or char == quote or (char == "-" and end > i):
                break
            end += 1
        wanted = line[i:end]
        found = next((one for one in reversed(past.lines) if one.startswith(wanted)), None) if wanted else None
        return end, found

    def _search(self, wanted: str) -> str | None:
        wanted = wanted or self.memory.search
        if not wanted:
            return None
        for one in reversed(self.past.lines):
            at = one.rfind(wanted)
            if at >= 0:
                self.memory.search, self.memory.match = wanted, _word_at(one, at)
                return one
        return None

    # ----------------------------------------------------------------------------------------------------- words

    def _words(self, event: str, i: int) -> tuple[str | bool | None, int]:
        """What a word designator chooses, and where it ends; None without one, False when there is no such word."""
        line = self.line
        start = i
        explicit = line[i : i + 1] == ":"
        i += explicit
        char = line[i : i + 1]
        if char == "%":
            return self.memory.match, i + 1
        if char == "*":
            return _chosen(event, 1, _LAST) or "", i + 1
        if char == "$":
            found = _chosen(event, _LAST, _LAST)
            return (None if found is None else found), i + 1
        if char == "-":
            first = 0
        elif char == "^":
            first = 1
            i += 1
        elif explicit and char.isdigit() and char.isascii():
            first, i = _number(line, i)
        else:
            return None, start
        last = first
        char = line[i : i + 1]
        if char in ("^", "*") and char:
            last = 1 if char == "^" else _LAST
            i += 1
        elif char == "-":
            i += 1
            char = line[i : i + 1]
            if char.isdigit() and char.isascii():
                last, i = _number(line, i)
            elif char == "$":
                last, i = _LAST, i + 1
            elif char == "^":
                last, i = 1, i + 1
            else:
                last = -1
        chosen = _chosen(event, first, last) if last >= first or last < 0 else None
        return (False if chosen is None else chosen), i

    # ------------------------------------------------------------------------------------------------- modifiers

    def _modified(self, text: str, i: int) -> tuple[int, str, bool]:
        line = self.line
        quoting, shown_only = "", False
        begin = i
        while line[i : i + 1] == ":":
            code = line[i + 1 : i + 2]
            everywhere = by_word = False
            if code and code in "gaG":
                everywhere, by_word = code != "G", code == "G"
                i += 1
                code = line[i + 1 : i + 2]
            if code and code in "s&":
                if code == "s" and i + 2 >= len(line):
                    i += 2
                    continue
                i = self._take_substitution(i) if code == "s" else i + 2
                changed = self._substituted(text, everywhere, by_word, f"{line[begin:i]}")
                text = changed
                continue
            if code == "p":
                shown_only = True
            elif code in ("q", "x") and code:
                quoting = code
            elif code == "t":
                text = text.rpartition("/")[2]
            elif code == "h":
                text = text.rpartition("/")[0] if "/" in text else text
            elif code == "r":
                text = text.rpartition(".")[0] if "." in text else text
            elif code == "e":
                text = text[text.rfind(".") :] if "." in text else text
            else:
                raise ExpansionFailure(f"{line[i + 1 : i + 2]}: unrecognized history modifier")
            i += 2
        if quoting:
            text = "'" + text.replace("'", "'\\''") + "'"
            if quoting == "x":
                for blank in " \t\n":
                    text = text.replace(blank, f"'{blank}'")
        return i, text, shown_only

    def _take_substitution(self, i: int) -> int:
        """Read `s/old/new/`; the place after it."""
        line, memory = self.line, self.memory
        delimiter = line[i + 2]
        old, i = _until(line, i + 3, delimiter)
        if old:
            memory.old = old
        elif not memory.old:
            memory.old = memory.search
        new, i = _until(line, i, delimiter)
        memory.new = new.replace("\\&", "\0").replace("&", memory.old).replace("\0", "&")
        return i

    def _substituted(self, text: str, everywhere: bool, by_word: bool, shown: str) -> str:
        old, new = self.memory.old, self.memory.new
        if not old:
            raise ExpansionFailure(f"{shown}: no previous substitution")
        if old not in text:
            raise ExpansionFailure(f"{shown}: substitution failed")
        if text.count(old) * len(new) > self.most:
            raise TooLong
        if by_word:
            return _each_word(text, old, new)
        return text.replace(old, new) if everywhere else text.replace(old, new, 1)


def _visible(line: str, event: str, quoted: str) -> set[int]:
    """The places of a character that are not in single quotes, not even in those of a substitution in double quotes."""
    found: set[int] = set()
    within = [quoted] if quoted == '"' else []
    i = _single_end(line, 0, False) if quoted == "'" else 0
    special = re.compile("[" + re.escape("\\'\"$)" + event) + "]").search
    while i < len(line):
        at = special(line, i, i + _WINDOW)
        if at is None:
            i += _WINDOW
            checkpoint()
            continue
        i = at.start()
        char = line[i]
        top = within[-1] if within else ""
        if char == event:
            found.add(i)
        elif char == "\\":
            i += 1
        elif char == "'" and top != '"':
            i = _single_end(line, i + 1, line[i - 1 : i] == "$") - 1
        elif char == '"':
            if top == '"':
                within.pop()
            else:
                within.append('"')
        elif line.startswith("$(", i):
            within.append("(")
            i += 1
        elif char == ")" and top == "(":
            within.pop()
        i += 1
    return found


_WINDOW: Final = 65536
"""Characters that are looked at between two chances for others to run."""


def _each_word(text: str, old: str, new: str) -> str:
    """A substitution once in every word."""
    out: list[str] = []
    i = 0
    while i < len(text):
        begin = i
        while i < len(text) and text[i] in " \t\n":
            i += 1
        out.append(text[begin:i])
        end = max(word_end(text, i), i + 1) if i < len(text) else i
        out.append(text[i:end].replace(old, new, 1))
        i = end
    return "".join(out)


def _until(line: str, i: int, delimiter: str) -> tuple[str, int]:
    """The text up to a delimiter that no backslash stands before, and the place after it."""
    out = ""
    while i < len(line) and line[i] != delimiter:
        if line[i] == "\\" and line[i + 1 : i + 2] == delimiter:
            i += 1
        out += line[i]
        i += 1
    return out, min(i + 1, len(line))


def _number(line: str, i: int) -> tuple[int, int]:
    end = i
    while end < len(line) and line[end] in "0123456789":
        end += 1
    return int(line[i:end][:9]), end


def _single_end(line: str, i: int, escapes: bool) -> int:
    """The place after the closing quote of a text that begins at `i`."""
    while i < len(line) and line[i] != "'":
        i += 2 if escapes and line[i] == "\\" else 1
    return min(i + 1, len(line))


# ------------------------------------------------------------------------------------------------ words of a line


def words_of(line: str, comment: str = "#") -> Iterator[tuple[int, int]]:
    """Where the words of a line begin and end, as word designators count them."""
    i = 0
    while True:
        while i < len(line) and line[i] in " \t\n":
            i += 1
        if i >= len(line) or line[i] == comment:
            return
        end = word_end(line, i)
        if end == i:
            end += 1
            while end < len(line) and line[end] in _BREAKS:
                end += 1
        yield i, end
        i = end


def _chosen(line: str, first: int, last: int) -> str | None:
    """Words by number, joined by blanks; -1 is all but the last one, `_LAST` the last one."""
    begins, ends = array("q"), array("q")
    for begin, end in words_of(line):
        checkpoint()
        begins.append(begin)
        ends.append(end)
    count = len(begins)
    if first == _LAST:
        first = count - 1
    last = count - 1 if last == _LAST else count - 2 if last == -1 else last
    if not 0 <= first < count or last >= count or last < -1 or first > last + 1:
        return None
    end = last + 1

    def run(start: int) -> str:
        words = [line[begins[place] : ends[place]] for place in range(start, min(start + _RUN, end))]
        return " " * (start > first) + " ".join(words)

    return "".join(map(run, range(first, end, _RUN)))


_RUN: Final = 1024
"""Words that are joined at once."""


def _word_at(line: str, at: int) -> str:
    """The word of a line that holds a place."""
    for begin, end in words_of(line):
        if begin <= at < end:
            return line[begin:end]
    return ""


def word_end(line: str, i: int) -> int:
    """Where the word ends that begins at `i`."""
    n = len(line)
    if i >= n:
        return i
    if line[i] in "()\n":
        return i + 1
    if line[i] in "0123456789":
        j = i
        while j < n and line[j] in "0123456789":
            j += 1
        if j == n:
            return j
        if line[j] not in "<>":
            return _plain_word_end(line, j, "", 0)
        i = j
    if line[i] not in "<>;&|":
        return _plain_word_end(line, i, "", 0)
    peek = line[i + 1 : i + 2]
    if peek == line[i]:
        return i + 3 if peek == "<" and line[i + 2 : i + 3] in ("-", "<") else i + 2
    if peek == "&" and line[i] in "<>":
        j = i + 2
        while j < n and line[j] in "0123456789":
            j += 1
        return j + 1 if line[j : j + 1] == "-" else j
    if line[i : i + 2] in ("&>", ">|"):
        return i + 2
    if peek == "(" and line[i] in "<>":
        return _plain_word_end(line, i + 2, ")", 1)
    return i + 1


def _plain_word_end(line: str, i: int, delimiter: str, nested: int) -> int:
    n = len(line)
    if not delimiter and i < n and line[i] in _QUOTES:
        delimiter = line[i]
        i += 1
    while i < n:
        char = line[i]
        if char == "\\" and (line[i + 1 : i + 2] == "\n" or delimiter != "'"):
            i += 2
            continue
        if nested and char == "(":
            nested += 1
        elif nested and char == delimiter:
            nested -= 1
            delimiter = delimiter if nested else ""
        elif delimiter and char == delimiter:
            delimiter = ""
        elif not nested and not delimiter and char in "<>$!@?+*" and line[i + 1 : i + 2] == "(":
            i += 1
            delimiter, nested = ")", 1
        elif not delimiter and char in _BREAKS:
            break
        elif not delimiter and char in _QUOTES:
            delimiter = char
        i += 1
    return min(i, n)
