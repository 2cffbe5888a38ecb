"""Model tools in addition to the SDK's: `edit`, and the list of mounts."""

from __future__ import annotations

import io
import json
from pathlib import Path as HostPath
from typing import Any, Final, Literal

from agents.sandbox.capabilities import Capability
from agents.sandbox.errors import SandboxError
from agents.sandbox.manifest import Manifest
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.tool import FunctionTool, Tool

EDIT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the workspace or absolute."},
        "old": {"type": "string", "description": "Text that occurs once in the file; empty to create the file."},
        "new": {"type": "string", "description": "Replacement; empty to delete the text."},
        "all": {"type": "boolean", "description": "Replace every occurrence instead of the only one."},
    },
    "required": ["path", "old", "new", "all"],
    "additionalProperties": False,
}
EDIT_DESCRIPTION: Final = (
    "Edit a text file of the workspace: replace `old`, which must occur exactly once unless `all` is set, with `new`. "
    "An empty `old` creates a new file. Read the file first and copy `old` from it exactly."
)


async def edit_file(session: BaseSandboxSession, path: str, old: str, new: str, every: bool, user: Any = None) -> str:
    """Replace text in a file. On an error, change nothing and return the reason."""
    where = HostPath(path)
    try:
        stream = await session.read(where, user=user)
    except FileNotFoundError:
        before = None
    except SandboxError as error:
        if "not_found" not in str(getattr(error, "error_code", "")).lower():
            return f"error: cannot read {path}: {error}"
        before = None
    else:
        before = stream.read()  # type: ignore[attr-defined]
        stream.close()
    if not old:
        if before is not None:
            return f"error: {path} exists; put the text to replace in `old`"
        after = new.encode("utf-8")
        done = f"created {path}"
    elif before is None:
        return f"error: no file {path}; to create it, leave `old` empty"
    else:
        wanted = old.encode("utf-8")
        found = before.count(wanted)
        if found == 0:
            return f"error: `old` is not in {path}; read the file and copy the text exactly"
        if found > 1 and not every:
            return f"error: `old` occurs {found} times in {path}; add more of the lines around it, or set `all`"
        after = before.replace(wanted, new.encode("utf-8"))
        done = f"replaced {found} in {path}" if every else f"changed {path}"
    try:
        await session.write(where, io.BytesIO(after), user=user)
    except (SandboxError, OSError, ValueError) as error:
        return f"error: cannot write {path}: {error}"
    return done


class EditTool(FunctionTool):
    """The `edit` function tool for a session: any model can call it, the SDK's `apply_patch` needs custom tools."""

    def __init__(self, session: BaseSandboxSession, *, user: Any = None, needs_approval: bool = False) -> None:
        async def invoke(_: Any, arguments: str) -> str:
            try:
                given = json.loads(arguments)
                words = [given["path"], given["old"], given["new"]]
                if not all(isinstance(word, str) for word in words) or not words[0]:
                    raise TypeError
            except (ValueError, KeyError, TypeError):
                return "error: path, old and new must be strings"
            return await edit_file(session, words[0], words[1], words[2], given.get("all") is True, user)

        super().__init__(
            name="edit",
            description=EDIT_DESCRIPTION,
            params_json_schema=EDIT_SCHEMA,
            on_invoke_tool=invoke,
            strict_json_schema=True,
            needs_approval=needs_approval,
        )


class Edit(Capability):
    """Gives the model the `edit` tool: `SandboxAgent(..., capabilities=[Shell(), Edit()])`. For any backend."""

    type: Literal["ramet_edit"] = "ramet_edit"
    needs_approval: bool = False

    def tools(self) -> list[Tool]:
        if self.session is None:
            raise ValueError("the Edit capability is not bound to a session")
        return [EditTool(self.session, user=self.run_as, needs_approval=self.needs_approval)]


class Mounts(Capability):
    """Tells the model which directories are mounts, and which it can write."""

    type: Literal["ramet_mounts"] = "ramet_mounts"

    async def instructions(self, manifest: Manifest) -> str | None:
        inner: Any = getattr(self.session, "_inner", self.session)
        live = getattr(inner, "_live", None)
        if live is None:
            return None
        lines = [
            f"- `{mount.prefix}`: {_what(mount.resource)}, {'read-only' if mount.mode.value == 'read' else 'writable'}"
            for mount in live.workspace.mounts()
            if mount.prefix != live.root
        ]
        if not lines:
            return None
        return (
            "These directories are mounted in addition to the workspace. Use them like any directory; reading a large "
            "remote file is slow, so narrow down with `ls`, `find` and `grep` first.\n" + "\n".join(lines)
        )


def _what(resource: Any) -> str:
    config = getattr(resource, "config", None)
    kind = getattr(config, "kind", None) or type(resource).__name__.removesuffix("Resource").lower()
    bucket = getattr(config, "bucket", None)
    return f"{kind} bucket {bucket}" if bucket else f"{kind} files"
