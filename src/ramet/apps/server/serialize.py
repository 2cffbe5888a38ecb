"""Convert engine values to the types of the HTTP API."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from ramet.apps.server import models
from ramet.apps.server.open_workspaces import OpenWorkspace
from ramet.core.paths import decode
from ramet.core.resource import REDACTED
from ramet.core.stat import Stat
from ramet.store.model.revisions import MountState, Revision
from ramet.store.model.trees import KINDS, LINK, Node
from ramet.store.verbs.diff import Difference
from ramet.workspace.result import IOResult
from ramet.workspace.session import Session

MANY_NULS: Final = 1024


def revision_info(revision: Revision, brief: bool = False) -> models.RevisionInfo:
    """Serialize a revision; a brief one has some hundred bytes, however long the history and large the change."""
    ops, diff = revision.ops, revision.diff
    if brief:
        ops = None if ops is None else {name: value for name, value in ops.items() if name in ("first", "last")}
        diff = None if diff is None else {name: value for name, value in diff.items() if name.endswith("_count")}
    return models.RevisionInfo(
        name=revision.name, id=revision.id.hex(), workspace=revision.workspace, seq=revision.seq, time=revision.time,
        message=revision.message, lineage=revision.lineage, phase=revision.phase, content=revision.content_manifest,
        parents=[parent.hex() for parent in revision.parents], author=revision.author, agent=revision.agent,
        trace_id=revision.trace_id, diff=None if diff is None else dict(diff),
        outputs=list(revision.outputs), withheld=list(revision.withheld), suspected=list(revision.suspected),
        mounts=[] if brief else [mount_info(mount) for mount in revision.mounts],
        kernel=None if brief or revision.kernel is None else revision.kernel.hex(),
        history=[] if brief else [segment.hex() for segment in revision.history],
        ops=None if ops is None else dict(ops),
        memory=UNSET if revision.memory is None else models.ImageInfo(*revision.memory),
        notes=[models.NoteInfo(*note) for note in revision.notes],
    )  # fmt: skip


def mount_info(mount: MountState) -> models.MountInfo:
    return models.MountInfo(
        mount.prefix, mount.type, mount.mode, None if mount.tree is None else mount.tree.hex(), dict(mount.config),  # type: ignore[arg-type]
        list(mount.redacted_fields), mount.needs_override, mount.scratch,
        UNSET if mount.pin is None else mount.pin.hex(),
    )  # fmt: skip


def workspace_info(
    name: str, hosted: OpenWorkspace | None, head: Revision | None, held: bool = False
) -> models.WorkspaceInfo:
    mounts = []
    if hosted is not None:
        mounts = [
            models.Mounted(str(m.prefix), type(m.resource).__name__, m.mode.value)
            for m in hosted.ws.mounts()
        ]  # fmt: skip
    return models.WorkspaceInfo(
        name, "stored" if hosted is None else hosted.kind, hosted is not None,
        None if head is None else revision_info(head), mounts, held and hosted is None,
    )  # fmt: skip


def session_info(session: Session, scrub: Iterable[str]) -> models.SessionInfo:
    """Serialize a session; secret variables are listed without their values."""
    secret = set(scrub)
    env = {name: REDACTED if name in secret else value for name, value in session.env.items()}
    return models.SessionInfo(session.session_id, str(session.cwd), env, session.last_exit_code)


def text_or_base64(*pieces: bytes, forced: bool = False) -> tuple[list[str], models.Encoding]:
    """Return bytes as text if all of them are UTF-8, else all as base64; both are lossless.

    JSON encodes a NUL as six characters, so long text with many of them is sent as base64, a fifth of the size.
    """
    if not forced and not any(piece.count(0) > MANY_NULS and len(piece) < 8 * piece.count(0) for piece in pieces):
        try:
            return [piece.decode() for piece in pieces], "utf-8"
        except UnicodeDecodeError:
            pass
    return [base64.b64encode(piece).decode() for piece in pieces], "base64"


def exec_result(result: IOResult, forced: bool = False) -> models.ExecResult:
    (out, err), encoding = text_or_base64(result.stdout, result.stderr, forced=forced)
    return models.ExecResult(
        result.exit_code, out, err, encoding, result.timed_out, result.truncated, round(result.duration * 1000, 3),
        {str(mount): size for mount, size in result.bytes_read.items()},
        {str(mount): size for mount, size in result.bytes_written.items()}, result.cache_hits,
    )  # fmt: skip


def etag_of(stat: Stat, nonce: str) -> str | None:
    return None if stat.version is None or not stat.is_file else f'"{nonce}.{_safe(stat.version)}"'


def _safe(version: str) -> str:
    return "".join(c if (c.isascii() and c.isalnum()) or c in "-._~:" else f"%{ord(c):x}" for c in version)


def file_stat(path: str, stat: Stat, nonce: str) -> models.FileStat:
    return models.FileStat(
        path, stat.kind.value, stat.size, stat.mtime_ns, stat.mode, etag_of(stat, nonce), stat.target, stat.nlink,
        stat.atime_ns,
    )  # fmt: skip


def change(difference: Difference) -> models.Change:
    before, after = _change_side(difference.before), _change_side(difference.after)
    return models.Change(difference.path, difference.what, difference.old, before, after)


def _change_side(node: Node | None) -> models.ChangeSide | None:
    if node is None:
        return None
    target = decode(node.payload) if node.kind == LINK else None
    return models.ChangeSide(KINDS[node.kind], node.mode, node.size, target)


def line(number: int, text: bytes) -> str:
    return decode(text).rstrip("\n")
