"""Authorization over HTTP: check the store's grants for principals.

With principals, the store trusts the server, and this module checks. Without them, the store checks the server's own
principal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ramet.apps.server.request import Call
from ramet.apps.server.settings import ServerSettings
from ramet.core.errors import RametError
from ramet.store.model.address import parse_address
from ramet.store.model.revisions import Revision
from ramet.store.refs.grants import TRUSTED, Access
from ramet.store.refs.resolve import RevisionLike, spec_text
from ramet.store.repository import Repository
from ramet.workspace.stored.reference import StoredWorkspaceRef

if TYPE_CHECKING:
    from ramet.apps.server.open_workspaces import OpenSandbox, OpenWorkspaces
    from ramet.apps.server.routes import Route

READING: Final = tuple(f"/v1/workspaces/{{name}}/{verb}" for verb in ("fork", "jobs/{id}/wait", "bisect"))
"""POST routes that only read the workspace they name."""


SANDBOXES: Final = "/v1/sandboxes/"


class _PrincipalRef(StoredWorkspaceRef):
    """A workspace reference that checks a principal's access to `OTHER@REV`."""

    def __init__(self, repository: Repository, name: str, principal: str | None) -> None:
        super().__init__(repository, name)
        self._principal = principal

    def find(self, revision: RevisionLike | None = None) -> Revision:
        text = spec_text(revision, self.name)
        if text is not None and "@" in text:
            self._repository.grants.check(self._principal, parse_address(text).name, "readonly")
        return super().find(revision)


class Authorization:
    """Check the store's grants before a request reaches its handler."""

    def __init__(self, workspaces: OpenWorkspaces, settings: ServerSettings) -> None:
        self._workspaces, self._repository = workspaces, None
        self._own: str | None = None
        if workspaces.store is not None and settings.principals:
            self._repository = workspaces.store.repository
            self._own, self._repository.principal = self._repository.principal, TRUSTED

    def principal(self, call: Call) -> str | None:
        """Return the principal of the request's token, or the server's own."""
        found: str | None = call.scope.get("ramet.principal", self._own)
        return found

    async def check(self, call: Call, route: Route) -> None:
        if route.admin:
            self.administrator(call)
        if self._repository is None or "{name}" not in route.path or (route.care and self.is_administrator(call)):
            return
        reads = route.method in ("GET", "HEAD") or route.path in READING
        name = self._workspace(call, call.parts[0], ended=route.path.startswith(SANDBOXES))
        if name is not None:
            await self.need(call, name, "readonly" if reads else "readwrite")

    def _workspace(self, call: Call, name: str, *, ended: bool = False) -> str | None:
        """Return the workspace whose grants apply; a sandbox uses its workspace's, and only its owner may use it."""
        sandbox = self._workspaces.sandbox(name, ended=ended)
        if sandbox is None:
            return name
        if not self.owns(call, sandbox):
            raise RametError("permission_denied", f"{name!r} is another principal's sandbox", "create your own")
        return sandbox.sandbox.workspace

    def owns(self, call: Call, sandbox: OpenSandbox) -> bool:
        """Return whether the caller created the sandbox or has the server's own token."""
        who = self.principal(call)
        return self._repository is None or who == self._own or who == sandbox.owner

    async def need(self, call: Call, name: str, access: Access = "readonly") -> None:
        """Refuse a caller without this access to a workspace."""
        if self._repository is not None:
            await self._workspaces.blocking(self._repository.grants.check, self.principal(call), name, access)

    def is_administrator(self, call: Call) -> bool:
        return self._repository is None or self.principal(call) == self._own

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
            if access is not None:
                granted[principal] = access
            elif granted.pop(principal, None) is None:
                raise RametError("not_found", f"{principal!r} has no grant on {name!r}", "see the list of grants")
            repository.grants.put(name, granted, self.principal(call))

        await self._workspaces.blocking(put)

    def reference(self, call: Call, repository: Repository, name: str) -> StoredWorkspaceRef:
        """Return a reference that hides workspaces the caller may not read."""
        if self._repository is None:
            return StoredWorkspaceRef(repository, name)
        return _PrincipalRef(repository, name, self.principal(call))

    def sees(self, call: Call, name: str) -> bool:
        return self._repository is None or self._repository.grants.allows(self.principal(call), name)

    async def forked(self, call: Call, name: str) -> None:
        """Give the creator of a fork write access, if the fork has grants."""
        repository, who = self._repository, self.principal(call)
        if repository is None or who is None:
            return
        granted = await self._workspaces.blocking(repository.grants.of, name)
        if granted and granted.get(who) != "readwrite":
            await self._workspaces.blocking(repository.grants.put, name, {**granted, who: "readwrite"}, who)

    async def may_follow(self, call: Call, name: str | None) -> None:
        """Refuse events of a workspace without read access, and events of all without the server's own token."""
        if self._repository is None or self.principal(call) == self._own:
            return
        if name is None:
            raise RametError(
                "permission_denied", "only the administrator may follow all workspaces", "name a workspace"
            )
        found = self._workspace(call, name)
        if found is not None:
            await self.need(call, found)
