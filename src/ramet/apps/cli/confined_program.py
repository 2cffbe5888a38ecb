"""`ConfinedProgram`: the program of `ramet bind` in a box over the bound directory."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ramet.apps.cli.questions import ask_at_terminal
from ramet.apps.cli.terminal import UserTerminal, has_terminal
from ramet.apps.cli.turn_pipe import FOLDER, TurnPipe
from ramet.concurrency.tasks import give_up
from ramet.core.errors import RametError
from ramet.network.network import Network
from ramet.workspace.stored.directory_box import DirectoryBox

if TYPE_CHECKING:
    from ramet.apps.cli.turns import Turns
    from ramet.apps.cli.verbs.bind import BoundProgram
    from ramet.workspace.stored.store import StoredWorkspace

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
ALWAYS: Final = ("TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR", "TZ")
"""Variables that say how to write to the terminal."""


class Sight(NamedTuple):
    """What of the machine the program has besides the directory."""

    readable: Sequence[str]
    writable: Sequence[str]
    variables: Sequence[str]
    hosts: Sequence[str]


class ConfinedProgram:
    """Runs the program with a terminal of its own where this process has one."""

    def __init__(self, line: BoundProgram, sight: Sight) -> None:
        self._line, self._ended_by = line, 0
        missing = [name for name in sight.variables if name not in os.environ]
        if missing:
            raise RametError(
                "invalid_argument", f"no variable {missing[0]} is set", "Export it, and pass its name only: --env NAME."
            )
        given = {name: os.environ[name] for name in (*ALWAYS, *sight.variables) if name in os.environ}
        with _or_unconfined():
            self._box = DirectoryBox(
                line.folder, readable=sight.readable, writable=sight.writable,
                network=Network.with_hosts(None, list(sight.hosts)) if sight.hosts else None,
            )  # fmt: skip
        top = self._box.writes(line.store)
        if top is not None:
            raise RametError(
                "invalid_argument", f"the program could change the store {line.store} in {top}",
                "Bind a directory that neither holds the store nor lies in it, or use a store elsewhere.",
            )  # fmt: skip
        seen = [one for one in os.environ.get("PATH", "").split(":") if os.path.isabs(one) and self._sees(one)]
        path = ":".join(dict.fromkeys([str(FOLDER), *seen, *PATH.split(":")]))
        self._env = {"PATH": path, **given, "RAMET_WORKSPACE": line.name}
        self._words = [self._program(line.words[0], path), *line.words[1:]]

    def _sees(self, path: str) -> bool:
        return self._box.sees(path) and self._box.sees(os.path.realpath(path))

    def _program(self, word: str, path: str) -> str:
        """Return the program as the box finds it; refuse one that it does not see."""
        if "/" in word:
            place: str | None = os.path.join(self._line.folder, word)
        else:
            place = shutil.which(word, path=path) or shutil.which(word)
        if place is None or not os.path.exists(place):
            raise RametError("not_found", f"cannot run {word}: there is no such program", "Install it.")
        real = os.path.realpath(place)
        if self._box.sees(real):
            return word
        raise RametError(
            "not_found", f"cannot run {word}: the box does not see {real}",
            f"Pass --read {os.path.dirname(os.path.dirname(real))}, or --unconfined.",
        )  # fmt: skip

    @asynccontextmanager
    async def running(self, ws: StoredWorkspace, turns: Turns) -> AsyncIterator[Awaitable[int]]:
        """Start the program, and let `ramet turn` and `ramet port` reach it."""
        loop = asyncio.get_running_loop()
        with _or_unconfined():
            box = await self._box.__aenter__()
        async with box, TurnPipe(box.tree, turns, self._line.name).served():
            await ws.remember_box(box.place)
            user = UserTerminal() if has_terminal() else None
            ask_at_terminal(box.workspace, user)
            with user.watched(loop) if user is not None else nullcontext():
                task = asyncio.ensure_future(self._run(user))
                for number in (signal.SIGINT, signal.SIGTERM):
                    loop.add_signal_handler(number, self._end, task, number)
                try:
                    yield self._status(task)
                finally:
                    await give_up((task,))

    def _end(self, task: asyncio.Future[int], number: int) -> None:
        """End the program: Ctrl-C without a terminal, and SIGTERM."""
        self._ended_by = number
        task.cancel()

    async def _status(self, task: asyncio.Future[int]) -> int:
        await asyncio.wait({task})
        return 128 + self._ended_by if self._ended_by else task.result()

    async def _run(self, user: UserTerminal | None) -> int:
        stdin: Any = user.input if user is not None else None if sys.stdin.isatty() else _stdin()
        execution = self._box.run(shlex.join(self._words), stdin, env=self._env)
        async for piece in execution:
            stream = sys.stdout.buffer if piece.fd == 1 else sys.stderr.buffer
            stream.write(piece.data)
            stream.flush()
        assert execution.result is not None
        return execution.result.exit_code


@contextmanager
def _or_unconfined() -> Iterator[None]:
    """Name the other way where no box can be had; it is taken by who asks for it only."""
    try:
        yield
    except RametError as error:
        if error.code != "native_unavailable":
            raise
        remedy = f"{error.remediation} Or pass --unconfined: the program may then do what you may."
        raise RametError(error.code, error.cause, remedy) from None


async def _stdin() -> AsyncIterator[bytes]:
    while block := await asyncio.to_thread(os.read, 0, 65536):
        yield block
