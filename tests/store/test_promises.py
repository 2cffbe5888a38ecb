"""The page of promises names tests that exist, and says of each promise how it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "store-promises.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_promise_has_a_test(row: list[str]) -> None:
    promise, test, status = row
    assert promise and status in ("kept", "other", "open")
    if status == "open":
        return
    where, _, name = test.partition("::")
    assert re.search(rf"^(async )?def {re.escape(name)}\(", (ROOT / where).read_text(), re.MULTILINE), test


def test_the_page_is_not_empty() -> None:
    assert len(ROWS) > 50 and len({row[0] for row in ROWS}) == len(ROWS)
