"""Tar headers: what is written is read back, and damaged fields are errors."""

from __future__ import annotations

import tarfile

import pytest

from ramet.text import tar_header


@pytest.mark.parametrize("size", [0, 511, (1 << 33) - 1, 1 << 33, 1 << 40])
def test_a_header_is_what_others_read(size: int) -> None:
    block = tar_header.gnu_header(b"d/f", size, b"0", 0o640, 7)
    info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    assert (info.name, info.size, info.mode, info.mtime) == ("d/f", size, 0o640, 7)
    assert tar_header.has_checksum(block)
    assert tar_header.with_checksum(block) == block
    assert tar_header.number(block[124:136]) == size
    assert tar_header.name(block) == b"d/f"


def test_a_changed_header_has_no_checksum() -> None:
    block = tar_header.gnu_header(b"f", 1, b"0", 0o644, 0)
    assert not tar_header.has_checksum(b"g" + block[1:])


@pytest.mark.parametrize("field", [b"9\0", b"-1\0", b"\xff" * 12, b"x"])
def test_a_damaged_number_is_an_error(field: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        tar_header.number(field)


def test_pax_records_are_read_up_to_the_damage() -> None:
    records = tar_header.pax_records(b"11 path=ab\n13 mtime=1.5\nx")
    assert [next(records), next(records)] == [(b"path", b"ab"), (b"mtime", b"1.5")]
    with pytest.raises(ValueError, match="damaged"):
        next(records)
