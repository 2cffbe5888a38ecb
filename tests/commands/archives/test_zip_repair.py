"""zip -FF saves the members that are whole, and nothing else."""

from __future__ import annotations

import io
import zipfile

import pytest

from ramet.commands.archives.zip_repair import salvaged

MEMBERS = {"a": b"1\n2\n3\n", "dir/b": b"the same line\n" * 500, "c": bytes(range(256)) * 8}


def archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in MEMBERS.items():
            made.writestr(name, content)
    return buffer.getvalue()


def test_an_archive_without_its_directory_gives_back_all_its_members() -> None:
    data = archive()
    found = salvaged(data[: data.index(b"PK\x01\x02")])
    assert {info.filename: content for info, content in found} == MEMBERS


@pytest.mark.parametrize("left", [0, 3, 20, 36, 60, 100, 150, 200])
def test_a_member_that_was_cut_is_left_out(left: int) -> None:
    found = [(info.filename, content) for info, content in salvaged(archive()[:left])]
    assert found == list(MEMBERS.items())[: len(found)]


def test_a_member_whose_content_changed_is_left_out() -> None:
    data = bytearray(archive())
    place = data.index(b"PK\x03\x04", 4) + 30 + len("dir/b") + 4
    data[place] ^= 0xFF
    assert [info.filename for info, _ in salvaged(bytes(data))] == ["a", "c"]
