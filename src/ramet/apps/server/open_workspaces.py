"""`OpenWorkspaces`: the workspaces that a server holds open, and when they are committed.

Rules that this file keeps:
- The first request opens a stored workspace. The server holds its lease until the workspace is idle or removed, or the
  server stops. Verbs that move its head (revert, merge, import) get it exclusively: committed, closed, no requests.
- All commits of a workspace go through its `Committer`: concurrent requests share one revision.
- A workspace whose lease was lost is dropped at once: the new writer decides its content.
- A sandbox is in the table of open workspaces under its own name. It commits one revision, at its end; if that commit
  fails, the sandbox continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, TypeVar, cast

from ramet.apps.server.events import Events
from ramet.apps.server.models import CreateSandbox
from ramet.apps.server.settings import ServerSettings
from ramet.core.errors import RametError
from ramet.native.options import Native, as_native
from ramet.network.exchange import NetworkRecord
from ramet.network.network import Network
from ramet.store.model.revisions import Revision
from ramet.store.refs.grants import TRUSTED, acting_for
from ramet.store.refs.refs import NAME, not_found
from ramet.workspace.agent.sandbox import AgentRun, Outputs, Sandbox
from ramet.workspace.config import Config
from ramet.workspace.config.attachment import attached
from ramet.workspace.stored.git_push import GitSettings
from ramet.workspace.stored.store import OpenOptions, Store, StoredWorkspace, WorkspaceOpener
from ramet.workspace.workspace import Settings, Workspace

T = TypeVar("T")
LOST: Final = frozenset({"lease_lost", "head_moved", "workspace_not_found"})
THREADS: Final = 8
LISTENING_SECONDS: Final = 600.0
"""Seconds after its last use until a workspace is closed in which a program listens."""
ENDED: Final = 1000
"""Number of ended sandboxes to remember."""


class OpenWorkspace:
    """One open workspace and its state in the server."""

    owner: str | None = None
    """Of a workspace in memory or a sandbox, the principal that made it: others do not see it."""

    def __init__(self, name: str, ws: Workspace, opening: WorkspaceOpener | None, events: Events) -> None:
        self.name, self.ws, self.opening = name, ws, opening
        self.users = 0
        self.reached = 0
        """Connections to its programs; it is not idle while there are any, but verbs that close it do not wait."""
        self.used = time.monotonic()
        self.broken = False
        self.nonce = secrets.token_hex(4)
        """Part of ETags, so that file versions of different server runs differ."""
        self.jobs: dict[str, Any] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self.committer = Committer(self, events) if isinstance(ws, StoredWorkspace) and ws.lease else None
        if ws.door is not None:
            ws.door.watch = lambda request: self._requested(events, request)

    def _requested(self, events: Events, request: NetworkRecord) -> None:
        """Tell clients of a request to the network, when it has ended; its record has the rest."""
        kind = "network.request" if request.verdict == "allow" else "network.refused"
        names = ("client", "method", "scheme", "host", "port", "path", "rule", "status")
        more = {name: getattr(request, name) for name in names}
        events.add(kind, self.name, session=request.session_id, agent=request.agent_id, **more)

    def ask_clients(self, events: Events, seconds: float) -> None:
        """Let clients answer the questions of the policy."""
        policy = self.ws.policy
        if policy is not None:
            policy.interactive, policy.patience = True, seconds
            policy.watch = lambda what, question: events.add(f"question.{what}", self.name, number=question.number)

    @property
    def kind(self) -> Literal["stored", "memory", "sandbox"]:
        return "memory" if self.opening is None else "stored"

    def late(self, idle: float) -> bool:
        """Return whether it has been idle long enough to close; a program that listens gets longer."""
        if self.kind != "stored" or self.users or self.reached or self.used >= time.monotonic() - idle:
            return False
        return self.used < time.monotonic() - LISTENING_SECONDS or not self.ws.ports()

    def enter(self) -> None:
        self.users += 1
        self.idle.clear()

    def unreach(self) -> None:
        self.reached -= 1
        self.used = time.monotonic()

    def leave(self) -> None:
        self.users -= 1
        if not self.users:
            self.used = time.monotonic()
            self.idle.set()


class OpenSandbox(OpenWorkspace):
    """A sandbox, while it runs and after its end."""

    def __init__(
        self, sandbox: Sandbox, ws: Workspace, events: Events, asked: CreateSandbox, owner: str | None
    ) -> None:
        super().__init__(sandbox.name, ws, None, events)
        self.owner = owner
        self.committer = None  # only its end commits
        self.sandbox, self.asked = sandbox, asked
        self.created_at, self.ended_at = time.time(), cast("float | None", None)
        self._began = time.monotonic()

    @property
    def kind(self) -> Literal["stored", "memory", "sandbox"]:
        return "sandbox"

    def late(self, idle: float) -> bool:
        """Return whether to end it; never while a command runs."""
        lifetime, own, now = self.asked.lifetime_seconds, self.asked.idle_seconds, time.monotonic()
        over = lifetime is not None and self._began < now - lifetime
        return not self.users and (over or (not self.reached and self.used < now - (idle if own is None else own)))


class Committer:
    """Groups commits: requests that arrive during a commit share the next one."""

    def __init__(self, hosted: OpenWorkspace, events: Events) -> None:
        self._hosted, self._events = hosted, events
        self._next: asyncio.Future[Revision] | None = None
        self.asked: dict[str, Any] = {}
        self._messages: list[str] = []
        self._subjects: list[str] = []
        self._task: asyncio.Task[None] | None = None
        self.keys: dict[str, None] = {}
        """Nonces of requests with an idempotency key whose effect may be in the next revision."""

    async def commit(self, message: str = "", *, subject: str = "", **asked: str) -> Revision:
        """Return when all changes made before the call are durable.

        `message` is what a caller said, and is never dropped; `subject` describes a change that has no message.
        """
        if message and message not in self._messages:
            self._messages.append(message)
        if subject and len(self._subjects) < 20:
            self._subjects.append(subject)
        self.asked.update({name: value for name, value in asked.items() if value})
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        waiting = self._next
        if self._task is None or self._task.done():
            # Not as the principal that happens to ask first: it commits for all.
            self._task = asyncio.get_running_loop().create_task(self._work(), context=Context())
        return await asyncio.shield(waiting)

    async def _work(self) -> None:
        while self._next is not None:
            waiting, self._next = self._next, None
            messages, self._messages = self._messages, []
            subjects, self._subjects = self._subjects, []
            asked, self.asked = self.asked, {}
            keys = list(self.keys)
            ws = self._hosted.ws
            assert isinstance(ws, StoredWorkspace)
            before = ws.base
            try:
                if keys:
                    asked["trace_id"] = " ".join(filter(None, [asked.get("trace_id", ""), *keys]))
                revision = await ws.commit("\n".join(messages), subject=_subject(subjects), **asked)
            except BaseException as error:
                if isinstance(error, RametError) and error.code in LOST:
                    self._hosted.broken = True
                if not waiting.done():
                    waiting.set_exception(error)
                    waiting.exception()  # mark as retrieved, even if the waiter is gone
                if isinstance(error, asyncio.CancelledError):
                    raise
                continue
            if not waiting.done():
                waiting.set_result(revision)
            if before is None or revision.id != before.id:
                self._events.add("commit", self._hosted.name, revision=revision.name, id=revision.id.hex())

    async def settled(self) -> None:
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


def _subject(subjects: list[str]) -> str:
    if len(subjects) < 2:
        return subjects[0] if subjects else ""
    return f"{subjects[0]} (and {len(subjects) - 1} more)"


class _Turn:
    """The lock of a name, for opening a workspace or moving its head."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock, self.waiting = asyncio.Lock(), 0


class OpenWorkspaces:
    """The open workspaces of a server."""

    def __init__(self, store: Store | None, settings: ServerSettings, events: Events) -> None:
        self.store, self.settings, self.events = store, settings, events
        if store is not None:
            store.repository.limit_memory()
        self._open: dict[str, OpenWorkspace] = {}
        self._turns: dict[str, _Turn] = {}
        self._threads = ThreadPoolExecutor(THREADS, "ramet-store")
        self._sweeper: asyncio.Task[None] | None = None
        self.stopping = asyncio.Event()
        self.sandboxes: dict[str, OpenSandbox] = {}
        """Running sandboxes and the most recently ended ones, so that a repeated terminate gets the same result."""

    async def blocking(self, work: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Run a blocking call of the store in a thread."""
        loop = asyncio.get_running_loop()
        context = copy_context()  # who the request is for holds in the thread too
        return await loop.run_in_executor(self._threads, lambda: context.run(work, *arguments, **options))

    def need_store(self) -> Store:
        if self.store is None:
            raise RametError("unsupported", "this server has no store", "start it with --store, or use memory")
        return self.store

    # --------------------------------------------------------------------------------------------- using

    async def enter(self, name: str) -> OpenWorkspace:
        """Open the workspace if needed and count the caller as a user; `leave` must follow."""
        hosted = self._open.get(name)
        if hosted is not None and not hosted.broken and name not in self._turns:
            hosted.enter()
            return hosted
        async with self._alone(name):
            hosted = self._open.get(name)
            if hosted is not None and hosted.broken:
                await self._drop(hosted)
                hosted = None
            if hosted is None:
                with acting_for(TRUSTED):  # it is open for all who may use it, and outlives this request
                    hosted = await self._open_stored(name)
            hosted.enter()
            return hosted

    async def _open_stored(self, name: str) -> OpenWorkspace:
        if not NAME.fullmatch(name):
            raise not_found(name)
        store, config = self.store, await self._config_of(name)
        own = self._config(name)
        described = own is not None and own.name == name  # the first request creates it
        if store is None or not (described or await self.blocking(store.__contains__, name)):
            raise not_found(name)
        self._check_room()
        timer = self.settings.durable == "timer"
        options: dict[str, Any] = {
            "settings": self._workspace_settings(config), "wait": self.settings.wait,
            "commit": "timer" if timer else "close", "every": self.settings.every if timer else None,
            "network": self._network(config),
        }  # fmt: skip
        options.update(await self.blocking(self._native_options, name, config))
        if config is not None:
            opening = await self.blocking(config.open, store, name, **options)
        else:
            mounts, resources = self._server_mounts(name)
            opening = store.open(name, mounts=mounts, resources=resources, **options)
        ws = await opening.__aenter__()
        ws.stream_uploads()
        hosted = self._open[name] = OpenWorkspace(name, ws, opening, self.events)
        hosted.ask_clients(self.events, self.settings.answer_seconds)
        return hosted

    @contextlib.asynccontextmanager
    async def past(self, name: str, revision: str) -> AsyncIterator[OpenWorkspace]:
        """Open a revision for one caller; its changes are private and discarded afterwards.

        It has only content from the store; remote mounts are left out. Current mounts do not replace past ones: a
        command on a past revision must not reach live data.
        """
        if not NAME.fullmatch(name):
            raise not_found(name)
        options = OpenOptions(readonly=True, settings=self._workspace_settings(), skip_remote=True)
        opening = self.need_store().open_with(name, options, revision)
        async with opening as ws:
            hosted = OpenWorkspace(name, ws, opening, self.events)
            hosted.enter()
            yield hosted

    def _config(self, name: str) -> Config | None:
        return self.settings.configs.get(name) or self.settings.configs.get("*")

    async def _config_of(self, name: str) -> Config | None:
        """The configuration that the server has for a workspace, else the one that the workspace was made with."""
        own = self._config(name)
        if own is not None or self.store is None:
            return own
        found = await self.blocking(attached, self.store, name)
        return None if found is None else await self.blocking(lambda: found.config)

    def _network(self, config: Config | None) -> Network | None:
        """What the commands of a workspace may reach: what its configuration says, else what the server says."""
        own = None if config is None else config.network
        return own if own is not None else self.settings.network

    def native(self, name: str) -> Native | None:
        """What real programs of a workspace may use on this server; None where they do not run."""
        config = self._config(name)
        own = None if config is None else config.native
        return own if own is not None else as_native(self.settings.native)

    async def runs_native(self, name: str) -> bool:
        """Whether commands of a workspace may run real programs here, without opening it."""
        hosted = self._open.get(name)
        if hosted is not None:
            return hosted.ws.programs is not None
        if self.native(name) is None or self.store is None:
            return False
        config = await self._config_of(name)
        if config is not None and config.native is not None:
            return True
        return await self.blocking(self.store.repository.native_options.of, name) is not None

    def _native_options(self, name: str, config: Config | None) -> dict[str, Any]:
        """The option of `Store.open`: what its configuration says, lowered to what was asked for at its creation."""
        if self.native(name) is None:
            return {"native": False}
        if config is None or config.native is None or self.store is None:
            return {}
        asked = self.store.repository.native_options.of(name)
        return {} if asked is None else {"native": config.native.lowered(asked)}

    def _server_mounts(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the server's mounts for a workspace, and resources for mounts saved without content."""
        given = {**self.settings.mounts.get("*", {}), **self.settings.mounts.get(name, {})}
        resources: dict[str, Any] = {
            **self.settings.resources.get("*", {}), **self.settings.resources.get(name, {}),
        }  # fmt: skip
        return given, resources

    def _workspace_settings(self, config: Config | None = None) -> Settings:
        said = Settings() if config is None else config.workspace_settings
        bound = min(self.settings.bounds.output_bytes, said.limits.output_bytes)
        return replace(said, limits=replace(said.limits, output_bytes=bound))

    def _check_room(self) -> None:
        if len(self._open) >= self.settings.bounds.workspaces:
            raise RametError(
                "limit_exceeded", f"{len(self._open)} workspaces are open", "close one, or raise the server's limit"
            )

    @contextlib.asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """Hold the lock of a name: other callers wait in order."""
        turn = self._turns.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            try:
                await asyncio.wait_for(turn.lock.acquire(), self.settings.wait)
            except TimeoutError:
                raise busy(name) from None
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[name]

    @contextlib.asynccontextmanager
    async def alone(self, name: str, *, forget: bool = False) -> AsyncIterator[None]:
        """Get a workspace exclusively, for verbs that move its head: committed, closed, lease released, no requests.

        A workspace without a store has no head, and closing it loses its files: that needs `forget`.
        """
        async with self._alone(name):
            hosted = self._open.get(name)
            if hosted is not None and hosted.kind != "stored" and not forget:
                raise RametError("unsupported", f"{name!r} has no revisions", "use a stored workspace")
            if hosted is not None:
                await self._empty(hosted)
                await self._drop(hosted)
            yield

    async def _empty(self, hosted: OpenWorkspace) -> None:
        try:
            await asyncio.wait_for(hosted.idle.wait(), self.settings.wait)
        except TimeoutError:
            raise busy(hosted.name) from None

    async def _drop(self, hosted: OpenWorkspace) -> None:
        if isinstance(hosted, OpenSandbox):
            await self._dehydrate(hosted, Outputs())
            return
        if self._open.get(hosted.name) is hosted:
            del self._open[hosted.name]
        if hosted.committer is not None:
            await hosted.committer.settled()
        if isinstance(hosted.ws, StoredWorkspace):
            try:
                await hosted.ws.finish()
            except RametError as error:
                if not (hosted.broken or error.code in LOST):
                    raise
        else:
            await hosted.ws.close()

    # ----------------------------------------------------------------------------------------- the table

    def find(self, name: str) -> OpenWorkspace | None:
        return self._open.get(name)

    def opened(self) -> list[OpenWorkspace]:
        return list(self._open.values())

    def memory(self) -> list[OpenWorkspace]:
        return [hosted for hosted in self._open.values() if hosted.kind == "memory"]

    def has(self, name: str) -> bool:
        """Whether a name needs no look into the store: it is open, or described."""
        config = self._config(name)
        return name in self._open or (config is not None and config.name == name)

    async def add_memory(
        self, name: str, ws: Workspace | None = None, owner: str | None = None, *, native: Native | None = None
    ) -> OpenWorkspace:
        """Add a workspace without a store."""
        async with self._alone(name):
            if name in self._open or (self.store is not None and await self.blocking(self.store.__contains__, name)):
                raise RametError("workspace_exists", f"workspace {name!r} exists already", "use it, or take another")
            self._check_room()
            config = self._config(name)
            if ws is None and config is not None:
                ws = await self.blocking(partial(config.workspace, native=native, network=self._network(config)))
            if ws is None:
                given = {**self.settings.mounts.get("*", {}), **self.settings.mounts.get(name, {})}
                ws = Workspace(given, settings=self._workspace_settings(), native=native, network=self.settings.network)
            hosted = self._open[name] = OpenWorkspace(name, ws, None, self.events)
            hosted.ask_clients(self.events, self.settings.answer_seconds)
            hosted.owner = owner
            return hosted

    async def remove(self, name: str) -> None:
        """Close and remove a workspace; revisions of a stored one stay until gc deletes them."""
        hosted = self._open.get(name)
        if isinstance(hosted, OpenSandbox):
            raise RametError("unsupported", f"{name!r} is a sandbox", "terminate it")
        async with self.alone(name, forget=True):
            if hosted is None or hosted.kind == "stored":
                await self.blocking(self.need_store().rm, name)

    # ------------------------------------------------------------------------------------------ sandboxes

    def sandbox(self, name: str, *, ended: bool = False) -> OpenSandbox | None:
        """Find a running sandbox, or with `ended` also an ended one, whose name may be in use again."""
        found = self.sandboxes.get(name)
        return found if found is not None and (ended or found.ended_at is None) else None

    async def add_sandbox(self, asked: CreateSandbox, owner: str | None) -> OpenSandbox:
        """Start a sandbox on the head of its workspace, which this server closes first."""
        bound, store = asked.workspace, self.store
        if bound is not None and not await self.blocking(self.need_store().__contains__, bound):
            raise not_found(bound)
        sandbox = AgentRun(store=cast("Store", store)).sandbox(
            asked.image or None, workspace=bound, ready=False, name=asked.name, env=asked.env,
            from_revision=asked.from_revision, wait=asked.wait_seconds, secrets=asked.secrets,
            git=git_settings(asked), git_secrets=asked.git_secrets,
        )  # fmt: skip
        name = sandbox.name
        config = await self._config_of(bound or name)
        mounts, resources = self._server_mounts(bound or name)

        def opens(name: str, **options: Any) -> WorkspaceOpener:
            options["settings"], options["network"] = self._workspace_settings(config), self._network(config)
            options.update(self._native_options(bound or name, config))
            if config is None:
                return self.need_store().open(name, mounts=mounts, resources=resources, **options)
            return config.open(store, name, **{**options, "secrets": {**config.secrets, **options["secrets"]}})

        def unbound(**options: Any) -> Workspace:
            if config is None:
                return Workspace(mounts, settings=self._workspace_settings(), network=self.settings.network, **options)
            return replace(config, secrets={**config.secrets, **options["secrets"]}).workspace(
                network=self._network(config)
            )

        async with self._alone(name):
            if name in self._open or (store is not None and await self.blocking(store.__contains__, name)):
                raise RametError("already_exists", f"{name!r} exists already", "use another name, or none")
            self._check_room()
            async with self.alone(bound) if bound is not None else contextlib.nullcontext():
                ws = await sandbox.hydrate(opens, unbound)
            if isinstance(ws, StoredWorkspace):
                ws.stream_uploads()
            made = OpenSandbox(sandbox, ws, self.events, asked, owner)
            made.ask_clients(self.events, self.settings.answer_seconds)
            self._open[name] = self.sandboxes[name] = made
        ended = [old for old in self.sandboxes.values() if old.ended_at is not None]
        for old in ended[: max(0, len(ended) - ENDED)]:
            del self.sandboxes[old.name]
        return made

    async def end_sandbox(self, hosted: OpenSandbox, wanted: Outputs) -> None:
        """End a sandbox once and commit its revision; wait for running commands, stop detached ones."""
        async with self._alone(hosted.name):
            if hosted.ended_at is None:
                await _stop_jobs(hosted)
                await self._empty(hosted)
                await self._dehydrate(hosted, wanted)

    async def _dehydrate(self, hosted: OpenSandbox, wanted: Outputs) -> None:
        sandbox = hosted.sandbox
        try:
            sandbox.revision = await sandbox.dehydrate(wanted)
        except RametError as error:
            if not hosted.ws.closed and error.code not in LOST:
                raise  # nothing was committed: the sandbox continues
            if isinstance(hosted.ws, StoredWorkspace) and hosted.ws.closed:
                sandbox.revision = hosted.ws.base  # committed; a later step failed
            self._forget(hosted)
            raise
        self._forget(hosted)

    def _forget(self, hosted: OpenSandbox) -> None:
        hosted.ended_at = time.time()
        if self._open.get(hosted.name) is hosted:
            del self._open[hosted.name]

    # ------------------------------------------------------------------------------------------ lifecycle

    def start(self) -> None:
        self._sweeper = asyncio.ensure_future(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, max(self.settings.idle / 4, 0.05)))
            for hosted in list(self._open.values()):
                if hosted.late(self.settings.idle) and hosted.name not in self._turns:
                    try:
                        if isinstance(hosted, OpenSandbox):
                            await self.end_sandbox(hosted, Outputs())
                            continue
                        async with self.alone(hosted.name):
                            self.events.add("closed", hosted.name)
                    except (RametError, OSError):
                        # The next request opens it again and gets the error; a sandbox is retried.
                        hosted.broken = not isinstance(hosted, OpenSandbox)

    async def close(self) -> list[BaseException]:
        """Stop jobs, commit everything and release all leases; return the errors."""
        self.stopping.set()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        failed: list[BaseException] = []
        for hosted in list(self._open.values()):
            await _stop_jobs(hosted)
            try:
                await self._drop(hosted)
            except (RametError, OSError, ValueError) as error:
                failed.append(error)
        self._threads.shutdown(wait=True)
        return failed


async def _stop_jobs(hosted: OpenWorkspace) -> None:
    """Stop all detached commands."""
    tasks = [job.task for job in hosted.jobs.values()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def git_settings(asked: CreateSandbox) -> GitSettings:
    """Return the git settings of a sandbox request."""
    git = asked.git
    if git is None:
        return GitSettings()
    secret = None if git.secret is None else (git.secret[0], git.secret[1])
    return GitSettings(tuple(git.paths), git.remotes, git.username, secret)


def busy(name: str) -> RametError:
    return RametError("workspace_busy", f"workspace {name!r} is in use", "try again when its commands have ended")
