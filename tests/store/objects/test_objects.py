"""A directory as a store: what is made when, and what lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramet.store.objects.objects import DirectoryObjects


def test_looking_for_a_store_that_is_not_there_leaves_nothing_behind(tmp_path: Path) -> None:
    objects = DirectoryObjects(str(tmp_path / "no" / "store"))
    assert not list(objects.list("")) and not list(objects.list("refs/"))
    with pytest.raises(KeyError):
        objects.get("store.json")
    objects.delete("store.json")
    assert not (tmp_path / "no").exists()
    assert objects.create("refs/w/1", b"first") and objects.get("refs/w/1") == b"first"


def test_a_store_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        DirectoryObjects(str(tmp_path / "file"))


def test_a_new_folder_is_settled_in_the_one_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[str] = []
    monkeypatch.setattr(DirectoryObjects, "_sync_dir", lambda self, folder: settled.append(folder))
    objects = DirectoryObjects(str(tmp_path / "store"))
    objects.put("refs/w/1", b"first")
    inside = [str(tmp_path), *(str(tmp_path / "store" / part) for part in ("", "refs", "refs/w"))]
    assert settled == [folder.rstrip("/") for folder in inside]
    objects.put("refs/w/2", b"second")
    assert settled[4:] == [str(tmp_path / "store" / "refs" / "w")]
