"""The care of a store over HTTP: who may do it, how it is told while it goes on, and what never travels."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx2
from tests.apps.server.harness import TOKEN, run, serving

from ramet import Store
from ramet.apps.server.background import ThreadProgress, long_work
from ramet.apps.server.request import Call
from ramet.apps.server.serialize import text_or_base64
from ramet.core.progress import Progress
from ramet.store.crypto.wrapping_keys import new_key_file
from ramet.store.objects.objects import DirectoryObjects

W = "/v1/workspaces"


async def filled(http: httpx2.AsyncClient, name: str = "p") -> None:
    await http.post(W, json={"name": name})
    for number in range(3):
        await http.post(f"{W}/{name}/exec", json={"command": f"echo {number} > /f"})


def rows(answer: httpx2.Response) -> list[Any]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_long_work_is_reported_and_ends_with_its_report(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, app):
            await filled(http)
            for url, body in (
                ("/v1/store/gc", {"dry": True}), ("/v1/store/verify", {}), ("/v1/store/repair", {}),
                (f"{W}/p/bisect", {"good": "1", "command": "grep -q 0 /f"}),
            ):  # fmt: skip
                whole = (await http.post(url, json=body)).json()
                *told, last = rows(await http.post(url, json={**body, "stream": True}))
                assert last == {"report": whole}, url
                assert all({"stage", "done", "total"} == set(row) for row in told)
            *_, last = rows(await http.post(f"{W}/p/bisect", json={"good": "none", "command": "x", "stream": True}))
            assert (last["problem"]["code"], last["problem"]["status"]) == ("revision_not_found", 404)
            assert app.api.working == 0

    run(test)


def test_a_client_that_goes_stops_the_work(tmp_path: Path) -> None:
    """Streamed or not: the work hears of it where it tells how far it is."""

    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (_, app):
            for stream in (True, False):
                began, ended = threading.Event(), threading.Event()

                def work(progress: Progress, began: Any = began, ended: Any = ended) -> int:
                    began.set()
                    try:
                        while True:
                            progress("turns", 1, None)
                            threading.Event().wait(0.002)
                    finally:
                        ended.set()

                async def receive(began: Any = began) -> dict[str, Any]:
                    await asyncio.to_thread(began.wait, 200)
                    return {"type": "http.disconnect"}

                sent: list[Any] = []

                async def send(message: Any, sent: list[Any] = sent) -> None:
                    sent.append(message)

                scope = {"type": "http", "method": "POST", "headers": [], "path": "/", "query_string": b""}

                async def handler(
                    api: Any, call: Call, work: Any = work, stream: bool = stream
                ) -> Any:  # fmt: skip
                    return await long_work(api, call, work, lambda done: done, stream=stream)

                route = app.api.find("POST", "/v1/store/gc")[0]
                object.__setattr__(route, "handler", handler)
                try:
                    await app.api({**scope, "path": "/v1/store/gc", "raw_path": b"/v1/store/gc"}, receive, send)
                finally:
                    from ramet.apps.server.handlers.maintenance import gc

                    object.__setattr__(route, "handler", gc)
                assert ended.is_set() and app.api.working == 0

    run(test)


def test_no_more_long_work_at_once_than_is_good(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, app):
            app.api.working = 4
            refused = await http.post("/v1/store/verify", json={})
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
            app.api.working = 0

    run(test)


def test_stopping_before_it_begins_stops_it() -> None:
    async def test() -> None:
        watched = ThreadProgress()
        watched.stop()
        try:
            watched("stage", 0, None)
        except BaseException as stopped:
            assert type(stopped).__name__ == "StopWork"
        else:
            raise AssertionError("it went on")

    run(test)


def test_who_may_care_for_what(tmp_path: Path) -> None:
    tokens = {who: f"token-of-{who}-0123456789" for who in ("ada", "bob", "eve")}

    async def test() -> None:
        async with serving(Store(str(tmp_path / "store"))) as (http, _):
            await filled(http, "w")
            await http.post(W, json={"name": "open"})
            await http.post(f"{W}/open/exec", json={"command": "echo > /x"})
        store = Store(str(tmp_path / "store"))
        async with serving(store, principals={token: who for who, token in tokens.items()}) as (http, _):
            assert (await http.put(f"{W}/w/grants/ada", json={"access": "readwrite"})).status_code == 200
            headers = {who: {"authorization": f"Bearer {token}"} for who, token in tokens.items()}
            made = await http.put(f"{W}/w/grants/bob", json={"access": "readonly"}, headers=headers["ada"])
            assert made.json() == {"grants": {"ada": "readwrite", "bob": "readonly"}}
            last = store.repository.grants._log.newest("w")
            assert last is not None and json.loads(last[1])["by"] == "ada", "the store knows who granted"
            headers["admin"] = {"authorization": f"Bearer {TOKEN}"}
            pin = (await http.post(f"{W}/w/pins", json={"revision": "1"}, headers=headers["ada"])).json()["token"]
            table: list[tuple[Any, ...]] = [
                # who: ada writes, bob reads, eve nothing, and the administrator of the server
                ("GET", "/w/grants", None, 200, 200, 404, 200),
                ("PUT", "/w/grants/zoe", {"access": "readonly"}, 200, 403, 404, 200),
                ("DELETE", "/w/grants/zoe", None, 404, 403, 404, 200),
                ("GET", "/w/retention", None, 200, 200, 404, 200),
                ("PUT", "/w/retention", {"keep_last": 9}, 200, 403, 404, 200),
                ("PUT", "/w/hold", {"why": "case"}, 200, 403, 404, 200),
                ("DELETE", "/w/hold", None, 200, 403, 404, 200),
                ("POST", "/w/pins", {}, 201, 403, 404, 201),
                ("GET", "/w/history", None, 200, 200, 404, 404),
                ("GET", "/w/mounts", None, 200, 200, 404, 404),
                ("GET", "/w/git", None, 200, 200, 404, 404),
                ("GET", "/w/pushes", None, 200, 200, 404, 404),
                ("POST", "/w/bisect", {"good": "1", "command": "grep -q 0 /f"}, 200, 200, 404, 404),
                ("POST", "/w/mounts", {"prefix": "/m"}, 201, 403, 404, 404),
                ("POST", "/w/shred", {"confirm": "v"}, 403, 403, 403, 400),
                ("GET", "/open/log?revision=w@1", None, 200, 200, 404, 404),
                ("GET", "/open/file?path=/f&revision=w@1", None, 200, 200, 404, 404),
                ("GET", "/open/diff?older=w@1&newer=head", None, 200, 200, 404, 404),
                ("GET", "/open/history?revision=w@1", None, 200, 200, 404, 404),
                ("POST", "/open/bisect", {"good": "w@1", "bad": "w@2", "command": "grep -q 0 /f"}, 200, 200, 404, 404),
                ("GET", "../store/cost", None, 403, 403, 403, 200),
                ("POST", "../store/gc", {"dry": True}, 403, 403, 403, 200),
                ("POST", "../store/verify", {}, 403, 403, 403, 200),
                ("POST", "../store/repair", {}, 403, 403, 403, 200),
                ("GET", "../store/keys", None, 403, 403, 403, 400),
                ("POST", "../store/keys/rotate", {"to": "env:X"}, 403, 403, 403, 400),
                ("GET", "../store/retention", None, 200, 200, 200, 200),
                ("PUT", "../store/retention", {}, 403, 403, 403, 200),
                ("GET", "../feed", None, 403, 403, 403, 200),
            ]
            for method, path, body, *expected in table:
                url = f"/v1/{path[3:]}" if path.startswith("../") else W + path
                for who, wanted in reversed(list(zip((*tokens, "admin"), expected, strict=True))):
                    answer = await http.request(method, url, json=body, headers=headers[who])
                    assert answer.status_code == wanted, (who, method, path, answer.text)
            for who, wanted in (("eve", 404), ("bob", 403), ("ada", 200), ("admin", 404)):
                assert (await http.delete(f"/v1/pins/{pin}", headers=headers[who])).status_code == wanted
            for who, count in (("ada", 2), ("bob", 2), ("eve", 0)):
                assert len((await http.get("/v1/pins", headers=headers[who])).json()["pins"]) == count

    run(test)


def test_keys_are_named_and_never_shown(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    new_key_file(str(first))
    new_key_file(str(second))
    secrets = [line for file in (first, second) for line in file.read_text().split() if len(line) > 30]

    async def test() -> None:
        said = ""
        async with serving(Store(str(tmp_path / "store"), key=f"file:{first}")) as (http, _):
            await filled(http, "w")
            await filled(http, "v")
            shown = await http.get("/v1/store/keys")
            rings = shown.json()["rings"]
            assert [ring["workspace"] for ring in rings] == ["v", "w"] and shown.json()["wrapped_by"]
            wrong = await http.post(f"{W}/w/shred", json={"confirm": "yes"})
            assert wrong.status_code == 400 and (await http.get(f"{W}/w/log")).status_code == 200
            bare = await http.post("/v1/store/keys/rotate", json={"to": secrets[-1]})
            assert bare.status_code == 400
            done = await http.post("/v1/store/keys/rotate", json={"to": f"file:{second}"})
            assert done.json()["keyrings"] >= 2
            gone = await http.post(f"{W}/w/shred", json={"confirm": "w"})
            assert gone.json()["destroyed"] > 0 and (await http.get(f"{W}/w")).status_code == 404
            for answer in (shown, wrong, bare, done, gone):
                said += answer.text
            again = await http.get(f"{W}/v/file?path=/f")
            assert again.text == "2\n", "what the new key opens goes on"
        assert secrets and not any(secret in said for secret in secrets)
        assert Store(str(tmp_path / "store"), key=f"file:{second}").ls() == ["v"]

    run(test)


def test_pushes_go_where_the_server_may(tmp_path: Path) -> None:
    remote = tmp_path / "git" / "r.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)

    async def test() -> None:
        async with serving(Store(str(tmp_path / "store")), push_to=(f"file://{tmp_path}/git",)) as (http, _):
            await filled(http)
            for elsewhere in (str(remote), f"file://{tmp_path}/git/../other.git", f"file://{tmp_path}/github.git"):
                refused = await http.post(f"{W}/p/push", json={"remote": elsewhere})
                assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
            done = await http.post(f"{W}/p/push", json={"remote": f"file://{remote}", "branch": "try/{{.name}}"})
            assert done.json()["branch"] == "try/p" and len(done.json()["commit"]) == 40
            missing = f"file://{tmp_path}/git/later.git"
            failed = await http.post(f"{W}/p/push", json={"remote": missing})
            assert (
                failed.status_code == 503 and (await http.get(f"{W}/p/pushes")).json()["pushes"][0]["remote"] == missing
            )
            assert (await http.post(f"{W}/p/pushes", json={})).json()["failed"]
            await asyncio.to_thread(
                subprocess.run, ["git", "init", "--quiet", "--bare", missing.removeprefix("file://")], check=True
            )
            assert len((await http.post(f"{W}/p/pushes", json={})).json()["pushed"]) == 1
            assert (await http.get(f"{W}/p/pushes")).json() == {"pushes": []}

    run(test)


def test_no_spelling_of_a_remote_leaves_the_prefix_that_the_server_allows(tmp_path: Path) -> None:
    for name in ("git/r.git", "other.git", "github.git"):
        subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / name)], check=True)
    top = f"file://{tmp_path}/git"
    remotes = [
        f"{top}/%2e%2e/other.git", f"{top}/%2E./other.git", f"{top}/.%2e/other.git", f"{top}/%252e%252e/other.git",
        f"{top}/..\\other.git", f"{top}hub.git", f"{top}%2f..%2fother.git", f"{top}/\n/other.git", f" {top}/r.git",
        f"--receive-pack=touch {tmp_path}/fell", "-oProxyCommand=touch", f"ext::touch {tmp_path}/fell", "fd::7",
        f"ssh://-oProxyCommand=touch%20{tmp_path}/fell/x", f"{tmp_path}/other.git", "../other.git",
    ]  # fmt: skip

    async def test() -> None:
        async with serving(Store(str(tmp_path / "store")), push_to=(top, "ssh://")) as (http, _):
            await filled(http)
            for remote in remotes:
                for branch in ("x", "y"):
                    refused = await http.post(f"{W}/p/push", json={"remote": remote, "branch": branch})
                    assert refused.status_code in (400, 403), (remote, refused.text)
            for branch in ("../x", "-x", "a..b", "x.lock", "a b", "a:b", "+x", "refs/heads/../../config", "@{u}", "/x"):
                found = await http.post(f"{W}/p/push", json={"remote": f"{top}/r.git", "branch": branch})
                assert found.status_code == (200 if branch == "+x" else 400), (branch, found.text)
            assert (await http.get(f"{W}/p/pushes")).json() == {"pushes": []}

    run(test)
    for name in ("other.git", "github.git"):
        assert not [path for path in (tmp_path / name / "refs").rglob("*") if path.is_file()]
    assert not (tmp_path / "fell").exists()


def test_the_end_of_a_sandbox_pushes_where_the_server_may(tmp_path: Path) -> None:
    remote = tmp_path / "git" / "r.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    git = {"paths": ["/workspace"], "remotes": {"here": f"file://{remote}", "later": f"file://{tmp_path}/git/l.git"}}

    async def test() -> None:
        async with serving(Store(str(tmp_path / "store")), push_to=(f"file://{tmp_path}/git",)) as (http, _):
            await http.post(W, json={"name": "p"})
            for name, place, status in (("one", "here", 200), ("two", "later", 503)):
                await http.post("/v1/sandboxes", json={"workspace": "p", "name": name, "git": git})
                await http.post(f"{W}/{name}/exec", json={"command": f"echo {name} > f"})
                url = f"/v1/sandboxes/{name}/terminate"
                for outside in ("file:///x", f"file://{tmp_path}/git/../x"):
                    refused = await http.post(url, json={"outputs": [{"git": {"remote": outside}}]})
                    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
                asked = {"outputs": [{"git": {"remote": place, "branch": "attempt/{{.name}}"}}]}
                ended = await http.post(url, json=asked)
                assert ended.status_code == status, ended.text
                again = (await http.post(url, json=asked)).json()
                assert again["phase"] == "Terminated" and again["revision"]["message"] == f"terminate {name}"
                assert [one["branch"] for one in again["pushed"]] == (["attempt/one"] if name == "one" else [])
            waiting = (await http.get(f"{W}/p/pushes")).json()["pushes"]
            assert [one["branch"] for one in waiting] == ["attempt/two"]
            bare = (await http.post("/v1/sandboxes", json={"workspace": "p", "name": "bare"})).json()
            done = await http.post(
                f"/v1/sandboxes/{bare['name']}/terminate", json={"outputs": [{"git": {"remote": f"file://{remote}"}}]}
            )
            assert done.json()["warnings"] and done.json()["pushed"] == []

    run(test)


def test_mounts_are_named_as_they_are_written(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post(W, json={"name": "p"})
            for written, status, prefix in (
                ("/a//b/", 201, "/a/b"), ("/c/../d", 201, "/d"), ("/d", 409, ""), ("/", 409, ""), ("rel", 400, ""),
            ):  # fmt: skip
                made = await http.post(f"{W}/p/mounts", json={"prefix": written})
                assert (made.status_code, made.json().get("prefix", "")) == (status, prefix), made.text
            assert (await http.delete(f"{W}/p/mounts?prefix=/a/b/")).status_code == 200
            assert (await http.delete(f"{W}/p/mounts?prefix=/")).status_code == 404

    run(test)


def test_a_command_says_how_its_revision_is_called(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post(W, json={"name": "p"})
            for body in ({}, {"stream": True}):
                asked = {"command": f"echo {len(body)} > /f", "message": "by hand", "author": "ada", **body}
                assert (await http.post(f"{W}/p/exec", json=asked)).status_code == 200
            found = (await http.get(f"{W}/p/log")).json()["revisions"]
            assert [(one["message"], one["author"]) for one in found] == [("by hand", "ada")] * 2

    run(test)


def test_repeating_with_a_key_changes_nothing_more(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await filled(http)
            for url, body, key in (
                (f"{W}/p/pins", {"revision": "1"}, "a"), (f"{W}/p/mounts", {"prefix": "/m"}, "b"),
                ("/v1/store/gc", {"grace_seconds": 0}, "c"),
            ):  # fmt: skip
                one, two = [await http.post(url, json=body, headers={"idempotency-key": key}) for _ in range(2)]
                assert one.status_code < 300 and one.content == two.content, url
                assert two.headers["idempotency-replayed"] == "true"
            assert len((await http.get("/v1/pins")).json()["pins"]) == 1

    run(test)


def test_the_feed_is_followed_until_the_server_ends(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, app):
            await filled(http)
            following = asyncio.ensure_future(http.get("/v1/feed?follow=true"))
            whole = rows(await http.get("/v1/feed"))
            assert len(whole) == 3 and all({"cursor", "envelope"} == set(row) for row in whole)
            assert rows(await http.get("/v1/feed", params={"since": whole[-1]["cursor"]})) == []
            assert (await http.get("/v1/feed?since=nonsense")).status_code == 400
            app.stop()
            came = rows(await asyncio.wait_for(following, 120))
            assert came == whole[: len(came)]

    run(test)


def test_many_nuls_travel_as_base64() -> None:
    """JSON would spell each of them with six characters; a few among text stay text."""
    for data, encoding in (
        (bytes(10_000), "base64"), (b"name\0" * 10, "utf-8"), (b"x" * 100_000 + bytes(5000), "utf-8"),
        (b"\xff", "base64"),
    ):  # fmt: skip
        (text,), found = text_or_base64(data)
        assert found == encoding
        assert (base64.b64decode(text) if found == "base64" else text.encode()) == data


def test_a_key_of_a_verb_of_care_answers_once_also_after_a_restart(tmp_path: Path) -> None:
    body, key = {"name": "q"}, {"idempotency-key": "care"}

    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.put("/v1/workspaces/p/file?path=/f", content=b"x")
            first = await http.post("/v1/workspaces/p/fork", json={"name": "q"}, headers=key)
            gone = await http.post("/v1/workspaces/none/fork", json={"name": "z"}, headers={"idempotency-key": "no"})
            assert (first.status_code, gone.status_code) == (201, 404)
            collected = await http.post("/v1/store/gc", json={"dry": True}, headers={"idempotency-key": "gc"})
        async with serving(Store(str(tmp_path))) as (http, _):
            again = await http.post("/v1/workspaces/p/fork", json=body, headers=key)
            assert (again.status_code, again.content) == (201, first.content)
            assert again.headers["idempotency-replayed"] == "true"
            other = await http.post("/v1/workspaces/p/fork", json=body)
            assert other.status_code == 409, "without the key it is another request"
            assert (await http.delete("/v1/workspaces/q", headers=key)).status_code == 409
            gone = await http.post("/v1/workspaces/none/fork", json={"name": "z"}, headers={"idempotency-key": "no"})
            assert gone.status_code == 404 and "idempotency-replayed" not in gone.headers
            same = await http.post("/v1/store/gc", json={"dry": True}, headers={"idempotency-key": "gc"})
            assert same.content == collected.content and same.headers["idempotency-replayed"] == "true"

    run(test)


def test_a_verb_of_care_that_a_crash_left_without_an_answer_is_not_repeated(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(str(tmp_path))
        key, seen = {"idempotency-key": "h"}, list[dict[str, Any]]()

        class Looking(DirectoryObjects):
            def put(self, name: str, data: bytes) -> None:
                if name.startswith("server/answers/"):
                    seen.append({"name": name, **json.loads(data)})
                super().put(name, data)

        async with serving(Store(Looking(str(tmp_path)))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.put("/v1/workspaces/p/hold", json={"why": "law"}, headers=key)
        begun, answered = seen
        assert "status" not in begun and answered["status"] == 200, "that it begins is written down first"
        store.repository.objects.put(begun["name"], json.dumps({"asked": begun["asked"]}).encode())  # as a crash leaves
        async with serving(store) as (http, _):
            again = await http.put("/v1/workspaces/p/hold", json={"why": "law"}, headers=key)
            assert again.status_code == 409 and again.json()["code"] == "outcome_unknown"

    run(test)
