"""`Trial`: programs over a directory of the host, which changes only when their work is applied."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.native.conftest import SECONDS

from ramet.native.options import Native
from ramet.workspace.stored.store import Store
from ramet.workspace.stored.trial import Applied, Trial

WORK = """
echo new > a; rm gone; rm -r d; echo d > d; mkdir -p n/m; echo x > n/m/x; chmod 755 sub/b; ln -sfn sub l
cp same copy; mv copy same; touch touched; rm -r o; mkdir o; echo 2 > o/two
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    for name in ("a", "gone", "same", "touched", "d/e/f", "sub/b", "o/one"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text("old\n")
        (made / name).chmod(0o644)
    (made / "l").symlink_to("a")
    return made


def state(folder: Path) -> dict[str, str]:
    """What is where: kind, mode and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        what = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else "directory"
        found[str(path.relative_to(folder))] = f"{oct(path.lstat().st_mode)} {what.strip()}"
    return found


def tried(native: Native, project: Path, text: str, then: Callable[[Trial], object]) -> object:
    async def steps() -> object:
        async with Trial(str(project), native=native) as trial:
            result = await trial.workspace.execute(text, native=True, timeout=SECONDS)
            assert result.exit_code == 0, result.stderr
            return then(trial)

    return asyncio.run(steps())


def test_nothing_changes_before_apply_and_then_everything(native: Native, project: Path) -> None:
    before = state(project)

    def work(trial: Trial) -> dict[str, str]:
        changes = trial.changes()
        assert state(project) == before
        shown = "".join(map(str, trial.patches(changes)))
        assert "-old\n+new\n" in shown and "new mode 100755" in shown and "deleted file" in shown
        assert isinstance(trial.apply(changes), Applied)
        return {change.path: change.what for change in changes}

    assert tried(native, project, WORK, work) == {
        "/a": "modified", "/d/e/f": "removed", "/d/e": "removed", "/d": "modified", "/gone": "removed",
        "/l": "modified", "/n": "added", "/n/m": "added", "/n/m/x": "added", "/o/one": "removed", "/o/two": "added",
        "/sub/b": "modified",
    }  # fmt: skip
    after = state(project)
    assert after["a"].endswith("new") and after["d"].endswith(" d") and after["l"].endswith(" sub")
    assert after["sub/b"].startswith("0o100755") and after["n/m/x"].endswith("x") and "o/two" in after
    assert not {"gone", "d/e", "o/one"} & after.keys()
    assert {path.lstat().st_uid for path in project.rglob("*")} == {project.stat().st_uid}
    assert not [path for path in after if ".ramet" in path]


def test_some_paths(native: Native, project: Path) -> None:
    tried(native, project, WORK, lambda trial: trial.apply(trial.changes(), ["n/m/x", "sub"]))
    after = state(project)
    assert after["n/m/x"].endswith("x") and after["sub/b"].startswith("0o100755")
    assert after["a"].endswith("old") and "gone" in after


@pytest.mark.parametrize("meanwhile", ["changed", "removed", "added", "replaced"])
def test_what_changed_meanwhile_stops_all_of_it(native: Native, project: Path, meanwhile: str) -> None:
    def work(trial: Trial) -> Applied:
        if meanwhile == "changed":
            (project / "a").write_text("by another\n")
        elif meanwhile == "removed":
            (project / "a").unlink()
        elif meanwhile == "added":
            (project / "made").write_text("by another\n")
        changes = trial.changes()
        if meanwhile == "replaced":  # after the changes were shown
            (project / "gone").write_text("by another\n")
        return trial.apply(changes)

    found = tried(native, project, "echo new > a; echo new > made; rm gone; echo 2 > sub/b", work)
    assert isinstance(found, Applied) and found.conflicts and not found.paths
    assert (project / "sub/b").read_text() == "old\n"


def test_a_link_never_leads_out_of_the_directory(native: Native, project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    def work(trial: Trial) -> object:
        changes = trial.changes()
        (project / "sub").rename(project / "was")
        (project / "sub").symlink_to(outside)
        with pytest.raises(OSError):
            found = trial.apply([change for change in changes if change.path == "/sub/new/x"])
            assert isinstance(found, Applied) and found.conflicts
            raise OSError  # refused as a conflict, which is as good
        return None

    tried(native, project, "mkdir sub/new; echo x > sub/new/x", work)
    assert not list(outside.iterdir())


def test_keep_as_a_workspace(native: Native, project: Path, tmp_path: Path) -> None:
    before = state(project)
    store = Store(tmp_path / "store")

    async def steps() -> None:
        async with Trial(str(project), native=native) as trial:
            await trial.workspace.execute(WORK, native=True, timeout=SECONDS)
            assert await trial.keep(store, "kept", "work") == "kept-2"
        changed = {change.path for change in store["kept"].diff()}
        assert {"/a", "/gone", "/n/m/x"} <= changed and "/same" not in changed
        async with store.open("kept") as ws:
            assert (await ws.execute("cat a; cat n/m/x")).stdout == b"new\nx\n"

    asyncio.run(steps())
    assert state(project) == before
