"""Resolve a revision by tag, name, number, or start of its id, with steps such as `~2`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ramet.core.errors import RametError
from ramet.store.model.address import split_steps
from ramet.store.model.revisions import Revision
from ramet.store.refs.gc_log import CACHE_SECONDS, REVISIONS

if TYPE_CHECKING:
    from ramet.store.repository import Repository

HEX: Final = re.compile(r"[0-9a-f]{4,64}")


def find_revision(repository: Repository, name: str, spec: str | None) -> Revision:
    base, steps = split_steps(spec or "head")
    found = _find(repository, name, base)
    for sign, number in steps:
        for at in [0] * number if sign == "~" else [number - 1]:
            if not 0 <= at < len(found.parents):
                raise RametError("revision_not_found", f"{spec!r} goes beyond the history of {name!r}", "see `log`")
            found = repository.read_revision(found.parents[at])
    return found


def _find(repository: Repository, name: str, spec: str) -> Revision:
    if spec.lower() == "head" or not spec:
        head = repository.head(name)
        if head is None:
            raise RametError("revision_not_committed", f"workspace {name!r} has no revision yet", "commit first")
        return head
    repository.refs.require(name)
    repository.check_access(name)
    tag = repository.tags.find(name, spec)
    if tag is not None:
        return repository.read_revision(tag.target)
    history = repository.log(name)
    state = repository.gc_log.now(CACHE_SECONDS)
    matches = [r for r in history if spec == r.name or (spec == str(r.seq) and r.workspace == name)]
    if not matches and HEX.fullmatch(spec):
        matches = [r for r in history if r.id.hex().startswith(spec)]
        gone = (*(key[len(REVISIONS) :] for key in state.doomed), *(i.hex() for i in state.shallow))
        if not matches and len(spec) >= 6 and any(text.startswith(spec) for text in gone):
            raise expired_error(f"revision {spec!r}")
        if (
            not matches
            and len(spec) >= 6
            and any(key.startswith(f"revisions/{spec}") for key in repository.objects.list("revisions/"))
        ):
            raise RametError(
                "revision_workspace_mismatch", f"revision {spec!r} is not in the history of {name!r}",
                "name the workspace that it belongs to",
            )  # fmt: skip
        if not matches and len(spec) >= 6 and state.number and repository.was_head(name, spec):
            raise expired_error(f"revision {spec!r}")
    number = spec.removeprefix(f"{name}-")
    if not matches and state.shallow and number.isdecimal() and history and 0 < int(number) <= history[0].seq:
        raise expired_error(f"revision {number} of {name!r}")
    if len(matches) != 1:
        why = "no revision" if not matches else "more than one revision"
        raise RametError("revision_not_found", f"{why} {spec!r} in workspace {name!r}", "see `log`")
    return matches[0]


def expired_error(what: str) -> RametError:
    return RametError(
        "revision_expired", f"{what} has expired", "retention removed it; tag or pin what must stay, see `retention`"
    )
