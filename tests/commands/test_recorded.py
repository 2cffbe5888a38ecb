"""Replays the command tables, recorded from the GNU tools, through our shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.spec.replay import give_rows, replay
from tests.spec.table import Row, load

CASES = Path(__file__).parent / "recorded"
TABLES = {path.stem: load(path) for path in sorted(CASES.glob("*.spec"))}
_PREFIX = re.compile(r"(?m)^bash: line \d+: ")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    give_rows(metafunc, TABLES)


def messages(raw: bytes) -> str:
    """What was said, whichever quotes the locale has and whichever line the shell names."""
    text = raw.decode("utf-8", "replace").replace("\u2018", "'").replace("\u2019", "'")
    return _PREFIX.sub("", text)


def test_rows(rows: list[Row]) -> None:
    replay(rows, check)


def check(row: Row, out: bytes, err: bytes, status: int) -> None:
    assert row.status is not None, "not recorded yet"
    if row.reason:
        assert (status, out, messages(err)) != (row.status, row.stdout, messages(row.stderr)), "no longer differs"
        return
    assert (status, out) == (row.status, row.stdout), err
    assert messages(err) == messages(row.stderr)
