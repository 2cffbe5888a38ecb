"""Schemathesis over the OpenAPI document: no 5xx, and every answer is what the document says."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, settings
from tests.apps.server.harness import TOKEN

from ramet import Store

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

from ramet.apps.server.app import create_app
from ramet.apps.server.openapi import document
from ramet.apps.server.settings import ServerSettings

NAMES = ("p", "", "p", "m", "", "box")
"""What is named in the place of what was made up: stored, in memory, a sandbox; an empty one leaves it."""
PATHS = ("/f", "/d", "/none", "/d/new", "/../f")
EXAMPLES = int(os.environ.get("RAMET_EXAMPLES", "8"))
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
schema = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    import uvicorn

    directory: Path = tmp_path_factory.mktemp("store")
    store = Store(str(directory))
    store.create("p")
    store.create("q")
    app = create_app(store, ServerSettings(token=TOKEN, wait=0.2))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on", ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=200) as http:
        http.post("/v1/workspaces", json={"name": "m", "kind": "memory"}).raise_for_status()
        http.post("/v1/sandboxes", json={"name": "box", "workspace": "q"}).raise_for_status()
        http.post("/v1/workspaces/p/exec", json={"command": "echo x > /f; mkdir /d"}).raise_for_status()
        http.put("/v1/workspaces/p/tags/t", json={}).raise_for_status()
    yield f"http://127.0.0.1:{port}"
    app.events.close()
    server.should_exit = True
    thread.join(200)


@schema.exclude(path="/v1/events").parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_answers_are_what_the_document_says(case: schemathesis.Case[Any], address: str) -> None:
    if case.path_parameters and "name" in case.path_parameters:
        chosen = NAMES[len(str(case.path_parameters["name"])) % len(NAMES)]
        case.path_parameters["name"] = chosen or case.path_parameters["name"]
    if case.query and "path" in case.query and len(str(case.query["path"])) % 2:
        case.query["path"] = PATHS[len(str(case.query["path"])) % len(PATHS)]
    runs = case.path.endswith(("/exec", "/bisect"))
    if runs and isinstance(case.body, dict) and isinstance(case.body.get("timeout_ms", 0), int | None):
        case.body["timeout_ms"] = 100
    if case.path.endswith("/rotate") and isinstance(case.body, dict):  # what a KMS says is not ours
        case.body.update({name: f"env:{key}" for name, key in case.body.items() if name in ("to", "old") and key})
    if case.query and "follow" in case.query:
        case.query["follow"] = False
    response = case.call(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=200)
    case.validate_response(response, checks=CHECKS)
