"""Letting go of what is very large: it is taken apart over some turns of the event loop instead of in one go.

When the last reference to a tree goes, the interpreter frees all of it before anything else runs. Nearly always what
makes a tree large is a long row near its root; so whoever is done with a tree leaves the long rows of it here, and
their members go some at a time, once nobody else has the row. Very long texts go one at a time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from functools import partial
from gc import get_referents
from sys import getrefcount
from types import CellType, FunctionType
from typing import Any, Final

from ramet.concurrency.collector import work_begins, work_ends

_LONG: Final = 512
"""Members of a row that do not go all at once."""
_LOOKED_AT: Final = 4096
"""Objects near a root among which long rows are sought."""
_SLICE: Final = 0.001
"""Seconds of a turn that are spent on it."""
_AT_ONCE: Final = 128
"""Members that go between two looks at the clock."""
_PLAIN: Final = frozenset((str, int, bool, bytes, type(None), float))
_HUGE: Final = 1 << 22
"""Characters of a text whose memory takes a while to give back."""


class _Rows(threading.local):
    """What is to be taken apart by the event loop of one thread."""

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque(maxlen=64)
        """Rows that others may still have; of too many the oldest ones go as if they had never been here."""
        self.leaving: list[list[Any]] = []
        """Members of rows that nobody has any more."""
        self.at_work = False


_rows = _Rows()


def let_go(*roots: object) -> None:
    """To be called by who is done with some trees, before he drops them."""
    _rows.waiting.extend(_long_rows(list(roots)))
    look()


def held_by(error: BaseException) -> list[Any]:
    """What the calls have that an error came through, which only its traceback still knows."""
    found: list[Any] = []
    trace = error.__traceback__
    for _ in range(_FRAMES):
        if trace is None:
            break
        found += trace.tb_frame.f_locals.values()
        trace = trace.tb_next
    return found


_FRAMES: Final = 256
"""Frames of a traceback that are looked at."""


def look() -> None:
    """See to what may have lost its last other owner."""
    if not _rows.waiting and not _rows.leaving:
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # nobody is held up
        _rows.waiting.clear()
        _rows.leaving.clear()
        _rest()
    else:
        if not _rows.at_work:
            _rows.at_work = True
            work_begins()
        loop.call_soon(_free_some, loop)


def _free_some(loop: asyncio.AbstractEventLoop) -> None:
    waiting, leaving = _rows.waiting, _rows.leaving
    for _ in range(len(waiting)):
        row = waiting.popleft()
        if getrefcount(row) > 2:  # it is more than `row` and an argument
            waiting.append(row)
        elif isinstance(row, str | bytes):
            leaving.append([row])
        else:
            leaving.append(row if type(row) is list else list(row.values() if isinstance(row, dict) else row))
        del row
    end = time.perf_counter() + _SLICE
    while leaving and time.perf_counter() < end:
        members = leaving[-1]
        if _any_huge(members[-_AT_ONCE:]):
            members.pop()
        else:
            del members[-_AT_ONCE:]
        if not members:
            leaving.pop()
    if leaving:
        loop.call_soon(_free_some, loop)
    else:
        _rest()


def _rest() -> None:
    if _rows.at_work:
        _rows.at_work = False
        work_ends()


def _any_huge(some: list[Any]) -> bool:
    try:
        return bool(max(map(len, some)) >= _HUGE)  # nearly always these are words
    except TypeError:
        return any(map(_is_huge, some))


def _is_huge(one: object) -> bool:
    return isinstance(one, str | bytes) and len(one) >= _HUGE


def _long_rows(objects: list[Any]) -> list[Any]:
    """The long rows among some objects and what they hold."""
    found: list[Any] = []
    seen: set[int] = set()
    for one in objects:  # grows while it is walked
        inner: Any
        if _is_huge(one):
            found.append(one)
            continue
        if isinstance(one, tuple | list | dict):
            if len(one) >= _LONG:
                found.append(one)
                continue
            inner = one.values() if isinstance(one, dict) else one
        elif isinstance(one, FunctionType):
            inner = one.__closure__ or ()
        elif isinstance(one, CellType | partial) or hasattr(type(one), "_key"):  # the latter are nodes of a tree
            inner = get_referents(one)
        else:
            continue
        for member in inner:
            if (type(member) not in _PLAIN or _is_huge(member)) and id(member) not in seen:
                seen.add(id(member))
                objects.append(member)
        if len(objects) > _LOOKED_AT:
            break
    return found
