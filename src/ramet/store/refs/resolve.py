"""Resolve a revision: the object itself, a tag, name, number, or start of its id, with steps such as `~2`.

Every call that means a revision resolves it here. Calls that read take a revision of another workspace too
(`OTHER@REV`, or the object), which needs read access to that workspace unless the revision is in the history of
this one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.model.address import parse_address, split_steps
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.refs.gc_log import CACHE_SECONDS, REVISIONS
from ramet.store.refs.grants import CALLER, TRUSTED
from ramet.store.refs.tags import Tag

if TYPE_CHECKING:
    from ramet.store.repository import Repository

HEX: Final = re.compile(r"[0-9a-f]{4,64}")
FULL: Final = re.compile(r"[0-9a-f]{64}")


RevisionLike = Revision | Tag | str | int | bytes
"""A revision: the object, a tag, its number or id, or what follows `NAME@` (`head~2`); `OTHER@REV` for another one."""


def resolve_revision(repository: Repository, name: str, spec: RevisionLike | None) -> Revision:
    """Find a revision to read: of this workspace, or of another one that the caller may read."""
    if isinstance(spec, Revision | Tag) and spec.workspace != name:
        return _in_history(repository, name, _id_of(spec)) or find_revision(repository, spec.workspace, spec)
    if isinstance(spec, str) and "@" in spec:
        other = parse_address(spec)
        if other.path is not None:
            raise RametError("invalid_argument", f"{spec!r} names a path", "Pass NAME@REVISION.")
        return find_revision(repository, other.name, other.revision)
    return find_revision(repository, name, spec)


def find_revision(repository: Repository, name: str, spec: RevisionLike | None) -> Revision:
    """Find a revision in the history of a workspace, by default its head."""
    if isinstance(spec, Revision | Tag):
        return _by_object(repository, name, spec)
    text = spec_text(spec, name) or "head"
    base, steps = split_steps(text)
    found = _find(repository, name, base)
    for sign, number in steps:
        for at in [0] * number if sign == "~" else [number - 1]:
            if not 0 <= at < len(found.parents):
                why = f"{spec!r} goes beyond the history of {name!r}"
                raise RametError("revision_not_found", why, f"see the log of {name!r}")
            found = repository.read_revision(found.parents[at])
    return found


def spec_text(spec: RevisionLike | None, name: str) -> str | None:
    """Return a revision as text, as addresses and HTTP have it; `name` is the workspace that is asked."""
    if spec is None or isinstance(spec, str):
        return spec
    if isinstance(spec, Revision):
        return spec.id.hex() if spec.workspace == name else f"{spec.workspace}@{spec.id.hex()}"
    if isinstance(spec, Tag):
        return spec.target.hex() if spec.workspace == name else f"{spec.workspace}@{spec.target.hex()}"
    if isinstance(spec, bytes):
        return spec.hex()
    if isinstance(spec, int) and not isinstance(spec, bool):
        return str(spec)
    raise RametError(
        "invalid_argument", f"cannot use a {type(spec).__name__} as a revision",
        "Pass a Revision, a Tag, or its name, number or id.",
    )  # fmt: skip


def names_head(spec: RevisionLike | None) -> bool:
    """Return whether a caller asks for the head, whichever revision it is."""
    return spec is None or (isinstance(spec, str) and spec.lower() in ("", "head"))


def _id_of(spec: Revision | Tag) -> RevisionId:
    return spec.id if isinstance(spec, Revision) else spec.target


def _by_object(repository: Repository, name: str, spec: Revision | Tag) -> Revision:
    """Read the revision again: an object in the hands of a caller proves no access."""
    repository.refs.require(name)
    repository.check_access(name)
    identity = _id_of(spec)
    found = repository.read_revision(identity) if spec.workspace == name else None
    if found is None or found.workspace != name:
        found = _in_history(repository, name, identity)
    if found is None:
        raise _not_in_history(identity.hex()[:12], name)
    return found


def _in_history(repository: Repository, name: str, identity: RevisionId) -> Revision | None:
    history = repository.known_history(name)
    return repository.read_revision(identity) if history is not None and history.has(identity) else None


def _not_in_history(spec: str, name: str) -> RametError:
    return RametError(
        "revision_workspace_mismatch", f"revision {spec!r} is not in the history of {name!r}",
        "name the workspace that it belongs to",
    )  # fmt: skip


def _find(repository: Repository, name: str, spec: str) -> Revision:
    if names_head(spec):
        head = repository.head(name)
        if head is None:
            raise RametError("revision_not_committed", f"workspace {name!r} has no revision yet", "commit first")
        return head
    repository.refs.require(name)
    repository.check_access(name)
    tag = repository.tags.find(name, spec)
    if tag is not None:
        return repository.read_revision(tag.target)
    if FULL.fullmatch(spec) and (found := _in_history(repository, name, RevisionId(bytes.fromhex(spec)))) is not None:
        return found
    history = repository.known_history(name)
    state = repository.gc_log.now(CACHE_SECONDS)
    matches = [] if history is None else history.named(f"{name}-{spec}" if spec.isdecimal() else spec)
    if not matches and HEX.fullmatch(spec):
        matches = [] if history is None else [one for one in history.ids().values() if one.id.hex().startswith(spec)]
        gone = (*(key[len(REVISIONS) :] for key in state.doomed), *(i.hex() for i in state.shallow))
        if not matches and len(spec) >= 6 and any(text.startswith(spec) for text in gone):
            raise expired_error(f"revision {spec!r}")
        if (
            not matches
            and len(spec) >= 6
            and CALLER.get(TRUSTED) == TRUSTED  # a caller of a server is not told what others have
            and any(key.startswith(f"revisions/{spec}") for key in repository.objects.list("revisions/"))
        ):
            raise _not_in_history(spec, name)
        if not matches and len(spec) >= 6 and state.number and repository.was_head(name, spec):
            raise expired_error(f"revision {spec!r}")
    number = spec.removeprefix(f"{name}-")
    newest = 0 if history is None else history.head.seq
    if not matches and state.shallow and number.isdecimal() and 0 < int(number) <= newest:
        raise expired_error(f"revision {number} of {name!r}")
    if len(matches) != 1:
        why, remedy = "no revision", f"see the log of {name!r}"
        if matches:
            why, remedy = "more than one revision", f"write one of {', '.join(r.id.hex()[:12] for r in matches[:9])}"
        raise RametError("revision_not_found", f"{why} {spec!r} in workspace {name!r}", remedy)
    return repository.read_revision(matches[0].id)


def expired_error(what: str) -> RametError:
    return RametError(
        "revision_expired", f"{what} has expired", "retention removed it; tag or pin what must stay, see `retention`"
    )
