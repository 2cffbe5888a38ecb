"""Packs are written as they grow: whole and in order, or not at all. Large files are put together from them."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ramet.core.errors import RametError
from ramet.store.checkout.parallel_write import LargeFileWriter
from ramet.store.crypto.encrypted_objects import EncryptedObjects, open_encrypted
from ramet.store.model import chunker as chunking
from ramet.store.model.chunker import chunks, file_chunks
from ramet.store.model.ids import chunk_id
from ramet.store.objects import objects
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects
from ramet.store.packs import writer as packing
from ramet.store.packs.index import Location
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

KEY = bytes(range(32))


def contents(count: int = 40, size: int = 200_000) -> list[bytes]:
    rng = random.Random(5)
    return [rng.randbytes(size) for _ in range(count)]


def listed(place: Path) -> list[str]:
    return sorted(os.listdir(place / "packs")) if (place / "packs").exists() else []


def writer_of(place: objects.Objects) -> PackWriter:
    return PackWriter(place, PackReader(place))


def add(writer: PackWriter, many: list[bytes]) -> None:
    for data in many:
        writer.add(chunk_id(data), data)


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("full", [1_000_000, packing.PACK_BYTES])
def test_a_pack_grows_without_a_name_and_is_there_whole(
    encrypted: bool, full: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "PACK_BYTES", full)
    monkeypatch.setattr(packing, "BACKLOG_BYTES", 1_000_000)
    opened: objects.Objects = DirectoryObjects(str(tmp_path))
    if encrypted:
        sealed = open_encrypted(opened, KEY)
        assert isinstance(sealed, EncryptedObjects)
        opened = sealed.for_workspace("w")
    writer = writer_of(opened)
    many = contents()
    add(writer, many)
    if full != 1_000_000:
        assert [name[: len(objects.TEMPORARY)] for name in listed(tmp_path)] == [objects.TEMPORARY]
    writer.finish()
    names = listed(tmp_path)
    assert not any(name.startswith(objects.TEMPORARY) for name in names)
    assert (len(names) > 2) is (full == 1_000_000) and len(names) % 2 == 0
    reader = PackReader(opened)
    reader.refresh()
    assert [reader.read(chunk_id(data)) for data in many] == many


def test_what_is_not_sealed_does_not_grow_in_an_encrypted_store(tmp_path: Path) -> None:
    sealed = open_encrypted(DirectoryObjects(str(tmp_path)), KEY)
    assert isinstance(sealed, EncryptedObjects) and sealed.open_writer is not None
    with pytest.raises(RametError, match="not encrypted"):
        sealed.open_writer("packs", b"RAMETPK1")
    kept = open_encrypted(MemoryObjects(), KEY)
    assert isinstance(kept, EncryptedObjects) and kept.open_writer is None


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_disk_that_is_full_is_reported_and_leaves_nothing(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = objects._write, [1 if when == "early" else 5]

    def write(fd: int, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "full")
        real(fd, data)

    monkeypatch.setattr(objects, "_write", write)
    monkeypatch.setattr(packing, "BACKLOG_BYTES", 1_000_000)
    writer = writer_of(DirectoryObjects(str(tmp_path)))
    told: list[str] = []
    writer.on_durable(lambda: told.append("durable"))
    with pytest.raises(OSError, match="full"):
        try:
            add(writer, contents())
            writer.finish()
        finally:
            writer.abandon()
    assert listed(tmp_path) == [] and told == []


def test_a_pack_that_cannot_be_named_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: DirectoryObjects, _key: str) -> None:
        raise OSError(errno.EIO, "no sync")

    monkeypatch.setattr(DirectoryObjects, "_sync_parent", refuse)
    writer = writer_of(DirectoryObjects(str(tmp_path)))
    add(writer, contents(5))
    with pytest.raises(OSError, match="no sync"):
        writer.finish()
    assert not any(name.startswith(objects.TEMPORARY) or name.endswith(".idx") for name in listed(tmp_path))


def test_who_gives_up_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "BACKLOG_BYTES", 1_000_000)
    writer = writer_of(DirectoryObjects(str(tmp_path)))
    add(writer, contents())
    writer.abandon()
    writer.abandon()
    assert listed(tmp_path) == []


def test_who_is_forgotten_leaves_nothing_behind(tmp_path: Path) -> None:
    growing = DirectoryObjects(str(tmp_path)).open_writer("packs", b"")
    growing.write(b"some")
    assert len(listed(tmp_path)) == 1
    del growing
    assert listed(tmp_path) == []


DYING = """
import os, random, signal, sys
from ramet.store.model.ids import chunk_id
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.writer import PackWriter
from ramet.store.packs.reader import PackReader

class Dying(DirectoryObjects):
    left = int(sys.argv[2])

    def step(self):
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def adopt(self, temporary, fd, key):
        self.step()
        super().adopt(temporary, fd, key)
        self.step()

    def put(self, key, data):
        self.step()
        super().put(key, data)
        self.step()

objects = Dying(sys.argv[1], sync=False)
writer = PackWriter(objects, PackReader(objects))
rng = random.Random(5)
for _ in range(8):
    data = rng.randbytes(200_000)
    writer.add(chunk_id(data), data)
writer.finish()
"""


@pytest.mark.parametrize("left", range(5))
def test_death_at_any_step_leaves_no_index_without_its_pack(left: int, tmp_path: Path) -> None:
    many = contents(8)
    ended = subprocess.run([sys.executable, "-c", DYING, str(tmp_path), str(left)], check=False)
    assert ended.returncode == (0 if left == 4 else -signal.SIGKILL)
    names = listed(tmp_path)
    assert all(name.removesuffix(".idx") + ".pack" in names for name in names if name.endswith(".idx"))
    again = DirectoryObjects(str(tmp_path))
    again.clean(older=-1)
    assert not any(name.startswith(objects.TEMPORARY) for name in listed(tmp_path))
    writer = writer_of(again)
    add(writer, many)
    writer.finish()
    reader = PackReader(again)
    reader.refresh()
    assert [reader.read(chunk_id(data)) for data in many] == many


def test_many_small_objects_at_once_are_what_one_after_the_other_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MERGE_LOOKUPS_AFTER", 3)
    monkeypatch.setattr(packing, "BLOCK_BYTES", 64)
    many = [b"object %d" % (number % 50) for number in range(80)]
    keys = [chunk_id(data) for data in many]
    place = MemoryObjects()
    for expected in (50, 0):
        writer = writer_of(place)
        writer._reader.refresh()
        for at in range(0, 80, 10):
            writer.add_all([*keys[at : at + 10], b""], [*many[at : at + 10], b""])
        writer.finish()
        assert writer.objects_written == expected
    seen: list[bytes] = []
    writer = writer_of(MemoryObjects())
    writer.check_content = lambda data: seen.append(bytes(data))
    writer.add_all(keys[:3], many[:3])
    writer.abandon()
    assert seen == many[:3]


# ------------------------------------------------------------------------------------------------ large files


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 4 << 20, (4 << 20) + 1, 9_000_000])
@pytest.mark.parametrize("fill", ["random", "zeros"])
def test_files_are_cut_as_streams_are(size: int, fill: str, tmp_path: Path) -> None:
    data = random.Random(size).randbytes(size) if fill == "random" else bytes(size)
    path = tmp_path / "f"
    path.write_bytes(data)
    whole = (
        [bytes(chunk) for chunk in chunking.cut(data, last=True)[0]] if size > chunking.WHOLE else [data][: size > 0]
    )
    streamed = chunks((data[at : at + 300_001] for at in range(0, size, 300_001)), size) if size else ()
    assert [bytes(chunk) for chunk in streamed] == whole
    with open(path, "rb") as file:
        assert [bytes(chunk) for chunk in file_chunks(file.fileno())] == whole


def stored(parts: list[bytes]) -> tuple[MemoryObjects, PackReader, list[bytes]]:
    place = MemoryObjects()
    reader = PackReader(place)
    writer = PackWriter(place, reader)
    add(writer, parts)
    writer.finish()
    return place, reader, [chunk_id(part) for part in parts]


def assembled(reader: PackReader, ids: list[bytes], path: Path, times: int = 2) -> list[bool]:
    found = []
    with ThreadPoolExecutor(2) as pool:
        assembler = LargeFileWriter(reader, pool)
        for number in range(times):
            with open(f"{path}{number}", "xb") as file:
                found.append(assembler.write(file.fileno(), os.fsencode(f"{path}{number}"), ids))
    return found


def no_copy(*_: object) -> int:
    raise OSError(errno.EXDEV, "elsewhere")


@pytest.mark.parametrize("copy", [None, no_copy, lambda *_: 0])
def test_what_cannot_be_copied_is_written(
    copy: Callable[..., int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if copy is not None:
        monkeypatch.setattr(os, "copy_file_range", copy)
    parts = contents(12, 100_000)
    _, reader, ids = stored(parts)
    order = [*ids, ids[3], ids[4], ids[5], ids[0], ids[0], *reversed(ids)]
    expected = b"".join(dict(zip(ids, parts, strict=True))[key] for key in order)
    assert assembled(reader, order, tmp_path / "f") == [True, True]
    assert (tmp_path / "f0").read_bytes() == (tmp_path / "f1").read_bytes() == expected


def test_a_file_whose_place_is_gone_is_written_from_the_store(tmp_path: Path) -> None:
    parts = contents(4, 50_000)
    _, reader, ids = stored(parts)
    with ThreadPoolExecutor(2) as pool:
        assembler = LargeFileWriter(reader, pool)
        for name in ("one", "two"):
            with open(tmp_path / name, "xb") as file:
                assert assembler.write(file.fileno(), os.fsencode(tmp_path / name), ids)
            assert (tmp_path / name).read_bytes() == b"".join(parts)
            (tmp_path / name).unlink()


def test_a_damaged_chunk_is_reported_each_time_and_never_copied(tmp_path: Path) -> None:
    parts = contents(6, 50_000)
    _, reader, ids = stored(parts)
    fetch = reader.fetch
    bad = reader.place(ids[2])

    def hurt(place: Location, most: int | None = None) -> bytes:
        return bytes(len(fetch(place))) if place == bad else fetch(place, most)

    reader.fetch = hurt  # type: ignore[method-assign]
    assert assembled(reader, ids, tmp_path / "f") == [False, False]


def test_a_store_that_fails_stops_a_file(tmp_path: Path) -> None:
    parts = contents(20, 50_000)
    place, reader, ids = stored(parts)
    for key in list(place.list("packs/")):
        if key.endswith(".pack"):
            place.put(key, place.get(key)[:400_000])
    with pytest.raises(RametError, match="is damaged"):
        assembled(reader, ids, tmp_path / "f")
