"""Work in threads that nobody waits for any more ends itself: its loops call `checkpoint` now and then."""

from __future__ import annotations

import threading


class Abandoned(BaseException):
    """Nobody waits for this work; never leaves its thread."""


class _Here(threading.local):
    stop: threading.Event | None = None


here = _Here()
"""What tells the work of this thread that it was abandoned, if something does."""


def checkpoint() -> None:
    """End work that was abandoned. Costs next to nothing elsewhere."""
    stop = here.stop
    if stop is not None and stop.is_set():
        raise Abandoned
