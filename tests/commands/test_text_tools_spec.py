"""Replays what the real grep, sed, awk and jq did with small scripts, as recorded in the tables beside this file."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.shell_runner import run_script
from tests.spec.table import Row, load

CASES = Path(__file__).parent / "cases"
ROWS = [
    pytest.param(row, id=f"{tool}: {row.title}")
    for tool in ("grep", "grep_patterns", "sed", "sed_more", "awk", "awk_more", "jq")
    for row in load(CASES / f"{tool}.spec")
]


@pytest.mark.parametrize("row", ROWS)
def test_does_what_the_real_tool_does(row: Row) -> None:
    out, err, status = asyncio.run(asyncio.wait_for(run_script(row.script), 120))
    assert (status, out) == (row.status, row.stdout), err
