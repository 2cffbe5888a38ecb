"""An agent of the OpenAI Agents SDK works in a ramet sandbox, offline; another process resumes from its snapshot."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any


async def begin(folder: Path) -> None:
    from agents import RunConfig, Runner
    from agents.run_config import SandboxRunConfig
    from agents.sandbox import Manifest, SandboxAgent
    from agents.sandbox.entries import File
    from agents.sandbox.snapshot import LocalSnapshotSpec
    from agents.testing import ScriptedModel, assistant_message, function_call

    from ramet.agents.openai_agents import RametSandboxClient

    commands = ["sort -n numbers | tail -1 > largest; cat largest", "wc -l < numbers"]
    calls: list[Any] = [
        [function_call("exec_command", {"cmd": command}, call_id=f"call-{number}")]
        for number, command in enumerate(commands)
    ]
    model = ScriptedModel([*calls, [assistant_message("The largest of 3 numbers is 40.")]])
    agent = SandboxAgent(name="counter", instructions="Look at the numbers.", model=model)

    client = RametSandboxClient()
    manifest = Manifest(entries={"numbers": File(content=b"7\n40\n12\n")})
    session = await client.create(manifest=manifest, snapshot=LocalSnapshotSpec(base_path=folder))
    async with session:
        config = RunConfig(sandbox=SandboxRunConfig(session=session), tracing_disabled=True)
        result = await Runner.run(agent, "Which number is the largest?", run_config=config)
    print(result.final_output)
    (folder / "state.json").write_text(json.dumps(client.serialize_session_state(session.state)))
    await client.delete(session)


async def resume(folder: Path) -> None:
    from ramet.agents.openai_agents import RametSandboxClient

    client = RametSandboxClient()
    state = client.deserialize_session_state(json.loads((folder / "state.json").read_text()))
    session = await client.resume(state)
    async with session:
        print((await session.exec("ls; cat largest")).stdout.decode(), end="")
    await client.delete(session)


def main() -> None:
    if find_spec("agents") is None or find_spec("agents.testing") is None:
        print("skipped: pip install 'ramet[openai-agents]'")
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(begin(Path(folder)))
        done = subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True, check=True)
        print(done.stdout, end="")
        assert done.stdout == "largest\nnumbers\n40\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(resume(Path(sys.argv[1])))
    else:
        main()
