"""`Trial`: programs over a directory of the host, which changes only when their work is applied."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.native.conftest import SECONDS

from ramet.core.errors import RametError
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


def kept(native: Native, project: Path, store: Store, name: str, *commands: str) -> None:
    async def steps() -> None:
        async with Trial(str(project), native=native) as trial:
            for number, command in enumerate(commands):
                await trial.workspace.execute(command, native=True, agent_id=f"agent-{number}", timeout=SECONDS)
            assert (await trial.keep(store, name, "work")).name == f"{name}-2"

    asyncio.run(steps())


def test_it_is_kept_as_a_fork_of_the_directory(native: Native, project: Path, tmp_path: Path) -> None:
    before, store = state(project), Store(tmp_path / "store")
    kept(native, project, store, "kept", WORK, "echo second >> a; chmod 700 n")
    assert state(project) == before
    wrote = {path: store["kept"].blame(path)[0].writer for path in ("/a", "/o/two")}
    assert {path: one and (one.agent_id, one.command) for path, one in wrote.items()} == {
        "/a": ("agent-1", "echo second >> a; chmod 700 n"), "/o/two": ("agent-0", WORK),
    }  # fmt: skip
    store["project"].checkout(tmp_path / "base", prefix="/")
    store["kept"].checkout(tmp_path / "made", prefix="/")
    assert state(tmp_path / "base") == before
    subprocess.run(["sh", "-c", f"{WORK}\necho second >> a; chmod 700 n"], cwd=project, check=True)
    assert state(tmp_path / "made") == state(project)


def test_very_many_changes_are_shown_and_kept(
    native: Native, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace makes them a lower layer, a trial does not."""
    monkeypatch.setattr("ramet.native.runtime.FOLDED", 5)
    store = Store(tmp_path / "store")
    kept(native, project, store, "one", "seq 9 | split -l 1", "echo 1 > last")
    assert len(store["project"].diff("head", "one@head")) == 10


def test_attempts_at_one_directory_share_their_base(native: Native, project: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    kept(native, project, store, "one", "echo 1 > a")
    kept(native, project, store, "two", "echo 2 > a; echo 2 > b")
    assert store.ls() == ["one", "project", "two"]
    assert store["project"].merge("one").ok
    conflicts = store["project"].merge("two").conflicts
    assert [one.path for one in conflicts] == ["/a"]
    assert store["project"].merge("two", take={"/a": "theirs"}).ok
    kept(native, project, store, "three", "rm a")
    assert store.find("three@1").lineage.endswith(":project-1"), "the directory is still as it was"


def test_a_workspace_of_the_same_name_stays_as_it_is(native: Native, project: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create("project")
    kept(native, project, store, "one", "echo 1 > a")
    kept(native, project, store, "one-before3", "echo 1 > a")
    assert store["project"].head is None
    assert store.ls() == ["one", "one-before", "one-before3", "one-before3-before", "project"]


def test_a_name_that_is_taken_is_refused(native: Native, project: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create("taken")
    with pytest.raises(RametError, match="exists already"):
        kept(native, project, store, "taken", "echo 1 > a")
    assert store.ls() == ["taken"]
