"""`StoredWorkspace`: a live workspace with a lease on a stored one; commits, drafts and background work."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, parse
from ramet.core.progress import Progress, silent
from ramet.native.lowers import StoredTrees
from ramet.store.checkout.walk import NodeFinder, content
from ramet.store.commit.kernel_state import (
    SEGMENT,
    Segments,
    encode_json,
    kernel_of,
    newest_kernel_of,
    read_segment,
    segments_of,
)
from ramet.store.model.ids import ChunkId
from ramet.store.model.revisions import RECORDS, MemoryImage, Revision
from ramet.store.model.trees import FILE, Node
from ramet.store.refs.leases import LEASE_SECONDS
from ramet.store.refs.refs import RECORD, RefEntry
from ramet.store.repository import Repository
from ramet.store.verbs.diff import DiffSummary
from ramet.workspace.call import Call
from ramet.workspace.execution import Execution
from ramet.workspace.mounts import Mount, MountForm, as_mode
from ramet.workspace.operations import Operation, OperationKeywords
from ramet.workspace.record.history import ExecutionRecord
from ramet.workspace.record.ledger import FILE_BYTES, Attribution, Ledger, Taken
from ramet.workspace.result import IOResult
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID
from ramet.workspace.snapshot.archive import SnapshotReader
from ramet.workspace.snapshot.state import RestoreReport, apply_state_dict, to_state_dict
from ramet.workspace.snapshot.tar import TarIndex
from ramet.workspace.stored.commit_policy import draft_interval
from ramet.workspace.stored.commit_writer import CommitInput, CommitRequest, CommitResult, CommitWriter, DirectoryCaches
from ramet.workspace.stored.kernel_trees import stored_trees, tree_checkout
from ramet.workspace.stored.open_options import OpenOptions
from ramet.workspace.stored.recovery import Binding, Recovery, remember_box, unbind
from ramet.workspace.stored.version_pins import pin_versions
from ramet.workspace.workspace import Branch, Workspace

if TYPE_CHECKING:
    from ramet.workspace.stored.drafts import Drafter
    from ramet.workspace.stored.file_patch import FilePatch

COMMIT_RETRIES: Final = 3
"""Retries of a commit after a collection removed what it had written."""
DRAFT: Final = "Draft"
"""Phase of a revision that an error interrupted."""
CLOCK_SECONDS: Final = 0.02
"""Longer than the kernel's clock for file times stands still."""
PASSING: Final = ("status", "pipe_status", "last_arg", "hashed")
"""Parts of a shell's state that every command changes."""
COMPACT_EVERY: Final = 256
"""Log entries between two compactions."""


class StoredWorkspace(Workspace):
    """A workspace that commits to a store. `commit()` makes a revision of changes; leaving `async with` does too."""

    repository: Repository
    name: str
    base: Revision | None
    lease: RefEntry | None
    options: OpenOptions

    @classmethod
    def hydrate(
        cls,
        repository: Repository,
        name: str,
        base: Revision | None,
        lease: RefEntry | None,
        options: OpenOptions,
        latest: Revision | None = None,
    ) -> StoredWorkspace:
        """Create a live workspace with the content of `base`; read-only without a lease.

        `latest` has the sessions and the history; by default those of `base`.
        """
        forms: dict[str, MountForm] = dict(options.mounts)
        missing = []
        for state in base.mounts if base is not None else ():
            if state.prefix in options.mounts:
                continue
            given = options.resources.get(state.prefix)
            if given is None and state.tree is None:
                missing.append(state.prefix)
                continue
            resource = given if given is not None else repository.lazy_tree(state.tree, name)  # type: ignore[arg-type]
            checkout = tree_checkout(repository, state.tree) if given is None and options.native else None
            mount = Mount(
                parse(state.prefix), resource, as_mode(state.mode), scratch=state.scratch, checkout=checkout
            )  # fmt: skip
            if mount.directory is not None and state.tree is not None:
                repository.checkout(base, state.prefix, mount.directory)  # type: ignore[arg-type]
            forms[state.prefix] = mount
        if missing and not (options.skip_remote and lease is None):
            raise RametError(
                "invalid_argument", f"no resource was given for {', '.join(missing)}",
                "pass resources={prefix: resource}: these mounts are saved without their content",
            )  # fmt: skip
        ws = cls(
            forms,
            env=options.env,
            secrets=options.secrets,
            policy=options.policy,
            settings=options.settings,
            native=options.native,
            network=options.network,
        )
        ws.repository, ws.name, ws.base, ws.lease, ws.options = repository, name, base, lease, options
        if ws.programs is not None:
            ws.programs.folds_at_commits = lease is not None
        ws._latest = base if latest is None else latest
        ws._directories, ws._segments = DirectoryCaches(), Segments()
        ws._tasks, ws.recovered, ws._gc_candidates = [], [], []
        ws._kernel_of(ws._latest)
        ws.restored.problems += [f"{prefix} is left out: its files are not in the store" for prefix in missing]
        ws._position = ws.history.next_number
        ws._watch_lines(base)
        ws._commit_lock = asyncio.Lock()
        for session in ws.sessions if options.env else ():
            session.adopt(options.env)
        if options.prepare is not None:
            options.prepare(ws)
        if base is None and lease is not None:
            ws._unused = ws._lasting_state()
        interval = draft_interval(options.drafts)
        if interval is not None and lease is not None:
            from ramet.workspace.stored.drafts import Drafter

            ws._drafter = Drafter(ws, interval)
        return ws

    _drafter: Drafter | None = None
    binding: Binding | None = None
    """The recorded directories of this process."""
    recovered: list[Recovery]
    """Revisions recovered from an earlier process that died without committing."""
    _directories: DirectoryCaches
    _segments: Segments
    _tasks: list[asyncio.Task[None]]
    _latest: Revision | None
    """What has the newest committed sessions and history: the base, or the records after it."""
    _position: int
    """The number of the first uncommitted command."""
    _commit_lock: asyncio.Lock
    _commands = 0
    _failure: BaseException | None = None
    """A failure of background work: the next call raises it."""

    def _watch_lines(self, base: Revision | None) -> None:
        """Begin to tell which record writes which line, and for whom."""
        self.recorder.principal = self.repository.actor
        if self.lease is None:
            return
        known = {state.prefix for state in base.mounts} - self.options.mounts.keys() if base is not None else set()
        self.recorder.ledger = ledger = Ledger(self._look_at, self.recorder.current)
        for mount in self.mounts(scratch=True):
            if str(mount.prefix) not in known and (mount.memory is not None or mount.tree is not None):
                ledger.mounted(mount.prefix)

    def _kernel_of(self, base: Revision | None) -> None:
        if base is None or base.kernel is None:
            return
        packs = self.repository.packs
        manifest = newest_kernel_of(packs, base)
        numbers = segments_of(base, manifest)
        if numbers is None:
            packs.prefetch(base.history)
            manifest = kernel_of(packs, base)
            self._segments.adopt(base, manifest["history"]["records"])
        else:
            # Loaded on demand: most sessions never read old commands.
            self._segments.know(numbers, base.history)
            if packs.remote:
                self.history.prefetch_older = partial(packs.prefetch, base.history)
            for number, segment in zip(numbers, base.history, strict=True):
                first = max(1, number * SEGMENT)
                self.history.add_lazy(first, (number + 1) * SEGMENT - 1, partial(self._older, segment))
        report = RestoreReport()
        apply_state_dict(self, SnapshotReader(manifest, TarIndex(io.BytesIO()), {}), report)
        self.restored = report

    def _older(self, segment: ChunkId) -> list[ExecutionRecord]:
        """Load a committed segment of the history."""
        return [ExecutionRecord.from_dict(plain) for plain in read_segment(self.repository.packs, segment)]

    # ---------------------------------------------------------------------------------------------- commit

    def _follow_up(self, call: Call, execution: Execution) -> Execution:
        """Commit after the call with `commit="command"`, before it ends."""
        self._raise_failure()
        if self.lease is None:
            return execution
        policy = self.options.commit
        if policy.when != "command":
            return (
                execution
                if self._drafter is None or self._drafter.every
                else execution.followed_by(self._draft_after_call)
            )

        async def commit(_: IOResult) -> None:
            self._commands += 1
            if self._commands >= policy.interval:
                await self.save(self.secrets.scrub_text(call.command.strip().partition("\n")[0][:72]))
            else:
                await self._draft_after_call(_)

        return execution.followed_by(commit)

    async def dispatch(
        self,
        op: Operation,
        path: str,
        *args: Any,
        session_id: str = DEFAULT_SESSION_ID,
        **options: Unpack[OperationKeywords],
    ) -> Any:
        """As `Workspace.dispatch`; with `drafts="each"` the change is durable when the call ends."""
        done = await super().dispatch(op, path, *args, session_id=session_id, **options)
        await self.acknowledge()
        return done

    async def _draft_after_call(self, _: IOResult) -> None:
        await self.acknowledge()

    async def acknowledge(self) -> None:
        """Wait until all changes so far survive this process, with `drafts="each"`."""
        if self._drafter is not None and not self._drafter.every:
            await self.draft()

    async def draft(self) -> None:
        """Make uncommitted changes durable without a revision; after a crash, the next open commits them.

        Does nothing without changes, or when the workspace was opened without drafts.
        """
        drafter = self._drafter
        if drafter is None or self.lease is None:
            return
        await self._vfs.flush()
        if drafter.changed():
            async with self._commit_lock:
                if self.lease is not None and drafter.changed():
                    await drafter.draft()

    async def commit(
        self,
        message: str = "",
        *,
        author: str = "",
        agent: str = "",
        trace_id: str = "",
        diff: bool = True,
        outputs: Collection[str] = (),
        progress: Progress = silent,
        noting: Callable[[Revision], None] | None = None,
        memory: MemoryImage | None = None,
        subject: str = "",
    ) -> Revision:
        """Commit everything as one revision. Without changes of files or mounts, returns the current one.

        Records of calls that changed nothing are durable without a revision. A `message` for which no revision is made
        becomes a note on the current one, in its `notes`; `subject` is the message where none is given, and is never
        noted.

        `outputs` narrows the revision to these paths and what is below them; the live workspace keeps everything.
        `progress` reports scanned files, from another thread. `noting` is called when everything is durable, just
        before the head moves, to record follow-up work. `memory` refers to an image of the processes, which makes the
        head resumable.
        """
        request = CommitRequest(
            message, author, agent, trace_id, diff, tuple(outputs), progress, noting, memory, subject
        )
        made = await self._commit_locked(request)
        assert made is not None
        return made

    async def save(self, subject: str = "", *, author: str = "", progress: Progress = silent) -> Revision | None:
        """Make everything durable: changes as a revision with this message, calls that changed nothing as records.

        Returns the head; None while the workspace is empty and has no revision.
        """
        unused = self.base is None and self._unused == self._lasting_state()
        return await self._commit_locked(
            CommitRequest(author=author, progress=progress, subject=subject, allow_none=unused)
        )

    async def propose(self, branch: Branch, name: str, message: str = "") -> Revision:
        """Keep what a branch changed as a new workspace: a fork of this one, to be reviewed and merged.

        What this workspace has not committed is committed first. The branch stays as it is.
        """
        from ramet.workspace.stored.proposal import propose_branch

        return await propose_branch(self, branch, name, message)

    async def unsaved(self, paths: Iterable[str] = ()) -> list[FilePatch]:
        """Return what the next commit would record, as a patch per changed path."""
        from ramet.workspace.stored.file_patch import UnsavedRevisions, file_patches

        async with self._commit_lock:
            if self.lease is None:
                why = "cannot compare a past state: it saves nothing"
                raise RametError("unsupported", why, "fork it, and open the fork")
            await self.sync()
            writer = CommitWriter(self, self._directories, self._segments)
            mounts = await asyncio.to_thread(writer.write_mounts, self._forks(()))
            base = self.base
            pins = {} if base is None else {mount.prefix: mount.pin for mount in base.mounts}
            mounts = tuple(replace(mount, pin=pins.get(mount.prefix)) for mount in mounts)
        chosen = tuple(str(parse(path)) for path in paths)

        def compare() -> list[FilePatch]:
            now = Revision(self.name, 0, () if base is None else (base.id,), "", mounts, time=self.settings.clock())
            return list(file_patches(UnsavedRevisions(self.repository, base, now), base, now, chosen))

        return await asyncio.to_thread(compare)

    def _lasting_state(self) -> dict[str, Any]:
        """Return the kernel state without records, and without what every command changes."""
        state = to_state_dict(self, content=False, history_from=self.history.next_number)
        sessions = [{**session, "last_exit_code": 0, "shell": {**session["shell"]}} for session in state["sessions"]]
        for session in sessions:
            for key in PASSING:
                session["shell"].pop(key, None)
        return {**state, "sessions": sessions, "created_at": 0}

    _unused: Mapping[str, Any] | None = None
    """The lasting state of a workspace that was opened without a revision."""

    async def _commit_locked(self, request: CommitRequest) -> Revision | None:
        self._raise_failure()
        async with self._commit_lock:
            if self.lease is None:
                raise RametError(
                    "permission_denied", "this workspace was opened read-only", "open it without a revision"
                )
            self._commands = 0
            await self.sync()
            failure: RametError | None = None
            for trust in (True, *[False] * COMMIT_RETRIES):
                stored = self._segments.stored()
                try:
                    return await self._commit(request, trust)
                except BaseException as error:
                    self._segments.restore(stored)
                    if not (isinstance(error, RametError) and await self._lost_to_gc(error)):
                        raise
                    failure = error
            assert failure is not None
            raise failure

    async def _lost_to_gc(self, error: RametError) -> bool:
        """Return whether a commit failed because of a collection; clears the caches it relied on."""
        if error.code not in ("content_collected", "store_corrupt"):
            return False
        self._directories.stats.clear()
        return (await asyncio.to_thread(self.repository.refresh_gc_state)).number > 0

    async def _commit(self, request: CommitRequest, trust: bool) -> Revision | None:
        ledger = self.recorder.ledger
        taken = Taken() if ledger is None else ledger.take()
        began = time.time_ns()
        try:
            made = await self._commit_taken(request, trust, taken)
        except BaseException:
            if ledger is not None:
                ledger.give_back(taken)
            raise
        if request.outputs and ledger is not None:
            ledger.mounted(ROOT)  # the revision has not everything that is here
        if self.programs is not None and made is not None:
            await asyncio.to_thread(self.programs.fold, stored_trees(made, began))
        return made

    async def _commit_taken(self, request: CommitRequest, trust: bool, taken: Taken) -> Revision | None:
        kernel, records, position = self._kernel_state(), self._new_records(), self.history.next_number
        segments, oldest = self._new_segments()
        forks = self._forks(request.outputs)
        pins = {
            str(m.prefix): await pin_versions(m.resource)
            for m in self.mounts(scratch=True)
            if self.options.pins.get(str(m.prefix)) == "versions"
        }
        writer = CommitWriter(self, self._directories, self._segments, request.progress, trust)
        written = await asyncio.to_thread(writer.write, CommitInput(forks, pins, kernel, segments, oldest))
        base, lease, noting = self.base, self.lease, request.noting
        assert lease is not None
        if written.changes_nothing(base, request):
            await asyncio.to_thread(self._commit_records, written)
            self._position = position
            if self._drafter is not None and not request.outputs:
                self._drafter.rebase(base, forks)
            if base is None:
                return None
            if noting is not None:
                await asyncio.to_thread(noting, base)
            return await asyncio.to_thread(self._noted, base, request)
        revision = Revision(
            workspace=self.name, seq=1 if base is None else base.seq + 1,
            parents=() if base is None else (base.id,),
            lineage=self._lineage(base),
            mounts=written.mounts, kernel=written.kernel, history=written.history, withheld=written.withheld,
            suspected=written.suspected, outputs=tuple(sorted(request.outputs)),
            author=request.author, agent=request.agent or _agent_of(records), time=self.settings.clock(),
            message=request.message or request.subject, trace_id=request.trace_id, memory=request.memory,
            phase=self._phase,
        )  # fmt: skip

        def publish() -> tuple[Revision, RefEntry]:
            changes = DiffSummary.of(self.repository.differences(base, revision) if request.diff or records else ())
            ops = operations_of(self, base, revision, records, taken)
            final = replace(revision, diff=changes.plain() if request.diff else None, ops=ops)
            if noting is not None:
                noting(final)
            return final, self.repository.commit(self.name, lease, final)

        made, self.lease = await asyncio.to_thread(publish)
        for tree in written.trees if not request.outputs else ():
            tree.settle()
        self.base, self._latest, self._position = made, made, position
        if self._drafter is not None:
            self._drafter.rebase(made, forks)
        if self.repository.gc_is_due_now(made) is not False or self.repository.needs_consolidation:
            self._gc_candidates.append(made)
            if self._gc_task is None or self._gc_task.done():
                self._gc_task = asyncio.create_task(self._collect())
        return made

    def _commit_records(self, written: CommitResult) -> None:
        """Store the sessions and the history of calls that changed nothing; runs in a thread."""
        base, lease = self.base, self.lease
        assert lease is not None
        if self._latest is not None and written.has_kernel_of(self._latest):
            return
        latest = Revision(
            workspace=self.name, seq=0 if base is None else base.seq, parents=() if base is None else (base.id,),
            lineage="", mounts=() if base is None else base.mounts, kernel=written.kernel, history=written.history,
            time=self.settings.clock(), phase=RECORDS,
        )  # fmt: skip
        self.lease = self.repository.commit(self.name, lease, latest, RECORD)
        self._latest = latest

    def _noted(self, base: Revision, request: CommitRequest) -> Revision:
        """Note the message of a commit that made no revision; runs in a thread."""
        if request.message in ("", base.message):
            return base
        return self.repository.note(self.name, base, request.message, request.author)

    _gc_task: asyncio.Task[None] | None = None
    _gc_candidates: list[Revision]
    """Commits that may trigger a collection."""

    async def _collect(self) -> None:
        """Collect after commits if that is due; only closing waits for it."""
        repository = self.repository

        def collect(made: list[Revision]) -> None:
            if any(repository.gc_is_due(revision) for revision in made):
                repository.new_instance().gc()
                repository.gc_log.now()  # apply its decisions here at once
            if repository.needs_consolidation:
                repository.consolidate_packs()

        try:
            while self._gc_candidates:
                made, self._gc_candidates = self._gc_candidates, []
                await asyncio.to_thread(collect, made)
        except RametError as error:
            self._failure = error  # the revision is durable; the next call reports the failed collection

    _stored: StoredTrees | None = None
    """The trees of the last commit before closing."""

    def _close_programs(self) -> None:
        assert self.programs is not None
        if self.keeps_trees:
            self.programs.end()
        else:
            self.programs.close(self._stored)

    _phase = "Committed"
    claim = ""
    """Name of the sandbox that uses this workspace, for its revisions."""

    def _lineage(self, base: Revision | None) -> str:
        if self.claim:
            return f"fromClaim:{self.claim}"
        assert self.lease is not None
        return "root" if base is None else f"fromClaim:{self.lease.holder.split('/')[0]}"

    def _forks(self, outputs: Collection[str]) -> dict[str, RAMResource]:
        """Fork the memory mounts, narrowed to the outputs if there are any."""
        wanted = [parse(path) for path in outputs]
        forks: dict[str, RAMResource] = {}
        for mount in self.mounts(scratch=True):
            if (memory := mount.memory) is not None:
                whole = not wanted or any(mount.prefix.under(path) for path in wanted)
                here = [path.below(mount.prefix) for path in wanted if path.under(mount.prefix)]
                forks[str(mount.prefix)] = memory.fork() if whole else memory.only(here)
            elif wanted and mount.directory is not None:
                raise RametError(
                    "invalid_output", f"{mount.prefix} is a directory on disk, which outputs cannot narrow",
                    "mount it read-only elsewhere, or commit without outputs",
                )  # fmt: skip
        return forks

    def _new_records(self) -> list[ExecutionRecord]:
        return self.history.after(self._position - 1)

    def _new_segments(self) -> tuple[dict[int, list[dict[str, Any]]], int]:
        """Return records of full, unstored segments by segment, and the number of the oldest record."""
        oldest = self.history.oldest
        new: dict[int, list[dict[str, Any]]] = {n: [] for n in self._segments.missing(oldest, self.history.next_number)}
        if new:
            for record in self.history.after(min(new) * SEGMENT - 1):
                if record.number // SEGMENT in new:
                    new[record.number // SEGMENT].append(record.as_dict())
        return new, oldest

    def _kernel_state(self, history_from: int | None = None) -> bytes:
        if history_from is None:
            history_from = self._segments.tail(self.history.next_number)
        state = to_state_dict(self, content=False, history_from=history_from)
        state["cache"]["manifest"] = [
            {"path": str(path), "fingerprint": entry.fingerprint, "bytes": len(entry.data)}
            for path, entry in sorted(self.cached_files.entries.items())
        ]
        return encode_json(state)

    # ----------------------------------------------------------------------------------------------- lease

    def start_background(self) -> None:
        """Start renewing the lease, and the timers of commits and drafts."""
        if self.lease is not None:
            self._compacted_at = self.lease.number // COMPACT_EVERY
            self._tasks.append(asyncio.create_task(self._in_background(self._renew_lease)))
            if self._drafter is not None and self._drafter.every:
                self._tasks.append(asyncio.create_task(self._in_background(self._draft_on_timer)))
            if self.options.commit.when == "timer":
                self._tasks.append(asyncio.create_task(self._in_background(self._commit_on_timer)))

    _compacted_at = 0

    async def _in_background(self, work: Callable[[Callable[[float], Any]], Coroutine[Any, Any, None]]) -> None:
        """Run background work; the next call raises its failure."""
        try:
            await work(asyncio.sleep)
        except (RametError, OSError, ValueError) as error:
            self._failure = error

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def _renew_lease(self, sleep: Callable[[float], Any]) -> None:
        while True:
            await sleep(LEASE_SECONDS / 3)
            if self.lease is not None:
                async with self._commit_lock:  # a commit changes the lease as well
                    self.lease = await asyncio.to_thread(self.repository.refs.renew, self.name, self.lease)
                await self._attempt(self.draft())  # changes of background jobs
                await self._attempt(self._compact_log())

    async def _compact_log(self) -> None:
        """Compact the log of the workspace from time to time."""
        if self.lease is not None and self.lease.number // COMPACT_EVERY > self._compacted_at:
            self._compacted_at = self.lease.number // COMPACT_EVERY
            await asyncio.to_thread(self.repository.refs.compact, self.name)

    async def _draft_on_timer(self, sleep: Callable[[float], Any]) -> None:
        assert self._drafter is not None
        while True:
            await sleep(self._drafter.every)
            await self._attempt(self.draft())

    async def _attempt(self, work: Coroutine[Any, Any, None]) -> None:
        """Run retried work; the next call raises its failure."""
        try:
            await work
        except (RametError, OSError) as error:
            self._failure = error

    async def _commit_on_timer(self, sleep: Callable[[float], Any]) -> None:
        while True:
            await sleep(self.options.commit.interval)
            await self.save("on a timer")

    def watch(self) -> None:
        """Watch the mounted directories, so that commits scan only changed ones. Needs the extra `watch`."""
        for mount in self.mounts():
            if mount.directory is not None:
                self._directories.watch(str(mount.prefix), mount.directory)

    def stream_uploads(self) -> None:
        """Stream large uploads to the store as they arrive, not through memory.

        Not with a secret scan, which must see content first.
        """
        from ramet.store.verbs.upload import UploadWriter

        if self.options.scan == "off":
            for mount in self.mounts(scratch=True):
                if mount.memory is not None:
                    mount.memory.keeper = UploadWriter(self.repository, self.name)

    async def remember_box(self, box: str) -> None:
        """Note the directory of a box that works on the directories of this workspace."""
        if self.binding is not None:
            self.binding = await asyncio.to_thread(remember_box, self.repository, self.binding, box)

    async def finish(self, error: str | None = None) -> None:
        """Commit remaining changes, release the lease, close. Idempotent.

        After an error, the commit is a draft: its phase is `Draft`, its message names the error, and `undo` removes it.
        """
        if self.closed:
            return
        try:
            if self.lease is not None and self.options.commit.on_close:
                self._phase = "Committed" if error is None else DRAFT
                if self.programs is not None:
                    await asyncio.sleep(CLOCK_SECONDS)  # what changes from here on has a later time
                began = time.time_ns()
                made = await self.save("on close" if error is None else f"draft: interrupted by {error}")
                self._stored = None if made is None else stored_trees(made, began)
            if self._gc_task is not None:
                await self._gc_task
            self._raise_failure()
            await asyncio.to_thread(unbind, self.repository, self.binding)
            self.keeps_trees = False
            if self._drafter is not None:
                await asyncio.to_thread(self._drafter.close)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for watcher in self._directories.watchers.values():
                await asyncio.to_thread(watcher.close)
            if self.lease is not None:
                await asyncio.to_thread(self.repository.refs.release, self.name, self.lease)
                await asyncio.to_thread(self.repository.packs.publish)
                await self._compact_log()
                self.lease = None
            await self.close()


def _agent_of(records: list[ExecutionRecord]) -> str:
    """Return the agent that made all changes, if there is only one and it has a name."""
    changing = [record for record in records if record.paths_written or record.paths_removed or record.paths_cut]
    agents = {record.agent_id for record in changing or records}
    return agents.pop() if len(agents) == 1 and agents != {DEFAULT_AGENT_ID} else ""


def operations_of(
    ws: StoredWorkspace, base: Revision | None, made: Revision, records: list[ExecutionRecord], taken: Taken
) -> dict[str, Any] | None:
    """Return the records of a revision, and which of them wrote which lines; runs in a thread."""
    if not records and not taken.files:
        return None
    read = ws.repository.packs.read
    nodes = NodeFinder(read)

    def node(revision: Revision | None, path: str) -> Node | None:
        found = None if revision is None else nodes.find(revision, path)
        return found if found is not None and found.kind == FILE else None

    def data(revision: Revision | None, path: str) -> bytes | None:
        found = node(revision, path)
        return None if found is None or found.size > FILE_BYTES else b"".join(content(read, found))

    def committed(path: str) -> tuple[tuple[int, int], bytes | None] | None:
        found = node(base, path)
        return None if found is None else ((found.mtime_ns, found.size), data(base, path))

    def on_disk(path: str) -> bool:
        mount = ws._mounts.get(ws._vfs.mount_of(Path(path)))
        return mount is not None and mount.directory is not None

    known = Attribution(
        had=lambda path: node(base, path) is not None,
        same=lambda path, content: data(base, path) == content,
        content=lambda path: data(made, path),
        committed=committed,
        on_disk=on_disk,
    )
    first = records[0].number if records else ws._position
    last = records[-1].number if records else ws._position - 1
    return {"first": first, "last": last, **known.plain(taken)}
