"""Namespaces are stores below a store: a server of the one does not reach the other."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from tests.apps.server.harness import run, serving

from ramet import AgentRun, RametError, Store

W = "/v1/workspaces"


def test_a_server_of_the_default_namespace_reaches_no_other(tmp_path: Path) -> None:
    team = AgentRun(namespace="team-a", store=str(tmp_path))
    with team.sandbox(workspace=team.create_workspace("theirs").name) as box:
        box.exec("echo secret > /workspace/f")
    forms = (
        "theirs", "team-a/theirs", "namespaces/team-a/theirs", "../namespaces/team-a/theirs", "namespaces", "team-a",
        "theirs@HEAD", "team-a:theirs", "namespaces/team-a", "/theirs", "./theirs",
    )  # fmt: skip

    async def test() -> None:
        store = Store(str(tmp_path))
        async with serving(store) as (http, _):
            await http.post(W, json={"name": "mine"})
            await http.post(f"{W}/mine/exec", json={"command": "echo x > f"})
            assert [one["name"] for one in (await http.get(W)).json()["workspaces"]] == ["mine"]
            for form in forms:
                name = quote(form, safe="")
                for path in ("", "/log", "/file?path=/workspace/f", "/snapshot", "/history", "/git"):
                    found = await http.get(f"{W}/{name}{path}")
                    assert found.status_code in (400, 404) and "secret" not in found.text, (form, path)
                for verb in ("merge", "fork"):
                    body = {"other": form} if verb == "merge" else {"revision": form, "name": "stolen"}
                    found = await http.post(f"{W}/mine/{verb}", json=body)
                    assert found.status_code in (400, 404), (verb, form, found.text)
            header = {"x-namespace": "team-a", "namespace": "team-a"}
            assert (await http.get(f"{W}/theirs?namespace=team-a", headers=header)).status_code in (400, 404)
            assert (await http.post("/v1/store/gc", json={"grace_seconds": 0})).status_code == 200
            assert (await http.delete(f"{W}/mine")).status_code == 200

    run(test)
    assert b"".join(team.workspace("theirs").show("/workspace/f")) == b"secret\n", "gc of one leaves the other alone"
    assert team.store.verify().ok


@pytest.mark.parametrize("name", ("", ".", "..", "../x", "a/b", "-x", "a\0b", "a b", "a\nb", "%2e%2e", "~", "x" * 101))
def test_names_that_could_leave_the_store_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RametError) as raised:
        AgentRun(namespace=name, store=str(tmp_path / "store"))
    assert raised.value.code == "invalid_argument" and not list(tmp_path.iterdir())
