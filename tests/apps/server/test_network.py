"""Requests to the network as events of the server."""

from __future__ import annotations

from tests.apps.server.harness import run, serving
from tests.support.web_fake import web_fake

from ramet import Store
from ramet.network.network import Network


def test_requests_are_events() -> None:
    async def test() -> None:
        with web_fake() as web:
            network = Network.of({"allow": [f"127.0.0.1:{web.port}"]})
            async with serving(Store("memory:"), network=network) as (http, app):
                await http.post("/v1/workspaces", json={"name": "w"})
                line = f"curl -s '{web.url}/hello?key=word'; curl -s http://other.example/"
                body = {"command": line, "agent": "bot"}
                done = (await http.post("/v1/workspaces/w/exec", json=body)).json()
                assert done["stdout"] == "hello\n", done
                found = [event for event in app.api.events._ring if event.kind.startswith("network")]
                names = ("session", "agent", "method", "host", "path", "status")
                assert [(one.kind, one.workspace, *(one.data[name] for name in names)) for one in found] == [
                    ("network.request", "w", "default", "bot", "GET", "127.0.0.1", "/hello", 200),
                    ("network.refused", "w", "default", "bot", "GET", "other.example", "/", 0),
                ]
                assert "word" not in str(found)
                (record,) = (await http.get("/v1/workspaces/w/history")).json()["commands"]
                assert [one["host"] for one in record["network"]] == ["127.0.0.1", "other.example"]

    run(test)
