"""`CommitPolicy`: when an open workspace commits by itself, and when it writes drafts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from ramet.core.errors import RametError

When = Literal["close", "command", "timer", "never"]
WHEN: Final[tuple[When, ...]] = get_args(When)


@dataclass(frozen=True)
class CommitPolicy:
    """When revisions are made: `CommitPolicy("command", every=5)`.

    `every` counts commands or seconds. Uncommitted changes are committed on close, unless `when` is `never`.
    """

    when: When = "close"
    every: float | None = None

    def __post_init__(self) -> None:
        if self.when not in WHEN:
            remedy = f"use one of {', '.join(WHEN)}"
            raise RametError("invalid_argument", f"unknown commit policy {self.when!r}", remedy)
        every = self.every
        if every is not None and self.when not in ("command", "timer"):
            raise RametError("invalid_argument", f"every= has no effect with commit={self.when!r}", "leave it out")
        if every is None:
            if self.when == "timer":
                raise RametError("invalid_argument", "a timer needs every=", "give the seconds between commits")
            return
        if not every > 0 or (self.when == "command" and every != int(every)):
            raise RametError("invalid_argument", f"invalid every={every!r}", "give seconds, or a number of commands")

    @property
    def on_close(self) -> bool:
        return self.when != "never"

    @property
    def interval(self) -> float:
        """Commands or seconds between two commits."""
        return 1.0 if self.every is None else float(self.every)


def draft_interval(drafts: str | float) -> float | None:
    """Seconds between two drafts, by the `drafts` option: 0 for one after each call, None for none."""
    if drafts == "off":
        return None
    if drafts == "each":
        return 0.0
    if isinstance(drafts, bool) or not isinstance(drafts, int | float) or not drafts > 0:
        raise RametError("invalid_argument", f"invalid drafts={drafts!r}", "use each, off, or a number of seconds")
    return float(drafts)
