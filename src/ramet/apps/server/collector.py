"""When the server's process collects garbage: full passes between requests, none in the middle of a script.

A full pass looks at every object there is, and nothing else runs meanwhile: under a script that nests some thousand
levels deep it takes tenths of a second. What the program itself consists of is left out of all passes. Only `serve`
does this, whose process is ours.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ramet.concurrency.collector import SELDOM

_ENOUGH: Final = 10
_LATEST: Final = 600
"""Ticks, ten in a second, after which a stream that never ends is no reason to wait."""


class Collecting:
    """Makes full passes when nothing is asked for."""

    def __init__(self) -> None:
        self._waited = 0

    def tick(self, busy: bool) -> None:
        """Called ten times a second."""
        self._waited += 1
        if gc.get_count()[2] >= _ENOUGH and (not busy or self._waited >= _LATEST):
            gc.collect()
            self._waited = 0


@contextmanager
def collecting() -> Iterator[Collecting]:
    """As long as this lasts, the process collects garbage in the server's way."""
    usual = gc.get_threshold()
    gc.set_threshold(usual[0], usual[1], SELDOM)
    gc.freeze()
    try:
        yield Collecting()
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)
