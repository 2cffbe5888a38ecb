"""Symbolic links: resolve them across all mounts, a component at a time.

A resource refuses to cross a link, so what it can describe has none on the way: most paths are never walked.
"""

from __future__ import annotations

import errno

from ramet.core import paths
from ramet.core.errors import fail
from ramet.core.paths import ROOT, Path
from ramet.core.stat import Kind, Stat
from ramet.vfs.dirty_files import DirtyFiles

MAX_LINKS = 40


class LinkTree(DirtyFiles):
    """Mounts as one tree in which links lead from any mount to any other."""

    async def resolve(self, path: Path, *, missing_ok: bool = False) -> Path:
        try:
            if (await self._stat(path)).kind is not Kind.LINK:
                return path
        except OSError as error:
            if error.errno != errno.ELOOP and not (missing_ok and error.errno == errno.ENOENT):
                raise with_path(error, path) from None
        return await self._follow(path, last=True, missing_ok=missing_ok)

    async def _follow(self, path: Path, *, last: bool, missing_ok: bool = True) -> Path:
        """Resolve links in `path`; the last component is followed only if `last`."""
        done, rest, hops = ROOT, path.parts, 0
        rest.reverse()
        while rest:
            name = rest.pop()
            if name == "..":  # of a link's target: from where the way has led so far
                done = done.parent
                continue
            here = done / name
            if not rest and not last:
                return here
            try:
                stat = await self._stat(here)
            except OSError as error:
                if error.errno == errno.ENOENT and not rest and missing_ok:
                    return here
                raise with_path(error, path) from None
            if stat.kind is Kind.LINK:
                hops += 1
                if hops > MAX_LINKS:
                    raise fail(errno.ELOOP, path)
                target = stat.target or ""
                if not target:
                    raise fail(errno.ENOENT, path)
                if target[0] == "/":
                    done = ROOT
                rest.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
                continue
            if rest and stat.kind is not Kind.DIR:
                raise fail(errno.ENOTDIR, path)
            done = here
        return done

    def named(self, text: str, cwd: Path) -> Path:
        """See `FileSystem`. A path through something missing keeps that part, so that every verb reports it."""
        path = paths.parse(text, cwd)
        if "/.." not in text:
            return path
        here = ROOT if text[0] == "/" else cwd
        known = True  # whether `here` is a directory and no link is on the way to it
        parts = text.split("/")
        for place, part in enumerate(parts):
            if part == "..":
                if not known:
                    try:
                        there = self._directory_now(here)
                    except OSError:
                        behind = [name for name in parts[place:] if name not in ("", ".", "..")] or ["_"]
                        return Path("/".join([here, *behind]))
                    if there is None:
                        return path
                    here = there
                here, known = here.parent, True
            elif part and part != ".":
                here, known = here / part, False
        return here

    async def _canonical(self, path: Path) -> Path:
        """`path` with the links among its parents resolved."""
        try:
            if (await self._stat(path.parent)).kind is not Kind.LINK:
                return path
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise with_path(error, path) from None
        return await self._follow(path, last=False)

    def _directory_now(self, path: Path) -> Path | None:
        """Return the directory that `path` leads to through links; None if a mount cannot answer synchronously."""
        done, rest, hops = ROOT, path.parts, 0
        rest.reverse()
        while rest:
            name = rest.pop()
            if name == "..":
                done = done.parent
                continue
            here = done / name
            if here not in self._points:
                resource, inner, _ = self.locate(here)
                quick = self._quick[resource]
                if quick is None:
                    return None
                stat = quick.stat_now(inner)
                if stat.kind is Kind.LINK:
                    hops += 1
                    if hops > MAX_LINKS:
                        raise fail(errno.ELOOP, path)
                    target = stat.target or ""
                    if target[:1] == "/":
                        done = ROOT
                    rest.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
                    continue
                if stat.kind is not Kind.DIR:
                    raise fail(errno.ENOTDIR, path)
            done = here
        return done

    async def _stat(self, path: Path) -> Stat:
        if self._dirty:
            await self._flush(path)
        try:
            resource, inner, _ = self.locate(path)
            quick = self._quick[resource]
            return quick.stat_now(inner) if quick is not None else await resource.stat(inner)
        except OSError as error:
            if path in self._points and error.errno in (errno.ENOENT, errno.ENOTDIR):
                return Stat(Kind.DIR, 0, mode=0o755)
            raise


def with_path(error: OSError, path: Path) -> OSError:
    """Return the same error for the path that the caller used instead of the one inside the mount."""
    error.filename = path
    return error
