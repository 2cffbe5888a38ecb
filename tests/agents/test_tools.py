"""The thin adapters give each framework the tools of the one table, and the framework itself calls them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from ramet import RAMResource, Store, Workspace
from ramet.core.errors import RametError
from ramet.workspace.agent.tools import TOOLS, Toolbox, call_tool, chosen_tools

FILES = [name for name in TOOLS if not name.startswith("ws_")]


def act(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


# ------------------------------------------------------------------------------------------------- the table


def test_which_tools_a_workspace_has() -> None:
    assert list(chosen_tools(None, Workspace({}))) == FILES
    assert list(chosen_tools(["ls", "bash"], Workspace({}))) == ["ls", "bash"]
    with pytest.raises(RametError, match="no tool 'rm'"):
        chosen_tools(["rm"], Workspace({}))


@pytest.mark.parametrize(
    ("name", "given", "code", "cause"),
    [
        ("rm", {}, "not_found", "no tool 'rm'"),
        ("read", {}, "invalid_argument", "read needs 'path'"),
        ("read", {"path": 1}, "invalid_argument", "must be of type string"),
        ("read", {"path": "/none"}, "not_found", "/none: No such file or directory"),
        ("read", {"path": "/tmp"}, "invalid_argument", "/tmp: Is a directory"),
        ("write", {"path": "/fixed/f", "content": ""}, "permission_denied", "/fixed/f: Read-only file system"),
        ("ws_log", {}, "unsupported", "no history"),
    ],
)
def test_what_goes_wrong_is_an_answer(name: str, given: dict[str, Any], code: str, cause: str) -> None:
    async def work() -> None:
        ws = Workspace({"/": RAMResource(), "/fixed": (RAMResource(), "read")})
        answer = await call_tool(TOOLS, Toolbox(ws), name, given)
        told = json.loads(answer.text)["error"]
        assert answer.failed and told["code"] == code and cause in told["cause"] and told["remediation"]

    act(work())


# ----------------------------------------------------------------------------------------- Claude Agent SDK


def test_claude_agent_sdk() -> None:
    pytest.importorskip("claude_agent_sdk")
    from mcp.client import Client

    from ramet.agents.claude_agent import tool_names, workspace_server

    async def work() -> None:
        ws = Workspace({"/": RAMResource()})
        assert tool_names(ws, ["bash", "read"]) == ["mcp__ramet__bash", "mcp__ramet__read"]
        server = workspace_server(ws)
        assert (server["type"], server["name"]) == ("sdk", "ramet")
        async with Client(server["instance"]) as client:  # as the SDK itself talks to it
            tools: dict[str, Any] = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == FILES
            assert tools["read"].annotations.read_only_hint and tools["bash"].annotations.destructive_hint
            assert tools["edit"].input_schema == TOOLS["edit"].schema

            async def call(name: str, **given: Any) -> Any:
                answer: Any = await client.call_tool(name, given)
                return answer.is_error, answer.content[0].text

            assert await call("write", path="/a", content="one") == (False, '{"path": "/a", "bytes": 3}')
            failed, text = await call("bash", command="cat /a; exit 3")
            done = json.loads(text)
            assert (failed, done["exit_code"], done["stdout"]["text"]) == (False, 3, "one")
            failed, text = await call("read", path="/none")
            assert failed and "No such file" in text

    act(work())


# ------------------------------------------------------------------------------------------------- LangChain


def test_langchain() -> None:
    pytest.importorskip("langchain_core")
    from ramet.agents.langchain import workspace_tools

    def call(name: str, **given: Any) -> dict[str, Any]:
        return {"type": "tool_call", "id": "1", "name": name, "args": given}

    async def work() -> None:
        tools = {tool.name: tool for tool in workspace_tools(Workspace({}))}
        assert list(tools) == FILES
        done = await tools["bash"].ainvoke(call("bash", command="echo hi > /a; cat /a"))
        assert done.status == "success" and done.artifact["stdout"]["text"] == "hi\n"
        assert json.loads(done.content) == done.artifact
        refused = await tools["read"].ainvoke(call("read", path="/none"))
        assert refused.status == "error" and "No such file" in refused.content

    act(work())
    tools = {tool.name: tool for tool in workspace_tools(Workspace({}), ["write", "read"])}
    assert tools["write"].invoke(call("write", path="/a", content="x")).status == "success"
    assert tools["read"].invoke(call("read", path="/a")).artifact["text"] == "x"
    assert tools["read"].tool_call_schema["required"] == ["path"]


# ----------------------------------------------------------------------------------------------- memory tool

CALLS: list[tuple[dict[str, Any], str]] = [
    ({"command": "create", "path": "/memories/a/b.md", "file_text": "one\ntwo\nthree\n"}, "was created"),
    ({"command": "create", "path": "/memories/a/b.md", "file_text": ""}, "!exists"),
    ({"command": "view", "path": "/memories"}, "-\t/memories/a/\n14\t/memories/a/b.md"),
    ({"command": "view", "path": "/memories/a/b.md"}, "     1\tone\n     2\ttwo\n     3\tthree"),
    ({"command": "view", "path": "/memories/a/b.md", "view_range": [2, 2]}, ":\n     2\ttwo"),
    ({"command": "view", "path": "/memories/a/b.md", "view_range": [3, -1]}, ":\n     3\tthree"),
    ({"command": "str_replace", "path": "/memories/a/b.md", "old_str": "two", "new_str": "2"}, "     2\t2"),
    ({"command": "str_replace", "path": "/memories/a/b.md", "old_str": "e", "new_str": ""}, "!3 times"),
    ({"command": "str_replace", "path": "/memories/a/b.md", "old_str": "x", "new_str": ""}, "!is not in /memories/a/b"),
    ({"command": "insert", "path": "/memories/a/b.md", "insert_line": 1, "insert_text": "new\n"}, "was changed"),
    ({"command": "insert", "path": "/memories/a/b.md", "insert_line": 9, "insert_text": "new"}, "!lines 0 to 4"),
    ({"command": "view", "path": "/memories/a/b.md"}, "     1\tone\n     2\tnew\n     3\t2\n     4\tthree"),
    ({"command": "rename", "old_path": "/memories/a/b.md", "new_path": "/memories/c/d.md"}, "is now"),
    ({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/c"}, "!exists"),
    ({"command": "rename", "old_path": "/memories", "new_path": "/memories/x"}, "!itself"),
    ({"command": "view", "path": "/memories/none"}, "!/memories/none: No such file"),
    ({"command": "view", "path": "/memories/../etc"}, "!use a path below"),
    ({"command": "view", "path": "/etc/passwd"}, "!use a path below"),
    ({"command": "view", "path": "/memoriesx"}, "!use a path below"),
    ({"command": "view", "path": "/memories/out/secret"}, "!leads out"),
    ({"command": "create", "path": "/memories/out/new", "file_text": ""}, "!leads out"),
    ({"command": "delete", "path": "/memories"}, "!itself"),
    ({"command": "delete", "path": "/memories/c"}, "was deleted"),
    ({"command": "delete", "path": "/memories/c"}, "!No such file"),
]


async def prepared(directory: str) -> Workspace:
    ws = Workspace({})
    await ws.execute(f"mkdir -p /other {directory}; echo x > /other/secret; ln -s /other {directory}/out")
    return ws


@pytest.mark.parametrize("directory", ["/memories", "/users/ann/notes"])
def test_memory_with_await(directory: str) -> None:
    pytest.importorskip("anthropic")
    from anthropic.lib.tools import ToolError

    from ramet.agents.anthropic_memory import RametAsyncMemoryTool

    async def work() -> None:
        ws = await prepared(directory)
        tool = RametAsyncMemoryTool(ws, directory)
        assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
        for given, expected in CALLS:
            try:
                answer = str(await tool.call(given))
            except ToolError as refusal:
                answer = f"!{refusal}"
            assert expected.lstrip("!") in answer and answer.startswith("!") == expected.startswith("!"), (
                given,
                answer,
            )
            assert directory == "/memories" or directory not in answer
        await tool.clear_all_memory()
        assert (await ws.execute(f"ls -A {directory}; cat /other/secret")).text == "x\n"

    act(work())


def test_memory_without_await() -> None:
    pytest.importorskip("anthropic")
    from ramet.agents.anthropic_memory import RametMemoryTool

    tool = RametMemoryTool(Workspace({}))
    tool.call(CALLS[0][0])
    assert "two" in str(tool.call({"command": "view", "path": "/memories/a/b.md"}))
    tool.close()


def test_memory_has_a_history(tmp_path: Path) -> None:
    pytest.importorskip("anthropic")
    from ramet.agents.anthropic_memory import RametAsyncMemoryTool

    async def work() -> None:
        store = Store(str(tmp_path))
        store.create("ann")
        async with store.open("ann") as ws:
            tool = RametAsyncMemoryTool(ws)
            await tool.call(CALLS[0][0])
            await tool.call(CALLS[6][0])
            messages = [revision.message for revision in store["ann"].log()]
        assert messages == ["memory: change /memories/a/b.md", "memory: create /memories/a/b.md"]
        assert b"two" in b"".join(store["ann"].show("/memories/a/b.md", "head~1"))

    act(work())


def test_long_memories_say_where_to_go_on() -> None:
    pytest.importorskip("anthropic")
    from ramet.agents.anthropic_memory import RametAsyncMemoryTool

    async def work() -> None:
        ws = Workspace({})
        await ws.execute("mkdir /memories; seq 100000 > /memories/long")
        tool = RametAsyncMemoryTool(ws)
        answer = str(await tool.call({"command": "view", "path": "/memories/long"}))
        *_, last, notice = answer.split("\n")
        assert notice.startswith("[truncated") and len(answer) < 100_000
        again = int(notice.rstrip("]").split()[-1])
        assert int(last.split()[0]) in (again, again - 1)

    act(work())
