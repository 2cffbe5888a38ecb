"""Workspace tools for the Claude Agent SDK, as an in-process MCP server.

options = ClaudeAgentOptions(mcp_servers={"ramet": workspace_server(ws)}, allowed_tools=tool_names(ws))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Any

from ramet.core.errors import missing_extra
from ramet.workspace.agent.tools import Tool, Toolbox, call_tool, chosen_tools
from ramet.workspace.session import DEFAULT_SESSION_ID
from ramet.workspace.workspace import Workspace

try:
    from claude_agent_sdk import McpSdkServerConfig, SdkMcpTool, ToolAnnotations, create_sdk_mcp_server
except ModuleNotFoundError as error:
    raise missing_extra("claude-agent", "the server of tools for the Claude Agent SDK") from error

NAME = "ramet"


def workspace_server(
    ws: Workspace, tools: Iterable[str] | None = None, *, name: str = NAME, session_id: str = DEFAULT_SESSION_ID
) -> McpSdkServerConfig:
    """Return a server for `mcp_servers`, with all tools or only these."""
    return create_sdk_mcp_server(name, version("ramet"), workspace_tools(ws, tools, session_id=session_id))


def tool_names(ws: Workspace, tools: Iterable[str] | None = None, *, name: str = NAME) -> list[str]:
    """Return the tool names for `allowed_tools` and hooks."""
    return [f"mcp__{name}__{tool}" for tool in chosen_tools(tools, ws)]


def workspace_tools(
    ws: Workspace, tools: Iterable[str] | None = None, *, session_id: str = DEFAULT_SESSION_ID
) -> list[SdkMcpTool[Any]]:
    """Return the tools alone, for a server that also has others."""
    chosen, box = chosen_tools(tools, ws), Toolbox(ws, session_id)
    return [_sdk_tool(tool, chosen, box) for tool in chosen.values()]


def _sdk_tool(tool: Tool, tools: Mapping[str, Tool], box: Toolbox) -> SdkMcpTool[Any]:
    hints = ToolAnnotations(
        readOnlyHint=tool.read_only, destructiveHint=tool.destructive, idempotentHint=tool.idempotent,
        openWorldHint=False,
    )  # fmt: skip
    return SdkMcpTool(tool.name, tool.description, tool.schema, _handler(tool.name, tools, box), hints)


def _handler(
    name: str, tools: Mapping[str, Tool], box: Toolbox
) -> Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]:
    async def handle(given: dict[str, Any]) -> dict[str, Any]:
        answer = await call_tool(tools, box, name, given)
        return {"content": [{"type": "text", "text": answer.text}], "is_error": answer.failed}

    return handle
