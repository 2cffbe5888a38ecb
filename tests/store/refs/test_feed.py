"""The change feed: valid CloudEvents, in order, with stable ids, delivered at least once also across failures."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ramet import RametError, Store
from ramet.store.refs.feed import Event
from ramet.workspace.stored.events import JsonLines, Webhook, deliver


@pytest.fixture
def store(tmp_path: Path) -> Store:
    async def act() -> Store:
        made = Store(str(tmp_path / "store"))
        made.create("a")
        for number in range(2):
            async with made.open("a") as ws:
                await ws.execute(f"echo secret-content > /f{number}")
                await ws.commit(f"step {number}", trace_id="trace-7")
        made["a"].fork(None, "b")
        made["a"].revert("1")
        made.rm("b")
        return made

    return asyncio.run(act())


def everything(store: Store, since: str | None = None) -> list[Event]:
    async def act() -> list[Event]:
        return [event async for event in store.events(since)]

    return asyncio.run(act())


def test_events_are_cloudevents_with_names_only(store: Store) -> None:
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    found = everything(store)
    for event in found:
        parsed = JSONFormat().read(CloudEvent, event.encode())
        assert parsed.get_specversion() == "1.0" and parsed.get_id() == event.id
    assert b"secret-content" not in b"".join(event.encode() for event in found)
    seen = [(e.data["workspace"], e.data.get("revision"), e.data["kind"]) for e in found]
    assert [row[:2] for row in seen if row[0] == "a"] == [("a", "a-1"), ("a", "a-2"), ("a", "a-3")]
    assert [row[:2] for row in seen if row[0] == "b"] == [("b", "b-1"), ("b", None)]
    first = next(event for event in found if event.data.get("revision") == "a-1")
    assert first.data["traceId"] == "trace-7" and len(first.data["contentManifest"]) == 64


def test_ids_are_stable_and_a_cursor_goes_on_where_it_was(store: Store) -> None:
    found = everything(store)
    assert [event.id for event in found] == [event.id for event in everything(store)]
    for number, event in enumerate(found):
        assert [later.id for later in everything(store, event.cursor)] == [e.id for e in found[number + 1 :]]
    with pytest.raises(RametError, match="not a cursor"):
        everything(store, "nonsense")


def test_a_file_gets_each_event_once_when_nothing_fails(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    sink = JsonLines(str(path))
    assert asyncio.run(store.deliver(sink, "file")).sent == 5
    assert asyncio.run(store.deliver(sink, "file")).sent == 0
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [e.id for e in everything(store)]


class Receiver(BaseHTTPRequestHandler):
    answers: list[int]
    got: list[tuple[bytes, str | None]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).got.append((body, self.headers.get("X-Ramet-Signature-256")))
        self.send_response(type(self).answers.pop(0) if type(self).answers else 204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Silence."""


@pytest.fixture
def url() -> Iterator[str]:
    Receiver.answers, Receiver.got = [], []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/hook"
    server.shutdown()
    server.server_close()


async def at_once(_: float) -> None:
    await asyncio.sleep(0)


def test_a_webhook_is_retried_signed_and_within_its_rate(store: Store, url: str) -> None:
    Receiver.answers = [503, 500, 204, 400, 204, 429, 204]
    done = asyncio.run(store.deliver(Webhook(url, secret="s3cr3t", sleep=at_once), "hook"))
    assert done.sent == 4 and len(done.refused) == 1 and "400" in done.refused[0]
    for body, signature in Receiver.got:
        assert signature == "sha256=" + hmac.new(b"s3cr3t", body, hashlib.sha256).hexdigest()
    ids = [json.loads(body)["id"] for body, _ in Receiver.got]
    assert list(dict.fromkeys(ids)) == [event.id for event in everything(store)], "in order"


def test_what_could_not_be_delivered_comes_again(store: Store, url: str) -> None:
    class Dies:
        def __init__(self) -> None:
            self.sent: list[str] = []

        async def send(self, event: Event) -> None:
            if len(self.sent) == 2:
                raise ConnectionError("gone")
            self.sent.append(event.id)

    first, wanted = Dies(), [event.id for event in everything(store)]
    with pytest.raises(ConnectionError):
        asyncio.run(deliver(store.repository, first, "x"))
    Receiver.got.clear()
    asyncio.run(deliver(Store(store.repository.objects).repository, Webhook(url), "x"))
    assert first.sent + [json.loads(body)["id"] for body, _ in Receiver.got] == wanted


def test_following_sees_what_happens_later(store: Store) -> None:
    async def act() -> None:
        last = [event async for event in store.events()][-1]
        feed = store.events(last.cursor, follow=True)
        task = asyncio.ensure_future(anext(feed))
        async with store.open("a") as ws:
            await ws.execute("echo x > /new")
        event = await asyncio.wait_for(task, 120)
        assert event.data["workspace"] == "a"
        await feed.aclose()  # type: ignore[attr-defined]

    asyncio.run(act())
