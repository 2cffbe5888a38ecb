"""A Pydantic AI agent whose work is kept, offline: two runs in one workspace, then its log, diff and an older state."""

import asyncio
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def scripted(*commands: str) -> Any:
    """A model that runs these commands with the tool `shell`, one after the other, and says that it is done."""
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    left = list(commands)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if left:
            return ModelResponse(parts=[ToolCallPart("shell", {"command": left.pop(0)})])
        return ModelResponse(parts=[TextPart("done")])

    return FunctionModel(answer)


async def run(folder: Path) -> None:
    from pydantic_ai import Agent, RunContext

    from ramet import Store
    from ramet.agents.pydantic_ai import RametWorkspaceBackend

    async def shell(ctx: RunContext[None], command: str) -> str:
        """Run a shell command in the workspace."""
        result = await ctx.workspace.run(command, shell=True)
        return f"{result.stdout}{result.stderr}[exit code {result.exit_code}]"

    where = str(folder / "store")
    agent = Agent(tools=[shell])
    first = RametWorkspaceBackend(store=where, name="report")
    model = scripted(
        "printf 'north,3\\nsouth,5\\n' > sales.csv", "awk -F, '{ n += $2 } END { print n }' sales.csv > total"
    )
    await agent.run("Add up the sales.", model=model, workspace=first)
    await first.release()

    # Later, and it may be elsewhere: the ref of the first run names the environment.
    again = RametWorkspaceBackend(first.ref, store=where)
    await agent.run("Forget the north.", model=scripted("sed -i /north/d sales.csv"), workspace=again)
    print("now:", await again.read_bytes("/workspace/sales.csv"))
    await again.release()

    report = Store(where)["report"]
    for revision in report.log():
        print(revision.name, revision.message)
    print("changed:", [(change.path, change.what) for change in report.diff()])
    print("before:", b"".join(report.show("/workspace/sales.csv", "head~1")))


def main() -> None:
    if find_spec("pydantic_ai") is None:
        print("skipped: pip install 'ramet[pydantic-ai]'")
        return
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


if __name__ == "__main__":
    main()
