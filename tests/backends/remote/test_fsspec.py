"""FsspecResource keeps the contract of a resource on filesystems of every kind that fsspec has."""

from __future__ import annotations

import asyncio
import errno
import uuid
import zipfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec")

from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from ramet import MountMode, RAMResource, Workspace
from ramet.agents.fsspec import RametFileSystem
from ramet.backends.remote.fsspec import FsspecResource
from ramet.core import ops
from ramet.core.paths import parse
from ramet.core.resource import Resource
from ramet.layers.emulate import Emulate
from ramet.testing import CHECKS, Check, run_check

P = parse


class Forgetful(MemoryFileSystem):  # type: ignore[misc]
    """Directories that are only prefixes, as in an object store."""

    cachable = False
    store: dict[str, Any] = {}  # noqa: RUF012 - as in the class above
    pseudo_dirs = [""]  # noqa: RUF012

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Nothing is made before there is a file."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing is made before there is a file."""

    def rm_file(self, path: str) -> None:
        del self.store[self._strip_protocol(path)]


def local(tmp_path: Path) -> Resource:
    return FsspecResource(LocalFileSystem(), str(tmp_path))


def memory(tmp_path: Path) -> Resource:
    return FsspecResource(f"memory://{uuid.uuid4().hex}")


def prefixes(tmp_path: Path) -> Resource:
    return FsspecResource(Forgetful(), f"/{uuid.uuid4().hex}")


def within(tmp_path: Path) -> Resource:
    return FsspecResource(DirFileSystem(str(tmp_path), LocalFileSystem()))


def asynchronous(tmp_path: Path) -> Resource:
    return FsspecResource(RametFileSystem(workspace=Workspace({"/in": RAMResource()})), "/in")


def emulated(tmp_path: Path) -> Resource:
    return Emulate(prefixes(tmp_path))


KINDS = [local, memory, prefixes, within, asynchronous, emulated]


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, make: Callable[[Path], Resource], tmp_path: Path) -> None:
    run_check(check, lambda: make(tmp_path), pytest.skip)


def act(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize("make", [local, memory, prefixes], ids=lambda make: make.__name__)
def test_a_workspace_works_on_it(make: Callable[[Path], Resource], tmp_path: Path) -> None:
    async def work() -> None:
        async with Workspace({"/m": make(tmp_path)}) as ws:
            script = "cd /m; mkdir -p a/b; seq 1000 > a/b/n; mv a/b/n a/n; echo end >> a/n; sed -i 1s/1/one/ a/n"
            assert (await ws.execute(script)).check()
            look = await ws.execute(
                "cd /m; head -1 a/n; tail -1 a/n; find . | sort; cp -r a c; rm -r a; ls; wc -c < c/n"
            )
            assert look.text == "one\nend\n.\n./a\n./a/b\n./a/n\nc\n3899\n"

    act(work())


def test_an_archive_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("d/f.txt", "in the archive\n")

    async def work() -> None:
        mounted = FsspecResource(f"zip://::{tmp_path}/z.zip", writable=False)
        async with Workspace({"/z": (mounted, MountMode.READ)}) as ws:
            found = await ws.execute("cat /z/d/f.txt; ls -R /z; echo x > /z/new")
            assert found.text == "in the archive\n/z:\nd\n\n/z/d:\nf.txt\n"
            assert b"Read-only file system" in found.stderr

    act(work())


def test_links_do_not_lead_out(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("x")
    (inside / "link").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret")

    async def work() -> None:
        tree = FsspecResource(LocalFileSystem(), str(inside))
        assert (await tree.stat(P("/link"))).target == str(outside)
        for attempt in (
            lambda: tree.stat(P("/link/secret")),
            lambda: ops.read_bytes(tree, P("/link/secret")),
            lambda: ops.read_bytes(tree, P("/file")),
            lambda: tree.write(P("/link/new"), b""),
            lambda: tree.write(P("/file"), b""),
            lambda: tree.mkdir(P("/link/new")),
        ):
            with pytest.raises(OSError) as raised:
                await attempt()
            assert raised.value.errno == errno.ELOOP
        await tree.close()

    act(work())
    assert (outside / "secret").read_text() == "x" and not (outside / "new").exists()


class Failing(MemoryFileSystem):  # type: ignore[misc]
    cachable = False

    def info(self, path: str, **_: Any) -> Any:
        raise RuntimeError("https://host/?signature=secret")


def test_what_a_client_says_is_not_passed_on() -> None:
    async def work() -> None:
        with pytest.raises(OSError, match=r"the filesystem failed \(RuntimeError\)") as raised:
            await FsspecResource(Failing(), "/x").stat(P("/f"))
        assert raised.value.errno == errno.EIO and "secret" not in str(raised.value)

    act(work())


def test_what_a_snapshot_says() -> None:
    said = FsspecResource("memory://box/dir").describe()
    assert (said.type, said.config, said.needs_override) == ("fsspec", {"protocol": "memory", "root": "/box/dir"}, True)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(TypeError):
        FsspecResource(MemoryFileSystem(), token="x")
    with pytest.raises(ValueError):
        FsspecResource(AsyncFileSystemWrapper(MemoryFileSystem(), asynchronous=True))


def test_a_workspace_in_a_workspace() -> None:
    async def work() -> None:
        inner = Workspace({"/": RAMResource()})
        async with Workspace({"/in": FsspecResource(RametFileSystem(workspace=inner))}) as ws:
            assert (await ws.execute("echo hi > /in/f; cat /in/f")).text == "hi\n"

    act(work())
