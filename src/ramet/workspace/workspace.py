"""`Workspace`: mounts, cache, commands, jobs, history, observer and sessions of one file tree.

The state of a terminal is in `Session`, mount semantics are in the resource, shell syntax is in the shell.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import msgspec

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError, wrong_type
from ramet.core.limits import DEFAULT_LIMITS, Limits
from ramet.core.paths import ROOT, Path, parse
from ramet.core.proc import User
from ramet.core.resource import Batching, Posting, Resource
from ramet.core.stat import Kind
from ramet.core.streams import BytesReader, IteratorReader, Reader
from ramet.layers.cache import Cache
from ramet.layers.memory_cache import MemoryCache
from ramet.layers.outbox import Outbox
from ramet.layers.overlay import Change, CommitReport, Conflict, Overlay
from ramet.layers.stack import Policy as StackPolicy
from ramet.layers.stack import build
from ramet.native.options import NativeForm, as_native
from ramet.native.ports import ListeningPort
from ramet.native.tree_branch import TreeBranch
from ramet.network.door import Door, SessionDoor
from ramet.network.network import Network
from ramet.network.relay import Connection
from ramet.network.rules import Outgoing
from ramet.shell.interp.main.shell import Shell
from ramet.shell.interp.process.jobs import Pids
from ramet.shell.interp.state.special_variables import PATH
from ramet.vfs.dev import DevResource
from ramet.vfs.mounts import power_of
from ramet.vfs.vfs import VFS
from ramet.workspace.bin_dir import CommandsAmongPrograms, ProgramsResource
from ramet.workspace.call import Call, check_arguments, estimate_call, run_call
from ramet.workspace.completion import Completion, complete
from ramet.workspace.execution import Execution
from ramet.workspace.mounts import Mount, MountForm, MountMode, as_mode, as_mount, as_mounts, parse_prefix
from ramet.workspace.operations import OPERATIONS, Operation, OperationKeywords
from ramet.workspace.policy import Allowed, Policy, Question, Request
from ramet.workspace.programs import OFF, USUAL, NativePrograms
from ramet.workspace.record.history import ExecutionRecord, History, MetaValue, ObserverResource
from ramet.workspace.record.ledger import Ledger, Look, look_at, look_at_node
from ramet.workspace.record.recorder import OpenRecord, Recorder, check_meta
from ramet.workspace.registry import CommandRegistry, UserCommand
from ramet.workspace.secrets import Secrets
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID, Session, SessionManager
from ramet.workspace.session_fs import SessionFS
from ramet.workspace.snapshot.archive import Target, read_tar, split_manifest_and_blobs, write_tar
from ramet.workspace.snapshot.copy import adopt_kernel, copy_workspace, frozen_trees, load_workspace, nothing_open
from ramet.workspace.snapshot.state import RestoreReport, to_state_dict

if TYPE_CHECKING:
    from pathlib import Path as LocalPath

Stdin = AsyncIterator[bytes] | Reader | bytes | str | None


class ExecuteKeywords(TypedDict, total=False):
    """The options of `Workspace.execute`."""

    session_id: str
    stdin: Stdin
    provision: bool
    agent_id: str
    native: bool | None
    cwd: str | None
    env: Mapping[str, str] | None
    timeout: float | None
    limits: Limits | None
    cancel: asyncio.Event | None
    meta: Mapping[str, MetaValue] | None


C = TypeVar("C", bound=UserCommand)

MIB = 1 << 20
OBSERVER = parse("/.sessions")
DEV = parse("/dev")
BIN = (parse("/bin"), parse("/usr/bin"))


@dataclass(frozen=True)
class Settings:
    """Settings of a workspace other than mounts and secrets."""

    user: User = field(default_factory=User)
    limits: Limits = DEFAULT_LIMITS
    cache_bytes: int = 256 * MIB
    cache_dir: str | None = None
    """Directory of a cache that processes share for remote mounts; None for memory."""
    cache_url: str | None = field(default=None, repr=False)
    """Redis cache that machines share (`redis://...`), instead of a directory."""
    max_drain_bytes: int = 8 * MIB
    clock: Callable[[], float] = time.time
    sticky_options: bool = False
    """Whether `set -e`, `set -o pipefail` and the like last beyond the `execute` call that set them."""


class Workspace:
    """Mounts as one tree, with a shell and a history.

            ws = Workspace({"/": RAMResource(), "/data": (DiskResource("data"), MountMode.READ)})
            result = await ws.execute("grep -r ERROR /data | sort | uniq -c")

    A mount without a mode is writable. `/` is memory by default.
    """

    def __init__(
        self,
        mounts: Mapping[str, MountForm] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        settings: Settings | None = None,
        native: NativeForm | None = None,
        network: Network | Mapping[str, Any] | None = None,
    ) -> None:
        _check_types(env, secrets, policy, limits, settings)
        self.settings = settings or Settings()
        self.native = as_native(native)
        self.programs: NativePrograms | None = None
        """The box of native programs; None when they are off."""
        self.native_problem = ""
        """Why native programs are off in a workspace that asks for them."""
        if limits is not None:
            self.settings = Settings(**{**self.settings.__dict__, "limits": limits})
        self.policy = Policy.from_dict(policy) if isinstance(policy, Mapping) else policy
        self.network = Network.of(network)
        """What may leave the workspace; None for nothing."""
        if self.network is not None and self.network.asks and self.policy is None:
            self.policy = Policy()  # its `answer`, or `decide`, answers the questions
        self.secrets = Secrets(secrets)
        self.history = History()
        self.recorder = Recorder(self.history, self.secrets, self.settings.clock)
        self.door = None if self.network is None and self.native is None else Door(
            self.network, note=self.recorder.requested, question=self._ask_about_request, clock=self.settings.clock
        )  # fmt: skip
        self.commands = CommandRegistry()
        self.closed = False
        self.finished_jobs: list[dict[str, Any]] = []
        """Finished jobs of the loaded or copied workspace."""
        self.restored = RestoreReport()
        """What `load` could not restore."""
        self._env = dict(env or {})
        self.cached_files = _cache(self.settings)
        self._mounts: dict[Path, Mount] = {}
        self._observer = ObserverResource(self.history)
        self._observer.networked = self.network is not None
        self._pids = Pids()  # shared by all sessions: `/tmp/name.$$` is unique
        given = {mount.prefix: mount for mount in _with_scratch(as_mounts(mounts or {}), self.settings.user)}
        if self.native is not None:
            self.programs = NativePrograms(self.native, self.recorder, self.door, self.policy)
            given = self.programs.adopt_mounts(given)
        self._mounts.update(given)
        own: dict[Path, Resource] = {DEV: DevResource(), OBSERVER: self._observer, **self._system_files()}
        for prefix in own.keys() & given.keys():
            raise RametError("invalid_argument", f"mount {prefix!r}: reserved by the workspace", "mount elsewhere")
        self._vfs = VFS({prefix: self._stack(mount) for prefix, mount in given.items()}, unlisted=own)
        self._vfs.watch, self.recorder.mount_of = self.recorder, self._vfs.mount_of
        self.sessions = SessionManager(self._make_session)
        self._observer.known.add(DEFAULT_SESSION_ID)
        if self.programs is not None:
            self.programs.may_fold = partial(nothing_open, self)

    keeps_trees = False
    """Whether the trees of native programs outlive `close`, for the recovery of what is not committed."""

    def __repr__(self) -> str:
        mounts = ", ".join(f"{m.prefix} ({type(m.resource).__name__}, {m.mode.value})" for m in self.mounts())
        return f"<Workspace {mounts}; {len(list(self.sessions))} sessions; {len(self.history)} commands>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{m.prefix}</code></td><td>{type(m.resource).__name__}</td><td>{m.mode.value}</td></tr>"
            for m in self.mounts()
        )
        return f"<table><tr><th>mount</th><th>resource</th><th>mode</th></tr>{rows}</table>"

    async def __aenter__(self) -> Workspace:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---------------------------------------------------------------------------------------------- mounts

    @property
    def fs(self) -> VFS:
        """The whole tree as a Resource, without a session and its policy. Each change is a separate record."""
        return self._vfs

    def mounts(self, *, scratch: bool = False) -> list[Mount]:
        """List the mounts by prefix; with `scratch` also those that the workspace created."""
        return [mount for _, mount in sorted(self._mounts.items()) if scratch or not mount.scratch]

    def mount(self, prefix: str, resource: Resource, mode: MountMode | str = MountMode.WRITE) -> None:
        """Mount a resource; visible to all sessions at once."""
        path = parse_prefix(prefix)
        old = self._mounts.get(path)
        if old is not None:
            if not old.scratch:
                raise RametError("already_exists", f"cannot mount at {prefix}: it is in use", "unmount it first")
            self._vfs.unmount(path)
        made = as_mount(prefix, (resource, as_mode(mode)))
        if self.programs is not None:
            made = self.programs.add_mount(made)
        self._add(made)
        if self.recorder.ledger is not None:
            self.recorder.ledger.mounted(path)
        self.recorder.add("mount", f"mount {path} ({type(resource).__name__}, {made.mode.value})")

    async def unmount(self, prefix: str) -> Resource:
        """Remove a mount, and return its open resource."""
        path = parse_prefix(prefix)
        if path not in self._mounts or path == ROOT:
            raise RametError(
                "not_found",
                f"cannot unmount {prefix}: not a mount point",
                "`mounts` lists what is mounted; / always is",
            )
        await self._vfs.flush()
        self._vfs.unmount(path)
        if self.recorder.ledger is not None:
            self.recorder.ledger.mounted(path)
        self.recorder.add("mount", f"unmount {path}")
        return self._mounts.pop(path).resource

    def _add(self, mount: Mount) -> None:
        self._vfs.mount(mount.prefix, self._stack(mount))
        self._mounts[mount.prefix] = mount

    def _look_at(self, path: Path) -> Look:
        prefix = self._vfs.mount_of(path)
        return look_at(self._mounts.get(prefix), path.below(prefix))

    def _stack(self, mount: Mount) -> Resource:
        return build(
            mount.resource,
            StackPolicy(
                writable=mount.mode is MountMode.WRITE,
                cache=self.cached_files if mount.cached else None,
                prefix=mount.prefix,
                max_drain_bytes=self.settings.max_drain_bytes,
                limits=self.settings.limits,
                patience=mount.patience,
            ),
        )

    def _system_files(self) -> dict[Path, Resource]:
        """Return the directories that are there in every system, and belong to no workspace."""
        commands = ProgramsResource(self.commands)
        if self.programs is None:
            return dict.fromkeys(self._free(BIN), commands)
        found: dict[Path, Resource] = {**self.programs.system}
        for folder in BIN:
            prefix = next((prefix for prefix in found if folder.under(prefix)), None)
            if prefix is None:
                found[folder] = commands
            else:
                found[prefix] = CommandsAmongPrograms(found[prefix], commands, folder.below(prefix))
        return found

    def _free(self, places: Iterable[Path]) -> list[Path]:
        """Return the paths that no mount and no entry of the root occupies."""
        root = self._mounts[ROOT].resource
        taken = [prefix for prefix in self._mounts if prefix != ROOT]
        return [path for path in places if _absent_now(root, path) and not any(map(path.under, taken))]

    # -------------------------------------------------------------------------------------------- sessions

    def _make_session(self, session_id: str, env: Mapping[str, str] | None, cwd: Path | None) -> Session:
        settings = self.settings
        fs = SessionFS(self._vfs, session_id, self.recorder, self.policy, settings.user.uid, settings.limits)
        shell = Shell(
            fs=fs,
            commands=self.commands,
            user=settings.user,
            now=settings.clock,
            limits=settings.limits,
            hook=self._command_hook(session_id, fs)
            if self.policy is not None and self.policy.watches_commands
            else None,
            workspace=self,
            pids=self._pids,
            programs=self.programs,
            explain=_Explanation(self) if self.programs is None else None,
            network=None if self.door is None else SessionDoor(self.door, session_id, lambda: fs.agent_id),
        )
        user = settings.user
        given = {"HOME": user.home, "USER": user.name, "LOGNAME": user.name, "PATH": PATH}
        given.update({} if self.programs is None else self.programs.environment(PATH))
        given.update(self._env)
        given.update(self.network.environment if self.network is not None else {})
        given.update(self.secrets.env())
        given.update(env or {})
        state = shell.session(env=given, cwd=cwd or ROOT)
        state.history.source = partial(self.history.commands_after, session_id)
        self._observer.known.add(session_id)
        session = Session(session_id, shell, state, fs)
        session.sticky_options = self.settings.sticky_options
        return session

    def _command_hook(self, session_id: str, fs: SessionFS) -> Callable[[object, list[str]], Awaitable[str | None]]:
        policy = self.policy
        assert policy is not None

        async def hook(_: object, argv: list[str]) -> str | None:
            words = [str(word) for word in argv]
            try:
                name = words[0].rsplit("/", 1)[-1]
                await policy.check(Request("command", name, " ".join([name, *words[1:]]), session_id, fs.agent_id))
            except PermissionError as error:
                return (error.strerror or "").removeprefix("Permission denied: ")
            return None

        return hook

    async def _ask_about_request(self, out: Outgoing) -> bool | str:
        """A question of the network policy, answered as every other question of a policy."""
        assert self.policy is not None
        request = Request("network", out.method, out.target.shown, out.session_id, out.agent_id)
        return await self.policy.ask(request)

    def questions(self) -> list[Question]:
        """List the questions of `ask` rules that wait for an answer."""
        return [] if self.policy is None else list(self.policy.pending.values())

    def answer(self, number: int, allowed: Allowed) -> None:
        """Answer a question: True allows the operation, "host" also later requests of the session to the host."""
        if self.policy is None:
            raise RametError("not_found", f"no question {number} is pending", "This workspace has no policy.")
        self.policy.decide(number, allowed)

    def create_session(
        self, session_id: str, *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Session:
        """Create a session with its own working directory, variables, functions and options."""
        return self.sessions.create(session_id, env, parse(cwd) if cwd is not None else None)

    def get_session(self, session_id: str = DEFAULT_SESSION_ID) -> Session:
        return self.sessions.get(session_id)

    def list_sessions(self) -> list[Session]:
        return list(self.sessions)

    async def close_session(self, session_id: str) -> None:
        """End a session and its background jobs. The default session is created again."""
        await self.sessions.close(session_id)

    async def close_all_sessions(self) -> None:
        """End every session but the default one."""
        for session in self.sessions.started():
            if session.session_id != DEFAULT_SESSION_ID:
                await self.sessions.close(session.session_id)

    # ------------------------------------------------------------------------------------------- executing

    def execute(
        self,
        command: str,
        session_id: str = DEFAULT_SESSION_ID,
        stdin: Stdin = None,
        provision: bool = False,
        agent_id: str = DEFAULT_AGENT_ID,
        native: bool | None = None,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        limits: Limits | None = None,
        cancel: asyncio.Event | None = None,
        meta: Mapping[str, MetaValue] | None = None,
    ) -> Execution:
        """Run shell text in a session: `await` it for an IOResult, or iterate over its output.

        `cwd` and `env` apply to this call only. `timeout` ends it with exit code 124 and the output so far; cancelling
        the awaiting task, or setting `cancel`, stops it and raises. `provision=True` runs nothing and returns the cost
        in `result.estimate`. `native=True` runs the text by the real bash of the box, `native=False` runs no native
        program. `meta` is kept with the record of the call: tokens, money, the turn of an agent.
        """
        if native and self.programs is None:
            raise RametError(
                "native_unavailable", "cannot run native programs: they are off in this workspace",
                "Make it with Workspace(native=True), or open it with --native.",
            )  # fmt: skip
        check_arguments(command, stdin, env, timeout)
        for what, value, kinds in (("limits", limits, Limits), ("cwd", cwd, str), ("agent_id", agent_id, str)):
            if value is not None and not isinstance(value, kinds):
                raise wrong_type(what, value, f"Pass a {kinds.__name__}.")
        bounds = limits or self.settings.limits
        if timeout is not None:
            bounds = replace(bounds, wall_time=timeout)
        call = Call(
            command=command,
            session=self.get_session(session_id),
            agent_id=agent_id,
            stdin=_as_reader(stdin),
            cwd=None if cwd is None else parse(cwd, self.get_session(session_id).cwd),
            env=dict(env or {}),
            limits=bounds,
            cancel=cancel,
            native=native,
            meta=check_meta(meta),
        )
        if provision:
            return Execution(lambda channels: estimate_call(self, call, channels), bounds.output_bytes)
        return self._follow_up(call, Execution(lambda channels: run_call(self, call, channels), bounds.output_bytes))

    async def complete(self, line: str, session_id: str = DEFAULT_SESSION_ID) -> Completion:
        """Complete the end of a command line: a command, an option, a variable or a path."""
        return await complete(line, self.get_session(session_id), self.commands, self.programs)

    def ports(self) -> list[ListeningPort]:
        """List the ports at which programs of the workspace listen, in the background too."""
        found = [] if self.programs is None else self.programs.ports.listening()
        return [one._replace(program=self.secrets.scrub_text(one.program)) for one in found]

    async def connect_port(self, port: int) -> Connection:
        """Connect to a program that listens at a port of the workspace: `reader, writer = await ws.connect_port(8000)`.

        Raises ConnectionRefusedError where nothing listens.
        """
        if self.programs is None:
            raise RametError(
                "native_unavailable", f"cannot reach port {port}: real programs are off in this workspace",
                "Make it with Workspace(native=True), or open it with --native.",
            )  # fmt: skip
        return Connection(*await asyncio.open_connection(sock=await self.programs.ports.connect(port)))

    def recording(
        self,
        kind: str,
        summary: str,
        *,
        session_id: str = "",
        agent_id: str = "",
        meta: Mapping[str, MetaValue] | None = None,
    ) -> AbstractContextManager[OpenRecord]:
        """Make one record of all file changes inside a `with` block, instead of one for each: a tool call, an upload.

        `kind` is one of `history.KINDS`; `summary` is one line, such as `edit /a`. Without a change there is no record.
        """
        return self.recorder.recording(kind, summary, session_id=session_id, agent_id=agent_id, meta=check_meta(meta))

    def _follow_up(self, call: Call, execution: Execution) -> Execution:
        """Hook for subclasses: extend a call that is about to run."""
        return execution

    def command(self, name: str, *, mount: str | None = None, filetype: str | None = None) -> Callable[[C], C]:
        """Register a command: `@ws.command("summarize")`; optionally for one mount or one file name suffix."""

        def register(function: C) -> C:
            where = None if mount is None else parse_prefix(mount)
            self.commands.add(name, function, mount=where, suffix=filetype)
            return function

        return register

    async def dispatch(
        self,
        op: Operation,
        path: str,
        *args: Any,
        session_id: str = DEFAULT_SESSION_ID,
        **options: Unpack[OperationKeywords],
    ) -> Any:
        """Run one low-level operation, with the modes, cache, policy and records of a command."""
        verb = OPERATIONS.get(op)
        if verb is None:
            known = ", ".join(sorted(OPERATIONS))
            raise RametError("invalid_argument", f"unknown operation {op!r}", f"use one of {known}")
        if not isinstance(path, str):
            raise wrong_type("a path", path, "Pass text.")
        session = self.get_session(session_id)
        return await verb(session.fs, parse(path, session.cwd), *args, **options)

    # ------------------------------------------------------------------------------------------- lifecycle

    async def sync(self) -> None:
        """Flush open files, and wait for background reads of the cache."""
        await self._vfs.flush()
        for resource in self._vfs.mounts.values():
            for layer in _layers(resource):
                if isinstance(layer, Cache):
                    await layer.settle()

    # ------------------------------------------------------------------- snapshot, load, copy, branch

    def snapshot(self, target: Target, compress: str | None = None) -> None:
        """Write the whole state to a tar: a path (replaced atomically) or a binary stream. `compress`: gz, bz2, xz."""
        write_tar(target, split_manifest_and_blobs(to_state_dict(self)), compress)

    @classmethod
    def load(
        cls,
        source: Target,
        resources: Mapping[str, Resource] | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        strict: bool = False,
        max_bytes: int | None = None,
        settings: Settings | None = None,
    ) -> Workspace:
        """Create a workspace from a snapshot. `resources` replace mounts that were saved without credentials.

        A snapshot may unpack to `max_bytes`; by default 8 GiB, or the memory of the machine if that is less.
        `ws.restored` reports what could not be restored; `strict=True` raises instead.
        """
        opened = read_tar(source, max_bytes=max_bytes)
        try:
            return load_workspace(cls, opened, resources, secrets, strict, settings)
        finally:
            opened.close()

    @classmethod
    def from_config(cls, path: str | LocalPath, *, variables: Mapping[str, str] | None = None) -> Workspace:
        """Create the workspace that a YAML, JSON or TOML file describes; see `docs/config.md`."""
        from ramet.workspace.config import load_config

        return load_config(path, variables=variables).workspace()

    def copy(self) -> Workspace:
        """Return an independent workspace: memory is copied on write, disks are copied, remote resources shared."""
        return copy_workspace(self)

    def branch(self) -> Branch:
        """Return a workspace whose writes stay in overlays until it is committed or aborted."""
        return Branch(self)

    def speculate(self, count: int) -> Speculation:
        """Create branches: `async with ws.speculate(3) as tries:`; `tries.keep(branch)` commits one at the end."""
        return Speculation(self, count)

    def __deepcopy__(self, memo: dict[int, Any]) -> Workspace:
        twin = memo[id(self)] = self.copy()
        return twin

    def __copy__(self) -> Workspace:
        raise NotImplementedError("a shallow copy of a workspace would be an alias; use ws.copy() or copy.deepcopy(ws)")

    async def close(self) -> None:
        """Stop running calls and jobs, flush open files, close the mounts. Idempotent."""
        if self.closed:
            return
        self.closed = True
        for session in self.sessions.started():
            await session.end()
        await self._vfs.close()
        await self.cached_files.close()
        if self.programs is not None:
            await self.programs.stop_network()
        if self.door is not None:
            await self.door.close()
        if self.programs is not None:
            await asyncio.to_thread(self._close_programs)

    def _close_programs(self) -> None:
        if self.programs is not None:
            self.programs.close()


# --------------------------------------------------------------------------------------------------- helpers


class _Explanation:
    """Say once per session why a usual program is not there."""

    def __init__(self, ws: Workspace) -> None:
        self._ws, self._said = ws, False

    def __call__(self, name: str) -> str:
        if self._said or name not in USUAL:
            return ""
        self._said = True
        problem = self._ws.native_problem
        return f"ramet: real programs are off here: {problem}\n" if problem else OFF


def _check_types(env: object, secrets: object, policy: object, limits: object, settings: object) -> None:
    """Refuse options of a wrong type by name, before anything is made of them."""
    for what, value, kinds, remedy in (
        ("env", env, Mapping, 'Pass {"NAME": "value"}.'),
        ("secrets", secrets, Mapping, 'Pass {"NAME": "value"}.'),
        ("limits", limits, Limits, "Pass Limits(...)."),
        ("settings", settings, Settings, "Pass Settings(...)."),
        ("a policy", policy, Mapping | Policy, "Pass a Policy, or a mapping of its fields."),
    ):
        if value is not None and not isinstance(value, kinds):
            raise wrong_type(what, value, remedy)


def _with_scratch(mounts: dict[Path, Mount], user: User) -> list[Mount]:
    """Add memory mounts for `/`, `/tmp` and the home directory where nothing exists."""
    if ROOT not in mounts:
        mounts[ROOT] = Mount(ROOT, RAMResource())
    root = mounts[ROOT].resource
    for text in ("/tmp", user.home):
        path = parse(text)
        if path not in mounts and (_absent_now(root, path) or not hasattr(root, "stat_now")):
            mounts[path] = Mount(path, RAMResource(), scratch=True)
    return list(mounts.values())


def _cache(settings: Settings) -> MemoryCache:
    if settings.cache_dir is not None and settings.cache_url is not None:
        remedy = "give cache_dir for one machine, or cache_url for many"
        raise RametError("invalid_config", "cannot use two shared caches", remedy)
    if settings.cache_url is not None:
        from ramet.layers.redis_cache import RedisCache

        return RedisCache(max_bytes=settings.cache_bytes, url=settings.cache_url)
    if settings.cache_dir is None:
        return MemoryCache(max_bytes=settings.cache_bytes)
    from pathlib import Path as LocalPath

    from ramet.layers.disk_cache import DiskCache

    return DiskCache(max_bytes=settings.cache_bytes, directory=LocalPath(settings.cache_dir))


def _absent_now(resource: Resource, path: Path) -> bool:
    """Return whether nothing is at `path`; False for a resource without synchronous answers."""
    look = getattr(resource, "stat_now", None)
    if look is None:
        return False
    try:
        look(path)
    except OSError:
        return True
    return False


def _as_reader(stdin: Stdin) -> Reader | None:
    if stdin is None or isinstance(stdin, Reader):
        return stdin
    if isinstance(stdin, str):
        return BytesReader(stdin.encode("utf-8", "surrogateescape"))
    return BytesReader(stdin) if isinstance(stdin, bytes) else IteratorReader(stdin)


def _layers(resource: Resource) -> list[Resource]:
    found = [resource]
    while (inner := getattr(found[-1], "inner", None)) is not None:
        found.append(inner)
    return found


# -------------------------------------------------------------------------------------------------- branches


def _overlay(resource: Resource) -> Overlay:
    """The overlay of a branch over a mount, with the powers of a service that it must hold back."""
    posting, batching = power_of(resource, Posting), power_of(resource, Batching)  # type: ignore[type-abstract]
    return Overlay(resource, batching) if posting is None else Outbox(resource, posting, batching)


class Branch(Workspace):
    """A workspace over the mounts of its parent, which sees no changes before `commit()`."""

    def __init__(self, parent: Workspace) -> None:
        self.parent = parent
        frozen = frozen_trees(parent)
        self._overlays = {
            mount.prefix: _overlay(parent.fs.mounts[mount.prefix])
            for mount in parent.mounts(scratch=True)
            if str(mount.prefix) not in frozen
        }
        resources: dict[str, Resource] = {**{str(prefix): one for prefix, one in self._overlays.items()}, **frozen}
        mounts: dict[str, MountForm] = {
            str(mount.prefix): Mount(mount.prefix, resources[str(mount.prefix)], mount.mode, scratch=mount.scratch)
            for mount in parent.mounts(scratch=True)
        }
        super().__init__(
            mounts, secrets=parent.secrets.env(), policy=parent.policy, settings=parent.settings,
            native=parent.native if frozen else None, network=parent.network,
        )  # fmt: skip
        if self.programs is not None:
            self.programs.compared = True
        self._trees = {
            mount.prefix: TreeBranch(mount.tree, tree, parent.fs.mounts[mount.prefix])
            for mount in self.mounts(scratch=True)
            if mount.tree is not None and (tree := parent._mounts[mount.prefix].tree) is not None
        }
        adopt_kernel(self, parent)
        self.recorder.principal = parent.recorder.principal
        self._began, self._first = parent.settings.clock(), self.history.next_number
        if parent.recorder.ledger is not None:
            self.recorder.ledger = Ledger(self._look_at, self.recorder.current)

    def _look_at(self, path: Path) -> Look:
        prefix = self._vfs.mount_of(path)
        overlay = self._overlays.get(prefix)
        if overlay is None:
            return super()._look_at(path) if prefix in self._trees else Look()
        inner = path.below(prefix)
        try:
            return look_at_node(overlay.raised(inner))
        except FileNotFoundError:
            return Look() if overlay.hides(inner) else self.parent._look_at(path)._replace(identity=None)

    async def diff(self) -> list[Change]:
        """List the changes of the branch, with paths of the workspace."""
        found: list[Change] = []
        for prefix, overlay in self._overlays.items():
            found.extend(Change(change.path.onto(prefix), change.what, change.kind) for change in await overlay.diff())
        for prefix, tree in self._trees.items():
            found.extend(change._replace(path=change.path.onto(prefix)) for change in tree.diff())
        return sorted(found)

    async def conflicts(self) -> list[Conflict]:
        """List paths that the branch and the parent both changed."""
        found: list[Conflict] = []
        for prefix, overlay in self._overlays.items():
            found.extend(conflict._replace(path=conflict.path.onto(prefix)) for conflict in await overlay.conflicts())
        for prefix, tree in self._trees.items():
            found.extend(conflict._replace(path=conflict.path.onto(prefix)) for conflict in tree.conflicts())
        return sorted(found)

    async def commit(self) -> CommitReport:
        """Apply all changes to the parent. With a conflict nothing is applied, and the report says where."""
        await self.sync()
        conflicts = await self.conflicts()
        if conflicts:
            return CommitReport(conflicts=tuple(conflicts))
        applied: list[Change] = []
        late: list[Conflict] = []
        parts: dict[Path, Overlay | TreeBranch] = {**self._overlays, **self._trees}
        for prefix, part in parts.items():
            report = await part.commit()
            applied.extend(change._replace(path=change.path.onto(prefix)) for change in report.applied)
            late.extend(conflict._replace(path=conflict.path.onto(prefix)) for conflict in report.conflicts)
        self._hand_over(applied)
        return CommitReport(tuple(applied), tuple(late))

    def new_records(self) -> list[ExecutionRecord]:
        """Return the records since it was made, or last committed."""
        return self.history.after(self._first - 1)

    def _hand_over(self, applied: list[Change]) -> None:
        """Add the records of the branch to the history of the parent, as parts of a record of kind `branch`."""
        records = self.new_records()
        if not records and not applied:
            return
        history, recorder = self.parent.history, self.parent.recorder
        entry = recorder.start("branch", f"commit a branch: {len(records)} records, {len(applied)} changed paths")
        entry.started_at = self._began
        top = recorder.finish(entry).number
        numbers: dict[int, int] = {}
        for record in records:
            numbers[record.number] = history.next_number
            parent = numbers.get(record.parent, top)
            history.add(msgspec.structs.replace(record, number=history.next_number, parent=parent))
        mine, theirs = self.recorder.ledger, recorder.ledger
        if mine is not None and theirs is not None:
            files = [
                (str(one.path), one.what != "removed")
                for one in applied
                if one.kind is Kind.FILE and one.what != "posted"
            ]
            theirs.absorb(mine, files, numbers)
            mine.take()
        self._began, self._first = self.settings.clock(), self.history.next_number

    async def abort(self) -> None:
        """Discard all changes."""
        await self.sync()
        for overlay in self._overlays.values():
            overlay.abort()
        if self.programs is not None:
            await asyncio.to_thread(self.programs.discard)

    def copy(self) -> Workspace:
        raise NotImplementedError("a branch cannot be copied; commit it, or branch again from its parent")


class Speculation:
    """Several branches of one workspace, at most one of which is committed."""

    def __init__(self, ws: Workspace, count: int) -> None:
        if count < 1:
            raise RametError("invalid_argument", f"cannot speculate with {count} branches", "give a number above 0")
        self.branches = [ws.branch() for _ in range(count)]
        self.kept: Branch | None = None
        self.report: CommitReport | None = None

    def __iter__(self) -> Iterator[Branch]:
        return iter(self.branches)

    def __getitem__(self, number: int) -> Branch:
        return self.branches[number]

    def __len__(self) -> int:
        return len(self.branches)

    def keep(self, branch: Branch) -> None:
        """Commit this branch when the block ends; the others are discarded."""
        if branch not in self.branches:
            raise RametError("invalid_argument", "that branch is not one of these", "keep one of the branches")
        self.kept = branch

    async def __aenter__(self) -> Speculation:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None and self.kept is not None:
            self.report = await self.kept.commit()
        for branch in self.branches:
            await branch.close()
