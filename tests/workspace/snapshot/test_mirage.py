"""A snapshot of mirage-ai becomes a workspace; nothing in it is executed."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from typing import Any

import pytest

from ramet import IOResult, RAMResource, Workspace

SESSION = "01a1e145-6ff7-7027-b99f-87592f4d3622"
BLOBS = {"mounts/0/files/sub/a.txt": b"on disk", "mounts/1/files/0.bin": b"hello\n"}


def manifest(version: int, state_key: str) -> dict[str, Any]:
    return {
        "version": version,
        "mirage_version": "0.0.7",
        "mounts": [
            {"index": 0, "prefix": "/disk/", "mode": "read", "vfs_class": "os.system",
             state_key: {"type": "disk", "config": {"root": "/gone"}, "modes": {"sub/a.txt": 0o600},
                         "files": {"sub/a.txt": {"__file": "mounts/0/files/sub/a.txt"}}}},
            {"index": 1, "prefix": "/", "mode": "write", "vfs_class": "mirage.vfs.ram.ram.RAMVFS",
             state_key: {"type": "ram", "files": {"/x/y/f": {"__file": "mounts/1/files/0.bin"}},
                         "dirs": ["/", "/x", "/x/y", "/empty"], "modified": {"/x/y/f": "2026-11-15T22:13:06.691629Z"}}},
            {"index": 2, "prefix": "/s3/", "mode": "read",
             state_key: {"type": "s3", "needs_override": True, "config": {"bucket": "b"}}},
        ],
        "sessions": [
            {"session_id": SESSION, "cwd": "/x", "env": {"FOO": "bar", "N": "5"}, "var_attrs": {"FOO": "x", "N": "i"},
             "functions": {"f": "f() { echo \"hi $1\"; }"}},
            {"session_id": "other", "cwd": "/", "env": {}},
        ],
        "default_session_id": SESSION,
        "history": [{"type": "command", "session": SESSION, "timestamp": 1794780786696, "cwd": "/x", "command": "cat f",
                     "exit_code": 0, "stdout": "hello\n"}],
        "clis": [{"name": "tool", "script": {"source": "import os"}}],
    }  # fmt: skip


def packed(plain: dict[str, Any]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in {"manifest.json": json.dumps(plain).encode(), **BLOBS}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    buffer.seek(0)
    return buffer


def run(ws: Workspace, command: str) -> IOResult:
    async def act() -> IOResult:
        return await ws.execute(command)

    return asyncio.run(act())


@pytest.mark.parametrize(
    ("version", "key"), [(2, "resource_state"), (3, "resource_state"), (4, "vfs_state"), (5, "vfs_state")]
)
def test_what_maps_is_loaded_and_the_rest_is_reported(version: int, key: str) -> None:
    ws = Workspace.load(packed(manifest(version, key)), resources={"/s3": RAMResource()})
    probe = "pwd; echo $FOO; N=N+2; echo $N; f you; cat y/f /disk/sub/a.txt; stat -c %a /disk/sub/a.txt; ls -d /empty"
    assert run(ws, probe).text == "/x\nbar\n7\nhi you\nhello\non disk600\n/empty\n"
    assert run(ws, "echo x > /disk/new").exit_code == 1, "a read mount stays one"
    assert run(ws, "stat -c %Y y/f").text == "1794780786\n"
    assert ws.restored.problems == ["not taken over: clis"]
    record = next(iter(ws.history))
    assert (record.command, record.session_id, record.stdout) == ("cat f", "default", b"hello\n")
    assert {session.session_id for session in ws.list_sessions()} == {"default", "other"}


def test_missing_resources_and_later_versions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"overrides for: \['/s3'\]"):
        Workspace.load(packed(manifest(5, "vfs_state")))
    with pytest.raises(ValueError, match="version 6"):
        Workspace.load(packed(manifest(6, "vfs_state")), resources={"/s3": RAMResource()})


@pytest.mark.parametrize("key", ["mounts", "sessions", "history"])
def test_malformed_ones_are_a_value_error(key: str) -> None:
    with pytest.raises(ValueError):
        Workspace.load(packed({**manifest(5, "vfs_state"), key: "text"}), resources={"/s3": RAMResource()})
