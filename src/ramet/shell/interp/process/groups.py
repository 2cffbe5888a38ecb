"""Process groups for `timeout`: deliver a signal to all that it started.

- Shells of the group handle the signal with their traps.
- Programs that they wait for die of it, unless the signal is ignored where they were started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ramet.shell.interp.process import signals
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState


class ProcessGroup:
    __slots__ = ("members", "number", "programs")

    def __init__(self) -> None:
        self.members: list[ShellState] = []
        self.programs: dict[asyncio.Task[int], ShellState] = {}
        self.number = 0

    def signal(self, number: int) -> bool:
        """Send a signal; False when no trap handles it, and the sender may cancel the group."""
        name = signals.NAMES[number]
        if number == 9 or not any(name in shell.traps or "EXIT" in shell.traps for shell in self.members):
            return False
        self.number = number
        for shell in self.members:
            if shell.traps.get(name) != "":
                shell.pending.append(number)
                shell.instrumented = True
        for task, shell in self.programs.items():
            if shell.traps.get(name) != "":
                task.cancel()
        return True

    async def run(self, sh: ShellState, work: Coroutine[Any, Any, int]) -> int:
        """Run a program for a shell of the group."""
        task = asyncio.ensure_future(work)
        self.programs[task] = sh
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            del self.programs[task]
        if not task.cancelled():
            return task.result()
        if signals.NAMES[self.number] not in sh.traps:
            sh.pending.clear()
            raise Killed(self.number)  # it reaches the shell as well
        if sh.single_command:
            sh.death_signal = self.number
        else:
            sh.command_death = self.number, sh.shell.next_pid()
        return 128 + self.number
