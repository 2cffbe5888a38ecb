"""Garbage collection of a process that Ramet owns: full passes between requests, never inside a script.

A full pass looks at every object while nothing else runs, which takes tenths of a second under a large script.
A library must not touch these process-wide settings: only `ServerSettings(tune_gc=True)`, which `ramet serve` sets,
turns this on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_RARE: Final = 1000
"""Passes over young objects before Python itself starts a full one; its default is 10."""
_DUE: Final = 10
"""Passes over young objects after which a full one is due."""
_LATEST: Final = 600
"""Ticks, ten per second, after which a full pass no longer waits for an idle moment."""


class IdleCollector:
    """Starts full passes while no request runs."""

    def __init__(self) -> None:
        self._waited = 0

    def tick(self, busy: bool) -> None:
        """Collect if a pass is due and nothing runs. Called ten times a second."""
        self._waited += 1
        if gc.get_count()[2] >= _DUE and (not busy or self._waited >= _LATEST):
            gc.collect()
            self._waited = 0


@contextmanager
def idle_collection() -> Iterator[IdleCollector]:
    """Collect garbage between requests as long as this lasts, then restore the settings."""
    usual = gc.get_threshold()
    gc.set_threshold(usual[0], usual[1], _RARE)
    gc.freeze()
    try:
        yield IdleCollector()
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)
