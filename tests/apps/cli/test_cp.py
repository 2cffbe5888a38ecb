"""`ramet cp` between this machine and workspaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.apps.cli.conftest import Ramet


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "tree"
    (top / "inner").mkdir(parents=True)
    (top / "run").write_text("#!/bin/sh\n")
    (top / "run").chmod(0o755)
    (top / "inner" / "data").write_bytes(bytes(range(256)) * 5000)
    (top / "link").symlink_to("inner/data")
    (top / ".env").write_text("TOKEN=1")
    return top


def test_a_tree_comes_back_as_it_was(ramet: Ramet, tree: Path, tmp_path: Path) -> None:
    ramet("create", "w")
    said = ramet("cp", str(tree), "w:/")
    assert "withheld: /tree/.env" in said and "copied 4 files" in said
    ramet("cp", "w:/tree", str(tmp_path / "back"))
    back = tmp_path / "back"
    assert (back / "inner" / "data").read_bytes() == (tree / "inner" / "data").read_bytes()
    assert (back / "run").stat().st_mode & 0o777 == 0o755
    assert (back / "link").readlink() == Path("inner/data")
    assert not (back / ".env").exists()


def test_the_copy_is_one_record_of_the_caller(ramet: Ramet, tree: Path) -> None:
    ramet("create", "w")
    ramet("cp", str(tree), "w:/src", RAMET_AGENT="ada")
    (record,) = json.loads(ramet("history", "w", "--json"))
    assert (record["kind"], record["agent"]) == ("import", "ada")
    assert "/src/run" in record["paths_written"]
    assert json.loads(ramet("blame", "w:/src/run", "--json"))[0]["by"] == "ada"


def test_a_directory_receives_under_the_name_of_the_source(ramet: Ramet, tree: Path, tmp_path: Path) -> None:
    ramet("create", "w")
    ramet("exec", "w", "mkdir /there")
    ramet("cp", str(tree / "run"), "w:/there")
    ramet("create", "other")
    ramet("cp", "w:/there", "other:/here")
    assert ramet("show", "other:/here/run") == "#!/bin/sh\n"
    (tmp_path / "out").mkdir()
    ramet("cp", "other:/here/run", str(tmp_path / "out"))
    assert (tmp_path / "out" / "run").read_text() == "#!/bin/sh\n"


def test_nothing_is_written_through_a_link_of_an_earlier_copy(ramet: Ramet, tmp_path: Path) -> None:
    host = tmp_path / "host"
    (host / "inner").mkdir(parents=True)
    (host / "file").write_text("kept")
    ramet("create", "w")
    ramet("exec", "w", f"mkdir /d; ln -s {host}/file /d/file; ln -s {host}/inner /d/inner")
    ramet("cp", "w:/d", str(tmp_path / "out"))
    ramet("exec", "w", "rm /d/file /d/inner; echo new > /d/file; mkdir /d/inner; echo new > /d/inner/more")
    (tmp_path / "out").rename(tmp_path / "d")
    ramet("cp", "w:/d", str(tmp_path))
    assert (host / "file").read_text() == "kept" and list((host / "inner").iterdir()) == []
    assert (tmp_path / "d" / "file").read_text() == (tmp_path / "d" / "inner" / "more").read_text() == "new\n"


def test_past_revisions_are_read_and_never_written(ramet: Ramet, tmp_path: Path) -> None:
    ramet("create", "w")
    ramet("exec", "w", "echo one > /f")
    ramet("exec", "w", "echo two > /f")
    ramet("cp", "w@1:/f", str(tmp_path / "f"))
    assert (tmp_path / "f").read_text() == "one\n"
    assert "past revision" in ramet("cp", str(tmp_path / "f"), "w@1:/f", status=2)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("a", "b"), 2, "neither path is in a workspace"),
        (("w:/none", "out"), 3, "no such file or directory"),
        (("./none", "w:/"), 3, "No such file or directory"),
    ],
)
def test_what_cannot_be_copied(ramet: Ramet, words: tuple[str, ...], status: int, told: str) -> None:
    ramet("create", "w")
    ramet("exec", "w", "echo 1 > /f")
    assert told in ramet("cp", *words, status=status)
