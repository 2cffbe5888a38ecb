"""`bash` and `sh` as commands: options, `-c`, `-s`, script files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ramet.core import paths
from ramet.core.errors import reason
from ramet.shell.interp.descriptors import Description, share_all
from ramet.shell.interp.drive import drive
from ramet.shell.interp.function_table import adopt as adopt_functions
from ramet.shell.interp.options import LETTERS, OPTIONS, SHOPTS
from ramet.shell.interp.restricted import restrict
from ramet.shell.interp.script_input import ScriptInput, without_open_end
from ramet.shell.interp.session import Session
from ramet.shell.interp.specials import adopt_environment
from ramet.shell.interp.subshell import run_shell

if TYPE_CHECKING:
    from ramet.shell.interp.shell import Shell


async def run_bash(shell: Shell, sh: Session, argv: list[str]) -> int:
    """Run another shell: its own variables and functions, our descriptors, directory and environment."""
    child = Session(shell)
    child.depth, child.stack = sh.depth + 1, sh.stack + 5
    if child.depth > sh.budget.limits.recursion:
        raise sh.budget.exceeded("recursion", argv[0])
    child.called = sh.called
    child.cwd, child.umask, child.budget = sh.cwd, sh.umask, sh.budget
    child.parent, child.process, child.group = sh, sh.process, sh.group
    child.name = child.arg0 = argv[0]
    env = sh.environment()
    adopt_environment(child, env)
    child.last_arg = argv[0] if "/" in argv[0] else f"/usr/bin/{argv[0]}"
    if "PWD" not in sh.store.exported():
        child.cwd, child.called = await shell.fs.resolve(sh.cwd, missing_ok=True), None
    child.vars["PWD"] = child.pwd
    child.ulimits = dict(sh.ulimits)
    child.fds = sh.fds  # to complain to, until it gets its own
    if argv[0].rsplit("/", 1)[-1] != "sh":
        adopt_functions(child, env)
    for name, action in sh.traps.items():
        if not action:
            child.traps[name] = ""
    if argv[0].rsplit("/", 1)[-1] == "sh":
        child.set_option("posix", True)
    text: str | None = None
    source: ScriptInput | None = None
    reading = False
    narrow = argv[0].rsplit("/", 1)[-1] == "rbash"
    i = 1
    while i < len(argv) and len(argv[i]) > 1 and argv[i][0] in "-+":
        word = str(argv[i])
        i += 1
        if word in ("--", "-"):
            break
        if word.startswith("--"):
            if word in ("--norc", "--noprofile", "--posix", "--login", "--noediting", "--verbose", "--restricted"):
                narrow = narrow or word == "--restricted"
                if word == "--posix":
                    child.set_option("posix", True)
                continue
            if word in ("--rcfile", "--init-file"):
                i += 1
                continue
            if word == "--version":
                sh.out(b"GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n")
                return 0
            if word == "--help":
                sh.out((_VERSION + _USAGE + _MORE).encode())
                return 0
            sh.err(f"{argv[0]}: {word}: invalid option\n{_USAGE}")
            return 2
        on = word[0] == "-"
        for letter in word[1:]:
            if letter == "c":
                text = ""
            elif letter == "s":
                reading = True
            elif letter == "r":
                narrow = True
            elif letter in "ilD":
                continue
            elif letter == "O":
                if i < len(argv):
                    if argv[i] not in SHOPTS:
                        sh.err(f"{argv[0]}: line 0: {argv[i]}: invalid shell option name\n")
                        return 2
                    (child.shopts.add if on else child.shopts.discard)(argv[i])
                    i += 1
            elif letter == "o":
                name = argv[i] if i < len(argv) else ""
                i += 1
                if name not in OPTIONS:
                    sh.err(f"{argv[0]}: line 0: {argv[0]}: {name}: invalid option name\n")
                    return 2
                child.set_option(name, on)
            elif letter in LETTERS:
                child.set_option(LETTERS[letter], on)
            else:
                sh.err(f"{argv[0]}: -{letter}: invalid option\n{_USAGE}")
                return 2
    rest = [str(word) for word in argv[i:]]
    if text is not None:
        if not rest:
            sh.err(f"{argv[0]}: -c: option requires an argument\n")
            return 2
        text = rest.pop(0)
        child.origin = "environment"
        child.vars["BASH_EXECUTION_STRING"] = text
        if rest:
            child.name = child.arg0 = rest.pop(0)
        child.params = rest
    elif reading or not rest:
        source = ScriptInput(await sh.reader(0).read_all(sh.budget.limits.string_bytes))
        text = source.text
        child.params = rest
        child.origin = "stdin"
    else:
        name = rest.pop(0)
        try:
            path = sh.shell.fs.named(name, sh.cwd)
            stat = await shell.fs.stat(path, follow=True)
            if stat.is_dir:
                sh.err(f"{argv[0]}: {name}: Is a directory\n")
                return 126
            data = await shell.read_file(path)
            if b"\0" in data[:80].partition(b"\n")[0]:
                sh.err(f"{name}: {name}: cannot execute binary file\n")
                return 126
            text = without_open_end(paths.decode(data))
        except OSError as error:
            sh.err(f"{argv[0]}: {name}: {reason(error)}\n")
            return 127
        child.name = child.arg0 = child.source = name
        child.params = rest
    child.fds = share_all(sh.fds)
    if source is not None:
        old = child.fds.get(0)
        child.fds[0] = Description(source)
        child.fds[0].base = True
        if old is not None:
            old.release()
    script = text
    if child.group is not None:
        child.group.members.append(child)
    try:
        status = await run_shell(child, lambda own: drive(_started(shell, own, script, narrow, source)))
    finally:
        if source is not None and (rest_of_input := source.rest()):
            sh.reader(0).unread(rest_of_input)
        if child.group is not None:
            child.group.members.remove(child)
    if child.killed and sh.lone:
        sh.killed = child.killed  # the shell that it was started by has become it
    elif child.killed:
        sh.died = child.killed, child.own_pid()
    return status


_VERSION: Final = "GNU bash, version 5.2.15(1)-release-(x86_64-pc-linux-gnu)\n"
_LONG: Final = (
    "debug", "debugger", "dump-po-strings", "dump-strings", "help", "init-file", "login", "noediting", "noprofile",
    "norc", "posix", "pretty-print", "rcfile", "restricted", "verbose", "version",
)  # fmt: skip
_USAGE: Final = (
    "Usage:\tbash [GNU long option] [option] ...\n\tbash [GNU long option] [option] script-file ...\n"
    "GNU long options:\n" + "".join(f"\t--{name}\n" for name in _LONG) + "Shell options:\n"
    "\t-ilrsD or -c command or -O shopt_option\t\t(invocation only)\n\t-abefhkmnptuvxBCEHPT or -o option\n"
)
_MORE: Final = (
    'Type `bash -c "help set"\' for more information about shell options.\n'
    "Type `bash -c help' for more information about shell builtin commands.\n"
)


async def _started(shell: Shell, own: Session, script: str, narrow: bool, source: ScriptInput | None) -> int:
    """A script, after the file that BASH_ENV names."""
    startup = own.store.get("BASH_ENV")
    if startup and not own.posix and "privileged" not in own.options:
        path = paths.parse(own.prompt(startup), own.cwd)
        if await shell.exists(path):
            result = await shell.invoke(own, [".", str(path)])
            if result > 255:
                return result
    if narrow:
        restrict(own)
    return await shell.run_text(own, script, top=True, source=source)
