"""Cgroups of boxes: bound processes and memory by version 2 where it is delegated, by version 1 as root."""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass
from typing import Final

from ramet.native.options import NativeLimits

ROOT: Final = "/sys/fs/cgroup"
REMOVE_SECONDS: Final = 2.0
"""A cgroup can be removed once the kernel has buried its last process."""


@dataclass(frozen=True)
class Cgroup:
    """The cgroup directories of one box."""

    folders: tuple[str, ...]
    controllers: frozenset[str]

    def add(self, pid: int) -> None:
        for folder in self.folders:
            _write(f"{folder}/cgroup.procs", str(pid))

    def remove(self) -> None:
        deadline = time.monotonic() + REMOVE_SECONDS
        for folder in self.folders:
            while True:
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        return  # an empty cgroup costs little; processes that do not die are the kernel's
                    time.sleep(0.005)


NOTHING: Final = Cgroup((), frozenset())


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _own_paths() -> dict[str, str]:
    """Return the cgroup of this process by controller; the key "" is version 2."""
    found: dict[str, str] = {}
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            found.update(dict.fromkeys(names.split(","), path))
    return found


def _version_2(own: str, limits: NativeLimits) -> Cgroup | None:
    for parent in dict.fromkeys((own, os.path.dirname(own))):
        folder = f"{ROOT}{parent.rstrip('/')}/ramet-{secrets.token_hex(6)}"
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            _write(f"{folder}/pids.max", str(limits.processes))
            _write(f"{folder}/memory.max", str(limits.memory_bytes))
            _write(f"{folder}/memory.oom.group", "0")
            return Cgroup((folder,), frozenset(("pids", "memory")))
        except OSError:
            os.rmdir(folder)
    return None


def _version_1(own: dict[str, str], limits: NativeLimits) -> Cgroup | None:
    files = {"pids": ("pids.max", limits.processes), "memory": ("memory.limit_in_bytes", limits.memory_bytes)}
    made: list[str] = []
    bounded: set[str] = set()
    name = f"ramet-{secrets.token_hex(6)}"
    for controller, (file, most) in files.items():
        if controller not in own:
            continue
        folder = f"{ROOT}/{controller}{own[controller].rstrip('/')}/{name}"
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            _write(f"{folder}/{file}", str(most))
        except OSError:
            os.rmdir(folder)
            continue
        made.append(folder)
        bounded.add(controller)
    return Cgroup(tuple(made), frozenset(bounded)) if made else None


def create_cgroup(limits: NativeLimits) -> Cgroup:
    """Return a new cgroup with these limits; `NOTHING` where this process may make none."""
    try:
        own = _own_paths()
    except OSError:
        return NOTHING
    if os.path.exists(f"{ROOT}/cgroup.controllers"):
        return _version_2(own.get("", "/"), limits) or NOTHING
    return _version_1(own, limits) or NOTHING
