"""`bisect`: run a command in revisions until the first bad one is found; writes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ramet.core.errors import RametError
from ramet.core.progress import Progress, silent
from ramet.store.model.revisions import Revision
from ramet.store.repository import Repository
from ramet.store.verbs.bisect import BisectSearch, Verdict

SKIP = 125
Try = Callable[[Revision], Awaitable[int]]
"""Runs the command in a revision, and returns its exit status."""


@dataclass(frozen=True)
class BisectStep:
    """One tested revision."""

    revision: Revision
    verdict: Verdict
    exit_code: int


@dataclass
class BisectResult:
    """The first bad revision; None when skipped revisions leave several `suspects`."""

    first_bad: Revision | None
    suspects: list[Revision]
    steps: list[BisectStep] = field(default_factory=list)


async def bisect(
    repository: Repository, good: Revision, bad: Revision, attempt: Try, progress: Progress = silent
) -> BisectResult:
    """Find the first bad revision: exit status 0 is good, 125 skips, any other is bad.

    Both ends are tested first, and must confirm the caller's claim.
    """
    search = BisectSearch.between(repository.ancestors(good), repository.ancestors(bad), bad)
    steps: list[BisectStep] = []

    async def judged(revision: Revision, left: int) -> Verdict:
        progress("revisions", len(steps), len(steps) + left)
        status = await attempt(revision)
        verdict: Verdict = "good" if status == 0 else "skip" if status == SKIP else "bad"
        steps.append(BisectStep(revision, verdict, status))
        return verdict

    for end, said in ((bad, "bad"), (good, "good")):
        if await judged(end, 2 + len(search.left).bit_length()) != said:
            raise _contradiction(steps[-1], said)
    while (revision := search.next()) is not None:
        search.record(revision, await judged(revision, len(search.left).bit_length()))
    suspects = search.suspects
    return BisectResult(suspects[0] if len(suspects) == 1 else None, suspects, steps)


def _contradiction(step: BisectStep, said: str) -> RametError:
    name = step.revision.name
    if step.verdict == "skip":
        cause = f"the command cannot tell how {name} is: it ended with status {SKIP}"
    elif step.verdict == "good":
        cause = f"the command does not fail in {name}, which was given as the bad revision"
    else:
        cause = f"the command fails in {name} with status {step.exit_code}, which was given as the good revision"
    return RametError(
        "invalid_argument", cause, "give a revision in which the command succeeds, and a later one in which it fails",
        context={"revision": name, "exit_code": step.exit_code, "given": said},
    )  # fmt: skip
