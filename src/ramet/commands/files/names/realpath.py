"""realpath: the canonical absolute name of a file."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.files.ln import relative_to
from ramet.commands.files.names.readlink import canonical
from ramet.commands.framework.command import Command, UsageError, called, choose, flag, value
from ramet.core.errors import reason
from ramet.core.paths import Path, encode, parse
from ramet.core.proc import Proc


def _without_parents(word: str) -> str:
    """Return a name in which each `..` has taken back what stands before it, whatever that is."""
    kept: list[str] = []
    for part in word.split("/"):
        if part == ".." and kept and kept[-1] not in ("..", ""):
            kept.pop()
        elif part not in ("", ".") or not kept:
            kept.append(part)
    return "/".join(kept) if kept and kept != [""] else "/" if word.startswith("/") else "."


@dataclass(frozen=True, slots=True)
class RealpathOptions:
    mode: str = choose(
        {"-e --canonicalize-existing": "e", "-m --canonicalize-missing": "m"},
        default="f",
        help={
            "-e --canonicalize-existing": "all components of the path must exist",
            "-m --canonicalize-missing": "no path components need exist",
        },
    )
    links: str = choose(
        {"-L --logical": "logical", "-P --physical": "physical", "-s --strip --no-symlinks": "none"},
        default="physical",
        help={
            "-L --logical": "resolve '..' components before symlinks",
            "-P --physical": "resolve symlinks as encountered (default)",
            "-s --strip --no-symlinks": "don't expand symlinks",
        },
    )
    quiet: bool = flag("-q", "--quiet", help="suppress most error messages")
    relative_to: str | None = value("--relative-to", metavar="DIR", help="print the resolved path relative to DIR")
    relative_base: str | None = value(
        "--relative-base", metavar="DIR", help="print absolute paths unless paths below DIR"
    )
    zero: bool = flag("-z", "--zero", help="end each output line with NUL, not newline")


async def realpath(proc: Proc, o: RealpathOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    end = "\0" if o.zero else "\n"

    async def resolve(word: str) -> str:
        if o.links in ("logical", "none") and word and ".." in word.split("/"):
            word = _without_parents(word)
        if o.links == "logical" and word:
            word = str(parse(word, proc.cwd))
        return await canonical(proc, word, o.mode, strip=o.links == "none")

    base = to = None
    try:
        base = Path(await resolve(o.relative_base)) if o.relative_base is not None else None
        to = Path(await resolve(o.relative_to)) if o.relative_to is not None else base
    except OSError as error:
        proc.complain(f"{called(o.relative_to or o.relative_base or '')}: {reason(error)}")
        return 1
    if base is not None and to is not None and not to.under(base):
        base = to = None
    status = 0
    for word in operands:
        try:
            path = Path(await resolve(word))
        except OSError as error:
            if not o.quiet:
                proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
            continue
        text = str(path)
        if to is not None and (base is None or path.under(base)):
            text = relative_to(path, to)
        await proc.emit(encode(text + end))
    return status


COMMANDS = [
    Command(
        "realpath",
        realpath,
        RealpathOptions,
        summary="Print the resolved absolute file name.",
        usage="[OPTION]... FILE...",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
