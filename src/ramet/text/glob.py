"""fnmatch patterns for find, ls and tar, matched in linear time."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CLASSES = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "0-9A-Za-z",
    "upper": "A-Z",
    "lower": "a-z",
    "space": " \\t-\\r",
    "blank": " \\t",
    "punct": "!-/:-@\\[-`{-~",
    "print": " -~",
    "graph": "!-~",
    "cntrl": "\\x00-\\x1f\\x7f",
    "xdigit": "0-9A-Fa-f",
}


def fnmatch(text: str, pattern: str, *, icase: bool = False, pathname: bool = False, period: bool = False) -> bool:
    """Whether all of `text` matches; `pathname` keeps stars from crossing a slash, `period` protects leading dots."""
    if period and text.startswith(".") and not pattern.startswith((".", "\\.")):
        return False
    if not icase and not has_wildcards(pattern):
        return text == pattern
    if len(pattern) > _LONG and _least(pattern) > len(text):
        return False
    if not pathname or "/" not in text + pattern:
        return compiled(pattern, icase).matches(text)
    texts, patterns = text.split("/"), pattern.split("/")
    if "**" not in patterns:
        return len(texts) == len(patterns) and all(
            compiled(p, icase).matches(t) for t, p in zip(texts, patterns, strict=True)
        )
    return _path_match(texts, patterns, icase)


def _path_match(texts: list[str], patterns: list[str], icase: bool) -> bool:
    """Components against components; `**` is any number of them. Positions as a set, so nothing backtracks."""
    spots = {0}
    for pattern in patterns:
        if pattern == "**":
            low = min(spots, default=len(texts) + 1)
            spots = set(range(low, len(texts) + 1))
        else:
            glob = compiled(pattern, icase)
            spots = {s + 1 for s in spots if s < len(texts) and glob.matches(texts[s])}
        if not spots:
            return False
    return len(texts) in spots


def has_wildcards(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern or "[" in pattern or "\\" in pattern


_LONG: Final = 4096
"""Letters of a pattern that are not worth compiling before it is known that a name can be as long."""


def _least(pattern: str) -> int:
    """How long a text must be to match, or less."""
    return 0 if "[" in pattern else len(pattern) - pattern.count("*") - pattern.count("\\")


class Glob:
    """A compiled pattern: what must stand at the start, what must follow in order, what must stand at the end."""

    __slots__ = ("exact", "first", "last", "middle")

    def __init__(self, segments: list[str], flags: int) -> None:
        compiled = [re.compile(s, flags | re.S) for s in segments]
        self.exact = compiled[0] if len(compiled) == 1 else None
        self.first, self.last, self.middle = (
            compiled[0],
            re.compile(f"(?:{segments[-1]})\\Z", flags | re.S),
            compiled[1:-1],
        )

    def matches(self, text: str) -> bool:
        if self.exact is not None:
            return self.exact.fullmatch(text) is not None
        found = self.first.match(text)
        if found is None:
            return False
        at = found.end()
        for segment in self.middle:
            found = segment.search(text, at)
            if found is None:
                return False
            at = found.end()
        return self.last.search(text, at) is not None


@lru_cache(maxsize=512)
def compiled(pattern: str, icase: bool = False) -> Glob:
    segments = [""]
    i = 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if c == "*":
            if segments[-1] or len(segments) == 1:
                segments.append("")
        elif c == "?":
            segments[-1] += "."
        elif c == "[":
            end, source = _bracket(pattern, i)
            segments[-1] += source
            i = end
        elif c == "\\" and i < len(pattern):
            segments[-1] += re.escape(pattern[i])
            i += 1
        else:
            segments[-1] += re.escape(c)
    return Glob(segments, re.I if icase else 0)


def _bracket(pattern: str, i: int) -> tuple[int, str]:
    """The set that begins behind `[` at `i`, as a regular expression; an unclosed one is a plain bracket."""
    start = i
    negated = pattern[i : i + 1] in ("!", "^")
    i += negated
    out: list[str] = []
    first = True
    while i < len(pattern):
        c = pattern[i]
        if c == "]" and not first:
            inside = "".join(out)
            return i + 1, f"[{'^' if negated else ''}{inside}]" if inside else ("." if negated else "(?!)")
        first = False
        if c == "[" and pattern[i + 1 : i + 2] == ":":
            end = pattern.find(":]", i + 2)
            if end > 0 and pattern[i + 2 : end] in _CLASSES:
                out.append(_CLASSES[pattern[i + 2 : end]])
                i = end + 2
                continue
        if c == "\\" and i + 1 < len(pattern):
            i += 1
            c = pattern[i]
        i += 1
        if pattern[i : i + 1] == "-" and i + 1 < len(pattern) and pattern[i + 1] != "]":
            high = pattern[i + 1]
            i += 2
            if high == "\\" and i < len(pattern):
                high = pattern[i]
                i += 1
            if c <= high:
                out.append(f"{_in_set(c)}-{_in_set(high)}")
        else:
            out.append(_in_set(c))
    return start, "\\["


def _in_set(c: str) -> str:
    return "\\" + c if c in "\\]^-[&~|" else c
