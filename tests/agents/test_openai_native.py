"""The OpenAI sandbox with real programs: `python3` in `exec`, and real terminals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agents.sandbox", reason="the OpenAI Agents SDK is not installed")

from agents.sandbox.entries import File
from agents.sandbox.manifest import Manifest
from tests.support.web_fake import web_fake
from tests.workspace.native.conftest import NATIVE, missing, need

from ramet import Workspace
from ramet.agents.openai_agents import RametSandboxClient

SKILL = (
    b"import json, pathlib, sys\nprint(json.dumps(sorted(p.name for p in pathlib.Path('.').iterdir())), sys.argv[1])\n"
)


def test_python_and_terminals() -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    need("python3")

    async def until(session: Any, update: Any, text: bytes) -> Any:
        seen = update.output
        while text not in seen and update.process_id is not None:
            update = await session.pty_write_stdin(session_id=update.process_id, chars="", yield_time_s=1)
            seen += update.output
        assert text in seen
        return update

    async def steps() -> None:
        client = RametSandboxClient(native=NATIVE)
        session = await client.create(manifest=Manifest(entries={"skill.py": File(content=SKILL)}))
        async with session:
            found = await session.exec("python3 skill.py x | cat; python3 -c 'import sys; sys.exit(3)'")
            assert (found.stdout, found.exit_code) == (b'["skill.py"] x\n', 3)
            started = await session.pty_exec_start("python3", "-q", tty=True, yield_time_s=1)
            assert started.process_id is not None
            await until(session, started, b">>> ")
            typed = await session.pty_write_stdin(
                session_id=started.process_id, chars="import os; os.isatty(0), 6 * 7\n", yield_time_s=1
            )
            await until(session, typed, b"(True, 42)\r\n")
            ended = await session.pty_write_stdin(session_id=started.process_id, chars="exit(5)\n", yield_time_s=5)
            assert ended.exit_code == 5
        await client.delete(session)

    asyncio.run(steps())


def test_a_session_reaches_the_hosts_of_its_network() -> None:
    async def steps() -> None:
        with web_fake() as web:
            client = RametSandboxClient(network={"allow": [f"127.0.0.1:{web.port}"]})
            session = await client.create(manifest=Manifest())
            async with session:
                found = await session.exec(f"curl -s {web.url}/hello; curl -s http://other.example/")
                assert found.stdout == b"hello\n" and b"the network policy refuses" in found.stderr
            with pytest.raises(ValueError, match="its own network"):
                RametSandboxClient(Workspace(), network={"allow": ["other.example"]})

    asyncio.run(steps())
