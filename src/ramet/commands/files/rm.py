"""rm, rmdir and unlink: remove files and directories."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import Enum

from ramet.commands.files.cp import TOGETHER, confirm, lookup
from ramet.commands.framework.command import Command, UsageError, choose, flag, mixed, optional, ordered, quote
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.fs import Lending
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat


@dataclass(frozen=True, slots=True)
class RmOptions:
    how: str = mixed(
        choose(
            {"-f --force": "force", "-i": "always", "-I": "once"},
            help={
                "-f --force": "ignore nonexistent files and arguments, never prompt",
                "-i": "prompt before every removal",
                "-I": "prompt once before removing more than three files",
            },
        ),
        optional(
            "--interactive",
            metavar="WHEN",
            const="always",
            choices=("never", "no", "none", "once", "always", "yes"),
            help="prompt according to WHEN",
        ),
        default="",
    )
    one_system: bool = flag("--one-file-system", help="skip any directory on another file system")
    preserve_root: bool = choose({"--no-preserve-root": False}, default=True, help="do not treat '/' specially")
    recursive: bool = flag("-r", "-R", "--recursive", help="remove directories and their contents recursively")
    dir: bool = flag("-d", "--dir", help="remove empty directories")
    verbose: bool = flag("-v", "--verbose", help="explain what is being done")
    order: tuple[tuple[str, object], ...] = ordered()

    @property
    def asks(self) -> bool:
        """Whether to prompt for every removal."""
        return self.how in ("always", "yes")


class _Outcome(Enum):
    GONE = "removed"
    LEFT = "the user wants to keep it"
    FAILED = "could not be removed"


async def rm(proc: Proc, o: RmOptions, operands: list[str]) -> int:
    said = [str(given) for name, given in o.order if name == "how"]
    asking = [place for place, given in enumerate(said) if given in ("always", "yes", "once")]
    quiet = "force" in said[asking[-1] + 1 if asking else 0 :]
    if not operands:
        if quiet:
            return 0
        raise UsageError("missing operand")
    if o.how == "once" and (len(operands) > 3 or o.recursive):
        what = (
            f"remove {len(operands)} argument{'s' if len(operands) > 1 else ''}{' recursively' if o.recursive else ''}?"
        )
        if not await confirm(proc, what):
            return 0
    status = 0
    for word in operands:
        await proc.budget.yield_turn()
        last = word.rstrip("/").rpartition("/")[2]
        if last in (".", "..") and o.recursive:
            proc.complain(f"refusing to remove '.' or '..' directory: skipping {quote(word)}")
            status = 1
            continue
        try:
            path = proc.path(word)
            stat = await proc.fs.stat(path)
        except OSError as error:
            if quiet and error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            proc.complain(f"cannot remove {quote(word)}: {reason(error)}")
            status = 1
            continue
        if o.recursive and not path.name and o.preserve_root:
            proc.complain(f"it is dangerous to operate recursively on {quote(word)}")
            proc.complain("use --no-preserve-root to override this failsafe")
            status = 1
            continue
        if word.endswith("/") and stat.kind is not Kind.DIR:
            if not await _remove_behind(proc, o, word, path, quiet):
                status = 1
            continue
        shown_word = word.rstrip("/") or "/"
        if await _remove(proc, o, shown_word, path, stat) is _Outcome.FAILED:
            status = 1
    return status


async def _remove_behind(proc: Proc, o: RmOptions, word: str, path: Path, quiet: bool) -> bool:
    """Empty the directory behind `link/`; keep the link and the directory."""
    followed = await lookup(proc, path, follow=True)
    if followed is not None and followed.is_dir and not (o.recursive or o.dir):
        proc.complain(f"cannot remove {quote(word)}: Is a directory")
        return False
    good = True
    if followed is not None and followed.is_dir and o.recursive:
        behind = await proc.fs.resolve(path)
        for name, below in sorted(await ops.entries(proc.fs, behind)):
            done = await _remove(proc, o, f"{word.rstrip('/')}/{name}", behind / name, below)
            good &= done is not _Outcome.FAILED
    if not quiet:
        proc.complain(f"cannot remove {quote(word)}: Not a directory")
    return good and quiet


async def _remove(proc: Proc, o: RmOptions, word: str, path: Path, stat: Stat) -> _Outcome:
    if stat.kind is not Kind.DIR:
        what = "regular empty file" if stat.size == 0 and stat.kind is Kind.FILE else _KIND_NAMES[stat.kind]
        if o.asks and not await confirm(proc, f"remove {what} {quote(word)}?"):
            return _Outcome.LEFT
        return await _drop(proc, o, word, path, "removed")
    if not o.recursive:
        if not o.dir:
            proc.complain(f"cannot remove {quote(word)}: Is a directory")
            return _Outcome.FAILED
        if o.asks and not await confirm(proc, f"remove directory {quote(word)}?"):
            return _Outcome.LEFT
        return await _drop(proc, o, word, path, "removed directory")
    entries = sorted(await ops.entries(proc.fs, path))
    if entries and o.asks and not await confirm(proc, f"descend into directory {quote(word)}?"):
        return _Outcome.LEFT
    outcomes = {_Outcome.GONE}
    here = proc.fs.mount_of(path)
    together = await _together(proc, path, entries) if not o.asks and not o.verbose else set()
    for name, below in entries:
        if name in together:
            continue
        if o.one_system and proc.fs.mount_of(path / name) != here:
            proc.complain(f"skipping {quote(f'{word}/{name}')}, since it's on a different device")
            outcomes.add(_Outcome.FAILED)
            continue
        outcomes.add(await _remove(proc, o, f"{word}/{name}", path / name, below))
    await proc.budget.yield_turn()
    for worse in (_Outcome.FAILED, _Outcome.LEFT):
        if worse in outcomes:
            return worse
    if o.asks and not await confirm(proc, f"remove directory {quote(word)}?"):
        return _Outcome.LEFT
    return await _drop(proc, o, word, path, "removed directory")


async def _together(proc: Proc, path: Path, entries: list[tuple[str, Stat]]) -> set[str]:
    """Remove plain files of a directory concurrently; return their names."""
    names = [name for name, stat in entries if stat.kind is Kind.FILE]
    done = 0
    while isinstance(proc.fs, Lending) and done < len(names):
        some = await proc.fs.remove_files(path, names[done : done + TOGETHER])
        if not some:
            break
        done += some
        await proc.budget.yield_turn()
    return set(names[:done])


async def _drop(proc: Proc, o: RmOptions, word: str, path: Path, what: str) -> _Outcome:
    try:
        await proc.fs.remove(path)
    except OSError as error:
        proc.complain(f"cannot remove {quote(word)}: {reason(error)}")
        return _Outcome.FAILED
    if o.verbose:
        await proc.emit(encode(f"{what} {quote(word)}\n"))
    return _Outcome.GONE


_KIND_NAMES = {
    Kind.FILE: "regular file",
    Kind.LINK: "symbolic link",
    Kind.DIR: "directory",
    Kind.FIFO: "fifo",
    Kind.SOCKET: "socket",
    Kind.DEVICE: "character special file",
}


@dataclass(frozen=True, slots=True)
class RmdirOptions:
    tolerant: bool = flag(
        "--ignore-fail-on-non-empty", help="ignore each failure that is solely because a directory is non-empty"
    )
    parents: bool = flag("-p", "--parents", help="remove DIRECTORY and its ancestors")
    verbose: bool = flag("-v", "--verbose", help="output a diagnostic for every directory processed")


async def rmdir(proc: Proc, o: RmdirOptions, operands: list[str]) -> int:
    status = 0
    for word in operands:
        names = [word]
        if o.parents:
            rest = word.rstrip("/")
            while "/" in rest.strip("/"):
                rest = rest.rpartition("/")[0].rstrip("/")
                names.append(rest)
        for i, name in enumerate(names):
            if o.verbose:
                await proc.emit(encode(f"rmdir: removing directory, {quote(name)}\n"))
            try:
                path = proc.path(name)
                stat = await proc.fs.stat(path)
                if name.rstrip("/").rpartition("/")[2] == ".":
                    raise OSError(errno.EINVAL, "", name)
                if stat.kind is not Kind.DIR:
                    raise OSError(errno.ENOTDIR, "", name)
                await proc.fs.remove(path)
            except OSError as error:
                if o.tolerant and error.errno == errno.ENOTEMPTY:
                    break
                what = "failed to remove directory" if i else "failed to remove"
                proc.complain(f"{what} {quote(name)}: {reason(error)}")
                status = 1
                break
    return status


async def unlink(proc: Proc, o: object, operands: list[str]) -> int:
    word = operands[0]
    try:
        path = proc.path(word)
        if (await proc.fs.stat(path)).is_dir:
            raise OSError(errno.EISDIR, "", word)
        await proc.fs.remove(path)
    except OSError as error:
        proc.complain(f"cannot unlink {quote(word)}: {reason(error)}")
        return 1
    return 0


def _unabbreviated(words: list[str]) -> list[str]:
    """Return the one option that must be spelled out, and the one with an only argument."""
    for word in words:
        if word == "--":
            break
        if len(word) > 2 and word != "--no-preserve-root" and "--no-preserve-root".startswith(word):
            raise UsageError("you may not abbreviate the --no-preserve-root option", hint=False)
        if word.startswith("--preserve-root=") and word != "--preserve-root=all":
            raise UsageError(f"unrecognized --preserve-root argument: {quote(word.partition('=')[2])}", hint=False)
    return words


COMMANDS = [
    Command(
        "rm",
        rm,
        RmOptions,
        summary="Remove (unlink) the FILE(s).",
        ignored=("--preserve-root[=",),
        usage="[OPTION]... [FILE]...",
        rewrite=_unabbreviated,
        original="GNU coreutils 9.1",
        stdin_error=StdinError("", "error closing file: {}", directory="error closing file"),
    ),
    Command(
        "rmdir",
        rmdir,
        RmdirOptions,
        summary="Remove the DIRECTORY(ies), if they are empty.",
        usage="[OPTION]... DIRECTORY...",
        min_operands=1,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "unlink",
        unlink,
        summary="Remove the specified FILE.",
        usage="FILE",
        min_operands=1,
        max_operands=1,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
