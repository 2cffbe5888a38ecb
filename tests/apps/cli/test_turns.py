"""`ramet turn` and `ramet rewind` in a directory that `ramet bind` has bound."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

RAMET = [sys.executable, "-m", "ramet.apps.cli"]
AGENT = """
set -e
ramet() { "$PYTHON" -m ramet.apps.cli "$@"; }
echo one > a; mkdir d; echo x > d/x; echo secret > .env; ln -s a l
ramet turn -m first
ramet turn
echo two > a; rm -r d; echo d > d; echo new > n; ln -sfn n l
ramet turn demo -m second
echo three > a; echo unsaved > u
ramet rewind
cat a d u n 2>&1 || true
ramet rewind demo@1
cat a d/x .env; readlink l; ls
ramet rewind demo@99 > /dev/null 2>&1 || echo status $?
"""


def run(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "RAMET_HOME": str(home), "PYTHON": sys.executable, **env}
    return subprocess.run([*RAMET, *words], env=variables, capture_output=True, text=True, check=False)


def test_turns_and_rewinds_of_a_running_program(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(home, "create", "demo")
    done = run(home, "bind", "demo", str(tmp_path / "work"), "-q", "--unconfined", "--", "sh", "-c", AGENT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["demo-1", "demo-1", "demo-2"]
    assert lines[3:8] == ["demo-4", "two", "d", "cat: u: No such file or directory", "new"]
    assert lines[8:] == ["demo-5", "one", "x", "secret", "a", "a", "d", "l", "status 3"]
    messages = [row["message"] for row in json.loads(run(home, "log", "demo", "--json").stdout)]
    assert messages == ["rewind to demo-1", "rewind to demo-2", "before a rewind", "second", "first"]
    assert run(home, "show", "demo@3:/u").stdout == "unsaved\n"


def test_a_turn_after_a_pause(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(home, "create", "demo")
    wait = 'echo 1 > a; until "$PYTHON" -m ramet.apps.cli show demo:/a 2> /dev/null; do :; done; echo 2 > a'
    done = run(
        home, "bind", "demo", str(tmp_path / "work"), "--turn-on-idle", "1s", "--unconfined", "--", "sh", "-c", wait
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert run(home, "show", "demo@2:/a").stdout == "2\n"


def test_what_is_not_bound(tmp_path: Path) -> None:
    home = tmp_path / "home"
    run(home, "create", "demo")
    refused = run(home, "turn", "demo")
    assert refused.returncode != 0 and "not bound" in refused.stderr
    assert "NAME" in run(home, "rewind", RAMET_WORKSPACE="").stderr
