"""Tool table for models, shared by MCP and all framework adapters.

Output is bounded and never cut silently: longer output goes to a file in the workspace that the result names.
"""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from ramet.core import ops
from ramet.core.errors import LimitExceeded, RametError, reason
from ramet.core.paths import Path, decode, encode, parse
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID
from ramet.workspace.stored.costs import total_costs
from ramet.workspace.stored.reference import StoredWorkspaceRef
from ramet.workspace.stored.store import StoredWorkspace
from ramet.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ramet.workspace.stored.file_patch import FilePatch

MAX_OUTPUT: Final = 30_000
"""Characters of output per result."""
MAX_ENTRIES: Final = 1000
ReportProgress = Callable[[float, str], Awaitable[None]]


class Toolbox:
    """A workspace for tools: one session, and files for long output."""

    def __init__(self, ws: Any, session_id: str = DEFAULT_SESSION_ID, agent_id: str = DEFAULT_AGENT_ID) -> None:
        self.ws, self.session_id, self.agent_id = ws, session_id, agent_id
        self.name = ws.name if isinstance(ws, StoredWorkspace) else None
        """Name of the workspace in its store."""
        self._numbers = count(1)

    def recording(self, tool: str, given: Mapping[str, Any]) -> AbstractContextManager[object]:
        """Make one record of what a tool changes; a server records by itself."""
        if not isinstance(self.ws, Workspace):
            return nullcontext()
        where = str(given.get("path", "")) or str(given.get("name", ""))
        return self.ws.recording("tool", f"{tool} {where}".strip(), session_id=self.session_id, agent_id=self.agent_id)

    async def ready(self) -> None:
        """Prepare for a call; a local workspace needs nothing."""

    @property
    def fs(self) -> Any:
        return self.ws.get_session(self.session_id).fs

    def path(self, text: str) -> Path:
        return parse(text, self.ws.get_session(self.session_id).cwd)

    def stored(self) -> tuple[Any, Any]:
        """Return the open workspace and its reference in the store, for tools that read history."""
        if not isinstance(self.ws, StoredWorkspace):
            raise RametError("unsupported", "this workspace has no history", "open it from a store")
        return self.ws, StoredWorkspaceRef(self.ws.repository, self.ws.name)

    async def bound_output(self, data: bytes) -> dict[str, Any]:
        """Return text that fits, and the path of the full output otherwise."""
        if len(data) <= MAX_OUTPUT:
            return {"text": data.decode("utf-8", "replace"), "truncated": False}
        rest = parse(f"/tmp/output-{next(self._numbers)}.txt")
        await self.store_output(rest, data)
        text = data[:MAX_OUTPUT].decode("utf-8", "replace")
        return {"text": text, "truncated": True, "bytes": len(data), "rest": str(rest)}

    async def store_output(self, path: Path, data: bytes) -> None:
        """Write long output to a file."""
        await self.ws.fs.write(path, data)


Handler = Callable[[Toolbox, Mapping[str, Any], ReportProgress], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Tool:
    """A tool: its description, its parameters, and its function."""

    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    run: Handler
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    records: bool = False
    """Whether a call is one record; the shell records its commands itself."""

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object", "properties": dict(self.properties), "required": list(self.required),
            "additionalProperties": False,
        }  # fmt: skip

    def check(self, given: Mapping[str, Any]) -> None:
        """Check arguments against the schema."""
        for name in self.required:
            if name not in given:
                raise RametError("invalid_argument", f"{self.name} needs {name!r}", "pass it")
        for name, value in given.items():
            kind = self.properties.get(name, {}).get("type")
            if kind is None:
                raise RametError("invalid_argument", f"{self.name} has no parameter {name!r}", "omit it")
            if not isinstance(value, _KINDS[kind]) or isinstance(value, bool) is not (kind == "boolean"):
                raise RametError("invalid_argument", f"{name!r} must be of type {kind}", "see the schema")


_KINDS: Final[dict[str, Any]] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


async def _bash(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    work = asyncio.ensure_future(
        box.ws.execute(
            given["command"],
            box.session_id,
            agent_id=box.agent_id,
            cwd=given.get("cwd"),
            timeout=given.get("timeout", 600.0),
        )
    )
    seconds = 0
    try:
        while not (await asyncio.wait({work}, timeout=1.0))[0]:
            seconds += 1
            await tell(seconds, f"running for {seconds} s")
    except BaseException:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        raise
    result = work.result()
    return {
        "exit_code": result.exit_code, "timed_out": result.timed_out, "stdout": await box.bound_output(result.stdout),
        "stderr": await box.bound_output(result.stderr),
    }  # fmt: skip


async def _read(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    path, first, most = box.path(given["path"]), max(given.get("offset", 1), 1), given.get("limit", 2000)
    lines = (await ops.read_bytes(box.fs, path)).split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    chosen = b"\n".join(lines[first - 1 : first - 1 + most])
    shown = chosen[:MAX_OUTPUT]
    until = first + shown.count(b"\n")
    more = len(shown) < len(chosen) or until < len(lines)
    answer = {"path": str(path), "text": shown.decode("utf-8", "replace"), "lines": len(lines), "truncated": more}
    return {**answer, "next_offset": until + (len(shown) == len(chosen))} if more else answer


async def _write(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    path, data = box.path(given["path"]), encode(given["content"])
    await ops.make_dirs(box.fs, path.parent)
    await box.fs.write(path, data)
    return {"path": str(path), "bytes": len(data)}


async def _edit(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    path, old, new = box.path(given["path"]), encode(given["old"]), encode(given["new"])
    stat = await box.fs.stat(path, follow=True)
    data = await ops.read_bytes(box.fs, path)
    found = data.count(old) if old else 0
    if not found or (found > 1 and not given.get("all", False)):
        why = "is not in" if not found else f"occurs {found} times in"
        raise RametError("invalid_argument", f"the text {why} {path}", "pass text that occurs exactly once, or set all")
    await box.fs.write(path, data.replace(old, new), if_version=stat.version)
    return {"path": str(path), "replaced": found}


async def _ls(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    path = box.path(given.get("path", "."))
    found = await ops.scan_sorted(box.fs, path)
    rows = [{"name": name, "kind": stat.kind.value, "size": stat.size} for name, stat in found[:MAX_ENTRIES]]
    return {"path": str(path), "entries": rows, "total": len(found)}


async def _command(box: Toolbox, command: str, **env: str) -> dict[str, Any]:
    """Run a search command with its arguments as variables, which avoids quoting."""
    result = await box.ws.execute(command, box.session_id, agent_id=box.agent_id, env=env, timeout=600.0)
    if result.exit_code > 1:
        raise RametError("invalid_argument", decode(result.stderr).strip() or "the search failed", "see the message")
    return await box.bound_output(result.stdout)


async def _glob(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    top = str(box.path(given.get("path", ".")))
    return await _command(box, 'rg --files -g "$P" -- "$T"', P=given["pattern"], T=top)


async def _grep(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    top = str(box.path(given.get("path", ".")))
    case = "-i" if given.get("ignore_case", False) else "-s"
    return await _command(box, 'grep -rnE "$C" -e "$P" -- "$T"', P=given["pattern"], T=top, C=case)


async def _log(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    _, handle = box.stored()
    found = await asyncio.to_thread(handle.log)
    shown = [
        {
            "revision": r.name, "id": r.id.hex()[:12], "time": r.time, "message": r.message, "lineage": r.lineage,
            "agent": r.agent, **({"notes": [str(note) for note in r.notes]} if r.notes else {}),
        }
        for r in found[: given.get("limit", 50)]
    ]  # fmt: skip
    return {"revisions": shown, "total": len(found)}


async def _diff(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    ws, handle = box.stored()
    older, newer = given.get("older"), given.get("newer")
    found: list[FilePatch] = []
    if older is None and newer is None and getattr(ws, "lease", None) is not None:  # a server has committed
        found = await ws.unsaved()
    shown = "not committed yet" if found else "committed"
    if not found:
        found = await asyncio.to_thread(lambda: list(handle.patch(older, newer)))
    text = await asyncio.to_thread(lambda: b"".join(line for one in found for line in one.lines()))
    return {
        "changes": [{"path": one.path, "what": one.what, "old": one.old} for one in found[:MAX_ENTRIES]],
        "total": len(found), "state": shown, "patch": await box.bound_output(text),
    }  # fmt: skip


async def _costs(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    await box.ws.history.load_older()
    return {"costs": [asdict(row) for row in total_costs(box.ws.history, by=given.get("by", "agent"))]}


async def _commit(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    ws, _ = box.stored()
    message = given.get("message", "")
    revision = await ws.commit(message)
    noted = bool(message) and revision.message != message
    return {"revision": revision.name, "id": revision.id.hex(), **({"noted": message} if noted else {})}


async def _fork(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    ws, handle = box.stored()
    if "revision" not in given:
        await ws.commit(subject=f"before fork {given['name']}")
    made = await asyncio.to_thread(handle.fork, given.get("revision"), given["name"])
    return {"workspace": given["name"], "revision": made.name}


async def _revert(box: Toolbox, given: Mapping[str, Any], tell: ReportProgress) -> dict[str, Any]:
    """Restore one file from a past revision in the open workspace; the next commit records it."""
    _, handle = box.stored()
    path = box.path(given["path"])
    data = await asyncio.to_thread(lambda: b"".join(handle.show(str(path), given["revision"])))
    await ops.make_dirs(box.fs, path.parent)
    await box.fs.write(path, data)
    return {"path": str(path), "bytes": len(data), "revision": given["revision"]}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


_PATH = _text("A path; relative paths start at the session's working directory.")
_REVISION = _text("`head`, `head~2`, a tag, a revision's name, number or id.")

TOOLS: Final[dict[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool("bash", "Run a shell command in the workspace. The working directory and variables persist between calls.",
             {"command": _text("Shell text."), "cwd": _PATH,
              "timeout": {"type": "number", "description": "Seconds. Default: 600."}},
             ("command",), _bash, destructive=True),
        Tool("read", "Read lines of a text file.",
             {"path": _PATH, "offset": {"type": "integer", "description": "First line, from 1."},
              "limit": {"type": "integer", "description": "Number of lines."}}, ("path",), _read, read_only=True),
        Tool("write", "Write a file: create parent directories, replace existing content.",
             {"path": _PATH, "content": _text("The whole content.")}, ("path", "content"), _write, destructive=True,
             idempotent=True, records=True),
        Tool("edit", "Replace text in a file; it must occur exactly once unless `all` is set.",
             {"path": _PATH, "old": _text("Text to replace."), "new": _text("Replacement."),
              "all": {"type": "boolean"}}, ("path", "old", "new"), _edit, destructive=True, records=True),
        Tool("ls", "List a directory.", {"path": _PATH}, (), _ls, read_only=True),
        Tool("glob", "Find files by a pattern such as `**/*.py`.", {"pattern": _text("The pattern."), "path": _PATH},
             ("pattern",), _glob, read_only=True),
        Tool("grep", "Search files below a directory with an extended regular expression.",
             {"pattern": _text("The expression."), "path": _PATH, "ignore_case": {"type": "boolean"}}, ("pattern",),
             _grep, read_only=True),
        Tool("ws_log", "List the revisions of the workspace, newest first.", {"limit": {"type": "integer"}}, (), _log,
             read_only=True),
        Tool("ws_diff", "Show a patch from an older to a newer revision; with one, what it changed. "
             "Without any, what is not committed yet; if all is, what the newest revision changed.",
             {"older": _REVISION, "newer": _REVISION}, (), _diff, read_only=True),
        Tool("ws_commit", "Commit everything as a revision.", {"message": _text("What was done.")}, (), _commit),
        Tool("ws_fork", "Create a workspace from a revision of this one, or from its current state.",
             {"name": _text("Name of the new workspace."), "revision": _REVISION}, ("name",), _fork),
        Tool("ws_costs", "Total commands, failures, time, bytes, tokens and money.",
             {"by": _text("`agent` (if left out), `session`, `run` or `principal`.")}, (), _costs, read_only=True),
        Tool("ws_revert", "Restore a file from a past revision.",
             {"revision": _REVISION, "path": _PATH}, ("revision", "path"), _revert, destructive=True, idempotent=True,
             records=True),
    )
}  # fmt: skip


def what_runs(ws: object) -> str:
    """Say what a workspace of this process can run; empty for one that another process has."""
    if not isinstance(ws, Workspace):
        return ""
    if ws.programs is None:
        open_to = "" if ws.network is None else " `curl` and `wget` reach what the network policy allows."
        return f"The shell has bash and the usual tools; real programs such as python3 and git are off.{open_to}"
    reach = "without a network" if ws.network is None else "and reach by HTTP_PROXY what the network policy allows"
    return f"Real programs of the machine, such as python3 and git, run too, {reach}."


def chosen_tools(names: Iterable[str] | None, ws: Workspace) -> dict[str, Tool]:
    """Return these tools, or all that fit a workspace of this kind."""
    if names is None:
        stored = isinstance(ws, StoredWorkspace)
        wanted = [name for name in TOOLS if stored or not name.startswith("ws_")]
    else:
        wanted = list(names)
    for name in wanted:
        if name not in TOOLS:
            raise RametError("invalid_argument", f"no tool {name!r}", f"use some of {', '.join(TOOLS)}")
    found = {name: TOOLS[name] for name in wanted}
    if "bash" in found:
        found["bash"] = replace(found["bash"], description=f"{found['bash'].description} {what_runs(ws)}".strip())
    return found


@dataclass(frozen=True)
class ToolResult:
    """The result for a model: an object, its JSON text, and whether it is an error."""

    content: dict[str, Any]
    failed: bool = False

    @property
    def text(self) -> str:
        return json.dumps(self.content, ensure_ascii=True)


async def no_progress(done: float, message: str) -> None:
    """Ignore progress."""


async def call_tool(
    tools: Mapping[str, Tool], box: Toolbox, name: str, given: Mapping[str, Any], tell: ReportProgress = no_progress
) -> ToolResult:
    """Run one tool call; errors are results with a cause and a remedy."""
    tool = tools.get(name)
    try:
        if tool is None:
            raise RametError("not_found", f"no tool {name!r}", f"use one of {', '.join(tools)}")
        tool.check(given)
        with box.recording(name, given) if tool.records else nullcontext():
            return ToolResult(await tool.run(box, given, tell))
    except LimitExceeded as error:
        refusal = RametError("limit_exceeded", str(error), "request less at a time")
        return ToolResult({"error": refusal.as_dict()}, failed=True)
    except RametError as error:
        return ToolResult({"error": error.as_dict()}, failed=True)
    except OSError as error:
        code, remedy = _REFUSALS.get(error.errno or 0, ("invalid_argument", "see the message"))
        refusal = RametError(code, f"{error.filename}: {reason(error)}", remedy)
        return ToolResult({"error": refusal.as_dict()}, failed=True)


_REFUSALS: Final = {
    errno.ENOENT: ("not_found", "use `ls` or `glob` to find it"),
    errno.ENOTDIR: ("not_found", "use `ls` or `glob` to find it"),
    errno.EISDIR: ("invalid_argument", "list a directory with `ls`"),
    errno.EEXIST: ("already_exists", "use another name"),
    errno.EACCES: ("permission_denied", "continue without it"),
    errno.EPERM: ("permission_denied", "continue without it"),
    errno.EROFS: ("permission_denied", "write elsewhere: this mount is read-only"),
    errno.ENOTSUP: ("unsupported", "use another way: this mount does not support it"),
    errno.ENOSPC: ("limit_exceeded", "remove files that you do not need"),
    errno.EDQUOT: ("limit_exceeded", "remove files that you do not need"),
    errno.EIO: ("unavailable", "try again later: the mount does not respond"),
}
"""Error code and remedy of a failed file operation, by errno."""
