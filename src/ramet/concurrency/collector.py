"""When Python looks through all objects for garbage: not in the middle of a script that works for long.

Nothing else runs during such a full pass, and under a script that nests thousands of levels deep, or consists of
hundreds of thousands of statements, it takes tenths of a second to find nothing. So full passes are rare from the
moment in which a call has been at work for longer than a slice, and made as ever when nothing is at work any more.
Passes over young objects, which take a millisecond at most, go on all the time. Where work has made millions of
objects all the same, as the tree of a huge script, they are left out of all passes until nothing is at work any more.

Rule: these are settings of the whole process, and the host's. They are touched only where they are Python's own, and
put back.
"""

from __future__ import annotations

import gc
import threading
from typing import Final

SELDOM: Final = 1000
"""Passes over the young after which there is a full one all the same; usually it is 10."""
_PYTHONS_OWN: Final = 10
_MANY: Final = SELDOM // 2
"""Passes over the young after which there are very many objects that outlived one."""
_OFTEN: Final = 8
"""How often objects are left out before they are looked at all the same: they might be garbage."""

_lock = threading.Lock()
_at_work = 0
_usual: tuple[int, int, int] | None = None
_spared = 0


def work_begins() -> None:
    """A call runs from now on, or what it left behind."""
    global _at_work
    with _lock:
        _at_work += 1


def work_ends() -> None:
    global _at_work, _usual, _spared
    with _lock:
        _at_work -= 1
        if _spared and not _at_work:
            gc.unfreeze()
            _spared = 0
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


def spare() -> None:
    """Something has been at work for a while, and perhaps made so much that a full pass would come soon."""
    global _spared
    if gc.get_count()[2] > _MANY and _spared < _OFTEN:
        with _lock:
            if _usual is not None and (_spared or not gc.get_freeze_count()):
                gc.freeze()
                _spared += 1
