"""What native programs of one session may do where: the path rules of a policy, and the view that holds them.

The helper builds a view as mounts (`helper/view.py`). Before each program Ramet looks whether they still are where they
were: other sessions may move and replace what is below them.
"""

from __future__ import annotations

import enum
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from ramet.backends.local.safe_open import open_beneath
from ramet.core.errors import RametError
from ramet.core.paths import parse


class Reach(enum.StrEnum):
    """What programs may do with a path and all below it, up to the next point."""

    WRITE = "write"
    READ = "read"
    DENIED = "denied"
    HIDDEN = "hidden"


class Point(NamedTuple):
    """One path of the tree, and what holds from there."""

    path: str
    reach: Reach
    makes: bool = False
    """Whether a directory is made where nothing is: the rule is about a directory."""
    only_file: bool = False
    """Whether it is a permission for one file, and none for what a directory of that name has."""
    served: bool = False
    """Whether Ramet answers for it: the helper must not ask, as Ramet waits for the helper."""


@dataclass
class View:
    """A box as the programs of some sessions see it."""

    zygote: socket.socket
    root: int
    """A descriptor of its root directory, by which no file can be opened."""
    seen: Sequence[tuple[str, int, bool]]
    """Restricted paths, each with the device of its mount and whether that is read-only."""

    @classmethod
    def of(cls, payload: bytes, fds: Sequence[int], zygote: socket.socket) -> Self:
        """Read the helper's answer."""
        answer = json.loads(payload or b'{"error": "the helper process ended"}')
        if "cannot" in answer:
            raise RametError(
                "native_unavailable", f"cannot hold native programs to the policy: {answer['cannot']}",
                "Or give the rule `native: false`: then it holds for commands in process only.",
            )  # fmt: skip
        if "error" in answer:
            raise RametError(
                "native_unavailable", f"cannot hold native programs to the policy: {answer['error']}",
                "`ramet doctor` checks what native programs need; Linux 5.12 can mount such views.",
            )  # fmt: skip
        return cls(zygote, fds[0], [tuple(one) for one in answer["seen"]])

    def holds(self) -> bool:
        """Whether each restricted path still has the mount that was put there."""
        return all(self._look(path) == (device, fixed) for path, device, fixed in self.seen)

    def _look(self, path: str) -> tuple[int, bool] | None:
        try:
            fd = open_beneath(self.root, parse(path), os.O_PATH)
        except OSError:
            return None
        try:
            return os.fstat(fd).st_dev, bool(os.fstatvfs(fd).f_flag & os.ST_RDONLY)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let the view end with the last of its programs."""
        self.zygote.close()
        os.close(self.root)
