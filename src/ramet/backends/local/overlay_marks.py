"""Marks in the upper directory of a kernel overlay: removed entries and opaque directories."""

from __future__ import annotations

import os
import stat as modes
from typing import Final

OPAQUE: Final = ("user.overlay.opaque", "trusted.overlay.opaque")


def is_removed(found: os.stat_result) -> bool:
    """Whether an entry of an upper directory says that the lower one was removed."""
    return modes.S_ISCHR(found.st_mode) and found.st_rdev == 0


def is_opaque(folder: str | bytes) -> bool:
    """Whether an upper directory replaces the lower one instead of merging with it."""
    for name in OPAQUE:
        try:
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False
