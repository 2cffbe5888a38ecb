"""Hosts that `HTTPClient` contacts: redirects to private addresses and DNS rebinding gain nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest

from ramet.backends.remote.http_client import HTTPClient
from ramet.core.paths import parse
from ramet.network import resolver

PUBLIC, OTHER, METADATA = "93.184.215.14", "93.184.215.15", "169.254.169.254"
START = "http://files.example/start"
Resolve = Callable[[str], list[str]]


def asked(
    monkeypatch: pytest.MonkeyPatch,
    resolve: Resolve,
    answers: Mapping[str, str],
    hosts: tuple[str, ...],
    times: int = 1,
) -> tuple[list[tuple[str, str]], OSError | None]:
    """GET the start with this resolver; `answers` are redirects by URL. Return address and Host of every request."""
    requests: list[tuple[str, str]] = []

    def serve(request: httpx2.Request) -> httpx2.Response:
        requests.append((request.url.host, request.headers["host"]))
        target = answers.get(f"http://{request.headers['host']}{request.url.path}")
        return (
            httpx2.Response(200, content=b"secret")
            if target is None
            else httpx2.Response(302, headers={"location": target})
        )

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in resolve(host)]

    async def act() -> OSError | None:
        client = HTTPClient(hosts, headers={"Authorization": "Bearer hush"}, home="files.example")
        pool = httpx2.AsyncClient(transport=httpx2.MockTransport(serve))

        async def pool_of(*_: object) -> httpx2.AsyncClient:
            return pool

        monkeypatch.setattr(client._transport, "_pool", pool_of)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
        try:
            for _ in range(times):
                async with client.ask("GET", START, path=parse("/start")) as response:
                    await response.aread()
        except OSError as error:
            return error
        finally:
            await pool.aclose()
        return None

    return requests, asyncio.run(act())


NAMES = {"files.example": [PUBLIC], "inner.example": [METADATA], "loop.example": ["127.0.0.1", "::1"]}


def by_table(host: str) -> list[str]:
    return NAMES.get(host, [host])


@pytest.mark.parametrize("target", [
    "http://inner.example/latest", "http://loop.example/", "http://169.254.169.254/latest", "http://127.0.0.1:8080/",
    "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://10.0.0.1/", "//inner.example/latest",
])  # fmt: skip
def test_a_redirect_to_a_private_address_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even an allowed host: an entry of the allow-list is a name, not a promise of its address."""
    hosts = ("files.example", "*.example", "169.254.169.254", "127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1")
    requests, error = asked(monkeypatch, by_table, {START: target}, hosts)
    assert error is not None and "Permission denied" in str(error)
    assert requests == [(PUBLIC, "files.example")]


@pytest.mark.parametrize(
    "target", ["http://other.example/", "http://inner.example/", "http://2130706433/", "file:///etc/passwd"]
)
def test_a_redirect_to_another_host_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up: list[str] = []

    def resolve(host: str) -> list[str]:
        looked_up.append(host)
        return [PUBLIC]

    requests, error = asked(monkeypatch, resolve, {START: target}, ("files.example",))
    assert error is not None and "not among the allowed hosts" in str(error)
    assert requests == [(PUBLIC, "files.example")] and looked_up == ["files.example"]


def test_a_private_address_after_two_redirects_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {START: "/second", "http://files.example/second": "http://inner.example/"}
    requests, error = asked(monkeypatch, by_table, answers, ("files.example", "inner.example"))
    assert error is not None and "private address" in str(error)
    assert requests == [(PUBLIC, "files.example")] * 2


def test_a_name_that_moves_to_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "REMEMBERED", 0.0)
    found = iter([[PUBLIC], [METADATA]])
    requests, error = asked(monkeypatch, lambda _: next(found), {}, ("files.example",), times=2)
    assert error is not None and "private address" in str(error)
    assert requests == [(PUBLIC, "files.example")]


def test_a_name_that_moves_during_a_redirect_stays_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([[PUBLIC], [METADATA]])
    requests, error = asked(monkeypatch, lambda _: next(found), {START: "/second"}, ("files.example",))
    assert error is None and requests == [(PUBLIC, "files.example")] * 2


def test_of_several_addresses_only_a_public_one_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    requests, error = asked(monkeypatch, lambda _: [METADATA, "::1", OTHER], {}, ("files.example",))
    assert error is None and requests == [(OTHER, "files.example")]
