"""`Repository`: the operations of a store on packs, trees, revisions and refs, without live workspaces.

Write order: packs, then the revision, then the ref. A crash at any point leaves garbage, never a missing object;
readers need no lock.
"""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Unpack

from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError, wrong_type
from ramet.core.progress import Progress, silent
from ramet.store.checkout.lazy_tree import LazyTree
from ramet.store.checkout.walk import content, find_node, no_such_path, not_a_file
from ramet.store.commit.reliance_check import content_collected, new_object_ids, secure_content
from ramet.store.commit.stat_cache import StatCache
from ramet.store.crypto.codec import as_encrypted, require_encrypted, unlock
from ramet.store.gc.schedule import GcSchedule
from ramet.store.model import trees
from ramet.store.model.address import parse_address
from ramet.store.model.graph import Descent, descent_of, newest_first
from ramet.store.model.ids import RevisionId, TreeId, revision_id
from ramet.store.model.revisions import Note, Revision, decode
from ramet.store.objects.log import Log, ObjectLog
from ramet.store.objects.objects import ObjectKeywords, Objects, open_objects, prove_create
from ramet.store.packs.catalog import REWRITE_AFTER
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter
from ramet.store.refs import ancestry
from ramet.store.refs.gc_log import CACHE_SECONDS, GcLog, GcState
from ramet.store.refs.grants import CALLER, TRUSTED, Access, Grants
from ramet.store.refs.leases import Leases, holder_name
from ramet.store.refs.notes import Notes
from ramet.store.refs.refs import RECORD, RefEntry, check_text, not_found
from ramet.store.refs.resolve import RevisionLike, expired_error, find_revision, resolve_revision
from ramet.store.refs.retention import Pin, Pins, Retention, RetentionPolicies
from ramet.store.refs.tags import Tag, Tags
from ramet.store.refs.workspace_options import WorkspaceOptions
from ramet.store.verbs.diff import Difference, compare

if TYPE_CHECKING:
    from ramet.store.checkout.directory import CheckoutKeywords, Receipt
    from ramet.store.crypto.encrypted_objects import Shredded
    from ramet.store.crypto.wrapping_keys import KeySource
    from ramet.store.gc.collect import Collected
    from ramet.store.gc.consolidate import ConsolidationReport
    from ramet.store.repair.repair import Repaired
    from ramet.store.repair.verify import Report
    from ramet.store.verbs.merge import Resolution
    from ramet.store.verbs.revert import MergeResult
    from ramet.store.verbs.trash import RemovedWorkspace

CACHED_REVISIONS: Final = 10_000
"""Revisions that are cached in memory."""
LOW_MEMORY_REVISIONS: Final = 512
"""The same in low-memory mode for a local store, where reading one again is cheap."""


class StoreKeywords(ObjectKeywords, total=False):
    """The options of a store as keyword arguments; `Repository` says what they mean."""

    clock: Callable[[], float]
    refs: str | None
    refs_name: str | None
    key: KeySource | None
    plain_cache: bool


class Repository:
    """A store at a path, in memory, or on an object store: `Repository("s3://bucket/prefix")`.

    `refs="postgresql://..."` keeps refs, leases and tags in PostgreSQL, under `refs_name` (default: the store's
    address), for servers that ignore the condition of create-if-absent.

    `key` opens an encrypted store, or makes an empty one encrypted: 32 bytes, their hex or base64, or their source
    (`file:PATH`, `env:NAME`, `kms:ID`). `plain_cache` lets checkouts by link keep plain files on this machine.

    `principal` is the caller: a workspace with grants is accessible only to the principals named in them.
    """

    def __init__(
        self,
        where: str | Objects,
        *,
        clock: Callable[[], float] = time.time,
        refs: str | None = None,
        refs_name: str | None = None,
        key: KeySource | None = None,
        plain_cache: bool = False,
        principal: str | None = None,
        **options: Unpack[ObjectKeywords],
    ) -> None:
        objects = open_objects(where, **options) if isinstance(where, str) else where
        elsewhere, claim = None, None
        if refs is not None:
            from ramet.store.objects.postgres_log import MarkerClaim, logs_of

            elsewhere = logs_of(where, objects, refs, refs_name)
            claim = MarkerClaim(elsewhere("store"))
        self.objects: Objects = unlock(objects, key, plain_cache, clock, claim)
        self.clock, self._principal = clock, principal
        self._log, self._proved = self._logs(elsewhere), refs is not None
        self._reset()

    def _reset(self) -> None:
        """Create all tables and caches empty."""
        log, clock = self._log, self.clock
        self._scopes: dict[str, object] = {}
        self._bound: dict[str, Objects] = {}
        """In an encrypted store, the objects of commits in progress, by workspace."""
        self.refs, self.tags = Leases(log("refs"), clock), Tags(log("tags"), clock)
        self.gc_log, self.policies = GcLog(log("gc")), RetentionPolicies(log("policy"), clock)
        self.native_options = WorkspaceOptions(self.objects, "native")
        self.configs = WorkspaceOptions(self.objects, "configs")
        self.pins = Pins(self.objects, clock)
        self.grants, self.notes = Grants(log("grants"), clock), Notes(log("notes"), clock)
        self.packs = self._reader()
        try:
            self.packs.refresh()
        except RametError:
            pass  # a damaged index: reads report it, and `verify` and `repair` must still start
        self._revisions: dict[RevisionId, Revision] = {}
        self._descents = ancestry.Descents()
        self._gc_taken_at_start: int | None = None
        """The `taken` number of the gc log at the first write of this process: no later collection has run while it is
        equal."""
        self._gc_state_number = -1
        self.gc_schedule = GcSchedule(self.policies)

    _low_memory = False

    def limit_memory(self) -> None:
        """Use little memory, for servers that hold many stores."""
        self._low_memory = True
        self.packs.limit_memory()

    def _reader(self) -> PackReader:
        reader = PackReader(self.objects)
        if self._low_memory:
            reader.limit_memory()
        return reader

    def _logs(self, elsewhere: Callable[[str], Log] | None) -> Callable[[str], Log]:
        if elsewhere is None:
            return lambda space: ObjectLog(self.objects, space)
        sealed = as_encrypted(self.objects)
        return elsewhere if sealed is None else lambda space: sealed.log(elsewhere(space), space)

    def require_safe_refs(self) -> None:
        """Check once that this store supports safe refs."""
        if not self._proved:
            prove_create(self.objects, self.clock)
            self._proved = True

    # ------------------------------------------------------------------------------------------- encryption

    def objects_of(self, name: str) -> Objects:
        """Return the objects for a writer of this workspace, with a key of its ring in an encrypted store.

        The revision gets the key of its content.
        """
        sealed = as_encrypted(self.objects)
        if sealed is None:
            return self.objects
        bound = self._bound.pop(name) if name in self._bound else None
        return sealed.for_workspace(name) if bound is None else bound

    def keys_of(self, name: str) -> frozenset[bytes] | None:
        """Return the key ids of a workspace in an encrypted store; None in a plain one."""
        sealed = as_encrypted(self.objects)
        return None if sealed is None else frozenset(sealed.keychain.rings.ring(name).ids)

    def scope(self, name: str) -> object:
        """Return the scope of memos that a writer of this workspace may rely on.

        In an encrypted store each workspace has its own scope, as its keys can be destroyed separately.
        """
        return self if as_encrypted(self.objects) is None else self._scopes.setdefault(name, object())

    def share(self, name: str, source: RevisionId, new_name: str) -> None:
        """Give a workspace the keys of a revision of another one and of its ancestors."""
        sealed = as_encrypted(self.objects)
        if sealed is not None:
            self._bound.clear()  # later writes of both have new keys
            try:
                key = sealed.key_of(f"revisions/{source.hex()}")
            except KeyError:
                raise expired_error(f"revision {source.hex()[:12]}") from None  # shredded or collected concurrently
            sealed.keychain.rings.share(name, new_name, key)

    def shred(self, name: str) -> Shredded:
        """Destroy the keys of a workspace, which loses its content for good, and remove the workspace."""
        sealed = require_encrypted(self.objects)
        known = {
            ring.workspace for ring in sealed.keychain.rings.rings()
        }  # fail on an unreadable ring before anything is destroyed
        if self.refs.exists(name):
            self.rm(name)
        elif name not in known:
            raise not_found(name)
        for key in [*self.objects.list(f"tags/{name}/"), *self.objects.list(f"pushes/{name}/")]:
            self.objects.delete(key)
        self._forget_drafts(name)
        done = sealed.shred(name)
        self._revisions.clear()
        self._scopes.pop(name, None)
        self._bound.clear()
        self.packs = self._reader()
        self.packs.refresh()
        return done

    # ------------------------------------------------------------------------------------------- workspaces

    def create(self, name: str) -> None:
        """Create an empty workspace."""
        self.require_safe_refs()
        self.create_log(name, None)

    def create_log(self, name: str, head: RevisionId | None) -> RefEntry:
        """Create the log of a workspace with a durable head, and clear leftovers of an earlier one of this name."""
        self._give_to_caller(name)
        entry = self.refs.create(name, head)
        if entry.number > 1:
            self.tags.clear(name)  # of the removed workspace of this name
            if self.grants.removed(name):
                self.grants.put(name, {}, None)
            self.policies.clear(name)
            self.native_options.clear(name)
            self.configs.clear(name)
            for key in list(self.objects.list(f"bindings/{name}/")):
                self.objects.delete(key)
            self._forget_drafts(name)
        return entry

    def _forget_drafts(self, name: str) -> None:
        from ramet.store.refs.drafts import remove_drafts  # not needed to open a workspace

        remove_drafts(self.objects, name)

    def _give_to_caller(self, name: str) -> None:
        """Let what a caller of a server creates be the caller's, before others can see it."""
        who = CALLER.get(TRUSTED)
        if who != TRUSTED and not self.refs.exists(name) and not self.grants.of(name):
            self.grants.put(name, {who: "readwrite"}, who)

    @property
    def principal(self) -> str | None:
        """Who acts: the caller of the request that a server is answering, else who opened the store."""
        return CALLER.get(self._principal)

    @principal.setter
    def principal(self, name: str | None) -> None:
        self._principal = name

    @property
    def actor(self) -> str:
        """The name under which changes are recorded: the principal, else the user of this process."""
        if self.principal is not None and self.principal != TRUSTED:
            return self.principal
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # an unnamed user id, as in many containers
            return f"uid {os.getuid()}" if hasattr(os, "getuid") else ""

    def check_access(self, name: str, access: Access = "readonly") -> None:
        """Check that the principal has access to a workspace; loads its keys in an encrypted store.

        A caller of a server is told that there is no such workspace when it may not read it.
        """
        if CALLER.get(TRUSTED) != TRUSTED and not self.grants.allows(self.principal, name):
            raise not_found(name)
        self.grants.check(self.principal, name, access)
        sealed = as_encrypted(self.objects)
        if sealed is not None:
            sealed.keychain.rings.preload(name)

    def ls(self) -> list[str]:
        """List the workspaces that exist and are readable, sorted."""
        return [name for name in self.refs.names() if self.grants.allows(self.principal, name)]

    def rm(self, name: str) -> None:
        """Remove a workspace. Until its revisions are collected, `restore` brings it back."""
        self.refs.require(name)
        self.check_access(name, "readwrite")
        self.require_unheld(name)
        self.refs.delete(name)
        self.grants.clear(name)

    def require_unheld(self, name: str) -> None:
        """Refuse to remove a workspace that is held."""
        why = self.policies.own(name).hold
        if why:
            raise RametError("workspace_held", f"workspace {name!r} is held: {why}", "lift the hold first")

    def rename(self, name: str, new_name: str) -> Revision | None:
        """Continue a workspace under another name; see `ramet.store.verbs.rename`."""
        from ramet.store.verbs.rename import rename

        return rename(self, name, new_name)

    def trash(self) -> list[RemovedWorkspace]:
        """List the removed workspaces that can be restored."""
        from ramet.store.verbs.trash import trash

        return trash(self)

    def restore(self, name: str) -> None:
        """Bring a removed workspace back; see `ramet.store.verbs.trash`."""
        from ramet.store.verbs.trash import restore

        check_text(name)
        restore(self, name)

    def roots(self) -> Iterator[tuple[str, RevisionId]]:
        """Yield heads and tags of all existing workspaces, each with the name that keeps it."""
        for name in self.ls():
            head = self.refs.last(name).head
            if head is not None:
                yield name, head
            for tag in self.tags.of(name):
                yield f"{name}@{tag.name}", tag.target

    # -------------------------------------------------------------------------------------------- revisions

    def read_revision(self, identity: RevisionId, *, expired: bool = False) -> Revision:
        """Read a revision by its id; an expired one only with `expired`, and while it exists."""
        seen = self.gc_log.known if expired else self.gc_log.now(CACHE_SECONDS)
        if not expired and identity in seen.shallow:
            raise expired_error(f"revision {identity.hex()[:12]}")
        known = self._revisions.get(identity)
        return self._cache_revision(identity, decode(self._stored(identity, seen))) if known is None else known

    def read_descent(self, identity: RevisionId) -> Descent:
        """Read what a revision is in a history, which takes a tenth of the time of reading all of it."""
        seen = self.gc_log.now(CACHE_SECONDS)
        if identity in seen.shallow:
            raise expired_error(f"revision {identity.hex()[:12]}")
        known = self._revisions.get(identity)
        return descent_of(identity, self._stored(identity, seen) if known is None else known)

    def _stored(self, identity: RevisionId, seen: GcState) -> bytes:
        """Return the checked bytes of a revision; `seen` is the state of gc in which it had not expired."""
        try:
            data = self.objects.get(f"revisions/{identity.hex()}")
        except KeyError:
            now = self.gc_log.now()
            if identity in now.shallow or now.number != seen.number:
                raise expired_error(f"revision {identity.hex()[:12]}") from None
            raise RametError(
                "revision_not_found", f"no revision {identity.hex()[:12]}", "see `log` for what there is"
            ) from None
        if revision_id(data) != identity:
            raise RametError("store_corrupt", f"revision {identity.hex()[:12]} is damaged", "run verify")
        return data

    def _cache_revision(self, identity: RevisionId, revision: Revision) -> Revision:
        most = LOW_MEMORY_REVISIONS if self._low_memory and not self.packs.remote else CACHED_REVISIONS
        if len(self._revisions) >= most:  # bounded: a process may commit forever
            for old in list(self._revisions)[: most // 4]:
                self._revisions.pop(old, None)
        vars(revision)["id"] = identity  # spares encoding it again
        self._revisions[identity] = revision
        return revision

    def head(self, name: str) -> Revision | None:
        head = self.refs.require(name).head
        self.check_access(name)
        return None if head is None else self.read_revision(head, expired=True)  # a head never expires

    def head_and_latest(self, name: str) -> tuple[Revision | None, Revision | None]:
        """Return the head, and the value that has the newest sessions and history.

        They are the same until calls run that change no file. The latest is then no part of `log`: the next revision
        takes its records over.
        """
        entry = self.refs.require(name)
        self.check_access(name)
        head = None if entry.head is None else self.read_revision(entry.head, expired=True)
        return head, head if entry.latest is None else self.read_revision(entry.latest, expired=True)

    def latest_of(self, name: str, revision: Revision) -> Revision:
        """Return the value with the newest sessions and history if a revision is the head, else the revision."""
        head, latest = self.head_and_latest(name)
        return latest if latest is not None and head is not None and head.id == revision.id else revision

    def log(self, name: str) -> list[Revision]:
        """List the revisions of a workspace and their ancestors, newest first, children before their parents."""
        head = self.refs.require(name).head
        self.check_access(name)
        return [] if head is None else newest_first(self.ancestors(self.read_revision(head)).values())

    def descents(self, name: str) -> Iterator[Descent]:
        """Yield the descent of what `log` lists, in its order; what is not asked for is not read."""
        head = self.refs.require(name).head
        self.check_access(name)
        return iter(()) if head is None else self._descents.newest_first(self, head)

    def descents_of(self, revision: Revision, without: Revision | None = None) -> Iterator[Descent]:
        """Yield the descent of a revision and its ancestors, as `descents` does.

        `without` leaves out a revision and its ancestors.
        """
        known = () if without is None else self._descents.ids(self, without)
        return self._descents.newest_first(self, revision.id, known)

    def known_history(self, name: str) -> ancestry.KnownHistory | None:
        """Return what `log` lists, by id and by name; None for an empty workspace."""
        head = self.refs.require(name).head
        self.check_access(name)
        return None if head is None else self._descents.history(self, name, head)

    def note(
        self, name: str, revision: Revision, message: str, author: str = "", path: str = "", line: int = 0
    ) -> Revision:
        """Add a note to a revision, and return the revision with all its notes."""
        self.check_access(name, "readwrite")
        self.notes.add(name, revision.id, Note(message, author or self.actor, path=path, line=line))
        return self.notes.attach(name, [revision])[0]

    def find(self, name: str, spec: RevisionLike | None = None) -> Revision:
        """Find a revision of a history.

        `spec` is a `Revision`, a `Tag`, a number, an id, or a text: `head` (as None), a tag, a revision's name
        (`proj-x-3`) or number, or the start of its id, followed by optional steps:
        `head~2` is two revisions back, `head^2` the second parent of a merge.
        """
        return find_revision(self, name, spec)

    def resolve(self, address: str | Revision) -> Revision:
        """Return the revision of `NAME` or `NAME@REV`."""
        if isinstance(address, Revision):
            return self.find(address.workspace, address)
        if not isinstance(address, str):
            raise wrong_type("the address of a revision", address, "Pass NAME, NAME@REVISION, or a Revision.")
        found = parse_address(address)
        if found.path is not None:
            raise RametError("invalid_argument", f"{address!r} names a path", "write NAME or NAME@REVISION")
        return self.find(found.name, found.revision)

    def resolve_from(self, name: str, spec: RevisionLike | None) -> Revision:
        """As `find`, also for a revision of another workspace: `OTHER@REV`, or the object."""
        return resolve_revision(self, name, spec)

    def acquire(self, name: str, holder: str) -> RefEntry:
        """Acquire the lease of a workspace; `workspace_busy` while another writer has it."""
        self.check_access(name, "readwrite")
        return self.refs.acquire(name, holder)

    @contextmanager
    def writing(self, name: str) -> Iterator[RefEntry]:
        """Hold the lease of a workspace for one change of its head; `workspace_busy` while another writer has it."""
        self.require_safe_refs()
        entry = self.acquire(name, holder_name())
        try:
            yield entry
        finally:
            self.refs.release(name, entry)

    def tag(
        self,
        name: str,
        tag: str,
        spec: RevisionLike | None = None,
        *,
        message: str = "",
        author: str = "",
        force: bool = False,
    ) -> Tag:
        """Tag a revision, which also keeps it."""
        from ramet.store.verbs.annotate import tag as place

        return place(self, name, tag, spec, message, author, force)

    def commit(self, name: str, seen: RefEntry, revision: Revision, kind: str = "commit") -> RefEntry:
        """Store a revision whose trees are durable, and move the head to it.

        With the kind `record`, the head stays and the revision becomes its latest state: it adds records only.
        """
        encoded = revision.encode()
        identity = revision_id(encoded)
        while True:
            self.secure_content(name, revision, seen.head)
            self.objects_of(name).put(f"revisions/{identity.hex()}", encoded)
            self._cache_revision(identity, revision)
            try:
                if kind == RECORD:
                    moved = self.refs.move(name, seen, head=seen.head, kind=kind, latest=identity)
                else:
                    moved = self.refs.move(name, seen, head=identity, kind=kind)
            except RametError as error:
                now = self.refs.last(name)
                # A collection appends an entry to every log with a writer; the writer must read its decisions before it
                # appends.
                mine = (now.fence, now.holder, now.head) == (seen.fence, seen.holder, seen.head)
                if error.code != "head_moved" or now.kind != "gc" or not mine:
                    raise
                seen = now
                continue
            self.packs.publish(REWRITE_AFTER)
            return moved

    def secure_content(self, name: str, revision: Revision, head: RevisionId | None) -> int:
        """Rewrite what a revision refers to in condemned packs; returns the number of the last gc decision."""
        state = self.refresh_gc_state()
        if state.is_doomed(revision.id):
            raise content_collected(revision)
        if not self.no_gc_since_start:
            before = None if head is None else self.read_revision(head, expired=True)
            secure_content(self.objects_of(name), self.packs, revision, before)
        return state.number

    @property
    def no_gc_since_start(self) -> bool:
        """Whether no collection has run since this process began to write, as of the last refresh."""
        state = self.gc_log.known
        return state.taken == self._gc_taken_at_start and not state.condemned_packs

    def refresh_gc_state(self, older: float = 0.0) -> GcState:
        """Read the gc log, and apply its decisions to the packs."""
        state = self.gc_log.now(older)
        if self._gc_taken_at_start is None:
            self._gc_taken_at_start = state.taken
        if state.number != self._gc_state_number:
            self.packs.refresh()
            self._gc_state_number = state.number
        self.packs.condemn(state.condemned_packs)
        return state

    def is_whole(self, revision: Revision) -> bool:
        """Return whether a revision and everything it needs exists and stays."""
        self.refresh_gc_state()
        try:
            self.objects.get(f"revisions/{revision.id.hex()}")
            keys = self.keys_of(revision.workspace)
            return all(self.packs.keeps(key, keys) for key in new_object_ids(self.packs, revision, None))
        except (KeyError, RametError):
            return False

    def committed(self, name: str, identity: RevisionId) -> bool:
        """Return whether a revision was ever the head of a workspace."""
        return any(entry.head == identity for entry in self.refs.history(name))

    def was_head(self, name: str, start: str) -> bool:
        heads = (entry.head for entry in self.refs.history(name))
        return any(head is not None and head.hex().startswith(start) for head in heads)

    def forget(self, revisions: set[RevisionId]) -> None:
        """Drop removed revisions from the cache."""
        for identity in revisions:
            self._revisions.pop(identity, None)

    def fork(self, name: str, spec: RevisionLike | None, new_name: str) -> Revision:
        """Create a workspace from a revision of another one, without copying content."""
        from ramet.store.verbs.fork import fork

        return fork(self, name, spec, new_name)

    def begin(self, name: str, revision: Revision, source: Revision | None = None, seen: int = 0) -> None:
        """Create a workspace whose first revision, with durable trees, is this one; see `ramet.store.verbs.fork`."""
        from ramet.store.verbs.fork import begin

        begin(self, name, revision, source, seen)

    def revert(self, name: str, spec: RevisionLike, message: str = "") -> Revision:
        """Create a new head with the content of a past revision. History is never rewritten."""
        from ramet.store.verbs.revert import revert

        return revert(self, name, spec, message)

    def revert_paths(self, name: str, spec: RevisionLike, paths: list[str], message: str = "") -> Revision:
        """Create a new head with these paths as in a past revision, everything else unchanged."""
        from ramet.store.verbs.revert import revert_paths

        return revert_paths(self, name, spec, paths, message)

    def merge(
        self, name: str, other: str | Revision, message: str = "", resolution: Resolution | None = None
    ) -> MergeResult:
        """Merge another workspace (`OTHER` or `OTHER@REV`) into this one: a revision with two parents, or conflicts."""
        from ramet.store.verbs.revert import merge

        return merge(self, name, other, message, resolution)

    def undo(self, name: str, *, agent: str | None = None, run: str | None = None, message: str = "") -> MergeResult:
        """Undo the last change, or all changes of an agent or run; see `ramet.store.verbs.undo`."""
        from ramet.store.verbs.undo import undo

        return undo(self, name, agent=agent, run=run, message=message)

    def common_ancestor(self, one: Revision, other: Revision) -> Revision | None:
        """Return the nearest common ancestor of two revisions."""
        return ancestry.common_ancestor(self, one, other)

    def ancestors(self, start: Revision) -> dict[RevisionId, Revision]:
        """Return a revision and all its ancestors, by id."""
        return ancestry.ancestors(self, start)

    def parents_of(self, revision: Revision) -> list[Revision]:
        """Return the parents of a revision that have not expired."""
        return ancestry.parents_of(self, revision)

    def expired_parents(self, revision: Revision) -> tuple[RevisionId, ...]:
        """Return the expired parents of a revision, where its history ends."""
        shallow = self.gc_log.now(CACHE_SECONDS).shallow
        return tuple(parent for parent in revision.parents if parent in shallow)

    # ----------------------------------------------------------------------------------------- reading trees

    def diff(self, before: Revision | None, after: Revision, *, renames: bool = True) -> list[Difference]:
        """List the differences between two revisions of any workspaces, with paths of the workspace."""
        return list(self.differences(before, after, renames=renames))

    def differences(self, before: Revision | None, after: Revision, *, renames: bool = True) -> Iterator[Difference]:
        """As `diff`, as an iterator."""
        old = {mount.prefix: mount.tree or mount.pin for mount in before.mounts} if before is not None else {}
        new = {mount.prefix: mount.tree or mount.pin for mount in after.mounts}
        for prefix in sorted({*old, *new}):
            for difference in compare(self.packs.read, old.get(prefix), new.get(prefix), renames):
                top = "" if prefix == "/" else prefix
                moved = None if difference.old is None else top + difference.old
                yield replace(difference, path=top + difference.path, old=moved) if top else difference

    def read_file(self, revision: Revision, path: str) -> Iterator[bytes]:
        """Return the content of a file of a revision, in blocks."""
        node = self.node(revision, path)
        if node.kind != trees.FILE:
            raise not_a_file(revision, path)
        return content(self.packs.read, node)

    def node(self, revision: Revision, path: str) -> trees.Node:
        found = find_node(self.packs.read, revision, path)
        if found is None:
            raise no_such_path(revision, path)
        return found

    def lazy_tree(self, tree: TreeId, name: str = "") -> RAMResource:
        """Return a tree as a memory resource that loads on access; changing it does not change the store.

        `name` is its workspace: a commit to that one reuses what has not changed.
        """
        return LazyTree(self.packs, self.scope(name)).resource(tree)

    def checkout(
        self, revision: Revision, prefix: str | None, target: str, **options: Unpack[CheckoutKeywords]
    ) -> Receipt:
        """Write all mounts of a revision, or the one at a prefix, to a real directory.

        Options as in `store.checkout.directory.checkout`.
        """
        from ramet.store.checkout.directory import checkout
        from ramet.store.checkout.whole_tree import mounts_without_content, whole_tree

        if prefix is None:
            receipt = checkout(self.packs, whole_tree(self.packs.read, revision), target, **options)
            receipt.left_out = mounts_without_content(revision)
            return receipt
        for mount in revision.mounts:
            if mount.prefix == prefix and mount.tree is not None:
                return checkout(self.packs, mount.tree, target, **options)
        known = ", ".join(mount.prefix for mount in revision.mounts if mount.tree is not None)
        raise RametError(
            "not_found", f"cannot check out {prefix} of {revision.name}: no mount with content is there",
            f"Pass a prefix of {known}, or none for all mounts.",
        )  # fmt: skip

    def writer(self, name: str = "") -> PackWriter:
        """Return a pack writer for a workspace, whose name an encrypted store needs."""
        self.require_safe_refs()
        self.refresh_gc_state(CACHE_SECONDS)  # checked again before the head moves
        self.packs.refresh(older=5.0)  # an unknown new pack costs space, never correctness
        self._bound.pop(name, None)
        objects = self.objects_of(name)
        if objects is not self.objects:
            self._bound[name] = objects
        return PackWriter(objects, self.packs)

    # ------------------------------------------------------------------------------------ what is said about them

    def grant(self, name: str, principal: str, access: Access | None) -> None:
        """Grant a principal access to a workspace; with None, revoke it."""
        from ramet.store.verbs.annotate import grant

        grant(self, name, principal, access)

    def hold(self, name: str, why: str) -> Retention:
        """Place a hold: nothing of the workspace is removed until the hold is lifted."""
        from ramet.store.verbs.annotate import hold

        return hold(self, name, why)

    def lift(self, name: str) -> Retention:
        """End a hold."""
        from ramet.store.verbs.annotate import lift

        return lift(self, name)

    def pin(self, name: str, spec: RevisionLike | None = None, *, seconds: float | None = None, why: str = "") -> Pin:
        """Pin a revision, for some seconds or until the pin is removed."""
        from ramet.store.verbs.annotate import pin

        return pin(self, name, spec, seconds, why)

    # ------------------------------------------------------------------------------------------------- upkeep

    def gc(self, *, grace: float | None = None, dry: bool = False, progress: Progress = silent) -> Collected:
        """Collect garbage; see `ramet.store.gc.collect`."""
        from ramet.store.gc.collect import collect

        self.require_safe_refs()
        return collect(self, grace=grace, dry=dry, progress=progress)

    def new_instance(self) -> Repository:
        """Return another instance of this store for background work; they share no mutable state."""
        twin = copy(self)
        twin._reset()
        return twin

    def gc_is_due(self, revision: Revision) -> bool:
        """Return whether the retention policy wants a collection after this commit."""
        return self.gc_schedule.gc_is_due(revision)

    def gc_is_due_now(self, revision: Revision) -> bool | None:
        """As `gc_is_due`, without a request; None when it is not known."""
        return self.gc_schedule.gc_is_due_now(revision)

    @property
    def needs_consolidation(self) -> bool:
        """Whether enough small packs exist to consolidate them; needs no request."""
        return self.gc_schedule.needs_consolidation(self.packs.most_small_packs)

    def consolidate_packs(self) -> ConsolidationReport:
        """Merge small packs; see `ramet.store.gc.consolidate`."""
        from ramet.store.gc.consolidate import consolidate_packs

        self.require_safe_refs()
        self.gc_schedule.consolidation_started()
        return consolidate_packs(self)

    def stat_cache(self, name: str, root: str) -> StatCache:
        """Return the stat cache of a directory from the last commit of this workspace."""
        sealed = as_encrypted(self.objects)
        codec = None if sealed is None else sealed.cache(name)
        return StatCache.load(self.packs.local, root, self.packs.names_before_consolidation(), codec)

    # ----------------------------------------------------------------------------------------------- verify

    def verify(self, progress: Progress = silent) -> Report:
        """Read everything, check every digest and reference, and report which revisions each damage affects."""
        from ramet.store.repair.verify import verify

        while True:
            self._revisions.clear()
            before = self.gc_log.number()
            report = verify(self.objects, self.refs, self.tags, self.gc_log, progress)
            if report.ok or self.gc_log.number() == before:
                return report  # else a collection removed listed objects

    def repair(self, *, drop: bool = False, progress: Progress = silent) -> Repaired:
        """Restore damaged objects from other copies, and report what is lost; only with `drop`, forget that."""
        from ramet.store.repair.repair import repair

        self.require_safe_refs()
        done = repair(self, drop, progress)
        self.packs = self._reader()
        self.packs.refresh()
        self._revisions.clear()
        return done
