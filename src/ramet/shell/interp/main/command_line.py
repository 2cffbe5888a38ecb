"""The command line of `bash` and `sh`: parse options, find the script, run it in a new shell."""

from __future__ import annotations

import errno
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ramet.concurrency.offload import offload_large
from ramet.core.errors import fail, reason
from ramet.core.paths import decode, encode
from ramet.shell.interp.main import history_record as recording
from ramet.shell.interp.main import startup_files as startup
from ramet.shell.interp.main.interactive import GREETING, InteractiveShell, prepare
from ramet.shell.interp.main.script_input import ScriptInput, without_open_end
from ramet.shell.interp.main.startup_files import Startup
from ramet.shell.interp.process import signals
from ramet.shell.interp.process.descriptors import Description, share_all
from ramet.shell.interp.process.process import Process
from ramet.shell.interp.run.external import search_path
from ramet.shell.interp.run.maybe_async import drive
from ramet.shell.interp.run.redirect import read_device
from ramet.shell.interp.run.subshell import run_shell
from ramet.shell.interp.state.function_table import adopt as adopt_functions
from ramet.shell.interp.state.function_table import ready_exported
from ramet.shell.interp.state.options import LETTERS, OPTIONS, SHOPTS
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.special_variables import VERSION, adopt_variables, complete_environment
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import DoubleQuoted, Function, Script, Word
from ramet.shell.syntax.parser import Parser
from ramet.shell.syntax.printer import function_text, to_text, word_text

if TYPE_CHECKING:
    from ramet.shell.interp.main.shell import Shell

_LONG: Final = (
    "debug", "debugger", "dump-po-strings", "dump-strings", "help", "init-file", "login", "noediting", "noprofile",
    "norc", "posix", "pretty-print", "rcfile", "verbose", "version",
)  # fmt: skip
_RELEASE: Final = f"GNU bash, version {VERSION[0]}.{VERSION[1]}.{VERSION[2]}({VERSION[3]})-release"
_VERSION: Final = f"{_RELEASE} ({VERSION[5]})\n"
_USAGE: Final = (
    "Usage:\tbash [GNU long option] [option] ...\n\tbash [GNU long option] [option] script-file ...\n"
    "GNU long options:\n" + "".join(f"\t--{name}\n" for name in _LONG) + "Shell options:\n"
    "\t-ilsD or -c command or -O shopt_option\t\t(invocation only)\n\t-abefhkmnptuvxBCEHPT or -o option\n"
)
_MORE: Final = (
    'Type `bash -c "help set"\' for more information about shell options.\n'
    "Type `bash -c help' for more information about shell builtin commands.\n"
)


@dataclass(slots=True)
class _Call:
    """What the options of a call say."""

    login: bool = False
    interactive: bool = False
    given: bool = False
    """Whether `-c` was there."""
    reading: bool = False
    strings: str = ""
    """`-D`, or `po` for the form that translators take."""
    pretty: bool = False
    no_profile: bool = False
    no_rc: bool = False
    rc_file: str = ""
    rest: list[str] = field(default_factory=list)


_SHOWN: Final = 1000
"""Words of a command line that `ps` shows, and characters of each."""


_OWN_INPUT: Final = frozenset(("/dev/stdin", "/dev/fd/0"))
"""Scripts that share what they are read from with their commands."""


async def run_bash(shell: Shell, sh: ShellState, argv: list[str]) -> int:
    """Run another shell: its own variables and functions, our descriptors, directory and environment."""
    child = ShellState(shell)
    child.variables.bytes_held = sh.variables.bytes_held
    try:
        await _equip(shell, sh, child, argv)
        return await _run(shell, sh, child, argv)
    finally:
        if not child.started:
            child.break_cycles()


async def _run(shell: Shell, sh: ShellState, child: ShellState, argv: list[str]) -> int:
    as_sh = argv[0].rsplit("/", 1)[-1].lstrip("-") == "sh"
    call = _options(sh, child, [str(word) for word in argv])
    if not isinstance(call, _Call):
        return call if isinstance(call, int) else await call
    rest = call.rest
    text = ""
    source: ScriptInput | None = None
    if call.given:
        if not rest:
            sh.err(f"{argv[0]}: -c: option requires an argument\n")
            return 2
        text = rest.pop(0)
        child.origin = "environment"
        child.text_depth = 1
        child.vars["BASH_EXECUTION_STRING"] = text
        if rest:
            child.name = child.arg0 = rest.pop(0)
    elif call.reading or not rest or rest[0] in _OWN_INPUT:
        given = sh.reader(0)
        try:
            data = await given.read_all(sh.budget.limits.string_bytes)
        except OSError as error:
            if error.errno != errno.EBADF:
                sh.err(f"{argv[0]}: error reading input file: {reason(error)}\n")
                return 2
            data = b""  # A standard input that is closed has no script in it.
        source = await offload_large(sh.budget, len(data), partial(ScriptInput, data, given.lasting))
        text = source.text
        if call.reading or not rest:
            child.origin = "stdin"
        else:
            child.name = child.arg0 = child.source = rest.pop(0)
    else:
        name = rest.pop(0)
        found = await _file(shell, sh, argv[0], name)
        if isinstance(found, int):
            return 1 if found == 127 and child.errexit else found  # `set -e` sees that there is no such file
        text = found
        child.name = child.arg0 = child.source = name
    child.params = rest
    if "extdebug" in child.shopts:
        child.arguments = rest
    if "monitor" in child.options:
        sh.err(GREETING.format(argv[0]))
        child.set_option("monitor", False)
    child.update_instrumented()
    if call.login:
        child.shopts.add("login_shell")
    if call.interactive:
        prepare(child)
        sh.err(GREETING.format(argv[0]))
    child.fds = share_all(sh.fds)
    if source is not None:
        old = child.fds.get(0)
        child.fds[0] = Description(source)
        child.fds[0].base = True
        if old is not None:
            old.release()
    if child.group is not None:
        child.group.members.append(child)
    process = _becomes(sh, child)
    how = Startup(call.login, call.interactive, as_sh, call.no_profile, call.no_rc, call.rc_file)
    try:
        status = await run_shell(child, lambda own: drive(_started(shell, own, call, how, text, source)))
    finally:
        if source is not None and (rest_of_input := source.rest()):
            sh.reader(0).unread(rest_of_input)
        if child.group is not None:
            child.group.members.remove(child)
        if process is not None:
            process.session = sh
    if "history" in child.options:
        await recording.save(child)
    if child.death_signal and sh.single_command:
        sh.death_signal = child.death_signal  # the shell that it was started by has become it
    elif child.death_signal:
        sh.command_death = child.death_signal, child.own_pid()
    return status


def _becomes(sh: ShellState, child: ShellState) -> Process | None:
    """The process that consists of this shell alone, `bash script &`: its number is the shell's, which gets what is
    sent to it."""
    process = sh.process
    if process is None or not sh.single_command or process.session is not sh:
        return None
    child.pid = child.top_pid = process.pid
    process.session = child
    return process


async def _equip(shell: Shell, sh: ShellState, child: ShellState, argv: list[str]) -> None:
    """Give a shell the environment of the one that starts it."""
    child.depth, child.stack = sh.depth + 1, sh.stack + 7
    if child.depth > sh.budget.deepest:
        raise sh.budget.exceeded(sh.budget.hit or "recursion", argv[0])
    child.logical_cwd = sh.logical_cwd
    child.cwd, child.umask, child.budget, child.task_group = sh.cwd, sh.umask, sh.budget, sh.task_group
    child.parent, child.process, child.group = sh, sh.process, sh.group
    child.name = child.arg0 = argv[0]
    child.command_line = " ".join([word[:_SHOWN] for word in argv[:_SHOWN]])
    starter = sh.parent if sh.single_command and sh.parent is not None else sh  # a shell of one command becomes it
    child.vars["PPID"] = str(starter.own_pid())
    await ready_exported(sh)
    env = sh.environment()
    adopt_variables(child, env.items())
    await sh.budget.yield_turn()
    complete_environment(child, env)
    child.last_arg = argv[0] if "/" in argv[0] else f"/usr/bin/{argv[0]}"
    if "PWD" not in env:
        child.cwd, child.logical_cwd = await shell.fs.resolve(sh.cwd, missing_ok=True), None
    child.vars["PWD"] = child.pwd
    child.ulimits = dict(sh.ulimits)
    child.fds = sh.fds  # to complain to, until it gets its own
    as_sh = argv[0].rsplit("/", 1)[-1] == "sh"
    if not as_sh:
        await adopt_functions(child, env.items())
    ignored = {name for name, action in sh.traps.items() if not action} | sh.background_ignored
    child.hard_ignored = frozenset(ignored - {"EXIT", *signals.PSEUDO})
    child.traps.update(dict.fromkeys(child.hard_ignored, ""))
    if as_sh:
        child.set_option("posix", True)
    elif "POSIXLY_CORRECT" in env:
        del child.vars["POSIXLY_CORRECT"]
        child.set_option("posix", True)
    child.vars["BASH"] = child.last_arg


def _options(sh: ShellState, child: ShellState, argv: list[str]) -> _Call | int | Awaitable[int]:
    """Read the options of a call, long ones first; a status when that is all there is to do."""
    base = argv[0].rsplit("/", 1)[-1]
    call = _Call(login=base.startswith("-"))
    i = 1
    while i < len(argv) and argv[i].startswith("-"):
        name = argv[i][2:] if argv[i].startswith("--") else argv[i][1:]
        if name not in _LONG:
            if argv[i].startswith("--") and name:
                sh.err(f"{argv[0]}: {argv[i]}: invalid option\n{_USAGE}")
                return 2
            break
        i += 1
        if name == "version":
            return sh.out(encode(_VERSION), "bash")
        if name == "help":
            return sh.out(encode(f"{_RELEASE}-({VERSION[5]})\n{_USAGE}{_MORE}"), "bash")
        if name in ("rcfile", "init-file"):
            if i >= len(argv):
                sh.err(f"{argv[0]}: {name}: option requires an argument\n")
                return 2
            call.rc_file = argv[i]
            i += 1
        _take(child, call, name)
    return _letters(sh, child, call, argv, i)


def _take(child: ShellState, call: _Call, name: str) -> None:
    """A long option without a value."""
    if name == "posix":
        child.set_option("posix", True)
    elif name == "verbose":
        child.set_option("verbose", True)
    call.login = call.login or name == "login"
    call.pretty = call.pretty or name == "pretty-print"
    call.no_profile = call.no_profile or name == "noprofile"
    call.no_rc = call.no_rc or name == "norc"
    if name in ("dump-strings", "dump-po-strings"):
        call.strings = "po" if name == "dump-po-strings" else "D"


def _letters(sh: ShellState, child: ShellState, call: _Call, argv: list[str], i: int) -> _Call | int | Awaitable[int]:
    while i < len(argv) and len(argv[i]) > 1 and argv[i][0] in "-+":
        word = argv[i]
        i += 1
        if word == "--":
            break
        on = word[0] == "-"
        for letter in word[1:]:
            if letter == "c":
                call.given = True
            elif letter == "s":
                call.reading = True
            elif letter == "i":
                call.interactive = on
            elif letter == "l":
                call.login = on
            elif letter == "D":
                call.strings = "D"
            elif letter in "oO":
                if i >= len(argv):
                    return sh.out(encode(_listed(child, letter, on)), "bash")
                status = _named(sh, child, argv[0], letter, argv[i], on)
                if status:
                    return status
                i += 1
            elif letter in LETTERS:
                child.set_option(LETTERS[letter], on)
            else:
                sh.err(f"{argv[0]}: {word[0]}{letter}: invalid option\n{_USAGE}")
                return 2
    if i < len(argv) and argv[i] == "-":
        i += 1
    call.rest = argv[i:]
    return call


def _listed(child: ShellState, letter: str, on: bool) -> str:
    """`bash -o` and `bash -O`: the options as they are."""
    names, enabled = (OPTIONS, child.options | {"emacs"}) if letter == "o" else (SHOPTS, child.shopts)
    if on:
        return "".join(f"{name:<15}\t{'on' if name in enabled else 'off'}\n" for name in names)
    if letter == "o":
        return "".join(f"set {'-' if name in enabled else '+'}o {name}\n" for name in names)
    return "".join(f"shopt -{'s' if name in enabled else 'u'} {name}\n" for name in names)


def _named(sh: ShellState, child: ShellState, called: str, letter: str, name: str, on: bool) -> int:
    """`-o name` and `-O name`; a status when there is no such option."""
    if letter == "O":
        if name not in SHOPTS:
            sh.err(f"{called}: line 0: {name}: invalid shell option name\n")
            return 2
        (child.shopts.add if on else child.shopts.discard)(name)
        return 0
    if name not in OPTIONS:
        sh.err(f"{called}: line 0: {called}: {name}: invalid option name\n")
        return 2
    child.set_option(name, on)
    return 0


async def _file(shell: Shell, sh: ShellState, called: str, name: str) -> str | int:
    """The text of a script; a status after a complaint."""
    try:
        path = sh.shell.fs.named(name, sh.cwd)
        if "/" not in name and not await shell.exists(path):
            found = await search_path(sh, name, sh.variables.get("PATH") or "", executable=True)
            if found is not None and found.startswith("\0"):
                sh.err(f"{found[1:]}: {found[1:]}: cannot execute binary file\n")
                return 126
            path = path if found is None else sh.shell.fs.named(found, sh.cwd)
        if name.startswith("/dev/") and not name.endswith("/"):
            data = await read_device(sh, name)  # `bash <(...)`, `bash /dev/stdin`
        elif (await shell.fs.stat(path, follow=True)).is_dir:
            raise fail(errno.EISDIR, path)
        else:
            data = await shell.read_file(path)
        if b"\0" in data[:80].partition(b"\n")[0]:
            sh.err(f"{name}: {name}: cannot execute binary file\n")
            return 126
        return without_open_end(await offload_large(sh.budget, len(data), partial(decode, data)))
    except IsADirectoryError as error:
        sh.err(f"{name}: {name}: {reason(error)}\n")
        return 126
    except OSError as error:
        sh.err(f"{called}: {name}: {reason(error)}\n")
        return 127


async def _started(
    shell: Shell, own: ShellState, call: _Call, how: Startup, text: str, source: ScriptInput | None
) -> int:
    """A script, after the files that come before it."""
    origin = own.origin
    if source is not None:
        own.origin = "main"
    result = await startup.read(own, how)
    own.origin = origin
    if result:
        return result
    if call.strings or (call.pretty and not call.given):
        written = own.out(encode(_dumped(own, call, text)), "bash")
        return written if isinstance(written, int) else await written
    if call.interactive:
        return await InteractiveShell(shell, own, text, source).run()
    return await shell.run_text(own, text, top=True, source=source)


def _dumped(sh: ShellState, call: _Call, text: str) -> str:
    """The strings of a script that are to be translated, or all of it as the shell prints it."""
    parser = Parser(text, None, sh.syntax_options())
    out = ""
    try:
        while True:
            line = parser.line_at(parser.pos)
            script = parser.next()
            if script is None:
                return out
            if call.pretty:
                out += "".join(f"{_pretty(script, place)}\n" for place in range(len(script.statements)))
                continue
            for part in _strings(script):
                shown = word_text(Word((part,))).removeprefix("$")
                out += f'#: {sh.name}:{line}\nmsgid {shown}\nmsgstr ""\n' if call.strings == "po" else f"{shown}\n"
    except SyntaxFailure as failure:
        for message in failure.lines(f"{sh.name}: "):
            sh.err(message + "\n")
        return out


def _pretty(script: Script, place: int) -> str:
    node = script.statements[place].node
    if isinstance(node, Function):
        return function_text(node) + "\n"
    return to_text(Script(script.statements[place : place + 1]))


def _strings(node: Any) -> list[DoubleQuoted]:
    """The `$"..."` in a tree, in their order."""
    found: list[DoubleQuoted] = []
    left = [node]
    while left:
        one = left.pop()
        if isinstance(one, tuple):
            left.extend(reversed(one))
        elif isinstance(one, DoubleQuoted) and one.locale:
            found.append(one)
        elif hasattr(one, "_fields"):
            left.extend(getattr(one, name) for name in reversed(one._fields))
    return found
