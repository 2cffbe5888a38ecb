"""`propose`: a branch becomes a fork to be reviewed, with who wrote which line; nothing of it reaches its parent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ramet import Store
from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.layers.passthrough import Passthrough
from ramet.workspace.stored.workspace import StoredWorkspace
from ramet.workspace.workspace import Branch

BEGIN = "mkdir -p /d/e; echo 1 > /a; echo 2 > /gone; echo 3 > /d/e/f; ln -s a /l; echo 4 > /kind; echo 5 > /moved"
WORK = """
echo 1b >> /a; rm /gone; rm -r /d; echo d > /d; mkdir -p /n/m; echo x > /n/m/x; chmod 750 /n/m/x; ln -sfn gone /l
rm /kind; mkdir /kind; echo k > /kind/k; mv /moved /here; echo "a b" > "/a name"; echo t > /tmp/t
"""
SEEN = """
find / -path /dev -prune -o -path /.sessions -prune -o -printf '%p %y %m %l\\n' | sort
cat /a /d /n/m/x /kind/k /here
"""


def work(store: Store, steps: Callable[[StoredWorkspace], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with store.open("w") as ws:
            await steps(ws)

    asyncio.run(opened())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.create("w")

    async def begin(ws: StoredWorkspace) -> None:
        await ws.execute(BEGIN, agent_id="ann")

    work(made, begin)
    return made


def test_the_fork_is_as_the_branch(store: Store) -> None:
    seen: list[str] = []

    async def steps(ws: StoredWorkspace) -> None:
        before = (await ws.execute("cat /a; ls /")).text
        async with ws.speculate(2) as tries:
            await tries[0].execute(WORK, agent_id="bob")
            await tries[1].execute("echo other >> /a")
            seen.append((await tries[0].execute(SEEN)).text)
            assert (await ws.propose(tries[0], "one", "Work")).name == "one-2"
            await ws.propose(tries[1], "two", "Other")
        assert (await ws.execute("cat /a; ls /")).text == before, "neither was kept"

    work(store, steps)

    async def look() -> None:
        async with store.open("one") as ws:
            seen.append((await ws.execute(SEEN)).text)

    asyncio.run(look())
    assert seen[0] == seen[1] and "x\nk\n5" in seen[0]
    head = store["one"].head
    assert head is not None and (head.message, head.agent) == ("Work", "bob")
    assert store.find("one@1").parents == store.find("two@1").parents == (store.find("w").id,)
    assert store["w"].merge("one").ok and [one.path for one in store["w"].merge("two").conflicts] == ["/a"]


def test_each_line_has_the_record_that_wrote_it(store: Store) -> None:
    async def steps(ws: StoredWorkspace) -> None:
        await ws.execute("echo unsaved >> /a", agent_id="ann")
        async with ws.speculate(1) as [branch]:
            await branch.execute("echo 2 >> /a; echo new > /b", agent_id="bob", meta={"run": "r1"})
            await branch.execute("sed -i '1s/.*/one/' /a", agent_id="carol")
            await ws.propose(branch, "one")

    work(store, steps)
    told = [(line.text, line.writer and line.writer.agent_id) for line in store["one"].blame("/a")]
    assert told == [(b"one\n", "carol"), (b"unsaved\n", "ann"), (b"2\n", "bob")]
    records = {one.command: one for one in store["one"].history()}
    first, second = records["echo 2 >> /a; echo new > /b"], records["sed -i '1s/.*/one/' /a"]
    assert first.paths_written == ("/a", "/b") and first.run == "r1" and second.paths_written == ("/a",)
    assert first.number < second.number
    assert store.find("w").message == "before one", "what was not committed is a revision"


def test_a_branch_that_does_not_fit_any_more_is_refused(store: Store) -> None:
    async def steps(ws: StoredWorkspace) -> None:
        branch = ws.branch()
        await branch.execute("echo mine > /a")
        await ws.execute("echo theirs > /a")
        with pytest.raises(RametError, match="/a changed meanwhile"):
            await ws.propose(branch, "one")
        with pytest.raises(RametError, match="exists already"):
            await ws.propose(branch, "w")
        await branch.close()

    work(store, steps)
    assert store.ls() == ["w"]


def test_a_branch_of_another_workspace_is_refused(store: Store) -> None:
    store.create("other")

    async def steps(ws: StoredWorkspace) -> None:
        async with store.open("other") as other:
            branch = other.branch()
            with pytest.raises(RametError, match="no branch of this workspace"):
                await ws.propose(branch, "one")
            await branch.close()

    work(store, steps)


class Remote(Passthrough):
    """A mount whose files are not in the store; counts how often it is closed."""

    closed = 0

    def __init__(self) -> None:
        super().__init__(RAMResource())

    async def close(self) -> None:
        self.closed += 1


def test_mounts_that_are_not_in_the_store(store: Store, tmp_path: Path) -> None:
    remote = Remote()
    (tmp_path / "disk").mkdir()

    async def steps() -> None:
        disk = DiskResource(str(tmp_path / "disk"))
        async with store.open("w", mounts={"/r": remote, "/disk": disk}) as ws:
            branch: Branch = ws.branch()
            await branch.execute("echo 2 > /a; echo d > /disk/d; cat /r/x")
            await ws.propose(branch, "one")
            assert remote.closed == 0 and not (tmp_path / "disk/d").exists()
            await branch.execute("echo r > /r/x")
            with pytest.raises(RametError, match="cannot propose a change of /r/x"):
                await ws.propose(branch, "two")
            await branch.close()

    asyncio.run(steps())
    assert b"".join(store["one"].show("/disk/d")) == b"d\n" and "two" not in store
