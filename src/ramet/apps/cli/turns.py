"""Turns of a bound directory: the process of `ramet bind` commits and rewinds when `ramet turn` or `rewind` asks it.

One line of JSON each way over a unix socket in a directory of this user: {"do": "turn", "message"} or {"do": "rewind",
"to"}, and {"revision", "changed"} or {"error": {"code", "cause", "remediation"}}.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat as modes
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from ramet.apps.cli.live_mounts import restore
from ramet.apps.cli.options import user_name
from ramet.core.errors import RametError

if TYPE_CHECKING:
    from ramet.workspace.stored.workspace import StoredWorkspace

LOOK_SECONDS: Final = 0.5
LINE_BYTES: Final = 1 << 20
ANSWER_SECONDS: Final = 600.0


def socket_path(store: str, name: str) -> str:
    """Return where the process that has bound a workspace listens."""
    folder = f"{os.environ.get('XDG_RUNTIME_DIR', '/tmp')}/ramet-turns-{os.geteuid()}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not modes.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise RametError("permission_denied", f"cannot use {folder}: it belongs to others", "Set XDG_RUNTIME_DIR.")
    return f"{folder}/{sha256(repr((store, name)).encode()).hexdigest()[:24]}"


def ask(store: str, name: str, **request: object) -> dict[str, Any]:
    """Ask the process that has bound a workspace; raise its error."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(ANSWER_SECONDS)
        try:
            sock.connect(socket_path(store, name))
        except (FileNotFoundError, ConnectionRefusedError):
            raise RametError("not_found", f"{name} is not bound on this machine", "Start `ramet bind` first.") from None
        sock.sendall(json.dumps(request).encode() + b"\n")
        with sock.makefile("rb") as file:
            answer: dict[str, Any] = json.loads(file.readline() or b"{}")
    if "revision" not in answer:
        error = answer.get("error") or {"code": "internal", "cause": "the bound process ended", "remediation": ""}
        raise RametError(error["code"], error["cause"], error["remediation"])
    return answer


class Turns:
    """The turns of one open workspace whose mount at `prefix` is the directory `folder`."""

    def __init__(self, ws: StoredWorkspace, folder: str, prefix: str) -> None:
        self._ws, self._folder, self._prefix = ws, folder, prefix
        self._lock = asyncio.Lock()

    async def turn(self, message: str, subject: str = "a turn") -> tuple[str, bool]:
        """Commit what changed; return the name of the head, and whether it is new."""
        async with self._lock:
            return await self._commit(message, subject)

    async def _commit(self, message: str, subject: str) -> tuple[str, bool]:
        before = self._ws.base
        made = await self._ws.commit(message, subject=subject, author=user_name())
        return made.name, before is None or made.id != before.id

    async def rewind(self, to: str | None) -> tuple[str, bool]:
        """Commit, then make the directory what it was at a revision, by default the one before the last turn.

        Files that no revision has, such as those with credentials, stay.
        """
        async with self._lock:
            ws = self._ws
            await self._commit("", "before a rewind")
            head = ws.base
            assert head is not None
            target = await asyncio.to_thread(ws.repository.resolve, f"{ws.name}@{to or 'head~1'}")
            found = await asyncio.to_thread(lambda: ws.repository.diff(head, target, renames=False))
            with ws.recording("command", f"rewind to {target.name}"):
                await restore(ws, found)
            return await self._commit("", f"rewind to {target.name}")

    # ------------------------------------------------------------------------------------------------ requests

    @asynccontextmanager
    async def served(self, where: str) -> AsyncIterator[None]:
        """Answer requests at a socket."""
        if os.path.lexists(where):  # noqa: ASYNC240
            os.unlink(where)  # of a process that was killed: the lease says that no other runs
        server = await asyncio.start_unix_server(self._answer, where, limit=LINE_BYTES)
        try:
            yield
        finally:
            server.close()
            with suppress(FileNotFoundError):  # since 3.13 the server removes it
                os.unlink(where)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            if request.get("do") == "rewind":
                name, changed = await self.rewind(request.get("to"))
            else:
                name, changed = await self.turn(str(request.get("message", "")))
            answer: dict[str, object] = {"revision": name, "changed": changed}
        except RametError as error:
            answer = {"error": {"code": error.code, "cause": error.cause, "remediation": error.remediation}}
        except (OSError, ValueError) as error:
            answer = {"error": {"code": "internal", "cause": str(error), "remediation": "Try again."}}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def turn_when_idle(self, seconds: float, seen: int) -> None:
        """Make a turn whenever something changed since `seen` and then nothing for a while."""
        since, committed = time.monotonic(), True
        while True:
            await asyncio.sleep(min(LOOK_SECONDS, seconds))
            now = await asyncio.to_thread(self.state)
            if now != seen:
                seen, since, committed = now, time.monotonic(), False
            elif not committed and time.monotonic() - since >= seconds:
                await self.turn("", "a turn, after a pause")
                committed = True

    def state(self) -> int:
        """Return what differs after every change of the directory."""
        found, todo = 0, [self._folder]
        while todo:
            try:
                with os.scandir(todo.pop()) as entries:
                    for entry in entries:
                        stat = entry.stat(follow_symlinks=False)
                        found ^= hash((entry.path, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino))
                        if entry.is_dir(follow_symlinks=False) and entry.name != ".git":
                            todo.append(entry.path)
            except FileNotFoundError:
                continue  # removed meanwhile
        return found
