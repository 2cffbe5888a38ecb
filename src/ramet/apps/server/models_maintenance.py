"""Request and response types for maintenance and inspection."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from ramet.apps.server.models import Answer, Body, Id, MountInfo, Path, RevisionInfo, Spec
from ramet.store.refs.retention import Retention
from ramet.store.verbs.key_admin import RingReport
from ramet.workspace.history import ExecutionRecord
from ramet.workspace.stored.git_push import Pushed
from ramet.workspace.stored.saved_state import EndedJob

Span = Annotated[float, Meta(ge=0, le=3_153_600_000)]
Streamed = Annotated[
    bool, Meta(description="Answer with NDJSON: how far it is while it works, the report in the last line.")
]


class Progressed(Answer):
    """A line of a streamed answer before the last one, which is `{"report": ...}` or `{"problem": ...}`."""

    stage: str
    done: int
    total: int | None = None


# ---------------------------------------------------------------------------------------------------- collecting


class Collect(Body):
    dry: bool = False
    """Only say what would go."""
    grace_seconds: Span | None = None
    """How long things stay after nobody refers to them; what the store's policy says when not given."""
    stream: Streamed = False


class Check(Body):
    stream: Streamed = False


class Repair(Body):
    drop: bool = False
    """Forget what is lost: heads go back, tags go."""
    stream: Streamed = False


class Keeping(Body):
    """How long revisions are kept; what is null is as the store says, and if that says nothing, everything."""

    keep_last: Annotated[int, Meta(ge=1, le=1 << 31)] | None = None
    keep_within: Span | None = None
    min_age: Span | None = None
    auto: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None
    """Collect after every so many commits."""
    grace: Span | None = None


class RetentionInfo(Answer):
    effective: Retention
    """What holds."""
    said: Retention
    """What was said about this one itself."""


class Hold(Body):
    why: Annotated[str, Meta(min_length=1, max_length=4096)]


# ---------------------------------------------------------------------------------------------------------- pins


class MakePin(Body):
    revision: Spec | None = None
    seconds: Span | None = None
    """For how long; until it is removed when not given."""
    why: Annotated[str, Meta(max_length=4096)] = ""


class PinInfo(Answer):
    token: str
    workspace: str
    target: str
    until: float | None = None
    why: str = ""


class PinsQuery(Body):
    workspace: str | None = None


class PinList(Answer):
    pins: list[PinInfo]


# -------------------------------------------------------------------------------------------------------- grants


class MakeGrant(Body):
    access: Literal["readonly", "readwrite"]


class GrantList(Answer):
    grants: dict[str, str]
    """Who may do what; empty when everybody may do everything."""


# ---------------------------------------------------------------------------------------------------------- keys

KeyPlace = Annotated[
    str,
    Meta(pattern="^(file|env|kms):.+$", max_length=4096, description="Where a key is on the server; never a key."),
]


class KeyRings(Answer):
    """The keyrings, without any key."""

    wrapped_by: str
    """Id of the key that opened the store."""
    rings: list[RingReport]


class RotateKeys(Body):
    to: KeyPlace
    old: KeyPlace | None = None
    """The key before, to end a rotation that was interrupted."""


class Rotated(Answer):
    keyrings: int


class Shred(Body):
    confirm: str
    """The name of the workspace once more: nothing brings it back."""


# --------------------------------------------------------------------------------------------------------- mounts


class MountList(Answer):
    mounts: list[MountInfo]


class RevisionQuery(Body):
    revision: Spec | None = None


class MakeMount(Body):
    prefix: Path
    mode: Literal["read", "write"] = "write"
    message: str = ""


class PrefixQuery(Body):
    prefix: Path
    message: str = ""


# -------------------------------------------------------------------------------------------------- looking inside


class HistoryQuery(Body):
    revision: Spec | None = None
    session: Id | None = None
    last: Annotated[int, Meta(ge=1, le=100_000)] = 1000


class CommandHistory(Answer):
    commands: list[ExecutionRecord]
    """The newest last; `stdout` and `stderr` hold how the output began, in base64."""
    total: int


class EndedJobs(Answer):
    jobs: list[EndedJob]


class Bisect(Body):
    good: Spec
    command: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    bad: Spec | None = None
    timeout_ms: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None
    """Per try."""
    stream: Streamed = False


class Tried(Answer):
    revision: RevisionInfo
    verdict: Literal["good", "bad", "skip"]
    exit_code: int


class Bisected(Answer):
    first_bad: RevisionInfo | None
    """The first one in which the command fails; null when what was skipped leaves several."""
    suspects: list[RevisionInfo]
    steps: list[Tried]


# -------------------------------------------------------------------------------------------------------- pushing


class PushTo(Body):
    remote: Annotated[str, Meta(min_length=1, max_length=4096)]
    """A URL that the server may push to."""
    revision: Spec | None = None
    branch: Annotated[str, Meta(min_length=1, max_length=255)] = "{{.name}}"
    paths: Annotated[list[Path], Meta(min_length=1, max_length=1000)] = field(default_factory=lambda: ["/"])
    token: str | None = None
    """Used for this push, and kept nowhere."""
    username: Annotated[str, Meta(min_length=1, max_length=255)] = "x-access-token"


class PushAgain(Body):
    revision: str | None = None
    """Only those of the revision with this id."""
    branch: str | None = None
    """Only those to this branch."""
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    """By name and key, for what is waiting; kept nowhere."""


class PushedList(Answer):
    pushed: list[Pushed]
    failed: list[str] = field(default_factory=list)
    """Why some could not be pushed again; they are still waiting."""


class Waiting(Answer):
    workspace: str
    revision: str
    remote: str
    branch: str
    paths: list[str]
    username: str
    secret: list[str] | None = None
    """Name and key of the secret that opens the remote; never its value."""


class PushList(Answer):
    pushes: list[Waiting]


# ----------------------------------------------------------------------------------------------------------- feed


class FeedQuery(Body):
    since: str | None = None
    """Cursor of the last event that the client has."""
    follow: bool = False
    """Go on with what happens later."""
