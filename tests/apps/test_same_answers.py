"""One store, the same questions on every surface: Python, the client, HTTP, the command line, MCP and TypeScript."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from tests.apps.cli.runner import invoke
from tests.apps.server.harness import Process

from ramet import Store
from ramet.apps.client.connect import connect
from ramet.apps.mcp.server import mcp_server

NODE = shutil.which("node")
TYPESCRIPT = Path(__file__).parents[2] / "clients" / "typescript" / "src" / "index.js"
PATH = "/list"
W = "/v1/workspaces/w"
ASK = """
import { AgentRun } from %(module)s;
const run = new AgentRun({ url: "unix:%(socket)s" });
const ws = await run.workspace("w");
const answers = {
  history: (await ws.history()).map((one) => [one.number, one.kind, one.agent, one.command, one.exitCode]),
  log: (await ws.log()).map((one) => [one.name, one.message, one.agent, one.notes.map((note) => note.message)]),
  blame: (await ws.blame("/list")).map((one) => [one.number, one.revision, one.agent, one.record, one.text]),
  costs: (await ws.costs()).map((one) => [one.name, one.commands, one.failures, one.meta]),
  diff: (await ws.diff()).map((one) => [one.what, one.path]),
};
console.log(JSON.stringify(answers));
process.exit(0);
"""


def answers(source: Any) -> dict[str, list[Any]]:
    """Ask a reference of the library or of its client."""
    return {
        "history": [[one.number, one.kind, one.agent_id, one.command, one.exit_code] for one in source.history()],
        "log": [[one.name, one.message, one.agent, [n.message for n in one.notes]] for one in source.log()],
        "blame": [
            [one.number, one.revision.name, one.writer.agent_id, one.writer.number, one.text.decode().rstrip("\n")]
            for one in source.blame(PATH)
        ],
        "costs": [[one.name, one.commands, one.failures, dict(one.meta)] for one in source.costs()],
        "diff": [[one.what, one.path] for one in source.diff()],
    }


@dataclass(frozen=True)
class Place:
    """A directory with a store that a server serves."""

    directory: Path
    server: Process

    @property
    def store(self) -> str:
        return str(self.directory / "store")


async def fill(store: Store) -> None:
    """Changes of three agents: commands, a failure, a file write, a read, a message without a change, a revert."""
    async with store.open("w") as ws:
        await ws.execute("printf 'one\\ntwo\\n' > /list", agent_id="ann", meta={"tokens": 10})
        await ws.commit("first")
        await ws.execute("sed -i s/two/2/ /list; cat /none", agent_id="bob", meta={"tokens": 5})
        await ws.execute("echo three >> /list", agent_id="ann")
        await ws.commit("second")
        await ws.execute("echo wrong > /other", agent_id="cy")
    store["w"].revert(2)
    async with store.open("w") as ws:
        await ws.execute("wc -l /list", agent_id="bob")
        await ws.commit("looked at")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("same")
    store = Store(str(directory / "store"))
    store.create("w")
    asyncio.run(fill(store))
    server = Process(directory)
    yield Place(directory, server)
    server.stop()


def library(place: Place) -> dict[str, list[Any]]:
    return answers(Store(place.store)["w"])


def client(place: Place) -> dict[str, list[Any]]:
    with connect(f"unix:{place.server.socket}") as store:
        return answers(store["w"])


def http(place: Place) -> dict[str, list[Any]]:
    with place.server.client() as asking:

        def get(what: str, **query: str) -> Any:
            return asking.get(f"{W}/{what}", params=query).raise_for_status().json()

        return {
            "history": [
                [one["number"], one["kind"], one["agent_id"], one["command"], one["exit_code"]]
                for one in get("history")["commands"]
            ],
            "log": [
                [one["name"], one["message"], one.get("agent", ""), [n["message"] for n in one.get("notes", ())]]
                for one in get("log")["revisions"]
            ],
            "blame": [
                [one["number"], one["revision"], one["agent"], one["record"], one["text"]]
                for one in get("blame", path=PATH)["lines"]
            ],
            "costs": [[one["name"], one["commands"], one["failures"], one["meta"]] for one in get("costs")["costs"]],
            "diff": [[one["what"], one["path"]] for one in get("diff")["changes"]],
        }


def command_line(place: Place) -> dict[str, list[Any]]:
    def rows(*words: str) -> Any:
        done = invoke([*words, "--store", place.store, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return {
        "history": [
            [one["number"], one["kind"], one["agent"], one["command"], one["status"]] for one in rows("history", "w")
        ],
        "log": [
            [one["revision"], one["message"], one.get("agent", ""), one.get("notes", [])] for one in rows("log", "w")
        ],
        "blame": [
            [one["line"], one["revision"], one["agent"], one["record"], one["text"]]
            for one in rows("blame", f"w:{PATH}")
        ],
        "costs": [[one["agent"], one["commands"], one["failures"], one["meta"]] for one in rows("agents", "w")],
        "diff": [[one["change"], one["path"]] for one in rows("diff", "w")],
    }


def mcp(place: Place) -> dict[str, list[Any]]:
    async def ask() -> dict[str, list[Any]]:
        copy = place.directory / "copy"
        shutil.copytree(place.store, copy)
        async with Store(str(copy)).open("w") as ws, Client(mcp_server(ws)) as asking:

            async def call(name: str) -> Any:
                answer = await asking.call_tool(name, {})
                assert not answer.is_error, answer
                return answer.structured_content

            costs = (await call("ws_costs"))["costs"]
            return {
                "log": [
                    [one["revision"], one["message"], one["agent"], one.get("notes", [])]
                    for one in (await call("ws_log"))["revisions"]
                ],
                "costs": [[one["name"], one["commands"], one["failures"], one["meta"]] for one in costs],
                "diff": [[one["what"], one["path"]] for one in (await call("ws_diff"))["changes"]],
            }

    return asyncio.run(asyncio.wait_for(ask(), 250))


def typescript(place: Place) -> dict[str, list[Any]]:
    if NODE is None:
        pytest.skip("Node is not installed")
    script = ASK % {"module": json.dumps(TYPESCRIPT.as_uri()), "socket": place.server.socket}
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", script], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("ask", [client, http, command_line, mcp, typescript], ids=lambda ask: ask.__name__)
def test_every_surface_gives_the_same_answers(place: Place, ask: Callable[[Place], dict[str, list[Any]]]) -> None:
    expected = library(place)
    found = ask(place)
    assert found == {question: expected[question] for question in found}
    assert len(found) >= 3


def test_the_answers_are_right(place: Place) -> None:
    """What all of them say is also true."""
    found = library(place)
    assert [row[1:3] for row in found["history"]] == [
        ["command", "ann"], ["command", "bob"], ["command", "ann"], ["command", "cy"],
        ["revert", Store(place.store).repository.actor], ["command", "bob"],
    ]  # fmt: skip
    assert [row[2] for row in found["blame"]] == ["ann", "bob", "ann"]
    assert [row[1] for row in found["log"]] == ["revert to w-2", "on close", "second", "first"]
    assert found["log"][0][3] == ["looked at"]
    costs = {row[0]: row[1:] for row in found["costs"]}
    assert costs["ann"] == [2, 0, {"tokens": 10}] and costs["bob"] == [2, 1, {"tokens": 5}]
    assert found["diff"] == [["removed", "/other"]]


def by_library(place: Path, _: httpx2.Client) -> str:
    done = Store(str(place))["w"].undo(agent="bob", message="back")
    assert done.revision is not None
    return done.revision.name


def by_command_line(place: Path, _: httpx2.Client) -> str:
    done = invoke(["undo", "w", "--agent", "bob", "-m", "back", "--store", str(place), "--json"])
    assert done.exit_code == 0, done.output
    name: str = json.loads(done.stdout)["revision"]
    return name


def by_http(_: Path, asking: httpx2.Client) -> str:
    done = asking.post(f"{W}/undo", json={"agent": "bob", "message": "back"}).raise_for_status().json()
    name: str = done["revision"]["name"]
    return name


@pytest.mark.parametrize("undo", [by_library, by_command_line, by_http], ids=lambda undo: undo.__name__)
def test_undo_of_an_agent_is_the_same_everywhere(tmp_path: Path, undo: Callable[[Path, httpx2.Client], str]) -> None:
    async def two() -> None:
        async with Store(str(tmp_path / "store")).open("w", commit="command") as ws:
            await ws.execute("echo one > /a", agent_id="ann")
            await ws.execute("echo two > /b", agent_id="bob")
            await ws.execute("echo three > /c", agent_id="ann")

    Store(str(tmp_path / "store")).create("w")
    asyncio.run(two())
    server = Process(tmp_path)
    try:
        with server.client() as asking:
            assert undo(tmp_path / "store", asking) == "w-4"
            assert asking.post(f"{W}/undo", json={"agent": "bob"}).status_code == 404, "nothing is left"
            names = [one["path"].strip("/") for one in asking.get(f"{W}/dir?path=/").json()["entries"]]
            assert {"a", "c"} <= set(names) and "b" not in names
    finally:
        server.stop()
    head = Store(str(tmp_path / "store"))["w"].find()
    assert (head.message, head.lineage) == ("back", "undo:w-2")


def test_conflicts_of_an_undo_are_data_over_http(tmp_path: Path) -> None:
    async def two() -> None:
        async with Store(str(tmp_path / "store")).open("w", commit="command") as ws:
            await ws.execute("echo one > /a", agent_id="ann")
            await ws.execute("echo two > /a", agent_id="bob")

    Store(str(tmp_path / "store")).create("w")
    asyncio.run(two())
    server = Process(tmp_path)
    try:
        with server.client() as asking:
            done = asking.post(f"{W}/undo", json={"agent": "ann"})
            assert done.status_code == 409
            assert [one["path"] for one in done.json()["conflicts"]] == ["/a"] and done.json()["revision"] is None
    finally:
        server.stop()
    assert Store(str(tmp_path / "store"))["w"].find().seq == 2


def test_a_removed_workspace_is_restored_from_every_surface(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    Store(store).create("w")
    server = Process(tmp_path)
    try:
        with connect(f"unix:{server.socket}") as remote, server.client() as asking:
            removed = invoke(["rm", "w", "--store", store])
            assert "ramet restore w" in removed.output
            listed = json.loads(invoke(["ls", "--trash", "--json", "--store", store]).stdout)
            assert [one["workspace"] for one in listed] == ["w"]
            assert [one.name for one in remote.trash()] == ["w"]
            assert [one["name"] for one in asking.get("/v1/trash").json()["workspaces"]] == ["w"]
            remote.restore("w")
            remote.rm("w")
            assert asking.post("/v1/trash/w/restore").status_code == 200
            assert asking.post("/v1/trash/w/restore").status_code == 409
            assert asking.post("/v1/trash/none/restore").status_code == 404
            asking.delete(W)
            assert invoke(["restore", "w", "--store", store]).stdout == "w\n"
            assert Store(store).ls() == ["w"]
    finally:
        server.stop()


def test_a_workspace_is_renamed_from_every_surface(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    Store(store).create("w")
    server = Process(tmp_path)
    try:
        with connect(f"unix:{server.socket}") as remote, server.client() as asking:
            assert invoke(["rename", "w", "a", "--store", store]).stdout == "a\n"
            assert remote["a"].rename("b").name == "b"
            assert asking.post("/v1/workspaces/b/rename", json={"name": "c"}).json()["name"] == "c"
            assert asking.post("/v1/workspaces/c/rename", json={"name": "c"}).status_code == 409
            assert asking.post("/v1/workspaces/b/rename", json={"name": "d"}).status_code == 404
            assert Store(store).ls() == ["c"]
    finally:
        server.stop()
