"""`CommitFilter`: what a commit leaves out, and what checks new content before it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ramet.store.commit.ignore_rules import IgnoreRules
from ramet.store.commit.secret_scan import SecretScanner

ContentCheck = Callable[[str, bytes | memoryview], None]
"""Gets the path and the bytes of new content; raises to refuse it."""


@dataclass(frozen=True)
class CommitFilter:
    """Applied to one tree, whose paths begin at its top."""

    ignore: IgnoreRules | None = None
    check: ContentCheck | None = None

    @classmethod
    def of_mount(cls, ignore: IgnoreRules, scanner: SecretScanner | None, prefix: str) -> CommitFilter:
        """The filter of the mount at `prefix`; the scanner sees paths of the workspace."""
        if scanner is None:
            return cls(ignore)
        top = prefix.rstrip("/")
        return cls(ignore, lambda path, data: scanner.check(top + path, data))


KEEP_ALL: Final = CommitFilter()
