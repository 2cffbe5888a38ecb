"""`Usage`: what one execution was served from caches. Every cache counts its hits here."""

from __future__ import annotations

from contextvars import ContextVar


class Usage:
    """Cache hits of one execution, shared by its tasks."""

    __slots__ = ("cache_bytes", "cache_hits")

    def __init__(self) -> None:
        self.cache_hits = self.cache_bytes = 0


USAGE: ContextVar[Usage | None] = ContextVar("usage", default=None)


def served_from_cache(size: int) -> None:
    """Count one cache hit of `size` bytes."""
    usage = USAGE.get()
    if usage is not None:
        usage.cache_hits += 1
        usage.cache_bytes += size
