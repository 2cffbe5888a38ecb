"""A store behind a server is the store: the same calls give the same values, also for its care."""

from __future__ import annotations

import asyncio
import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.server.harness import Process

import ramet
from ramet import RametError, Store
from ramet.apps.client.client import RemoteStore
from ramet.store.refs.retention import Retention
from ramet.workspace.stored.git_push import GitSettings


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteStore]:
    server = Process(tmp_path)
    try:
        with ramet.connect(f"unix:{server.socket}") as store:
            store.create("p")
            asyncio.run(_fill(store))
            yield store
    finally:
        server.process.kill()
        server.process.wait()


async def _fill(store: RemoteStore) -> None:
    async with store.open("p") as ws:
        await ws.execute("printf 'one\\ntwo' > /f", message="begin", author="ada")
        await ws.execute("printf 'one\\n2\\n' > /f; mkdir /d; ln -s f /l")
        await ws.execute("rm /l; sleep 0 & wait; cd /d", agent_id="robot")


def test_revisions_and_what_they_hold_are_equal(remote: RemoteStore, tmp_path: Path) -> None:
    here = Store(str(tmp_path / "store"))["p"]
    there = remote["p"]
    assert there.log() == here.log() and [one.id for one in there.log()] == [one.id for one in here.log()]
    assert (there.head, there.find("1"), there.find("p@2")) == (here.head, here.find("1"), here.find("2"))
    assert remote.find("p@1").message == "begin" and there.find("1").author == "ada"
    assert there.graph() == here.graph() and there.mounts() and there.mounts("head") == here.mounts()
    assert [(d.path, d.what, d.old) for d in there.diff("2")] == [(d.path, d.what, d.old) for d in here.diff("2")]
    assert [str(one) for one in there.patch("1", "2")] == [str(one) for one in here.patch("1", "2")] != []
    for revision in ("1", None):
        assert there.blame("/f", revision) == here.blame("/f", revision)
    assert there.history() == here.history() and there.history(last=1)[0].agent_id == "robot"
    assert there.history(session="nobody") == [] and there.jobs("head") == here.jobs()
    assert there.sessions("head") == here.sessions() and there.sessions()[0].cwd == "/d"
    made = there.tag("v1", "1", message="it worked", author="eve")
    assert here.tags() == there.tags() == [made] and there.expired_parents(there.find("2")) == ()
    fork = there.fork("v1", "q")
    assert remote["q"].head == remote.heads()["q"] == fork and "q" in remote and "none" not in remote
    assert (there.revert("1", "back").message, here.find().lineage) == ("back", "revert:p-1")
    assert there.merge("q").ok and remote.ls() == ["p", "q"]
    there.untag("v1")
    assert here.tags() == []


def test_conflicts_are_resolved_through_a_server(remote: RemoteStore) -> None:
    async def put(name: str, text: str) -> None:
        async with remote.open(name) as ws:
            assert (await ws.execute(f"printf '{text}' > /g")).exit_code == 0

    remote["p"].fork(None, "q")
    for name, text in (("p", "ours\n"), ("q", "theirs\n")):
        asyncio.run(put(name, text))
    refused = remote["p"].merge("q")
    assert [one.path for one in refused.conflicts] == ["/g"] and refused.base == remote["q"].find("head~1").parents[
        0
    ].hex()
    assert remote["p"].merge("q", edited={"/g": b"\xff both"}).ok
    assert b"".join(remote["p"].show("/g")) == b"\xff both"
    asyncio.run(put("q", "again\n"))
    assert remote["p"].merge("q", take={"*": "theirs"}).ok and b"".join(remote["p"].show("/g")) == b"again\n"


def test_bisect_says_where_it_broke(remote: RemoteStore, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    work = remote["p"].bisect("1", None, "grep -q two /f", progress=lambda *news: told.append(news), timeout=10)
    found = asyncio.run(work)
    here = Store(str(tmp_path / "store"))["p"]
    assert found == asyncio.run(here.bisect("1", None, "grep -q two /f")) and found.first_bad == here.find("2")
    assert told and told[0][0] == "revisions"
    with pytest.raises(RametError, match="no revision"):
        asyncio.run(remote["p"].bisect("99", None, "true"))


def test_what_is_kept_and_for_whom(remote: RemoteStore, tmp_path: Path) -> None:
    here = Store(str(tmp_path / "store"))
    remote.retention(Retention(keep_last=5, keep_within=60.0))
    remote.retention(Retention(keep_last=2), "p")
    remote.hold("p", "case 42")
    assert here.retention(name="p") == remote.retention(name="p") == Retention(2, 60.0, hold="case 42")
    assert remote.own_retention("p") == here.own_retention(
        "p"
    ) and remote.own_retention() == here.own_retention() == Retention(5, 60.0)
    remote.retention(Retention(keep_last=3), "p")
    assert here.own_retention("p") == Retention(3, hold="case 42"), "a hold is lifted by lifting it"
    with pytest.raises(RametError, match="cannot place a hold"):
        remote.retention(Retention(hold="other"), "p")
    remote.lift("p")
    assert not here.own_retention("p").hold
    pin = remote["p"].pin("1", seconds=1e6, why="review")
    assert remote.pins() == remote.pins("p") == here.pins() == [pin] and remote.pins("q") == []
    remote.unpin(pin.token)
    assert here.pins() == []
    with pytest.raises(RametError, match="no pin"):
        remote.unpin(pin.token)
    there = remote["p"]
    assert there.grants() == {}
    with pytest.raises(RametError, match="no writer would be left"):
        there.grant("ada@example.org/x", "readonly")
    there.grant("ada@example.org/x", "readwrite")
    assert here.repository.grants.of("p") == {"ada@example.org/x": "readwrite"}


def test_care_of_the_store(remote: RemoteStore, tmp_path: Path) -> None:
    here = Store(str(tmp_path / "store"))
    assert remote.cost() == here.cost() and remote.cost().workspaces[0].workspace == "p"
    told: list[str] = []
    report = remote.verify(lambda stage, done, total: told.append(stage))
    assert report.ok and report == here.verify() and report.revisions >= 3
    assert remote.repair().ok
    dry = remote.gc(dry=True, grace=0)
    assert dry.dry and dry == here.gc(dry=True, grace=0)
    remote.retention(Retention(keep_last=1), "p")
    assert remote.gc(grace=0).expired == ["p-1", "p-2"] and len(remote["p"].log()) == 1
    last = remote["p"].find()
    fresh = Store(str(tmp_path / "store"))
    assert remote["p"].expired_parents(last) == fresh["p"].expired_parents(last) != ()
    with pytest.raises(RametError, match="encrypted"):
        remote.keys.show()
    with pytest.raises(RametError, match="encrypted"):
        remote.keys.shred("p")


def test_carrying_in_and_out(remote: RemoteStore, tmp_path: Path) -> None:
    there = remote["p"]
    plain = io.BytesIO()
    assert there.export(plain, "1", kind="tar").seq == 1
    assert tarfile.open(fileobj=io.BytesIO(plain.getvalue())).extractfile("f").read() == b"one\ntwo"  # type: ignore[union-attr]
    made = there.import_archive(io.BytesIO(plain.getvalue()), prefix="/old", kind="tar", message="in")
    assert (made.revision.message, made.files) == ("in", 1) and b"".join(there.show("/old/f")) == b"one\ntwo"
    receipt = there.checkout(str(tmp_path / "out"))
    assert (tmp_path / "out" / "f").read_bytes() == b"one\n2\n" and receipt.written > 0
    done = there.export_git(str(tmp_path / "out.git"))
    assert done == Store(str(tmp_path / "store"))["p"].export_git(str(tmp_path / "again.git")) and done.commits == 4
    count = ["git", "-C", str(tmp_path / "out.git"), "rev-list", "--count", done.branch]
    assert subprocess.run(count, capture_output=True, check=True).stdout == b"4\n"
    with pytest.raises(RametError, match="pushing is off"):
        there.push("https://example.org/x.git")
    assert there.pushes() == []

    async def mounts() -> None:
        async with remote.open("p") as ws:
            await ws.mount("/scratch")
            await ws.execute("echo x > /scratch/x")
            assert "/scratch" in [str(mount.prefix) for mount in await ws.mounts()]
            await ws.snapshot(tmp_path / "whole.tar")
            await ws.unmount("/scratch")
            assert not await ws.exists("/scratch/x")
            assert await ws.dispatch("read", "/f", 1, 3) == b"ne" and await ws.read("/f", 99) == b""
            assert (await ws.get_session()).cwd == "/d"
            assert (await ws.history(last=1))[0].command == "unmount /scratch"
            with pytest.raises(RametError, match="cannot send"):
                await ws.mount("/disk", ramet.DiskResource(str(tmp_path)))
            with pytest.raises(RametError, match="cannot unmount"):
                await ws.unmount("/none")
        async with remote.open("p", readonly=True) as ws:
            with pytest.raises(RametError, match="cannot change"):
                await ws.write("/f", b"")
        events = [event async for event in remote.events()]
        assert [event.envelope for event in events] == [
            event.envelope async for event in Store(str(tmp_path / "store")).events()
        ]
        assert [event async for event in remote.events(events[-2].cursor)] == events[-1:]

    asyncio.run(mounts())
    with tarfile.open(tmp_path / "whole.tar") as tar:
        assert tar.getnames()
    with pytest.raises(RametError, match="cannot set"):
        remote.open("p", commit="never")


def test_sandboxes_without_await(remote: RemoteStore) -> None:
    run = remote.agent_run()
    with run.sandbox("python", workspace="p", env={"WHO": "me"}) as box:
        box.files.write("dist/app.js", "hello")
        assert box.exec("echo $WHO; pwd; printf '\\xff'").stdout == b"me\n/workspace\n\xff"
        assert box.exec(["cat", "-"], stdin="in", cwd="/").text == "in" and box.exec("exit 3").exit_code == 3
        assert box.files.list() == ["dist"] and box.files.read_text("dist/app.js") == "hello"
        assert box.files.exists("dist") and not box.files.exists("none")
        box.files.mkdir("a/b")
        box.files.remove("a")
        assert [one.name for one in run.sandboxes()] == [box.name]
        with pytest.raises(FileNotFoundError):
            box.files.read("none")
        with pytest.raises(RametError, match="held by"):
            run.sandbox(workspace="p")
        made = box.terminate(["/workspace/dist", {"diff": True}])
    git = GitSettings(("/workspace",), {"r": "file:///r"}, credentials_secret=None)
    box_two = run.sandbox(workspace="p", git=git, git_secrets={"s": {"k": "v"}})
    with pytest.raises(RametError, match="cannot push there"):
        box_two.terminate([{"git": {"remote": "r"}}])
    assert (box_two.refresh().phase, box_two.pushed, box_two.warnings) == ("Ready", [], [])
    assert box_two.terminate(["/workspace/dist"]) is not None
    assert made is not None and made == box.revision == run.workspace("p").find(made.name)
    assert made.outputs == ("/workspace/dist",)
    with pytest.raises(RametError, match="has ended"):
        box.start()
    with pytest.raises(RametError, match="not running"):
        box.exec("true")


def test_a_server_that_is_not_there_is_a_clear_error() -> None:
    with pytest.raises(RametError, match="cannot reach"), ramet.connect("http://127.0.0.1:1") as store:
        store.ls()
    with pytest.raises(RametError, match="is not a server"):
        ramet.connect("ftp://example.org")
