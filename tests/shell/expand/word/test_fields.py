"""Word splitting: a table of (IFS, pieces, fields); a piece is (kind, text)."""

from __future__ import annotations

import pytest

from ramet.shell.expand.word.fields import Fields, GlobWord, escape, split_plain
from ramet.text.pattern.matcher import compile_pattern

SPLITTING = [
    (None, [("split", " a b ")], ["a", "b"]),
    (None, [("split", "")], []),
    (None, [("quoted", "")], [""]),
    (None, [("literal", "x"), ("split", " a"), ("quoted", "b c")], ["x", "ab c"]),
    (None, [("split", "a "), ("quoted", "")], ["a", ""]),
    (":", [("split", "a::b:")], ["a", "", "b"]),
    (":", [("split", ":a")], ["", "a"]),
    (":", [("split", "a b:c")], ["a b", "c"]),
    (" :", [("split", " a : b::c ")], ["a", "b", "", "c"]),
    (" :", [("split", "a "), ("split", ":b")], ["a", "b"]),
    ("", [("split", "a b")], ["a b"]),
    ("x", [("literal", "axb"), ("split", "cxd")], ["axbc", "d"]),
]


@pytest.mark.parametrize(("ifs", "pieces", "wanted"), SPLITTING)
def test_splitting(ifs: str | None, pieces: list[tuple[str, str]], wanted: list[str]) -> None:
    fields = Fields(ifs)
    for kind, text in pieces:
        getattr(fields, kind)(text)
    fields.end()
    assert fields.done == wanted


def test_each_positional_parameter_is_a_field_that_joins_its_neighbours() -> None:
    fields = Fields(None)
    fields.quoted("<")
    fields.several(["a b", "", "c"])
    fields.quoted(">")
    fields.end()
    assert fields.done == ["<a b", "", "c>"]


@pytest.mark.parametrize(
    ("pieces", "pattern"),
    [
        ([("literal", "*.c")], "*.c"),
        ([("quoted", "*"), ("literal", "?")], r"\*?"),
        ([("split", "[ab]")], "[ab]"),
    ],
)
def test_active_fields_carry_their_pattern(pieces: list[tuple[str, str]], pattern: str) -> None:
    fields = Fields(None)
    for kind, text in pieces:
        getattr(fields, kind)(text)
    fields.end()
    (word,) = fields.done
    assert fields.globs and isinstance(word, GlobWord)
    assert word.pattern == pattern
    assert str(word) == "".join(text for _, text in pieces)


@pytest.mark.parametrize("text", ["[", "a]", "plain", "a\\b", "x(y)"])
def test_what_cannot_match_stays_text(text: str) -> None:
    fields = Fields(None)
    fields.literal(text)
    fields.end()
    assert fields.done == [text] and not fields.globs


@pytest.mark.parametrize("text", ["*", "a?b", "[x]", "!(a)", "\\", "a-b", "^", "plain"])
def test_escaped_text_matches_only_itself(text: str) -> None:
    pattern = compile_pattern(escape(text), extglob=True)
    assert pattern.matches(text)
    assert not pattern.matches(text + "x")


def test_split_plain_splits_a_text_that_stands_alone() -> None:
    assert split_plain("a  b\tc", None) == ["a", "b", "c"]


def test_a_long_ifs_is_its_separators() -> None:
    assert split_plain("xby z", ":" + "ab" * 1000 + " ") == ["x", "y", "z"]
