"""Synopses of all builtins and keywords, for usage errors and `help`; option parsing."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import SMALL
from ramet.core.paths import encode
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, is_signed
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.text.pattern.matcher import compile_pattern

_GENERATORS: Final = "[-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command]"
_COMPLETION: Final = f"{_GENERATORS} [-X filterpat] [-P prefix] [-S suffix]"
_LINES: Final = "[-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]"
SYNOPSES: Final[dict[str, tuple[str, str]]] = {
    "%": ("job_spec [&]", "Continue a job, in the foreground or with & behind."),
    "(( ... ))": ("(( expression ))", "Compute; succeed unless the value is 0."),
    ".": (". filename [arguments]", "Run the commands of a file in this shell."),
    ":": (":", "Do nothing, successfully."),
    "[": ("[ arg... ]", "Test a condition, as `test' does."),
    "[[ ... ]]": ("[[ expression ]]", "Test a condition; words are neither split nor matched against files."),
    "alias": ("alias [-p] [name[=value] ... ]", "Define aliases, or show them."),
    "bg": ("bg [job_spec ...]", "Continue jobs in the background."),
    "break": ("break [n]", "Leave a loop, or N loops."),
    "builtin": ("builtin [shell-builtin [arg ...]]", "Run a builtin even where a function has its name."),
    "caller": ("caller [expr]", "Say where the running function was called."),
    "case": (
        "case WORD in [PATTERN [| PATTERN]...) COMMANDS ;;]... esac",
        "Run the commands of the first pattern.",
    ),
    "cd": ("cd [-L|[-P [-e]] [-@]] [dir]", "Change the shell working directory."),
    "command": ("command [-pVv] command [arg ...]", "Run a command past functions, or say what its name means."),
    "compgen": (f"compgen [-abcdefgjksuv] {_COMPLETION} [word]", "List possible completions of a word."),
    "complete": (f"complete [-abcdefgjksuv] [-pr] [-DEI] {_COMPLETION} [name ...]", "Say how arguments are completed."),
    "compopt": ("compopt [-o|+o option] [-DEI] [name ...]", "Change the options of a completion."),
    "continue": ("continue [n]", "Go on with the next turn of a loop."),
    "coproc": ("coproc [NAME] command [redirections]", "Run a command in the background with pipes to and from it."),
    "declare": (
        "declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]",
        "Set variables and their attributes, or show them.",
    ),
    "dirs": ("dirs [-clpv] [+N] [-N]", "Show the stack of directories."),
    "disown": ("disown [-h] [-ar] [jobspec ... | pid ...]", "Let go of jobs."),
    "echo": ("echo [-neE] [arg ...]", "Write the arguments."),
    "enable": ("enable [-a] [-dnps] [-f filename] [name ...]", "Turn builtins on and off."),
    "eval": ("eval [arg ...]", "Run the arguments as a command of the shell."),
    "exec": (
        "exec [-cl] [-a name] [command [argument ...]] [redirection ...]",
        "Become a command, or redirect the shell itself.",
    ),
    "exit": ("exit [n]", "Leave the shell with status N."),
    "export": ("export [-fn] [name[=value] ...] or export -p", "Give variables to the commands that are started."),
    "false": ("false", "Fail."),
    "fg": ("fg [job_spec]", "Bring a job to the foreground."),
    "for": ("for NAME [in WORDS ... ] ; do COMMANDS; done", "Run commands once for each word."),
    "for ((": ("for (( exp1; exp2; exp3 )); do COMMANDS; done", "Run commands while an expression is not 0."),
    "function": ("function name { COMMANDS ; } or name () { COMMANDS ; }", "Define a function."),
    "getopts": ("getopts optstring name [arg ...]", "Take options one by one from the arguments."),
    "hash": ("hash [-lr] [-p pathname] [-dt] [name ...]", "Remember where programs are, or show it."),
    "help": ("help [-dms] [pattern ...]", "Show how builtins are used."),
    "history": (
        "history [-c] [-d offset] [n] or history -anrw [filename] or history -s arg [arg...]",
        "Show or change the list of earlier commands.",
    ),
    "if": (
        "if COMMANDS; then COMMANDS; [ elif COMMANDS; then COMMANDS; ]... [ else COMMANDS; ] fi",
        "Run commands when others succeed.",
    ),
    "jobs": ("jobs [-lnprs] [jobspec ...] or jobs -x command [args]", "Show the jobs and their states."),
    "kill": (
        "kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]",
        "Send a signal to a job.",
    ),
    "let": ("let arg [arg ...]", "Compute; succeed unless the last value is 0."),
    "local": ("local [option] name[=value] ...", "Give a function its own variables."),
    "logout": ("logout [n]", "Leave a login shell."),
    "mapfile": (f"mapfile {_LINES}", "Read lines into an array."),
    "popd": ("popd [-n] [+N | -N]", "Take a directory from the stack."),
    "printf": ("printf [-v var] format [arguments]", "Write the arguments as a format says."),
    "pushd": ("pushd [-n] [+N | -N | dir]", "Put a directory on the stack and go there."),
    "pwd": ("pwd [-LP]", "Print the name of the working directory."),
    "read": (
        "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] "
        "[name ...]",
        "Read a line and split it into variables.",
    ),
    "readarray": (f"readarray {_LINES}", "Read lines into an array."),
    "readonly": ("readonly [-aAf] [name[=value] ...] or readonly -p", "Protect variables from change."),
    "return": ("return [n]", "Leave a function or a sourced file with status N."),
    "select": ("select NAME [in WORDS ... ;] do COMMANDS; done", "Let a reader choose among words."),
    "set": (
        "set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]",
        "Change options and positional parameters, or show variables.",
    ),
    "shift": ("shift [n]", "Drop the first N positional parameters."),
    "shopt": ("shopt [-pqsu] [-o] [optname ...]", "Change options of the shell, or show them."),
    "source": ("source filename [arguments]", "Run the commands of a file in this shell."),
    "suspend": ("suspend [-f]", "Stop this shell until it is continued."),
    "test": ("test [expr]", "Test a condition."),
    "time": ("time [-p] pipeline", "Say how long a pipeline takes."),
    "times": ("times", "Show how much time the shell has used."),
    "trap": ("trap [-lp] [[arg] signal_spec ...]", "Say what runs when a signal arrives, or the shell ends."),
    "true": ("true", "Succeed."),
    "type": ("type [-afptP] name [name ...]", "Say what a name means as a command."),
    "typeset": (
        "typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
        "Set variables and their attributes, or show them.",
    ),
    "ulimit": ("ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]", "Show limits."),
    "umask": ("umask [-p] [-S] [mode]", "Show or set what new files are not allowed."),
    "unalias": ("unalias [-a] name [name ...]", "Remove aliases."),
    "unset": ("unset [-f] [-v] [-n] [name ...]", "Remove variables and functions."),
    "until": ("until COMMANDS; do COMMANDS-2; done", "Run commands as long as others fail."),
    "variables": ("variables - Names and meanings of some shell variables", "Variables that the shell knows."),
    "wait": ("wait [-fn] [-p var] [id ...]", "Wait for jobs and return their status."),
    "while": ("while COMMANDS; do COMMANDS-2; done", "Run commands as long as others succeed."),
    "{ ... }": ("{ COMMANDS ; }", "Run commands as one."),
}


def usage(sh: ShellState, name: str) -> int:
    """Write the usage line to stderr; status 2."""
    sh.err(f"{name}: usage: {SYNOPSES[name][0]}\n")
    return 2


def bad_option(sh: ShellState, name: str, option: str, why: str = "invalid option") -> int:
    """`name: -x: invalid option` and the usage line; status 2."""
    sh.complain(f"{name}: {option}: {why}")
    return usage(sh, name)


def misused(sh: ShellState, name: str, word: str, why: str) -> int:
    """`name: word: why` and the usage line; status 2."""
    sh.complain(f"{name}: {word}: {why}")
    return usage(sh, name)


class BuiltinOptions(NamedTuple):
    """The options of a builtin in order, each with its value or "", and the index of the first operand."""

    letters: list[tuple[str, str]]
    operands: int
    wrong: tuple[str, str] | None
    """The first invalid option and why; options before it are parsed."""


def options_of(argv: list[str], plain: str, valued: str, numbers: bool = False) -> BuiltinOptions:
    """Parse the options before the operands; with `numbers` a negative number is an operand."""
    letters: list[tuple[str, str]] = []
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = str(argv[i])
        if numbers and is_signed(word):
            break
        i += 1
        if word == "--":
            break
        for place, letter in enumerate(islice(word, 1, None), 2):
            if letter in plain:
                letters.append((letter, ""))
                continue
            if letter not in valued:
                return BuiltinOptions(letters, i, (f"-{letter}", "invalid option"))
            value = word[place:]
            if not value:
                if i >= len(argv):
                    return BuiltinOptions(letters, i, (f"-{letter}", "option requires an argument"))
                value = str(argv[i])
                i += 1
            letters.append((letter, value))
            break
    return BuiltinOptions(letters, i, None)


def number_of(text: str) -> int | None:
    """Parse a signed 64-bit decimal number with optional blanks; None for anything else."""
    if len(text) > LONGEST_NUMBER:
        return None
    stripped = text.strip(" \t\n\r\v\f")
    digits = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > _DIGITS and len(digits.lstrip("0")) > _DIGITS):
        return None
    found = int(stripped[-_DIGITS:]) if len(digits) > _DIGITS else int(stripped)
    found = -abs(found) if stripped[0] == "-" else found
    return found if -_BEYOND <= found < _BEYOND else None


_BEYOND: Final = 1 << 63
_DIGITS: Final = 20


def flags_of(sh: ShellState, argv: list[str], allowed: str) -> tuple[str, list[str]] | None:
    """Return the letters of options without values, and the operands; None after an error."""
    i = 1
    flags = ""
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = argv[i]
        i += 1
        if word == "--":
            break
        for letter in islice(word, 1, None):
            if letter not in allowed:
                bad_option(sh, argv[0], f"-{letter}")
                return None
        flags += word[1:]
    return flags, argv[i:]


def helped(name: str, builtin: Builtin) -> Builtin:
    """Wrap a builtin so that `--help` as its first word prints its help page; status 2."""

    def run(sh: ShellState, argv: list[str]) -> Result:
        if len(argv) > 1 and argv[1] == "--help":
            return drive(explained(sh, name))
        return builtin(sh, argv)

    return run


async def explained(sh: ShellState, name: str) -> int:
    """Write the help page of a builtin; status 2."""
    written = sh.out(encode(_page(name, "")), name)
    if not isinstance(written, int):
        await written
    return 2


def help_(sh: ShellState, argv: list[str]) -> Result:
    found = flags_of(sh, argv, "dms")
    if found is None:
        return 2
    flags, words = found
    if not words:
        listed = "".join(f" {synopsis}\n" for synopsis, _ in SYNOPSES.values())
        head = "These shell commands are defined internally.  Type `help name' to find out more about one.\n\n"
        return sh.out(encode(head + listed), "help")
    return drive(_print_help(sh, flags, words))


async def _print_help(sh: ShellState, flags: str, words: list[str]) -> int:
    status = 1
    if _is_pattern(words[0]):
        keywords = ", ".join(words)
        head = f"Shell commands matching keyword{'s' if len(words) > 1 else ''} `{keywords}'\n\n"
        written = sh.out(encode(head), "help")
        if written if isinstance(written, int) else await written:
            return 1
    for word in words:
        await sh.budget.yield_turn()
        names = [word] if word in SYNOPSES else await offload_large(sh.budget, len(word), partial(_topics, word), SMALL)
        if not names:
            continue
        written = sh.out(encode("".join([_page(name, flags) for name in names])), "help")
        if written if isinstance(written, int) else await written:
            return 1
        status = 0
    if status:
        last = words[-1]
        return sh.error(f"help: no help topics match `{last}'.  Try `help help' or `man -k {last}' or `info {last}'.")
    return 0


def _is_pattern(word: str) -> bool:
    return "*" in word or "?" in word or (begin := word.find("[")) >= 0 <= word.find("]", begin)


def _topics(word: str) -> list[str]:
    """The topics that match a pattern or begin with a text."""
    pattern = compile_pattern(word)
    return [name for name in SYNOPSES if pattern.matches(name) or name.startswith(word)]


def _page(name: str, flags: str) -> str:
    synopsis, summary = SYNOPSES[name]
    if "d" in flags:
        return f"{name} - {summary}\n"
    if "s" in flags:
        return f"{name}: {synopsis}\n"
    if "m" in flags:
        return f"NAME\n    {name} - {summary}\n\nSYNOPSIS\n    {synopsis}\n\nDESCRIPTION\n    {summary}\n"
    return f"{name}: {synopsis}\n    {summary}\n"
