"""The Resource conformance suite: what every resource promises, selected by what it can do.

A check gets an empty, writable resource and raises AssertionError when a promise is broken. It needs the standard
library only.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ramet.core import ops
from ramet.core.paths import ROOT, Path, decode, parse
from ramet.core.resource import Cap, HardLinks, How, Openable, Resource, extension
from ramet.core.stat import Attrs, Kind

Body = Callable[[Resource], Awaitable[None]]


@dataclass(frozen=True)
class Check:
    """One promise: its name, what the resource must be able to do for it to apply, and the check itself."""

    name: str
    needs: Cap
    body: Body


def run_check(check: Check, make: Callable[[], Resource], skip: Callable[[str], None] | None = None) -> None:
    """Run one check on a fresh resource; call `skip` (for instance `pytest.skip`) if it does not apply."""

    async def act() -> bool:
        resource = make()
        try:
            if check.needs not in resource.caps:
                return False
            await asyncio.wait_for(check.body(resource), 30)
            return True
        finally:
            await resource.close()

    if not asyncio.run(act()) and skip is not None:
        skip(f"the resource does not claim {check.needs}")


CHECKS: list[Check] = []


def _check(needs: Cap = Cap.WRITE) -> Callable[[Body], Body]:
    def note(body: Body) -> Body:
        CHECKS.append(Check(body.__name__, needs | Cap.WRITE, body))
        return body

    return note


@contextmanager
def refused(*numbers: int) -> Iterator[None]:
    """The block must fail with one of these errnos."""
    try:
        yield
    except OSError as error:
        names = [errno.errorcode[n] for n in numbers]
        assert error.errno in numbers, f"expected {names}, got {errno.errorcode.get(error.errno or 0)}: {error}"
    else:
        raise AssertionError(f"expected {[errno.errorcode[n] for n in numbers]}, but it succeeded")


async def stream(*blocks: bytes) -> AsyncIterator[bytes]:
    for block in blocks:
        await asyncio.sleep(0)
        yield block


async def broken(*blocks: bytes) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block
    raise ConnectionError("the source failed")


async def names(fs: Resource, path: Path = ROOT) -> list[str]:
    return sorted([name async for name, _ in fs.scan(path)])


P = parse

# ------------------------------------------------------------------------------------------------- reading, writing


@_check()
async def the_root_is_a_directory(fs: Resource) -> None:
    assert (await fs.stat(ROOT)).kind is Kind.DIR
    assert await names(fs) == []


@_check()
async def what_is_written_is_read(fs: Resource) -> None:
    for data in (b"", b"x", b"line\n", bytes(range(256)) * 700, b"\0" * 70_000):
        stat = await fs.write(P("/f"), data)
        assert await ops.read_bytes(fs, P("/f")) == data
        assert stat.kind is Kind.FILE and stat.size in (None, len(data))


@_check()
async def a_stream_is_written_whole(fs: Resource) -> None:
    blocks = [bytes([i]) * (i * 1000) for i in range(40)]
    await fs.write(P("/f"), stream(*blocks))
    assert await ops.read_bytes(fs, P("/f")) == b"".join(blocks)


@_check()
async def a_write_whose_source_fails_leaves_the_old_content(fs: Resource) -> None:
    await fs.write(P("/f"), b"old")
    for how in (How.REPLACE,):
        try:
            await fs.write(P("/f"), broken(b"new", b"newer" * 100_000), how)
        except ConnectionError:
            pass
        else:
            raise AssertionError("the failure of the source was swallowed")
        assert await ops.read_bytes(fs, P("/f")) == b"old"
    try:
        await fs.write(P("/g"), broken(b"new"))
    except ConnectionError:
        pass
    assert await names(fs) == ["f"]


@_check()
async def stat_agrees_with_scan_and_read(fs: Resource) -> None:
    await fs.write(P("/a"), b"12345")
    await fs.mkdir(P("/d"))
    found = {name: stat async for name, stat in fs.scan(ROOT)}
    assert sorted(found) == ["a", "d"]
    assert found["a"].kind is Kind.FILE and found["d"].kind is Kind.DIR
    stat = await fs.stat(P("/a"))
    assert stat.kind is Kind.FILE and stat.size in (None, 5)
    assert found["a"].version == stat.version


@_check()
async def ranges_are_exact(fs: Resource) -> None:
    data = bytes(i % 251 for i in range(300_000))
    await fs.write(P("/f"), data)
    for start, stop in ((0, 1), (0, 0), (5, 5), (1, 299_999), (299_999, None), (300_000, None), (400_000, None),
                        (100, 200), (131_072, 262_144), (65_535, 65_537), (10, 10_000_000)):  # fmt: skip
        got = b"".join([block async for block in fs.read(P("/f"), start, stop)])
        assert got == data[start:stop], (start, stop)


@_check()
async def a_reader_may_stop_early(fs: Resource) -> None:
    await fs.write(P("/f"), b"x" * 3_000_000)
    source = fs.read(P("/f"))
    async for block in source:
        assert block
        break
    await source.aclose()  # type: ignore[attr-defined]
    assert len(await ops.read_bytes(fs, P("/f"))) == 3_000_000


@_check()
async def missing_things_are_missing(fs: Resource) -> None:
    await fs.write(P("/f"), b"")
    with refused(errno.ENOENT):
        await fs.stat(P("/no"))
    with refused(errno.ENOENT):
        await ops.read_bytes(fs, P("/no"))
    with refused(errno.ENOENT):
        await names(fs, P("/no"))
    with refused(errno.ENOENT):
        await fs.remove(P("/no"))
    with refused(errno.ENOENT):
        await fs.rename(P("/no"), P("/x"))
    with refused(errno.ENOENT):
        await fs.setattr(P("/no"), Attrs(mode=0o600))


@_check(Cap.DIRS)
async def a_parent_must_exist(fs: Resource) -> None:
    with refused(errno.ENOENT):
        await fs.write(P("/no/f"), b"")
    with refused(errno.ENOENT):
        await fs.mkdir(P("/no/d"))
    assert await names(fs) == []


@_check()
async def a_file_is_not_a_directory(fs: Resource) -> None:
    await fs.write(P("/f"), b"x")
    with refused(errno.ENOTDIR):
        await names(fs, P("/f"))
    with refused(errno.ENOTDIR, errno.ENOENT):
        await fs.stat(P("/f/below"))
    with refused(errno.ENOTDIR, errno.ENOENT):
        await fs.write(P("/f/below"), b"")
    with refused(errno.EEXIST):
        await fs.mkdir(P("/f"))


@_check()
async def a_directory_is_not_a_file(fs: Resource) -> None:
    await fs.mkdir(P("/d"))
    with refused(errno.EISDIR):
        await ops.read_bytes(fs, P("/d"))
    with refused(errno.EISDIR):
        await fs.write(P("/d"), b"x")
    with refused(errno.EISDIR):
        await fs.write(ROOT, b"x")
    with refused(errno.EEXIST):
        await fs.mkdir(P("/d"))
    with refused(errno.EEXIST):
        await fs.mkdir(ROOT)


@_check(Cap.APPEND)
async def append_adds_at_the_end(fs: Resource) -> None:
    await fs.write(P("/f"), b"a", How.APPEND)
    await fs.write(P("/f"), stream(b"b", b"c"), How.APPEND)
    await fs.write(P("/f"), b"d" * 100_000, How.APPEND)
    assert await ops.read_bytes(fs, P("/f")) == b"abc" + b"d" * 100_000


@_check(Cap.PATCH)
async def patch_replaces_a_range(fs: Resource) -> None:
    await fs.write(P("/f"), b"0123456789")
    await fs.write(P("/f"), b"AB", How.PATCH, at=3)
    assert await ops.read_bytes(fs, P("/f")) == b"012AB56789"
    await fs.write(P("/f"), b"XYZ", How.PATCH, at=9)
    assert await ops.read_bytes(fs, P("/f")) == b"012AB5678XYZ"
    await fs.write(P("/f"), b"!", How.PATCH, at=15)
    assert await ops.read_bytes(fs, P("/f")) == b"012AB5678XYZ\0\0\0!"
    with refused(errno.ENOENT):
        await fs.write(P("/no"), b"x", How.PATCH)


@_check(Cap.CREATE)
async def create_happens_once(fs: Resource) -> None:
    await fs.write(P("/f"), b"first", How.CREATE)
    with refused(errno.EEXIST):
        await fs.write(P("/f"), b"second", How.CREATE)
    results = await asyncio.gather(
        *(fs.write(P("/race"), b"%d" % i, How.CREATE) for i in range(20)), return_exceptions=True
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert await ops.read_bytes(fs, P("/f")) == b"first"


@_check(Cap.TRUNCATE)
async def size_can_shrink_and_grow(fs: Resource) -> None:
    await fs.write(P("/f"), b"0123456789")
    await fs.setattr(P("/f"), Attrs(size=4))
    assert await ops.read_bytes(fs, P("/f")) == b"0123"
    await fs.setattr(P("/f"), Attrs(size=8))
    assert await ops.read_bytes(fs, P("/f")) == b"0123\0\0\0\0"


@_check(Cap.VERSIONS)
async def versions_tell_contents_apart(fs: Resource) -> None:
    first = await fs.write(P("/f"), b"one")
    again = await fs.stat(P("/f"))
    assert first.version is not None and again.version == first.version
    second = await fs.write(P("/f"), b"two two")
    assert second.version != first.version
    assert (await fs.stat(P("/f"))).version == second.version


@_check(Cap.VERSIONS | Cap.PRECONDITIONS)
async def a_stale_writer_is_refused(fs: Resource) -> None:
    old = await fs.write(P("/f"), b"one")
    new = await fs.write(P("/f"), b"two two")
    with refused(errno.ESTALE):
        await fs.write(P("/f"), b"late", if_version=old.version)
    assert await ops.read_bytes(fs, P("/f")) == b"two two"
    await fs.write(P("/f"), b"three", if_version=new.version)
    assert await ops.read_bytes(fs, P("/f")) == b"three"


# ------------------------------------------------------------------------------------------------ the tree


@_check()
async def removal(fs: Resource) -> None:
    await fs.mkdir(P("/d"))
    await fs.write(P("/d/f"), b"x")
    with refused(errno.ENOTEMPTY):
        await fs.remove(P("/d"))
    await fs.remove(P("/d/f"))
    assert await names(fs, P("/d")) == []
    await fs.remove(P("/d"))
    assert await names(fs) == []
    with refused(errno.EBUSY, errno.EISDIR, errno.EPERM, errno.EACCES):
        await fs.remove(ROOT)


@_check()
async def an_empty_directory_stays(fs: Resource) -> None:
    await fs.mkdir(P("/a"))
    await fs.mkdir(P("/a/b"))
    assert await names(fs) == ["a"]
    assert await names(fs, P("/a")) == ["b"]
    assert await names(fs, P("/a/b")) == []


@_check(Cap.RENAME)
async def rename_moves_and_replaces(fs: Resource) -> None:
    await fs.write(P("/a"), b"A")
    await fs.write(P("/b"), b"B")
    await fs.rename(P("/a"), P("/c"))
    assert await names(fs) == ["b", "c"]
    await fs.rename(P("/c"), P("/b"))
    assert await names(fs) == ["b"]
    assert await ops.read_bytes(fs, P("/b")) == b"A"
    await fs.rename(P("/b"), P("/b"))
    assert await ops.read_bytes(fs, P("/b")) == b"A"


@_check(Cap.RENAME)
async def rename_of_directories(fs: Resource) -> None:
    await fs.mkdir(P("/d"))
    await fs.mkdir(P("/d/e"))
    await fs.write(P("/d/e/f"), b"deep")
    await fs.write(P("/file"), b"")
    await fs.mkdir(P("/empty"))
    await fs.mkdir(P("/full"))
    await fs.write(P("/full/x"), b"")
    with refused(errno.EINVAL):
        await fs.rename(P("/d"), P("/d/e/inside"))
    with refused(errno.ENOTDIR):
        await fs.rename(P("/d"), P("/file"))
    with refused(errno.EISDIR):
        await fs.rename(P("/file"), P("/empty"))
    with refused(errno.ENOTEMPTY, errno.EEXIST):
        await fs.rename(P("/d"), P("/full"))
    await fs.rename(P("/d"), P("/empty"))
    assert await ops.read_bytes(fs, P("/empty/e/f")) == b"deep"
    assert await names(fs) == ["empty", "file", "full"]


@_check(Cap.COPY)
async def copy_is_independent(fs: Resource) -> None:
    await fs.write(P("/a"), b"content" * 50_000)
    await fs.copy(P("/a"), P("/b"))
    await fs.write(P("/a"), b"changed")
    assert await ops.read_bytes(fs, P("/b")) == b"content" * 50_000
    await fs.copy(P("/a"), P("/b"))
    assert await ops.read_bytes(fs, P("/b")) == b"changed"


@_check()
async def walking_and_copying_trees(fs: Resource) -> None:
    await ops.make_dirs(fs, P("/t/a/b"))
    await fs.write(P("/t/a/b/f"), b"1")
    await fs.write(P("/t/g"), b"2")
    await ops.copy_tree(fs, P("/t"), fs, P("/u"))
    seen = [str(path) async for path, _ in ops.walk(fs, P("/u"))]
    assert seen == ["/u/a", "/u/a/b", "/u/a/b/f", "/u/g"]
    assert await ops.read_bytes(fs, P("/u/a/b/f")) == b"1"
    await ops.remove_tree(fs, P("/u"))
    assert await names(fs) == ["t"]


@_check()
async def names_may_be_strange(fs: Resource) -> None:
    strange = [
        "with space",
        "new\nline",
        "ünïcödé",
        "-dash",
        "*?[",
        "'quote\"",
        "back\\slash",
        ".hidden",
        "..x",
        "a" * 255,
    ]
    for name in strange:
        await fs.write(ROOT / name, name.encode())
    assert await names(fs) == sorted(strange)
    for name in strange:
        assert await ops.read_bytes(fs, ROOT / name) == name.encode()


@_check(Cap.LOCAL)
async def names_may_be_any_bytes(fs: Resource) -> None:
    name = decode(b"\xff\xfe-\x80")
    await fs.write(ROOT / name, b"raw")
    assert await names(fs) == [name]
    assert await ops.read_bytes(fs, ROOT / name) == b"raw"


@_check()
async def many_entries_are_all_listed(fs: Resource) -> None:
    await fs.mkdir(P("/d"))
    for i in range(300):
        await fs.write(P(f"/d/{i:04d}"), b"%d" % i)
    assert await names(fs, P("/d")) == [f"{i:04d}" for i in range(300)]


@_check()
async def concurrent_writers_never_tear_a_file(fs: Resource) -> None:
    contents = [bytes([65 + i]) * 50_000 for i in range(8)]
    await asyncio.gather(*(fs.write(P("/f"), stream(c[:25_000], c[25_000:])) for c in contents))
    assert await ops.read_bytes(fs, P("/f")) in contents


# ----------------------------------------------------------------------------------------- links and attributes


@_check(Cap.LINKS)
async def a_link_is_described_not_followed(fs: Resource) -> None:
    await fs.mkdir(P("/d"))
    await fs.write(P("/d/f"), b"x")
    await fs.write(P("/l"), b"d", How.LINK)
    await fs.write(P("/dangling"), b"/no/where", How.LINK)
    stat = await fs.stat(P("/l"))
    assert stat.kind is Kind.LINK and stat.target == "d"
    assert (await fs.stat(P("/dangling"))).target == "/no/where"
    assert {n: s.target async for n, s in fs.scan(ROOT)} == {"d": None, "l": "d", "dangling": "/no/where"}
    with refused(errno.EEXIST):
        await fs.write(P("/l"), b"other", How.LINK)
    await fs.remove(P("/l"))
    assert await ops.read_bytes(fs, P("/d/f")) == b"x"


@_check(Cap.LINKS)
async def crossing_a_link_is_refused_or_resolved(fs: Resource) -> None:
    """A backend fails with ELOOP and leaves links to the VFS."""
    await fs.mkdir(P("/d"))
    await fs.write(P("/d/f"), b"x")
    await fs.write(P("/l"), b"d", How.LINK)
    try:
        assert (await fs.stat(P("/l/f"))).kind is Kind.FILE
        assert await ops.read_bytes(fs, P("/l/f")) == b"x"
    except OSError as error:
        assert error.errno == errno.ELOOP, error


@_check(Cap.MODES)
async def modes_are_kept(fs: Resource) -> None:
    await fs.write(P("/f"), b"x")
    await fs.mkdir(P("/d"))
    await fs.setattr(P("/f"), Attrs(mode=0o750))
    await fs.setattr(P("/d"), Attrs(mode=0o700))
    assert (await fs.stat(P("/f"))).mode == 0o750
    assert (await fs.stat(P("/d"))).mode == 0o700
    await fs.write(P("/f"), b"new content")
    assert (await fs.stat(P("/f"))).mode == 0o750, "replacing the content keeps the mode"


@_check(Cap.MTIMES)
async def times_are_kept(fs: Resource) -> None:
    await fs.write(P("/f"), b"x")
    await fs.setattr(P("/f"), Attrs(mtime_ns=1_234_567_890_123_456_789))
    kept = (await fs.stat(P("/f"))).mtime_ns
    assert kept in (1_234_567_890_123_456_789, 1_234_567_890_000_000_000), "to the nanosecond, or in whole seconds"
    await fs.write(P("/f"), b"y")
    changed = (await fs.stat(P("/f"))).mtime_ns
    assert changed is not None and changed > 1_234_567_890_123_456_789


@_check(Cap.ATIMES)
async def times_of_access_are_kept_apart(fs: Resource) -> None:
    second = 10**9
    used, changed = 1_000_000_000 * second, 1_200_000_000 * second
    await fs.write(P("/f"), b"x")
    await fs.mkdir(P("/d"))
    for path in (P("/f"), P("/d")):
        await fs.setattr(path, Attrs(mtime_ns=changed, atime_ns=changed))
        await fs.setattr(path, Attrs(atime_ns=used))
        assert (await fs.stat(path)).accessed_ns == used
        assert (await fs.stat(path)).mtime_ns == changed, "setting one time leaves the other"
        await fs.setattr(path, Attrs(mtime_ns=changed + second))
        assert (await fs.stat(path)).accessed_ns == used
    found = {name: stat async for name, stat in fs.scan(ROOT)}
    assert found["f"].accessed_ns == found["d"].accessed_ns == used
    assert await ops.read_bytes(fs, P("/f")) == b"x"


@_check(Cap.HARDLINKS)
async def hard_links_are_one_file(fs: Resource) -> None:
    power = extension(fs, HardLinks)  # type: ignore[type-abstract]
    assert power is not None
    await fs.write(P("/a"), b"1")
    await power.link(P("/a"), P("/b"))
    await fs.write(P("/b"), b"2", How.APPEND)
    assert await ops.read_bytes(fs, P("/a")) == b"12"
    await fs.write(P("/a"), b"replaced")
    assert await ops.read_bytes(fs, P("/b")) == b"replaced"
    a, b = await fs.stat(P("/a")), await fs.stat(P("/b"))
    assert a.inode == b.inode and a.nlink == b.nlink == 2
    await fs.remove(P("/a"))
    assert await ops.read_bytes(fs, P("/b")) == b"replaced"
    assert (await fs.stat(P("/b"))).nlink == 1
    await fs.mkdir(P("/d"))
    with refused(errno.EPERM):
        await power.link(P("/d"), P("/e"))
    with refused(errno.EEXIST):
        await power.link(P("/b"), P("/d"))


@_check(Cap.LOCAL)
async def handles_survive_rename_and_removal(fs: Resource) -> None:
    openable = extension(fs, Openable)  # type: ignore[type-abstract]
    if openable is None:
        return
    await fs.write(P("/f"), b"0123456789")
    handle = openable.open(P("/f"), write=True)
    assert handle.pread(2, 3) == b"234"
    assert handle.pread(10, 5) == b""
    await fs.rename(P("/f"), P("/g"))
    handle.pwrite(0, b"ab")
    assert await ops.read_bytes(fs, P("/g")) == b"ab23456789"
    handle.pwrite(12, b"!")
    assert await ops.read_bytes(fs, P("/g")) == b"ab23456789\0\0!"
    handle.truncate(2)
    assert handle.stat().size == 2
    await fs.remove(P("/g"))
    handle.pwrite(2, b"c")
    assert handle.pread(0, 10) == b"abc"
    handle.close()
    assert await names(fs) == []
