"""The harness: a case is measured several times, interleaved with its reference, and reported as a ratio of minima.

Shared machines vary by a factor of two from minute to minute, so nothing here is compared across runs.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Measure = Callable[[], float]
"""Does the work once and returns the seconds it took."""


@dataclass(frozen=True)
class Case:
    """One row of the table. `mark` is the highest ratio to the reference that is good enough."""

    name: str
    ours: Measure
    reference: Measure | None = None
    reference_name: str = ""
    mark: float | None = None
    absolute_mark: float | None = None
    """The highest number of seconds that is good enough, where there is no reference."""
    repeat: int = 5
    peers: dict[str, Measure] = field(default_factory=dict)
    unit: str = "s"
    """What is measured, where that is not time."""


@dataclass(frozen=True)
class Row:
    name: str
    ours: float
    reference: float | None
    reference_name: str
    ratio: float | None
    mark: float | None
    ok: bool
    peers: dict[str, float]
    unit: str = "s"


def timed(act: Callable[[], object]) -> Measure:
    """A measure out of something to do."""

    def measure() -> float:
        start = time.perf_counter()
        act()
        return time.perf_counter() - start

    return measure


def _alike(measure: Measure) -> float:
    """Measured without the garbage of others, and with the cold caches that collecting it leaves to everybody."""
    gc.collect()
    return measure()


def run_case(case: Case) -> Row:
    ours: list[float] = []
    reference: list[float] = []
    peers: dict[str, list[float]] = {name: [] for name in case.peers}
    for _ in range(case.repeat):
        ours.append(_alike(case.ours))
        if case.reference is not None:
            reference.append(_alike(case.reference))
        for name, measure in case.peers.items():
            peers[name].append(_alike(measure))
    best = min(ours)
    real = min(reference) if reference else None
    ratio = best / real if real else None
    if ratio is not None and case.mark is not None:
        ok = ratio <= case.mark
    else:
        ok = case.absolute_mark is None or best <= case.absolute_mark
    mark = case.mark if case.mark is not None else case.absolute_mark
    measured = {name: min(times) for name, times in peers.items()}
    return Row(case.name, best, real, case.reference_name, ratio, mark, ok, measured, case.unit)


def show(value: float | None, unit: str) -> str:
    return show_seconds(value) if unit == "s" else "-" if value is None else f"{value:,.6g} {unit}"


def show_seconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def print_table(rows: list[Row]) -> None:
    width = max(len(row.name) for row in rows)
    for row in rows:
        peers = "  ".join(
            f"{name} {show(seconds, row.unit)}" + (f" ({seconds / row.reference:.2f}x)" if row.reference else "")
            for name, seconds in row.peers.items()
        )
        reference = f"{row.reference_name} {show(row.reference, row.unit)}" if row.reference is not None else ""
        ratio = f"{row.ratio:.2f}x" if row.ratio is not None else ""
        mark = "" if row.mark is None else f"(mark {row.mark:g}{'x' if row.ratio is not None else f' {row.unit}'})"
        state = "ok " if row.ok else "MISS"
        left = f"{state:4} {row.name:{width}}  {show(row.ours, row.unit):>9}"
        print(f"{left}  {ratio:>7} {mark:14} {reference}  {peers}".rstrip())


def save(rows: list[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = [row.__dict__ for row in rows]
    path.write_text(json.dumps(plain, indent=1) + "\n")
