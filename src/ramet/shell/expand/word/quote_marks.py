"""Marks for the quoted text of a word: none, or for a pattern, a regular expression, a replacement.

The functions that change nothing differ by identity: each context joins the values of arrays by another rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Quote = Callable[[str], str] | None
"""A function that marks quoted text; None leaves it as it is."""


def marked(text: str, quote: Quote) -> str:
    """Apply the marks to quoted text."""
    return quote(text) if quote is not None else text


_REGEX: Final = re.compile(r"[\\.^$*+?()\[\]{}|]")


def regex_escape(text: str) -> str:
    """Put a NUL before each character of quoted text that is special in a regular expression."""
    return _REGEX.sub("\0\\g<0>", text)


def regex_text(marked: str) -> str:
    """Return the regular expression: a backslash replaces each NUL, except inside of brackets."""
    if "\0" not in marked:
        return marked
    out: list[str] = []
    # `first` is where the members of the open bracket expression begin; -1 outside of one.
    pos, first = 0, -1
    while pos < len(marked):
        char = marked[pos]
        quoted = char == "\0"
        if quoted:
            pos += 1
            char = marked[pos]
        elif first < 0 and char == "\\":
            out.append(marked[pos : pos + 2])
            pos += 2
            continue
        pos += 1
        if first < 0:
            out.append("\\" + char if quoted else char)
            if char == "[" and not quoted:
                first = len(out)
            continue
        out.append(char)
        if char == "^" and len(out) == first + 1:
            first += 1
        elif char == "]" and len(out) > first + 1:
            first = -1
        elif char == "[" and not quoted and marked[pos : pos + 1] in (":", ".", "=") and pos < len(marked):
            close = marked.find(marked[pos] + "]", pos + 1)
            if close >= 0:
                out.append(marked[pos : close + 2].replace("\0", ""))
                pos = close + 2
    return "".join(out)


def as_is(text: str) -> str:
    """What a here-document does to quoted text; that it is one makes `$*` join by spaces there."""
    return text


def as_fields(text: str) -> str:
    """The same where an `@` form stands in the document: then bash splits what `*` forms in it joined."""
    return text


def alone(text: str) -> str:
    """The same for the word of `case` and the operands of `[[`, where changed values of arrays join by spaces."""
    return text


def as_element(text: str) -> str:
    """The same for `a=([n]=...)`, where all values of arrays join by IFS, or by a space where it is empty; not so in
    the words of operators."""
    return text


def mark_ampersand(text: str) -> str:
    """Quoted replacement text: its ampersands are not the match, and its backslashes escape none."""
    return text.replace("\\", "\0\\").replace("&", "\0&")
