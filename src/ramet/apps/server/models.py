"""Request and response types of the HTTP API, the source of the OpenAPI document."""

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
    """A request body or query; unknown names are refused."""


class Answer(Struct):
    """A response; clients ignore unknown fields."""


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


Limit = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]


class AskedLimits(Body):
    """Bounds of real programs; the server has higher ones. What is left out has the server's."""

    memory_bytes: Limit | None = None
    processes: Limit | None = None
    file_bytes: Limit | None = None
    disk_bytes: Limit | None = None
    open_files: Limit | None = None


class AskedNative(Body):
    limits: AskedLimits = field(default_factory=AskedLimits)

    @property
    def plain(self) -> dict[str, Any]:
        asked = {name: getattr(self.limits, name) for name in self.limits.__struct_fields__}
        return {"limits": {name: value for name, value in asked.items() if value is not None}}


class CreateWorkspace(Body):
    name: Name
    kind: Literal["stored", "memory"] = "stored"
    """A stored workspace is durable; a memory workspace ends with the server."""
    native: bool | AskedNative = False
    """Run real programs in it, on a server that allows them; with limits, which cannot be above the server's."""


class Mounted(Answer):
    prefix: str
    resource: str
    mode: Literal["read", "write"]


class MountInfo(Answer):
    prefix: str
    type: str
    mode: Literal["read", "write"]
    tree: str | None = None
    """Tree of its content in the store; null if the content lives elsewhere, or for a live workspace."""
    config: dict[str, Any] = field(default_factory=dict)
    redacted_fields: list[str] = field(default_factory=list)
    needs_override: bool = False
    scratch: bool = False
    pin: str | UnsetType = UNSET
    """Versions of content that lives elsewhere."""


class ImageInfo(Answer):
    """Reference to the image of the running processes, and its principal."""

    ref: str
    principal: str = ""


class NoteInfo(Answer):
    """A message about a revision that was given later."""

    message: str
    author: str = ""
    time: float = 0.0
    path: str = ""
    """The file that it is about; empty is the revision."""
    line: int = 0
    """The line of the file, from 1; 0 is the whole file."""


class RevisionInfo(Answer):
    """All fields of a revision; its id is computed from them."""

    name: str
    id: str
    workspace: str
    seq: int
    time: float
    message: str
    lineage: str
    phase: str
    content: str
    """Digest of all files: equal files have equal digests."""
    parents: list[str]
    author: str = ""
    agent: str = ""
    trace_id: str = ""
    diff: dict[str, Any] | None = None
    outputs: list[str] = field(default_factory=list)
    """Paths that it was limited to; empty means everything."""
    withheld: list[str] = field(default_factory=list)
    """Existing paths that are excluded from revisions."""
    suspected: list[str] = field(default_factory=list)
    """Paths whose new content looks like a secret, each with the kind."""
    mounts: list[MountInfo] = field(default_factory=list)
    kernel: str | None = None
    """Reference to sessions, jobs and recent history in the store."""
    history: list[str] = field(default_factory=list)
    ops: dict[str, Any] | None = None
    """Commands that produced it."""
    memory: ImageInfo | UnsetType = UNSET
    """Process image to resume from."""
    notes: list[NoteInfo] = field(default_factory=list)
    """Messages of later commits that had nothing to write, in `log` and in the answer of such a commit."""


class WorkspaceInfo(Answer):
    name: str
    kind: Literal["stored", "memory", "sandbox"]
    open: bool
    """Whether this server has it open and holds its lease."""
    head: RevisionInfo | None = None
    mounts: list[Mounted] = field(default_factory=list)
    busy: bool = False
    """Whether another process writes to it."""


class RemovedInfo(Answer):
    """A removed workspace that can be restored."""

    name: str
    time: float
    """When it was removed, in seconds since the epoch."""
    revision: str | None = None
    """Its last revision."""


class Trash(Answer):
    workspaces: list[RemovedInfo]


class WorkspaceNames(Answer):
    workspaces: list[WorkspaceInfo]


# --------------------------------------------------------------------------------------------------- sandboxes

Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]


class GitAsked(Body):
    """What `{"git": ...}` outputs push, and the secret for the remote."""

    paths: list[Path]
    remotes: dict[str, str] = field(default_factory=dict)
    """URLs by name."""
    username: Annotated[str, Meta(min_length=1, max_length=255)] = "x-access-token"
    secret: Annotated[list[str], Meta(min_length=2, max_length=2)] | None = None
    """Name and key of one of `git_secrets`."""


class CreateSandbox(Body):
    workspace: str | None = None
    """Workspace to start from and to commit to at the end; without one, the files are lost at the end."""
    name: Name | None = None
    image: str = ""
    """A label; there is one kind of sandbox."""
    from_revision: Spec | None = None
    """Make this revision the head first."""
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    """Variables whose values are redacted from everything stored."""
    git: GitAsked | None = None
    git_secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    """By name and key; kept in memory while the sandbox runs, stored nowhere."""
    wait_seconds: Annotated[float, Meta(ge=0, le=600)] = 0.0
    """Seconds to wait for a workspace that is in use."""
    lifetime_seconds: Seconds | None = None
    idle_seconds: Seconds | None = None
    """Seconds without a request after which it ends. Default: the server's setting."""


class SandboxInfo(Answer):
    name: str
    """Use its files, commands and sessions at `/v1/workspaces/NAME`."""
    workspace: str | None
    phase: Literal["Ready", "Terminated"]
    image: str
    created_at: float
    ended_at: float | None = None
    revision: RevisionInfo | None = None
    """Revision committed at its end."""
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
    """Paths below /workspace (or `{"path": ...}`) that limit the commit; `{"diff": true}` records what changed.

    `{"git": {"remote": ..., "branch": ...}}` pushes to a remote that the server allows."""
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
    """The first line of the body is the request, the rest is the command's stdin."""


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
    native: bool | None = None
    """In a native workspace: true runs all of it by the real bash, false runs no native program."""
    encoding: Encoding = "utf-8"
    """`base64` forces base64; output that is not UTF-8 is always base64."""
    stream: bool = False
    """Respond with NDJSON: a line per piece of output as it runs, the result in the last line."""
    detach: bool = False
    """Respond at once with a job."""
    provision: bool = False
    """Run nothing; the output estimates what the command would cost."""
    revision: Spec | None = None
    """Run on this past revision; changes are discarded at the end."""
    message: str = ""
    """Message of the revision that it commits, if any. Default: the start of the command."""
    author: str = ""


class ExecResult(Answer):
    exit_code: int
    stdout: str = ""
    stderr: str = ""
    encoding: Encoding = "utf-8"
    """Encoding of `stdout` and `stderr`."""
    timed_out: bool = False
    truncated: bool = False
    duration_ms: float = 0.0
    bytes_read: dict[str, int] = field(default_factory=dict)
    bytes_written: dict[str, int] = field(default_factory=dict)
    cache_hits: int = 0


class Piece(Answer):
    """A line of a streamed response."""

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
    """Create missing parent directories."""
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
    """Attributes of a path; null means unknown, never zero."""

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


Offset = Annotated[int, Meta(ge=0, le=1 << 40, description="Number of entries to skip.")]


class LogQuery(Body):
    revision: Spec | None = None
    without: Spec | None = None
    """Leave out this revision and all its ancestors."""
    first_record: Annotated[int, Meta(ge=1)] | None = None
    """Only the revisions that hold this record or a later one, along first parents."""
    last_record: Annotated[int, Meta(ge=1)] | None = None
    """Only the revisions that hold this record or an earlier one."""
    records: Annotated[str, Meta(pattern="^[0-9]{1,12}(,[0-9]{1,12}){0,999}$")] | None = None
    """Only the revisions that hold one of these records, such as `3,17`; without `first_record` and `last_record`."""
    brief: bool = False
    """Leave out `history`, `mounts` and `kernel`, and of `ops` and `diff` all but numbers."""
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1000


class Log(Answer):
    revisions: list[RevisionInfo]
    more: bool = False
    expired: dict[str, list[str]] = field(default_factory=dict)
    """Revisions whose parents have expired, with those parents."""


class DiffQuery(Body):
    older: Spec | None = None
    """With only one revision, the changes since its parent; with none, those of the head."""
    newer: Spec | None = None
    offset: Offset = 0
    limit: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class ChangeSide(Answer):
    kind: Literal["file", "dir", "link"]
    mode: int
    size: int
    target: str | None = None
    """Target of a link."""


class Change(Answer):
    path: str
    what: Literal["added", "removed", "modified", "renamed"]
    old: str | None = None
    """The name before, of what was renamed."""
    before: ChangeSide | None = None
    """The entry in the older revision."""
    after: ChangeSide | None = None
    """The entry in the newer revision."""


class Diff(Answer):
    changes: list[Change]
    total: int
    """Total number; more than listed if `limit` was reached."""


class Commit(Body):
    message: str = ""
    """Becomes a note on the head when nothing changed."""
    author: str = ""
    trace_id: str = ""
    subject: str = ""
    """The message where none is given; never a note."""


class Fork(Body):
    name: Name
    revision: Spec | None = None


class Rename(Body):
    name: Name


class Revert(Body):
    revision: Spec
    message: str = ""
    paths: list[Path] = field(default_factory=list)


class Merge(Body):
    other: Spec
    """`OTHER` or `OTHER@REVISION`."""
    message: str = ""
    take: dict[str, Literal["ours", "theirs"]] = {}
    """Which side resolves a conflict, by path; `*` is any path."""
    edited: dict[str, bytes] = {}
    """Contents that resolve conflicts, by path; base64."""


class Undo(Body):
    """Without an agent or run, the last change."""

    agent: str | None = None
    run: str | None = None
    """A trace, a session, or a sandbox."""
    message: str = ""


class Conflict(Answer):
    path: str
    why: str


class Merged(Answer):
    """The merge, or its conflicts; conflicts change nothing."""

    revision: RevisionInfo | None
    conflicts: list[Conflict]
    base: str = ""
    """Id of the revision that both sides of a merge come from, with conflicts."""


class MakeTag(Body):
    revision: Spec | None = None
    message: str = ""
    author: str = ""
    force: bool = False


class MakeNote(Body):
    message: Annotated[str, Meta(min_length=1, max_length=1 << 16)]
    revision: Spec | None = None
    path: Path | None = None
    """The file that it is about."""
    line: Annotated[int, Meta(ge=0)] = 0
    """The line of the file, from 1."""
    author: str = ""
    """Only with the server's own token; a principal signs with its name."""


class TagInfo(Answer):
    name: str
    revision: str
    """Id of the revision."""
    message: str
    author: str
    time: float


class Tags(Answer):
    tags: list[TagInfo]


class BlameQuery(Body):
    path: Path
    revision: Spec | None = None
    brief: bool = False
    """Leave out of the revisions what a brief log leaves out."""


class BlameLine(Answer):
    number: int
    revision: str
    text: str
    session: str | None = None
    command: str | None = None
    id: str = ""
    """Id of the revision."""
    path: str = ""
    """Path of the file in that revision."""
    agent: str | None = None
    record: int | None = None
    """The number of the record that wrote it; null when that is unknown."""
    kind: str | None = None
    """That of the record: `command`, `tool`, `write`, ..."""
    principal: str | None = None


class Blame(Answer):
    lines: list[BlameLine]
    revisions: list[RevisionInfo] = field(default_factory=list)
    """Revisions that the lines come from."""
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
    """Number of the last event the client received, like the header `Last-Event-ID`."""
