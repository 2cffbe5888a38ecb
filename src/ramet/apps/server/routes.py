"""The one table of routes: what is served and what the OpenAPI document says both come from here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ramet.apps.server import handle_exec, handle_files, handle_history, handle_sandboxes, models
from ramet.apps.server.asking import Call, Reply

if TYPE_CHECKING:
    from ramet.apps.server.api import Api

Handler = Callable[["Api", Call], Awaitable[Reply]]
Raw = Literal["bytes", "tar", "events"]


@dataclass(frozen=True)
class Route:
    """One operation. `{name}` in the path is a placeholder; a raw body or answer is bytes, not JSON."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Any = models.Done
    status: int = 200
    body: Any = None
    query: Any = models.NoQuery
    headers: tuple[str, ...] = ()
    open: bool = False
    """Answered without a token."""

    @property
    def name(self) -> str:
        return f"{self.handler.__module__.rpartition('.')[2].removeprefix('handle_')}_{self.handler.__name__}".lower()


W: Final = "/v1/workspaces/{name}"
FILE, HISTORY, EXEC, SANDBOX = handle_files, handle_history, handle_exec, handle_sandboxes

ROUTES: Final = (
    Route("GET", "/v1/health", HISTORY.health, "Whether the server is up.", models.Health, open=True),
    Route("GET", "/v1/workspaces", HISTORY.workspaces, "List the workspaces.", models.WorkspaceNames),
    Route("POST", "/v1/workspaces", HISTORY.create, "Create a workspace.", models.WorkspaceInfo, 201,
          models.CreateWorkspace),
    Route("GET", W, HISTORY.show, "Show a workspace.", models.WorkspaceInfo),
    Route("DELETE", W, HISTORY.remove, "Remove a workspace; its revisions stay until they are collected."),
    Route("GET", "/v1/sandboxes", SANDBOX.sandboxes, "List the sandboxes that run.", models.Sandboxes),
    Route("POST", "/v1/sandboxes", SANDBOX.create, "Start a sandbox; it is then used by its name like a workspace.",
          models.SandboxInfo, 201, models.CreateSandbox),
    Route("GET", "/v1/sandboxes/{name}", SANDBOX.sandbox, "Show a sandbox.", models.SandboxInfo),
    Route("POST", "/v1/sandboxes/{name}/terminate", SANDBOX.terminate, "End a sandbox; doing it again changes nothing.",
          models.SandboxInfo, body=models.Terminate),
    Route("POST", f"{W}/exec", EXEC.run, "Run a command: buffered, streamed as NDJSON, or detached as a job.",
          models.ExecResult, body=models.Exec),
    Route("GET", f"{W}/jobs", EXEC.jobs, "List detached commands.", models.Jobs),
    Route("GET", W + "/jobs/{id}", EXEC.job, "Show a detached command.", models.Job),
    Route("POST", W + "/jobs/{id}/wait", EXEC.wait_job, "Wait until a detached command has ended.", models.Job),
    Route("DELETE", W + "/jobs/{id}", EXEC.kill_job, "Stop a detached command.", models.Job),
    Route("GET", f"{W}/sessions", HISTORY.sessions, "List the sessions.", models.Sessions),
    Route("POST", f"{W}/sessions", HISTORY.create_session, "Create a session.", models.SessionInfo, 201,
          models.CreateSession),
    Route("GET", W + "/sessions/{id}", HISTORY.session, "Show a session.", models.SessionInfo),
    Route("DELETE", W + "/sessions/{id}", HISTORY.close_session, "Close a session."),
    Route("GET", f"{W}/file", FILE.read, "Read a file, also of a revision.", "bytes", query=models.ReadQuery,
          headers=("Range", "If-None-Match", "If-Match", "If-Range")),
    Route("PUT", f"{W}/file", FILE.write, "Write a file.", models.FileStat, body="bytes", query=models.WriteQuery,
          headers=("If-Match", "If-None-Match")),
    Route("PATCH", f"{W}/file", FILE.set_attributes, "Set mode, time or size.", models.FileStat,
          body=models.SetAttributes, query=models.PathQuery),
    Route("DELETE", f"{W}/file", FILE.remove, "Remove a file, a link or a directory.", query=models.RemoveQuery,
          headers=("If-Match",)),
    Route("GET", f"{W}/stat", FILE.stat, "What is known about a path, also of a revision.", models.FileStat,
          query=models.StatQuery),
    Route("GET", f"{W}/dir", FILE.listing, "List a directory, also of a revision.", models.Listing,
          query=models.ListQuery),
    Route("PUT", f"{W}/dir", FILE.make_directory, "Make a directory.", models.FileStat, query=models.DirQuery),
    Route("POST", f"{W}/move", FILE.move, "Rename a file or directory.", models.FileStat, body=models.Move),
    Route("POST", f"{W}/copy", FILE.copy, "Copy a file or directory.", models.FileStat, body=models.Move),
    Route("POST", f"{W}/link", FILE.link, "Make a symbolic link.", models.FileStat, 201, models.Link),
    Route("GET", f"{W}/log", HISTORY.log, "Revisions, newest first.", models.Log, query=models.LogQuery),
    Route("GET", f"{W}/diff", HISTORY.diff, "What a revision changed.", models.Diff, query=models.DiffQuery),
    Route("GET", f"{W}/blame", HISTORY.blame, "Who wrote each line of a file.", models.Blame, query=models.BlameQuery),
    Route("POST", f"{W}/commit", HISTORY.commit, "Make a revision.", models.RevisionInfo, body=models.Commit),
    Route("POST", f"{W}/fork", HISTORY.fork, "Begin a workspace with a revision of this one.", models.WorkspaceInfo,
          201, models.Fork),
    Route("POST", f"{W}/revert", HISTORY.revert, "Make a past content the newest.", models.RevisionInfo,
          body=models.Revert),
    Route("POST", f"{W}/merge", HISTORY.merge, "Bring another workspace in; conflicts are 409 and change nothing.",
          models.Merged, body=models.Merge),
    Route("GET", f"{W}/tags", HISTORY.tags, "List the tags.", models.Tags),
    Route("PUT", W + "/tags/{id}", HISTORY.make_tag, "Name a revision.", models.TagInfo, body=models.MakeTag),
    Route("DELETE", W + "/tags/{id}", HISTORY.untag, "Remove a tag."),
    Route("GET", f"{W}/snapshot", HISTORY.download, "A revision as a tar.", "tar", query=models.SnapshotQuery),
    Route("PUT", f"{W}/snapshot", HISTORY.upload, "A tar as the next revision.", models.Uploaded, 201, "bytes",
          models.UploadQuery),
    Route("GET", "/v1/events", HISTORY.events, "What happens, as server-sent events.", "events",
          query=models.EventsQuery, headers=("Last-Event-ID",)),
)  # fmt: skip
