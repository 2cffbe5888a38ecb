"""Base class of shell patterns, and the kinds without extended groups: plain text, segments."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Final
from typing import Literal as OneOf

from ramet.concurrency.sizes import SMALL
from ramet.core.errors import LimitExceeded
from ramet.text.pattern.tokens import (
    Set,
    Token,
)

Where = OneOf["/", "//", "/#", "/%"]
MAX_EXTENDED: Final = 1 << 22
"""Longest text, in characters, that a pattern with extended groups is tried on."""


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
        return text[end:] if end > 0 else text

    def without_suffix(self, text: str, longest: bool) -> str:
        """``${text%p}`` or ``${text%%p}``."""
        begin = self.suffix(text, longest)
        return text[:begin] if begin >= 0 else text

    def replace(self, text: str, where: Where, replacement: str | Callable[[str], str], most: int = sys.maxsize) -> str:
        """``${text/p/r}`` and its kin, of at most `most` characters; a callable gets the match."""
        if not text and self.literal is None:
            return _filled(replacement, "", 0, 0) if (self.starred or where == "/%") and self.matches("") else text
        if where == "/#":
            end = self.prefix(text, True)
            return text if end < 0 else _filled(replacement, text, 0, end) + text[end:]
        if where == "/%":
            begin = self.suffix(text, True)
            return text if begin < 0 else text[:begin] + _filled(replacement, text, begin, len(text))
        if self.literal == "":
            return text
        if self.literal is not None and not self.nocase:
            new = _filled(replacement, self.literal, 0, len(self.literal))
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
            return text[:begin] + new + text[end:]
        return self._replace_all(text, replacement, most)

    def _replace_all(self, text: str, replacement: str | Callable[[str], str], most: int) -> str:
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


def _bounded(size: int, most: int) -> None:
    if size > most and size > SMALL:
        raise LimitExceeded("string_bytes", most)


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
        if self.text is not None:
            return text.find(self.text, pos, end)
        assert self.pattern is not None
        m = self.pattern.search(text, pos, end)
        return -1 if m is None else m.start()

    def rfind(self, text: str, pos: int, end: int) -> int:
        if self.text is not None:
            return text.rfind(self.text, pos, end)
        assert self.ahead is not None
        at = -1
        while at < 0 and end - pos >= self.width:
            begin = max(pos, end - _BACKWARDS - self.width)
            for match in self.ahead.finditer(text, begin, end):
                at = match.start()
            end = begin + self.width - 1
        return at


_BACKWARDS: Final = 1 << 10
"""Characters of one step of a search from the end, which a regular expression does forwards."""


def one_regex(token: Token) -> str:
    if isinstance(token, str):
        return re.escape(token)
    if isinstance(token, Set):
        return token.regex()
    return "."
