"""Daemons of programs of the machine as jobs: `jobs` lists them, `kill` ends them, nothing waits for them."""

from __future__ import annotations

from ramet.core.proc import Daemon
from ramet.shell.interp.run.maybe_async import Result
from ramet.shell.interp.run.subshell import run_shell
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.state.shell_state import ShellState


def adopt_daemon(sh: ShellState, daemon: Daemon) -> None:
    """Put what a program has left behind into the table of the session's shell, until it has ended."""
    while sh.sub_level and sh.parent is not None:
        sh = sh.parent
    child = sh.jobs.fork_process(sh)
    child.task_group = TaskGroup()
    for description in child.fds.values():
        description.release()
    child.fds.clear()  # what it prints is discarded: no reader waits for it

    async def wait() -> int:
        await daemon.ended()
        sh.jobs.forget(job)
        return 0

    def run(_: ShellState) -> Result:
        return wait()

    process = sh.jobs.spawn(child, run_shell(child, run, counted=True))
    process.program = daemon.signal
    job = sh.jobs.add(process, daemon.text)
    job.daemon = True
