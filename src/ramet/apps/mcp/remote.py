"""MCP tools on a workspace of a server: every file operation is a request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ramet.apps.client.reference import RemoteRef
from ramet.apps.client.workspace import RemoteWorkspace
from ramet.core.errors import RametError
from ramet.core.paths import ROOT, Path, parse
from ramet.core.stat import Stat
from ramet.workspace.agent.tools import Toolbox
from ramet.workspace.session import DEFAULT_SESSION_ID


class ToolFiles:
    """The file operations that tools use."""

    def __init__(self, ws: RemoteWorkspace, session_id: str) -> None:
        self._ws, self._session = ws, session_id

    async def stat(self, path: Path, follow: bool = False) -> Stat:
        return await self._ws.stat(path, follow, session_id=self._session)

    async def scan(self, path: Path) -> AsyncIterator[tuple[str, Stat]]:
        for entry in await self._ws.scan(path, session_id=self._session):
            yield entry

    async def read(self, path: Path) -> AsyncIterator[bytes]:
        async for block in self._ws.stream(path, session_id=self._session):
            yield block

    async def write(self, path: Path, data: bytes, *, if_version: str | None = None) -> Stat:
        return await self._ws.write(path, data, if_version=if_version, session_id=self._session)

    async def mkdir(self, path: Path) -> None:
        await self._ws.mkdir(path, session_id=self._session)


class RemoteToolbox(Toolbox):
    """A toolbox on a workspace of a server."""

    def __init__(self, ws: RemoteWorkspace, handle: RemoteRef, session_id: str = DEFAULT_SESSION_ID) -> None:
        super().__init__(ws, session_id)
        self.name, self._handle = ws.name, handle
        self._files, self._cwd = ToolFiles(ws, session_id), ROOT

    async def ready(self) -> None:
        """Fetch the session's working directory: other commands may have changed it."""
        try:
            self._cwd = parse((await self.ws.get_session(self.session_id)).cwd)
        except RametError as error:
            if error.code != "session_not_found":
                raise
            self._cwd = ROOT  # the first command creates the session

    @property
    def fs(self) -> Any:
        return self._files

    def path(self, text: str) -> Path:
        return parse(text, self._cwd)

    def stored(self) -> tuple[Any, Any]:
        return self.ws, self._handle

    async def store_output(self, path: Path, data: bytes) -> None:
        await self._files.write(path, data)
