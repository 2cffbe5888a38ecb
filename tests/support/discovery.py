"""The check of exchanges with Google against its discovery documents: paths, parameters, bodies, answers."""

from __future__ import annotations

import json
import re
from email import message_from_bytes
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from tests.support.descriptions import ALWAYS, description, problems

APIS = ("drive", "gmail", "docs", "sheets", "slides")


class Discovery:
    """The APIs of Google as one checker."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self.methods: list[tuple[str, re.Pattern[str], dict[str, Any], dict[str, Any], bool]] = []
        for document in documents:
            base = "/" + document["servicePath"].strip("/")
            self._collect(document, document, base.rstrip("/"))
            self.batch = "/" + document["batchPath"].strip("/")

    def _collect(self, document: dict[str, Any], node: dict[str, Any], base: str) -> None:
        for method in node.get("methods", {}).values():
            paths = [(f"{base}/{method['path']}", False)]
            upload = method.get("mediaUpload", {}).get("protocols", {}).get("simple", {}).get("path")
            if upload:
                paths.append((upload, True))
            for path, uploads in paths:
                pattern = re.sub(r"\\\{\\\+\w+\\\}", "(.+)", re.escape(path))
                pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", pattern)
                self.methods.append((method["httpMethod"], re.compile(pattern), method, document, uploads))
        for below in node.get("resources", {}).values():
            self._collect(document, below, base)

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        where = f"{method} {path} -> {status}"
        if path == "/token" or path.startswith("/session/") or path == "/shot.png":
            return None
        if path.startswith("/batch"):
            return self._check_batch(sent, kind)
        fitting = [one for one in self.methods if one[0] == method and one[1].fullmatch(path)]
        if not fitting:
            problems.append(f"{where}: not described")
            return None
        _, _, found, document, uploads = min(
            fitting, key=lambda one: (".+" in one[1].pattern, one[1].pattern.count("("))
        )
        self._check_query(where, found, document, query, uploads)
        if sent and status < 400:
            self._check_sent(where, found, document, sent, kind, uploads)
        if status not in ALWAYS and status not in (200, 204, 206, 308, 400, 409, 416):
            problems.append(f"{where}: the status is not one of Google's")
        if got and status < 300 and "response" in found and "alt=media" not in query:
            self._validate(where, document, found["response"], json.loads(got), "answer")
        return None

    def _check_query(
        self, where: str, method: dict[str, Any], document: dict[str, Any], query: str, uploads: bool
    ) -> None:
        known = {**document["parameters"], **method.get("parameters", {})}
        given = parse_qsl(query, keep_blank_values=True)
        for name, value in given:
            if name not in known:
                problems.append(f"{where}: no parameter {name}")
                continue
            about = known[name]
            if "enum" in about and value not in about["enum"]:
                problems.append(f"{where}: {name}={value} is not one of {about['enum']}")
            if about.get("type") == "integer" and not value.lstrip("-").isdigit():
                problems.append(f"{where}: {name}={value} is not a number")
            if about.get("type") == "boolean" and value not in ("true", "false"):
                problems.append(f"{where}: {name}={value} is not a truth")
            if sum(other == name for other, _ in given) > 1 and not about.get("repeated"):
                problems.append(f"{where}: {name} may be given once")
            if name == "fields" and "response" in method:
                self._check_fields(where, document, method["response"]["$ref"], value)
        problems.extend(
            f"{where}: parameter {name} is missing"
            for name, about in method.get("parameters", {}).items()
            if about.get("required") and about["location"] == "query" and name not in dict(given)
        )

    def _check_fields(self, where: str, document: dict[str, Any], schema: str, text: str) -> None:
        """Each name of a field mask must be a field."""
        for name, inner in _mask(text):
            about = document["schemas"][schema].get("properties", {}).get(name)
            if about is None:
                problems.append(f"{where}: {schema} has no field {name}")
                continue
            below = about.get("items", about).get("$ref")
            if inner and below:
                self._check_fields(where, document, below, inner)

    def _check_sent(
        self, where: str, method: dict[str, Any], document: dict[str, Any], sent: bytes, kind: str, uploads: bool
    ) -> None:
        if kind.startswith("multipart/"):
            parts = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + sent).get_payload()
            assert isinstance(parts, list) and len(parts) == 2, where
            sent, kind = bytes(parts[0].get_payload(decode=True)), "application/json"  # type: ignore[union-attr]
        if not kind.startswith("application/json"):
            if not uploads:
                problems.append(f"{where}: the body is {kind}")
            return
        if "request" not in method:
            problems.append(f"{where}: no body is described")
        else:
            self._validate(where, document, method["request"], json.loads(sent), "request")

    def _check_batch(self, sent: bytes, kind: str) -> None:
        parts = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + sent).get_payload()
        assert isinstance(parts, list)
        if len(parts) > 100:
            problems.append(f"a batch of {len(parts)} requests")
        for part in parts:
            method, address, _ = str(part.get_payload()).splitlines()[0].split(" ")  # type: ignore[union-attr]
            path, _, query = address.partition("?")
            self.check(method, path, query, b"", "", 200, None)

    def _validate(self, where: str, document: dict[str, Any], schema: dict[str, Any], value: Any, at: str) -> None:
        if "$ref" in schema:
            schema = document["schemas"][schema["$ref"]]
        kind = schema.get("type")
        if kind == "object":
            if not isinstance(value, dict):
                problems.append(f"{where}: {at} is no object")
                return
            properties, others = schema.get("properties", {}), schema.get("additionalProperties")
            for name, one in value.items():
                if name in properties:
                    self._validate(where, document, properties[name], one, f"{at}.{name}")
                elif others is not None:
                    self._validate(where, document, others, one, f"{at}.{name}")
                else:
                    problems.append(f"{where}: {at} has no field {name}")
        elif kind == "array":
            if not isinstance(value, list):
                problems.append(f"{where}: {at} is no array")
                return
            for number, one in enumerate(value):
                self._validate(where, document, schema["items"], one, f"{at}[{number}]")
        elif kind is not None and kind != "any":
            wanted: dict[str, Any] = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
            if not isinstance(value, wanted[kind]) or (kind in ("integer", "number") and isinstance(value, bool)):
                problems.append(f"{where}: {at} is {value!r}, not of type {kind}")
            elif "enum" in schema and value not in schema["enum"]:
                problems.append(f"{where}: {at} is {value!r}, not one of {schema['enum']}")


def _mask(text: str) -> list[tuple[str, str]]:
    """The names of a field mask, each with what it picks inside."""
    found: list[tuple[str, str]] = []
    depth, start = 0, 0
    for at, character in enumerate(text + ","):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            one = text[start:at]
            match = re.fullmatch(r"(\w+)(?:/(.*)|\((.*)\))?", one)
            assert match is not None, f"a field mask has {one!r}"
            found.append((match[1], match[2] or match[3] or ""))
            start = at + 1
    return found


@cache
def google() -> Discovery | None:
    contents = [description(f"google-{api}") for api in APIS]
    if None in contents:
        return None
    return Discovery([json.loads(content) for content in contents if content is not None])
