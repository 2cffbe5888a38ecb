"""`Process`: an asyncio task with a pid that signals can kill, stop and continue."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any

from ramet.shell.interp.process import signals
from ramet.shell.interp.run.traps import send
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState

if TYPE_CHECKING:
    from ramet.shell.interp.process.jobs import Job


class Process:
    __slots__ = ("_queued", "_resumed", "job", "killed", "pid", "program", "session", "silent", "started", "task")

    def __init__(self, pid: int, session: ShellState) -> None:
        self.pid, self.session, self.started = pid, session, session.shell.now()
        self.killed = 0
        self.job: Job | None = None
        """What it is in the table of the shell that started it."""
        self.task: asyncio.Task[int] = None  # type: ignore[assignment]
        """None where it had ended before its session came here."""
        self.program: Callable[[int], None] | None = None
        """Delivers signals to the program of the machine that it has become."""
        self.silent: asyncio.Future[None] | None = None
        """Done when what a program has left behind prints no more."""
        self._resumed: asyncio.Future[None] | None = None
        """What it waits for while it is stopped."""
        self._queued: list[int] = []
        """Signals that have come since it was stopped."""

    @property
    def ended(self) -> bool:
        return self.task is None or self.task.done()

    @property
    def owns_task_group(self) -> bool:
        """Whether the shells that it has started are a crew of their own."""
        parent = self.session.parent
        return parent is None or parent.task_group is not self.session.task_group

    @property
    def stopped(self) -> bool:
        return self._resumed is not None

    def signal(self, number: int) -> None:
        """Deliver a signal: to the shell's trap, or the end of the task."""
        if self.ended or number == 0:
            return
        if self.program is not None:
            self._pass_on(self.program, number)
            return
        if self.stopped and number not in (signals.KILL, signals.CONT):
            self._queued.append(number)
            return
        if number in signals.STOPPING and (number == signals.STOP or signals.NAMES[number] not in self.session.traps):
            self._resumed = asyncio.get_running_loop().create_future()
            return
        if number == signals.CONT:
            self.resume()
        try:
            send(self.session, number)
        except Killed:
            self.killed, self._resumed = number, None
            if self.owns_task_group and (number == signals.KILL or "EXIT" not in self.session.traps):
                self.session.task_group.stop()  # nothing of it has a last word
            self.task.cancel()

    def _pass_on(self, program: Callable[[int], None], number: int) -> None:
        """The program decides what a signal does to it."""
        program(number)
        if number in (signals.KILL, signals.CONT):
            self.resume()
        elif number == signals.STOP and not self.stopped:
            self._resumed = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """Let a stopped process go on; what was sent to it meanwhile arrives."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None and not resumed.done():
            resumed.set_result(None)
        held, self._queued = self._queued, []
        for number in held:
            self.signal(number)

    @types.coroutine
    def steps(self, work: Coroutine[Any, Any, int]) -> Generator[Any, Any, int]:
        """The result of its work, of which no step is made while it is stopped; what is waited for goes on."""
        step: Any = partial(work.send, None)
        try:
            while True:
                try:
                    waited_for = step()
                except StopIteration as stop:
                    return int(stop.value)
                step = partial(work.send, None)
                try:
                    yield waited_for
                    while self._resumed is not None:
                        yield from self._resumed
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:
                    self._resumed = None  # what ends it ends it also while it is stopped
                    step = partial(work.throw, error)
        finally:
            step = None  # the error knows this frame
