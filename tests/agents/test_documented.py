"""Every block of the page about frameworks and every example of one runs, in the environment that has the framework."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "agents.md"
BLOCKS = re.findall(r"^```py (\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)

EXAMPLES = [("pydantic_ai", (ROOT / "examples" / "pydantic_ai_agent.py").read_text())]


@pytest.mark.parametrize(("module", "code"), BLOCKS + EXAMPLES, ids=lambda value: value[:20])
def test_it_runs(module: str, code: str, tmp_path: Path) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed here")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout and not done.stderr and "skipped" not in done.stdout
