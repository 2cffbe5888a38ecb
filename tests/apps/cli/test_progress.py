"""Progress: on a terminal only, after a moment only, and nothing of it stays."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ramet.apps.cli.progress import Bar


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_quick_work_shows_nothing() -> None:
    stream, clock = io.StringIO(), Clock()
    with Bar(stream, clock=clock) as bar:
        bar("commit", 1, 2)
        bar("commit", 2, 2)
    assert stream.getvalue() == ""


def test_long_work_is_drawn_now_and_then_and_taken_away() -> None:
    stream, clock = io.StringIO(), Clock()
    with Bar(stream, clock=clock) as bar:
        clock.now = 1.0
        for number in range(100):
            bar("commit", 50 + number // 100, 100)
        clock.now = 2.0
        bar("files", 1234, None)
    first, second, last = stream.getvalue().split("\r\033[K")[1:]
    assert first == f"commit {'█' * 15}{'░' * 15}  50% 50 of 100 1 s left" and "files 1,234 617/s" in second
    assert last == ""


RUN = """
import sys
from ramet.apps.cli import progress as bars
from ramet.apps.cli.main import main
bars.Bar.__init__.__kwdefaults__["after"] = 0.0
sys.argv = ["ramet", *sys.argv[1:]]
main()
"""


def seen(home: Path, *words: str) -> bytes:
    """What the verb writes to a terminal that only its error stream is on."""
    controller, terminal = pty.openpty()
    env = {**os.environ, "RAMET_HOME": str(home), "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal,
        env=env, check=False,
    )  # fmt: skip
    os.close(terminal)
    found = b""
    try:
        while block := os.read(controller, 65536):
            found += block
    except OSError:
        pass  # the end of a terminal whose other side is closed
    finally:
        os.close(controller)
    assert done.returncode == 0, found
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    seen(home, "create", "w")
    return home


def test_verbs_on_a_terminal(home: Path, tmp_path: Path) -> None:
    lines = [
        (("exec", "w", "mkdir /d; seq 3000 | split -l 1 -a 3 - /d/x"), b"commit"),
        (("checkout", "w", str(tmp_path / "out")), b"checkout"),
        (("snapshot", "w", str(tmp_path / "s.tar")), b"files"),
        (("import", "v", str(tmp_path / "s.tar")), b"files"),
        (("export", "w", str(tmp_path / "git"), "--git"), b"revisions"),
        (("verify",), b"packs"),
    ]
    for words, stage in lines:
        told = seen(home, *words)
        assert b"\r\033[K" in told and stage in told and told.endswith(b"\r\033[K"), words
    assert seen(home, "snapshot", "w", str(tmp_path / "q.tar"), "-q") == b""


def test_nothing_without_a_terminal(home: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "verify"], capture_output=True, env={**os.environ, "RAMET_HOME": str(home)},
        check=True,
    )  # fmt: skip
    assert done.stderr == b""
