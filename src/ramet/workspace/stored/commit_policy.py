"""When an open workspace commits or drafts by itself: on close, after commands, on a timer, or never."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from ramet.core.errors import RametError

When = Literal["close", "command", "timer", "never"]
WHEN: Final[tuple[When, ...]] = ("close", "command", "timer", "never")


@dataclass(frozen=True)
class CommitPolicy:
    """`every` is a number of commands, or of seconds. What is left at the end is committed on close, unless `never`."""

    when: When = "close"
    every: float = 1.0

    @property
    def on_close(self) -> bool:
        return self.when != "never"


def commit_policy(commit: str, every: float | None) -> CommitPolicy:
    """What `store.open(name, commit=..., every=...)` asks for."""
    found = next((when for when in WHEN if when == commit), None)
    if found is None:
        raise RametError("invalid_argument", f"unknown commit policy {commit!r}", f"use one of {', '.join(WHEN)}")
    if every is not None and found not in ("command", "timer"):
        raise RametError("invalid_argument", f"every= means nothing with commit={commit!r}", "leave it out")
    if found == "timer" and every is None:
        raise RametError("invalid_argument", "a timer needs every=", "give the seconds between commits")
    number = 1.0 if every is None else float(every)
    if not number > 0 or (found == "command" and number != int(number)):
        raise RametError("invalid_argument", f"every={every!r} cannot be", "give seconds, or a number of commands")
    return CommitPolicy(found, number)


def draft_policy(drafts: str | float) -> float | None:
    """What `store.open(drafts=...)` asks for: seconds between drafts, 0 for one after each call, None for none."""
    if drafts == "off":
        return None
    if drafts == "each":
        return 0.0
    if isinstance(drafts, bool) or not isinstance(drafts, int | float) or not drafts > 0:
        raise RametError("invalid_argument", f"drafts={drafts!r} cannot be", "use each, off, or a number of seconds")
    return float(drafts)
