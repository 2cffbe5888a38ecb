"""An agent of the OpenAI Agents SDK works in a ramet sandbox, offline; its run pauses and goes on in another process.

It uses the shell and the `edit` tool, waits for an approval, and ends in a store, which then tells what it did.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

QUESTION = "Which number is the largest? Write a report."


def agent(replies: list[Any]) -> Any:
    from agents.sandbox import SandboxAgent
    from agents.sandbox.capabilities import Shell
    from agents.testing import ScriptedModel

    from ramet.agents.openai_agents import Edit

    capabilities = [Shell(), Edit(needs_approval=True)]
    model = ScriptedModel(replies)
    return SandboxAgent(name="counter", instructions="Look at the numbers.", model=model, capabilities=capabilities)


def config(session: Any) -> Any:
    from agents import RunConfig
    from agents.run_config import SandboxRunConfig

    return RunConfig(sandbox=SandboxRunConfig(session=session), tracing_disabled=True)


async def begin(folder: Path) -> None:
    """Run until the agent wants to change a file, which a person must approve; then stop with everything saved."""
    from agents import Runner
    from agents.sandbox import Manifest
    from agents.sandbox.entries import File
    from agents.testing import function_call

    from ramet.agents.openai_agents import RametSandboxClient, RametSnapshotSpec

    change = {"path": "report.txt", "old": "?", "new": "40", "all": False}
    replies = [
        [
            function_call(
                "exec_command", {"cmd": "sort -n numbers | tail -1; echo 'largest: ?' > report.txt"}, call_id="one"
            )
        ],
        [function_call("edit", change, call_id="two")],
    ]
    client = RametSandboxClient()
    manifest = Manifest(entries={"numbers": File(content=b"7\n40\n12\n")})
    snapshot = RametSnapshotSpec(store=str(folder / "store"), workspace="report")
    session = await client.create(manifest=manifest, snapshot=snapshot)
    async with session:
        result = await Runner.run(agent(replies), QUESTION, run_config=config(session))
    print(f"waiting for approval of {[item.name for item in result.interruptions]}")
    (folder / "run.json").write_text(result.to_state().to_string())
    (folder / "session.json").write_text(json.dumps(client.serialize_session_state(session.state)))
    await client.delete(session)


async def resume(folder: Path) -> None:
    """In a new process: approve, and let the agent end its work on the files it had."""
    from agents import Runner, RunState
    from agents.testing import assistant_message

    from ramet.agents.openai_agents import RametSandboxClient

    client = RametSandboxClient()
    session = await client.resume(client.deserialize_session_state(json.loads((folder / "session.json").read_text())))
    worker = agent([[assistant_message("The largest of 3 numbers is 40.")]])
    async with session:
        state: Any = await RunState.from_string(worker, (folder / "run.json").read_text())
        for item in state.get_interruptions():
            state.approve(item)
        result = await Runner.run(worker, state, run_config=config(session))
        print(result.final_output)
        print((await session.exec("cat report.txt")).stdout.decode(), end="")
    snapshot: Any = session.state.snapshot
    for revision in reversed(snapshot.log()):
        changes = ", ".join(f"{change.what} {change.path}" for change in snapshot.diff(str(revision.seq)))
        print(f"{revision.name}: {changes}")
    await client.delete(session)


def main() -> None:
    if find_spec("agents") is None or find_spec("agents.testing") is None:
        print("skipped: pip install 'ramet[openai-agents]'")
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(begin(Path(folder)))
        done = subprocess.run([sys.executable, __file__, folder], capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        assert done.returncode == 0 and "largest: 40" in done.stdout


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(resume(Path(sys.argv[1])))
    else:
        main()
