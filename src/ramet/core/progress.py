"""How long work tells how far it is."""

from __future__ import annotations

from typing import Final, Protocol


class Progress(Protocol):
    """Called now and then by whoever works long: what it does, how much is done, and of how much if that is known."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Progress that nobody watches."""


EVERY: Final = 256
"""Files after which work tells how far it is."""
