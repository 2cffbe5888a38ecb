"""Texts in blocks are found and counted alike with and without the extra `speed`."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.patterns import Lines, compile
from ramet.patterns import count as scanning
from ramet.patterns.match_lines import numbered, select


def _without_the_extra() -> ModuleType:
    spec = importlib.util.find_spec("ramet.patterns.count")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "stringzilla", None)
        spec.loader.exec_module(module)
    return module


PLAIN = _without_the_extra()
BOTH = pytest.mark.parametrize("way", [scanning, PLAIN], ids=["speed", "plain"])
TEXTS = st.text("ab\n", max_size=60).map(str.encode)
NEEDLES = st.text("ab", min_size=1, max_size=3).map(str.encode)


def test_the_two_ways_differ() -> None:
    assert PLAIN.find is bytes.find
    assert scanning.find is not bytes.find, "the extra `speed` belongs to the development environment"


def test_a_variable_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec("ramet.patterns.count")
    assert spec is not None and spec.loader is not None
    for value, plain in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv("RAMET_NO_SIMD", value)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert (module.find is bytes.find) == plain


@BOTH
@given(block=TEXTS, text=NEEDLES, start=st.integers(0, 70), end=st.integers(0, 70))
def test_as_bytes_do(way: ModuleType, block: bytes, text: bytes, start: int, end: int) -> None:
    assert way.find(block, text, start, end) == block.find(text, start, end)
    assert way.occurrences(block, text, start, end) == block.count(text, start, end)
    assert way.find(block, text, start) == block.find(text, start)


@BOTH
@pytest.mark.parametrize("copies", [1, 3000])
@given(block=TEXTS, text=NEEDLES)
def test_lines_with(way: ModuleType, copies: int, block: bytes, text: bytes) -> None:
    block = (block + b"\n") * copies
    assert way.lines_with(block, text, 0, len(block)) == sum(text in line for line in block.split(b"\n"))
    cut = block.find(b"\n") + 1
    assert way.lines_with(block, text, cut, len(block)) == sum(text in line for line in block[cut:].split(b"\n"))


@pytest.mark.parametrize("copies", [1, 40])
@given(block=TEXTS, text=NEEDLES, invert=st.booleans())
def test_selection_does_not_depend_on_how_often_a_text_occurs(
    copies: int, block: bytes, text: bytes, invert: bool
) -> None:
    block = (block + b"\n") * copies
    matcher = compile(text, lines=Lines.BLOCK)
    rows = [(n, line) for n, line in enumerate(block.split(b"\n")[:-1], 7) if (text in line) != invert]
    assert list(numbered(matcher, block, invert, 7)) == rows
    data, count = select(matcher, block, invert)
    assert (data, count) == (b"".join(line + b"\n" for _, line in rows), len(rows))
