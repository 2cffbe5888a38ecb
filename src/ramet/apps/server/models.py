"""Request and response types of the HTTP API. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
Name = Annotated[str, Meta(pattern=NAME, description="Name of a workspace.")]
Id = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[^/\x00]+$")]
Path = Annotated[str, Meta(min_length=1, max_length=4096, description="Absolute path inside the workspace.")]
Spec = Annotated[str, Meta(min_length=1, description="`head`, `head~2`, a tag, a revision's name, number or id.")]
Encoding = Literal["utf-8", "base64"]


class Body(Struct, forbid_unknown_fields=True):
    """A request body or a query: names that are not known are refused."""


class Answer(Struct):
    """Something the server says; clients ignore fields they do not know."""


# ---------------------------------------------------------------------------------------------------- general


class Problem(Answer):
    """Why a request was refused (RFC 9457, with the fields of every Ramet error)."""

    status: int
    title: str
    code: str
    cause: str
    remediation: str
    detail: str
    type: str = "about:blank"
    context: dict[str, Any] = field(default_factory=dict)


class Health(Answer):
    status: Literal["ok", "stopping"]
    version: str


class Done(Answer):
    ok: bool = True


class NoQuery(Body):
    """No parameters."""


# ------------------------------------------------------------------------------------------------- workspaces


class CreateWorkspace(Body):
    name: Name
    kind: Literal["stored", "memory"] = "stored"
    """A stored workspace survives; a memory one is gone when the server ends."""


class Mounted(Answer):
    prefix: str
    resource: str
    mode: Literal["read", "write"]


class MountInfo(Answer):
    prefix: str
    type: str
    mode: Literal["read", "write"]
    tree: str | None = None
    """Its content in the store; null when its bytes live elsewhere, or when it is told as it is now."""
    config: dict[str, Any] = field(default_factory=dict)
    redacted_fields: list[str] = field(default_factory=list)
    needs_override: bool = False
    scratch: bool = False
    pin: str | UnsetType = UNSET
    """Of what lives elsewhere, the versions that it had."""


class ImageInfo(Answer):
    """Where the image of what ran is, and whose it is."""

    ref: str
    principal: str = ""


class RevisionInfo(Answer):
    """Everything that a revision is: whoever has it can compute its id."""

    name: str
    id: str
    workspace: str
    seq: int
    time: float
    message: str
    lineage: str
    phase: str
    content: str
    """Digest of all files: the same wherever the same files are."""
    parents: list[str]
    author: str = ""
    agent: str = ""
    trace_id: str = ""
    diff: dict[str, Any] | None = None
    outputs: list[str] = field(default_factory=list)
    """The paths that it was narrowed to; none means everything."""
    withheld: list[str] = field(default_factory=list)
    """Paths that were there and never enter a revision."""
    suspected: list[str] = field(default_factory=list)
    """Paths whose new content seemed to hold secrets, each with the kind."""
    mounts: list[MountInfo] = field(default_factory=list)
    kernel: str | None = None
    """Where sessions, jobs and the newest history are in the store."""
    history: list[str] = field(default_factory=list)
    ops: dict[str, Any] | None = None
    """Which commands led to it."""
    memory: ImageInfo | UnsetType = UNSET
    """What makes it resumable."""


class WorkspaceInfo(Answer):
    name: str
    kind: Literal["stored", "memory", "sandbox"]
    open: bool
    """Whether this server holds it open, and with it the lease."""
    head: RevisionInfo | None = None
    mounts: list[Mounted] = field(default_factory=list)
    busy: bool = False
    """Whether somebody else writes to it."""


class WorkspaceNames(Answer):
    workspaces: list[WorkspaceInfo]


# --------------------------------------------------------------------------------------------------- sandboxes

Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]


class GitAsked(Body):
    """What `{"git": ...}` outputs push, and which secret opens the remote."""

    paths: list[Path]
    remotes: dict[str, str] = field(default_factory=dict)
    """Names for URLs."""
    username: Annotated[str, Meta(min_length=1, max_length=255)] = "x-access-token"
    secret: Annotated[list[str], Meta(min_length=2, max_length=2)] | None = None
    """Name and key of one of `git_secrets`."""


class CreateSandbox(Body):
    workspace: str | None = None
    """The workspace that it starts with and that its end makes a revision of; without one, what it holds is gone."""
    name: Name | None = None
    image: str = ""
    """What is expected of it: a label, there is one kind of sandbox."""
    from_revision: Spec | None = None
    """Make this revision the newest one first."""
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """Variables whose values are struck out of whatever is kept."""
    git: GitAsked | None = None
    git_secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    """By name and key; kept nowhere but with the sandbox while it runs."""
    wait_seconds: Annotated[float, Meta(ge=0, le=600)] = 0.0
    """How long to wait for a workspace that others are using."""
    lifetime_seconds: Seconds | None = None
    idle_seconds: Seconds | None = None
    """Seconds without a request after which it ends by itself; what the server says when not given."""


class SandboxInfo(Answer):
    name: str
    """Its files, commands and sessions are those of `/v1/workspaces/NAME`."""
    workspace: str | None
    phase: Literal["Ready", "Terminated"]
    image: str
    created_at: float
    ended_at: float | None = None
    revision: RevisionInfo | None = None
    """What its end made."""
    pushed: list[PushedBranch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class PushedBranch(Answer):
    branch: str
    remote: str
    commit: str


class Sandboxes(Answer):
    sandboxes: list[SandboxInfo]


class Terminate(Body):
    outputs: list[str | dict[str, Any]] | None = None
    """Paths below /workspace (or `{"path": ...}`) that narrow what is kept; `{"diff": true}` records what changed.

    `{"git": {"remote": ..., "branch": ...}}` pushes, where the server may."""
    checkpoint: bool = False


# ---------------------------------------------------------------------------------------------------- sessions


class CreateSession(Body):
    id: Id
    cwd: Path | None = None
    env: dict[str, str] = field(default_factory=dict)


class SessionInfo(Answer):
    id: str
    cwd: str
    env: dict[str, str]
    last_exit_code: int


class Sessions(Answer):
    sessions: list[SessionInfo]


class SessionsQuery(Body):
    revision: Spec | None = None


# -------------------------------------------------------------------------------------------------------- exec


class ExecQuery(Body):
    stdin: Literal["follows"] | None = None
    """The first line of the body is the request, the rest is what the command reads."""


class Exec(Body):
    command: Annotated[str, Meta(max_length=1 << 20)]
    session: Id = "default"
    cwd: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    timeout_ms: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None
    stdin: str | None = None
    stdin_base64: str | None = None
    agent: Id = "default"
    meta: dict[str, str | int | float | bool] = field(default_factory=dict)
    """Kept with the record of the command: tokens, money, the turn of an agent."""
    encoding: Encoding = "utf-8"
    """`base64` asks for base64 always; text that is not UTF-8 comes as base64 anyway."""
    stream: bool = False
    """Answer with NDJSON: a line per piece of output while it runs, the result in the last line."""
    detach: bool = False
    """Answer at once with a job."""
    provision: bool = False
    """Run nothing; the output says what the command would cost."""
    revision: Spec | None = None
    """Run on this past state; what the command changes there is gone when it ends."""
    message: str = ""
    """Message of the revision that it makes, if it makes one; how the command begins when not given."""
    author: str = ""


class ExecResult(Answer):
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    encoding: Encoding = "utf-8"
    """How `stdout` and `stderr` are to be read."""
    timed_out: bool = False
    truncated: bool = False
    duration_ms: float = 0.0
    bytes_read: dict[str, int] = field(default_factory=dict)
    bytes_written: dict[str, int] = field(default_factory=dict)
    cache_hits: int = 0


class Piece(Answer):
    """A line of a streamed answer."""

    fd: Literal[1, 2]
    data: str
    encoding: Encoding = "utf-8"


class Job(Answer):
    id: str
    command: str
    session: str
    state: Literal["running", "completed", "killed", "failed"]
    started_at: float
    ended_at: float | None = None
    result: ExecResult | None = None
    problem: Problem | None = None


class Jobs(Answer):
    jobs: list[Job]


# ------------------------------------------------------------------------------------------------------- files


class PathQuery(Body):
    path: Path
    session: Id = "default"


class ListQuery(Body):
    path: Path
    session: Id = "default"
    revision: Spec | None = None


class ReadQuery(Body):
    path: Path
    session: Id = "default"
    revision: Spec | None = None


class WriteQuery(Body):
    path: Path
    session: Id = "default"
    parents: bool = False
    """Make missing directories first."""
    append: bool = False


class DirQuery(Body):
    path: Path
    session: Id = "default"
    parents: bool = False


class RemoveQuery(Body):
    path: Path
    session: Id = "default"
    recursive: bool = False


class StatQuery(Body):
    path: Path
    session: Id = "default"
    follow: bool = True
    revision: Spec | None = None


class SetAttributes(Body):
    mode: Annotated[int, Meta(ge=0, le=0o7777)] | None = None
    mtime_ns: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None
    atime_ns: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None
    size: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None


class Move(Body):
    source: Path
    target: Path
    session: Id = "default"


class Link(Body):
    path: Path
    target: Annotated[str, Meta(min_length=1, max_length=4095)]
    session: Id = "default"


class FileStat(Answer):
    """What is known about a path; null is unknown, never zero."""

    path: str
    kind: Literal["file", "dir", "link", "fifo", "socket", "device"]
    size: int | None = None
    mtime_ns: int | None = None
    mode: int | None = None
    etag: str | None = None
    target: str | None = None
    nlink: int | None = None
    atime_ns: int | None = None


class Listing(Answer):
    path: str
    entries: list[FileStat]


# ----------------------------------------------------------------------------------------------------- history


Offset = Annotated[int, Meta(ge=0, le=1 << 40, description="How many to leave out at the beginning.")]


class LogQuery(Body):
    revision: Spec | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class Log(Answer):
    revisions: list[RevisionInfo]
    more: bool = False
    expired: dict[str, list[str]] = field(default_factory=dict)
    """Revisions whose parents are gone because their time was over, and those parents."""


class DiffQuery(Body):
    older: Spec | None = None
    """With only one revision, the changes since its parent; with none, those of the head."""
    newer: Spec | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class Change(Answer):
    path: str
    what: Literal["added", "removed", "modified", "renamed"]
    old: str | None = None


class Diff(Answer):
    changes: list[Change]
    total: int
    """How many there are; more than listed when `limit` was reached."""


class Commit(Body):
    message: str = ""
    author: str = ""
    trace_id: str = ""


class Fork(Body):
    name: Name
    revision: Spec | None = None


class Revert(Body):
    revision: Spec
    message: str = ""
    paths: list[Path] = field(default_factory=list)


class Merge(Body):
    other: Spec
    """`OTHER` or `OTHER@REVISION`."""
    message: str = ""


class Conflict(Answer):
    path: str
    why: str


class Merged(Answer):
    """The merge, or why there is none; conflicts change nothing."""

    revision: RevisionInfo | None
    conflicts: list[Conflict]


class MakeTag(Body):
    revision: Spec | None = None
    message: str = ""
    author: str = ""
    force: bool = False


class TagInfo(Answer):
    name: str
    revision: str
    """Its id."""
    message: str
    author: str
    time: float


class Tags(Answer):
    tags: list[TagInfo]


class BlameQuery(Body):
    path: Path
    revision: Spec | None = None


class BlameLine(Answer):
    number: int
    revision: str
    text: str
    session: str | None = None
    command: str | None = None
    id: str = ""
    """That of the revision."""
    path: str = ""
    """Where the line was then."""
    agent: str | None = None
    record: int | None = None
    """The number of the command."""


class Blame(Answer):
    lines: list[BlameLine]
    revisions: list[RevisionInfo] = field(default_factory=list)
    """Those that the lines come from."""
    ends: bool = True
    """Whether the last line ends with a newline."""


class SnapshotQuery(Body):
    revision: Spec | None = None
    kind: Literal["snapshot", "tar"] = "snapshot"
    compress: Literal["gz", "bz2", "xz"] | None = None


class UploadQuery(Body):
    prefix: Path = "/"
    kind: Literal["snapshot", "tar"] | None = None
    message: str = ""
    author: str = ""


class Uploaded(Answer):
    name: str
    revision: RevisionInfo | None
    left_out: list[str]
    files: int = 0


class EventsQuery(Body):
    workspace: Name | None = None
    since: Annotated[int, Meta(ge=0)] | None = None
    """Number of the last event that the client has; `Last-Event-ID` says the same."""
