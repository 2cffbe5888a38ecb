"""Patterns that no engine can be asked to compile are refused before one is."""

from __future__ import annotations

import pytest

from ramet import patterns
from ramet.patterns import PERL, POSIX_EXTENDED, Dialect, PatternError

TOO_BIG = [
    (POSIX_EXTENDED, "(" * 40_000 + ")" * 40_000, "Regular expression too big"),
    (POSIX_EXTENDED, "(" * 15_000, "Regular expression too big"),
    (POSIX_EXTENDED, "a{0,9000}" * 4, "Regular expression too big"),
    (POSIX_EXTENDED, "a{99}" * 12_000, "Regular expression too big"),
    (POSIX_EXTENDED, "a{0}" + "{0}" * 500, "Regular expression too big"),
    (POSIX_EXTENDED, "(a)" + "\\1" * 20_000, "Regular expression too big"),
    (POSIX_EXTENDED, "a" * ((1 << 20) + 1), "Regular expression too big"),
    (PERL, "((a{1000}){1000}){1000}", "regular expression is too large"),
    (PERL, "(?:a?){40000}", "regular expression is too large"),
    (PERL, "a" * ((1 << 20) + 1), "regular expression is too large"),
    (PERL, "(" * 300 + ")" * 300, "parentheses are too deeply nested"),
]


@pytest.mark.parametrize(("dialect", "pattern", "message"), TOO_BIG, ids=range(len(TOO_BIG)))
def test_what_is_too_big_is_refused(dialect: Dialect | str, pattern: str, message: str) -> None:
    with pytest.raises(PatternError, match=message):
        patterns.compile(pattern.encode(), dialect)


@pytest.mark.parametrize(
    ("pattern", "span"),
    [
        ("b" + "*" * 3000, (0, 0)),
        ("a+?*", (0, 2)),
        ("a?{1}?", (0, 1)),
        ("a{2}{1}", (0, 2)),
        ("(x|a)" * 2, (0, 2)),
        ("\\<a" + "a" * 20_000, None),
    ],
)
def test_repetitions_of_repetitions_and_long_patterns_match(pattern: str, span: tuple[int, int] | None) -> None:
    assert patterns.compile(pattern.encode(), POSIX_EXTENDED).search(b"aa") == span


def test_only_groups_that_are_closed_can_be_referred_to() -> None:
    assert patterns.compile(b"(a)(b)\\2", POSIX_EXTENDED).spans(b"abb") == [(0, 3), (0, 1), (1, 2)]
    for wrong in (b"(a\\1)", b"(a)|\\1", b"(a)\\2"):
        with pytest.raises(PatternError, match="Invalid back reference"):
            patterns.compile(wrong, POSIX_EXTENDED)
