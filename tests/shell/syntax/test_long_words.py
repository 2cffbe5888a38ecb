"""What is longer than one match takes is read all the same."""

from __future__ import annotations

import pytest

from ramet.shell.syntax.nodes import DoubleQuoted, Literal, Param, Simple, SingleQuoted, Word
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.scanner import TOKEN

LONG = 70_000


def only(text: str) -> Simple:
    script = Parser(text).next()
    assert script is not None
    (statement,) = script.statements
    assert isinstance(statement.node, Simple)
    return statement.node


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a" * LONG, (Literal("a" * LONG),)),
        ("a=" * LONG, (Literal("a=" * LONG),)),
        (f"'{'b' * LONG}'", (SingleQuoted("b" * LONG),)),
        (f'"{"c" * LONG}"', (DoubleQuoted((Literal("c" * LONG),)),)),
        ("'b'" * LONG, (SingleQuoted("b"),) * LONG),
        ("$x'b'" * 300, (Param("x", braced=False), SingleQuoted("b")) * 300),
        (f'"{"$x " * 300}"', (DoubleQuoted((Param("x", braced=False), Literal(" ")) * 300),)),
        (f"${{{'x' * LONG}}}", (Param("x" * LONG),)),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_long_word_is_one_word(text: str, parts: tuple[object, ...]) -> None:
    assert only(f": {text} e").words == (Word((Literal(":"),)), Word(parts), Word((Literal("e"),)))  # type: ignore[arg-type]


def test_very_many_words_and_redirections_are_all_of_one_command() -> None:
    command = only(": " + "a " * 1000 + "> f " * 1000 + "b " * 1000)
    assert (len(command.words), len(command.redirects)) == (2001, 1000)


@pytest.mark.parametrize(
    "text", ["a" * 1_000_000, "'b'" * 300_000, '"' + "$x" * 300_000 + '"'], ids=lambda text: text[:4]
)
def test_one_match_takes_little(text: str) -> None:
    found = TOKEN(text)
    assert found is not None and found.end() < LONG
