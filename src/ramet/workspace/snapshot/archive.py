"""Snapshot archive: a state with blobs <-> a manifest with references <-> a tar. Format version 1.

    snap.tar
    |- manifest.json               everything but the bytes; a blob is {"__file": "<path in the tar>"}
    |- mounts/0/files/0.bin        a file of a RAM mount (numbered)
    |- mounts/1/files/data/a.txt   a file of a disk mount (under its own name, so `tar -xf` gives a usable tree)
    |- cache/blobs/0.bin           a cached content
    `- checksums.json              BLAKE3 of every blob

- Memory does not grow with the content, in either direction.
- A file target is replaced atomically.
- A tar is untrusted until it is checked, and cannot name code or a path of the host.
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO, Any, BinaryIO, Final, cast

from blake3 import blake3

from ramet.core.errors import RametError
from ramet.core.limits import memory_share
from ramet.workspace.snapshot.tar import TarIndex, TarWriter, read_tar_index

VERSION: Final = 1
MANIFEST: Final = "manifest.json"
CHECKSUMS: Final = "checksums.json"
MAX_MANIFEST: Final = 1 << 30
MAX_DEPTH: Final = 64

Target = str | os.PathLike[str] | IO[bytes]


@dataclass(frozen=True, slots=True)
class Blob:
    """Lazy bytes: their size, and a function that yields blocks. `name` is the preferred path in the tar."""

    size: int
    blocks: Callable[[], Iterator[bytes]]
    name: str | None = None
    mode: int = 0o644
    mtime_ns: int = 0

    def read(self) -> bytes:
        return b"".join(self.blocks())

    @classmethod
    def of(cls, data: bytes) -> Blob:
        return cls(len(data), lambda: iter((data,)) if data else iter(()))


@dataclass
class Bundle:
    """A manifest and its blobs, and entries that are only for `tar -xf`."""

    manifest: dict[str, Any]
    blobs: dict[str, Blob] = field(default_factory=dict)
    directories: list[tuple[str, int, int]] = field(default_factory=list)
    links: list[tuple[str, str, int]] = field(default_factory=list)


def split_manifest_and_blobs(state: Mapping[str, Any]) -> Bundle:
    """Replace every Blob (or bytes) of a state by a reference to its path in the tar."""
    bundle = Bundle({})
    counters: dict[str, int] = {}

    def place(value: Any, where: str) -> Any:
        if isinstance(value, bytes):
            value = Blob.of(value)
        if isinstance(value, Blob):
            if value.name is not None:
                path = f"{where}/{value.name}"
            else:
                counters[where] = counters.get(where, -1) + 1
                path = f"{where}/{counters[where]}.bin"
            bundle.blobs[path] = value
            return {"__file": path}
        if isinstance(value, Mapping):
            return {key: place(item, where) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [place(item, where) for item in value]
        return value

    for key, value in state.items():
        if key == "mounts":
            bundle.manifest[key] = [_place_mount(place, bundle, number, mount) for number, mount in enumerate(value)]
        elif key == "cache":
            bundle.manifest[key] = place(value, "cache/blobs")
        else:
            bundle.manifest[key] = place(value, "state")
    return bundle


def _place_mount(place: Callable[[Any, str], Any], bundle: Bundle, number: int, mount: Mapping[str, Any]) -> Any:
    folder = "data" if mount.get("type") == "redis" else "files"
    where = f"mounts/{number}/{folder}"
    shown = {key: value for key, value in mount.items() if key not in ("__directories", "__links")}
    for name, mode, mtime_ns in mount.get("__directories", ()):
        bundle.directories.append((f"{where}/{name}", mode, mtime_ns))
    for name, target, mtime_ns in mount.get("__links", ()):
        bundle.links.append((f"{where}/{name}", target, mtime_ns))
    return place(shown, where)


# ------------------------------------------------------------------------------------------------------ writing


def write_tar(target: Target, bundle: Bundle, compress: str | None = None) -> None:
    """Write the bundle to a path (all or nothing) or to a binary stream."""
    with open_target(target, compress) as sink:
        _write_bundle(sink, bundle)


@contextmanager
def open_target(target: Target, compress: str | None = None) -> Iterator[IO[bytes]]:
    """Open a stream for an archive. A path is replaced when the block ends, or stays unchanged."""
    if not isinstance(target, str | os.PathLike):
        sink, finish = _compressor(target, compress)
        yield sink
        finish()
        return
    path = os.fspath(target)
    folder, name = os.path.split(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "no directory to write the snapshot to", path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    try:
        with open(temporary, "xb", buffering=0) as file:
            sink, finish = _compressor(file, compress)
            yield sink
            finish()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        raise
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_bundle(sink: IO[bytes], bundle: Bundle) -> None:
    tar = TarWriter(sink)
    manifest = json.dumps(bundle.manifest, ensure_ascii=True, separators=(",", ":")).encode()
    tar.file(MANIFEST, len(manifest), iter((manifest,)))
    for name, mode, mtime_ns in bundle.directories:
        tar.directory(name, mode=mode, mtime_ns=mtime_ns)
    sums: dict[str, str] = {}
    for path, blob in bundle.blobs.items():
        hasher = blake3()
        tar.file(path, blob.size, _hash_blocks(blob.blocks(), hasher), mode=blob.mode, mtime_ns=blob.mtime_ns)
        sums[path] = hasher.hexdigest()
    for name, target, mtime_ns in bundle.links:
        tar.link(name, target, mtime_ns=mtime_ns)
    listing = json.dumps(sums, ensure_ascii=True, separators=(",", ":")).encode()
    tar.file(CHECKSUMS, len(listing), iter((listing,)))
    tar.close()


def _hash_blocks(blocks: Iterator[bytes], hasher: Any) -> Iterator[bytes]:
    for block in blocks:
        hasher.update(block)
        yield block


def _compressor(stream: IO[bytes], compress: str | None) -> tuple[IO[bytes], Callable[[], object]]:
    if compress is None:
        return stream, lambda: None
    if compress == "gz":
        import gzip

        zipped = gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0, filename="")
        return cast(IO[bytes], zipped), zipped.close
    if compress == "bz2":
        import bz2

        squeezed = bz2.BZ2File(stream, "wb")
        return cast(IO[bytes], squeezed), squeezed.close
    if compress == "xz":
        import lzma

        packed = lzma.LZMAFile(stream, "wb")
        return cast(IO[bytes], packed), packed.close
    raise ValueError(f"unknown compression {compress!r}: use None, 'gz', 'bz2' or 'xz'")


# ------------------------------------------------------------------------------------------------------ reading


@dataclass
class SnapshotReader:
    """A checked snapshot; blobs are read from the open tar."""

    manifest: dict[str, Any]
    tar: TarIndex
    sums: dict[str, str]
    _owned: BinaryIO | None = None

    def blob(self, reference: object) -> Blob:
        """Return the blob of `{"__file": path}`, whose path was checked on open."""
        path = checked_reference(reference, self.tar)
        return Blob(self.tar.members[path].size, lambda: self._verified_blocks(path))

    def _verified_blocks(self, path: str) -> Iterator[bytes]:
        wanted = self.sums.get(path)
        if wanted is None:
            yield from self.tar.blocks(path)
            return
        hasher = blake3()
        yield from _hash_blocks(self.tar.blocks(path), hasher)
        if hasher.hexdigest() != wanted:
            raise ValueError(f"the snapshot is damaged: {path!r} has a wrong checksum")

    def close(self) -> None:
        if self._owned is not None:
            self._owned.close()


def read_tar(source: Target, *, max_bytes: int | None = None) -> SnapshotReader:
    """Open a snapshot: index its members, parse its manifest, check every reference. Raises ValueError.

    The archive may unpack to `max_bytes`, and so may its files: a sparse tar is small, a member may be many files.
    """
    most = 4 * memory_share() if max_bytes is None else max_bytes
    file, owned = _seekable(source, most)
    try:
        tar = read_tar_index(file)
        manifest = _json_member(tar, MANIFEST)
        if not isinstance(manifest, dict):
            raise ValueError("the manifest is not an object")
        sums = _json_member(tar, CHECKSUMS) if CHECKSUMS in tar.members else {}
        if not isinstance(sums, dict) or not all(isinstance(v, str) for v in sums.values()):
            raise ValueError("the checksums are not an object of strings")
        if _check_references(manifest, tar) > most:
            raise _too_large(most)
    except BaseException:
        if owned:
            file.close()
        raise
    return SnapshotReader(manifest, tar, sums, file if owned else None)


def _json_member(tar: TarIndex, name: str) -> Any:
    member = tar.members.get(name)
    if member is None:
        raise ValueError(f"this is not a snapshot: it has no {name}")
    if member.size > MAX_MANIFEST:
        raise ValueError(f"{name} is too large to be true")
    try:
        return json.loads(tar.read(name))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not valid JSON") from error


def _check_references(manifest: object, tar: TarIndex) -> int:
    """Check every reference; return the bytes of all of them."""
    total = 0
    pending: list[tuple[object, int]] = [(manifest, 0)]
    while pending:
        value, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError("the manifest is nested too deeply")
        if isinstance(value, dict):
            if "__file" in value:
                total += tar.members[checked_reference(value, tar)].size
            else:
                pending.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list):
            pending.extend((item, depth + 1) for item in value)
    return total


def _too_large(most: int) -> RametError:
    cause = f"the snapshot unpacks to more than max_bytes={most}"
    return RametError("limit_exceeded", cause, "if you trust it, pass a larger max_bytes")


def checked_reference(reference: object, tar: TarIndex) -> str:
    """Check a blob reference: a relative path that names a regular member of this tar."""
    path = reference.get("__file") if isinstance(reference, dict) else None
    if not isinstance(path, str) or not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise ValueError(f"Unsafe blob path: {path!r}")
    if path not in tar.members:
        raise ValueError(f"Unsafe blob path: {path!r} is not a file of this archive")
    return path


_MAGIC: Final[tuple[tuple[bytes, Callable[[IO[bytes]], IO[bytes]]], ...]] = (
    (b"\x1f\x8b", lambda raw: cast(IO[bytes], import_module("gzip").GzipFile(fileobj=raw))),
    (b"BZh", lambda raw: cast(IO[bytes], import_module("bz2").BZ2File(raw))),
    (b"\xfd7zXZ\0", lambda raw: cast(IO[bytes], import_module("lzma").LZMAFile(raw))),
)
"""Magic numbers of compressed archives, and their decompressors, imported on use."""


def _seekable(source: Target, most: int) -> tuple[BinaryIO, bool]:
    """Return a seekable file, and whether to close it. Compressed and unseekable sources are spooled."""
    if isinstance(source, str | os.PathLike):
        raw: BinaryIO = open(os.fspath(source), "rb")
        owned = True
    else:
        raw, owned = cast(BinaryIO, source), False
    try:
        seekable = raw.seekable()
        head = raw.read(6)
        if seekable:
            raw.seek(-len(head), os.SEEK_CUR)
        unpack = next((opener for magic, opener in _MAGIC if head.startswith(magic)), None)
        if unpack is None and seekable and raw.tell() == 0:
            return raw, owned
        stream: IO[bytes] = raw if seekable else cast(IO[bytes], _PrefixedStream(head, raw))
        spooled = _spool(unpack(stream) if unpack is not None else stream, most)
    except (OSError, EOFError, import_module("lzma").LZMAError) as error:
        if owned:
            raw.close()
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise ValueError(f"cannot unpack the snapshot: {error}") from None
    except BaseException:
        if owned:
            raw.close()
        raise
    if owned:
        raw.close()
    return spooled, True


def _spool(stream: IO[bytes], most: int) -> BinaryIO:
    import tempfile

    file = cast(BinaryIO, tempfile.TemporaryFile())
    total = 0
    try:
        while block := stream.read(1 << 20):
            total += len(block)
            if total > most:
                raise _too_large(most)
            file.write(block)
        file.flush()
    except BaseException:
        file.close()
        raise
    return file


class _PrefixedStream(io.RawIOBase):
    """A stream with its first bytes pushed back."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        if self._head:
            taken, self._head = (self._head, b"") if size < 0 else (self._head[:size], self._head[size:])
            return taken + (self._rest.read() if size < 0 else b"")
        return self._rest.read(size)
