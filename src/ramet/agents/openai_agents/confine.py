"""Where a path leads once every link on it is followed; a file is only ever touched by the path found here."""

from __future__ import annotations

import errno

from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.stat import Kind
from ramet.vfs.table import MAX_LINKS, VFS

_ABSENT = (errno.ENOENT, errno.ENOTDIR)


async def real_path(fs: VFS, path: Path) -> Path:
    """`path` without links, whether or not anything is there."""
    try:
        return await fs.resolve(path)
    except OSError as error:
        if error.errno not in _ABSENT:
            raise
    done, rest, hops = ROOT, path.parts[::-1], 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            done = done.parent
            continue
        here = done / name
        try:
            stat = await fs.stat(here)
        except OSError as error:
            if error.errno not in _ABSENT:
                raise
            done = here
            continue
        if stat.kind is not Kind.LINK:
            done = here
            continue
        hops += 1
        if hops > MAX_LINKS:
            raise fail(errno.ELOOP, path)
        target = stat.target or ""
        if target.startswith("/"):
            done = ROOT
        rest.extend(reversed(target.split("/")))
    return done
