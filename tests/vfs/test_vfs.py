"""The mount table: links across mounts, open files on local and on remote mounts, devices, refusals."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine
from typing import Any

import pytest

from ramet.backends.local import safe_open as beneath
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.fs import Open
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import Cap, How
from ramet.core.stat import Attrs, Kind
from ramet.layers.emulate import Emulate
from ramet.layers.passthrough import Passthrough
from ramet.layers.readonly import ReadOnly
from ramet.testing import refused
from ramet.vfs.dev import DevResource
from ramet.vfs.open_files import RemoteStream
from ramet.vfs.vfs import VFS

P = parse
WRITE = Open.WRITE | Open.CREATE | Open.TRUNCATE


class Remote(Passthrough):
    """A tree without handles, as services have it."""

    transparent = False

    @property
    def caps(self) -> Cap:
        return Cap.WRITE | Cap.RANGES | Cap.DIRS | Cap.VERSIONS


def tree() -> VFS:
    return VFS(
        {
            ROOT: RAMResource(),
            P("/m"): RAMResource(),
            P("/far"): Emulate(Remote(RAMResource())),
            P("/dev"): DevResource(),
        }
    )


def run(act: Coroutine[Any, Any, None]) -> None:
    asyncio.run(act)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("l/../x", "/m/x"),
        ("/l/../x", "/m/x"),
        ("a/l2/../x", "/x"),
        ("../a/b/../x", "/a/x"),
        ("a/./..//x", "/x"),
        ("m/../x", "/x"),
        ("nope/../x", "/nope/x"),
        ("f/..", "/f/_"),
        ("loop/../x", "/loop/x"),
        ("far/d/../x", "/far/x"),
        ("a/..b", "/a/..b"),
        ("../x", "/x"),
    ],
)
def test_a_way_back_starts_where_a_link_leads(text: str, path: str) -> None:
    async def act() -> None:
        fs = tree()
        for directory in ("/a", "/a/b", "/m/d"):
            await fs.mkdir(P(directory))
        await fs.write(P("/f"), b"")
        for link, target in (("/l", "m/d"), ("/a/l2", "../a/./b/.."), ("/loop", "/loop")):
            await fs.write(P(link), target.encode(), How.LINK)
        assert fs.named(text, ROOT) == path
        assert await fs.resolve(P("/a/l2")) == "/a"

    run(act())


def test_what_is_lacking_is_reported_where_that_is_known_at_once() -> None:
    async def act() -> None:
        fs = tree()
        await fs.write(P("/m/f"), b"")
        await fs.write(P("/l"), b"m", How.LINK)
        told = {
            path: fs.lacks(P(path)) for path in ("/m/f", "/m/no", "/no/way", "/m/f/x", "/l", "/l/no", "/m", "/far/no")
        }
        assert [path for path, lacks in told.items() if lacks] == ["/m/no", "/no/way"], "the others have to be asked"

    run(act())


def test_links_lead_across_mounts() -> None:
    async def act() -> None:
        fs = tree()
        await fs.write(P("/m/f"), b"there")
        await fs.mkdir(P("/m/d"))
        for name, target in (("abs", "/m/f"), ("dir", "m/d"), ("chain", "abs"), ("loop", "loop"), ("gone", "/m/none")):
            await fs.write(ROOT / name, target.encode(), How.LINK)
        assert await ops.read_bytes(fs, P("/chain")) == b"there"
        assert b"".join([b async for b in fs.read(P("/chain"), 1, 3)]) == b"he"
        assert (await fs.stat(P("/chain"))).kind is Kind.LINK
        assert (await fs.stat(P("/chain"), follow=True)).size == 5
        await fs.write(P("/dir/new"), b"n")
        await fs.write(P("/dir/streamed"), ops.one_block(b"s"))
        await fs.mkdir(P("/dir/sub"))
        assert sorted([n async for n, _ in fs.scan(P("/dir"))]) == ["new", "streamed", "sub"] == sorted(
            n for n, _ in await ops.entries(fs, P("/m/d")))  # fmt: skip
        await fs.remove(P("/dir/sub"))
        await fs.write(P("/abs"), b"changed")
        assert await ops.read_bytes(fs, P("/m/f")) == b"changed", "a write goes through the link"
        await fs.write(P("/gone"), ops.one_block(b"made"))
        assert await ops.read_bytes(fs, P("/m/none")) == b"made"
        assert await fs.resolve(P("/chain")) == "/m/f" and await fs.resolve(P("/dir/x"), missing_ok=True) == "/m/d/x"
        await fs.setattr(P("/chain"), Attrs(mode=0o600))
        assert (await fs.stat(P("/m/f"))).mode == 0o600
        for path in ("/loop", "/loop/x"):
            with refused(errno.ELOOP):
                await ops.read_bytes(fs, P(path))
        with refused(errno.ENOENT):
            await fs.resolve(P("/nothing"))
        await fs.remove(P("/abs"))
        assert await ops.exists(fs, P("/m/f")), "removing a link leaves its target"

    run(act())


def test_moving_between_mounts_is_exdev_and_copying_streams() -> None:
    async def act() -> None:
        fs = tree()
        await fs.write(P("/f"), b"x" * 300_000)
        await fs.setattr(P("/f"), Attrs(mode=0o755))
        with refused(errno.EXDEV):
            await fs.rename(P("/f"), P("/m/f"))
        with refused(errno.EXDEV):
            await fs.link(P("/f"), P("/m/f"))
        await fs.copy(P("/f"), P("/m/f"))
        await fs.copy(P("/m/f"), P("/far/f"))
        await fs.copy(P("/far/f"), P("/far/g"))
        assert (await fs.stat(P("/m/f"))).mode == 0o755
        assert await ops.read_bytes(fs, P("/far/g")) == b"x" * 300_000
        await fs.link(P("/f"), P("/hard"))
        assert (await fs.stat(P("/hard"))).nlink == 2
        with refused(errno.EPERM):
            await fs.link(P("/far/f"), P("/far/h"))

    run(act())


def test_what_leads_to_a_mount_is_a_directory_like_any_other() -> None:
    async def act() -> None:
        fs = VFS(
            {
                ROOT: RAMResource(),
                P("/a/b/c"): RAMResource(),
                P("/ro"): ReadOnly(RAMResource()),
                P("/ro/x/y"): RAMResource(),
            }
        )
        await fs.write(P("/a/f"), b"1")
        await fs.mkdir(P("/a/b/d"))
        await fs.write(P("/a/b/s"), ops.one_block(b"2"))
        await (await fs.open(P("/a/b/o"), WRITE)).close()
        await fs.rename(P("/a/f"), P("/a/b/g"))
        await fs.copy(P("/a/b/g"), P("/a/h"))
        await fs.link(P("/a/h"), P("/a/i"))
        assert sorted([n async for n, _ in fs.scan(P("/a/b"))]) == ["c", "d", "g", "o", "s"]
        assert sorted([n async for n, _ in fs.scan(P("/a"))]) == ["b", "h", "i"]
        with refused(errno.EROFS):
            await fs.mkdir(P("/ro/x/new"))

    run(act())


def test_mount_points_are_fixed() -> None:
    async def act() -> None:
        fs = VFS({ROOT: RAMResource(), P("/a/b/c"): RAMResource()})
        assert (await fs.stat(P("/a"))).kind is Kind.DIR and (await fs.stat(P("/a/b/c"))).kind is Kind.DIR
        assert [n async for n, _ in fs.scan(P("/a"))] == ["b"]
        for act_on in (fs.remove(P("/a/b/c")), fs.rename(P("/a"), P("/x")), fs.remove(P("/a"))):
            with refused(errno.EBUSY):
                await act_on
        with refused(errno.EISDIR):
            await fs.write(P("/a"), b"")
        with refused(errno.EISDIR):
            await ops.read_bytes(fs, P("/a"))
        with refused(errno.EEXIST):
            await fs.mkdir(P("/a/b/c"))
        with refused(errno.EBUSY):
            fs.mount(P("/a/b/c"), RAMResource())
        assert fs.mount_of(P("/a/b/c/d")) == "/a/b/c" and fs.mount_of(P("/a/x")) == "/"
        fs.replace(P("/a/b/c"), ReadOnly(RAMResource()))
        with refused(errno.EROFS):
            await fs.write(P("/a/b/c/f"), b"")
        with refused(errno.EROFS):
            await fs.open(P("/a/b/c/f"), WRITE)
        fs.unmount(P("/a/b/c"))
        assert not await ops.exists(fs, P("/a"))
        for wrong in (ROOT, P("/nowhere")):
            with refused(errno.EBUSY, errno.EINVAL):
                fs.unmount(wrong)
        with refused(errno.EINVAL):
            fs.replace(P("/nowhere"), RAMResource())
        with refused(errno.ENOENT):
            await VFS({}).stat(P("/x"))

    run(act())


@pytest.mark.parametrize("top", ["/", "/far"])
def test_open_files_share_what_is_true(top: str) -> None:
    """A local and a remote mount behave alike: what one descriptor wrote, everyone reads."""

    async def act() -> None:
        fs = tree()
        path = Path(P(top) / "f")
        out = await fs.open(path, WRITE)
        out.write(b"one\n")
        out.write(b"two\n")
        assert await ops.read_bytes(fs, path) == b"one\ntwo\n"
        assert (await fs.stat(path)).size == 8 and (await out.stat()).size == 8
        out.write(b"three\n")
        reader = await fs.open(path)
        assert await reader.readline() == b"one\n" and reader.tell() == 4
        reader.seek(8)
        assert await reader.read_all() == b"three\n"
        await out.close()
        with refused(errno.EBADF):
            reader.write(b"x")
        await reader.close()
        both = await fs.open(path, Open.READ | Open.WRITE)
        assert await both.readline() == b"one\n"
        both.write(b"TWO\n")
        assert await both.read_all() == b"three\n"
        await both.truncate(8)
        await both.close()
        more = await fs.open(path, Open.WRITE | Open.APPEND | Open.CREATE)
        more.write(b"end\n")
        await more.close()
        assert await ops.read_bytes(fs, path) == b"one\nTWO\nend\n"
        with refused(errno.EBADF):
            await (await fs.open(path, WRITE)).read()

    run(act())


def test_a_remote_stream_gathers_and_is_flushed_before_anyone_looks() -> None:
    async def act() -> None:
        fs = tree()
        stream = await fs.open(P("/far/f"), WRITE)
        assert isinstance(stream, RemoteStream)
        stream.write(b"")
        stream.write(b"x" * (5 << 20))
        assert stream.full
        await stream.drain()
        assert not stream.full
        stream.write(b"tail")
        with refused(errno.ESPIPE):
            stream.seek(0)
        assert [n async for n, _ in fs.scan(P("/far"))] == ["f"]
        await fs.rename(P("/far/f"), P("/far/g"))
        assert (await fs.stat(P("/far/g"))).size == (5 << 20) + 4
        await stream.close()
        await fs.close()

    run(act())


def test_how_files_are_opened() -> None:
    async def act() -> None:
        fs = tree()
        await fs.mkdir(P("/d"))
        await fs.write(P("/dangling"), b"/d/made", How.LINK)
        with refused(errno.ENOENT):
            await fs.open(P("/none"))
        with refused(errno.EISDIR):
            await fs.open(P("/d"))
        with refused(errno.ENOENT):
            await fs.open(P("/no/dir"), WRITE)
        await (await fs.open(P("/dangling"), WRITE)).close()
        assert await ops.exists(fs, P("/d/made"))
        with refused(errno.EEXIST):
            await fs.open(P("/d/made"), WRITE | Open.EXCLUSIVE)
        with refused(errno.EEXIST):
            await fs.open(P("/dangling"), WRITE | Open.EXCLUSIVE)
        with refused(errno.ENOTDIR):
            await fs.open(P("/d/made/x"), WRITE)

    run(act())


def test_devices() -> None:
    async def act() -> None:
        fs = tree()
        null = await fs.open(P("/dev/null"), WRITE)
        null.write(b"gone")
        assert await null.read() == b"" and null.tell() == 0
        zero = await fs.open(P("/dev/zero"))
        assert await zero.read(5) == bytes(5)
        assert len(await (await fs.open(P("/dev/urandom"))).read(9)) == 9
        full = await fs.open(P("/dev/full"), Open.WRITE)
        with refused(errno.ENOSPC):
            full.write(b"x")
        with refused(errno.EINVAL):
            await full.truncate(0)
        assert (await full.stat()).kind is Kind.DEVICE
        assert b"".join([b async for b in fs.read(P("/dev/zero"), 0, 100_000)]) == bytes(100_000)
        assert await ops.read_bytes(fs, P("/dev/null")) == b""
        await fs.write(P("/dev/null"), ops.one_block(b"x"))
        with refused(errno.ENOSPC):
            await fs.write(P("/dev/full"), b"x")
        names = {n: s.kind async for n, s in fs.scan(P("/dev"))}
        assert names["null"] is Kind.DEVICE and names["stdin"] is Kind.LINK and names["fd"] is Kind.DIR
        assert (await fs.stat(P("/dev/fd/3"))).kind is Kind.FIFO
        for refusal in (fs.mkdir(P("/dev/x")), fs.remove(P("/dev/null")), fs.rename(P("/dev/null"), P("/dev/n")),
                        fs.setattr(P("/dev/null"), Attrs(mode=0)), fs.write(P("/dev/null"), b"", How.CREATE),
                        fs.write(P("/dev/new"), b"")):  # fmt: skip
            with refused(errno.EACCES, errno.EPERM, errno.EEXIST):
                await refusal
        with refused(errno.ENOENT):
            await fs.stat(P("/dev/none"))
        with refused(errno.ENOTDIR):
            await ops.scan_sorted(fs, P("/dev/null"))

    run(act())


def test_the_walk_without_openat2_is_as_tight(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels without openat2 get the same confinement, one component at a time."""
    monkeypatch.setattr(beneath, "_open", beneath._walk)

    async def act() -> None:
        (tmp_path / "out").write_text("secret")
        (tmp_path / "root" / "d").mkdir(parents=True)
        (tmp_path / "root" / "d" / "f").write_text("inside")
        (tmp_path / "root" / "l").symlink_to("d")
        (tmp_path / "root" / "up").symlink_to("../out")
        disk = DiskResource(tmp_path / "root", create=True)
        assert await ops.read_bytes(disk, P("/d/f")) == b"inside"
        for path in ("/l/f", "/up"):
            with refused(errno.ELOOP):
                await ops.read_bytes(disk, P(path))
        with refused(errno.ENOTDIR):
            await ops.read_bytes(disk, P("/d/f/x"))
        assert await ops.read_bytes(VFS({ROOT: disk}), P("/l/f")) == b"inside"

    run(act())


@pytest.mark.parametrize("kind", ["ram", "disk"])
def test_a_link_has_a_separate_time(kind: str, tmp_path: Any) -> None:
    async def act() -> None:
        resource = RAMResource() if kind == "ram" else DiskResource(tmp_path)
        fs = VFS({ROOT: resource})
        await fs.write(P("/f"), b"x")
        await fs.write(P("/l"), b"f", How.LINK)
        await fs.setattr(P("/f"), Attrs(mtime_ns=5))
        twin = resource.fork() if isinstance(resource, RAMResource) else None
        before = await fs.stat(P("/l"))
        await fs.setattr(P("/l"), Attrs(mtime_ns=7, follow=False))
        after = await fs.stat(P("/l"))
        assert (after.mtime_ns, after.target, after.inode) == (7, "f", before.inode)
        assert (await fs.stat(P("/f"))).mtime_ns == 5
        if twin is not None:
            assert twin.stat_now(P("/l")) == before, "a fork keeps what it had"
        await fs.setattr(P("/f"), Attrs(mtime_ns=9, follow=False))
        assert (await fs.stat(P("/f"))).mtime_ns == 9, "what is no link is changed all the same"

    asyncio.run(act())


def test_a_mount_without_times_for_links_says_so() -> None:
    class Far(Passthrough):
        transparent = False

        @property
        def caps(self) -> Cap:
            return self.inner.caps & ~Cap.LOCAL

    async def act() -> None:
        fs = VFS({ROOT: Far(RAMResource())})
        await fs.write(P("/l"), b"f", How.LINK)
        with refused(errno.ENOTSUP):
            await fs.setattr(P("/l"), Attrs(mtime_ns=7, follow=False))

    asyncio.run(act())
