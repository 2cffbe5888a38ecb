"""Runs one script in a fresh shell over a tree in memory, as `bash -c` would in an empty directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ramet.backends.local.ram import RAMResource
from ramet.commands.framework.table import COMMANDS
from ramet.core import ops
from ramet.core.paths import ROOT, parse
from ramet.core.proc import Exec, Proc, User
from ramet.core.stat import Attrs
from ramet.core.streams import BytesReader, Capture
from ramet.shell.interp.main.shell import Shell
from ramet.vfs.dev import DevResource
from ramet.vfs.vfs import VFS

CWD = "/tmp/case"
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
Helper = Callable[[list[str], Mapping[str, str]], tuple[bytes, bytes, int]]


async def run_script(
    script: str,
    files: Mapping[str, bytes] | None = None,
    env: Mapping[str, str] | None = None,
    helpers: Mapping[str, Helper] | None = None,
) -> tuple[bytes, bytes, int]:
    """stdout, stderr and the exit status."""
    fs = VFS({ROOT: RAMResource(), parse("/dev"): DevResource()})
    for directory in (CWD, "/bin", "/usr/bin", "/etc"):
        await ops.make_dirs(fs, parse(directory))
    for name, data in (files or {}).items():
        path = parse(name, parse(CWD))
        await ops.make_dirs(fs, parse(path.rpartition("/")[0] or "/"))
        await ops.write_bytes(fs, path, data)
        if data.startswith(b"#!") or name.endswith(".sh"):  # the runner knows no modes
            await fs.setattr(path, Attrs(mode=0o755))
    commands: dict[str, Exec] = dict(COMMANDS)
    for name, helper in (helpers or {}).items():
        commands[name] = _as_command(helper)
    shell = Shell(fs=fs, commands=commands, user=User(home="/tmp"))
    session = shell.session(env={**ENV, **(env or {})}, cwd=CWD)
    out, err = Capture(), Capture()
    status = await shell.run(session, script, stdin=BytesReader(), stdout=out, stderr=err, last=True)
    await _settle(session)
    return out.getvalue(), err.getvalue(), status


async def _settle(session: Any) -> None:
    await session.jobs.settle()


def _as_command(helper: Helper) -> Exec:
    async def command(proc: Proc) -> int:
        out, err, status = helper(proc.argv[1:], proc.env)
        proc.stdout.write(out)
        proc.stderr.write(err)
        return status

    return command
