"""Revisions that are made without asking, what they record, and how failures are heard."""

from __future__ import annotations

import asyncio
import errno
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.store.verbs.test_verbs import refused

from ramet import CommitPolicy, OpenOptions, RametError, RAMResource, Store
from ramet.core.errors import Unavailable
from ramet.store.objects.objects import MemoryObjects
from ramet.workspace.stored import version_pins as pinning
from ramet.workspace.stored.store import StoredWorkspace


def store_with(name: str = "w") -> Store:
    store = Store(MemoryObjects())
    store.create(name)
    return store


def test_after_each_command() -> None:
    async def act() -> None:
        store = store_with()
        async with store.open("w", commit="command") as ws:
            await ws.execute("echo 1 > /f", agent_id="ada")
            assert store.find("w").name == "w-1", "durable before the call ends"
            async for _ in ws.execute("echo 2 > /f; echo out"):
                pass
            assert (store.find("w").name, store.find("w").message) == ("w-2", "echo 2 > /f; echo out")
            await ws.execute("echo 3 > /f", provision=True)
        assert [(r.agent, r.ops and r.ops["first"]) for r in store["w"].log()] == [("", 2), ("ada", 1)]

    asyncio.run(act())


def test_after_some_commands_and_on_close() -> None:
    async def act() -> None:
        store = store_with()
        async with store.open("w", commit="command", every=3) as ws:
            for number in range(7):
                await ws.execute(f"echo {number} > /f")
            assert store.find("w").seq == 2
        assert store.find("w").seq == 3 and b"".join(store["w"].show("/f")) == b"6\n"
        async with store.open("w", commit="never") as ws:
            await ws.execute("echo lost > /f")
        assert store.find("w").seq == 3
        async with store.open("w", commit="never") as ws:
            await ws.execute("echo kept > /f")
            await ws.commit("by hand")
        assert store.find("w").message == "by hand"

    asyncio.run(act())


def test_options_as_one_value_open_several_workspaces_alike() -> None:
    async def act() -> None:
        store = store_with()
        store.create("v")
        options = OpenOptions(commit=CommitPolicy("command", every=2), withhold=["*.pem"])
        for name in ("v", "w"):
            async with store.open_with(name, options) as ws:
                await ws.execute("echo 1 > /f")
                assert store[name].head is None
                await ws.execute("echo 2 > /f; echo key > /a.pem")
            assert (store.find(name).seq, store.find(name).withheld) == (1, ("/a.pem",))
        async with store.open_with("w", replace(options, readonly=True)) as ws:
            assert ws.lease is None
        async with store.open("w", commit=CommitPolicy("never")) as ws:
            await ws.execute("echo 3 > /f")
        assert store.find("w").seq == 1

    asyncio.run(act())


def test_on_a_timer() -> None:
    async def act() -> None:
        store = store_with()
        async with store.open("w", commit="timer", every=0.02) as ws:
            await ws.execute("echo 1 > /f")
            async with asyncio.timeout(120):
                while store["w"].head is None:  # noqa: ASYNC110 - another task of the workspace makes it
                    await asyncio.sleep(0.01)
            assert store.find("w").message == "on a timer"

    asyncio.run(act())


def test_failures_are_loud() -> None:
    async def act() -> None:
        store = store_with()

        def taken_over(ws: StoredWorkspace) -> None:
            refs = store.repository.refs
            now = refs.last("w")
            refs._append("w", type(now)(now.number + 1, now.head, now.fence + 1, "elsewhere/1/2/x", 9e12, "lease"))

        with pytest.raises(RametError) as caught:
            async with store.open("w", commit="command") as ws:
                taken_over(ws)
                await ws.execute("echo 1 > /f")
        assert caught.value.code == "lease_lost"
        other = store_with()
        store = other
        with pytest.raises(RametError) as caught:
            async with store.open("w", commit="timer", every=0.01) as ws:
                await ws.execute("echo 1 > /f")
                taken_over(ws)
                async with asyncio.timeout(120):
                    while ws._failure is None:  # noqa: ASYNC110
                        await asyncio.sleep(0.01)
                await ws.execute("true")
        assert caught.value.code == "lease_lost"

    asyncio.run(act())


@pytest.mark.parametrize(
    "options",
    [
        {"commit": "sometimes"},
        {"commit": "timer"},
        {"commit": "timer", "every": 0},
        {"commit": "command", "every": 1.5},
        {"commit": "close", "every": 2},
        {"pins": {"/x": "all"}},
    ],
)
def test_policies_that_cannot_be(options: dict[str, object]) -> None:
    store = store_with()
    assert refused(lambda: store.open("w", **options)) == "invalid_argument"  # type: ignore[arg-type]


class Elsewhere:
    """Stands for a resource whose bytes live elsewhere: it has the verbs of one, and is of no known type."""

    def __init__(self, inner: RAMResource) -> None:
        self._inner, self.caps = inner, inner.caps

    def __getattr__(self, name: str) -> Any:
        if name not in ("stat", "scan", "read", "write", "mkdir", "remove", "rename", "copy", "setattr", "close"):
            raise AttributeError(name)
        return getattr(self._inner, name)


def test_what_was_pinned_and_is_another_by_now_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        store = store_with()
        remote = Elsewhere(RAMResource())

        async def problems(revision: str | None = None) -> list[str]:
            resources = {"/data": remote}
            async with store.open("w", revision, readonly=True, resources=resources, commit="never") as ws:
                return list(ws.restored.problems)

        async with store.open("w", mounts={"/data": remote}, pins={"/data": "versions"}) as ws:
            await ws.execute("mkdir /data/d; echo 1 > /data/a; echo 2 > /data/d/b; echo 3 > /data/d/c")
            await ws.commit("all")
        assert await problems() == []
        async with store.open("w", resources={"/data": remote}, pins={"/data": "versions"}) as ws:
            assert ws.restored.ok
            await ws.execute("echo 22 > /data/d/b; rm /data/a; echo new > /data/new")
            await ws.commit("changed")
        assert await problems() == []
        assert await problems("1") == [
            "/data/a: the pinned version is gone",
            "/data/d/b: the pinned version has changed",
        ]
        monkeypatch.setattr(pinning, "MAX_REPORTED", 1)
        assert (await problems("1"))[1:] == ["/data: 1 more paths differ from the pinned versions"]

        async def away(*_: object) -> None:
            raise Unavailable(errno.EIO, "the server is away", "/")

        monkeypatch.setattr("ramet.core.ops.scan_sorted", away)
        (problem,) = await problems()
        assert problem == "/data: cannot compare pinned versions: the server is away"

    asyncio.run(act())


def test_a_revision_records_what_it_needs() -> None:
    async def act() -> None:
        store = store_with()
        remote = Elsewhere(RAMResource())
        async with store.open("w", mounts={"/data": remote}, pins={"/data": "versions"}) as ws:
            ws.create_session("second")
            await ws.execute("echo 1 > /data/a; mkdir /data/d; echo 2 > /data/d/b; sleep 0 & wait")
            first = await ws.commit("m", author="me", agent="bot", trace_id="t-1")
            await ws.execute("echo 22 > /data/d/b")
            second = await ws.commit("n")
        assert (first.message, first.author, first.agent, first.trace_id) == ("m", "me", "bot", "t-1")
        mount = next(mount for mount in first.mounts if mount.prefix == "/data")
        assert mount.tree is None and mount.pin is not None and mount.type == "custom"
        assert [d.path for d in store["w"].diff(second.name) if d.path.startswith("/data")] == ["/data/d/b"]
        kernel = json.loads(store.repository.packs.read(first.kernel or b""))
        assert {session["session_id"] for session in kernel["sessions"]} == {"default", "second"}
        assert len(kernel["history"]["records"]) == 1 and "manifest" in kernel["cache"]
        assert store.verify().ok
        async with store.open("w", resources={"/data": remote}, commit="never") as ws:
            assert (await ws.execute("cat /data/d/b")).text == "22\n"

    asyncio.run(act())
