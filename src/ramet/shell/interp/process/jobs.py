"""Background jobs and the virtual processes behind them.

- Every task outside of its shell (a job, a coprocess, a process substitution) is a `Process` with a pid for `kill`
  and `wait`.
- Only jobs may outlive the command that started them.
"""

from __future__ import annotations

import asyncio
import enum
from bisect import bisect_left
from collections import deque
from collections.abc import Coroutine
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from ramet.core.limits import Budget, Cancelled, TimeUp
from ramet.shell.interp.process import signals
from ramet.shell.interp.process.process import Process
from ramet.shell.interp.run.task_group import TaskGroup, forget_end
from ramet.shell.interp.run.traps import child_died, interrupted
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState

if TYPE_CHECKING:
    from ramet.shell.interp.main.shell import Shell


class JobState(enum.Enum):
    RUNNING = "Running"
    STOPPED = "Stopped"
    COMPLETED = "Done"
    KILLED = "Killed"


class Job:
    """One `command &`."""

    __slots__ = ("daemon", "forgotten", "id", "notified", "process", "state", "status", "text")

    def __init__(self, number: int, process: Process, text: str) -> None:
        self.id, self.process, self.text = number, process, text
        self.state = JobState.RUNNING
        self.status = 0
        self.notified = False
        self.forgotten = False
        """Whether a `wait` without operands has reported its end; then its number is unknown."""
        self.daemon = False
        """Whether a program of the machine has left it behind: nothing waits for it unless it is named."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.state in (JobState.RUNNING, JobState.STOPPED)

    @property
    def stopped(self) -> bool:
        """Whether it is stopped as far as its shell knows: only job control tells it."""
        parent = self.process.session.parent
        return self.process.stopped and parent is not None and "monitor" in parent.options

    def state_text(self) -> str:
        if self.stopped:
            return JobState.STOPPED.value
        if self.state is JobState.KILLED:
            return signals.DESCRIPTIONS.get(self.status - 128) or f"Signal {self.status - 128}"
        if self.state is JobState.COMPLETED and self.status:
            return f"Exit {self.status}"
        return str(self.state.value)


def report_death(sh: ShellState, number: int, pid: int, text: str) -> None:
    """Say that a command died of a signal, as a shell without a terminal does."""
    if number in signals.UNREPORTED or sh.in_substitution:
        return
    shown = signals.DESCRIPTIONS.get(number) or f"Signal {number}"
    if number == 15 or (number < len(signals.NAMES) and signals.NAMES[number] in sh.traps):
        sh.err(f"{shown}\n")
    else:
        sh.complain(f"{pid:5d} {shown:<24}{text}")


class AmbiguousJob(Exception):
    """More than one job begins with this text, or has it in it."""


class Jobs:
    """The jobs of one shell; the processes are known to all shells of the same top."""

    __slots__ = ("ended", "inherited", "jobs", "loose", "reaped", "shell")

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.jobs: list[Job] = []
        self.loose: set[Process] = set()
        """Process substitutions that outlived their command."""
        self.reaped: dict[int, int] = {}
        """Statuses of processes that ended, by pid, for a later `wait`."""
        self.ended: list[Job] = []
        """The last ones that ended, and some more."""
        self.inherited: Jobs | None = None
        """The jobs of the shell around a command substitution, which `$(jobs -p)` still sees."""

    def fork(self) -> Jobs:
        return Jobs(self.shell)

    def visible(self) -> Jobs:
        """The table that `jobs` shows."""
        return self if self.jobs or self.inherited is None else self.inherited

    # ------------------------------------------------------------------------------------------------ starting

    def fork_process(self, parent: ShellState) -> ShellState:
        """A subshell that is to run as a process; refused before it shares anything that would have to be let go."""
        if self.shell.too_many_shells(parent.budget.limits.processes, 1):
            raise parent.budget.exceeded("processes", "fork")
        parent.budget.check()
        return parent.fork()

    def spawn(self, child: ShellState, work: Coroutine[Any, Any, int]) -> Process:
        """Run a forked shell as a process."""
        process = Process(self.shell.next_pid(), child)
        child.pid, child.process = process.pid, process
        self.shell.processes[process.pid] = process
        process.task = asyncio.create_task(_contain(process, work, self.shell.start_queue.turn(), child.task_group))
        child.task_group.tasks[process.task] = True
        process.task.add_done_callback(lambda task: self._end(process))
        process.task.add_done_callback(lambda task: self._unbegun(child, work))
        return process

    def _unbegun(self, child: ShellState, work: Coroutine[Any, Any, int]) -> None:
        """Release a process that was cancelled before its first step."""
        work.close()
        self.shell.release_unstarted(child)

    def _end(self, process: Process) -> None:
        self.shell.processes.pop(process.pid, None)
        self.loose.discard(process)
        if process.task.cancelled():
            status = 128 + (process.killed or 15)
            forget_end(process.task)
        else:
            status = process.task.result()
        self.reaped[process.pid] = status
        if process.session.parent is not None:
            child_died(process.session.parent)
        process.session.process = None  # they know each other, which only a collection would find
        if len(self.reaped) > 4096:
            del self.reaped[next(iter(self.reaped))]
        job = process.job
        if job is not None and self._place(job) is not None:
            job.status = status
            job.state = JobState.KILLED if process.killed else JobState.COMPLETED
            self.ended.append(job)
            if len(self.ended) > 2 * _KEPT:
                del self.ended[:-_KEPT]

    def add(self, process: Process, text: str) -> Job:
        # Jobs stand in the order of their numbers, so the last one has the highest.
        number = self.jobs[-1].id + 1 if self.jobs else 1
        job = process.job = Job(number, process, text)
        self.jobs.append(job)
        return job

    def _place(self, job: Job) -> int | None:
        """Where a job stands in the table, which is in the order of the numbers; None for one that does not."""
        place = bisect_left(self.jobs, job.id, key=_number)
        return place if place < len(self.jobs) and self.jobs[place] is job else None

    def ended_data(self) -> list[tuple[int, int, str, int, int, bool]]:
        """Ended jobs in the table as plain data: number, pid, text, status, signal, notified."""
        return [
            (job.id, job.pid, job.text, job.status, job.process.killed, job.notified)
            for job in self.jobs
            if not job.running
        ]

    def restore(
        self, sh: ShellState, number: int, pid: int, text: str, status: int, killed: int, notified: bool
    ) -> None:
        """Put a job into the table that ended elsewhere."""
        process = Process(pid, sh)
        process.killed = killed
        job = Job(number, process, text)
        job.state, job.status, job.notified = JobState.KILLED if killed else JobState.COMPLETED, status, notified
        self.jobs.append(job)

    def finished(self) -> list[Job]:
        """The last jobs that ended, also those that `wait` or `jobs` have already reported."""
        return self.ended[-_KEPT:]

    # ------------------------------------------------------------------------------------------------- finding

    def current(self) -> Job | None:
        """The last one that was stopped, else the last one."""
        return next((job for job in reversed(self.jobs) if job.stopped), self.jobs[-1] if self.jobs else None)

    def previous(self) -> Job | None:
        current = self.current()
        return next((job for job in reversed(self.jobs) if job is not current), current)

    def find(self, spec: str) -> Job | None:
        """`%1`, `%%`, `%+`, `%-`, `%name`, `%?text`, or a pid."""
        if not self.jobs:
            return None
        if not spec.startswith("%"):
            return next((job for job in self.jobs if str(job.pid) == spec), None)
        spec = spec[1:]
        if spec in ("", "%", "+"):
            return self.current()
        if spec == "-":
            return self.previous()
        if len(spec) < _DIGITS and spec.isdigit():
            return next((job for job in self.jobs if job.id == int(spec)), None)
        if spec[0] == "?":
            found = [job for job in self.jobs if spec[1:] in job.text]
        else:
            found = [job for job in self.jobs if job.text.startswith(spec)]
        if len(found) > 1:
            raise AmbiguousJob(spec.removeprefix("?"))
        return found[0] if found else None

    def forget(self, job: Job) -> None:
        place = self._place(job)
        if place is not None:
            del self.jobs[place]

    def forget_ended(self) -> None:
        """After a `wait` for everything, no status of what has ended can be asked for any more."""
        self.reaped.clear()
        for job in self.ended:
            job.forgotten = True

    def report_killed(self, sh: ShellState) -> None:
        """Report the jobs that were killed; those that were asked to end (TERM) only to a shell with job control."""
        for job in self.jobs:
            if job.state is JobState.KILLED and not job.notified:
                job.notified = True
                if "monitor" in sh.options and not sh.in_substitution:
                    mark = "+" if job is self.current() else "-" if job is self.previous() else " "
                    sh.err(f"[{job.id}]{mark}  {job.state_text():<24}{job.text}\n")
                elif job.process.killed != 15:
                    report_death(sh, job.process.killed, job.pid, job.text)

    def drop_reported(self) -> None:
        """Remove killed jobs that were reported; their pids still give their statuses."""
        for job in [job for job in self.jobs if job.state is JobState.KILLED and job.notified]:
            job.forgotten = True
            self.jobs.remove(job)

    # ------------------------------------------------------------------------------------------------- waiting

    async def wait(self, sh: ShellState, process: Process) -> int:
        """The status of a process once it has ended; 128+n when a trapped signal ends the waiting."""
        while not process.ended:
            stopped = next((job for job in self.jobs if job.process is process and job.stopped), None)
            if stopped is not None:
                sh.complain(f"warning: wait_for_job: job {stopped.id} is stopped")
                return 128 + signals.STOP
            waiting = asyncio.ensure_future(asyncio.wait({process.task}))
            try:
                done, _ = await asyncio.wait({waiting}, timeout=0.05 if sh.traps else None)
            except BaseException:
                waiting.cancel()
                raise
            if not done:
                waiting.cancel()
            if number := interrupted(sh):
                return 128 + number
        # Callbacks that record the status run one turn after the task ends.
        if process.pid not in self.reaped:
            await asyncio.sleep(0)
        return self.reaped.get(process.pid, 0)

    async def let_start(self) -> None:
        """A shell that ends lets its jobs do what they need not wait for, as processes would meanwhile."""
        for _ in range(_TURNS):
            if not any(job.running and not job.daemon for job in self.jobs):
                return
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Wait for every job, and for what other shells left behind that writes to where we do.

        This is the end of a script whose output is still read.
        """
        while running := self._going() | self._unfinished():
            await asyncio.wait(running)
            await asyncio.sleep(0)

    def _going(self) -> set[asyncio.Task[int]]:
        return {job.process.task for job in self.jobs if job.running and not job.daemon and not job.process.stopped}

    def _unfinished(self) -> set[asyncio.Task[int]]:
        return {
            process.task
            for process in self.shell.processes.values()
            if not process.stopped
            and any(description.lent for number, description in process.session.fds.items() if number)
        }

    async def end(self, only: Budget | None = None) -> None:
        """Kill every job, also those that shells within this one have left behind, and wait until they are gone; or
        only those of one execution."""
        for job in self.jobs:
            job.notified = job.notified or only is None or job.process.session.budget is only
        while ending := [
            process for process in self.shell.processes.values() if only is None or process.session.budget is only
        ]:
            for process in ending:
                process.killed = process.killed or 9
                process.session.budget.spend("processes")  # it starts nothing more before its end comes
            # A few at a time: the last steps of thousands of processes would fill a turn of the loop.
            for start in range(0, len(ending), _AT_ONCE):
                batch = ending[start : start + _AT_ONCE]
                for process in batch:
                    process.session.task_group.stop()
                    process.task.cancel()
                await asyncio.wait([process.task for process in batch])
                for process in batch:
                    await process.session.task_group.gone()
            await asyncio.sleep(0)  # what is called when they end takes them out of the table
        if self.shell.closing:
            await asyncio.gather(*self.shell.closing, return_exceptions=True)


_number = attrgetter("id")
_KEPT: Final = 1000
"""Jobs that ended, and are known for a while."""
_AT_ONCE: Final = 32
_DIGITS: Final = 20
"""Characters that no number of a job has."""
_TURNS: Final = 8


class Pids:
    """Source of unique pids."""

    def __init__(self) -> None:
        self.last = 1000

    def next(self) -> int:
        self.last += 1
        return self.last

    def reserve(self, number: int) -> None:
        """Skip pids up to a number that a restored session knows."""
        self.last = max(self.last, number)


class StartQueue:
    """Lets processes start a few at a time, so that a script that forks without end cannot fill a turn of the loop."""

    BURST = 4

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._burst = 0
        self._pumping = False

    def turn(self) -> asyncio.Future[None] | None:
        """What a new process has to wait for before its first step; None for nothing."""
        loop = asyncio.get_running_loop()
        if not self._pumping:
            self._pumping = True
            loop.call_soon(self._pump, loop)
        if self._burst < self.BURST and not self._waiting:
            self._burst += 1
            return None
        future = loop.create_future()
        self._waiting.append(future)
        return future

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        self._burst = 0
        while self._waiting and self._burst < self.BURST:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                self._burst += 1
        if self._burst:
            loop.call_soon(self._pump, loop)
        else:
            self._pumping = False


async def _contain(
    process: Process, work: Coroutine[Any, Any, int], turn: asyncio.Future[None] | None, crew: TaskGroup
) -> int:
    """The status of a process; a kill by signal and the end of its time are statuses, not exceptions."""
    try:
        if turn is not None:
            await turn
        return await process.steps(crew.steps(work, whole=True))
    except asyncio.CancelledError:
        work.close()
        if process.killed:
            return 128 + process.killed
        raise
    except TimeUp:
        return 124
    except (Cancelled, Killed):
        return 137
    finally:
        if crew.stopped and process.owns_task_group:
            process.session.shell.detach_tasks(crew)
