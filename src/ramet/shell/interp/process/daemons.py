"""Daemons of programs of the machine as jobs: `jobs` lists them, `kill` ends them, nothing waits for them.

A command substitution waits for the end of their output, as for that of every job.
"""

from __future__ import annotations

import asyncio

from ramet.core.proc import Daemon
from ramet.shell.interp.process.descriptors import release_all
from ramet.shell.interp.run.maybe_async import Result
from ramet.shell.interp.run.subshell import run_shell
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.state.shell_state import ShellState


def adopt_daemon(sh: ShellState, daemon: Daemon) -> None:
    """Put what a program has left behind into the table of the session's shell, until it has ended."""
    held = {number: sh.fds[number].share() for number in daemon.outputs if number in sh.fds}
    while sh.sub_level and sh.parent is not None:
        sh = sh.parent
    child = sh.jobs.fork_process(sh)
    child.task_group = TaskGroup()
    for description in child.fds.values():
        description.release()
    child.fds.clear()
    child.fds.update(held)
    silent = asyncio.get_running_loop().create_future()

    async def wait() -> int:
        try:
            await daemon.silent()
            await release_all(child.fds)
        finally:
            silent.set_result(None)
        await daemon.ended()
        sh.jobs.forget(job)
        return 0

    def run(_: ShellState) -> Result:
        return wait()

    process = sh.jobs.spawn(child, run_shell(child, run, counted=True))
    process.program, process.silent = daemon.signal, silent
    job = sh.jobs.add(process, daemon.text)
    job.daemon = True
