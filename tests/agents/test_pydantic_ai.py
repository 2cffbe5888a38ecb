"""The Pydantic AI backend passes the suite that Pydantic AI ships, in memory and on a store, and is durable there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.workspaces")

from pydantic_ai import RunContext
from pydantic_ai.workspaces import Workspace as PydanticWorkspace
from pydantic_ai.workspaces import WorkspaceOutputLimitError, WorkspaceRef, WorkspaceUnavailableError
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from ramet import Limits, Store, Workspace
from ramet.agents.pydantic_ai import RametWorkspace, RametWorkspaceBackend


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # a workspace is made of asyncio: there is no Trio to test


async def destroy(backend: Any) -> None:
    await backend.destroy()


class TestInMemory(WorkspaceBackendSuite):
    @pytest.fixture
    def backend(self) -> RametWorkspaceBackend:
        return RametWorkspaceBackend()

    @pytest.fixture
    def fresh_backend(self) -> Callable[[], RametWorkspaceBackend]:
        return RametWorkspaceBackend

    @pytest.fixture
    def attach_backend(self) -> Callable[[WorkspaceRef], RametWorkspaceBackend]:
        return RametWorkspaceBackend

    @pytest.fixture
    def destroy_environment(self) -> Callable[[Any], Awaitable[None]]:
        return destroy


class TestStored(WorkspaceBackendSuite):
    @pytest.fixture
    async def backend(self, tmp_path: Path) -> Any:
        backend = RametWorkspaceBackend(store=str(tmp_path / "store"))
        yield backend
        await backend.release()

    @pytest.fixture
    def fresh_backend(self, tmp_path: Path) -> Callable[[], RametWorkspaceBackend]:
        return lambda: RametWorkspaceBackend(store=str(tmp_path / "store"))

    @pytest.fixture
    def attach_backend(self, tmp_path: Path) -> Callable[[WorkspaceRef], RametWorkspaceBackend]:
        return lambda ref: RametWorkspaceBackend(ref, store=str(tmp_path / "store"))

    @pytest.fixture
    def destroy_environment(self) -> Callable[[Any], Awaitable[None]]:
        return destroy


def act(work: Any) -> Any:
    return asyncio.run(work)


def test_what_was_acknowledged_is_in_the_store(tmp_path: Path) -> None:
    where = str(tmp_path / "store")

    async def first() -> WorkspaceRef:
        backend = RametWorkspaceBackend(store=where, name="proj")
        await backend.run("echo one > a; mkdir sub", shell=True)
        await backend.write_bytes("/workspace/sub/b", b"two\n")
        assert backend.ref is not None
        return backend.ref  # nobody closes it: what was answered must be there all the same

    ref = act(first())
    assert ref == WorkspaceRef(provider="ramet", id="proj")
    log = Store(where)["proj"].log()
    assert [revision.message for revision in log][:2] == ["write /workspace/sub/b", "echo one > a; mkdir sub"]

    async def second() -> str:
        backend = RametWorkspaceBackend(ref, store=where)
        found = await backend.run(["cat", "a", "sub/b"])
        await backend.release()
        return str(found.stdout)

    assert act(second()) == "one\ntwo\n"


def test_a_workspace_of_your_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with Workspace({}, limits=Limits(output_bytes=1000)) as ws:
            backend = RametWorkspaceBackend(workspace=ws, working_dir="/")
            assert (await PydanticWorkspace(backend).run("echo $GREETING", shell=True, env={"GREETING": "hi"})).stdout
            await backend.write_bytes("/a/b", b"x")
            assert (await ws.execute("cat /a/b")).text == "x"
            with pytest.raises(WorkspaceOutputLimitError, match="output"):
                await backend.run(["seq", "10000"])
            assert [session.session_id for session in ws.list_sessions()] == ["default"]

    act(work())


def test_the_operations_of_an_agent_run_side_by_side() -> None:
    async def work() -> None:
        backend = RametWorkspaceBackend()
        script = "echo > me-$1; while [ ! -e me-$2 ]; do sleep 0.001; done"
        runs = [backend.run(["sh", "-c", script, "sh", str(n), str(1 - n)], timeout=20) for n in range(2)]
        assert [result.exit_code for result in await asyncio.gather(*runs)] == [0, 0]

    act(work())


@pytest.mark.parametrize(
    "wrong",
    [
        {"ref": WorkspaceRef(provider="local", id="/")},
        {"name": "proj"},
        {"workspace": Workspace({}), "store": "memory:"},
    ],
    ids=["another provider", "a name without a store", "two places"],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RametWorkspaceBackend(**wrong)


def test_a_ref_of_nothing(tmp_path: Path) -> None:
    for store in (None, str(tmp_path)):
        with pytest.raises(WorkspaceUnavailableError):
            act(RametWorkspaceBackend(WorkspaceRef(provider="ramet", id="none"), store=store).working_dir())


def test_a_ref_continues_where_a_run_ended(tmp_path: Path) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.test import TestModel

    async def count(ctx: Any) -> str:
        return str((await ctx.workspace.run("echo x >> f; wc -l < f", shell=True)).stdout)

    count.__annotations__["ctx"] = RunContext[None]

    async def work() -> None:
        capability = RametWorkspace(store=str(tmp_path))
        agent = Agent(TestModel(call_tools=["count"]), tools=[count], capabilities=[capability])
        first = await agent.run("count")
        again = await agent.run("count", workspace=first.workspace.ref)
        other = await agent.run("count")
        assert [run.output for run in (first, again, other)] == [f'{{"count":"{n}\\n"}}' for n in (1, 2, 1)]
        assert capability.get_workspace(None, ref=WorkspaceRef(provider="local", id="/")) is None
        for run in (first, other):
            await RametWorkspaceBackend(run.workspace.ref, store=str(tmp_path)).release()

    act(work())
