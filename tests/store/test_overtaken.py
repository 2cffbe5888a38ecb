"""Readers that are overtaken: packs that are joined, and heads that are followed and collected, while they look."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ramet import RametError, Store
from ramet.store.model.ids import chunk_id
from ramet.store.objects.objects import MemoryObjects
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter
from ramet.workspace.stored import store as opening

TEXT = b"the content"


def packed() -> MemoryObjects:
    objects = MemoryObjects()
    writer = PackWriter(objects, PackReader(objects))
    writer.add(chunk_id(TEXT), TEXT)
    writer.finish()
    return objects


class Joined(MemoryObjects):
    """A store whose pack is replaced by another one at the end of a listing, some times, or in the midst of one."""

    def __init__(self, times: int, unseen: bool) -> None:
        super().__init__()
        self._objects = packed()._objects
        self.times, self.unseen = times, unseen

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        keys = list(super().list(prefix, after))
        if self.times:
            self.times -= 1
            self._objects = packed()._objects
            keys = [] if self.unseen else keys
        yield from keys


@pytest.mark.parametrize(("times", "unseen"), [(1, False), (5, False), (1, True)])
def test_what_was_joined_while_it_was_listed_is_found(times: int, unseen: bool) -> None:
    assert PackReader(Joined(times, unseen)).read(chunk_id(TEXT)) == TEXT


def test_what_is_not_there_is_missing_all_the_same() -> None:
    with pytest.raises(RametError) as caught:
        PackReader(packed()).read(chunk_id(b"another"))
    assert caught.value.code == "store_corrupt"


def test_an_open_that_was_overtaken_begins_again_with_the_new_head(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(MemoryObjects())
    store.create("w")
    hydrate, tried = opening.StoredWorkspace.hydrate, 0

    async def write(text: str) -> None:
        async with store.open("w") as ws:
            await ws.execute(f"echo {text} > /f")

    def overtaken(*args: object, **options: object) -> object:
        nonlocal tried
        tried += 1
        if tried == 1:
            monkeypatch.setattr(opening.StoredWorkspace, "hydrate", hydrate)
            asyncio.run(write("new"))
            monkeypatch.setattr(opening.StoredWorkspace, "hydrate", overtaken)
            raise RametError("store_corrupt", "an object is missing", "run verify")
        return hydrate(*args, **options)  # type: ignore[arg-type]

    async def read() -> str:
        async with store.open("w", readonly=True) as ws:
            return (await ws.execute("cat /f")).text

    asyncio.run(write("old"))
    monkeypatch.setattr(opening.StoredWorkspace, "hydrate", overtaken)
    assert asyncio.run(read()) == "new\n" and tried == 2

    def broken(*args: object, **options: object) -> object:
        raise RametError("store_corrupt", "an object is missing", "run verify")

    monkeypatch.setattr(opening.StoredWorkspace, "hydrate", broken)
    with pytest.raises(RametError, match="an object is missing"):
        asyncio.run(read())
