"""`CommitWriter`: write the mounts and the kernel state of one commit into packs.

It runs in a thread. Memory mounts are forks that no call changes any more; directories are read as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ramet.backends.local.ram import RAMResource
from ramet.core.paths import parse
from ramet.core.progress import Progress, silent
from ramet.native.tree import TreeResource
from ramet.native.upper import make_readable
from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.kernel_state import Segments, write_chunk
from ramet.store.commit.memory_tree import TreeCommit, commit_memory
from ramet.store.commit.secret_scan import SecretScanner
from ramet.store.commit.stat_cache import StatCache
from ramet.store.commit.watch import Watcher
from ramet.store.model.ids import ChunkId, TreeId
from ramet.store.model.revisions import MemoryImage, MountState, Revision
from ramet.store.model.trees import EMPTY_ID
from ramet.store.packs.writer import PackWriter
from ramet.store.repository import Repository
from ramet.workspace.mounts import Mount
from ramet.workspace.snapshot.resource_codec import save_resource
from ramet.workspace.stored.version_pins import VersionPins

if TYPE_CHECKING:
    from ramet.store.commit.directory import DirectoryCommit
    from ramet.store.commit.overlay import OverlayCache
    from ramet.workspace.stored.workspace import StoredWorkspace


@dataclass(frozen=True)
class CommitRequest:
    """The arguments of `StoredWorkspace.commit`."""

    message: str = ""
    author: str = ""
    agent: str = ""
    trace_id: str = ""
    diff: bool = True
    outputs: Collection[str] = ()
    progress: Progress = silent
    noting: Callable[[Revision], None] | None = None
    memory: MemoryImage | None = None
    subject: str = ""
    """The message where the caller gives none."""
    allow_none: bool = False
    """Whether a workspace without files and without a revision may stay so."""


@dataclass(frozen=True)
class CommitInput:
    """The state of a workspace at the moment of a commit, taken on its event loop."""

    forks: Mapping[str, RAMResource]
    pins: Mapping[str, VersionPins]
    kernel: bytes
    segments: Mapping[int, list[dict[str, Any]]]
    oldest: int
    """The number of the oldest record of the history."""


@dataclass(frozen=True)
class CommitResult:
    """What is durable in packs, and not named by any revision yet."""

    mounts: tuple[MountState, ...]
    kernel: ChunkId
    history: tuple[ChunkId, ...]
    trees: list[TreeCommit]
    """The trees of memory mounts, whose memos are set once the head has moved."""
    withheld: tuple[str, ...]
    suspected: tuple[str, ...]

    def changes_nothing(self, base: Revision | None, request: CommitRequest) -> bool:
        """Whether no revision is needed: files, mounts and everything else but records are as in the base."""
        if base is None:
            return request.allow_none and self.is_empty
        return (
            base.mounts == self.mounts
            and base.memory == request.memory
            and (not request.outputs or base.outputs == tuple(sorted(request.outputs)))
            and set(self.withheld) <= set(base.withheld)
            and set(self.suspected) <= set(base.suspected)
        )

    @property
    def is_empty(self) -> bool:
        """Whether these are the mounts of a new workspace in which nothing was written."""
        own = [mount.prefix for mount in self.mounts if not mount.scratch]
        return own == ["/"] and all(mount == _empty(mount) for mount in self.mounts)

    def has_kernel_of(self, other: Revision) -> bool:
        """Whether a revision has these sessions and this history."""
        return (other.kernel, other.history) == (self.kernel, self.history)


@dataclass
class DirectoryCaches:
    """What a process knows of its mounted directories between commits, by prefix."""

    stats: dict[str, StatCache] = field(default_factory=dict)
    watchers: dict[str, Watcher] = field(default_factory=dict)
    overlays: dict[str, OverlayCache] = field(default_factory=dict)

    def watch(self, prefix: str, root: str) -> None:
        if prefix not in self.watchers:
            self.watchers[prefix] = Watcher(root)

    def of(self, repository: Repository, name: str, prefix: str, root: str) -> tuple[StatCache, set[bytes] | None]:
        """The stat cache of a directory, and which of its directories changed, if it is watched."""
        if prefix not in self.stats:
            self.stats[prefix] = repository.stat_cache(name, root)
        stats, watcher = self.stats[prefix], self.watchers.get(prefix)
        return stats, None if watcher is None else watcher.take(stats)


class CommitWriter:
    """Writes one commit. Without `trust`, memos and caches are ignored and everything is checked against the store."""

    def __init__(
        self,
        ws: StoredWorkspace,
        caches: DirectoryCaches,
        segments: Segments,
        progress: Progress = silent,
        trust: bool = True,
    ) -> None:
        self._ws, self._caches, self._segments = ws, caches, segments
        self._progress, self._trust = progress, trust
        scan = ws.options.scan
        self._scanner = None if scan == "off" else SecretScanner(scan)
        self._trees: list[TreeCommit] = []
        self._withheld: list[str] = []

    def write(self, found: CommitInput) -> CommitResult:
        with self._packing() as writer:
            states: list[MountState] = []
            for mount in self._ws.mounts(scratch=True):
                state = self._mount(mount, writer, found.forks)
                pins = found.pins.get(state.prefix)
                states.append(state if pins is None else replace(state, pin=pins.write(writer)))
            kernel = write_chunk(writer, found.kernel)
            history = self._segments.write(writer, found.segments, found.oldest)
        suspected = () if self._scanner is None else self._scanner.findings
        return CommitResult(tuple(states), kernel, history, self._trees, tuple(sorted(self._withheld)), suspected)

    def write_mounts(self, forks: Mapping[str, RAMResource]) -> tuple[MountState, ...]:
        """Write the trees of the mounts alone: a commit that follows finds them in the store."""
        with self._packing() as writer:
            return tuple(self._mount(mount, writer, forks) for mount in self._ws.mounts(scratch=True))

    @contextmanager
    def _packing(self) -> Iterator[PackWriter]:
        writer = self._ws.repository.writer(self._ws.name)
        try:
            yield writer
            writer.finish()
        except BaseException:
            writer.abandon()
            raise

    def _mount(self, mount: Mount, writer: PackWriter, forks: Mapping[str, RAMResource]) -> MountState:
        prefix = str(mount.prefix)
        rules = CommitFilter.of_mount(self._ws.options.ignore_rules, self._scanner, prefix)
        repository, name = self._ws.repository, self._ws.name
        if prefix in forks:
            scope = repository.scope(name)
            made = commit_memory(forks[prefix], writer, scope, rules, progress=self._progress, trust=self._trust)
            self._trees.append(made)
            self._leave_out(mount, made.withheld)
            return MountState(prefix, "ram", mount.mode.value, made.tree, scratch=mount.scratch)
        if (tree := mount.tree) is not None:
            done = self._kernel_tree(prefix, tree, writer, rules)
            self._leave_out(mount, done.withheld)
            return MountState(prefix, "ram", mount.mode.value, done.tree, scratch=mount.scratch)
        if mount.directory is not None:
            from ramet.store.commit.directory import commit_directory

            stats, dirty = self._caches.of(repository, name, prefix, mount.directory)
            done = commit_directory(mount.directory, writer, stats, rules, dirty=dirty, progress=self._progress)
            self._leave_out(mount, done.withheld)
            return MountState(prefix, "disk", mount.mode.value, done.tree, scratch=mount.scratch)
        return remote_state(mount)

    def _kernel_tree(self, prefix: str, tree: TreeResource, writer: PackWriter, rules: CommitFilter) -> DirectoryCommit:
        try:
            return self._overlay(prefix, tree, writer, rules)
        except PermissionError:  # a program has closed a file to its owner, who is this user
            make_readable(tree.root)
            return self._overlay(prefix, tree, writer, rules)

    def _overlay(self, prefix: str, tree: TreeResource, writer: PackWriter, rules: CommitFilter) -> DirectoryCommit:
        from ramet.store.commit.directory import commit_directory
        from ramet.store.commit.overlay import CannotCommitOverlay, Overlay, commit_overlay

        if tree.place.key is not None and self._trust:
            overlay = Overlay(TreeId(bytes.fromhex(tree.place.key)), tree.place.upper, tree.root)
            try:
                files = self._caches.overlays.setdefault(prefix, {})
                return commit_overlay(overlay, writer, files, rules, progress=self._progress)
            except CannotCommitOverlay:
                pass  # hard links need all names
        stats = self._caches.stats.setdefault(prefix, StatCache())
        return commit_directory(
            tree.root, writer, stats, rules, dirty=tree.changed_directories(), progress=self._progress,
            hidden=tree.box_names(),
        )  # fmt: skip

    def _leave_out(self, mount: Mount, paths: list[str]) -> None:
        self._withheld.extend(str(parse(path).onto(mount.prefix)) for path in paths)


def _empty(mount: MountState) -> MountState:
    return MountState(mount.prefix, "ram", tree=EMPTY_ID, scratch=mount.scratch)


def remote_state(mount: Mount) -> MountState:
    """Describe a remote mount for a revision."""
    plain = save_resource(mount.resource, lambda _: None)
    return MountState(
        str(mount.prefix), plain["type"], mount.mode.value, None, plain["config"], tuple(plain["redacted_fields"]),
        plain["needs_override"], mount.scratch,
    )  # fmt: skip
