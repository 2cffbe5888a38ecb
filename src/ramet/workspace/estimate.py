"""`Estimate`: cost figures as ranges, exact where known, unbounded where only a run can tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Range:
    """At least `low`, at most `high`; None is unbounded."""

    low: int = 0
    high: int | None = 0

    def __add__(self, other: Range) -> Range:
        high = None if self.high is None or other.high is None else self.high + other.high
        return Range(self.low + other.low, high)

    def times(self, count: Range) -> Range:
        if self.high == 0:
            return Range()
        high = None if self.high is None or count.high is None else self.high * count.high
        return Range(self.low * count.low, high)

    def maybe(self) -> Range:
        """Return the same range, starting at 0."""
        return Range(0, self.high)

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def __contains__(self, value: int) -> bool:
        return self.low <= value and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        return str(self.low) if self.exact else f"{self.low}..{'?' if self.high is None else self.high}"


UNKNOWN: Final = Range(0, None)
_FIGURES: Final = ("reads", "writes", "listings", "bytes_read", "network_bytes", "cache_bytes", "cache_hits")


@dataclass
class Estimate:
    """The cost of a run: files read and written, directories listed, and bytes by source."""

    reads: Range = field(default_factory=Range)
    writes: Range = field(default_factory=Range)
    listings: Range = field(default_factory=Range)
    bytes_read: Range = field(default_factory=Range)
    network_bytes: Range = field(default_factory=Range)
    cache_bytes: Range = field(default_factory=Range)
    cache_hits: Range = field(default_factory=Range)
    mounts: set[str] = field(default_factory=set)

    @property
    def exact(self) -> bool:
        return all(getattr(self, name).exact for name in _FIGURES)

    def __add__(self, other: Estimate) -> Estimate:
        figures = {name: getattr(self, name) + getattr(other, name) for name in _FIGURES}
        return Estimate(**figures, mounts=self.mounts | other.mounts)

    def times(self, count: Range) -> Estimate:
        return Estimate(**{name: getattr(self, name).times(count) for name in _FIGURES}, mounts=self.mounts)

    def maybe(self) -> Estimate:
        return Estimate(**{name: getattr(self, name).maybe() for name in _FIGURES}, mounts=self.mounts)

    def __str__(self) -> str:
        return ", ".join(f"{name} {getattr(self, name)}" for name in _FIGURES)


def unbounded(mounts: set[str] | None = None) -> Estimate:
    """Return an unbounded estimate."""
    return Estimate(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, mounts or set())
