"""Drafts of files in remote mounts: what is stored after a failure, and what they may take of this process."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path as HostPath

import pytest

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import unavailable
from ramet.core.paths import Path, parse
from ramet.layers.passthrough import Passthrough
from ramet.native.fuse import draft as module
from ramet.native.fuse.draft import Draft, Spool
from ramet.vfs.vfs import VFS

FILE = parse("/f")


class Broken(Passthrough):
    """Reads fail in the middle; writes when they are told to."""

    transparent = False

    def __init__(self) -> None:
        super().__init__(RAMResource())
        self.reads_fail = self.writes_fail = False

    async def read(self, path: Path, start: int = 0, stop: int | None = None) -> AsyncIterator[bytes]:
        async for block in self.inner.read(path, start, stop):
            if not self.reads_fail:
                yield block
                continue
            yield block[:3]
            raise unavailable(path, "the line is down")

    async def write(self, path, data, how=None, **more):  # type: ignore[no-untyped-def]
        if self.writes_fail:
            raise unavailable(path, "the line is down")
        return await self.inner.write(path, data, how, **more)


def test_a_file_that_was_read_in_part_is_not_appended_to_itself(tmp_path: HostPath) -> None:
    async def steps() -> bytes:
        mount = Broken()
        fs = VFS({parse("/"): mount})
        await mount.inner.write(FILE, b"0123456789")
        draft = Draft(Spool(str(tmp_path), 1 << 20), "me", 10)
        mount.reads_fail = True
        with pytest.raises(OSError, match="line is down"):
            await draft.load(fs, FILE)
        mount.reads_fail = False
        draft.append(b"ab")
        await draft.store(fs, FILE)
        draft.close()
        return await fs.read_bytes(FILE)

    assert asyncio.run(steps()) == b"0123456789ab"


def test_an_append_that_failed_is_not_sent_with_the_next_one(tmp_path: HostPath) -> None:
    async def steps() -> tuple[bytes, int]:
        mount = Broken()
        fs = VFS({parse("/"): mount})
        await mount.inner.write(FILE, b"old ")
        spool = Spool(str(tmp_path), 1 << 20)
        draft = Draft(spool, "me", 4)
        mount.writes_fail = True
        draft.append(b"lost ")
        with pytest.raises(OSError, match="line is down"):
            await draft.store(fs, FILE)
        mount.writes_fail = False
        draft.append(b"new")
        await draft.store(fs, FILE)
        draft.close()
        return await fs.read_bytes(FILE), spool.used

    assert asyncio.run(steps()) == (b"old new", 0)


def test_a_disk_that_takes_a_part_loses_nothing(tmp_path: HostPath, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:7], at))
    draft = Draft(Spool(str(tmp_path), 1 << 20), "me")
    draft.replace()
    draft.write(b"0123456789" * 10, 5)
    assert draft.read(0, 1000) == bytes(5) + b"0123456789" * 10
    draft.close()


def test_drafts_take_a_share_of_the_descriptors(tmp_path: HostPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    spool = Spool(str(tmp_path), 1 << 20)
    made = [Draft(spool, "me") for _ in range(3)]
    with pytest.raises(OSError) as caught:
        Draft(spool, "me")
    assert caught.value.errno == errno.ENFILE
    made.pop().close()
    made.append(Draft(spool, "me"))
    for one in made:
        one.close()
        one.close()


def test_a_closed_draft_touches_no_other_file(tmp_path: HostPath) -> None:
    draft = Draft(Spool(str(tmp_path), 1 << 20), "me")
    draft.replace()
    draft.write(b"x", 0)
    draft.close()
    other = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)  # it may get the same number
    with pytest.raises(OSError):
        draft.read(0, 1)
    with pytest.raises(OSError):
        draft.write(b"lost", 0)
    assert os.fstat(other).st_size == 0
    os.close(other)
