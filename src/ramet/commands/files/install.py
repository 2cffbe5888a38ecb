"""install: copy files into place with a mode, and create directories."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.files.cp import lookup, make_copier, pairs, set_attrs
from ramet.commands.files.cp_options import CONTROL, CpOptions
from ramet.commands.framework.command import Command, UsageError, flag, mixed, optional, quote, typographic, value
from ramet.commands.framework.file_modes import BadMode, change_mode
from ramet.core import ops
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Attrs


@dataclass(frozen=True, slots=True)
class InstallOptions:
    backup: str = mixed(
        flag("-b", const="default", help="make a backup of each existing destination file"),
        optional(
            "--backup", metavar="CONTROL", const="default", choices=CONTROL, help="like -b, with a kind of backup"
        ),
        default="",
    )
    compare: bool = flag("-C", "--compare", help="compare content, do not modify the destination if it is the same")
    directory: bool = flag("-d", "--directory", help="treat all arguments as directory names; create them all")
    leading: bool = flag("-D", help="create all leading components of DEST, then copy SOURCE to DEST")
    group: str | None = value(
        "-g", "--group", metavar="GROUP", help="set group ownership (kept, ownership is the workspace's)"
    )
    mode: str = value("-m", "--mode", metavar="MODE", default="755", help="set permission mode (as in chmod)")
    owner: str | None = value(
        "-o", "--owner", metavar="OWNER", help="set ownership (kept, ownership is the workspace's)"
    )
    preserve: bool = flag("-p", "--preserve-timestamps", help="apply modification times of SOURCE files")
    suffix: str | None = value("-S", "--suffix", metavar="SUFFIX", help="override the usual backup suffix")
    target: str | None = value(
        "-t", "--target-directory", metavar="DIRECTORY", help="copy all SOURCE arguments into DIRECTORY"
    )
    no_target: bool = flag("-T", "--no-target-directory", help="treat DEST as a normal file")
    verbose: bool = flag("-v", "--verbose", help="print the name of each directory as it is created")


async def install(proc: Proc, o: InstallOptions, operands: list[str]) -> int:

    try:
        mode = change_mode(o.mode, 0, False, 0)
    except BadMode:
        raise UsageError(f"invalid mode {quote(o.mode)}", hint=False) from None
    if o.directory:
        if not operands:
            raise UsageError("missing file operand")
        if o.target is not None:
            raise UsageError("target directory not allowed when installing a directory", hint=False)
        status = 0
        for word in operands:
            there = await lookup(proc, proc.path(word), follow=True)
            if there is not None and not there.is_dir:
                proc.complain(typographic(proc, f"cannot create directory {quote(word)}: File exists"))
                status = 1
                continue
            await _make_dirs(proc, word, o.verbose)
            await set_attrs(proc, proc.path(word), Attrs(mode=mode))
        return status
    if o.leading and o.target is None and len(operands) >= 2:
        await _make_dirs(proc, operands[-1].rstrip("/").rpartition("/")[0], o.verbose)
    elif o.leading and o.target is not None:
        await _make_dirs(proc, o.target, o.verbose)
    cp_options = CpOptions(
        remove_destination=True,
        backup=o.backup,
        suffix=o.suffix,
        preserve=("timestamps",) if o.preserve else (),
        verbose=o.verbose,
    )
    copier = make_copier(proc, cp_options)
    for pair in await pairs(proc, operands, o.target, o.no_target, False):
        if not (pair.source and pair.target):
            await copier.copy(pair)
            continue
        dst = proc.path(pair.target)
        stat = await lookup(proc, proc.path(pair.source), follow=True)
        if stat is not None and stat.is_dir:
            copier.fail(f"omitting directory {quote(pair.source)}")
            continue
        same = o.compare and await lookup(proc, dst) is not None
        if same and await ops.read_bytes(proc.fs, dst) == await ops.read_bytes(proc.fs, proc.path(pair.source)):
            continue
        if await copier.copy(pair):
            await set_attrs(proc, dst, Attrs(mode=mode))
    return copier.status


async def _make_dirs(proc: Proc, word: str, verbose: bool) -> None:
    """Create a directory and its parents; report each if verbose."""
    walked = "/" if word.startswith("/") else ""
    for name in word.split("/") if verbose else ():
        if name and name != ".":
            walked += name
            if not await ops.exists(proc.fs, proc.path(walked)):
                await proc.emit(encode(f"install: creating directory {quote(walked)}\n"))
                await ops.make_dirs(proc.fs, proc.path(walked))
        walked += "/" if walked and not walked.endswith("/") else ""
    await ops.make_dirs(proc.fs, proc.path(word or "."))


COMMANDS = [
    Command(
        "install",
        install,
        InstallOptions,
        summary="Copy files and set attributes.",
        usage="[OPTION]... SOURCE... DEST",
        ignored=("-c", "-Z --context[=", "--preserve-context"),
        refused={
            "-s --strip": "there are no symbol tables here",
            "--strip-program=": "there are no symbol tables here",
        },
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
