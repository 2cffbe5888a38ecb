"""pathchk: check names for validity and portability."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from ramet.commands.framework.command import Command, called, flag, quote, typographic
from ramet.core.errors import reason
from ramet.core.paths import NAME_MAX, PATH_MAX, encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class PathchkOptions:
    posix: bool = flag("-p", help="check for most POSIX systems")
    empty: bool = flag("-P", help="check for empty names and leading '-'")
    portability: bool = flag("--portability", help="check for all POSIX systems (equivalent to -p -P)")


async def pathchk(proc: Proc, o: PathchkOptions, operands: list[str]) -> int:
    status = 0
    posix, strict = o.posix or o.portability, o.empty or o.portability
    for word in operands:
        await proc.budget.yield_turn()
        message = await _path_problem(proc, word, posix, strict)
        if message:
            proc.complain(
                message
                if message.startswith(("leading", "nonportable", "''")) or quote(word) not in message
                else typographic(proc, message)
            )
            status = 1
    return status


async def _path_problem(proc: Proc, word: str, posix: bool, strict: bool) -> str:
    if strict and any(piece.startswith("-") for piece in word.split("/")):
        return f"leading '-' in a component of file name {quote(word)}"
    if not word and (posix or strict):
        return "empty file name"
    if posix:
        for char in word:
            if not (char.isascii() and (char.isalnum() or char in "._-/")):
                return typographic(proc, f"nonportable character {quote(char)}") + f" in file name {quote(word)}"
    elif not word:
        return "'': No such file or directory"
    else:
        try:
            await proc.stat(word)
            return ""
        except OSError as error:
            if error.errno != errno.ENOENT:
                return f"{called(word)}: {reason(error)}"
    limit, part = (255, 14) if posix else (PATH_MAX - 1, NAME_MAX)
    size = len(encode(word))
    if size > limit:
        return f"limit {limit} exceeded by length {size} of file name {quote(word)}"
    for piece in word.split("/"):
        if len(encode(piece)) > part:
            return f"limit {part} exceeded by length {len(encode(piece))} of file name component {quote(piece)}"
    return ""


COMMANDS = [
    Command(
        "pathchk",
        pathchk,
        PathchkOptions,
        summary="Diagnose invalid or unportable file names.",
        usage="[OPTION]... NAME...",
        min_operands=1,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
