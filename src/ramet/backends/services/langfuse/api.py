"""Langfuse's public API, of servers of the third and the fourth generation.

The third has traces and sessions. The fourth has observations only: those with one trace id are a trace,
which the first of them stands for, and runs of datasets are experiments. Which one answers is found out once.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from ramet.backends.services.pages import by_cursor
from ramet.backends.services.rest import Params, Rest
from ramet.concurrency.loop_local import LoopLocal
from ramet.core.errors import fail
from ramet.core.paths import Path, encode
from ramet.core.streams import closing

API: Final = "/api/public"
PAGE: Final = 100
FIELDS: Final = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
"""What the fourth generation says of an observation."""
ROOT_FIELDS: Final = "core,basic,time,trace_context"
EVER: Final = "2000-01-01T00:00:00Z"


class LangfuseAPI:
    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self._generation = 0
        self._looking = LoopLocal(asyncio.Lock)

    async def has_traces(self, path: Path) -> bool:
        """Whether the server is of the third generation."""
        async with self._looking.get():
            if not self._generation:
                try:
                    await self.rest.get(f"{API}/traces", path=path, params={"limit": 1})
                    self._generation = 3
                except FileNotFoundError:
                    missing = "No such file or directory: there is no Langfuse at this address; check base_url"
                    probe: Params = {"limit": 1, "fields": "core"}
                    await self.rest.get(f"{API}/v2/observations", path=path, params=probe, missing=missing)
                    self._generation = 4
            return self._generation == 3

    def numbered(self, address: str, path: Path, params: Params | None = None, size: int = PAGE) -> AsyncIterator[Any]:
        """Entries of pages with numbers."""

        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            number = int(cursor or 1)
            given: Params = {**(params or {}), "page": number, "limit": size}
            said = (await self.rest.get(f"{API}{address}", path=path, params=given)).json()
            return said["data"], str(number + 1) if number < said["meta"]["totalPages"] else None

        return by_cursor(page, path)

    def chained(self, address: str, path: Path, params: Params | None = None, size: int = PAGE) -> AsyncIterator[Any]:
        """Entries of pages that a cursor joins."""

        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            given: Params = {**(params or {}), "limit": size, "cursor": cursor}
            said = (await self.rest.get(f"{API}{address}", path=path, params=given)).json()
            return said["data"], said["meta"].get("cursor")

        return by_cursor(page, path)

    # ----------------------------------------------------------------------------------------------- traces

    async def traces(
        self, path: Path, since: str, until: str | None = None, size: int = PAGE, session: str | None = None
    ) -> AsyncIterator[Any]:
        """Traces of a time, newest first: `id`, `name`, `timestamp`, `sessionId` and what else there is."""
        if await self.has_traces(path):
            third: Params = {
                "fromTimestamp": since, "toTimestamp": until, "orderBy": "timestamp.desc", "sessionId": session,
            }  # fmt: skip
            found = self.numbered("/traces", path, third, size)
        else:
            fourth: Params = {
                "isRootObservation": "true", "fields": ROOT_FIELDS, "fromStartTime": since, "toStartTime": until,
                "sessionId": session,
            }  # fmt: skip
            found = self.chained("/v2/observations", path, fourth, size)
        async with closing(found) as traces:
            async for one in traces:
                yield one if "timestamp" in one else _as_trace(one)

    async def trace(self, id: str, path: Path) -> Any:
        """One trace; ENOENT if there is none."""
        if await self.has_traces(path):
            return (await self.rest.get(f"{API}/traces/{_part(id)}", path=path)).json()
        params: Params = {"traceId": id, "isRootObservation": "true", "fields": ROOT_FIELDS}
        async with closing(self.chained("/v2/observations", path, params, 1)) as found:
            async for one in found:
                return _as_trace(one)
        raise fail(errno.ENOENT, path)

    async def observations(self, trace: str, path: Path) -> AsyncIterator[Any]:
        """The observations of a trace, in the order in which they began."""
        if await self.has_traces(path):
            found = [one async for one in self.numbered("/observations", path, {"traceId": trace})]
        else:
            given: Params = {"traceId": trace, "fields": FIELDS}
            found = [one async for one in self.chained("/v2/observations", path, given)]
        for one in sorted(found, key=lambda one: str(one.get("startTime"))):
            yield one

    async def sessions(self, path: Path, since: str) -> AsyncIterator[Any]:
        if await self.has_traces(path):
            async with closing(self.numbered("/sessions", path, {"fromTimestamp": since})) as sessions:
                async for one in sessions:
                    yield one
            return
        seen: set[str] = set()
        async with closing(self.traces(path, since)) as traces:
            async for trace in traces:
                id = trace.get("sessionId")
                if id and id not in seen:
                    seen.add(id)
                    yield {"id": id, "createdAt": trace["timestamp"]}

    # ------------------------------------------------------------------------------------ prompts and datasets

    def prompts(self, path: Path, name: str | None = None) -> AsyncIterator[Any]:
        return self.numbered("/v2/prompts", path, {"name": name})

    async def prompt(self, name: str, path: Path, **params: str) -> Any:
        return (await self.rest.get(f"{API}/v2/prompts/{_part(name)}", path=path, params=params)).json()

    def datasets(self, path: Path) -> AsyncIterator[Any]:
        return self.numbered("/v2/datasets", path)

    async def dataset(self, name: str, path: Path) -> Any:
        return (await self.rest.get(f"{API}/v2/datasets/{_part(name)}", path=path)).json()

    def items(self, name: str, path: Path) -> AsyncIterator[Any]:
        return self.numbered("/dataset-items", path, {"datasetName": name})

    async def runs(self, dataset: Any, path: Path) -> AsyncIterator[Any]:
        if await self.has_traces(path):
            found = self.numbered(f"/datasets/{_part(dataset['name'])}/runs", path)
        else:
            found = self.chained("/experiments", path, {"datasetId": dataset["id"], "fromStartTime": EVER})
        async with closing(found) as runs:
            async for run in runs:
                yield run

    async def run_items(self, dataset: Any, run: Any, path: Path) -> AsyncIterator[Any]:
        if await self.has_traces(path):
            address = f"{API}/datasets/{_part(dataset['name'])}/runs/{_part(run['name'])}"
            for item in (await self.rest.get(address, path=path)).json()["datasetRunItems"]:
                yield item
            return
        given: Params = {"experimentId": run["id"], "fields": "core,dataset,io", "fromStartTime": EVER}
        async with closing(self.chained("/experiment-items", path, given)) as items:
            async for item in items:
                yield item

    async def scores(self, path: Path) -> AsyncIterator[Any]:
        third = await self.has_traces(path)
        found = self.numbered("/v2/scores", path) if third else self.chained("/v3/scores", path)
        async with closing(found) as scores:
            async for score in scores:
                yield score

    async def create(self, address: str, body: Mapping[str, Any], path: Path) -> Any:
        return (await self.rest.send("POST", f"{API}{address}", path=path, json_body=body)).json()


def _part(name: str) -> str:
    return quote(encode(name), safe="")


def _as_trace(root: Any) -> Any:
    """A root observation as the trace that it stands for."""
    return {
        "id": root["traceId"], "name": root.get("traceName") or root.get("name"), "timestamp": root["startTime"],
        "sessionId": root.get("sessionId"), "userId": root.get("userId"), "tags": root.get("tags"),
        "environment": root.get("environment"), "observationId": root["id"],
    }  # fmt: skip
