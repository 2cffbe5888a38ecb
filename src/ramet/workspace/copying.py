"""Making a workspace out of another state: a snapshot that was opened, or a workspace that lives."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ramet.backends.disk import DiskResource
from ramet.core.errors import RametError
from ramet.core.resource import Forkable, Resource
from ramet.shell.interp.session_data import dump, load
from ramet.workspace.descriptors import dump_descriptors
from ramet.workspace.migrate import is_foreign, migrated
from ramet.workspace.mounts import Mount, MountForm
from ramet.workspace.snapshot import Opened
from ramet.workspace.state import (
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
    opened: Opened,
    resources: Mapping[str, Resource] | None,
    secrets: Mapping[str, str] | None,
    strict: bool,
    settings: Settings | None,
) -> Workspace:
    report = RestoreReport()
    if is_foreign(opened.manifest):
        opened.manifest = migrated(opened.manifest, report.add)
    check_version(opened.manifest)
    mounts: dict[str, Mount] = {}
    try:
        mounts_from(opened, resources, report, mounts)
        ws = kind(mounts, secrets=secrets, settings=settings)
        apply_state_dict(ws, opened, report)
        strict_or_report(report, strict)
    except BaseException as error:
        _discard(mounts, resources or {})
        # What the data made impossible (a path that cannot be, a name that is refused) is the data's fault.
        if isinstance(error, OSError) or (isinstance(error, RametError) and error.code != "snapshot_invalid"):
            raise ValueError(f"the snapshot cannot be loaded: {error}") from None
        raise
    ws.restored = report
    return ws


def _discard(mounts: Mapping[str, Mount], given: Mapping[str, Resource]) -> None:
    """Remove the directories that a failed load has made."""
    for mount in mounts.values():
        if isinstance(mount.resource, DiskResource) and not any(mount.resource is own for own in given.values()):
            shutil.rmtree(mount.resource.root, ignore_errors=True)


def copy_workspace(ws: Workspace) -> Workspace:
    mounts: dict[str, MountForm] = {
        str(mount.prefix): Mount(
            mount.prefix, copy_resource(mount.resource), mount.mode, mount.cached, mount.patience, mount.scratch
        )
        for mount in ws.mounts(scratch=True)
    }
    twin = type(ws)(mounts, secrets=ws.secrets.env(), policy=ws.policy, settings=ws.settings)
    adopt_kernel(twin, ws)
    return twin


def adopt_kernel(twin: Workspace, ws: Workspace) -> None:
    """Give `twin` everything of `ws` but its mounts: commands, history, cache, sessions."""
    twin.commands.adopt(ws.commands)
    twin.history.adopt(ws.history)
    twin.cached_files.adopt(ws.cached_files)
    twin.finished_jobs.extend(finished_jobs(ws))
    for session in ws.list_sessions():
        if session.session_id not in twin.sessions:
            twin.create_session(session.session_id)
        copied = twin.get_session(session.session_id)
        load(copied.state, dump(session.state))
        copied.state.cwd = session.cwd
        copied.reopen = [*session.reopen, *dump_descriptors(session.state)[0]]


def copy_resource(resource: Resource) -> Resource:
    """An independent twin where the bytes are ours, the resource itself where they are someone else's."""
    if isinstance(resource, Forkable):
        return resource.fork()
    if isinstance(resource, DiskResource):
        return _copy_disk(resource)
    return resource


def _copy_disk(disk: DiskResource) -> DiskResource:
    """The same tree in a fresh directory beside nothing of anybody: links stay links, times and modes stay."""
    target = tempfile.mkdtemp(prefix="ramet-")
    os.rmdir(target)
    shutil.copytree(disk.root, target, symlinks=True, copy_function=_copy_file, ignore=_special_files)
    return DiskResource(target)


def _copy_file(source: str, target: str) -> str:
    """One file by copy_file_range, which shares the blocks on file systems that can."""
    with open(source, "rb", buffering=0) as src, open(target, "xb", buffering=0) as dst:
        left = os.fstat(src.fileno()).st_size
        while left > 0 and (moved := os.copy_file_range(src.fileno(), dst.fileno(), left)):
            left -= moved
    shutil.copystat(source, target, follow_symlinks=False)
    return target


def _special_files(folder: str, names: list[str]) -> list[str]:
    """What cannot be copied: FIFOs, sockets, devices."""
    special: list[str] = []
    for name in names:
        path = os.path.join(folder, name)
        if not (os.path.islink(path) or os.path.isfile(path) or os.path.isdir(path)):
            special.append(name)
    return special
