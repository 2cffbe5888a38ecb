"""The OpenAPI document, generated from `routes` and the types of `models`."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ramet import __version__
from ramet.apps.server import models
from ramet.apps.server.models_maintenance import Progressed
from ramet.apps.server.routes import ROUTES, Route

REF: Final = "#/components/schemas/{name}"
MEDIA: Final = {
    "bytes": "application/octet-stream", "tar": "application/x-tar", "events": "text/event-stream",
    "lines": "application/x-ndjson",
}  # fmt: skip
IDEMPOTENT: Final = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "A repeated request with the same key gets the first response and changes nothing more.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}  # fmt: skip


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds: set[Any] = {models.Problem, models.Piece, models.Job, Progressed}
    for route in ROUTES:
        kinds |= {kind for kind in (route.body, route.answer) if isinstance(kind, type)}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template=REF)
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
        if route.method == "GET" and route.path.endswith("/file"):
            paths[route.path]["head"] = _operation(route, head=True)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ramet", "version": __version__, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, head: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": ("head_" if head else "") + route.name,
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": {
            str(route.status): {"description": "Done.", **({} if head else {"content": _answers(route)})},
            "default": {
                "description": "Refused.",
                **({} if head else {"content": {"application/problem+json": {"schema": _ref(models.Problem)}}}),
            },
        },
    }
    if route.body is not None:
        found["requestBody"] = {"required": True, "content": _content(route.body)}
    if route.open:
        found["security"] = []
    if route.path.endswith("/file") and route.method == "GET":
        bytes_ = {} if head else {"content": _content("bytes")}
        found["responses"]["206"] = {"description": "A part of the file.", **bytes_}
        found["responses"]["304"] = {"description": "The client already has this version."}
    if route.path.endswith("/exec"):
        found["responses"]["202"] = {
            "description": "Detached.", "content": {"application/json": {"schema": _ref(models.Job)}},
        }  # fmt: skip
    if route.path.endswith("/merge"):
        found["responses"]["409"] = {
            "description": "Conflicts; nothing changed.",
            "content": {
                "application/json": {"schema": _ref(models.Merged)},
                "application/problem+json": {"schema": _ref(models.Problem)},
            },
        }
    return found


def _answers(route: Route) -> dict[str, Any]:
    content = _content(route.answer)
    if "stream" in getattr(route.body, "__struct_fields__", ()):
        content["application/x-ndjson"] = {"schema": {"type": "string"}}
    return content


def _content(kind: Any) -> dict[str, Any]:
    if isinstance(kind, str):
        return {MEDIA[kind]: {"schema": {"type": "string"}}}
    return {"application/json": {"schema": _ref(kind)}}


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": REF.format(name=kind.__name__)}


def _parameters(route: Route) -> list[dict[str, Any]]:
    patterns = {"name": models.NAME, "id": "^[A-Za-z0-9._-]{1,128}$"}
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": patterns[name]}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    (schema,), parts = msgspec.json.schema_components([route.query], ref_template=REF)
    described = parts[route.query.__name__] if "$ref" in schema else schema
    needed = described.get("required", [])
    for name, kind in described.get("properties", {}).items():
        plain = {key: value for key, value in kind.items() if key != "default"}
        if "anyOf" in plain:  # a query parameter is present or absent, never null
            (plain,) = [one for one in plain["anyOf"] if one.get("type") != "null"]
        found.append({"name": name, "in": "query", "required": name in needed, "schema": plain})
    found += [{"name": name, "in": "header", "required": False, "schema": {"type": "string"}} for name in route.headers]
    if route.method != "GET":
        found.append(IDEMPOTENT)
    return found
