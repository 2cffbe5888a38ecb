"""Startup and logout files: profiles, `.bashrc`, `.bash_logout`, BASH_ENV and ENV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramet.concurrency.sizes import LARGE
from ramet.shell.interp.run.maybe_async import EXIT
from ramet.shell.interp.state.shell_state import ShellState

_PROFILES: Final = (".bash_profile", ".bash_login", ".profile")


@dataclass(frozen=True, slots=True)
class Startup:
    """What the options of a shell say about its files."""

    login: bool = False
    interactive: bool = False
    as_sh: bool = False
    """Called `sh`: only what POSIX knows."""
    no_profile: bool = False
    no_rc: bool = False
    rc_file: str = ""


async def read(sh: ShellState, how: Startup) -> int:
    """Run the files that come before the script: 0, or control flow that ends the shell."""
    posix = sh.posix and not how.as_sh
    for name in await _names(sh, how, posix):
        result = await _run(sh, name)
        if result == EXIT:
            return result
    return 0


async def _names(sh: ShellState, how: Startup, posix: bool) -> list[str]:
    found: list[str] = []
    home = sh.variables.get("HOME") or ""
    privileged = "privileged" in sh.options
    if how.login and not how.no_profile and not posix:
        found.append("/etc/profile")
        if not privileged:
            own = (".profile",) if how.as_sh else _PROFILES
            found += [name for name in [f"{home}/{one}" for one in own] if await _exists(sh, name)][:1]
        if how.as_sh and how.interactive:
            found += _named(sh, "ENV")
        return found
    if privileged:
        return []
    if how.interactive:
        if how.as_sh or posix:
            return _named(sh, "ENV")
        return [] if how.no_rc or how.login else ["/etc/bash.bashrc", how.rc_file or f"{home}/.bashrc"]
    return [] if how.as_sh or posix else _named(sh, "BASH_ENV")


def _named(sh: ShellState, variable: str) -> list[str]:
    """The file that a variable names, once it is expanded."""
    value = sh.variables.get(variable)
    return [sh.prompt(value)] if value and len(value) <= LARGE else []  # what is longer names no file


async def _exists(sh: ShellState, name: str) -> bool:
    return bool(name) and await sh.shell.exists(sh.shell.fs.named(name, sh.cwd))


async def _run(sh: ShellState, name: str) -> int:
    """Run a file, if it is there, as `.` would."""
    if not await _exists(sh, name):
        return 0
    path = sh.shell.fs.named(name, sh.cwd)
    stat = await sh.shell.fs.stat(path, follow=True)
    return 0 if stat.is_dir else await sh.shell.invoke(sh, [".", str(path)])


async def logout(sh: ShellState) -> None:
    """What a login shell does last."""
    home = sh.variables.get("HOME") or ""
    status = sh.flow_status
    sh.shopts.discard("login_shell")  # once
    if await _run(sh, f"{home}/.bash_logout") != EXIT:
        sh.flow_status = status
