"""Job-control builtins: `jobs`, `wait`, `fg`, `bg`, `kill` and `disown`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ramet.core.paths import encode
from ramet.shell.expand.arith.numerals import is_name, is_number, is_signed
from ramet.shell.interp.builtins.flow import signal_list
from ramet.shell.interp.builtins.usage import bad_option, flags_of, number_of
from ramet.shell.interp.process import signals
from ramet.shell.interp.process.process_table import deliver
from ramet.shell.interp.run.batches import each, then, turn, write_lines
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.run.traps import interrupted
from ramet.shell.interp.state.scopes import split_subscript
from ramet.shell.interp.state.shell_state import Builtin, ShellState

if TYPE_CHECKING:
    from ramet.shell.interp.process.jobs import Job, Jobs


def jobs(sh: ShellState, argv: list[str]) -> Result:
    long = pids = False
    only = ""
    words: list[str] = []
    for at, word in enumerate(argv[1:], 1):
        if word == "--":
            words = argv[at + 1 :]
            break
        if word.startswith("-") and len(word) > 1:
            for letter in word[1:]:
                if letter not in "lpnrsx":
                    return bad_option(sh, "jobs", f"-{letter}")
                if letter == "x":
                    return _with_pids(sh, argv[argv.index(word) + 1 :])
                long, pids = long or letter == "l", pids or letter == "p"
                only = letter if letter in "rs" else only
        else:
            words = argv[at:]
            break
    chosen: list[Job] = []
    table = sh.jobs.visible()

    def choose(word: str) -> Result:
        job = _found(sh, "jobs", word if word.startswith("%") else "%" + word, table) if table.jobs else None
        if job is None:
            return sh.error(f"jobs: {word}: no such job")
        chosen.append(job)
        return 0

    if not words:
        chosen = [job for job in table.jobs if job.running or not job.notified]
        table.jobs = list(chosen)  # reported jobs are listed once
    return then(each(sh, words, choose), lambda status: _listed(sh, table, chosen, only, long, pids, status))


def _listed(sh: ShellState, table: Jobs, chosen: list[Job], only: str, long: bool, pids: bool, status: int) -> Result:
    current, previous = table.current(), table.previous()

    def line(job: Job) -> str:
        state = job.state_text()
        if (only == "r" and state != "Running") or (only == "s" and state != "Stopped"):
            return ""
        if pids:
            return f"{job.pid}\n"
        mark = "+" if job is current else "-" if job is previous else " "
        tail = " &" if job.running and not job.stopped else ""
        place = f" {job.pid:5d} " if long else "  "
        return f"[{job.id}]{mark}{place}{state:<24}{job.text}{tail}\n"

    def drop_ended(status: int) -> int:
        over = {job for job in chosen if not job.running}
        if over:
            sh.jobs.jobs = [job for job in sh.jobs.jobs if job not in over]
        return status

    return then(write_lines(sh, map(line, chosen), len(chosen), "jobs", status), drop_ended)


def _found(sh: ShellState, command: str, spec: str, table: Jobs | None = None) -> Job | None:
    """Find the job that a spec names; None after a message if it is ambiguous."""
    from ramet.shell.interp.process.jobs import AmbiguousJob

    try:
        return (sh.jobs if table is None else table).find(spec)
    except AmbiguousJob as error:
        sh.complain(f"{command}: {error}: ambiguous job spec")
        return None


def _with_pids(sh: ShellState, argv: list[str]) -> Result:
    """`jobs -x`: a command whose job specifications are replaced by process ids."""
    words: list[str] = []
    for word in argv:
        job = sh.jobs.visible().find(word) if word.startswith("%") else None
        words.append(word if job is None else str(job.pid))
    return drive(sh.shell.invoke(sh, words)) if words else 0


def wait(sh: ShellState, argv: list[str]) -> Result:
    following = False
    variable: str | None = None
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = argv[i]
        i += 1
        if word == "--":
            break
        for place, letter in enumerate(word[1:], 1):
            if letter == "p":
                if not word[place + 1 :] and i >= len(argv):
                    sh.complain("wait: -p: option requires an argument")
                    sh.err("wait: usage: wait [-fn] [-p var] [id ...]\n")
                    return 2
                variable = word[place + 1 :] or argv[i]
                i += 0 if word[place + 1 :] else 1
                break
            if letter not in "fn":
                return bad_option(sh, "wait", f"-{letter}")
            following = following or letter == "n"
    if variable is not None and not is_name(split_subscript(variable)[0]):
        return sh.error(f"wait: `{variable}': not a valid identifier")
    return drive(_wait(sh, argv, i, following, variable))


async def _wait(sh: ShellState, argv: list[str], start: int, following: bool, variable: str | None) -> int:
    words = [str(word) for word in argv[start:]]
    if variable:
        sh.variables.unset(variable)
    if following:
        return await _wait_next(sh, words, variable)
    if not words:
        for job in [job for job in sh.jobs.jobs if not job.daemon]:
            await sh.budget.yield_turn()
            status = await sh.jobs.wait(sh, job.process)
            if interrupted(sh):
                return status
            sh.jobs.report_killed(sh)
            if not job.stopped:
                _waited(sh, job)
        sh.jobs.forget_ended()
        return 0
    status = 0
    for word in words:
        await turn(sh)
        status = await _wait_one(sh, word, variable)
    return status


def _put_pid(sh: ShellState, variable: str, pid: str) -> None:
    """`wait -p`: a variable or an element of an array."""
    name, subscript = split_subscript(variable)
    if subscript is None:
        sh.variables.set(name, pid)
    else:
        sh.variables.set_element(name, subscript, pid)


def _waited(sh: ShellState, job: Job) -> None:
    """Remove a job that ended, and the variables of its coprocess."""
    sh.jobs.forget(job)
    for name, pid in list(sh.coprocs.items()):
        if pid == job.pid:
            del sh.coprocs[name]
            sh.variables.unset(name)
            sh.variables.unset(f"{name}_PID")


async def _wait_one(sh: ShellState, word: str, variable: str | None) -> int:
    job = _found(sh, "wait", word)
    if job is None and word[:1] == "%" and is_number(word[1:]):
        # One that was waited for is still known by its number, until another one has it.
        job = next((old for old in reversed(sh.jobs.ended) if old.id == int(word[1:]) and not old.forgotten), None)
    if job is not None:
        status = await sh.jobs.wait(sh, job.process)
        if not interrupted(sh) and not job.stopped:
            sh.jobs.report_killed(sh)
            _waited(sh, job)
            if variable:
                _put_pid(sh, variable, str(job.pid))
        return status
    if word.startswith("%"):
        return sh.error(f"wait: {word}: no such job", 127)
    if number_of(word) is None or not is_number(word):
        return sh.error(f"wait: `{word}': not a pid or valid job spec")
    process = sh.shell.processes.get(int(word))
    if process is not None and process.session.parent is sh:
        return await sh.jobs.wait(sh, process)
    if int(word) in sh.jobs.reaped:
        if variable:
            _put_pid(sh, variable, word)
        return sh.jobs.reaped[int(word)]
    return sh.error(f"wait: pid {word} is not a child of this shell", 127)


async def _wait_next(sh: ShellState, words: list[str], variable: str | None) -> int:
    """`wait -n`: the next job to end."""
    chosen: list[Job] = [] if words else [job for job in sh.jobs.jobs if not job.daemon]
    for word in words:
        await turn(sh)
        job = _found(sh, "wait", word)
        if job is None:
            sh.error(f"wait: {word}: no such job")
        else:
            chosen.append(job)
    if not chosen:
        return 127
    chosen.sort(key=lambda job: job.id)  # of those that ended, the first that began comes first
    while True:
        done = next((job for job in chosen if not job.running), None)
        if done is not None:
            sh.jobs.report_killed(sh)
            sh.jobs.forget(done)
            done.forgotten = True
            if variable:
                _put_pid(sh, variable, str(done.pid))
            return done.status
        await asyncio.wait([job.process.task for job in chosen], return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
        await asyncio.sleep(0)
        if number := interrupted(sh):
            return 128 + number


def fg(sh: ShellState, argv: list[str]) -> Result:
    if "monitor" not in sh.options:
        return sh.error("fg: no job control")
    spec = argv[1] if len(argv) > 1 else "%+"
    job = _found(sh, "fg", spec if spec.startswith("%") else "%" + spec)
    if job is None:
        return sh.error(f"fg: {argv[1] if len(argv) > 1 else 'current'}: no such job")
    return drive(_foreground(sh, job))


async def _foreground(sh: ShellState, job: Job) -> int:
    written = sh.out(encode(job.text + "\n"), "fg")
    if not isinstance(written, int):
        await written
    job.process.resume()
    status = await sh.jobs.wait(sh, job.process)
    sh.jobs.forget(job)
    return status


def bg(sh: ShellState, argv: list[str]) -> Result:
    if "monitor" not in sh.options:
        return sh.error("bg: no job control")
    spec = argv[1] if len(argv) > 1 else "%+"
    job = _found(sh, "bg", spec if spec.startswith("%") else "%" + spec)
    if job is None:
        return sh.error(f"bg: {argv[1] if len(argv) > 1 else 'current'}: no such job")
    if not job.stopped:
        return sh.error(f"bg: job {job.id} already in background", 0)
    mark = "+" if job is sh.jobs.current() else "-" if job is sh.jobs.previous() else " "
    job.process.resume()
    return sh.out(encode(f"[{job.id}]{mark} {job.text} &\n"), "bg")


def disown(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "ahr")
    if options is None:
        return 2
    flags, words = options
    every = "a" in flags or "r" in flags
    keep = "h" in flags
    if every and not words:
        sh.jobs.jobs.clear()
        return 0
    if not words:
        current = sh.jobs.current()
        if current is None:
            return sh.error("disown: current: no such job")
        sh.jobs.forget(current)
        return 0

    def drop(word: str) -> Result:
        job = _found(sh, "disown", word)
        if job is None:
            return sh.error(f"disown: {word}: no such job")
        if not keep:
            sh.jobs.forget(job)
        return 0

    return each(sh, words, drop)


def _signal(sh: ShellState, text: str) -> int | None:
    """The number of a signal, whose name has no `SIG` before it in POSIX mode."""
    return None if sh.posix and text[:3].upper() == "SIG" else signals.number_of(text)


def kill(sh: ShellState, argv: list[str]) -> Result:
    words = argv[1:]
    number: int | None = 15
    if words and words[0] in ("-l", "-L"):
        return _names(sh, words[1:])
    if words and words[0] in ("-s", "-n"):
        if len(words) < 2:
            return sh.error(f"kill: {words[0]}: option requires an argument")
        number = _signal(sh, words[1])
        if number is None:
            return sh.error(f"kill: {words[1]}: invalid signal specification")
        words = words[2:]
    elif words and words[0].startswith("-") and words[0] not in ("-", "--"):
        wanted = words[0][1:]
        number = _signal(sh, wanted)
        if number is None and wanted[0] in "sn" and len(wanted) > 1:
            wanted = wanted[1:]  # `kill -sTERM`
            number = _signal(sh, wanted)
        if number is None:
            return sh.error(f"kill: {wanted}: invalid signal specification")
        words = words[1:]
    if words[:1] == ["--"]:
        words = words[1:]
    if not words:
        sh.err("kill: usage: kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]\n")
        return 2
    chosen = 15 if number is None else number
    if len(words) > _AT_ONCE:
        return drive(_kill_many(sh, words, chosen))
    return each(sh, words, lambda word: _kill_one(sh, str(word), chosen))


async def _kill_many(sh: ShellState, words: list[str], number: int) -> int:
    """Signal processes in batches: the last steps of thousands of them would fill a turn of the event loop."""
    status = killed = 0
    for word in words:
        if _kill_one(sh, str(word), number):
            status = 1
        else:
            killed += 1
        if killed == _AT_ONCE:
            killed = 0
            await asyncio.sleep(0)
        await turn(sh)
    return status


_AT_ONCE: Final = 32
"""Processes that end in one turn of the event loop."""


def _kill_one(sh: ShellState, word: str, number: int) -> int:
    if word.startswith("%"):
        job = _found(sh, "kill", word)
        if job is None:
            return sh.error(f"kill: {word}: no such job")
        if not job.running:
            return sh.error(f"kill: ({job.pid}) - No such process")
        job.process.signal(number)
        return 0
    if not word:
        return sh.error("kill: `': not a pid or valid job spec")
    if number_of(word) is None or not is_signed(word):
        return sh.error(f"kill: {word}: arguments must be process or job IDs")
    pid = abs(int(word))
    sh.status = 0  # which an EXIT trap sees, should this be the end
    return 0 if deliver(sh, pid, number) else sh.error(f"kill: ({pid}) - No such process")


def _names(sh: ShellState, words: list[str]) -> Result:
    if not words and sh.posix:
        return sh.out(encode(" ".join(name for name in signals.NAMES[1:] if name) + "\n"), "kill")
    if not words:
        return sh.out(encode(signal_list()), "kill")
    out = sh.pending_output = list[str]()

    def name(word: str) -> Result:
        number = _signal(sh, word)
        if number is None and is_number(word) and 128 < (number_of(word) or 0) < 128 + len(signals.NAMES):
            out.append(f"{signals.NAMES[int(word) - 128]}\n")
        elif number is None or number >= len(signals.NAMES):
            return sh.error(f"kill: {word}: invalid signal specification")
        else:
            out.append(f"{signals.NAMES[number] if is_number(word) else number}\n")
        return 0

    return then(each(sh, words, name), lambda status: write_lines(sh, out, len(out), "kill", status))


TABLE: Final[dict[str, Builtin]] = {
    "jobs": jobs,
    "wait": wait,
    "fg": fg,
    "bg": bg,
    "disown": disown,
    "kill": kill,
}
