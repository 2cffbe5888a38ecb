"""Sixteen processes on one workspace, and leases that are taken for dead while they live: nothing is lost."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.store.faults import Countdown, Nursery, objects_of
from tests.support.servers import S3Server

from ramet import RametError, Store
from ramet.store.objects.objects import MemoryObjects
from ramet.store.refs.retention import Retention

PROCESSES = 16
ROUNDS = int(os.environ.get("RAMET_RACES", "0"))
"""How often each process writes; without it twice, and on a disk only."""


@pytest.mark.timeout(ROUNDS * 60 or 300)
@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_sixteen_processes_with_leases_that_end_too_early(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "s3" and not ROUNDS:
        pytest.skip("it takes a while: set RAMET_RACES")
    place: dict[str, Any] = {"root": str(tmp_path / "store")}
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3")
        place = {
            "bucket": server.bucket, "endpoint": server.endpoint, "key": server.key, "secret": server.secret,
            "region": server.region, "prefix": f"races/{tmp_path.name}",
        }  # fmt: skip
    place.update(folder=str(tmp_path), rounds=ROUNDS or 2)
    store = Store(objects_of(place, Countdown(None)))
    store.create("w")
    with Nursery() as nursery:
        ends = nursery.run(place, [{"seed": seed} for seed in range(PROCESSES)], "racer")
    assert ends == [0] * PROCESSES
    told = (tmp_path / "told").read_text().split()
    tokens = sorted(token for token in told if token != "late")
    if ROUNDS:
        print(f"{kind}: {len(tokens)} commits, {told.count('late')} writers came too late")
    assert len(tokens) == len(set(tokens)) == PROCESSES * place["rounds"]
    fresh = Store(objects_of(place, Countdown(None)))
    assert b"".join(fresh["w"].show("/n")) == f"{len(tokens)}\n".encode(), "no update was lost"
    assert sorted(b"".join(fresh["w"].show("/log")).decode().split()) == tokens, "and none came twice"
    history = fresh["w"].log()
    assert [revision.seq for revision in history] == list(range(len(tokens), 0, -1))
    assert all(len(revision.parents) <= 1 for revision in history), "there was one head at any time"
    heads = [entry.head for entry in fresh.repository.refs.history("w") if entry.kind == "commit"]
    assert heads == [revision.id for revision in reversed(history)]
    fences = [entry.fence for entry in fresh.repository.refs.history("w")]
    assert fences == sorted(fences), "a fence is never used again"
    assert fresh.verify().ok


@pytest.mark.timeout(ROUNDS * 60 or 300)
def test_drafts_of_processes_whose_leases_end_too_early(tmp_path: Path) -> None:
    """They are taken over while they live, and never end in order: what was acknowledged is there, once."""
    place: dict[str, Any] = {"root": str(tmp_path / "store"), "folder": str(tmp_path), "rounds": ROUNDS or 3}
    Store(objects_of(place, Countdown(None))).create("w")
    with Nursery() as nursery:
        assert nursery.run(place, [{"seed": seed} for seed in range(8)], "draft-racer") == [0] * 8
    told = (tmp_path / "told").read_text().split()
    tokens = [token for token in told if token != "late"]
    fresh = Store(objects_of(place, Countdown(None)), clock=lambda: time.time() + 600)

    async def lines() -> list[str]:
        async with fresh.open("w") as ws:
            return (await ws.execute("cat /log")).text.split()

    found = asyncio.run(lines())
    assert set(tokens) <= set(found), sorted(set(tokens) - set(found))
    assert len(found) == len(set(found)), "and none came twice"
    assert fresh.ls() == ["w"] and fresh.verify().ok and not list(fresh.repository.objects.list("drafts/"))


def test_a_writer_that_wakes_up_late_cannot_write() -> None:
    """The one who sleeps keeps its lease in mind; another takes it over, commits and goes; then the first one wakes."""
    place = MemoryObjects()
    early, late = Store(place), Store(place, clock=lambda: time.time() + 600)
    early.create("w")

    async def act() -> None:
        opening = early.open("w", commit="never")
        sleeper = await opening.__aenter__()
        await sleeper.execute("echo sleeper > /x")
        async with late.open("w") as other:
            await other.execute("echo other > /x")
        with pytest.raises(RametError) as caught:
            await sleeper.commit("too late")
        assert caught.value.code == "lease_lost"
        with pytest.raises(RametError) as caught:
            early.repository.refs.renew("w", sleeper.lease)  # type: ignore[arg-type]
        assert caught.value.code == "lease_lost"
        await opening.__aexit__(None, None, None)

    asyncio.run(act())
    assert b"".join(late["w"].show("/x")) == b"other\n" and late["w"].head is not None
    late.gc(grace=0)
    assert Store(place).verify().ok and len(late["w"].log()) == 1


def test_a_writer_that_slept_through_a_collection_and_lost_its_lease_changes_nothing() -> None:
    place = MemoryObjects()
    early, late = Store(place), Store(place, clock=lambda: time.time() + 600)
    early.create("w")

    async def act() -> None:
        opening = early.open("w", commit="never")
        sleeper = await opening.__aenter__()
        await sleeper.execute("echo 1 > /x")
        await sleeper.commit("one")
        await sleeper.execute("echo 2 > /x")
        late.gc(grace=0)
        made = await sleeper.commit("two")  # it holds the lease still: the barrier only makes it look again
        assert made.seq == 2
        await sleeper.execute("echo 3 > /x")
        async with late.open("w") as other:
            await other.execute("echo other > /x")
        late.gc(grace=0)
        with pytest.raises(RametError) as caught:
            await sleeper.commit("three")
        assert caught.value.code == "lease_lost"
        await opening.__aexit__(None, None, None)

    asyncio.run(act())
    late.gc(grace=0)
    assert Store(place).verify().ok and b"".join(late["w"].show("/x")) == b"other\n"


@pytest.mark.timeout(ROUNDS * 60 or 300)
def test_writers_and_readers_do_not_notice_who_collects_without_grace(tmp_path: Path) -> None:
    rounds = ROUNDS * 10 or 8
    place: dict[str, Any] = {"root": str(tmp_path / "store"), "folder": str(tmp_path), "rounds": rounds}
    store = Store(place["root"])
    store.retention(Retention(keep_last=3))
    for name in ("w2", "w3"):
        store.create(name)
        asyncio.run(_begin(store, name))
    with Nursery() as nursery:
        assert nursery.run(place, [{"seed": seed} for seed in range(4)], "neighbour") == [0] * 4
    fresh = Store(place["root"])
    fresh.gc(grace=0)
    assert fresh.verify().ok
    for name in ("w2", "w3"):
        assert b"".join(fresh[name].show("/f-number")) == f"{rounds - 1}\n".encode()
        assert [revision.seq for revision in fresh[name].log()] == [rounds + 1, rounds, rounds - 1]


async def _begin(store: Store, name: str) -> None:
    async with store.open(name) as ws:
        await ws.execute("echo begin > /f0")
