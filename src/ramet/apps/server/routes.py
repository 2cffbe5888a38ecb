"""The table of routes, the source of the server and of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from ramet.apps.server import models
from ramet.apps.server import models_maintenance as care
from ramet.apps.server.handlers import (
    exec as handle_exec,
)
from ramet.apps.server.handlers import (
    files as handle_files,
)
from ramet.apps.server.handlers import (
    history as handle_history,
)
from ramet.apps.server.handlers import (
    inspect as handle_inside,
)
from ramet.apps.server.handlers import (
    maintenance as handle_care,
)
from ramet.apps.server.handlers import (
    ports as handle_ports,
)
from ramet.apps.server.handlers import (
    sandboxes as handle_sandboxes,
)
from ramet.apps.server.request import Call, Reply
from ramet.store.crypto.encrypted_objects import Shredded
from ramet.store.gc.collect import Collected
from ramet.store.gc.costs import Costs
from ramet.store.repair.repair import Repaired
from ramet.store.repair.verify import Report
from ramet.workspace.stored.git_push import Pushed

if TYPE_CHECKING:
    from ramet.apps.server.api import Api

Handler = Callable[["Api", Call], Awaitable[Reply]]
Raw = Literal["bytes", "tar", "events", "lines"]

_GROUPS: Final = {"maintenance": "care", "inspect": "inside"}
"""Prefixes of operation ids, which clients rely on, where they differ from the module of the handler."""


@dataclass(frozen=True)
class Route:
    """One operation. `{name}` in the path is a placeholder; a raw body or response is bytes, not JSON."""

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
    """Needs no token."""
    admin: bool = False
    """Needs the server's own token if principals have tokens as well."""
    creates: bool = False
    """Creates the workspace that it names if it is missing."""
    fresh: bool = False
    """Each answer works once: an `Idempotency-Key` counts for nothing, and no answer is kept."""
    care: bool = False
    """Allowed with the server's own token, whatever the workspace's grants are."""

    @property
    def name(self) -> str:
        module = self.handler.__module__.rpartition(".")[2]
        return f"{_GROUPS.get(module, module)}_{self.handler.__name__}".lower()


W: Final = "/v1/workspaces/{name}"
FILE, HISTORY, EXEC, SANDBOX = handle_files, handle_history, handle_exec, handle_sandboxes
CARE, INSIDE, PORTS = handle_care, handle_inside, handle_ports

ROUTES: Final = (
    Route("GET", "/v1/health", HISTORY.health, "Show that the server is up.", models.Health, open=True),
    Route("GET", "/v1/status", CARE.status, "Show connections, limits, and commands that held the event loop.",
          care.ServerStatus, admin=True),
    Route("GET", "/v1/workspaces", HISTORY.workspaces, "List the workspaces.", models.WorkspaceNames),
    Route("POST", "/v1/workspaces", HISTORY.create, "Create a workspace.", models.WorkspaceInfo, 201,
          models.CreateWorkspace),
    Route("GET", W, HISTORY.show, "Show a workspace.", models.WorkspaceInfo),
    Route("DELETE", W, HISTORY.remove, "Remove a workspace; it can be restored until gc deletes its revisions."),
    Route("GET", "/v1/trash", HISTORY.trash, "List the removed workspaces that can be restored.", models.Trash),
    Route("POST", "/v1/trash/{id}/restore", HISTORY.restore, "Restore a removed workspace."),
    Route("GET", "/v1/sandboxes", SANDBOX.sandboxes, "List the running sandboxes.", models.Sandboxes),
    Route("POST", "/v1/sandboxes", SANDBOX.create, "Start a sandbox; use it by its name like a workspace.",
          models.SandboxInfo, 201, models.CreateSandbox),
    Route("GET", "/v1/sandboxes/{name}", SANDBOX.sandbox, "Show a sandbox.", models.SandboxInfo),
    Route("POST", "/v1/sandboxes/{name}/terminate", SANDBOX.terminate, "End a sandbox; repeating it changes nothing.",
          models.SandboxInfo, body=models.Terminate),
    Route("POST", f"{W}/exec", EXEC.run, "Run a command: buffered, streamed as NDJSON, or detached as a job.",
          models.ExecResult, body=models.Exec, query=models.ExecQuery),
    Route("GET", f"{W}/completions", INSIDE.completions, "List what can complete a command line.", care.Completions,
          query=care.CompletionQuery),
    Route("GET", f"{W}/jobs", EXEC.jobs, "List detached commands.", models.Jobs),
    Route("GET", W + "/jobs/{id}", EXEC.job, "Show a detached command.", models.Job),
    Route("POST", W + "/jobs/{id}/wait", EXEC.wait_job, "Wait for a detached command to end.", models.Job),
    Route("DELETE", W + "/jobs/{id}", EXEC.kill_job, "Stop a detached command.", models.Job),
    Route("GET", f"{W}/questions", INSIDE.questions, "List the questions of `ask` rules that wait for an answer.",
          care.Questions, care=True),
    Route("POST", W + "/questions/{id}", INSIDE.answer_question, "Allow or deny what a question is about.",
          body=care.AnswerQuestion, care=True),
    Route("GET", f"{W}/ports", PORTS.ports, "List the ports at which programs of the workspace listen.",
          care.PortList),
    Route("POST", f"{W}/ports", PORTS.open_port, "Make a link that opens a program in a browser, at a separate origin.",
          care.PortLink, body=care.OpenPort, fresh=True),
    Route("GET", f"{W}/ended-jobs", INSIDE.ended_jobs, "List background jobs (`cmd &`) that have ended.",
          care.EndedJobs, query=care.RevisionQuery),
    Route("GET", f"{W}/history", INSIDE.history, "List the commands that ran, newest last.", care.CommandHistory,
          query=care.HistoryQuery),
    Route("GET", f"{W}/costs", INSIDE.costs, "Total the records by agent, session or principal.", care.CostTotals,
          query=care.CostsQuery),
    Route("GET", f"{W}/sessions", HISTORY.sessions, "List the sessions, now or in a revision.", models.Sessions,
          query=models.SessionsQuery),
    Route("POST", f"{W}/sessions", HISTORY.create_session, "Create a session.", models.SessionInfo, 201,
          models.CreateSession),
    Route("GET", W + "/sessions/{id}", HISTORY.session, "Show a session.", models.SessionInfo),
    Route("DELETE", W + "/sessions/{id}", HISTORY.close_session, "Close a session."),
    Route("GET", f"{W}/mounts", INSIDE.mounts, "List the mounts, now or in a revision.", care.MountList,
          query=care.RevisionQuery),
    Route("POST", f"{W}/mounts", INSIDE.mount, "Add an empty mount.", models.MountInfo, 201, care.MakeMount),
    Route("DELETE", f"{W}/mounts", INSIDE.umount, "Remove a mount; past revisions keep it.",
          query=care.PrefixQuery),
    Route("GET", f"{W}/file", FILE.read, "Read a file, now or in a revision.", "bytes", query=models.ReadQuery,
          headers=("Range", "If-None-Match", "If-Match", "If-Range")),
    Route("PUT", f"{W}/file", FILE.write, "Write a file.", models.FileStat, body="bytes", query=models.WriteQuery,
          headers=("If-Match", "If-None-Match")),
    Route("PATCH", f"{W}/file", FILE.set_attributes, "Set mode, time or size.", models.FileStat,
          body=models.SetAttributes, query=models.PathQuery),
    Route("DELETE", f"{W}/file", FILE.remove, "Remove a file, a link or a directory.", query=models.RemoveQuery,
          headers=("If-Match",)),
    Route("GET", f"{W}/stat", FILE.stat, "Show the attributes of a path, now or in a revision.", models.FileStat,
          query=models.StatQuery),
    Route("GET", f"{W}/dir", FILE.listing, "List a directory, now or in a revision.", models.Listing,
          query=models.ListQuery),
    Route("PUT", f"{W}/dir", FILE.make_directory, "Create a directory.", models.FileStat, query=models.DirQuery),
    Route("POST", f"{W}/move", FILE.move, "Rename a file or directory.", models.FileStat, body=models.Move),
    Route("POST", f"{W}/copy", FILE.copy, "Copy a file or directory.", models.FileStat, body=models.Move),
    Route("POST", f"{W}/link", FILE.link, "Create a symbolic link.", models.FileStat, 201, models.Link),
    Route("GET", f"{W}/log", HISTORY.log, "List the revisions, newest first.", models.Log, query=models.LogQuery),
    Route("GET", f"{W}/diff", HISTORY.diff, "Compare two revisions.", models.Diff, query=models.DiffQuery),
    Route("GET", f"{W}/blame", HISTORY.blame, "Show who wrote each line.", models.Blame, query=models.BlameQuery),
    Route("POST", f"{W}/bisect", INSIDE.bisect, "Find the first revision in which a command fails.", care.Bisected,
          body=care.Bisect),
    Route("POST", f"{W}/commit", HISTORY.commit, "Commit a revision.", models.RevisionInfo, body=models.Commit),
    Route("POST", f"{W}/rename", HISTORY.rename, "Rename a workspace, with its history, tags and grants.",
          models.WorkspaceInfo, 200, models.Rename),
    Route("POST", f"{W}/fork", HISTORY.fork, "Create a workspace from a revision of this one.", models.WorkspaceInfo,
          201, models.Fork),
    Route("POST", f"{W}/revert", HISTORY.revert, "Restore a past revision as a new one.", models.RevisionInfo,
          body=models.Revert),
    Route("POST", f"{W}/merge", HISTORY.merge, "Merge another workspace; conflicts are 409 and change nothing.",
          models.Merged, body=models.Merge),
    Route("POST", f"{W}/undo", HISTORY.undo, "Undo a change, an agent or a run; conflicts are 409 and change nothing.",
          models.Merged, body=models.Undo),
    Route("GET", f"{W}/tags", HISTORY.tags, "List the tags.", models.Tags),
    Route("PUT", W + "/tags/{id}", HISTORY.make_tag, "Tag a revision.", models.TagInfo, body=models.MakeTag),
    Route("DELETE", W + "/tags/{id}", HISTORY.untag, "Remove a tag."),
    Route("POST", f"{W}/notes", HISTORY.note, "Add a note to a revision, or to a file or a line of it.",
          models.RevisionInfo, 201, models.MakeNote),
    Route("GET", f"{W}/snapshot", HISTORY.download, "Download a revision as a tar.", "tar", query=models.SnapshotQuery),
    Route("PUT", f"{W}/snapshot", HISTORY.upload, "Upload a tar as the next revision.", models.Uploaded, 201, "bytes",
          models.UploadQuery, creates=True),
    Route("GET", f"{W}/git", INSIDE.git, "Export the whole history for `git fast-import`.", "bytes"),
    Route("POST", f"{W}/push", CARE.push, "Push a revision to a git branch as one commit.", Pushed, body=care.PushTo),
    Route("GET", f"{W}/pushes", CARE.pushes, "List pending pushes.", care.PushList),
    Route("POST", f"{W}/pushes", CARE.push_again, "Retry failed pushes.", care.PushedList,
          body=care.PushAgain),
    Route("GET", f"{W}/retention", CARE.retention, "Show its retention policy.", care.RetentionInfo, care=True),
    Route("PUT", f"{W}/retention", CARE.set_retention, "Set how long its revisions are kept; a hold stays.",
          care.RetentionInfo, body=care.Keeping, care=True),
    Route("PUT", f"{W}/hold", CARE.hold, "Protect it from removal until the hold is lifted.", care.RetentionInfo,
          body=care.Hold, care=True),
    Route("DELETE", f"{W}/hold", CARE.lift, "Lift the hold.", care.RetentionInfo, care=True),
    Route("POST", f"{W}/pins", CARE.pin, "Keep a revision from expiring.", care.PinInfo, 201, care.MakePin, care=True),
    Route("GET", "/v1/pins", CARE.pins, "List the pins.", care.PinList, query=care.PinsQuery, care=True),
    Route("DELETE", "/v1/pins/{id}", CARE.unpin, "Remove a pin.", care=True),
    Route("GET", f"{W}/grants", CARE.grants, "List who may read or write.", care.GrantList, care=True),
    Route("PUT", W + "/grants/{id}", CARE.grant, "Allow a principal to read or write; the first grant excludes others.",
          care.GrantList, body=care.MakeGrant, care=True),
    Route("DELETE", W + "/grants/{id}", CARE.revoke, "Revoke a principal's grant.", care.GrantList,
          care=True),
    Route("POST", f"{W}/shred", CARE.shred, "Destroy the keys of a workspace: its data is lost for ever.", Shredded,
          body=care.Shred, admin=True),
    Route("GET", "/v1/store/retention", CARE.store_retention, "Show how long revisions are kept.", care.RetentionInfo),
    Route("PUT", "/v1/store/retention", CARE.set_store_retention, "Set how long revisions are kept.",
          care.RetentionInfo, body=care.Keeping, admin=True),
    Route("POST", "/v1/store/gc", CARE.gc, "Delete expired revisions and unreferenced data.", Collected,
          body=care.Collect, admin=True),
    Route("GET", "/v1/store/cost", CARE.cost, "Show what each workspace costs.", Costs, admin=True),
    Route("POST", "/v1/store/verify", CARE.verify, "Check every digest and reference in the store.", Report,
          body=care.Check, admin=True),
    Route("POST", "/v1/store/repair", CARE.repair, "Restore damaged data from other copies and report what is lost.",
          Repaired, body=care.Repair, admin=True),
    Route("GET", "/v1/store/keys", CARE.keys, "List the keyrings; no key is shown.", care.KeyRings, admin=True),
    Route("POST", "/v1/store/keys/rotate", CARE.rotate, "Replace the key that opens the store.", care.Rotated,
          body=care.RotateKeys, admin=True),
    Route("GET", "/v1/feed", INSIDE.feed, "Stream every head move as a CloudEvent with its cursor, as NDJSON.", "lines",
          query=care.FeedQuery, care=True),
    Route("GET", "/v1/events", HISTORY.events, "Stream server-sent events.", "events",
          query=models.EventsQuery, headers=("Last-Event-ID",)),
)  # fmt: skip
