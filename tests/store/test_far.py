"""Stores that are far away: however long a history is, it is opened with few requests, and old commands come later."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from ramet import Store
from ramet.store import catalogs
from ramet.store.objects import MemoryObjects
from ramet.store.packing import PackWriter
from ramet.store.packs import PackReader

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

    assert len([key for key in long.list("packs/") if key.endswith(".idx")]) > catalogs.OFTEN
    asyncio.run(act())


def test_old_commands_are_fetched_when_somebody_asks_and_not_by_the_event_loop(long: Far) -> None:
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
    monkeypatch.setattr(catalogs, "MOST", 10)
    catalogs.save(objects, {"a": b"123456", "b": b"12345", "c": b"1234"})
    assert catalogs.load(objects) == {"b": b"12345", "c": b"1234"}


def test_writers_make_the_catalog_anew_now_and_then() -> None:
    objects = Far()
    reader = PackReader(objects)
    for number in range(catalogs.OFTEN + 1):
        writer = PackWriter(objects, reader)
        writer.add(bytes([number]) * 32, b"content %d" % number)
        writer.finish()
        reader.publish(catalogs.OFTEN)
        assert objects.asked["put catalog"] == (number >= catalogs.OFTEN - 1)
    for _ in range(2):
        reader.publish()
        assert objects.asked["put catalog"] == 2, "who closes writes what is new, once"
    near = MemoryObjects()
    local = PackReader(near)
    for name in reader.packs():
        local.add(name, reader.index(name).data)
    local.publish(1)
    assert not list(near.list("catalog/"))


def test_an_encrypted_store_has_no_catalog_and_is_read_all_the_same() -> None:
    async def act() -> None:
        objects = Far()
        await filled(objects, 40, bytes(32))
        assert not list(objects.list("catalog/"))
        async with Store(Far(objects), key=bytes(32)).open("w", readonly=True) as ws:
            assert (await ws.execute("cat /f7")).text == "27\n"

    asyncio.run(act())
