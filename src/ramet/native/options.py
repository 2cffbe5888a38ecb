"""`Native`: the options of native programs, and what one box may use of the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Self

from ramet.core.errors import RametError

MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class NativeLimits:
    """Bounds of one box. Without a memory cgroup, `memory_bytes` bounds each command's process tree by a watchdog."""

    memory_bytes: int = 4096 * MIB
    """Memory of all programs of the box."""
    processes: int = 1024
    """Processes and threads alive in the box."""
    file_bytes: int = 16 * 1024 * MIB
    """Size of one file that a program writes."""
    disk_bytes: int = 64 * 1024 * MIB
    """What all changed files of the box may have together; looked at every quarter of a second while a program runs."""
    open_files: int = 4096
    """Open files of one program."""

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
    image: str | None = None
    """What programs come from instead of the host's `/usr`: a root directory, an OCI layout, or a tar of either."""

    def __post_init__(self) -> None:
        if self.image is not None:
            if not isinstance(self.image, str | os.PathLike) or not os.fspath(self.image):
                raise RametError("invalid_config", f"native.image is {self.image!r}", "Give a path.")
            object.__setattr__(self, "image", os.path.abspath(self.image))

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return the options of a mapping: `{"limits": {"processes": 100}}`."""
        unknown = plain.keys() - NAMES
        if unknown:
            raise RametError("invalid_config", f"unknown option native.{min(unknown)}", f"Use {', '.join(NAMES)}.")
        given = plain.get("limits") or {}
        if not isinstance(given, Mapping):
            raise RametError("invalid_config", f"native.limits is {given!r}", "Give a mapping of limits.")
        wrong = given.keys() - LIMITS
        if wrong:
            raise RametError("invalid_config", f"unknown limit native.limits.{min(wrong)}", f"Use {', '.join(LIMITS)}.")
        return cls(NativeLimits(**given), plain.get("directory"), plain.get("image"))

    @property
    def plain(self) -> dict[str, Any]:
        """What a store remembers of it: nothing that only this process knows."""
        found: dict[str, Any] = {
            "limits": {name: value for name, value in vars(self.limits).items() if value != LIMITS[name]}
        }
        return found if self.image is None else {**found, "image": self.image}

    def lowered(self, plain: Mapping[str, Any]) -> Native:
        """Return these options with the limits of others where those are lower."""
        other = plain.get("limits", {})
        lower = {name: value for name, value in other.items() if value < getattr(self.limits, name)}
        return replace(self, limits=replace(self.limits, **lower), image=self.image or plain.get("image"))

    def asked(self, plain: Mapping[str, Any]) -> Native:
        """As `lowered`, for someone who must not ask for more."""
        if plain.get("image") not in (None, self.image):
            raise RametError(
                "permission_denied",
                "cannot choose an image here",
                "Leave it out, or have it set in the server's configuration.",
            )
        for name, value in plain.get("limits", {}).items():
            most = getattr(self.limits, name)
            if value > most:
                raise RametError(
                    "limit_exceeded", f"cannot set native limit {name} to {value}: {most} is the most here",
                    "Ask for less.",
                )  # fmt: skip
        return self.lowered(plain)


NativeForm = Native | Mapping[str, Any] | bool
"""The option as users give it."""
NAMES: Final = tuple(one.name for one in fields(Native))
LIMITS: Final = {one.name: one.default for one in fields(NativeLimits)}
"""The defaults."""


def as_native(value: NativeForm | None) -> Native | None:
    """Read the option as users give it: True, False, a mapping, or a `Native`."""
    if value is None or value is False:
        return None
    if value is True:
        return Native()
    if isinstance(value, Native):
        return value
    if isinstance(value, Mapping):
        return Native.of(value)
    raise RametError("invalid_config", f"native is {value!r}", "Use true, false, or a mapping with limits.")
