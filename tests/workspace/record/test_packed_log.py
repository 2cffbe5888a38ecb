"""A ring of rows behaves as a bounded deque, and what is old in it takes little memory."""

from __future__ import annotations

import sys
from collections import deque

import pytest

from ramet.workspace.record.history import ExecutionRecord, History, OperationRecord
from ramet.workspace.record.packed_log import GROUP_ROWS, PackedLog


def ring(most: int) -> PackedLog[tuple[int, str]]:
    return PackedLog(most, tuple, lambda values: (values[0], values[1]), lambda row: row[0])


@pytest.mark.parametrize(
    "most", [1, 3, GROUP_ROWS - 1, GROUP_ROWS, 2 * GROUP_ROWS, 3 * GROUP_ROWS + 7, 10 * GROUP_ROWS]
)
@pytest.mark.parametrize("step", [1, 3])
def test_it_is_what_a_bounded_deque_is(most: int, step: int) -> None:
    mine, model = ring(most), deque[tuple[int, str]](maxlen=most)
    for number in range(5 * GROUP_ROWS + 3):
        row = number * step, f"row {number} \udcff"
        mine.append(row)
        model.append(row)
        if number % 97 == 0 or number > 5 * GROUP_ROWS:
            rows = list(model)
            assert len(mine) == len(rows) and mine.first_key() == rows[0][0]
            assert list(mine) == rows
            for key in (0, row[0], row[0] + 1, rows[len(rows) // 2][0]):
                assert mine.since(key) == [one for one in reversed(rows) if one[0] >= key]


def test_an_empty_one_has_no_first() -> None:
    assert ring(5).first_key() is None and not list(ring(5))


def test_who_reads_sees_what_was_there_when_it_began() -> None:
    rows = ring(10_000)
    for number in range(3 * GROUP_ROWS):
        rows.append((number, ""))
    reading = iter(rows)
    first = next(reading)
    for number in range(3 * GROUP_ROWS, 6 * GROUP_ROWS):
        rows.append((number, ""))
    assert [first, *reading] == [(number, "") for number in range(3 * GROUP_ROWS)]


def test_ten_thousand_commands_are_remembered_in_a_few_hundred_kilobytes() -> None:
    history = History()
    for number in range(1, 10_001):
        history.add(
            ExecutionRecord(
                number, "agent-1", "me", f"echo {number} >> /log", number * 0.5, number * 0.5 + 0.25, 0, b"done\n", b"",
                5, 0, bytes_written={"/": number},
            )
        )  # fmt: skip
        history.note(OperationRecord(number * 0.5, "agent-1", "me", "write", f"/log{number}", "/", number, ""))
    packed = sum(sys.getsizeof(piece.data) for piece in (*history._records._pieces, *history._operations._pieces))
    assert packed < 400_000
    assert [record.number for record in history] == list(range(1, 10_001))
    assert history.after(9_990)[0].bytes_written == {"/": 9_991}
    assert list(history)[17] == ExecutionRecord(
        18, "agent-1", "me", "echo 18 >> /log", 9.0, 9.25, 0, b"done\n", b"", 5, 0, bytes_written={"/": 18}
    )
    assert history.oldest == 1 and [one.path for one in history.since(4_999.5)] == ["/log10000", "/log9999"]


def test_pieces_that_lie_elsewhere_are_read_when_they_are_asked_for() -> None:
    asked: list[int] = []

    def piece(first: int) -> list[tuple[int, str]]:
        asked.append(first)
        return [(number, "old") for number in range(first, first + 100)]

    rows = ring(250)
    for first in (100, 200, 300):
        rows.add_lazy(first, first + 99, 100, lambda first=first: piece(first))  # type: ignore[misc]
    rows.append((400, "new"))
    assert len(rows) == 250 and rows.first_key() == 151 and rows.since(400) == [(400, "new")] and asked == []
    assert [row[0] for row in rows.since(390)] == list(range(400, 389, -1)) and asked == [300]
    twin = ring(250)
    twin.adopt(rows)
    twin.append((401, "twin"))
    assert [row[0] for row in twin] == list(range(152, 402))
    assert [row[0] for row in rows] == list(range(151, 401))
