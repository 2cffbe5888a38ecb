"""Native workspaces of a store: commits, reopening, recovery after a kill, diff and blame."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.workspace.native.conftest import SECONDS

from ramet.native.options import Native
from ramet.workspace.stored.store import Store

WRITE = 'perl -e \'open F, ">/theirs"; print F "native\\n"; unlink "/gone"\''


def test_commit_and_reopen_without_native(native: Native, tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app") as ws:
            await ws.execute("echo 1 > /ours; echo 2 > /gone; mkdir -p /d/e; echo 3 > /d/e/f; ln -s ours /l")
            await ws.execute("chmod 640 /ours")
        async with store.open("app", native=native) as ws:
            assert (await ws.execute("cat /d/e/f; readlink l", timeout=SECONDS)).stdout == b"3\nours\n"
            await ws.execute(WRITE, timeout=SECONDS)
            first = await ws.commit("first")
            await ws.execute("perl -e 'open F, \">/d/e/g\"'", timeout=SECONDS)
            second = await ws.commit("second")
        assert [change.path for change in store["app"].diff(first, second)] == ["/d/e/g"]
        async with store.open("app") as ws:
            listed = await ws.execute("find / -not -path '/dev*' | sort; stat -c %a /ours; cat /theirs")
            assert listed.stdout.decode().split() == [
                "/", "/d", "/d/e", "/d/e/f", "/d/e/g", "/home", "/home/user", "/l", "/ours", "/theirs", "/tmp",
                "640", "native",
            ]  # fmt: skip

    asyncio.run(steps())


def test_blame_names_the_call_whose_program_wrote(native: Native, tmp_path: Path) -> None:
    async def steps() -> None:
        store = Store(tmp_path / "store")
        store.create("app")
        async with store.open("app", native=native) as ws:
            await ws.execute(WRITE, agent_id="ada", timeout=SECONDS)
        head = store["app"].head
        assert head is not None and head.agent == "ada"
        async with store.open("app") as ws:
            assert "/theirs" in ws.history.after(0)[-1].paths_written

    asyncio.run(steps())


CHILD = """
import asyncio, sys
from ramet.workspace.stored.store import Store
async def main():
    async with Store(sys.argv[1]).open("app", native=True) as ws:
        await ws.execute(sys.argv[2])
        await ws.execute("echo in process > /ours; rm -r /old; mkdir /old; echo new > /old/new")
        print("ready", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


def test_a_killed_process_loses_nothing(native: Native, tmp_path: Path) -> None:
    """The next open finds what programs and commands wrote, and the box is gone."""

    async def prepare(store: Store) -> None:
        async with store.open("app") as ws:
            await ws.execute("echo 2 > /gone; mkdir /old; echo x > /old/file")

    async def look(store: Store) -> bytes:
        async with store.open("app", wait=SECONDS) as ws:
            assert [found.workspace for found in ws.recovered] == ["app"]
            return (await ws.execute("cat /theirs /ours; ls / /old")).stdout

    store = Store(tmp_path / "store")
    store.create("app")
    asyncio.run(prepare(store))
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path / "store"), WRITE], stdout=subprocess.PIPE, env={**os.environ}
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGKILL)
    found = asyncio.run(look(Store(tmp_path / "store")))
    assert found.split() == b"native in process /: home old ours theirs tmp /old: new".split()
