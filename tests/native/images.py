"""Tiny images for tests: a root with a shell of this machine, and tars and layouts of it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    from backports import zstd

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
PROGRAMS = ("cat", "ls", "id", "env", "head")


def make_root(folder: Path) -> Path:
    """Copy a shell, a few programs and their libraries to a directory, as the root of a system."""
    (folder / "usr/bin").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "etc").mkdir()
    (folder / "opt/tool").mkdir(parents=True)
    shell = os.path.realpath("/bin/sh")
    shutil.copy(shell, folder / "bin/sh")
    for name in PROGRAMS:
        shutil.copy(f"/usr/bin/{name}", folder / "usr/bin" / name)
    for program in (shell, *(f"/usr/bin/{name}" for name in PROGRAMS)):
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for word in listed.split():
            if word.startswith("/") and not (folder / word[1:]).exists():
                (folder / word[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, folder / word[1:])
    (folder / "etc/image").write_text("from the image\n")
    (folder / "usr/bin/leak").symlink_to("/etc/hostname")
    tool = folder / "opt/tool/run"
    tool.write_text('#!/bin/sh\necho tool "$@" $FLAVOR\n')
    tool.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
    return folder


def tar_of(folder: Path) -> bytes:
    """Return the tar of a directory."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.add(folder, ".")
    return made.getvalue()


def tar_with(entries: Sequence[tuple[str, bytes | str | None]], **attributes: Any) -> bytes:
    """Return a tar of entries: a name with content, with `-> target`, `= target` for a hard link, or None."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in entries:
            member = tarfile.TarInfo(name)
            for key, value in attributes.items():
                setattr(member, key, value)
            data = b""
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str):
                kind, member.linkname = content.split(" ", 1)
                member.type = tarfile.SYMTYPE if kind == "->" else tarfile.LNKTYPE
            else:
                data, member.size = content, len(content)
            tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def compress_zstd(data: bytes) -> bytes:
    return bytes(zstd.compress(data))


def write_layout(
    folder: Path, layers: Sequence[bytes], env: Sequence[str] = (), machine: str = MACHINE,
    compress: Callable[[bytes], bytes] = gzip.compress, platforms: Sequence[str] = (),
) -> Path:  # fmt: skip
    """Write an OCI layout with these tars as layers; `platforms` are other machines in its index."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(data: bytes) -> dict[str, Any]:
        (blobs / digest_of(data)[7:]).write_bytes(data)
        return {"digest": digest_of(data), "size": len(data)}

    config = {"architecture": machine, "os": "linux", "config": {"Env": [*env]}}
    manifest = {"config": put(json.dumps(config).encode()), "layers": [put(compress(layer)) for layer in layers]}
    rows: list[Mapping[str, Any]] = [
        {"digest": digest_of(b""), "platform": {"architecture": other, "os": "linux"}} for other in platforms
    ]
    own = {**put(json.dumps(manifest).encode()), "platform": {"architecture": machine, "os": "linux"}}
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [*rows, own]}))
    return folder


def write_saved(path: Path, layers: Sequence[bytes], env: Sequence[str] = ()) -> Path:
    """Write what `docker save` writes, without the newer layout."""
    config = json.dumps({
        "architecture": MACHINE, "config": {"Env": [*env]},
        "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
    }).encode()  # fmt: skip
    places = [f"{number}/layer.tar" for number in range(len(layers))]
    name = f"{digest_of(config)[7:]}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": ["tiny:latest"], "Layers": places}]).encode()
    path.write_bytes(tar_with([*zip(places, layers, strict=True), (name, config), ("manifest.json", manifest)]))
    return path
