"""Replays the spec tables, recorded from bash, in our shell; and some random scripts when bash is there."""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.spec.generate import Scripts
from tests.spec.record import ask, available
from tests.spec.replay import give_rows, replay, run
from tests.spec.table import CASES, Row, dump, load

TABLES = {path.stem: load(path) for path in sorted(CASES.glob("*.spec"))}
_PREFIX = re.compile(rb"(?m)^(?:bash|environment|\./[a-z.]+): (?:line \d+: )?")
_PIDS = re.compile(rb"(?m)^ *\d+ (?=[A-Z])")
_TIMES = re.compile(rb"(?m)\d+m\d+\.\d+s|(?<=(?:real|user) )\d+\.\d+|(?<=sys )\d+\.\d+|^\d+\.\d{3}$")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    give_rows(metafunc, TABLES)


def same_errors(ours: bytes, theirs: bytes) -> bool:
    """The same messages, whatever shell, line and process they name and however long something took."""
    return _plain(ours) == _plain(theirs)


def _plain(messages: bytes) -> bytes:
    return _TIMES.sub(b"0s", _PIDS.sub(b"", _PREFIX.sub(b"", messages)))


def test_rows(rows: list[Row]) -> None:
    replay(rows, check)


def check(row: Row, out: bytes, err: bytes, status: int) -> None:
    assert row.status is not None, "not recorded yet: make spec-record"
    answer = (status, out)
    if row.reason:
        assert answer != (row.status, row.stdout) or not same_errors(err, row.stderr), "no longer differs"
        return
    assert answer == (row.status, row.stdout), err
    assert same_errors(err, row.stderr), (err, row.stderr)


@pytest.mark.parametrize("table", TABLES)
def test_tables_survive_being_written(table: str) -> None:
    assert dump(TABLES[table]) == (CASES / f"{table}.spec").read_text("utf-8")


@pytest.mark.skipif(not available(), reason="needs bash 5.2 and bubblewrap")
def test_random_scripts_do_what_bash_does() -> None:
    rows = ask([Row(f"seed {seed}", Scripts(Random(seed)).script()) for seed in range(40)])
    for row in rows:
        out, err, status = run(row.script)
        assert (status, out) == (row.status, row.stdout), (row.script, err)
