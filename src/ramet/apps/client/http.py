"""HTTP requests of the client: addresses, errors as the local call raises them, streamed lines."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Final
from urllib.parse import quote_from_bytes

from ramet.backends.redacted_urls import why
from ramet.concurrency.fork import renew_after_fork
from ramet.core.errors import CODES, RametError, fail, missing_extra
from ramet.core.paths import encode
from ramet.core.progress import Progress
from ramet.workspace.result import IOResult

try:
    import httpx2
except ModuleNotFoundError as error:
    raise missing_extra("client", "talking to a server") from error

ERRNO: Final = {404: errno.ENOENT, 409: errno.EEXIST, 403: errno.EACCES, 412: errno.ESTALE, 400: errno.EINVAL}
BLOCK: Final = 1 << 18
FILES: Final = ("/file", "/dir", "/stat", "/move", "/copy", "/link")
SCHEMES: Final = ("http://", "https://", "unix:")


class Address:
    """The address of a server, for sync and async clients."""

    def __init__(self, url: str, token: str | None, timeout: float | None) -> None:
        if not url.startswith(SCHEMES):
            raise RametError(
                "invalid_argument", f"{url!r} is not a server's URL", "write http(s)://HOST:PORT or unix:/PATH"
            )
        self.url = url
        self.socket = url.removeprefix("unix:") if url.startswith("unix:") else None
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        self._options: dict[str, Any] = {
            "base_url": "http://localhost" if self.socket else url.rstrip("/"), "timeout": timeout,
            "headers": self.headers,
        }  # fmt: skip

    def client(self) -> httpx2.Client:
        transport = httpx2.HTTPTransport(uds=self.socket) if self.socket else None
        return httpx2.Client(transport=transport, **self._options)

    def async_client(self) -> httpx2.AsyncClient:
        transport = httpx2.AsyncHTTPTransport(uds=self.socket) if self.socket else None
        return httpx2.AsyncClient(transport=transport, **self._options)


def where(path: str) -> str:
    return "path=" + quote_text(path)


def quote_text(text: str) -> str:
    return quote_from_bytes(encode(text), safe="")


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the options that are not set."""
    return {name: value for name, value in values.items() if value is not None}


def refusal(status: int, body: bytes, url: str) -> Exception:
    """Return the exception that the local call would raise for a problem."""
    try:
        problem = json.loads(body)
        code, cause, remedy = problem["code"], problem["cause"], problem["remediation"]
    except (ValueError, KeyError, TypeError):
        return RametError("unavailable", f"the server responded with status {status}", "see the server's log")
    of_file = code in ("not_found", "already_exists", "permission_denied", "precondition_failed", "invalid_argument")
    if of_file and any(url.endswith(end) for end in FILES):
        path, _, why = cause.rpartition(": ")
        return fail(ERRNO.get(status, errno.EIO), path or None, why or None)
    return RametError(code if code in CODES else "unavailable", cause, remedy, problem.get("context", {}))


def json_of(response: httpx2.Response, *fine: int) -> Any:
    if response.status_code >= 400 and response.status_code not in fine:
        raise refusal(response.status_code, response.content, response.url.path)
    try:
        return json.loads(response.content)
    except ValueError:
        raise RametError("unavailable", "the response is not JSON", "check that this is a Ramet server") from None


class Http:
    """Synchronous requests."""

    def __init__(self, address: Address) -> None:
        self.raw = address.client()
        self._address = address
        renew_after_fork(self, raw=address.client)  # two processes must not share connections

    def close(self) -> None:
        self.raw.close()

    def ask(
        self, method: str, url: str, body: Any = None, *fine: int, query: Mapping[str, Any] | None = None,
        content: Any = None, key: str | None = None,
    ) -> Any:  # fmt: skip
        options: dict[str, Any] = {} if body is None else {"json": body}
        if query is not None:
            options["params"] = without_none(query)
        if content is not None:
            options["content"] = content
        if key is not None:
            options["headers"] = {"idempotency-key": key}
        try:
            return json_of(self.raw.request(method, url, **options), *fine)
        except httpx2.TransportError as error:
            raise self.unreachable(error) from None

    def get(self, url: str, **query: Any) -> Any:
        return self.ask("GET", url, query=query)

    def blocks(
        self, method: str, url: str, body: Any = None, query: Mapping[str, Any] | None = None,
        content: Iterator[bytes] | None = None,
    ) -> Iterator[bytes]:  # fmt: skip
        """Stream the bytes of a response."""
        options: dict[str, Any] = {} if body is None else {"json": body}
        if content is not None:
            options.update(content=content, headers={"content-type": "application/json"})
        try:
            with self.raw.stream(method, url, params=without_none(query) if query else None, **options) as response:
                if response.status_code >= 400:
                    raise refusal(response.status_code, response.read(), response.url.path)
                yield from response.iter_bytes()
        except httpx2.TransportError as error:
            raise self.unreachable(error) from None

    def lines(self, method: str, url: str, body: Any = None, following: bytes | None = None) -> Iterator[Any]:
        """Iterate over the decoded lines of a streamed response; `following` is sent after the request."""
        rest = b""
        if following is None:
            blocks = self.blocks(method, url, body)
        else:
            content = iter((json.dumps(body).encode() + b"\n", following))
            blocks = self.blocks(method, url, query={"stdin": "follows"}, content=content)
        for block in blocks:
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield json.loads(line)

    def long(self, url: str, body: Mapping[str, Any], progress: Progress) -> Any:
        """Run a long operation: pass its progress to `progress`, return the report."""
        last: dict[str, Any] | None = None
        for row in self.lines("POST", url, {**without_none(body), "stream": True}):
            if "stage" in row:
                progress(row["stage"], row["done"], row["total"])
            else:
                last = row
        return report_of(last, url)

    def unreachable(self, error: httpx2.TransportError) -> RametError:
        return unreachable(self._address.url, error)


def unreachable(where: str, error: httpx2.TransportError) -> RametError:
    """Explain why a server does not respond, and what to check."""
    cause, _, remedy = why(error).partition("; ")
    return RametError("unavailable", f"cannot reach {where}: {cause}", remedy or "check that it runs")


def report_of(last: Mapping[str, Any] | None, url: str) -> Any:
    """Return the report in the last line of a streamed response."""
    if last is None:
        raise RametError("unavailable", "the server stopped before it finished", "see its log, then repeat")
    if "problem" in last:
        raise refusal(last["problem"]["status"], json.dumps(last["problem"]).encode(), url)
    return last.get("report", last)


def result_of(done: Mapping[str, Any], stdout: bytes, stderr: bytes) -> IOResult:
    return IOResult(
        stdout=stdout, stderr=stderr, exit_code=done["exit_code"], timed_out=done["timed_out"],
        truncated=done["truncated"], bytes_read=done["bytes_read"], bytes_written=done["bytes_written"],
        cache_hits=done["cache_hits"], duration=done["duration_ms"] / 1000,
    )  # fmt: skip


@contextmanager
def atomic_file(target: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that gets its name only when it is complete."""
    part = f"{os.fspath(target)}.part"
    try:
        with open(part, "wb") as file:
            yield file
        os.replace(part, target)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


async def async_lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Split a streamed response into lines."""
    rest = b""
    async for block in response.aiter_bytes():
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            yield line
