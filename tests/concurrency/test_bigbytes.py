"""Work on long byte strings in pieces gives what Python's own methods give in one go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet.concurrency import bigbytes as longbytes

DATA = st.binary(max_size=60) | st.lists(st.sampled_from([b"\n", b"ab", b"c"]), max_size=40).map(b"".join)


@pytest.fixture(autouse=True, scope="module")
def tiny_pieces() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(longbytes, "PIECE", 7)
        patch.setattr(longbytes, "_MANY", 3)
        yield


@given(DATA)
def test_split_is_that_of_bytes(data: bytes) -> None:
    assert longbytes.split(data, b"\n") == data.split(b"\n")


@given(st.lists(DATA, max_size=12), st.sampled_from([b"", b"\n"]))
def test_joined_is_join(parts: list[bytes], between: bytes) -> None:
    assert longbytes.joined(parts, between) == between.join(parts)


@given(DATA, st.integers(0, 60), st.integers(0, 60))
def test_cut_is_a_slice(data: bytes, one: int, other: int) -> None:
    start, stop = sorted(min(place, len(data)) for place in (one, other))
    assert longbytes.cut(data, start, stop) == data[start:stop]


@given(DATA)
def test_changed_is_the_change(data: bytes) -> None:
    assert longbytes.changed(data, bytes.upper) == data.upper()


@given(DATA, st.sampled_from([b"a", b"ab", b"abab", b"b\n", b"\n\n"]), st.sampled_from([b"", b"x", b"long text"]))
def test_replaced_is_replace(data: bytes, old: bytes, new: bytes) -> None:
    assert longbytes.replaced(data, old, new) == data.replace(old, new)


@given(st.text(alphabet="ab ,", max_size=60))
def test_texts_are_treated_alike(text: str) -> None:
    assert longbytes.split(text, ",") == text.split(",")
    assert longbytes.joined(text.split(","), ";") == text.replace(",", ";")
    assert longbytes.replaced(text, "ab", "ba") == text.replace("ab", "ba")
