"""Workspaces that were created native: on at every open, on forks, on servers that allow it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from httpx2 import AsyncClient, Response
from tests.apps.server.harness import serving
from tests.workspace.native.conftest import SECONDS

from ramet.core.errors import RametError
from ramet.native.options import Native, NativeForm, NativeLimits
from ramet.workspace.agent.sandbox import AgentRun
from ramet.workspace.agent.tools import chosen_tools
from ramet.workspace.stored.store import Store
from ramet.workspace.workspace import Workspace

SUM = "python3 -c 'print(6 * 7)'"


@pytest.mark.usefixtures("native")
def test_a_workspace_remembers_that_it_is_native(tmp_path: Path) -> None:
    async def answer(name: str, native: Native | bool | None = None) -> tuple[int, bytes]:
        async with store.open(name, native=native) as ws:
            found = await ws.execute(f"echo {name} > name; {SUM}", timeout=SECONDS)
            return found.exit_code, found.stdout

    async def steps() -> None:
        assert await answer("app") == (0, b"42\n")
        store["app"].fork(None, "twin")
        assert await answer("twin") == (0, b"42\n")
        assert (await answer("app", False))[0] == 127
        store.rm("app")
        store.restore("app")
        assert await answer("app") == (0, b"42\n")
        store.rm("app")
        store.create("app")
        assert (await answer("app"))[0] == 127

    store = Store(tmp_path / "store")
    store.create("app", native=True)
    asyncio.run(steps())


def test_where_programs_cannot_run_the_workspace_opens_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app", native=True)
        async with store.open("app") as ws:
            found = await ws.execute(f"{SUM}; echo on; {SUM}")
            assert found.stdout == b"on\n"
            lines = found.stderr.decode().splitlines()
            assert [line for line in lines if line.startswith("ramet: ")] == [
                "ramet: real programs are off here: cannot run native programs: bubblewrap 0.11 or newer is not "
                "installed. pip install 'ramet[native]'"
            ]
            assert ws.restored.problems
            assert "are off" in chosen_tools(["bash"], ws)["bash"].description
        opened = Workspace(network={"allow": ["api.example.org"]})
        assert "`curl` and `wget` reach" in chosen_tools(["bash"], opened)["bash"].description

    monkeypatch.setattr("ramet.native.box.find_bubblewrap", lambda: None)
    asyncio.run(steps())


@pytest.mark.usefixtures("native")
def test_a_sandbox_runs_programs_in_its_home(tmp_path: Path) -> None:
    run = AgentRun(store=str(tmp_path / "store"))
    run.create_workspace("app", native=True)
    sandbox = run.sandbox(workspace="app")
    try:
        found = sandbox.exec('cd /workspace; python3 -c \'open("made", "w").write("x")\'; cat made')
        assert (found.stdout, found.exit_code) == (b"x", 0)
    finally:
        sandbox.terminate()
    assert b"".join(run.store["app"].show("/workspace/made", None)) == b"x"


@pytest.mark.usefixtures("native")
def test_a_server_runs_programs_only_where_it_allows_them(tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app", native=True)
        for allowed, status, answer in ((False, 127, ""), (True, 0, "42\n")):
            async with serving(store, native=allowed) as (http, _):
                done = (await http.post("/v1/workspaces/app/exec", json={"command": SUM})).json()
                assert (done["exit_code"], done["stdout"]) == (status, answer)
                for kind in ("stored", "memory"):
                    body = {"name": f"new-{kind}", "kind": kind, "native": True}
                    assert (await http.post("/v1/workspaces", json=body)).is_success == allowed
        async with serving(store, native=True) as (http, _):
            done = (await http.post("/v1/workspaces/new-stored/exec", json={"command": SUM})).json()
            assert done["stdout"] == "42\n"

    asyncio.run(steps())


@pytest.mark.usefixtures("native")
def test_limits_are_remembered(tmp_path: Path) -> None:
    async def processes(name: str, native: NativeForm | None = None) -> int:
        async with store.open(name, native=native) as ws:
            assert ws.native is not None
            assert (await ws.execute(f"{SUM} | tee answer", timeout=SECONDS)).stdout == b"42\n"
            return ws.native.limits.processes

    async def steps() -> None:
        assert await processes("app") == 77
        assert await processes("app", True) == 77
        assert await processes("app", {"limits": {"processes": 99}}) == 99
        store["app"].fork(None, "twin")
        assert await processes("twin") == 77

    store = Store(tmp_path / "store")
    store.create("app", native=Native(NativeLimits(processes=77)))
    asyncio.run(steps())


def test_wrong_limits_are_refused_by_name(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for wrong, said in (
        ({"limits": {"procs": 1}}, "unknown limit native.limits.procs"),
        ({"limits": {"processes": 0}}, "native limit processes is 0"),
        ({"limits": [1]}, "native.limits is [1]"),
        ({"limit": {}}, "unknown option native.limit"),
    ):
        with pytest.raises(RametError, match=re.escape(said)):
            store.create("app", native=wrong)
        with pytest.raises(RametError, match=re.escape(said)):
            store.open("app", native=wrong)
    assert store.ls() == []


@pytest.mark.usefixtures("native")
def test_a_client_may_lower_limits_only(tmp_path: Path) -> None:
    async def create(http: AsyncClient, kind: str, **native: object) -> Response:
        return await http.post("/v1/workspaces", json={"name": f"new-{kind}", "kind": kind, "native": native})

    async def steps() -> None:
        store = Store(tmp_path / "store")
        async with serving(store, native=True) as (http, server):
            for kind in ("stored", "memory"):
                refused = await create(http, kind, limits={"processes": 10**6})
                assert (refused.status_code, refused.json()["code"]) == (413, "limit_exceeded")
                assert (await create(http, kind, directory="/tmp")).status_code == 400
                assert (await create(http, kind, limits={"processes": 55})).is_success
                done = (await http.post(f"/v1/workspaces/new-{kind}/exec", json={"command": SUM})).json()
                assert done["stdout"] == "42\n"
                opened = server.workspaces.find(f"new-{kind}")
                assert opened is not None and opened.ws.native is not None
                assert opened.ws.native.limits == NativeLimits(processes=55)

    asyncio.run(steps())
