"""What a session's shell lists as its history: the commands that it was given, also after it was carried elsewhere."""

from __future__ import annotations

import asyncio

from ramet import Workspace


def test_a_session_lists_what_it_was_given() -> None:
    async def go() -> None:
        async with Workspace() as ws:
            await ws.execute("echo hi")
            await ws.execute("for i in 1 2\ndo echo $i\ndone\n# said\necho z")
            ws.create_session("other")
            await ws.execute("echo elsewhere", session_id="other")
            result = await ws.execute("history")
            assert result.stdout.decode().splitlines() == [
                "    1  echo hi", "    2  for i in 1 2; do echo $i; done", "    3  echo z", "    4  history",
            ]  # fmt: skip
            assert (await ws.execute("history | tail -n 2 | cut -c8-")).stdout == (
                b"history\nhistory | tail -n 2 | cut -c8-\n"
            )
            assert (
                await ws.execute("history", session_id="other")
            ).stdout == b"    1  echo elsewhere\n    2  history\n"

    asyncio.run(go())


def test_a_session_forgets_and_is_carried() -> None:
    async def go() -> None:
        async with Workspace() as ws:
            await ws.execute("echo one")
            await ws.execute("echo two")
            await ws.execute("history -d 1; history -s said instead")
            first = await ws.execute("history")
            assert first.stdout == b"    1  echo two\n    2  said instead\n    3  history\n"
            twin = ws.copy()
            async with twin:
                await twin.execute("echo three")
                assert (
                    await twin.execute("history 3")
                ).stdout == b"    3  history\n    4  echo three\n    5  history 3\n"
                await twin.execute("history -c")
                assert (await twin.execute("history")).stdout == b"    1  history\n"

    asyncio.run(go())


def test_a_secret_is_not_in_what_is_carried() -> None:
    async def go() -> None:
        async with Workspace(secrets={"TOKEN": "hunter2hunter2"}) as ws:
            await ws.execute("history > /dev/null; : hunter2hunter2")
            listed = await ws.execute("history")
            assert b"hunter2" not in listed.stdout and b"/dev/null" in listed.stdout

    asyncio.run(go())
