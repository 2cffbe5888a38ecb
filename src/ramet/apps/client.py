"""`connect(url)`: workspaces of a server, with the names and the shape of a local `Store`. Nothing is kept here.

store = ramet.connect("http://127.0.0.1:8750", token=...)        # or unix:/run/ramet.sock
store.create("proj-x")
async with store.open("proj-x") as ws:
    print((await ws.execute("echo hello | tee /greeting")).text)
store["proj-x"].log()
"""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import IO, Any, Final
from urllib.parse import quote_from_bytes

from ramet.core.errors import CODES, RametError, fail, missing_extra
from ramet.core.limits import Limits
from ramet.core.paths import encode
from ramet.store.address import parse_address
from ramet.workspace.execution import Channels, Execution
from ramet.workspace.result import IOResult

try:
    import httpx2
except ModuleNotFoundError as error:
    raise missing_extra("client", "talking to a server") from error

ERRNO: Final = {404: errno.ENOENT, 409: errno.EEXIST, 403: errno.EACCES, 412: errno.ESTALE, 400: errno.EINVAL}
BLOCK: Final = 1 << 18
QUIET: Final = 1.0
"""Seconds without an event after which everything that had happened is known to have come."""
FILES: Final = ("/file", "/dir", "/stat", "/move", "/copy", "/link")


def connect(url: str, token: str | None = None, *, timeout: float | None = None) -> RemoteStore:
    """The store behind a server at `http(s)://...` or `unix:/path`."""
    return RemoteStore(url, token, timeout)


class _Address:
    """How to reach a server, for both kinds of clients."""

    def __init__(self, url: str, token: str | None, timeout: float | None) -> None:
        self._socket = url.removeprefix("unix:") if url.startswith("unix:") else None
        self._options: dict[str, Any] = {
            "base_url": "http://localhost" if self._socket else url.rstrip("/"), "timeout": timeout,
            "headers": {"authorization": f"Bearer {token}"} if token else {},
        }  # fmt: skip

    def client(self) -> httpx2.Client:
        transport = httpx2.HTTPTransport(uds=self._socket) if self._socket else None
        return httpx2.Client(transport=transport, **self._options)

    def async_client(self) -> httpx2.AsyncClient:
        transport = httpx2.AsyncHTTPTransport(uds=self._socket) if self._socket else None
        return httpx2.AsyncClient(transport=transport, **self._options)


def _where(path: str) -> str:
    return "path=" + quote_from_bytes(encode(path))


def _refusal(status: int, body: bytes, url: str) -> Exception:
    """What a problem says, as the exception that the local call would have raised."""
    try:
        problem = json.loads(body)
        code, cause, remedy = problem["code"], problem["cause"], problem["remediation"]
    except (ValueError, KeyError, TypeError):
        return RametError("unavailable", f"the server answered {status}", "look at the server")
    of_file = code in ("not_found", "already_exists", "permission_denied", "precondition_failed", "invalid_argument")
    if of_file and any(url.endswith(end) for end in FILES):
        path, _, why = cause.rpartition(": ")
        return fail(ERRNO.get(status, errno.EIO), path or None, why or None)
    return RametError(code if code in CODES else "unavailable", cause, remedy, problem.get("context", {}))


def _checked(response: httpx2.Response, *fine: int) -> Any:
    if response.status_code >= 400 and response.status_code not in fine:
        raise _refusal(response.status_code, response.content, response.url.path)
    return json.loads(response.content)


class RemoteStore:
    """Workspaces by name, on a server."""

    def __init__(self, url: str, token: str | None, timeout: float | None) -> None:
        self._address = _Address(url, token, timeout)
        self._http = self._address.client()

    def __enter__(self) -> RemoteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def create(self, name: str, kind: str = "stored") -> RemoteRef:
        _checked(self._http.post("/v1/workspaces", json={"name": name, "kind": kind}))
        return RemoteRef(self._http, name)

    def ls(self) -> list[str]:
        return [found["name"] for found in _checked(self._http.get("/v1/workspaces"))["workspaces"]]

    def rm(self, name: str) -> None:
        _checked(self._http.delete(f"/v1/workspaces/{name}"))

    def __getitem__(self, name: str) -> RemoteRef:
        _checked(self._http.get(f"/v1/workspaces/{name}"))
        return RemoteRef(self._http, name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.ls()

    def open(self, name: str, revision: str | None = None) -> RemoteWorkspace:
        """A live workspace, or a past state of it with `NAME@REV`; use it with `async with`."""
        found = parse_address(name)
        if found.path is not None:
            raise RametError("invalid_argument", f"{name!r} names a path", "open NAME or NAME@REVISION")
        return RemoteWorkspace(self._address.async_client(), found.name, revision or found.revision)

    def import_archive(
        self,
        name: str,
        source: str | os.PathLike[str] | IO[bytes],
        *,
        prefix: str = "/",
        kind: str | None = None,
        message: str = "",
        author: str = "",
    ) -> Any:
        """A snapshot or any other tar as a revision of a workspace, which is created if it does not exist."""
        query = {"prefix": prefix, "message": message, "author": author, **({"kind": kind} if kind else {})}
        if isinstance(source, str | os.PathLike):
            with open(source, "rb") as file:
                return self.import_archive(name, file, prefix=prefix, kind=kind, message=message, author=author)
        sent = self._http.put(f"/v1/workspaces/{name}/snapshot", params=query, content=_blocks(source))
        return _checked(sent)

    async def events(
        self, since: int | None = None, *, workspace: str | None = None, follow: bool = True
    ) -> AsyncIterator[dict[str, Any]]:
        """What happens on the server: mappings with `id`, `event`, `workspace`, `time` and more, as they happen.

        `since` is the id of the last one that you have. Without `follow` it ends with what has happened already.
        """
        given = {"since": since if since is not None else (None if follow else 0), "workspace": workspace}
        query = {name: str(value) for name, value in given.items() if value is not None}
        async with (
            self._address.async_client() as http,
            http.stream("GET", "/v1/events", params=query, timeout=None) as response,
        ):
            if response.status_code >= 400:
                raise _refusal(response.status_code, await response.aread(), response.url.path)
            lines = _lines(response)
            while True:
                try:
                    found = await asyncio.wait_for(_event(lines), None if follow else QUIET)
                except TimeoutError:
                    return
                if found is None:
                    return
                yield found


class RemoteRef:
    """A workspace without opening it. Revisions are mappings with the fields that `docs/http.md` lists."""

    def __init__(self, http: httpx2.Client, name: str) -> None:
        self._http, self.name = http, name
        self._url = f"/v1/workspaces/{name}"

    def _get(self, verb: str, **query: str | None) -> Any:
        given = {key: value for key, value in query.items() if value is not None}
        return _checked(self._http.get(f"{self._url}/{verb}", params=given))

    def _post(self, verb: str, *fine: int, **body: Any) -> Any:
        given = {key: value for key, value in body.items() if value is not None}
        return _checked(self._http.post(f"{self._url}/{verb}", json=given), *fine)

    @property
    def head(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = _checked(self._http.get(self._url))["head"]
        return found

    def log(self, revision: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("log", revision=revision)["revisions"]
        return found

    def diff(self, revision: str | None = None, against: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("diff", revision=revision, against=against)["changes"]
        return found

    def blame(self, path: str, revision: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("blame", path=path, revision=revision)["lines"]
        return found

    def show(self, path: str, revision: str | None = None) -> Iterator[bytes]:
        """The content of a file of a revision."""
        query = f"{_where(path)}&revision={revision or 'head'}"
        with self._http.stream("GET", f"{self._url}/file?{query}") as response:
            if response.status_code >= 400:
                raise _refusal(response.status_code, response.read(), response.url.path)
            yield from response.iter_bytes()

    def find(self, revision: str | None = None) -> dict[str, Any]:
        """The revision that `head`, `head~2`, a tag, a number or an id stands for."""
        found: dict[str, Any] = self._get("log", revision=revision, limit="1")["revisions"][0]
        return found

    def export(
        self,
        target: str | os.PathLike[str] | IO[bytes],
        revision: str | None = None,
        *,
        kind: str = "snapshot",
        compress: str | None = None,
    ) -> None:
        """A revision as a snapshot tar (or with `kind="tar"` a plain one); a file appears only when it is whole."""
        if not isinstance(target, str | os.PathLike):
            for piece in self._download(revision, kind, compress):
                target.write(piece)
            return
        part = f"{os.fspath(target)}.part"
        try:
            with open(part, "wb") as file:
                for piece in self._download(revision, kind, compress):
                    file.write(piece)
            os.replace(part, target)
        except BaseException:
            if os.path.exists(part):
                os.unlink(part)
            raise

    def _download(self, revision: str | None, kind: str, compress: str | None) -> Iterator[bytes]:
        given = {"revision": revision, "kind": kind, "compress": compress}
        query = {name: value for name, value in given.items() if value is not None}
        with self._http.stream("GET", f"{self._url}/snapshot", params=query) as response:
            if response.status_code >= 400:
                raise _refusal(response.status_code, response.read(), response.url.path)
            yield from response.iter_bytes()

    def fork(self, revision: str | None, new_name: str) -> Any:
        return self._post("fork", name=new_name, revision=revision)["head"]

    def revert(self, revision: str, message: str = "", paths: list[str] | None = None) -> Any:
        return self._post("revert", revision=revision, message=message, paths=paths)

    def merge(self, other: str, message: str = "") -> Any:
        """The merge, or its conflicts, which change nothing."""
        return self._post("merge", 409, other=other, message=message)

    def tag(self, tag: str, revision: str | None = None, *, message: str = "", force: bool = False) -> Any:
        body = {"message": message, "force": force, **({"revision": revision} if revision else {})}
        return _checked(self._http.put(f"{self._url}/tags/{tag}", json=body))

    def tags(self) -> Any:
        return self._get("tags")["tags"]

    def untag(self, tag: str) -> None:
        _checked(self._http.delete(f"{self._url}/tags/{tag}"))


class RemoteWorkspace:
    """An open workspace: the same calls as a local one, each of them a request.

    With `idempotency_key` a call that is repeated gets the first answer, and changes nothing more. A workspace that was
    opened at a revision is looked at and cannot be changed.
    """

    def __init__(self, http: httpx2.AsyncClient, name: str, revision: str | None = None) -> None:
        self._http, self.name, self.revision = http, name, revision
        self._url = f"/v1/workspaces/{name}"

    async def __aenter__(self) -> RemoteWorkspace:
        try:
            if self.revision is None:
                _checked(await self._http.get(self._url))
            else:
                _checked(await self._http.get(f"{self._url}/log", params={"revision": self.revision, "limit": "1"}))
        except BaseException:
            await self._http.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def _live(self) -> None:
        if self.revision is not None:
            remedy = "fork it, and open the fork"
            raise RametError("permission_denied", f"{self.name}@{self.revision} cannot be changed", remedy)

    async def _ask(
        self, method: str, verb: str, body: Any = None, *, key: str | None = None, content: Any = None
    ) -> Any:
        """A request that needs the workspace alive."""
        self._live()
        options: dict[str, Any] = {} if body is None else {"json": body}
        if content is not None:
            options["content"] = content
        headers = {} if key is None else {"idempotency-key": key}
        return _checked(await self._http.request(method, f"{self._url}/{verb}", headers=headers, **options))

    # ------------------------------------------------------------------------------------------- commands

    def execute(
        self,
        command: str,
        session_id: str = "default",
        stdin: bytes | str | None = None,
        *,
        agent_id: str = "default",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Execution:
        """`await` it for an IOResult, or iterate it for output while it runs; cancelling stops the command there.

        With a key the output comes when the command has ended, because only a whole answer can be remembered. On a
        revision each command has a past of its own: what it changes is gone when it has ended.
        """
        body = _asked(command, session_id, stdin, agent_id, cwd, env, timeout)
        if self.revision is not None:
            body["revision"] = self.revision
        elif idempotency_key is not None:
            return Execution(lambda channels: self._once(body, idempotency_key, channels), Limits().output_bytes)
        return Execution(lambda channels: self._run({**body, "stream": True}, channels), Limits().output_bytes)

    async def _once(self, body: dict[str, Any], key: str, channels: Channels) -> IOResult:
        done = await self._ask("POST", "exec", {**body, "encoding": "base64"}, key=key)
        for writer, name in ((channels.stdout, "stdout"), (channels.stderr, "stderr")):
            writer.write(base64.b64decode(done[name]))
            if writer.full:
                await writer.drain()
        return _result(done, channels)

    async def _run(self, body: dict[str, Any], channels: Channels) -> IOResult:
        last: dict[str, Any] | None = None
        async with self._http.stream("POST", f"{self._url}/exec", json=body) as response:
            if response.status_code >= 400:
                raise _refusal(response.status_code, await response.aread(), response.url.path)
            async for line in _lines(response):
                row = json.loads(line)
                if "fd" not in row:
                    last = row
                    continue
                data = base64.b64decode(row["data"]) if row["encoding"] == "base64" else row["data"].encode()
                writer = channels.stdout if row["fd"] == 1 else channels.stderr
                writer.write(data)
                if writer.full:
                    await writer.drain()
        if last is None:
            raise RametError("unavailable", "the server ended in the middle of a command", "look at its log and repeat")
        if "problem" in last:
            raise _refusal(last["problem"]["status"], json.dumps(last["problem"]).encode(), self._url)
        return _result(last, channels)

    async def detach(
        self,
        command: str,
        session_id: str = "default",
        stdin: bytes | str | None = None,
        *,
        agent_id: str = "default",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Begin a command that goes on without this client; the job that it is."""
        body = _asked(command, session_id, stdin, agent_id, cwd, env, timeout)
        return await self._ask("POST", "exec", {**body, "detach": True}, key=idempotency_key)

    async def jobs(self) -> Any:
        return (await self._ask("GET", "jobs"))["jobs"]

    async def job(self, job_id: str) -> Any:
        return await self._ask("GET", f"jobs/{job_id}")

    async def wait(self, job_id: str) -> Any:
        """The job when it has ended, with its result."""
        return await self._ask("POST", f"jobs/{job_id}/wait")

    async def kill(self, job_id: str) -> Any:
        return await self._ask("DELETE", f"jobs/{job_id}")

    async def commit(
        self, message: str = "", *, author: str = "", trace_id: str = "", idempotency_key: str | None = None
    ) -> Any:
        body = {"message": message, "author": author, "trace_id": trace_id}
        return await self._ask("POST", "commit", body, key=idempotency_key)

    # ------------------------------------------------------------------------------------------- sessions

    async def create_session(self, session_id: str, *, env: Mapping[str, str] | None = None, cwd: str = "/") -> Any:
        return await self._ask("POST", "sessions", {"id": session_id, "env": dict(env or {}), "cwd": cwd})

    async def list_sessions(self) -> Any:
        return (await self._ask("GET", "sessions"))["sessions"]

    async def close_session(self, session_id: str) -> None:
        await self._ask("DELETE", f"sessions/{session_id}")

    # ---------------------------------------------------------------------------------------------- files

    def _at(self, path: str) -> str:
        return _where(path) + ("" if self.revision is None else f"&revision={quote_from_bytes(encode(self.revision))}")

    async def read(self, path: str) -> bytes:
        response = await self._http.get(f"{self._url}/file?{self._at(path)}")
        if response.status_code >= 400:
            raise _refusal(response.status_code, response.content, response.url.path)
        return response.content

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """The content of a file as it comes."""
        async with self._http.stream("GET", f"{self._url}/file?{self._at(path)}") as response:
            if response.status_code >= 400:
                raise _refusal(response.status_code, await response.aread(), response.url.path)
            async for block in response.aiter_bytes():
                yield block

    async def size(self, path: str) -> int:
        """The bytes of a file, without reading it."""
        response = await self._http.head(f"{self._url}/file?{self._at(path)}")
        if response.status_code >= 400:
            raise _refusal(response.status_code, response.content, response.url.path)
        return int(response.headers["content-length"])

    async def write(
        self,
        path: str,
        data: bytes | AsyncIterator[bytes],
        *,
        parents: bool = False,
        append: bool = False,
        idempotency_key: str | None = None,
    ) -> Any:
        """Store a file; a stream is sent as it comes."""
        query = _where(path) + ("&parents=true" if parents else "") + ("&append=true" if append else "")
        return await self._ask("PUT", f"file?{query}", content=data, key=idempotency_key)

    async def stat(self, path: str) -> Any:
        return _checked(await self._http.get(f"{self._url}/stat?{self._at(path)}"))

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
        except FileNotFoundError:
            return False
        return True

    async def scan(self, path: str) -> Any:
        return _checked(await self._http.get(f"{self._url}/dir?{self._at(path)}"))["entries"]

    async def mkdir(self, path: str, *, parents: bool = False) -> None:
        await self._ask("PUT", f"dir?{_where(path)}" + ("&parents=true" if parents else ""))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await self._ask("DELETE", f"file?{_where(path)}" + ("&recursive=true" if recursive else ""))

    async def rename(self, source: str, target: str) -> None:
        await self._ask("POST", "move", {"source": source, "target": target})

    async def copy(self, source: str, target: str) -> None:
        await self._ask("POST", "copy", {"source": source, "target": target})

    async def symlink(self, path: str, target: str) -> None:
        await self._ask("POST", "link", {"path": path, "target": target})

    async def chmod(self, path: str, mode: int) -> None:
        await self._ask("PATCH", f"file?{_where(path)}", {"mode": mode})


def _asked(
    command: str, session_id: str, stdin: bytes | str | None, agent_id: str, cwd: str | None,
    env: Mapping[str, str] | None, timeout: float | None,
) -> dict[str, Any]:  # fmt: skip
    """The body of an exec."""
    body: dict[str, Any] = {"command": command, "session": session_id, "agent": agent_id, "env": dict(env or {})}
    if stdin is not None:
        body["stdin_base64"] = base64.b64encode(encode(stdin) if isinstance(stdin, str) else stdin).decode()
    if cwd is not None:
        body["cwd"] = cwd
    if timeout is not None:
        body["timeout_ms"] = int(timeout * 1000)
    return body


def _result(done: Mapping[str, Any], channels: Channels) -> IOResult:
    return IOResult(
        stdout=channels.captured_out.getvalue(), stderr=channels.captured_err.getvalue(),
        exit_code=done["exit_code"], timed_out=done["timed_out"], truncated=done["truncated"],
        bytes_read=done["bytes_read"], bytes_written=done["bytes_written"], cache_hits=done["cache_hits"],
        duration=done["duration_ms"] / 1000,
    )  # fmt: skip


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


async def _event(lines: AsyncIterator[bytes]) -> dict[str, Any] | None:
    """The next server-sent event; None at the end of the stream."""
    found: dict[str, Any] = {}
    async for line in lines:
        name, _, value = line.decode().partition(": ")
        if name == "data":
            found.update(json.loads(value))
        elif name in ("id", "event"):
            found[name] = int(value) if name == "id" else value
        elif not line and "id" in found:
            return found
    return None


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Whole lines of a streamed answer."""
    rest = b""
    async for block in response.aiter_bytes():
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line
