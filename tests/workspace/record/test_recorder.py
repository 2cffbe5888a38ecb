"""Every change of a tree is part of exactly one record, whichever way it comes."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ramet import Workspace
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.fs import Open
from ramet.core.paths import parse
from ramet.workspace.record.history import ExecutionRecord
from ramet.workspace.record.recorder import acting


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run


def rows(ws: Workspace) -> list[tuple[str, str, str]]:
    return [(one.kind, one.agent_id, one.command) for one in ws.history]


@in_a_loop
async def test_a_command_names_its_paths() -> None:
    async with Workspace() as ws:
        await ws.execute("echo 1 > /a; echo 2 > /b; rm /b; mv /a /c", agent_id="eve", meta={"tokens": 8, "usd": 0.5})
        (one,) = ws.history
        assert (one.agent_id, one.paths_written, one.paths_removed) == ("eve", ("/c",), ())
        assert one.meta == {"tokens": 8, "usd": 0.5} and one.cpu > 0 and one.paths_cut == 0
        await ws.execute("rm /c; echo 1 > /c; rm /c; echo 2 > /d; sed -i s/2/3/ /d")
        assert [list(ws.history)[1].paths_written, list(ws.history)[1].paths_removed] == [("/d",), ("/c",)]


@in_a_loop
async def test_too_many_paths_are_counted() -> None:
    async with Workspace() as ws:
        await ws.execute("for i in {1..120}; do echo > /f$i; done")
        (one,) = ws.history
        assert (len(one.paths_written), one.paths_cut) == (100, 20)


@in_a_loop
async def test_writes_outside_of_commands_are_records() -> None:
    async with Workspace() as ws:
        await ws.fs.write(parse("/a"), b"12345")
        await ws.dispatch("write", "/b", b"123")
        with ws.recording("tool", "edit /a", agent_id="eve"):
            await ws.fs.write(parse("/a"), b"1")
            await ws.fs.mkdir(parse("/d"))
        with ws.recording("tool", "look"):
            await ws.fs.stat(parse("/a"))
        ws.mount("/m", RAMResource())
        await ws.unmount("/m")
        assert rows(ws) == [
            ("write", "default", "write /a (5 bytes)"),
            ("write", "default", "write /b (3 bytes)"),
            ("tool", "eve", "edit /a"),
            ("mount", "default", "mount /m (RAMResource, write)"),
            ("mount", "default", "unmount /m"),
        ]
        assert [one.bytes_written for one in ws.history][:2] == [{"/": 5}, {"/": 3}]


@in_a_loop
async def test_an_open_file_belongs_to_who_writes_it() -> None:
    async with Workspace() as ws:
        await ws.execute("exec 3>/log", agent_id="one")
        await ws.execute("echo hi >&3", agent_id="two")
        stream = await ws.fs.open(parse("/log"), Open.WRITE | Open.APPEND)
        stream.write(b"x")
        await stream.close()
        assert [one.paths_written for one in ws.history] == [("/log",)] * 3
        assert rows(ws)[2][2] == "write /log"


@in_a_loop
async def test_calls_at_the_same_time_keep_their_paths() -> None:
    async with Workspace() as ws:
        ws.create_session("s")
        await asyncio.gather(
            ws.execute("for i in 1 2 3; do echo > /a$i; sleep 0.001; done", agent_id="a"),
            ws.execute("for i in 1 2 3; do echo > /b$i; sleep 0.001; done", "s", agent_id="b"),
        )
        found = {one.agent_id: one.paths_written for one in ws.history}
        assert found == {"a": ("/a1", "/a2", "/a3"), "b": ("/b1", "/b2", "/b3")}


@in_a_loop
async def test_acting_names_the_caller() -> None:
    async with Workspace() as ws:
        with acting("eve", "alice"):
            await ws.execute("true")
            await ws.fs.write(parse("/a"), b"")
        assert {(one.agent_id, one.principal) for one in ws.history} == {("eve", "alice")}


@in_a_loop
async def test_the_shell_history_has_commands_only() -> None:
    async with Workspace() as ws:
        await ws.execute("echo 1")
        await ws.dispatch("write", "/b", b"123")
        assert "write" not in (await ws.execute("history")).text


def test_old_records_load() -> None:
    old: dict[str, Any] = {
        "number": 1, "session_id": "s", "agent_id": "a", "command": "ls", "started_at": 1.0, "ended_at": 2.0,
        "exit_code": 0,
    }  # fmt: skip
    one = ExecutionRecord.from_dict(old)
    assert (one.kind, one.paths_written, one.meta, one.parent) == ("command", (), {}, 0)
    assert ExecutionRecord.from_dict(one.as_dict()) == one


@pytest.mark.parametrize("meta", [{"a": [1]}, {"a": "x" * 257}, {str(n): n for n in range(33)}, {1: 1}])
@in_a_loop
async def test_meta_is_plain_and_small(meta: Any) -> None:
    async with Workspace() as ws:
        with pytest.raises(RametError):
            ws.execute("true", meta=meta)


@in_a_loop
async def test_secrets_are_redacted_in_records() -> None:
    async with Workspace(secrets={"KEY": "topsecret"}) as ws:
        await ws.fs.write(parse("/topsecret"), b"")
        await ws.execute("true", meta={"k": "topsecret"})
        assert "topsecret" not in repr(list(ws.history))


@in_a_loop
async def test_meta_that_no_client_can_read_is_refused() -> None:
    async with Workspace() as ws:
        with pytest.raises(RametError, match="finite"):
            await ws.execute("true", meta={"usd": float("nan")})
