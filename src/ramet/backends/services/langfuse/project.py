"""`LangfuseResource`: a project of Langfuse as files: traces, sessions, prompts, datasets, scores.

/traces/<yyyy-mm-dd>/<hh-mm-ss>_<name>__<id>.jsonl     the observations of a trace, one a line
/sessions/<id>.jsonl  /traces.jsonl  /scores.jsonl
/prompts/<name>/{<version>.md,labels/<label>.md}       `next.md` makes a new version
/datasets/<name>/{items.jsonl,runs/<name>__<id>.jsonl}
"""

from __future__ import annotations

import errno
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Final

from ramet.backends.file_names import as_name, from_name
from ramet.backends.services import front_matter
from ramet.backends.services.auth import TokenAuth, basic
from ramet.backends.services.config import ServiceConfig
from ramet.backends.services.contents import among, fixed, json_lines, json_object, json_text, letter_text, pretty_json
from ramet.backends.services.langfuse.api import PAGE, LangfuseAPI
from ramet.backends.services.names import key_last, time_ns, title_name
from ramet.backends.services.nodes import Asked, Collection, Inbox, Item, Place, Rendered
from ramet.backends.services.pages import first_of
from ramet.backends.services.requests import raw_request, request_of
from ramet.backends.services.rest import Rest
from ramet.backends.services.tree import Service
from ramet.core.errors import fail
from ramet.core.paths import Path, encode
from ramet.core.resource import Letter
from ramet.core.stat import Kind, Stat
from ramet.core.streams import closing

ENDS: Final = {"text": ".md", "chat": ".json"}
"""Prompts of messages are JSON, as the API has them."""
SETTABLE: Final = ("labels", "tags", "commitMessage")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
README: Final = """\
# Langfuse

    traces/<yyyy-mm-dd>/<hh-mm-ss>_<name>__<id>.jsonl   the observations of a trace, one a line (UTC)
    traces.jsonl                     the traces of the last {days} days, one a line, newest first
    sessions/<id>.jsonl              the traces of a session
    prompts/<name>/<version>.md      a prompt of text; one of messages is <version>.json
    prompts/<name>/labels/<label>.md what a label such as `production` stands for now
    datasets/<name>/items.jsonl  datasets/<name>/runs/<name>__<id>.jsonl
    scores.jsonl

`ls traces` shows the days of the newest {most} traces; a day is listed whole, and any day can be named.

- Failures: `grep -rl '"level":"ERROR"' traces/2026-05-03`
- Slow ones: `jq -r 'select(.latency > 10) | .id' traces.jsonl`
- New version of a prompt: `sed 's/old/new/; s/^labels: .*/labels: []/' prompts/p/3.md > prompts/p/next.md`; labels that
  it names move to it, so `labels: [production]` puts it to use. New prompt: `post prompts -t Name -m Text`
- New item of a dataset: `post datasets/d -m '{{"input": ..., "expectedOutput": ...}}'`
- The API, one page at a time: `query . 'GET /api/public/projects'`, `query -w . 'POST /api/public/scores' '{{...}}'`
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class LangfuseConfig(ServiceConfig):
    """A project of Langfuse, in its cloud or on a server of your own."""

    kind: ClassVar[str] = "langfuse"
    secrets: ClassVar[tuple[str, ...]] = ("secret_key",)

    public_key: str
    """The public key of the project (`pk-lf-`)."""
    secret_key: str | None = None
    """Its secret key (`sk-lf-`)."""
    secret_key_env: str | None = None
    """The environment variable that holds the secret key."""
    base_url: str = "https://cloud.langfuse.com"
    """The address of the server."""
    default_trace_limit: int = 100
    """The newest traces whose days are listed."""
    days: int = 30
    """Days of `traces.jsonl` and `sessions`."""


class LangfuseResource(Service):
    """`LangfuseResource(LangfuseConfig(public_key="pk-lf-...", secret_key="sk-lf-..."))`."""

    config: LangfuseConfig

    def __init__(self, config: LangfuseConfig) -> None:
        auth = TokenAuth(basic(lambda: config.public_key, lambda: config.secret("secret_key")), "Basic")
        self._api = LangfuseAPI(Rest.of(config, auth, explain=_explain))
        self._made: dict[str, str] = {}
        """Versions that `next.md` became, by prompt and file name."""
        readme = README.format(days=config.days, most=config.default_trace_limit)
        versions = Collection("/prompts/*", self._versions, self._version, _version_key, create=self._new_version)
        super().__init__(config, (
            Rendered("/README.md", fixed(readme)),
            Asked("/traces.jsonl", lambda place: json_lines(self._api.traces(place.path, self._since()))),
            Asked("/scores.jsonl", lambda place: json_lines(self._api.scores(place.path))),
            Collection("/traces", self._days, self._day, lambda name: name if _DAY.fullmatch(name) else None),
            Collection("/traces/*", self._traces, self._trace, key_last(r"[\w-]+?", ".jsonl")),
            Asked("/traces/*/*", lambda place: json_lines(self._api.observations(place.data["id"], place.path))),
            Collection("/sessions", self._sessions, self._session, _named(".jsonl")),
            Asked("/sessions/*", lambda place: json_lines(self._session_traces(place))),
            Collection("/prompts", self._prompts, self._prompt, _named()),
            versions,
            Asked("/prompts/*/*", partial(_prompt_file, 1), edit=self._edit),
            Collection("/prompts/*/labels", self._labels, self._label, _named()),
            Asked("/prompts/*/labels/*", self._labelled),
            Collection("/datasets", self._datasets, self._dataset, _named()),
            Rendered("/datasets/*/dataset.json", pretty_json),
            Asked("/datasets/*/items.jsonl", lambda place: json_lines(self._api.items(place.data["name"], place.path))),
            Collection("/datasets/*/runs", self._runs, partial(among, self._runs), key_last(r"[\w-]+?", ".jsonl")),
            Asked("/datasets/*/runs/*", self._run),
            Inbox("/prompts", self._new_prompt),
            Inbox("/datasets/*", self._new_item),
        ))  # fmt: skip

    def _since(self) -> str:
        since = datetime.fromtimestamp(time.time(), UTC) - timedelta(days=self.config.days)
        return since.isoformat(timespec="seconds").replace("+00:00", "Z")

    def _item(self, key: str, name: str, data: Any, kind: Kind, when: str | None = None) -> Item:
        return Item(key, name, data, Stat(kind, None, time_ns(when), None, self.config.ttl))

    # ----------------------------------------------------------------------------------------------- traces

    async def _days(self, place: Place) -> AsyncIterator[Item]:
        most = self.config.default_trace_limit
        seen: set[str] = set()
        async with closing(first_of(self._api.traces(place.path, self._since(), size=min(PAGE, most)), most)) as traces:
            async for trace in traces:
                day = str(trace["timestamp"])[:10]
                if day not in seen:
                    seen.add(day)
                    yield self._item(day, day, day, Kind.DIR, trace["timestamp"])

    async def _day(self, place: Place, key: str) -> Item:
        try:
            date.fromisoformat(key)
        except ValueError:
            raise fail(errno.ENOENT, place.path) from None
        return self._item(key, key, key, Kind.DIR)

    async def _traces(self, place: Place) -> AsyncIterator[Item]:
        day = date.fromisoformat(place.data)
        since, until = (f"{at.isoformat()}T00:00:00Z" for at in (day, day + timedelta(days=1)))
        async with closing(self._api.traces(place.path, since, until)) as traces:
            async for trace in traces:
                yield self._as_trace(trace)

    async def _trace(self, place: Place, key: str) -> Item:
        trace = await self._api.trace(key, place.path)
        if str(trace["timestamp"])[:10] != place.data:
            raise fail(errno.ENOENT, place.path)
        return self._as_trace(trace)

    def _as_trace(self, trace: Any) -> Item:
        clock = str(trace["timestamp"])[11:19].replace(":", "-")
        name = f"{clock}_{title_name(trace.get('name') or 'trace')}__{trace['id']}.jsonl"
        return self._item(trace["id"], name, trace, Kind.FILE, trace["timestamp"])

    async def _sessions(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._api.sessions(place.path, self._since())) as sessions:
            async for one in sessions:
                yield self._item(one["id"], f"{as_name(one['id'])}.jsonl", one, Kind.FILE, one.get("createdAt"))

    async def _session(self, place: Place, key: str) -> Item:
        async with closing(self._api.traces(place.path, self._since(), size=1, session=key)) as traces:
            async for trace in traces:
                return self._item(key, f"{as_name(key)}.jsonl", {"id": key}, Kind.FILE, trace["timestamp"])
        raise fail(errno.ENOENT, place.path)

    def _session_traces(self, place: Place) -> AsyncIterator[Any]:
        return self._api.traces(place.path, self._since(), session=place.data["id"])

    # ---------------------------------------------------------------------------------------------- prompts

    async def _prompts(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._api.prompts(place.path)) as prompts:
            async for one in prompts:
                yield self._as_prompt(one)

    async def _prompt(self, place: Place, key: str) -> Item:
        async with closing(self._api.prompts(place.path, key)) as prompts:
            async for one in prompts:
                if one["name"] == key:
                    return self._as_prompt(one)
        raise fail(errno.ENOENT, place.path)

    def _as_prompt(self, one: Any) -> Item:
        return self._item(one["name"], as_name(one["name"]), one, Kind.DIR, one.get("lastUpdatedAt"))

    async def _versions(self, place: Place) -> AsyncIterator[Item]:
        """A version never changes, so that its content may be kept; only its labels move."""
        about = place.data
        for version in about["versions"]:
            name = f"{version}{ENDS[about['type']]}"
            yield self._item(name, name, partial(self._api.prompt, about["name"], version=str(version)), Kind.FILE)

    async def _version(self, place: Place, key: str) -> Item:
        about = place.data
        stem, end = key.split(".")
        made = self._made.get(f"{about['name']}/{key}")
        if f".{end}" != ENDS[about["type"]] or (
            made is None and (stem == "next" or int(stem) not in about["versions"])
        ):
            raise fail(errno.ENOENT, place.path)
        return self._item(key, key, partial(self._api.prompt, about["name"], version=made or stem), Kind.FILE)

    async def _labels(self, place: Place) -> AsyncIterator[Item]:
        for label in place.data["labels"]:
            yield self._as_label(place, label)

    async def _label(self, place: Place, key: str) -> Item:
        label = key.removesuffix(ENDS[place.data["type"]])
        if label not in place.data["labels"]:
            raise fail(errno.ENOENT, place.path)
        return self._as_label(place, label)

    def _as_label(self, place: Place, label: str) -> Item:
        return self._item(label, f"{as_name(label)}{ENDS[place.data['type']]}", label, Kind.FILE)

    async def _labelled(self, place: Place) -> AsyncIterator[bytes]:
        yield _prompt_text(await self._api.prompt(place.items[0].data["name"], place.path, label=place.data))

    async def _new_version(self, place: Place, name: str, content: bytes) -> None:
        about = place.data
        if name != f"next{ENDS[about['type']]}":
            words = f"Operation not permitted: write next{ENDS[about['type']]}; Langfuse numbers versions itself"
            raise fail(errno.EPERM, place.path, words)
        made = await self._make(about["name"], about["type"], content, place.path)
        self._made[f"{about['name']}/{name}"] = str(made["version"])

    async def _edit(self, place: Place, old: bytes, new: bytes) -> None:
        """A second `next.md` is the version after that; versions themselves never change."""
        above, name = place._replace(items=place.items[:1]), place.items[1].key
        if not name.startswith("next."):
            words = f"Read-only file system: a version never changes; write next{ENDS[above.data['type']]}"
            raise fail(errno.EROFS, place.path, words)
        await self._new_version(above, name, new)

    async def _make(self, name: str, kind: str, content: bytes, path: Path) -> Any:
        body: dict[str, Any] = {"name": name, "type": kind}
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise fail(errno.EINVAL, path, "Invalid argument: the text is not UTF-8") from None
        if kind == "chat":
            given = json_object(text, path)
            if not isinstance(given.get("prompt"), list):
                raise fail(errno.EINVAL, path, 'Invalid argument: a prompt of messages is {"prompt": [{"role": ...}]}')
            body |= {key: given[key] for key in ("prompt", "config", *SETTABLE) if key in given}
        else:
            fields, prompt = front_matter.parse(text, path)
            unknown = set(fields) - {*SETTABLE, "name", "version"}
            if unknown:
                raise fail(errno.EINVAL, path, f"unknown key {min(unknown)}: you can set {', '.join(SETTABLE)}")
            body |= {key: value for key, value in fields.items() if key in SETTABLE and value is not None}
            body["prompt"] = prompt
        body["labels"] = [label for label in body.get("labels") or () if label != "latest"]  # that one moves by itself
        return await self._api.create("/v2/prompts", body, path)

    async def _new_prompt(self, place: Place, letter: Letter) -> str:
        text = letter_text(letter, place.path, "a new prompt", titled=True)
        made = await self._make(letter.subject, "text", encode(text), place.path)
        return f"{made['name']} {made['version']}"

    # --------------------------------------------------------------------------------------------- datasets

    async def _datasets(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._api.datasets(place.path)) as datasets:
            async for one in datasets:
                yield self._item(one["name"], as_name(one["name"]), one, Kind.DIR, one.get("updatedAt"))

    async def _dataset(self, place: Place, key: str) -> Item:
        one = await self._api.dataset(key, place.path)
        return self._item(one["name"], as_name(one["name"]), one, Kind.DIR, one.get("updatedAt"))

    async def _runs(self, place: Place) -> AsyncIterator[Item]:
        async with closing(self._api.runs(place.items[0].data, place.path)) as runs:
            async for run in runs:
                name = f"{title_name(run['name'])}__{run['id']}.jsonl"
                yield self._item(run["id"], name, run, Kind.FILE, run.get("createdAt") or run.get("startTime"))

    def _run(self, place: Place) -> AsyncIterator[bytes]:
        return json_lines(self._api.run_items(place.items[0].data, place.data, place.path))

    async def _new_item(self, place: Place, letter: Letter) -> str:
        given = json_object(letter_text(letter, place.path, "an item of a dataset"), place.path)
        known = ("input", "expectedOutput", "metadata", "sourceTraceId", "sourceObservationId", "id", "status")
        unknown = set(given) - set(known)
        if unknown or "input" not in given:
            words = f"unknown key {min(unknown)}" if unknown else "input is missing"
            raise fail(errno.EINVAL, place.path, f"Invalid argument: {words}; an item has {', '.join(known)}")
        body = {"datasetName": place.items[0].data["name"], **given}
        return str((await self._api.create("/dataset-items", body, place.path))["id"])

    # --------------------------------------------------------------------------------------------- querying

    async def query(
        self, path: Path, text: str, values: Sequence[str] = (), *, limit: int | None = None, write: bool = False
    ) -> AsyncIterator[bytes]:
        """A request such as `GET /api/public/projects`."""
        request = request_of(text)
        if request is None:
            raise fail(errno.EINVAL, path, "a query is `GET /api/public/...`; another method takes -w")
        found = raw_request(
            self._api.rest, self.config, path, request, values, limit=limit, write=write, entries=_entries
        )
        async with closing(found) as lines:
            async for block in lines:
                yield block
        if request[0] != "GET":
            self.forget()

    async def close(self) -> None:
        await super().close()
        await self._api.rest.close()


def _explain(said: Any) -> str:
    return str(said.get("message") or said.get("error") or "") if isinstance(said, dict) else ""


def _entries(said: Any) -> list[Any]:
    return said["data"] if isinstance(said, dict) and isinstance(said.get("data"), list) else [said]


def _named(end: str = "") -> Callable[[str], str | None]:
    """The name that a file stands for."""
    return lambda name: from_name(name.removesuffix(end))


def _version_key(name: str) -> str | None:
    return name if re.fullmatch(r"(?:\d{1,9}|next)\.(?:md|json)", name) else None


async def _prompt_file(at: int, place: Place) -> AsyncIterator[bytes]:
    yield _prompt_text(await place.items[at].data(place.path))


def _prompt_text(prompt: Any) -> bytes:
    if prompt["type"] == "chat":
        return json_text(prompt)
    fields: dict[str, front_matter.Value] = {
        "name": prompt["name"], "version": prompt["version"], "labels": prompt.get("labels") or [],
        "tags": prompt.get("tags") or [], "commitMessage": prompt.get("commitMessage"),
    }  # fmt: skip
    return encode(front_matter.render(fields, prompt["prompt"]))
