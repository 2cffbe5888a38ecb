"""The fsspec filesystem passes fsspec's own suites over a live workspace, and reads revisions by URL."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path as LocalPath
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

from fsspec.tests.abstract import (  # noqa: E402
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

from ramet import DiskResource, Store, Workspace  # noqa: E402
from ramet.agents.fsspec import RametFileSystem  # noqa: E402


class Fixtures(AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture(params=["memory", "disk"])
    def fs(self, request: pytest.FixtureRequest, tmp_path: LocalPath) -> RametFileSystem:
        disk = {"/data": DiskResource(tmp_path)} if request.param == "disk" else {}
        return RametFileSystem(workspace=Workspace(disk))

    @pytest.fixture
    def fs_path(self) -> str:
        return "/data"

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        return lambda *parts: "/".join(parts)


class TestCopy(Fixtures, AbstractCopyTests):  # type: ignore[misc]
    pass


class TestGet(Fixtures, AbstractGetTests):  # type: ignore[misc]
    pass


class TestPut(Fixtures, AbstractPutTests):  # type: ignore[misc]
    pass


class TestOpen(Fixtures, AbstractOpenTests):  # type: ignore[misc]
    pass


class TestPipe(Fixtures, AbstractPipeTests):  # type: ignore[misc]
    pass


@pytest.fixture
def stored(tmp_path: LocalPath) -> dict[str, Any]:
    async def act() -> None:
        store = Store(str(tmp_path / "store"))
        store.create("proj")
        async with store.open("proj") as ws:
            await ws.execute("mkdir /data; printf 'a,b\\n1,2\\n3,4\\n' > /data/t.csv; seq 200000 > /data/big")
            await ws.commit("one")
            await ws.execute("printf 'a,b\\n9,9\\n' > /data/t.csv")

    asyncio.run(act())
    return {"store": str(tmp_path / "store")}


def test_a_revision_is_read_by_its_url(stored: dict[str, Any]) -> None:
    with fsspec.open("ramet://proj@1/data/t.csv", "rt", **stored) as file:
        assert file.read() == "a,b\n1,2\n3,4\n"
    with fsspec.open("ramet://proj/data/t.csv", "rt", **stored) as file:
        assert file.read() == "a,b\n9,9\n"
    fs = fsspec.filesystem("ramet", name="proj", revision="1", **stored)
    assert fs.ls("/data", detail=False) == ["/data/big", "/data/t.csv"]
    assert fs.find("/") == ["/data/big", "/data/t.csv"] and fs.glob("/*/*.csv") == ["/data/t.csv"]
    assert fs.cat_file("/data/big", -7, -1) == b"200000" and fs.unstrip_protocol("/x") == "ramet://proj@1/x"
    with fs.open("/data/big") as file:
        file.seek(1_000_000)
        assert file.read(20) == b"".join(b"%d\n" % n for n in range(1, 200_001))[1_000_000:1_000_020]


def test_paths_of_universal_pathlib(stored: dict[str, Any]) -> None:
    kind: Any = pytest.importorskip("upath").UPath
    top = kind("ramet://proj@1/data", **stored)
    assert sorted(path.name for path in top.iterdir()) == ["big", "t.csv"]
    assert (top / "t.csv").read_text().startswith("a,b") and not (top / "none").exists()


def test_a_revision_cannot_be_changed(stored: dict[str, Any]) -> None:
    fs = fsspec.filesystem("ramet", name="proj", **stored)
    acts: list[Callable[[], object]] = [
        lambda: fs.pipe_file("/x", b""), lambda: fs.rm("/data/t.csv"), lambda: fs.open("/x", "wb"),
    ]  # fmt: skip
    for act in acts:
        with pytest.raises(OSError, match="Read-only"):
            act()


def test_appending_and_failing_writes() -> None:
    fs = RametFileSystem(workspace=Workspace())
    with fs.open("/log", "ab") as file:
        file.write(b"one\n")
    with fs.open("/log", "ab") as file:
        file.write(b"two\n")
    assert fs.cat_file("/log") == b"one\ntwo\n"
    big = b"x" * 20_000_000
    with fs.open("/big", "wb") as file:
        file.write(big)
    assert fs.size("/big") == len(big) and fs.cat_file("/big") == big


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "duckdb"])
def test_data_libraries_read_a_revision(library: str, stored: dict[str, Any]) -> None:
    pytest.importorskip(library)
    fs = fsspec.filesystem("ramet", name="proj", revision="1", **stored)
    if library == "pandas":
        import pandas

        frame = pandas.read_csv("ramet://proj@1/data/t.csv", storage_options=stored)
        assert frame["a"].tolist() == [1, 3]
    elif library == "pyarrow":
        from pyarrow import csv
        from pyarrow.fs import FSSpecHandler, PyFileSystem

        with PyFileSystem(FSSpecHandler(fs)).open_input_stream("/data/t.csv") as source:
            assert csv.read_csv(source).column("b").to_pylist() == [2, 4]
    else:
        import duckdb

        connection = duckdb.connect()
        connection.register_filesystem(fs)
        assert connection.sql("select sum(a) from read_csv('ramet:///data/t.csv')").fetchall() == [(4,)]


def test_a_directory_is_removed_without_await() -> None:
    fs = RametFileSystem(workspace=Workspace({}))
    fs.makedirs("/a/b")
    with pytest.raises(OSError):
        fs.rmdir("/a")
    fs.rmdir("/a/b")
    assert fs.ls("/a") == []
