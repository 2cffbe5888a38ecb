"""namei: a name taken apart, each part of it and each link on the way with what it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ramet.commands.framework.command import Command, UsageError, flag
from ramet.commands.framework.file_modes import mode_of, mode_string
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat


@dataclass(frozen=True, slots=True)
class NameiOptions:
    modes: bool = flag("-m", "--modes", help="show the mode bits of each file")
    owners: bool = flag("-o", "--owners", help="show owner and group name of each file")
    long: bool = flag("-l", "--long", help="use a long listing format (-m -o -v)")
    no_follow: bool = flag("-n", "--nosymlinks", help="don't follow symlinks")
    vertical: bool = flag("-v", "--vertical", help="vertical align of modes and owners")
    mounts: bool = flag("-x", "--mountpoints", help="show mount point directories with a 'D'")


_LETTERS = {Kind.DIR: "d", Kind.LINK: "l", Kind.FIFO: "p", Kind.SOCKET: "s", Kind.DEVICE: "c"}
_DEEPEST = 256
"""Links on the way to a name beyond which somebody is walking in circles."""


@dataclass
class _Walk:
    rows: list[tuple[str, int, Stat | None, str]] = field(default_factory=list)
    """A part, how many links deep it is, what it is, and what is wrong with it."""
    links: int = 0


async def namei(proc: Proc, o: NameiOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("pathname argument is missing")
    status = 0
    for word in operands:
        walk = _Walk()
        await _walked(proc, o, walk, "", word, 0)
        lines = [f"f: {word}", *(_line(proc, o, row) for row in walk.rows)]
        await proc.emit(encode("".join(line + "\n" for line in lines)))
        if walk.links > _DEEPEST:
            proc.complain(f"{word}: exceeded limit of symlinks")
        if walk.links > _DEEPEST or any(wrong for *_, wrong in walk.rows):
            status = 1
    return status


async def _walked(proc: Proc, o: NameiOptions, walk: _Walk, base: str, word: str, level: int) -> bool:
    """The parts of a name that begins in a directory; whether all of them are there."""
    here = base
    parts = [part for part in word.split("/") if part]
    if word.startswith("/"):
        here = "/"
        parts.insert(0, "/")
    for part in parts:
        name = part if part == "/" or not here else f"{here.rstrip('/')}/{part}"
        try:
            stat = await proc.fs.stat(proc.path(name))
        except OSError as error:
            walk.rows.append((part, level, None, reason(error)))
            return False
        walk.rows.append((part, level, stat, ""))
        if stat.kind is Kind.LINK and stat.target is not None and not o.no_follow:
            walk.links += 1
            if walk.links > _DEEPEST or not await _walked(proc, o, walk, here, stat.target, level + 1):
                return False
        here = name
    return True


def _line(proc: Proc, o: NameiOptions, row: tuple[str, int, Stat | None, str]) -> str:
    name, level, stat, wrong = row
    vertical = o.vertical or o.long
    indent = "  " * level
    owner = f" {proc.user.name} {proc.user.group}" if o.owners or o.long else ""
    if stat is None:
        width = (10 if o.modes or o.long else 1) + len(owner)
        blank = " " * (width + (0 if vertical else 1))
        return f"{'' if vertical else indent}{blank} {indent if vertical else ''}{name} - {wrong}"
    letter = _LETTERS.get(stat.kind, "-")
    if o.mounts and name == "/":
        letter = "D"
    shown = letter + mode_string(stat.kind, mode_of(stat))[1:] if o.modes or o.long else letter
    told = f"{name} -> {stat.target}" if stat.kind is Kind.LINK else name
    if vertical:
        return f"{shown}{owner} {indent}{told}"
    return f"{indent} {shown}{owner} {told}"


COMMANDS = [
    Command("namei", namei, NameiOptions, summary="Follow a pathname until a terminal point is found.",
            usage="[OPTION]... PATHNAME...", ignored=("-Z --context",), version_letters="V", help_letters="h",),
]  # fmt: skip
