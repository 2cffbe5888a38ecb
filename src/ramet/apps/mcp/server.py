"""`mcp_server` builds the MCP server of a workspace; `run_stdio` and `run_http` run it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from ramet import __version__
from ramet.core.errors import RametError, missing_extra
from ramet.core.paths import parse
from ramet.network.network import Network
from ramet.store.model.address import parse_address
from ramet.workspace.agent.tools import TOOLS, Tool, Toolbox, call_tool, chosen_tools, what_runs
from ramet.workspace.config import Config
from ramet.workspace.policy import ASKS, Allowed, Request
from ramet.workspace.stored.store import Store
from ramet.workspace.workspace import Workspace

try:
    import mcp_types as types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError
except ModuleNotFoundError as error:
    raise missing_extra("mcp", "the MCP server") from error

if TYPE_CHECKING:
    from ramet.apps.client.client import RemoteStore
    from ramet.apps.client.workspace import RemoteWorkspace

Context = ServerRequestContext[Any, Any]
CALL: Final[ContextVar[Context | None]] = ContextVar("ramet_mcp_call", default=None)
"""The call in progress, whose client answers questions of the policy."""


def mcp_server(
    ws: Workspace | RemoteWorkspace, tools: Iterable[str] | None = None, box: Toolbox | None = None
) -> Server[Any]:
    """Build the MCP server of an open workspace, with all tools or only these; `box` runs them."""
    chosen = chosen_tools(TOOLS if tools is None and box is not None else tools, cast("Workspace", ws))
    box = Toolbox(ws) if box is None else box
    if isinstance(ws, Workspace) and ws.policy is not None and ws.policy.answer is None:
        ws.policy.answer = partial(_ask_client, ws)

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe_tool(tool) for tool in chosen.values()])

    async def call(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        async def tell(done: float, message: str) -> None:
            await context.session.report_progress(done, None, _sendable(message))

        await box.ready()
        CALL.set(context)  # for the rest of this request
        answer = await call_tool(chosen, box, params.name, params.arguments or {}, tell)
        content: list[Any] = [types.TextContent(type="text", text=answer.text)]
        structured = _sendable(json.loads(answer.text))
        return types.CallToolResult(content=content, structured_content=structured, is_error=answer.failed)

    async def templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        made = types.ResourceTemplate(
            name="file", uri_template="ramet://{workspace}@{revision}/{+path}",
            description="A file of a revision; without @REVISION, the live file.",
        )  # fmt: skip
        return types.ListResourceTemplatesResult(resource_templates=[made])

    async def resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[await _resource(box, str(params.uri))])

    return Server(
        "ramet", version=__version__,
        instructions=f"A workspace: a file tree, a shell over it, every state versioned. {what_runs(ws)}".strip(),
        on_list_tools=list_tools, on_call_tool=call, on_list_resource_templates=templates,
        on_list_resources=resources, on_read_resource=read,
    )  # fmt: skip


async def _ask_client(ws: Workspace, request: Request) -> Allowed:
    """Ask the person at the client by elicitation; False where the client has none."""
    context = CALL.get()
    can_ask = types.ClientCapabilities(elicitation=types.ElicitationCapability())
    if context is None or not context.session.check_client_capability(can_ask):
        return False
    choices = ["once", "host", "no"] if request.kind == "network" else ["once", "no"]
    allow = {"type": "string", "title": "Allow", "enum": choices, "default": "no"}
    verb = f"{request.name} " if request.kind != "command" else ""
    text = _sendable(f"Agent {request.agent_id} asks to {ASKS[request.kind]}: {verb}") + _sendable(
        ws.secrets.scrub_text(request.subject)
    )
    try:
        said = await context.session.elicit_form(
            text, {"type": "object", "properties": {"allow": allow}, "required": ["allow"]}, context.request_id
        )
    except MCPError:
        return False  # no channel back to the client, or it has gone
    chosen = (said.content or {}).get("allow") if said.action == "accept" else None
    return "host" if chosen == "host" and request.kind == "network" else chosen == "once"


def _sendable(value: Any) -> Any:
    """Return data whose strings are valid UTF-8; other bytes of names become escapes, as in the text content.

    The protocol's encoder raises on such strings, which would stop the whole server.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_sendable(key): _sendable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_sendable(item) for item in value]
    return value


def _describe_tool(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name, description=tool.description, input_schema=tool.schema, output_schema={"type": "object"},
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only, destructive_hint=tool.destructive, idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )  # fmt: skip


async def _resource(box: Toolbox, uri: str) -> Any:
    import base64
    from urllib.parse import unquote

    where, slash, path = unquote(uri.removeprefix("ramet://"), errors="surrogateescape").partition("/")
    address = parse_address(where)
    if not slash or not uri.startswith("ramet://"):
        raise ValueError("a resource has the form ramet://NAME@REVISION/path")
    if box.name is not None and address.name != box.name:
        raise ValueError(f"this server serves {box.name} only")
    if address.revision is None:
        data = b"".join([block async for block in box.fs.read(parse("/" + path))])
    else:
        _, handle = box.stored()
        data = await asyncio.to_thread(lambda: b"".join(handle.show("/" + path, address.revision)))
    try:
        return types.TextResourceContents(uri=uri, text=data.decode(), mime_type="text/plain")
    except UnicodeDecodeError:
        blob = base64.b64encode(data).decode()
        return types.BlobResourceContents(uri=uri, blob=blob, mime_type="application/octet-stream")


@asynccontextmanager
async def _open_server(
    store: Store | RemoteStore,
    name: str,
    tools: Iterable[str] | None,
    config: Config | None,
    native: bool = False,
    network: Network | None = None,
) -> AsyncIterator[Server[Any]]:
    """Open a workspace of a store or a remote server, and yield its MCP server."""
    if name not in store:
        store.create(name, native=native)
    if isinstance(store, Store):
        more: dict[str, Any] = {
            **({"native": True} if native else {}),
            **({} if network is None else {"network": network}),
        }
        async with store.open(name, **more) if config is None else config.open(store, name, **more) as ws:
            yield mcp_server(ws, tools)
        return
    if config is not None:
        raise RametError("unsupported", "cannot use --config with a server", "pass it to `ramet serve` instead")
    from ramet.apps.mcp.remote import RemoteToolbox

    async with store.open(name) as far:
        yield mcp_server(far, tools, RemoteToolbox(far, store[name]))


async def run_stdio(
    store: Store | RemoteStore,
    name: str,
    tools: Iterable[str] | None = None,
    *,
    config: Config | None = None,
    native: bool = False,
    network: Network | None = None,
) -> None:
    """Serve a workspace on stdin and stdout; commit changes when the client disconnects."""
    async with (
        _open_server(store, name, tools, config, native, network) as server,
        stdio_server() as (reading, writing),
    ):
        await server.run(reading, writing, server.create_initialization_options())


async def run_http(
    store: Store | RemoteStore,
    name: str,
    tools: Iterable[str] | None = None,
    *,
    port: int = 8751,
    token: str = "",
    stop: asyncio.Event | None = None,
    config: Config | None = None,
    listening: socket.socket | None = None,
    native: bool = False,
    network: Network | None = None,
) -> None:
    """Serve a workspace on `http://127.0.0.1:PORT/mcp`, with a token if one is set.

    `listening` is a listening socket to use instead of a port.
    """
    import uvicorn

    from ramet.apps.server.auth import Authentication
    from ramet.apps.server.body_limit import BoundedBody
    from ramet.apps.server.connections import configure
    from ramet.apps.server.settings import ServerSettings

    async with _open_server(store, name, tools, config, native, network) as served:
        settings = ServerSettings(token=token)
        app = BoundedBody(served.streamable_http_app(), settings.bounds.json_bytes)
        http = configure(Authentication(app, settings), settings.bounds, port=port)
        server = uvicorn.Server(http)
        serving = asyncio.ensure_future(server.serve(None if listening is None else [listening]))
        if stop is not None:
            stopped = asyncio.ensure_future(stop.wait())
            await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            server.should_exit = True
        await serving
