"""Collecting: what nobody refers to goes, in two phases; everything else stays, whoever writes or reads meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ramet import DiskResource, RametError, Store
from ramet.store.gc.collect import REPACK_TINY_PACKS
from ramet.store.model.ids import TreeId
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, Objects, prove_create
from ramet.store.packs.reader import PackReader
from ramet.store.refs.retention import GRACE, Retention, keep_set
from ramet.store.repository import Repository
from ramet.workspace.stored.events import JsonLines
from ramet.workspace.stored.git_push import Push, record_push

DAY = 86400.0


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def write(store: Store, name: str, *scripts: str) -> None:
    """One revision per script."""

    async def act() -> None:
        if name not in store:
            store.create(name)
        async with store.open(name, commit="never") as ws:
            for script in scripts:
                done = await ws.execute(script)
                assert done.exit_code == 0, done.error_text
                await ws.commit(script[:20])

    asyncio.run(act())


def big(path: str, seed: int = 0, size: int = 200_000) -> str:
    """A command that makes a file which does not compress."""
    data = random.Random(seed).randbytes(size).hex()
    return f"printf %s {data} > {path}"


def packs_of(objects: Objects) -> set[str]:
    return {key[6:-5] for key in objects.list("packs/") if key.endswith(".pack")}


def size_of(objects: Objects) -> int:
    return sum(len(objects.get(key)) for key in objects.list("packs/"))


def test_a_collection_removes_only_unreferenced_objects(place: Objects) -> None:
    store = Store(place)
    write(store, "stays", big("/a", 1))
    write(store, "goes", big("/b", 2))
    before = size_of(place)
    store.rm("goes")
    done = store.gc(grace=0)
    assert done.removed and done.revisions == 1 and done.reclaimed > 100_000
    assert size_of(place) <= before - done.reclaimed + done.written
    assert Store(place).verify().ok
    assert b"".join(Store(place)["stays"].show("/a")) == random.Random(1).randbytes(200_000).hex().encode()
    again = store.gc(grace=0)
    assert not again.removed and not again.reclaimed


def test_nothing_is_removed_at_first_sight() -> None:
    clock, place = Clock(), MemoryObjects()
    store = Store(place, clock=clock)
    write(store, "w", big("/a", 1))
    store.rm("w")
    before = packs_of(place)
    steps: list[tuple[int, int, int]] = []
    for _ in range(4):
        done = store.gc()
        steps.append((done.suspected, done.condemned, done.removed))
        clock.now += GRACE / 2 + 10
    assert [bool(step[0]) for step in steps[:2]] == [True, False] and steps[1][1] and not steps[1][2]
    assert steps[2][2] == len(before) and packs_of(place) == set()


def test_a_dry_run_changes_nothing(place: Objects) -> None:
    store = Store(place)
    write(store, "w", big("/a", 1), big("/a", 2))
    store.retention(Retention(keep_last=1), "w")
    before = {key: place.get(key) for key in place.list("") if not key.startswith("keys/")}
    done = store.gc(grace=0, dry=True)
    assert done.dry and done.revisions == 1 and done.expired == ["w-1"] and done.waiting > 100_000
    assert {key: place.get(key) for key in place.list("") if not key.startswith(("probes/", "keys/"))} == before


def test_a_pack_that_is_mostly_dead_is_written_anew() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", f"{big('/dead', 1, 400_000)}; {big('/alive', 2, 50_000)}", "rm /dead")
    old = packs_of(place)
    store.retention(Retention(keep_last=1))
    done = store.gc(grace=0)
    assert done.rewritten and not old <= packs_of(place) and done.reclaimed > 400_000
    fresh = Store(place)
    assert fresh.verify().ok
    assert b"".join(fresh["w"].show("/alive")) == random.Random(2).randbytes(50_000).hex().encode()


def test_many_small_packs_are_joined() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", *(f"echo {n} > /f{n}" for n in range(REPACK_TINY_PACKS + 5)))
    assert len(packs_of(place)) > REPACK_TINY_PACKS
    assert store.gc(grace=0).rewritten > REPACK_TINY_PACKS and len(packs_of(place)) < 5
    assert Store(place).verify().ok and len(Store(place)["w"].log()) == REPACK_TINY_PACKS + 5
    assert not store.gc(grace=0).rewritten


def test_a_reader_follows_what_moved(place: Objects) -> None:
    """Someone who opened the store before the collection reads on after it."""
    store = Store(place)
    write(store, "w", f"{big('/dead', 1, 400_000)}; {big('/alive', 2, 50_000)}; mkdir /d; echo x > /d/x", "rm /dead")
    store.retention(Retention(keep_last=1))
    reader = Store(place)

    async def act() -> None:
        async with reader.open("w", readonly=True) as ws:
            assert (await ws.execute("ls /")).text.startswith("alive\nd\n")
            assert store.gc(grace=0).removed
            assert (await ws.execute("md5sum < /alive; cat /d/x")).text.endswith("x\n")

    asyncio.run(act())


def test_a_checkout_follows_what_moved(tmp_path: Path) -> None:
    place = DirectoryObjects(str(tmp_path / "store"))
    store = Store(place)
    write(store, "w", f"{big('/dead', 1, 400_000)}; {big('/alive', 2, 50_000)}", "rm /dead")
    store.retention(Retention(keep_last=1))
    packs = PackReader(place)
    packs.refresh()
    node = store.repository.node(store.find("w"), "/alive")
    where = packs.place(node.payload)
    assert store.gc(grace=0).removed
    frame = packs.fetch(where)
    assert frame[where.offset : where.offset + where.size].hex() == b"".join(store["w"].show("/alive")).hex()


def during(store: Store, act: Callable[[], Any]) -> None:
    """Have something happen between the last look of the next commit and the move of its head."""
    refs = store.repository.refs
    move = refs.move

    def interrupted(*arguments: Any, **options: Any) -> Any:
        refs.move = move  # type: ignore[method-assign]
        act()
        return move(*arguments, **options)

    refs.move = interrupted  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", ["ram", "disk"])
def test_a_collection_between_look_and_move_costs_a_second_try(kind: str, tmp_path: Path) -> None:
    """The packs of a commit that is under way are taken by a collection without grace: the commit writes them anew."""
    place = MemoryObjects()
    store, other = Store(place), Store(place)
    store.create("w")
    (tmp_path / "d").mkdir()

    async def act() -> None:
        mounts: Any = {"/": DiskResource(str(tmp_path / "d"), create=True)} if kind == "disk" else None
        async with store.open("w", mounts=mounts, commit="never") as ws:
            await ws.execute(big("/a", 1))
            await ws.commit("one")
            await ws.execute(big("/b", 2))
            during(store, lambda: other.gc(grace=0))
            made = await ws.commit("two")
            assert made.seq == 2

    asyncio.run(act())
    fresh = Store(place)
    assert fresh.verify().ok and fresh.find("w").seq == 2
    assert b"".join(fresh["w"].show("/b")) == random.Random(2).randbytes(200_000).hex().encode()


def test_a_commit_does_not_rely_on_what_is_condemned() -> None:
    """Content of a removed workspace is on its way out; the same content is committed elsewhere just then."""
    clock, place = Clock(), MemoryObjects()
    store = Store(place, clock=clock)
    write(store, "old", big("/a", 1))
    gone = packs_of(place)
    store.rm("old")
    store.gc()
    clock.now += GRACE / 2 + 10
    assert store.gc().condemned
    writer = Store(place, clock=clock)
    write(writer, "new", big("/a", 1))
    clock.now += GRACE / 2 + 10
    assert store.gc().removed == len(gone) and not gone & packs_of(place)
    assert Store(place).verify().ok
    assert b"".join(Store(place)["new"].show("/a")) == random.Random(1).randbytes(200_000).hex().encode()


def test_what_was_relied_on_and_is_condemned_before_the_head_moves_is_written_anew() -> None:
    clock, place = Clock(), MemoryObjects()
    store, writer = Store(place, clock=clock), Store(place, clock=clock)
    write(store, "old", big("/a", 1))
    store.rm("old")
    store.gc()
    clock.now += GRACE / 2 + 10
    writer.create("new")

    async def act() -> None:
        async with writer.open("new", commit="never") as ws:
            await ws.execute(big("/a", 1))
            repository: Any = writer.repository
            settle = repository.secure_content

            def late(*arguments: Any) -> int:
                repository.secure_content = settle
                assert store.gc().condemned  # after the commit found the content there, before it looks again
                return int(settle(*arguments))

            repository.secure_content = late
            await ws.commit("relies")

    asyncio.run(act())
    clock.now += GRACE / 2 + 10
    assert store.gc().removed
    assert Store(place).verify().ok
    assert b"".join(Store(place)["new"].show("/a")) == random.Random(1).randbytes(200_000).hex().encode()


def test_a_file_that_became_a_directory_is_committed_during_a_collection() -> None:
    place = MemoryObjects()
    store, other = Store(place), Store(place)
    write(store, "w", "echo 1 > /x; mkdir /y")
    write(store, "gone", big("/a", 1))
    store.rm("gone")
    assert other.gc(grace=0).removed
    write(store, "w", "rm -r /x /y; mkdir /x; echo 2 > /x/f; echo 3 > /y")
    assert b"".join(store["w"].show("/x/f")) == b"2\n" and store.verify().ok


@pytest.mark.parametrize("verb", ["fork", "tag", "pin"])
def test_naming_a_revision_during_its_collection_is_refused(verb: str) -> None:
    place = MemoryObjects()
    store, other = Store(place), Store(place)
    write(store, "w", big("/a", 1), "rm /a", "echo x > /x")
    source = store.find("w@1")
    other.retention(Retention(keep_last=1), "w")
    repository: Any = store.repository
    find = repository.find

    def late(*arguments: Any) -> Any:
        repository.find = find
        found = find(*arguments)
        assert other.gc(grace=0).removed
        return found

    repository.find = late
    act: dict[str, Callable[[], object]] = {
        "fork": lambda: repository.fork("w", "1", "f"),
        "tag": lambda: repository.tag("w", "t", "1"),
        "pin": lambda: repository.pin("w", "1"),
    }
    with pytest.raises(RametError) as caught:
        act[verb]()
    assert caught.value.code in ("revision_expired", "content_collected")
    fresh = Store(place)
    assert fresh.verify().ok and "f" not in fresh and not fresh["w"].tags() and not list(fresh.repository.pins.all())
    assert source.name == "w-1"


def test_two_collectors_decide_one_after_the_other() -> None:
    place = MemoryObjects()
    one, two = Store(place), Store(place)
    write(one, "w", big("/a", 1), big("/a", 2))
    one.retention(Retention(keep_last=1))
    append = one.repository.gc_log.append

    def late(state: Any) -> Any:
        one.repository.gc_log.append = append  # type: ignore[method-assign]
        assert two.gc(grace=0).removed
        return append(state)

    one.repository.gc_log.append = late  # type: ignore[method-assign]
    done = one.gc(grace=0)
    assert not done.removed and Store(place).verify().ok


def test_a_sweep_that_was_killed_is_finished_by_the_next() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1), big("/a", 2), big("/a", 3))
    store.retention(Retention(keep_last=1))
    delete, left = place.delete, 3

    def dying(key: str) -> None:
        nonlocal left
        left -= key.startswith(("packs/", "revisions/"))
        if left < 0:
            raise KeyboardInterrupt
        delete(key)

    place.delete = dying  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        store.gc(grace=0)
    place.delete = delete  # type: ignore[method-assign]
    fresh = Store(place)
    assert fresh.verify().ok and fresh.repository.gc_log.now().sweeping
    fresh.gc(grace=0)
    assert not fresh.repository.gc_log.now().sweeping and not fresh.repository.gc_log.now().doomed
    assert [r.name for r in fresh["w"].log()] == ["w-3"] and fresh.verify().ok


def test_what_dead_writers_left_goes(tmp_path: Path) -> None:
    clock, place = Clock(), DirectoryObjects(str(tmp_path / "s"))
    store = Store(place, clock=clock)
    write(store, "w", "echo x > /x")
    place.put("packs/" + "ab" * 32 + ".pack", b"half a pack")
    place.put("probes/1", b"1")
    place.put("revisions/" + "cd" * 32, b"{}")
    stray = tmp_path / "s" / "packs" / ".tmp-dead"
    stray.write_bytes(b"x")
    os.utime(stray, (1, 1))
    assert store.gc(grace=0).temporary == 1 and not stray.exists()
    assert "ab" * 32 in packs_of(place), "a writer may be about to write its index"
    for _ in range(2):
        clock.now += 1000
        store.gc(grace=0)
    assert "ab" * 32 not in packs_of(place) and not list(place.list("probes/"))
    assert not any("cdcd" in key for key in place.list("revisions/")) and store.verify().ok


def test_a_collection_leaves_the_probe_of_another_process_alone() -> None:
    class Probed(MemoryObjects):
        """A store that is collected between the two creates of a probe."""

        collected = False

        def create(self, key: str, data: bytes) -> bool:
            if key.startswith("probes/") and data == b"2" and not self.collected:
                self.collected = True
                Store(self).gc(grace=0)
            return super().create(key, data)

    objects = Probed()
    prove_create(objects)
    assert objects.collected and not list(objects.list("probes/"))


def test_a_store_with_a_hole_is_not_collected() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1), "echo x > /x")
    write(store, "v", big("/b", 2))
    store.rm("v")
    where = store.repository.packs.place(store.repository.node(store.find("w"), "/a").payload).pack
    place.delete(f"packs/{where}.idx")
    place.delete(f"packs/{where}.pack")
    before = set(place.list(""))
    with pytest.raises(RametError) as caught:
        Store(place).gc(grace=0)
    assert caught.value.code == "store_corrupt" and before <= set(place.list(""))


def test_after_every_so_many_commits() -> None:
    place = MemoryObjects()
    store = Store(place)
    store.retention(Retention(keep_last=2, auto=4, grace=0))
    write(store, "w", *(big("/a", n, 30_000) for n in range(8)))
    assert [r.name for r in store["w"].log()] == ["w-8", "w-7"] and store.verify().ok
    assert store.repository.gc_log.now().kind == "swept"


def test_only_close_waits_for_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    place, going, committed = MemoryObjects(), threading.Event(), threading.Event()
    store = Store(place)
    store.create("w")
    store.retention(Retention(keep_last=1, auto=2, grace=0))
    collect = Repository.gc

    def slow(self: Repository, **options: Any) -> Any:
        going.set()
        assert committed.wait(200), "commits go on while it collects"
        return collect(self, **options)

    monkeypatch.setattr(Repository, "gc", slow)

    async def act() -> None:
        async with store.open("w", commit="never") as ws:
            for number in range(5):
                await ws.execute(big("/a", number, 30_000))
                await ws.commit(str(number))
                if number == 1:
                    assert await asyncio.to_thread(going.wait, 20)
            committed.set()

    asyncio.run(act())
    after = Store(place)
    assert [r.name for r in after["w"].log()] == ["w-5"] and after.verify().ok


def test_the_feed_tells_of_it() -> None:
    async def act() -> None:
        store = Store("memory:")
        store.create("w")
        async with store.open("w", commit="command") as ws:
            await ws.execute(big("/x", 1, 20_000))
            await ws.execute(big("/x", 2, 20_000))
        store.retention(Retention(keep_last=1))
        before = [event async for event in store.events()]
        store.gc(grace=0)
        found = [event async for event in store.events(since=before[-1].cursor)]
        assert [e.envelope["type"] for e in found] == ["dev.ramet.store.collected"]
        assert found[0].data["revisions"] == 1 and found[0].data["bytes"] > 0
        everything = [event async for event in store.events()]
        assert [e.id for e in everything[:2]] == [e.id for e in before[:2]]
        assert everything[0].data["expired"] is True and "revisionId" in everything[0].data

    asyncio.run(act())


def test_progress_is_reported() -> None:
    store = Store("memory:")
    write(store, "w", big("/a", 1), "rm /a; echo x > /x")
    store.retention(Retention(keep_last=1))
    stages: set[str] = set()
    store.gc(grace=0, progress=lambda stage, done, total: stages.add(stage))
    assert {"mark", "remove"} <= stages


def test_what_stops_being_needed_during_a_sweep_is_no_damage(tmp_path: Path) -> None:
    """A sink takes its events between the two looks of a collection: what it kept ends where it ended before."""
    place = MemoryObjects()
    store, other = Store(place), Store(place)
    write(store, "w", "echo 1 > /x")
    sink = JsonLines(str(tmp_path / "events"))
    asyncio.run(store.deliver(sink, "sink"))
    write(store, "w", "echo 2 > /x", "echo 3 > /x", "echo 4 > /x")
    store.retention(Retention(keep_last=2))
    barrier = store.repository.refs.barrier

    def late(name: str) -> None:
        asyncio.run(other.deliver(sink, "sink"))
        barrier(name)

    store.repository.refs.barrier = late  # type: ignore[method-assign]
    assert store.gc(grace=0).revisions == 1
    assert Store(place).verify().ok
    assert other.gc(grace=0).revisions == 1 and Store(place).verify().ok
    assert [revision.seq for revision in Store(place)["w"].log()] == [4, 3]


async def _count(store: Store) -> int:
    return len([event async for event in store.events()])


def test_decisions_that_cannot_be_read_stop_writers_until_they_are_mended() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1), big("/a", 2), "echo 3 > /x")
    store.retention(Retention(keep_last=1))
    store.gc(grace=0)
    write(store, "w", "echo 4 > /x")
    store.gc()
    place.put(max(place.list("gc/store/")), b"not json")
    fresh = Store(place)
    assert [damage.what for damage in fresh.verify().damages if damage.name.startswith("gc/")] == ["entry"]
    acts: list[Callable[[], Any]] = [lambda: write(Store(place), "w", "echo 5 > /x"), lambda: Store(place).gc()]
    for act in acts:
        with pytest.raises(RametError) as caught:
            act()
        assert caught.value.code == "store_corrupt"
    fresh.repair()
    mended = Store(place)
    assert mended.repository.gc_log.now().kind == "mend"
    write(mended, "w", "echo 5 > /x")
    mended.gc(grace=0)
    assert Store(place).verify().ok and asyncio.run(_count(Store(place))) >= 5
    assert Store(place).find("w").seq == 5


def test_a_stray_revision_that_is_not_whole_stops_nothing() -> None:
    """A writer that came too late left a revision whose content is gone; only its age keeps it."""
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1))
    head = store.find("w")
    stray = replace(head, mounts=(replace(head.mounts[0], tree=TreeId(bytes(32))),), time=time.time())
    place.put(f"revisions/{stray.id.hex()}", stray.encode())
    store.retention(Retention(min_age=DAY))
    assert store.gc(grace=0).kept == 1 and Store(place).verify().ok


def test_a_chunk_that_is_missing_stops_everything() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1), "echo x > /x")
    store.retention(Retention(keep_last=1))
    where = store.repository.packs.place(store.repository.node(store.find("w"), "/a").payload).pack
    for kind in ("idx", "pack"):
        place.delete(f"packs/{where}.{kind}")
    with pytest.raises(RametError, match="missing"):
        Store(place).gc(grace=0)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_collector_whose_turn_was_taken_begins_again(at: int) -> None:
    """Another collector does its whole work before the first, second or third decision of this one."""
    place = MemoryObjects()
    one, two = Store(place), Store(place)
    write(one, "w", big("/a", 1), big("/a", 2))
    write(one, "v", big("/b", 3))
    one.retention(Retention(keep_last=1))
    one.rm("v")
    append, left = one.repository.gc_log.append, at

    def late(state: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            two.gc(grace=0)
        return append(state)

    one.repository.gc_log.append = late  # type: ignore[method-assign]
    one.gc(grace=0)
    assert Store(place).verify().ok and not Store(place).repository.gc_log.now().doomed
    assert len(list(place.list("revisions/"))) == 1


def test_a_push_of_a_revision_that_never_was_a_head_goes() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", "echo 1 > /x", "echo 2 > /x")
    for revision in (store.find("w@1").id.hex(), "ab" * 32):
        record_push(store.repository, Push("w", revision, "https://there/x", f"b-{revision[:4]}", ("/",), "u", None))
    store.retention(Retention(keep_last=1))
    done = store.gc(grace=0)
    (left,) = place.list("pushes/")
    assert "abab" not in left and done.kept == 2, "what is to be pushed is kept"


def test_a_fork_that_is_made_during_a_collection_is_not_called_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    place = MemoryObjects()
    store, other = Store(place), Store(place)
    write(store, "w", "echo x > /x")

    def late(*arguments: Any) -> Any:
        if "f" not in other.ls():
            other["w"].fork(None, "f")  # its only new object, the record, lies in a pack that this gc has not listed
        return keep_set(*arguments)

    monkeypatch.setattr("ramet.store.gc.collect.keep_set", late)
    store.gc(grace=0)
    assert Store(place).ls() == ["f", "w"] and Store(place).verify().ok
