"""A disk mount is a cage: nothing inside leads out, nothing special inside can hang it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path as HostPath

import pytest

from ramet import Workspace
from ramet.backends.local.disk import TEMP_PREFIX, DiskResource
from ramet.core import ops
from ramet.core.paths import ROOT, parse
from ramet.core.resource import How
from ramet.core.stat import Attrs, Kind
from ramet.vfs.vfs import VFS


@pytest.fixture
def cage(tmp_path: HostPath) -> DiskResource:
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "outdir").mkdir()
    (tmp_path / "outdir" / "f").write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "abs").symlink_to(tmp_path / "outside")
    (root / "rel").symlink_to("../outside")
    (root / "dir").symlink_to("../outdir")
    (root / "deep").mkdir()
    (root / "deep" / "up").symlink_to("../../outdir")
    (root / "inside").write_text("mine")
    (root / "good").symlink_to("inside")
    return DiskResource(root)


ESCAPES = ["/abs", "/rel", "/dir/f", "/deep/up/f", "/../outside", "/deep/../../outside", "/dir/../outside"]


@pytest.mark.parametrize("text", ESCAPES)
def test_no_path_leads_outside(cage: DiskResource, text: str) -> None:
    async def attempt() -> None:
        for fs in (cage, VFS({ROOT: cage})):
            with pytest.raises(OSError) as caught:
                await ops.read_bytes(fs, parse(text))
            assert caught.value.errno in (errno.ELOOP, errno.ENOENT)

    asyncio.run(attempt())


@pytest.mark.parametrize("text", ["/abs", "/rel", "/dir/f", "/dir/new", "/deep/up/new"])
def test_no_write_leads_outside(cage: DiskResource, text: str, tmp_path: HostPath) -> None:
    async def attempt() -> None:
        try:
            await VFS({ROOT: cage}).write(parse(text), b"owned")
        except OSError:
            return

    asyncio.run(attempt())
    assert (tmp_path / "outside").read_text() == "secret"
    assert sorted(p.name for p in (tmp_path / "outdir").iterdir()) == ["f"]
    assert (tmp_path / "outdir" / "f").read_text() == "secret"


def test_links_inside_the_root_work(cage: DiskResource) -> None:
    assert asyncio.run(ops.read_bytes(VFS({ROOT: cage}), parse("/good"))) == b"mine"


def test_chmod_and_link_never_reach_through_a_link(cage: DiskResource, tmp_path: HostPath) -> None:
    before = (tmp_path / "outside").stat().st_mode

    async def attempt() -> None:
        await cage.setattr(parse("/rel"), Attrs(mode=0o777, mtime_ns=1))
        await cage.link(parse("/rel"), parse("/again"))
        with pytest.raises(OSError, match="symbolic links"):
            await cage.link(parse("/dir/f"), parse("/hard"))

    asyncio.run(attempt())
    assert (tmp_path / "outside").stat().st_mode == before
    assert os.path.islink(tmp_path / "root" / "again")


def test_special_files_are_described_and_never_opened(tmp_path: HostPath) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "sock"))
        fs = DiskResource(tmp_path)

        async def look() -> dict[str, Kind]:
            for name in ("fifo", "sock"):
                with pytest.raises(OSError, match="No such device"):
                    await ops.read_bytes(fs, ROOT / name)
                with pytest.raises(OSError, match="No such device"):
                    await fs.write(ROOT / name, b"x")
            return {name: stat.kind async for name, stat in fs.scan(ROOT)}

        assert asyncio.run(asyncio.wait_for(look(), 60)) == {"fifo": Kind.FIFO, "sock": Kind.SOCKET}


def test_a_listing_is_never_stale_and_hides_temporaries(tmp_path: HostPath) -> None:
    fs = DiskResource(tmp_path)

    async def names() -> list[str]:
        return sorted([name async for name, _ in fs.scan(ROOT)])

    assert asyncio.run(names()) == []
    (tmp_path / "new").write_text("x")
    (tmp_path / (TEMP_PREFIX + "left-by-a-crash")).write_text("x")
    assert asyncio.run(names()) == ["new"]
    (tmp_path / "new").unlink()
    assert asyncio.run(names()) == []


def test_a_failed_write_leaves_no_temporary(tmp_path: HostPath) -> None:
    fs = DiskResource(tmp_path)

    async def source() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    async def attempt() -> None:
        await fs.write(parse("/f"), source())

    with pytest.raises(ConnectionError):
        asyncio.run(attempt())
    assert os.listdir(tmp_path) == []


def test_a_directory_swapped_for_a_link_cannot_be_raced(tmp_path: HostPath) -> None:
    """The parent is opened once, beneath the root; what happens to its name afterwards changes nothing."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (root / "d").mkdir(parents=True)
    fs = DiskResource(root)

    async def source() -> AsyncIterator[bytes]:
        (root / "d").rename(root / "moved")
        (root / "d").symlink_to(outside)
        yield b"data"

    asyncio.run(fs.write(parse("/d/f"), source(), How.REPLACE))
    assert list(outside.iterdir()) == []
    assert (root / "moved" / "f").read_bytes() == b"data"


def test_small_files_that_are_read_together_stay_in_the_cage(cage: DiskResource, tmp_path: HostPath) -> None:
    (tmp_path / "root" / "large").write_bytes(b"x" * 100_000)
    (tmp_path / "root" / "closed").write_text("closed")
    (tmp_path / "root" / "closed").chmod(0)
    os.mkfifo(tmp_path / "root" / "pipe")
    names = ["inside", "abs", "rel", "good", "deep", "pipe", "large", "nosuch", "../outside", "..", "closed"]
    assert cage.small_now(ROOT, names, 0o400) == [b"mine", *[None] * 10]
    for directory in ("/dir", "/deep/up", "/inside", "/nosuch"):
        with pytest.raises(OSError):
            cage.small_now(parse(directory), ["f"])


def test_a_search_through_a_tree_reads_what_cannot_be_read_together_by_itself(tmp_path: HostPath) -> None:
    (tmp_path / "sub").mkdir()
    for number in range(130):
        (tmp_path / f"f{number:03}").write_text(f"needle {number}\n" if number % 50 == 0 else "hay\n")
    (tmp_path / "large").write_bytes(b"hay\n" * 10_000 + b"needle at the end\n")
    (tmp_path / "sub" / "deep").write_text("needle below\n")
    (tmp_path / "loop").symlink_to("sub")

    async def act() -> None:
        ws = Workspace({"/d": DiskResource(tmp_path)})
        found = await ws.execute("cd /d; grep -r needle | sort; grep -rc needle f000 large sub; grep -Rl needle | sort")
        assert found.text == (
            "f000:needle 0\nf050:needle 50\nf100:needle 100\nlarge:needle at the end\nsub/deep:needle below\n"
            "f000:1\nlarge:1\nsub/deep:1\n"
            "f000\nf050\nf100\nlarge\nloop/deep\nsub/deep\n"
        )
        read = {operation.path: operation.bytes for operation in ws.history.operations() if operation.verb == "read"}
        assert read["/d/f001"] == 4 and read["/d/large"] == 40_018

    asyncio.run(act())
