"""Command lookup builtins: `type`, `command`, `builtin`, `hash`, `enable` and `alias`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Final

from ramet.core.paths import encode
from ramet.shell.expand import quote
from ramet.shell.expand.values import bucket
from ramet.shell.interp.builtins.usage import bad_option, flags_of, help_, options_of, usage
from ramet.shell.interp.run.assign import without_arrays
from ramet.shell.interp.run.batches import (
    each,
    then,
    turn,
    write_lines,
)
from ramet.shell.interp.run.external import search, search_path
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.function_table import definition
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.shell.interp.state.special_variables import is_alias_name
from ramet.shell.interp.state.variable_bytes import ENTRY

_BUCKETS: Final = 256

KEYWORDS: Final = [
    "if",
    "then",
    "else",
    "elif",
    "fi",
    "case",
    "esac",
    "for",
    "select",
    "while",
    "until",
    "do",
    "done",
    "in",
    "function",
    "time",
    "{",
    "}",
    "!",
    "[[",
    "]]",
    "coproc",
]
SPECIAL: Final = frozenset(
    [
        ".",
        ":",
        "break",
        "continue",
        "eval",
        "exec",
        "exit",
        "export",
        "readonly",
        "return",
        "set",
        "shift",
        "source",
        "times",
        "trap",
        "unset",
    ]
)


def builtin_table() -> dict[str, Builtin]:
    from ramet.shell.interp.builtins import BUILTINS

    return BUILTINS


def _printable(path: str) -> str:
    return path.lstrip("\0")


async def _everywhere(sh: ShellState, name: str) -> list[str]:
    """All places on PATH that have the name."""
    found: list[str] = []
    for directory in (sh.variables.get("PATH") or "").split(":"):
        hit = await search_path(sh, name, directory or ".")
        if hit is not None and _printable(hit) not in found:
            found.append(_printable(hit))
    return found


async def _file(sh: ShellState, name: str) -> str | None:
    """The program behind a name, by PATH or as a path."""
    if "/" in name:
        from ramet.shell.interp.run.external import BIN, in_table, is_native

        try:
            stat = await sh.shell.fs.stat(sh.shell.fs.named(name, sh.cwd), follow=True)
        except OSError:
            base = name[name.rfind("/") + 1 :]
            runs = name[: name.rfind("/")] in BIN and in_table(sh, base)
            return name if runs or await is_native(sh, name) else None
        return name if stat.is_file and (stat.mode is None or stat.mode & 0o111) else None
    if name in sh.hashed:
        return _hit(sh, name)
    # A file that cannot be run is shown as well, if there is no other.
    hit = await search_path(sh, name, sh.variables.get("PATH") or "", executable=True)
    return None if hit is None else _printable(hit)


def _hit(sh: ShellState, name: str) -> str:
    """Return the hashed path of a name, and count the hit."""
    path, hits = sh.hashed[name]
    sh.hashed[name] = (path, hits + 1)
    return _printable(path)


def type_(sh: ShellState, argv: list[str]) -> Result:
    found = flags_of(sh, argv, "aftpP")
    return 2 if found is None else drive(_type(sh, found[0], found[1]))


async def _type(sh: ShellState, flags: str, words: list[str]) -> int:
    status = 0
    for name in [str(word) for word in words]:
        await turn(sh)
        found = await _describe(sh, name, flags)
        if not found:
            status = 1
            if not set("tpP") & set(flags):
                sh.error(f"type: {name}: not found")
            continue
        lines = [f"{line}\n" for line in found]
        written = write_lines(sh, lines, len(lines), "type")
        if not isinstance(written, int):
            written = await written
        status = status or written
    return status


async def _describe(sh: ShellState, name: str, flags: str) -> list[str]:
    every, kind = "a" in flags, flags.rfind("t") > max(flags.rfind("p"), flags.rfind("P"))
    if kind:
        flags = flags.replace("p", "")  # the last of them holds
    lines: list[str] = []
    if "P" not in flags:
        if name in sh.aliases and "expand_aliases" in sh.shopts:
            lines.append("alias" if kind else f"{name} is aliased to `{sh.aliases[name]}'")
        if name in KEYWORDS:
            lines.append("keyword" if kind else f"{name} is a shell keyword")
        if name in sh.functions and "f" not in flags:
            lines.append("function" if kind else f"{name} is a function\n{''.join((await definition(sh, name))[:-1])}")
        if name in builtin_table() and name not in sh.disabled:
            special = "special " if sh.posix and name in SPECIAL else ""
            lines.append("builtin" if kind else f"{name} is a {special}shell builtin")
        if "p" in flags and lines and not every:
            return _QUIET
        if "p" in flags and lines:
            lines = _Quiet()
    if lines and not every:
        return lines[:1]
    if every and "/" not in name and not ("P" in flags and name in sh.hashed):
        files = await _everywhere(sh, name)
    else:
        hashed = name in sh.hashed and not every
        file = await _file(sh, name)
        files = [] if file is None else [file]
        if hashed and files and not set("tpP") & set(flags):
            return [f"{name} is hashed ({files[0]})"]
    if kind:
        lines += ["file"] * len(files)
    elif set("pP") & set(flags):
        return _Quiet(files) if lines or files else []
    else:
        lines += [f"{name} is {file}" for file in files]
    return lines if every else lines[:1]


class _Quiet(list[str]):
    """Found, and nothing to print."""

    def __bool__(self) -> bool:
        return True


_QUIET: Final = _Quiet()


_STANDARD: Final = "/bin:/usr/bin"
"""Where programs live, whatever PATH says."""


_RUNNING: Final = ("eval", ".", "source")


def command(sh: ShellState, argv: list[str]) -> Result:
    found = flags_of(sh, argv, "pvV")
    if found is None:
        return 2
    flags, words = found
    mode = max(flags.replace("p", ""), key=flags.rfind, default="")
    standard = "p" in flags
    if not words:
        return 0
    if mode == "V":
        return drive(_command_verbose(sh, words))
    if mode == "v":
        return drive(_command_v(sh, words, standard))
    if standard and words[0] not in builtin_table():
        return drive(_standard(sh, words))
    first = 0
    while words[first] == "command" and first + 1 < len(words) and not words[first + 1].startswith("-"):
        first += 1
    if first and "command" not in sh.disabled:
        words = words[first:]
    sh.via_command = sh.posix and words[0] in _RUNNING
    # `command builtin command builtin ...` nests as deep as it is long.
    return drive(sh.shell.below(sh, lambda: sh.shell.invoke(sh, words, functions=False)))


async def _standard(sh: ShellState, words: list[str]) -> int:
    """`command -p`: the program where programs live, whatever PATH says."""
    from ramet.shell.interp.run.external import run_external

    name = words[0]
    found = await search_path(sh, name, _STANDARD) if "/" not in name else None
    if found is None:
        return await run_external(sh, words)
    if "hashall" in sh.options:
        sh.hashed[name] = (found, 1)
    return await run_external(sh, [_printable(found), *words[1:]], name)


async def _command_verbose(sh: ShellState, words: list[str]) -> int:
    names = [str(word) for word in words]
    lines = sh.pending_output = list[str]()
    found_any = missing = False
    for name in names:
        await sh.budget.yield_turn()
        found = await _describe(sh, name, "")
        if not found:
            missing = True
            sh.error(f"command: {name}: not found")
        found_any = found_any or bool(found)
        lines += [f"{line}\n" for line in found]
    sh.pending_output = []
    written = write_lines(sh, lines, len(lines), "command")
    if not isinstance(written, int):
        written = await written
    return 1 if missing and not found_any else written


async def _command_v(sh: ShellState, words: list[str], standard: bool = False) -> int:
    names = [str(word) for word in words]
    lines: list[str] = []
    found = 0
    for name in names:
        await sh.budget.yield_turn()
        if name in sh.aliases and "expand_aliases" in sh.shopts:
            lines.append(f"alias {name}={quote.single(sh.aliases[name])}\n")
        elif name in KEYWORDS or name in sh.functions or (name in builtin_table() and name not in sh.disabled):
            lines += (name, "\n")
        else:
            hit = await search_path(sh, name, _STANDARD) if standard and "/" not in name else await _file(sh, name)
            if hit is None:
                continue
            lines += (_printable(hit), "\n")
        found += 1
    written = write_lines(sh, lines, len(lines), "command")
    if not isinstance(written, int):
        written = await written
    return 0 if found == len(names) else (1 if not found else written)


def builtin(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "")
    if options is None:
        return 2
    words = options[1]
    while words[:1] == ["builtin"] and "builtin" not in sh.disabled and words[1:2] != ["--help"]:
        options = flags_of(sh, words, "")
        if options is None:
            return 2
        words = options[1]
    if not words:
        return 0
    found = builtin_table().get(words[0])
    if found is None or words[0] in sh.disabled:
        return sh.error(f"builtin: {words[0]}: not a shell builtin")
    return found(sh, words)


def hash_(sh: ShellState, argv: list[str]) -> Result:
    if "hashall" not in sh.options:
        return sh.error("hash: hashing disabled")
    options = options_of(argv, "lrdt", "p")
    if options.wrong is not None:
        return bad_option(sh, "hash", *options.wrong)
    flags, path, words = "", "", argv[options.operands :]
    for letter, value in options.letters:
        flags, path = flags + letter, value or path
    for letter in "td":
        if letter in flags and not words:
            return sh.error(f"hash: -{letter}: option requires an argument")
    if "t" in flags:
        return drive(_hash_shown(sh, words, "l" in flags))
    if "r" in flags:
        sh.hashed.clear()
    if "d" in flags:

        def drop(word: str) -> Result:
            if word not in sh.hashed:
                return sh.error(f"hash: {word}: not found")
            del sh.hashed[word]
            return 0

        return each(sh, words, drop)
    if path and words:
        return drive(_hash_as(sh, path, words))
    if not words:
        if "r" in flags:
            return 0
        if not sh.hashed:
            return 0 if "l" in flags else sh.out(b"hash: hash table empty\n", "hash")
        return drive(_hash_listed(sh, "l" in flags))
    return drive(_hash(sh, words))


async def _hash_listed(sh: ShellState, reusable: bool) -> int:
    """The table in bash's order: by bucket, the last one added first."""
    last_first = reversed(sh.hashed)
    known = sorted(last_first, key=lambda name: bucket(name) % _BUCKETS)
    lines: Iterable[str]
    if reusable:
        lines = (f"builtin hash -p {_printable(sh.hashed[name][0])} {name}\n" for name in known)
    else:
        counted = (f"{sh.hashed[name][1]:4d}\t{_printable(sh.hashed[name][0])}\n" for name in known)
        lines = chain(("hits\tcommand\n",), counted)
    written = write_lines(sh, lines, len(sh.hashed), "hash")
    return written if isinstance(written, int) else await written


async def _hash_as(sh: ShellState, path: str, words: list[str]) -> int:
    try:
        directory = (await sh.shell.fs.stat(sh.shell.fs.named(path, sh.cwd), follow=True)).is_dir
    except OSError:
        directory = False  # what is not there may come to be
    status = 0
    for word in words:
        await sh.budget.yield_turn()
        if directory:
            status = sh.error(f"hash: {path}: Is a directory")
        else:
            sh.hashed[word] = (path, 0)
    return status


async def _hash_shown(sh: ShellState, words: list[str], reusable: bool) -> int:
    status = 0
    for word in words:
        await sh.budget.yield_turn()
        if word not in sh.hashed:
            status = sh.error(f"hash: {word}: not found")
            continue
        path = _hit(sh, word)
        head = f"{word}\t" if len(words) > 1 else ""
        written = sh.out(encode(f"builtin hash -p {path} {word}\n" if reusable else f"{head}{path}\n"), "hash")
        if not isinstance(written, int):
            await written
    return status


async def _hash(sh: ShellState, words: list[str]) -> int:
    status = 0
    for word in words:
        await sh.budget.yield_turn()
        if word in builtin_table() or word in sh.functions or "/" in word:
            continue
        sh.hashed.pop(word, None)
        found = await search(sh, word)
        if found is None:
            status = sh.error(f"hash: {word}: not found")
        else:
            sh.hashed[word] = (found, 0)
    return status


def enable(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "adnpsf")
    if options is None:
        return 2
    flags, words = options
    if "f" in flags and not words:
        return bad_option(sh, "enable", "-f", "option requires an argument")
    if "f" in flags:
        missing = ": cannot open shared object file: No such file or directory"
        return sh.error(f"enable: cannot open shared object {words[0]}: {words[0]}{missing}")
    off = "n" in flags
    if not words or "p" in flags:
        names = sorted(name for name in builtin_table() if "s" not in flags or name in SPECIAL)
        lines: list[str] = []
        for name in names:
            disabled = name in sh.disabled
            if "a" in flags or disabled is off:
                lines.append(f"enable {'-n ' if disabled else ''}{name}\n")
        return sh.out(encode("".join(lines)), "enable")

    def switch(word: str) -> Result:
        if word not in builtin_table():
            return sh.error(f"enable: {word}: not a shell builtin")
        if "d" in flags:
            return sh.error(f"enable: {word}: not dynamically loaded")
        (sh.disabled.add if off else sh.disabled.discard)(word)
        return 0

    return each(sh, words, switch)


def alias(sh: ShellState, argv: list[str]) -> Result:
    argv = without_arrays(sh, argv)
    options = flags_of(sh, argv, "p")
    if options is None:
        return 2
    words = options[1]
    lines: list[str] = []

    def define(word: str) -> Result:
        at = word.find("=")
        name = word[:at] if at >= 0 else str(word)
        if at > 0:
            if not is_alias_name(name):
                return sh.error(f"alias: `{name}': invalid alias name")
            sh.variables.charge(ENTRY + len(word))
            sh.aliases[name] = str(word)[at + 1 :]
        elif name in sh.aliases:
            lines.append(_alias_line(sh, name, bool(options[0])))
        else:
            return sh.error(f"alias: {word}: not found")
        return 0

    def rest() -> Result:
        sh.pending_output = lines
        return then(each(sh, words, define), lambda status: write_lines(sh, lines, len(lines), "alias", status))

    if words and not options[0]:
        return rest()
    every = [_alias_line(sh, name, bool(options[0])) for name in sorted(sh.aliases)]
    listed = write_lines(sh, every, len(every), "alias")
    return then(listed, lambda status: status or rest()) if words else listed


def _alias_line(sh: ShellState, name: str, reusable: bool) -> str:
    dashes = "-- " if name.startswith("-") else ""
    head = f"alias {dashes}{name}=" if reusable or not sh.posix else f"{name}="
    return f"{head}{quote.single(sh.aliases[name])}\n"


def unalias(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "a")
    if options is None:
        return 2
    if options[0]:
        sh.aliases.clear()
        return 0
    words = options[1]
    if not words:
        return usage(sh, "unalias")

    def drop(word: str) -> Result:
        if word not in sh.aliases:
            return sh.error(f"unalias: {word}: not found")
        del sh.aliases[word]
        return 0

    return each(sh, words, drop)


TABLE: Final[dict[str, Builtin]] = {
    "type": type_,
    "command": command,
    "builtin": builtin,
    "hash": hash_,
    "enable": enable,
    "alias": alias,
    "unalias": unalias,
    "help": help_,
}
