"""fnmatch for find, ls and tar: shell patterns on names and paths, without extended groups."""

from __future__ import annotations

from ramet.text.pattern.matcher import compile_pattern


def fnmatch(text: str, pattern: str, *, icase: bool = False, pathname: bool = False, period: bool = False) -> bool:
    """Whether all of `text` matches; `pathname` keeps stars from crossing a slash, `period` protects leading dots."""
    if period and text.startswith(".") and not pattern.startswith((".", "\\.")):
        return False
    if not icase and not has_wildcards(pattern):
        return text == pattern
    if not pathname or "/" not in text + pattern:
        return compile_pattern(pattern, nocase=icase).matches(text)
    texts, patterns = text.split("/"), pattern.split("/")
    if "**" not in patterns:
        return len(texts) == len(patterns) and all(
            compile_pattern(p, nocase=icase).matches(t) for t, p in zip(texts, patterns, strict=True)
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
            matches = compile_pattern(pattern, nocase=icase).matches
            spots = {s + 1 for s in spots if s < len(texts) and matches(texts[s])}
        if not spots:
            return False
    return len(texts) in spots


def has_wildcards(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern or "[" in pattern or "\\" in pattern
