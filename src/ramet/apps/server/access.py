"""Authorization over HTTP: check the grants of the store for principals.

The server itself is trusted by its store then. Without principals it asks the store in its own name.
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
"""What is asked for by POST and changes nothing of the workspace that it names."""


SANDBOXES: Final = "/v1/sandboxes/"


class _PrincipalRef(StoredWorkspaceRef):
    """A reference for a principal: the store trusts the server, so `OTHER@REV` is asked about here."""

    def __init__(self, repository: Repository, name: str, principal: str | None) -> None:
        super().__init__(repository, name)
        self._principal = principal

    def find(self, revision: RevisionLike | None = None) -> Revision:
        text = spec_text(revision, self.name)
        if text is not None and "@" in text:
            self._repository.grants.check(self._principal, parse_address(text).name, "readonly")
        return super().find(revision)


class Authorization:
    """Asks the grants of the store before a request reaches its handler."""

    def __init__(self, workspaces: OpenWorkspaces, settings: ServerSettings) -> None:
        self._workspaces, self._repository = workspaces, None
        self._own: str | None = None
        if workspaces.store is not None and settings.principals:
            self._repository = workspaces.store.repository
            self._own, self._repository.principal = self._repository.principal, TRUSTED

    def principal(self, call: Call) -> str | None:
        """Who asks: who the token stands for, or the server itself."""
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
        """Whose grants count: those of a sandbox are its workspace's, and nobody but its owner gets that far."""
        sandbox = self._workspaces.sandbox(name, ended=ended)
        if sandbox is None:
            return name
        if not self.owns(call, sandbox):
            raise RametError("permission_denied", f"{name!r} is another's sandbox", "make one of your own")
        return sandbox.sandbox.workspace

    def owns(self, call: Call, sandbox: OpenSandbox) -> bool:
        """A sandbox is for who made it, and for the server's own token."""
        who = self.principal(call)
        return self._repository is None or who == self._own or who == sandbox.owner

    async def need(self, call: Call, name: str, access: Access = "readonly") -> None:
        """Refuse who may not do this with a workspace."""
        if self._repository is not None:
            await self._workspaces.blocking(self._repository.grants.check, self.principal(call), name, access)

    def is_administrator(self, call: Call) -> bool:
        return self._repository is None or self.principal(call) == self._own

    def administrator(self, call: Call) -> None:
        """Refuse who has not the server's own token, where others have tokens as well."""
        if not self.is_administrator(call):
            raise RametError(
                "permission_denied", "this is for the administrator of the server", "use the server's own token"
            )

    async def grant(self, call: Call, name: str, principal: str, access: Access | None) -> None:
        """Let a principal read or write, or take that back; the store learns who said so, and not the server's name."""
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
        """A workspace through which nobody sees others that they may not read."""
        if self._repository is None:
            return StoredWorkspaceRef(repository, name)
        return _PrincipalRef(repository, name, self.principal(call))

    def sees(self, call: Call, name: str) -> bool:
        return self._repository is None or self._repository.grants.allows(self.principal(call), name)

    async def forked(self, call: Call, name: str) -> None:
        """Let who made a fork write it, if it has grants at all."""
        repository, who = self._repository, self.principal(call)
        if repository is None or who is None:
            return
        granted = await self._workspaces.blocking(repository.grants.of, name)
        if granted and granted.get(who) != "readwrite":
            await self._workspaces.blocking(repository.grants.put, name, {**granted, who: "readwrite"}, who)

    async def may_follow(self, call: Call, name: str | None) -> None:
        """Events of one workspace are for those who may read it; those of all are for the server's own token."""
        if self._repository is None or self.principal(call) == self._own:
            return
        if name is None:
            raise RametError("permission_denied", "events of all workspaces are not for everybody", "name a workspace")
        found = self._workspace(call, name)
        if found is not None:
            await self.need(call, found)
