"""Thousands of patterns at once find what each of them would find alone."""

from __future__ import annotations

import random
import re

import pytest

from ramet import patterns
from ramet.patterns import FIXED, GREP_BASIC, Lines

_PADDING = [b"zz%06d" % number for number in range(2500)]
"""Texts that bring a set beyond what one automaton holds, and that no data here has."""


def _brute(texts: list[bytes], data: bytes, pos: int, whole: str) -> tuple[int, int] | None:
    for start in range(pos, len(data) + 1):
        for text in sorted(texts, key=len, reverse=True):
            stop = start + len(text)
            before, after = data[start - 1 : start] if start else b"", data[stop : stop + 1]
            if not data.startswith(text, start):
                continue
            if whole == "line" and not (before in (b"", b"\n") and after in (b"", b"\n")):
                continue
            if whole == "word" and (re.match(rb"\w", before) or re.match(rb"\w", after)):
                continue
            return start, stop
    return None


@pytest.mark.parametrize("whole", ["", "word", "line"])
@pytest.mark.parametrize("seed", range(6))
def test_texts_are_found_leftmost_and_longest(seed: int, whole: str) -> None:
    source = random.Random(seed)
    texts = [bytes(source.choices(b"ab c", k=source.randint(1, 6))) for _ in range(12)]
    matcher = patterns.compile_any(_PADDING + texts, FIXED, lines=Lines.BLOCK, whole=whole)
    for _ in range(30):
        data = bytes(source.choices(b"aab c\n", k=40))
        assert matcher.search(data) == _brute(texts, data, 0, whole)
        assert matcher.search(data, 7) == _brute(texts, data, 7, whole)


@pytest.mark.parametrize("icase", [False, True])
def test_texts_and_expressions_together(icase: bool) -> None:
    wanted = [*_PADDING, b"plain", b"pl.in text", b"x*y", b"^beg", "\u00e9t\u00e9".encode()]
    matcher = patterns.compile_any(wanted, GREP_BASIC, icase=icase, lines=Lines.BLOCK)
    data = "nothing\na plain text\nbegin\n\u00e9t\u00e9\nPLAIN\n\u00c9T\u00c9 plain\nxxy\n".encode()
    lines = [data[start:stop].decode() for start, stop in matcher.lines(data)]
    some = ["a plain text", "begin", "\u00e9t\u00e9", "\u00c9T\u00c9 plain", "xxy"]
    assert lines == ([*some[:3], "PLAIN", *some[3:]] if icase else some)
    assert list(matcher.finditer(b"a plain text")) == [(2, 12)]


def test_nested_texts_are_no_slower_than_their_number() -> None:
    nested = [b"a" * size for size in range(2, 400, 2)]
    matcher = patterns.compile_any(nested, FIXED, lines=Lines.BLOCK)
    assert matcher.search(b"b" + b"a" * 1001) == (1, 399)
    assert matcher.search(b"ab" * 5000) is None
