"""Perl-style patterns (`grep -P`, `rg`, jq): rewritten to the spelling of `regex`, or of RE2 if it means the same."""

from __future__ import annotations

import re

from ramet.patterns.errors import PatternError

_META = set("\\^$.|?*+()[]{}#&~- \t\n\r\v\f")
_RE2_ONLY_DIFFERENT = ("\\h", "\\H", "\\R", "\\K", "\\Z", "\\G", "\\X", "\\N")


def rewrite(pattern: str) -> str:
    """The same pattern in the spelling of the `regex` module."""
    out: list[str] = []
    pos, end = 0, len(pattern)
    in_set = False
    while pos < end:
        char = pattern[pos]
        if char == "\\":
            text, pos = _escape(pattern, pos, in_set)
            out.append(text)
            continue
        if in_set:
            if char == "]":
                in_set = False
            elif pattern.startswith("[:", pos):
                close = pattern.find(":]", pos)
                if close > 0:
                    out.append(pattern[pos : close + 2])
                    pos = close + 2
                    continue
            elif char == "[":
                char = "\\["
        elif char == "[":
            in_set = True
            out.append("[")
            pos += 1
            if pattern.startswith("^", pos):
                out.append("^")
                pos += 1
            if pattern.startswith("]", pos):
                out.append("\\]")
                pos += 1
            continue
        elif pattern.startswith("(*", pos):
            raise PatternError("verbs such as (*SKIP) are not supported")
        out.append(char)
        pos += 1
    if in_set:
        raise PatternError("missing terminating ] for character class")
    return "".join(out)


def _escape(pattern: str, pos: int, in_set: bool) -> tuple[str, int]:
    """One backslash escape at `pos`, rewritten, and where it ends."""
    if pos + 1 >= len(pattern):
        raise PatternError("\\ at end of pattern")
    char = pattern[pos + 1]
    after = pos + 2
    if char == "Q":
        stop = pattern.find("\\E", after)
        text = pattern[after : stop if stop >= 0 else len(pattern)]
        return "".join("\\" + c if c in _META else c for c in text), (stop + 2 if stop >= 0 else len(pattern))
    if char == "E":
        return "", after
    if char == "x" and pattern.startswith("{", after):
        stop = pattern.find("}", after)
        return _point(int(pattern[after + 1 : stop], 16)), stop + 1
    if char == "o" and pattern.startswith("{", after):
        stop = pattern.find("}", after)
        return _point(int(pattern[after + 1 : stop], 8)), stop + 1
    if char == "x":
        stop = after
        while stop < len(pattern) and stop - after < 2 and pattern[stop] in "0123456789abcdefABCDEF":
            stop += 1
        return _point(int(pattern[after:stop] or "0", 16)), stop
    if char == "e":
        return "\\x1b", after
    if char == "s":
        return ("\\t-\\r " if in_set else "[\\t-\\r ]"), after
    if char == "S" and not in_set:
        return "[^\\t-\\r ]", after
    if char == "h":
        return ("\\t \\xa0" if in_set else "[\\t \\xa0]"), after
    if char == "H" and not in_set:
        return "[^\\t \\xa0]", after
    if char == "N" and not in_set:
        return "[^\\n]", after
    if char == "z":
        return "\\Z", after
    if char == "Z":
        return "(?=\\n?\\Z)", after
    if char == "g" and not in_set:
        return _group_reference(pattern, after)
    if char == "k" and after < len(pattern) and pattern[after] in "{'":
        stop = pattern.find("}" if pattern[after] == "{" else "'", after + 1)
        return f"(?P={pattern[after + 1 : stop]})", stop + 1
    if char == "k" and pattern.startswith("<", after):
        stop = pattern.find(">", after)
        return f"(?P={pattern[after + 1 : stop]})", stop + 1
    return pattern[pos:after], after


def _group_reference(pattern: str, after: int) -> tuple[str, int]:
    if pattern.startswith("{", after):
        stop = pattern.find("}", after)
        name = pattern[after + 1 : stop]
        return (f"(?:\\{name})" if name.isdigit() else f"(?P={name})"), stop + 1
    stop = after
    while stop < len(pattern) and pattern[stop].isdigit():
        stop += 1
    return f"(?:\\{pattern[after:stop]})", stop


def _point(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def for_re2(pattern: str) -> str | None:
    """The pattern in RE2's spelling when both engines mean the same by it; None when only `regex` will do."""
    if not pattern.isascii() or any(escape in pattern for escape in _RE2_ONLY_DIFFERENT):
        return None
    if "(?" in pattern.replace("(?:", "") or "\\g" in pattern or "\\k" in pattern or "\\C" in pattern:
        return None
    return rewrite(pattern).replace("\\Z", "\\z")


_LOOKBEHIND = re.compile(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]|(\(\?<[=!])|(\()|(\))|(\|)", re.DOTALL)


def check_lookbehind(pattern: str) -> None:
    """What looks behind must know how far: each alternative of it has one length."""
    open_groups: list[list[int] | None] = []
    for found in _LOOKBEHIND.finditer(pattern):
        if found[1]:
            open_groups.append([found.end()])
        elif found[2]:
            open_groups.append(None)
        elif found[4] and open_groups and open_groups[-1] is not None:
            open_groups[-1].append(found.end())
        elif found[3] and open_groups:
            starts = open_groups.pop()
            if starts is not None:
                ends = [start - 1 for start in starts[1:]] + [found.start()]
                for start, end in zip(starts, ends, strict=True):
                    _check_fixed(pattern[start:end])


def _check_fixed(body: str) -> None:
    try:
        re.compile(f"(?<={body})")
    except re.error as error:
        # Anything else that `re` does not know is for the engine in use to judge.
        if "look-behind" in str(error):
            raise PatternError("lookbehind assertion is not fixed length") from None
