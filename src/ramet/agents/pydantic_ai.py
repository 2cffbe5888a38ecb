"""`RametWorkspaceBackend`: a workspace as the environment of a Pydantic AI agent.

    agent = Agent(model, workspace=RametWorkspaceBackend(store="~/.ramet"))

The constructor does nothing. The first operation creates the environment, or attaches to the one that the ref names.
With a store, an operation commits its changes before it returns; without one, the environment lives in this process.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shlex
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ramet.agents.links import follow
from ramet.agents.own_session import run_in_own_session
from ramet.core import ops
from ramet.core.errors import RametError, fail, missing_extra
from ramet.core.limits import Cancelled
from ramet.core.paths import ROOT, Path, parse
from ramet.core.stat import Kind
from ramet.workspace.mounts import MountForm
from ramet.workspace.stored.store import Store, StoredWorkspace
from ramet.workspace.workspace import Workspace

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.workspaces import (
        CommandResult,
        FileEntry,
        WorkspaceCommand,
        WorkspaceOutputLimitError,
        WorkspaceRef,
        WorkspaceTimeoutError,
        WorkspaceUnavailableError,
    )
except ModuleNotFoundError as error:
    raise missing_extra("pydantic-ai", "the Pydantic AI backend") from error

PROVIDER: Final = "ramet"
HOME: Final = "/workspace"


@dataclass
class OpenEnvironment:
    """An environment that is open in this process."""

    ws: Workspace
    loop: asyncio.AbstractEventLoop
    gone: asyncio.Event = field(default_factory=asyncio.Event)


_OPEN: dict[tuple[object, str], OpenEnvironment] = {}
"""Open environments by place and name. A ref finds its environment here, or opens a stored one again."""


class RametWorkspaceBackend:
    """Commands, files and real paths of a workspace.

    Pass nothing for an environment in memory, `store` for a durable one (`name` selects it), `ref` for an existing one,
    or `workspace` for one that you open and close yourself.
    """

    def __init__(
        self,
        ref: WorkspaceRef | None = None,
        *,
        workspace: Workspace | None = None,
        store: str | Store | None = None,
        name: str | None = None,
        mounts: Mapping[str, MountForm] | None = None,
        working_dir: str = HOME,
        env: Mapping[str, str] | None = None,
        wait: float = 10.0,
    ) -> None:
        if workspace is not None and (ref or store or name or mounts):
            raise ValueError("workspace= excludes the other arguments")
        if name is not None and (store is None or ref is not None):
            raise ValueError("name= needs store=")
        if ref is not None and ref.provider != PROVIDER:
            raise ValueError(f"this ref belongs to {ref.provider!r}, not to {PROVIDER!r}")
        self._ref, self._given, self._name = ref, workspace, name
        self._store = store if isinstance(store, Store) else None
        self._where = store if isinstance(store, str) else None
        self._place: object = store if not isinstance(store, str) or ":" in store else _full(store)
        self._mounts, self._env, self._wait = dict(mounts or {}), dict(env or {}), wait
        self._start = parse(working_dir)
        self._opening = asyncio.Lock()

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def working_dir(self) -> str:
        live = await self._live()
        try:
            return str(await live.ws.fs.resolve(self._start))
        except FileNotFoundError:
            raise WorkspaceUnavailableError(f"the working directory {self._start} was removed") from None

    # ---------------------------------------------------------------------------------------- environments

    async def _live(self) -> OpenEnvironment:
        async with self._opening:
            if self._store is None and self._where is not None:
                self._store = await asyncio.to_thread(Store, self._where)
            if self._ref is None:
                return await self._create()
            found = _OPEN.get((self._place, self._ref.id))
            if found is not None and found.gone.is_set():
                found = None
            elif found is not None and found.loop.is_closed() and isinstance(found.ws, StoredWorkspace):
                await _give_back(found.ws)  # its tasks ended with their event loop: the lease is no longer renewed
                found = None
            if found is None:
                found = await self._attach(self._ref.id)
            return found

    async def _create(self) -> OpenEnvironment:
        name = self._name or f"agent-{uuid.uuid4().hex[:12]}"
        loop = asyncio.get_running_loop()
        if self._given is not None:
            live = OpenEnvironment(self._given, loop)
        elif self._store is None:
            live = OpenEnvironment(Workspace(self._mounts), loop)
        else:
            if name not in self._store:
                await asyncio.to_thread(self._store.create, name)
            live = OpenEnvironment(await self._open(name), loop)
        _OPEN[self._place, name] = live
        self._ref = WorkspaceRef(provider=PROVIDER, id=name)
        await ops.make_dirs(live.ws.fs, self._start)
        await self._keep(live, "begin")
        return live

    async def _attach(self, name: str) -> OpenEnvironment:
        if self._store is None or name not in self._store:
            raise WorkspaceUnavailableError(f"no environment {name!r}")
        live = _OPEN[self._place, name] = OpenEnvironment(await self._open(name), asyncio.get_running_loop())
        return live

    async def _open(self, name: str) -> StoredWorkspace:
        assert self._store is not None
        head = await asyncio.to_thread(self._store.repository.head, name)
        known = {state.prefix for state in head.mounts} if head is not None else set()
        more = {prefix: form for prefix, form in self._mounts.items() if prefix not in known}
        resources: dict[str, Any] = {
            prefix: form[0] if isinstance(form, tuple) else form
            for prefix, form in self._mounts.items()
            if prefix in known
        }
        return await self._store.open(name, mounts=more, resources=resources, wait=self._wait).__aenter__()

    async def _keep(self, live: OpenEnvironment, message: str) -> None:
        """Commit changes, if any, so that a returned operation is durable."""
        if isinstance(live.ws, StoredWorkspace) and live.ws is not self._given and not live.gone.is_set():
            await live.ws.save(live.ws.secrets.scrub_text(message.strip().partition("\n")[0][:72]))

    async def release(self) -> None:
        """Commit and close, so that another process can attach. The next operation opens it again."""
        if self._ref is None or self._given is not None or self._store is None:
            return
        live = _OPEN.pop((self._place, self._ref.id), None)
        if live is not None and isinstance(live.ws, StoredWorkspace):
            await live.ws.finish()

    async def destroy(self) -> None:
        """Delete the environment: stop its commands and invalidate its ref."""
        if self._ref is None:
            return
        live = _OPEN.pop((self._place, self._ref.id), None)
        if live is not None:
            live.gone.set()
            if isinstance(live.ws, StoredWorkspace) and live.ws is not self._given:
                await _give_back(live.ws)
                if not live.loop.is_closed():
                    await live.ws.finish()
            elif live.ws is not self._given:
                await live.ws.close()
        if self._store is not None and self._ref.id in self._store:
            await asyncio.to_thread(self._store.rm, self._ref.id)

    # -------------------------------------------------------------------------------------------- commands

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        """Run a command in its own shell, which starts in the working directory."""
        text = _command_text(command, shell)
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ValueError("timeout must be a positive finite number or None")
        live = await self._live()
        where = await self.working_dir()
        variables = {**self._env, **(env or {})}
        try:
            result = await run_in_own_session(
                live.ws, text, cwd=where, env=variables, timeout=timeout, cancel=live.gone
            )
        except (Cancelled, RametError):
            if live.gone.is_set():
                raise WorkspaceUnavailableError("the environment was deleted while a command ran") from None
            raise
        await self._keep(live, text)
        out, err = result.stdout.decode("utf-8", "replace"), result.stderr.decode("utf-8", "replace")
        if live.gone.is_set():
            raise WorkspaceUnavailableError("the environment was deleted while a command ran")
        if result.timed_out:
            after = "" if timeout is None else f" after {timeout:g} s"
            raise WorkspaceTimeoutError(f"the command was stopped{after}", stdout=out, stderr=err)
        if result.truncated:
            limit = live.ws.settings.limits.output_bytes
            raise WorkspaceOutputLimitError(
                f"the command exceeded a limit of the workspace: {err.strip().rpartition(chr(10))[2]}",
                limit=limit, stdout=out[:65536], stderr=err[:65536],
            )  # fmt: skip
        return CommandResult(exit_code=result.exit_code, stdout=out, stderr=err)

    # ----------------------------------------------------------------------------------------------- files

    async def _files(self) -> tuple[OpenEnvironment, Any]:
        live = await self._live()
        return live, live.ws.get_session().fs

    async def read_bytes(self, path: str) -> bytes:
        _, fs = await self._files()
        where = _absolute(path)
        kind = (await fs.stat(where, follow=True)).kind
        if kind is Kind.DIR:
            raise fail(errno.EISDIR, path)
        if kind is not Kind.FILE:
            raise fail(errno.EINVAL, path, "not a regular file")
        return await ops.read_bytes(fs, where)

    async def write_bytes(self, path: str, data: bytes) -> None:
        live, fs = await self._files()
        where = _absolute(path)
        await _make_dirs(fs, where.parent, path)
        await fs.write(where, bytes(data))
        await self._keep(live, f"write {path}")

    async def stat(self, path: str) -> FileEntry:
        _, fs = await self._files()
        return await _entry(fs, _absolute(path))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        _, fs = await self._files()
        where = _absolute(path)
        found = []
        for name, stat in await ops.scan_sorted(fs, where):
            if stat.kind is Kind.LINK:
                found.append(await _entry(fs, where / name, dangling=True))
            else:
                found.append(_file_entry(where / name, stat.kind, stat.size))
        return found

    async def make_dir(self, path: str) -> None:
        live, fs = await self._files()
        where = _absolute(path)
        try:
            if not (await fs.stat(where, follow=True)).is_dir:
                raise fail(errno.EEXIST, path)
        except FileNotFoundError:
            await _make_dirs(fs, where, path)
            await self._keep(live, f"make {path}")

    async def remove(self, path: str) -> None:
        live, fs = await self._files()
        where = _absolute(path)
        real = parse(await self.realpath(str(where.parent))) / where.name if len(where) > 1 else ROOT
        if parse(await self.working_dir()).under(real):
            raise ValueError(f"{path!r} is or contains the working directory")
        await ops.remove_tree(fs, real)
        await self._keep(live, f"remove {path}")

    async def exists(self, path: str) -> bool:
        _, fs = await self._files()
        try:
            await fs.stat(_absolute(path), follow=True)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as problem:
            if problem.errno == errno.ELOOP:
                return False
            raise
        return True

    async def realpath(self, path: str) -> str:
        """Resolve component by component: `..` after a link goes up from its target; missing names stay as written."""
        _, fs = await self._files()
        _absolute(path)
        return str(await follow(fs, path.split("/")))


def _full(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


@dataclass
class RametWorkspace(AbstractCapability[Any]):
    """`Agent(model, capabilities=[RametWorkspace(store="~/.ramet")])`: a workspace per conversation.

    A run that continues the messages of another uses its workspace. Refs of other providers are declined.
    """

    store: str | Store | None = None
    mounts: Mapping[str, MountForm] | None = None
    env: Mapping[str, str] | None = None
    id: str | None = "ramet_workspace"

    def get_workspace(self, ctx: Any, *, ref: WorkspaceRef | None) -> RametWorkspaceBackend | None:
        if ref is not None and ref.provider != PROVIDER:
            return None
        return RametWorkspaceBackend(ref, store=self.store, mounts=self.mounts, env=self.env)


async def _give_back(ws: StoredWorkspace) -> None:
    """Release the lease without a commit: all returned operations are committed."""
    lease, ws.lease = ws.lease, None
    if lease is None:
        return
    try:
        await asyncio.to_thread(ws.repository.refs.release, ws.name, lease)
    except RametError as problem:
        if problem.code not in ("lease_lost", "workspace_not_found"):
            raise


def _command_text(command: WorkspaceCommand, shell: bool) -> str:
    if isinstance(command, str):
        if not shell:
            raise TypeError("a string needs shell=True; pass an argv otherwise")
        return command
    if shell:
        raise TypeError("an argv cannot have shell=True; pass a string")
    if not command:
        raise ValueError("an argv needs at least one word")
    # Always quoted, so that reserved words and aliases are ordinary names.
    return " ".join(shlex.quote(word) if shlex.quote(word) != word else f"'{word}'" for word in command)


def _absolute(path: str) -> Path:
    if not path.startswith("/"):
        raise ValueError(f"path must be absolute, got {path!r}")
    return parse(path)


async def _make_dirs(fs: Any, where: Path, path: str) -> None:
    """Create a directory like `mkdir -p`; a file in the way is ENOTDIR."""
    try:
        if (await fs.stat(where, follow=True)).is_dir:
            return
    except FileNotFoundError:
        await ops.make_dirs(fs, where)
        return
    raise fail(errno.ENOTDIR, path)


async def _entry(fs: Any, path: Path, *, dangling: bool = False) -> FileEntry:
    """Stat a path through links; with `dangling`, a dangling link is a file of unknown size."""
    try:
        stat = await fs.stat(path, follow=True)
    except OSError as problem:
        if dangling and problem.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return _file_entry(path, Kind.LINK, None)
        raise
    return _file_entry(path, stat.kind, stat.size)


def _file_entry(path: Path, kind: Kind, size: int | None) -> FileEntry:
    return FileEntry(
        name=path.name or "/", path=str(path), is_dir=kind is Kind.DIR, size=size if kind is Kind.FILE else None
    )
