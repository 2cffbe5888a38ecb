"""Every exchange of every test with a service is checked here against the vendor's description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from tests.support import descriptions


@pytest.fixture(autouse=True)
def _described_exchanges(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test can forget it: it wraps the transport below every client."""
    send = httpx2.AsyncHTTPTransport.handle_async_request

    async def checked(self: Any, request: httpx2.Request) -> httpx2.Response:
        port = request.url.port or 0
        assert port in descriptions.checked_ports, f"{request.url} is not a server of the tests"
        sent = await request.aread()
        response = await send(self, request)
        checker = descriptions.checked_ports[port]
        if checker is None or request.url.host != "127.0.0.1":
            return response
        raw, got = b"", None
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/json"):
            raw = b"".join([block async for block in response.aiter_raw()])
            await response.aclose()
            got = raw
            response = httpx2.Response(
                response.status_code, headers=response.headers, stream=httpx2.ByteStream(raw),
                extensions=response.extensions,
            )  # fmt: skip
        checker.check(
            request.method, request.url.path, request.url.query.decode(), sent,
            request.headers.get("content-type", ""), response.status_code, got,
        )  # fmt: skip
        return response

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", checked)
    descriptions.problems.clear()
    yield
    assert descriptions.problems == []
