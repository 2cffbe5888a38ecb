"""Authorization over HTTP: check the store's grants for principals.

With principals, the store trusts the server, and each request acts for its principal (`acting_for`): the repository
checks every name where it resolves it. This module checks what the repository cannot know: what a route does, memory
workspaces, sandboxes, and what is for the administrator. A workspace without a grant for the caller answers like a
missing one. Without principals, the store checks the server's own principal.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ramet.apps.server.request import Call
from ramet.apps.server.settings import ServerSettings
from ramet.core.errors import RametError
from ramet.store.refs.grants import ADMINISTRATOR, CALLER, TRUSTED, Access, acting_for
from ramet.store.refs.refs import NAME, not_found

if TYPE_CHECKING:
    from ramet.apps.server.open_workspaces import OpenSandbox, OpenWorkspaces
    from ramet.apps.server.routes import Route

READING: Final = tuple(f"/v1/workspaces/{{name}}/{verb}" for verb in ("fork", "jobs/{id}/wait", "bisect"))
"""POST routes that only read the workspace they name."""


SANDBOXES: Final = "/v1/sandboxes/"


class Authorization:
    """Check the store's grants before a request reaches its handler."""

    def __init__(self, workspaces: OpenWorkspaces, settings: ServerSettings) -> None:
        self._workspaces, self._repository = workspaces, None
        self._enforced = bool(settings.principals)
        self._own = ADMINISTRATOR
        if workspaces.store is not None and settings.principals:
            self._repository = workspaces.store.repository
            self._own, self._repository.principal = self._repository.principal or ADMINISTRATOR, TRUSTED

    def principal(self, call: Call) -> str | None:
        """Return the principal of the request's token, or the administrator; None without principals."""
        found: str = call.scope.get("ramet.principal", self._own)
        return found if self._enforced else None

    def as_principal(self, call: Call) -> contextlib.AbstractContextManager[None]:
        """Answer a request as its principal."""
        who = self.principal(call)
        return contextlib.nullcontext() if who is None else acting_for(who)

    async def check(self, call: Call, route: Route) -> None:
        if route.admin:
            self.administrator(call)
        if not self._enforced:
            return
        if (route.admin or route.care) and self.is_administrator(call):
            CALLER.set(TRUSTED)  # for the rest of this request: it concerns the whole store, or bypasses grants
            return
        if "{name}" not in route.path:
            return
        reads = route.method in ("GET", "HEAD") or route.path in READING
        name = self._workspace(call, call.parts[0], ended=route.path.startswith(SANDBOXES))
        if name is not None:
            await self.need(call, name, "readonly" if reads else "readwrite")
            if not (route.creates or self._workspaces.has(name)):
                await self._workspaces.blocking(self._require, name)

    def _require(self, name: str) -> None:
        """Answer for a missing workspace in the same words as for one without a grant, on every route."""
        if self._repository is None:
            raise not_found(name)
        self._repository.refs.require(name)

    def _workspace(self, call: Call, name: str, *, ended: bool = False) -> str | None:
        """Return the workspace whose grants apply; a sandbox uses its workspace's, and only its owner may use it."""
        sandbox = self._workspaces.sandbox(name, ended=ended)
        if sandbox is None:
            return name
        if not self.owns(call, sandbox):
            raise no_sandbox(name) if ended else not_found(name)
        return sandbox.sandbox.workspace

    def owns(self, call: Call, sandbox: OpenSandbox) -> bool:
        """Return whether the caller created the sandbox or has the server's own token."""
        return self.is_administrator(call) or self.principal(call) == sandbox.owner

    async def may_run(self, call: Call, name: str) -> None:
        """Refuse a caller that may not run commands in a workspace or a sandbox."""
        if not self._enforced:
            return
        found = self._workspace(call, name)
        if found is not None:
            await self.need(call, found, "readwrite")
        if not self._workspaces.has(name):
            await self._workspaces.blocking(self._require, name)

    async def need(self, call: Call, name: str, access: Access = "readonly") -> None:
        """Refuse a caller without this access; one without read access is told that the workspace is missing."""
        if not self._enforced:
            return
        if not self.sees_memory(call, name) or not NAME.fullmatch(name):
            raise not_found(name)
        if self._repository is not None:
            with self.as_principal(call):
                await self._workspaces.blocking(self._repository.check_access, name, access)

    def sees_memory(self, call: Call, name: str) -> bool:
        """Return whether a name is not a memory workspace of another principal."""
        hosted = self._workspaces.find(name)
        if hosted is None or hosted.kind != "memory":
            return True
        return self.is_administrator(call) or self.principal(call) == hosted.owner

    def is_administrator(self, call: Call) -> bool:
        return not self._enforced or self.principal(call) == self._own

    def administrator(self, call: Call) -> None:
        """Refuse principals' tokens: this needs the server's own."""
        if not self.is_administrator(call):
            raise RametError("permission_denied", "only the administrator may do this", "use the server's own token")

    async def grant(self, call: Call, name: str, principal: str, access: Access | None) -> None:
        """Grant or revoke access; the store records the calling principal, not the server's."""
        repository = self._workspaces.need_store().repository
        if self._repository is None:
            await self._workspaces.blocking(repository.grant, name, principal, access)
            return

        def put() -> None:
            repository.refs.require(name)
            granted = dict(repository.grants.of(name))
            if not granted and not self.is_administrator(call):
                raise RametError(
                    "permission_denied", f"cannot grant access to {name!r}: it belongs to all",
                    "ask the administrator of the server for the first grant", {"workspace": name},
                )  # fmt: skip
            if access is not None:
                granted[principal] = access
            elif granted.pop(principal, None) is None:
                raise RametError("not_found", f"{principal!r} has no grant on {name!r}", "see the list of grants")
            repository.grants.put(name, granted, self.principal(call))

        await self._workspaces.blocking(put)

    def sees(self, call: Call, name: str) -> bool:
        return self._repository is None or self._repository.grants.allows(self.principal(call), name)

    async def may_follow(self, call: Call, name: str | None) -> None:
        """Refuse events of a workspace without read access, and events of all without the server's own token."""
        if self.is_administrator(call):
            return
        if name is None:
            raise RametError(
                "permission_denied", "only the administrator may follow all workspaces", "name a workspace"
            )
        found = self._workspace(call, name)
        if found is not None:
            await self.need(call, found)


def no_sandbox(name: str) -> RametError:
    return RametError("not_found", f"no sandbox {name!r}", "create one, or list them")
