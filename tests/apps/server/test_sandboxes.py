"""Sandboxes over HTTP: one revision at the end, whichever way it comes, and the workspace to themselves until then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.apps.server.harness import Process, run, serving

from ramet import Store

S = "/v1/sandboxes"


async def made(http: httpx2.AsyncClient, **asked: Any) -> str:
    answer = await http.post(S, json={"workspace": "p", **asked})
    assert answer.status_code == 201, answer.text
    return f"/v1/workspaces/{answer.json()['name']}"


def test_the_end_makes_one_narrowed_revision_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            box = await made(http, name="box", env={"WHO": "me"}, image="python")
            await http.put(f"{box}/file?path=/workspace/dist/app.js&parents=true", content=b"hello")
            done = await http.post(
                f"{box}/exec", json={"command": "echo $WHO > notes; mkdir .ssh; echo k > .ssh/id; pwd"}
            )
            assert done.json()["stdout"] == "/workspace\n"
            assert (await http.get("/v1/workspaces/p/log")).json()["revisions"] == []
            assert [one["name"] for one in (await http.get(S)).json()["sandboxes"]] == ["box"]
            outputs = ["/workspace/dist", {"diff": True}]
            for _ in range(2):
                ended = (await http.post(f"{S}/box/terminate", json={"outputs": outputs})).json()
                assert (ended["phase"], ended["revision"]["name"]) == ("Terminated", "p-1")
            revision = ended["revision"]
            assert (revision["lineage"], revision["outputs"]) == ("fromClaim:box", ["/workspace/dist"])
            assert revision["withheld"] == [] and revision["diff"]
            assert (await http.get(S)).json()["sandboxes"] == []
            assert (await http.get(f"{box}/stat?path=/")).status_code == 404
            log = (await http.get("/v1/workspaces/p/log")).json()["revisions"]
            assert [one["name"] for one in log] == ["p-1"]
            assert (await http.get("/v1/workspaces/p/file?path=/workspace/dist/app.js")).content == b"hello"
            assert (await http.get("/v1/workspaces/p/stat?path=/workspace/notes")).status_code == 404

    run(test)


def test_keys_work_inside_and_credentials_are_withheld_and_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path))) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            box = await made(http, name="box", secrets={"TOKEN": "s3cret"})
            for _ in range(2):
                again = await http.post(
                    f"{box}/exec", json={"command": "echo x >> c; cat c"}, headers={"idempotency-key": "k"}
                )
                assert again.json()["stdout"] == "x\n"
            await http.post(f"{box}/exec", json={"command": "mkdir .ssh; echo k > .ssh/id; echo ${#TOKEN} > n"})
            ended = (await http.post(f"{S}/box/terminate", json={})).json()
            assert ended["revision"]["withheld"] == ["/workspace/.ssh"]
            assert (await http.get("/v1/workspaces/p/file?path=/workspace/n")).content == b"6\n"

    run(test)


def test_a_workspace_has_one_sandbox_at_a_time(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path)), wait=0.1) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.put("/v1/workspaces/p/file?path=/before", content=b"1")
            box = await made(http)
            for method, url, body in [
                ("POST", S, {"workspace": "p"}), ("POST", "/v1/workspaces/p/exec", {"command": ":"}),
                ("POST", "/v1/workspaces/p/revert", {"revision": "p-1"}),
            ]:  # fmt: skip
                busy = await http.request(method, url, json=body)
                assert (busy.status_code, busy.json()["code"]) == (409, "workspace_busy"), url
            assert (await http.get(f"{box}/file?path=/before")).content == b"1"
            waiting = asyncio.ensure_future(http.post(S, json={"workspace": "p", "wait_seconds": 20}))
            await asyncio.sleep(0.05)
            await http.post(f"{S}/{box.rpartition('/')[2]}/terminate", json={})
            assert (await waiting).status_code == 201

    run(test)


@pytest.mark.parametrize(
    ("method", "url", "body", "status", "code"),
    [
        ("POST", f"{S}/box/terminate", {"outputs": ["/etc"]}, 400, "invalid_output"),
        ("POST", f"{S}/box/terminate", {"outputs": [{"git": {"remote": "file:///x"}}]}, 403, "permission_denied"),
        ("POST", f"{S}/box/terminate", {"checkpoint": True}, 400, "checkpoint_unavailable"),
        ("POST", f"{S}/other/terminate", {}, 404, "not_found"),
        ("POST", S, {"workspace": "p", "name": "box"}, 409, "already_exists"),
        ("POST", S, {"workspace": "p", "name": "p"}, 409, "already_exists"),
        ("POST", S, {"workspace": "none", "name": "none"}, 404, "workspace_not_found"),
        ("POST", S, {"env": {"1": "x"}}, 400, "invalid_argument"),
        ("POST", "/v1/workspaces", {"name": "box"}, 409, "workspace_exists"),
        ("DELETE", "/v1/workspaces/box", None, 400, "unsupported"),
        ("POST", "/v1/workspaces/box/commit", {}, 400, "unsupported"),
        ("POST", "/v1/workspaces/box/revert", {"revision": "p-1"}, 400, "unsupported"),
        ("POST", "/v1/workspaces/memory/revert", {"revision": "p-1"}, 400, "unsupported"),
        ("POST", "/v1/workspaces/memory/merge", {"other": "p"}, 400, "unsupported"),
        ("POST", "/v1/workspaces/box/fork", {"name": "twin"}, 404, "workspace_not_found"),
    ],
)
def test_what_is_refused_leaves_everything_as_it_was(
    method: str, url: str, body: Any, status: int, code: str, tmp_path: Path
) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path)), wait=0.1) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            await http.post("/v1/workspaces", json={"name": "memory", "kind": "memory"})
            box = await made(http, name="box")
            for place in (f"{box}/file?path=/workspace/f", "/v1/workspaces/memory/file?path=/f"):
                await http.put(place, content=b"kept")
            refused = await http.request(method, url, json=body)
            assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
            for place in (f"{box}/file?path=/workspace/f", "/v1/workspaces/memory/file?path=/f"):
                assert (await http.get(place)).content == b"kept"

    run(test)


def test_it_ends_by_itself_and_without_a_workspace_leaves_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(Store(str(tmp_path)), idle=0.1) as (http, app):
            await http.post("/v1/workspaces", json={"name": "p"})
            for idle in (0.05, 1, 20):  # a machine that stands still may be too late for a short one
                box = await made(http, idle_seconds=idle)
                if (await http.put(f"{box}/file?path=/workspace/f", content=b"kept")).status_code == 200:
                    break
            other = (await http.post(S, json={"lifetime_seconds": 0.05, "idle_seconds": 60})).json()["name"]
            while any(found.ended_at is None for found in app.workspaces.sandboxes.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            assert (await http.get("/v1/workspaces/p/file?path=/workspace/f")).content == b"kept"
            assert (await http.get(f"{S}/{other}")).json()["revision"] is None

    run(test)


def test_jobs_stop_and_the_end_of_the_server_keeps_the_work(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(str(tmp_path))
        async with serving(store) as (http, _):
            await http.post("/v1/workspaces", json={"name": "p"})
            box = await made(http, name="box")
            job = (await http.post(f"{box}/exec", json={"command": "sleep 30", "detach": True})).json()
            assert job["state"] == "running"
            assert (await http.post(f"{S}/box/terminate", json={})).status_code == 200
            box = await made(http, name="second", from_revision="head")
            await http.put(f"{box}/file?path=/workspace/f", content=b"kept")
        assert b"".join(store["p"].show("/workspace/f")) == b"kept"

    run(test)


def test_a_sandbox_is_for_who_may_write_its_workspace_and_made_it(tmp_path: Path) -> None:
    tokens = {who: f"token-of-{who}-0123456789" for who in ("ada", "bob", "eve")}

    async def test() -> None:
        store = Store(str(tmp_path), principal="root")
        store.create("p")
        for who in ("root", "ada"):
            store["p"].grant(who, "readwrite")
        store["p"].grant("bob", "readonly")
        async with serving(store, principals={token: who for who, token in tokens.items()}) as (http, _):

            async def ask(who: str, method: str, url: str, **options: Any) -> httpx2.Response:
                return await http.request(method, url, headers={"authorization": f"Bearer {tokens[who]}"}, **options)

            for who, code in (("bob", (403, "permission_denied")), ("eve", (404, "workspace_not_found"))):
                refused = await ask(who, "POST", S, json={"workspace": "p"})
                assert (refused.status_code, refused.json()["code"]) == code, who
            for body in ({"workspace": "p", "name": "box", "secrets": {"KEY": "s3cret"}}, {"name": "free"}):
                assert (await ask("ada", "POST", S, json=body)).status_code == 201
            for box in ("box", "free"):
                place = f"/v1/workspaces/{box}"
                asked: list[tuple[str, str, dict[str, Any]]] = [
                    ("POST", f"{place}/exec", {"json": {"command": "echo $KEY"}}), ("GET", f"{place}/dir?path=/", {}),
                    ("GET", f"{S}/{box}", {}), ("GET", place, {}), ("GET", f"/v1/events?workspace={box}", {}),
                    ("POST", f"{S}/{box}/terminate", {"json": {}}),
                ]  # fmt: skip
                for method, url, options in asked:
                    for who in ("bob", "eve"):
                        assert (await ask(who, method, url, **options)).status_code == 404, (who, url)
                    if "events" not in url:
                        assert (await ask("ada", method, url, **options)).status_code == 200, url
                assert (await ask("bob", "GET", f"{S}/{box}")).status_code == 404, "also after its end"
                assert (await http.get(f"{S}/{box}")).status_code == 200, "the server's own token"
            await ask("ada", "POST", S, json={"workspace": "p", "name": "box2"})
            for who, names in (("ada", ["box2"]), ("bob", [])):
                assert [one["name"] for one in (await ask(who, "GET", S)).json()["sandboxes"]] == names

    run(test)


def test_after_a_kill_the_workspace_is_free_and_has_what_was_answered(tmp_path: Path) -> None:
    server = Process(tmp_path)
    try:
        with server.client() as http:
            http.post("/v1/workspaces", json={"name": "p"})
            box = http.post(S, json={"workspace": "p"}).json()["name"]
            http.put(f"/v1/workspaces/{box}/file?path=/workspace/f", content=b"written")
            http.post(f"/v1/workspaces/{box}/exec", json={"command": "echo ran > g; mkdir .ssh; echo k > .ssh/id"})
            http.post(f"/v1/workspaces/{box}/exec", json={"command": "rm -f nothing; cat g"})
        server.kill()
        server.start()
        with server.client() as http:
            assert http.get(f"{S}/{box}").status_code == 404
            assert http.get("/v1/workspaces/p/log").json()["revisions"] == []
            again = http.post(S, json={"workspace": "p"}).json()["name"]
            (revision,) = http.get("/v1/workspaces/p/log").json()["revisions"]
            assert revision["message"].startswith("recovered") and revision["lineage"] == f"fromClaim:{box}"
            assert revision["withheld"] == ["/workspace/.ssh"]
            inside = f"/v1/workspaces/{again}"
            assert http.get(f"{inside}/file?path=/workspace/f").content == b"written"
            assert http.post(f"{inside}/exec", json={"command": "cat g; ls -A"}).json()["stdout"] == "ran\nf\ng\n"
            assert http.post(f"{S}/{again}/terminate", json={}).json()["revision"]["name"] == "p-1"
    finally:
        server.process.kill()
        server.process.wait()
