"""`MountTable`: which resource holds a path. The longest prefix wins, and mounts nest.

Lookup tables are rebuilt when a mount changes, so that a lookup costs next to nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from ramet.core.errors import fail
from ramet.core.fs import Power
from ramet.core.paths import ROOT, Path
from ramet.core.resource import Cap, Layer, Quick, Resource, Searchable, extension
from ramet.layers.cache import Cache


class MountTable:
    """Mounting and unmounting take effect at once."""

    def __init__(self, mounts: Mapping[Path, Resource], unlisted: Mapping[Path, Resource] | None = None) -> None:
        """`unlisted` mounts are reached by their path but do not show in the listing of their parent."""
        self._mounts: dict[Path, Resource] = {**mounts, **(unlisted or {})}
        self._unlisted: set[Path] = set(unlisted or ())
        self._heads: dict[str, list[tuple[Path, str, Resource]]] = {}
        """Mounts by the first segment of their prefix, the longest first: most paths meet none."""
        self._quick: dict[Resource, Quick | None] = {}
        self._searchable: dict[Path, Searchable] = {}
        """Mounts that can find files by what is in them."""
        self._points: dict[Path, set[str]] = {}
        self._ways: set[Path] = set()
        """Directories that may exist only because a mount lies below them."""
        self.generation = 0
        """Moves whenever a mode, a mount or the place of an existing thing changes."""
        self._index()

    @property
    def mounts(self) -> Mapping[Path, Resource]:
        return self._mounts

    def mount(self, prefix: Path, resource: Resource) -> None:
        if prefix in self._mounts:
            raise fail(errno.EBUSY, prefix)
        self._mounts[prefix] = resource
        self._index()

    def replace(self, prefix: Path, resource: Resource) -> None:
        """Exchange the resource of a mount (a branch puts an overlay there)."""
        if prefix not in self._mounts:
            raise fail(errno.EINVAL, prefix)
        self._mounts[prefix] = resource
        self._index()

    def unmount(self, prefix: Path) -> Resource:
        if prefix not in self._mounts:
            raise fail(errno.EINVAL, prefix)
        if prefix == ROOT:
            raise fail(errno.EBUSY, prefix)
        resource = self._mounts.pop(prefix)
        self._unlisted.discard(prefix)
        self._index()
        return resource

    def _index(self) -> None:
        self.generation += 1
        self._heads = {}
        for prefix in sorted(self._mounts, key=len, reverse=True):
            if prefix != ROOT:
                head = "/" + prefix.parts[0]
                self._heads.setdefault(head, []).append((prefix, prefix + "/", self._mounts[prefix]))
        self._quick = {resource: _quick_of(resource) for resource in self._mounts.values()}
        self._searchable = {
            prefix: power
            for prefix, resource in self._mounts.items()
            if Cap.LOCAL not in resource.caps and (power := power_of(resource, Searchable))  # type: ignore[type-abstract]
        }
        self._points = {}
        for prefix in self._mounts:
            while prefix != ROOT:
                self._points.setdefault(prefix.parent, set()).add(prefix.name)
                prefix = prefix.parent
        self._ways = self._points.keys() - self._mounts.keys() - {ROOT}

    def is_listed(self, point: Path) -> bool:
        """Whether a listing shows this mount point, or way to one."""
        if not self._unlisted:
            return True
        return any(prefix.under(point) and prefix not in self._unlisted for prefix in self._mounts)

    def locate(self, path: Path) -> tuple[Resource, Path, Path]:
        """The resource that holds `path`, the path inside it, and the prefix of its mount."""
        cut = path.find("/", 1)
        for prefix, slashed, resource in self._heads.get(path if cut < 0 else path[:cut], ()):
            if path.startswith(slashed):
                return resource, Path(path[len(prefix) :]), prefix
            if path == prefix:
                return resource, ROOT, prefix
        root = self._mounts.get(ROOT)
        if root is None:
            raise fail(errno.ENOENT, path)
        return root, path, ROOT

    def mount_of(self, path: Path) -> Path:
        return self.locate(path)[2]


def power_of(resource: Resource, kind: type[Power]) -> Power | None:
    """A power of a resource, also below a cache: what it remembers of files does not change what the service can do."""
    found = extension(resource, kind)
    while found is None:
        while isinstance(resource, Layer) and resource.transparent:
            resource = resource.inner
        if not isinstance(resource, Cache):
            return None
        resource = resource.inner
        found = extension(resource, kind)
    return found


def _quick_of(resource: Resource) -> Quick | None:
    """The resource itself where it answers at once; by attribute, since a mount must not cost a protocol check."""
    found: Any = resource
    while not hasattr(found, "kinds_now"):
        if not getattr(found, "transparent", False):
            return None
        found = found.inner
    quick: Quick = found
    return quick
