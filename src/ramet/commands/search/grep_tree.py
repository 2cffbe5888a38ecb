"""Walk a tree for `grep -r`: files by name, in batches that are read together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple

from ramet.core import ops
from ramet.core.paths import Path
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat

TOGETHER = 64
"""Files per batch."""


class DirectoryBatch(NamedTuple):
    """Files of one directory, shown with `prefix`, or as `alias` for a single linked file."""

    directory: Path
    names: list[str]
    prefix: str
    alias: str | None = None

    def shown(self, name: str) -> str:
        return self.prefix + name if self.alias is None else self.alias


class _Level(NamedTuple):
    directory: Path
    prefix: str
    rest: Iterator[tuple[str, Stat]]
    above: tuple[Path, ...]
    """Directories above this one, if links are followed."""


class TreeWalk:
    """`skip_file` and `skip_dir` test bare names, None: skip nothing; `fail` reports errors."""

    def __init__(
        self,
        proc: Proc,
        follow: bool,
        skip_file: Callable[[str], bool] | None,
        skip_dir: Callable[[str], bool] | None,
        fail: Callable[[str, OSError], None],
    ) -> None:
        self._proc, self._follow, self._fail = proc, follow, fail
        self._skip_file, self._skip_dir = skip_file, skip_dir

    async def batches(self, top: Path, prefix: str) -> AsyncIterator[DirectoryBatch]:
        above: tuple[Path, ...] = (await self._proc.fs.resolve(top),) if self._follow else ()
        levels = [await self._level(top, prefix, above)]
        skip = self._skip_file
        while levels:
            directory, prefix, rest, above = levels[-1]
            names: list[str] = []
            deeper: _Level | None = None
            for name, stat in rest:
                kind = stat.kind
                if kind is Kind.FILE:
                    if skip is None or not skip(name):
                        names.append(name)
                        if len(names) == TOGETHER:
                            yield DirectoryBatch(directory, names, prefix)
                            names = []
                elif kind is Kind.DIR:
                    deeper = await self._deeper(directory / name, prefix + name, name, above)
                elif kind is Kind.LINK and self._follow:
                    found = await self._behind(directory / name, prefix + name)
                    if found is None:
                        continue
                    path, kind = found
                    if kind is Kind.DIR:
                        deeper = await self._deeper(path, prefix + name, name, above)
                    elif kind is Kind.FILE and (skip is None or not skip(name)):
                        if names:
                            yield DirectoryBatch(directory, names, prefix)
                            names = []
                        yield DirectoryBatch(path.parent, [path.name], "", prefix + name)
                if deeper is not None:
                    break
            if names:
                yield DirectoryBatch(directory, names, prefix)
            if deeper is not None:
                levels.append(deeper)
            else:
                levels.pop()

    async def _behind(self, path: Path, shown: str) -> tuple[Path, Kind] | None:
        try:
            path = await self._proc.fs.resolve(path)
            return path, (await self._proc.fs.stat(path)).kind
        except OSError as error:
            self._fail(shown, error)
            return None

    async def _deeper(self, path: Path, shown: str, name: str, above: tuple[Path, ...]) -> _Level | None:
        if self._skip_dir is not None and self._skip_dir(name):
            return None
        if self._follow:
            if path in above:
                self._proc.complain(f"{shown}: warning: recursive directory loop")
                return None
            above = (*above, path)
        return await self._level(path, shown + "/", above)

    async def _level(self, path: Path, prefix: str, above: tuple[Path, ...]) -> _Level:
        try:
            found = sorted(await ops.kinds(self._proc.fs, path))
        except OSError as error:
            self._fail(prefix.rstrip("/") or ".", error)
            found = []
        return _Level(path, prefix, iter(found), above)
