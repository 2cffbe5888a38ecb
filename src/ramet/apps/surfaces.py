"""The table of verbs and their names on every surface; a test compares it with the code.

`LOCAL` lists verbs that need the local machine, with the reason; further tables list calls that a client lacks.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One verb of the command line, its library call, and its names on the other surfaces."""

    verb: str
    library: str
    routes: tuple[str, ...]
    python: str
    typescript: str
    mcp: str = ""


W: Final = "/v1/workspaces/{name}"

TABLE: Final = (
    Row("create", "Store.create", ("POST /v1/workspaces",), "RemoteStore.create", "AgentRun.createWorkspace"),
    Row("ls", "Store.ls", ("GET /v1/workspaces", f"GET {W}", f"GET {W}/dir"), "RemoteStore.ls", "AgentRun.workspaces"),
    Row("exec", "StoredWorkspace.execute", (f"POST {W}/exec",), "RemoteWorkspace.execute", "Workspace.exec", "bash"),
    Row("shell", "StoredWorkspace.complete", (f"POST {W}/exec", f"GET {W}/completions"), "RemoteWorkspace.complete",
        "Workspace.complete", "bash"),
    Row("port", "StoredWorkspaceRef.forward", (f"GET {W}/ports", f"POST {W}/ports"), "RemoteRef.forward",
        "Workspace.ports"),
    Row("fork", "StoredWorkspaceRef.fork", (f"POST {W}/fork",), "RemoteRef.fork", "Workspace.fork", "ws_fork"),
    Row("revert", "StoredWorkspaceRef.revert", (f"POST {W}/revert",), "RemoteRef.revert", "Workspace.revert",
        "ws_revert"),
    Row("merge", "StoredWorkspaceRef.merge", (f"POST {W}/merge",), "RemoteRef.merge", "Workspace.merge"),
    Row("undo", "StoredWorkspaceRef.undo", (f"POST {W}/undo",), "RemoteRef.undo", "Workspace.undo"),
    Row("tag", "StoredWorkspaceRef.tag", (f"GET {W}/tags", f"PUT {W}/tags/{{id}}", f"DELETE {W}/tags/{{id}}"),
        "RemoteRef.tag", "Workspace.tag"),
    Row("note", "StoredWorkspaceRef.note", (f"POST {W}/notes",), "RemoteRef.note", "Workspace.note"),
    Row("mount", "StoredWorkspace.mount", (f"POST {W}/mounts",), "RemoteWorkspace.mount", "Workspace.mount"),
    Row("umount", "StoredWorkspace.unmount", (f"DELETE {W}/mounts",), "RemoteWorkspace.unmount", "Workspace.umount"),
    Row("rename", "StoredWorkspaceRef.rename", (f"POST {W}/rename",), "RemoteRef.rename", "Workspace.rename"),
    Row("rm", "Store.rm", (f"DELETE {W}",), "RemoteStore.rm", "Workspace.remove"),
    Row("restore", "Store.restore", ("GET /v1/trash", "POST /v1/trash/{id}/restore"), "RemoteStore.restore",
        "AgentRun.restore"),
    Row("log", "StoredWorkspaceRef.log", (f"GET {W}/log",), "RemoteRef.log", "Workspace.log", "ws_log"),
    Row("diff", "StoredWorkspaceRef.diff", (f"GET {W}/diff",), "RemoteRef.diff", "Workspace.diff", "ws_diff"),
    Row("show", "StoredWorkspaceRef.show", (f"GET {W}/file",), "RemoteRef.show", "Workspace.show", "read"),
    Row("blame", "StoredWorkspaceRef.blame", (f"GET {W}/blame",), "RemoteRef.blame", "Workspace.blame"),
    Row("history", "StoredWorkspaceRef.history", (f"GET {W}/history",), "RemoteRef.history", "Workspace.history"),
    Row("agents", "StoredWorkspaceRef.costs", (f"GET {W}/costs",), "RemoteRef.costs", "Workspace.costs", "ws_costs"),
    Row("sessions", "StoredWorkspaceRef.sessions", (f"GET {W}/sessions",), "RemoteRef.sessions",
        "Workspace.sessions"),
    Row("jobs", "StoredWorkspaceRef.jobs", (f"GET {W}/ended-jobs",), "RemoteRef.jobs", "Workspace.endedJobs"),
    Row("questions", "StoredWorkspace.questions", (f"GET {W}/questions", f"POST {W}/questions/{{id}}"),
        "RemoteWorkspace.questions", "Workspace.questions"),
    Row("mounts", "StoredWorkspaceRef.mounts", (f"GET {W}/mounts",), "RemoteRef.mounts", "Workspace.mounts"),
    Row("bisect", "StoredWorkspaceRef.bisect", (f"POST {W}/bisect",), "RemoteRef.bisect", "Workspace.bisect"),
    Row("checkout", "StoredWorkspaceRef.checkout", (f"GET {W}/snapshot",), "RemoteRef.checkout",
        "Workspace.snapshot"),
    Row("snapshot", "StoredWorkspaceRef.export", (f"GET {W}/snapshot",), "RemoteRef.export", "Workspace.snapshot"),
    Row("export", "StoredWorkspaceRef.export_git", (f"GET {W}/snapshot", f"GET {W}/git"), "RemoteRef.export_git",
        "Workspace.git"),
    Row("import", "Store.import_archive", (f"PUT {W}/snapshot",), "RemoteStore.import_archive", "Workspace.load"),
    Row("push", "StoredWorkspaceRef.push", (f"POST {W}/push", f"GET {W}/pushes", f"POST {W}/pushes"),
        "RemoteRef.push", "Workspace.push"),
    Row("events", "Store.events", ("GET /v1/feed",), "RemoteStore.events", "StoreCare.feed"),
    Row("verify", "Store.verify", ("POST /v1/store/verify",), "RemoteStore.verify", "StoreCare.verify"),
    Row("repair", "Store.repair", ("POST /v1/store/repair",), "RemoteStore.repair", "StoreCare.repair"),
    Row("gc", "Store.gc", ("POST /v1/store/gc",), "RemoteStore.gc", "StoreCare.gc"),
    Row("cost", "Store.cost", ("GET /v1/store/cost",), "RemoteStore.cost", "StoreCare.cost"),
    Row("retention", "Store.retention",
        ("GET /v1/store/retention", "PUT /v1/store/retention", f"GET {W}/retention", f"PUT {W}/retention"),
        "RemoteStore.retention", "StoreCare.setRetention"),
    Row("hold", "Store.hold", (f"PUT {W}/hold", f"DELETE {W}/hold"), "RemoteStore.hold", "Workspace.hold"),
    Row("pin", "StoredWorkspaceRef.pin", (f"POST {W}/pins", "GET /v1/pins", "DELETE /v1/pins/{id}"),
        "RemoteRef.pin", "Workspace.pin"),
    Row("grant", "StoredWorkspaceRef.grant", (f"PUT {W}/grants/{{id}}", f"DELETE {W}/grants/{{id}}"),
        "RemoteRef.grant", "Workspace.grant"),
    Row("grants", "StoredWorkspaceRef.grants", (f"GET {W}/grants",), "RemoteRef.grants", "Workspace.grants"),
    Row("keys show", "Keys.show", ("GET /v1/store/keys",), "RemoteKeys.show", "StoreCare.keys"),
    Row("keys init", "Keys.wrapped_by", ("GET /v1/store/keys",), "RemoteKeys.wrapped_by", "StoreCare.keys"),
    Row("keys rotate", "Keys.rotate", ("POST /v1/store/keys/rotate",), "RemoteKeys.rotate", "StoreCare.rotateKeys"),
    Row("keys shred", "Keys.shred", (f"POST {W}/shred",), "RemoteKeys.shred", "Workspace.shred"),
)  # fmt: skip

LOCAL: Final = {
    "ui": "serves the web page itself; with --url it requests a link from a server",
    "bind": "runs a program of this machine in a directory of this machine",
    "try": "runs a program over a directory of this machine",
    "turn": "makes a revision of a directory of this machine",
    "rewind": "restores a directory of this machine",
    "commit": "an open workspace has `commit`; over HTTP `POST .../commit`",
    "cp": "copies files of this machine; an open workspace has `read` and `write`",
    "serve": "is the server",
    "rendezvous": "is a server",
    "mcp": "serves the workspace to a model that this machine started",
    "config check": "works on local files",
    "config show": "works on local files",
    "config use": "gives a workspace a file of this machine",
    "config init": "works on local files",
    "config schema": "works on local files",
    "doctor": "checks this machine; of a server it checks only that it responds",
    "demo": "runs in a temporary directory",
    "version": "prints the version of this program; `GET /v1/health` has the server's",
    "keys new": "creates a key, which is never sent",
}
"""Verbs without a route, each with the reason."""

ELSEWHERE: Final = {
    "GET /v1/health": "whether the server is up",
    "GET /v1/status": "connections, limits and holds of the server; `doctor` has those of its own process",
    "GET /v1/events": "events of the server itself; the feed of the store is `/v1/feed`",
    "GET /v1/sandboxes": "`AgentRun`",
    "POST /v1/sandboxes": "`AgentRun.sandbox`",
    "GET /v1/sandboxes/{name}": "`Sandbox`",
    "POST /v1/sandboxes/{name}/terminate": "`Sandbox.terminate`",
    f"GET {W}/jobs": "detached commands; the command line waits for its command",
    f"GET {W}/jobs/{{id}}": "a detached command",
    f"POST {W}/jobs/{{id}}/wait": "a detached command",
    f"DELETE {W}/jobs/{{id}}": "a detached command",
    f"POST {W}/sessions": "`exec` with lasting variables and working directory",
    f"GET {W}/sessions/{{id}}": "one of `sessions`",
    f"DELETE {W}/sessions/{{id}}": "ends a session",
    f"PUT {W}/file": "`exec` with a redirection",
    f"PATCH {W}/file": "`exec` with chmod, touch or truncate",
    f"DELETE {W}/file": "`exec` with rm",
    f"GET {W}/stat": "`exec` with stat",
    f"PUT {W}/dir": "`exec` with mkdir",
    f"POST {W}/move": "`exec` with mv",
    f"POST {W}/copy": "`exec` with cp",
    f"POST {W}/link": "`exec` with ln",
    f"POST {W}/commit": "`exec` commits by itself",
}
"""Routes without a verb, and what to use on the command line."""

NOT_AFAR: Final = {
    "StoredWorkspace.unsaved": "a server commits before it answers; compare revisions with `patch`",
    "Store.repository": "internal to the store",
    "Store.deliver": "the delivering process saves its position in the store",
    "Store.open_with": "the server's options and configuration decide how a workspace opens",
    "Store.forget_sink": "the delivering process saves its position in the store",
    "StoredWorkspace.stream_uploads": "how a server stores large files",
    "StoredWorkspace.acknowledge": "the server does it before it responds",
    "StoredWorkspace.base": "ask `store[name].head`",
    "StoredWorkspace.binding": "directories on the machine of the store",
    "StoredWorkspace.branch": "shares memory with the workspace; `fork` makes a workspace",
    "StoredWorkspace.cached_files": "the cache is the server's",
    "StoredWorkspace.claim": "names the writer; `agent_run()` has sandboxes",
    "StoredWorkspace.command": "a function of this process cannot be sent",
    "StoredWorkspace.commands": "a function of this process cannot be sent",
    "StoredWorkspace.draft": "the server does it before it responds",
    "StoredWorkspace.finish": "the server commits; `close` closes the connection",
    "StoredWorkspace.from_config": "`ramet serve --config` describes workspaces",
    "StoredWorkspace.recording": "each remote call is already one record",
    "StoredWorkspace.recorder": "the server records",
    "StoredWorkspace.fs": "use the file calls: `read`, `write`, `stat`, `scan`, ...",
    "StoredWorkspace.hydrate": "how a store opens a workspace",
    "StoredWorkspace.start_background": "the lease is the server's",
    "StoredWorkspace.keeps_trees": "native programs run on the server",
    "StoredWorkspace.lease": "the lease is the server's",
    "StoredWorkspace.load": "`store.import_archive` imports a snapshot",
    "StoredWorkspace.options": "the server decides how a workspace opens",
    "StoredWorkspace.recovered": "the server commits what a crash left",
    "StoredWorkspace.remember_box": "a box on the machine of the store",
    "StoredWorkspace.repository": "internal to the store",
    "StoredWorkspace.save": "the server does it before it responds",
    "StoredWorkspace.propose": "keeps a branch; `fork` makes workspaces",
    "StoredWorkspace.speculate": "shares memory with the workspace; `fork` makes workspaces",
    "StoredWorkspace.sync": "the server does it before each commit",
    "StoredWorkspace.watch": "directories on the machine of the store",
}
"""Library calls that the Python client lacks, each with the reason."""

OPTIONS: Final = {
    "Store.open": ("resources mounts secrets settings wait commit every pins withhold scan env policy prepare drafts",
                   "the server's options and configuration decide how a workspace opens"),
    "StoredWorkspace.execute": ("native limits cancel", "limits are the server's; cancelling the task stops a command"),
    "StoredWorkspace.commit": ("agent diff outputs progress noting memory",
                               "ending a sandbox selects and records outputs; the rest is local to a process"),
    "AgentRun.sandbox": ("resume drafts native network",
                         "a server keeps no processes, loses nothing that it acknowledged, and has its own settings"),
}  # fmt: skip
"""Parameters that the client's call lacks, each with the reason."""
