"""Paths are parsed once, at the edge, and are what POSIX says they are."""

from __future__ import annotations

import errno
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.core.paths import ROOT, Path, decode, encode, parse

SEGMENTS = st.lists(st.sampled_from(["a", "b", ".", "..", "", "...", ".x", "ü"]), max_size=6)


@given(SEGMENTS, SEGMENTS, st.booleans())
def test_parse_is_lexical_normalization(cwd: list[str], words: list[str], absolute: bool) -> None:
    here = parse("/" + "/".join(cwd))
    text = ("/" if absolute else "") + "/".join(words)
    if not text:
        return
    expected = posixpath.normpath(posixpath.join(here, text))
    assert parse(text, here) == ("/" + expected.lstrip("/"))


@pytest.mark.parametrize(
    ("text", "number"),
    [("", errno.ENOENT), ("a\0b", errno.EINVAL), ("a" * 256, errno.ENAMETOOLONG), ("é" * 128, errno.ENAMETOOLONG),
     ("a/" * 2100, errno.ENAMETOOLONG)],
)  # fmt: skip
def test_what_is_not_a_path(text: str, number: int) -> None:
    with pytest.raises(OSError) as caught:
        parse(text)
    assert caught.value.errno == number


def test_the_longest_allowed() -> None:
    assert parse("/" + "a" * 255).name == "a" * 255
    assert len(parse("/" + "/".join(["abc"] * 1000))) == 4000
    assert parse("../" * 5000 + "x", parse("/a/b")) == "/x"


def test_parts_and_parents() -> None:
    path = parse("/a/b/c")
    assert (path.name, path.parent, path.parts) == ("c", "/a/b", ["a", "b", "c"])
    assert (ROOT.name, ROOT.parent, ROOT.parts) == ("", "/", [])
    assert ROOT / "x" == "/x" and path / "d" == "/a/b/c/d"


@pytest.mark.parametrize(
    ("path", "top", "under"),
    [("/a/b", "/a", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a", "/", True), ("/", "/a", False)],
)
def test_under(path: str, top: str, under: bool) -> None:
    assert Path(path).under(Path(top)) is under


@given(SEGMENTS, SEGMENTS)
def test_below_and_onto_are_inverse(a: list[str], b: list[str]) -> None:
    top, path = parse("/" + "/".join(a)), parse("/" + "/".join(b))
    assert path.onto(top).below(top) == path


@given(st.binary())
def test_any_bytes_survive_as_text(raw: bytes) -> None:
    assert encode(decode(raw)) == raw
