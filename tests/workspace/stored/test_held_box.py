"""Ports of a stored workspace that is open in a process of this machine, without opening it again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.workspace.native.conftest import NATIVE, missing, need

from ramet import Store
from ramet.core.errors import RametError
from ramet.workspace.stored.workspace import StoredWorkspace

LISTEN = (
    "python3 -m http.server 8000 --bind 127.0.0.1 > /log 2>&1 & until curl -s localhost:8000 > /dev/null; do :; done"
)


def opened(store: Store, act: Callable[[StoredWorkspace], Awaitable[None]]) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    need("python3")

    async def inside() -> None:
        async with store.open("app", native=NATIVE) as ws:
            await asyncio.wait_for(act(ws), 60)

    asyncio.run(inside())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(str(tmp_path))
    made.create("app")
    return made


async def ask(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    try:
        return await reader.read()
    finally:
        writer.close()


def test_another_store_object_lists_and_reaches_the_ports(store: Store, tmp_path: Path) -> None:
    async def act(ws: StoredWorkspace) -> None:
        ref = Store(str(tmp_path))["app"]
        assert ref.ports() == []
        await ws.execute(LISTEN)
        (found,) = ref.ports()
        assert found.port == 8000 and "http.server" in found.program
        failures: list[Exception] = []
        async with ref.forward(8000) as forward, ref.forward(8001, failed=failures.append) as dead:
            answers = await asyncio.gather(*(ask(forward.port) for _ in range(8)))
            assert all(answer.startswith(b"HTTP/1.0 200") for answer in answers)
            with pytest.raises(ConnectionResetError):
                await ask(dead.port)
            assert "nothing listens at port 8001" in str(failures[0])
            assert ws.programs is not None
            ws.programs._runtime._box.kill()  # type: ignore[union-attr]
            with pytest.raises(ConnectionResetError):
                await ask(forward.port)
            await ws.execute(LISTEN)  # in a new box
            assert (await ask(forward.port)).startswith(b"HTTP/1.0 200")

    opened(store, act)
    with pytest.raises(RametError, match="nothing runs in app: no process has it open"):
        store["app"].ports()


def test_a_workspace_without_real_programs(store: Store) -> None:
    async def steps() -> None:
        async with store.open("app", native=False):
            with pytest.raises(RametError, match="no real programs run in app, which is held by process"):
                store["app"].ports()

    asyncio.run(steps())


def test_a_workspace_that_is_open_elsewhere(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(ws: StoredWorkspace) -> None:
        assert ws.lease is not None
        monkeypatch.setattr("ramet.workspace.stored.held_box.socket.gethostname", lambda: "elsewhere")
        with pytest.raises(RametError, match="app is open on another machine"):
            store["app"].ports()
        monkeypatch.undo()

    opened(store, act)


def test_ports_are_for_those_who_may_write(store: Store, tmp_path: Path) -> None:
    async def act(_: StoredWorkspace) -> None:
        store.repository.grants.put("app", {"ann": "readwrite", "bob": "readonly"}, "ann")
        assert Store(str(tmp_path), principal="ann")["app"].ports() == []
        with pytest.raises(RametError) as refused:
            Store(str(tmp_path), principal="bob")["app"].ports()
        assert refused.value.code == "permission_denied"

    opened(store, act)
