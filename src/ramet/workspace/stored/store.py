"""`Store`: durable, versioned, forkable workspaces. It binds live workspaces to a repository.

store = Store("~/.ramet")
store.create("proj-x")
async with store.open("proj-x") as ws:       # takes the lease, opens the head; commits and releases on exit
    await ws.execute("echo hello > /data.txt")
    revision = await ws.commit("first result")
store["proj-x"].log()
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

from ramet.core.errors import RametError, wrong_type
from ramet.core.progress import Progress, silent
from ramet.core.resource import Resource
from ramet.native.leftovers import keep_layout
from ramet.native.options import Native, NativeForm, as_native
from ramet.network.network import Network
from ramet.store.commit.secret_scan import parse_scan_mode
from ramet.store.model.address import parse_address
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import Objects
from ramet.store.refs.leases import holder_name
from ramet.store.refs.refs import RefEntry, check_text
from ramet.store.refs.resolve import RevisionLike
from ramet.store.refs.retention import STORE, Pin, Retention
from ramet.store.repository import Repository, StoreKeywords
from ramet.store.verbs.key_admin import Keys
from ramet.workspace.mounts import MountForm
from ramet.workspace.policy import Policy
from ramet.workspace.snapshot.archive import Target
from ramet.workspace.stored.commit_policy import CommitPolicy as CommitPolicy
from ramet.workspace.stored.open_options import OpenOptions as OpenOptions
from ramet.workspace.stored.recovery import Recovery, bind, box_of, recover
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.version_pins import changed_pins
from ramet.workspace.stored.workspace import StoredWorkspace as StoredWorkspace
from ramet.workspace.workspace import Settings

if TYPE_CHECKING:
    from ramet.store.gc.collect import Collected
    from ramet.store.gc.costs import Costs
    from ramet.store.refs.feed import Event
    from ramet.store.repair.repair import Repaired
    from ramet.store.repair.verify import Report
    from ramet.store.verbs.trash import RemovedWorkspace
    from ramet.workspace.stored.archive_import import ImportKeywords, ImportResult
    from ramet.workspace.stored.events import DeliveryReport, Sink


P = ParamSpec("P")
T = TypeVar("T")


def home() -> str:
    """Return the default store, as on the command line: `$RAMET_HOME`, else `~/.ramet`."""
    return os.environ.get("RAMET_HOME") or "~/.ramet"


class Store:
    """Workspaces by name, at a path, in memory (`memory:`) or on an object store (`s3://bucket/prefix`)."""

    def __init__(
        self,
        where: str | os.PathLike[str] | Objects | None = None,
        *,
        principal: str | None = None,
        **options: Unpack[StoreKeywords],
    ) -> None:
        """Open the store at an address; by default `$RAMET_HOME`, or `~/.ramet`."""
        where = home() if where is None else where
        if isinstance(where, os.PathLike):
            where = os.fspath(where)
        if isinstance(where, str) and where.startswith(("http://", "https://", "unix:")):
            raise RametError(
                "invalid_argument", f"{where} is the address of a server", f"use ramet.connect({where!r}, token=...)"
            )
        if not isinstance(where, str) and not hasattr(where, "put"):
            raise wrong_type("the address of a store", where, "Pass a path, memory:, or a bucket's URL.")
        principal = principal or os.environ.get("RAMET_PRINCIPAL") or None
        self.repository = Repository(where, principal=principal, **options)

    async def aio(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking call of the store in a thread: `await store.aio(store["w"].log)`."""
        return await asyncio.to_thread(call, *args, **kwargs)

    def create(self, name: str, *, native: NativeForm = False) -> StoredWorkspaceRef:
        """Create an empty workspace; a `native` one runs real programs, within these bounds, whenever it is opened."""
        wanted = as_native(native)
        self.repository.create(name)
        if wanted is not None:
            self.repository.native_options.set(name, wanted.plain)
        return StoredWorkspaceRef(self.repository, name)

    def ls(self) -> list[str]:
        return self.repository.ls()

    def heads(self) -> dict[str, Revision | None]:
        """Return the newest revision of each workspace; None for an empty one."""
        return {name: self.repository.head(name) for name in self.ls()}

    def rm(self, name: str) -> None:
        """Remove a workspace. Until gc deletes its revisions, `restore` brings it back."""
        self.repository.rm(name)

    def trash(self) -> list[RemovedWorkspace]:
        """List the removed workspaces that can be restored."""
        return self.repository.trash()

    def restore(self, name: str) -> StoredWorkspaceRef:
        """Bring a removed workspace back, with its tags and grants."""
        self.repository.restore(name)
        return StoredWorkspaceRef(self.repository, name)

    def __getitem__(self, name: str) -> StoredWorkspaceRef:
        self.repository.refs.require(name)
        return StoredWorkspaceRef(self.repository, name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.repository.refs.exists(name)

    def find(self, address: str | Revision) -> Revision:
        """Find the revision of `NAME` or `NAME@REV`."""
        return self.repository.resolve(address)

    def import_archive(self, name: str, source: Target, **options: Unpack[ImportKeywords]) -> ImportResult:
        """Import a snapshot or any other tar as a revision of a workspace, which is created if it does not exist."""
        from ramet.workspace.stored.archive_import import ImportOptions, import_archive

        return import_archive(self.repository, name, source, ImportOptions(**options))

    def events(self, since: str | None = None, *, follow: bool = False) -> AsyncIterator[Event]:
        """Yield the change feed after a cursor: `async for event in store.events(since=event.cursor)`.

        With `follow` it waits for later events until the iteration is left.
        """
        from ramet.workspace.stored import events as delivery

        return delivery.follow(self.repository, since) if follow else delivery.pending(self.repository, since)

    def forget_sink(self, name: str) -> None:
        """Delete the cursor of a sink; undelivered events then keep no revisions."""
        self.repository.objects.delete(f"feeds/{name}")

    async def deliver(self, sink: Sink, name: str) -> DeliveryReport:
        """Send a sink (`JsonLines`, `Webhook`) every event after the cursor of this name."""
        from ramet.workspace.stored.events import deliver

        return await deliver(self.repository, sink, name)

    def retention(self, policy: Retention | None = None, name: str | None = None) -> Retention:
        """Return the retention policy of a workspace or of the whole store; with a policy, set it."""
        if name is not None:
            self.repository.refs.require(name)
            self.repository.check_access(name, "readonly" if policy is None else "readwrite")
        if policy is not None and not isinstance(policy, Retention):
            raise wrong_type("a retention policy", policy, "Pass Retention(...).")
        if policy is None:
            return self.repository.policies.own() if name is None else self.repository.policies.of(name)
        self.repository.require_safe_refs()
        return self.repository.policies.set(policy, name or STORE)

    def own_retention(self, name: str | None = None) -> Retention:
        """Return the policy set for a workspace (or the store) itself, without defaults of the store."""
        if name is None:
            return self.repository.policies.own()
        self.repository.refs.require(name)
        self.repository.check_access(name)
        return self.repository.policies.own(name)

    def pins(self, name: str | None = None) -> list[Pin]:
        """List active pins, of one workspace or of all readable ones."""
        found = [pin for pin in self.repository.pins.active() if name is None or pin.workspace == name]
        return [pin for pin in found if self.repository.grants.allows(self.repository.principal, pin.workspace)]

    def unpin(self, token: str) -> None:
        """Remove a pin."""
        for pin in self.repository.pins.all():
            if pin.token == token:
                self.repository.check_access(pin.workspace, "readwrite")
                self.repository.pins.remove(token)
                return
        raise RametError("not_found", f"no pin {token!r}", "`pins` lists them")

    def hold(self, name: str, why: str) -> None:
        """Place a hold: nothing of the workspace is removed until the hold is lifted."""
        self.repository.hold(name, why)

    def lift(self, name: str) -> None:
        """End a hold."""
        self.repository.lift(name)

    def gc(self, *, grace: float | None = None, dry: bool = False, progress: Progress = silent) -> Collected:
        """Remove unreferenced and expired objects; safe with concurrent readers and writers.

        An object goes after the `grace` period in seconds (default: the store's policy, or a day). With `dry`, nothing
        changes and the report says what would go.
        """
        return self.repository.gc(grace=grace, dry=dry, progress=progress)

    def cost(self, progress: Progress = silent) -> Costs:
        """Report the unique and shared bytes of each workspace."""
        from ramet.store.gc.costs import compute_costs

        return compute_costs(self.repository, progress)

    @property
    def keys(self) -> Keys:
        """The keys of an encrypted store: `keys.show()`, `keys.rotate(new)`, `keys.shred(name)`."""
        return Keys(self.repository)

    def verify(self, progress: Progress = silent) -> Report:
        """Read everything, check every digest and reference, and report affected revisions."""
        return self.repository.verify(progress)

    def repair(self, *, drop: bool = False, progress: Progress = silent) -> Repaired:
        """Restore damaged objects from other copies. Only with `drop`, forget what is lost."""
        return self.repository.repair(drop=drop, progress=progress)

    def open(
        self,
        name: str,
        revision: RevisionLike | None = None,
        *,
        readonly: bool = False,
        resources: Mapping[str, Resource] | None = None,
        mounts: Mapping[str, MountForm] | None = None,
        secrets: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        wait: float = 0.0,
        commit: CommitPolicy | str = "close",
        every: float | None = None,
        pins: Mapping[str, str] | None = None,
        withhold: Iterable[str] = (),
        scan: str = "off",
        env: Mapping[str, str] | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
        prepare: Callable[[StoredWorkspace], None] | None = None,
        drafts: str | float = "off",
        native: NativeForm | None = None,
        network: Network | Mapping[str, Any] | None = None,
    ) -> WorkspaceOpener:
        """Open the head of a workspace (or a past revision or `NAME@REV`, read-only). Use it with `async with`.

        `mounts` are mounted as they are, also in the place of a saved mount; `resources` replace mounts that were saved
        without credentials, and a directory among them gets the saved content. `wait` is the seconds to wait for
        another writer. `env` and `policy` are those of `Workspace`; `prepare` is called with the workspace before any
        other code sees it.

        `commit` says when revisions are made: on `close`, after each `command` (or each `every` commands), on a `timer`
        of `every` seconds, or `never` automatically; a `CommitPolicy` says the same. `pins` says what a revision
        records of a remote mount: its `config`, or the `versions` of all its paths as well. `withhold` adds patterns of
        files that never enter a revision to the usual places of credentials (`.ssh`, `.env`, private keys, ...), and
        `!PATTERN` allows one of those. `scan` searches new content for secrets: to `report` them on the revision by
        path and kind, or to `refuse` the commit.

        `drafts` says what survives when this process is killed before it commits: with `each`, all changes of `execute`
        and `dispatch` calls that have returned; with a number, changes older than that many seconds; with `off`,
        directories only. The next open commits them. `native` turns real programs on or off (`docs/native.md`), or
        says their bounds, else the workspace remembers how it was created. The trees of a native workspace are
        directories of this machine until it is closed. `network` says which hosts commands may reach
        (`docs/network.md`), else none.
        """
        return self.open_with(
            name,
            OpenOptions(
                readonly=readonly, resources=resources or {}, mounts=mounts or {}, secrets=secrets, settings=settings,
                wait=wait, commit=_commit_policy(commit, every), pins=dict(pins or {}), withhold=withhold,
                scan=parse_scan_mode(scan), env=dict(env or {}), policy=policy, prepare=prepare, drafts=drafts,
                native=native, network=network,
            ),
            revision,
        )  # fmt: skip

    def open_with(self, name: str, options: OpenOptions, revision: RevisionLike | None = None) -> WorkspaceOpener:
        """As `open`, with the options as one value."""
        check_text(name)
        if revision is None:
            found = parse_address(name)
            if found.path is not None:
                raise RametError("invalid_argument", f"{name!r} names a path", "open NAME or NAME@REVISION")
            name, revision = found.name, found.revision
        return WorkspaceOpener(self.repository, name, revision, options)


def _commit_policy(commit: CommitPolicy | str, every: float | None) -> CommitPolicy:
    if isinstance(commit, CommitPolicy):
        return commit if every is None else replace(commit, every=every)
    return CommitPolicy(commit, every)  # type: ignore[arg-type]  # the value checks the word


class WorkspaceOpener:
    """The result of `Store.open`: `async with` it for the workspace."""

    def __init__(self, repository: Repository, name: str, revision: RevisionLike | None, options: OpenOptions) -> None:
        self._repository, self._name, self._revision, self._options = repository, name, revision, options
        self._ws: StoredWorkspace | None = None

    async def __aenter__(self) -> StoredWorkspace:
        repository, name = self._repository, self._name
        lease = None
        if self._revision is None and not self._options.readonly:
            await asyncio.to_thread(repository.require_safe_refs)
            lease = await self._acquire()
        try:
            recovered: list[Recovery] = []
            if lease is not None:
                lease, recovered = await asyncio.to_thread(self._recover, lease)
            self._ws = await asyncio.to_thread(self._hydrate, lease)
            self._ws.recovered = recovered
            mounts = {str(mount.prefix): mount.resource for mount in self._ws.mounts()}
            self._ws.restored.problems += await changed_pins(self._ws.base, mounts, repository.packs.read)
        except BaseException:
            if lease is not None:
                await asyncio.to_thread(repository.refs.release, name, lease)
            raise
        self._ws.start_background()
        return self._ws

    def _recover(self, lease: RefEntry) -> tuple[RefEntry, list[Recovery]]:
        lease, recovered = recover(self._repository, self._name, lease)
        if recovered:  # recovery may have taken long
            lease = self._repository.refs.renew(self._name, lease)
        return lease, recovered

    def _ends(self) -> tuple[Revision | None, Revision | None]:
        """Return the revision to open, and what has its sessions and history."""
        if self._revision is None:
            return self._repository.head_and_latest(self._name)
        found = self._repository.find(self._name, self._revision)
        return found, found

    def _hydrate(self, lease: RefEntry | None) -> StoredWorkspace:
        repository, name = self._repository, self._name
        while True:
            base, latest = self._ends()
            try:
                ws = self._with_programs(base, lease, latest)
                break
            except RametError as error:
                # A reader holds no lease: the head may have moved and been collected.
                fixed = lease is not None or self._revision is not None
                if fixed or error.code not in ("store_corrupt", "content_collected"):
                    raise
                if self._ends() == (base, latest):
                    raise
        if lease is not None:
            roots = {str(m.prefix): m.directory for m in ws.mounts() if m.directory is not None}
            trees = {str(m.prefix): m.tree.place.folder for m in ws.mounts(scratch=True) if m.tree is not None}
            for folder in map(box_of, trees.values()):
                keep_layout(folder)
            ws.binding = bind(repository, name, lease, roots, self._options.ignore_rules, trees)
            ws.keeps_trees = bool(trees)
        return ws

    def _with_programs(self, base: Revision | None, lease: RefEntry | None, latest: Revision | None) -> StoredWorkspace:
        """Hydrate, with the real programs that the options or the workspace ask for."""
        repository, name, options = self._repository, self._name, self._options
        remembered = None
        if options.native is True or (options.native is None and not options.readonly):
            remembered = repository.native_options.of(name)
        elif isinstance(options.native, Native) and options.native.image is None:
            image = (repository.native_options.of(name) or {}).get("image")
            options = replace(options, native=replace(options.native, image=image))
        if remembered is None:
            return StoredWorkspace.hydrate(repository, name, base, lease, options, latest)
        wanted = replace(options, native=as_native(remembered))
        try:
            return StoredWorkspace.hydrate(repository, name, base, lease, wanted, latest)
        except RametError as error:
            if error.code != "native_unavailable" or options.native is True:
                raise
            ws = StoredWorkspace.hydrate(repository, name, base, lease, options, latest)
            ws.native_problem = f"{error.cause}. {error.remediation}"
            ws.restored.problems.append(f"real programs are off: {error.cause}")
            return ws

    async def _acquire(self) -> RefEntry:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.wait
        holder = holder_name()
        while True:
            try:
                return await asyncio.to_thread(self._repository.acquire, self._name, holder)
            except RametError as error:
                if error.code != "workspace_busy" or loop.time() >= deadline:
                    raise
            await asyncio.sleep(0.05)

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        assert self._ws is not None
        await self._ws.finish(None if kind is None else kind.__name__)
