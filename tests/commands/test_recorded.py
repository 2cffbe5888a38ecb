"""Replays the command tables, recorded from the GNU tools, through our shell."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from tests.shell_runner import run_script
from tests.spec.table import Row, load

CASES = Path(__file__).parent / "recorded"
ROWS = [
    pytest.param(row, id=f"{path.stem}: {row.title}") for path in sorted(CASES.glob("*.spec")) for row in load(path)
]
_PREFIX = re.compile(r"(?m)^bash: line \d+: ")


def messages(raw: bytes) -> str:
    """What was said, whichever quotes the locale has and whichever line the shell names."""
    text = raw.decode("utf-8", "replace").replace("\u2018", "'").replace("\u2019", "'")
    return _PREFIX.sub("", text)


@pytest.mark.parametrize("row", ROWS)
def test_row(row: Row) -> None:
    assert row.status is not None, "not recorded yet"
    out, err, status = asyncio.run(asyncio.wait_for(run_script(row.script), 120))
    if row.reason:
        assert (status, out, messages(err)) != (row.status, row.stdout, messages(row.stderr)), "no longer differs"
        return
    assert (status, out) == (row.status, row.stdout), err
    assert messages(err) == messages(row.stderr)
