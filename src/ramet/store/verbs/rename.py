"""Rename: continue a workspace under another name; the old name goes to the trash.

- The new workspace begins with a fork of the head, so that a kill between the two steps leaves both and loses nothing.
- Tags, notes, retention, grants and keys come along. Revisions keep the names they were made with.
- A workspace that is in use, is held, or has unsaved changes of a killed process is not renamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.model.revisions import Revision
from ramet.store.refs.drafts import read_drafts
from ramet.store.verbs.fork import fork

if TYPE_CHECKING:
    from ramet.store.repository import Repository

RENAME: Final = "renamedFrom:"
"""Start of the lineage of the first revision after a rename; the name of the revision before it follows."""


def rename(repository: Repository, name: str, new_name: str) -> Revision | None:
    """Rename a workspace, and return the first revision under the new name; None for an empty workspace."""
    with repository.writing(name) as entry:
        repository.require_unheld(name)
        if any(draft.steps for draft in read_drafts(repository.objects, name)):
            raise RametError(
                "workspace_busy", f"cannot rename {name!r}: it has unsaved changes of a process that was killed",
                "Open it once to save them, then rename it.",
            )  # fmt: skip
        made = None
        if entry.head is None:
            repository.create(new_name)
            for options in (repository.native_options, repository.configs):
                if (found := options.of(name)) is not None:
                    options.set(new_name, found)
        else:
            made = fork(repository, name, None, new_name, lineage=RENAME, verb="rename")
            _carry(repository, name, new_name)
    try:
        repository.rm(name)
    except RametError:
        repository.rm(new_name)  # another writer came in between
        raise
    return made


def _carry(repository: Repository, name: str, new_name: str) -> None:
    """Copy what belongs to a name and not to its revisions."""
    for tag in repository.tags.of(name):
        repository.tags.create(new_name, tag.name, tag.target, message=tag.message, author=tag.author)
    for target, notes in repository.notes.of(name).items():
        known = repository.notes.of(new_name).get(target, ())  # from an earlier life of that name
        for note in notes:
            if note not in known:
                repository.notes.add(new_name, target, note)
    own = repository.policies.own(name)
    if own != repository.policies.own(new_name):
        repository.policies.set(own, new_name)
