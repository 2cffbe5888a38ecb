"""`Progress`: how long work tells what it has done. A callable that gets a `Step` now and then, and once at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Step(NamedTuple):
    """How far a piece of work is. A total is None while nobody knows it."""

    stage: str
    files: int
    size: int
    total_files: int | None = None
    total_size: int | None = None


Progress = Callable[[Step], None]

EVERY = 256
"""Files after which a step is told."""
