"""The work of a program on some inputs beside the event loop: results in their order, as many as a moment gives."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ramet.commands.data.jq.io.positions import Places
from ramet.commands.data.jq.scopes import Run
from ramet.commands.data.jq.values import UNFIT, Break, JqError, Json

REPORTED = (JqError, *UNFIT, Break, RecursionError)
"""What ends the work on one input, and is told before the next one."""


class Apart:
    """The work on some inputs, done a moment at a time."""

    def __init__(self, run: Run, inputs: Iterator[Json], places: Places) -> None:
        self.run, self.inputs, self.places = run, inputs, places
        self.results: Iterator[Json] | None = None

    def take(self) -> tuple[list[tuple[Exception | None, Json]], bool]:
        """Results and errors in their order, as many as there are after a moment, and whether that was all."""
        outcomes: list[tuple[Exception | None, Json]] = []
        until = time.monotonic() + 0.01
        while True:
            if self.results is None:
                value = next(self.inputs, _NOTHING)
                if value is _NOTHING:
                    return outcomes, True
            try:
                if self.results is None:
                    self.results = self.run(None, value)
                for result in self.results:
                    outcomes.append((None, result))
                    if len(outcomes) >= 1024 or time.monotonic() > until:
                        return outcomes, False
            except Exception as error:  # it belongs to the caller's task, after the results that came before it
                outcomes.append((error, self.places.index))
                if not isinstance(error, REPORTED):
                    return outcomes, True
            self.results = None
            if time.monotonic() > until:
                return outcomes, False


_NOTHING = object()
