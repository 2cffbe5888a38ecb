"""Objects are found by their ids: in one index, in many at once, and while packs are being written."""

from __future__ import annotations

import random

import pytest

from ramet.core.errors import RametError
from ramet.store.model.ids import chunk_id
from ramet.store.objects.objects import MemoryObjects
from ramet.store.packs import index as indexes
from ramet.store.packs import reader as packs
from ramet.store.packs import writer as packing
from ramet.store.packs.index import RECORD, Index, Location, MergedIndex, encode_index
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter


def index_of(name: str, ids: list[bytes]) -> Index:
    return Index(name, encode_index([RECORD.pack(key, number, 1, 2, 3) for number, key in enumerate(ids)]))


def ids(seed: int, count: int) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(32) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_an_index_finds_its_own_and_nothing_else(count: int) -> None:
    known, others = ids(1, count), ids(2, 50)
    known += [key[:4] + other[4:] for key, other in zip(known[:20], others, strict=False)]  # they begin alike
    index = index_of("p", known)
    assert [index.find(key) for key in known] == [Location("p", number, 1, 2, 3) for number in range(len(known))]
    assert index.find_all({*known, *others}) == {key: index.find(key) for key in known}
    assert not any(index.find(key) for key in others)
    assert not any(index.find(key[:8] + bytes(24)) for key in known)
    assert index.find(bytes(32)) is None and index.find(b"\xff" * 32) is None
    assert list(index.ids()) == sorted(known) and index.table().keys() == set(known)


@pytest.mark.parametrize("many", [0, 10**9])
def test_many_indexes_are_asked_as_one(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "_SLICED_MERGE_IDS", many)
    edges = [bytes(32), b"\xff" * 32]
    parts = [ids(seed, 40) for seed in range(5)]
    parts[3] += parts[1][:7] + edges
    merged = MergedIndex([index_of(str(number), part) for number, part in enumerate(parts)])
    for number, part in enumerate(parts):
        for key in part:
            place = merged.find(key)
            assert place is not None and place.pack == str(1 if key in parts[1] else number), "the first one answers"
    assert not any(merged.find(key) for key in ids(9, 200))
    assert not any(merged.find(key[:4] + bytes(28)) for key in parts[0])
    assert MergedIndex([]).find(bytes(32)) is None


def test_a_damaged_index_is_reported() -> None:
    for data in (b"", b"RAMETIX1", b"RAMETIX1" + bytes(5), b"RAMETIX2" + bytes(4)):
        with pytest.raises(RametError, match="damaged"):
            Index("p", data)


def test_a_writer_knows_what_it_wrote_into_earlier_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs are written as soon as they hold many objects, and nothing is kept of them but their indexes."""
    monkeypatch.setattr(packing, "PACK_OBJECTS", 10)
    monkeypatch.setattr(packing, "BACKLOG_BYTES", 0)
    monkeypatch.setattr(packing, "BLOCK_BYTES", 64)
    monkeypatch.setattr(packing, "MERGE_LOOKUPS_AFTER", 25)
    objects = MemoryObjects()
    reader = PackReader(objects)
    writer = PackWriter(objects, reader)
    contents = [b"object number %d" % number for number in range(200)]
    for _ in range(2):
        for data in contents:
            writer.add(chunk_id(data), data)
    writer.finish()
    assert writer.objects_written == 200 and len(reader.packs()) > 10
    assert len(writer._pending_ids) == 0
    fresh = PackReader(objects)
    fresh.refresh()
    assert [fresh.read(chunk_id(data)) for data in contents] == contents
    again = PackWriter(objects, fresh)
    assert all(again.has(chunk_id(data)) for data in contents) and not again.has(chunk_id(b"another"))


def test_a_store_of_very_many_packs_is_searched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "SMALL_PACK_OBJECTS", 1)
    monkeypatch.setattr(packs, "UNMERGED_INDEXES", 3)
    objects = MemoryObjects()
    reader = PackReader(objects)
    contents = [b"object number %d" % number for number in range(40)]
    for at in range(0, 40, 4):
        writer = PackWriter(objects, reader)
        for data in contents[at : at + 4]:
            writer.add(chunk_id(data), data)
        writer.finish()
        assert [reader.read(chunk_id(data)) for data in contents[: at + 4]] == contents[: at + 4]
        assert reader.find(chunk_id(b"another")) is None
    first = reader.place(chunk_id(contents[0])).pack
    copy = PackWriter(objects, PackReader(objects))
    copy.add(chunk_id(contents[0]), contents[0])
    copy.finish()
    reader.refresh()
    reader.condemn(frozenset({first}))
    assert reader.place(chunk_id(contents[0])).pack != first, "a copy that stays is found first"
    assert reader.keeps(chunk_id(contents[0])) and not reader.keeps(chunk_id(contents[1]))
    assert [reader.read(chunk_id(data)) for data in contents] == contents
    for end in (".idx", ".pack"):
        objects.delete(f"packs/{first}{end}")
    reader.refresh()
    assert reader.find(chunk_id(contents[1])) is None and reader.read(chunk_id(contents[0])) == contents[0]
