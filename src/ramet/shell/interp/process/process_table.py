"""The process table of a workspace for `ps` and `kill`, and signal delivery by pid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ramet.shell.interp.process import signals
from ramet.shell.interp.run.traps import send
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState

if TYPE_CHECKING:
    from ramet.shell.interp.process.process import Process


class ProcessTable:
    """The `JobTable` of a shell's commands."""

    __slots__ = ("_sh",)

    def __init__(self, sh: ShellState) -> None:
        self._sh = sh

    def processes(self) -> Iterator[tuple[int, int, str, float]]:
        """pid, parent's pid, command line and start (seconds since the epoch): the shells, then the processes."""
        shell = self._sh.shell
        for sh in reversed(list(_shells(self._sh))):
            yield sh.top_pid, int(str(sh.vars["PPID"])), sh.command_line, shell.started
        for process in sorted(shell.processes.values(), key=lambda process: process.pid):
            parent = process.session.parent
            yield process.pid, parent.own_pid() if parent is not None else 0, _text(process), process.started
        if shell.programs is not None:
            yield from shell.programs.processes()

    def own_pid(self) -> int:
        """The shell that runs the command."""
        return self._sh.top_pid

    def next_pid(self) -> int:
        return self._sh.shell.next_pid()

    def signal(self, pid: int, number: int) -> bool:
        """Deliver a signal; False when there is no such process."""
        return deliver(self._sh, pid, number)


def _shells(sh: ShellState | None) -> Iterator[ShellState]:
    """A shell and those that it was started by; the subshells between them are left out."""
    while sh is not None:
        if not sh.sub_level:
            yield sh
        sh = sh.parent


def _text(process: Process) -> str:
    return process.job.text if process.job is not None else "bash"


def deliver(sh: ShellState, pid: int, number: int) -> bool:
    """Signal this shell, a process, or an outer shell; False when the pid is unknown."""
    if pid in (0, sh.own_pid()):
        if number:
            _signal_itself(sh, number)
        return True
    process = sh.shell.processes.get(pid)
    if process is not None:
        process.signal(number)
        return True
    above = sh.parent
    while above is not None:
        if above.pid == pid:
            _signal_above(above, number)
            return True
        above = above.parent
    programs = sh.shell.programs
    return programs is not None and programs.signal(pid, number)


def _signal_itself(sh: ShellState, number: int) -> None:
    try:
        send(sh, number)
    except Killed:
        if not sh.sub_level or "EXIT" not in sh.traps or number not in signals.TERMINATING:
            raise
        # Its EXIT trap runs before the next command would; where there is none, it is too late for that.
        sh.pending.append(number)
        sh.instrumented = True


def _signal_above(target: ShellState, number: int) -> None:
    """A subshell signals a shell that waits for it."""
    try:
        send(target, number)
    except Killed:
        target.pending.append(number)
        target.instrumented = True
        target.traps.setdefault(signals.NAMES[number], f"exit {128 + number}")
