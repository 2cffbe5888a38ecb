"""Progress bar on stderr for long work; quick work shows none, and the bar is erased at the end."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

AFTER: Final = 0.3
"""Seconds of work before the bar appears."""
EVERY: Final = 0.08
WIDTH: Final = 30
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Bar:
    """A Progress that redraws one line; as a context manager it erases the line at the end."""

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        after: float = AFTER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began = clock()
        self._next = self._began + after
        self._drawn = False
        self._turn = 0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + EVERY
        self._turn += 1
        line = self._line(stage, done, total, now - self._began)
        import shutil  # imported late: only a long wait needs it

        self._put("\r\033[K" + line[: max(20, shutil.get_terminal_size().columns - 1)])
        self._drawn = True

    def _line(self, stage: str, done: int, total: int | None, seconds: float) -> str:
        rate = f"{done / seconds:,.0f}/s" if seconds > 0 else ""
        if not total:
            return f"{SPINNER[self._turn % len(SPINNER)]} {stage} {done:,} {rate}"
        filled = min(WIDTH, WIDTH * done // total)
        left = f" {_time(seconds * (total - done) / done)} left" if 0 < done < total else ""
        return f"{stage} {'█' * filled}{'░' * (WIDTH - filled)} {100 * done // total:3}% {done:,} of {total:,}{left}"

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeEncodeError:
            self._stream.write(text.encode("ascii", "replace").decode())
        except (OSError, ValueError):
            self._next = float("inf")  # stderr is closed: draw nothing more

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            self._put("\r\033[K")


class NoBar:
    """A progress bar that draws nothing."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...

    def __enter__(self) -> NoBar:
        return self

    def __exit__(self, *_: object) -> None: ...


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def progress_bar(quiet: bool = False) -> Bar | NoBar:
    """Return a progress bar, as in `with progress_bar(quiet) as progress`; without a terminal it draws nothing."""
    return NoBar() if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" else Bar()
