"""Replays what the real grep, sed, awk and jq did with small scripts, as recorded in the tables beside this file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spec.replay import give_rows, replay
from tests.spec.table import Row, load

CASES = Path(__file__).parent / "cases"
TOOLS = ("grep", "grep_patterns", "sed", "sed_more", "awk", "awk_more", "jq")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    give_rows(metafunc, {tool: load(CASES / f"{tool}.spec") for tool in TOOLS})


def test_does_what_the_real_tools_do(rows: list[Row]) -> None:
    replay(rows, check)


def check(row: Row, out: bytes, err: bytes, status: int) -> None:
    assert (status, out) == (row.status, row.stdout), err
