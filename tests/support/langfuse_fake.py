"""Langfuse for the tests: one project behind the public API of the third or the fourth generation of servers."""

from __future__ import annotations

import base64
from typing import Any

from tests.support.service_fake import Call, Fake, Reply

PUBLIC, SECRET = "pk-lf-public", "sk-lf-hunter2hunter2"
WHEN = "2026-05-03T09:14:02.000Z"
API = "/api/public"


class LangfuseFake(Fake):
    def __init__(self, generation: int) -> None:
        super().__init__()
        self.observations: list[dict[str, Any]] = []
        self.prompts: dict[str, list[dict[str, Any]]] = {}
        self.items: list[dict[str, Any]] = []
        self.dataset: dict[str, Any] = {
            "id": "d1", "name": "qa/easy", "description": None, "metadata": {}, "projectId": "p", "createdAt": WHEN,
            "updatedAt": WHEN,
        }  # fmt: skip
        self.score = {
            "id": "s1", "name": "quality", "dataType": "NUMERIC", "value": 0.5, "projectId": "p", "source": "API",
            "timestamp": WHEN, "environment": "default", "createdAt": WHEN, "updatedAt": WHEN, "traceId": "t1",
        }  # fmt: skip
        third = (
            ("GET", "/traces", self._traces),
            ("GET", "/traces/{id}", self._trace),
            ("GET", "/observations", lambda call: self._numbered(call, self._of(call, "traceId"))),
            (
                "GET",
                "/sessions",
                lambda call: self._numbered(call, [{"id": "chat/1", "createdAt": WHEN, "projectId": "p"}]),
            ),
            ("GET", "/datasets/{name+}/runs", lambda call, name: self._numbered(call, [self._run()])),
            ("GET", "/datasets/{name+}/runs/{run}", self._run_with_items),
            ("GET", "/v2/scores", lambda call: self._numbered(call, [self.score])),
        )
        fourth = (
            ("GET", "/v2/observations", self._observations),
            ("GET", "/experiments", lambda call: self._chained(call, [self._experiment()])),
            ("GET", "/experiment-items", lambda call: self._chained(call, [self._experiment_item()])),
            ("GET", "/v3/scores", lambda call: self._chained(call, [self.score])),
        )
        both = (
            ("GET", "/v2/prompts", self._list_prompts),
            ("GET", "/v2/prompts/{name+}", self._prompt),
            ("POST", "/v2/prompts", self._new_prompt),
            ("GET", "/v2/datasets", lambda call: self._numbered(call, [self.dataset])),
            ("GET", "/v2/datasets/{name+}", self._dataset),
            ("GET", "/dataset-items", lambda call: self._numbered(call, self.items)),
            ("POST", "/dataset-items", self._new_item),
            ("GET", "/projects", lambda call: Reply(200, {"data": [{"id": "p", "name": "demo"}]})),
        )
        for method, pattern, handler in (*both, *(third if generation == 3 else fourth)):
            self.route(method, API + pattern, handler)

    def _handle(self, call: Call) -> Reply:
        expected = "Basic " + base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
        if call.headers.get("authorization") != expected:
            return Reply(401, {"message": "Invalid credentials. Confirm that you've configured the correct host."})
        return super()._handle(call)

    def unknown(self, call: Call) -> Reply:
        return Reply(404, {"message": "Not Found", "error": "LangfuseNotFoundError"})

    # --------------------------------------------------------------------------------------------- traces

    def trace(self, id: str, name: str, at: str = WHEN, session: str | None = None, **given: Any) -> None:
        """A trace of two observations."""
        shared = {
            "traceId": id, "projectId": "p", "level": "DEFAULT", "environment": "default", "sessionId": session,
            "endTime": at, "traceName": name,
        }  # fmt: skip
        later = f"{at[:17]}59.000Z"
        self.observations += [
            {"id": f"{id}-b", "type": "GENERATION", "name": "answer", "startTime": later, "isRootObservation": False,
             "parentObservationId": f"{id}-a", **shared, **given},
            {"id": f"{id}-a", "type": "SPAN", "name": name, "startTime": at, "isRootObservation": True,
             "parentObservationId": None, "input": {"q": 1}, **shared},
        ]  # fmt: skip

    def _roots(self, call: Call) -> list[dict[str, Any]]:
        found = [one for one in self._of(call, "sessionId") if one["isRootObservation"]]
        since = call.query.get("fromTimestamp") or call.query.get("fromStartTime") or ""
        until = call.query.get("toTimestamp") or call.query.get("toStartTime") or "9"
        return sorted(
            [one for one in found if since <= one["startTime"] < until], key=lambda one: one["startTime"], reverse=True
        )

    def _of(self, call: Call, field: str) -> list[dict[str, Any]]:
        wanted = call.query.get(field)
        return [one for one in self.observations if wanted is None or one[field] == wanted]

    def _as_trace(self, root: dict[str, Any]) -> dict[str, Any]:
        return {
            "id": root["traceId"], "name": root["name"], "timestamp": root["startTime"], "sessionId": root["sessionId"],
            "latency": 1.5,
        }  # fmt: skip

    def _traces(self, call: Call) -> Reply:
        return self._numbered(call, [self._as_trace(one) for one in self._roots(call)])

    def _trace(self, call: Call, id: str) -> Reply:
        found = [one for one in self.observations if one["traceId"] == id and one["isRootObservation"]]
        return Reply(200, self._as_trace(found[0])) if found else self.unknown(call)

    def _observations(self, call: Call) -> Reply:
        found = self._roots(call) if call.query.get("isRootObservation") == "true" else self._of(call, "traceId")
        wanted = call.query.get("traceId")
        return self._chained(call, [one for one in found if wanted in (None, one["traceId"])])

    # ------------------------------------------------------------------------------- prompts and datasets

    def prompt(self, name: str, prompt: Any, *labels: str, kind: str = "text", **given: Any) -> dict[str, Any]:
        versions = self.prompts.setdefault(name, [])
        for one in versions:
            one["labels"] = [label for label in one["labels"] if label not in (*labels, "latest")]
        made = {
            "name": name, "version": len(versions) + 1, "type": kind, "prompt": prompt, "config": {}, "tags": [],
            "labels": [*labels, "latest"], "commitMessage": None, **given,
        }  # fmt: skip
        versions.append(made)
        return made

    def _list_prompts(self, call: Call) -> Reply:
        entries = [
            {
                "name": name, "type": versions[0]["type"], "versions": [one["version"] for one in versions],
                "labels": sorted({label for one in versions for label in one["labels"]}), "tags": [],
                "lastUpdatedAt": WHEN, "lastConfig": {},
            }
            for name, versions in self.prompts.items()
            if call.query.get("name") in (None, name)
        ]  # fmt: skip
        return self._numbered(call, entries)

    def _prompt(self, call: Call, name: str) -> Reply:
        label = call.query.get("label", "production")
        for one in self.prompts.get(name, ()):
            if str(one["version"]) == call.query["version"] if "version" in call.query else label in one["labels"]:
                return Reply(200, one)
        return self.unknown(call)

    def _new_prompt(self, call: Call) -> Reply:
        given = call.json
        extra = {key: given[key] for key in ("tags", "commitMessage") if key in given}
        return Reply(201, self.prompt(given["name"], given["prompt"], *given["labels"], kind=given["type"], **extra))

    def _dataset(self, call: Call, name: str) -> Reply:
        return Reply(200, self.dataset) if name == self.dataset["name"] else self.unknown(call)

    def _new_item(self, call: Call) -> Reply:
        made = {
            "id": f"i{len(self.items)}", "status": "ACTIVE", "datasetId": "d1", "createdAt": WHEN, "updatedAt": WHEN,
            "expectedOutput": None, "metadata": None, "mediaReferences": [], **call.json,
        }  # fmt: skip
        self.items.append(made)
        return Reply(200, made)

    def _run(self) -> dict[str, Any]:
        return {"id": "r1", "name": "first run", "datasetId": "d1", "createdAt": WHEN}

    def _run_with_items(self, call: Call, name: str, run: str) -> Reply:
        return Reply(200, {**self._run(), "datasetRunItems": [{"id": "x", "traceId": "t1", "datasetItemId": "i0"}]})

    def _experiment(self) -> dict[str, Any]:
        return {
            "id": "r1", "name": "first run", "description": None, "startTime": WHEN, "endTime": WHEN, "itemCount": 1,
            "datasetId": "d1",
        }  # fmt: skip

    def _experiment_item(self) -> dict[str, Any]:
        return {
            "id": "x", "traceId": "t1", "startTime": WHEN, "endTime": None, "level": "DEFAULT",
            "environment": "default", "experimentId": "r1", "experimentName": "first run", "experimentItemId": "i0",
        }  # fmt: skip

    def _numbered(self, call: Call, entries: list[Any]) -> Reply:
        page, size = int(call.query.get("page", 1)), int(call.query.get("limit", 50))
        meta = {"page": page, "limit": size, "totalItems": len(entries), "totalPages": -(-len(entries) // size)}
        return Reply(200, {"data": entries[(page - 1) * size : page * size], "meta": meta})

    def _chained(self, call: Call, entries: list[Any]) -> Reply:
        start, size = int(call.query.get("cursor", 0)), int(call.query.get("limit", 50))
        meta = {"limit": size, **({"cursor": str(start + size)} if start + size < len(entries) else {})}
        return Reply(200, {"data": entries[start : start + size], "meta": meta})
