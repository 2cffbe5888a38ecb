"""Sandboxes bound to workspaces: the document's own sample, outputs, hygiene, one end whichever way it comes."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.web_fake import web_fake

from ramet import AgentRun, DiskResource, RametError, Store, Workspace


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


@pytest.mark.parametrize("workspace", [None, "p"])
def test_a_sandbox_reaches_the_hosts_of_its_network(run: AgentRun, workspace: str | None) -> None:
    if workspace is not None:
        run.create_workspace(workspace)
    with web_fake() as web:
        with run.sandbox(workspace=workspace, network={"allow": [f"127.0.0.1:{web.port}"]}) as sandbox:
            assert sandbox.exec(f"curl -s {web.url}/hello").text == "hello\n"
            assert "the network policy refuses" in sandbox.exec("curl -s http://other.example/").error_text
        with run.sandbox(workspace=workspace) as sandbox:
            assert "the network is off" in sandbox.exec(f"curl -s {web.url}/hello").error_text
    with pytest.raises(RametError, match="network"):
        run.sandbox(network={"alow": []})


def test_without_an_address_it_is_the_store_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMET_HOME", str(tmp_path / "home"))
    AgentRun().create_workspace("p")
    assert Store().ls() == Store(str(tmp_path / "home")).ls() == ["p"]
    AgentRun(namespace="team-a").create_workspace("q")
    assert Store(str(tmp_path / "home/namespaces/team-a")).ls() == ["q"]
    monkeypatch.setenv("RAMET_HOME", "http://127.0.0.1:1")
    with pytest.raises(RametError, match="is the address of a server"):
        Store()


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
    run.sandbox(workspace="p", wait=60).terminate()


def test_terminating_twice_is_one_revision(run: AgentRun) -> None:
    ws = run.create_workspace("p")
    sb = run.sandbox(workspace="p")
    sb.files.write("a", "1")
    assert sb.terminate() == sb.terminate() and len(ws.log()) == 1
    with pytest.raises(RametError, match="not running"):
        sb.exec("true")


def test_a_lifetime_ends_it_by_itself(run: AgentRun) -> None:
    for lifetime in (0.3, 3, 30):  # a machine that stands still may be too late for a short one
        ws = run.create_workspace(f"p{lifetime:.0f}")
        sb = run.sandbox(workspace=f"p{lifetime:.0f}", lifetime=lifetime)
        with contextlib.suppress(RametError):
            sb.files.write("a", "1")
            break
    while sb.phase != "Terminated":
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


# ------------------------------------------------------------------------------------------------- resumable heads


class Images:
    """A checkpointer whose images are what a variable of the shell was."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    async def save(self, ws: Workspace) -> str:
        ref = f"image-{len(self.kept) + 1}"
        self.kept[ref] = (await ws.execute('printf %s "$THOUGHT"')).text
        return ref

    async def exists(self, ref: str) -> bool:
        return ref in self.kept

    async def resume(self, ref: str, ws: Workspace) -> None:
        await ws.execute(f"RESUMED={self.kept[ref]}")

    async def discard(self, ref: str) -> None:
        del self.kept[ref]


def slept(folder: Path, images: Images, principal: str = "alice") -> AgentRun:
    """A run whose workspace `p` was put to sleep in the middle of a thought."""
    run = AgentRun(store=Store(str(folder), principal=principal), checkpointer=images)
    run.create_workspace("p")
    sb = run.sandbox(workspace="p")
    sb.exec("THOUGHT=half; echo file > f")
    revision = sb.terminate(checkpoint=True)
    assert revision is not None and revision.memory == ("image-1", principal) and revision.resumable
    return run


def test_a_checkpointed_head_goes_on_where_it_was(tmp_path: Path) -> None:
    images = Images()
    run = slept(tmp_path, images)
    with run.sandbox(workspace="p") as sb:
        assert sb.exec("echo $RESUMED; cat f").text == "half\nfile\n" and not sb.warnings
    head = run.workspace("p").log()[0]
    assert not head.resumable, "a plain end leaves nothing to resume, though the files are the same"
    with run.sandbox(workspace="p") as sb:
        assert sb.exec("echo $RESUMED; cat f").text.endswith("file\n")


def test_an_image_is_refused_to_another_principal_and_never_downgraded(tmp_path: Path) -> None:
    images = Images()
    slept(tmp_path, images)
    intruder = AgentRun(store=Store(str(tmp_path), principal="mallory"), checkpointer=images)
    for _ in range(2):
        with pytest.raises(RametError) as refusal:
            intruder.sandbox(workspace="p")
        assert refusal.value.code == "principal_mismatch", "and the workspace is not left busy"
    with intruder.sandbox(workspace="p", resume=False) as sb:
        assert sb.exec("echo [$RESUMED]; cat f").text == "[]\nfile\n"


@pytest.mark.parametrize("able", [True, False])
def test_an_image_that_is_gone_leaves_the_files(able: bool, tmp_path: Path) -> None:
    images = Images()
    slept(tmp_path, images)
    images.kept.clear()
    run = AgentRun(store=Store(str(tmp_path)), checkpointer=images if able else None)
    with run.sandbox(workspace="p") as sb:
        assert sb.exec("echo [$RESUMED]; cat f").text == "[]\nfile\n" and "not available" in sb.warnings[0]


def test_a_fork_is_resumable_and_a_revert_is_its_files(tmp_path: Path) -> None:
    run = slept(tmp_path, Images())
    assert run.workspace("p").fork("p-1", "q").resumable
    assert not run.workspace("p").revert("p-1").resumable
    with run.sandbox(workspace="q") as fork, run.sandbox(workspace="p") as back:
        assert (fork.exec("echo =$RESUMED").text, back.exec("echo =$RESUMED").text) == ("=half\n", "=\n")


def test_what_could_not_be_committed_leaves_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = Images()
    run = AgentRun(store=Store(str(tmp_path)), checkpointer=images)
    run.create_workspace("p")
    sb = run.sandbox(workspace="p")

    async def broken(*_: object, **__: object) -> None:
        raise RametError("unavailable", "the disk is full", "make room")

    with monkeypatch.context() as patch:
        patch.setattr(sb._ws, "commit", broken)
        with pytest.raises(RametError, match="disk is full"):
            sb.terminate(checkpoint=True)
    assert not images.kept and sb.exec("echo on").text == "on\n"
    revision = sb.terminate(checkpoint=True)
    assert revision is not None and list(images.kept) == ["image-1"]


def test_the_feed_points_to_the_image(tmp_path: Path) -> None:
    run = slept(tmp_path, Images())

    async def first() -> Mapping[str, Any]:
        async for event in run.store.events():
            if "memorySnapshotRef" in event.data:
                return event.data
        raise AssertionError("no event names it")

    data = asyncio.run(first())
    assert data["memorySnapshotRef"] == "image-1" and "half" not in str(data)


def test_a_run_on_an_encrypted_store(tmp_path: Path) -> None:
    run = AgentRun("team", store=str(tmp_path), key=b"k" * 32, principal="alice")
    run.create_workspace("p")
    with run.sandbox(workspace="p") as sb:
        sb.exec("echo plain-words > f")
    assert run.store.repository.principal == "alice"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"plain-words" in path.read_bytes()]
    with pytest.raises(RametError, match="key"):
        AgentRun("team", store=str(tmp_path)).workspace("p")
    with pytest.raises(TypeError, match="key"):
        AgentRun(store=run.store, key=b"k" * 32)


@pytest.mark.parametrize("busy", ["time.sleep(60)", "sb.exec('sleep 60')"])
def test_sigterm_ends_a_sandbox_in_order(busy: str, tmp_path: Path) -> None:
    script = (
        "import sys, time; from ramet import AgentRun; run = AgentRun(store=sys.argv[1]); run.create_workspace('p');"
        f" sb = run.sandbox(workspace='p'); sb.exec('echo kept > f'); print('up', flush=True); {busy}"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    process.terminate()
    process.communicate(timeout=200)
    assert process.returncode == 128 + 15
    with AgentRun(store=str(tmp_path)).sandbox(workspace="p") as sb:
        assert sb.files.read_text("f") == "kept\n"
