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
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ramet.backends.disk import DiskResource
from ramet.backends.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.core.resource import Resource
from ramet.store.checking import Report
from ramet.store.commit import Committed, commit_ram
from ramet.store.diff import Difference, summary
from ramet.store.directory import commit_directory
from ramet.store.objects import Objects
from ramet.store.packs import PackWriter
from ramet.store.refs import TTL, Entry, holder_name
from ramet.store.repository import MergeResult, Repository, kernel_chunk
from ramet.store.revisions import MountState, Revision
from ramet.store.statcache import StatCache
from ramet.workspace.mounts import Mount, MountForm, as_mode
from ramet.workspace.saving import save_resource
from ramet.workspace.snapshot import Opened
from ramet.workspace.state import RestoreReport, apply_state_dict, to_state_dict
from ramet.workspace.tar import TarIndex
from ramet.workspace.workspace import Settings, Workspace


class Store:
    """Workspaces by name, at a path, in memory (`memory:`) or on an object store (`s3://bucket/prefix`)."""

    def __init__(self, where: str | Objects = "~/.ramet", **options: Any) -> None:
        self.repository = Repository(where, **options)

    def create(self, name: str) -> StoredWorkspaceRef:
        """A new, empty workspace."""
        self.repository.create(name)
        return StoredWorkspaceRef(self.repository, name)

    def ls(self) -> list[str]:
        return self.repository.ls()

    def rm(self, name: str) -> None:
        self.repository.rm(name)

    def __getitem__(self, name: str) -> StoredWorkspaceRef:
        self.repository.refs.last(name)
        return StoredWorkspaceRef(self.repository, name)

    def __contains__(self, name: object) -> bool:
        return name in self.ls()

    def verify(self) -> Report:
        return self.repository.verify()

    def open(
        self,
        name: str,
        revision: str | None = None,
        *,
        readonly: bool = False,
        resources: Mapping[str, Resource] | None = None,
        mounts: Mapping[str, MountForm] | None = None,
        secrets: Mapping[str, str] | None = None,
        settings: Settings | None = None,
        wait: float = 0.0,
    ) -> Opening:
        """A live workspace on the head (or on a past revision, read-only). Use it with `async with`.

        `mounts` adds mounts that the workspace does not have yet; `resources` stands in for those that were saved
        without credentials. `wait` is how many seconds to wait while another writer holds the workspace.
        """
        options: dict[str, Any] = {"resources": resources or {}, "mounts": mounts or {}}
        options.update(secrets=secrets, settings=settings)
        return Opening(self.repository, name, revision, readonly or revision is not None, wait, options)


class StoredWorkspaceRef:
    """A workspace of a store, without opening it: its history and what can be done with it."""

    def __init__(self, repository: Repository, name: str) -> None:
        self._repository, self.name = repository, name

    def __repr__(self) -> str:
        return f"<stored workspace {self.name}>"

    @property
    def head(self) -> Revision | None:
        return self._repository.head(self.name)

    def log(self) -> list[Revision]:
        """Newest first."""
        return self._repository.log(self.name)

    def show(self, path: str, revision: str | None = None) -> Iterator[bytes]:
        """The content of a file of a revision."""
        return self._repository.read_file(self._repository.find(self.name, revision), str(parse(path)))

    def diff(self, revision: str | None = None, against: str | None = None) -> list[Difference]:
        """What a revision changed: against its parent, or against any other one."""
        found = self._repository.find(self.name, revision)
        if against is not None:
            return self._repository.diff(self._repository.find(self.name, against), found)
        before = self._repository.read_revision(found.parents[0]) if found.parents else None
        return self._repository.diff(before, found)

    def fork(self, revision: str | None, new_name: str) -> Revision:
        return self._repository.fork(self.name, revision, new_name)

    def revert(self, revision: str, message: str = "", paths: list[str] | None = None) -> Revision:
        """A new tip with the content of a past revision: all of it, or only these paths."""
        if paths:
            return self._repository.revert_paths(self.name, revision, [str(parse(path)) for path in paths])
        return self._repository.revert(self.name, revision, message)

    def merge(self, other: str, message: str = "") -> MergeResult:
        """Bring another workspace's head into this one. Conflicts come back as data and change nothing."""
        return self._repository.merge(self.name, other, message)

    def checkout(self, target: str, revision: str | None = None, prefix: str = "/") -> Any:
        return self._repository.checkout(self._repository.find(self.name, revision), prefix, target)


class Opening:
    """What `Store.open` gives: `async with` it for the workspace."""

    def __init__(
        self,
        repository: Repository,
        name: str,
        revision: str | None,
        readonly: bool,
        wait: float,
        options: dict[str, Any],
    ) -> None:
        self._repository, self._name, self._revision, self._readonly = repository, name, revision, readonly
        self._wait, self._options = wait, options
        self._ws: StoredWorkspace | None = None

    async def __aenter__(self) -> StoredWorkspace:
        lease = None
        if not self._readonly:
            self._repository.prove()
            lease = await self._acquire()
        base = (
            self._repository.find(self._name, self._revision) if self._revision else self._repository.head(self._name)
        )
        try:
            self._ws = StoredWorkspace.hydrated(self._repository, self._name, base, lease, **self._options)
        except BaseException:
            if lease is not None:
                self._repository.refs.release(self._name, lease)
            raise
        self._ws.keep_lease()
        return self._ws

    async def _acquire(self) -> Entry:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait
        holder = holder_name()
        while True:
            try:
                return self._repository.refs.acquire(self._name, holder)
            except RametError as error:
                if error.code != "workspace_busy" or loop.time() >= deadline:
                    raise
            await asyncio.sleep(0.05)

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        assert self._ws is not None
        await self._ws.finish()


class StoredWorkspace(Workspace):
    """A workspace whose state is committed to a store. `commit()` makes a revision; leaving `async with` does too."""

    repository: Repository
    name: str
    base: Revision | None
    lease: Entry | None

    @classmethod
    def hydrated(
        cls,
        repository: Repository,
        name: str,
        base: Revision | None,
        lease: Entry | None,
        *,
        resources: Mapping[str, Resource],
        mounts: Mapping[str, MountForm],
        secrets: Mapping[str, str] | None,
        settings: Settings | None,
    ) -> StoredWorkspace:
        forms: dict[str, MountForm] = dict(mounts)
        missing = []
        for state in base.mounts if base is not None else ():
            given = resources.get(state.prefix)
            if given is None and state.tree is None:
                missing.append(state.prefix)
                continue
            resource = given if given is not None else repository.lazy(state.tree)  # type: ignore[arg-type]
            if given is not None and isinstance(given, DiskResource) and state.tree is not None:
                repository.checkout(base, state.prefix, given.root)  # type: ignore[arg-type]
            forms[state.prefix] = Mount(parse(state.prefix), resource, as_mode(state.mode), scratch=state.scratch)
        if missing:
            raise RametError(
                "invalid_argument", f"no resource was given for {', '.join(missing)}",
                "pass resources={prefix: resource}: these mounts are saved without their content",
            )  # fmt: skip
        ws = cls(forms, secrets=secrets, settings=settings)
        ws.repository, ws.name, ws.base, ws.lease = repository, name, base, lease
        ws._stats = {}
        ws._keeper = None
        ws._kernel_of(base)
        return ws

    _stats: dict[str, StatCache]
    _keeper: asyncio.Task[None] | None

    def _kernel_of(self, base: Revision | None) -> None:
        if base is None or base.kernel is None:
            return
        manifest = json.loads(self.repository.packs.read(base.kernel))
        report = RestoreReport()
        apply_state_dict(self, Opened(manifest, TarIndex(io.BytesIO()), {}), report)
        self.restored = report

    # ---------------------------------------------------------------------------------------------- commit

    async def commit(
        self, message: str = "", *, author: str = "", agent: str = "", trace_id: str = "", diff: bool = True
    ) -> Revision:
        """Everything into one revision. Unchanged content and sessions commit to the revision that is there."""
        if self.lease is None:
            raise RametError("permission_denied", "this workspace was opened read-only", "open it without a revision")
        await self.sync()
        kernel = self._kernel_state()
        forks = {
            str(m.prefix): m.resource.fork() for m in self.mounts(scratch=True) if isinstance(m.resource, RAMResource)
        }
        states, chunk, settled = await asyncio.to_thread(self._write, forks, kernel)
        base = self.base
        if base is not None and base.content == tuple((s.prefix, s.tree) for s in states) and base.kernel == chunk:
            return base
        revision = Revision(
            workspace=self.name, seq=1 if base is None else base.seq + 1, parents=() if base is None else (base.id,),
            lineage="root" if base is None else f"fromClaim:{self.lease.holder.split('/')[0]}",
            mounts=tuple(states), kernel=chunk, author=author, agent=agent, time=self.settings.clock(),
            message=message, trace_id=trace_id,
        )  # fmt: skip
        if diff:
            revision = replace(revision, diff=summary(self.repository.diff(base, revision)))
        self.lease = self.repository.commit(self.name, self.lease, revision)
        for tree in settled:
            tree.settle()
        self.base = revision
        return revision

    def _kernel_state(self) -> bytes:
        state = to_state_dict(self, content=False)
        return json.dumps(state, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()

    def _write(self, forks: Mapping[str, RAMResource], kernel: bytes) -> tuple[list[MountState], Any, list[Committed]]:
        """Runs beside the event loop: memory mounts are forks that nobody changes, disks are read as they are."""
        writer: PackWriter = self.repository.writer()
        settled: list[Committed] = []
        states: list[MountState] = []
        try:
            states.extend(self._mount_state(mount, forks, writer, settled) for mount in self.mounts(scratch=True))
            chunk = kernel_chunk(writer, kernel)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return states, chunk, settled

    def _mount_state(
        self, mount: Mount, forks: Mapping[str, RAMResource], writer: PackWriter, settled: list[Committed]
    ) -> MountState:
        prefix, resource = str(mount.prefix), mount.resource
        if prefix in forks:
            done = commit_ram(forks[prefix], writer, self.repository)
            settled.append(done)
            return MountState(prefix, "ram", mount.mode.value, done.tree, scratch=mount.scratch)
        if isinstance(resource, DiskResource):
            if prefix not in self._stats:
                packs = self.repository.packs
                self._stats[prefix] = StatCache.kept(packs.local, resource.root, packs.packs())
            tree = commit_directory(resource.root, writer, self._stats[prefix])
            return MountState(prefix, "disk", mount.mode.value, tree, scratch=mount.scratch)
        plain = save_resource(resource, lambda _: None)
        return MountState(
            prefix, plain["type"], mount.mode.value, None, plain["config"], tuple(plain["redacted_fields"]),
            plain["needs_override"], mount.scratch,
        )  # fmt: skip

    # ----------------------------------------------------------------------------------------------- lease

    def keep_lease(self) -> None:
        """Renew the lease while the workspace is open."""
        if self.lease is not None:
            self._keeper = asyncio.create_task(self._renewing(asyncio.sleep))

    async def _renewing(self, sleep: Callable[[float], Any]) -> None:
        while True:
            await sleep(TTL / 3)
            if self.lease is not None:
                self.lease = self.repository.refs.renew(self.name, self.lease)

    async def finish(self) -> None:
        """Commit what is not committed, let the lease go, close. Doing it twice is fine."""
        if self.closed:
            return
        try:
            if self.lease is not None:
                await self.commit("on close")
        finally:
            if self._keeper is not None:
                self._keeper.cancel()
                await asyncio.gather(self._keeper, return_exceptions=True)
            if self.lease is not None:
                self.repository.refs.release(self.name, self.lease)
                self.lease = None
            await self.close()
