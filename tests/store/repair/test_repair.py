"""Damage is found, its victims are named, and what some copy still holds is brought back."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.store.verbs.test_verbs import make, refused

from ramet import RAMResource, Store
from ramet.core.paths import parse
from ramet.store.objects.objects import MemoryObjects, Objects
from ramet.store.packs import writer as packing
from ramet.store.packs.index import Location

SCRIPTS = ("mkdir /d; seq 1 400 > /d/a; echo one > /one", "echo two > /two", "echo three > /three; rm /one")


def keys(objects: Objects, start: str, end: str = "") -> list[str]:
    return [key for key in objects.list(start) if key.endswith(end)]


def flip(objects: Objects, key: str, at: int) -> None:
    data = bytearray(objects.get(key))
    data[at % len(data)] ^= 4
    objects.put(key, bytes(data))


def place_of(store: Store, spec: str, path: str) -> Location:
    node = store.repository.node(store.find(spec), path)
    place = store.repository.packs.find(node.chunks[0])
    assert place is not None
    return place


def pack_of(store: Store, spec: str, path: str) -> str:
    return place_of(store, spec, path).pack


def test_each_damage_names_the_revisions_it_affects(place: Objects) -> None:
    store = make(place, *SCRIPTS)
    name = pack_of(store, "w@2", "/two")
    place.put(f"packs/{name}.pack", place.get(f"packs/{name}.pack")[:20])
    report = Store(place).verify()
    assert not report.ok and {damage.what for damage in report.damages} == {"pack", "object"}
    assert report.affected == ["w-2", "w-3"]
    assert all(set(d.revisions) <= {"w-2", "w-3"} for d in report.damages)
    assert any(d.revisions and d.what == "object" for d in report.damages)
    assert "affects w-2" in "\n".join(map(str, report.damages))


def test_what_another_copy_holds_comes_back(place: Objects) -> None:
    store = make(place, *SCRIPTS)
    name = pack_of(store, "w@2", "/two")
    for end in ("pack", "idx"):
        place.put(f"elsewhere/{end}", place.get(f"packs/{name}.{end}"))
    where = place_of(store, "w@2", "/two")
    flip(place, f"packs/{name}.pack", where.start + where.length // 2)
    broken = Store(place)
    lost = broken.repair()
    assert lost.moved and lost.lost and {d.what for d in lost.lost} == {"object"}
    assert lost.heads == {} and broken.find("w").name == "w-3", "nothing is given up without being asked"
    assert keys(place, "damaged/"), "and nothing damaged is deleted"
    for end in ("pack", "idx"):
        place.put(f"packs/{name}.{end}", place.get(f"elsewhere/{end}"))
    assert Store(place).verify().ok
    assert Store(place).repair().ok


def test_a_damaged_copy_is_salvaged_from_a_good_one() -> None:
    objects = MemoryObjects()
    store = make(objects, *SCRIPTS)
    twin = MemoryObjects()
    make(twin, "echo before > /before", *SCRIPTS)
    for key in keys(twin, "packs/"):
        objects.put(key, twin.get(key))
    before = keys(objects, "packs/", ".pack")
    flip(objects, f"packs/{pack_of(store, 'w@1', '/one')}.pack", 40)
    assert not Store(objects).verify().ok
    done = Store(objects).repair()
    assert done.moved and len(keys(objects, "packs/", ".pack")) <= len(before)
    again = Store(objects)
    content = [b"".join(again["w"].show(path, spec)) for path, spec in (("/one", "1"), ("/two", "2"), ("/three", "3"))]
    assert content == [b"one\n", b"two\n", b"three\n"]


def test_a_damaged_index_is_made_again() -> None:
    rng = random.Random(5)
    for _ in range(20):
        objects = MemoryObjects()
        store = make(objects, *SCRIPTS)
        manifests = [r.content_manifest for r in store["w"].log()]
        key = rng.choice(keys(objects, "packs/", ".idx"))
        flip(objects, key, rng.randrange(12, len(objects.get(key))))
        fresh = Store(objects)
        assert not fresh.verify().ok
        done = fresh.repair()
        assert done.ok and done.rebuilt, done.lost
        assert Store(objects).verify().ok
        assert [r.content_manifest for r in Store(objects)["w"].log()] == manifests


def test_a_lost_index_is_made_again(place: Objects) -> None:
    store = make(
        place, *SCRIPTS, "mkdir -p /x/y; for i in {1..40}; do seq $i > /x/y/f$i; done; seq 300000 > /large; : > /z"
    )
    manifests = [r.content_manifest for r in store["w"].log()]
    for key in keys(place, "packs/", ".idx"):
        place.delete(key)
    fresh = Store(place)
    assert fresh.verify().affected == ["w-1", "w-2", "w-3", "w-4"]
    assert fresh.repair().ok
    again = Store(place)
    assert b"".join(again["w"].show("/large")).count(b"\n") == 300_000
    assert [r.content_manifest for r in again["w"].log()] == manifests
    assert b"".join(again["w"].show("/x/y/f3")) == b"1\n2\n3\n" and b"".join(again["w"].show("/one", "1")) == b"one\n"


@pytest.mark.parametrize("block", [packing.BLOCK_BYTES, 1 << 20])
@pytest.mark.parametrize("pack", [packing.PACK_BYTES, 300_000])
def test_parts_of_large_files_are_found_without_an_index(
    block: int, pack: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several in a block, beside small files, in packs whose trees are elsewhere: all indexes lost, or one of them."""
    monkeypatch.setattr(packing, "BLOCK_BYTES", block)
    monkeypatch.setattr(packing, "PACK_BYTES", pack)
    monkeypatch.setattr(packing, "BACKLOG_BYTES", 0)
    rng, objects = random.Random(7), MemoryObjects()
    contents = {f"/d/f{number}": rng.randbytes(1000 * number + 1) for number in range(12)}
    contents |= {f"/d/large{number}": rng.randbytes(1_300_000 + 7 * number) for number in range(3)}
    contents["/again"] = contents["/d/large1"][300_000:] + b"!" + contents["/d/f3"]
    ram = RAMResource()

    async def act() -> None:
        store = Store(objects)
        store.create("w")
        await ram.mkdir(parse("/d"))
        await ram.mkdir(parse("/empty"))
        for path, data in contents.items():
            await ram.write(parse(path), data)
        async with store.open("w", mounts={"/": ram}) as ws:
            await ws.commit("all")

    asyncio.run(act())
    names = keys(objects, "packs/", ".idx")
    assert (len(names) > 4) is (pack != 64 << 20)
    for lost in [names, *([name] for name in names)]:
        hurt = MemoryObjects()
        for key in objects.list(""):
            if key not in lost:
                hurt.put(key, objects.get(key))
        done = Store(hurt).repair()
        assert done.ok, done.lost
        shown = Store(hurt)["w"]
        assert {path: b"".join(shown.show(path)) for path in contents} == contents


def test_what_is_lost_is_dropped_only_when_asked() -> None:
    objects = MemoryObjects()
    store = make(objects, *SCRIPTS)
    store["w"].tag("bad", "3")
    store["w"].tag("good", "1")
    name = pack_of(store, "w@3", "/three")
    objects.delete(f"packs/{name}.pack")
    kept = Store(objects).repair()
    assert not kept.ok and Store(objects).find("w").name == "w-3"
    dropped = Store(objects).repair(drop=True)
    assert dropped.heads == {"w": "w-2"} and dropped.tags == ["w@bad"]
    fresh = Store(objects)
    assert fresh.find("w").name == "w-2" and [tag.name for tag in fresh["w"].tags()] == ["good"]
    assert [entry.kind for entry in fresh.repository.refs.history("w")][-1] == "repair"
    make(objects, "echo on > /on", store=fresh)
    assert fresh.find("w").name == "w-3"


def test_a_lost_revision_in_the_middle_cuts_the_history_when_asked() -> None:
    objects = MemoryObjects()
    store = make(objects, *SCRIPTS)
    objects.delete(f"revisions/{store.find('w@2').id.hex()}")
    fresh = Store(objects)
    damage = [d for d in fresh.verify().damages if d.what == "revision"]
    assert [d.revisions for d in damage] == [("w-3",)]
    done = fresh.repair(drop=True)
    assert done.heads == {"w": "w-4"}
    assert [r.name for r in Store(objects)["w"].log()] == ["w-4"]
    assert b"".join(Store(objects)["w"].show("/three")) == b"three\n"


def test_damaged_refs_and_tags_are_found_and_mended() -> None:
    objects = MemoryObjects()
    store = make(objects, *SCRIPTS)
    store["w"].tag("t", "1")
    last = keys(objects, "refs/w/")[-1]
    objects.put(last, b"{garbage")
    fresh = Store(objects)
    assert refused(lambda: fresh.find("w")) == "store_corrupt"
    assert [(d.what, d.revisions) for d in fresh.verify().damages] == [("entry", ("w",))]
    done = fresh.repair(drop=True)
    assert done.heads == {"w": "w-3"} and Store(objects).find("w").name == "w-3"
    objects.put(keys(objects, "tags/w/t/")[-1], b"[]")
    assert [d.what for d in Store(objects).verify().damages if d.what == "tag"] == ["tag"]


def test_progress_is_reported() -> None:
    store = make(MemoryObjects(), *SCRIPTS)
    told: list[tuple[str, int, int | None]] = []
    store.verify(progress=lambda *row: told.append(row))
    assert {"packs", "revisions", "references"} <= {stage for stage, _, _ in told}
    assert all(total is None or done <= total for _, done, total in told)


@pytest.mark.parametrize("seed", range(6))
def test_any_flipped_bit_anywhere_is_found(seed: int) -> None:
    rng = random.Random(seed)
    clean = MemoryObjects()
    make(clean, *SCRIPTS)["w"].tag("t")
    for _ in range(25):
        objects = MemoryObjects()
        objects._objects.update(clean._objects)
        key = rng.choice([*keys(objects, "packs/"), *keys(objects, "revisions/")])
        flip(objects, key, rng.randrange(len(objects.get(key))))
        try:
            report = Store(objects).verify()
        except Exception as error:
            raise AssertionError(f"{key}: {error!r}") from error
        assert not report.ok, key
