"""Values written back as shell text: a table per style, and a round trip through the parser."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.shell_runner import run_script

from ramet.shell.expand import quote

AT_Q = {"": "''", "a b": "'a b'", "it's": "'it'\\''s'", "'": "\\'", "a\nb": "$'a\\nb'", "é": "'é'", "\x01": "$'\\001'"}
BACKSLASHED = {"": "''", "a b": "a\\ b", "a$b": "a\\$b", "~x": "\\~x", "a#": "a#", "#a": "\\#a", "a\tb": "$'a\\tb'"}
DOUBLE = {"": '""', 'a"b': '"a\\"b"', "$x`y`\\": '"\\$x\\`y\\`\\\\"', "a\nb": "$'a\\nb'"}
TRACED = {"": "''", "a": "a", "a b": "'a b'", "a=b": "a=b", "a\nb": "'a\nb'", "\x01": "$'\\001'", "~": "'~'"}


@pytest.mark.parametrize(
    ("style", "table"),
    [(quote.at_q, AT_Q), (quote.backslashed, BACKSLASHED), (quote.double, DOUBLE), (quote.word, TRACED)],
)
def test_styles(style: object, table: dict[str, str]) -> None:
    assert {text: style(text) for text in table} == table  # type: ignore[operator]


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=8))
def test_quoted_text_means_itself_again(text: str) -> None:
    styles = (quote.at_q, quote.backslashed, quote.double, quote.word)
    script = "".join(f"printf '%s\\0' {style(text)}\n" for style in styles)
    out, err, status = asyncio.run(run_script(script))
    assert (status, err) == (0, b"")
    assert out == (text.encode() + b"\0") * len(styles)
