"""The HTTP server: what it answers, what it refuses, what survives."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.apps.server.harness import TOKEN, Process, run, serving

import ramet
from ramet import Store
from ramet.apps.client.client import RemoteStore
from ramet.core.paths import parse

W = "/v1/workspaces/p"


def test_each_change_over_http_is_one_record_of_its_principal(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.put(f"{W}/file?path=/d/e/f&parents=true", content=b"x\n")
            await http.post(f"{W}/exec", json={"command": "echo y >> /d/e/f", "agent": "eve", "meta": {"tokens": 3}})
            await http.delete(f"{W}/file?path=/d&recursive=true")
            found = (await http.get(f"{W}/history")).json()["commands"]
            assert [(one["kind"], one["agent_id"], one["command"]) for one in found] == [
                ("write", "default", "write /d/e/f"), ("command", "eve", "echo y >> /d/e/f"),
                ("write", "default", "remove /d"),
            ]  # fmt: skip
            assert found[1]["meta"] == {"tokens": 3} and all(one["principal"] for one in found)
            blamed = (await http.get(f"{W}/blame?path=/d/e/f&revision=head~1")).json()["lines"]
            assert [(one["record"], one["kind"], one["agent"]) for one in blamed] == [
                (1, "write", "default"), (2, "command", "eve"),
            ]  # fmt: skip

    run(test)


def test_exec_files_and_history(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            assert (await http.post("/v1/workspaces", json={"name": "p"})).status_code == 201
            body = {"command": "echo hi > /a; cat /a -; cd /tmp", "stdin": "in", "env": {"X": "1"}}
            done = (await http.post(f"{W}/exec", json=body)).json()
            assert (done["exit_code"], done["stdout"]) == (0, "hi\nin")
            assert (await http.post(f"{W}/exec", json={"command": "pwd; echo $X"})).json()["stdout"] == "/tmp\n\n"
            late = await http.post(f"{W}/exec", json={"command": "sleep 9", "timeout_ms": 20})
            assert late.json()["exit_code"] == 124 and late.json()["timed_out"]
            odd = (await http.post(f"{W}/exec", json={"command": "printf '\\xff'"})).json()
            assert (odd["encoding"], odd["stdout"]) == ("base64", "/w==")
            lines = (await http.post(f"{W}/exec", json={"command": "echo o; echo e >&2; exit 3", "stream": True})).text
            rows = [json.loads(line) for line in lines.splitlines()]
            assert {(row["fd"], row["data"]) for row in rows[:-1]} == {(1, "o\n"), (2, "e\n")}
            assert rows[-1]["exit_code"] == 3
            await http.post(f"{W}/fork", json={"name": "q"})
            await http.put("/v1/workspaces/q/file?path=/b", content=b"b")
            await http.put(f"{W}/tags/v1", json={})
            merged = await http.post(f"{W}/merge", json={"other": "q"})
            assert merged.status_code == 200 and not merged.json()["conflicts"]
            assert (await http.get(f"{W}/file?path=/b")).content == b"b"
            changes = (await http.get(f"{W}/diff", params={"older": "v1", "newer": "head"})).json()["changes"]
            assert [(c["what"], c["path"]) for c in changes] == [("added", "/b")]
            await http.post(f"{W}/revert", json={"revision": "v1"})
            assert (await http.get(f"{W}/file?path=/b")).status_code == 404
            assert (await http.get(f"{W}/file?path=/a&revision=v1")).content == b"hi\n"
            tar = (await http.get(f"{W}/snapshot")).content
            assert (await http.put("/v1/workspaces/r/snapshot", content=tar)).status_code == 201
            assert (await http.get("/v1/workspaces/r/file?path=/a")).content == b"hi\n"

    run(test)


def test_ranges_and_preconditions(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(None) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p", "kind": "memory"})
            file = f"{W}/file?path=/d/f"
            assert (await http.put(file, content=b"0123456789")).status_code == 404
            tag = (await http.put(file + "&parents=true", content=b"0123456789")).headers["etag"]
            for asked, status, content in [
                ("bytes=2-4", 206, b"234"), ("bytes=-3", 206, b"789"), ("bytes=7-", 206, b"789"),
                ("bytes=5-99", 206, b"56789"), ("bytes=10-", 416, None), ("bytes=4-2", 200, b"0123456789"),
                ("lines=1-2", 200, b"0123456789"), ("bytes=0-1,3-4", 200, b"0123456789"),
            ]:  # fmt: skip
                found = await http.get(file, headers={"range": asked})
                assert found.status_code == status, asked
                assert content is None or found.content == content, asked
            assert (await http.get(file, headers={"if-none-match": tag})).status_code == 304
            assert (await http.head(file)).headers["content-length"] == "10"
            assert (await http.put(file, content=b"x", headers={"if-none-match": "*"})).status_code == 412
            assert (await http.put(file, content=b"x", headers={"if-match": tag})).status_code == 200
            assert (await http.put(file, content=b"y", headers={"if-match": tag})).status_code == 412
            assert (await http.delete(file, headers={"if-match": tag})).status_code == 412
            assert (await http.get(file)).content == b"x"
            urls = "%2e%2e/%2e%2e/etc/passwd ..%2f..%2fetc %2e%2e p%2f..%2fp/log p/../p/log ./log %00"
            for url in urls.split():
                for verb in ("", "/log", "/file?path=/etc/passwd", "/snapshot", "/stat?path=/"):
                    found = await http.get(httpx2.URL("http://test", raw_path=f"/v1/workspaces/{url}{verb}".encode()))
                    assert found.status_code in (400, 404) and "root:" not in found.text, url
            for path in ("/../../etc/passwd", "../../../../etc/shadow", "/d/../../../proc/self/environ", "/%2e%2e/etc"):
                assert (await http.get(f"{W}/file", params={"path": path})).status_code == 404, path
                assert (await http.get(f"{W}/file/..%2f..%2fetc")).status_code == 404
            raw = await http.put(f"{W}/file?path=/%ff", content=b"raw")
            assert json.loads(raw.content)["path"] == "/\udcff"

    run(test)


def test_only_health_answers_without_the_token(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            from ramet.apps.server.routes import ROUTES

            for route in ROUTES:
                url = route.path.replace("{name}", "p").replace("{id}", "x")
                for token in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}"):
                    found = await http.request(route.method, url, headers={"authorization": token})
                    assert found.status_code == (200 if route.open else 401), (route, token)
            assert (await http.get("/openapi.json", headers={"authorization": ""})).status_code == 401
            for host in ("evil.example", "test.evil.example", "", "127.0.0.1:80"):
                assert (await http.get("/v1/health", headers={"host": host})).status_code == 421
            assert (await http.get("/v1/health", headers={"host": "test:8080"})).status_code == 200

    run(test)


def test_limits_of_a_client(tmp_path: Path) -> None:
    async def test() -> None:
        from ramet.apps.server.settings import Bounds

        bounds = Bounds(concurrency=2, json_bytes=1000, upload_bytes=1000)
        async with serving(None, bounds=bounds) as (http, app):
            await http.post("/v1/workspaces", json={"name": "p", "kind": "memory"})
            large = await http.post(f"{W}/exec", json={"command": "x" * 2000})
            assert (large.status_code, large.json()["code"]) == (413, "limit_exceeded")
            assert (await http.put(f"{W}/file?path=/f", content=b"x" * 1001)).status_code == 413
            assert (await http.get(f"{W}/stat?path=/f")).status_code == 404
            until = {"command": "until [ -e /go ]; do sleep 0.01; done"}
            slow = [asyncio.ensure_future(http.post(f"{W}/exec", json=until)) for _ in range(2)]
            while sum(client.running for client in app._gate._clients.values()) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            refused = await http.get(f"{W}/stat?path=/")
            assert refused.status_code == 429 and refused.headers["retry-after"]
            hosted = app.workspaces.find("p")
            assert hosted is not None
            await hosted.ws.fs.write(parse("/go"), b"")
            assert [one.status_code for one in await asyncio.gather(*slow)] == [200, 200]
        async with serving(None, bounds=Bounds(rate=0.001, burst=3)) as (http, _):
            assert [(await http.get("/v1/workspaces")).status_code for _ in range(5)] == [200, 200, 200, 429, 429]

    run(test)


def test_events_are_reported_and_can_be_caught_up_with(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(None) as (http, app):
            await http.post("/v1/workspaces", json={"name": "p", "kind": "memory"})
            await http.post(f"{W}/exec", json={"command": "false"})
            app.events.close()
            text = (await http.get("/v1/events?since=0")).text
            assert text.startswith(": ramet")
            stream = app.events.stream(0, "p")
            app.events.closed = False
            await anext(stream)
            assert b"event: created" in await anext(stream)
            assert b'"exit_code":1' in await anext(stream)

    run(test)


def test_a_key_answers_once_also_after_a_crash(tmp_path: Path) -> None:
    async def test() -> None:
        key = {"idempotency-key": "one"}
        body = {"command": "echo x >> /n; cat /n"}
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            first = await http.post(f"{W}/exec", json=body, headers=key)
            both = await asyncio.gather(*(http.post(f"{W}/exec", json=body, headers=key) for _ in range(3)))
            assert {one.content for one in both} == {first.content}
            assert (await http.post(f"{W}/move", json={}, headers=key)).status_code == 409
        async with serving(Store(str(tmp_path))) as (http, _):
            again = await http.post(f"{W}/exec", json=body, headers=key)
            assert (again.content, again.headers["idempotency-replayed"]) == (first.content, "true")
            assert (await http.get(f"{W}/file?path=/n")).content == b"x\n"

    run(test)


def test_what_was_answered_survives_kill_and_a_stop_gives_the_lease_back(tmp_path: Path) -> None:
    server = Process(tmp_path)
    try:
        assert os.stat(server.socket).st_mode & 0o077 == 0
        with server.client() as http:
            http.post("/v1/workspaces", json={"name": "p"})
            http.put(f"{W}/file?path=/acknowledged", content=b"1")
            http.post(f"{W}/exec", json={"command": "export KEPT=yes; cd /tmp"})
        server.kill()
        server.start()
        with server.client() as http:
            assert http.get(f"{W}/file?path=/acknowledged").content == b"1"
            assert http.post(f"{W}/exec", json={"command": "echo $KEPT $PWD"}).json()["stdout"] == "yes /tmp\n"
        assert server.stop() in (0, -signal.SIGTERM)
        assert Store(str(tmp_path / "store")).repository.refs.last("p").holder == ""
    finally:
        server.process.kill()
        server.process.wait()


def test_a_client_that_goes_away_stops_its_command(tmp_path: Path) -> None:
    server = Process(tmp_path)
    try:
        with server.client() as http:
            http.post("/v1/workspaces", json={"name": "p", "kind": "memory"})
            for stream in (False, True):
                command, seconds = f"while :; do echo >> /{stream}; sleep 0.01; done", 0.1
                while http.get(f"{W}/stat?path=/{stream}").status_code == 404:  # a busy server begins later
                    with pytest.raises(httpx2.ReadTimeout):
                        waits = httpx2.Timeout(250, read=seconds)
                        http.post(f"{W}/exec", json={"command": command, "stream": stream}, timeout=waits)
                    seconds *= 2
            # The session is free again, and what was begun in it does not go on.
            assert http.post(f"{W}/exec", json={"command": "echo"}).json()["stdout"] == "\n"
            ticks = [http.get(f"{W}/file?path=/{stream}").content for stream in (False, True)]
            time.sleep(0.2)
            assert ticks == [http.get(f"{W}/file?path=/{stream}").content for stream in (False, True)]
    finally:
        server.process.kill()
        server.process.wait()


def test_load_with_a_kill_in_the_middle_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Bounded; RAMET_LOAD=200x60 runs 200 clients for 60 seconds."""
    clients, _, seconds = (os.environ.get("RAMET_LOAD") or "20x2").partition("x")
    server = Process(tmp_path, "--concurrency", "1000")
    kept: dict[str, str] = {}
    times: list[float] = []

    async def client(http: httpx2.AsyncClient, number: int, until: float, last: bool) -> None:
        turn = 0
        try:
            await http.post(f"{W}/sessions", json={"id": f"s{number}"})
        except httpx2.TransportError:  # a busy machine is slower than the kill
            assert not last
            return
        while time.monotonic() < until:
            turn += 1
            began = time.perf_counter()
            try:
                path = f"/c{number}-{turn % 10}"
                if turn % 3 == 0:
                    done = await http.put(f"{W}/file?path={path}", content=str(turn))
                    if done.status_code == 200:
                        kept[path] = str(turn)
                elif turn % 3 == 1:
                    body = {"command": f"echo {turn} | tr 0-9 a-j", "session": f"s{number}"}
                    done = await http.post(f"{W}/exec", json=body)
                else:
                    done = await http.get(f"{W}/file?path=/base")
                assert done.status_code == 200, done.text
                times.append(time.perf_counter() - began)
            except httpx2.TransportError:
                assert not last
                return

    async def load(last: bool) -> None:
        until = time.monotonic() + float(seconds) / 2
        async with server.async_client() as http:
            work = [client(http, number, until, last) for number in range(int(clients))]
            if not last:
                asyncio.get_running_loop().call_later(float(seconds) / 2 - 0.3, server.kill)
            await asyncio.gather(*work)

    def check() -> None:
        with server.client() as http:
            for path, content in kept.items():
                now = http.get(f"{W}/file?path={path}").text
                assert int(now) >= int(content), path  # a later write may have landed without its answer

    try:
        with server.client() as http:
            http.post("/v1/workspaces", json={"name": "p"})
            http.put(f"{W}/file?path=/base", content=b"base")
        asyncio.run(load(False))
        server.start()
        check()
        kept.clear()
        times.clear()
        asyncio.run(load(True))
        check()
        times.sort()
        if times:
            half, late = times[len(times) // 2], times[int(len(times) * 0.99)]
            told = f"{len(times)} requests, p50 {half * 1e3:.1f} ms, p99 {late * 1e3:.1f} ms"
            print(f"{told}, {server.memory() >> 20} MB")
            assert "RAMET_LOAD" not in os.environ or late < 50 * half, "only who asks for it has a machine for it"
    finally:
        server.process.kill()
        server.process.wait()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["a directory", "the store", "an encrypted store"])
def test_a_large_file_passes_through_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Bounded; RAMET_UPLOAD=2048 sends 2 GiB. A workspace of kind `memory` would hold the file itself."""
    pieces = int(os.environ.get("RAMET_UPLOAD", "160"))
    if where == "an encrypted store":
        monkeypatch.setenv("RAMET_KEY", "5a" * 32)
        Store(str(tmp_path / "store"), key="env:RAMET_KEY")
    (tmp_path / "disk").mkdir()
    path = "/data/f" if where == "a directory" else "/f"
    server = Process(tmp_path, *(("--mount", f"p:/data={tmp_path / 'disk'}") if where == "a directory" else ()))

    async def blocks() -> AsyncIterator[bytes]:
        made = random.Random(1)
        for _ in range(pieces):
            yield made.randbytes(1 << 20)

    async def act(store: RemoteStore) -> None:
        sent, came = hashlib.sha256(), hashlib.sha256()
        async for block in blocks():
            sent.update(block)
        async with store.open("p") as ws:
            assert (await ws.write(path, blocks())).size == pieces << 20
            async for block in ws.stream(path):
                came.update(block)
        assert came.digest() == sent.digest()

    try:
        with ramet.connect(f"unix:{server.socket}", timeout=600) as store:
            store.create("p")
            asyncio.run(act(store))
            assert sum(map(len, store["p"].show(path))) == pieces << 20
            with open(tmp_path / "p.tar", "wb") as file:
                store["p"].export(file, kind="tar")
            store.import_archive("q", tmp_path / "p.tar")
            assert server.memory() < 144 << 20  # less than the file
    finally:
        server.process.kill()
        server.process.wait()


def test_grants_hold_over_http(tmp_path: Path) -> None:
    tokens = {who: f"token-of-{who}-0123456789" for who in ("ada", "bob", "eve")}

    async def act() -> None:
        store = Store(str(tmp_path / "store"), principal="ada")
        store.create("w")
        async with store.open("w") as ws:
            await ws.execute("echo hello > /x")
        store["w"].grant("ada", "readwrite")
        store["w"].grant("bob", "readonly")
        store.create("open")
        async with serving(
            Store(str(tmp_path / "store"), principal="ada"), principals={v: k for k, v in tokens.items()}
        ) as (client, _):

            async def status(who: str, method: str, path: str, **options: Any) -> int:
                headers = {"authorization": f"Bearer {tokens[who]}"}
                answer = await client.request(method, f"/v1/workspaces{path}", headers=headers, **options)
                return int(answer.status_code)

            table: list[tuple[Any, ...]] = [
                ("GET", "/w/file?path=/x", {}, 200, 200, 404),
                ("GET", "/w/log", {}, 200, 200, 404),
                ("POST", "/w/exec", {"json": {"command": "true"}}, 200, 403, 404),
                ("PUT", "/w/file?path=/y", {"content": b"y"}, 200, 403, 404),
                ("PUT", "/w/tags/t", {"json": {}}, 200, 403, 404),
                ("POST", "/w/fork", {"json": {"name": "{who}"}}, 201, 201, 404),
                ("POST", "/open/merge", {"json": {"other": "w"}}, 409, 409, 404),
                ("GET", "/open", {}, 200, 200, 200),
            ]
            for method, path, options, *expected in table:
                for who, wanted in zip(tokens, expected, strict=True):
                    said = json.loads(json.dumps(options).replace("{who}", who)) if "json" in options else options
                    assert await status(who, method, path, **said) == wanted, (who, method, path)
            assert await status("bob", "PUT", "/bob/file?path=/mine", content=b"1") == 200, "its own fork"
            assert await status("eve", "GET", "/bob") == 404
            for who, names in (("eve", ["open"]), ("bob", ["ada", "bob", "open", "w"])):
                headers = {"authorization": f"Bearer {tokens[who]}"}
                found = (await client.get("/v1/workspaces", headers=headers)).json()["workspaces"]
                assert [one["name"] for one in found] == names
                answer = await client.get("/v1/events?workspace=w" if who == "eve" else "/v1/events", headers=headers)
                assert answer.status_code == (404 if who == "eve" else 403)
            wrong = await client.get("/v1/workspaces", headers={"authorization": "Bearer nobody-nobody-nobody"})
            assert wrong.status_code == 401
            assert (await client.get("/v1/workspaces/w/log")).status_code == 200, "the server's own token"

    run(act)


def test_command_lines_are_completed(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            done = await http.post(f"{W}/exec", json={"command": "mkdir /src; cd /src; touch 'é one'; PLACE=1"})
            assert done.json()["exit_code"] == 0
            found = await http.get(f"{W}/completions", params={"line": "cat é"})
            assert found.json() == {"start": 4, "words": ["é\\ one "]}
            assert (await http.get(f"{W}/completions", params={"line": "x $PLA"})).json()["words"] == ["$PLACE"]
            await http.post(f"{W}/exec", json={"command": "rm /src/*"})
            past = await http.get(f"{W}/completions", params={"line": "cat /src/", "revision": "p-1"})
            assert past.json()["words"] == ["/src/é\\ one "]
            missing = await http.get(f"{W}/completions", params={"line": "x", "session": "none"})
            assert missing.status_code == 404

    run(test)


def test_revisions_are_listed_briefly_and_by_their_records(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create("w")

    async def test() -> None:
        async with store.open("w") as ws:
            for number in range(4):
                await ws.execute(f"echo {number} > /f{number}")
                await ws.commit(str(number))
        async with serving(store) as (client, _):
            log = "/v1/workspaces/w/log"
            whole = (await client.get(log)).json()["revisions"]
            brief = (await client.get(log, params={"brief": True})).json()["revisions"]
            parts: dict[str, object] = {"history": [], "mounts": [], "kernel": None}
            for one, full in zip(brief, whole, strict=True):
                assert one["ops"] == {"first": full["seq"], "last": full["seq"]} and one["diff"]["added_count"] == 1
                assert one == {**full, **parts, "ops": one["ops"], "diff": one["diff"]} and "added" not in one["diff"]
            found = (await client.get(log, params={"records": "2,4,9"})).json()
            assert found["revisions"] == [whole[0], whole[2]] and not found["more"]
            page = (await client.get(log, params={"limit": 2, "offset": 1})).json()
            assert page["revisions"] == whole[1:3] and page["more"]
            assert (await client.get(log, params={"records": "1,x"})).status_code == 400

    run(test)


def test_an_open_workspace_lists_and_totals_what_is_committed_and_what_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.create("w")

    async def test() -> None:
        async with store.open("w") as ws:
            for number in range(3):
                await ws.execute(f"echo {number} > /f{number}", agent_id="ann")
        async with serving(store, durable="close") as (client, app):
            place = "/v1/workspaces/w"
            for agent in ("ann", "bob"):
                await app.workspaces.enter("w")
                hosted = app.workspaces.find("w")
                assert hosted is not None
                await hosted.ws.execute("false", agent_id=agent)
                hosted.leave()
            rows = (await client.get(f"{place}/costs")).json()["costs"]
            assert [(one["name"], one["commands"], one["failures"]) for one in rows] == [("ann", 4, 1), ("bob", 1, 1)]
            told = (await client.get(f"{place}/history", params={"last": 2})).json()
            assert [one["number"] for one in told["commands"]] == [4, 5] and told["total"] == 5

    run(test)
