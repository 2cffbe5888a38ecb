"""`SyncWorkspace`: a synchronous workspace for scripts and notebooks, usable inside a running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Unpack

from ramet.core.limits import Limits
from ramet.core.resource import Resource
from ramet.native.options import NativeForm
from ramet.network.network import Network
from ramet.workspace.loop_thread import LoopThread
from ramet.workspace.mounts import MountForm, MountMode
from ramet.workspace.operations import Operation, OperationKeywords
from ramet.workspace.policy import Policy
from ramet.workspace.record.history import MetaValue
from ramet.workspace.result import IOResult
from ramet.workspace.session import DEFAULT_AGENT_ID, DEFAULT_SESSION_ID
from ramet.workspace.snapshot.archive import Target
from ramet.workspace.workspace import Settings, Stdin, Workspace


class SyncWorkspace:
    """Runs a Workspace on an event loop in a separate thread.

    ws = SyncWorkspace({"/data": DiskResource("data")})
    print(ws.execute("ls /data").text)
    """

    def __init__(
        self,
        mounts: Mapping[str, MountForm] | None = None,
        *,
        workspace: Workspace | None = None,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        settings: Settings | None = None,
        native: NativeForm | None = None,
        network: Network | Mapping[str, Any] | None = None,
    ) -> None:
        """Make a workspace, or take one that is not used in another loop."""
        given: dict[str, Any] = {
            "mounts": mounts, "env": env, "secrets": secrets, "policy": policy, "limits": limits,
            "settings": settings, "native": native, "network": network,
        }  # fmt: skip
        if workspace is not None and (extra := [name for name, value in given.items() if value is not None]):
            raise TypeError(f"cannot pass {', '.join(extra)} with a workspace")
        self._thread = LoopThread("ramet-sync")
        self.workspace = workspace or self._thread.call(lambda: Workspace(**given))

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

    def dispatch(
        self,
        op: Operation,
        path: str,
        *args: Any,
        session_id: str = DEFAULT_SESSION_ID,
        **options: Unpack[OperationKeywords],
    ) -> Any:
        """As `Workspace.dispatch`, but returns the result."""
        return self._thread.run(self.workspace.dispatch(op, path, *args, session_id=session_id, **options))

    def mount(self, prefix: str, resource: Resource, mode: MountMode | str = MountMode.WRITE) -> None:
        """Mount a resource; visible to all sessions at once."""
        self._thread.call(lambda: self.workspace.mount(prefix, resource, mode))

    def unmount(self, prefix: str) -> Resource:
        """Remove a mount, and return its open resource."""
        return self._thread.run(self.workspace.unmount(prefix))

    def snapshot(self, target: Target, compress: str | None = None) -> None:
        """As `Workspace.snapshot`."""
        self._thread.call(lambda: self.workspace.snapshot(target, compress))

    @classmethod
    def load(
        cls,
        source: Target,
        resources: Mapping[str, Resource] | None = None,
        *,
        secrets: Mapping[str, str] | None = None,
        strict: bool = False,
        max_bytes: int | None = None,
        settings: Settings | None = None,
    ) -> SyncWorkspace:
        """As `Workspace.load`."""
        loaded = Workspace.load(
            source, resources, secrets=secrets, strict=strict, max_bytes=max_bytes, settings=settings
        )
        return cls(workspace=loaded)

    def copy(self) -> SyncWorkspace:
        """As `Workspace.copy`."""
        return SyncWorkspace(workspace=self._thread.call(self.workspace.copy))

    def close(self) -> None:
        """Close the workspace and its loop. Idempotent."""
        if not self._thread.closed:
            self._thread.run(self.workspace.close())
            self._thread.close()
