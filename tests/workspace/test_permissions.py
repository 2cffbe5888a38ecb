"""Modes refuse what they refuse on Linux, by whichever command; root and backends without modes are never refused."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace
from ramet.core.proc import User
from ramet.workspace.workspace import Settings

SETUP = """cd; echo text > f; mkdir -p closed/deep fixed; echo in > closed/deep/g; echo in > fixed/g
chmod 000 f closed; chmod 555 fixed"""

REFUSED = [
    ("cat f", "cat: f: Permission denied"),
    ("echo x > f", "bash: line 1: f: Permission denied"),
    ("echo x >> f", "bash: line 1: f: Permission denied"),
    ("cp f g", "cp: cannot open 'f' for reading: Permission denied"),
    ("grep x f", "grep: f: Permission denied"),
    ("cd closed", "bash: line 1: cd: closed: Permission denied"),
    ("ls closed", "ls: cannot open directory 'closed': Permission denied"),
    ("cat closed/deep/g", "cat: closed/deep/g: Permission denied"),
    ("touch fixed/new", "touch: cannot touch 'fixed/new': Permission denied"),
    ("mkdir fixed/new", "mkdir: cannot create directory ‘fixed/new’: Permission denied"),
    ("rm -f fixed/g", "rm: cannot remove 'fixed/g': Permission denied"),
    ("mv fixed/g .", "mv: cannot move 'fixed/g' to './g': Permission denied"),
    ("ln f fixed/h", "ln: failed to create hard link 'fixed/h' => 'f': Permission denied"),
    ("cp /dev/null fixed/h", "cp: cannot create regular file 'fixed/h': Permission denied"),
]


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_refused(command: str, message: str) -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute(SETUP)
            result = await ws.execute(command, env={"LC_ALL": "C.UTF-8"})
            assert result.error_text == message + "\n" and result.exit_code != 0

    asyncio.run(act())


def test_what_the_owner_may_still_do() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute(SETUP)
            script = (
                "cat fixed/g; touch f; chmod 644 f; cat f; chmod 700 closed; cat closed/deep/g; rm -rf closed; mv f h"
            )
            result = await ws.execute(script)
            assert (result.text, result.error_text) == ("in\ntext\nin\n", "")

    asyncio.run(act())


def test_root_is_never_refused() -> None:
    async def act() -> None:
        async with Workspace(settings=Settings(user=User(uid=0, name="root", home="/root"))) as ws:
            await ws.execute(SETUP)
            for command, _ in REFUSED[:5]:
                assert (await ws.execute(command)).error_text == ""

    asyncio.run(act())
