"""Command find: walk the tree with one scan per directory."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from ramet.commands.framework.command import Command, UsageError, help_text, quote, typographic, version_text
from ramet.commands.framework.inputs import slurp
from ramet.commands.search.find.nodes import FindQuit, Found, Settings
from ramet.commands.search.find.parser import Expression, parse_expression
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.resource import ROW
from ramet.core.stat import Kind, Stat


@dataclass
class _FindWalk:
    """State of one run: position, visited directories, whether to stop."""

    proc: Proc
    settings: Settings
    expression: Expression
    status: int = 0
    ancestors: set[Path] = field(default_factory=set)

    def complain(self, word: str, error: OSError) -> None:
        self.expression.push()
        self.proc.complain(typographic(self.proc, f"{quote(word)}: {reason(error)}"))
        self.status = 1


NAMES_ONLY = frozenset((
    "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-type",
    "-maxdepth", "-mindepth", "-depth", "-print", "-print0", "-prune", "-quit", "-true", "-false", "-o", "-or", "-a",
    "-and", "-not",
))  # fmt: skip
"""Tests and actions that need no stat."""


_STRAIGHT = ("expected", "invalid expression", "you have", "Last file", "invalid argument")
"""Complaints that find prints with straight quotes in every locale."""


_DELETES_AND_PRUNES = (
    "The -delete action automatically turns on -depth, but -prune does nothing when -depth is in effect.  If you want "
    "to carry on anyway, just explicitly use the -depth option."
)


async def find(proc: Proc, o: None, words: list[str]) -> int:
    if words and (asked := {"-help": "help", "-version": "version"}.get(words[-1])):
        proc.stdout.write(encode((help_text if asked == "help" else version_text)(COMMANDS[0])))
        return 0
    starts, rest, settings = _leading(words)
    options = [word for word in rest if word[:1] == "-" and word[1:2].isalpha()]
    settings.names_only = settings.follow != "L" and NAMES_ONLY.issuperset(options)
    try:
        expression = await parse_expression(proc, rest, settings)
    except UsageError as error:
        plain = error.message.startswith(_STRAIGHT)
        proc.complain(error.message if plain else typographic(proc, error.message))
        return 1
    if settings.deletes and settings.prunes and not settings.depth_first:
        proc.complain(_DELETES_AND_PRUNES)
        return 1
    settings.depth_first |= settings.deletes
    if settings.files0 is not None:
        if starts:
            proc.complain(f"extra operand {quote(starts[0])}")
            proc.complain("file operands cannot be combined with -files0-from")
            return 1
        try:
            starts = [decode(n) for n in (await slurp(proc, settings.files0)).split(b"\0") if n]
        except OSError as error:
            proc.complain(typographic(proc, f"cannot open {quote(settings.files0)} for reading: {reason(error)}"))
            return 1
        if not starts:
            return 0
    walk = _FindWalk(proc, settings, expression)
    for word in starts or ["."]:
        if settings.quit:
            break
        await _start(walk, word)
    await expression.finish()
    return max(walk.status, settings.status)


def _leading(words: list[str]) -> tuple[list[str], list[str], Settings]:
    """Options for links, starting points, and where the expression begins."""
    settings = Settings()
    i = 0
    while i < len(words):
        if words[i] in ("-H", "-L", "-P"):
            settings.follow = words[i][1]
        elif words[i].startswith("-O") and words[i][2:].isdigit():
            pass
        elif words[i] == "-D":
            i += 1
        elif words[i] == "--":
            i += 1
            break
        else:
            break
        i += 1
    starts: list[str] = []
    while i < len(words) and not (words[i].startswith("-") and len(words[i]) > 1) and words[i] not in ("(", "!"):
        starts.append(words[i])
        i += 1
    return starts, words[i:], settings


async def _start(walk: _FindWalk, word: str) -> None:
    proc, settings = walk.proc, walk.settings
    try:
        path = proc.path(word)
        stat = await proc.fs.stat(path)
        if stat.kind is Kind.LINK and (settings.follow in "HL" or word.endswith("/")):
            stat = await _follow(proc, path, stat)
        if word.endswith("/") and not stat.is_dir:
            raise OSError(errno.ENOTDIR, "", word)
    except OSError as error:
        walk.complain(word, error)
        return
    settings.top = word
    try:
        await (_post_order if settings.depth_first else _pre_order)(walk, Found(word, path, stat, 0))
    except FindQuit:
        settings.quit = True


async def _follow(proc: Proc, path: Path, stat: Stat) -> Stat:
    try:
        return await proc.fs.stat(path, follow=True)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return stat
        raise


async def _pre_order(walk: _FindWalk, top: Found) -> None:
    settings, expression, proc = walk.settings, walk.expression, walk.proc
    pending = [top]
    evaluate, evaluate_now = expression.evaluate, expression.evaluate_now
    low, high = settings.min_depth, settings.max_depth
    while pending and not settings.quit:
        found = pending.pop()
        settings.pruned = False
        if found.depth >= low:
            if evaluate_now is not None:
                evaluate_now(found)
            else:
                await evaluate(found)
        if found.stat.kind is Kind.DIR and found.depth < high and not settings.pruned:
            below = await _entries(walk, found)
            below.reverse()
            pending += below
            await expression.flush()
            await proc.budget.yield_turn()


async def _post_order(walk: _FindWalk, top: Found) -> None:
    settings = walk.settings
    pending: list[tuple[Found, bool]] = [(top, False)]
    while pending and not settings.quit:
        found, done = pending.pop()
        if not done and found.stat.kind is Kind.DIR and found.depth < settings.max_depth:
            pending.append((found, True))
            pending += [(child, False) for child in reversed(await _entries(walk, found))]
            await walk.proc.budget.yield_turn()
            continue
        if found.depth >= settings.min_depth:
            await walk.expression.evaluate(found)


async def _entries(walk: _FindWalk, found: Found) -> list[Found]:
    settings, fs = walk.settings, walk.proc.fs
    path, word, depth = found.path, found.word, found.depth + 1
    prefix = word if word.endswith("/") else word + "/"
    base = path + "/" if len(path) > 1 else "/"
    try:
        entries = await (ops.kinds if settings.names_only else ops.entries)(fs, path)
    except OSError as error:
        walk.complain(word, error)
        return []
    entries.sort()
    out: list[Found] = []
    for start in range(0, len(entries), ROW):
        out += [Found(prefix + name, Path(base + name), stat, depth) for name, stat in entries[start : start + ROW]]
        await walk.proc.budget.yield_turn()
    if settings.follow == "L":
        out = [child async for child in _follow_all(walk, found, out)]
    if settings.one_system:
        here = fs.mount_of(path)
        out = [child for child in out if not child.stat.is_dir or fs.mount_of(child.path) == here]
    return out


async def _follow_all(walk: _FindWalk, parent: Found, children: list[Found]) -> AsyncIterator[Found]:
    """With -L, follow links; a link to a directory above is a loop."""
    proc, above = walk.proc, None
    crossed = await proc.fs.resolve(parent.path) != parent.path
    for child in children:
        was_link = child.stat.kind is Kind.LINK
        if child.stat.kind is Kind.LINK:
            try:
                stat = await _follow(proc, child.path, child.stat)
            except OSError as error:
                walk.complain(child.word, error)
                continue
            child.stat = stat
        if child.stat.is_dir and (was_link or crossed):
            above = await _above(proc, parent) if above is None else above
            first = above.get(await proc.fs.resolve(child.path))
            if first is not None:
                loop = f"{quote(child.word)} is part of the same file system loop as {quote(first)}."
                walk.expression.push()
                proc.complain(typographic(proc, f"File system loop detected; {loop}"))
                walk.status = 1
                continue
        yield child


async def _above(proc: Proc, found: Found) -> dict[Path, str]:
    """Return the resolved directories from the starting point down to a file."""
    places: dict[Path, str] = {}
    path, word = found.path, found.word
    for _ in range(found.depth + 1):
        places[await proc.fs.resolve(path)] = word
        path, word = path.parent, word.rpartition("/")[0] or "/"
    return places


_DETAILS = """
Tests: -name -iname -path -ipath -lname -ilname -regex -iregex -type -xtype -size -empty
-newer -newerXY -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -nouser
-nogroup -links -inum -samefile -readable -writable -executable -fstype -true -false
Actions: -print -print0 -printf -fprint -fprint0 -fprintf -ls -fls -exec CMD ;
-exec CMD {} + -execdir -ok -okdir -delete -prune -quit
Options: -maxdepth -mindepth -depth -daystart -follow -xdev -mount -regextype -files0-from
Operators: ( EXPR )  ! EXPR  EXPR -a EXPR  EXPR -o EXPR  EXPR , EXPR
"""

COMMANDS = [
    Command(
        "find",
        find,
        raw=True,
        summary="Search for files in a directory hierarchy.",
        usage="[-H] [-L] [-P] [path...] [expression]",
        details=_DETAILS,
        examples=[
            ("find . -name '*.py' -type f", "Python files below here"),
            ("find . -mmin -10", "changed in the last ten minutes"),
            ("find . -size +1M -exec ls -l {} +", "big files, listed by one ls"),
        ],
        original="GNU findutils 4.9.0",
        curly_quotes=True,
    )
]
