"""`RametSandboxSession`: the SDK's sandbox session on a workspace, with direct file access and the shell."""

from __future__ import annotations

import errno
import hashlib
import io
import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path as HostPath
from pathlib import PurePosixPath
from stat import S_IFDIR
from typing import Any, Literal, NoReturn, TypeAlias

from agents.sandbox.entries import BaseEntry, GitRepo, InContainerMountStrategy, Mount
from agents.sandbox.errors import (
    ExecNonZeroError,
    ExecTimeoutError,
    ExecTransportError,
    ExposedPortUnavailableError,
    InvalidManifestPathError,
    SnapshotPersistError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceRootNotFoundError,
    WorkspaceStopError,
)
from agents.sandbox.files import EntryKind, FileEntry
from agents.sandbox.materialization import MaterializationResult, MaterializedFile
from agents.sandbox.session import SandboxSessionState
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.manifest_application import ManifestApplier
from agents.sandbox.session.pty_types import (
    PtyExecUpdate,
    clamp_pty_yield_time_ms,
    resolve_pty_write_yield_time_ms,
)
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, Permissions, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError

from ramet.agents.openai_agents.archive import BAD_ARCHIVE, Archive, again, pack, place
from ramet.agents.openai_agents.checkpoints import MAGIC, Pointer, RevisionNote, commit, repository_at, tree_at
from ramet.agents.openai_agents.gitrepo import fetch_repository
from ramet.agents.openai_agents.open_sandboxes import OPEN, OpenSandbox, SessionSource, open_sandbox
from ramet.agents.openai_agents.resolved_path import real_path
from ramet.agents.openai_agents.snapshots import RametSnapshot
from ramet.agents.openai_agents.terminals import Terminals
from ramet.core import ops
from ramet.core.errors import RametError, fail, reason
from ramet.core.paths import ROOT, Path, encode, parse
from ramet.core.resource import How
from ramet.core.stat import Kind, Stat, default_mode
from ramet.vfs.vfs import VFS

AnyPath: TypeAlias = HostPath | str
AnyUser: TypeAlias = str | User | None

FINGERPRINT_VERSION = "ramet_tree_v1"

_KINDS = {Kind.DIR: EntryKind.DIRECTORY, Kind.FILE: EntryKind.FILE, Kind.LINK: EntryKind.SYMLINK}
_SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")

logger = logging.getLogger(__name__)


class RametSandboxSessionState(SandboxSessionState):
    type: Literal["ramet"] = "ramet"
    checkpoint_store: str | None = None
    """Store in which `persist_workspace` commits a revision; it returns a pointer instead of an archive."""


class RametSandboxSession(BaseSandboxSession):
    """One sandbox on one workspace. Every command runs in a new shell, in the manifest's root."""

    state: RametSandboxSessionState

    def __init__(self, *, state: RametSandboxSessionState) -> None:
        self.state = state
        self._live: OpenSandbox | None = None
        self._given = SessionSource()
        self._running = False
        self._terminals = Terminals()

    @classmethod
    def from_state(cls, state: RametSandboxSessionState) -> RametSandboxSession:
        return cls(state=state)

    # ------------------------------------------------------------------------------------------- lifecycle

    async def _ensure_backend_started(self) -> None:
        preserved = self.state.session_id in OPEN
        if self._live is None or not preserved:
            self._live = await open_sandbox(self.state.session_id, self.state.manifest, self._given)
            self._set_start_state_preserved(preserved)

    async def _after_start(self) -> None:
        self._running = True
        self._set_start_state_preserved(True)

    async def _after_start_failed(self) -> None:
        self._running = False

    async def _after_shutdown(self) -> None:
        self._running = False

    def _wrap_stop_error(self, error: Exception) -> Exception:
        stopped: Exception = WorkspaceStopError(path=HostPath(self.state.manifest.root), cause=error)
        return stopped

    async def running(self) -> bool:
        return self._running

    async def _end(self) -> None:
        """Detach from the workspace, which is about to be deleted."""
        await self._terminals.end_all()
        self._running = False
        self._live = None
        self._set_start_state_preserved(False)
        self.state.workspace_root_ready = False

    def _here(self) -> OpenSandbox:
        if self._live is None or self._live.workspace.closed:
            raise WorkspaceRootNotFoundError(path=HostPath(self.state.manifest.root))
        return self._live

    @property
    def _fs(self) -> VFS:
        return self._here().workspace.fs

    async def _apply_manifest(
        self, *, only_ephemeral: bool = False, provision_accounts: bool = True
    ) -> MaterializationResult:
        self._refuse_accounts()
        return await self._applier().apply_manifest(
            self.state.manifest,
            only_ephemeral=only_ephemeral,
            provision_accounts=False,
            base_dir=self._manifest_base_dir(),
        )

    async def _apply_entry_batch(
        self, entries: Sequence[tuple[HostPath, BaseEntry]], *, base_dir: HostPath
    ) -> list[MaterializedFile]:
        return list(await self._applier()._apply_entry_batch(entries, base_dir=base_dir))

    def _applier(self) -> ManifestApplier:
        return ManifestApplier(
            mkdir=lambda path: self.mkdir(path, parents=True),
            exec_checked_nonzero=self._exec_checked_nonzero,
            apply_entry=self._apply_entry,
            max_entry_concurrency=self._max_manifest_entry_concurrency,
        )

    async def _apply_entry(self, entry: BaseEntry, dest: HostPath, base_dir: HostPath) -> list[MaterializedFile]:
        """Apply manifest entries that other backends handle with programs inside the sandbox; the SDK does the rest."""
        if isinstance(entry, Mount) and isinstance(entry.mount_strategy, InContainerMountStrategy):
            self._here().mount(parse(str(entry._resolve_mount_path(self, dest))), entry)
            return []
        if isinstance(entry, GitRepo):
            with self._recording("import", f"import a git repository to {dest}"):
                await fetch_repository(self._fs, entry, await self._reach(dest, for_write=True))
            await entry._apply_metadata(self, dest)
            return []
        return list(await entry.apply(self, dest, base_dir))

    async def provision_manifest_accounts(self) -> None:
        self._refuse_accounts()

    def _refuse_accounts(self) -> None:
        if self.state.manifest.users or self.state.manifest.groups:
            raise ValueError("RametSandboxSession does not support manifest users or groups: a workspace has one user")

    def _refuse_user(self, user: AnyUser, doing: tuple[str, ...]) -> None:
        """Refuse any user but the workspace's only one, before anything happens."""
        name = user.name if isinstance(user, User) else user
        if not name or name == self._here().workspace.settings.user.name:
            return
        raise ExecTransportError(
            command=doing,
            context={"reason": "user_not_supported", "user": name},
            message=f"a ramet sandbox has one user and cannot act as {name!r}; omit `user`",
            retryable=False,
        )

    # ------------------------------------------------------------------------------------------- executing

    def _prepare_exec_command(self, *command: str | HostPath, shell: bool | list[str], user: AnyUser) -> list[str]:
        self._refuse_user(user, tuple(str(word) for word in command))
        return list(super()._prepare_exec_command(*command, shell=shell, user=None))

    async def _exec_internal(self, *command: str | HostPath, timeout: float | None = None) -> ExecResult:
        live = self._here()
        if timeout is not None and timeout <= 0:
            raise ExecTimeoutError(command=command, timeout_s=timeout)
        await live.close_sessions(only_idle=True)
        number = live.take_number()
        session_id = live.session_id(number)
        try:
            env = await self._environment(live)
            live.workspace.create_session(session_id, env=env, cwd=str(live.root))
            left = False
            try:
                text, agent = as_text([str(w) for w in command]), live.agent_id
                result = await live.workspace.execute(text, session_id, agent_id=agent, timeout=timeout)
                left = not result.timed_out and live.runs(number)
            finally:
                if left:
                    live.lingering.append(number)
                else:
                    await live.close_session(number)
        except Exception as error:
            live.busy.discard(number)
            raise ExecTransportError(command=command, cause=error) from error
        if result.timed_out:
            raise ExecTimeoutError(
                command=command,
                timeout_s=timeout,
                context={"stdout_bytes": len(result.stdout), "stderr_bytes": len(result.stderr)},
            )
        return ExecResult(stdout=result.stdout, stderr=result.stderr, exit_code=result.exit_code)

    async def _environment(self, live: OpenSandbox) -> dict[str, str]:
        return {**await self.state.manifest.environment.resolve(), "HOME": str(live.root)}

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(
        self,
        *command: str | HostPath,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: AnyUser = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        live = self._here()
        argv = self._prepare_exec_command(*command, shell=shell, user=user)
        text = interactive(argv) if tty else as_text(argv)
        process_id = await self._terminals.start(live, text, await self._environment(live), tty=tty)
        wanted = clamp_pty_yield_time_ms(10_000 if yield_time_s is None else int(yield_time_s * 1000))
        return await self._terminals.collect(process_id, wanted, max_output_tokens)

    async def pty_write_stdin(
        self,
        *,
        session_id: int,
        chars: str,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        await self._terminals.type(session_id, chars)
        wanted = resolve_pty_write_yield_time_ms(
            yield_time_ms=250 if yield_time_s is None else int(yield_time_s * 1000), input_empty=not chars
        )
        return await self._terminals.collect(session_id, wanted, max_output_tokens)

    async def pty_terminate_all(self) -> None:
        await self._terminals.end_all()

    # ----------------------------------------------------------------------------------------------- ports

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        live = self._here()
        if live.workspace.programs is None:
            raise ExposedPortUnavailableError(
                port=port, exposed_ports=self.state.exposed_ports, reason="no_real_programs",
                context={"remediation": "RametSandboxClient(native=True)"}, retryable=False,
            )  # fmt: skip
        return ExposedPortEndpoint(host="127.0.0.1", port=await live.expose(port), tls=False)

    # ----------------------------------------------------------------------------------------------- paths

    async def _reach(self, path: AnyPath, *, for_write: bool = False, entry: bool = False) -> Path:
        """Resolve `path`; refuse a target outside. With `entry`, do not follow a final link."""
        policy = self._workspace_path_policy()
        asked = parse(policy.normalize_sandbox_path(path, for_write=for_write).as_posix())
        if entry and asked.name and asked != self._here().root:
            found = await real_path(self._fs, asked.parent) / asked.name
        else:
            found = await real_path(self._fs, asked)
        if found != asked:
            try:
                policy.normalize_sandbox_path(PurePosixPath(found), for_write=for_write)
            except InvalidManifestPathError as error:
                text = PurePosixPath(path)
                raise InvalidManifestPathError(
                    rel=text.as_posix(),
                    reason="absolute" if text.is_absolute() else "escape_root",
                    context={"resolved_path": str(found)},
                    cause=error,
                ) from error
        return found

    async def _validate_path_access(self, path: AnyPath, *, for_write: bool = False) -> HostPath:
        await self._reach(path, for_write=for_write)
        return HostPath(self.normalize_path(path, for_write=for_write))

    async def _validate_remote_path_access(
        self, path: AnyPath, *, for_write: bool = False, recursive_remove: bool = False
    ) -> HostPath:
        if recursive_remove:
            self._check_removal(await self._reach(path, for_write=True, entry=True))
        return await self._validate_path_access(path, for_write=for_write)

    def _check_removal(self, top: Path) -> None:
        """Refuse to remove a tree that contains a read-only grant."""
        for grant in self.state.manifest.extra_path_grants:
            if grant.read_only and parse(grant.path).under(top):
                self._workspace_path_policy().normalize_sandbox_path(grant.path, for_write=True)

    # ----------------------------------------------------------------------------------------------- files

    async def read(self, path: HostPath, *, user: AnyUser = None) -> io.IOBase:
        self._refuse_user(user, ("read", str(path)))
        try:
            return io.BytesIO(await ops.read_bytes(self._fs, await self._content(path)))
        except (FileNotFoundError, WorkspaceRootNotFoundError) as error:
            raise WorkspaceReadNotFoundError(path=HostPath(path), cause=error) from error
        except OSError as error:
            raise WorkspaceArchiveReadError(path=HostPath(path), cause=error) from error

    async def _read_bounded(self, path: HostPath, *, max_bytes: int) -> bytes:
        found = await self._content(path)
        return b"".join([block async for block in self._fs.read(found, 0, max_bytes)])

    async def _content(self, path: AnyPath) -> Path:
        """Resolve a readable regular file; reading a pipe could block forever."""
        found = await self._reach(path)
        if (await self._fs.stat(found)).kind not in (Kind.FILE, Kind.DIR):
            raise fail(errno.EINVAL, found, "Not a regular file")
        return found

    async def write(self, path: HostPath, data: io.IOBase, *, user: AnyUser = None) -> None:
        self._refuse_user(user, ("write", str(path)))
        stream = coerce_write_payload(path=HostPath(path), data=data).stream
        try:
            found = await self._reach(path, for_write=True)
            await self._store(found, stream, How.REPLACE)
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=HostPath(path), cause=error) from error

    async def _write_new_file(self, path: HostPath, data: io.IOBase, *, user: AnyUser = None) -> None:
        self._refuse_user(user, ("write", str(path)))
        stream = coerce_write_payload(path=HostPath(path), data=data).stream
        try:
            found = await self._reach(path, for_write=True, entry=True)
            await self._store(found, stream, How.CREATE)
        except FileExistsError:
            raise
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=HostPath(path), cause=error) from error

    def _recording(self, kind: str, summary: str) -> AbstractContextManager[object]:
        """Make one record of the changes of one call."""
        return self._here().workspace.recording(kind, summary, agent_id=self._here().agent_id)

    async def _store(self, found: Path, stream: io.IOBase, how: How) -> None:
        content: bytes = stream.read()  # type: ignore[attr-defined]
        with self._recording("tool", f"write {found} ({len(content)} bytes)"):
            await ops.make_dirs(self._fs, found.parent)
            if how is How.REPLACE and await self._is_pipe(found):
                raise fail(errno.EINVAL, found, "Not a regular file")
            await self._fs.write(found, content, how)

    async def _is_pipe(self, found: Path) -> bool:
        try:
            return (await self._fs.stat(found)).kind not in (Kind.FILE, Kind.DIR)
        except FileNotFoundError:
            return False

    async def ls(self, path: AnyPath, *, user: AnyUser = None) -> list[FileEntry]:
        shown = self.normalize_path(path)
        command = ("ls", "-la", "--", str(shown))
        self._refuse_user(user, command)
        try:
            entries = await ops.scan_sorted(self._fs, await self._reach(path))
        except OSError as error:
            _fail(command, f"ls: cannot access '{shown}'", error, 2)
        owner = self._here().workspace.settings.user.name
        return [_entry(shown, name, stat, owner) for name, stat in entries]

    async def mkdir(self, path: AnyPath, *, parents: bool = False, user: AnyUser = None) -> None:
        self._refuse_user(user, ("mkdir", str(path)))
        try:
            found = await self._reach(path, for_write=True)
            with self._recording("tool", f"mkdir {found}"):
                if parents:
                    await ops.make_dirs(self._fs, found.parent)
                try:
                    await self._fs.mkdir(found)
                except FileExistsError:
                    if not (await self._fs.stat(found)).is_dir:
                        raise
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=HostPath(path), cause=error) from error

    async def rm(self, path: AnyPath, *, recursive: bool = False, user: AnyUser = None) -> None:
        command = ("rm", *(("-rf",) if recursive else ()), "--", str(path))
        self._refuse_user(user, command)
        try:
            found = await self._reach(path, for_write=True, entry=True)
            if not await self._is_loop(found):
                await self._reach(path, for_write=True)  # refuse a link that leads outside
            await self._remove(found, recursive)
        except FileNotFoundError as error:
            if not recursive:
                _fail(command, f"rm: cannot remove '{path}'", error)
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=HostPath(path), cause=error) from error

    async def _is_loop(self, found: Path) -> bool:
        """Return whether this is a link that loops."""
        try:
            await real_path(self._fs, found)
        except OSError as error:
            return error.errno == errno.ELOOP
        return False

    async def _remove(self, found: Path, recursive: bool) -> None:
        with self._recording("tool", f"rm {found}"):
            if not recursive:
                await self._fs.remove(found)
            elif found == self._here().root:
                for name, _ in await ops.scan_sorted(self._fs, found):
                    await ops.remove_tree(self._fs, found / name)
            else:
                self._check_removal(found)
                await ops.remove_tree(self._fs, found)

    async def _remove_workspace_entry_on_resume(self, path: HostPath) -> None:
        try:
            await self._remove(await self._reach(path, for_write=True, entry=True), recursive=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise WorkspaceArchiveWriteError(path=path, cause=error) from error

    async def mv(self, source: AnyPath, destination: AnyPath, *, user: AnyUser = None) -> None:
        command = ("mv", "-f", "--", str(source), str(destination))
        self._refuse_user(user, command)
        try:
            src = await self._reach(source, for_write=True, entry=True)
            dst = await self._reach(destination, for_write=True, entry=True)
            if (await self._fs.stat(src)).kind not in (Kind.FILE, Kind.LINK):
                raise fail(errno.EINVAL, src, "Move source must be a regular file or symlink")
            with self._recording("tool", f"mv {src} {dst}"):
                await self._fs.rename(src, dst)
        except OSError as error:
            _fail(command, f"mv: cannot move '{source}' to '{destination}'", error)

    async def same_file(
        self, left: AnyPath, right: AnyPath, *, follow_symlinks: bool = True, user: AnyUser = None
    ) -> bool:
        command = ("test", str(left), "-ef", str(right))
        self._refuse_user(user, command)
        try:
            found = [await self._reach(path, entry=not follow_symlinks) for path in (left, right)]
            stats = [await self._fs.stat(path) for path in found]
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            _fail(command, "test", error)
        if not follow_symlinks and any(stat.is_link for stat in stats):
            return False
        if found[0] == found[1]:
            return True
        inode = stats[0].inode
        same_mount = self._fs.mount_of(found[0]) == self._fs.mount_of(found[1])
        return inode is not None and same_mount and inode == stats[1].inode

    # ----------------------------------------------------------------------------- snapshots of the workspace

    async def persist_workspace(self) -> io.IOBase:
        store = getattr(self.state, "checkpoint_store", None)  # a plain SDK state has no store
        if store is not None:
            return io.BytesIO((await self._checkpoint(store, self._own_name())).encode())
        try:
            live = self._here()
        except WorkspaceRootNotFoundError as error:
            gone = {"reason": "workspace_root_not_found"}
            raise WorkspaceArchiveReadError(
                path=HostPath(self.state.manifest.root), context=gone, cause=error
            ) from error
        skip = self._skipped()
        await live.workspace.sync()
        key = live.packed_key(skip)
        if key is not None and live.packed is not None and live.packed[0] == key:
            return io.BytesIO(live.packed[1])
        try:
            packed = await pack(live.workspace.fs, live.root, skip, *live.known(key, skip))
        except OSError as error:
            raise WorkspaceArchiveReadError(path=HostPath(live.root), cause=error) from error
        if packed.left_out:
            outside = ", ".join(packed.left_out)
            logger.warning("Links that lead out of the workspace are not in its snapshot: %s", outside)
        live.keep_packed(key, skip, packed)
        return io.BytesIO(packed.archive)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        await self._hydrate(data, clear=False)

    async def _hydrate(self, data: Any, *, clear: bool) -> None:
        """Load an archive into the workspace; a bad archive must not destroy the current files."""
        start: bytes = data.read(len(MAGIC))
        if start == MAGIC:
            await self._take_up(start + data.read())
            return
        root, source, opened = HostPath(self._here().root), data, None
        try:
            source = again(start, data)
            opened = Archive(source)
            with self._recording("import", f"import an archive to {root}"):
                if clear:
                    await self._clear_workspace_root_on_resume()
                await place(self._here().workspace.fs, self._here().root, opened)
        except UnsafeTarMemberError as error:
            context = {"reason": error.reason, "member": error.member}
            raise WorkspaceArchiveWriteError(path=root, context=context, cause=error) from error
        except BAD_ARCHIVE as error:
            raise WorkspaceArchiveWriteError(path=root, cause=error) from error
        finally:
            if opened is not None:
                opened.close()
            if source is not data:
                source.close()

    async def _persist_snapshot(self) -> None:
        snapshot = self.state.snapshot
        if not isinstance(snapshot, RametSnapshot):
            await super()._persist_snapshot()
            return
        record = await self._compute_and_cache_snapshot_fingerprint()
        try:
            await self._checkpoint(snapshot.store, snapshot.workspace)
        except (OSError, RametError) as error:
            raise SnapshotPersistError(snapshot_id=snapshot.id, path=HostPath(snapshot.store), cause=error) from error
        self.state.snapshot_fingerprint = record["fingerprint"]
        self.state.snapshot_fingerprint_version = record["version"]

    async def _restore_snapshot_into_workspace_on_resume(self) -> None:
        snapshot = self.state.snapshot
        if isinstance(snapshot, RametSnapshot):
            await self._take_up(Pointer(snapshot.store, snapshot.workspace, "head").encode())
            return
        archive = await snapshot.restore(dependencies=self.dependencies)
        try:
            await self._hydrate(archive, clear=True)
        finally:
            archive.close()

    async def checkpoint(self, store: str, workspace: str | None = None) -> Pointer:
        """Commit the workspace to a store, at the cost of the changes."""
        return await self._checkpoint(store, workspace or self._own_name())

    async def _checkpoint(self, store: str, workspace: str) -> Pointer:
        live = self._here()
        await live.workspace.sync()
        records = tuple(record.as_dict() for record in live.workspace.history.after(live.reported - 1))
        made = RevisionNote(live.message(), str(live.root), records)
        revision = await commit(store, workspace, await live.tree(self._skipped()), made)
        return Pointer(store, workspace, revision.id.hex())

    async def _take_up(self, raw: bytes) -> None:
        """Replace the workspace's files with a revision; mounts stay."""
        live = self._here()
        root = HostPath(live.root)
        try:
            pointer = Pointer.decode(raw)
            repository = repository_at(pointer.store)
            await live.take_up(await tree_at(repository, repository.find(pointer.workspace, pointer.revision)))
        except (OSError, ValueError, RametError) as error:
            raise WorkspaceArchiveWriteError(path=root, context={"reason": "revision"}, cause=error) from error

    def _own_name(self) -> str:
        return f"sandbox-{self.state.session_id}"

    def _skipped(self) -> list[str]:
        return sorted(path.as_posix() for path in self._persist_workspace_skip_relpaths())

    def _snapshot_fingerprint_version(self) -> str:
        return FINGERPRINT_VERSION

    async def _compute_and_cache_snapshot_fingerprint(self, *, version: str | None = None) -> dict[str, str]:
        """Return the content id of the tree, combined with its manifest, at the cost of the changes."""
        tree = (await self._here().tree(self._skipped())).digest(ROOT).hex()
        try:
            made_with = self._resume_manifest_digest()
        except ValueError:  # the SDK cannot serialize a manifest with binary content
            made_with = repr(self.state.manifest)
        text = f"{tree} {made_with}"
        record = {"fingerprint": hashlib.sha256(text.encode()).hexdigest(), "version": FINGERPRINT_VERSION}
        self._here().fingerprint = record
        return record

    async def _read_cached_snapshot_fingerprint(self) -> dict[str, str]:
        """Return the last fingerprint; the SDK itself would look for a file in the sandbox."""
        return self._here().fingerprint or await self._compute_and_cache_snapshot_fingerprint()

    async def _can_skip_snapshot_restore_on_resume(self, *, is_running: bool) -> bool:
        return bool(await self._live_workspace_matches_snapshot_on_resume())


# --------------------------------------------------------------------------------------------------- helpers


def as_text(argv: list[str]) -> str:
    """Quote a command's argv as shell text. `sh -c TEXT` stays a separate shell, with its `$0` and EXIT trap."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)


def interactive(argv: list[str]) -> str:
    """Return whether the command is an interactive shell, which reads and runs line by line."""
    words = argv[2].split() if len(argv) == 3 and argv[0] in _SHELLS and argv[1] in ("-c", "-lc") else argv
    if words and words[0] in _SHELLS and all(word in ("-i", "-l", "-il", "-li") for word in words[1:]):
        return 'while IFS= read -r REPLY; do eval "$REPLY"; done'
    return as_text(argv)


def _entry(directory: HostPath, name: str, stat: Stat, owner: str) -> FileEntry:
    mode = default_mode(stat.kind) if stat.mode is None else stat.mode
    return FileEntry(
        path=str(directory / name),
        permissions=Permissions.from_mode(mode | S_IFDIR if stat.is_dir else mode),
        owner=owner,
        group=owner,
        size=stat.size or 0,
        kind=_KINDS.get(stat.kind, EntryKind.OTHER),
    )


def _fail(command: tuple[str, ...], what: str, error: OSError, exit_code: int = 1) -> NoReturn:
    result = ExecResult(stdout=b"", stderr=encode(f"{what}: {reason(error)}\n"), exit_code=exit_code)
    raise ExecNonZeroError(result, command=command, cause=error) from error
