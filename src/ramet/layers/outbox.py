"""`Outbox`: an overlay that also holds back messages until it is committed."""

from __future__ import annotations

from ramet.core.paths import ROOT
from ramet.core.resource import Batching, Letter, Posting, Resource
from ramet.core.stat import Kind
from ramet.layers.overlay import Change, CommitReport, Overlay


class Outbox(Overlay):
    """Commit sends the messages after the changes, each once; abort sends none."""

    def __init__(self, inner: Resource, posting: Posting, batching: Batching | None = None) -> None:
        super().__init__(inner, batching)
        self._posting = posting
        self._letters: list[Letter] = []

    async def post(self, letter: Letter) -> str:
        self._letters.append(letter)
        return f"when the branch is committed ({len(self._letters)} waiting)"

    async def diff(self) -> list[Change]:
        return [*await super().diff(), *map(_posted, self._letters)]

    async def commit(self) -> CommitReport:
        letters, self._letters = self._letters, []
        report = CommitReport()
        try:
            report = await super().commit()
            sent: list[Change] = []
            while letters and report.ok:
                letter = letters.pop(0)  # not sent again, whatever happens: an error says what may have happened
                await self._posting.post(letter)
                sent.append(_posted(letter))
            return CommitReport((*report.applied, *sent), report.conflicts)
        finally:
            self._letters = letters

    def abort(self) -> None:
        super().abort()
        self._letters = []

    def fork(self) -> Overlay:
        twin = Outbox(self.inner, self._posting, self._batching)
        self._fork_into(twin)
        twin._letters = list(self._letters)
        return twin


def _posted(letter: Letter) -> Change:
    return Change(letter.place or letter.answers or ROOT, "posted", Kind.FILE)
