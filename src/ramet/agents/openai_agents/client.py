"""`RametSandboxClient`: creates, resumes and deletes sandbox sessions, one workspace each."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Literal

from agents.sandbox.manifest import Manifest
from agents.sandbox.session import SandboxSession, SandboxSessionState
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.session.manager import Instrumentation
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot

from ramet.agents.openai_agents.open_sandboxes import OPEN, SessionSource, drop_sandbox, open_sandbox
from ramet.agents.openai_agents.session import RametSandboxSession, RametSandboxSessionState
from ramet.native.options import Native
from ramet.network.network import Network
from ramet.workspace.mounts import MountForm
from ramet.workspace.session import DEFAULT_AGENT_ID
from ramet.workspace.workspace import Workspace


class RametSandboxClientOptions(BaseSandboxClientOptions):
    """Options of a session in addition to its manifest. `exposed_ports` need `native=True`."""

    type: Literal["ramet"] = "ramet"
    exposed_ports: tuple[int, ...] = ()
    checkpoint_store: str | None = None
    """Store in which `persist_workspace` commits a revision; it returns a pointer instead of an archive."""

    def __init__(
        self,
        exposed_ports: tuple[int, ...] = (),
        checkpoint_store: str | None = None,
        *,
        type: Literal["ramet"] = "ramet",
    ) -> None:
        super().__init__(type=type, exposed_ports=exposed_ports, checkpoint_store=checkpoint_store)


class RametSandboxClient(BaseSandboxClient[RametSandboxClientOptions | None]):
    """Sandboxes that are workspaces: no container, no host process, no host file.

        session = await RametSandboxClient().create(manifest=Manifest(entries={"notes.txt": File(content=b"hi")}))
        async with session:
            print((await session.exec("cat notes.txt")).stdout)

    A session's files live in this process until `delete`; a snapshot keeps them longer. With `workspace`, all sessions
    share that workspace, and their changes stay in it.
    """

    backend_id = "ramet"
    supports_default_options = True

    def __init__(
        self,
        workspace: Workspace | None = None,
        *,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
        mounts: Mapping[str, MountForm] | None = None,
        agent_id: str = DEFAULT_AGENT_ID,
        allow_host_paths: bool = False,
        native: Native | bool | None = None,
        network: Network | Mapping[str, Any] | None = None,
    ) -> None:
        """Configure a client. Every session has `mounts`: absolute path to resource, or to (resource, mode).

        `agent_id` names the agent in the history: the SDK does not say which agent uses a session.

        A path grant with a `host_path` mounts that host directory. A grant with a path only is a path of the sandbox;
        with `allow_host_paths` it is that host directory, as with the SDK's local backend.

        With `workspace`, all sessions use it at the manifest's root (`/workspace`); you close it.

        With `native`, `exec` runs real programs such as `python3` too, in a box (`docs/native.md`), and `pty_*` use
        real terminals. `network` says which hosts a session may reach (`docs/network.md`), else none; a shared
        workspace has its own.
        """
        if network is not None and workspace is not None:
            raise ValueError("a shared workspace has its own network: pass it to Workspace(network=...)")
        self._instrumentation = instrumentation if instrumentation is not None else Instrumentation()
        self._dependencies = dependencies
        self._given = SessionSource(
            dict(mounts or {}), workspace, agent_id, allow_host_paths, native, Network.of(network)
        )

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: RametSandboxClientOptions | None = None,
    ) -> SandboxSession:
        manifest = Manifest() if manifest is None else manifest.model_copy(deep=True)
        check = getattr(self, "_validate_manifest_for_create", None)
        if check is not None:
            check(manifest)
        session_id = uuid.uuid4()
        state = RametSandboxSessionState(
            session_id=session_id,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            exposed_ports=() if options is None else options.exposed_ports,
            checkpoint_store=None if options is None else options.checkpoint_store,
        )
        return await self._open_session(state)

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """Resume a session: on its live files if this process has them, else on its snapshot once started."""
        if not isinstance(state, RametSandboxSessionState):
            raise TypeError("RametSandboxClient.resume expects a RametSandboxSessionState")
        check = getattr(state, "assert_path_grants_rebound", None)
        if check is not None:
            check()
        return await self._open_session(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, RametSandboxSession):
            raise TypeError("RametSandboxClient.delete expects a RametSandboxSession")
        await inner._end()
        await drop_sandbox(inner.state.session_id)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        parse = getattr(self, "_deserialize_session_state_payload", None)  # not in older versions of the SDK
        if parse is None:
            return RametSandboxSessionState.model_validate(payload)
        found: SandboxSessionState = parse(payload, RametSandboxSessionState)
        return found

    async def _open_session(self, state: RametSandboxSessionState) -> SandboxSession:
        preserved = state.session_id in OPEN
        inner = RametSandboxSession.from_state(state)
        inner._given = self._given
        inner._live = await open_sandbox(state.session_id, state.manifest, self._given)
        inner._set_start_state_preserved(preserved)
        return self._wrap_session(inner, instrumentation=self._instrumentation)
