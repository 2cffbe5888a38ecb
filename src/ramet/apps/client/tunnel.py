"""Connect to a program in a workspace of a server: a WebSocket carries the bytes of one connection."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final
from urllib.parse import urlsplit

from ramet.apps.client.http import Address, quote_text, refusal
from ramet.core.errors import RametError, missing_extra
from ramet.network.relay import BLOCK, Connection

try:
    from websockets.asyncio import client as websocket
    from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
    from websockets.typing import Subprotocol
except ModuleNotFoundError as error:
    raise missing_extra("client", "reaching ports of a server's workspace") from error

PROTOCOL: Final = "ramet.port"
END: Final = "end"
"""The text that ends one direction."""
_RUNNING: Final[set[asyncio.Task[None]]] = set()


async def connect_port(address: Address, name: str, port: int) -> Connection:
    """Connect to a port of a workspace; ConnectionRefusedError where nothing listens."""
    if type(port) is not int or not 0 < port < 65536:
        raise RametError("invalid_argument", f"{port!r} is not a port", "Give a number from 1 to 65535.")
    path = f"/v1/workspaces/{quote_text(name)}/ports/{port}"
    options: dict[str, Any] = {
        "subprotocols": [Subprotocol(PROTOCOL)], "additional_headers": address.headers, "compression": None,
        "user_agent_header": None, "ping_interval": None, "max_size": None, "close_timeout": 1.0,
    }  # fmt: skip
    try:
        if address.socket is not None:
            channel = await websocket.unix_connect(address.socket, f"ws://localhost{path}", **options)
        else:
            where = urlsplit(address.url.rstrip("/"))
            scheme = "wss" if where.scheme == "https" else "ws"
            channel = await websocket.connect(f"{scheme}://{where.netloc}{where.path}{path}", **options)
    except InvalidStatus as error:
        found = refusal(error.response.status_code, bytes(error.response.body or b""), path)
        if error.response.status_code == 502:
            raise ConnectionRefusedError(str(found)) from None
        raise found from None
    except (OSError, InvalidHandshake, TimeoutError) as error:
        raise RametError("unavailable", f"cannot reach {address.url}: {error}", "check that it runs") from None
    ours, theirs = socket.socketpair()
    task = asyncio.create_task(_carry(channel, Connection(*await asyncio.open_connection(sock=theirs))))
    _RUNNING.add(task)
    task.add_done_callback(_RUNNING.discard)
    return Connection(*await asyncio.open_connection(sock=ours))


async def _carry(channel: websocket.ClientConnection, local: Connection) -> None:
    """Carry bytes both ways until both directions have ended, or one side broke off."""
    both = [asyncio.ensure_future(_send(channel, local)), asyncio.ensure_future(_receive(channel, local))]
    try:
        await asyncio.gather(*both)
    except (OSError, ConnectionClosed):
        local.writer.transport.abort()  # the other side has gone
    finally:
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        local.writer.close()
        await channel.close()


async def _send(channel: websocket.ClientConnection, local: Connection) -> None:
    while block := await local.reader.read(BLOCK):
        await channel.send(block)
    await channel.send(END)


async def _receive(channel: websocket.ClientConnection, local: Connection) -> None:
    while (message := await channel.recv()) != END:
        assert isinstance(message, bytes)
        local.writer.write(message)
        await local.writer.drain()
    local.writer.write_eof()
