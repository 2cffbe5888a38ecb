"""A loss of power at any point of a commit, a draft or a collection takes nothing that was acknowledged.

`RAMET_POWER=2000` tries two thousand points on each kind of store; without it a few dozen.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import pytest
from tests.store.encrypted import KEY
from tests.support.power import Disk, Recording, recording

from ramet import Retention, Store

POINTS = int(os.environ.get("RAMET_POWER", "30"))
SEED = int(os.environ.get("RAMET_FAULTS_SEED", "1"))
LARGE = random.Random(7).randbytes(300_000).hex()


def later() -> float:
    """When leases of now are long over."""
    return time.time() + 3600


async def committed(store: Store, found: Recording) -> None:
    """Commits of two workspaces, a fork, a tag, and collections between them."""
    store.create("w")
    for number in range(6):
        async with store.open("w", commit="never") as ws:
            await ws.execute(f"mkdir -p d{number}; echo {number} > f; seq {number}000 > d{number}/lines")
            if number in (1, 3):
                await ws.execute(f"printf %s {LARGE[number:]} > large{number}")
            await ws.commit(f"commit {number}")
        found.mark(("head", "w", number))
        if number == 2:
            store["w"].fork("HEAD", "twin")
            store["w"].tag("good")
            found.mark(("head", "twin", 2))
            found.mark(("tag", "good"))
        if number == 3:
            store.retention(Retention(keep_last=1), "w")
        if number >= 3:
            store.gc(grace=0)


async def drafted(store: Store, found: Recording) -> None:
    """A commit, then calls whose changes are drafts, with an end in order between them."""
    store.create("w")
    for turn in range(2):
        opened = store.open("w", commit="never", drafts="each")
        ws = await opened.__aenter__()
        await ws.execute(f"echo {turn * 100} > f")
        await ws.commit(f"turn {turn}")
        found.mark(("head", "w", turn * 100))
        for number in range(1, 12):
            await ws.execute(f"echo {turn * 100 + number} > f; echo {LARGE[:4000]} > g{number}")
        if turn == 0:
            await ws.commit("all")
            found.mark(("head", "w", 11))
            await opened.__aexit__(None, None, None)


def check(place: Path, marks: list[tuple[object, ...]], key: bytes | None) -> None:
    """What was acknowledged is there, the store is sound, and work goes on."""
    store = Store(str(place), key=key, clock=later)
    heads = {mark[1]: mark for mark in marks if mark[0] == "head"}
    assert set(store.ls()) >= set(heads)
    damages = [damage for damage in store.verify().damages if damage.what != "draft"]  # steps need not be synced
    assert not damages
    if ("tag", "good") in marks:
        assert "good" in [tag.name for tag in store["w"].tags()]

    async def act() -> None:
        for _, name, number in heads.values():
            assert isinstance(name, str) and isinstance(number, int)
            async with store.open(name, commit="never") as ws:
                newest = int((await ws.execute("cat f")).text)
                assert newest >= number, "an older state"
                if ws.recovered and newest % 100:
                    # It is one of the states that were: its files belong together.
                    assert (await ws.execute(f"wc -c < g{newest % 100}")).text == "4001\n"
                await ws.execute("echo 1000000 > f")
                await ws.commit("on")
            async with Store(str(place), key=key, clock=lambda: later() + 3600).open(name, commit="never") as ws:
                assert (await ws.execute("cat f")).text == "1000000\n"

    asyncio.run(act())
    store.gc(grace=0)
    assert store.verify().ok


@pytest.mark.parametrize("encrypted", (False, True), ids=("plain", "encrypted"))
@pytest.mark.parametrize("work", (committed, drafted))
def test_what_was_acknowledged_survives_a_loss_of_power(tmp_path: Path, work: object, encrypted: bool) -> None:
    assert callable(work)
    key = KEY if encrypted else None
    (tmp_path / "store").mkdir()
    with recording(str(tmp_path / "store")) as found:
        asyncio.run(work(Store(str(tmp_path / "store"), key=key), found))
    rng = random.Random(SEED)
    first = next(number for number, row in enumerate(found.rows) if row[0] == "mark")
    points = sorted(rng.randrange(first, len(found.rows)) for _ in range(POINTS))
    disk, at = Disk(found.root), 0
    for number, point in enumerate(points):
        while at <= point:
            disk.apply(found.rows[at])
            at += 1
        disk.after_power_loss(tmp_path / f"{number}", rng)
        try:
            check(tmp_path / f"{number}", disk.marks, key)
        except BaseException as error:
            error.add_note(f"after row {point} of {len(found.rows)}: {str(found.rows[point])[:200]}")
            raise


def test_destroyed_keys_do_not_come_back(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()

    async def act(store: Store, found: Recording) -> None:
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute("echo secret > f")
        store.keys.shred("w")
        found.mark("shredded")

    with recording(str(tmp_path / "store")) as found:
        asyncio.run(act(Store(str(tmp_path / "store"), key=KEY), found))
    disk = Disk(found.root)
    for row in found.rows:
        disk.apply(row)
    for number in range(10):
        disk.after_power_loss(tmp_path / str(number), random.Random(number))
        store = Store(str(tmp_path / str(number)), key=KEY)
        assert [ring.epochs for ring in store.keys.show() if ring.workspace == "w"] in ([], [0])
        assert not list((tmp_path / str(number) / "packs").iterdir())
