"""The contract of the SDK's sessions as one table of checks; its own local backend passes it, and so do we."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.sandbox")

from agents.sandbox import Manifest
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import (
    ExecNonZeroError,
    ExecTimeoutError,
    InvalidManifestPathError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.files import EntryKind
from agents.sandbox.manifest import Environment
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from tests.agents.openai_local import CLIENTS

Check = Callable[[Any], Awaitable[Any]]
MANIFEST = Manifest(
    entries={
        "a.txt": File(content=b"alpha\n"),
        "d": Dir(children={"b.bin": File(content=b"\0\xff"), "e": Dir()}),
        "temp": File(content=b"t", ephemeral=True),
    },
    environment=Environment(value={"GREETING": "hello there"}),
)


async def text(session: Any, command: str) -> bytes:
    found: bytes = (await session.exec(command)).stdout
    return found


async def get(session: Any, path: str) -> bytes:
    stream = await session.read(Path(path))
    try:
        found: bytes = stream.read()
    finally:
        stream.close()
    return found


async def put(session: Any, path: str, data: bytes) -> bytes:
    await session.write(Path(path), io.BytesIO(data))
    return await get(session, path)


async def names(session: Any, path: str) -> list[tuple[str, EntryKind]]:
    return sorted((Path(entry.path).name, entry.kind) for entry in await session.ls(path))


async def members(session: Any) -> set[str]:
    with tarfile.open(fileobj=await session.persist_workspace()) as tar:
        return set(tar.getnames())


async def after(session: Any, act: Awaitable[Any], command: str) -> bytes:
    await act
    return await text(session, command)


async def in_archive(session: Any) -> bytes:
    archive = await session.persist_workspace()
    await session.exec("rm -r a.txt d; echo drift > drift")
    await session.hydrate_workspace(archive)
    return await text(session, "cat a.txt drift; ls d")


async def extracted(session: Any) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("x/y")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"hi"))
    out.seek(0)
    await session.extract(Path("in/pack.tar"), out)
    return await get(session, "in/x/y")


async def patched(session: Any) -> bytes:
    await session.apply_patch({"type": "update_file", "path": "a.txt", "diff": "@@\n-alpha\n+beta\n"})
    return await get(session, "a.txt")


async def typed(session: Any) -> tuple[bool, int | None]:
    started = await session.pty_exec_start("read x; echo got-$x", tty=True, yield_time_s=0.3)
    ended = await session.pty_write_stdin(session_id=started.process_id, chars="5\n", yield_time_s=5)
    return b"got-5" in ended.output, ended.exit_code


async def status(session: Any, *command: str, **options: Any) -> int:
    code: int = (await session.exec(*command, **options)).exit_code
    return code


GIVES: dict[str, tuple[Check, Any]] = {
    "manifest file": (lambda s: get(s, "a.txt"), b"alpha\n"),
    "manifest bytes": (lambda s: get(s, "d/b.bin"), b"\0\xff"),
    "manifest environment": (lambda s: text(s, 'echo "$GREETING"'), b"hello there\n"),
    "commands begin in the root": (lambda s: text(s, "cat a.txt"), b"alpha\n"),
    "home is the root": (lambda s: text(s, 'cd ~ && test "$PWD" = "$HOME" && cat a.txt'), b"alpha\n"),
    "status": (lambda s: status(s, "exit 7"), 7),
    "unknown command": (lambda s: status(s, "no-such-command-here"), 127),
    "words without a shell": (lambda s: status(s, "test", "a b", "=", "a b", shell=False), 0),
    "words with a shell": (lambda s: status(s, "test", "$HOME", "=", "$HOME"), 0),
    "shell of choice": (lambda s: status(s, "[[ ab == a* ]]", shell=["bash", "-c"]), 0),
    "no state between commands": (lambda s: after(s, s.exec("cd d; X=1; export X"), "ls d; echo $X"), b"b.bin\ne\n\n"),
    "write and read": (lambda s: put(s, "new/deep/f", b"\0x\xff"), b"\0x\xff"),
    "write replaces": (lambda s: put(s, "a.txt", b"short"), b"short"),
    "write of nothing": (lambda s: put(s, "empty", b""), b""),
    "write through a link": (lambda s: after(s, s.exec("ln -s a.txt l"), "cat l"), b"alpha\n"),
    "ls": (lambda s: names(s, "d"), [("b.bin", EntryKind.FILE), ("e", EntryKind.DIRECTORY)]),
    "ls of an empty directory": (lambda s: names(s, "d/e"), []),
    "mkdir": (lambda s: after(s, s.mkdir("n"), "test -d n && echo yes"), b"yes\n"),
    "mkdir with parents": (lambda s: after(s, s.mkdir("n/o/p", parents=True), "test -d n/o/p && echo yes"), b"yes\n"),
    "mkdir again": (lambda s: after(s, s.mkdir("d"), "ls d"), b"b.bin\ne\n"),
    "rm": (lambda s: after(s, s.rm("a.txt"), "test -e a.txt || echo gone"), b"gone\n"),
    "rm of a tree": (lambda s: after(s, s.rm("d", recursive=True), "test -e d || echo gone"), b"gone\n"),
    "rm of a tree that is not there": (lambda s: after(s, s.rm("nope", recursive=True), "echo ok"), b"ok\n"),
    "persist leaves out what is ephemeral": (members, {".", "./a.txt", "./d", "./d/b.bin", "./d/e"}),
    "persist and hydrate": (in_archive, b"alpha\ndrift\nb.bin\ne\n"),
    "extract": (extracted, b"hi"),
    "patch": (patched, b"beta\n"),
    "terminal": (typed, (True, 0)),
    "running": (lambda s: s.running(), True),
}  # fmt: skip

RAISES: dict[str, tuple[Check, type[Exception]]] = {
    "read of nothing": (lambda s: s.read(Path("nope")), WorkspaceReadNotFoundError),
    "read of a directory": (lambda s: s.read(Path("d")), WorkspaceArchiveReadError),
    "read above": (lambda s: s.read(Path("../x")), InvalidManifestPathError),
    "read elsewhere": (lambda s: s.read(Path("/etc/passwd")), InvalidManifestPathError),
    "write above": (lambda s: put(s, "../x", b""), InvalidManifestPathError),
    "write on a directory": (lambda s: put(s, "d", b""), WorkspaceArchiveWriteError),
    "write below a file": (lambda s: put(s, "a.txt/x", b""), WorkspaceArchiveWriteError),
    "ls of nothing": (lambda s: s.ls("nope"), ExecNonZeroError),
    "ls elsewhere": (lambda s: s.ls("/etc"), InvalidManifestPathError),
    "mkdir without parents": (lambda s: s.mkdir("x/y"), WorkspaceArchiveWriteError),
    "mkdir on a file": (lambda s: s.mkdir("a.txt"), WorkspaceArchiveWriteError),
    "mkdir above": (lambda s: s.mkdir("../x"), InvalidManifestPathError),
    "rm of nothing": (lambda s: s.rm("nope"), ExecNonZeroError),
    "rm of a directory": (lambda s: s.rm("d"), WorkspaceArchiveWriteError),
    "rm above": (lambda s: s.rm("../x", recursive=True), InvalidManifestPathError),
    "a timeout": (lambda s: s.exec("sleep 30", timeout=0.1), ExecTimeoutError),
    "hydrate of no archive": (lambda s: s.hydrate_workspace(io.BytesIO(b"no")), WorkspaceArchiveWriteError),
}


def check(client_class: Any, act: Check) -> Any:
    async def run() -> Any:
        client = client_class()
        session = await client.create(manifest=MANIFEST)
        try:
            async with session:
                return await act(session)
        finally:
            await client.delete(session)

    return asyncio.run(run())


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", GIVES)
def test_gives(client: Any, name: str) -> None:
    act, expected = GIVES[name]
    assert check(client, act) == expected


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", RAISES)
def test_raises(client: Any, name: str) -> None:
    act, error = RAISES[name]
    with pytest.raises(error):
        check(client, act)


def test_every_abstract_hook_is_ours() -> None:
    from ramet.agents.openai_agents import RametSandboxSession

    assert not RametSandboxSession.__abstractmethods__
    own = set(vars(RametSandboxSession))
    native = {"read", "write", "ls", "mkdir", "rm", "mv", "same_file", "_read_bounded", "_write_new_file"}
    assert {name for name in native if hasattr(BaseSandboxSession, name)} <= own
