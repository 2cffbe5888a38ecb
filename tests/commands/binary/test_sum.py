"""The checksums of `sum` by groups are those by single bytes, whatever the bytes and wherever a block ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ramet.commands.binary.sum_algorithms import bsd_total, sysv_total

near_full = st.lists(st.sampled_from([0, 1, 127, 128, 254, 255]), max_size=600).map(bytes)


@given(st.integers(0, 0xFFFF), st.one_of(st.binary(max_size=600), near_full), st.integers(0, 600))
def test_bsd_by_groups(start: int, data: bytes, cut: int) -> None:
    expected = start
    for byte in data:
        expected = ((expected >> 1) + ((expected & 1) << 15) + byte) & 0xFFFF
    assert bsd_total(bsd_total(start, data[:cut]), data[cut:]) == expected


@given(st.one_of(st.binary(max_size=2000), st.integers(0, 5000).map(lambda size: b"\xff" * size)))
def test_sysv_by_groups(data: bytes) -> None:
    assert sysv_total(data) == sum(data)
