"""Parsed scripts are kept by their text, within bounds."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ramet.shell.syntax import Options, SyntaxFailure, cache, parse, parse_lines
from ramet.shell.syntax import assignments as assignments_module
from ramet.shell.syntax import words as words_module


def test_what_comes_a_second_time_is_kept() -> None:
    assert parse_lines("echo kept; x\ny") == parse_lines("echo kept; x\ny")
    assert parse_lines("echo kept; x\ny") is parse_lines("echo kept; x\ny")
    known = cache.recall("echo kept; x\ny", Options())
    assert known is not None
    assert known.lines is parse_lines("echo kept; x\ny")
    assert known.whole
    assert known.ends[-1] == len("echo kept; x\ny\n")
    assert cache.recall("echo kept; x\ny", Options(extglob=True)) is None
    assert parse("echo kept") == parse("echo kept")
    assert parse("echo kept") is parse("echo kept")


def test_what_comes_once_is_not_kept() -> None:
    parse("echo once and never again")
    assert cache.recall("echo once and never again", Options()) is None


def test_texts_are_kept_with_the_line_that_they_begin_at() -> None:
    known = cache.ParsedLines((), (), (), True)
    cache.remember("echo line seven", Options(), known, 7)
    assert cache.recall("echo line seven", Options(), 7) is known
    assert cache.recall("echo line seven", Options()) is None


def test_what_fails_or_warns_is_not_kept() -> None:
    for _ in range(2):
        with pytest.raises(SyntaxFailure):
            parse("echo )")
        parse("cat <<E\nx")
    assert cache.recall("cat <<E\nx", Options()) is None


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_scripts", {})
    monkeypatch.setattr(cache, "_size", 0)
    monkeypatch.setattr(cache, "_KEPT", 4)
    monkeypatch.setattr(cache, "_CHARACTERS", 800)
    monkeypatch.setattr(cache, "LONGEST", 100)
    monkeypatch.setattr(cache, "_once", {})
    monkeypatch.setattr(cache, "_REMEMBERED", 5)
    for k in range(20):
        parse(f"echo {k}")
        parse(f"echo {k}")
    assert len(cache._scripts) == 4
    assert len(cache._once) == 5
    for _ in range(2):
        parse("x" * 200)
    assert cache.recall("x" * 200, Options()) is None
    assert not cache.comes_again("x" * 200)
    cache.remember("x" * 200, Options(), cache.ParsedLines((), (), (), True))
    assert ("x" * 200, Options(), 1) not in cache._scripts
    cache.remember("echo 19", Options(), cache.ParsedLines((), (), (), True))
    assert cache._size == sum(len(text) for text, _, _ in cache._scripts)


def test_event_loops_in_several_threads_share_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_scripts", {})
    monkeypatch.setattr(cache, "_size", 0)
    monkeypatch.setattr(cache, "_KEPT", 8)
    monkeypatch.setattr(cache, "_REMEMBERED", 40)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(number: int) -> None:
        for k in range(150):
            parse(f"echo {number} {k % 20}")

    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert cache._size == sum(len(text) for text, _, _ in cache._scripts)
    assert len(cache._scripts) <= 8


def test_words_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_module, "WORDS", {})
    monkeypatch.setattr(words_module, "_WORDS_KEPT", 3)
    monkeypatch.setattr(assignments_module, "_assignments", {})
    monkeypatch.setattr(assignments_module, "_ASSIGNMENTS_KEPT", 3)
    parse("; ".join(f"a{k}=v{k} w{k}" for k in range(10)))
    assert len(words_module.WORDS) <= 3
    assert len(assignments_module._assignments) <= 3
