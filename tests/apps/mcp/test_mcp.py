"""MCP with the official client: the tools in process, over stdio and over streamable HTTP."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters
from mcp.client import Client
from tests.apps.server.harness import Process

from ramet import Store
from ramet.apps.mcp.server import mcp_server, run_http
from ramet.core.paths import parse
from ramet.workspace.agent.tools import TOOLS


async def _exercise(client: Any) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == set(TOOLS)
    assert tools["read"].annotations.read_only_hint and tools["bash"].annotations.destructive_hint

    async def call(name: str, **given: Any) -> Any:
        answer = await client.call_tool(name, given)
        assert not answer.is_error, answer
        return answer.structured_content

    await call("write", path="/d/a.txt", content="one\ntwo\n")
    done = await call("bash", command="cd /d; cat a.txt; exit 3")
    assert (done["exit_code"], done["stdout"]["text"]) == (3, "one\ntwo\n")
    first = await call("ws_commit", message="first")
    assert (await call("edit", path="a.txt", old="two", new="2"))["replaced"] == 1
    assert (await call("read", path="/d/a.txt", offset=2))["text"] == "2"
    assert (await call("glob", pattern="*.txt", path="/d"))["text"] == "/d/a.txt\n"
    assert (await call("grep", pattern="o.e", path="/d"))["text"] == "/d/a.txt:1:one\n"
    assert [row["name"] for row in (await call("ls", path="/d"))["entries"]] == ["a.txt"]
    unsaved = await call("ws_diff")
    assert unsaved["state"] == "not committed yet" and "-two\n+2\n" in unsaved["patch"]["text"]
    await call("ws_commit", message="second")
    assert (await call("ws_log"))["total"] >= 2
    assert {"path": "/d/a.txt", "what": "modified", "old": None} in (await call("ws_diff"))["changes"]
    since = await call("ws_diff", older="1", newer="head")
    assert since["state"] == "committed" and "-two\n+2\n" in since["patch"]["text"]
    await call("ws_revert", revision=first["revision"], path="/d/a.txt")
    assert (await call("read", path="/d/a.txt"))["text"] == "one\ntwo"
    long = await call("bash", command="seq 100000")
    assert (
        long["stdout"]["truncated"]
        and "99999" in (await call("bash", command=f"tail -2 {long['stdout']['rest']}"))["stdout"]["text"]
    )
    await call("bash", command="mkdir /raw; echo x > $'/raw/n\\377'; printf 'o\\377'; cat $'/raw/m\\377'")
    assert [row["name"] for row in (await call("ls", path="/raw"))["entries"]] == ["n\\udcff"], "and it still serves"
    assert (await call("glob", pattern="*", path="/raw"))["text"] and (await call("grep", pattern="x", path="/raw"))[
        "text"
    ]
    refused = await client.call_tool("read", {"path": "/none"})
    assert refused.is_error
    assert (await client.call_tool("read", {"file": "/none"})).is_error
    found = await client.read_resource(f"ramet://p@{first['revision']}/d/a.txt")
    assert found.contents[0].text == "one\ntwo\n"


def test_tools_in_process(tmp_path: Path) -> None:
    async def test() -> None:
        store = Store(str(tmp_path))
        store.create("p")
        async with store.open("p") as ws:
            async with Client(mcp_server(ws)) as client:
                await _exercise(client)
            async with Client(mcp_server(ws, ["bash"])) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["bash"]

    asyncio.run(asyncio.wait_for(test(), 250))


def test_stdio(tmp_path: Path) -> None:
    async def test() -> None:
        arguments = ["-m", "ramet.apps.cli", "mcp", "p", "--store", str(tmp_path)]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
            await _exercise(client)

    asyncio.run(asyncio.wait_for(test(), 250))


def test_streamable_http(tmp_path: Path) -> None:
    async def test() -> None:
        # The socket is ours from the first moment: a port that is only remembered may be somebody else's by then.
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port, stop = listening.getsockname()[1], asyncio.Event()
            serving = asyncio.ensure_future(run_http(Store(str(tmp_path)), "p", stop=stop, listening=listening))
            async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                await _exercise(client)
            stop.set()
            await serving

    asyncio.run(asyncio.wait_for(test(), 250))


def test_a_long_command_tells_that_it_runs(tmp_path: Path) -> None:
    async def test() -> None:
        told: list[tuple[float, str | None]] = []
        store = Store(str(tmp_path))
        store.create("p")
        async with store.open("p") as ws, Client(mcp_server(ws)) as client:

            async def tell(progress: float, total: float | None, message: str | None) -> None:
                told.append((progress, message))
                if len(told) == 2:
                    await ws.fs.write(parse("/go"), b"")

            line = "until [ -e /go ]; do sleep 0.02; done; echo done"
            done = await client.call_tool("bash", {"command": line}, progress_callback=tell)
            assert done.structured_content["stdout"]["text"] == "done\n"
        assert told[:2] == [(1.0, "running for 1 s"), (2.0, "running for 2 s")]

    asyncio.run(asyncio.wait_for(test(), 250))


def test_tools_on_a_workspace_of_a_server(tmp_path: Path) -> None:
    served = Process(tmp_path)

    async def test() -> None:
        words = ["-m", "ramet.apps.cli", "mcp", "p", "--store", f"unix:{served.socket}"]
        async with Client(StdioServerParameters(command=sys.executable, args=words)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == set(TOOLS)

            async def call(tool: str, **given: Any) -> Any:
                answer = await client.call_tool(tool, given)
                assert not answer.is_error, answer
                return answer.structured_content

            await call("write", path="/d/e/a.txt", content="one\ntwo\n")
            done = await call("bash", command="cd /d/e; cat a.txt; exit 3")
            assert (done["exit_code"], done["stdout"]["text"]) == (3, "one\ntwo\n")
            first = await call("ws_commit", message="first")
            assert (await call("edit", path="a.txt", old="two", new="2"))["replaced"] == 1
            assert {"path": "/d/e/a.txt", "what": "modified", "old": None} in (await call("ws_diff"))["changes"]
            assert (await call("read", path="a.txt", offset=2))["text"] == "2"
            assert (await call("glob", pattern="*.txt", path="/d"))["text"] == "/d/e/a.txt\n"
            assert (await call("grep", pattern="o.e", path="/d"))["text"] == "/d/e/a.txt:1:one\n"
            assert [row["name"] for row in (await call("ls"))["entries"]] == ["a.txt"]
            assert (await call("ws_log"))["total"] >= 2
            await call("ws_revert", revision=first["revision"], path="/d/e/a.txt")
            assert (await call("read", path="/d/e/a.txt"))["text"] == "one\ntwo"
            assert (await call("ws_fork", name="q"))["workspace"] == "q"
            long = await call("bash", command="seq 100000")
            rest = long["stdout"]["rest"]
            assert "99999" in (await call("bash", command=f"tail -2 {rest}"))["stdout"]["text"]
            assert (await client.call_tool("read", {"path": "/none"})).is_error
            for where in (f"p@{first['revision']}", "p"):
                found: Any = await client.read_resource(f"ramet://{where}/d/e/a.txt")
                assert found.contents[0].text == "one\ntwo\n"

    try:
        asyncio.run(asyncio.wait_for(test(), 250))
        served.stop()
    finally:
        served.process.kill()
        served.process.wait()
