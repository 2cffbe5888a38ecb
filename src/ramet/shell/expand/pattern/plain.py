"""What patterns have in common, and the ones that are plain text or a stretch of single characters."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from typing import Literal as OneOf

from ramet.concurrency.offload import checkpoint
from ramet.concurrency.sizes import SMALL
from ramet.core.errors import LimitExceeded
from ramet.shell.expand.long_text import between, blocks, spanned, spliced
from ramet.shell.expand.pattern.tokens import (
    Set,
    Token,
)

Where = OneOf["/", "//", "/#", "/%"]
MAX_EXTENDED: Final = 1 << 22
"""Longest text, in characters, that a pattern with extended groups is tried on."""
WINDOW: Final = 1 << 20
"""Characters that one call into C looks at: long texts are searched window by window."""


class Pattern:
    """A pattern of any kind. ``literal`` is its text when it is only text."""

    __slots__ = ("dot", "literal", "nocase", "starred")

    quick = False
    """Is stripping it from a text one or two string searches, however long the text is?"""

    def __init__(self, literal: str | None, nocase: bool, dot: bool, starred: bool = False) -> None:
        self.literal = literal
        self.nocase = nocase
        self.dot = dot  # may match a leading dot in a file name
        self.starred = starred  # begins with a star: then bash also replaces an empty text

    def matches(self, text: str) -> bool:
        """Does the pattern match all of the text?"""
        raise NotImplementedError

    def prefix(self, text: str, longest: bool) -> int:
        """The length of the shortest or longest start of the text that matches; -1 when none does."""
        raise NotImplementedError

    def suffix(self, text: str, longest: bool) -> int:
        """Where the shortest or longest end of the text that matches begins; -1 when none does."""
        raise NotImplementedError

    def find(self, text: str, pos: int) -> tuple[int, int] | None:
        """The leftmost match from ``pos`` on, the longest one there."""
        raise NotImplementedError

    def component(self, name: str, dotglob: bool = False) -> bool:
        """Does it match a name in a directory? A leading dot wants to be asked for."""
        if name.startswith("."):
            if name in (".", ".."):
                return self.literal == name
            if not dotglob and not self.dot:
                return False
        return self.matches(name)

    def without_prefix(self, text: str, longest: bool) -> str:
        """``${text#p}`` or ``${text##p}``."""
        end = self.prefix(text, longest)
        return spliced(text, 0, end) if end > 0 else text

    def without_suffix(self, text: str, longest: bool) -> str:
        """``${text%p}`` or ``${text%%p}``."""
        begin = self.suffix(text, longest)
        return spliced(text, begin, len(text)) if begin >= 0 else text

    def replace(self, text: str, where: Where, replacement: str | Callable[[str], str], most: int = sys.maxsize) -> str:
        """``${text/p/r}`` and its kin, of at most so many characters; a callable gets what was matched."""
        if not text and self.literal is None:
            return _filled(replacement, "", 0, 0) if (self.starred or where == "/%") and self.matches("") else text
        if where == "/#":
            end = self.prefix(text, True)
            return text if end < 0 else spliced(text, 0, end, _filled(replacement, text, 0, end))
        if where == "/%":
            begin = self.suffix(text, True)
            return text if begin < 0 else spliced(text, begin, len(text), _filled(replacement, text, begin, len(text)))
        if self.literal == "":
            return text
        if self.literal is not None and not self.nocase:
            new = _filled(replacement, self.literal, 0, len(self.literal))
            if where == "//" and len(text) > WINDOW:
                if len(self.literal) > WINDOW:
                    return self._replace_all(text, new, most)
                return "".join(_replace_windows(text, self.literal, new, most))
            grows = (len(new) - len(self.literal)) * (text.count(self.literal) if where == "//" else 1)
            _bounded(len(text) + grows, most)
            if where == "//":
                return text.replace(self.literal, new)
        if where == "/":
            found = self.find(text, 0)
            if found is None or found[0] >= len(text):
                return text
            begin, end = found
            new = _filled(replacement, text, begin, end)
            _bounded(len(text) + len(new) - (end - begin), most)
            return spliced(text, begin, end, new)
        return self._replace_all(text, replacement, most)

    def _replace_all(self, text: str, replacement: str | Callable[[str], str], most: int) -> str:
        if len(text) > WINDOW:
            first = self.find(text, 0)
            if first is None or first[0] >= len(text):
                return text
            return "".join(blocks(self._replaced(text, first, replacement, most)))
        out: list[str] = []
        pos, n, size = 0, len(text), 0
        while pos < n:
            found = self.find(text, pos)
            if found is None:
                break
            begin, end = found
            if begin >= n:
                break
            out.append(text[pos:begin])
            out.append(_filled(replacement, text, begin, end))
            size += len(out[-1])
            _bounded(size, most)
            if end == begin:
                out.append(text[begin])
                end += 1
            pos = end
        if pos == 0:
            return text
        out.append(text[pos:])
        return "".join(out)

    def _replaced(
        self, text: str, found: tuple[int, int] | None, replacement: str | Callable[[str], str], most: int
    ) -> Iterator[str]:
        """What a very long text becomes, whose first match is known, in pieces."""
        pos, n, size = 0, len(text), 0
        while found is not None and found[0] < n:
            begin, end = found
            yield from spanned(text, pos, begin)
            new = _filled(replacement, text, begin, end)
            size += len(new)
            _bounded(size, most)
            yield new
            if end == begin:
                yield text[begin]
                end += 1
            pos = end
            found = self.find(text, pos) if pos < n else None
        yield from spanned(text, pos, n)


def _bounded(size: int, most: int) -> None:
    if size > most and size > SMALL:
        raise LimitExceeded("string_bytes", most)


def _replace_windows(text: str, old: str, new: str, most: int) -> Iterator[str]:
    """`text.replace`, a window at a time; what could begin a match that crosses the border is carried over."""
    size, carry = 0, ""
    step = max(WINDOW >> 4, 2 * len(old))
    for start in range(0, len(text), step):
        pieces = (carry + text[start : start + step]).split(old)
        tail = pieces[-1]
        cut = max(0, len(tail) - len(old) + 1)
        pieces[-1], carry = tail[:cut], tail[cut:]
        _bounded(size + len(new) * (len(pieces) - 1), most)
        if len(new) * len(pieces) < WINDOW:
            done = new.join(pieces)
            size += len(done)
            yield done
        else:
            for done in blocks(between(new, pieces)):
                size += len(done)
                yield done
    yield carry


def _filled(replacement: str | Callable[[str], str], text: str, begin: int, end: int) -> str:
    return replacement if isinstance(replacement, str) else replacement(text[begin:end])


class TextPattern(Pattern):
    """Only text."""

    __slots__ = ("text",)
    quick = True

    def __init__(self, text: str) -> None:
        super().__init__(text, False, text.startswith("."))
        self.text = text

    def matches(self, text: str) -> bool:
        return text == self.text

    def prefix(self, text: str, longest: bool) -> int:
        return len(self.text) if text.startswith(self.text) else -1

    def suffix(self, text: str, longest: bool) -> int:
        return len(text) - len(self.text) if text.endswith(self.text) else -1

    def find(self, text: str, pos: int) -> tuple[int, int] | None:
        at = text.find(self.text, pos)
        return None if at < 0 else (at, at + len(self.text))


class _LongText(TextPattern):
    """Only text, and too much of it to be compared at once."""

    __slots__ = ()
    quick = False

    def matches(self, text: str) -> bool:
        return len(text) == len(self.text) and text.startswith(self.text)

    def prefix(self, text: str, longest: bool) -> int:
        return len(self.text) if text.startswith(self.text) else -1

    def suffix(self, text: str, longest: bool) -> int:
        begin = len(text) - len(self.text)
        return begin if begin >= 0 and text.startswith(self.text, begin) else -1


def text_pattern(text: str) -> TextPattern:
    return TextPattern(text) if len(text) <= WINDOW else _LongText(text)


class Segment:
    """A run of tokens that each match one character."""

    __slots__ = ("ahead", "pattern", "text", "width")

    def __init__(self, tokens: Sequence[Token], nocase: bool) -> None:
        plain = not nocase and all(isinstance(token, str) for token in tokens)
        self.text: str | None = "".join(tokens) if plain else None  # type: ignore[arg-type]
        self.width = len(tokens) if self.text is None else len(self.text)
        self.pattern: re.Pattern[str] | None = None
        self.ahead: re.Pattern[str] | None = None
        if not plain:
            flags = re.DOTALL | (re.IGNORECASE if nocase else 0)
            source = "".join(map(one_regex, tokens))
            self.pattern = re.compile(source, flags)
            self.ahead = re.compile(f"(?={source})", flags)

    def at(self, text: str, pos: int) -> bool:
        if pos < 0:
            return False
        if self.text is not None:
            return text.startswith(self.text, pos)
        assert self.pattern is not None
        return self.pattern.match(text, pos) is not None

    def find(self, text: str, pos: int, end: int) -> int:
        window = WINDOW if self.text is not None else _SETS
        while end - pos > window + self.width:
            at = self._find(text, pos, pos + window + self.width)
            if at >= 0:
                return at
            pos += window
            checkpoint()
        return self._find(text, pos, end)

    def _find(self, text: str, pos: int, end: int) -> int:
        if self.text is not None:
            return text.find(self.text, pos, end)
        assert self.pattern is not None
        m = self.pattern.search(text, pos, end)
        return -1 if m is None else m.start()

    def rfind(self, text: str, pos: int, end: int) -> int:
        window = WINDOW if self.text is not None else _RWINDOW
        while end - pos > window + self.width:
            at = self._rfind(text, end - window - self.width, end)
            if at >= 0:
                return at
            end -= window
            checkpoint()
        return self._rfind(text, pos, end)

    def _rfind(self, text: str, pos: int, end: int) -> int:
        if self.text is not None:
            return text.rfind(self.text, pos, end)
        assert self.ahead is not None
        at = -1
        for match in self.ahead.finditer(text, pos, end):
            at = match.start()
        return at


_SETS: Final = WINDOW >> 4
"""The same for a search with a regular expression, which takes longer."""
_RWINDOW: Final = 1 << 10
"""The same for a search from the end, which a set or `?` has to do forwards within a window."""


def one_regex(token: Token) -> str:
    if isinstance(token, str):
        return re.escape(token)
    if isinstance(token, Set):
        return token.regex()
    return "."
