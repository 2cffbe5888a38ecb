"""Fork: create a workspace from an existing revision; imports and recoveries use it too.

No content is copied, so a concurrent collection must not remove what the new workspace needs: its decisions are checked
before and after, and an incomplete workspace is removed again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.commit.kernel_state import append_records, no_writers, plain_record
from ramet.store.commit.reliance_check import content_collected, secure_content
from ramet.store.model.revisions import Revision
from ramet.store.refs.grants import TRUSTED
from ramet.store.refs.resolve import RevisionLike, names_head

if TYPE_CHECKING:
    from ramet.store.repository import Repository


FORK: Final = "fromWorkspaceRevision:"
"""Start of the lineage of the first revision of a fork; the name of its source follows."""


def fork(
    repository: Repository,
    name: str,
    spec: RevisionLike | None,
    new_name: str,
    *,
    lineage: str = FORK,
    verb: str = "fork",
) -> Revision:
    """Create a workspace from a revision of another one."""
    repository.require_safe_refs()
    seen = repository.gc_log.now().number
    source = repository.find(name, spec)
    latest = repository.latest_of(name, source) if names_head(spec) else source
    if not repository.refs.exists(new_name):
        repository.share(name, latest.id, new_name)
    _inherit(repository, name, new_name)
    now, actor = repository.clock(), repository.actor
    writer = repository.writer(new_name)
    record = plain_record("fork", actor, f"{verb} {source.name} {new_name}", now)
    try:
        kernel, history, number = append_records(repository.packs, writer, latest, [record])
    except RametError as error:
        writer.abandon()
        if error.code == "store_corrupt" and repository.gc_log.now().number != seen:
            raise content_collected(source) from None
        raise
    writer.finish()
    revision = replace(
        source, workspace=new_name, seq=1, parents=(source.id,), lineage=lineage + source.name,
        kernel=kernel, history=history, time=now, message=f"{verb} of {source.name}", diff=None,
        ops=no_writers(number, number), author=actor, agent="", trace_id="", phase="Committed",
    )  # fmt: skip
    begin(repository, new_name, revision, source, seen)
    native = repository.native_options.of(name)
    if native is not None:
        repository.native_options.set(new_name, native)
    # A configuration may mount directories of the machine: who may only read the workspace gets none of them.
    config = repository.configs.of(name)
    if config is not None and repository.grants.allows(repository.principal, name, "readwrite"):
        repository.configs.set(new_name, config)
    return revision


def _inherit(repository: Repository, name: str, new_name: str) -> None:
    """Copy the grants to a fork, and grant its creator write access."""
    granted = dict(repository.grants.of(name))
    if not granted:
        return
    if repository.refs.exists(new_name):
        raise RametError("workspace_exists", f"workspace {new_name!r} exists already", "take another name")
    if repository.principal is not None and repository.principal != TRUSTED:
        granted[repository.principal] = "readwrite"
    repository.grants.put(new_name, granted, repository.principal)


def begin(repository: Repository, name: str, revision: Revision, source: Revision | None = None, seen: int = 0) -> None:
    """Create a workspace whose first revision, with durable trees, is this one.

    `source` has the same content, and was reachable when `seen` was the last gc decision.
    """
    repository.require_safe_refs()
    before = repository.refresh_gc_state()
    if not repository.no_gc_since_start:
        safe = source is not None and before.number == seen and not before.is_doomed(source.id)
        secure_content(repository.objects_of(name), repository.packs, revision, source if safe else None)
    repository.objects_of(name).put(f"revisions/{revision.id.hex()}", revision.encode())
    repository.create_log(name, revision.id)
    if repository.gc_log.now().number != before.number and not repository.is_whole(revision):
        repository.refs.delete(name)  # a concurrent collection removed what this needs
        raise content_collected(revision)
