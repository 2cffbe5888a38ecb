"""Who wrote which line, when programs of the machine write next to commands in process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.workspace.native.conftest import SECONDS, need_writable

from ramet.backends.local.disk import DiskResource
from ramet.native.options import Native
from ramet.native.runtime import LOOKED
from ramet.workspace.stored.store import Store
from ramet.workspace.stored.workspace import StoredWorkspace

Steps = Callable[[StoredWorkspace], Coroutine[Any, Any, None]]


def append(path: str, line: str) -> str:
    return f"perl -e 'open F, q(>>{path}); print F qq({line}\\n)'"


async def run(ws: StoredWorkspace, agent: str, text: str) -> None:
    done = await ws.execute(text, agent_id=agent, timeout=SECONDS)
    assert (done.exit_code, done.stderr) == (0, b""), done


class Bench:
    """A workspace with a tree and a directory of the host, and the writers of a file in it."""

    def __init__(self, native: Native, folder: Path) -> None:
        self.native, self.folder = native, folder
        self.store = Store(folder / "store")
        self.store.create("app")

    def do(self, steps: Steps) -> None:
        async def run() -> None:
            disk = DiskResource(self.folder / "work", create=True)
            async with self.store.open("app", native=self.native, commit="never", mounts={"/work": disk}) as ws:
                await steps(ws)
                await ws.commit("the end")

        asyncio.run(run())

    def host_writes(self) -> None:
        with open(self.folder / "work" / "f", "a") as file:
            file.write("host\n")

    def writers(self, path: str) -> list[str]:
        """Return each line with its writer; `?` for an unknown one."""
        return [
            f"{line.text.decode().strip()} {line.writer.agent_id if line.writer else '?'}"
            for line in self.store["app"].blame(path)
        ]


@pytest.fixture
def bench(native: Native, tmp_path: Path) -> Bench:
    need_writable(str(tmp_path))
    return Bench(native, tmp_path)


@pytest.fixture(params=["/f", "/work/f"])
def path(request: pytest.FixtureRequest) -> str:
    """A file of a kernel tree, and one of a directory of the host."""
    return str(request.param)


def test_programs_and_commands_take_turns_in_one_revision(bench: Bench, path: str) -> None:
    async def steps(ws: StoredWorkspace) -> None:
        await run(ws, "zero", f"printf '1\\n2\\n' > {path}")
        await ws.commit("before")
        await run(ws, "one", append(path, "a"))
        await run(ws, "two", f"echo b >> {path}")
        await run(ws, "three", append(path, "c"))
        await run(ws, "four", f"echo d >> {path}; {append(path, 'e')}")
        await run(ws, "five", f"perl -i -pe 's/^2$/TWO/' {path}")

    bench.do(steps)
    assert bench.writers(path) == ["1 zero", "TWO five", "a one", "b two", "c three", "d four", "e four"]


def test_files_that_a_program_makes(bench: Bench, path: str) -> None:
    async def steps(ws: StoredWorkspace) -> None:
        await run(ws, "one", append(path, "a"))
        await run(ws, "two", append(path, "b"))
        await run(ws, "three", f"rm {path}; {append(path, 'c')}")
        await run(ws, "four", append(path, "d"))

    bench.do(steps)
    assert bench.writers(path) == ["c three", "d four"]


def test_revisions_of_one_open_workspace(bench: Bench, path: str) -> None:
    async def steps(ws: StoredWorkspace) -> None:
        for agent in ("one", "two", "three"):
            await run(ws, agent, append(path, agent))
            await run(ws, f"also {agent}", f"echo too >> {path}")
            await ws.commit(agent)

    bench.do(steps)
    assert bench.writers(path) == [
        "one one", "too also one", "two two", "too also two", "three three", "too also three",
    ]  # fmt: skip


def test_what_the_host_changes_between_two_programs_is_unknown(bench: Bench) -> None:
    async def steps(ws: StoredWorkspace) -> None:
        await run(ws, "one", append("/work/f", "a"))
        await run(ws, "one", append("/work/g", "a"))
        bench.host_writes()
        await run(ws, "two", append("/work/f", "b"))
        await run(ws, "two", append("/work/g", "b"))

    bench.do(steps)
    assert bench.writers("/work/f") == ["a ?", "host ?", "b ?"]
    assert bench.writers("/work/g") == ["a one", "b two"]


def test_what_the_host_changed_before_the_first_program_is_unknown(bench: Bench) -> None:
    async def make(ws: StoredWorkspace) -> None:
        await run(ws, "one", append("/work/f", "a"))

    async def add(ws: StoredWorkspace) -> None:
        await run(ws, "two", append("/work/f", "b"))

    bench.do(make)
    bench.host_writes()
    bench.do(add)
    assert bench.writers("/work/f") == ["a one", "host ?", "b ?"]


def test_a_large_directory_of_the_host_is_not_looked_at(bench: Bench) -> None:
    for number in range(LOOKED + 1):
        (bench.folder / "work").mkdir(exist_ok=True)
        (bench.folder / "work" / str(number)).touch()

    async def steps(ws: StoredWorkspace) -> None:
        await run(ws, "one", append("/work/f", "a"))
        assert [record.paths_written for record in ws.history][-1] == ()

    bench.do(steps)
    assert bench.writers("/work/f") == ["a ?"]
