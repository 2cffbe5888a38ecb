"""`RametSandbox`: a workspace as the sandbox of a Deep Agent, sync or async.

    agent = create_deep_agent(backend=RametSandbox(store="~/.ramet", name="proj-x"))

All work runs on the sandbox's own event loop. With a store, an operation commits its changes before it returns.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import mimetypes
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ramet.agents.own_session import run_in_own_session
from ramet.core import ops
from ramet.core.errors import fail, missing_extra, reason
from ramet.core.paths import Path, encode, parse
from ramet.core.stat import Kind, Stat
from ramet.workspace.loop_thread import LoopThread
from ramet.workspace.mounts import MountForm
from ramet.workspace.stored.store import Store, StoredWorkspace
from ramet.workspace.workspace import Workspace

try:
    from deepagents.backends.protocol import (
        DeleteResult,
        EditResult,
        ExecuteResponse,
        FileDownloadResponse,
        FileUploadResponse,
        GlobResult,
        GrepResult,
        LsResult,
        ReadResult,
        SandboxBackendProtocol,
        WriteResult,
    )
    from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob
except ModuleNotFoundError as error:
    raise missing_extra("deepagents", "the Deep Agents sandbox") from error

SHOWN: Final = 512_000
"""Bytes of a file per `read`."""
CUT: Final = "\n[this line is longer than one read gives: use `cut -c` or download the file]"
CODES: Final = {
    errno.ENOENT: "file_not_found", errno.ENOTDIR: "file_not_found", errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied", errno.EROFS: "permission_denied", errno.EISDIR: "is_directory",
    errno.EINVAL: "invalid_path", errno.ENAMETOOLONG: "invalid_path", errno.ELOOP: "invalid_path",
}  # fmt: skip


class RametSandbox(SandboxBackendProtocol):  # type: ignore[misc]
    """Pass nothing for a sandbox in memory, `store` for a durable one, or `workspace` for your own.

    *Do not* use your own workspace from elsewhere at the same time, and close it yourself.
    """

    def __init__(
        self,
        workspace: Workspace | None = None,
        *,
        store: str | Store | None = None,
        name: str | None = None,
        mounts: Mapping[str, MountForm] | None = None,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        timeout: float | None = 1800.0,
        wait: float = 10.0,
    ) -> None:
        if workspace is not None and (store or name or mounts):
            raise ValueError("workspace= excludes mounts=, store= and name=")
        if name is not None and store is None:
            raise ValueError("name= needs store=")
        self._portal = LoopThread("ramet-deepagents")
        self._id = name or f"agent-{uuid.uuid4().hex[:12]}"
        self._cwd, self._env, self._timeout = parse(cwd), dict(env or {}), timeout
        self._owned = workspace is None
        try:
            self._ws = workspace or self._portal.run(self._open(store, dict(mounts or {}), wait))
        except BaseException:
            self._portal.close()
            raise

    async def _open(self, store: str | Store | None, mounts: dict[str, MountForm], wait: float) -> Workspace:
        if store is None:
            ws = Workspace(mounts)
        else:
            place = store if isinstance(store, Store) else await asyncio.to_thread(Store, store)
            if self._id not in place:
                await asyncio.to_thread(place.create, self._id)
            head = await asyncio.to_thread(place.repository.head, self._id)
            known = {state.prefix for state in head.mounts} if head is not None else set()
            new = {prefix: form for prefix, form in mounts.items() if prefix not in known}
            old: dict[str, Any] = {p: f[0] if isinstance(f, tuple) else f for p, f in mounts.items() if p in known}
            ws = await place.open(self._id, mounts=new, resources=old, wait=wait).__aenter__()
        await ops.make_dirs(ws.fs, self._cwd)
        return ws

    @property
    def id(self) -> str:
        return self._id

    @property
    def workspace(self) -> Workspace:
        return self._ws

    def __enter__(self) -> RametSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit pending changes and close. Idempotent."""
        if self._owned and not self._ws.closed:
            self._portal.run(self._ws.finish() if isinstance(self._ws, StoredWorkspace) else self._ws.close())
        self._portal.close()

    async def _keep(self, message: str) -> None:
        """Commit changes, if any, so that a returned operation is durable."""
        if self._owned and isinstance(self._ws, StoredWorkspace):
            await self._ws.save(self._ws.secrets.scrub_text(message.strip().partition("\n")[0][:72]))

    @property
    def _fs(self) -> Any:
        return self._ws.get_session().fs

    # -------------------------------------------------------------------------------------------- commands

    async def _execute(self, command: str, timeout: float | None) -> ExecuteResponse:
        seconds = self._timeout if timeout is None else timeout or None  # 0 means no timeout
        # Both streams in the order of the writes, as in a terminal.
        text = f"exec 2>&1; {command}"
        result = await run_in_own_session(self._ws, text, cwd=str(self._cwd), env=self._env, timeout=seconds)
        await self._keep(command)
        output = (result.stdout + result.stderr).decode("utf-8", "replace")
        return ExecuteResponse(output=output, exit_code=result.exit_code, truncated=result.truncated)

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return self._portal.run(self._execute(command, timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return await self._portal.arun(self._execute(command, timeout))

    # --------------------------------------------------------------------------------------------- reading

    async def _ls(self, path: str) -> LsResult:
        try:
            where = _absolute(path)
            found = await ops.scan_sorted(self._fs, where)
        except OSError as problem:
            return LsResult(error=_file_error(path, problem))
        return LsResult(entries=[_info(where / name, stat) for name, stat in found])

    def ls(self, path: str) -> LsResult:
        return self._portal.run(self._ls(path))

    async def als(self, path: str) -> LsResult:
        return await self._portal.arun(self._ls(path))

    async def _read(self, path: str, offset: int, limit: int) -> ReadResult:
        offset, limit = max(int(offset), 0), max(int(limit), 0)
        if limit == 0:
            return ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
        try:
            data = await self._content(path)
        except OSError as problem:
            return ReadResult(error=_file_error(path, problem))
        text = None if _is_media(path) else _as_text(data)
        if text is None:
            if len(data) > SHOWN:
                return ReadResult(error=f"File '{path}': Binary file exceeds maximum preview size of {SHOWN} bytes")
            return ReadResult(file_data={"content": base64.b64encode(data).decode(), "encoding": "base64"})
        return _page(path, text, offset, limit)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return self._portal.run(self._read(file_path, offset, limit))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return await self._portal.arun(self._read(file_path, offset, limit))

    async def _grep(self, pattern: str, path: str | None, glob: str | None, max_count: int | None) -> GrepResult:
        try:
            top = self._cwd if path is None else _absolute(path)
            wanted = None if glob is None else compile_grep_include_glob(glob)
        except (OSError, InvalidGlobPatternError) as problem:
            return GrepResult(error=_file_error(path or ".", problem))
        if "\n" in pattern:
            return GrepResult(matches=[])  # no line contains it
        # The arguments are variables, which avoids quoting.
        search = 'grep -rnHIFZ -e "$PATTERN" -- "$TOP"'
        given = {"PATTERN": pattern, "TOP": str(top)}
        result = await run_in_own_session(self._ws, search, cwd=str(self._cwd), env=given, timeout=self._timeout)
        if result.exit_code > 1:
            return GrepResult(error=f"Path '{top}': {result.stderr.decode('utf-8', 'replace').strip()}")
        matches: list[Any] = []
        for line in result.stdout.decode("utf-8", "replace").split("\n")[:-1]:
            name, _, rest = line.partition("\0")
            number, _, text = rest.partition(":")
            if wanted is not None and not wanted(str(parse(name).below(top))[1:] or parse(name).name):
                continue
            if max_count is not None and len(matches) >= max_count:
                return GrepResult(matches=matches, truncated=True)
            matches.append({"path": name, "line": int(number), "text": text})
        return GrepResult(matches=matches)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return self._portal.run(self._grep(pattern, path, glob, max_count))

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return await self._portal.arun(self._grep(pattern, path, glob, max_count))

    async def _glob(self, pattern: str, path: str | None) -> GlobResult:
        try:
            top = self._cwd if path is None else _absolute(path)
            wanted = compile_grep_include_glob(pattern)
            found = []
            async for where, stat in ops.walk(self._fs, top):
                if stat.kind is Kind.FILE and wanted(str(where.below(top))[1:]):
                    found.append(_info(where, stat))
                await asyncio.sleep(0)
        except (OSError, InvalidGlobPatternError) as problem:
            return GlobResult(error=_file_error(path or ".", problem))
        return GlobResult(matches=found)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """List absolute paths of regular files, as the framework's permission rules expect."""
        return self._portal.run(self._glob(pattern, path))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return await self._portal.arun(self._glob(pattern, path))

    async def _download(self, paths: list[str]) -> list[FileDownloadResponse]:
        answers = []
        for path in paths:
            try:
                answers.append(FileDownloadResponse(path=path, content=await self._content(path)))
            except OSError as problem:
                answers.append(FileDownloadResponse(path=path, error=_code(problem)))
        return answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self._portal.run(self._download(paths))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await self._portal.arun(self._download(paths))

    async def _content(self, path: str) -> bytes:
        where = _absolute(path)
        kind = (await self._fs.stat(where, follow=True)).kind
        if kind is not Kind.FILE:
            raise fail(errno.EISDIR if kind is Kind.DIR else errno.EINVAL, path)
        return await ops.read_bytes(self._fs, where)

    # -------------------------------------------------------------------------------------------- writing

    async def _put(self, path: str, data: bytes) -> None:
        where = _absolute(path)
        await ops.make_dirs(self._fs, where.parent)
        await self._fs.write(where, data)

    async def _write(self, path: str, content: str) -> WriteResult:
        try:
            await self._put(path, encode(content))
        except OSError as problem:
            return WriteResult(error=_file_error(path, problem))
        await self._keep(f"write {path}")
        return WriteResult(path=path)

    def write(self, file_path: str, content: str) -> WriteResult:
        return self._portal.run(self._write(file_path, content))

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return await self._portal.arun(self._write(file_path, content))

    async def _edit(self, path: str, old: str, new: str, everywhere: bool) -> EditResult:
        try:
            data = await self._content(path)
            version = (await self._fs.stat(_absolute(path), follow=True)).version
            found = data.count(encode(old)) if old else 0
            if not found:
                return EditResult(error=f"Error: String not found in file: '{old}'")
            if found > 1 and not everywhere:
                many = f"multiple times ({found}); give more text around it, or replace_all=True"
                return EditResult(error=f"Error: String '{old}' appears {many}")
            changed = data.replace(encode(old), encode(new))
            await self._fs.write(_absolute(path), changed, if_version=version)
        except OSError as problem:
            return EditResult(error=_file_error(path, problem))
        await self._keep(f"edit {path}")
        return EditResult(path=path, occurrences=found)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return self._portal.run(self._edit(file_path, old_string, new_string, replace_all))

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return await self._portal.arun(self._edit(file_path, old_string, new_string, replace_all))

    async def _delete(self, path: str) -> DeleteResult:
        try:
            await ops.remove_tree(self._fs, _absolute(path))
        except OSError as problem:
            return DeleteResult(error=_file_error(path, problem))
        await self._keep(f"delete {path}")
        return DeleteResult(path=path)

    def delete(self, file_path: str) -> DeleteResult:
        return self._portal.run(self._delete(file_path))

    async def adelete(self, file_path: str) -> DeleteResult:
        return await self._portal.arun(self._delete(file_path))

    async def _upload(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        answers = []
        for path, data in files:
            try:
                await self._put(path, bytes(data))
                answers.append(FileUploadResponse(path=path))
            except OSError as problem:
                answers.append(FileUploadResponse(path=path, error=_code(problem)))
        await self._keep(f"upload {len(files)} files")
        return answers

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self._portal.run(self._upload(files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return await self._portal.arun(self._upload(files))


def _absolute(path: str) -> Path:
    if not path.startswith("/"):
        raise fail(errno.EINVAL, path, "the path is not absolute")
    return parse(path)


def _code(problem: OSError) -> str:
    return CODES.get(problem.errno or 0) or reason(problem)


def _file_error(path: str, problem: Exception) -> str:
    why = _code(problem) if isinstance(problem, OSError) else str(problem)
    return f"File '{path}': {why}"


def _info(path: Path, stat: Stat) -> dict[str, Any]:
    info: dict[str, Any] = {"path": str(path), "is_dir": stat.is_dir}
    if stat.size is not None and not stat.is_dir:
        info["size"] = stat.size
    if stat.mtime is not None:
        info["modified_at"] = datetime.fromtimestamp(stat.mtime, UTC).isoformat()
    return info


def _is_media(path: str) -> bool:
    """Return whether the file name means binary content rather than lines of text."""
    kind = mimetypes.guess_type(path)[0] or ""
    return (kind.startswith(("image/", "audio/", "video/")) and kind != "image/svg+xml") or kind == "application/pdf"


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _page(path: str, text: str, offset: int, limit: int) -> ReadResult:
    """Return some lines of a text. A line too long for one read is truncated with a note; the next page follows it."""
    if not text.strip():
        return ReadResult(file_data={"content": text, "encoding": "utf-8"})
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    if offset >= len(lines):
        return ReadResult(error=f"File '{path}': Line offset {offset} exceeds file length ({len(lines)} lines)")
    end, size = offset, 0
    while end < min(offset + limit, len(lines)):
        size += len(lines[end]) + 1
        if size > SHOWN and end > offset:
            break
        end += 1
    content = "\n".join(lines[offset:end])
    if len(content) > SHOWN:
        content = content[:SHOWN] + CUT
    return ReadResult(
        file_data={"content": content, "encoding": "utf-8"}, total_lines=len(lines), start_line=offset + 1,
        end_line=end, next_offset=end if end < len(lines) else None,
    )  # fmt: skip
