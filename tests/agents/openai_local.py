"""The SDK's local backend with every command inside bubblewrap: it would run them on the machine as they are."""

from __future__ import annotations

import asyncio
import gc
import io
import shutil
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agents.sandbox.sandboxes import unix_local
from tests.workspace.native.conftest import NATIVE, missing

from ramet.agents.openai_agents import RametSandboxClient

BWRAP = shutil.which("bwrap")


def confined(self: Any, *, command_parts: list[str], workspace_root: Path, env: Mapping[str, str]) -> list[str]:
    root = str(workspace_root)
    return [
        str(BWRAP), "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr",
        "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
        "--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", "--bind", root, root, "--chdir", root, "--setenv", "PATH", "/usr/bin:/bin", *command_parts,
    ]  # fmt: skip


class ConfinedSession(unix_local.UnixLocalSandboxSession):
    _confined_exec_command = confined


class LocalClient(unix_local.UnixLocalSandboxClient):
    """Its sessions are `ConfinedSession`s."""

    async def create(self, **options: Any) -> Any:
        session = await super().create(**options)
        session._inner.__class__ = ConfinedSession
        return session

    async def resume(self, state: Any) -> Any:
        session = await super().resume(state)
        session._inner.__class__ = ConfinedSession
        return session


class NativeClient(RametSandboxClient):
    """Its sessions run real programs."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{"native": NATIVE, **options})


NEWEST = tuple(map(int, version("openai-agents").split(".")[:2])) >= (0, 24)
CLIENTS = [
    RametSandboxClient,
    pytest.param(
        NativeClient, marks=pytest.mark.skipif(bool(missing()), reason=f"no native programs here: {missing()}")
    ),
    pytest.param(
        LocalClient,
        marks=[
            pytest.mark.skipif(BWRAP is None, reason="bubblewrap is not installed"),
            pytest.mark.skipif(not NEWEST, reason="older versions of the SDK keep less of the contract"),
        ],
    ),
]


class Box(NamedTuple):
    """A started session of one backend, and short ways to use it."""

    client: Any
    session: Any

    @property
    def root(self) -> Path:
        return Path(self.session.state.manifest.root)

    async def out(self, command: str, **options: Any) -> bytes:
        result = await self.session.exec(command, **options)
        assert result.exit_code == 0, result
        found: bytes = result.stdout
        return found

    async def get(self, path: str | Path) -> bytes:
        stream = await self.session.read(Path(path))
        try:
            found: bytes = stream.read()
        finally:
            stream.close()
        return found

    async def put(self, path: str | Path, data: bytes) -> None:
        await self.session.write(Path(path), io.BytesIO(data))

    async def members(self) -> dict[str, tarfile.TarInfo]:
        with tarfile.open(fileobj=await self.session.persist_workspace()) as tar:
            return {member.name.removeprefix("./"): member for member in tar.getmembers()}

    async def tree(self) -> bytes:
        """Everything in the workspace with its content, to see whether anything was touched."""
        return await self.out("find . | sort; find . -type f | sort | xargs cat")


def in_box(client_class: Any, use: Callable[[Box], Awaitable[Any]], **options: Any) -> Any:
    """Run `use` in a started session of a fresh client."""

    async def run() -> Any:
        client = client_class()
        session = await client.create(**options)
        try:
            async with session:
                return await use(Box(client, session))
        finally:
            await client.delete(session)

    try:
        return asyncio.run(run())
    finally:
        if client_class is LocalClient:
            gc.collect()  # it leaves processes that were ended for the collector: the warnings belong to this test


def tar_of(*members: tuple[tarfile.TarInfo, bytes], mode: Any = "w") -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    out.seek(0)
    return out


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info
