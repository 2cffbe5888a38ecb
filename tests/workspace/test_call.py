"""One `execute` call: what it leaves to the next one, and what it does not."""

from __future__ import annotations

import asyncio

import pytest

from ramet import Workspace
from ramet.workspace.workspace import Settings

SETTING = ["set -e", "set -u", "set -x", "set -o pipefail", "set -euo pipefail", "set -f", "set -n", "set -C; set +B"]


def results(*commands: str, settings: Settings | None = None) -> list[str]:
    async def act() -> list[str]:
        async with Workspace(settings=settings) as ws:
            return [(result := await ws.execute(command)).text + result.error_text for command in commands]

    return asyncio.run(act())


@pytest.mark.parametrize("command", SETTING)
def test_options_end_with_their_call(command: str) -> None:
    first, _, last = results("echo $-; set -o", command, "echo $-; set -o")
    assert last == first


@pytest.mark.parametrize("command", ["set -u; echo $nothing", "set -e; false; echo never", "set -e; exit 3"])
def test_options_end_with_a_call_that_fails(command: str) -> None:
    assert results(command, "false; echo $nothing; echo $-")[1] == "\nhB\n"


def test_everything_else_stays() -> None:
    said = results("cd /tmp; x=1; f() { echo f; }; alias g='echo g'; shopt -s nullglob expand_aliases; set -- a b",
                   "pwd; echo $x $1; f; g\necho /no*")  # fmt: skip
    assert said[1] == "/tmp\n1 a\nf\ng\n\n"


def test_sticky_options_last() -> None:
    assert results("set -u", "echo $nothing; echo on", settings=Settings(sticky_options=True))[1].startswith("bash: ")
