"""`SyncWorkspace`: the same workspace for scripts and notebooks, without `await`; works beside a running event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ramet.core.resource import Resource
from ramet.workspace.result import IOResult
from ramet.workspace.workspace import Workspace

T = TypeVar("T")


class SyncWorkspace:
    """Runs a Workspace on an event loop of its own, in a thread of its own.

    ws = SyncWorkspace({"/data": DiskResource("data")})
    print(ws.execute("ls /data").text)
    """

    def __init__(self, *args: Any, workspace: Workspace | None = None, **kwargs: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ramet-sync", daemon=True)
        self._thread.start()
        self.workspace = workspace or self._call(lambda: Workspace(*args, **kwargs))

    def __enter__(self) -> SyncWorkspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sync{self.workspace!r}"

    def _repr_html_(self) -> str:
        return self.workspace._repr_html_()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("the workspace is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _call(self, make: Callable[[], T]) -> T:
        async def act() -> T:
            return make()

        return self._run(act())

    def execute(self, command: str, *args: Any, **kwargs: Any) -> IOResult:
        """As `Workspace.execute`, but it returns the result. Ctrl-C stops the command."""

        async def act() -> IOResult:
            return await self.workspace.execute(command, *args, **kwargs)

        return self._run(act())

    def dispatch(self, op: str, path: str, *args: Any, **kwargs: Any) -> Any:
        return self._run(self.workspace.dispatch(op, path, *args, **kwargs))

    def mount(self, prefix: str, resource: Resource, *args: Any) -> None:
        self._call(lambda: self.workspace.mount(prefix, resource, *args))

    def unmount(self, prefix: str) -> Resource:
        return self._run(self.workspace.unmount(prefix))

    def snapshot(self, target: Any, compress: str | None = None) -> None:
        self._call(lambda: self.workspace.snapshot(target, compress))

    @classmethod
    def load(cls, source: Any, *args: Any, **kwargs: Any) -> SyncWorkspace:
        return cls(workspace=Workspace.load(source, *args, **kwargs))

    def copy(self) -> SyncWorkspace:
        return SyncWorkspace(workspace=self._call(self.workspace.copy))

    def close(self) -> None:
        """Close the workspace and its loop. Closing twice is fine."""
        if not self._thread.is_alive():
            return
        self._run(self.workspace.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
