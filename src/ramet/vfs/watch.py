"""`TreeWatch`: who is told of every change that passes the VFS.

`before` is called before a file changes, the other methods after it did, so that an observer can keep the old version.
Paths are those of the workspace, with links resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ramet.core.paths import Path


class TreeWatch(Protocol):
    """Observer of one VFS. `mark` is what `before` returned for the path that changes."""

    def before(self, path: Path) -> object:
        """The content at `path` is about to change."""

    def wrote(self, path: Path, mark: object, size: int | None = None, new: bool = False) -> None:
        """A file has new content, a node was created, or its attributes changed. `new`: nothing was there."""

    def removed(self, path: Path) -> None:
        """A file or an empty directory is gone."""

    def renamed(self, src: Path, dst: Path, mark: object) -> None:
        """A file or a directory has another name; `mark` is of `dst`."""

    def copied(self, src: Path, dst: Path, mark: object) -> None:
        """The content of a file was copied; `mark` is of `dst`."""

    def linked(self, src: Path, dst: Path) -> None:
        """A file has one more name."""

    def opened(self, path: Path, mark: object, changed: bool, new: bool = False) -> Callable[[], None]:
        """A file is open for writing; the result is called before each write. `changed`: it was made or truncated.

        `new`: it was made.
        """
