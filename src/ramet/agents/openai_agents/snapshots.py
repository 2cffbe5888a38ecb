"""`RametSnapshot`: sandbox snapshots of any SDK backend as store revisions, with log, diff and fork."""

from __future__ import annotations

import asyncio
import io
import logging
from pathlib import Path as HostPath
from typing import Literal

from agents.sandbox.errors import SnapshotNotRestorableError, SnapshotPersistError, SnapshotRestoreError
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec
from pydantic import Field

from ramet.agents.openai_agents.checkpoints import MAGIC, Pointer, RevisionNote, export, record, repository_at, tree_of
from ramet.core.errors import RametError
from ramet.store.model.revisions import Revision
from ramet.store.refs.resolve import RevisionLike
from ramet.store.verbs.diff import Difference
from ramet.workspace.stored.archive_import import ImportOptions, import_archive
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.store import home

logger = logging.getLogger(__name__)


class RametSnapshot(SnapshotBase):
    """The head of a stored workspace. Every `stop` of a session adds a revision.

        snapshot = RametSnapshotSpec(store="~/.ramet", workspace="report")
        session = await UnixLocalSandboxClient().create(snapshot=snapshot)   # or any other backend
        ...
        session.state.snapshot.log(); session.state.snapshot.diff(); session.state.snapshot.fork("other-way")

    The store is any address that `ramet.Store` takes; its credentials come from the environment only.
    """

    type: Literal["ramet"] = "ramet"
    store: str
    workspace: str

    async def persist(self, data: io.IOBase, *, dependencies: Dependencies | None = None) -> None:
        try:
            await asyncio.to_thread(self._persist, data)
        except (OSError, ValueError, RametError) as error:
            raise SnapshotPersistError(snapshot_id=self.id, path=self._where(), cause=error) from error

    async def restore(self, *, dependencies: Dependencies | None = None) -> io.IOBase:
        """Return a tar that every backend accepts; Ramet's own sessions use the revision directly."""
        if not await self.restorable():
            raise SnapshotNotRestorableError(snapshot_id=self.id, path=self._where())
        try:
            return await asyncio.to_thread(self._restore)
        except (OSError, ValueError, RametError) as error:
            raise SnapshotRestoreError(snapshot_id=self.id, path=self._where(), cause=error) from error

    async def restorable(self, *, dependencies: Dependencies | None = None) -> bool:
        return await asyncio.to_thread(self._head) is not None

    # ------------------------------------------------------------------------------------- over the revisions

    def log(self) -> list[Revision]:
        """List the revisions of this workspace, newest first."""
        return repository_at(self.store).log(self.workspace)

    def diff(self, older: RevisionLike | None = None, newer: RevisionLike | None = None) -> list[Difference]:
        """List the changes from the older to the newer revision; with one, what it changed; with none, the newest."""
        return StoredWorkspaceRef(repository_at(self.store), self.workspace).diff(older, newer)

    def fork(self, workspace: str, revision: RevisionLike | None = None) -> RametSnapshot:
        """Fork a revision (default: the head) as a new snapshot, without a copy."""
        repository_at(self.store).fork(self.workspace, revision, workspace)
        return RametSnapshot(id=workspace, store=self.store, workspace=workspace)

    # -------------------------------------------------------------------------------------------------- parts

    def _persist(self, data: io.IOBase) -> None:
        repository = repository_at(self.store)
        start: bytes = data.read(len(MAGIC))  # type: ignore[attr-defined]
        message = f"snapshot {self.id}"
        if start == MAGIC:
            pointer = Pointer.decode(data.read())  # type: ignore[attr-defined]
            if pointer.store != self.store:
                raise ValueError(f"the revision is in {pointer.store}, not in {self.store}")
            tree = tree_of(repository.find(pointer.workspace, pointer.revision))
            record(repository, self.workspace, tree, RevisionNote(message))
            return
        stream = io.BufferedReader(_PrefixedStream(start, data))
        done = import_archive(repository, self.workspace, stream, ImportOptions(kind="tar", message=message))
        if done.left_out:
            logger.warning("Not in the snapshot: %s", ", ".join(done.left_out))

    def _restore(self) -> io.IOBase:
        head = self._head()
        assert head is not None
        archive, left_out = export(repository_at(self.store), head)
        if left_out:
            logger.warning("Links that lead out of the workspace are not restored: %s", ", ".join(left_out))
        return archive  # type: ignore[return-value]

    def _head(self) -> Revision | None:
        repository = repository_at(self.store)
        return repository.head(self.workspace) if repository.refs.exists(self.workspace) else None

    def _where(self) -> HostPath:
        return HostPath(f"<ramet:{self.workspace}>")


class RametSnapshotSpec(SnapshotSpec):
    """The store of sessions' snapshots: one workspace per session, or the named one for all.

    With a name, a new session continues where the last one ended, and the log shows the agent's runs.
    """

    type: Literal["ramet"] = "ramet"
    store: str = Field(default_factory=home)
    workspace: str | None = None

    def build(self, snapshot_id: str) -> RametSnapshot:
        return RametSnapshot(id=snapshot_id, store=self.store, workspace=self.workspace or f"sandbox-{snapshot_id}")


class _PrefixedStream(io.RawIOBase):
    """A stream with the bytes already read put back in front."""

    def __init__(self, start: bytes, rest: io.IOBase) -> None:
        self._start, self._rest = start, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data: bytes = self._start[: len(buffer)] or self._rest.read(len(buffer)) or b""  # type: ignore[attr-defined]
        self._start = self._start[len(data) :]
        buffer[: len(data)] = data
        return len(data)
