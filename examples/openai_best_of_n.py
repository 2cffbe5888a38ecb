"""Best of n with the OpenAI Agents SDK, offline: one preparation, three forks that try side by side, one is kept."""

from __future__ import annotations

import asyncio
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ATTEMPTS = {
    "head": "head -1 words > answer",
    "sort": "sort words | head -1 > answer",
    "longest": "awk '{ if (length($0) > length(best)) best = $0 } END { print best }' words > answer",
}


async def attempt(client: Any, base: Any, name: str, command: str) -> tuple[int, str, Any]:
    """An agent on a fork of the prepared workspace; the score is the length of the word that it found."""
    from agents import RunConfig, Runner
    from agents.run_config import SandboxRunConfig
    from agents.sandbox import SandboxAgent
    from agents.testing import ScriptedModel, assistant_message, function_call

    fork = base.fork(f"try-{name}")
    model = ScriptedModel(
        [[function_call("exec_command", {"cmd": command}, call_id="one")], [assistant_message("done")]]
    )
    agent = SandboxAgent(name=name, instructions="Find the longest word.", model=model)
    session = await client.create(snapshot=fork)
    async with session:
        config = RunConfig(sandbox=SandboxRunConfig(session=session), tracing_disabled=True)
        await Runner.run(agent, "Which word is the longest?", run_config=config)
        answer = (await session.exec("cat answer")).stdout.decode().strip()
    await client.delete(session)
    return len(answer), answer, fork


async def run(folder: Path) -> None:
    from agents.sandbox import Manifest
    from agents.sandbox.entries import File

    from ramet.agents.openai_agents import RametSandboxClient, RametSnapshotSpec

    client = RametSandboxClient()
    manifest = Manifest(entries={"words": File(content=b"pear\nwatermelon\napple\n")})
    session = await client.create(
        manifest=manifest, snapshot=RametSnapshotSpec(store=str(folder / "store"), workspace="words")
    )
    async with session:
        await session.exec("wc -l words")
    base: Any = session.state.snapshot
    tried = await asyncio.gather(*(attempt(client, base, name, command) for name, command in ATTEMPTS.items()))
    _, answer, best = max(tried, key=lambda result: result[0])
    print(f"{best.workspace} found {answer}: {[change.path for change in best.diff()]}")
    assert answer == "watermelon"
    await client.delete(session)


def main() -> None:
    if find_spec("agents") is None or find_spec("agents.testing") is None:
        print("skipped: pip install 'ramet[openai-agents]'")
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


if __name__ == "__main__":
    main()
