"""Small packs become few: nothing is lost, whoever reads, writes, collects or dies meanwhile."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.store.gc.test_collect import big, packs_of, write
from tests.store.refs.test_refs import Dying, Killed

from ramet import DiskResource, Store
from ramet.store.gc import consolidate as joining
from ramet.store.gc import schedule as upkeep
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, Objects
from ramet.store.refs.gc_log import JOINED, JOINING


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few packs are many here."""
    monkeypatch.setattr(upkeep, "MANY_SMALL_PACKS", 12)
    monkeypatch.setattr(upkeep, "CONSOLIDATION_PAUSE", 0.0)
    monkeypatch.setattr(joining, "MIN_SMALL_PACKS", 4)


def texts(number: int) -> list[str]:
    return [f"echo {one} > /f{one % 7}; echo {one} >> /log" for one in range(number)]


def contents(store: Store, name: str = "w") -> list[tuple[str, bytes]]:
    """What every revision has in one file."""
    return [(one.name, b"".join(store[name].show("/log", one.id.hex()))) for one in store[name].log()]


def test_however_often_is_committed_packs_stay_few(place: Objects) -> None:
    store = Store(place)
    write(store, "w", *texts(60))
    assert len(packs_of(place)) < 30
    fresh = Store(place)
    assert fresh.verify().ok
    found = contents(fresh)
    assert len(found) == 60 and found[0][1] == b"".join(b"%d\n" % one for one in range(60))
    state = fresh.repository.gc_log.now()
    assert state.kind == JOINED and not state.doomed and not state.sweeping
    fresh.gc(grace=0)
    assert fresh.verify().ok and contents(fresh) == found


def test_packs_that_were_joined_are_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "MIN_MERGED_PACKS", 2)
    objects = MemoryObjects()
    store = Store(objects)
    for number in range(6):
        write(store, "w", f"mkdir -p /{number}; for i in $(seq 1100); do echo {number}.$i > /{number}/$i; done")
    write(store, "w", *texts(14))
    assert len(packs_of(objects)) <= 8
    assert Store(objects).verify().ok


def test_who_had_looked_before_reads_on(place: Objects) -> None:
    store = Store(place)
    write(store, "w", *texts(8))
    before, other = contents(store), Store(place)
    reading = [other.repository.packs.place(chunk) for one in other["w"].log() for chunk in one.chunks]
    assert store.repository.consolidate_packs().packs == 8
    assert contents(other) == before
    for where in reading:
        block = other.repository.packs.fetch(where)  # a place in a pack that is gone
        assert any(block[where.offset : where.offset + where.size])


def test_who_had_looked_before_commits_on(place: Objects) -> None:
    store, other = Store(place), Store(place)
    write(store, "w", *texts(8))

    async def act() -> None:
        async with other.open("w", commit="never") as ws:
            await ws.execute("echo one > /one")
            await ws.commit()
            store.repository.consolidate_packs()
            await ws.execute("echo two > /two")
            await ws.commit()
            assert other.repository.no_gc_since_start, "nothing was taken, so nothing has to be looked for"

    asyncio.run(act())
    assert Store(place).verify().ok
    assert b"".join(Store(place)["w"].show("/f3")) == b"3\n"


def test_death_at_every_write_of_a_joining(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = MemoryObjects()
    store = Store(objects)
    write(store, "w", *texts(6))
    write(store, "gone", big("/x", 5, 3_000))
    store.rm("gone")
    store.gc(grace=100)  # something is suspected
    wanted = contents(store)
    for number in range(200):
        dying = Dying(dict(objects._objects), number)
        died = True
        try:
            Store(dying).repository.consolidate_packs()
            died = False
        except Killed:
            pass
        left = MemoryObjects()
        left._objects.update(dying._objects)
        later = Store(left, clock=lambda: time.time() + 3600)
        assert later.verify().ok, number
        assert contents(later) == wanted
        write(later, "w", "echo more > /more")
        later.repository.consolidate_packs()
        assert later.repository.gc_log.now().kind != JOINING and not later.repository.gc_log.now().sweeping
        assert later.verify().ok and contents(later)[1:] == wanted
        later.gc(grace=0)
        assert later.verify().ok and contents(later)[1:] == wanted
        if not died:
            break
    assert number > 20


def test_one_joins_at_a_time() -> None:
    objects = MemoryObjects()
    store, other = Store(objects), Store(objects)
    write(store, "w", *texts(6))
    made: list[Any] = []

    class Meanwhile(MemoryObjects):
        def put(self, key: str, data: bytes) -> None:
            if key.endswith(".pack") and not made:
                made.append(other.repository.consolidate_packs())
            super().put(key, data)

    there = Meanwhile()
    there._objects = objects._objects
    assert Store(there).repository.consolidate_packs().packs == 6
    assert [one.packs for one in made] == [0]


def test_what_a_collection_decides_meanwhile_holds() -> None:
    objects = MemoryObjects()
    store, other = Store(objects), Store(objects)
    write(store, "w", *texts(5))
    write(store, "gone", *texts(5))
    store.rm("gone")
    made: list[Any] = []

    class Meanwhile(MemoryObjects):
        def put(self, key: str, data: bytes) -> None:
            super().put(key, data)
            if key.endswith(".idx") and not made:
                made.append(other.gc(grace=0))

    there = Meanwhile()
    there._objects = objects._objects
    Store(there).repository.consolidate_packs()
    assert made and Store(objects).verify().ok and len(contents(Store(objects))) == 5
    Store(objects).gc(grace=0)
    assert Store(objects).verify().ok and len(contents(Store(objects))) == 5


def test_a_damaged_pack_stays_where_repair_finds_it(tmp_path: Path) -> None:
    objects = DirectoryObjects(str(tmp_path / "store"), sync=False)
    store = Store(objects)
    write(store, "w", *texts(8))
    broken = sorted(packs_of(objects))[3]
    path = tmp_path / "store" / "packs" / f"{broken}.pack"
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    fresh = Store(objects)
    assert fresh.repository.consolidate_packs().packs == 7
    assert broken in packs_of(objects) and len(packs_of(objects)) == 2
    assert not fresh.verify().ok
    assert fresh.repository.consolidate_packs().packs == 0


def test_directories_are_not_read_again_because_packs_were_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(5):
        (source / str(number)).write_text(f"{number}")
    where = str(tmp_path / "store")
    store = Store(where)
    store.create("d")

    async def commit() -> None:
        async with Store(where).open("d", mounts={"/in": DiskResource(str(source))}) as ws:
            await ws.commit()

    asyncio.run(commit())
    write(store, "w", *texts(8))
    for _ in range(2):
        store.repository.packs.refresh()
        assert store.repository.consolidate_packs().packs >= 4
        write(store, "w", *texts(4))
        assert Store(where).repository.stat_cache("d", str(source)).folders
    for key in list(store.repository.objects.list("packs/")):
        store.repository.objects.delete(key)
    assert not Store(where).repository.stat_cache("d", str(source)).folders


def test_an_index_of_small_packs_that_are_gone_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.store.packs.reader.REMOVED_INDEX_BYTES", 2_000)
    objects = MemoryObjects()
    store = Store(objects)
    write(store, "w", *texts(60))
    reader = store.repository.packs
    assert 0 < sum(len(index.data) for index in reader._removed_indexes.values()) <= 2_000
    assert len(reader._keys) < 60
