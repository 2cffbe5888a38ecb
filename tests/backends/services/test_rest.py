"""The HTTP client and `Rest`: hosts, compressed answers, limits, pages that go in circles."""

from __future__ import annotations

import asyncio
import errno
import gzip
import time
from collections.abc import Awaitable, Callable, Iterator
from email.utils import formatdate
from typing import Any

import pytest
from tests.support.service_fake import Call, Fake, Reply

from ramet.backends.remote.http_client import HTTPClient, is_rate_limit, wait_of
from ramet.backends.services import rest as rest_module
from ramet.backends.services.auth import TokenAuth
from ramet.backends.services.pages import by_cursor, linked, next_link
from ramet.backends.services.rest import Rest, patiently, rate_limited
from ramet.core.errors import Unavailable
from ramet.core.paths import ROOT
from ramet.network.targets import parse_url
from ramet.testing import refused


@pytest.fixture
def fake() -> Iterator[Fake]:
    with Fake(etags=True) as running:
        running.route("GET", "/thing", lambda call: Reply(200, {"a": 1}))
        yield running


def run(fake: Fake, act: Callable[[Rest], Awaitable[None]]) -> None:
    async def whole() -> None:
        client = HTTPClient(("127.0.0.1",), private=True, home="127.0.0.1")
        rest = Rest(client, fake.base, TokenAuth(lambda: "hunter2"), explain=lambda found: found["message"])
        try:
            await act(rest)
        finally:
            await rest.close()

    asyncio.run(whole())


def test_equal_requests_at_once_are_one_and_later_ones_conditional(fake: Fake) -> None:
    async def act(rest: Rest) -> None:
        found = await asyncio.gather(*(rest.get("/thing", path=ROOT) for _ in range(20)))
        assert [one.json() for one in found] == [{"a": 1}] * 20 and fake.count() == 1
        assert (await rest.get("/thing", path=ROOT)).json() == {"a": 1}
        assert fake.statuses == [200, 304]

    run(fake, act)


def test_a_compressed_answer_is_inflated_within_bounds(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    fake.route("GET", "/small", lambda call: Reply(200, gzip.compress(b'{"a": 2}'), headers))
    fake.route("GET", "/bomb", lambda call: Reply(200, gzip.compress(bytes(50_000_000)), headers))
    fake.route("GET", "/torn", lambda call: Reply(200, gzip.compress(b'{"a": 2}')[:-6], headers))
    monkeypatch.setattr(rest_module, "LARGEST_ANSWER", 1_000_000)

    async def act(rest: Rest) -> None:
        assert (await rest.get("/small", path=ROOT)).json() == {"a": 2}
        with refused(errno.EFBIG):
            await rest.get("/bomb", path=ROOT)
        with pytest.raises(Unavailable):
            await rest.get("/torn", path=ROOT)

    run(fake, act)


def test_a_wildcard_allows_the_hosts_below_a_name_and_no_other() -> None:
    client = HTTPClient(("api.example.org", "*.blob.example.net"))
    for host in ("api.example.org", "x.y.blob.example.net"):
        assert client._allows("GET", parse_url(f"https://{host}/"))
    for host in ("blob.example.net", "evilblob.example.net", "x.blob.example.net.evil.org", "example.org"):
        assert not client._allows("GET", parse_url(f"https://{host}/"))


def test_a_body_is_never_sent_where_a_redirect_leads(fake: Fake) -> None:
    fake.route("POST", "/moved", lambda call: Reply(307, None, {"Location": "/elsewhere"}))

    async def act(rest: Rest) -> None:
        with refused(errno.EIO):
            await rest.send("POST", "/moved", path=ROOT, json_body={"secret": 1})
        assert fake.count() == 1

    run(fake, act)


def test_how_long_to_wait_is_a_number_a_date_or_a_reset() -> None:
    now = time.time()
    assert wait_of({"retry-after": "7"}) == 7.0
    assert 50 < wait_of({"retry-after": formatdate(now + 60, usegmt=True)}) <= 61
    assert 50 < wait_of({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(now + 60))}) <= 61
    assert wait_of({"retry-after": "soon"}) == 0.0 and wait_of({"x-ratelimit-reset": "9999999999"}) == 0.0
    assert is_rate_limit(429, {}) and is_rate_limit(403, {"retry-after": "1"}) and not is_rate_limit(403, {})


def test_the_words_of_a_service_are_shown_without_the_token(fake: Fake) -> None:
    fake.route("GET", "/no", lambda call: Reply(400, {"message": f"bad {call.headers['authorization']}\n" + "x" * 999}))

    async def act(rest: Rest) -> None:
        with pytest.raises(OSError) as raised:
            await rest.get("/no", path=ROOT)
        said = raised.value.strerror or ""
        assert "bad Bearer <REDACTED>" in said and "hunter2" not in said and len(said) < 300

    run(fake, act)


def test_pages_that_go_in_circles_end(fake: Fake) -> None:
    fake.route("GET", "/round", lambda call: Reply(200, [1], {"Link": '</round>; rel="next"'}))

    async def turn(cursor: str | None) -> tuple[list[Any], str | None]:
        return [1], "same"

    async def act(rest: Rest) -> None:
        with refused(errno.EIO):
            assert [one async for one in linked(rest, "/round", path=ROOT)] == []
        with refused(errno.EIO):
            assert [one async for one in by_cursor(turn, ROOT)] == []

    run(fake, act)


def test_the_next_page_is_found_and_stays_on_the_host(fake: Fake) -> None:
    header = '<https://a.b/x?page=3>; rel="last", <https://evil.org/pages?page=2>; rel="next"'
    assert next_link(header) == "https://evil.org/pages?page=2" and next_link("") is None

    def pages(call: Call) -> Reply:
        return Reply(200, [call.query.get("page", "1")], {} if "page" in call.query else {"Link": header})

    fake.route("GET", "/pages", pages)

    async def act(rest: Rest) -> None:
        assert [one async for one in linked(rest, "/pages", path=ROOT)] == ["1", "2"]

    run(fake, act)


def test_patience_waits_as_asked_and_ends() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def fails() -> None:
        raise rate_limited(ROOT, "x", 5.0)

    async def late() -> None:
        raise rate_limited(ROOT, "x", 500.0)

    for act, expected in ((fails, [5.0, 5.0, 5.0]), (late, [])):
        waits.clear()
        with pytest.raises(Unavailable):
            asyncio.run(patiently(act, sleep))
        assert waits == expected
