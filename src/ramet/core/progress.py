"""`Progress`: the callback that long work reports to."""

from __future__ import annotations

from typing import Final, Protocol


class Progress(Protocol):
    """Report the current step, how much is done, and the total if it is known."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore progress."""


EVERY: Final = 256
"""Files between two reports."""
