"""`connect(url)`: the store of a server, with the methods and values of a local `Store`.

store = ramet.connect("http://127.0.0.1:8750", token=...)        # or unix:/run/ramet.sock
store.create("proj-x")
async with store.open("proj-x") as ws:
    print((await ws.execute("echo hello | tee /greeting")).text)
store["proj-x"].log()
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypedDict, TypeVar, Unpack

from ramet.apps.client.http import Address, Http, async_lines, quote_text, refusal, without_none
from ramet.apps.client.reference import RemoteRef, as_kind, as_pin, as_revision
from ramet.apps.client.workspace import RemoteWorkspace
from ramet.core.errors import RametError
from ramet.core.progress import Progress, silent
from ramet.native.options import NativeForm, as_native
from ramet.store.model.address import parse_address
from ramet.store.model.revisions import Revision
from ramet.store.refs.resolve import RevisionLike, spec_text
from ramet.store.refs.retention import Pin, Retention
from ramet.workspace.snapshot.archive import Target

if TYPE_CHECKING:
    from ramet.apps.client.sandbox import RemoteAgentRun
    from ramet.store.crypto.encrypted_objects import Shredded
    from ramet.store.gc.collect import Collected
    from ramet.store.gc.costs import Costs
    from ramet.store.refs.feed import Event
    from ramet.store.repair.repair import Repaired
    from ramet.store.repair.verify import Report
    from ramet.store.verbs.key_admin import RingReport
    from ramet.store.verbs.trash import RemovedWorkspace
    from ramet.workspace.stored.archive_import import ImportKeywords, ImportResult

T = TypeVar("T")
QUIET: Final = 1.0
"""Seconds without an event after which all past events have arrived."""


class ServedKeywords(TypedDict, total=False):
    """Options of `Store.open` that the server decides; giving one is refused by its name."""

    resources: object
    mounts: object
    secrets: object
    settings: object
    wait: object
    commit: object
    every: object
    pins: object
    withhold: object
    scan: object
    env: object
    policy: object
    prepare: object
    drafts: object
    native: object
    network: object


def connect(url: str, token: str | None = None, *, timeout: float | None = None) -> RemoteStore:
    """Connect to the store of a server at `http(s)://...` or `unix:/path`."""
    return RemoteStore(url, token, timeout)


def _asked(native: NativeForm) -> dict[str, Any]:
    """The part of a request that asks for real programs."""
    wanted = as_native(native)
    if wanted is None:
        return {}
    if wanted.directory is not None:
        raise RametError("unsupported", "cannot choose the directory of boxes on a server", "Leave it out.")
    if wanted.image is not None:
        raise RametError(
            "unsupported", "cannot choose an image on a server", "Leave it out; the server's configuration sets it."
        )
    return {"native": wanted.plain if wanted.plain["limits"] else True}


P = ParamSpec("P")


class RemoteStore:
    """The workspaces of a server, by name."""

    def __init__(self, url: str, token: str | None, timeout: float | None) -> None:
        self._address = Address(url, token, timeout)
        self._http = Http(self._address)

    def __enter__(self) -> RemoteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<store at {self._address.url}>"

    def close(self) -> None:
        self._http.close()

    def _ref(self, name: str) -> RemoteRef:
        return RemoteRef(self._http, self._address, name)

    async def aio(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call of the client in a thread: `await store.aio(store["w"].log)`."""
        return await asyncio.to_thread(call, *args, **kwargs)

    def create(self, name: str, kind: str = "stored", *, native: NativeForm = False) -> RemoteRef:
        """Create an empty workspace; kind `memory` lasts until the server stops. A `native` one runs real programs.

        The server allows it or not, and lower limits than its own.
        """
        asked = {"name": name, "kind": kind, **_asked(native)}
        self._http.ask("POST", "/v1/workspaces", asked)
        return self._ref(name)

    def ls(self) -> list[str]:
        return [found["name"] for found in self._http.get("/v1/workspaces")["workspaces"]]

    def heads(self) -> dict[str, Revision | None]:
        """Return the workspaces with their heads; None for a workspace without a revision."""
        found = self._http.get("/v1/workspaces")["workspaces"]
        return {one["name"]: None if one["head"] is None else as_revision(one["head"]) for one in found}

    def rm(self, name: str) -> None:
        """Remove a workspace. Until gc deletes its revisions, `restore` brings it back."""
        self._http.ask("DELETE", _of(name))

    def trash(self) -> list[RemovedWorkspace]:
        """List the removed workspaces that can be restored."""
        from ramet.store.verbs.trash import RemovedWorkspace

        found = self._http.get("/v1/trash")["workspaces"]
        return [RemovedWorkspace(one["name"], one["time"], one["revision"]) for one in found]

    def restore(self, name: str) -> RemoteRef:
        """Bring a removed workspace back, with its tags and grants."""
        self._http.ask("POST", f"/v1/trash/{quote_text(name)}/restore", {})
        return self._ref(name)

    def __getitem__(self, name: str) -> RemoteRef:
        self._http.get(_of(name))
        return self._ref(name)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except RametError as error:
            if error.code in ("workspace_not_found", "not_found"):
                return False
            raise

    def find(self, address: str) -> Revision:
        """Find the revision that `NAME` or `NAME@REV` names."""
        found = parse_address(address)
        return self._ref(found.name).find(found.revision)

    def open(
        self,
        name: str,
        revision: RevisionLike | None = None,
        *,
        readonly: bool = False,
        **options: Unpack[ServedKeywords],
    ) -> RemoteWorkspace:
        """Open a live workspace, or with `NAME@REV` a past revision; use it with `async with`.

        The server's options and configuration replace the other options of a local store.
        """
        for option in options:
            if option not in ServedKeywords.__annotations__:
                raise TypeError(f"open() got an unexpected keyword argument {option!r}")
            raise RametError("unsupported", f"cannot set {option!r} on a server", "omit it, or configure the server")
        found = parse_address(name)
        if found.path is not None:
            raise RametError("invalid_argument", f"{name!r} names a path", "open NAME or NAME@REVISION")
        return RemoteWorkspace(
            self._address.async_client(),
            found.name,
            spec_text(revision, found.name) or found.revision,
            readonly,
            address=self._address,
        )

    def import_archive(self, name: str, source: Target, **options: Unpack[ImportKeywords]) -> ImportResult:
        """Import a snapshot, or any other tar, as a revision; create the workspace if needed."""
        return self._ref(name).import_archive(source, **options)

    def agent_run(self) -> RemoteAgentRun:
        """Return the server's sandboxes, with the methods of `AgentRun`."""
        from ramet.apps.client.sandbox import RemoteAgentRun

        return RemoteAgentRun(self)

    # --------------------------------------------------------------------------------------- retention

    def retention(self, policy: Retention | None = None, name: str | None = None) -> Retention:
        """Return how long revisions of a workspace or the whole store are kept; with a policy, set it.

        Use `hold` and `lift` for holds; a policy that changes the hold is refused.
        """
        url = "/v1/store/retention" if name is None else f"{_of(name)}/retention"
        if policy is None:
            return as_kind(self._http.get(url)["effective"], Retention)
        if policy.hold and policy.hold != self.own_retention(name).hold:
            raise RametError("invalid_argument", "cannot place a hold with a policy on a server", "use hold(name, why)")
        body = {key: value for key, value in policy.__dict__.items() if key != "hold"}
        self._http.ask("PUT", url, body)
        return policy

    def own_retention(self, name: str | None = None) -> Retention:
        """Return the policy set on a workspace (or the store) itself, without the store's defaults."""
        url = "/v1/store/retention" if name is None else f"{_of(name)}/retention"
        return as_kind(self._http.get(url)["said"], Retention)

    def hold(self, name: str, why: str) -> None:
        """Protect a workspace from removal until `lift`."""
        self._http.ask("PUT", f"{_of(name)}/hold", {"why": why})

    def lift(self, name: str) -> None:
        """Lift a hold."""
        self._http.ask("DELETE", f"{_of(name)}/hold")

    def pins(self, name: str | None = None) -> list[Pin]:
        """List the pins of one workspace, or of all readable ones."""
        return [as_pin(plain) for plain in self._http.get("/v1/pins", workspace=name)["pins"]]

    def unpin(self, token: str) -> None:
        """Remove a pin."""
        self._http.ask("DELETE", f"/v1/pins/{quote_text(token)}")

    # ----------------------------------------------------------------------------------------------- maintenance

    def gc(self, *, grace: float | None = None, dry: bool = False, progress: Progress = silent) -> Collected:
        """Delete expired revisions and unreferenced data. Disconnecting stops it on the server."""
        from ramet.store.gc.collect import Collected

        return as_kind(self._http.long("/v1/store/gc", {"grace_seconds": grace, "dry": dry}, progress), Collected)

    def cost(self, progress: Progress = silent) -> Costs:
        """Return the cost of each workspace: the bytes that only it needs, and the bytes that it shares."""
        from ramet.store.gc.costs import Costs

        return as_kind(self._http.get("/v1/store/cost"), Costs)

    @property
    def keys(self) -> RemoteKeys:
        """The keys of an encrypted store: `keys.show()`, `keys.rotate(new)`, `keys.shred(name)`."""
        return RemoteKeys(self._http)

    def verify(self, progress: Progress = silent) -> Report:
        """Check every digest and reference in the store; the report lists the affected revisions."""
        from ramet.store.repair.verify import Report

        return as_kind(self._http.long("/v1/store/verify", {}, progress), Report)

    def repair(self, *, drop: bool = False, progress: Progress = silent) -> Repaired:
        """Restore damaged data from other copies. With `drop`, also drop references to lost data."""
        from ramet.store.repair.repair import Repaired

        return as_kind(self._http.long("/v1/store/repair", {"drop": drop}, progress), Repaired)

    # --------------------------------------------------------------------------------------------- events

    async def events(self, since: str | None = None, *, follow: bool = False) -> AsyncIterator[Event]:
        """Iterate over the change feed after a cursor: `async for event in store.events(since=event.cursor)`."""
        from ramet.store.refs.feed import Event

        async for line in self._event_stream("/v1/feed", since=since, follow="true" if follow else None):
            plain = json.loads(line)
            yield Event(plain["envelope"], plain["cursor"])

    async def server_events(
        self, since: int | None = None, *, workspace: str | None = None, follow: bool = True
    ) -> AsyncIterator[dict[str, Any]]:
        """Iterate over the server's events: mappings with `id`, `event`, `workspace`, `time` and more.

        `since` is the id of the last event you received. Without `follow` it ends after the past events.
        """
        lines = self._event_stream(
            "/v1/events", since=since if since is not None or follow else 0, workspace=workspace
        )  # fmt: skip
        while True:
            try:
                found = await asyncio.wait_for(_event(lines), None if follow else QUIET)
            except TimeoutError:
                return
            if found is None:
                return
            yield found

    async def _event_stream(self, url: str, **query: Any) -> AsyncIterator[bytes]:
        async with (
            self._address.async_client() as http,
            http.stream("GET", url, params=without_none(query), timeout=None) as response,
        ):
            if response.status_code >= 400:
                raise refusal(response.status_code, await response.aread(), response.url.path)
            async for line in async_lines(response):
                yield line


class RemoteKeys:
    """The keys of a server's store. No key is ever sent: arguments name places on the server."""

    def __init__(self, http: Http) -> None:
        self._http = http

    @property
    def wrapped_by(self) -> str:
        """Id of the key in use."""
        return str(self._http.get("/v1/store/keys")["wrapped_by"])

    def show(self) -> list[RingReport]:
        """List the keyrings of all workspaces."""
        from ramet.store.verbs.key_admin import RingReport

        return [as_kind(plain, RingReport) for plain in self._http.get("/v1/store/keys")["rings"]]

    def rotate(self, new: str, old: str | None = None) -> int:
        """Replace the key that opens the store: `file:PATH`, `env:NAME` or `kms:ID`, as the server sees them."""
        return int(self._http.ask("POST", "/v1/store/keys/rotate", without_none({"to": new, "old": old}))["keyrings"])

    def shred(self, name: str) -> Shredded:
        """Destroy the keys of a workspace: data that only they decrypt is lost for ever."""
        from ramet.store.crypto.encrypted_objects import Shredded

        return as_kind(self._http.ask("POST", f"{_of(name)}/shred", {"confirm": name}), Shredded)


def _of(name: str) -> str:
    return f"/v1/workspaces/{quote_text(name)}"


async def _event(lines: AsyncIterator[bytes]) -> dict[str, Any] | None:
    """Return the next server-sent event; None at the end of the stream."""
    found: dict[str, Any] = {}
    async for line in lines:
        name, _, value = line.decode().partition(": ")
        if name == "data":
            found.update(json.loads(value))
        elif name in ("id", "event"):
            found[name] = int(value) if name == "id" else value
        elif not line and "id" in found:
            return found
    return None
