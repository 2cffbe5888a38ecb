"""Regex engines behind one interface: RE2, `re` and `regex`; those that backtrack have a time limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Protocol

from ramet.patterns.count import find
from ramet.patterns.errors import MatchTimeout, PatternError

Span = tuple[int, int]
NO_SPAN = (-1, -1)
MEMORY = 64 << 20
"""Bytes that RE2 may take for a pattern and the states it is in, and for each byte of a pattern beyond that: where it
has too little of them, it is a thousand times slower."""
_MEMORY_EACH = 256
_TOO_DEEP = "exceeded PCRE's backtracking limit"


class MatchEngine(Protocol):
    def search(self, data: bytes, pos: int) -> Span | None:
        """The leftmost match at or after `pos`; what is before `pos` counts as context."""
        ...

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        """The same with the spans of all groups, (-1, -1) for one that took no part."""
        ...


class LiteralEngine:
    __slots__ = ("_literal", "_size")

    def __init__(self, literal: bytes) -> None:
        self._literal = literal
        self._size = len(literal)

    def search(self, data: bytes, pos: int) -> Span | None:
        found = find(data, self._literal, pos)
        return None if found < 0 else (found, found + self._size)

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = find(data, self._literal, pos)
        return None if found < 0 else [(found, found + self._size)]


class ReEngine:
    __slots__ = ("_search", "nullable", "pattern")

    def __init__(self, source: str, icase: bool, nullable: bool) -> None:
        self.pattern = re.compile(source.encode("latin-1"), re.IGNORECASE if icase else 0)
        self._search = self.pattern.search
        self.nullable = nullable
        """Whether it may match the empty string, where `re` and POSIX disagree about what comes next."""

    def search(self, data: bytes, pos: int) -> Span | None:
        found = self._search(data, pos)
        return None if found is None else found.span()

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self._search(data, pos)
        return None if found is None else list(found.regs)


class Re2Engine:
    """RE2, linear in the data. Spans of groups cost more, so a second program finds them, made on demand."""

    __slots__ = ("_anchor", "_captures", "_icase", "_longest", "_memory", "_plain", "_source", "_utf8")

    def __init__(self, source: str, icase: bool, utf8: bool, longest: bool = True, memory: int = MEMORY) -> None:
        self._source = source.encode("utf-8" if utf8 else "latin-1")
        self._icase, self._utf8, self._longest, self._memory = icase, utf8, longest, memory
        self._captures: Any = None
        self._plain = self._program(captures=False)
        self._anchor = _re2().RE2.Anchor.UNANCHORED

    def _program(self, captures: bool) -> Any:
        module = _re2()
        options = module.RE2.Options()
        options.longest_match = self._longest
        options.case_sensitive = not self._icase
        options.never_capture = not captures
        options.log_errors = False
        options.max_mem = self._memory + _MEMORY_EACH * len(self._source)
        if not self._utf8:
            options.encoding = module.RE2.Options.Encoding.LATIN1
        program = module.RE2(self._source, options)
        if not program.ok():
            raise PatternError(program.error().decode("utf-8", "replace"))
        return program.Match

    def search(self, data: bytes, pos: int) -> Span | None:
        found: Span = self._plain(self._anchor, data, pos, len(data))[0]
        return None if found[0] < 0 else found

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        if self._captures is None:
            self._captures = self._program(captures=True)
        found: list[Span] = self._captures(self._anchor, data, pos, len(data))
        return None if found[0][0] < 0 else found


@lru_cache(maxsize=1)
def _re2() -> Any:
    from re2 import _re2 as module

    return module


@lru_cache(maxsize=1)
def _regex() -> Any:
    import regex

    return regex


class RegexEngine:
    """The `regex` module on bytes: back-references and Perl syntax, bounded by time."""

    __slots__ = ("_guard", "_search", "seconds")

    def __init__(self, source: str, icase: bool, posix: bool, seconds: float, guard: MatchEngine | None = None) -> None:
        self._search = compile_regex(source.encode("latin-1"), icase, posix).search
        self.seconds = seconds
        self._guard = guard

    def _find(self, data: bytes, pos: int) -> Any:
        # The guard is linear and matches whenever this pattern does: most data never reaches the slow engine.
        if self._guard is not None and self._guard.search(data, pos) is None:
            return None
        try:
            return self._search(data, pos, timeout=self.seconds)
        except TimeoutError:
            raise MatchTimeout(f"the match took longer than {self.seconds:g} seconds") from None
        except (MemoryError, RecursionError):
            raise MatchTimeout(_TOO_DEEP) from None

    def search(self, data: bytes, pos: int) -> Span | None:
        found = self._find(data, pos)
        return None if found is None else found.span()

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self._find(data, pos)
        return None if found is None else list(found.regs)


class Renumbered:
    """An engine for a tree from which some groups are left out: each is wherever the one around it is."""

    __slots__ = ("_engine", "_places", "search")

    def __init__(self, engine: MatchEngine, groups: int, same: tuple[tuple[int, int], ...]) -> None:
        self._engine = engine
        self.search = engine.search
        around = dict(same)
        places = [0]
        count = 0
        for number in range(1, groups + 1):
            outer = around.get(number)
            # What is around a group was opened before it, and groups in the tree are counted as they are opened.
            count += outer is None
            places.append(count if outer is None else places[outer])
        self._places = places

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self._engine.spans(data, pos)
        return None if found is None else [found[place] for place in self._places]


class RegexTextEngine:
    """The `regex` module on decoded text, for what depends on characters beyond ASCII; offsets are given in bytes."""

    __slots__ = ("_cache", "_guard", "_search", "seconds")

    def __init__(
        self, source: str, icase: bool, posix: bool, seconds: float, guard: MatchEngine | None = None, flags: int = 0
    ) -> None:
        self._search = compile_regex(source, icase, posix, flags).search
        self.seconds = seconds
        self._guard = guard
        self._cache: tuple[bytes, str] = (b"", "")

    def _find(self, data: bytes, pos: int) -> tuple[Any, str] | None:
        if self._guard is not None and self._guard.search(data, pos) is None:
            return None
        known, text = self._cache
        if known is not data:
            text = data.decode("utf-8", "surrogateescape")
            self._cache = (data, text)
        start = len(data[:pos].decode("utf-8", "surrogateescape")) if pos else 0
        try:
            found = self._search(text, start, timeout=self.seconds)
        except TimeoutError:
            raise MatchTimeout(f"the match took longer than {self.seconds:g} seconds") from None
        except (MemoryError, RecursionError):
            raise MatchTimeout(_TOO_DEEP) from None
        return None if found is None else (found, text)

    def search(self, data: bytes, pos: int) -> Span | None:
        found = self._find(data, pos)
        if found is None:
            return None
        match, text = found
        start = len(text[: match.start()].encode("utf-8", "surrogateescape"))
        return start, start + len(match.group().encode("utf-8", "surrogateescape"))

    def spans(self, data: bytes, pos: int) -> list[Span] | None:
        found = self._find(data, pos)
        if found is None:
            return None
        match, text = found
        offsets = {-1: -1}
        for point in {point for span in match.regs for point in span if point >= 0}:
            offsets[point] = len(text[:point].encode("utf-8", "surrogateescape"))
        return [(offsets[start], offsets[end]) for start, end in match.regs]


_IN_PCRE_WORDS = {
    "missing )": "missing closing parenthesis",
    "unbalanced parenthesis": "unmatched closing parenthesis",
    "nothing to repeat": "quantifier does not follow a repeatable item",
    "multiple repeat": "quantifier does not follow a repeatable item",
    "min repeat greater than max repeat": "numbers out of order in {} quantifier",
    "unknown extension": "unrecognized character after (? or (?-",
    "invalid group reference": "reference to non-existent subpattern",
    "unknown group": "reference to non-existent subpattern",
    "bad character range": "range out of order in character class",
    "missing group name": "subpattern name expected",
    "missing >": "syntax error in subpattern name (missing terminator?)",
    "unknown property": "unknown property after \\P or \\p",
}
"""What is wrong with a pattern, as `grep -P` says it."""


def compile_regex(source: str | bytes, icase: bool, posix: bool, flags: int = 0) -> Any:
    module = _regex()
    flags |= module.VERSION0
    if icase:
        flags |= module.IGNORECASE
    if posix:
        flags |= module.POSIX
    try:
        return module.compile(source, flags, cache_pattern=False)
    except module.error as error:
        said = str(error.msg)
        raise PatternError(_IN_PCRE_WORDS.get(said, said)) from None
