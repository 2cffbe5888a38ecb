"""Without shortcuts (RAMET_PLAIN=1) the shell does the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.spec.replay import TOGETHER
from tests.spec.test_spec import TABLES

ROOT = Path(__file__).parents[4]
SAMPLE = ("functions", "prefixed_builtins", "command_substitution", "pipelines")
"""Spec tables about what the shortcuts are for; `RAMET_PLAIN=1 pytest tests/spec` replays all of them."""


def test_spec_tables_hold_without_shortcuts() -> None:
    groups = [f"{table}: {1 + at // TOGETHER}" for table in SAMPLE for at in range(0, len(TABLES[table]), TOGETHER)]
    tests = [f"tests/spec/test_spec.py::test_rows[{group}]" for group in groups]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "RAMET_PLAIN": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_switch_is_read_at_import() -> None:
    code = "from ramet.shell.plain_mode import FAST; print(FAST)"
    for value, expected in (("1", "False"), ("0", "True"), ("", "True")):
        env = {**os.environ, "RAMET_PLAIN": value}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == expected


def test_plain_mode_reaches_every_shortcut() -> None:
    """All that compiles a shortcut asks `plain_mode.FAST`; nothing reads the environment itself."""
    shell = ROOT / "src/ramet/shell"
    using = {
        str(path.relative_to(shell)) for path in shell.rglob("*.py") if "plain_mode import FAST" in path.read_text()
    }
    fast = {str(path.relative_to(shell)) for path in (shell / "interp/fast").glob("[a-z]*.py")}
    assert using >= fast | {
        "expand/arith/evaluate.py",
        "expand/word/param_strip.py",
        "expand/word/to_text.py",
        "interp/run/assign.py",
        "interp/run/compile.py",
        "interp/run/loops.py",
    }
    assert {path.name for path in shell.rglob("*.py") if 'RAMET_PLAIN"' in path.read_text()} == {"plain_mode.py"}
