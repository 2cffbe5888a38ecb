"""shred: overwrite files, and optionally remove them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, called, flag, mixed, optional, value
from ramet.commands.framework.inputs import parse_count, parse_size
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.fs import Open
from ramet.core.proc import Proc

_BLOCK = 4096
"""Block size (bytes) to which sizes are rounded up."""
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ShredOptions:
    force: bool = flag("-f", "--force", help="change permissions to allow writing if necessary")
    iterations: str = value(
        "-n", "--iterations", metavar="N", default="3", help="overwrite N times instead of the default (3)"
    )
    size: str | None = value("-s", "--size", metavar="N", help="shred this many bytes")
    remove: str = mixed(
        flag("-u", const="wipesync", help="deallocate and remove file after overwriting"),
        optional(
            "--remove",
            metavar="HOW",
            const="wipesync",
            choices=("unlink", "wipe", "wipesync"),
            help="like -u, but give control on HOW to delete",
        ),
        default="",
    )
    verbose: bool = flag("-v", "--verbose", help="show progress")
    exact: bool = flag("-x", "--exact", help="do not round file sizes up to the next full block")
    zero: bool = flag("-z", "--zero", help="add a final overwrite with zeros to hide shredding")


async def shred(proc: Proc, o: ShredOptions, operands: list[str]) -> int:
    random = parse_count(o.iterations, "number of passes")
    size = None if o.size is None else parse_size(o.size, "file size")
    if not operands:
        raise UsageError("missing file operand")
    status = 0
    for word in operands:
        try:
            await _overwrite(proc, o, word, random, size)
            if o.remove:
                await _remove(proc, o, word)
        except OSError as error:
            proc.complain(f"{called(word)}: failed to open for writing: {reason(error)}")
            status = 1
    return status


async def _overwrite(proc: Proc, o: ShredOptions, word: str, random: int, size: int | None) -> None:
    path = proc.path(word)
    known = (await proc.fs.stat(path, follow=True)).size or 0
    rounded = known if o.exact else -(-known // _BLOCK) * _BLOCK
    amount = rounded if size is None else size
    stream = await proc.fs.open(path, Open.READ | Open.WRITE)
    try:
        passes = random + o.zero
        for number in range(1, passes + 1 if amount else 1):
            what = "random" if number <= random else "000000"
            if o.verbose:
                proc.complain(f"{called(word)}: pass {number}/{passes} ({what})...")
            stream.seek(0)
            for start in range(0, amount, _PIECE):
                piece = min(_PIECE, amount - start)
                stream.write(os.urandom(piece) if what == "random" else bytes(piece))
                await stream.drain()
                await proc.budget.yield_turn()
    finally:
        await stream.close()


async def _remove(proc: Proc, o: ShredOptions, word: str) -> None:
    """Remove the file after renaming it to ever shorter names of zeros."""
    path = proc.path(word)
    if o.verbose:
        proc.complain(f"{called(word)}: removing")
    place, slash, name = word.rpartition("/")
    old = word
    for length in range(len(name), 0, -1) if o.remove != "unlink" else ():
        new = f"{place}{slash}{'0' * length}"
        target = proc.path(new)
        if await ops.exists(proc.fs, target):
            continue
        await proc.fs.rename(path, target)
        if o.verbose:
            proc.complain(f"{called(old)}: renamed to {called(new)}")
        path, old = target, new
    await proc.fs.remove(path)
    if o.verbose:
        proc.complain(f"{called(word)}: removed")


COMMANDS = [
    Command(
        "shred",
        shred,
        ShredOptions,
        summary="Overwrite the specified FILE(s) repeatedly, to make them hard to recover.",
        usage="[OPTION]... FILE...",
        ignored=("--random-source=",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
