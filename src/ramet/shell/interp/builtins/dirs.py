"""Directory builtins: `cd`, `pwd`, `pushd`, `popd` and `dirs`."""

from __future__ import annotations

import errno
from itertools import chain, count, islice, repeat
from typing import Final

from ramet.concurrency.sizes import BATCH
from ramet.core import paths
from ramet.core.errors import fail, reason
from ramet.core.paths import encode
from ramet.shell.expand.arith.numerals import is_name, is_number
from ramet.shell.interp.builtins.usage import flags_of, misused
from ramet.shell.interp.run.assign import put
from ramet.shell.interp.run.batches import write_lines
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState


async def change(sh: ShellState, word: str, physical: bool = False) -> None:
    """Make a directory the current one, and say so in PWD and OLDPWD. Raises OSError."""
    logical = word if word.startswith("/") else f"{sh.pwd}{'' if sh.pwd.endswith('/') else '/'}{word}"
    named = paths.parse(logical)
    target = await _walked(sh, word) if physical else await sh.shell.fs.resolve(named)
    stat = await sh.shell.fs.stat(target)
    if not stat.is_dir:
        raise fail(errno.ENOTDIR, word)
    if stat.mode is not None and not stat.mode & 0o111 and sh.shell.user.uid:
        raise fail(errno.EACCES, word)
    # A component that is not a directory must not vanish by `..`.
    if "/.." in logical:
        await _check_components(sh, logical, 0 if word.startswith("/") else len(sh.pwd))
    old = sh.pwd
    text = str(target if physical else named)
    if logical.startswith("//") and not logical.startswith("///"):
        text = "/" + text  # two slashes, and only two, stay as they are
    sh.cwd, sh.logical_cwd = target, None if text == target else (target, text)
    put(sh, "OLDPWD", old)
    put(sh, "PWD", text)


async def _walked(sh: ShellState, word: str) -> paths.Path:
    """Where a name leads when every link on the way counts, also before `..`."""
    if ".." not in word:
        return await sh.shell.fs.resolve(paths.parse(word, sh.cwd))
    here = paths.ROOT if word.startswith("/") else sh.cwd
    for part in word.split("/"):
        here = here.parent if part == ".." else await sh.shell.fs.resolve(paths.parse(part or ".", here))
    return here


async def _check_components(sh: ShellState, logical: str, known: int) -> None:
    """What is `known` as the place where we are is not looked at: a way leads up even from a directory that is gone."""
    here = logical[:known]
    for part in logical[known:].split("/"):
        if part == "..":
            if len(here) > known:
                stat = await sh.shell.fs.stat(paths.parse(here), follow=True)
                if not stat.is_dir:
                    raise fail(errno.ENOTDIR, logical)
            here = str(paths.parse(here or "/").parent)
            known = min(known, len(here))
        elif part and part != ".":
            here = f"{here.rstrip('/')}/{part}"


def cd(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "LPe")
    if options is None:
        return 2
    chosen = options[0].replace("e", "")  # the last of -L and -P holds
    physical = chosen.endswith("P") if chosen else "physical" in sh.options
    if len(options[1]) > 1:
        return sh.error("cd: too many arguments")
    words = [str(word) for word in options[1]]
    if not words:
        home = sh.variables.get("HOME")
        if home is None:
            return sh.error("cd: HOME not set")
        target = home
        if not target:
            return 0
    elif words[0] == "-":
        old = sh.variables.get("OLDPWD")
        if old is None:
            return sh.error("cd: OLDPWD not set")
        return drive(_enter_directory(sh, old, physical, True))
    else:
        target = words[0]
    return drive(_cd(sh, target, physical))


async def _cd(sh: ShellState, target: str, physical: bool) -> int:
    if not target.startswith(("/", "./", "../")) and target not in (".", ".."):
        for place, prefix in enumerate((sh.variables.get("CDPATH") or "").split(":")):
            if not place % BATCH:
                await sh.budget.yield_turn()
            if prefix:
                try:
                    await change(sh, f"{prefix.rstrip('/')}/{target}", physical)
                except OSError:
                    continue
                return await _report_missing(sh)
    return await _enter_directory(sh, target, physical, False)


async def _enter_directory(sh: ShellState, target: str, physical: bool, show: bool) -> int:
    """Go where a name leads from here, wherever `CDPATH` would look for it."""
    if not target:
        put(sh, "OLDPWD", sh.pwd)
        return await _report_missing(sh, "") if show else 0
    try:
        await change(sh, target, physical)
    except OSError as error:
        name = sh.variables.get(target) if "cdable_vars" in sh.shopts and is_name(target) else None
        if name:
            return await _enter_directory(sh, name, physical, True)
        if error.errno == errno.ENOENT and set(target.split("/")) <= {".", ".."} and not await sh.shell.exists(sh.cwd):
            return _stay_in_removed(sh, target)
        return sh.error(f"cd: {target}: {reason(error)}")
    return await _report_missing(sh) if show else 0


_GONE: Final = (
    "error retrieving current directory: getcwd: cannot access parent directories: No such file or directory\n"
)


def _stay_in_removed(sh: ShellState, target: str) -> int:
    """`cd .` in a directory that is gone: it stays the one where we are, however it is called then."""
    sh.err(f"cd: {_GONE}")
    old, sh.cwd = sh.pwd, paths.parse(target, sh.cwd)
    sh.logical_cwd = (sh.cwd, f"{old}/{target}")
    put(sh, "OLDPWD", old)
    put(sh, "PWD", sh.pwd)
    return 0


async def _report_missing(sh: ShellState, name: str | None = None) -> int:
    written = sh.out(encode((sh.pwd if name is None else name) + "\n"), "cd")
    return written if isinstance(written, int) else await written


def pwd(sh: ShellState, argv: list[str]) -> Result:
    physical = "physical" in sh.options
    for word in argv[1:]:
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1:
            for letter in islice(word, 1, None):
                if letter not in "LP":
                    sh.complain(f"pwd: -{letter}: invalid option")
                    sh.err("pwd: usage: pwd [-LP]\n")
                    return 2
                physical = letter == "P"
        else:
            break
    if physical:
        return drive(_physical(sh))
    return sh.out(encode(sh.pwd + "\n"), "pwd")


async def _physical(sh: ShellState) -> int:
    try:
        path = await sh.shell.fs.resolve(sh.cwd)
    except OSError:
        sh.err(f"pwd: {_GONE}")
        return 1
    written = sh.out(encode(f"{'/' if sh.pwd.startswith('//') else ''}{path}\n"), "pwd")
    return written if isinstance(written, int) else await written


# ------------------------------------------------------------------------------------------------------- stack


def _short(home: str, path: str) -> str:
    return "~" + path[len(home) :] if home and (path == home or path.startswith(home.rstrip("/") + "/")) else path


def _is_rotation(word: str) -> bool:
    """`+N` and `-N`."""
    return word[:1] in ("+", "-") and is_number(word[1:])


def _rotation(word: str, size: int) -> int | None:
    """`+N` and `-N` as a place in the stack."""
    if not _is_rotation(word):
        return None
    number = int(word[1:])
    return number if word[0] == "+" else size - 1 - number


def _outside(sh: ShellState, name: str, word: str) -> int:
    """A place that the stack does not have."""
    return sh.error(
        f"{name}: {word}: directory stack index out of range" if sh.dirs else f"{name}: directory stack empty"
    )


def dirs(sh: ShellState, argv: list[str]) -> Result:
    long = lines = verbose = clear = False
    place: int | None = None
    stack = [sh.pwd, *sh.dirs]
    for word in islice(argv, 1, None):
        if _is_rotation(word):
            place = _rotation(word, len(stack))
            if place is None or not 0 <= place < len(stack):
                return _outside(sh, "dirs", word[1:])
            continue
        if word == "--":
            break
        if word not in ("-c", "-l", "-p", "-v"):  # each on its own
            why = "invalid number" if word[:1] in ("-", "+") else "invalid option"
            return misused(sh, "dirs", word, why)
        clear, long = clear or word == "-c", long or word == "-l"
        lines, verbose = lines or word in ("-p", "-v"), verbose or word == "-v"
    if clear:
        sh.dirs.clear()
        return 0
    home = sh.variables.get("HOME") or ""

    def show(number: int, path: str, end: str) -> str:
        return (f"{number:2d}  " if verbose else "") + (path if long else _short(home, path)) + end

    if place is not None:
        return sh.out(encode(show(place, stack[place], "\n")), "dirs")
    ends = chain(repeat("\n" if lines else " ", len(stack) - 1), ("\n",))
    return write_lines(sh, map(show, count(), stack, ends), len(stack), "dirs")


def _options(words: list[str]) -> tuple[list[str], bool, bool]:
    """What is left of the words, whether `-n` was among them, and whether `--` stood before the rest."""
    still = False
    for place, word in enumerate(words):
        if word == "--":
            return words[place + 1 :], still, True
        if word != "-n":
            return words[place:], still, False
        still = True
    return [], still, False


def pushd(sh: ShellState, argv: list[str]) -> Result:
    return drive(_pushd(sh, argv[1:]))


async def _pushd(sh: ShellState, words: list[str]) -> int:
    words, still, plain = _options(words)
    stack = [sh.pwd, *sh.dirs]
    if len(words) > 1 and (plain or words[0] == "-" or not words[0].startswith(("-", "+"))):
        return sh.error("pushd: too many arguments")
    if not words:
        if still:
            return 0
        if len(stack) < 2:
            return sh.error("pushd: no other directory")
        stack[0], stack[1] = stack[1], stack[0]
    elif _is_rotation(words[0]) and not plain:
        place = _rotation(words[0], len(stack))
        if place is None or not 0 <= place < len(stack):
            return _outside(sh, "pushd", words[0])
        stack = stack[place:] + stack[:place]
        if still:
            sh.dirs = stack[1:]
            return 0
    elif words[0].startswith(("-", "+")) and words[0] != "-" and not plain:
        return misused(sh, "pushd", words[0], "invalid number")
    else:
        target = words[0] if words[0] != "-" or plain else sh.variables.get("OLDPWD") or ""
        if not target and words[0] == "-":
            return sh.error("pushd: OLDPWD not set")
        if still:
            sh.dirs.insert(0, target)
            return await _show(sh)
        old = sh.pwd
        try:
            await change(sh, target)
        except OSError as error:
            return sh.error(f"pushd: {target}: {reason(error)}")
        sh.dirs.insert(0, old)
        if words[0] == "-" and not plain:
            await _report_missing(sh)
        return await _show(sh)
    return await _enter(sh, stack, "pushd", still)


async def _enter(sh: ShellState, stack: list[str], name: str, still: bool) -> int:
    if not still:
        try:
            await change(sh, stack[0])
        except OSError as error:
            return sh.error(f"{name}: {stack[0]}: {reason(error)}")
    sh.dirs = stack[1:]
    return await _show(sh)


async def _show(sh: ShellState) -> int:
    written = dirs(sh, ["dirs"])
    return written if isinstance(written, int) else await written


def popd(sh: ShellState, argv: list[str]) -> Result:
    return drive(_popd(sh, argv[1:]))


async def _popd(sh: ShellState, words: list[str]) -> int:
    words, still, plain = _options(words)
    stack = [sh.pwd, *sh.dirs]
    place = 0
    if words and words[0] and not plain:
        word = words[0]
        found = _rotation(word, len(stack))
        if found is None:
            why = "invalid number" if word[0] in "+-" else "invalid argument"
            return misused(sh, "popd", word, why)
        if not 0 <= found < len(stack) or len(stack) == 1:
            return _outside(sh, "popd", word)
        place = found
    if len(stack) == 1:
        return sh.error("popd: directory stack empty")
    if place == 0 and still:
        place = 1
    del stack[place]
    if place:
        sh.dirs = stack[1:]
        return await _show(sh)
    return await _enter(sh, stack, "popd", still)


TABLE: Final[dict[str, Builtin]] = {"cd": cd, "pwd": pwd, "dirs": dirs, "pushd": pushd, "popd": popd}
