"""The commands of a workspace from process to process: all are there, and those that nobody asks for are not read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ramet import Store
from ramet.store.commit import kernel_state as kernel
from ramet.store.commit.kernel_state import Plain
from ramet.store.model.ids import ChunkId
from ramet.store.packs.reader import PackReader


def test_old_commands_are_read_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, read = str(tmp_path / "store"), list[ChunkId]()
    real = kernel.read_segment

    def counted(packs: PackReader, segment: ChunkId) -> list[Plain]:
        read.append(segment)
        return real(packs, segment)

    monkeypatch.setattr("ramet.workspace.stored.workspace.read_segment", counted)
    Store(where).create("w")
    commands = 0
    for more in (1, 600, 5, 300, 118):  # the last makes it a whole number of segments
        commands += more

        async def act(more: int = more, commands: int = commands) -> None:
            async with Store(where).open("w") as ws:
                assert ws.history.next_number == commands - more + 1 and not read
                for _ in range(more):
                    await ws.execute(":")
                assert len(ws.history) == commands and not read

        asyncio.run(act())

    async def look() -> list[int]:
        async with Store(where).open("w") as ws:
            assert [one.number for one in ws.history.after(1020)] == [1021, 1022, 1023, 1024]
            return [one.number for one in ws.history]

    assert asyncio.run(look()) == list(range(1, 1025))
    assert [one.number for one in Store(where)["w"].history()] == list(range(1, 1025))
