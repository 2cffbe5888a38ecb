"""The reference chunker cuts where the format says, and where the compiled one does."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramet import Store
from ramet.store.model import chunker
from ramet.store.model.fastcdc import GEAR, MAXIMUM, MINIMUM, cut_lengths
from ramet.store.objects.objects import MemoryObjects

VECTORS = {
    "counting": (
        bytes(range(256)) * 20_000,
        [1048576, 1048576, 1048576, 1048576, 925696],
    ),
    "random": (
        random.Random(7).randbytes(3_000_001),
        [264465, 320718, 125415, 137620, 285505, 407445, 280569, 475166, 306980, 345500, 50618],
    ),
    "smallest": (random.Random(7).randbytes(MINIMUM), [MINIMUM]),
    "zeros": (bytes(MAXIMUM + 1), [MAXIMUM, 1]),
    "empty": (b"", []),
}
"""Content and the lengths of its chunks. They are part of the format and never change."""


@pytest.mark.parametrize("name", VECTORS)
def test_the_pinned_cuts(name: str) -> None:
    data, lengths = VECTORS[name]
    assert list(cut_lengths(data)) == lengths
    assert [len(chunk) for chunk in chunker.cut(data, last=True)[0]] == lengths


def test_the_table_is_what_the_format_says() -> None:
    assert (GEAR[0], GEAR[255]) == (0x3B5D3C7D207E37DC, 0xAABD2B2A451504E1)


@given(seed=st.integers(0, 1000), size=st.integers(MINIMUM, 700_000))
def test_both_cut_alike(seed: int, size: int) -> None:
    data = random.Random(seed).randbytes(size)
    assert list(cut_lengths(data)) == [len(chunk) for chunk in chunker.cut(data, last=True)[0]]


def test_a_store_is_writable_without_the_compiled_package(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.store.verbs.test_verbs import make

    script = "seq 1 200000 > /large"
    usual = make(MemoryObjects(), script)
    for name in [name for name in sys.modules if name.split(".")[0] == "pyfastcdc"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyfastcdc", None)
    chunker._cutter.cache_clear()
    try:
        plain = make(MemoryObjects(), script)
        assert chunker._cutter() is cut_lengths
    finally:
        chunker._cutter.cache_clear()
    assert trees(plain) == trees(usual)


def trees(store: Store) -> list[object]:
    return [revision.content for revision in store["w"].log()]
