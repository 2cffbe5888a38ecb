"""The ways that large texts and many words take give what the plain ways give."""

from __future__ import annotations

import asyncio
import re
import threading
from sys import getsizeof
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.concurrency import bigtext as growth
from ramet.core.limits import Budget, Cancelled
from ramet.core.paths import encode
from ramet.shell.expand import long_text as growing
from ramet.shell.expand import offload as aside_module
from ramet.shell.expand import quote
from ramet.shell.expand.offload import aside, checkpoint
from ramet.shell.expand.pattern import matcher as patterns
from ramet.shell.expand.pattern import plain as pattern_text
from ramet.shell.expand.pattern.matcher import compile_pattern
from ramet.shell.expand.pattern.plain import Where
from ramet.shell.expand.values import Assoc, Indexed
from ramet.shell.expand.word import fields, transform
from ramet.shell.expand.word.braces import count_words, expand_braces, text_blocks
from ramet.shell.expand.word.fields import Fields
from ramet.shell.syntax import nodes as n
from ramet.shell.syntax import shortcuts as usual
from ramet.shell.syntax import words as words_module
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.printer import word_text
from ramet.shell.syntax.simple import SimpleReader

WHERE: tuple[Where, ...] = ("/", "//", "/#", "/%")

WINDOWS = (
    (patterns, "WINDOW"),
    (pattern_text, "WINDOW"),
    (pattern_text, "_RWINDOW"),
    (aside_module, "WINDOW"),
    (growing, "WINDOW"),
    (growing, "LARGE"),
    (growing, "_SLICE"),
    (growing, "_ROW"),
    (growing, "_BEGINNINGS"),
)


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in WINDOWS:
        monkeypatch.setattr(module, name, 3)


def results(text: str, source: str) -> list[object]:
    pattern = compile_pattern(source)
    found: list[object] = [pattern.matches(text), pattern.find(text, 0) if text else None]
    for longest in (False, True):
        found += [pattern.without_prefix(text, longest), pattern.without_suffix(text, longest)]
    found += [pattern.replace(text, where, "<\\>") for where in WHERE]
    return found + [pattern.replace(text, where, "<{}>".format) for where in WHERE]


@given(st.text("abc", max_size=30), st.text("abc*?", min_size=1, max_size=6), st.sampled_from(["", "[ab]", "[!a]"]))
def test_windows_change_nothing(text: str, source: str, extra: str) -> None:
    wanted = results(text, source + extra)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in WINDOWS:
            patch.setattr(module, name, 3)
        assert results(text, source + extra) == wanted


@given(st.text("ab\u00e9\u00df\u0130\u01c5\udcff", max_size=20), st.sampled_from(["^", "^^", ",", ",,", "~", "~~"]))
def test_cases_of_long_texts(text: str, op: str) -> None:
    def changed() -> list[str]:
        return [transform.change_case(text, op, matches) for matches in (None, "b\u00e9".__contains__)]

    wanted = changed()
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((transform, "WINDOW"), (aside_module, "WINDOW"), (growing, "_SLICE")):
            patch.setattr(module, name, 3)
        assert changed() == wanted


def test_matches_across_windows(small_windows: None) -> None:
    assert compile_pattern("aab").replace("aaabaabaaaab", "//", "-") == "a--aa-"
    assert compile_pattern("aa").replace("aaaaaaaaa", "//", "b") == "bbbba"


@given(st.text("ab \n\t*:", max_size=40), st.sampled_from([None, " \t\n", ":", " :", "a"]))
def test_long_texts_are_split_alike(text: str, ifs: str | None) -> None:
    def split() -> list[str]:
        builder = Fields(ifs)
        builder.literal("<")
        builder.split(text)
        builder.literal(">")
        builder.split(text)
        builder.end()
        return [str(field) for field in builder.done]

    wanted = split()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "LONG", 1)
        assert split() == wanted
        for module, name in ((fields, "WINDOW"), *WINDOWS):
            patch.setattr(module, name, 3)
        assert split() == wanted


@given(st.text("ab\u00e9\u20ac\udcff", max_size=40), st.text("ab", min_size=1, max_size=8), st.integers(0, 9))
def test_long_texts_are_looked_through_alike(text: str, part: str, pos: int) -> None:
    pattern = re.compile("[b\u00e9]")
    one = pattern.search(text, pos)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in WINDOWS:
            patch.setattr(module, name, 3)
        assert growing.find(text, part, pos) == text.find(part, pos)
        assert growing.starts(text, part, pos) == text.startswith(part, pos)
        assert growing.search(pattern, text, pos) == (len(text) if one is None else one.start())
        assert growing.has_any(text, part) == any(char in text for char in part)
        assert growing.encoded(text) == encode(text)
        assert growing.decoded(encode(text)) == text
        assert growing.decoded(encode(text) + b"!" * 9, len(encode(text))) == text
        assert growing.part_of(text, pos, 20) == text[pos:20]
        assert growing.spliced(text, pos, 20, part) == text[:pos] + part + text[max(20, pos) :]


@given(st.lists(st.text("ab\u00e9\u20ac", max_size=9)), st.sampled_from(["", " ", ", "]))
def test_long_texts_are_joined_alike(parts: list[str], separator: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in WINDOWS:
            patch.setattr(module, name, 3)
        assert growing.joined(separator, parts) == separator.join(parts)
        assert growing.grown(parts) == "".join(parts)


@pytest.mark.parametrize("text", ["", "a", "long enough", "caf\u00e9", "\u20ac" * 9, "\U0001f600\udcff"])
def test_text_apart_is_the_same_text(text: str) -> None:
    twin = growth.apart(text)
    assert (twin, hash(twin), twin.isascii(), getsizeof(twin)) == (text, hash(text), text.isascii(), getsizeof(text))


@given(st.text("ab ~#:='\"$\\\n\u00e9\u0085\udcff", max_size=20))
def test_long_texts_are_quoted_alike(text: str) -> None:
    ways = (quote.at_q, quote.backslashed, quote.double, quote.setting, quote.word, quote.single)
    pieces = (quote.single_pieces, quote.backslashed_pieces, quote.double_pieces, quote.word_pieces)
    whole = (quote.single, quote.backslashed, quote.double, quote.word)
    array = Indexed([text, "a", text])
    assoc = Assoc({"a": text, text or "b": "c"})
    shown = (transform.array_text, transform.pairs_text)
    wanted = (
        [way(text) for way in ways],
        [way(text) for way in whole],
        [way(one) for one in (array, assoc) for way in shown],
    )
    if text == "'":
        return  # which is quoted by a backslash as long as it is short
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((quote, "WINDOW"), (transform, "WINDOW"), (transform, "_FEW"), *WINDOWS):
            patch.setattr(module, name, 3)
        assert [way(text) for way in ways] == wanted[0]
        assert ["".join(way(text)) for way in pieces] == wanted[1]
        assert [way(one) for one in (array, assoc) for way in shown] == wanted[2]


@given(st.lists(st.sampled_from(["{", "}", ",", "a", "b", "1..3", "{x,y}", "{05..10..2}", "{c..a}"]), max_size=9))
def test_blocks_of_words_agree_with_single_words(pieces: list[str]) -> None:
    word = n.Word((n.Literal("".join(["z", *pieces])),))
    wanted = [word_text(one) for one in expand_braces(word)]
    blocks = text_blocks(word)
    assert blocks is not None
    assert [text for block in blocks for text in block if text] == wanted
    assert count_words(word) >= len(wanted)


@pytest.mark.parametrize("text", ["{A..z}", "a*{1..2}", "~{a,b}", "$x{1..2}"])
def test_more_than_plain_text_has_no_blocks(text: str) -> None:
    script = Parser(text).next()
    assert script is not None
    command = script.statements[0].node
    assert isinstance(command, n.Simple)
    assert isinstance(command.words[0], n.Word)
    assert text_blocks(command.words[0]) is None


def test_words_are_counted_without_being_made() -> None:
    assert count_words(n.Word((n.Literal("{1..1000000000}{a,b,{c,d}}"),))) == 4_000_000_000


def never(*_: object) -> None:
    return None


def one_by_one(reader: SimpleReader) -> bool:
    """No words in bulk: every token for itself."""
    reader.peek()
    return False


@given(st.lists(st.sampled_from([*"ab$\"'{}:-%#*/~ =?+_1<>&;|\n\t\\()", "${x", "$y", '"$z"', " 2>"]), max_size=9))
def test_usual_words_are_read_as_all_words_are(pieces: list[str]) -> None:
    text = "echo " + "".join(pieces)

    def read() -> object:
        words_module.WORDS.clear()
        try:
            return Parser(text).next()
        except Exception as error:  # the failure is part of the answer
            return type(error), str(error)

    quick = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usual, "_USUAL", never)
        patch.setattr(words_module, "USUAL_DOLLAR", never)
        patch.setattr(SimpleReader, "_bulk", one_by_one)
        assert read() == quick


def test_abandoned_work_ends() -> None:
    started, ended = threading.Event(), threading.Event()

    def endless() -> None:
        started.set()
        try:
            while True:
                checkpoint()
        finally:
            ended.set()

    async def main() -> None:
        host = SimpleNamespace(budget=Budget())
        doing = asyncio.create_task(aside(host, endless))
        await asyncio.to_thread(started.wait)
        host.budget.cancelled = True
        with pytest.raises(Cancelled):
            await doing
        assert await asyncio.to_thread(ended.wait, 5)

    asyncio.run(main())


def test_what_fails_aside_fails_here() -> None:
    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await aside(SimpleNamespace(budget=Budget()), lambda: 1 // 0)

    asyncio.run(main())
