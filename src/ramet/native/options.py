"""`Native`: the options of native programs, and what one box may use of the machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ramet.core.errors import RametError

MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class NativeLimits:
    """Bounds of one box. Without a memory cgroup, `memory_bytes` bounds each command's process tree by a watchdog."""

    memory_bytes: int = 4096 * MIB
    processes: int = 1024
    """Processes and threads alive in the box."""
    file_bytes: int = 16 * 1024 * MIB
    """Size of one file that a program writes."""
    disk_bytes: int = 64 * 1024 * MIB
    """What all changed files of the box may have together; looked at every quarter of a second while a program runs."""
    open_files: int = 4096

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int or value < 1:
                raise RametError("invalid_config", f"native limit {name} is {value!r}", "Give a number above 0.")


@dataclass(frozen=True)
class Native:
    """How a workspace runs real programs: `Workspace(native=Native(limits=NativeLimits(processes=100)))`."""

    limits: NativeLimits = field(default_factory=NativeLimits)
    directory: str | None = None
    """Where the trees of boxes live; by default a directory of this user in `/var/tmp`."""


def as_native(value: Native | bool | dict[str, Any] | None) -> Native | None:
    """Read the option as users give it: True, False, a mapping of limits, or a `Native`."""
    if value is None or value is False:
        return None
    if value is True:
        return Native()
    if isinstance(value, Native):
        return value
    if isinstance(value, dict):
        unknown = value.keys() - {"limits", "directory"}
        if unknown:
            raise RametError("invalid_config", f"unknown option native.{min(unknown)}", "Use limits or directory.")
        try:
            return Native(NativeLimits(**value.get("limits", {})), value.get("directory"))
        except TypeError as error:
            raise RametError("invalid_config", f"native.limits: {error}", "See docs/native.md.") from None
    raise RametError("invalid_config", f"native is {value!r}", "Use true, false, or a mapping with limits.")
