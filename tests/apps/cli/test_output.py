"""Tables on terminals of different widths, and remedies of errors."""

from __future__ import annotations

import re
import sys

import pytest

from ramet.apps.cli.errors import report_errors
from ramet.apps.cli.output import show
from ramet.core.errors import RametError

ROWS = [
    {"revision": f"shop-{number}", "id": "0123456789abcdef", "time": "2026-11-19T21:15:08Z", "by": "ada",
     "files": 12, "message": "a message that goes on and on, over more than one line\nthe second line"}
    for number in (10, 9)
]  # fmt: skip
COLUMNS = ("revision", "id", "time", "by", "files", "message")


def lines(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show(ROWS, COLUMNS, False, forms={"time": lambda _: "5 minutes ago"})
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    return [line.rstrip() for line in plain.splitlines()]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_row_is_a_line_on_every_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *rows = lines(width, monkeypatch, capsys)
    assert head.startswith("revision  ") and len(rows) == 2
    assert ("0123456789ab" in rows[0]) == ("  id  " in head) == (width > 60)
    assert rows[1].startswith("shop-9    ") and ("…" in rows[1]) == (width < 140)
    assert all(len(row) <= width for row in rows)


def test_a_pipe_gets_whole_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    show(ROWS, COLUMNS, False)
    head, first, _ = capsys.readouterr().out.splitlines()
    assert head.split() == list(COLUMNS) and first.endswith("over more than one line")


def test_numbers_stand_on_the_right(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, object]] = [
        {"name": "a", "count": 5, "bytes": 2048, "open": True, "mixed": 1, "end": 1},
        {"name": "long", "count": 1200, "bytes": None, "open": False, "mixed": "-", "end": 22},
    ]
    columns, forms = tuple(rows[0]), {"bytes": "{:,} B".format}
    expected = ["name  count    bytes  open   mixed  end", "a         5  2,048 B  true   1        1",
                "long   1200           false  -       22"]  # fmt: skip
    show(rows, columns, False, forms=forms)
    assert capsys.readouterr().out.splitlines() == expected
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show(rows, columns, False, forms=forms)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    assert [line.rstrip() for line in plain.splitlines()] == expected


@pytest.mark.parametrize(("holder", "remedy"), [("ramet serve", "--store URL"), ("ramet shell", "--wait SECONDS")])
def test_a_held_workspace_says_how_to_go_on(holder: str, remedy: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, report_errors():
        raise RametError("workspace_busy", f"workspace 'w' is held by process 7 ({holder}) since today", "Wait.")
    cause, told = capsys.readouterr().err.splitlines()
    assert ended.value.code == 4 and holder in cause and remedy in told
