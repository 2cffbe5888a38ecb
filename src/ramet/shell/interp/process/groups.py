"""Process groups for `timeout`: deliver a signal to all that it started.

- Shells of the group handle the signal with their traps.
- Programs that they wait for die of it, unless the signal is ignored where they were started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ramet.shell.interp.process import signals
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState


class ProcessGroup:
    __slots__ = ("machine", "members", "number", "programs", "struck")

    def __init__(self) -> None:
        self.members: list[ShellState] = []
        self.programs: dict[asyncio.Task[int], ShellState] = {}
        self.machine: dict[ShellState, Callable[[int], None]] = {}
        """What delivers signals to the programs of the machine that its shells wait for."""
        self.struck: set[ShellState] = set()
        """Shells that the signal has reached, too, while they waited for such a program."""
        self.number = 0

    def signal(self, number: int) -> bool:
        """Send a signal; False when no trap handles it, and the sender may cancel the group."""
        name = signals.NAMES[number]
        trapped = any(name in shell.traps or "EXIT" in shell.traps for shell in self.members)
        if number == 9 or not (trapped or self.machine):
            return False
        self.number = number
        for shell in self.members:
            if shell.traps.get(name) != "":
                shell.pending.append(number)
                shell.instrumented = True
        for task, shell in self.programs.items():
            if shell in self.machine:
                self.struck.add(shell)
                self.machine[shell](number)
            elif shell.traps.get(name) != "":
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
            if sh not in self.struck or sh.single_command or sh not in self.members:
                return task.result()
            self.struck.discard(sh)
            if signals.NAMES[self.number] in sh.traps:
                return task.result()
            sh.pending.clear()
            raise Killed(self.number)  # a program of the machine has ended by itself; the shell does not go on
        if signals.NAMES[self.number] not in sh.traps:
            sh.pending.clear()
            raise Killed(self.number)  # it reaches the shell as well
        if sh.single_command:
            sh.death_signal = self.number
        else:
            sh.command_death = self.number, sh.shell.next_pid()
        return 128 + self.number


def receive_signals(sh: ShellState, deliver: Callable[[int], None] | None) -> None:
    """Let signals for a shell reach the program of the machine that it has become, or waits for in a group."""
    process, group = sh.process, sh.group
    if process is not None and process.session is sh and sh.single_command:
        process.program = deliver
    if group is not None:
        if deliver is None:
            group.machine.pop(sh, None)
        else:
            group.machine[sh] = deliver


def ignored_signals(sh: ShellState) -> list[int]:
    """The signals that a program is born to ignore."""
    names = {name for name, action in sh.traps.items() if not action} | sh.background_ignored
    return [signals.NUMBERS[name] for name in names if name in signals.NUMBERS]


_RLIMITS: Final = {
    "c": ("RLIMIT_CORE", 1024), "d": ("RLIMIT_DATA", 1024), "f": ("RLIMIT_FSIZE", 1024), "l": ("RLIMIT_MEMLOCK", 1024),
    "n": ("RLIMIT_NOFILE", 1), "s": ("RLIMIT_STACK", 1024), "t": ("RLIMIT_CPU", 1), "u": ("RLIMIT_NPROC", 1),
    "v": ("RLIMIT_AS", 1024),
}  # fmt: skip
"""What `ulimit` sets for programs of the machine, and the unit in which it counts."""


def program_rlimits(sh: ShellState) -> dict[str, tuple[int, int]]:
    """Return the soft and hard limits that a program is born with; -1 for none."""
    found = {}
    for letter, limits in sh.ulimits.items():
        if letter in _RLIMITS:
            name, unit = _RLIMITS[letter]
            soft, hard = (-1 if text == "unlimited" else int(text) * unit for text in limits)
            found[name] = (soft, hard)
    return found
