"""Tokens of services: renewal, refresh grants, passwords, and the bounds of requests."""

from __future__ import annotations

import asyncio
import base64
import errno
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.service_fake import Call, Fake, Reply

from ramet.backends.remote.http_client import HTTPClient
from ramet.backends.services.auth import RefreshGrant, ServiceToken, TokenAuth, basic
from ramet.backends.services.bounds import Bounds
from ramet.backends.services.rest import Rest
from ramet.core.errors import Unavailable
from ramet.core.paths import ROOT
from ramet.testing import refused


class TokenServer(Fake):
    """An API whose tokens end, and the endpoint that refreshes them."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.refresh_token = "refresh-0"
        self.lasts: int | None = 3600
        self.rotates = False
        self.running = self.most = 0
        self.route("POST", "/token", self._grant)
        self.route("GET", "/thing/{name}", self._thing)

    def _grant(self, call: Call) -> Reply:
        if call.form["refresh_token"] != self.refresh_token or call.form["client_secret"] != "hunter2":
            return Reply(400, {"error": "invalid_grant", "error_description": call.form["refresh_token"]})
        self.number += 1
        said: dict[str, Any] = {"access_token": f"access-{self.number}", "token_type": "Bearer"}
        if self.lasts is not None:
            said["expires_in"] = self.lasts
        if self.rotates:
            self.refresh_token = said["refresh_token"] = f"refresh-{self.number}"
        return Reply(200, said)

    def _thing(self, call: Call, name: str) -> Reply:
        good = call.headers.get("authorization") == f"Bearer access-{self.number}"
        return Reply(200, {"name": name}) if good else Reply(401, {"message": "expired"})


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with TokenServer() as running:
        yield running


def client() -> HTTPClient:
    return HTTPClient(("127.0.0.1",), private=True, home="127.0.0.1")


def granted(server: TokenServer, refresh: str = "refresh-0") -> RefreshGrant:
    form = {"client_id": "me", "client_secret": "hunter2"}
    return RefreshGrant(f"{server.base}/token", lambda: refresh, form, private=True)


def test_requests_that_are_refused_together_renew_once(server: TokenServer) -> None:
    async def act() -> None:
        rest = Rest(client(), server.base, TokenAuth(granted(server)))
        await rest.get("/thing/first", path=ROOT)
        server.number += 1  # the service revokes the token
        found = await asyncio.gather(*(rest.get(f"/thing/{number}", path=ROOT) for number in range(8)))
        assert [one.json()["name"] for one in found] == [str(number) for number in range(8)]
        await rest.close()

    asyncio.run(act())
    assert server.count("POST", "/token") == 2


def test_a_token_is_renewed_a_minute_before_its_end(server: TokenServer) -> None:
    async def act() -> None:
        now = [1000.0]
        made = iter([ServiceToken("one", 1100.0), ServiceToken("two", 1500.0), ServiceToken("three", None)])
        auth = TokenAuth(lambda: next(made), clock=lambda: now[0])
        for at, wanted in (
            (1000, "one"),
            (1039, "one"),
            (1040, "two"),
            (1439, "two"),
            (1440, "three"),
            (9999, "three"),
        ):
            now[0] = at
            assert await auth.headers() == {"Authorization": f"Bearer {wanted}"}

    asyncio.run(act())


def test_a_rotated_refresh_token_replaces_the_old_one(server: TokenServer) -> None:
    async def act() -> None:
        server.rotates = True
        rest = Rest(client(), server.base, TokenAuth(granted(server)))
        for number in range(3):
            await rest.get(f"/thing/{number}", path=ROOT)
            server.number += 1
        await rest.close()

    asyncio.run(act())
    assert server.count("POST", "/token") == 3


def test_a_refused_refresh_token_says_what_to_do_and_shows_nothing(server: TokenServer) -> None:
    async def act() -> None:
        rest = Rest(client(), server.base, TokenAuth(granted(server, "refresh-stolen")))
        with pytest.raises(PermissionError) as error:
            await rest.get("/thing/x", path=ROOT)
        assert "invalid_grant; sign in again" in str(error.value) and "refresh-stolen" not in str(error.value)
        await rest.close()

    asyncio.run(act())


@pytest.mark.parametrize("reply", [Reply(503, b""), Reply(429, {}, {"Retry-After": "3"}), None])
def test_a_token_server_that_is_down_passes(server: TokenServer, reply: Reply | None) -> None:
    async def act() -> None:
        server.fault("POST", "/token", reply)
        rest = Rest(client(), server.base, TokenAuth(granted(server)))
        with pytest.raises(Unavailable):
            await rest.get("/thing/x", path=ROOT)
        assert (await rest.get("/thing/x", path=ROOT)).status == 200
        await rest.close()

    asyncio.run(act())


def test_a_source_that_gives_the_same_token_again_is_asked_once(server: TokenServer) -> None:
    asked: list[str] = []

    def source() -> str:
        asked.append("old")
        return "old"

    async def act() -> None:
        rest = Rest(client(), server.base, TokenAuth(source))
        with refused(errno.EACCES):
            await rest.get("/thing/x", path=ROOT)
        await rest.close()

    asyncio.run(act())
    assert len(asked) == 2 and server.count("GET") == 1


def test_a_download_renews_its_token_too(server: TokenServer) -> None:
    async def act() -> None:
        rest = Rest(client(), server.base, TokenAuth(granted(server)))
        await rest.get("/thing/a", path=ROOT)
        server.number += 1
        assert b"".join([block async for block in rest.stream("/thing/b", path=ROOT)]) == b'{"name": "b"}'
        await rest.close()

    asyncio.run(act())


def test_a_password_becomes_a_basic_header() -> None:
    async def act() -> None:
        auth = TokenAuth(basic(lambda: "ada", lambda: "hunter2"), "Basic")
        encoded = base64.b64encode(b"ada:hunter2").decode()
        assert await auth.headers() == {"Authorization": f"Basic {encoded}"}
        assert auth.secrets == (encoded, "hunter2")
        assert await TokenAuth(basic(lambda: "ada", lambda: None), "Basic").headers() == {}

    asyncio.run(act())


def test_no_more_requests_run_at_a_time_than_allowed() -> None:
    async def act() -> int:
        running = most = 0
        bounds = Bounds(3)

        async def one() -> None:
            nonlocal running, most
            async with bounds.turn():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1

        await asyncio.gather(*(one() for _ in range(20)))
        return most

    assert asyncio.run(act()) == 3


def test_requests_are_paced_after_the_first_second() -> None:
    async def act() -> list[float]:
        now, waits = [100.0], []

        async def sleep(seconds: float) -> None:
            waits.append(round(seconds, 3))
            now[0] += seconds

        bounds = Bounds(8, 4.0, clock=lambda: now[0], sleep=sleep)
        for _ in range(7):
            async with bounds.turn():
                pass
        return waits

    assert asyncio.run(act()) == [0.25, 0.25, 0.25]
