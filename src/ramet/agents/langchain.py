"""Workspace tools for LangChain, sync or async (not both: a workspace has one event loop).

agent = create_agent(model, tools=workspace_tools(ws))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from ramet.core.errors import missing_extra
from ramet.workspace.agent.tools import Tool, Toolbox, call_tool, chosen_tools
from ramet.workspace.loop_thread import LoopThread
from ramet.workspace.session import DEFAULT_SESSION_ID
from ramet.workspace.workspace import Workspace

try:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ModuleNotFoundError as error:
    raise missing_extra("langchain", "the toolkit for LangChain") from error


def workspace_tools(
    ws: Workspace, tools: Iterable[str] | None = None, *, session_id: str = DEFAULT_SESSION_ID
) -> list[BaseTool]:
    """Return all tools, or only these. A result's message is JSON; its artifact is the same object."""
    chosen, box = chosen_tools(tools, ws), Toolbox(ws, session_id)
    portal = cache(lambda: LoopThread("ramet-langchain"))  # a thread for synchronous calls only
    return [_langchain_tool(tool, chosen, box, portal) for tool in chosen.values()]


def _langchain_tool(tool: Tool, tools: Mapping[str, Tool], box: Toolbox, portal: Any) -> BaseTool:
    async def act(**given: Any) -> tuple[str, dict[str, Any]]:
        answer = await call_tool(tools, box, tool.name, given)
        if answer.failed:
            raise ToolException(answer.text)
        return answer.text, answer.content

    def act_and_wait(**given: Any) -> tuple[str, dict[str, Any]]:
        done: tuple[str, dict[str, Any]] = portal().run(act(**given))
        return done

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=tool.schema, func=act_and_wait, coroutine=act,
        response_format="content_and_artifact", handle_tool_error=True,
        metadata={"read_only": tool.read_only, "destructive": tool.destructive, "idempotent": tool.idempotent},
    )  # fmt: skip
