"""Commands are found as files in /bin and /usr/bin, run by their path, and give way to a tree that has its own."""

from __future__ import annotations

import asyncio
from importlib.metadata import EntryPoint

import pytest

from ramet import RametError, RAMResource, Workspace
from ramet.core.paths import parse
from ramet.core.proc import Proc
from ramet.workspace import registry

LOOKS = [
    ("test -x /bin/ls && test -f /usr/bin/jq && echo yes", "yes\n"),
    ("ls /bin | grep -x -e cat -e sh", "cat\nsh\n"),
    ("/usr/bin/printf '%s\\n' a; /bin/sh -c 'echo b'; env /bin/echo c", "a\nb\nc\n"),
    ("PATH=/bin; which ls; type -P ls; command -v nosuch; echo $?", "/bin/ls\n/bin/ls\n1\n"),
    ("ls /; find / -name 'l?' -type f", "home\ntmp\n"),
    ("mkdir -p /usr/local/bin; printf 'echo mine' > /usr/local/bin/t; chmod +x /usr/local/bin/t; t", "mine\n"),
    ("echo x > /bin/ls || echo refused", "refused\n"),
    ("cp /bin/ls /x; /x -d /x", "/x\n"),
]


@pytest.mark.parametrize(("script", "output"), LOOKS)
def test_looking_for_programs(script: str, output: str) -> None:
    async def act() -> None:
        async with Workspace() as ws:
            assert (await ws.execute(script)).text == output

    asyncio.run(act())


def test_a_tree_with_its_own_programs_keeps_them() -> None:
    async def act() -> None:
        ram = RAMResource()
        await ram.mkdir(parse("/bin"))
        await ram.write(parse("/bin/mine"), b"echo own")
        async with Workspace({"/": ram}) as ws:
            assert (await ws.execute("ls /bin; bash /bin/mine; /bin/echo still")).text == "mine\nown\nstill\n"

    asyncio.run(act())


def test_a_link_to_a_program_or_a_copy_of_it_runs_it() -> None:
    async def act() -> None:
        async with Workspace() as ws:
            await ws.execute("mkdir /b; ln -s /usr/bin/cat /b/kitten; cp /usr/bin/tr /b/copy; ln -s /bin/bash /b/my")
            used = "PATH=/b:$PATH; echo a | kitten; echo a | copy a b; my -c 'echo $0 $1' c d"
            used += "; ln -s /b/my e; ./e -c true"
            assert (await ws.execute(used)).text == "a\nb\nc d\n"

    asyncio.run(act())


async def shout(proc: Proc) -> str:
    return " ".join(proc.argv[1:]).upper() + "\n"


def test_commands_of_installed_packages_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("shout", f"{__name__}:shout", "ramet.commands")
    monkeypatch.setattr(registry, "_plugins", lambda: {"shout": entry})

    async def act() -> None:
        async with Workspace() as ws:
            assert (await ws.execute("shout hello; type -P shout; nosuch")).text == "HELLO\n/usr/bin/shout\n"

    asyncio.run(act())


@pytest.mark.parametrize("prefix", ["/dev", "/.sessions"])
def test_what_every_workspace_has_cannot_be_mounted_over(prefix: str) -> None:
    with pytest.raises(RametError, match=f"mount '{prefix}': reserved by the workspace"):
        Workspace({prefix: RAMResource()})
