"""Resolve the links of a path whose file may not exist yet."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from typing import Final

from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.stat import Kind
from ramet.vfs.links import MAX_LINKS
from ramet.vfs.vfs import VFS

ABSENT: Final = (errno.ENOENT, errno.ENOTDIR)


async def follow(fs: VFS, names: Iterable[str]) -> Path:
    """Resolve names from the root; `..` goes up from the target of the links before it."""
    done, rest, hops = ROOT, [*names][::-1], 0
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
            if error.errno not in ABSENT:
                raise
            done = here
            continue
        if stat.kind is not Kind.LINK:
            done = here
            continue
        hops += 1
        if hops > MAX_LINKS:
            raise fail(errno.ELOOP, here)
        target = stat.target or ""
        if target.startswith("/"):
            done = ROOT
        rest.extend(reversed(target.split("/")))
    return done
