"""Patterns: what each dialect accepts, which text matches, and that nothing can hang."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet import patterns
from ramet.patterns import (
    AWK,
    FIXED,
    GREP_BASIC,
    GREP_EXTENDED,
    PERL,
    POSIX_EXTENDED,
    SED_BASIC,
    SED_EXTENDED,
    Dialect,
    Lines,
    MatchTimeout,
    PatternError,
)

MATCHES: list[tuple[Dialect | str, str, str, tuple[int, int] | None]] = [
    (GREP_EXTENDED, "a|ab|abc", "xabcd", (1, 4)),
    (GREP_EXTENDED, "(a|ab)(c|bcd)", "abcd", (0, 4)),
    (GREP_EXTENDED, "x*", "aaa", (0, 0)),
    (GREP_BASIC, r"a\|b", "xb", (1, 2)),
    (GREP_BASIC, "a|b", "xa|b", (1, 4)),
    (GREP_BASIC, "*a", "b*a", (1, 3)),
    (GREP_BASIC, r"\(ab\)*\1", "ababab", (0, 6)),
    (GREP_BASIC, "^*a", "*a", (0, 2)),
    (GREP_BASIC, "a^b$c", "a^b$c", (0, 5)),
    (GREP_EXTENDED, "a{2,3}", "caaaa", (1, 4)),
    (GREP_EXTENDED, "a{,2}b", "aaab", (1, 4)),
    (GREP_EXTENDED, "a{x", "a{x", (0, 3)),
    (GREP_EXTENDED, "[[:digit:]]+", "ab123c", (2, 5)),
    (GREP_EXTENDED, "[]a]+", "x]a]", (1, 4)),
    (GREP_EXTENDED, "[^]a]", "]ab", (2, 3)),
    (GREP_EXTENDED, r"\<b.", "ab bc", (3, 5)),
    (GREP_EXTENDED, r"b\>", "bc ab", (4, 5)),
    (GREP_EXTENDED, r"\bfoo\b", "xfoo foo", (5, 8)),
    (GREP_EXTENDED, r"\w+", "é1_ ", (0, 4)),
    (GREP_EXTENDED, "é.", "aéß", (1, 5)),
    (SED_BASIC, r"a\nb", "xa\nb", (1, 4)),
    (SED_EXTENDED, r"\x41+", "zAA", (1, 3)),
    (AWK, "+a", "b+a", (1, 3)),
    (AWK, r"[\/]", "a/b", (1, 2)),
    (FIXED, "a.b", "xa.b", (1, 4)),
    (PERL, r"(?<=a)b+?", "abbb", (1, 2)),
    (PERL, r"\d{2,}", "a123", (1, 4)),
    (PERL, r"\Qa.b\E", "xa.b", (1, 4)),
]


@pytest.mark.parametrize(("dialect", "pattern", "text", "span"), MATCHES)
def test_finds_the_leftmost_longest_match(
    dialect: Dialect | str, pattern: str, text: str, span: tuple[int, int] | None
) -> None:
    assert patterns.compile(pattern.encode(), dialect).search(text.encode()) == span


ERRORS = [
    (GREP_EXTENDED, "a(", "Unmatched ( or \\("),
    (GREP_BASIC, "a\\)", "Unmatched ) or \\)"),
    (GREP_BASIC, "a\\{1", "Unmatched \\{"),
    (GREP_EXTENDED, "a{2,1}", "Invalid content of \\{\\}"),
    (GREP_EXTENDED, "a{99999}", "Regular expression too big"),
    (GREP_EXTENDED, "[b-a]", "Invalid range end"),
    (GREP_EXTENDED, "[[:nope:]]", "Invalid character class name"),
    (GREP_EXTENDED, "[a", "Unmatched [, [^, [:, [., or [="),
    (GREP_EXTENDED, "a\\", "Trailing backslash"),
    (GREP_BASIC, "a\\1", "Invalid back reference"),
    (SED_EXTENDED, "*a", "Invalid preceding regular expression"),
    (SED_EXTENDED, "a)", "Unmatched ) or \\)"),
    (POSIX_EXTENDED, "a{1", "Unmatched \\{"),
    (GREP_EXTENDED, "[:space:]", "character class syntax is [[:space:]], not [:space:]"),
]


@pytest.mark.parametrize(("dialect", "pattern", "message"), ERRORS)
def test_refuses_in_the_words_of_the_library(dialect: Dialect, pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        patterns.compile(pattern.encode(), dialect)
    assert str(caught.value) == message


def test_groups_have_spans_and_absent_ones_none() -> None:
    matcher = patterns.compile(b"(a)|(b)", GREP_EXTENDED)
    assert matcher.spans(b"xb") == [(1, 2), (-1, -1), (1, 2)]


def test_lines_of_a_block_are_selected_without_crossing_newlines() -> None:
    matcher = patterns.compile(b"a[^x]*b", GREP_EXTENDED, lines=Lines.BLOCK)
    block = b"ab\na\nb\nacb\n"
    assert [block[start:stop] for start, stop in matcher.lines(block)] == [b"ab", b"acb"]
    assert matcher.count_lines(block) == 2


def test_an_empty_match_behind_the_last_newline_is_no_line() -> None:
    matcher = patterns.compile(b"x*", GREP_EXTENDED, lines=Lines.BLOCK)
    assert matcher.count_lines(b"a\nb\n") == 2
    assert matcher.count_lines(b"a\nb") == 2


def test_bytes_that_are_no_text_can_be_searched_for() -> None:
    assert patterns.compile(b"\xff+", GREP_EXTENDED).search(b"a\xff\xffb") == (1, 3)
    assert patterns.compile(b".", GREP_EXTENDED).search(b"\xffa") == (1, 2)


def test_nested_repetition_is_linear() -> None:
    matcher = patterns.compile(b"(a*)*(a|aa)*b", GREP_EXTENDED)
    started = time.thread_time()
    assert matcher.search(b"a" * 5000) is None
    assert time.thread_time() - started < 5  # milliseconds; what is not linear takes for ever


def test_a_hopeless_back_reference_ends_with_an_error() -> None:
    matcher = patterns.compile(rb"\(.*\)\(.*\)\(.*\)\(.*\)\1\2\3\4Z", GREP_BASIC, seconds=0.2)
    with pytest.raises(MatchTimeout):
        matcher.search(b"abcdefghij" * 8 + b"YZ")


@given(
    st.lists(st.sampled_from(["a", "b", "ab", "a b", "", "é"]), max_size=6), st.sampled_from(["a", "b+", "a*", "é|b"])
)
def test_block_and_line_search_agree(lines: list[str], pattern: str) -> None:
    block = "".join(line + "\n" for line in lines).encode()
    over_block = patterns.compile(pattern.encode(), GREP_EXTENDED, lines=Lines.BLOCK)
    per_line = patterns.compile(pattern.encode(), GREP_EXTENDED)
    expected = [line.encode() for line in lines if per_line.test(line.encode())]
    assert [block[start:stop] for start, stop in over_block.lines(block)] == expected
    assert over_block.count_lines(block) == len(expected)
