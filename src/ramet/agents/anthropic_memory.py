"""Anthropic's memory tool on a workspace: memories are versioned files.

client.beta.messages.run_tools(..., tools=[RametAsyncMemoryTool(ws)])

The model sees `directory` of the workspace as `/memories`; no path or link leads out of it. In a stored workspace every
change is a revision.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from ramet.core import ops
from ramet.core.errors import RametError, fail, missing_extra, reason
from ramet.core.paths import Path, encode, parse
from ramet.core.resource import How
from ramet.core.stat import Kind
from ramet.workspace.agent.tools import MAX_OUTPUT, TOOLS, Toolbox, no_progress
from ramet.workspace.loop_thread import LoopThread
from ramet.workspace.stored.store import StoredWorkspace
from ramet.workspace.workspace import Workspace

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ModuleNotFoundError as error:
    raise missing_extra("anthropic", "the memory tool") from error

MEMORIES: Final = parse("/memories")
DEEP: Final = 2
"""Directory levels that a view shows."""


class Memory:
    """The six memory commands on any workspace. Results are text for a model; its mistakes raise `ToolError`."""

    def __init__(self, ws: Workspace, directory: str = str(MEMORIES)) -> None:
        self._ws, self._top, self._box = ws, parse(directory), Toolbox(ws)

    async def do(self, command: Any) -> str:
        try:
            return await _COMMANDS[command.command](self, command)
        except OSError as problem:
            raise ToolError(self._model_view(f"{problem.filename}: {reason(problem)}")) from None
        except RametError as problem:
            raise ToolError(self._model_view(str(problem))) from None

    def _model_view(self, text: str) -> str:
        return text if self._top == MEMORIES else text.replace(str(self._top), str(MEMORIES))

    async def _at(self, text: str) -> Path:
        """Resolve a path of the model; refuse one outside the directory."""
        path = parse(text)
        if not text.startswith("/") or not path.under(MEMORIES) or ".." in text.split("/"):
            raise ToolError(f"{text}: use a path below {MEMORIES}/")
        fs = self._box.fs
        await ops.make_dirs(fs, self._top)
        where, top = path.below(MEMORIES).onto(self._top), await fs.resolve(self._top)
        there = where
        while not await ops.exists(fs, there):  # a link among the existing parents could lead outside
            there = there.parent
        if not (await fs.resolve(there)).under(top):
            raise ToolError(f"{text}: a link leads out of {MEMORIES}")
        return where

    async def _keep(self, message: str) -> None:
        if isinstance(self._ws, StoredWorkspace) and self._ws.lease is not None:
            await self._ws.save(f"memory: {message}")

    async def view(self, command: Any) -> str:
        where = await self._at(command.path)
        stat = await self._box.fs.stat(where, follow=True)
        if stat.is_dir:
            lines = await self._listed(where, command.path.rstrip("/"), DEEP)
            return f"{command.path}, up to {DEEP} levels deep, without hidden files:\n" + "\n".join(lines)
        first, last = command.view_range or (1, -1)
        given: dict[str, Any] = {"path": str(where), "offset": max(first, 1)}
        given["limit"] = 999_999 if last == -1 else max(last - given["offset"] + 1, 0)
        answer = await TOOLS["read"].run(self._box, given, no_progress)
        text = str(answer["text"])
        numbered = [f"{n:6}\t{line}" for n, line in enumerate(text.split("\n") if text else [], given["offset"])]
        if len(text.encode()) >= MAX_OUTPUT and answer["truncated"]:
            numbered.append(f"[truncated; continue with view_range from line {answer['next_offset']}]")
        return f"{command.path}, with line numbers:\n" + "\n".join(numbered)

    async def _listed(self, where: Path, shown: str, deep: int) -> list[str]:
        lines = []
        for name, stat in await ops.scan_sorted(self._box.fs, where):
            if name.startswith("."):
                continue
            if stat.kind is Kind.DIR:
                lines.append(f"-\t{shown}/{name}/")
                if deep > 1:
                    lines += await self._listed(where / name, f"{shown}/{name}", deep - 1)
            else:
                lines.append(f"{stat.size}\t{shown}/{name}")
        return lines

    async def create(self, command: Any) -> str:
        where = await self._at(command.path)
        await ops.make_dirs(self._box.fs, where.parent)
        await self._box.fs.write(where, encode(command.file_text), How.CREATE)
        await self._keep(f"create {command.path}")
        return f"{command.path} was created."

    async def str_replace(self, command: Any) -> str:
        where = await self._at(command.path)
        given = {"path": str(where), "old": command.old_str, "new": command.new_str}
        await TOOLS["edit"].run(self._box, given, no_progress)
        await self._keep(f"change {command.path}")
        lines = (await ops.read_bytes(self._box.fs, where)).decode("utf-8", "replace").split("\n")
        at = next((n for n, line in enumerate(lines) if command.new_str.split("\n")[0] in line), 0)
        shown = [f"{n + 1:6}\t{lines[n]}" for n in range(max(at - 2, 0), min(at + 3, len(lines)))]
        return f"{command.path} was changed. The lines around the change:\n" + "\n".join(shown)

    async def insert(self, command: Any) -> str:
        where = await self._at(command.path)
        stat = await self._box.fs.stat(where, follow=True)
        lines = (await ops.read_bytes(self._box.fs, where)).split(b"\n")
        if not lines[-1]:
            lines.pop()
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(f"insert_line {command.insert_line}: {command.path} has lines 0 to {len(lines)}")
        lines.insert(command.insert_line, encode(command.insert_text.removesuffix("\n")))
        await self._box.fs.write(where, b"\n".join(lines) + b"\n", if_version=stat.version)
        await self._keep(f"insert into {command.path}")
        return f"{command.path} was changed."

    async def delete(self, command: Any) -> str:
        where = await self._at(command.path)
        if where == self._top:
            raise ToolError(f"{MEMORIES} itself cannot be deleted")
        await ops.remove_tree(self._box.fs, where)
        await self._keep(f"delete {command.path}")
        return f"{command.path} was deleted."

    async def rename(self, command: Any) -> str:
        old, new = await self._at(command.old_path), await self._at(command.new_path)
        if old == self._top:
            raise ToolError(f"{MEMORIES} itself cannot be renamed")
        if await ops.exists(self._box.fs, new):
            raise fail(errno.EEXIST, command.new_path)
        await ops.make_dirs(self._box.fs, new.parent)
        await self._box.fs.rename(old, new)
        await self._keep(f"rename {command.old_path} to {command.new_path}")
        return f"{command.old_path} is now {command.new_path}."

    async def clear(self) -> str:
        await ops.make_dirs(self._box.fs, self._top)
        for name, _ in await ops.scan_sorted(self._box.fs, self._top):
            await ops.remove_tree(self._box.fs, self._top / name)
        await self._keep("clear")
        return "All memory was cleared."


_COMMANDS: Final[Mapping[str, Callable[[Memory, Any], Awaitable[str]]]] = {
    "view": Memory.view, "create": Memory.create, "str_replace": Memory.str_replace, "insert": Memory.insert,
    "delete": Memory.delete, "rename": Memory.rename,
}  # fmt: skip


class RametAsyncMemoryTool(BetaAsyncAbstractMemoryTool):  # type: ignore[misc]
    """The memory tool for `AsyncAnthropic`; runs on the caller's event loop."""

    def __init__(self, ws: Workspace, directory: str = str(MEMORIES), *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._memory = Memory(ws, directory)

    async def _do(self, command: Any) -> str:
        return await self._memory.do(command)

    view = create = str_replace = insert = delete = rename = _do

    async def clear_all_memory(self) -> str:
        return await self._memory.clear()


class RametMemoryTool(BetaAbstractMemoryTool):  # type: ignore[misc]
    """The memory tool for `Anthropic`; runs on its own event loop, so *do not* use the workspace from another one."""

    def __init__(self, ws: Workspace, directory: str = str(MEMORIES), *, cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)
        self._memory, self._portal = Memory(ws, directory), LoopThread("ramet-memory")

    def _do(self, command: Any) -> str:
        return self._portal.run(self._memory.do(command))

    view = create = str_replace = insert = delete = rename = _do

    def clear_all_memory(self) -> str:
        return self._portal.run(self._memory.clear())

    def close(self) -> None:
        """End the thread; the workspace stays open."""
        self._portal.close()
