"""The rendezvous server: git over HTTP behind a token, as an ASGI application.

It wraps `git http-backend`. Every request needs the token, compared in constant time. The first push to a name creates
its repository. Only authenticated requests may push.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

REPOSITORY: Final = re.compile(
    r"/([A-Za-z0-9][A-Za-z0-9._-]{0,99}?)(?:\.git)?(/info/refs|/git-upload-pack|/git-receive-pack|/HEAD)"
)
BLOCK: Final = 256 * 1024


def rendezvous(folder: str, token: str) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Return the application: bare repositories in `folder`, for clients with the token (and any user name)."""
    git = shutil.which("git")
    if git is None:
        raise RuntimeError("git is not installed")
    if not token:
        raise ValueError("a rendezvous server needs a token")
    folder = os.path.abspath(folder)
    os.makedirs(folder, mode=0o700, exist_ok=True)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not _allowed(headers.get("authorization", ""), token):
            challenge = [(b"www-authenticate", b'Basic realm="ramet"'), (b"content-type", b"text/plain")]
            await _answer(send, 401, challenge, b"authentication is required\n")
            return
        path = scope["path"][len(scope.get("root_path", "")) :] if scope.get("root_path") else scope["path"]
        found = REPOSITORY.fullmatch(path)
        query = scope.get("query_string", b"").decode("latin-1")
        if found is None:
            await _answer(send, 404, [(b"content-type", b"text/plain")], b"not found\n")
            return
        place = os.path.join(folder, found[1] + ".git")
        pushing = found[2] == "/git-receive-pack" or "service=git-receive-pack" in query
        if not _exists(place):
            if not pushing:
                await _answer(send, 404, [(b"content-type", b"text/plain")], b"no such repository\n")
                return
            await asyncio.to_thread(_make, git, place)
        await _backend(
            git, folder, f"/{found[1]}.git{found[2]}", query, scope["method"], headers, pushing, receive, send
        )

    return app


def _allowed(given: str, token: str) -> bool:
    kind, _, value = given.partition(" ")
    try:
        password = base64.b64decode(value, validate=True).decode().partition(":")[2] if kind.lower() == "basic" else ""
    except (binascii.Error, ValueError):
        password = ""
    return hmac.compare_digest(password.encode(), token.encode())


def _exists(place: str) -> bool:
    return os.path.isdir(place)


def _make(git: str, place: str) -> None:
    subprocess.run([git, "init", "--quiet", "--bare", place], check=True, env=_environment(), capture_output=True)


def _environment() -> dict[str, str]:
    quiet = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TEMPLATE_DIR": "", "LC_ALL": "C"}
    return {"PATH": os.environ.get("PATH", ""), **quiet}


async def _backend(
    git: str, folder: str, path: str, query: str, method: str, headers: dict[str, str], pushing: bool,
    receive: Receive, send: Send,
) -> None:  # fmt: skip
    env = {
        **_environment(), "GIT_PROJECT_ROOT": folder, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
        "QUERY_STRING": query, "REQUEST_METHOD": method, "REMOTE_USER": "rendezvous", "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_TYPE": headers.get("content-type", ""), "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
    }  # fmt: skip
    for name, variable in (("content-encoding", "HTTP_CONTENT_ENCODING"), ("git-protocol", "HTTP_GIT_PROTOCOL")):
        if name in headers:
            env[variable] = headers[name]
    if "content-length" in headers:
        env["CONTENT_LENGTH"] = headers["content-length"]
    words = [git, "-c", f"http.receivepack={'true' if pushing else 'false'}", "http-backend"]
    process = await asyncio.create_subprocess_exec(
        *words,
        env=env,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    feeding = asyncio.ensure_future(_feed(process, receive))
    try:
        await _relay(process, send)
    finally:
        feeding.cancel()
        if process.returncode is None:
            try:
                process.kill()
            except ProcessLookupError:
                pass  # already exited
        await asyncio.gather(feeding, return_exceptions=True)
        await process.wait()


async def _feed(process: asyncio.subprocess.Process, receive: Receive) -> None:
    assert process.stdin is not None
    try:
        while True:
            message = await receive()
            if message["type"] != "http.request":
                break
            process.stdin.write(message.get("body", b""))
            await process.stdin.drain()
            if not message.get("more_body", False):
                break
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # git has closed its input


async def _relay(process: asyncio.subprocess.Process, send: Send) -> None:
    """Send the response of a CGI program: its header lines, then the body as it arrives."""
    assert process.stdout is not None
    status, fields = 200, []
    while line := (await process.stdout.readline()).rstrip(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"status":
            status = int(value.split()[0])
        else:
            fields.append((name.lower(), value.strip()))
    await send({"type": "http.response.start", "status": status if fields else 500, "headers": fields})
    while block := await process.stdout.read(BLOCK):
        await send({"type": "http.response.body", "body": block, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
