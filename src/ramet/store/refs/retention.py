"""Retention: policies, pins and holds, and the set of revisions that they keep.

    policy/<workspace or @store>/<20-digit number>   {"keep_last", "keep_within", "min_age", "hold", "auto", "grace"}
    pins/<token>                                     {"workspace", "target", "until", "why"}

- Heads, tags, pins, drafts, pending pushes and undelivered events keep their revisions.
- Nothing of a workspace with a hold expires, and the workspace cannot be removed.
- Histories expire from their old end: a kept revision may have parents that are not kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from ramet.core.errors import RametError
from ramet.store.model.graph import newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.objects.log import Log
from ramet.store.objects.objects import Objects

if TYPE_CHECKING:
    from ramet.store.refs.drafts import Draft
    from ramet.store.repository import Repository

STORE: Final = "@store"
GRACE: Final = 24 * 3600.0
"""Default seconds between the first sight of an unreferenced object and its removal."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw]?)")


def parse_duration(text: str) -> float:
    """Parse a duration in seconds: `90`, `90s`, `15m`, `12h`, `30d`, `2w`."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise RametError("invalid_argument", f"invalid duration {text!r}", "write 90s, 15m, 12h, 30d or 2w")
    return float(found[1]) * _UNITS[found[2] or "s"]


@dataclass(frozen=True)
class Retention:
    """A retention policy. None means: as the store's policy, and without one, keep everything."""

    keep_last: int | None = None
    """Keep this many of the newest revisions."""
    keep_within: float | None = None
    """Keep revisions that are not older than this many seconds."""
    min_age: float | None = None
    """Never remove anything younger than this many seconds, also of removed workspaces."""
    hold: str = ""
    """Reason of a hold; empty for none."""
    auto: int | None = None
    """Collect after this many commits; 0 or None never."""
    grace: float | None = None

    def __post_init__(self) -> None:
        if self.keep_last is not None and self.keep_last < 1:
            raise RametError(
                "invalid_argument", "keep_last must be at least 1", "the head of a workspace is always kept"
            )
        for name in ("keep_within", "min_age", "auto", "grace"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise RametError("invalid_argument", f"invalid {name}: {value!r}", "pass 0 or more")

    @property
    def is_limited(self) -> bool:
        return not self.hold and (self.keep_last is not None or self.keep_within is not None)

    def over(self, other: Retention) -> Retention:
        """Return this policy, with fields that are None taken from another."""
        found = {f.name: getattr(other, f.name) for f in fields(self) if getattr(self, f.name) is None}
        return replace(self, **found)

    def keeps(self, revision: Revision, number: int, now: float) -> bool:
        """Return whether the revision at this position of its history (0 is the head) is kept."""
        age = now - revision.time
        if number == 0 or not self.is_limited or (self.min_age is not None and age < self.min_age):
            return True
        return (self.keep_last is not None and number < self.keep_last) or (
            self.keep_within is not None and age <= self.keep_within
        )


class RetentionPolicies:
    """The policies of a store."""

    def __init__(self, log: Log, clock: Callable[[], float]) -> None:
        self._log, self._clock = log, clock

    def own(self, name: str = STORE) -> Retention:
        """Return the policy that was set for this workspace (or for the store) itself."""
        return self._last(name)[1]

    def of(self, name: str) -> Retention:
        """Return the effective policy of a workspace."""
        return self.own(name).over(replace(self.own(), hold=""))

    def set(self, policy: Retention, name: str = STORE) -> Retention:
        if name == STORE and policy.hold:
            raise RametError("invalid_argument", "cannot place a hold on the store", "name the workspace")
        plain = {f.name: getattr(policy, f.name) for f in fields(policy)}
        plain["time"] = self._clock()
        if not self._log.append(name, self._last(name)[0] + 1, json.dumps(plain, sort_keys=True).encode()):
            raise RametError("head_moved", f"the policy of {name!r} changed concurrently", "try again")
        return policy

    def clear(self, name: str) -> None:
        """Reset the policy of a recreated workspace; a hold stays."""
        own = self.own(name)
        if own != Retention(hold=own.hold):
            self.set(Retention(hold=own.hold), name)

    def names(self) -> list[str]:
        return [name for name in self._log.names() if name != STORE]

    def _last(self, name: str) -> tuple[int, Retention]:
        newest = self._log.newest(name)
        if newest is None:
            return 0, Retention()
        try:
            plain = json.loads(newest[1])
            if not isinstance(plain["hold"], str):  # a damaged policy must not drop a hold
                raise ValueError
            return newest[0], Retention(**{f.name: plain[f.name] for f in fields(Retention) if f.name in plain})
        except (ValueError, TypeError, KeyError):
            raise RametError("store_corrupt", f"the policy of {name!r} is damaged", "set it again") from None


# -------------------------------------------------------------------------------------------------------------- pins


@dataclass(frozen=True)
class Pin:
    """Keeps one revision until a time, or until the pin is removed."""

    token: str
    workspace: str
    target: RevisionId
    until: float | None = None
    why: str = ""

    def encode(self) -> bytes:
        plain = {"workspace": self.workspace, "target": self.target.hex(), "until": self.until, "why": self.why}
        return json.dumps(plain, sort_keys=True).encode()


class Pins:
    """The pins of a store."""

    def __init__(self, objects: Objects, clock: Callable[[], float]) -> None:
        self._objects, self._clock = objects, clock

    def place(self, revision: Revision, *, until: float | None = None, why: str = "", token: str = "") -> Pin:
        """Pin a revision; with the token of a pin, change its time."""
        pin = Pin(token or f"{revision.name}-{os.urandom(4).hex()}", revision.workspace, revision.id, until, why)
        self._objects.put(f"pins/{pin.token}", pin.encode())
        return pin

    def remove(self, token: str) -> None:
        self._objects.delete(f"pins/{token}")

    def all(self) -> Iterator[Pin]:
        for key in self._objects.list("pins/"):
            try:
                plain = json.loads(self._objects.get(key))
                yield Pin(
                    key[5:], plain["workspace"], RevisionId(bytes.fromhex(plain["target"])), plain["until"],
                    plain["why"],
                )  # fmt: skip
            except KeyError:
                continue  # removed concurrently
            except (ValueError, TypeError):
                raise RametError("store_corrupt", f"the pin {key} is damaged", "remove it") from None

    def clean(self) -> None:
        """Remove expired pins."""
        now = self._clock()
        for pin in list(self.all()):
            if pin.until is not None and pin.until <= now:
                self.remove(pin.token)

    def active(self) -> Iterator[Pin]:
        now = self._clock()
        return (pin for pin in self.all() if pin.until is None or pin.until > now)


# --------------------------------------------------------------------------------------------------- what is kept


@dataclass
class KeepSet:
    """The revisions that a collection keeps."""

    revisions: dict[RevisionId, Revision] = field(default_factory=dict)
    owners: dict[RevisionId, set[str]] = field(default_factory=dict)
    """The workspaces that keep each revision."""
    strays: set[RevisionId] = field(default_factory=set)
    """Revisions kept by age only: a late writer may have left an incomplete one."""
    drafts: list[Draft] = field(default_factory=list)
    """Drafts of open and of crashed workspaces."""

    def add(self, revision: Revision, owner: str) -> None:
        self.revisions[revision.id] = revision
        self.owners.setdefault(revision.id, set()).add(owner)

    @property
    def shallow(self) -> frozenset[RevisionId]:
        """Parents that are not kept, where histories end."""
        return frozenset(p for r in self.revisions.values() for p in r.parents if p not in self.revisions)


def keep_set(repository: Repository, now: float) -> KeepSet:
    """Compute the revisions to keep from heads, tags, pins, drafts, pending pushes and undelivered events."""
    found = KeepSet()
    policies = repository.policies
    for name in repository.refs.all_names():
        entry, policy = repository.refs.last(name), policies.of(name)
        if entry.deleted and not policy.hold:
            continue
        try:
            if entry.latest is not None:
                found.add(repository.read_revision(entry.latest, expired=True), name)
            if entry.head is None:
                continue
            _of_workspace(repository, name, entry.head, policy, now, found)
        except RametError as error:
            if not error.context.get("shredded"):
                raise  # a shredded workspace keeps nothing
    from ramet.store.refs.drafts import live_drafts

    found.drafts = [draft for draft in live_drafts(repository) if repository.refs.exists(draft.workspace)]
    drafted = [(draft.workspace, draft.base) for draft in found.drafts if draft.base is not None]
    for workspace, identity in (
        *drafted,
        *_pinned_revisions(repository),
        *_unpushed_revisions(repository),
        *_undelivered_revisions(repository),
    ):
        try:
            found.add(repository.read_revision(identity, expired=True), workspace)
        except RametError as error:
            if error.code not in ("revision_not_found", "revision_expired"):
                raise  # anything but a missing revision must stop the collection
    _keep_young(repository, now, found)
    return found


def _of_workspace(
    repository: Repository, name: str, head: RevisionId, policy: Retention, now: float, found: KeepSet
) -> None:
    history = newest_first(repository.ancestors(repository.read_revision(head, expired=True)).values())
    for number, revision in enumerate(history):
        if policy.keeps(revision, number, now):
            found.add(revision, name)
    for tag in repository.tags.of(name):
        target = repository.read_revision(tag.target, expired=True)
        found.add(target, name)
        if not policy.is_limited:
            for revision in repository.ancestors(target).values():
                found.add(revision, name)


def _pinned_revisions(repository: Repository) -> Iterator[tuple[str, RevisionId]]:
    for pin in repository.pins.active():
        yield pin.workspace, pin.target


def _unpushed_revisions(repository: Repository) -> Iterator[tuple[str, RevisionId]]:
    for key in repository.objects.list("pushes/"):
        try:
            plain = json.loads(repository.objects.get(key))
        except KeyError:
            continue  # done concurrently
        target = RevisionId(bytes.fromhex(plain["revision"]))
        if repository.committed(plain["workspace"], target):
            yield plain["workspace"], target


def _undelivered_revisions(repository: Repository) -> Iterator[tuple[str, RevisionId]]:
    """Yield revisions whose events a named sink has not received."""
    from ramet.store.refs.feed import Cursor

    objects = repository.objects
    cursors = [Cursor.decode(objects.get(key).decode()).seen for key in objects.list("feeds/")]
    if not cursors:
        return
    for name in repository.refs.all_names():
        after = min(cursor.get(name, 0) for cursor in cursors)
        head = None
        for entry in repository.refs.history(name, max(0, after - 1)):
            if entry.number > after and entry.head is not None and entry.head != head:
                yield name, entry.head
            head = entry.head


def _keep_young(repository: Repository, now: float, found: KeepSet) -> None:
    """Keep unreferenced revisions that are younger than `min_age`."""
    least = repository.policies.own().min_age or 0.0
    if not least:
        return
    for key in repository.objects.list("revisions/"):
        identity = RevisionId(bytes.fromhex(key.rpartition("/")[2]))
        if identity in found.revisions:
            continue
        revision = repository.read_revision(identity, expired=True)
        if now - revision.time < least:
            found.add(revision, revision.workspace)
            found.strays.add(identity)


def policy_dict(policy: Retention) -> dict[str, Any]:
    """Return a policy as plain data."""
    return {f.name: getattr(policy, f.name) for f in fields(policy)}
