"""Sandboxes over HTTP: bound to a workspace, addressed like one, ended with one revision.

A sandbox commits once, at its end: by `terminate`, lifetime, idle time, or server shutdown. Until then it holds the
workspace exclusively.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ramet.apps.server import models
from ramet.apps.server.access import no_sandbox
from ramet.apps.server.handlers.maintenance import allowed_remote
from ramet.apps.server.open_workspaces import git_settings
from ramet.apps.server.request import Call, Reply, answer, decode_json
from ramet.apps.server.serialize import revision_info
from ramet.core.errors import RametError
from ramet.store.refs.refs import NAME, not_found
from ramet.workspace.stored.git_push import push_target

if TYPE_CHECKING:
    from ramet.apps.server.api import Api
    from ramet.apps.server.open_workspaces import OpenSandbox


def _info(found: OpenSandbox) -> models.SandboxInfo:
    sandbox = found.sandbox
    return models.SandboxInfo(
        sandbox.name, sandbox.workspace, "Ready" if found.ended_at is None else "Terminated", sandbox.image or "",
        found.created_at, found.ended_at, None if sandbox.revision is None else revision_info(sandbox.revision),
        [models.PushedBranch(one.branch, one.remote, one.commit) for one in sandbox.pushed], list(sandbox.warnings),
    )  # fmt: skip


def _find_sandbox(api: Api, name: str) -> OpenSandbox:
    found = api.workspaces.sandboxes.get(name)
    if found is None:
        raise no_sandbox(name)
    return found


async def sandboxes(api: Api, call: Call) -> Reply:
    live = [
        found for found in api.workspaces.sandboxes.values() if found.ended_at is None and api.access.owns(call, found)
    ]
    return answer(models.Sandboxes([_info(found) for found in live]))


async def sandbox(api: Api, call: Call) -> Reply:
    return answer(_info(_find_sandbox(api, call.parts[0])))


async def create(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.CreateSandbox)
    if asked.workspace is not None and not NAME.fullmatch(asked.workspace):
        raise not_found(asked.workspace)
    for name, value in {**asked.env, **asked.secrets}.items():
        if not (name.isidentifier() and name.isascii()) or "\0" in value:
            raise RametError("invalid_argument", f"{name!r} cannot be an environment variable", "use letters, digits")
    if asked.workspace is not None:
        await api.access.need(call, asked.workspace, "readwrite")
    made = await api.workspaces.add_sandbox(asked, api.access.principal(call))
    api.events.add("sandbox", made.name, workspace=asked.workspace or "", phase="Ready")
    return answer(_info(made), 201)


async def terminate(api: Api, call: Call) -> Reply:
    asked = decode_json(await call.body(api.settings.bounds.json_bytes), models.Terminate)
    found = _find_sandbox(api, call.parts[0])
    wanted = found.sandbox.wanted(asked.outputs, asked.checkpoint)
    for output in wanted.git:
        allowed_remote(api, push_target(output, git_settings(found.asked), found.name)[0])
    await api.workspaces.end_sandbox(found, wanted)
    api.events.add("sandbox", found.name, workspace=found.sandbox.workspace or "", phase="Terminated")
    return answer(_info(found))
