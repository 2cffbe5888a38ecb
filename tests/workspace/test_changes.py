"""`ChangeWatch`: what a call changed, and what finding out costs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ramet import Workspace
from ramet.shell.interp.state import serialize
from ramet.workspace import changes
from ramet.workspace.changes import ChangeWatch


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("true", False),
        ("false; (exit 3); ls / | cat; echo $_ $RANDOM", False),
        ("sleep 0 & wait", False),
        ("x=0", False),
        ("x=1", True),
        ("x=1; x=0", False),
        ("declare -r x", True),
        ("a[3]=4", True),
        ("f() { :; }", True),
        ("unset -f g", True),
        ("alias ll='ls -l'", True),
        ("set -o nounset", False),
        ("shopt -s nullglob", True),
        ("trap 'echo bye' EXIT", True),
        ("cd /tmp", True),
        ("(cd /tmp; y=2)", False),
        ("umask 077", True),
        ("set -- a b", True),
        ("echo > /file", True),
        ("mkdir /d", True),
        ("rm /none", False),
    ],
)
def test_what_a_restart_would_lose_is_a_change(command: str, changed: bool) -> None:
    async def work() -> None:
        async with Workspace() as ws:
            await ws.execute("x=0; a=(1 2); g() { echo; }")
            for _ in range(2):  # the second time with what the first one kept
                watch = ChangeWatch(ws, ws.get_session())
                await ws.execute("true")
                assert not watch.changed()
            watch = ChangeWatch(ws, ws.get_session())
            await ws.execute(command)
            assert watch.changed() == changed
            watch = ChangeWatch(ws, ws.get_session())
            await ws.execute("true")
            assert not watch.changed(), "a change counts once"

    run(work())


def test_the_dump_after_a_call_serves_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dumps = 0

    def counted(state: Any, dump: Any = serialize.dump) -> Any:
        nonlocal dumps
        dumps += 1
        return dump(state)

    monkeypatch.setattr(changes, "dump", counted)

    async def work() -> None:
        async with Workspace() as ws:
            spent = []
            for command in ("true", "true", "x=1", "echo > /f", "echo > /f", "true", "true"):
                before = dumps
                watch = ChangeWatch(ws, ws.get_session())
                await ws.execute(command)
                watch.changed()
                spent.append(dumps - before)
            assert spent == [2, 1, 1, 0, 1, 2, 1], "only where nothing is known yet there are two"

    run(work())


def test_a_change_between_two_calls_is_seen() -> None:
    async def work() -> None:
        async with Workspace() as ws:
            watch = ChangeWatch(ws, ws.get_session())
            assert not watch.changed()
            ws.get_session().adopt({"NEW": "1"})
            watch = ChangeWatch(ws, ws.get_session())
            await ws.execute("true")
            assert watch.changed()

    run(work())
