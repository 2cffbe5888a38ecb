"""`Drafter`: make the changes of each call durable before it is acknowledged, without moving the head.

- A step holds the difference to the step before, found by comparing the nodes of two forks: untouched nodes are
  identical objects and are skipped. Its cost is proportional to the change.
- Small changes are stored in the step itself, as one object. Large ones are written to packs like a commit, so that the
  final commit has nothing left to write for them.
- Ignored files enter a draft as little as a revision.
- A writer without the lease acknowledges nothing: taking over a lease appends an entry before reading drafts, and a
  drafter checks for that entry after it has written a step.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, Final

from ramet.backends.local.ram import RAMResource
from ramet.backends.local.ram_nodes import Dir, Fifo, File, Link
from ramet.core.errors import RametError
from ramet.core.paths import ROOT
from ramet.core.paths import encode as encode_name
from ramet.shell.expand.values import Assoc, Dynamic, Indexed, NameRef
from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.kernel_state import encode_json
from ramet.store.commit.memory_tree import Memo, TreeCommit, commit_memory, first_bytes, unchanged_tree
from ramet.store.commit.secret_scan import SecretScanner
from ramet.store.model.ids import SIZE, chunk_id
from ramet.store.model.revisions import MountState, Revision
from ramet.store.refs.drafts import (
    Change,
    DirectoryChange,
    DraftHeader,
    DraftStep,
    DraftWriter,
    FileChange,
    LinkChange,
    Removal,
    plain_mounts,
)
from ramet.workspace.stored.commit_writer import remote_state

if TYPE_CHECKING:
    from ramet.workspace.mounts import Mount
    from ramet.workspace.session import Session
    from ramet.workspace.stored.workspace import StoredWorkspace

STEP_BYTES: Final = 1024 * 1024
"""Bytes of new content up to which a step includes them."""
STEP_PATHS: Final = 2000
"""Changed paths up to which a step lists them."""
MAX_STEPS: Final = 64
"""Steps after which a fresh one replaces all before it."""
MAX_DRAFT_BYTES: Final = 4 * 1024 * 1024
"""Bytes of steps after which a fresh one replaces all before it."""
MIN_SHARED_BYTES: Final = 4096
"""Unchanged bytes at the start of a file from which on they are not written again."""
DRAFT_RETRIES: Final = 4
"""Retries after a collection removed what a draft relied on."""


class _TooLarge(Exception):
    """The change is too large for a step, and is written as trees."""


@dataclass(frozen=True)
class _MountBase:
    """Base of the changes of a mount: a stored tree (empty for none), and the same tree in memory."""

    tree: bytes = b""
    ram: RAMResource = field(default_factory=RAMResource)


class _ChangeCollector:
    """Collects the changes of one step."""

    def __init__(self, ws: StoredWorkspace, laid: set[bytes]) -> None:
        self._withheld, self._scope = ws.options.ignore_rules, ws.repository.scope(ws.name)
        self._look = SecretScanner("refuse").check if ws.options.scan == "refuse" else None
        self._stored_chunks, self._count, self._size = laid, 0, 0
        self.rows: list[Change] = []
        self.chunks: dict[bytes, bytes] = {}
        self.left_out: list[str] = []
        self.gone: list[str] = []
        self.relies = False
        """Whether the step refers to objects in packs."""

    def compare(self, prefix: str, before: RAMResource, after: RAMResource) -> list[Change]:
        self.rows = []
        mine, theirs = after.links, before.links
        if mine is not theirs and (len(mine) != len(theirs) or any(theirs.get(n) is not f for n, f in mine.items())):
            raise _TooLarge  # hard-linked files change without their directories
        old, new = before.node(ROOT), after.node(ROOT)
        assert isinstance(old, Dir) and isinstance(new, Dir)
        stack: list[tuple[bytes, str, Dir | None, Dir]] = [] if old is new else [(b"", "", old, new)]
        while stack:
            path, own_name, was, node = stack.pop()
            entries, had = node.entries, {} if was is None else was.entries
            names, gone = _changed_names(had, entries)
            drop = self._withheld.matching(own_name, {*names, *gone}, partial(first_bytes, after, entries))
            for name in gone:
                where = path + b"/" + encode_name(name)
                self.gone.append(prefix.rstrip("/") + where.decode("utf-8", "surrogateescape"))
                if name not in drop:
                    self._add(Removal(where))
            for name in names:
                entry, where = entries[name], path + b"/" + encode_name(name)
                if name in drop:
                    self.left_out.append(prefix.rstrip("/") + where.decode("utf-8", "surrogateescape"))
                    continue
                older = had.get(name)
                if isinstance(entry, int) or isinstance(older, int):
                    if entry == older:
                        continue
                    raise _TooLarge
                if older is not None and (isinstance(older, Link) or isinstance(entry, Link) or _is_dir(older, entry)):
                    self._add(Removal(where))
                    older = None
                if isinstance(entry, Dir):
                    known = self._stored_id(entry)
                    if known and older is None:
                        self._add(DirectoryChange(where, entry.mode, entry.mtime_ns, known))
                        self.relies = True
                        continue
                    self._add(DirectoryChange(where, entry.mode, entry.mtime_ns))
                    stack.append((where, name, older if isinstance(older, Dir) else None, entry))
                elif isinstance(entry, Link):
                    self._add(LinkChange(where, encode_name(entry.target), entry.mtime_ns))
                elif isinstance(entry, Fifo):
                    if older is not None:
                        self._add(Removal(where))
                else:
                    self._file(prefix, where, older if isinstance(older, File) else None, entry)
        return self.rows

    def _add(self, row: Change) -> None:
        self._count += 1
        if self._count > STEP_PATHS:
            raise _TooLarge
        self.rows.append(row)

    def _stored_id(self, node: Dir | File) -> bytes:
        """Return the stored id of a node; empty when it has none."""
        memo = node.memo
        return memo.payload if isinstance(memo, Memo) and memo.store is self._scope else b""

    def _file(self, prefix: str, where: bytes, older: File | None, node: File) -> None:
        content = node.content
        known = self._stored_id(node) or content.payload(self._scope) or b""
        if known:
            self.relies = True
            self._add(
                FileChange(
                    where, node.mode, node.mtime_ns, 0, [known[i : i + SIZE] for i in range(0, len(known), SIZE)]
                )
            )
            return
        keep = 0 if older is None or isinstance(older, Fifo) else older.content.common(content)
        keep = keep if keep >= MIN_SHARED_BYTES else 0
        self._size += content.size - keep
        if self._size > STEP_BYTES:
            raise _TooLarge
        data = content.pread(keep, content.size - keep) if keep else content.join()
        if self._look is not None and data:
            self._look(prefix.rstrip("/") + where.decode("utf-8", "surrogateescape"), data)
        identity = chunk_id(data)
        if data and identity not in self._stored_chunks:
            self.chunks[identity] = data
        self._add(FileChange(where, node.mode, node.mtime_ns, keep, [identity] if data else []))


def _changed_names(had: Mapping[str, object], entries: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the changed and the removed names of a directory."""
    before, after = list(had), list(entries)
    if after[: len(before)] == before:  # the usual case: compared without a Python loop
        changed = compress(after, map(is_not, had.values(), entries.values()))
        return [*changed, *after[len(before) :]], []
    return (
        [name for name, entry in entries.items() if had.get(name) is not entry],
        [name for name in before if name not in entries],
    )


class Drafter:
    """The draft of one open workspace. Callers hold its commit lock."""

    def __init__(self, ws: StoredWorkspace, every: float) -> None:
        assert ws.lease is not None
        self.every = every
        self._ws, self._repository = ws, ws.repository
        self._writer = DraftWriter(ws.repository, ws.name, ws.lease)
        base = b"" if ws.base is None else ws.base.id
        self._writer.open(DraftHeader(socket.gethostname(), ws.lease.number, base, ws.options.scan))
        try:
            self._check_lease_now()
        except RametError:
            self._writer.close()  # opened too late: it must not be used
            raise
        self._origins: dict[str, _MountBase] = {}
        self._last: dict[str, RAMResource] = {}
        """The memory mounts as of the last step."""
        self._sessions_seen: Any = None
        """The sessions as of the last step, cheap to compare."""
        self._mounted: Any = None
        self._seen: list[Mount] = []
        self._plain: list[dict[str, Any]] = []
        self._position = ws.history.next_number
        self._records: list[bytes] = []
        """The commands since the base revision, as JSON."""
        self._stored_chunks: set[bytes] = set()
        self._left_out: dict[str, None] = {}
        self._weight = self._least = 0
        self._fresh = True
        self.rebase(ws.base, {})

    def rebase(self, base: Revision | None, forks: Mapping[str, RAMResource]) -> None:
        """Base the next step on a revision that has everything so far, with these trees."""
        ws = self._ws
        trees = {mount.prefix: mount.tree for mount in base.mounts} if base is not None else {}
        scope = self._repository.scope(ws.name)
        self._origins = {}
        for mount in ws.mounts(scratch=True):
            prefix, resource = str(mount.prefix), mount.memory
            if resource is None:
                continue
            if prefix in forks:
                self._origins[prefix] = _MountBase(trees.get(prefix) or b"", forks[prefix])
            elif (tree := unchanged_tree(resource, scope)) is not None:
                self._origins[prefix] = _MountBase(tree, resource.fork())
        self._last = {prefix: origin.ram for prefix, origin in self._origins.items()}
        self._position, self._records = ws._position, []
        self._sessions_seen, self._fresh = _session_fingerprints(ws), True

    # ------------------------------------------------------------------------------------------------ looking

    def changed(self) -> bool:
        """Return whether anything changed since the last step; called after every call."""
        last, ws = self._last, self._ws
        for path, mount in ws._mounts.items():
            resource = mount.memory
            if resource is not None:
                known = last.get(path)
                if known is None:
                    root = resource.node(ROOT)
                    if isinstance(root, Dir) and root.entries:
                        return True
                elif known.node(ROOT) is not resource.node(ROOT) or known.links is not resource.links:
                    return True
        return bool(self._sessions_seen != _session_fingerprints(ws))

    # ------------------------------------------------------------------------------------------------ writing

    async def draft(self) -> None:
        """Write a step with everything that is not in the store yet."""
        ws = self._ws
        rams = {str(m.prefix): m.memory for m in ws.mounts(scratch=True) if m.memory is not None}
        # Only changed trees are forked: the next write to a forked tree copies nodes.
        forks = {
            prefix: known if known is not None and _same(known, ram) else ram.fork()
            for prefix, ram in rams.items()
            for known in (self._last.get(prefix),)
        }
        fresh = self._fresh or self._writer.steps >= MAX_STEPS or self._weight > MAX_DRAFT_BYTES + 2 * self._least
        seen, number = _session_fingerprints(ws), ws.history.next_number
        new = [encode_json(record.as_dict()) for record in ws.history.after(self._position - 1)]
        records = [*self._records, *new] if fresh else new
        mounted = self._mounts()
        step = DraftStep(
            b"" if ws.base is None else ws.base.id, fresh, self._repository.clock(), ws._lineage(ws.base),
            mounts=mounted if fresh or mounted != self._mounted else None,
            state=ws._kernel_state(number) if fresh or seen != self._sessions_seen else b"",
            records=_join_records(records),
        )  # fmt: skip
        if self._repository.packs.remote:
            await asyncio.to_thread(self._write, step, forks, new, ws._kernel_state(number))
        else:
            try:
                self._write_changes(step, forks)
            except _TooLarge:
                await asyncio.to_thread(self._write_trees, step, forks, new, ws._kernel_state(number))
        self._last, self._sessions_seen, self._position, self._mounted = forks, seen, number, mounted
        self._records += new
        await self._check_lease()

    async def _check_lease(self) -> None:
        """Check after a step that the lease is still held: a successor then finds the step."""
        if self._repository.packs.remote:
            await asyncio.to_thread(self._check_lease_now)
        else:
            self._check_lease_now()

    def _check_lease_now(self) -> None:
        ws, refs = self._ws, self._repository.refs
        assert ws.lease is not None
        if self._repository.clock() >= ws.lease.expires or not refs.is_last(ws.name, ws.lease):
            ws.lease = refs.renew(ws.name, ws.lease)

    def _write(self, step: DraftStep, forks: dict[str, RAMResource], new: list[bytes], state: bytes) -> None:
        try:
            self._write_changes(step, forks)
        except _TooLarge:
            self._write_trees(step, forks, new, state)

    def _write_changes(self, step: DraftStep, forks: dict[str, RAMResource]) -> None:
        """Write a step that lists the changes with their content."""
        fresh = step.fresh
        found = _ChangeCollector(self._ws, set() if fresh else self._stored_chunks)
        changes: dict[str, list[Change]] = {}
        trees: dict[str, bytes] = {}
        for prefix, fork in forks.items():
            origin = self._origins.get(prefix, _MountBase())
            if fresh:
                trees[prefix] = origin.tree
                found.relies |= bool(origin.tree) and self._is_draft(prefix, origin)
            before = origin.ram if fresh else self._last.get(prefix) or RAMResource()
            if before is not fork and (rows := found.compare(prefix, before, fork)):
                changes[prefix] = rows
        if fresh:
            self._left_out = {}
        for top in found.gone if self._left_out else ():
            self._left_out = {path: None for path in self._left_out if not f"{path}/".startswith(f"{top}/")}
        self._left_out.update(dict.fromkeys(found.left_out))
        full = _replace_step(step, trees=trees, changes=changes, chunks=found.chunks, withheld=sorted(self._left_out))
        number = self._repository.refresh_gc_state().number if found.relies else 0
        if found.relies and not self._repository.no_gc_since_start:
            raise _TooLarge
        size = self._writer.add(full)
        self._stored_chunks = (set() if fresh else self._stored_chunks) | found.chunks.keys()
        self._count(size, fresh)
        if found.relies and self._repository.refresh_gc_state().number != number:
            raise _TooLarge  # a collection started before the step was written: check its references again

    def _is_draft(self, prefix: str, origin: _MountBase) -> bool:
        """Return whether a tree belongs to this draft and to no revision."""
        base = self._ws.base
        return base is None or all(mount.tree != origin.tree for mount in base.mounts if mount.prefix == prefix)

    def _count(self, size: int, fresh: bool) -> None:
        self._weight = 0 if fresh else self._weight + size
        self._least = size if fresh else self._least
        self._fresh = False

    def _write_trees(self, step: DraftStep, forks: dict[str, RAMResource], new: list[bytes], state: bytes) -> None:
        """Write all trees to packs like a commit, and set the same memos."""
        ws, repository = self._ws, self._repository
        failure: RametError | None = None
        mounted = step.mounts or self._mounted
        for attempt in range(DRAFT_RETRIES):
            done: dict[str, TreeCommit] = {}
            left_out: list[str] = []
            writer = repository.writer(ws.name)
            scanner = None if ws.options.scan == "off" else SecretScanner(ws.options.scan)
            try:
                for prefix, fork in forks.items():
                    rules = CommitFilter.of_mount(ws.options.ignore_rules, scanner, prefix)
                    done[prefix] = commit_memory(fork, writer, repository.scope(ws.name), rules, trust=not attempt)
                    left_out += [prefix.rstrip("/") + path for path in done[prefix].withheld]
                writer.finish()
            except BaseException:
                writer.abandon()
                raise
            trees = {prefix: bytes(made.tree) for prefix, made in done.items()}
            mounts = tuple(MountState(prefix, "ram", tree=made.tree) for prefix, made in done.items())
            try:
                head = None if ws.base is None else ws.base.id
                number = repository.secure_content(ws.name, Revision(ws.name, 0, (), "", mounts), head)
            except RametError as error:
                if error.code != "content_collected":
                    raise
                failure = error
                continue
            full = _replace_step(
                step, fresh=True, trees=trees, state=state, mounts=mounted, withheld=sorted(left_out),
                records=_join_records([*self._records, *new]),
            )  # fmt: skip
            size = self._writer.add(full)
            if repository.refresh_gc_state().number != number:
                continue
            for made in done.values():
                made.settle()
            self._origins = {prefix: _MountBase(trees[prefix], fork) for prefix, fork in forks.items()}
            self._stored_chunks, self._left_out = set(), dict.fromkeys(left_out)
            self._count(size, True)
            return
        raise failure or RametError(
            "head_moved", "cannot write a draft: collections keep running", "wait for them to end"
        )

    def _mounts(self) -> list[dict[str, Any]]:
        """Describe the mounts as a revision does; cached while they are the same."""
        now = self._ws.mounts(scratch=True)
        if len(now) != len(self._seen) or any(map(is_not, now, self._seen)):
            self._plain, self._seen = plain_mounts(self._mount_states()), now
        return self._plain

    def _mount_states(self) -> list[MountState]:
        found: list[MountState] = []
        for mount in self._ws.mounts(scratch=True):
            if mount.memory is None and mount.directory is None and mount.tree is None:
                found.append(remote_state(mount))
                continue
            kind = "ram" if mount.directory is None else "disk"
            found.append(MountState(str(mount.prefix), kind, mount.mode.value, scratch=mount.scratch))
        return found

    def close(self) -> None:
        """Remove the draft after a clean end."""
        self._writer.close()


def _is_dir(one: object, other: object) -> bool:
    """Return whether exactly one of two nodes is a directory."""
    return isinstance(one, Dir) != isinstance(other, Dir)


def _replace_step(step: DraftStep, **values: Any) -> DraftStep:
    return DraftStep(**{**{name: getattr(step, name) for name in step.__struct_fields__}, **values})


def _join_records(records: list[bytes]) -> bytes:
    return b"[" + b",".join(records) + b"]" if records else b""


def _same(one: RAMResource, other: RAMResource) -> bool:
    return one.node(ROOT) is other.node(ROOT) and one.links is other.links


def _session_fingerprints(ws: StoredWorkspace) -> list[Any]:
    """Return the parts of sessions that calls usually change, without those that every call changes."""
    return [_of_session(session) for session in ws.sessions.started()]


def _of_session(session: Session) -> tuple[Any, ...]:
    sh = session.state
    values: dict[str, Any] = {}
    for name, value in sh.variables.values.items():
        if type(value) is str:
            values[name] = value
        elif isinstance(value, Indexed):
            values[name] = None if name == "PIPESTATUS" else list(value.pairs())
        elif isinstance(value, Assoc):
            values[name] = dict(value.items)
        elif isinstance(value, NameRef):
            values[name] = value.target
        elif not isinstance(value, Dynamic):
            values[name] = value
    return (
        session.session_id, str(sh.cwd), values, dict(sh.variables.attrs), dict(sh.functions), dict(sh.aliases),
        set(sh.options), set(sh.shopts), dict(sh.traps), list(sh.dirs), sh.umask, list(sh.params),
    )  # fmt: skip
