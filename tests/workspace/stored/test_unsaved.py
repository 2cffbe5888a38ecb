"""What an open workspace has not committed yet, as patches."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ramet import DiskResource, RametError, Store


def test_every_way_to_change_a_file_is_shown() -> None:
    async def run() -> None:
        store = Store("memory:")
        store.create("w")
        async with store.open("w") as ws:
            assert await ws.unsaved() == []
            await ws.execute("mkdir /d; seq 3 > /d/f; echo 1 > /gone; echo 2 > /moved; echo same > /same")
            added = await ws.unsaved()
            assert [(one.what, one.path) for one in added if one.path.startswith("/d/")] == [("added", "/d/f")]
            await ws.commit("first")
            assert await ws.unsaved() == []
            await ws.execute("sed -i s/2/two/ /d/f; rm /gone; mv /moved /there; touch /same")
            found = {one.path: one for one in await ws.unsaved()}
            assert {path: one.what for path, one in found.items()} == {
                "/d/f": "modified", "/gone": "removed", "/there": "renamed"
            }  # fmt: skip
            assert "-2\n+two\n" in str(found["/d/f"])
            assert [one.path for one in await ws.unsaved(["/d"])] == ["/d/f"]
            before = ws.base
            made = await ws.commit("second")
            assert made != before and await ws.unsaved() == []
        assert [str(one) for one in store["w"].patch()] == [str(one) for _, one in sorted(found.items())]
        async with store.open("w", "head~1") as ws:
            with pytest.raises(RametError, match="it saves nothing"):
                await ws.unsaved()

    asyncio.run(run())


def test_directories_of_the_machine_and_withheld_files(tmp_path: Path) -> None:
    async def run() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("w")
        (tmp_path / "data").mkdir()
        mounts = {"/data": DiskResource(str(tmp_path / "data"))}
        async with store.open("w", mounts=mounts) as ws:
            await ws.commit("first")
            (tmp_path / "data" / "f").write_text("from outside\n")
            (tmp_path / "data" / ".env").write_text("TOKEN=1\n")
            assert [(one.what, one.path) for one in await ws.unsaved()] == [("added", "/data/f")]

    asyncio.run(run())
