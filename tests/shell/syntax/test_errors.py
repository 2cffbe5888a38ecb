"""Errors are worded, placed and ranked as bash does it."""

from __future__ import annotations

import sys

import pytest

from ramet.concurrency.recursion import DEEPEST
from ramet.shell.syntax import Parser, SyntaxFailure, parse
from ramet.shell.syntax.errors import TooDeep


def failure(text: str) -> SyntaxFailure:
    parser = Parser(text)
    with pytest.raises(SyntaxFailure) as caught:
        while parser.next() is not None:
            pass
    return caught.value


def near(token: str, line: str, number: int = 1) -> list[str]:
    return [f"line {number}: syntax error near unexpected token `{token}'", f"line {number}: `{line}'"]


EOF = "syntax error: unexpected end of file"

ERRORS: list[tuple[str, list[str]]] = [
    ("echo )", near(")", "echo )")),
    ("a\necho b )\nc", near(")", "echo b )", 2)),
    ("fi", near("fi", "fi")),
    ("}", near("}", "}")),
    ("echo a; ; b", near(";", "echo a; ; b")),
    ("a &;", near(";", "a &;")),
    ("a ;; b", near(";;", "a ;; b")),
    ("| a", near("|", "| a")),
    ("a | | b", near("|", "a | | b")),
    ("a | ! b", near("!", "a | ! b")),
    ("&& a", near("&&", "&& a")),
    ("if ; then :; fi", near(";", "if ; then :; fi")),
    ("foo() { }", near("}", "foo() { }")),
    ("f( {", near("{", "f( {")),
    ("a () b", near("b", "a () b")),
    ("a b()", near("(", "a b()")),
    ("{ a; } b", near("b", "{ a; } b")),
    ("case x in a) ;; esac b", near("b", "case x in a) ;; esac b")),
    ("case x in a ;; esac", near(";;", "case x in a ;; esac")),
    ("case x in |) esac", near("|", "case x in |) esac")),
    ("case ; in", near(";", "case ; in")),
    ("case x in a) b ) esac", near(")", "case x in a) b ) esac")),
    ("cat <", near("newline", "cat <")),
    ("cat < >", near(">", "cat < >")),
    ("for", near("newline", "for")),
    ("for x in a b & do", near("&", "for x in a b & do")),
    ("for x y", near("y", "for x y")),
    ("function", near("newline", "function")),
    ("function f x", near("x", "function f x")),
    ("select", near("newline", "select")),
    ("coproc", near("newline", "coproc")),
    ("echo $(fi)", near("fi", "echo $(fi)")),
    ("( a }", [f"line 2: {EOF}"]),
    ("while a; b", [f"line 2: {EOF}"]),
    ("(a b; fi)", near("fi", "(a b; fi)")),
    ("if true; then", [f"line 2: {EOF}"]),
    ("if true; then\necho\n", [f"line 3: {EOF}"]),
    ("a &&", [f"line 2: {EOF}"]),
    ("a |", [f"line 2: {EOF}"]),
    ("(a", [f"line 2: {EOF}"]),
    ("{ a", [f"line 2: {EOF}"]),
    ("case x in", [f"line 2: {EOF}"]),
    ('echo "abc', ["line 1: unexpected EOF while looking for matching `\"'"]),
    ("echo 'abc", ["line 1: unexpected EOF while looking for matching `''"]),
    ("echo $'abc\\'", ["line 1: unexpected EOF while looking for matching `''"]),
    ("echo `abc", ["line 1: unexpected EOF while looking for matching ``'"]),
    ("echo ${x", ["line 1: unexpected EOF while looking for matching `}'"]),
    ("echo ${x:-a", ["line 1: unexpected EOF while looking for matching `}'"]),
    ("echo ${x!a", ["line 1: unexpected EOF while looking for matching `}'"]),
    ("echo $(abc", ["line 2: unexpected EOF while looking for matching `)'"]),
    ("echo <(abc", ["line 2: unexpected EOF while looking for matching `)'"]),
    ("echo $[1", ["line 1: unexpected EOF while looking for matching `]'"]),
    ("]]", near("]]", "]]")),
    ("a && in", near("in", "a && in")),
    ("{ (a) > f }", near("}", "{ (a) > f }")),
    ("f() $(a)", near("$(a)", "f() $(a)")),
    ("echo $((1 + (2)", ["line 1: unexpected EOF while looking for matching `)'"]),
    ("a[1", ["line 1: unexpected EOF while looking for matching `]'"]),
    ("((1+", ["line 1: unexpected EOF while looking for matching `)'"]),
    ('(( "a', ["line 1: unexpected EOF while looking for matching `\"'"]),
    ("for ((a;b;c", ["line 1: unexpected EOF while looking for matching `)'"]),
    (
        "for ((i=0;i<3)); do :; done",
        ["line 1: syntax error: arithmetic expression required", "line 1: syntax error: `((i=0;i<3))'"],
    ),
    (
        "for ((a;b;c;d)); do :; done",
        ["line 1: syntax error: `;' unexpected", "line 1: syntax error: `((a;b;c;d))'"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), ERRORS, ids=[text for text, _ in ERRORS])
def test_errors(text: str, expected: list[str]) -> None:
    found = failure(text)
    assert found.lines("") == expected
    assert found.fatal and found.status == 2


CONDITIONS = [
    ("[[ a b ]]", "conditional binary operator expected"),
    ("[[ a $(b) ]]", "conditional binary operator expected"),
    ("[[ a\nb ]]", "unexpected token `newline', conditional binary operator expected"),
    ("[[ ( a ]]", "unexpected token `]]', expected `)'"),
    ("[[ ( a == $x b", "expected `)'"),
    ("[[ ( a == b $x ]]", "expected `)'"),
    ("[[ ( a == b $(x) ]]", "expected `)'"),
    ("[[ -f ]]", "unexpected argument `]]' to conditional unary operator"),
    ("[[ a == ]]", "unexpected argument `]]' to conditional binary operator"),
    ("[[ a == & ]]", "unexpected argument `&' to conditional binary operator"),
    ("[[ a == b c ]]", "syntax error in conditional expression"),
    ("[[ a == b ; ]]", "syntax error in conditional expression: unexpected token `;'"),
    ("[[ ) ]]", "unexpected token `)' in conditional command"),
    ("[[ ]]", ""),
    ("[[ a && ]]", ""),
]


@pytest.mark.parametrize(("text", "message"), CONDITIONS)
def test_errors_in_conditions_keep_the_status(text: str, message: str) -> None:
    found = failure(text)
    assert found.message == message
    assert found.status is None
    assert bool(found.lines("bash: ")) == bool(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[ a == b", "unexpected EOF while looking for `]]'"),
        ("[[ a &&", "unexpected token `EOF' in conditional command"),
    ],
)
def test_the_end_of_the_text_inside_a_condition_is_an_ordinary_error(text: str, message: str) -> None:
    found = failure(text)
    assert (found.message, found.status) == (message, 2)


def test_a_condition_complains_about_an_operand_without_an_end() -> None:
    assert failure("[[ ( a =~ (b ]]\n").lines("") == [
        "line 1: unexpected EOF while looking for matching `)'",
        "line 2: unexpected argument to conditional binary operator",
        "line 1: expected `)'",
    ]


def test_a_condition_cut_off_by_the_end_of_the_text() -> None:
    found = failure("[[ a")
    assert found.message == "unexpected token `newline', conditional binary operator expected"
    assert found.status == 2


def test_an_error_in_an_array_skips_only_the_line() -> None:
    parser = Parser("a=(1 & 2); x\nb\n")
    with pytest.raises(SyntaxFailure) as caught:
        parser.next()
    assert caught.value.status == 1 and not caught.value.fatal
    assert parser.next() == parse("b")
    assert parser.next() is None
    assert failure("a=(1").status == 1


def test_lines_before_an_error_are_delivered() -> None:
    parser = Parser("a\nb\nc )\n")
    assert parser.next() == parse("a")
    assert parser.next() == parse("b")
    with pytest.raises(SyntaxFailure):
        parser.next()


DEEP = {
    "substitution": lambda k: "echo " + "$(echo " * k + "x" + ")" * k,
    "group": lambda k: "{ " * k + "a" + "; }" * k,
    "subshell": lambda k: "( " * k + "a" + " )" * k,
    "if": lambda k: "if a; then " * k + "b" + "; fi" * k,
    "quotes": lambda k: "echo " + '"${x:-' * k + "a" + '}"' * k,
    "arithmetic": lambda k: "echo " + "$((1+" * k + "1" + "))" * k,
    "condition": lambda k: "[[ " + "( " * k + "a" + " )" * k + " ]]",
}


@pytest.mark.parametrize("kind", DEEP)
def test_nesting(kind: str) -> None:
    limit = sys.getrecursionlimit()
    assert Parser(DEEP[kind](300)).next() is not None
    assert Parser(DEEP[kind](5000)).next() is not None
    with pytest.raises(TooDeep):
        Parser(DEEP[kind](DEEPEST + 1)).next()
    assert sys.getrecursionlimit() == limit


LONG = {
    "list": "; ".join(["a"] * 10_000),
    "chain": " && ".join(["a"] * 10_000),
    "pipeline": " | ".join(["a"] * 10_000),
    "clauses": "if a; then b; " + "elif a; then b; " * 3000 + "fi",
    "condition": "[[ a" + " && a" * 5000 + " ]]",
    "word": "x=" + "a$x" * 10_000,
    "lines": "a\n" * 10_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_length(kind: str) -> None:
    assert parse(LONG[kind]).statements
