"""Read the layers of an image: an OCI layout (directory or tar), what `docker save` writes, or the tar of a root.

Every blob is checked against its digest while it is read; a name in an image is never a path of the host.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import posixpath
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any, Final, Protocol, Self

from ramet.native.image.root import cannot_use, wrong_machine

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports import zstd

MOST_FILES: Final = 4096
"""Files of a tar that are looked at: one of an image has its layers and descriptions, that of a root many more."""
LARGEST_HEADER: Final = 1 << 20
"""Bytes of one extended header, which is read whole."""
LARGEST_JSON: Final = 4 << 20
"""Bytes of a manifest or configuration."""
NESTED: Final = 4
"""Indexes that may lead to each other."""
BLOCK: Final = 1 << 20
_DIGEST: Final = re.compile(r"(sha256):([0-9a-f]{64})|(sha512):([0-9a-f]{128})")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""The names of machines in images, where they differ."""
EXTENDED: Final = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
DAMAGED: Final = (tarfile.TarError, EOFError, zlib.error, zstd.ZstdError, gzip.BadGzipFile)
_SAVE_AGAIN: Final = "Save or download the image again."


class Member(tarfile.TarInfo):
    """An entry of a tar whose extended headers have a bound."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        if found.type in EXTENDED and found.size > LARGEST_HEADER:
            raise tarfile.HeaderError(f"a header of {found.size} bytes")
        return found


class Archive(Protocol):
    """Named files: a directory, or a tar."""

    def has(self, name: str) -> bool: ...
    def open(self, name: str) -> IO[bytes]: ...


@dataclass(frozen=True)
class Folder:
    """The files of a directory."""

    path: str

    def has(self, name: str) -> bool:
        return os.path.isfile(f"{self.path}/{name}")

    def open(self, name: str) -> IO[bytes]:
        return open(f"{self.path}/{name}", "rb")


class TarFiles:
    """The files of a tar by name."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members = {posixpath.normpath(member.name): member for member in islice(tar, MOST_FILES)}

    def has(self, name: str) -> bool:
        return name in self._members

    def open(self, name: str) -> IO[bytes]:
        member = self._members.get(name)
        for _ in range(NESTED):
            if member is None or not (member.issym() or member.islnk()):
                break
            above = posixpath.dirname(member.name) if member.issym() else ""
            member = self._members.get(posixpath.normpath(posixpath.join(above, member.linkname)))
        found = None if member is None else self._tar.extractfile(member)
        if found is None:
            raise FileNotFoundError(2, "it is incomplete", name)
        return found


@dataclass(frozen=True)
class Layer:
    """One tar of an image: `digest` is that of the file, or with `plain` that of the tar in it."""

    name: str
    digest: str
    plain: bool = False


@dataclass(frozen=True)
class Source:
    """What an image is made of."""

    name: str
    archive: Archive
    layers: Sequence[Layer]
    key: str
    env: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def open(self, layer: Layer) -> Iterator[IO[bytes]]:
        """Open the tar of a layer; at the end of the block all of it has been checked."""
        with self.archive.open(layer.name) as file:
            if layer.plain:
                checked = _Checked(decompressed(file), layer.digest)
                yield io.BufferedReader(checked, BLOCK)
            else:
                checked = _Checked(file, layer.digest)
                yield (unpacked := decompressed(io.BufferedReader(checked, BLOCK)))
                while unpacked.read(BLOCK):
                    pass
            if not checked.finish():
                raise cannot_use(self.name, f"the content of {layer.digest} is damaged", _SAVE_AGAIN)


class _Checked(io.RawIOBase):
    """Reads a file and computes its digest."""

    def __init__(self, file: IO[bytes], digest: str) -> None:
        self._file, (kind, self._wanted) = file, digest.split(":")
        self._hash = hashlib.new(kind)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._hash.update(data)
        buffer[: len(data)] = data
        return len(data)

    def finish(self) -> bool:
        """Read the rest; whether the content is what the digest says."""
        while block := self._file.read(BLOCK):
            self._hash.update(block)
        return self._hash.hexdigest() == self._wanted


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """Return the content of a file that may be compressed with gzip or zstd."""
    head = file.read(4)
    rest: IO[bytes] = io.BufferedReader(_Again(head, file), BLOCK)
    if head[:2] == b"\x1f\x8b":
        return io.BufferedReader(gzip.GzipFile(fileobj=rest), BLOCK)
    if head == b"\x28\xb5\x2f\xfd":
        found: IO[bytes] = zstd.ZstdFile(rest)
        return found
    return rest


class _Again(io.RawIOBase):
    """A file whose first bytes have been read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._head, self._file = head, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        data = data or self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def is_layout(path: str) -> bool:
    return os.path.isfile(f"{path}/index.json") and os.path.isdir(f"{path}/blobs")


@contextmanager
def open_source(path: str, key: str) -> Iterator[Source]:
    """Read what the OCI layout or tar at `path` is made of; `key` names a tar."""
    if os.path.isdir(path):
        yield _layout(path, Folder(path))
        return
    try:
        tar = tarfile.open(path, tarinfo=Member)
    except tarfile.TarError:
        tar = None
    if tar is not None:
        with tar:
            files = TarFiles(tar)
            if files.has("manifest.json"):
                yield _saved(path, files)
                return
            if files.has("index.json") and files.has("oci-layout"):
                yield _layout(path, files)
                return
    yield Source(path, Folder(os.path.dirname(path)), [Layer(os.path.basename(path), key)], key)


# ---------------------------------------------------------------------------------------------------- OCI layouts


def _layout(name: str, archive: Archive) -> Source:
    with archive.open("index.json") as file:
        index = _parse(name, file.read(LARGEST_JSON))
    digest = _manifest(name, archive, index, NESTED)
    manifest = _blob(name, archive, digest)
    config = _blob(name, archive, _text(name, manifest.get("config"), "digest"))
    layers = [_text(name, layer, "digest") for layer in _rows(name, manifest, "layers")]
    _check_machine(name, config)
    return Source(name, archive, [Layer(_place(name, layer), layer) for layer in layers], digest, _environment(config))


def _manifest(name: str, archive: Archive, index: Mapping[str, Any], depth: int) -> str:
    """Find the manifest for this machine."""
    wanted = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    others: list[str] = []
    for row in _rows(name, index, "manifests"):
        digest = _text(name, row, "digest")
        platform = row.get("platform") or {}
        found = platform.get("architecture", wanted) if isinstance(platform, Mapping) else wanted
        if found != wanted or platform.get("os", "linux") != "linux":
            others.append(str(found))
            continue
        if "index" not in str(row.get("mediaType")) and "list" not in str(row.get("mediaType")):
            return digest
        if depth:
            return _manifest(name, archive, _blob(name, archive, digest), depth - 1)
    if others:
        raise wrong_machine(name, others)
    raise cannot_use(name, "it has no manifest", _SAVE_AGAIN)


def _blob(name: str, archive: Archive, digest: str) -> Mapping[str, Any]:
    with archive.open(_place(name, digest)) as file:
        data = file.read(LARGEST_JSON)
    kind, _, wanted = digest.partition(":")
    if hashlib.new(kind, data).hexdigest() != wanted:
        raise cannot_use(name, f"the content of {digest} is damaged", _SAVE_AGAIN)
    return _parse(name, data)


def _place(name: str, digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise cannot_use(name, f"{digest!r} is no digest", _SAVE_AGAIN)
    return f"blobs/{digest.replace(':', '/')}"


# ---------------------------------------------------------------------------------------------------- docker save


def _saved(name: str, archive: Archive) -> Source:
    with archive.open("manifest.json") as file:
        images = json.loads(file.read(LARGEST_JSON))
    if not isinstance(images, list) or len(images) != 1:
        raise cannot_use(name, "it does not have exactly one image", "Save one image: docker save -o image.tar NAME")
    place = _text(name, images[0], "Config")
    with archive.open(posixpath.normpath(place)) as file:
        data = file.read(LARGEST_JSON)
    config, digest = _parse(name, data), hashlib.sha256(data).hexdigest()
    if digest != posixpath.basename(place).removesuffix(".json"):
        raise cannot_use(name, f"the content of {place} is damaged", _SAVE_AGAIN)
    _check_machine(name, config)
    rootfs = config.get("rootfs")
    found = _rows(name, rootfs if isinstance(rootfs, Mapping) else {}, "diff_ids", str)
    places = _rows(name, images[0], "Layers", str)
    if len(found) != len(places) or not all(map(_DIGEST.fullmatch, found)):
        raise cannot_use(name, "its layers do not fit its configuration", _SAVE_AGAIN)
    layers = [Layer(posixpath.normpath(layer), tar, plain=True) for layer, tar in zip(places, found, strict=True)]
    return Source(name, archive, layers, f"sha256:{digest}", _environment(config))


# ------------------------------------------------------------------------------------------------------- contents


def _parse(name: str, data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise cannot_use(name, "its description is damaged", _SAVE_AGAIN)
    return found


def _text(name: str, found: object, key: str) -> str:
    value = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(value, str):
        raise cannot_use(name, f"its description has no {key}", _SAVE_AGAIN)
    return value


def _rows(name: str, found: Mapping[str, Any], key: str, kind: type = Mapping) -> list[Any]:
    rows = found.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, kind) for row in rows):
        raise cannot_use(name, f"its description has no {key}", _SAVE_AGAIN)
    return rows


def _check_machine(name: str, config: Mapping[str, Any]) -> None:
    found = config.get("architecture")
    if found is not None and found != _ARCHITECTURES.get(os.uname().machine, os.uname().machine):
        raise wrong_machine(name, [str(found)])


def _environment(config: Mapping[str, Any]) -> dict[str, str]:
    inner = config.get("config")
    rows = inner.get("Env") if isinstance(inner, Mapping) else None
    found: dict[str, str] = {}
    for row in rows if isinstance(rows, list) else ():
        key, sign, value = str(row).partition("=")
        if sign and key.isidentifier() and key.isascii() and "\0" not in value:
            found[key] = value
    return found
