"""`AgentRun`: synchronous sandboxes bound to stored workspaces.

    run = AgentRun(namespace="team-a")
    ws = run.create_workspace("proj-x")
    sb = run.sandbox(workspace="proj-x")
    sb.files.write("/workspace/data.txt", "hello")
    sb.terminate(outputs=["/workspace", {"diff": True}])

- A sandbox starts with the head of its workspace at `/workspace`. Its end commits one revision: by `terminate`, by
  leaving `with`, by its lifetime or idle time, or with its process.
- A workspace has one sandbox at a time; another one waits, or fails with `workspace_busy`.
- Outputs narrow what is committed and never widen it.
"""

from __future__ import annotations

import asyncio
import atexit
import re
import signal
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Unpack

from ramet.backends.local.ram import RAMResource
from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.native.options import NativeForm
from ramet.network.network import Network
from ramet.store.model.revisions import MemoryImage, Revision
from ramet.workspace.agent.checkpoints import Checkpointer, unavailable_here, wake
from ramet.workspace.loop_thread import LoopThread
from ramet.workspace.result import IOResult
from ramet.workspace.session import DEFAULT_SESSION_ID
from ramet.workspace.stored.git_push import (
    GitSettings,
    Push,
    Pushed,
    Secrets,
    pending_pushes,
    plan_push,
    push_target,
    record_push,
    run_push,
)
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.store import Store, StoredWorkspace, home

if TYPE_CHECKING:
    from ramet.store.repository import StoreKeywords
    from ramet.workspace.stored.store import WorkspaceOpener
    from ramet.workspace.workspace import ExecuteKeywords, Workspace

HOME: Final = "/workspace"
Output = str | Mapping[str, Any]

_open: weakref.WeakSet[Sandbox] = weakref.WeakSet()


@dataclass(frozen=True)
class Outputs:
    """What `terminate` asks for: paths that narrow the revision, a recorded diff, pushes."""

    paths: tuple[str, ...] = ()
    diff: bool = False
    git: tuple[Mapping[str, Any], ...] = ()
    checkpoint: bool = False
    """Whether a process image is saved with the files."""


def parse_outputs(outputs: Iterable[Output] | None) -> Outputs:
    """Parse `"/workspace/dist"`, `{"path": ...}`, `{"diff": True}` and `{"git": ...}`; anything else is
    `invalid_output`."""
    paths: list[str] = []
    git: list[Mapping[str, Any]] = []
    diff = False
    for output in outputs or ():
        plain: Any = {"path": output} if isinstance(output, str) else output
        if not isinstance(plain, Mapping) or len(plain) != 1:
            raise _invalid(output)
        ((kind, value),) = plain.items()
        if kind == "path" and isinstance(value, str) and parse(value, parse(HOME)).under(parse(HOME)):
            paths.append(str(parse(value, parse(HOME))))
        elif kind == "diff" and isinstance(value, bool):
            diff = diff or value
        elif kind == "git" and isinstance(value, Mapping):
            git.append(value)
        else:
            raise _invalid(output)
    return Outputs(tuple(sorted(set(paths))), diff, tuple(git))


def _invalid(output: object) -> RametError:
    remedy = f'give a path below {HOME}, {{"path": ...}}, {{"diff": True}} or {{"git": {{"remote": ...}}}}'
    return RametError("invalid_output", f"{output!r} is not an output", remedy)


@dataclass(frozen=True)
class SandboxOptions:
    """How a sandbox starts and ends; the keyword arguments of `AgentRun.sandbox`."""

    image: str | None = None
    workspace: str | None = None
    from_revision: str | None = None
    wait: float = 0.0
    lifetime: float | None = None
    idle: float | None = None
    env: Mapping[str, str] | None = None
    secrets: Mapping[str, str] | None = None
    git: GitSettings = field(default_factory=GitSettings)
    git_secrets: Secrets = field(default_factory=dict)
    resume: bool = True
    drafts: str | float = "each"
    native: NativeForm | None = None
    network: Network | Mapping[str, Any] | None = None


def namespace_address(store: str, namespace: str) -> str:
    """Return the store address of a namespace: `default` is the store itself, others are stores below it."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", namespace):
        raise RametError("invalid_argument", f"invalid namespace {namespace!r}", "use letters, digits, . _ -")
    return store if namespace == "default" else f"{store.rstrip('/')}/namespaces/{namespace}"


class AgentRun:
    """Workspaces and sandboxes of one namespace: `default` is the store itself, others are stores below it."""

    def __init__(
        self,
        namespace: str = "default",
        *,
        store: str | Store | None = None,
        checkpointer: Checkpointer | None = None,
        principal: str | None = None,
        **options: Unpack[StoreKeywords],
    ) -> None:
        """Open the store of a namespace.

        `checkpointer` saves process images for `terminate(checkpoint=True)`, which fails without one. `options` are
        those of `Store` (`key`, `refs`, ...), when `store` is an address; the default is that of the command line
        (`$RAMET_HOME`, or `~/.ramet`).
        """
        self.namespace = namespace
        store = home() if store is None else store
        place = namespace_address(store if isinstance(store, str) else "", namespace)
        if isinstance(store, str):
            store = Store(place, principal=principal, **options)
        elif options or principal is not None:
            raise TypeError(f"cannot pass {', '.join(options) or 'principal'} with an open Store")
        self.store = store
        self.checkpointer = checkpointer

    def create_workspace(self, name: str, *, native: NativeForm = False) -> StoredWorkspaceRef:
        """Create an empty workspace; sandboxes of a `native` one run real programs."""
        return self.store.create(name, native=native)

    def workspace(self, name: str) -> StoredWorkspaceRef:
        return self.store[name]

    def sandbox(
        self,
        image: str | None = None,
        *,
        workspace: str | None = None,
        ready: bool = True,
        name: str | None = None,
        from_revision: str | None = None,
        wait: float = 0.0,
        lifetime: float | None = None,
        idle: float | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        git: GitSettings | None = None,
        git_secrets: Secrets | None = None,
        resume: bool = True,
        drafts: str | float = "each",
        native: NativeForm | None = None,
        network: Network | Mapping[str, Any] | None = None,
    ) -> Sandbox:
        """Create a sandbox, bound to a workspace if one is named; otherwise its files are lost when it ends.

        There is one kind of sandbox, so `image` is informational. `from_revision` first makes that revision the head.
        `lifetime` and `idle` are seconds after which it terminates. `git` says which paths a `{git: ...}` output
        pushes, and which of `git_secrets` (by name and key) it uses. A checkpointed head resumes for its own principal
        only; `resume=False` starts with its files. `drafts` is that of `Store.open`: changes of returned calls survive
        a kill. `native` turns real programs on or off; by default the workspace remembers how it was created. `network`
        says which hosts may be reached (`docs/network.md`), else none.
        """
        options = SandboxOptions(
            image, workspace, from_revision, wait, lifetime, idle, env, secrets, git or GitSettings(),
            git_secrets or {}, resume, drafts, native, Network.of(network),
        )  # fmt: skip
        made = Sandbox(self, name or f"sandbox-{uuid.uuid4().hex[:8]}", options)
        if ready:
            made.start()
        return made


class Sandbox:
    """A shell with a file tree at `/workspace`. Created by `AgentRun.sandbox`."""

    def __init__(self, run: AgentRun, name: str, options: SandboxOptions) -> None:
        self.name, self.workspace, self.image = name, options.workspace, options.image
        self.revision: Revision | None = None
        """The final revision; None before the end, and without a workspace."""
        self.failure: BaseException | None = None
        """Why an automatic end failed; `terminate` raises it."""
        self.files = Files(self)
        self._run, self._options = run, options
        self.pushed: list[Pushed] = []
        self.warnings: list[str] = []
        self._thread: LoopThread | None = None
        self._ws: Any = None
        self._opening: Any = None
        self._timer: Any = None
        self._ending = threading.Lock()
        self.phase = "Pending"

    def __repr__(self) -> str:
        return f"Sandbox({self.name!r}, workspace={self.workspace!r}, {self.phase})"

    def __enter__(self) -> Sandbox:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def start(self) -> Sandbox:
        """Start the sandbox. Does nothing when it runs; a terminated sandbox cannot start again."""
        if self.phase == "Ready":
            return self
        if self.phase == "Terminated":
            raise RametError("closed", f"{self.name} has ended", "create another sandbox")
        self._thread = LoopThread(self.name)
        try:
            self._thread.run(self.hydrate())
        except BaseException:
            self._thread.close()
            raise
        self.phase = "Ready"
        _open.add(self)
        _heed_sigterm()
        self._watch(self._options.lifetime)
        if self._options.lifetime is None:
            self._touch()
        return self

    async def hydrate(
        self, opens: Callable[..., WorkspaceOpener] | None = None, unbound: Callable[..., Workspace] | None = None
    ) -> Workspace:
        """Open the live workspace on the caller's event loop, for callers that use `dehydrate` instead of `start`.

        `opens` replaces `Store.open`; `unbound` creates the workspace of a sandbox without one.
        """
        from ramet.workspace.workspace import Workspace

        options = self._options
        more: dict[str, Any] = {} if options.native is None else {"native": options.native}
        if options.network is not None:
            more["network"] = options.network
        if self.workspace is None:
            self._ws = (unbound or Workspace)(env=options.env, secrets=options.secrets, **more)
        else:
            name = self.workspace
            ref = await asyncio.to_thread(lambda: self._run.store[name])
            if options.from_revision is not None:
                await asyncio.to_thread(ref.revert, options.from_revision)
            opening = (opens or self._run.store.open)(
                name, wait=options.wait, commit="never", secrets=options.secrets, drafts=options.drafts,
                **more,
            )  # fmt: skip
            ws = await opening.__aenter__()
            try:
                if options.resume:
                    await self._wake(ws)
            except BaseException:
                await opening.__aexit__(None, None, None)
                raise
            self._opening = opening
            ws.claim = self.name
            self._ws = ws
        if all(str(mount.prefix) != HOME for mount in self._ws.mounts()):
            self._ws.mount(HOME, RAMResource())
        session = self._ws.get_session()
        session.state.cwd = parse(HOME)
        for name, value in (options.env or {}).items():
            session.state.variables.set(name, value)
        live: Workspace = self._ws
        return live

    async def _wake(self, ws: StoredWorkspace) -> None:
        warning = await wake(ws.base, ws, self._run.checkpointer, self._principal)
        if warning is not None:
            self.warnings.append(warning)

    @property
    def _principal(self) -> str:
        return self._run.store.repository.principal or ""

    def exec(self, command: str | Sequence[str], **options: Unpack[ExecuteKeywords]) -> IOResult:
        """Run shell text, or an argv; options as for `Workspace.execute` (`cwd`, `env`, `timeout`, ...)."""
        import shlex

        text = command if isinstance(command, str) else shlex.join(command)

        async def act() -> IOResult:
            result: IOResult = await self._ws.execute(text, **options)
            return result

        done: IOResult = self._do(act())
        return done

    def _change(self, work: Any, summary: str) -> None:
        """Change files, as one record, and return when the change survives this process."""

        async def act() -> None:
            with self._ws.recording("write", summary, session_id=DEFAULT_SESSION_ID):
                await work
            if self._opening is not None:
                await self._ws.acknowledge()

        try:
            self._do(act())
        finally:
            work.close()

    def _do(self, work: Any) -> Any:
        if self._thread is None or self.phase != "Ready":
            work.close()
            raise RametError("closed", f"{self.name} is not running", "start it, or create another sandbox")
        try:
            return self._thread.run(work)
        finally:
            self._touch()

    # ------------------------------------------------------------------------------------------------- the end

    def _touch(self) -> None:
        if self._options.idle is not None and self.phase == "Ready":
            self._watch(self._options.idle)

    def _watch(self, seconds: float | None) -> None:
        if seconds is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _expire(self) -> None:
        try:
            self.terminate()
        except Exception as error:  # the next call reports it
            self.failure = error

    def terminate(self, outputs: Iterable[Output] | None = None, checkpoint: bool = False) -> Revision | None:
        """End the sandbox and commit its revision. Idempotent: a second call returns the same revision."""
        wanted = self.wanted(outputs, checkpoint)
        with self._ending:
            if self.failure is not None:
                failure, self.failure = self.failure, None
                raise failure
            if self.phase != "Ready" or self._thread is None:
                self.phase = "Terminated"
                return self.revision
            if self._timer is not None:
                self._timer.cancel()
            try:
                self.revision = self._thread.run(self.dehydrate(wanted))
            except RametError:
                if not self._ws.closed:
                    raise  # nothing was committed: the sandbox continues
                self.revision = self._ws.base
                self._mark_terminated()
                raise
            self._mark_terminated()
            return self.revision

    def wanted(self, outputs: Iterable[Output] | None, checkpoint: bool = False) -> Outputs:
        """Parse and check the outputs before anything ends."""
        if checkpoint and (self._run.checkpointer is None or self.workspace is None):
            raise unavailable_here()
        found = replace(parse_outputs(outputs), checkpoint=checkpoint)
        for output in found.git:
            push_target(output, self._options.git, self.name)
        return found

    def _mark_terminated(self) -> None:
        assert self._thread is not None
        self.phase = "Terminated"
        _open.discard(self)
        self._thread.close()

    async def dehydrate(self, wanted: Outputs) -> Revision | None:
        """Commit and close. When the commit fails, the sandbox continues."""
        if self._opening is None:
            await self._ws.close()
            return None
        ws: StoredWorkspace = self._ws
        pushes: list[Push] = []

        def noting(revision: Revision) -> None:
            pushes[:] = self._plan(wanted, revision)

        image, keeper = None, self._run.checkpointer
        if wanted.checkpoint and keeper is not None:
            image = MemoryImage(await keeper.save(ws), self._principal)
        message = f"terminate {self.name}"
        try:
            revision = await ws.commit(
                subject=message, diff=wanted.diff, outputs=wanted.paths, noting=noting, memory=image
            )
        except BaseException:
            if image is not None and keeper is not None:
                await keeper.discard(image.ref)  # no revision refers to it
            raise
        await self._opening.__aexit__(None, None, None)
        for push in pushes:
            secrets = self._options.git_secrets
            self.pushed.append(await asyncio.to_thread(run_push, self._run.store.repository, push, secrets))
        return revision

    def _plan(self, wanted: Outputs, revision: Revision) -> list[Push]:
        """Record the pushes before the head moves, so that a crash loses none."""
        if wanted.git and not self._options.git.paths:
            self.warnings.append("a git output has nothing to push: the sandbox was made without git paths")
            return []
        assert self.workspace is not None
        found = [plan_push(output, self._options.git, self.workspace, revision, self.name) for output in wanted.git]
        for push in found:
            record_push(self._run.store.repository, push)
        return found

    def retry_pushes(self) -> list[Pushed]:
        """Retry failed pushes of this workspace, from any sandbox."""
        repository = self._run.store.repository
        done = [
            run_push(repository, push, self._options.git_secrets) for push in pending_pushes(repository, self.workspace)
        ]
        self.pushed.extend(done)
        return done


class Files:
    """The files of a sandbox; relative paths start at `/workspace`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def _at(self, path: str) -> Any:
        return parse(path, parse(HOME))

    def write(self, path: str, data: str | bytes) -> None:
        """Write a file; creates parent directories."""
        content = data.encode() if isinstance(data, str) else data

        async def act() -> None:
            fs = self._sandbox._ws.get_session().fs
            await ops.make_dirs(fs, self._at(path).parent)
            await fs.write(self._at(path), content)

        self._sandbox._change(act(), f"write {self._at(path)} ({len(content)} bytes)")

    def read(self, path: str) -> bytes:
        data: bytes = self._sandbox._do(ops.read_bytes(self._sandbox._ws.get_session().fs, self._at(path)))
        return data

    def read_text(self, path: str) -> str:
        return self.read(path).decode()

    def list(self, path: str = HOME) -> list[str]:
        found = self._sandbox._do(ops.scan_sorted(self._sandbox._ws.get_session().fs, self._at(path)))
        return [name for name, _ in found]

    def exists(self, path: str) -> bool:
        return bool(self._sandbox._do(ops.exists(self._sandbox._ws.get_session().fs, self._at(path))))

    def mkdir(self, path: str) -> None:
        where = self._at(path)
        self._sandbox._change(ops.make_dirs(self._sandbox._ws.get_session().fs, where), f"mkdir {where}")

    def remove(self, path: str) -> None:
        where = self._at(path)
        self._sandbox._change(ops.remove_tree(self._sandbox._ws.get_session().fs, where), f"remove {where}")


def _heed_sigterm() -> None:
    """Let SIGTERM run the exit handlers, unless the program has its own handler."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _end_all() -> None:
    """Terminate all sandboxes at exit, which commits their work."""
    for sandbox in list(_open):
        sandbox._expire()
        if sandbox.failure is not None:
            print(f"ramet: cannot save the changes of {sandbox.name}: {sandbox.failure}", file=sys.stderr)


# Before the thread pools close, which a commit needs: exit handlers run in reverse order.
import_module("concurrent.futures.thread")
getattr(threading, "_register_atexit", atexit.register)(_end_all)
