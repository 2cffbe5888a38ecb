"""Sandboxes bound to workspaces: the document's own sample, outputs, hygiene, one end whichever way it comes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ramet import AgentRun, DiskResource, RametError, Store


@pytest.fixture
def run(tmp_path: Path) -> AgentRun:
    return AgentRun(namespace="team-a", store=str(tmp_path / "store"))


def test_the_documents_sample(run: AgentRun) -> None:
    ws = run.create_workspace("proj-x")
    sb = run.sandbox(image="python", workspace="proj-x", ready=True)
    sb.files.write("/workspace/data.txt", "hello")
    sb.terminate(outputs=["/workspace", {"diff": True}], checkpoint=False)
    (revision,) = ws.log()
    assert (revision.name, revision.phase, revision.lineage) == ("proj-x-1", "Committed", f"fromClaim:{sb.name}")
    assert ("added", "/workspace/data.txt") in {(change.what, change.path) for change in ws.diff(revision.name)}
    assert ws.fork(ws.log()[0].name, "proj-x-branch").lineage == "fromWorkspaceRevision:proj-x-1"
    assert ws.revert("proj-x-1").content == revision.content
    with run.sandbox(workspace="proj-x-branch") as other:
        assert (
            other.files.read_text("data.txt") == "hello" and other.exec("pwd; cat data.txt").text == "/workspace\nhello"
        )


def test_outputs_narrow_by_whole_segments_and_record_the_difference(run: AgentRun) -> None:
    ws = run.create_workspace("p")
    sb = run.sandbox(workspace="p")
    sb.exec("mkdir dist distractor src; echo 1 > dist/app.js; echo 2 > distractor/x; echo 3 > src/a; echo 4 > /tmp/t")
    revision = sb.terminate(outputs=["/workspace/dist", {"path": "src/a"}, {"diff": True}])
    assert revision is not None and revision.outputs == ("/workspace/dist", "/workspace/src/a")
    assert revision.diff is not None
    with run.sandbox(workspace="p") as again:
        assert again.exec("find . -type f | sort; ls /tmp").text == "./dist/app.js\n./src/a\n"
    assert ws.log()[-1].diff is not None and revision.diff["added"]


@pytest.mark.parametrize("output", [{"path": 1}, {"dif": True}, {}, {"path": "/etc"}, 5, {"path": "../x"}, {"diff": 1}])
def test_what_is_not_an_output_is_refused_and_the_sandbox_goes_on(run: AgentRun, output: object) -> None:
    run.create_workspace("p")
    with run.sandbox(workspace="p") as sb:
        with pytest.raises(RametError) as raised:
            sb.terminate(outputs=[output])  # type: ignore[list-item]
        assert raised.value.code == "invalid_output" and sb.exec("echo on").text == "on\n"


def test_a_checkpoint_fails_loudly(run: AgentRun) -> None:
    run.create_workspace("p")
    with run.sandbox(workspace="p") as sb, pytest.raises(RametError, match="checkpoint"):
        sb.terminate(checkpoint=True)


def test_credentials_never_enter_a_revision_on_memory_or_disk(tmp_path: Path) -> None:
    async def act() -> None:
        store = Store(str(tmp_path / "s"))
        store.create("w")
        async with store.open("w", mounts={"/disk": DiskResource(_folder(tmp_path))}, withhold=["*.pem"]) as ws:
            for top in ("/m", "/disk", "/home/user"):
                await ws.execute(
                    f"cd; mkdir -p {top}/a/.ssh {top}/.config/gh {top}/.config/ok {top}/.aws; cd {top}; "
                    "echo hunter2 | tee a/.ssh/id .netrc a/.npmrc .config/gh/hosts .aws/c k.pem > /dev/null; "
                    "echo fine | tee .config/ok/f a/netrc a/.sshx > /dev/null"
                )
            first = await ws.commit("one")
            await ws.execute("echo more > /m/new")
            second = await ws.commit("two")
            assert "/m/a/.ssh" in first.withheld and "/disk/.config/gh" in first.withheld
            assert "/home/user/k.pem" in first.withheld and set(second.withheld) == set(first.withheld)
            assert (await ws.execute("cat /m/.netrc")).text == "hunter2\n", "the live workspace keeps them"
        async with store.open("w", readonly=True, resources={"/disk": DiskResource(_folder(tmp_path, "out"))}) as ws:
            found = (await ws.execute("grep -rl hunter2 /m /disk /home; cd /m; find . -type f | sort")).text
            assert found == "./.config/ok/f\n./a/.sshx\n./a/netrc\n./new\n"

    asyncio.run(act())


def _folder(top: Path, name: str = "disk") -> Path:
    (top / name).mkdir()
    return top / name


def test_one_sandbox_at_a_time(run: AgentRun) -> None:
    run.create_workspace("p")
    with run.sandbox(workspace="p"):
        with pytest.raises(RametError) as raised:
            run.sandbox(workspace="p")
        assert raised.value.code == "workspace_busy"
    run.sandbox(workspace="p", wait=5).terminate()


def test_terminating_twice_is_one_revision(run: AgentRun) -> None:
    ws = run.create_workspace("p")
    sb = run.sandbox(workspace="p")
    sb.files.write("a", "1")
    assert sb.terminate() == sb.terminate() and len(ws.log()) == 1
    with pytest.raises(RametError, match="not running"):
        sb.exec("true")


def test_a_lifetime_ends_it_by_itself(run: AgentRun) -> None:
    ws = run.create_workspace("p")
    sb = run.sandbox(workspace="p", lifetime=0.3)
    sb.files.write("a", "1")
    deadline = time.monotonic() + 20
    while sb.phase != "Terminated" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ws.log()) == 1 and sb.terminate() == ws.log()[0]


def test_starting_from_a_past_revision(run: AgentRun) -> None:
    ws = run.create_workspace("p")
    for text in ("one", "two"):
        with run.sandbox(workspace="p") as sb:
            sb.files.write("f", text)
    with run.sandbox(workspace="p", from_revision="p-1") as sb:
        assert sb.files.read_text("f") == "one"
    assert len(ws.log()) >= 3


def test_a_process_that_ends_keeps_its_sandboxes_work(tmp_path: Path) -> None:
    script = (
        "import sys; from ramet import AgentRun\nrun = AgentRun(store=sys.argv[1]); run.create_workspace('p')\n"
        "sb = run.sandbox(workspace='p'); sb.files.write('f', 'kept'); sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    with AgentRun(store=str(tmp_path)).sandbox(workspace="p") as sb:
        assert sb.files.read("f") == b"kept"


def test_without_a_workspace_nothing_is_kept(run: AgentRun) -> None:
    with run.sandbox() as sb:
        assert sb.exec(["echo", "a b", "$x"]).text == "a b $x\n" and sb.files.list() == []
    assert sb.terminate() is None and run.store.ls() == []
