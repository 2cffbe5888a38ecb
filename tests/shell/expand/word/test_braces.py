"""Brace expansion: what expands, what stays, and in which order."""

from __future__ import annotations

import itertools

import pytest

from ramet.shell.expand.errors import LineError
from ramet.shell.expand.word.braces import TooManyWords, expand_braces, has_braces
from ramet.shell.syntax import nodes as n
from ramet.shell.syntax import parse
from ramet.shell.syntax.printer import word_text


def word(text: str) -> n.Word:
    node = parse(f"x {text}").statements[0].node
    assert isinstance(node, n.Simple)
    found = node.words[1]
    assert isinstance(found, n.Word)
    return found


CASES = {
    "a": "a",
    "{a,b}": "a b",
    "{a,b}{c,d}": "ac ad bc bd",
    "x{a,{b,c}d}y": "xay xbdy xcdy",
    "{1..3}": "1 2 3",
    "{3..1}": "3 2 1",
    "{1..6..2}": "1 3 5",
    "{6..1..2}": "6 4 2",
    "{1..3..-1}": "1 2 3",
    "{1..3..0}": "1 2 3",
    "{08..10}": "08 09 10",
    "{-01..1}": "-01 000 001",
    "{001..3}": "001 002 003",
    "{-1..-3}": "-1 -2 -3",
    "{+1..2}": "1 2",
    "{a..e..2}": "a c e",
    "{c..a}": "c b a",
    "{Z..b}": "Z [ '' ] ^ _ \\` a b",
    "{a}": "{a}",
    "{}": "{}",
    "{a,": "{a,",
    "a,b}": "a,b}",
    "{a,{b,c}": "{a,b {a,c",
    "{a,b}}": "a} b}",
    "{{a,b}": "{a {b",
    "x{,}y": "xy xy",
    "{,a}": "a",
    "{,}": "",
    "{1..a}": "{1..a}",
    "{1..2..3..4}": "{1..2..3..4}",
    "{..3}": "{..3}",
    "{a,b\\,c}": "a b\\,c",
    '{"a,b",c}': '"a,b" c',
    '"{a,b}"': '"{a,b}"',
    "\\{a,b}": "\\{a,b}",
    "{a,$x}": "a $x",
    "{$a,b}_c": "$a_c b_c",
    "{${a},b}_c": "${a}_c b_c",
    "{$1,b}2": "$12 b2",
    "${x},{a,b}": "${x},a ${x},b",
    "{$(echo 1,2),3}": "$(echo 1,2) 3",
    "{{1..2},{a..b}}": "1 2 a b",
    "a{b}c{d,e}": "a{b}cd a{b}ce",
    "{1..$n}": "{1..$n}",
}


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_braces(text: str, expected: str) -> None:
    assert " ".join(word_text(one) for one in expand_braces(word(text))) == expected


def test_big_ranges_are_lazy_and_limited() -> None:
    assert len(list(itertools.islice(expand_braces(word("{1..100000000000}")), 5))) == 5
    with pytest.raises(TooManyWords, match="more than 10 words"):
        list(expand_braces(word("{1..11}"), 10))
    assert len(list(expand_braces(word("{1..10}"), 10))) == 10


def test_a_backtick_out_of_a_range_opens_a_substitution() -> None:
    with pytest.raises(LineError, match="no closing"):
        list(expand_braces(word("-{z..A}-")))


def test_the_cheap_test_is_right_when_it_says_no() -> None:
    assert not has_braces(word("abc"))
    assert not has_braces(word("'{a,b}'"))
    assert has_braces(word("{a'b'}"))
