"""`StoredWorkspaceRef`: history and operations of a stored workspace, without opening it."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from ramet.core.errors import RametError, wrong_type
from ramet.core.paths import decode, parse
from ramet.core.progress import Progress, silent
from ramet.core.resource import Resource
from ramet.core.stat import Kind, Stat
from ramet.native.ports import ListeningPort
from ramet.network.forward import Failed, Forward, listen_on_loopback
from ramet.store.checkout.walk import entries
from ramet.store.model.address import parse_address
from ramet.store.model.graph import GraphRow, draw_graph
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.model.trees import DIR, FILE, LINK, Node
from ramet.store.refs.ancestry import revisions_of_records
from ramet.store.refs.grants import Access
from ramet.store.refs.resolve import RevisionLike, names_head, spec_text
from ramet.store.refs.retention import Pin
from ramet.store.refs.tags import Tag
from ramet.store.repository import Repository
from ramet.store.verbs.diff import Difference
from ramet.workspace.snapshot.archive import Target
from ramet.workspace.stored.held_box import HeldPorts

if TYPE_CHECKING:
    from ramet.store.checkout.directory import How, Receipt
    from ramet.store.verbs.blame import BlameLine
    from ramet.store.verbs.git_export import GitExport
    from ramet.store.verbs.merge import Side
    from ramet.store.verbs.revert import MergeResult
    from ramet.workspace.record.history import ExecutionRecord, RecordFilter
    from ramet.workspace.stored.archive_import import ImportResult
    from ramet.workspace.stored.bisect import BisectResult
    from ramet.workspace.stored.costs import CostRow
    from ramet.workspace.stored.file_patch import FilePatch
    from ramet.workspace.stored.git_push import Push, Pushed, Secrets
    from ramet.workspace.stored.saved_state import EndedJob, SavedSession

KINDS = ("snapshot", "tar")


def _path(path: str) -> str:
    if not isinstance(path, str):
        raise wrong_type("a path", path, "Pass text.")
    return str(parse(path or "/"))


def _stat(node: Node) -> Stat:
    kind = {FILE: Kind.FILE, DIR: Kind.DIR, LINK: Kind.LINK}[node.kind]
    return Stat(
        kind, node.size if node.kind == FILE else None, node.mtime_ns or None, mode=node.mode,
        target=decode(node.payload) if node.kind == LINK else None,
    )  # fmt: skip


class StoredWorkspaceRef:
    """A stored workspace by name.

    A revision is a `Revision`, a `Tag`, a number, an id, or a text as after `NAME@`: `head~2`, a tag, the start of
    an id.
    """

    def __init__(self, repository: Repository, name: str) -> None:
        self._repository, self.name = repository, name

    def __repr__(self) -> str:
        return f"<stored workspace {self.name}>"

    @property
    def head(self) -> Revision | None:
        return self._repository.head(self.name)

    def find(self, revision: RevisionLike | None = None) -> Revision:
        """Find a revision of this history; `OTHER@REV` finds one of another workspace."""
        return self._repository.resolve_from(self.name, revision)

    def log(
        self,
        revision: RevisionLike | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        without: RevisionLike | None = None,
        records: tuple[int, int] | Set[int] | None = None,
    ) -> list[Revision]:
        """List revisions, newest first, children before their parents; from the head, or from an older revision.

        With `limit` it is the newest ones after the first `offset`, and the others are not read. `without` leaves out a
        revision and all its ancestors, so that the rest is what one history has and another one lacks. `records`
        selects the revisions that hold records of these numbers: the first and the last, or a set. Calls that changed
        no file are in `history` and make no revision.
        """
        from ramet.store.model.graph import newest_first

        repository, end = self._repository, None if limit is None else offset + limit
        if records is not None:
            start = self._find_or_none(revision)
            held = () if start is None or not records else revisions_of_records(repository, start, records)
            return repository.notes.attach(self.name, list(islice(held, offset, end)))
        if limit is None and without is None and not offset:
            if revision is None:
                found = repository.log(self.name)
            else:
                found = newest_first(repository.ancestors(self.find(revision)).values())
            return repository.notes.attach(self.name, found)
        known = None if without is None else self.find(without)
        start = self._find_or_none(revision)
        lines = iter(()) if start is None else repository.descents_of(start, known)
        return repository.notes.attach(
            self.name, [repository.read_revision(one.id) for one in islice(lines, offset, end)]
        )

    def expired_parents(self, revision: Revision) -> tuple[RevisionId, ...]:
        """Return parents that retention removed, where the history ends."""
        return self._repository.expired_parents(revision)

    def graph(self, revision: RevisionLike | None = None) -> list[GraphRow]:
        """Draw the history: a row per revision, and connecting rows."""
        return draw_graph(self.log(revision))

    def show(self, path: str, revision: RevisionLike | None = None) -> Iterator[bytes]:
        """Return the content of a file of a revision, in blocks."""
        return self._repository.read_file(self.find(revision), _path(path))

    def ls(self, path: str = "/", revision: RevisionLike | None = None) -> list[tuple[str, Stat]]:
        """List a directory of a revision: kind, mode, size of files, time and target of links, by name."""
        found = entries(self._repository.packs.read, self.find(revision), _path(path))
        return [(decode(node.name), _stat(node)) for node in found]

    def diff(self, older: RevisionLike | None = None, newer: RevisionLike | None = None) -> list[Difference]:
        """List the changes from the older to the newer revision, of any workspaces.

        With one revision, list what it changed since its parent; with none, what the head changed.
        """
        if older is not None and newer is not None:
            return self._repository.diff(self.find(older), self.find(newer))
        found = self.find(older if newer is None else newer)
        if self._repository.expired_parents(found)[:1] == found.parents[:1] and found.parents:
            raise RametError(
                "revision_expired", f"cannot diff {found.name}: the revision before it has expired",
                "compare it with another revision",
            )  # fmt: skip
        before = self._repository.read_revision(found.parents[0]) if found.parents else None
        return self._repository.diff(before, found)

    def patch(
        self, older: RevisionLike | None = None, newer: RevisionLike | None = None, paths: Iterable[str] = ()
    ) -> Iterator[FilePatch]:
        """Yield the changed lines of each file, as `diff` takes its revisions; `str(patch)` is its text."""
        from ramet.workspace.stored.file_patch import file_patches

        return file_patches(self, older, newer, paths)

    def blame(self, path: str, revision: RevisionLike | None = None) -> list[BlameLine]:
        """Return each line of a file with its revision, and the session and command that wrote it, if known."""
        from ramet.store.verbs.blame import blame

        return blame(self._repository, self.find(revision), _path(path))

    async def bisect(
        self,
        good: RevisionLike,
        bad: RevisionLike | None,
        command: str,
        *,
        resources: Mapping[str, Resource] | None = None,
        timeout: float | None = None,
        progress: Progress = silent,
    ) -> BisectResult:
        """Find the first revision in which a command fails: status 0 is good, 125 skips, any other is bad."""
        from ramet.workspace.stored.bisect import bisect
        from ramet.workspace.stored.open_options import OpenOptions
        from ramet.workspace.stored.store import WorkspaceOpener

        options = OpenOptions(readonly=True, resources=resources or {})
        first, last = self.find(good), self.find(bad)
        elsewhere = {first.id: self._workspace_of(good)}  # revisions between them are in the history of the bad one

        async def attempt(revision: Revision) -> int:
            name = elsewhere.get(revision.id) or self._workspace_of(bad)
            async with WorkspaceOpener(self._repository, name, revision.id.hex(), options) as ws:
                return (await ws.execute(command, timeout=timeout)).exit_code

        return await bisect(self._repository, first, last, attempt, progress)

    def _workspace_of(self, revision: RevisionLike | None) -> str:
        """Return the workspace that has a revision in its history."""
        text = spec_text(revision, self.name)
        return parse_address(text).name if text is not None and "@" in text else self.name

    # --------------------------------------------------------------------------------------- looking inside

    def history(
        self,
        revision: RevisionLike | None = None,
        *,
        session: str | None = None,
        last: int | None = None,
        where: RecordFilter | None = None,
    ) -> list[ExecutionRecord]:
        """List the records, newest last: up to a revision, of one session, those that fit `where`, the `last` ones."""
        from ramet.workspace.record.history import merge_filters
        from ramet.workspace.stored.saved_state import history_of

        found = self._latest_or(revision)
        return [] if found is None else history_of(self._repository, found, merge_filters(where, session), last)

    def count_history(self, revision: RevisionLike | None = None) -> int:
        """Count the records up to a revision."""
        from ramet.workspace.stored.saved_state import count_history

        found = self._latest_or(revision)
        return 0 if found is None else count_history(self._repository, found)

    def costs(
        self,
        revision: RevisionLike | None = None,
        *,
        by: str = "agent",
        since: float | None = None,
        until: float | None = None,
    ) -> list[CostRow]:
        """Total the records by `agent`, `session` or `principal`: commands, failures, time, bytes, tokens, money."""
        from ramet.workspace.stored.costs import costs_of, total_costs

        found = self._latest_or(revision)
        if found is None or since is not None or until is not None:
            return total_costs(self.history(revision), by=by, since=since, until=until)
        return costs_of(self._repository, found, by=by)

    def sessions(self, revision: RevisionLike | None = None) -> list[SavedSession]:
        """List the sessions of a revision."""
        from ramet.workspace.stored.saved_state import sessions_of

        found = self._latest_or(revision)
        return [] if found is None else sessions_of(self._repository, found)

    def jobs(self, revision: RevisionLike | None = None) -> list[EndedJob]:
        """List finished background jobs; running ones belong to a process."""
        from ramet.workspace.stored.saved_state import jobs_of

        found = self._latest_or(revision)
        return [] if found is None else jobs_of(self._repository, found)

    def mounts(self, revision: RevisionLike | None = None) -> tuple[MountState, ...]:
        """List the mounts of a revision."""
        found = self._find_or_none(revision)
        return () if found is None else found.mounts

    def _latest_or(self, revision: RevisionLike | None) -> Revision | None:
        """Return what has the sessions and the history of a revision, or the newest ones."""
        return self._repository.head_and_latest(self.name)[1] if names_head(revision) else self.find(revision)

    def _find_or_none(self, revision: RevisionLike | None) -> Revision | None:
        """Return a revision; None for the head of an empty workspace."""
        if revision is None:
            self._repository.refs.require(self.name)
            self._repository.check_access(self.name)
        return self.head if revision is None else self.find(revision)

    # --------------------------------------------------------------------------------------- moving the head

    def fork(self, revision: RevisionLike | None, new_name: str) -> Revision:
        return self._repository.fork(self.name, revision, new_name)

    def rename(self, new_name: str) -> StoredWorkspaceRef:
        """Continue this workspace under another name, with history, tags and grants; the old name is in the trash."""
        self._repository.rename(self.name, new_name)
        return StoredWorkspaceRef(self._repository, new_name)

    def revert(self, revision: RevisionLike, message: str = "", paths: list[str] | None = None) -> Revision:
        """Create a new head with the content of a past revision: all of it, or only these paths."""
        if paths:
            return self._repository.revert_paths(self.name, revision, [_path(path) for path in paths], message)
        return self._repository.revert(self.name, revision, message)

    def undo(self, *, agent: str | None = None, run: str | None = None, message: str = "") -> MergeResult:
        """Undo the last change, or what an agent or run changed and nothing else. Conflicts change nothing."""
        return self._repository.undo(self.name, agent=agent, run=run, message=message)

    def merge(
        self,
        other: str | Revision,
        message: str = "",
        *,
        take: Mapping[str, Side] | None = None,
        edited: Mapping[str, bytes] | None = None,
    ) -> MergeResult:
        """Merge another workspace (`OTHER` or `OTHER@REV`) into this one. Conflicts are data and change nothing.

        `take` resolves conflicts by a side (`{"/f": "theirs"}`, `{"*": "ours"}`), `edited` by a new content.
        """
        from ramet.store.verbs.merge import Resolution

        return self._repository.merge(self.name, other, message, Resolution(take or {}, edited or {}))

    # ------------------------------------------------------------------------------------------------- tags

    def tag(
        self,
        tag: str,
        revision: RevisionLike | None = None,
        *,
        message: str = "",
        author: str = "",
        force: bool = False,
    ) -> Tag:
        """Tag a revision, so that `NAME@TAG` finds it and it is kept."""
        return self._repository.tag(self.name, tag, revision, message=message, author=author, force=force)

    def tags(self) -> list[Tag]:
        self._repository.refs.require(self.name)
        self._repository.check_access(self.name)
        return self._repository.tags.of(self.name)

    def untag(self, tag: str) -> None:
        self._repository.refs.require(self.name)
        self._repository.check_access(self.name, "readwrite")
        self._repository.tags.delete(self.name, tag)

    def note(
        self, message: str, revision: RevisionLike | None = None, *, path: str = "", line: int = 0, author: str = ""
    ) -> Revision:
        """Add a note to a revision, or to a file or a line of it; return the revision with its `notes`.

        A note is never changed. `log` shows it, and `rename` keeps it.
        """
        if not message.strip():
            raise RametError("invalid_argument", "a note needs a message", "say what it is about")
        if line < 0 or (line and not path):
            raise RametError("invalid_argument", f"line {line} needs a path, and counts from 1", "name the file")
        found = self.find(revision)
        where = str(_path(path)) if path else ""
        return self._repository.note(self.name, found, message, author, where, line)

    def grants(self) -> Mapping[str, str]:
        """Return the grants (`readonly`, `readwrite`) by principal; empty when everyone has full access."""
        self._repository.refs.require(self.name)
        self._repository.check_access(self.name)
        return self._repository.grants.of(self.name)

    def grant(self, principal: str, access: Access) -> None:
        """Grant a principal access; from the first grant on, all others lose it."""
        self._repository.grant(self.name, principal, access)

    def revoke(self, principal: str) -> None:
        """Revoke the grant of a principal."""
        self._repository.grant(self.name, principal, None)

    def pin(self, revision: RevisionLike | None = None, *, seconds: float | None = None, why: str = "") -> Pin:
        """Pin a revision, for some seconds or until the pin is removed."""
        return self._repository.pin(self.name, revision, seconds=seconds, why=why)

    # ------------------------------------------------------------------------------------------ interchange

    def checkout(
        self,
        target: str | os.PathLike[str],
        revision: RevisionLike | None = None,
        prefix: str | None = None,
        *,
        how: How = "copy",
        verify: bool = False,
        progress: Progress = silent,
    ) -> Receipt:
        """Write all mounts, or the one at `prefix`, to a directory; `left_out` names mounts without content."""
        if not isinstance(target, str | os.PathLike):
            raise wrong_type("a directory", target, "Pass a path.")
        return self._repository.checkout(
            self.find(revision), prefix, os.fspath(target), how=how, verify=verify, progress=progress
        )

    def export(
        self,
        target: Target,
        revision: RevisionLike | None = None,
        *,
        kind: str = "snapshot",
        compress: str | None = None,
        progress: Progress = silent,
    ) -> Revision:
        """Write a revision as a tar: a `snapshot` with sessions and history, or a plain `tar` of its files."""
        from ramet.workspace.stored.export import export_snapshot, export_tar

        if not isinstance(target, str | os.PathLike) and not hasattr(target, "write"):
            raise wrong_type("the target of an export", target, "Pass a path or a binary file.")
        if kind not in KINDS:
            raise RametError("invalid_argument", f"unknown kind of export {kind!r}", "use snapshot or tar")
        found = self.find(revision)
        if kind == "tar":
            export_tar(self._repository, found, target, compress, progress)
        else:
            latest = self._repository.latest_of(self.name, found) if names_head(revision) else found
            export_snapshot(self._repository, found, target, compress, progress, latest)
        return found

    def export_git(self, target: str, *, progress: Progress = silent) -> GitExport:
        """Write the whole history as a git repository in a new directory (bare when its name ends in `.git`)."""
        from ramet.workspace.stored.export import export_git

        self.find()
        return export_git(self._repository, self.name, target, progress)

    def git_stream(self, *, progress: Progress = silent) -> Iterator[bytes]:
        """Yield the whole history as a `git fast-import` stream; needs no git."""
        self.find()
        from ramet.store.verbs.git_export import GitExport, branch_name, fast_import

        return fast_import(self._repository, self.name, GitExport(branch_name(self.name)), progress)

    def push(
        self,
        remote: str,
        revision: RevisionLike | None = None,
        *,
        branch: str = "{{.name}}",
        paths: Sequence[str] = ("/",),
        token: str | None = None,
        username: str = "x-access-token",
    ) -> Pushed:
        """Push a revision as one commit of a git branch. A failed push is kept: `pushes` lists it, `push_again` retries
        it."""
        from ramet.workspace.stored.git_push import GitSettings, plan_push, record_push, run_push

        place = ("push", "token")
        settings = GitSettings(tuple(paths), {}, username, None if token is None else place)
        planned = plan_push({"remote": remote, "branch": branch}, settings, self.name, self.find(revision), self.name)
        record_push(self._repository, planned)
        return run_push(self._repository, planned, {} if token is None else {place[0]: {place[1]: token}})

    def ports(self) -> list[ListeningPort]:
        """List the ports at which programs of the workspace listen, in the process of this machine that has it open."""
        held = HeldPorts(self._repository, self.name)
        try:
            return held.listening()
        finally:
            held.close()

    @asynccontextmanager
    async def forward(
        self, port: int, local: int | socket.socket = 0, *, failed: Failed | None = None
    ) -> AsyncIterator[Forward]:
        """Lead a port of this machine's loopback to one of the workspace: `async with ref.forward(8000) as forward`.

        `local` is that port, or a socket that listens; 0 picks a free one, `forward.port`. `failed` is told why a
        connection could not be made.
        """
        held = HeldPorts(self._repository, self.name)
        try:
            async with Forward(listen_on_loopback(local), partial(held.connect, port), failed=failed) as forward:
                yield forward
        finally:
            held.close()

    def pushes(self) -> list[Push]:
        """List pushes that are not done."""
        from ramet.workspace.stored.git_push import pending_pushes

        self._find_or_none(None)
        return pending_pushes(self._repository, self.name)

    def push_again(self, push: Push, secrets: Secrets) -> Pushed:
        """Retry a push; `secrets` has its credentials by name and key."""
        from ramet.workspace.stored.git_push import run_push

        return run_push(self._repository, push, secrets)

    def import_archive(
        self,
        source: Target,
        *,
        prefix: str = "/",
        message: str = "",
        author: str = "",
        kind: str | None = None,
        progress: Progress = silent,
    ) -> ImportResult:
        """Import a tar as the next revision: a snapshot replaces everything, any other tar the mount at `prefix`."""
        from ramet.workspace.stored.archive_import import ImportOptions, import_archive

        options = ImportOptions(prefix, message, author, kind, progress)
        return import_archive(self._repository, self.name, source, options)
