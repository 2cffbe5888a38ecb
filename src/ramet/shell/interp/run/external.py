"""Run programs: commands of the table, scripts in the tree, `sh` and `bash`."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH
from ramet.concurrency.watchdog import WATCHDOG
from ramet.core import paths
from ramet.core.errors import RametError, fail, out_of_range, reason, strerror
from ramet.core.limits import Cancelled, TimeUp
from ramet.core.paths import Path
from ramet.core.proc import PROGRAM, Exec, Proc
from ramet.core.signals import BySignal, Died
from ramet.core.streams import PipeWriter, Reader, Writer
from ramet.shell.expand import quote
from ramet.shell.interp.process.descriptors import Description, release_all
from ramet.shell.interp.process.dev_fd import wrapped
from ramet.shell.interp.process.groups import ProcessGroup
from ramet.shell.interp.run.batches import rows
from ramet.shell.interp.run.task_group import TaskGroup
from ramet.shell.interp.run.traps import Leave, ignore_interrupts, permitted
from ramet.shell.interp.state import function_table
from ramet.shell.interp.state.frames import Killed
from ramet.shell.interp.state.shell_state import ShellState

BIN: Final = ("/usr/bin", "/bin")
"""Directories where the command table lives, as far as a script can tell."""
SHELLS: Final = frozenset(("sh", "bash", "dash"))


def in_table(sh: ShellState, name: str) -> bool:
    return name in sh.shell.commands or name in SHELLS or name in AS_PROGRAMS


async def run_external(sh: ShellState, argv: list[str], called: str | None = None) -> int:
    """Run a program by name or path; `called` is what it is to take for its own name."""
    if sh.shell.hook is not None and not await permitted(sh, argv):
        return sh.status
    name = argv[0]
    if called is not None:
        argv = [called, *argv[1:]]
    if "/" in name:
        return await _by_path(sh, argv, name)
    known = name in sh.hashed
    found = await search(sh, name)
    if found is None:
        found = await search_path(sh, name, sh.variables.get("PATH") or "", executable=True)
        if found is None:
            return await _not_found(sh, argv)
        return sh.error(f"{found}: Permission denied", 126)
    if (refusal := _too_long(sh, argv)) is not None:
        return sh.error(f"{found.removeprefix(chr(0))}: {refusal}", 126)
    if found.startswith("\0"):
        return await _table(sh, name, argv)
    if found.rpartition("/")[0] in BIN and in_table(sh, base := found.rpartition("/")[2]):
        return await _table(sh, base, argv)  # remembered under another name
    if known:
        return await _by_path(sh, argv, found)  # it need not be what it was when it was found
    return await _script_file(sh, sh.shell.fs.named(found, sh.cwd), found, argv)


async def _not_found(sh: ShellState, argv: list[str]) -> int:
    if argv[0].startswith("%") and (
        sh.stage_command is None or sh.frames
    ):  # `%1` alone, no stage of a pipeline, is `fg %1`
        from ramet.shell.interp.builtins.jobs import fg

        resumed = fg(sh, ["fg", *argv])
        return resumed if isinstance(resumed, int) else await resumed
    if not sh.variables.get("PATH"):  # then a name is a file's, and found or not where it is run
        return sh.error(f"{argv[0]}: No such file or directory", 127)
    handler = sh.functions.get("command_not_found_handle")
    if handler is not None:
        from ramet.shell.interp.run.functions import call_function

        result: Any = call_function(sh, handler, ["command_not_found_handle", *argv])
        return int(result if type(result) is int else await result)
    name = quote.ansi(argv[0]) if quote.unprintable(argv[0]) else argv[0]
    status = sh.error(f"{name}: command not found", 127)
    if sh.shell.explain is not None and (line := sh.shell.explain(name)):
        sh.err(line)
    return status


async def search(sh: ShellState, name: str) -> str | None:
    """Where PATH finds a name: a path in the tree, `\\0/usr/bin/name` for the command table, None for nowhere."""
    if not name:
        return None
    hit = sh.hashed.get(name)
    if hit is not None and "checkhash" in sh.shopts and not hit[0].startswith("\0"):
        try:
            await runnable(sh, hit[0])
        except OSError:
            hit = None
    if hit is not None:
        sh.hashed[name] = (hit[0], hit[1] + 1)
        return hit[0]
    path = sh.variables.get("PATH")
    found = await search_path(sh, name, path or "")
    programs = sh.shell.programs
    if found is not None and "hashall" in sh.options and not (programs is not None and programs.has(found)):
        sh.hashed[name] = (found, 1)
    return found


async def search_path(sh: ShellState, name: str, path: str, executable: bool = False) -> str | None:
    """As `search` along any path; with `executable` the last resort is a file that cannot be run."""
    if len(name) > paths.NAME_MAX:
        return None
    fs = sh.shell.fs
    unusable: str | None = None
    unsure = getattr(sh.shell.commands, "unsure", None)
    slow = unsure is not None and unsure(name)
    table = await offload(sh.budget, partial(in_table, sh, name)) if slow else in_table(sh, name)
    for directory in path.split(":"):
        if len(directory) > paths.TEXT_MAX:
            continue  # which names nothing
        folder = directory.rstrip("/") or ("/" if directory else ".")
        if table and folder in BIN:
            return f"\0{folder}/{name}"
        if sh.shell.programs is not None and await is_native(sh, f"{folder}/{name}"):
            return f"{folder}/{name}"
        if sh.shell.unused is not None and sh.shell.unused.has(f"{folder}/{name}"):
            continue
        try:
            place = fs.named(f"{folder}/{name}", sh.cwd)
            if fs.lacks(place):
                continue
            stat = await fs.stat(place, follow=True)
        except OSError:
            continue
        if stat.is_file:
            found = name if folder == "." and not directory else f"{folder}/{name}"
            if stat.mode is None or stat.mode & 0o111:
                return found
            unusable = unusable or found
    return unusable if executable else None


async def is_native(sh: ShellState, name: str) -> bool:
    """Whether a path leads to a program of the host, perhaps by links of the tree, and to no command of the table."""
    programs = sh.shell.programs
    if programs is None:
        return False
    if not programs.has(name):
        try:
            name = str(await sh.shell.fs.resolve(sh.shell.fs.named(name, sh.cwd), missing_ok=True))
        except OSError:
            return False
    head, _, base = name.rpartition("/")
    return programs.has(name) and not (head in BIN and in_table(sh, base))


async def _native(sh: ShellState, label: str, argv: list[str]) -> int:
    """Run a program of the box, by the path that leads to it."""
    assert sh.shell.programs is not None
    return await run_exec(sh, sh.shell.programs.command(label if "/" in label else f"./{label}"), argv)


async def _by_path(sh: ShellState, argv: list[str], name: str) -> int:
    try:
        path = await runnable(sh, name)
    except OSError as error:
        status = 127 if error.errno == errno.ENOENT else 126
        return sh.error(f"{name}: {reason(error)}", status)
    if (refusal := _too_long(sh, argv)) is not None:
        return sh.error(f"{name}: {refusal}", 126)
    if path is None:
        return await _table(sh, name[name.rfind("/") + 1 :], argv)
    return await _script_file(sh, path, name, argv)


def _too_long(sh: ShellState, argv: list[str]) -> str | None:
    """Return the error for an argument over the limit; None where all of them fit."""
    fits = max(map(len, argv)) <= sh.budget.limits.argument_bytes
    return None if fits else f"{strerror(errno.E2BIG)}: {sh.budget.exceeded('argument_bytes')}"


async def runnable(sh: ShellState, name: str) -> Path | None:
    """Return the program that a path names, None for a command of the table; raise why it cannot be run."""
    try:
        path = sh.shell.fs.named(name, sh.cwd)
        stat = await sh.shell.fs.stat(path, follow=True)
    except OSError:
        if len(name) < paths.PATH_MAX:
            head, _, base = name.rpartition("/")
            if head in BIN and in_table(sh, base):
                return None
            if head.rpartition("/")[0] in BIN and in_table(sh, head.rpartition("/")[2]):
                raise fail(errno.ENOTDIR, name) from None
            if await is_native(sh, name):
                return path
        raise
    if stat.is_dir:
        raise fail(errno.EISDIR, name)
    if name.endswith("/"):
        raise fail(errno.ENOTDIR, name)
    if stat.mode is not None and not stat.mode & 0o111:
        raise fail(errno.EACCES, name)
    return path


async def _script_file(sh: ShellState, path: Path, label: str, argv: list[str], depth: int = 0) -> int:
    """Run a file of the tree: the command that it stands for, by its `#!` line, else as a shell script."""
    if await is_native(sh, label):
        return await _native(sh, label, argv)
    try:
        data = await sh.shell.read_file(path)
    except OSError as error:
        return sh.error(f"{label}: {reason(error)}", 127 if error.errno == errno.ENOENT else 126)
    if data.startswith(PROGRAM) and in_table(sh, stands_for := paths.decode(data[len(PROGRAM) :].strip())):
        return await _table(sh, stands_for, argv)
    program, argument = _interpreter(data)
    if sh.shell.programs is not None and _is_foreign(sh, data, program, argument):
        return await _native(sh, label, argv)
    if program:
        return await _interpreted(sh, label, program, argument, [label, *argv[1:]], depth)
    if b"\0" in data[:80]:
        return sh.error(f"{label}: cannot execute binary file: Exec format error", 126)
    return await sh.shell.run_bash(sh, ["bash", label, *argv[1:]])


def _interpreter(data: bytes) -> tuple[str, str]:
    """The program that the first line of a file names, and the rest of the line as its argument."""
    if not data.startswith(b"#!"):
        return "", ""
    first = data[2 : data.find(b"\n") if b"\n" in data else len(data)]
    program, _, argument = paths.decode(first.replace(b"\t", b" ")).strip(" ").partition(" ")
    return program, argument.strip(" ")


def _is_foreign(sh: ShellState, data: bytes, program: str, argument: str) -> bool:
    """Whether only a real machine can run a file: machine code, or a script of a language that is not ours."""
    if not program:
        return b"\0" in data[:80]
    words = [program[program.rfind("/") + 1 :], *argument.removeprefix("-S").split()]
    if words[0] == "env" and len(words) > 1:
        del words[0]
    return words[0] not in SHELLS and words[0] not in sh.shell.commands


async def lacks_interpreter(sh: ShellState, path: Path) -> bool:
    """Whether a file names a program that is not there."""
    program, _ = _interpreter(await sh.shell.read_file(path))
    base = program[program.rfind("/") + 1 :]
    if not program or base in SHELLS or base in sh.shell.commands:
        return False
    return not await sh.shell.exists(sh.shell.fs.named(program, sh.cwd))


async def _interpreted(sh: ShellState, label: str, program: str, argument: str, operands: list[str], depth: int) -> int:
    """Run a file by the program, and the one argument, that its first line names."""
    base = program[program.rfind("/") + 1 :]
    words = [argument] if argument else []
    if base == "env" and (rest := argument.removeprefix("-S").split()) and in_table(sh, rest[0]):
        base, *words = rest
    if base in SHELLS:
        return await sh.shell.run_bash(sh, [base, *words, *operands])
    if base in sh.shell.commands:
        return await _table(sh, base, [base, *words, *operands])
    problem = ""
    try:
        path = sh.shell.fs.named(program, sh.cwd)
        stat = await sh.shell.fs.stat(path, follow=True)
        if stat.is_dir or (stat.mode is not None and not stat.mode & 0o111):
            problem = "Permission denied"
    except FileNotFoundError:
        return sh.error(f"{label}: cannot execute: required file not found", 127)
    except OSError as error:
        problem = reason(error)
    if depth >= _INTERPRETERS:
        problem = "Too many levels of symbolic links"
    if problem:
        sh.err(f"{sh.error_name}: {label}: {program}: bad interpreter: {problem}\n")
        return 126
    return await _script_file(sh, path, program, [program, *words, *operands], depth + 1)


_INTERPRETERS: Final = 4
"""So many files may name each other in their first lines."""


async def _table(sh: ShellState, name: str, argv: list[str]) -> int:
    command = sh.shell.commands.get(name)
    if command is None and name in AS_PROGRAMS:
        from ramet.shell.interp.builtins import BUILTINS
        from ramet.shell.interp.run.simple import run_builtin

        return await run_builtin(sh, BUILTINS[name], [name, *argv[1:]])
    if command is None:
        return await sh.shell.run_bash(sh, argv)
    return await run_exec(sh, command, argv)


async def _environ(sh: ShellState, name: str) -> dict[str, str]:
    """Return the environment of a program."""
    await function_table.ready_exported(sh)
    make = sh.environment if sh.program_environment else partial(_environment, sh, name)
    return await offload_large(sh.budget, len(sh.variables.attrs), make, BATCH)


def _environment(sh: ShellState, name: str) -> dict[str, str]:
    """What a program that the shell starts finds: the exported variables, and the path it was started by."""
    env = sh.environment()
    base = name.rpartition("/")[2]
    if base in _LISTING:
        env = sh.variables.ordered(env)
    env["_"] = name if base != name else f"{BIN[0]}/{name}"
    return env


_LISTING: Final = ("env", "printenv")
"""Programs that show in what order they were given their environment."""


async def run_exec(sh: ShellState, command: Exec, argv: list[str]) -> int:
    """Call a command of the table with the descriptors and environment of this shell."""
    fds = {number: description.stream for number, description in sh.fds.items() if number > 2}
    shell = sh.shell
    group = ProcessGroup() if argv[0] == "timeout" else None
    stdin = sh.reader(0)
    stdin.budget = sh.budget
    proc = Proc(
        argv=[str(word) for word in argv],
        fs=wrapped(shell.fs, sh.fds, argv),
        cwd=sh.cwd,
        env=await _environ(sh, str(argv[0])),
        stdin=stdin,
        stdout=sh.writer(1),
        stderr=sh.writer(2),
        run=_runner(sh, str(argv[0]), group),
        budget=sh.budget,
        now=shell.now,
        fds=fds,
        umask=sh.umask,
        user=shell.user,
        services=shell.services_for(sh, None if group is None else group.signal),
    )
    try:
        status = await (command(proc) if sh.group is None else sh.group.run(sh, _call(command, proc)))
        stdout = proc.stdout
        if stdout.full and not (isinstance(stdout, PipeWriter) and stdout.broken):
            await stdout.drain()
        if isinstance(status, BySignal):
            raise Died(status.number)
        return status & 255
    except BrokenPipeError:
        return 141
    except Died as died:
        if sh.single_command:
            sh.death_signal = died.number
        else:
            sh.command_death = died.number, shell.next_pid()
        return 128 + died.number
    except RametError as error:  # a reached limit too
        sh.err(f"{argv[0]}: {error}\n")
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        sh.err(f"{argv[0]}: {where}{reason(error)}\n")
        return 1
    except (TimeUp, Cancelled, Killed, Leave):
        raise
    except Exception as error:
        if out_of_range(error):
            sh.err(f"{argv[0]}: {strerror(errno.ERANGE)}\n")
            return 1
        # A defect in one command ends that command, not the session.
        sh.err(f"{argv[0]}: internal error: {type(error).__name__}: {error}\n")
        return 70


WATCHDOG.name_by(run_exec.__code__, lambda names: str(names["argv"][0]))


async def _call(command: Exec, proc: Proc) -> int:
    return await command(proc)


WATCHDOG.name_by(_call.__code__, lambda names: names["proc"].name)


_REPLACED: Final = frozenset(("env", "nohup", "nice", "ionice", "setsid", "stdbuf"))
"""Programs that become what they run, so that signals reach that."""


def _runner(sh: ShellState, parent: str, group: ProcessGroup | None) -> Any:
    """`proc.run`: run another command by this shell's lookup in a forked shell."""

    async def run(
        argv: Sequence[str],
        *,
        stdin: Reader | None = None,
        stdout: Writer | None = None,
        stderr: Writer | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        signals: Mapping[str, bool] | None = None,
    ) -> int:
        child = sh.fork(borrow=False)
        try:
            child.group = group or sh.group
            for fd, stream in ((0, stdin), (1, stdout), (2, stderr)):
                if stream is not None:
                    old = child.fds.get(fd)
                    if old is not None:
                        old.release()
                    child.fds[fd] = Description(stream, lent=True)
            if cwd is not None:
                child.cwd = cwd
                child.vars["PWD"] = str(cwd)
            if env is not None:
                await _use_environment(child, env)
            child.program_environment = True
            if sh.background_ignored:
                ignore_interrupts(child)
            for name, ignored in (signals or {}).items():
                child.background_ignored -= {name}
                child.traps.pop(name, None)
                if ignored:
                    child.traps[name] = ""
            process = sh.process
            if group is not None:
                return await sh.task_group.steps(_in_own_group(child, list(argv), parent))
            if process is None or not sh.single_command or process.session is not sh or parent not in _REPLACED:
                return await child.task_group.steps(_run_child(child, list(argv), parent))
            child.single_command, process.session = True, child
            try:
                return await child.task_group.steps(_run_child(child, list(argv), parent))
            finally:
                process.session = sh
        finally:
            sh.shell.release_unstarted(child)

    return run


async def _use_environment(sh: ShellState, env: Mapping[str, str]) -> None:
    """Make exactly these variables the exported ones."""
    from ramet.shell.expand.values import EXPORT

    store = sh.variables
    for names in rows(list(store.attrs)):
        for name in names:
            if name[0] == function_table.MARK:
                del store.attrs[name]  # functions are among the variables from here on
            elif store.attrs[name] & EXPORT and name not in env:
                store.flag(name, remove=EXPORT)
        await sh.budget.yield_turn()
    for given in rows(env.items()):
        for name, value in given:
            if not store.attrs.get(name, 0) & 2:
                sh.vars[name] = value
                store.flag(name, EXPORT)
        await sh.budget.yield_turn()
    if "PATH" not in env and "PATH" in sh.vars:
        # Without a PATH a program is still looked for where programs live.
        sh.vars["PATH"] = ":".join(BIN)
    sh.hashed.clear()


async def _run_child(child: ShellState, argv: list[str], parent: str) -> int:
    """A program started by a program (`parent`): functions and aliases do not exist for it, builtins do as programs."""
    from ramet.shell.interp.run.subshell import run_shell

    name = argv[0] if argv else ""
    refusal = await _refusal(child, name)
    if refusal:
        label = name if parent == "xargs" else f"\u2018{name}\u2019"
        if parent in ("timeout", "nohup", "stdbuf"):
            label = f"failed to run command {label}"
        elif parent in ("flock", "setsid"):
            label = f"failed to execute {name}"
        child.err(f"{parent}: {label}: {strerror(refusal)}\n")
        if parent == "env" and refusal == errno.ENOENT and any(char.isspace() for char in name):
            child.err("env: use -[v]S to pass options in shebang lines\n")
        await release_all(child.fds)
        return 69 if parent == "flock" else 127 if refusal == errno.ENOENT else 126

    async def body(sh: ShellState) -> int:
        return await run_external(sh, argv)

    status = await run_shell(child, body)
    number = child.death_signal or (child.command_death[0] if child.command_death else 0)
    return BySignal(number) if number else status


async def _in_own_group(child: ShellState, argv: list[str], parent: str) -> int:
    """The same for a program that may end what it has started: all of that then stops at once."""
    tasks = child.task_group = TaskGroup()
    try:
        status = tasks.lead(_run_child(child, argv, parent))
        return status if isinstance(status, int) else await status
    finally:
        child.shell.detach_tasks(tasks)


async def _refusal(sh: ShellState, name: str) -> int:
    """Why the kernel would not start a program; 0 where it would."""
    if "/" not in name:
        return errno.ENOENT if await search(sh, name) is None else 0
    try:
        await runnable(sh, name)
    except OSError as error:
        return errno.EACCES if error.errno == errno.EISDIR else error.errno or errno.EIO
    return 0


AS_PROGRAMS: Final = frozenset(("echo", "printf", "test", "[", "true", "false", "pwd", "kill"))
