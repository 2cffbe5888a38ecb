"""The public names, their readable forms, and calls with values of wrong types."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ramet
from ramet import DiskResource, HTTPResource, RametError, RAMResource, S3Resource, Store, SyncWorkspace, Workspace
from ramet.workspace.stored.workspace import StoredWorkspace


def stored() -> Store:
    store = Store("memory:")
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("echo 1 > /f", agent_id="ann")
            await ws.commit("first")

    asyncio.run(act())
    return store


def test_every_public_name_is_there() -> None:
    for name in ramet.__all__:
        assert getattr(ramet, name) is not None
    assert {"Revision", "Record", "BlameLine", "Settings", "Policy", "SyncWorkspace", "Stat"} <= set(ramet.__all__)


def test_values_are_readable() -> None:
    ref = stored()["w"]
    revision, (record,), (line,) = ref.find(), ref.history(), ref.blame("/f")
    assert isinstance(record, ramet.Record) and isinstance(line, ramet.BlameLine)
    assert repr(revision) == f"<Revision w-1 {revision.id.hex()[:12]} 'first'>"
    assert repr(record) == "<Record 1 command by ann: 'echo 1 > /f' (0)>"
    assert repr(line) == "<BlameLine 1 w-1 by ann: 'echo 1 > /f'>"


def test_blocking_calls_have_an_asynchronous_form() -> None:
    store = stored()

    async def act() -> list[str]:
        return [one.name for one in await store.aio(store["w"].log, "head")]

    assert asyncio.run(act()) == ["w-1"]


def test_a_directory_that_is_not_there_is_refused_unless_it_may_be_made(tmp_path: Path) -> None:
    with pytest.raises(RametError, match="not a directory"):
        DiskResource(tmp_path / "typo")
    assert not (tmp_path / "typo").exists()
    DiskResource(tmp_path / "typo", create=True)
    assert (tmp_path / "typo").is_dir()


any_: Any = 5
WRONG: dict[str, Callable[[Store, Workspace], Any]] = {
    "Workspace mounts": lambda store, ws: Workspace(any_),
    "Workspace prefix": lambda store, ws: Workspace({any_: RAMResource()}),
    "Workspace resource": lambda store, ws: Workspace({"/": any_}),
    "Workspace settings": lambda store, ws: Workspace(settings=any_),
    "Workspace policy": lambda store, ws: Workspace(policy=any_),
    "Workspace env": lambda store, ws: Workspace(env=any_),
    "Workspace secrets": lambda store, ws: Workspace(secrets=any_),
    "HTTPResource": lambda store, ws: HTTPResource(any_),
    "S3Resource": lambda store, ws: S3Resource(any_),
    "DiskResource": lambda store, ws: DiskResource(any_),
    "Store": lambda store, ws: Store(any_),
    "create": lambda store, ws: store.create(any_),
    "item": lambda store, ws: store[any_],
    "rm": lambda store, ws: store.rm(any_),
    "open": lambda store, ws: store.open(any_),
    "find": lambda store, ws: store.find(any_),
    "retention": lambda store, ws: store.retention(any_),
    "show": lambda store, ws: store["w"].show(any_),
    "blame": lambda store, ws: store["w"].blame(any_),
    "fork": lambda store, ws: store["w"].fork(None, any_),
    "tag": lambda store, ws: store["w"].tag(any_),
    "merge": lambda store, ws: store["w"].merge(any_),
    "checkout": lambda store, ws: store["w"].checkout(any_),
    "export": lambda store, ws: store["w"].export(any_),
    "mount": lambda store, ws: ws.mount("/x", any_),
    "session": lambda store, ws: ws.get_session(any_),
    "command": lambda store, ws: ws.execute(any_),
    "timeout": lambda store, ws: ws.execute("true", timeout=any_ and "5"),  # type: ignore[arg-type]
    "cwd": lambda store, ws: ws.execute("true", cwd=any_),
    "limits": lambda store, ws: ws.execute("true", limits=any_),
    "agent": lambda store, ws: ws.execute("true", agent_id=any_),
    "env": lambda store, ws: ws.execute("true", env=any_),
}


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_type_is_named(call: str) -> None:
    with pytest.raises(RametError) as caught:
        WRONG[call](stored(), Workspace())
    assert caught.value.remediation


def test_all_kinds_of_execute_have_the_same_parameters() -> None:
    whole = inspect.signature(Workspace.execute).parameters
    assert inspect.signature(SyncWorkspace.execute).parameters == whole
    assert inspect.signature(StoredWorkspace.execute).parameters == whole
