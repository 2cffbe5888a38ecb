"""readlink: the target of a link, or a canonical name."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, called, choose, flag
from ramet.core.errors import fail, reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind


async def canonical(proc: Proc, word: str, mode: str, *, strip: bool = False, base: Path | None = None) -> str:
    """Return the canonical name: `f` all but the last component must exist, `e` all, `m` none."""
    if not word:
        raise fail(errno.ENOENT, word)
    path = Path(base or proc.cwd)
    pieces = word.split("/")
    if word.startswith("/"):
        path = Path("/")
    links = 0
    pieces.reverse()
    while pieces:
        piece = pieces.pop()
        rest = any(p not in ("", ".") for p in pieces)
        if piece in ("", "."):
            continue
        if piece == "..":
            path = path.parent
            continue
        here = path / piece
        try:
            stat = await proc.fs.stat(here)
        except OSError as error:
            if mode == "m" or (mode == "f" and not rest and error.errno == errno.ENOENT):
                path = here
                continue
            raise
        if stat.kind is Kind.LINK and not strip:
            links += 1
            if links > 40:
                if mode == "m":
                    path = here
                    continue
                raise fail(errno.ELOOP, word)
            target = stat.target or ""
            if target.startswith("/"):
                path = Path("/")
            pieces.extend(reversed(target.split("/")))
            continue
        if strip and rest and stat.kind is Kind.LINK and mode != "m":
            stat = await proc.fs.stat(here, follow=True)
        if rest and not stat.is_dir and mode != "m":
            raise fail(errno.ENOTDIR, word)
        path = here
    if word.endswith("/") and mode != "m":
        final = await lookup(proc, path)
        if final is not None and not final.is_dir:
            raise fail(errno.ENOTDIR, word)
    return str(path)


@dataclass(frozen=True, slots=True)
class ReadlinkOptions:
    mode: str = choose(
        {"-f --canonicalize": "f", "-e --canonicalize-existing": "e", "-m --canonicalize-missing": "m"},
        default="",
        help={
            "-f --canonicalize": "canonicalize; all but the last component must exist",
            "-e --canonicalize-existing": "canonicalize; all components must exist",
            "-m --canonicalize-missing": "canonicalize without requirements on existence",
        },
    )
    no_newline: bool = flag("-n", "--no-newline", help="do not output the trailing delimiter")
    verbose: bool = choose(
        {"-q -s --quiet --silent": False, "-v --verbose": True}, default=False, help="suppress or report error messages"
    )
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


async def readlink(proc: Proc, o: ReadlinkOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    status = 0
    no_newline = o.no_newline
    if no_newline and len(operands) > 1:
        proc.complain("ignoring --no-newline with multiple arguments")
        no_newline = False
    end = "" if no_newline else "\0" if o.zero else "\n"
    for word in operands:
        try:
            if o.mode:
                text = await canonical(proc, word, o.mode)
            else:
                stat = await proc.stat(word)
                if stat.kind is not Kind.LINK:
                    raise fail(errno.EINVAL, word)
                text = stat.target or ""
        except OSError as error:
            if o.verbose:
                proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        await proc.emit(encode(text + end))
    return status


COMMANDS = [
    Command(
        "readlink",
        readlink,
        ReadlinkOptions,
        summary="Print value of a symbolic link or canonical file name.",
        usage="[OPTION]... FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
