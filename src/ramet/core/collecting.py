"""When Python looks through all objects for garbage: not in the middle of a script that works for long.

Nothing else runs during such a full pass, and under a script that nests thousands of levels deep, or consists of
hundreds of thousands of statements, it takes tenths of a second to find nothing. So full passes are rare from the
moment in which a call has been at work for longer than a slice, and made as ever when nothing is at work any more.
Passes over young objects, which take a millisecond at most, go on all the time.

Rule: this is a setting of the whole process, and the host's. It is touched only where it is Python's own, and put back.
"""

from __future__ import annotations

import gc
import threading
from typing import Final

SELDOM: Final = 1000
"""Passes over the young after which there is a full one all the same; usually it is 10."""
_PYTHONS_OWN: Final = 10

_lock = threading.Lock()
_at_work = 0
_usual: tuple[int, int, int] | None = None


def work_begins() -> None:
    """A call runs from now on, or what it left behind."""
    global _at_work
    with _lock:
        _at_work += 1


def work_ends() -> None:
    global _at_work, _usual
    with _lock:
        _at_work -= 1
        if _usual is not None and not _at_work:
            if gc.get_threshold() == (*_usual[:2], SELDOM):  # else the host has decided something meanwhile
                gc.set_threshold(*_usual)
            _usual = None


def put_off() -> None:
    """Something has been at work for a while, and goes on."""
    global _usual
    if _usual is None:
        with _lock:
            found = gc.get_threshold()
            if _at_work and found[2] == _PYTHONS_OWN:
                _usual = found
                gc.set_threshold(*found[:2], SELDOM)
