"""Programmable completion without a terminal: `compgen`, `complete` and `compopt`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Final

from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import BATCH, LONG_SCRIPT
from ramet.core import ops
from ramet.core.paths import decode, encode
from ramet.core.stat import Kind
from ramet.shell.expand import quote
from ramet.shell.expand.values import Assoc, Dynamic, Indexed, bucket, is_unset
from ramet.shell.expand.word.compile import Words, fields_of
from ramet.shell.expand.word.compile import words as compile_words
from ramet.shell.interp.builtins.lookup import KEYWORDS, builtin_table
from ramet.shell.interp.builtins.usage import SYNOPSES, bad_option, usage
from ramet.shell.interp.process import signals
from ramet.shell.interp.run.batches import (
    each,
    then,
    write_lines,
)
from ramet.shell.interp.run.external import BIN
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.options import OPTIONS, SHOPTS
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import Simple, Word
from ramet.shell.syntax.parser import Parser
from ramet.text.pattern.matcher import compile_pattern

_ACTIONS: Final = {
    "alias": "a",
    "arrayvar": "ARRAY",
    "binding": "BINDING",
    "builtin": "b",
    "command": "c",
    "directory": "d",
    "disabled": "DISABLED",
    "enabled": "ENABLED",
    "export": "e",
    "file": "f",
    "function": "FUNCTION",
    "group": "g",
    "helptopic": "HELP",
    "hostname": "NONE",
    "job": "j",
    "keyword": "k",
    "running": "j",
    "service": "s",
    "setopt": "SETOPT",
    "shopt": "SHOPT",
    "signal": "SIGNAL",
    "stopped": "NONE",
    "user": "u",
    "variable": "v",
}
_OPTIONS: Final = (
    "bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs",
)  # fmt: skip
_VALUED: Final = "AFCGWXPSo"
_SHOWN: Final = "oAGWPSXCF"
"""The order in which a specification is shown."""


def _parsed(sh: ShellState, argv: list[str], extra: str) -> tuple[list[tuple[str, str]], list[str]] | Result:
    """Options with their values, and the words after them; a status after an error."""
    name = argv[0]
    flags: list[tuple[str, str]] = []
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        item = str(argv[i])
        i += 1
        if item == "--":
            break
        for place, letter in enumerate(islice(item, 1, None), 1):
            if letter in _VALUED:
                value = item[place + 1 :]
                if not value:
                    if i >= len(argv):
                        return bad_option(sh, name, f"-{letter}", "option requires an argument")
                    value = str(argv[i])
                    i += 1
                if letter == "A" and value not in _ACTIONS:
                    return sh.error(f"{name}: {value}: invalid action name", 2)
                if letter == "o" and value not in _OPTIONS:
                    return sh.error(f"{name}: {value}: invalid option name", 2)
                short = _ACTIONS[value] if letter == "A" else ""
                flags.append((short, "") if len(short) == 1 and value != "running" else (letter, value))
                break
            if letter not in "abcdefgjksuv" + extra:
                return bad_option(sh, name, f"-{letter}")
            flags.append((letter, ""))
    return flags, argv[i:]


def compgen(sh: ShellState, argv: list[str]) -> Result:
    """The generators that need no terminal."""
    parsed = _parsed(sh, argv, "")
    if not isinstance(parsed, tuple):
        return parsed
    flags, words = parsed
    for letter in "FC":
        if any(one == letter for one, _ in flags):
            sh.complain(f"compgen: warning: -{letter} option may not work as you expect")
    if not flags:
        return 0  # nothing was asked for
    return drive(_compgen(sh, flags, str(words[0]) if words else ""))


async def _compgen(sh: ShellState, flags: list[tuple[str, str]], word: str) -> int:
    values = dict(flags)
    options = {value for letter, value in flags if letter == "o"}
    names: list[str] = []
    for letter, value in flags:
        kind = _ACTIONS[value] if letter == "A" else letter
        if kind not in _VALUED:
            names += _chosen(await _generate(sh, kind, word), "" if kind in "fd" else word)
    if "G" in values:
        names += await _globbed(sh, values["G"])
    if "W" in values:
        names += _chosen(await _word_list(sh, values["W"]), word)
    if "F" in values:
        names += await _by_function(sh, values["F"], word)
    if "C" in values:
        names += await _by_command(sh, values["C"], word)
    names = await _filtered(sh, names, values.get("X", ""), word)
    prefix, suffix = values.get("P", ""), values.get("S", "")
    adorned = len(names)
    if not names and "dirnames" in options:
        names = await _files(sh, word, only_directories=True)
    if "plusdirs" in options:
        names += await _files(sh, word, only_directories=True)
    if not names and options & {"default", "bashdefault"}:
        names = await _files(sh, word)
    lines = (f"{prefix}{name}{suffix}\n" if place < adorned else f"{name}\n" for place, name in enumerate(names))
    written = write_lines(sh, lines, len(names), "compgen", 0 if names else 1)
    return written if isinstance(written, int) else await written


def _chosen(names: list[str], word: str) -> list[str]:
    """The names that begin with a word."""
    return [name for name in names if name.startswith(word)]


async def _filtered(sh: ShellState, names: list[str], exclude: str, word: str) -> list[str]:
    """What `-X` leaves: names that a pattern does not match, or with `!` those that it does."""
    if not exclude:
        return names
    negate = exclude.startswith("!")
    text = exclude[negate:].replace("\\&", "\0").replace("&", word).replace("\0", "&")
    pattern = compile_pattern(text, "extglob" in sh.shopts)
    found: list[str] = []
    for start in range(0, len(names), BATCH):
        found += [name for name in names[start : start + BATCH] if pattern.matches(name) is negate]
        await sh.budget.yield_turn()
    return found


async def _word_list(sh: ShellState, text: str) -> list[str]:
    """The words of `-W`: split, then expanded but for file names, and without their quotes."""
    found: list[str] = []
    raws = await offload_large(sh.budget, len(text), partial(_split, text, sh.ifs), LONG_SCRIPT)
    for place, raw in enumerate(raws):
        if not place % BATCH:
            await sh.budget.yield_turn()
        special = any(char in raw for char in _SPECIAL)
        words = await offload_large(sh.budget, len(raw), partial(_compiled, raw), LONG_SCRIPT) if special else None
        if words is None:
            found.append(raw)
            continue
        found += [str(word) for word in await fields_of(words, sh)]
        sh.has_globs = False
    return found


_SPECIAL: Final = "\\'\"$`{~"


def _split(text: str, ifs: str) -> list[str]:
    """Split a word list at unquoted IFS characters outside of substitutions."""
    found: list[str] = []
    begin = i = depth = 0
    quote = ""
    while i < len(text):
        char = text[i]
        if char == "\\" and quote != "'":
            i += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"`":
            quote = char
        elif char in "({" and text[i - 1 : i] == "$":
            depth += 1
        elif char in ")}" and depth:
            depth -= 1
        elif char in ifs and not depth:
            if i > begin:
                found.append(text[begin:i])
            begin = i + 1
        i += 1
    return [*found, text[begin:]] if begin < len(text) else found


def _compiled(text: str) -> Words | None:
    """Compile a text as one word; None when it is not one."""
    try:
        script = Parser(f": {text}").next()
    except SyntaxFailure:
        return None
    node = script.statements[0].node if script is not None and len(script.statements) == 1 else None
    if not isinstance(node, Simple) or node.redirects or len(node.words) != 2 or not isinstance(node.words[1], Word):
        return None
    return compile_words([node.words[1]])


async def _by_function(sh: ShellState, name: str, word: str) -> list[str]:
    function = sh.functions.get(name)
    if function is None:
        sh.complain(f"completion: function `{name}' not found")
        return []
    from ramet.shell.interp.run.functions import call_function

    sh.variables.unset("COMPREPLY")
    given = {"COMP_LINE": "", "COMP_POINT": "0", "COMP_TYPE": "0", "COMP_KEY": "0", "COMP_CWORD": "-1"}
    for variable, value in given.items():
        sh.variables.set(variable, value)
    result = call_function(sh, function, [name, "compgen", word, ""])
    if not isinstance(result, int):
        await result
    for variable in given:
        sh.variables.unset(variable)
    found = list(sh.variables.elements("COMPREPLY")) if "COMPREPLY" in sh.vars else []
    sh.variables.unset("COMPREPLY")
    return found


async def _by_command(sh: ShellState, command: str, word: str) -> list[str]:
    """What a command prints when it is given the word."""
    from ramet.core.streams import Capture
    from ramet.shell.interp.process.descriptors import Description
    from ramet.shell.interp.run.subshell import run_shell

    child = sh.fork()
    out = Capture(sh.budget.limits.string_bytes)
    old = child.fds.get(1)
    if old is not None:
        old.release()
    child.fds[1] = Description(out, lent=True)
    text = f"{command} compgen {quote.single(word)} ''"
    await run_shell(child, lambda own: drive(own.shell.run_text(own, text)))
    return decode(out.getvalue()).splitlines()


async def _globbed(sh: ShellState, pattern: str) -> list[str]:
    from ramet.shell.expand.word.fields import GlobWord

    field = GlobWord("", pattern)  # nothing stays where nothing matches
    # A pattern of a completion is none of the shell's own: names that begin with a dot, or are to be ignored, are not
    # treated as its settings want it.
    found = await sh.shell.globbed(sh, [field], plainly=True)
    return found if found != [""] else [pattern] if await _there(sh, pattern) else []


async def _there(sh: ShellState, name: str) -> bool:
    try:
        return await sh.shell.exists(sh.shell.fs.named(name, sh.cwd))
    except OSError:
        return False  # no name at all, or one that is too long


async def _files(sh: ShellState, word: str, only_directories: bool = False) -> list[str]:
    """The files, or the directories, whose names begin as the word does."""
    folder, slash, start = word.rpartition("/")
    where = folder + slash
    if where.startswith("~"):
        prefix, _, rest = where[1:].partition("/")
        home = sh.tilde(prefix)
        where = where if home is None else f"{home}/{rest}"
    from ramet.shell.interp.run.conditions import file_test

    found: list[str] = []
    try:
        for place, (name, stat) in enumerate(await ops.entries(sh.shell.fs, sh.shell.fs.named(where or ".", sh.cwd))):
            if not place % BATCH:
                await sh.budget.yield_turn()
            if name.startswith(start) and (
                not only_directories
                or stat.kind is Kind.DIR
                or (stat.kind is Kind.LINK and await file_test(sh, "-d", f"{where}{name}"))
            ):
                found.append(f"{folder}{slash}{name}")
    except OSError:
        return []
    return sorted(found)


def _arrays(sh: ShellState) -> list[str]:
    found = []
    for name, value in sh.vars.items():
        computed = value.get(sh) if isinstance(value, Dynamic) else value
        if isinstance(computed, Indexed | Assoc) and computed.blank and not len(computed):
            continue
        if isinstance(computed, Indexed | Assoc | list | dict):
            found.append(name)
    return found


async def _programs(sh: ShellState) -> list[str]:
    """What `PATH` leads to, as often as it does."""
    found: list[str] = []
    for directory in (sh.variables.get("PATH") or "").split(":"):
        await sh.budget.yield_turn()
        if directory in BIN:
            found += sorted(sh.shell.commands)
            continue
        try:
            entries = await ops.entries(sh.shell.fs, sh.shell.fs.named(directory or ".", sh.cwd))
        except OSError:
            continue
        found += [name for name, stat in entries if stat.is_file and (stat.mode is None or stat.mode & 0o111)]
    return found


async def _generate(sh: ShellState, kind: str, word: str) -> list[str]:
    if kind in "fd":
        return await _files(sh, word, only_directories=kind == "d")
    if kind == "c":
        found = [*await _generate(sh, "a", word), *KEYWORDS, *await _generate(sh, "FUNCTION", word)]
        return [*found, *await _generate(sh, "b", word), *await _programs(sh)]
    table = builtin_table()
    makers: dict[str, Callable[[], Iterable[str]]] = {
        "a": lambda: sh.aliases,
        "b": lambda: table,
        "e": sh.variables.exported,
        "g": lambda: [sh.shell.user.group],
        "u": lambda: [sh.shell.user.name],
        "v": lambda: (name for name, value in sh.vars.items() if "\0" not in name and not is_unset(value)),
        "ARRAY": lambda: _arrays(sh),
        "DISABLED": lambda: sh.disabled,
        "ENABLED": lambda: table.keys() - sh.disabled,
        "FUNCTION": lambda: sh.functions,
    }
    if kind in makers:
        return sorted(makers[kind]())
    if kind == "j":
        return [job.text.split()[0] for job in sh.jobs.jobs if job.running and job.text]
    if kind == "SIGNAL":
        return [name if name == "EXIT" else "SIG" + name for name in signals.NAMES if name] + list(signals.PSEUDO)
    lists = {"k": KEYWORDS, "HELP": SYNOPSES, "SETOPT": OPTIONS, "SHOPT": SHOPTS}
    return list(lists.get(kind, ()))


def complete(sh: ShellState, argv: list[str]) -> Result:
    """Remembers specifications and shows them; nothing here completes."""
    parsed = _parsed(sh, argv, "prDEI")
    if not isinstance(parsed, tuple):
        return parsed
    flags, names = parsed
    letters = "".join(letter for letter, _ in flags)
    special = next((f"-{letter}" for letter in "DEI" if letter in letters), "")
    if special:
        names = [special]  # and no others
    if "r" in letters:
        if not names:
            sh.completions.clear()

        def forget(name: str) -> Result:
            return 0 if sh.completions.pop(name, None) is not None else _missing(sh, "complete", name)

        return each(sh, names, forget)
    if "p" in letters or not (flags or names):
        return _show(sh, names)
    if not names:
        return usage(sh, "complete")
    function = dict(flags).get("F")
    if function is not None and any(char in function for char in _NO_NAME):
        return sh.error(f"complete: `{function}': not a valid identifier", 2)
    spec = _specification(flags)

    def remember(name: str) -> None:
        sh.completions.pop(name, None)  # the last one made is the first in its place of the table
        sh.completions[str(name)] = spec

    return each(sh, names, remember)


_NO_NAME: Final = " \t\n;&|()<>$`\"'\\"
_SPECIAL_NAMES: Final = {"-D": "_DefaultCmD_", "-E": "_EmptycmD_", "-I": "_InitialWorD_"}
"""The commands that bash keeps the specifications of `-D`, `-E` and `-I` under."""
_BUCKETS: Final = 512


def _kept_as(name: str) -> str:
    return _SPECIAL_NAMES.get(name, name)


def _missing(sh: ShellState, who: str, name: str) -> Result:
    return sh.error(f"{who}: {_kept_as(name)}: no completion specification")


def _specification(flags: list[tuple[str, str]]) -> str:
    """The options of a specification in the order in which they are shown."""
    parts = [f"-o {option}" for option in _OPTIONS if ("o", option) in flags]
    parts += [f"-{letter}" for letter in "abcdefgjksuv" if (letter, "") in flags]
    for wanted in _SHOWN[1:]:
        for letter, value in flags:
            if letter == wanted:
                plain = letter in "AF" and quote.word(value) == value
                parts.append(f"-{letter} {value if plain else quote.single(value)}")
    return " ".join(parts)


def _show(sh: ShellState, names: list[str]) -> Result:
    known: list[str] = []

    def look_up(name: str) -> Result:
        if name not in sh.completions:
            return _missing(sh, "complete", name)
        known.append(name)
        return 0

    def line(name: str) -> str:
        spec = sh.completions[name]
        shown = name if name in _SPECIAL_NAMES else quote.word(name)
        return f"complete {spec} {shown}\n" if spec else f"complete {shown}\n"

    if not names:
        # bash's hash table: by bucket, the last one added first.
        last_first = reversed(sh.completions)
        ordered = sorted(last_first, key=lambda name: bucket(_kept_as(name)) % _BUCKETS)
        return write_lines(sh, map(line, ordered), len(ordered), "complete")
    return then(
        each(sh, names, look_up), lambda status: status or write_lines(sh, map(line, known), len(known), "complete")
    )


def compopt(sh: ShellState, argv: list[str]) -> Result:
    options: list[tuple[bool, str]] = []
    names: list[str] = []
    i = 1
    while i < len(argv):
        word = argv[i]
        i += 1
        if word == "--":
            names += argv[i:]
            break
        if word[:1] in ("-", "+") and len(word) > 1:
            if word[1] in "DEI":
                names.append(f"-{word[1]}")
            elif word[1] != "o":
                return bad_option(sh, "compopt", word[:2])
            elif i >= len(argv):
                return bad_option(sh, "compopt", "-o", "option requires an argument")
            else:
                if argv[i] not in _OPTIONS:
                    return sh.error(f"compopt: {argv[i]}: invalid option name", 2)
                options.append((word[0] == "-", str(argv[i])))
                i += 1
        else:
            names.append(word)
    if not names:
        return sh.error("compopt: not currently executing completion function")

    def change(name: str) -> Result:
        if name not in sh.completions:
            return _missing(sh, "compopt", name)
        spec = sh.completions[name]
        chosen = {option for option in _OPTIONS if f"-o {option}" in spec}
        if not options:
            shown = " ".join(f"{'-' if option in chosen else '+'}o {option}" for option in _OPTIONS)
            sh.out(encode(f"compopt {shown} {name}\n"), "compopt")
            return 0
        for on, option in options:
            (chosen.add if on else chosen.discard)(option)
        rest = spec
        for option in _OPTIONS:
            rest = rest.replace(f"-o {option}", "").strip()
        sh.completions[name] = " ".join([*(f"-o {option}" for option in _OPTIONS if option in chosen), rest]).strip()
        return 0

    return each(sh, names, change)


TABLE: Final[dict[str, Builtin]] = {"compgen": compgen, "complete": complete, "compopt": compopt}
