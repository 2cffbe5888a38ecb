"""`RemoteWorkspace`: an open workspace of a server; every call is a request."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

import httpx2
import msgspec

from ramet.apps.client.http import (
    Address,
    async_lines,
    atomic_file,
    json_of,
    quote_text,
    refusal,
    report_of,
    result_of,
    unreachable,
    where,
    without_none,
)
from ramet.apps.client.reference import as_kind, as_mount, as_ports, as_revision, as_session
from ramet.apps.server.models import Job
from ramet.apps.server.models_maintenance import QuestionInfo
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError
from ramet.core.limits import Limits
from ramet.core.paths import encode
from ramet.core.resource import Resource
from ramet.core.stat import Attrs, Kind, Stat
from ramet.native.ports import ListeningPort
from ramet.network.relay import Connection
from ramet.store.model.revisions import MountState, Revision
from ramet.workspace.completion import Completion
from ramet.workspace.execution import Channels, Execution
from ramet.workspace.operations import OPERATIONS, Operation, OperationKeywords
from ramet.workspace.result import IOResult
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID

if TYPE_CHECKING:
    from ramet.workspace.record.history import ExecutionRecord, MetaValue
    from ramet.workspace.snapshot.archive import Target
    from ramet.workspace.stored.saved_state import SavedSession

Stdin = bytes | str | AsyncIterator[bytes] | None
SHORT: Final = 1 << 20
"""Largest stdin in bytes that is sent inside the JSON request."""


class RemoteWorkspace:
    """An open workspace, returned by `RemoteStore.open`: use it with `async with`.

    A repeated call with the same `idempotency_key` gets the first response and changes nothing more. A workspace opened
    at a revision is read-only.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        name: str,
        revision: str | None = None,
        shut: bool = False,
        *,
        address: Address,
    ) -> None:
        self._http, self.name, self.revision, self._shut = http, name, revision, shut
        self._address, self._server = address, address.url
        self._url = f"/v1/workspaces/{quote_text(name)}"
        self.closed = False

    def __repr__(self) -> str:
        return f"<workspace {self.name}{'' if self.revision is None else '@' + self.revision} of {self._http.base_url}>"

    async def __aenter__(self) -> RemoteWorkspace:
        try:
            if self.revision is None:
                json_of(await self._http.get(self._url))
            else:
                json_of(await self._http.get(f"{self._url}/log", params={"revision": self.revision, "limit": "1"}))
        except httpx2.TransportError as error:
            await self.close()
            raise unreachable(self._server, error) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; the changes of returned calls are as durable as the server's setting."""
        self.closed = True
        await self._http.aclose()

    def _live(self) -> None:
        if self.revision is not None or self._shut:
            remedy = "fork it, and open the fork" if self.revision is not None else "open it without readonly="
            place = self.name if self.revision is None else f"{self.name}@{self.revision}"
            raise RametError("permission_denied", f"cannot change {place}: read-only", remedy)

    async def _ask(
        self, method: str, verb: str, body: Any = None, *, key: str | None = None, content: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # fmt: skip
        """Send a request that needs the live workspace."""
        self._live()
        options: dict[str, Any] = {} if body is None else {"json": body}
        if content is not None:
            options["content"] = content
        told = {**(headers or {}), **({} if key is None else {"idempotency-key": key})}
        return json_of(await self._http.request(method, f"{self._url}/{verb}", headers=told, **options))

    async def _see(self, verb: str, **query: Any) -> Any:
        """Send a request that also works on a past revision."""
        asked = without_none({"revision": self.revision, **query})
        return json_of(await self._http.get(f"{self._url}/{verb}", params=asked))

    # ------------------------------------------------------------------------------------------- commands

    def execute(
        self,
        command: str,
        session_id: str = DEFAULT_SESSION_ID,
        stdin: Stdin = None,
        provision: bool = False,
        agent_id: str = DEFAULT_AGENT_ID,
        native: bool | None = None,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        message: str = "",
        author: str = "",
        meta: Mapping[str, MetaValue] | None = None,
        idempotency_key: str | None = None,
    ) -> Execution:
        """Run a command: `await` it for an IOResult, or iterate over its output; cancelling stops the command.

        - `message` and `author` belong to the revision that it commits.
        - `native=True` runs the text by the real bash of a native workspace, `native=False` runs no native program.
        - With an idempotency key the output arrives at the end, because only a complete response can be remembered.
        - On a revision, each command starts from that revision, and its changes are discarded.
        - `stdin` is streamed; the command starts when the server has all of it.
        """
        body = exec_body(command, session_id, agent_id, cwd, env, timeout, meta)
        more = {"message": message or None, "author": author or None, "provision": provision or None, "native": native}
        body.update(without_none(more))
        if self.revision is not None:
            body["revision"] = self.revision
        elif self._shut and not provision:
            body["revision"] = "head"
        elif idempotency_key is not None:
            return Execution(lambda channels: self._once(body, stdin, idempotency_key, channels), Limits().output_bytes)
        return Execution(lambda channels: self._run({**body, "stream": True}, stdin, channels), Limits().output_bytes)

    async def _once(self, body: dict[str, Any], stdin: Stdin, key: str, channels: Channels) -> IOResult:
        self._live()
        request = await request_body({**body, "encoding": "base64"}, stdin)
        headers = {**request.pop("headers", {}), "idempotency-key": key}
        done = json_of(await self._http.post(f"{self._url}/exec", headers=headers, **request))
        for writer, name in ((channels.stdout, "stdout"), (channels.stderr, "stderr")):
            writer.write(base64.b64decode(done[name]))
            if writer.full:
                await writer.drain()
        return result_of(done, channels.captured_out.getvalue(), channels.captured_err.getvalue())

    async def _run(self, body: dict[str, Any], stdin: Stdin, channels: Channels) -> IOResult:
        try:
            done = await self._stream_exec(await request_body(body, stdin), channels)
        except httpx2.TransportError as error:
            why = str(error) or type(error).__name__
            remedy = "see the server's log, and check what the command did"
            raise RametError("unavailable", f"the server disconnected: {why}", remedy) from None
        return result_of(done, channels.captured_out.getvalue(), channels.captured_err.getvalue())

    async def _stream_exec(self, request: dict[str, Any], channels: Channels) -> Any:
        last: dict[str, Any] | None = None
        async with self._http.stream("POST", f"{self._url}/exec", **request) as response:
            if response.status_code >= 400:
                raise refusal(response.status_code, await response.aread(), response.url.path)
            async for line in async_lines(response):
                row = json.loads(line)
                if "fd" not in row:
                    last = row
                    continue
                writer = channels.stdout if row["fd"] == 1 else channels.stderr
                writer.write(piece_of(row))
                if writer.full:
                    await writer.drain()
        return report_of(last, self._url)

    async def detach(
        self,
        command: str,
        session_id: str = DEFAULT_SESSION_ID,
        stdin: Stdin = None,
        *,
        agent_id: str = DEFAULT_AGENT_ID,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        meta: Mapping[str, MetaValue] | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Start a command that continues without this client; return its job."""
        body = exec_body(command, session_id, agent_id, cwd, env, timeout, meta)
        self._live()
        body = {**body, **await stdin_body(stdin), "detach": True}
        return as_kind(await self._ask("POST", "exec", body, key=idempotency_key), Job)

    async def questions(self) -> list[QuestionInfo]:
        """List the questions of `ask` rules that wait for an answer."""
        return msgspec.convert((await self._ask("GET", "questions"))["questions"], list[QuestionInfo])

    async def answer(self, number: int, allowed: bool | Literal["host"]) -> None:
        """Answer a question: True allows the operation, "host" also later requests of the session to the host."""
        await self._ask("POST", f"questions/{number}", {"allow": allowed})

    async def jobs(self) -> list[Job]:
        """List detached commands, including ended ones."""
        return msgspec.convert((await self._ask("GET", "jobs"))["jobs"], list[Job])

    async def job(self, job_id: str) -> Job:
        return as_kind(await self._ask("GET", f"jobs/{quote_text(job_id)}"), Job)

    async def wait(self, job_id: str) -> Job:
        """Wait for a job; return it with its result."""
        return as_kind(await self._ask("POST", f"jobs/{quote_text(job_id)}/wait"), Job)

    async def kill(self, job_id: str) -> Job:
        return as_kind(await self._ask("DELETE", f"jobs/{quote_text(job_id)}"), Job)

    async def commit(
        self,
        message: str = "",
        *,
        author: str = "",
        trace_id: str = "",
        subject: str = "",
        idempotency_key: str | None = None,
    ) -> Revision:
        """Commit everything as one revision; without changes, return the head, with the message as a note.

        `subject` is the message where none is given, and is never noted.
        """
        body = {"message": message, "author": author, "trace_id": trace_id, "subject": subject}
        return as_revision(await self._ask("POST", "commit", body, key=idempotency_key))

    async def complete(self, line: str, session_id: str = DEFAULT_SESSION_ID) -> Completion:
        """Complete the end of a command line: a command, an option, a variable or a path."""
        found = await self._see("completions", line=line, session=session_id)
        return Completion(found["start"], found["words"])

    async def history(self, *, session: str | None = None, last: int = 1000) -> list[ExecutionRecord]:
        """List the latest commands, newest last."""
        from ramet.workspace.record.history import ExecutionRecord

        found = (await self._see("history", session=session, last=last))["commands"]
        return [as_kind(plain, ExecutionRecord) for plain in found]

    # ------------------------------------------------------------------------------- sessions and mounts

    async def create_session(
        self, session_id: str, *, env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> SavedSession:
        """Create a session with its own working directory, variables, functions and options."""
        body = without_none({"id": session_id, "env": dict(env or {}), "cwd": cwd})
        return as_session(await self._ask("POST", "sessions", body))

    async def get_session(self, session_id: str = DEFAULT_SESSION_ID) -> SavedSession:
        for found in await self.list_sessions() if self.revision is not None else ():
            if found.session_id == session_id:
                return found
        return as_session(await self._ask("GET", f"sessions/{quote_text(session_id)}"))

    async def list_sessions(self) -> list[SavedSession]:
        return [as_session(plain) for plain in (await self._see("sessions"))["sessions"]]

    async def close_session(self, session_id: str) -> None:
        """Close a session and its background jobs. The default session starts again."""
        await self._ask("DELETE", f"sessions/{quote_text(session_id)}")

    async def close_all_sessions(self) -> None:
        """Close every session except the default one."""
        for session in await self.list_sessions():
            if session.session_id != DEFAULT_SESSION_ID:
                await self.close_session(session.session_id)

    async def mounts(self, *, scratch: bool = False) -> list[MountState]:
        """Return the mounts by prefix; the workspace's own scratch only on request."""
        found = [as_mount(plain) for plain in (await self._see("mounts"))["mounts"]]
        return [mount for mount in found if scratch or not mount.scratch]

    async def mount(self, prefix: str, resource: Resource | None = None, mode: str = "write") -> None:
        """Add an empty mount; other mounts are set when the server starts."""
        if not (resource is None or (isinstance(resource, RAMResource) and not await _holds(resource))):
            raise RametError("unsupported", "cannot send a resource to a server", "mount it there, or import a tar")
        await self._ask("POST", "mounts", {"prefix": prefix, "mode": str(getattr(mode, "value", mode))})

    async def unmount(self, prefix: str) -> None:
        """Remove a mount; past revisions keep it."""
        await self._ask("DELETE", f"mounts?prefix={quote_text(prefix)}")

    async def snapshot(self, target: Target, compress: str | None = None) -> None:
        """Save the whole state as a tar to a path, which appears when complete, or to a binary stream."""
        if isinstance(target, str | os.PathLike):
            with atomic_file(target) as file:
                await self.snapshot(file, compress)
            return
        query = without_none({"compress": compress, "revision": self.revision})
        async with self._http.stream("GET", f"{self._url}/snapshot", params=query) as response:
            if response.status_code >= 400:
                raise refusal(response.status_code, await response.aread(), response.url.path)
            async for block in response.aiter_bytes():
                target.write(block)

    # ---------------------------------------------------------------------------------------------- ports

    async def ports(self) -> list[ListeningPort]:
        """List the ports at which programs of the workspace listen."""
        return as_ports(await self._ask("GET", "ports"))

    async def connect_port(self, port: int) -> Connection:
        """Connect to a program that listens at a port of the workspace: `reader, writer = await ws.connect_port(8000)`.

        Raises ConnectionRefusedError where nothing listens.
        """
        from ramet.apps.client.tunnel import connect_port

        return await connect_port(self._address, self.name, port)

    # ---------------------------------------------------------------------------------------------- files

    async def dispatch(
        self,
        op: Operation,
        path: str,
        *args: Any,
        session_id: str = DEFAULT_SESSION_ID,
        **options: Unpack[OperationKeywords],
    ) -> Any:
        """Run one low-level operation by its name in a local workspace."""
        if op not in OPERATIONS:
            raise RametError("invalid_argument", f"unknown operation {op!r}", f"use one of {', '.join(OPERATIONS)}")
        return await getattr(self, op)(path, *args, session_id=session_id, **options)

    def _at(self, path: str, session_id: str) -> str:
        session = "" if session_id == DEFAULT_SESSION_ID else f"&session={quote_text(session_id)}"
        return where(path) + session + ("" if self.revision is None else f"&revision={quote_text(self.revision)}")

    async def read(
        self, path: str, start: int = 0, stop: int | None = None, *, session_id: str = DEFAULT_SESSION_ID
    ) -> bytes:
        """Read a file, or its bytes from `start` up to `stop`."""
        if stop is not None and stop <= start:
            return b""
        headers = {} if not start and stop is None else {"range": f"bytes={start}-{'' if stop is None else stop - 1}"}
        response = await self._http.get(f"{self._url}/file?{self._at(path, session_id)}", headers=headers)
        if response.status_code == 416:
            return b""
        if response.status_code >= 400:
            raise refusal(response.status_code, response.content, response.url.path)
        return response.content if response.status_code == 206 or not headers else response.content[start:stop]

    async def stream(self, path: str, *, session_id: str = DEFAULT_SESSION_ID) -> AsyncIterator[bytes]:
        """Stream the content of a file."""
        async with self._http.stream("GET", f"{self._url}/file?{self._at(path, session_id)}") as response:
            if response.status_code >= 400:
                raise refusal(response.status_code, await response.aread(), response.url.path)
            async for block in response.aiter_bytes():
                yield block

    async def size(self, path: str, *, session_id: str = DEFAULT_SESSION_ID) -> int:
        """Return the size of a file."""
        response = await self._http.head(f"{self._url}/file?{self._at(path, session_id)}")
        if response.status_code >= 400:
            raise refusal(response.status_code, response.content, response.url.path)
        return int(response.headers["content-length"])

    async def write(
        self,
        path: str,
        data: bytes | str | AsyncIterator[bytes],
        *,
        parents: bool = False,
        append: bool = False,
        if_version: str | None = None,
        session_id: str = DEFAULT_SESSION_ID,
        idempotency_key: str | None = None,
    ) -> Stat:
        """Write a file; a stream is sent as it arrives. With `if_version`, only if the file still has that version."""
        query = self._at(path, session_id) + ("&parents=true" if parents else "") + ("&append=true" if append else "")
        content = encode(data) if isinstance(data, str) else data
        match = {} if if_version is None else {"if-match": if_version}
        return _stat(await self._ask("PUT", f"file?{query}", content=content, key=idempotency_key, headers=match))

    async def stat(self, path: str, follow: bool = True, *, session_id: str = DEFAULT_SESSION_ID) -> Stat:
        """Return the attributes of a path; `version` is its ETag."""
        query = self._at(path, session_id) + ("" if follow else "&follow=false")
        return _stat(json_of(await self._http.get(f"{self._url}/stat?{query}")))

    async def exists(self, path: str, *, session_id: str = DEFAULT_SESSION_ID) -> bool:
        try:
            await self.stat(path, session_id=session_id)
        except FileNotFoundError:
            return False
        return True

    async def scan(self, path: str, *, session_id: str = DEFAULT_SESSION_ID) -> list[tuple[str, Stat]]:
        """List a directory: attributes by name."""
        found = json_of(await self._http.get(f"{self._url}/dir?{self._at(path, session_id)}"))["entries"]
        return [(plain["path"].rpartition("/")[2], _stat(plain)) for plain in found]

    async def mkdir(self, path: str, *, parents: bool = False, session_id: str = DEFAULT_SESSION_ID) -> None:
        await self._ask("PUT", f"dir?{self._at(path, session_id)}" + ("&parents=true" if parents else ""))

    async def remove(self, path: str, *, recursive: bool = False, session_id: str = DEFAULT_SESSION_ID) -> None:
        await self._ask("DELETE", f"file?{self._at(path, session_id)}" + ("&recursive=true" if recursive else ""))

    async def rename(self, source: str, target: str, *, session_id: str = DEFAULT_SESSION_ID) -> None:
        await self._ask("POST", "move", {"source": source, "target": target, "session": session_id})

    async def copy(self, source: str, target: str, *, session_id: str = DEFAULT_SESSION_ID) -> None:
        await self._ask("POST", "copy", {"source": source, "target": target, "session": session_id})

    async def symlink(self, path: str, target: str, *, session_id: str = DEFAULT_SESSION_ID) -> None:
        await self._ask("POST", "link", {"path": path, "target": target, "session": session_id})

    async def setattr(self, path: str, attrs: Attrs, *, session_id: str = DEFAULT_SESSION_ID) -> None:
        body = without_none(
            {"mode": attrs.mode, "mtime_ns": attrs.mtime_ns, "size": attrs.size, "atime_ns": attrs.atime_ns}
        )
        await self._ask("PATCH", f"file?{self._at(path, session_id)}", body)

    async def chmod(self, path: str, mode: int, *, session_id: str = DEFAULT_SESSION_ID) -> None:
        await self.setattr(path, Attrs(mode), session_id=session_id)


def exec_body(
    command: str,
    session_id: str,
    agent_id: str,
    cwd: str | None,
    env: Mapping[str, str] | None,
    timeout: float | None,
    meta: Mapping[str, MetaValue] | None = None,
) -> dict[str, Any]:
    """Build the body of an exec request."""
    body: dict[str, Any] = {"command": command, "session": session_id, "agent": agent_id, "env": dict(env or {})}
    if cwd is not None:
        body["cwd"] = cwd
    if timeout is not None:
        body["timeout_ms"] = int(timeout * 1000)
    if meta:
        body["meta"] = dict(meta)
    return body


async def stdin_body(stdin: Stdin) -> dict[str, str]:
    """Encode the stdin of a command."""
    if stdin is None:
        return {}
    if not isinstance(stdin, bytes | str):
        stdin = b"".join([block async for block in stdin])
    return {"stdin_base64": base64.b64encode(encode(stdin) if isinstance(stdin, str) else stdin).decode()}


async def request_body(body: dict[str, Any], stdin: Stdin) -> dict[str, Any]:
    """Build an exec request: short stdin inside it, longer stdin streamed after it."""
    if stdin is None or isinstance(stdin, bytes | str):
        blocks: list[bytes] = [] if stdin is None else [encode(stdin) if isinstance(stdin, str) else stdin]
        rest = None
    else:
        blocks, size, rest = [], 0, aiter(stdin)
        async for block in rest:
            blocks.append(block)
            size += len(block)
            if size > SHORT:
                break
        else:
            rest = None
    if rest is None and sum(map(len, blocks)) <= SHORT:
        return {"json": body if stdin is None else {**body, **await stdin_body(b"".join(blocks))}}

    async def content() -> AsyncIterator[bytes]:
        yield json.dumps(body).encode() + b"\n"
        for block in blocks:
            yield block
        if rest is not None:
            async for block in rest:
                yield block

    return {"params": {"stdin": "follows"}, "content": content(), "headers": {"content-type": "application/json"}}


def piece_of(row: Mapping[str, Any]) -> bytes:
    """Decode the output in a line of a streamed response."""
    return base64.b64decode(row["data"]) if row["encoding"] == "base64" else row["data"].encode()


def _stat(plain: Mapping[str, Any]) -> Stat:
    return Stat(
        Kind(plain["kind"]), plain["size"], plain["mtime_ns"], plain["etag"], mode=plain["mode"],
        target=plain["target"], nlink=plain["nlink"], atime_ns=plain.get("atime_ns"),
    )  # fmt: skip


async def _holds(resource: RAMResource) -> bool:
    from ramet.core.paths import ROOT

    return any([True async for _ in resource.scan(ROOT)])
