"""The state of a workspace as plain data with blobs, for snapshots, copies and revisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ramet.backends.local.disk import DiskResource
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.core.resource import Quick, Resource
from ramet.layers.memory_cache import Entry
from ramet.workspace.descriptors import check_descriptors, dump_descriptors
from ramet.workspace.mounts import Mount, as_mode, in_order
from ramet.workspace.record.history import ExecutionRecord
from ramet.workspace.snapshot.archive import VERSION, Blob, SnapshotReader
from ramet.workspace.snapshot.redaction import redact_secrets, redacted_variables
from ramet.workspace.snapshot.resource_codec import LOADERS, fill_disk, restore_data, save_resource

if TYPE_CHECKING:
    from ramet.workspace.workspace import Workspace

FORMAT = "ramet"


@dataclass
class RestoreReport:
    """What a load could not restore; empty on success."""

    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def add(self, problem: str) -> None:
        self.problems.append(problem)


def to_state_dict(ws: Workspace, *, content: bool = True, history_from: int = 0) -> dict[str, Any]:
    """Capture the state. Blobs are lazy: they are read when the state is written.

    Without `content`, only the kernel state: a revision stores mounts, content and the history before `history_from`
    separately.
    """
    left_out: list[str] = []
    mounts = [_mount_state(mount, left_out.append) for mount in in_order(ws._mounts)] if content else []
    if not content:
        left_out += [
            f"{mount.prefix / path[1:]}: a named pipe"
            for mount in ws.mounts(scratch=True)
            if mount.memory is not None and isinstance(mount.memory, Quick)
            for path in mount.memory.fifos()
        ]
    for session in ws.list_sessions():
        _, lost = dump_descriptors(session.state)
        if lost and content:
            left_out.append(f"session {session.session_id}: open descriptors {', '.join(map(str, lost))}")
    return {
        "format": FORMAT,
        "version": VERSION,
        **({"created_at": ws.settings.clock()} if content else {}),
        "mounts": [mount for mount in mounts if not (mount["scratch"] and not mount["files"] and not mount["dirs"])],
        "sessions": [_session_state(ws, session.session_id) for session in ws.list_sessions()],
        "max_drain_bytes": ws.settings.max_drain_bytes,
        "dirty_inodes": [],
        "cache": {"entries": _cache_state(ws) if content else []},
        "history": {"records": [record.as_dict() for record in ws.history.after(history_from - 1)]},
        "jobs": finished_jobs(ws),
        "left_out": left_out,
    }


def _mount_state(mount: Mount, missing: Callable[[str], None]) -> dict[str, Any]:
    where = {"prefix": str(mount.prefix), "mode": mount.mode.value, "scratch": mount.scratch}
    return {**where, **save_resource(mount.resource, missing)}


def _session_state(ws: Workspace, session_id: str) -> dict[str, Any]:
    from ramet.shell.interp.state.serialize import dump

    session = ws.get_session(session_id)
    return {
        "session_id": session_id,
        "cwd": str(session.cwd),
        "env": ws.secrets.scrub_env(session.env),
        "last_exit_code": session.last_exit_code,
        "shell": redact_secrets(ws.secrets, dump(session.state)),
        "descriptors": redact_secrets(ws.secrets, [*session.reopen, *dump_descriptors(session.state)[0]]),
    }


def _cache_state(ws: Workspace) -> list[dict[str, Any]]:
    return [
        {
            "path": str(path),
            "fingerprint": entry.fingerprint,
            "ttl": entry.ttl,
            "cached_at": entry.cached_at,
            "data": Blob.of(entry.data),
        }
        for path, entry in ws.cached_files.entries.items()
    ]


def finished_jobs(ws: Workspace) -> list[dict[str, Any]]:
    """Return finished jobs; running ones cannot be saved."""
    return ws.finished_jobs + [
        {
            "session_id": session.session_id,
            "id": job.id,
            "command": ws.secrets.scrub_text(job.text),
            "status": job.state.name,
            "exit_code": job.status,
        }
        for session in ws.list_sessions()
        for job in session.state.jobs.finished()
    ]


# ------------------------------------------------------------------------------------------------------ loading


def check_version(manifest: Mapping[str, Any]) -> None:
    version = manifest.get("version")
    if version != VERSION or manifest.get("format") != FORMAT:
        raise ValueError(f"this snapshot has version {version!r}; only version {VERSION} can be loaded")


def mounts_from(
    opened: SnapshotReader, resources: Mapping[str, Resource] | None, report: RestoreReport, mounts: dict[str, Mount]
) -> None:
    """Fill `mounts` from a snapshot, with the caller's resources for those that were not saved."""
    states = opened.manifest.get("mounts")
    if not isinstance(states, list) or not all(isinstance(state, dict) for state in states):
        raise ValueError("the manifest has no list of mounts")
    given = {str(parse(prefix)): resource for prefix, resource in (resources or {}).items()}
    prefixes = [_prefix(state) for state in states]
    if len(set(prefixes)) != len(prefixes):
        raise ValueError("the manifest mounts something twice at one prefix")
    missing = [
        prefix
        for prefix, state in zip(prefixes, states, strict=True)
        if (state.get("needs_override") or state.get("type") not in LOADERS) and prefix not in given
    ]
    if missing:
        raise ValueError(
            f"Workspace.load: resources= must include overrides for: {missing}. These mounts were saved with "
            "redacted creds or transient connection state and need fresh resources."
        )
    unknown = sorted(set(given) - set(prefixes))
    if unknown:
        report.add(f"resources= names prefixes that the snapshot does not mount: {unknown}")
    for prefix, state in zip(prefixes, states, strict=True):
        resource = _resource_for(state, given.get(prefix), opened)
        mounts[prefix] = Mount(
            parse(prefix), resource, as_mode(state.get("mode", "write")), scratch=bool(state.get("scratch"))
        )
    left_out = opened.manifest.get("left_out", [])
    for problem in left_out if isinstance(left_out, list) else ():
        report.add(f"not in the snapshot: {problem}")


def _prefix(state: Mapping[str, Any]) -> str:
    prefix = state.get("prefix")
    if not isinstance(prefix, str) or not prefix.startswith("/"):
        raise ValueError("a mount of the manifest has no absolute prefix")
    return str(parse(prefix))


def _resource_for(state: dict[str, Any], given: Resource | None, opened: SnapshotReader) -> Resource:
    kind = state.get("type")
    if given is None:
        return LOADERS[str(kind)](state, opened.blob)
    if kind == "disk" and isinstance(given, DiskResource):
        fill_disk(given, state, opened.blob)  # the caller chose the directory
    else:
        restore_data(given, state, opened.blob)
    return given


def apply_state_dict(ws: Workspace, opened: SnapshotReader, report: RestoreReport) -> None:
    """Restore sessions, cache, history and jobs into a workspace that has its mounts."""
    from ramet.shell.expand.values import EXPORT
    from ramet.shell.interp.state.serialize import load

    manifest = opened.manifest
    given = {**(ws.network.environment if ws.network is not None else {}), **ws.secrets.env()}
    for plain in _list(manifest, "sessions"):
        session_id = plain.get("session_id")
        if not isinstance(session_id, str):
            raise ValueError("a session of the manifest has no id")
        if session_id not in ws.sessions:
            ws.create_session(session_id)
        session = ws.get_session(session_id)
        for problem in load(session.state, _object(plain, "shell"), partial=bool(plain.get("partial"))):
            report.add(f"session {session_id}: {problem}")
        cwd = plain.get("cwd", "/")
        session.state.cwd = parse(cwd if isinstance(cwd, str) and cwd.startswith("/") else "/")
        session.reopen = check_descriptors(plain.get("descriptors", []))
        for name, value in given.items():
            session.state.variables.set(name, value)
            session.state.variables.flag(name, EXPORT)
        if redacted := redacted_variables(_object(plain, "env"), ws.secrets):
            report.add(f"session {session_id}: secret variables were not saved: {', '.join(redacted)}")
    for plain in _list(_object(manifest, "cache"), "entries"):
        ws.cached_files.put(parse(_path(plain)), _entry(plain, opened))
    records = _list(_object(manifest, "history"), "records")
    ws.history.restore(ExecutionRecord.from_dict(plain) for plain in records)
    ws.finished_jobs.extend(_list(manifest, "jobs"))


def _object(plain: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = plain.get(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"{key!r} of the manifest is not an object")
    return found


def _list(plain: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = plain.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise ValueError(f"{key!r} of the manifest is not a list of objects")
    return found


def _path(plain: Mapping[str, Any]) -> str:
    path = plain.get("path")
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError("a cache entry of the manifest has no path")
    return path


def _entry(plain: Mapping[str, Any], opened: SnapshotReader) -> Entry:
    ttl, cached_at, fingerprint = plain.get("ttl"), plain.get("cached_at", 0.0), plain.get("fingerprint")
    if not isinstance(ttl, int | float | None) or not isinstance(cached_at, int | float):
        raise ValueError("a cache entry of the manifest is malformed")
    if not isinstance(fingerprint, str | None):
        raise ValueError("a cache entry of the manifest is malformed")
    return Entry(opened.blob(plain.get("data")).read(), fingerprint, ttl, float(cached_at))


def strict_or_report(report: RestoreReport, strict: bool) -> None:
    if strict and not report.ok:
        raise RametError("snapshot_invalid", "; ".join(report.problems), "load it without strict=True to go on without")
