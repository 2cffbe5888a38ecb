"""`drive`: run coroutines synchronously until they first suspend.

Everything the interpreter runs returns either an `int` (it is done) or an awaitable that gives one. `drive` starts
a coroutine on the spot: when it never suspends, its result is there without the event loop having been asked.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Result = int | Awaitable[int]
Run = Callable[[Any], Result]

BREAK, CONTINUE, RETURN, EXIT = 256, 257, 258, 259
"""Statuses above 255 are control flow travelling up; how far and with what status stands in the session."""


def drive(coroutine: Coroutine[Any, Any, T]) -> T | Awaitable[T]:
    """The result of a coroutine if it is there at once, else an awaitable for the rest of it."""
    try:
        first = coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    return _resume(coroutine, first)


@types.coroutine
def _resume(coroutine: Coroutine[Any, Any, Any], first: Any) -> Generator[Any, Any, Any]:
    while True:
        try:
            yield first
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:
            try:
                first = coroutine.throw(error)
            except StopIteration as stop:
                return stop.value
            continue
        return (yield from coroutine)
