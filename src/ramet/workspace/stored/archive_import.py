"""Import a snapshot tar, or any tar as files, as one revision.

Archives are untrusted: names are checked, links are stored and never followed, devices and pipes are left out and
reported. Trees are durable before a head moves, so a broken archive changes nothing.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final, TypedDict

from ramet.core.errors import RametError
from ramet.core.progress import Progress, silent
from ramet.store.commit.kernel_state import append_records, no_writers, plain_record, write_chunk
from ramet.store.commit.tree_builder import TreeBuilder
from ramet.store.model.ids import TreeId
from ramet.store.model.revisions import MountState, Revision
from ramet.store.repository import Repository
from ramet.workspace.mounts import parse_prefix
from ramet.workspace.snapshot.archive import MANIFEST, SnapshotReader, Target, read_tar
from ramet.workspace.snapshot.mirage import is_mirage, migrate
from ramet.workspace.snapshot.state import RestoreReport, apply_state_dict, check_version
from ramet.workspace.snapshot.tar import TarIndex
from ramet.workspace.workspace import Workspace

BLOCK: Final = 1 << 20
KERNEL: Final = ("format", "version", "sessions", "max_drain_bytes", "dirty_inodes", "history", "jobs", "left_out")


class ImportKeywords(TypedDict, total=False):
    """The fields of `ImportOptions` as keyword arguments."""

    prefix: str
    message: str
    author: str
    kind: str | None
    progress: Progress


@dataclass(frozen=True)
class ImportOptions:
    """How an archive becomes a revision: a snapshot replaces everything, any other tar the mount at `prefix`."""

    prefix: str = "/"
    message: str = ""
    author: str = ""
    kind: str | None = None
    """`snapshot` or `tar`; None takes an archive that begins with a manifest for a snapshot."""
    progress: Progress = silent


DEFAULTS: Final = ImportOptions()


@dataclass
class ImportResult:
    """The imported revision, and what was left out."""

    revision: Revision
    files: int = 0
    left_out: list[str] = field(default_factory=list)


@dataclass
class _ArchiveContent:
    """The content of an archive, durable in the store."""

    mounts: tuple[MountState, ...]
    kernel: Any
    files: int
    left_out: list[str]
    only: str | None = None
    """The one mount that is replaced; None for all of them."""


def import_archive(
    repository: Repository, name: str, source: Target, options: ImportOptions = DEFAULTS
) -> ImportResult:
    """Import a tar as a revision of a workspace, which is created if it does not exist."""
    repository.require_safe_refs()
    kind, progress = options.kind, options.progress
    try:
        if kind is None:
            kind, source = _kind_of(source)
        if kind == "snapshot":
            parts = _from_snapshot(repository, name, source, progress)
        elif kind == "tar":
            parts = _from_tar(repository, name, source, str(parse_prefix(options.prefix)), progress)
        else:
            raise RametError("invalid_argument", f"unknown kind of archive {kind!r}", "use snapshot or tar")
    except (ValueError, EOFError, tarfile.TarError) as error:
        raise RametError(
            "snapshot_invalid", f"cannot import the archive: {error}", "pass a complete, undamaged tar"
        ) from None
    revision = _commit(repository, name, parts, kind, options)
    return ImportResult(revision, parts.files, parts.left_out)


def _kind_of(source: Target) -> tuple[str, Target]:
    """Detect a snapshot by its first member; a stream must be seekable."""
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            return _detect_kind(file), source
    if not source.seekable():
        raise RametError("invalid_argument", "cannot detect the kind of a stream", "pass kind='snapshot' or kind='tar'")
    found = _detect_kind(source)
    source.seek(0)
    return found, source


def _detect_kind(file: IO[bytes]) -> str:
    with tarfile.open(fileobj=file, mode="r|*") as tar:
        first = tar.next()
    return "snapshot" if first is not None and first.name == MANIFEST else "tar"


def _commit(repository: Repository, name: str, parts: _ArchiveContent, kind: str, options: ImportOptions) -> Revision:
    made = Revision(
        workspace=name, seq=1, parents=(), lineage=f"import:{kind}", mounts=parts.mounts, kernel=parts.kernel,
        author=options.author, time=repository.clock(), message=options.message or f"import of a {kind}",
    )  # fmt: skip
    summary = f"import {parts.files} files of a {kind}"
    if not repository.refs.exists(name):
        made = _recorded(repository, made, made, made, summary)
        repository.begin(name, made)
        return made
    with repository.writing(name) as entry:
        head, latest = repository.head_and_latest(name)
        if head is not None:
            made = replace(made, seq=head.seq + 1, parents=(head.id,))
            if parts.only is not None:
                new = {mount.prefix: mount for mount in parts.mounts}
                kept = [replace(m, tree=new.pop(m.prefix).tree) if m.prefix in new else m for m in head.mounts]
                made = replace(made, mounts=(*kept, *new.values()), kernel=None if latest is None else latest.kernel)
        made = _recorded(repository, made, latest or made, made, summary)
        repository.commit(name, entry, made, "import")
    return made


def _recorded(repository: Repository, made: Revision, history: Revision, sessions: Revision, summary: str) -> Revision:
    """Add the record of the import to the history of a revision. A snapshot brings its history only where none is."""
    writer = repository.writer(made.workspace)
    record = plain_record("import", repository.actor, summary, made.time)
    kernel, segments, number = append_records(repository.packs, writer, history, [record], sessions)
    writer.finish()
    return replace(made, kernel=kernel, history=segments, ops=no_writers(number, number))


# ---------------------------------------------------------------------------------------------------- plain tars


def _from_tar(repository: Repository, name: str, source: Target, prefix: str, progress: Progress) -> _ArchiveContent:
    writer = repository.writer(name)
    left_out: list[str] = []
    owned = isinstance(source, str | os.PathLike)
    file = open(source, "rb") if isinstance(source, str | os.PathLike) else source
    try:
        builder = TreeBuilder(writer)
        with tarfile.open(fileobj=file, mode="r|*", encoding="utf-8", errors="surrogateescape") as tar:
            files = _members(tar, builder, left_out, progress)
        tree = builder.tree()
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    finally:
        if owned:
            file.close()
    return _ArchiveContent((MountState(prefix, "ram", tree=tree),), None, files, left_out, prefix)


def _members(tar: tarfile.TarFile, builder: TreeBuilder, left_out: list[str], progress: Progress) -> int:
    files = 0
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # the reader would keep every header
        path = _member_path(member.name)
        if not path:
            continue
        mode, mtime_ns = member.mode & 0o7777, _time(member)
        if member.isreg():
            data = tar.extractfile(member)
            assert data is not None
            builder.file(path, _blocks(data), member.size, mode, mtime_ns)
            files += 1
            if files % 256 == 0:
                progress("files", files, None)
        elif member.isdir():
            builder.directory(path, mode, mtime_ns)
        elif member.issym():
            builder.link(path, member.linkname, mtime_ns)
        elif member.islnk():
            builder.hard_link(path, _member_path(member.linkname))
            files += 1
        else:
            left_out.append(f"/{path}: a device or pipe has no content to keep")
    progress("files", files, files)
    return files


def _member_path(name: str) -> str:
    """Normalize the name of a member; refuse a name that leaves the archive."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} leads out of the archive")
    return "/".join(parts)


def _time(member: tarfile.TarInfo) -> int:
    """Return the time of a member in nanoseconds; the parsed one is a float, which is less exact."""
    text = member.pax_headers.get("mtime")
    if text is None:
        return int(member.mtime) * 1_000_000_000
    whole, _, fraction = text.lstrip("-").partition(".")
    value = int(whole) * 1_000_000_000 + int(fraction[:9].ljust(9, "0") or "0")
    return -value if text.startswith("-") else value


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block


# ----------------------------------------------------------------------------------------------------- snapshots


def _from_snapshot(repository: Repository, name: str, source: Target, progress: Progress) -> _ArchiveContent:
    opened = read_tar(source)
    writer = repository.writer(name)
    try:
        report = RestoreReport()
        if is_mirage(opened.manifest):
            opened.manifest = migrate(opened.manifest, report.add)
        check_version(opened.manifest)
        states = opened.manifest.get("mounts")
        if not isinstance(states, list):
            raise ValueError("the manifest has no list of mounts")
        count = _FileCounter(progress)
        mounts = tuple(_mount(state, opened, TreeBuilder(writer), count) for state in states)
        kernel: dict[str, Any] = {key: opened.manifest[key] for key in KERNEL if key in opened.manifest}
        kernel.update(mounts=[], cache={"entries": [], "manifest": []})
        _check_kernel(kernel, report)
        encoded = json.dumps(kernel, ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode()
        chunk = write_chunk(writer, encoded)
        writer.finish()
        progress("files", count.files, count.files)
    except BaseException:
        writer.abandon()
        raise
    finally:
        opened.close()
    return _ArchiveContent(mounts, chunk, count.files, report.problems)


def _check_kernel(kernel: dict[str, Any], report: RestoreReport) -> None:
    """Load sessions and history once, to refuse an unusable state now."""
    apply_state_dict(Workspace(), SnapshotReader(kernel, TarIndex(io.BytesIO()), {}), report)


class _FileCounter:
    def __init__(self, progress: Progress) -> None:
        self.files, self._progress = 0, progress

    def one(self) -> None:
        self.files += 1
        if self.files % 256 == 0:
            self._progress("files", self.files, None)


def _mount(state: object, opened: SnapshotReader, builder: TreeBuilder, count: _FileCounter) -> MountState:
    if not isinstance(state, dict) or not isinstance(state.get("prefix"), str):
        raise ValueError("a mount of the manifest has no prefix")
    prefix, kind = str(parse_prefix(state["prefix"])), str(state.get("type"))
    mode, scratch = str(state.get("mode", "write")), bool(state.get("scratch"))
    config = {key: value for key, value in _mapping(state, "config").items() if value is not None}
    if kind not in ("ram", "disk"):
        fields = state.get("redacted_fields", [])
        return MountState(
            prefix, kind, mode, None, config, tuple(str(name) for name in fields), bool(state.get("needs_override")),
            scratch,
        )  # fmt: skip
    return MountState(prefix, kind, mode, _tree(state, opened, builder, count), config, scratch=scratch)


def _tree(state: dict[str, Any], opened: SnapshotReader, builder: TreeBuilder, count: _FileCounter) -> TreeId:
    attrs = _mapping(state, "attrs")

    def known(path: str, mode: int) -> tuple[int, int]:
        pair = attrs.get(path, [mode, 0])
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(item) is int for item in pair)):
            raise ValueError(f"the attributes of {path!r} are not [mode, mtime_ns]")
        if not (0 <= pair[0] <= 0o7777 and abs(pair[1]) < 1 << 63):
            raise ValueError(f"the attributes of {path!r} are out of range")
        return pair[0], pair[1]

    for path in sorted(str(item) for item in state.get("dirs", [])):
        builder.directory(_member_path(path), *known(path, 0o755))
    for path, reference in _mapping(state, "files").items():
        blob = opened.blob(reference)
        builder.file(_member_path(path), blob.blocks(), blob.size, *known(path, 0o644))
        count.one()
    times = _mapping(state, "link_times")
    for path, target in _mapping(state, "links").items():
        when = times.get(path, 0)
        if not isinstance(target, str) or type(when) is not int or abs(when) >= 1 << 63:
            raise ValueError(f"the link {path!r} is malformed")
        builder.link(_member_path(path), target, when)
    for path, first in _mapping(state, "hardlinks").items():
        builder.hard_link(_member_path(path), _member_path(str(first)))
        count.one()
    return builder.tree()


def _mapping(state: dict[str, Any], key: str) -> dict[str, Any]:
    found = state.get(key, {})
    if not isinstance(found, dict):
        raise ValueError(f"{key!r} of a mount is not an object")
    return found
