"""On a server with principals no route reaches what is another's, whatever form its name or revision is given in.

Every route is asked with some forms; with `RAMET_FOREIGN=all` with every form, also in every two fields of a request.
"""

from __future__ import annotations

import asyncio
import os
import types
import typing
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from tests.apps.server.harness import TOKEN, run, serving

from ramet import RametError, Store
from ramet.apps.server.access import READING
from ramet.apps.server.routes import ROUTES, Route
from ramet.apps.server.settings import read_principals
from ramet.store.refs.grants import CALLER, Grants, acting_for
from ramet.store.refs.refs import NAME

FULL = os.environ.get("RAMET_FOREIGN") == "all"
TOKENS = {who: f"token-of-{who}-0123456789" for who in ("ada", "bob", "eve")}
MARK = "hidden-from-eve"
W = "/v1/workspaces"
ENDLESS = ("/v1/events", "/v1/feed")


@asynccontextmanager
async def world(folder: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, Store, list[str]]]:
    """Ada has `secret` and `fleeting` (in memory), bob may read `secret`, eve has `mine`; and the forms of names."""
    store = Store(str(folder / "store"))
    # Sandboxes that the sweep opens keep their workspaces: no request waits for one.
    async with serving(store, principals={token: who for who, token in TOKENS.items()}, wait=0.1) as (http, _):

        async def ask(who: str, method: str, url: str, **options: Any) -> Any:
            answer = await http.request(method, url, headers=of(who), **options)
            assert answer.status_code < 300, (url, answer.text)
            return answer.json()

        for who, name, kind in (("ada", "secret", "stored"), ("ada", "fleeting", "memory"), ("eve", "mine", "stored")):
            await ask(who, "POST", W, json={"name": name, "kind": kind})
            text = "own" if who == "eve" else MARK
            await ask(who, "POST", f"{W}/{name}/exec", json={"command": f"echo {text} > /s; echo {text} > /{text}"})
        await ask("ada", "POST", f"{W}/secret/commit", json={"message": MARK})
        await ask("ada", "PUT", f"{W}/secret/tags/t", json={})
        await ask("ada", "PUT", f"{W}/secret/grants/bob", json={"access": "readonly"})
        await ask("eve", "POST", f"{W}/mine/exec", json={"command": "echo more >> /s"})
        head = store.repository.refs.last("secret").head
        assert head is not None
        revisions = ("", "@1", "@head", "@head~0", "@t", "@secret-1", f"@{head.hex()}", f"@{head.hex()[:8]}")
        forms = [f"secret{revision}{path}" for revision in revisions for path in ("", ":/s")]
        forms += [
            "secret-1",
            head.hex(),
            head.hex()[:8],
            "fleeting",
            "fleeting@head",
            "./secret",
            "secret/",
            "mine/../secret",
        ]
        yield http, store, forms


def test_a_principal_signs_its_notes_with_its_own_name(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as (http, _, _):
            asked = {"message": "x", "author": "eve", "path": "/s", "line": 1}
            made = await http.post(f"{W}/secret/notes", json=asked, headers=of("ada"))
            told = made.json()["notes"][-1]
            assert (made.status_code, told["author"], told["path"], told["line"]) == (201, "ada", "/s", 1)
            for who, status in (("bob", 403), ("eve", 404)):
                made = await http.post(f"{W}/secret/notes", json={"message": "x"}, headers=of(who))
                assert made.status_code == status

    run(test)


def of(who: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS.get(who, TOKEN)}"}


def value_of(kind: Any) -> Any:
    """Return a value of a type, for what a request must have."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return value_of(typing.get_args(kind)[0])
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)[0]
    return {str: "x", int: 1, float: 1.0, bool: False, bytes: ""}.get(kind, [] if typing.get_origin(kind) else {})


def fields(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """Return what a request of a type must have, and its fields that take a text."""
    if kind is None or isinstance(kind, str):
        return {}, []
    hints = typing.get_type_hints(kind)
    found = msgspec.structs.fields(kind)
    needed = {one.encode_name: value_of(hints[one.name]) for one in found if one.required}
    return needed, [one.encode_name for one in found if "str" in str(hints[one.name])]


def requests(route: Route, name: str, form: str) -> Iterator[tuple[str, Any]]:
    """Yield a URL and a body for each text of a request, or each two of them, that may be a foreign name."""
    query, texts = fields(route.query)
    body, more = fields(route.body)
    url = route.path.replace("{name}", httpx2.QueryParams({"n": name})["n"]).replace("{id}", "x")
    places = [("query", one) for one in texts] + [("body", one) for one in more] + [("id", "")] * ("{id}" in route.path)
    chosen: list[tuple[tuple[str, str], ...]] = [(), *((one,) for one in places)]
    chosen += list(combinations(places, 2)) if FULL else []
    for some in chosen:
        asked, said, where = dict(query), dict(body), url
        for place, field in some:
            if place == "id":
                where = route.path.replace("{name}", name).replace("{id}", quoted(form))
            else:
                (asked if place == "query" else said)[field] = form
        if "path" in texts and asked.get("path") in (None, "x"):
            asked["path"] = "/s"
        yield f"{where}?{httpx2.QueryParams(asked)}" if asked else where, None if route.body is None else said


def quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


async def send(http: httpx2.AsyncClient, who: str, route: Route, url: str, body: Any) -> httpx2.Response:
    if isinstance(route.body, str):
        return await http.request(route.method, url, headers=of(who), content=b"x")
    return await http.request(route.method, url, headers=of(who), json=body)


SAFE = [route for route in ROUTES if route.path not in ENDLESS and not route.open]


@pytest.mark.timeout(3600 if FULL else 300)
def test_no_form_of_a_foreign_name_reaches_it(tmp_path: Path) -> None:
    async def test() -> None:
        asked = 0
        async with world(tmp_path) as (http, store, forms):
            head = store.repository.refs.last("secret").head
            for number, route in enumerate(SAFE):
                for form in forms if FULL else forms[number % 5 :: 5]:
                    if "{name}" in route.path:
                        place = route.path.replace("{name}", quoted(form)).replace("{id}", "x")
                        needed = fields(route.query)[0]
                        answer = await send(
                            http, "eve", route, f"{place}?{httpx2.QueryParams(needed)}", fields(route.body)[0]
                        )
                        asked += 1
                        assert MARK not in answer.text, (route, form)
                        theirs = form in ("secret", "fleeting") or not NAME.fullmatch(form)
                        assert answer.status_code >= 400 or not theirs, (route, form, answer.text)
                    for url, body in requests(route, "mine", form):
                        answer = await send(http, "eve", route, url, body)
                        asked += 1
                        assert MARK not in answer.text, (route.method, url, body)
                    if not store.repository.refs.exists("mine"):
                        await http.post(W, json={"name": "mine"}, headers=of("eve"))
            assert store.repository.refs.last("secret").head == head, "it was not changed either"
            assert dict(store.repository.grants.of("secret")) == {"ada": "readwrite", "bob": "readonly"}
            listed = (await http.get(W, headers=of("eve"))).json()["workspaces"]
            assert not {"secret", "fleeting"} & {one["name"] for one in listed}
            for one in listed:
                kept = await http.get(f"{W}/{one['name']}/snapshot", headers=of("eve"))
                assert MARK.encode() not in kept.content, one["name"]
        print(f"{asked} requests with foreign names")

    run(test, 3600 if FULL else 250)


def test_what_is_not_yours_answers_as_what_is_not_there(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as (http, _, _):
            for route in SAFE:
                if "{name}" not in route.path or route.creates or route.admin:
                    continue
                said: list[tuple[int, str]] = []
                for name in ("secret", "absent", "fleeting"):
                    url = route.path.replace("{name}", name).replace("{id}", "x")
                    answer = await send(
                        http, "eve", route, f"{url}?{httpx2.QueryParams(fields(route.query)[0])}", fields(route.body)[0]
                    )
                    said.append((answer.status_code, answer.text.replace(name, "NAME")))
                assert said[0] == said[1] == said[2], route
                assert said[0][0] == 404, route

    run(test)


def test_who_may_only_read_writes_by_no_route(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as (http, store, _):
            before = store.repository.refs.last("secret").head
            writing = [
                route
                for route in SAFE
                if route.path.startswith(W + "/{name}") and route.method != "GET" and route.path not in READING
            ]
            assert len(writing) > 20
            for route in writing:
                url = route.path.replace("{name}", "secret").replace("{id}", "x")
                answer = await send(
                    http, "bob", route, f"{url}?{httpx2.QueryParams(fields(route.query)[0])}", fields(route.body)[0]
                )
                assert answer.status_code == 403, (route, answer.text)
            for url, body in (("/v1/sandboxes", {"workspace": "secret"}),):
                assert (await http.post(url, json=body, headers=of("bob"))).status_code == 403
            assert store.repository.refs.last("secret").head == before

    run(test)


def test_the_first_grant_is_for_the_owner_or_the_administrator(tmp_path: Path) -> None:
    async def test() -> None:
        old = Store(str(tmp_path / "store"))
        old.create("old")
        async with world(tmp_path) as (http, _, _):
            grab = await http.put(f"{W}/old/grants/eve", json={"access": "readwrite"}, headers=of("eve"))
            assert (grab.status_code, grab.json()["code"]) == (403, "permission_denied")
            own = await http.put(f"{W}/mine/grants/bob", json={"access": "readonly"}, headers=of("eve"))
            assert own.json() == {"grants": {"eve": "readwrite", "bob": "readonly"}}
            first = await http.put(f"{W}/old/grants/ada", json={"access": "readwrite"}, headers=of("admin"))
            assert first.status_code == 200
            assert (await http.get(f"{W}/old", headers=of("eve"))).status_code == 404

    run(test)


def test_what_the_administrator_makes_is_the_administrators(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as (http, _, _):
            assert (await http.post(W, json={"name": "admins"}, headers=of("admin"))).status_code == 201
            assert (await http.get(f"{W}/admins", headers=of("admin"))).status_code == 200
            assert (await http.get(f"{W}/admins", headers=of("eve"))).status_code == 404

    run(test)


def test_a_commit_for_many_is_not_made_as_the_first_of_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with world(tmp_path) as (http, _, _):
            await http.put(f"{W}/mine/grants/ada", json={"access": "readwrite"}, headers=of("eve"))
            asked = [
                http.post(f"{W}/mine/exec", json={"command": f"echo {n} > /{who}{n}"}, headers=of(who))
                for n in range(5)
                for who in ("ada", "eve")
            ]
            assert {one.status_code for one in await asyncio.gather(*asked)} == {200}
            with pytest.raises(LookupError):
                CALLER.get()

    run(test)


def test_what_is_no_name_has_no_access() -> None:
    grants = Grants(Store("memory:").repository._log("grants"), lambda: 0.0)
    for name in ("secret:/s", "", "a/b", "../x", "a@1", "x" * 200):
        with pytest.raises(RametError) as caught:
            grants.check("eve", name, "readonly")
        assert caught.value.code == "workspace_not_found" and not grants.allows("eve", name)
        with pytest.raises(RametError):
            grants.put(name, {"eve": "readwrite"}, "eve")


def test_the_repository_guards_a_name_where_it_resolves_it() -> None:
    store = Store("memory:")
    with acting_for("ada"):
        store.create("secret")
    store.create("open")
    with acting_for("eve"):
        assert store.ls() == ["open"]
        for act in (
            lambda: store.find("secret"), lambda: store["open"].find("secret@head"), lambda: store["secret"].head,
            lambda: store["open"].merge("secret"), lambda: store["secret"].log(), lambda: store["secret"].tags(),
            lambda: store.retention(name="secret"), lambda: store.rm("secret"), lambda: store["secret"].fork(None, "f"),
        ):  # fmt: skip
            with pytest.raises(RametError) as caught:
                act()
            assert caught.value.code == "workspace_not_found"
    with pytest.raises(RametError) as caught:
        store.find("open:/path")
    assert caught.value.code == "invalid_argument"


def test_a_principal_cannot_be_called_as_the_server_is(tmp_path: Path) -> None:
    file = tmp_path / "principals"
    file.write_text("@administrator 0123456789abcdef\n")
    file.chmod(0o600)
    with pytest.raises(RametError, match="cannot be called"):
        read_principals(file)
