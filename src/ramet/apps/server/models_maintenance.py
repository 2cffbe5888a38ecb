"""Request and response types of the HTTP API for maintenance and inspection."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from ramet.apps.server.models import Answer, Body, Id, MountInfo, Path, RevisionInfo, Spec
from ramet.apps.server.settings import Bounds
from ramet.store.refs.retention import Retention
from ramet.store.verbs.key_admin import RingReport
from ramet.workspace.record.history import ExecutionRecord, NetworkFilter, RecordFilter
from ramet.workspace.stored.costs import CostRow
from ramet.workspace.stored.git_push import Pushed
from ramet.workspace.stored.saved_state import EndedJob

Span = Annotated[float, Meta(ge=0, le=3_153_600_000)]
Streamed = Annotated[bool, Meta(description="Respond with NDJSON: progress lines, then the report in the last line.")]


class Progressed(Answer):
    """A progress line of a streamed response; the last line is `{"report": ...}` or `{"problem": ...}`."""

    stage: str
    done: int
    total: int | None = None


# -------------------------------------------------------------------------------------------------------- status


class ConnectionStatus(Answer):
    open: int
    """Connections now."""
    peers: int
    """Addresses that they come from."""
    refused: dict[str, int]
    """Connections that a limit has closed since the start, by the status they got: 408, 431 or 503."""


class LoopHold(Answer):
    """A command held the event loop for more than a second; other requests waited."""

    command: str
    """Name of the command; `shell` outside of one."""
    seconds: float
    where: str
    """File, line and function that ran."""


class ServerStatus(Answer):
    status: Literal["ok", "stopping"]
    version: str
    started_at: float
    """Seconds since 1970."""
    connections: ConnectionStatus
    workspaces: int
    """Workspaces and sandboxes that are open."""
    running: int
    """Requests that use one of them."""
    working: int
    """Long operations, such as gc, that run."""
    holds: dict[str, int]
    """Holds of the event loop since the start, by command."""
    recent_holds: list[LoopHold]
    """The last hundred holds, newest last."""
    limits: Bounds


# ---------------------------------------------------------------------------------------------------- collecting


class Collect(Body):
    dry: bool = False
    """Only report what would be deleted."""
    grace_seconds: Span | None = None
    """How long unreferenced data is kept. Default: the store's policy."""
    stream: Streamed = False


class Check(Body):
    stream: Streamed = False


class Repair(Body):
    drop: bool = False
    """Drop references to lost data: heads move back, tags go."""
    stream: Streamed = False


class Keeping(Body):
    """How long revisions are kept. Null means the store's rule; without one, everything is kept."""

    keep_last: Annotated[int, Meta(ge=1, le=1 << 31)] | None = None
    keep_within: Span | None = None
    min_age: Span | None = None
    auto: Annotated[int, Meta(ge=0, le=1 << 31)] | None = None
    """Run gc after this many commits."""
    grace: Span | None = None


class RetentionInfo(Answer):
    effective: Retention
    """The effective policy."""
    said: Retention
    """The policy set on this workspace itself."""


class Hold(Body):
    why: Annotated[str, Meta(min_length=1, max_length=4096)]


# ---------------------------------------------------------------------------------------------------------- pins


class MakePin(Body):
    revision: Spec | None = None
    seconds: Span | None = None
    """Seconds to keep it. Default: until the pin is removed."""
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
    """Access by principal; empty means that everyone has access."""


# ---------------------------------------------------------------------------------------------------------- keys

KeyPlace = Annotated[
    str,
    Meta(pattern="^(file|env|kms):.+$", max_length=4096, description="Where the server finds a key; never a key."),
]


class KeyRings(Answer):
    """The keyrings, without any key."""

    wrapped_by: str
    """Id of the key in use."""
    rings: list[RingReport]


class RotateKeys(Body):
    to: KeyPlace
    old: KeyPlace | None = None
    """Previous key, to finish an interrupted rotation."""


class Rotated(Answer):
    keyrings: int


class Shred(Body):
    confirm: str
    """Name of the workspace again, as confirmation: this cannot be undone."""


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


# -------------------------------------------------------------------------------------------------- inspection


class HistoryQuery(Body):
    revision: Spec | None = None
    session: Id | None = None
    last: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    agent: Annotated[str, Meta(max_length=256)] | None = None
    run: Annotated[str, Meta(max_length=256)] | None = None
    """Only records whose `meta` names this run, or else of this session."""
    path: Path | None = None
    """Only records that wrote or removed this path, or something below it."""
    text: Annotated[str, Meta(max_length=4096)] | None = None
    """Only records whose command contains this text, in any case."""
    failed: bool | None = None
    """Whether the exit code is not 0."""
    since: float | None = None
    """Only records that began at or after this time, in seconds since the epoch."""
    until: float | None = None
    """Only records that began before this time."""
    number: int | None = None
    """Only the record of this number."""
    exit_code: int | None = None
    principal: Annotated[str, Meta(max_length=256)] | None = None
    network: NetworkFilter | None = None
    """Only records with requests to the network; `refused`: with one among their first 100 that was refused."""

    @property
    def where(self) -> RecordFilter:
        return RecordFilter(
            self.session, self.agent, self.run, self.path, self.text, self.failed, self.since, self.until, self.number,
            self.exit_code, self.principal, self.network,
        )  # fmt: skip


class CompletionQuery(Body):
    line: Annotated[str, Meta(max_length=4096)]
    """The command line up to the cursor."""
    session: Id = "default"
    revision: Spec | None = None


class Completions(Answer):
    start: int
    """The character of the line from which on a word replaces it."""
    words: list[str]
    """At most 1,000; a finished word ends with a space."""


class CommandHistory(Answer):
    commands: list[ExecutionRecord]
    """Newest last; `stdout` and `stderr` have the start of the output, in base64."""
    total: int


class CostsQuery(Body):
    revision: Spec | None = None
    by: Literal["agent", "session", "run", "principal"] = "agent"
    since: float | None = None
    """Only records that began at or after this time, in seconds since the epoch."""
    until: float | None = None
    """Only records that began before this time."""


class CostTotals(Answer):
    costs: list[CostRow]


class QuestionInfo(Answer):
    number: int
    kind: Literal["command", "file", "network"]
    name: str
    """The command, the verb of files, or the HTTP method."""
    subject: str
    """The command line, the path, or the URL without its query. Known secrets are withheld."""
    session_id: str
    agent_id: str
    asked_at: float


class Questions(Answer):
    questions: list[QuestionInfo]


class AnswerQuestion(Body):
    allow: bool | Literal["host"]
    """`host` also allows later requests of the session to the same host."""


class PortInfo(Answer):
    port: int
    address: str
    """`127.0.0.1`, `0.0.0.0`, `::1` or `::`."""
    program: str
    """The command line of the program; empty where it is not known."""
    pid: int
    """Its number in the box; 0 where it is not known."""


class PortList(Answer):
    ports: list[PortInfo]


class OpenPort(Body):
    port: Annotated[int, Meta(ge=1, le=65535)]


class PortLink(Answer):
    url: str
    """Lets one browser of this machine in, once, within ten minutes."""


class EndedJobs(Answer):
    jobs: list[EndedJob]


class Bisect(Body):
    good: Spec
    command: Annotated[str, Meta(min_length=1, max_length=1 << 20)]
    bad: Spec | None = None
    timeout_ms: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None
    """Seconds per run."""
    stream: Streamed = False


class Tried(Answer):
    revision: RevisionInfo
    verdict: Literal["good", "bad", "skip"]
    exit_code: int


class Bisected(Answer):
    first_bad: RevisionInfo | None
    """First revision in which the command fails; null if skipped revisions leave several suspects."""
    suspects: list[RevisionInfo]
    steps: list[Tried]


# -------------------------------------------------------------------------------------------------------- pushes


class PushTo(Body):
    remote: Annotated[str, Meta(min_length=1, max_length=4096)]
    """URL that the server allows."""
    revision: Spec | None = None
    branch: Annotated[str, Meta(min_length=1, max_length=255)] = "{{.name}}"
    paths: Annotated[list[Path], Meta(min_length=1, max_length=1000)] = field(default_factory=lambda: ["/"])
    token: str | None = None
    """Used for this push only, stored nowhere."""
    username: Annotated[str, Meta(min_length=1, max_length=255)] = "x-access-token"


class PushAgain(Body):
    revision: str | None = None
    """Only pushes of the revision with this id."""
    branch: str | None = None
    """Only pushes to this branch."""
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    """Secrets by name and key, for the retries; stored nowhere."""


class PushedList(Answer):
    pushed: list[Pushed]
    failed: list[str] = field(default_factory=list)
    """Reasons of failed retries; they stay pending."""


class Waiting(Answer):
    workspace: str
    revision: str
    remote: str
    branch: str
    paths: list[str]
    username: str
    secret: list[str] | None = None
    """Name and key of the secret for the remote; never its value."""


class PushList(Answer):
    pushes: list[Waiting]


# ----------------------------------------------------------------------------------------------------------- feed


class FeedQuery(Body):
    since: str | None = None
    """Cursor of the last event the client received."""
    follow: bool = False
    """Keep streaming new events."""
