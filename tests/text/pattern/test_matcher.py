"""Patterns: full matches, removal, replacement, names; on every kind of matcher."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.text.pattern import matcher as patterns
from ramet.text.pattern.matcher import compile_pattern
from ramet.text.pattern.tokens import PatternTooCostly, is_active

MATCHES = [
    # pattern, text, whether it matches
    ("abc", "abc", True), ("abc", "abcd", False), ("", "", True), ("*", "", True), ("*", "any", True), ("?", "a", True),
    ("?", "", False), ("?", "é", True), ("a*", "abc", True), ("*c", "abc", True), ("a*c", "abc", True),
    ("a*c", "ac", True), ("a*c", "a", False), ("aa*aa", "aaa", False), ("*b*", "abc", True), ("a*b*c", "aXbYc", True),
    ("a*b*c", "aXc", False), ("**", "x", True), ("[abc]", "b", True), ("[!abc]", "b", False), ("[^abc]", "x", True),
    ("[a-c]x", "bx", True), ("[c-a]", "b", False), ("[a-]", "-", True), ("[]a]", "]", True), ("[!]a]", "]", False),
    ("[a", "[a", True), ("[", "[", True), ("[[:alpha:]]", "q", True), ("[[:alpha:]]", "é", True),
    ("[[:digit:][:upper:]]", "Q", True), ("[[:upper:]]", "É", True), ("[[:lower:]]", "É", False),
    ("[[:space:]]", "\t", True), ("[[:punct:]]", "!", True), ("[[:nope:]]", "a", False), ("[![:nope:]]", "a", True),
    ("[[:blank:]]", " ", True), ("[[:xdigit:]]", "f", True), ("[[=a=]]", "a", True), ("[[.-.]]", "-", True),
    ("[[.a.]-c]", "b", True), ("[a-[.c.]]", "b", True), ("[[:alpha]", ":", True), ("[\\]]", "]", True),
    ("[a\\-c]", "b", False), ("\\*", "*", True), ("\\*", "x", False), ("a\\", "a\\", True), ("a\\b", "ab", True),
    ("[x\\", "[x\\", True), ("a[b-c]*d?", "ab--dz", True), ("*[0-9]", "x7", True), ("?*", "", False),
    ("\udcff?", "\udcff\udcfe", True), ("[[:print:]]", "😀", True), ("[[:word:]]", "_", True),
    ("[[:cntrl:]]", "\x01", True),
]  # fmt: skip

EXTENDED = [
    ("@(a|b)", "a", True), ("@(a|b)", "c", False), ("@(a|bc)", "bc", True), ("?(a)b", "b", True), ("?(a)b", "ab", True),
    ("*(a|b)", "", True), ("*(a|b)", "abba", True), ("+(a|b)", "", False), ("+(ab|c)", "abcab", True),
    ("!(a)", "b", True), ("!(a)", "a", False), ("!(a)", "", True), ("!(*.c)", "x.c", False), ("!(*.c)", "x.h", True),
    ("a!(b)c", "abc", False), ("a!(b)c", "axc", True), ("@(a|@(x|y))", "y", True), ("*(?)z", "abz", True),
    ("@(*.c|*.h)", "f.h", True), ("+([0-9])", "0123", True), ("+([0-9])", "01x", False), ("*([[:space:]])", "  ", True),
    ("@(|a)", "", True), ("x@(", "x@(", True), ("x@(a|b", "x@(a|b", True), ("+(a|aa)b", "aaaaaaaaaaaaaab", True),
    ("*(a|*)b", "xxb", True), ("@(a)b@(c)", "abc", True), ("!(!(a))", "a", True),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "text", "expected"), MATCHES)
def test_matches(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern).matches(text) is expected
    assert compile_pattern(pattern, extglob=True).matches(text) is expected


@pytest.mark.parametrize(("pattern", "text", "expected"), EXTENDED)
def test_extended(pattern: str, text: str, expected: bool) -> None:
    assert compile_pattern(pattern, extglob=True).matches(text) is expected


def test_quoting_makes_text() -> None:
    assert compile_pattern([("a", False), ("*", True)]).matches("a*")
    assert not compile_pattern([("a", False), ("*", True)]).matches("ab")
    assert compile_pattern([("[a", False), ("-", True), ("z]", False)]).matches("-")
    assert not compile_pattern([("[a", False), ("-", True), ("z]", False)]).matches("b")
    assert compile_pattern([("@(a", False), ("|", True), ("b)", False)], extglob=True).matches("a|b")
    assert compile_pattern([("*", False), ("\\", True)]).matches("x\\")
    assert compile_pattern("@(a)").matches("@(a)")


def test_case_may_be_ignored() -> None:
    for pattern in ("AbC", "a[B]c", "*C", "@(AB)c", "+([A-C])"):
        assert compile_pattern(pattern, extglob=True, nocase=True).matches("abc")
        assert not compile_pattern(pattern, extglob=True).matches("abc") or pattern == "*c"
    assert compile_pattern("B", nocase=True).replace("abc", "/", "_") == "a_c"


REMOVALS = [
    # pattern, text, then the results of # ## % %%
    ("*/", "a/b/c", "b/c", "c", "a/b/c", "a/b/c"),
    ("/*", "a/b/c", "a/b/c", "a/b/c", "a/b", "a"),
    ("a", "aba", "ba", "ba", "ab", "ab"),
    ("*", "abc", "abc", "", "abc", ""),
    ("?", "abc", "bc", "bc", "ab", "ab"),
    ("a*b", "axbxb", "xb", "", "", ""),
    ("*b*", "abcb", "cb", "", "abc", ""),
    ("[a-b]*[a-b]", "axbxb", "xb", "", "ax", ""),
    ("", "abc", "abc", "abc", "abc", "abc"),
    ("zz", "abc", "abc", "abc", "abc", "abc"),
    ("+(a)", "aab", "ab", "b", "aab", "aab"),
    ("+(b)", "abb", "abb", "abb", "ab", "a"),
    ("*(b)", "abb", "abb", "abb", "abb", "a"),
    ("@(a|ab)", "abab", "bab", "ab", "ab", "ab"),
    ("a?(b)", "abab", "bab", "ab", "ab", "ab"),
    ("x!(c)", "axbxc", "axbxc", "axbxc", "a", "a"),
    ("*x!(c)", "axbxc", "bxc", "", "a", ""),
    ("abcdef", "abc", "abc", "abc", "abc", "abc"),
]


@pytest.mark.parametrize(("pattern", "text", "p", "pp", "s", "ss"), REMOVALS)
def test_removal(pattern: str, text: str, p: str, pp: str, s: str, ss: str) -> None:
    found = compile_pattern(pattern, extglob=True)
    assert found.without_prefix(text, False) == p
    assert found.without_prefix(text, True) == pp
    assert found.without_suffix(text, False) == s
    assert found.without_suffix(text, True) == ss


REPLACEMENTS = [
    # pattern, text, then the results of / // /# /%
    ("b", "abcb", "a_cb", "a_c_", "abcb", "abc_"),
    ("*", "abc", "_", "_", "_", "_"),
    ("?", "abc", "_bc", "___", "_bc", "ab_"),
    ("", "abc", "abc", "abc", "_abc", "abc_"),
    ("[ab]", "cab", "c_b", "c__", "cab", "ca_"),
    ("a*c", "xabcabc", "x_", "x_", "xabcabc", "x_"),
    ("z", "abc", "abc", "abc", "abc", "abc"),
    ("?(z)", "abc", "_abc", "_a_b_c", "_abc", "abc_"),
    ("+([a-b])", "abcab", "_cab", "_c_", "_cab", "abc_"),
    ("*(z)", "ab", "_ab", "_a_b", "_ab", "ab_"),
    ("@(a|ab)", "xabab", "x_ab", "x__", "xabab", "xab_"),
    ("!(b)", "abc", "_", "_", "_", "_"),
    ("b@(c)", "abcbc", "a_bc", "a__", "abcbc", "abc_"),
    ("*", "", "_", "_", "_", "_"),
    ("?(a)", "", "", "", "", "_"),
    ("x", "", "", "", "", ""),
    ("a*", "ba", "b_", "b_", "ba", "b_"),
]


@pytest.mark.parametrize(("pattern", "text", "first", "every", "start", "end"), REPLACEMENTS)
def test_replacement(pattern: str, text: str, first: str, every: str, start: str, end: str) -> None:
    found = compile_pattern(pattern, extglob=True)
    assert found.replace(text, "/", "_") == first
    assert found.replace(text, "//", "_") == every
    assert found.replace(text, "/#", "_") == start
    assert found.replace(text, "/%", "_") == end


def test_a_replacement_may_look_at_the_match() -> None:
    found = compile_pattern("[a-b]")
    assert found.replace("cab", "//", lambda matched: f"<{matched}>") == "c<a><b>"
    assert compile_pattern("a").replace("aba", "//", lambda matched: matched * 2) == "aabaa"
    assert compile_pattern("a").replace("aba", "/#", str.upper) == "Aba"


def test_names_with_a_leading_dot_want_to_be_asked_for() -> None:
    def names(pattern: str, dotglob: bool = False) -> list[str]:
        found = compile_pattern(pattern, extglob=True)
        return [name for name in (".", "..", ".a", "a", "b") if found.component(name, dotglob)]

    assert names("*") == ["a", "b"]
    assert names("*", True) == [".a", "a", "b"]
    assert names(".*") == [".a"]
    assert names("?a") == []
    assert names("[.]a") == []
    assert names("@(.a|b)") == [".a", "b"]
    assert names("!(b)") == ["a"]
    assert names("!(b)", True) == [".a", "a"]
    assert names("?(.)a") == [".a", "a"]
    assert names("?(x).a") == [".a"]
    assert names(".") == ["."]
    assert names(".a") == [".a"]


def test_activity() -> None:
    assert is_active([("a*", False)], False)
    assert not is_active([("a*", True), ("b", False)], False)
    assert not is_active([("@(a)", False)], False)
    assert is_active([("@(a)", False)], True)
    assert compile_pattern("a\\*").literal == "a*"
    assert compile_pattern("a*").literal is None


@given(st.text("ab", max_size=8), st.text("ab?*", max_size=5))
def test_plain_patterns_agree_with_an_expression(text: str, pattern: str) -> None:
    expression = re.compile("".join({"*": ".*", "?": "."}.get(c, c) for c in pattern), re.DOTALL)
    found = compile_pattern(pattern)
    assert found.matches(text) == bool(expression.fullmatch(text))
    ends = [k for k in range(len(text) + 1) if expression.fullmatch(text, 0, k)]
    assert found.prefix(text, False) == (ends[0] if ends else -1)
    assert found.prefix(text, True) == (ends[-1] if ends else -1)
    begins = [k for k in range(len(text) + 1) if expression.fullmatch(text, k)]
    assert found.suffix(text, True) == (begins[0] if begins else -1)
    assert found.suffix(text, False) == (begins[-1] if begins else -1)


@given(st.text("ab", max_size=7), st.text("ab|?*", min_size=1, max_size=4), st.sampled_from("?*+@"))
def test_groups_agree_with_an_expression(text: str, inside: str, op: str) -> None:
    body = "".join({"*": ".*", "?": "."}.get(c, c) for c in inside)
    expression = re.compile(f"b*a?(?:{body}){'' if op == '@' else op}a?", re.DOTALL)
    found = compile_pattern(f"*(b)?(a){op}({inside})?(a)", extglob=True)
    assert found.matches(text) == bool(expression.fullmatch(text))


@given(st.text("abc", max_size=9), st.sampled_from("*+"), st.integers(0, 9))
def test_runs_agree_with_an_expression(text: str, op: str, pos: int) -> None:
    found, expression = compile_pattern(f"{op}(a|[bd])", extglob=True), re.compile(f"[abd]{op}")
    assert found.matches(text) == bool(expression.fullmatch(text))
    ends = [k for k in range(len(text) + 1) if expression.fullmatch(text, 0, k)]
    assert [found.prefix(text, longest) for longest in (False, True)] == ([ends[0], ends[-1]] if ends else [-1, -1])
    begins = [k for k in range(len(text) + 1) if expression.fullmatch(text, k)]
    suffixes = [found.suffix(text, longest) for longest in (True, False)]
    assert suffixes == ([begins[0], begins[-1]] if begins else [-1, -1])
    at = min(pos, len(text))
    match = expression.search(text, at)
    assert found.find(text, at) == (None if match is None else match.span())


HARD = ["*a*a*a*a*a*b", "+(a|aa)b", "*(a*)b", "!(*(a|aa)b)c", "@(a|aa)@(a|aa)*(a)b", "a*b", "*[ab]*[ab]*[ab]c"]


@pytest.mark.parametrize("pattern", HARD)
def test_no_pattern_blows_up(pattern: str) -> None:
    found = compile_pattern(pattern, extglob=True)
    text = "a" * 3000
    begin = time.thread_time()
    found.matches(text)
    found.without_prefix(text, True)
    found.without_suffix(text, True)
    found.replace(text, "/", "_")
    assert time.thread_time() - begin < 20  # seconds for thousands of steps; what blows up takes years


def test_a_text_may_be_too_long_for_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MAX_EXTENDED", 10)
    with pytest.raises(PatternTooCostly):
        compile_pattern("a@(b|c)*", extglob=True).matches("a" * 11)


def test_patterns_are_kept_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compile_pattern("kept*") is compile_pattern("kept*")
    monkeypatch.setattr(patterns, "_PATTERNS_KEPT", 1)
    compile_pattern("other*")
    compile_pattern("another*")
    assert len(patterns._patterns) <= 2


@pytest.mark.parametrize(
    ("text", "itself"),
    [
        ("ab[c" * 20_000, True),
        ("@(" * 60, True),
        ("+(a|" * 40 + ")", True),
        ("ab@(c" * 5_000, True),
        ("[[:alpha:]" * 3_000, False),
        ("x[!a" * 5_000, True),
    ],
)
def test_what_never_closes_is_looked_for_once(text: str, itself: bool) -> None:
    started = time.process_time()
    assert compile_pattern(text, True).matches(text) is itself
    assert time.process_time() - started < 5


def test_a_class_outside_of_brackets_is_a_set_of_its_letters() -> None:
    assert compile_pattern("[[:alpha:]x").matches("[hx")
    assert not compile_pattern("[[:alpha:]x").matches("[bx")
