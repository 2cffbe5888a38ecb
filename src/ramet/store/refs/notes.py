"""Notes: messages about revisions that were given after the revision was made.

notes/<workspace>/<20-digit number>     {"target", "message", "author", "time", "path"?, "line"?}

A note never changes. It goes with the revision: notes of expired revisions are not shown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Note, Revision
from ramet.store.objects.log import Log

DAMAGED: Final = "(this note is damaged)"


class Notes:
    """The notes of all workspaces of a store."""

    def __init__(self, log: Log, clock: Callable[[], float] = time.time) -> None:
        self._log, self._clock = log, clock

    def add(self, workspace: str, target: RevisionId, note: Note) -> None:
        """Append a note, of now if it has no time; durable when this returns."""
        plain: dict[str, str | float] = {
            "target": target.hex(), "message": note.message, "author": note.author,
            "time": note.time or self._clock(), **({"path": note.path, "line": note.line} if note.path else {}),
        }  # fmt: skip
        data = json.dumps(plain, sort_keys=True).encode()
        while True:
            newest = self._log.newest(workspace)
            if self._log.append(workspace, 1 if newest is None else newest[0] + 1, data):
                return

    def of(self, workspace: str) -> dict[RevisionId, tuple[Note, ...]]:
        """Return the notes of a workspace by revision, oldest first."""
        found: dict[RevisionId, tuple[Note, ...]] = {}
        last = RevisionId(b"")
        for _, data in self._log.entries(workspace):
            try:
                plain = json.loads(data)
                last = RevisionId(bytes.fromhex(plain["target"]))
                place = plain.get("path", ""), plain.get("line", 0)
                note = Note(plain["message"], plain["author"], plain["time"], *place)
            except (ValueError, KeyError, TypeError):
                note = Note(DAMAGED)  # its revision is unknown: shown with the note before it
            found[last] = (*found.get(last, ()), note)
        return found

    def attach(self, workspace: str, revisions: list[Revision]) -> list[Revision]:
        """Return revisions with their notes."""
        known = self.of(workspace)
        if not known:
            return revisions
        return [replace(one, notes=known[one.id]) if one.id in known else one for one in revisions]
