"""HTTP exchanges with programs of the workspace's own box, over sockets that the box lends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any, Final

import httpcore2
import httpx2

from ramet.network.relay import Connection
from ramet.network.transport import Dial

CONNECT_SECONDS: Final = 30.0


class InsideTransport(httpx2.AsyncHTTPTransport):
    """The transport of the HTTP client whose connections lead into the box, whatever host is named."""

    def __init__(self, dial: Dial, trust: ssl.SSLContext) -> None:
        super().__init__(verify=trust, trust_env=False)
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=trust, network_backend=_Backend(dial))


class _Backend(httpcore2.AsyncNetworkBackend):
    def __init__(self, dial: Dial) -> None:
        self._dial = dial

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:  # fmt: skip
        try:
            async with asyncio.timeout(timeout or CONNECT_SECONDS):
                connected = await self._dial(port)
                return _Stream(Connection(*await asyncio.open_connection(sock=connected)))
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, connection: Connection) -> None:
        self._reader, self._writer = connection

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as error:
            raise httpcore2.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore2.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self._writer.close()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except OSError as error:  # `ssl.SSLError` is one
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # of an idle connection: the program has closed it
            return self._reader.at_eof()
        return self._writer.get_extra_info({"server_addr": "peername", "client_addr": "sockname"}.get(info, info))
