"""which: the files that commands run, found along PATH."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, flag
from ramet.core.paths import encode
from ramet.core.proc import Proc, Programs


def known_commands(proc: Proc) -> Container[str]:
    """Return the names of the commands that are there without a file."""
    from ramet.commands.framework.table import MODULES

    listed = proc.services.commands
    return MODULES if listed is None else listed


async def _is_native(proc: Proc, programs: Programs, name: str) -> bool:
    """Whether a path leads to a program of the host, perhaps by links of the tree."""
    try:
        return programs.has(name) or programs.has(str(await proc.fs.resolve(proc.path(name), missing_ok=True)))
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class WhichOptions:
    all: bool = flag("-a", help="print all matching pathnames of each argument")
    silent: bool = flag("-s", help="no output, just the exit status")


async def which(proc: Proc, o: WhichOptions, operands: list[str]) -> int:
    """Find commands along PATH: files of the tree, or /bin and /usr/bin for built-in commands."""
    known, programs = known_commands(proc), proc.services.programs
    status = 0 if operands else 1
    for word in operands:
        found: list[str] = []
        if "/" in word:
            place, _, name = word.rpartition("/")
            stat = await lookup(proc, proc.path(word), follow=True)
            runs = stat is not None and not stat.is_dir and (stat.mode or 0) & 0o111
            if runs or (name in known and place in ("/bin", "/usr/bin")):
                found.append(word)
        else:
            for directory in proc.env.get("PATH", "").split(":"):
                stat = await lookup(proc, proc.path(f"{directory or '.'}/{word}"), follow=True)
                runs = stat is not None and stat.is_file and (stat.mode or 0) & 0o111
                runs = runs or (programs is not None and await _is_native(proc, programs, f"{directory or '.'}/{word}"))
                if runs or (word in known and directory in ("/bin", "/usr/bin")):
                    found.append(f"{directory or '.'}/{word}")
        if not found:
            status = 1
        elif not o.silent:
            await proc.emit(encode("".join(f"{name}\n" for name in (found if o.all else found[:1]))))
    return status


COMMANDS = [
    Command(
        "which",
        which,
        WhichOptions,
        summary="Locate a command.",
        usage="[-as] NAME...",
        ignored=("--skip-alias", "--skip-functions"),
    ),
]
