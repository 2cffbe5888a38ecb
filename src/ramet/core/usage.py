"""`Usage`: what one execution was served from caches. Whoever answers from a cache counts it for the call it serves."""

from __future__ import annotations

from contextvars import ContextVar


class Usage:
    """The figures of one execution; tasks that it starts share them."""

    __slots__ = ("cache_bytes", "cache_hits")

    def __init__(self) -> None:
        self.cache_hits = self.cache_bytes = 0


USAGE: ContextVar[Usage | None] = ContextVar("usage", default=None)


def served_from_cache(size: int) -> None:
    """Count one answer of `size` bytes that needed no backend."""
    usage = USAGE.get()
    if usage is not None:
        usage.cache_hits += 1
        usage.cache_bytes += size
