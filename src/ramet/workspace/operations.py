"""The operations of `Workspace.dispatch`, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypedDict

from ramet.core import ops
from ramet.core.paths import Path, parse
from ramet.core.resource import Data, How
from ramet.core.stat import Attrs, Stat
from ramet.workspace.session_fs import SessionFS

Operation = Literal["stat", "scan", "read", "write", "mkdir", "remove", "rename", "copy", "setattr"]


class OperationKeywords(TypedDict, total=False):
    """The arguments of operations by name; each takes those that it has."""

    follow: bool
    start: int
    stop: int | None
    data: Data | str
    how: How
    to: str
    attrs: Attrs


async def _read(fs: SessionFS, path: Path, start: int = 0, stop: int | None = None) -> bytes:
    return b"".join([block async for block in fs.read(path, start, stop)])


async def _write(fs: SessionFS, path: Path, data: Data | str, how: How = How.REPLACE) -> Stat:
    return await fs.write(path, data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data, how)


async def _list(fs: SessionFS, path: Path) -> list[tuple[str, Stat]]:
    return await ops.scan_sorted(fs, path)


OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "stat": lambda fs, path, follow=True: fs.stat(path, follow),
    "scan": _list,
    "read": _read,
    "write": _write,
    "mkdir": lambda fs, path: fs.mkdir(path),
    "remove": lambda fs, path: fs.remove(path),
    "rename": lambda fs, path, to: fs.rename(path, parse(to)),
    "copy": lambda fs, path, to: fs.copy(path, parse(to)),
    "setattr": lambda fs, path, attrs: fs.setattr(path, attrs),
}
