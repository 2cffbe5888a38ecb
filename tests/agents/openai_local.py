"""The SDK's local backend with every command inside bubblewrap: it would run them on the machine as they are."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.sandbox.sandboxes import unix_local

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
