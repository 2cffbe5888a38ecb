"""The OpenAI sandbox with real programs: `python3` in `exec`, and real terminals."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("agents.sandbox", reason="the OpenAI Agents SDK is not installed")

from agents.sandbox.capabilities import Skill, Skills
from agents.sandbox.entries import File
from agents.sandbox.errors import ExposedPortUnavailableError, InvalidManifestPathError
from agents.sandbox.manifest import Manifest
from agents.sandbox.session import runtime_helpers, snapshot_lifecycle
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from tests.support.web_fake import web_fake
from tests.workspace.native.conftest import NATIVE, missing, need

from ramet import Workspace
from ramet.agents.openai_agents import RametSandboxClient, RametSandboxClientOptions

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


def in_native_session(use: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    if missing():
        pytest.skip(f"no native programs here: {missing()}")
    need("python3")

    async def steps() -> None:
        client = RametSandboxClient(native=NATIVE)
        session = await client.create(**options)
        async with session:
            await asyncio.wait_for(use(session), 120)
        await client.delete(session)

    asyncio.run(steps())


HELPERS = [runtime_helpers.RESOLVE_WORKSPACE_PATH_HELPER, runtime_helpers.WORKSPACE_FINGERPRINT_HELPER]


def test_the_helper_scripts_of_the_sdk() -> None:
    """They say the same in our shell and in the machine's."""

    async def use(session: Any) -> None:
        inner = session._inner
        await session.exec("mkdir d; echo x > d/f; ln -s d l; ln -s /etc/passwd out; ln -s loop loop; ln -s ../.. up")
        root = session.state.manifest.root
        for helper in HELPERS:
            await inner._ensure_runtime_helper_installed(helper)
            assert (await session.exec(*helper.present_command(), shell=False)).exit_code == 0
        asked = [
            ("d/f", "0"),
            ("l/f", "1"),
            ("none", "1"),
            ("out", "0"),
            ("loop", "0"),
            ("up/x", "1"),
            (".", "2"),
            ("d", "x"),
        ]
        script = str(HELPERS[0].install_path)
        statuses = []
        for path, mode in asked:
            words = (script, root, f"{root}/{path}", mode, "/tmp", "1")
            ours = await session.exec(*words, shell=False)
            theirs = await session.exec("/usr/bin/dash", *words, shell=False)
            assert (ours.stdout, ours.exit_code) == (theirs.stdout, theirs.exit_code), path
            statuses.append(ours.exit_code)
        assert statuses[:3] == [0, 0, 0] and 0 not in statuses[3:6] and statuses[-1] == 64
        assert await BaseSandboxSession._validate_remote_path_access(inner, "d/f") is not None
        with pytest.raises(InvalidManifestPathError):
            await BaseSandboxSession._validate_remote_path_access(inner, "out")
        first = await snapshot_lifecycle.compute_and_cache_snapshot_fingerprint(inner)
        assert await snapshot_lifecycle.compute_and_cache_snapshot_fingerprint(inner) == first
        await session.exec("echo y > d/f")
        assert await snapshot_lifecycle.compute_and_cache_snapshot_fingerprint(inner) != first
        words = (str(HELPERS[1].install_path), root, "v", "/tmp/cache", "digest", "l")
        ours = await session.exec(*words, shell=False)
        theirs = await session.exec("/usr/bin/dash", *words, shell=False)
        assert ours.exit_code == 0 and ours.stdout == theirs.stdout

    need("dash")
    in_native_session(use)


def test_a_skill_that_runs_python() -> None:
    skill = Skill(
        name="count", description="Counts words.", content="# Count\n\nRun `python3 scripts/count.py FILE`.\n",
        scripts={"count.py": File(content=b"import sys\nprint(len(open(sys.argv[1]).read().split()))\n")},
    )  # fmt: skip
    manifest = Skills(skills=[skill]).process_manifest(Manifest(entries={"text": File(content=b"one two three")}))

    async def use(session: Any) -> None:
        found = await session.exec("python3 .agents/count/scripts/count.py text")
        assert (found.stdout, found.exit_code) == (b"3\n", 0), found

    in_native_session(use, manifest=manifest)


SERVER = "python3 -u -m http.server 8000 --bind 127.0.0.1 > log 2>&1 & until [ -s log ]; do sleep 0.05; done"


def test_exposed_ports_lead_to_programs() -> None:
    places: list[tuple[str, int]] = []

    async def use(session: Any) -> None:
        await session.exec("echo found > f")
        assert (await session.exec(SERVER)).exit_code == 0
        found = await session.resolve_exposed_port(8000)
        assert (found.host, found.tls) == ("127.0.0.1", False) and found.port != 8000
        assert (await session.resolve_exposed_port(8000)).port == found.port
        reader, writer = await asyncio.open_connection(found.host, found.port)
        writer.write(b"GET /f HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"found\n")
        writer.close()
        silent = await session.resolve_exposed_port(8001)
        with pytest.raises(OSError):
            reader, writer = await asyncio.open_connection(silent.host, silent.port)
            writer.write(b"x")
            assert await reader.read() == b"", "closed"
            raise ConnectionResetError
        with pytest.raises(ExposedPortUnavailableError):
            await session.resolve_exposed_port(9)
        places.extend((one.host, one.port) for one in (found, silent))

    in_native_session(use, options=RametSandboxClientOptions(exposed_ports=(8000, 8001)))
    for place in places:
        with socket.socket() as probe:
            assert probe.connect_ex(place) != 0, "closed with its session"
