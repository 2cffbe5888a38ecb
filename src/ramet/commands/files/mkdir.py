"""mkdir: create directories."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import (
    Command,
    UsageError,
    flag,
    quote,
    typographic,
    value,
)
from ramet.commands.framework.file_modes import BadMode, change_mode
from ramet.core.errors import Unsupported, reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class MkdirOptions:
    mode: str | None = value("-m", "--mode", metavar="MODE", help="set file mode (as in chmod), not a=rwx - umask")
    parents: bool = flag("-p", "--parents", help="no error if existing, make parent directories as needed")
    verbose: bool = flag("-v", "--verbose", help="print a message for each created directory")


async def mkdir(proc: Proc, o: MkdirOptions, operands: list[str]) -> int:
    mode = 0o777 & ~proc.umask
    if o.mode is not None:
        try:
            mode = change_mode(o.mode, 0o777, False, proc.umask)
        except BadMode:
            raise UsageError(f"invalid mode {quote(o.mode)}", hint=False) from None
    status = 0
    for word in operands:
        try:
            await _make_directory(proc, o, word, mode)
        except OSError as error:
            at_ = getattr(error, "filename", None)
            name = at_ if o.parents and isinstance(at_, str) and not isinstance(at_, Path) and at_ else word
            proc.complain(typographic(proc, f"cannot create directory {quote(name)}: {reason(error)}"))
            status = 1
    return status


async def _make_directory(proc: Proc, o: MkdirOptions, word: str, mode: int) -> None:
    path = proc.path(word)
    if not o.parents:
        await _mkdir_one(proc, o, word, path, mode)
        return
    existing = await lookup(proc, path, follow=True) if await lookup(proc, path) is not None else None
    if existing is not None:
        if not existing.is_dir:
            raise OSError(errno.EEXIST, "", word)
        return
    # Walk the word so that messages name the parts as they were typed.
    pieces = [p for p in word.split("/") if p]
    walked = "/" if word.startswith("/") else ""
    for i, piece in enumerate(pieces):
        walked += piece
        here = proc.path(walked)
        stat = await lookup(proc, here, follow=True)
        if stat is None:
            last = i == len(pieces) - 1
            await _mkdir_one(proc, o, word if last else walked, here, mode if last else (0o777 & ~proc.umask) | 0o300)
        elif not stat.is_dir:
            raise OSError(errno.ENOTDIR, "", str(walked))
        walked += "/"


async def _mkdir_one(proc: Proc, o: MkdirOptions, word: str, path: Path, mode: int) -> None:
    await proc.fs.mkdir(path)
    if mode != 0o755:
        try:
            await proc.fs.setattr(path, Attrs(mode=mode))
        except Unsupported:
            pass
    if o.verbose:
        await proc.emit(encode(f"mkdir: created directory {quote(word)}\n"))


COMMANDS = [
    Command(
        "mkdir",
        mkdir,
        MkdirOptions,
        summary="Create the DIRECTORY(ies), if they do not already exist.",
        usage="[OPTION]... DIRECTORY...",
        min_operands=1,
        ignored=("-Z --context[=",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
