"""Create a workspace from a snapshot or from a live workspace."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.host_copy import copy_tree
from ramet.core.errors import RametError
from ramet.core.resource import Forkable, Resource
from ramet.native.tree import TreeResource
from ramet.shell.interp.state.serialize import copy
from ramet.workspace.descriptors import dump_descriptors
from ramet.workspace.mounts import Mount, MountForm, in_order
from ramet.workspace.snapshot.archive import SnapshotReader
from ramet.workspace.snapshot.mirage import is_mirage, migrate
from ramet.workspace.snapshot.state import (
    RestoreReport,
    apply_state_dict,
    check_version,
    finished_jobs,
    mounts_from,
    strict_or_report,
)

if TYPE_CHECKING:
    from ramet.workspace.workspace import Settings, Workspace


def load_workspace(
    kind: type[Workspace],
    opened: SnapshotReader,
    resources: Mapping[str, Resource] | None,
    secrets: Mapping[str, str] | None,
    strict: bool,
    settings: Settings | None,
) -> Workspace:
    report = RestoreReport()
    if is_mirage(opened.manifest):
        opened.manifest = migrate(opened.manifest, report.add)
    check_version(opened.manifest)
    mounts: dict[str, Mount] = {}
    try:
        mounts_from(opened, resources, report, mounts)
        ws = kind(mounts, secrets=secrets, settings=settings)
        apply_state_dict(ws, opened, report)
        strict_or_report(report, strict)
    except BaseException as error:
        _discard(mounts, resources or {})
        # An error caused by the data of the snapshot is a ValueError.
        if isinstance(error, OSError) or (isinstance(error, RametError) and error.code != "snapshot_invalid"):
            raise ValueError(f"cannot load the snapshot: {error}") from None
        raise
    ws.restored = report
    return ws


def _discard(mounts: Mapping[str, Mount], given: Mapping[str, Resource]) -> None:
    """Remove the directories of a failed load."""
    for mount in mounts.values():
        if mount.directory is not None and not any(mount.resource is own for own in given.values()):
            shutil.rmtree(mount.directory, ignore_errors=True)


def copy_workspace(ws: Workspace) -> Workspace:
    frozen = frozen_trees(ws)
    mounts: dict[str, MountForm] = {}
    for mount in in_order(ws._mounts):
        prefix, mode = str(mount.prefix), mount.mode
        resource = frozen.get(prefix) or copy_resource(mount.resource)
        mounts[prefix] = Mount(mount.prefix, resource, mode, mount.cached, mount.patience, mount.scratch)
    twin = type(ws)(
        mounts, secrets=ws.secrets.env(), policy=ws.policy, settings=ws.settings, native=ws.native, network=ws.network,
    )  # fmt: skip
    adopt_kernel(twin, ws)
    return twin


def frozen_trees(ws: Workspace) -> Mapping[str, Resource]:
    """Return the trees of native programs as layers to share; none while a program runs or a file is open."""
    return ws.programs.freeze() if ws.programs is not None and nothing_open(ws) else {}


def nothing_open(ws: Workspace) -> bool:
    """Whether no session runs a command or a job, or has a file open."""
    return not any(
        session.running is not None
        or session.state.fds.keys() - {0, 1, 2}
        or any(job.running for job in session.state.jobs.jobs)
        for session in ws.sessions.started()
    )


def adopt_kernel(twin: Workspace, ws: Workspace) -> None:
    """Copy everything but the mounts to `twin`: commands, history, cache, sessions."""
    twin.commands.adopt(ws.commands)
    twin.history.adopt(ws.history)
    twin.cached_files.adopt(ws.cached_files)
    twin.finished_jobs.extend(finished_jobs(ws))
    for session in ws.list_sessions():
        if session.session_id not in twin.sessions:
            twin.create_session(session.session_id)
        copied = twin.get_session(session.session_id)
        copy(session.state, copied.state)
        copied.state.cwd = session.cwd
        copied.reopen = [*session.reopen, *dump_descriptors(session.state)[0]]


def copy_resource(resource: Resource) -> Resource:
    """Return an independent copy of a local resource, or the same remote resource."""
    if isinstance(resource, Forkable):
        return resource.fork()
    if isinstance(resource, TreeResource):
        return resource.as_memory()
    if isinstance(resource, DiskResource):
        return _copy_disk(resource)
    return resource


def _copy_disk(disk: DiskResource) -> DiskResource:
    """Copy the tree to a new temporary directory."""
    twin = DiskResource.temporary()
    copy_tree(disk.root, twin.root)
    return twin
