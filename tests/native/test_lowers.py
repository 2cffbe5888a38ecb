"""Lower layers that boxes share: one checkout per tree, upper layers as trees, what is deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from ramet.native import lowers as module
from ramet.native.layout import box_owner
from ramet.native.lowers import Checkout, Lowers, read_place
from ramet.native.upper import assemble


def filled(name: str) -> Checkout:
    def fill(target: str) -> None:
        Path(target, name).write_text(name)

    return Checkout(name, fill)


def must_not_fill(_: str) -> None:
    raise AssertionError("the tree is there")


def overlay(base: Path, name: str) -> str:
    folder = base / name / "trees" / "0"
    folder.mkdir(parents=True)
    return str(folder)


def test_a_tree_is_written_once(tmp_path: Path) -> None:
    shared = Lowers(str(tmp_path), box_owner())
    first = shared.take(overlay(tmp_path, "a"), filled("one"))
    assert shared.take(overlay(tmp_path, "b"), Checkout("one", must_not_fill)) == first
    assert [os.listdir(layer) for layer in first] == [["one"]]


def test_an_upper_layer_becomes_the_next_tree(tmp_path: Path) -> None:
    shared = Lowers(str(tmp_path), box_owner())
    below = shared.take(overlay(tmp_path, "a"), filled("one"))
    (upper := tmp_path / "upper").mkdir()
    (upper / "two").write_text("2")
    assert not shared.add("two", "one", str(upper), time.time_ns() - 10**9), "it changed after the commit"
    assert shared.add("two", "one", str(upper), time.time_ns() + 10**9)
    found = shared.take(overlay(tmp_path, "b"), Checkout("two", must_not_fill))
    assert found[:1] == below
    assemble(found, str(tmp_path / "whole"))
    assert sorted(os.listdir(tmp_path / "whole")) == ["one", "two"]


def test_a_pipe_is_in_no_tree(tmp_path: Path) -> None:
    shared = Lowers(str(tmp_path), box_owner())
    shared.take(overlay(tmp_path, "a"), filled("one"))
    (upper := tmp_path / "upper").mkdir()
    os.mkfifo(upper / "pipe")
    assert not shared.add("two", "one", str(upper), time.time_ns() + 10**9)
    assert shared.layers("two") == ()


def test_entries_in_use_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An overlay of a dead process counts: recovery reads it."""
    monkeypatch.setattr(module, "KEPT", 1)
    shared = Lowers(str(tmp_path), box_owner())
    folder = overlay(tmp_path, "a")
    used = shared.take(folder, filled("one"))
    for name in ("two", "three"):
        other = overlay(tmp_path, name)
        shared.take(other, filled(name))
        os.unlink(f"{other}/layers")
    shared.collect()
    assert shared.layers("two") == ()
    assert shared.layers("three")
    assert read_place(folder).shared == used


def test_assembling_applies_removals(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes device nodes")
    for name, files in (("low", ("a", "b", "d/x")), ("up", ("d/y",))):
        for file in files:
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(name)
    os.mknod(tmp_path / "up" / "a", 0o600 | 0o020000, 0)
    assemble([str(tmp_path / "low"), str(tmp_path / "up")], str(tmp_path / "whole"))
    found = sorted(str(path.relative_to(tmp_path / "whole")) for path in (tmp_path / "whole").rglob("*"))
    assert found == ["b", "d", "d/x", "d/y"]
    assert (tmp_path / "low" / "a").exists()
