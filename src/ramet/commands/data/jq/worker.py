"""Run a jq program on some inputs in a thread: results in order, as many as a slice of time gives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ramet.commands.data.jq.io.positions import Places
from ramet.commands.data.jq.scopes import Run
from ramet.commands.data.jq.values import UNFIT, JqBreak, JqError, Json

REPORTED = (JqError, *UNFIT, JqBreak, RecursionError)
"""Errors that end the work on one input and are reported before the next one."""
_SLICE: Final = 0.01
"""Seconds of work between two deliveries of results."""
_NOTHING: Final = object()


class Outcome(NamedTuple):
    """One result with its text, or the error that ended an input."""

    place: int
    """The index of the input."""
    value: Json = None
    text: str = ""
    error: Exception | None = None


class Worker:
    """The work on some inputs; `take` runs in a thread."""

    def __init__(self, run: Run, inputs: Iterator[Json], places: Places, text: Callable[[Json], str]) -> None:
        self.run, self.inputs, self.places, self.text = run, inputs, places, text
        self.results: Iterator[Json] | None = None

    def take(self) -> tuple[list[Outcome], bool]:
        """Return the outcomes of a slice of time, and whether these were the last ones."""
        outcomes: list[Outcome] = []
        until = time.monotonic() + _SLICE
        while True:
            if self.results is None:
                value = next(self.inputs, _NOTHING)
                if value is _NOTHING:
                    return outcomes, True
            try:
                if self.results is None:
                    self.results = self.run(None, value)
                for result in self.results:
                    outcomes.append(Outcome(self.places.index, result, self.text(result)))
                    if len(outcomes) >= 1024 or time.monotonic() > until:
                        return outcomes, False
            except Exception as error:  # it belongs to the caller's task, after the results that came before it
                outcomes.append(Outcome(self.places.index, error=error))
                if not isinstance(error, REPORTED):
                    return outcomes, True
            self.results = None
            if time.monotonic() > until:
                return outcomes, False
