"""Stores that are far away: however long a history is, it is opened with few requests, and old commands come later."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ramet import RametError, Store
from ramet.store.checkout.directory import checkout
from ramet.store.crypto.codec import as_encrypted
from ramet.store.model import trees
from ramet.store.model.ids import TreeId, chunk_id, tree_id
from ramet.store.model.trees import Node
from ramet.store.objects.objects import MemoryObjects
from ramet.store.packs import catalog as catalogs
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

KEY = bytes(32)
MANY = 290
"""Revisions: more than a segment of the history holds, and more packs than are asked for one by one."""


class Far(MemoryObjects):
    """A store that counts what it is asked, a thousand names to a listing, and says who waits for it."""

    remote = True

    def __init__(self, before: MemoryObjects | None = None) -> None:
        super().__init__()
        if before is not None:
            self._objects = before._objects
        self.asked: Counter[str] = Counter()
        self.by_loop: list[str] = []

    def _note(self, verb: str, key: str, times: int = 1) -> None:
        self.asked[f"{verb} {key.partition('/')[0]}"] += times
        if threading.current_thread() is threading.main_thread():
            self.by_loop.append(key)

    def get(self, key: str) -> bytes:
        self._note("get", key)
        return super().get(key)

    def get_range(self, key: str, start: int, size: int) -> bytes:
        self._note("range", key)
        return super().get_range(key, start, size)

    def put(self, key: str, data: bytes) -> None:
        self._note("put", key)
        super().put(key, data)

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        keys = list(super().list(prefix, after))
        self._note("list", prefix, max(1, -(-len(keys) // 1000)))
        yield from keys


async def filled(objects: MemoryObjects, revisions: int, key: bytes | None = None) -> None:
    store = Store(objects, key=key)
    store.create("w")
    async with store.open("w", commit="command") as ws:
        for number in range(revisions):
            await ws.execute(f"echo {number} > /f{number % 20}")


@pytest.fixture(scope="module")
def long() -> Far:
    objects = Far()
    asyncio.run(filled(objects, MANY))
    return objects


def test_a_long_history_is_opened_and_read_with_few_requests(long: Far) -> None:
    async def act() -> None:
        cold = Far(long)
        async with Store(cold).open("w", readonly=True) as ws:
            assert (await ws.execute("cat /f7")).text == f"{MANY - 3}\n"
        assert sum(cold.asked.values()) < 10, cold.asked

    assert len([key for key in long.list("packs/") if key.endswith(".idx")]) > catalogs.REWRITE_AFTER
    asyncio.run(act())


def test_old_commands_are_fetched_on_request_and_not_by_the_event_loop(long: Far) -> None:
    async def act() -> None:
        cold = Far(long)
        store = Store(cold)
        async with store.open("w", readonly=True) as ws:
            cold.by_loop.clear()
            assert (await ws.execute("cat /.sessions/*/commands.jsonl | wc -l")).text == f"{MANY}\n"
            assert len(list(ws.history)) == MANY + 1 and not cold.by_loop
        async with store.open("w", readonly=True) as ws:
            cold.by_loop.clear()
            assert (await ws.execute("cat /.sessions/*/commands.jsonl | head -1")).text.count("echo 0") == 1
            assert not cold.by_loop

    asyncio.run(act())


def test_a_history_goes_on_after_it_was_opened_from_afar() -> None:
    async def act() -> None:
        objects = Far()
        await filled(objects, MANY)
        for number in range(2):
            async with Store(Far(objects)).open("w") as ws:
                await ws.execute(f"echo more {number}")
        async with Store(objects).open("w", readonly=True) as ws:
            lines = [record.command for record in ws.history]
            assert len(lines) == MANY + 2 and lines[-1] == "echo more 1" and lines[0] == "echo 0 > /f0"
        assert Store(objects).verify().ok

    asyncio.run(act())


@pytest.mark.parametrize("catalog", [b"", b"damaged", None, {"no such pack": b"RAMETIX1"}])
def test_a_catalog_is_a_copy_that_may_be_damaged_old_or_gone(long: Far, catalog: object) -> None:
    objects = Far()
    objects._objects.update(long._objects)
    if catalog is None:
        objects.delete(catalogs.KEY)
    elif isinstance(catalog, bytes):
        objects.put(catalogs.KEY, catalog)
    else:
        catalogs.save(objects, {"no such pack": b"RAMETIX1"})
    reader, other = PackReader(objects), PackReader(long)
    reader.refresh()
    other.refresh()
    assert reader.packs() == other.packs() and "no such pack" not in reader.packs()


def test_a_catalog_holds_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = Far()
    monkeypatch.setattr(catalogs, "CATALOG_BYTES", 10)
    catalogs.save(objects, {"a": b"123456", "b": b"12345", "c": b"1234"})
    assert catalogs.load(objects) == {"b": b"12345", "c": b"1234"}


def test_writers_make_the_catalog_anew_now_and_then() -> None:
    objects = Far()
    reader = PackReader(objects)
    for number in range(catalogs.REWRITE_AFTER + 1):
        writer = PackWriter(objects, reader)
        writer.add(bytes([number]) * 32, b"content %d" % number)
        writer.finish()
        reader.publish(catalogs.REWRITE_AFTER)
        assert objects.asked["put catalog"] == (number >= catalogs.REWRITE_AFTER - 1)
    for _ in range(2):
        reader.publish()
        assert objects.asked["put catalog"] == 2, "who closes writes what is new, once"
    near = MemoryObjects()
    local = PackReader(near)
    for name in reader.packs():
        local.add(name, reader.index(name).data)
    local.publish(1)
    assert not list(near.list("catalog/"))


@pytest.fixture(scope="module")
def locked() -> Far:
    objects = Far()
    asyncio.run(filled(objects, MANY, KEY))
    return objects


def test_a_long_history_of_an_encrypted_store_is_opened_with_few_requests(locked: Far) -> None:
    async def act() -> None:
        cold = Far(locked)
        async with Store(cold, key=KEY).open("w", readonly=True) as ws:
            assert (await ws.execute("cat /f7")).text == f"{MANY - 3}\n"
        assert sum(cold.asked.values()) < 12, cold.asked  # two of them are keys

    asyncio.run(act())


def test_the_catalog_of_an_encrypted_store_goes_with_the_keys_of_its_workspaces(locked: Far) -> None:
    objects = Far()
    objects._objects.update(locked._objects)
    store = Store(objects, key=KEY)
    sealed = as_encrypted(store.repository.objects)
    assert sealed is not None
    indexes = catalogs.load(sealed.common)
    name, index = next(iter(indexes.items()))
    key = f"packs/{name}.idx"
    assert len(indexes) > catalogs.REWRITE_AFTER and sealed.decrypt(key, index) == sealed.get(key)
    store.repository.shred("w")
    again = as_encrypted(Store(Far(objects), key=KEY).repository.objects)
    assert again is not None and catalogs.load(again.common) == indexes
    with pytest.raises(RametError) as caught:
        again.decrypt(key, index)
    assert caught.value.context["shredded"]
    reader = PackReader(again)
    reader.refresh()
    assert not reader.packs()


def test_packs_of_other_workspaces_stay_in_the_catalog() -> None:
    async def act() -> None:
        objects = Far()
        await filled(objects, 40, KEY)
        store = Store(Far(objects), key=KEY)
        store.create("other")
        async with store.open("other", commit="command") as ws:
            for number in range(40):
                await ws.execute(f"echo {number} > /g")
        sealed = as_encrypted(store.repository.objects)
        assert sealed is not None
        listed = {key[6:-4] for key in objects.list("packs/") if key.endswith(".idx")}
        assert not listed - catalogs.load(sealed.common).keys()

    asyncio.run(act())


def packed(objects: MemoryObjects, files: int = 60) -> tuple[PackReader, TreeId]:
    """A tree of files that compress badly, so that their blocks are many."""
    reader = PackReader(objects)
    writer = PackWriter(objects, reader)
    nodes = []
    for number in range(files):
        data = random.Random(number).randbytes(20_000)
        writer.add(chunk_id(data), data)
        nodes.append(Node(b"f%d" % number, 0, 0o644, number * 10**9, len(data), chunk_id(data)))
    encoded = trees.encode(nodes)
    writer.add_tree(tree_id(encoded), encoded)
    writer.finish()
    return reader, tree_id(encoded)


def test_adjacent_blocks_are_one_request(tmp_path: Path) -> None:
    objects = Far()
    packed(objects)
    cold = PackReader(objects)
    cold.refresh()
    _, tree = packed(MemoryObjects())
    objects.asked.clear()
    receipt = checkout(cold, tree, str(tmp_path / "out"))
    assert receipt.written == 60 and not receipt.problems
    assert objects.asked["range packs"] <= 4, "1.2 MB are a megabyte and the rest, and the tree"
    assert checkout(cold, tree, str(tmp_path / "out"), verify=True).kept == 60


def test_blocks_of_a_remote_store_are_kept_however_they_came(tmp_path: Path) -> None:
    objects = Far()
    objects.local = str(tmp_path / "local")
    _, tree = packed(objects)
    for again, asked in ((0, 4), (1, 0)):
        reader = PackReader(objects)
        reader.refresh()
        objects.asked.clear()
        assert checkout(reader, tree, str(tmp_path / f"out{again}")).written == 60
        assert objects.asked["range packs"] <= asked
    kept = sorted(path for path in (tmp_path / "local/packs").rglob("*.frame"))
    kept[3].unlink()
    kept[5].write_bytes(b"damaged")
    reader = PackReader(objects)
    reader.refresh()
    objects.asked.clear()
    assert checkout(reader, tree, str(tmp_path / "out2")).problems == [] and 1 <= objects.asked["range packs"] <= 2


@pytest.mark.parametrize("remote", [False, True])
def test_a_damaged_block_among_others_is_reported_and_a_pack_that_moved_is_followed(
    remote: bool, tmp_path: Path
) -> None:
    objects = Far()
    objects.remote = remote
    _, tree = packed(objects)
    reader = PackReader(objects)
    reader.refresh()
    (name,) = reader.packs()
    place = max(place for key in reader.index(name).ids() if (place := reader.find(key)) and place.size == 20_000)
    good = objects.get(f"packs/{name}.pack")
    middle = place.start + place.length // 2
    objects.put(f"packs/{name}.pack", good[:middle] + bytes([good[middle] ^ 255]) + good[middle + 1 :])
    try:
        assert checkout(reader, tree, str(tmp_path / "damaged")).problems
    except RametError as error:
        assert error.code == "store_corrupt"
    objects.put(f"packs/{name}.pack", good)
    again = PackWriter(objects, PackReader(objects))
    for key in [*reader.index(name).ids()]:
        data = reader.read(key)
        (again.add if chunk_id(data) == key else again.add_tree)(key, data)
    again.finish()
    for ending in ("idx", "pack"):
        objects.delete(f"packs/{name}.{ending}")
    late = PackReader(objects)
    late.add(name, reader.index(name).data)
    receipt = checkout(late, tree, str(tmp_path / "moved"))
    assert receipt.written == 60 and not receipt.problems
