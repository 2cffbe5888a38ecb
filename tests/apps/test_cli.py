"""The `ramet` command as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ramet.apps.cli import app


@pytest.fixture
def ramet(tmp_path: Path):  # type: ignore[no-untyped-def]
    def run(*words: str, status: int = 0, stdin: str | None = None) -> str:
        result = CliRunner(env={"RAMET_HOME": str(tmp_path / "home")}).invoke(app, list(words), input=stdin)
        assert result.exit_code == status, result.output
        return result.output

    return run


def test_first_minute(ramet, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert ramet("create", "demo") == "demo\n"
    assert ramet("exec", "demo", "echo hello > /greeting; cat /greeting", stdin="") == "hello\n"
    assert ramet("exec", "demo", "cat > /in; exit 3", status=3, stdin="typed") == ""
    rows = json.loads(ramet("log", "demo"))
    assert [row["revision"] for row in rows] == ["demo-2", "demo-1"]
    assert json.loads(ramet("diff", "demo", "--json")) == [{"change": "added", "path": "/in"}]
    assert ramet("show", "demo@1:/greeting") == "hello\n"
    assert ramet("fork", "demo@demo-1", "other") == "other-1\n"
    assert [row["workspace"] for row in json.loads(ramet("ls"))] == ["demo", "other"]
    assert ramet("revert", "demo@1") == "demo-3\n"
    assert ramet("checkout", "demo", str(tmp_path / "out")).startswith("1 written")
    assert (tmp_path / "out" / "greeting").read_text() == "hello\n"
    ramet("snapshot", "demo", str(tmp_path / "s.tar"))
    assert (tmp_path / "s.tar").stat().st_size > 0
    assert "3 revisions" in ramet("verify") or "4 revisions" in ramet("verify")
    ramet("rm", "other")
    assert [row["workspace"] for row in json.loads(ramet("ls"))] == ["demo"]


@pytest.mark.parametrize(
    ("words", "status", "cause"),
    [
        (("log", "nobody"), 3, "no workspace 'nobody'"),
        (("show", "demo"), 1, "names no file"),
        (("revert", "demo"), 1, "no revision was given"),
        (("create", "demo"), 4, "exists already"),
        (("create", "a/b"), 1, "cannot name a workspace"),
        (("nonsense",), 2, "No such command"),
        (("exec", "demo", "sleep 9", "--timeout", "0.05"), 124, ""),
    ],
)
def test_errors_say_what_to_do(ramet, words: tuple[str, ...], status: int, cause: str) -> None:  # type: ignore[no-untyped-def]
    ramet("create", "demo")
    assert cause in ramet(*words, status=status, stdin="")


def test_the_installed_command_answers() -> None:
    done = subprocess.run([sys.executable, "-m", "ramet.apps.cli", "version"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip()
