"""Sessions: the state of a shell, a view of the tree, and a lock that keeps calls in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ramet.core.errors import RametError
from ramet.core.paths import Path
from ramet.shell.interp.main.shell import Shell
from ramet.shell.interp.state.shell_state import ShellState
from ramet.workspace.descriptors import reopen
from ramet.workspace.record.recorder import DEFAULT_AGENT_ID as DEFAULT_AGENT_ID
from ramet.workspace.session_fs import SessionFS

DEFAULT_SESSION_ID = "default"


class Session:
    """One shell. Its commands run in order; cwd, variables, functions, aliases and traps belong to it."""

    def __init__(self, session_id: str, shell: Shell, state: ShellState, fs: SessionFS) -> None:
        self.session_id = session_id
        self.shell = shell
        self.state = state
        self.fs = fs
        self.lock = asyncio.Lock()
        self.running: asyncio.Task[Any] | None = None
        """The task of the running call."""
        self.ending = False
        """Whether the running call was stopped because the session is closing."""
        self.sticky_options = False
        """Whether `set -e` and the like last beyond the call that set them, as at a terminal."""
        self.reopen: list[dict[str, Any]] = []
        """Saved descriptors, which the next call reopens first."""
        self.last_state: dict[str, Any] | None = None
        """What `ChangeWatch` saw after the last call, for the comparison after the next one."""

    def __repr__(self) -> str:
        return f"Session({self.session_id!r}, cwd={str(self.cwd)!r})"

    @property
    def cwd(self) -> Path:
        return self.state.cwd

    @property
    def env(self) -> dict[str, str]:
        """The exported variables."""
        return self.state.environment()

    @property
    def last_exit_code(self) -> int:
        return self.state.status

    def adopt(self, env: Mapping[str, str]) -> None:
        """Set and export variables, except read-only ones."""
        from ramet.shell.expand.values import EXPORT, READONLY

        for name, value in env.items():
            if not self.state.variables.attrs.get(name, 0) & READONLY:
                self.state.variables.set(name, value)
                self.state.variables.flag(name, EXPORT)

    async def end(self) -> None:
        """Stop the running call and all background jobs."""
        running = self.running
        if running is not None and running is not asyncio.current_task():
            self.ending = True
            running.cancel()
            async with self.lock:
                await self.state.end()
        else:
            await self.state.end()

    async def reopen_descriptors(self) -> list[str]:
        """Reopen the descriptors of a restored session; returns a message for each failure."""
        saved, self.reopen = self.reopen, []
        return await reopen(self.state, self.fs, saved)


class SessionManager:
    """Sessions by id. The default one always exists, and is created on first use."""

    def __init__(self, make: Callable[[str, Mapping[str, str] | None, Path | None], Session]) -> None:
        self._make = make
        self._sessions: dict[str, Session] = {}

    def __iter__(self) -> Iterator[Session]:
        first = self.get(DEFAULT_SESSION_ID)
        return iter((first, *(session for session in self.started() if session is not first)))

    def __contains__(self, session_id: object) -> bool:
        return session_id in self._sessions or session_id == DEFAULT_SESSION_ID

    def started(self) -> list[Session]:
        """List the sessions that were created."""
        return list(self._sessions.values())

    def create(self, session_id: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Session:
        if session_id in self:
            raise RametError("already_exists", f"session {session_id!r} exists already", "use get_session")
        if not session_id or "/" in session_id or "\0" in session_id or session_id in (".", ".."):
            raise RametError("invalid_argument", f"{session_id!r} cannot name a session", "use letters and digits")
        session = self._sessions[session_id] = self._make(session_id, env, cwd)
        return session

    def get(self, session_id: str) -> Session:
        found = self._sessions.get(session_id)
        if found is None and session_id == DEFAULT_SESSION_ID:
            found = self._sessions[session_id] = self._make(session_id, None, None)
        if found is None:
            raise RametError("session_not_found", f"no session {session_id!r}", "create it with create_session")
        return found

    async def close(self, session_id: str) -> None:
        session = self.get(session_id)
        await session.end()
        del self._sessions[session_id]
