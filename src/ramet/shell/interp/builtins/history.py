"""`history` and `fc`: the lines that a session has kept, and the file they may be written to."""

from __future__ import annotations

import re
from typing import Final

from ramet.core import ops, paths
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.shell.expand.errors import Slip
from ramet.shell.interp.builtins.usage import bad_option, number_of
from ramet.shell.interp.drive import Result, drive
from ramet.shell.interp.session import Builtin, Session

_SHOWN: Final = 16
"""Commands that `fc -l` lists when it is told nothing."""


def history(sh: Session, argv: list[str]) -> Result:
    words = [str(word) for word in argv[1:]]
    flag = words[0] if words and words[0].startswith("-") and len(words[0]) > 1 else ""
    if flag == "-c":
        sh.history.clear()
        return 0
    if flag == "-s":
        if words[1:]:
            sh.history.append(" ".join(words[1:]))
        return 0
    if flag == "-p":
        return _expanded(sh, words[1:])
    if flag == "-d":
        return _forget(sh, words[1:])
    if flag in ("-a", "-n", "-r", "-w"):
        return drive(_file(sh, flag, words[1:]))
    if flag == "--":
        words = words[1:]
    elif flag:
        return bad_option(sh, "history", flag[:2])
    count = number_of(words[0]) if words else len(sh.history)
    if count is None:
        return sh.error(f"history: {words[0]}: numeric argument required")
    if len(words) > 1:
        raise Slip("history: too many arguments")
    count = abs(count)
    start = max(0, len(sh.history) - count)
    if len(sh.history) - start > _SOME:
        return drive(_list_many(sh, start))
    return sh.out(encode(_lines(sh, start, len(sh.history))), "history")


_SOME: Final = 1024
"""Lines that are written between two chances for others to run."""


def _lines(sh: Session, start: int, stop: int) -> str:
    return "".join([f"{number + 1:5d}  {sh.history[number]}\n" for number in range(start, stop)])


async def _list_many(sh: Session, start: int) -> int:
    end = len(sh.history)
    for first in range(start, end, _SOME):
        written = sh.out(encode(_lines(sh, first, min(first + _SOME, end))), "history")
        if written if isinstance(written, int) else await written:
            return 1
        await sh.budget.breathe()
    return 0


def _expanded(sh: Session, words: list[str]) -> Result:
    """`history -p`: `!!` and its like are not expanded here, and what has none of them is itself."""
    for word in words:
        if re.search(r"![^ \t\n=(]", word):
            return sh.error(f"history: {word}: history expansion failed")
    return sh.out(encode("".join(f"{word}\n" for word in words)), "history")


def _forget(sh: Session, words: list[str]) -> Result:
    """`history -d offset` or `-d first-last`."""
    if not words:
        return bad_option(sh, "history", "-d", "option requires an argument")
    row = re.fullmatch(r"(-?\d+)-(-?\d+)", words[0])
    ends = [row[1], row[2]] if row is not None else [words[0], words[0]]
    places: list[int] = []
    for end in ends:
        offset = int(end) if end.lstrip("-").isdigit() else 0
        place = offset - 1 if offset > 0 else len(sh.history) + offset
        if not offset or not 0 <= place < len(sh.history):
            return sh.error(f"history: {words[0]}: history position out of range")
        places.append(place)
    del sh.history[places[0] : places[1] + 1]
    return 0


async def _file(sh: Session, flag: str, words: list[str]) -> int:
    """`-w` and `-a` write the lines, `-r` and `-n` read them, from and to a file or the one that HISTFILE names."""
    name = words[0] if words else sh.store.get("HISTFILE")
    if not name:
        return 0
    path = paths.parse(name, sh.cwd)
    fs = sh.shell.fs
    try:
        if flag in ("-r", "-n"):
            sh.history += paths.decode(await sh.shell.read_file(path)).splitlines()
            return 0
        data = encode("".join(f"{line}\n" for line in sh.history))
        if flag == "-a" and await sh.shell.exists(path):
            data = await sh.shell.read_file(path) + data
        await ops.write_bytes(fs, path, data)
    except OSError as error:
        return sh.error(f"history: {name}: {reason(error)}")
    return 0


# --------------------------------------------------------------------------------------------------------- fc


def commands(sh: Session, argv: list[str]) -> Result:
    """`fc -l` lists commands, `fc -s` runs one again; editing them needs a terminal."""
    flags, words = "", [str(word) for word in argv[1:]]
    while words and re.fullmatch(r"-[A-Za-z-]+", words[0]):
        word = words.pop(0)
        if word == "--":
            break
        for letter in word[1:]:
            if letter not in "elnrs":
                return bad_option(sh, "fc", f"-{letter}")
        flags += word[1:]
        if "e" in word and words:
            words.pop(0)
    if "s" in flags:
        return drive(_again(sh, words))
    if "l" not in flags:
        if not sh.history:
            return 0
        return sh.error("fc: not supported here: there is no terminal")
    if not sh.history:
        return 0
    ends: list[int] = []
    for word in words[:2]:
        place = _place(sh, word)
        if place is None:
            return sh.error("fc: history specification out of range")
        ends.append(place)
    total = len(sh.history)
    if not total:
        return 0
    first = ends[0] if ends else max(total - _SHOWN, 0)
    last = ends[1] if len(ends) > 1 else total - 1
    chosen = list(range(min(first, last), min(max(first, last), total - 1) + 1))
    if ("r" in flags) is not (first > last):
        chosen.reverse()
    lines = "".join(f"{'' if 'n' in flags else number + 1}\t {sh.history[number]}\n" for number in chosen)
    return sh.out(encode(lines), "fc")


def _place(sh: Session, word: str) -> int | None:
    """Where in the history a number or the beginning of a command leads."""
    total = len(sh.history)
    if not word.lstrip("-").isdigit():
        return next((place for place in range(total - 1, -1, -1) if sh.history[place].startswith(word)), None)
    number = int(word)
    place = number - 1 if number > 0 else total + number
    return min(max(place, 0), total - 1) if total else None


async def _again(sh: Session, words: list[str]) -> int:
    changes: list[tuple[str, str]] = []
    while words and "=" in words[0]:
        old, _, new = words.pop(0).partition("=")
        changes.append((old, new))
    place = _place(sh, words[0] if words else "-1")
    if place is None:
        return sh.error("fc: no command found")
    text = sh.history[place]
    for old, new in changes:
        text = text.replace(old, new) if old else text
    sh.err(f"{text}\n")
    sh.history.append(text)
    return await sh.shell.run_text(sh, text, keep_line=True)


TABLE: Final[dict[str, Builtin]] = {"history": history, "fc": commands}
