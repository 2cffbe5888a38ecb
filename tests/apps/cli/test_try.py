"""`ramet try`: what a program would do to the directory, shown first, and applied as the user says."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.workspace.native.conftest import missing

RAMET = [sys.executable, "-m", "ramet.apps.cli"]
CHANGE = "echo new > a; echo more > b; rm gone; mkdir d; echo x > d/x"
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    made = tmp_path / "project"
    made.mkdir()
    (made / "a").write_text("old\n")
    (made / "gone").write_text("old\n")
    return made


def environ(project: Path) -> dict[str, str]:
    ours = {"RAMET_HOME": str(project.parent / "home"), "PAGER": "cat", "TERM": "dumb", "RAMET_AGENT": "ann"}
    return {**os.environ, **ours}


def tried(project: Path, *words: str) -> Done:
    return subprocess.run(
        [*RAMET, "try", *words], cwd=project, env=environ(project), capture_output=True, text=True, check=False
    )


def ran(project: Path, *words: str) -> Done:
    return subprocess.run([*RAMET, *words], env=environ(project), capture_output=True, text=True, check=True)


def names(project: Path) -> list[str]:
    return sorted(str(path.relative_to(project)) for path in project.rglob("*"))


def test_everything_is_applied_when_the_program_succeeds(project: Path) -> None:
    done = tried(project, "--yes", "--", "sh", "-c", f"{CHANGE}; echo said")
    assert done.returncode == 0 and "applied 5 paths" in done.stderr, done
    assert done.stdout.startswith("said\n") and "-old\n+new\n" in done.stdout
    assert names(project) == ["a", "b", "d", "d/x"] and (project / "a").read_text() == "new\n"


def test_nothing_is_applied_when_it_fails(project: Path) -> None:
    done = tried(project, "--yes", "--", "sh", "-c", f"{CHANGE}; exit 3")
    assert done.returncode == 3 and "nothing was applied" in done.stderr, done
    assert names(project) == ["a", "gone"]


def test_one_object_for_programs(project: Path) -> None:
    done = tried(project, "--json", "--", "sh", "-c", "echo new > a; echo said; echo bad >&2")
    found = json.loads(done.stdout)
    assert found["changes"] == [{"what": "modified", "path": "a"}] and found["applied"] == [], found
    assert (found["status"], found["output"]["stdout"], found["output"]["stderr"]) == (0, "said\n", "bad\n")
    assert (project / "a").read_text() == "old\n"


def test_it_is_kept_as_a_workspace(project: Path) -> None:
    done = tried(project, "--keep", "kept", "--", "sh", "-c", CHANGE)
    assert done.returncode == 0 and "kept as kept-" in done.stderr, done
    assert "a fork of project-1" in done.stderr and names(project) == ["a", "gone"]
    blamed = ran(project, "blame", "kept:/a", "--json")
    [line] = json.loads(blamed.stdout)
    assert (line["agent"], line["command"], line["text"]) == ("ann", f"sh -c '{CHANGE}'", "new"), line
    patch = ran(project, "diff", "kept@1", "kept")
    subprocess.run(["git", "apply"], cwd=project, input=patch.stdout, text=True, check=True)
    assert names(project) == ["a", "b", "d", "d/x"] and (project / "a").read_text() == "new\n"


def test_a_name_that_is_taken_is_refused_before_the_program_runs(project: Path) -> None:
    ran(project, "create", "taken")
    done = tried(project, "--keep", "taken", "--", "echo", "it runs")
    assert done.returncode == 4 and "exists already" in done.stderr and "it runs" not in done.stdout, done
    done = tried(project, "--keep", "no name", "--", "echo", "it runs")
    assert done.returncode == 2 and "it runs" not in done.stdout, done


def test_what_changed_meanwhile_is_a_conflict(project: Path) -> None:
    flags = project.parent / "flags"
    flags.mkdir()
    wait = f"echo mine > a; echo begun; until [ -e {flags}/go ]; do sleep 0.02; done"
    words = [*RAMET, "try", "--yes", "--read", str(flags), "--", "sh", "-c", wait]
    with subprocess.Popen(
        words, cwd=project, env=environ(project), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None and running.stdout.readline() == "begun\n"
        (project / "a").write_text("theirs\n")
        (flags / "go").touch()
        _, said = running.communicate(timeout=60)
    assert running.returncode != 0 and "cannot apply: a changed in the directory meanwhile" in said, said
    assert (project / "a").read_text() == "theirs\n"


@pytest.mark.parametrize(
    ("answers", "left", "said"),
    [
        ("a\n", ["a", "b", "d", "d/x"], "applied 5 paths"), ("d\n", ["a", "gone"], "nothing was applied"),
        ("\n", ["a", "gone"], "nothing was applied"), ("s\nb ./d\n", ["a", "b", "d", "d/x", "gone"], "applied 3 paths"),
        ("k\nkept\n", ["a", "gone"], "kept as kept-"),
        ("k\nno name\nkept\n", ["a", "gone"], "kept as kept-"),
    ],
)  # fmt: skip
def test_the_user_is_asked_at_a_terminal(project: Path, answers: str, left: list[str], said: str) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*RAMET, "try", "--", "sh", "-c", CHANGE], cwd=project, env=environ(project), stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True,
    ) as running:  # fmt: skip
        os.close(theirs)
        seen, todo = "", answers.splitlines(keepends=True)
        while True:
            try:
                seen += os.read(ours, 65536).decode()
            except OSError:
                break  # the program has ended
            if todo and seen.endswith(("[a/s/k/D] ", "paths: ", "workspace: ")):
                os.write(ours, todo.pop(0).encode())
        running.wait(timeout=60)
    os.close(ours)
    assert said in seen and names(project) == left, seen


@pytest.mark.parametrize(("words", "status", "why"), [("nosuch", 127, "not found"), ("./a", 126, "Permission denied")])
def test_what_cannot_be_run(project: Path, words: str, status: int, why: str) -> None:
    done = tried(project, "--yes", "--", words)
    assert done.returncode == status and why in done.stderr and "nothing changed" in done.stderr, done
