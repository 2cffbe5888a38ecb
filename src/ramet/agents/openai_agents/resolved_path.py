"""Resolve every link of a path before its file is touched."""

from __future__ import annotations

from ramet.agents.links import ABSENT, follow
from ramet.core.paths import Path
from ramet.vfs.vfs import VFS


async def real_path(fs: VFS, path: Path) -> Path:
    """Resolve the links of `path`, whether or not it exists."""
    try:
        return await fs.resolve(path)
    except OSError as error:
        if error.errno not in ABSENT:
            raise
    return await follow(fs, path.parts)
