"""Replaying tables in our shell: rows are tests in groups, each of them alone when some are selected by name (`-k`).

Rule: a row that fails does not hide the others of its group, and says everything about itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence

import pytest
from tests.spec.table import Row
from tests.support.shell_runner import run_script

TOGETHER = 25
"""Rows of one test: collecting and reporting a test takes as long as most rows."""
PATIENCE = 120.0
"""Seconds after which a row hangs."""

TRIES = 3
"""Of a row in which time passes: a machine that stands still for a moment may change what comes first."""
TIMED = re.compile(r"\b(?:sleep|time|timeout|SECONDS|EPOCH\w+|date|touch|wait|jobs|fg|read\b.* -t)\b| -N ")

Check = Callable[[Row, bytes, bytes, int], None]
"""Compares a row with our stdout, stderr and status."""


def give_rows(metafunc: pytest.Metafunc, tables: Mapping[str, Sequence[Row]]) -> None:
    """Parametrize a test that takes `rows`."""
    if "rows" not in metafunc.fixturenames:
        return
    size = 1 if metafunc.config.option.keyword else TOGETHER
    groups = [
        pytest.param(rows[at : at + size], id=f"{table}: {rows[at].title if size == 1 else at // size + 1}")
        for table, rows in tables.items()
        for at in range(0, len(rows), size)
    ]
    metafunc.parametrize("rows", groups)


def replay(rows: Sequence[Row], check: Check) -> None:
    """Run the scripts of some rows, and check what each of them did."""
    failed: list[str] = []
    for row in rows:
        try:
            _try(row, check)
        except Exception as error:
            if len(rows) == 1:
                raise
            failed.append(f"=== {row.title}\n{row.script}\n{type(error).__name__}: {error}")
    if failed:
        pytest.fail("\n".join(failed), pytrace=False)


def _try(row: Row, check: Check) -> None:
    for left in reversed(range(TRIES if TIMED.search(row.script) else 1)):
        try:
            check(row, *run(row.script))
        except AssertionError:
            if not left:
                raise
        else:
            return


def run(script: str) -> tuple[bytes, bytes, int]:
    return asyncio.run(asyncio.wait_for(run_script(script), PATIENCE))
