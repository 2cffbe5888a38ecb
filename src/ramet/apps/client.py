"""`connect(url)`: workspaces of a server, with the names and the shape of a local `Store`. Nothing is kept here.

store = ramet.connect("http://127.0.0.1:8750", token=...)        # or unix:/run/ramet.sock
store.create("proj-x")
async with store.open("proj-x") as ws:
    print((await ws.execute("echo hello | tee /greeting")).text)
store["proj-x"].log()
"""

from __future__ import annotations

import base64
import errno
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote_from_bytes

from ramet.core.errors import CODES, RametError, fail, missing_extra
from ramet.core.limits import Limits
from ramet.core.paths import encode
from ramet.workspace.execution import Channels, Execution
from ramet.workspace.result import IOResult

try:
    import httpx2
except ModuleNotFoundError as error:
    raise missing_extra("client", "talking to a server") from error

ERRNO: Final = {404: errno.ENOENT, 409: errno.EEXIST, 403: errno.EACCES, 412: errno.ESTALE, 400: errno.EINVAL}
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

    def open(self, name: str) -> RemoteWorkspace:
        """A live workspace; use it with `async with`."""
        return RemoteWorkspace(self._address.async_client(), name)


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
    """An open workspace: the same calls as a local one, each of them a request."""

    def __init__(self, http: httpx2.AsyncClient, name: str) -> None:
        self._http, self.name = http, name
        self._url = f"/v1/workspaces/{name}"

    async def __aenter__(self) -> RemoteWorkspace:
        _checked(await self._http.get(self._url))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

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
    ) -> Execution:
        """`await` it for an IOResult, or iterate it for output while it runs; cancelling stops the command there."""
        body: dict[str, Any] = {
            "command": command, "session": session_id, "agent": agent_id, "env": dict(env or {}), "stream": True,
        }  # fmt: skip
        if stdin is not None:
            body["stdin_base64"] = base64.b64encode(encode(stdin) if isinstance(stdin, str) else stdin).decode()
        if cwd is not None:
            body["cwd"] = cwd
        if timeout is not None:
            body["timeout_ms"] = int(timeout * 1000)
        return Execution(lambda channels: self._run(body, channels), Limits().output_bytes)

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
        return IOResult(
            stdout=channels.captured_out.getvalue(), stderr=channels.captured_err.getvalue(),
            exit_code=last["exit_code"], timed_out=last["timed_out"], truncated=last["truncated"],
            bytes_read=last["bytes_read"], bytes_written=last["bytes_written"], cache_hits=last["cache_hits"],
            duration=last["duration_ms"] / 1000,
        )  # fmt: skip

    async def commit(self, message: str = "", *, author: str = "", trace_id: str = "") -> Any:
        body = {"message": message, "author": author, "trace_id": trace_id}
        return _checked(await self._http.post(f"{self._url}/commit", json=body))

    async def create_session(self, session_id: str, *, env: Mapping[str, str] | None = None, cwd: str = "/") -> Any:
        body = {"id": session_id, "env": dict(env or {}), "cwd": cwd}
        return _checked(await self._http.post(f"{self._url}/sessions", json=body))

    async def close_session(self, session_id: str) -> None:
        _checked(await self._http.delete(f"{self._url}/sessions/{session_id}"))

    async def read(self, path: str) -> bytes:
        response = await self._http.get(f"{self._url}/file?{_where(path)}")
        if response.status_code >= 400:
            raise _refusal(response.status_code, response.content, response.url.path)
        return response.content

    async def write(self, path: str, data: bytes | AsyncIterator[bytes], *, parents: bool = False) -> Any:
        """Store a file; a stream is sent as it comes."""
        query = _where(path) + ("&parents=true" if parents else "")
        return _checked(await self._http.put(f"{self._url}/file?{query}", content=data))

    async def stat(self, path: str) -> Any:
        return _checked(await self._http.get(f"{self._url}/stat?{_where(path)}"))

    async def scan(self, path: str) -> Any:
        return _checked(await self._http.get(f"{self._url}/dir?{_where(path)}"))["entries"]

    async def mkdir(self, path: str, *, parents: bool = False) -> None:
        query = _where(path) + ("&parents=true" if parents else "")
        _checked(await self._http.put(f"{self._url}/dir?{query}"))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        query = _where(path) + ("&recursive=true" if recursive else "")
        _checked(await self._http.delete(f"{self._url}/file?{query}"))

    async def rename(self, source: str, target: str) -> None:
        _checked(await self._http.post(f"{self._url}/move", json={"source": source, "target": target}))


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Whole lines of a streamed answer."""
    rest = b""
    async for block in response.aiter_bytes():
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line
