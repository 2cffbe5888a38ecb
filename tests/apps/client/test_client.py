"""`ramet.connect`: the local API against a real server."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.apps.server.harness import Process, run, serving
from tests.workspace.native.conftest import missing

import ramet
from ramet import RametError, Store
from ramet.apps.client.client import RemoteStore
from ramet.apps.client.http import Address
from ramet.apps.client.workspace import RemoteWorkspace
from ramet.apps.server.settings import Bounds


def test_a_call_says_what_runs_it(tmp_path: Path) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    server = Process(tmp_path, "--native")

    async def work(store: RemoteStore) -> None:
        async with store.open("p") as ws:
            real = await ws.execute("echo ${BASH_VERSINFO[0]}; cat /proc/self/comm", native=True)
            assert real.text.splitlines()[1:] == ["cat"], real.stderr
            assert (await ws.execute("perl -e 'print 6 * 7'")).text == "42"
            assert (await ws.execute("perl -e 'print 6 * 7'", native=False)).exit_code == 127

    try:
        with ramet.connect(f"unix:{server.socket}") as store:
            store.create("p", native=True)
            asyncio.run(work(store))
    finally:
        server.stop()


def test_the_local_api_over_http(tmp_path: Path) -> None:
    server = Process(tmp_path)

    async def work(store: RemoteStore) -> None:
        async with store.open("p") as ws:
            done = await ws.execute("cat; echo $X >&2; printf '\\xff'", stdin=b"in\xfe", env={"X": "1"}, cwd="/tmp")
            assert (done.stdout, done.stderr, done.exit_code) == (b"in\xfe\xff", b"1\n", 0)
            execution = ws.execute("echo a; exit 3")
            assert [tuple(piece) async for piece in execution] == [(1, b"a\n")]
            assert execution.result is not None and execution.result.exit_code == 3
            assert (await ws.execute("sleep 9", timeout=0.05)).timed_out
            await ws.write("/d/\udcff", b"raw", parents=True)
            assert await ws.read("/d/\udcff") == b"raw"
            assert [name for name, _ in await ws.scan("/d")] == ["\udcff"]
            with pytest.raises(FileNotFoundError):
                await ws.read("/none")
            with pytest.raises(RametError, match="no session"):
                await ws.execute("true", "nobody")
            stopped = asyncio.ensure_future(ws.execute("while :; do echo >> /ticks; sleep 0.01; done"))
            while not await ws.exists("/ticks"):  # noqa: ASYNC110 - it is another process that makes it
                await asyncio.sleep(0.01)
            stopped.cancel()
            await asyncio.gather(stopped, return_exceptions=True)
            assert (await ws.execute("echo the session is free")).exit_code == 0
            ticks = await ws.size("/ticks")
            await asyncio.sleep(0.2)
            assert await ws.size("/ticks") == ticks
            await ws.commit("by hand")

    try:
        with ramet.connect(f"unix:{server.socket}") as store:
            store.create("p")
            asyncio.run(work(store))
            assert store.ls() == ["p"]
            handle = store["p"]
            assert handle.head is not None and len(log := handle.log()) > 1
            assert handle.log(limit=1, offset=1) == log[1:2] and handle.log(records={2}) == handle.log(records=(2, 2))
            handle.tag("v1")
            handle.fork("v1", "q")
            assert handle.diff("v1", "q@head") == []
            assert b"".join(handle.show("/d/\udcff", "v1")) == b"raw"
            with pytest.raises(RametError) as refused:
                _ = store["nothing"]
            assert refused.value.code == "workspace_not_found"
    finally:
        server.process.kill()
        server.process.wait()


def test_jobs_snapshots_events_keys_and_revisions(tmp_path: Path) -> None:
    server = Process(tmp_path)

    async def work(store: RemoteStore) -> int:
        async with store.open("p") as ws:
            once = await ws.execute("echo x >> /n; wc -l < /n", idempotency_key="k1")
            again = await ws.execute("echo x >> /n; wc -l < /n", idempotency_key="k1")
            assert once.text == again.text == "1\n"
            await ws.write("/f", b"one", idempotency_key="k2")
            past = (await ws.commit("with one")).seq
            await ws.write("/f", b" two", append=True)
            await ws.copy("/f", "/g")
            await ws.symlink("/l", "g")
            await ws.chmod("/g", 0o600)
            assert await ws.size("/g") == 7 and await ws.exists("/l") and not await ws.exists("/none")
            assert b"".join([block async for block in ws.stream("/l")]) == b"one two"
            job = await ws.detach("sleep 0.05; echo later")
            assert (await ws.wait(job.id)).result.stdout == "later\n"  # type: ignore[union-attr]
            long = await ws.detach("sleep 100")
            assert (await ws.kill(long.id)).state == "killed" and len(await ws.jobs()) == 2
            assert (await ws.job(job.id)).state == "completed"
            assert [session.session_id for session in await ws.list_sessions()] == ["default"]
        async with store.open(f"p@{past}") as ws:
            assert await ws.read("/f") == b"one" and await ws.size("/f") == 3 and await ws.exists("/f")
            assert (await ws.execute("cat /f; rm /f; echo gone > /new; ls -d /f /new")).text == "one/new\n"
            assert (await ws.execute("cat /f; ls /new", timeout=10)).text == "one", "each has a past of its own"
            assert {name for name, _ in await ws.scan("/")} == {"f", "home", "n", "tmp"}
            assert (await ws.stat("/f")).size == 3 and not await ws.exists("/g")
            for changing in (ws.write("/f", b""), ws.detach("true"), ws.mkdir("/d"), ws.commit()):
                with pytest.raises(RametError, match="cannot change"):
                    await changing
        async with store.open("p") as ws:
            assert await ws.read("/f") == b"one two"
        with pytest.raises(RametError, match="no revision"):
            async with store.open("p@none"):
                pass
        kinds = [event["event"] async for event in store.server_events(follow=False)]
        assert kinds[0] == "created" and "exec" in kinds and "job" in kinds
        return int(past)

    try:
        with ramet.connect(f"unix:{server.socket}") as store:
            store.create("p")
            asked = asyncio.run(work(store))
            store["p"].export(tmp_path / "p.tar")
            made = store.import_archive("q", tmp_path / "p.tar", message="from a tar")
            assert made.revision.name == "q-1" and store["q"].find().message == "from a tar"
            with open(tmp_path / "plain.tar", "wb") as file:
                store["p"].export(file, str(asked), kind="tar")
            store.import_archive("r", str(tmp_path / "plain.tar"))
            assert b"".join(store["r"].show("/f")) == b"one"
            with pytest.raises(RametError):
                store["p"].export(tmp_path / "none.tar", "none")
            assert not list(tmp_path.glob("none*"))
            with pytest.raises(RametError, match="names a path"):
                store.open("p:/f")
    finally:
        server.process.kill()
        server.process.wait()


def test_input_of_any_length_goes_to_a_command(tmp_path: Path) -> None:
    """More than a JSON body may hold: it waits in a file of the server, and is never whole in memory here."""
    piece, count = bytes(range(256)) * 4096, 24

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(count):
            yield piece

    async def test() -> None:
        async with serving(Store(str(tmp_path)), bounds=Bounds(json_bytes=1 << 20)) as (http, _):
            await http.post("/v1/workspaces", json={"name": "w"})
            await http.put("/v1/workspaces/w/file?path=/f", content=b"x")
            address = Address("http://test", None, None)
            ws = RemoteWorkspace(http, "w", address=address)
            wanted = hashlib.sha256(piece * count).hexdigest()
            for stdin in (pieces(), piece * count):
                assert (await ws.execute("sha256sum", stdin=stdin)).text == f"{wanted}  -\n"
            done = await ws.execute("cat | wc -c", stdin=pieces(), idempotency_key="k")
            assert done.text.strip() == str(len(piece) * count)
            head = await ws.execute("head -c 4 | od -An -tx1", stdin=pieces())
            assert head.text == " 00 01 02 03\n"
            past = RemoteWorkspace(http, "w", "head", address=address)
            assert (await past.execute("wc -c", stdin=pieces())).text.strip() == str(len(piece) * count)
            follows = {"stdin": "follows"}
            url = "/v1/workspaces/w/exec"
            both = await http.post(url, params=follows, content=b'{"command": "cat", "stdin": "x"}\ny')
            none = await http.post(url, params=follows, content=b'{"command": "cat"}')
            long = await http.post(url, params=follows, content=b" " * (2 << 20))
            kept = await http.post(url, params=follows, content=b'{"command": "cat", "detach": true}\ny')
            assert (both.status_code, none.json()["stdout"], long.status_code) == (400, "", 413)
            assert kept.status_code == 501 or kept.json()["code"] == "unsupported"

    run(test)
