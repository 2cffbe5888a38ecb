"""Tell whether a call changed what a restart has to restore: files, or the state of its session.

Rules:
- The state is dumped once per call: the dump after a call is kept for the comparison after the next one. A call that
  wrote files needs none, so the call behind it dumps before it runs.
- What differs after every call (`$?`, `$_`, jobs, the command hash) does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ramet.shell.interp.state.serialize import dump

if TYPE_CHECKING:
    from ramet.workspace.session import Session
    from ramet.workspace.workspace import Workspace

WRITES: Final = frozenset({"write", "copy", "setattr", "link", "mkdir", "remove", "rename"})
"""Verbs of operations that change files."""
VOLATILE: Final = (
    "status", "pipe_status", "last_arg", "arguments", "unmourned", "background", "ended", "jobs", "hashed",
    "random", "history", "history_times", "history_place",
)  # fmt: skip
"""Parts of a session's state that differ after every call."""


class ChangeWatch:
    """Watches one call: make it before the call, ask `changed` after it."""

    def __init__(self, ws: Workspace, session: Session) -> None:
        self._ws, self._session = ws, session
        self._began = ws.settings.clock()
        if session.last_state is None:
            session.last_state = _state(session)
        self._before = session.last_state

    def changed(self) -> bool:
        """Whether files or the session's state are other than before the call."""
        session = self._session
        if any(op.verb in WRITES and not op.error for op in self._ws.history.since(self._began)):
            session.last_state = None
            return True
        session.last_state = _state(session)
        return session.last_state != self._before


def _state(session: Session) -> dict[str, Any]:
    state = dump(session.state)
    for name in VOLATILE:
        state.pop(name, None)
    state["variables"].pop("_", None)
    return state
