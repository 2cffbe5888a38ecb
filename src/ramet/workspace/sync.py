"""`SyncWorkspace`: a synchronous workspace for scripts and notebooks, usable inside a running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ramet.core.limits import Limits
from ramet.core.resource import Resource
from ramet.workspace.history import MetaValue
from ramet.workspace.loop_thread import LoopThread
from ramet.workspace.result import IOResult
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID
from ramet.workspace.workspace import Stdin, Workspace


class SyncWorkspace:
    """Runs a Workspace on an event loop in a separate thread.

    ws = SyncWorkspace({"/data": DiskResource("data")})
    print(ws.execute("ls /data").text)
    """

    def __init__(self, *args: Any, workspace: Workspace | None = None, **kwargs: Any) -> None:
        self._thread = LoopThread("ramet-sync")
        self.workspace = workspace or self._thread.call(lambda: Workspace(*args, **kwargs))

    def __enter__(self) -> SyncWorkspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self.workspace!r}"

    def _repr_html_(self) -> str:
        return self.workspace._repr_html_()

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
        limits: Limits | None = None,
        cancel: asyncio.Event | None = None,
        meta: Mapping[str, MetaValue] | None = None,
    ) -> IOResult:
        """As `Workspace.execute`, but returns the result. Ctrl-C stops the command."""

        async def act() -> IOResult:
            return await self.workspace.execute(
                command, session_id, stdin, provision, agent_id, native, cwd=cwd, env=env, timeout=timeout,
                limits=limits, cancel=cancel, meta=meta,
            )  # fmt: skip

        return self._thread.run(act())

    def dispatch(self, op: str, path: str, *args: Any, **kwargs: Any) -> Any:
        return self._thread.run(self.workspace.dispatch(op, path, *args, **kwargs))

    def mount(self, prefix: str, resource: Resource, *args: Any) -> None:
        self._thread.call(lambda: self.workspace.mount(prefix, resource, *args))

    def unmount(self, prefix: str) -> Resource:
        return self._thread.run(self.workspace.unmount(prefix))

    def snapshot(self, target: Any, compress: str | None = None) -> None:
        self._thread.call(lambda: self.workspace.snapshot(target, compress))

    @classmethod
    def load(cls, source: Any, *args: Any, **kwargs: Any) -> SyncWorkspace:
        return cls(workspace=Workspace.load(source, *args, **kwargs))

    def copy(self) -> SyncWorkspace:
        return SyncWorkspace(workspace=self._thread.call(self.workspace.copy))

    def close(self) -> None:
        """Close the workspace and its loop. Idempotent."""
        if not self._thread.closed:
            self._thread.run(self.workspace.close())
            self._thread.close()
