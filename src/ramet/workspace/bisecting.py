"""`bisect`: run a command in one revision after the other until the first bad one is found; nothing is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ramet.core.progress import Progress, silent
from ramet.store.bisect import Search, Verdict
from ramet.store.repository import Repository
from ramet.store.revisions import Revision

SKIP = 125
Try = Callable[[Revision], Awaitable[int]]
"""Runs the command in a revision and gives its exit status."""


@dataclass(frozen=True)
class Step:
    """One revision that was tried."""

    revision: Revision
    verdict: Verdict
    exit_code: int


@dataclass
class Found:
    """The first bad revision; None when what was skipped leaves several `suspects`."""

    first_bad: Revision | None
    suspects: list[Revision]
    steps: list[Step] = field(default_factory=list)


async def bisect(
    repository: Repository, good: Revision, bad: Revision, attempt: Try, progress: Progress = silent
) -> Found:
    """Exit status 0 is good, 125 cannot be told, everything else is bad."""
    search = Search.between(repository.ancestors(good), repository.ancestors(bad), bad)
    steps: list[Step] = []
    while (revision := search.next()) is not None:
        progress("revisions", len(steps), len(steps) + len(search.left).bit_length())
        status = await attempt(revision)
        verdict: Verdict = "good" if status == 0 else "skip" if status == SKIP else "bad"
        steps.append(Step(revision, verdict, status))
        search.tell(revision, verdict)
    suspects = search.suspects
    return Found(suspects[0] if len(suspects) == 1 else None, suspects, steps)
