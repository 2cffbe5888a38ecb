"""Mounts: normalize the mapping of prefixes to resources and modes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from ramet.backends.local.disk import DiskResource
from ramet.backends.local.ram import RAMResource
from ramet.core.errors import RametError, wrong_type
from ramet.core.paths import ROOT, Path, parse
from ramet.core.resource import Resource
from ramet.layers.retry import Patience
from ramet.native.lowers import Checkout
from ramet.native.tree import TreeResource


class MountMode(enum.Enum):
    """What the workspace may do with a mount."""

    READ = "read"
    WRITE = "write"


_MODES = {
    "read": MountMode.READ, "r": MountMode.READ, "ro": MountMode.READ,
    "write": MountMode.WRITE, "w": MountMode.WRITE, "rw": MountMode.WRITE,
}  # fmt: skip


@dataclass(frozen=True)
class Mount:
    """A resource at a prefix. `scratch` mounts are created by the workspace (`/tmp`, the home directory)."""

    prefix: Path
    resource: Resource
    mode: MountMode = MountMode.WRITE
    cached: bool = True
    patience: Patience | None = None
    scratch: bool = False
    checkout: Checkout | None = None
    """How to write the content that this mount began with to a directory, for native programs."""

    @property
    def memory(self) -> RAMResource | None:
        """The memory tree behind this mount, if it is one."""
        return self.resource if isinstance(self.resource, RAMResource) else None

    @property
    def directory(self) -> str | None:
        """The host directory behind this mount, if it is one."""
        disk = isinstance(self.resource, DiskResource) and not isinstance(self.resource, TreeResource)
        return self.resource.root if disk else None  # type: ignore[attr-defined]

    @property
    def tree(self) -> TreeResource | None:
        """The kernel tree behind this mount, if native programs share it."""
        return self.resource if isinstance(self.resource, TreeResource) else None

    def __repr__(self) -> str:
        return f"Mount({str(self.prefix)!r}, {self.resource!r}, {self.mode.value})"


MountForm = Resource | tuple[Resource, MountMode | str] | Mount
"""A mount as users give it: a resource (writable), a resource with its mode, or a Mount."""


def as_mount(prefix: str, form: MountForm) -> Mount:
    """Normalize one entry of the constructor's mapping."""
    path = parse_prefix(prefix)
    if isinstance(form, Mount):
        return Mount(path, form.resource, form.mode, form.cached, form.patience, form.scratch, form.checkout)
    if isinstance(form, tuple):
        if len(form) != 2:
            raise _invalid(prefix, "a tuple must be (resource, mode)")
        resource, mode = form
        return Mount(path, _as_resource(prefix, resource), as_mode(mode))
    return Mount(path, _as_resource(prefix, form))


def as_mounts(forms: Mapping[str, MountForm]) -> dict[Path, Mount]:
    mounts: dict[Path, Mount] = {}
    if not isinstance(forms, Mapping):
        raise wrong_type("mounts", forms, 'Pass {"/prefix": resource}.')
    for prefix, form in forms.items():
        mount = as_mount(prefix, form)
        if mount.prefix in mounts:
            raise _invalid(prefix, "the prefix is given twice")
        mounts[mount.prefix] = mount
    return mounts


def in_order(mounts: Mapping[Path, Mount]) -> list[Mount]:
    """Return the mounts in the order of mounting; `/` always comes first."""
    return sorted(mounts.values(), key=lambda mount: mount.prefix != ROOT)


def parse_prefix(prefix: str) -> Path:
    if not isinstance(prefix, str):
        raise wrong_type("a mount prefix", prefix, "Pass an absolute path as text.")
    if not prefix.startswith("/"):
        raise _invalid(prefix, "a mount prefix is an absolute path")
    return parse(prefix)


def as_mode(mode: MountMode | str) -> MountMode:
    if isinstance(mode, MountMode):
        return mode
    found = _MODES.get(str(mode).lower())
    if found is None:
        raise RametError("invalid_argument", f"unknown mount mode {mode!r}", "use MountMode.READ or MountMode.WRITE")
    return found


def _as_resource(prefix: str, value: object) -> Resource:
    if not all(callable(getattr(value, verb, None)) for verb in ("stat", "scan", "read")):
        raise _invalid(prefix, f"{type(value).__name__} is not a resource")
    return value  # type: ignore[return-value]


def _invalid(prefix: str, why: str) -> RametError:
    remedy = 'give {"/prefix": resource} or {"/prefix": (resource, MountMode.READ)}'
    return RametError("invalid_argument", f"mount {prefix!r}: {why}", remedy)
