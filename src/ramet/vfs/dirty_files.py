"""Dirty files: open files whose last writes no mount has yet."""

from __future__ import annotations

from collections.abc import Mapping

from ramet.core.paths import Path
from ramet.core.resource import Cap, Resource
from ramet.vfs.mounts import MountTable
from ramet.vfs.open_files import RemoteStream


class DirtyFiles(MountTable):
    """Mounts, and the open files that must be flushed before the next access to their paths."""

    def __init__(self, mounts: Mapping[Path, Resource], unlisted: Mapping[Path, Resource] | None = None) -> None:
        super().__init__(mounts, unlisted)
        self._dirty: dict[RemoteStream, Path] = {}

    def _note_dirty(self, stream: RemoteStream, dirty: bool) -> None:
        if dirty:
            self._dirty[stream] = stream._path
        else:
            self._dirty.pop(stream, None)

    async def _flush(self, path: Path) -> None:
        """Flush open files at `path`, so that the next access sees their writes."""
        _, inner, _ = self.locate(path)
        for stream, gathered in tuple(self._dirty.items()):
            if gathered == inner:
                await stream.flush()

    async def _flush_all(self) -> None:
        for stream in tuple(self._dirty):
            await stream.flush()

    async def flush(self) -> None:
        """Flush all open files."""
        await self._flush_all()

    async def flush_near(self) -> None:
        """Flush synchronously what can be: a copy of the tree cannot wait."""
        for stream in tuple(self._dirty):
            if Cap.LOCAL in stream.resource.caps:
                await stream.flush()
