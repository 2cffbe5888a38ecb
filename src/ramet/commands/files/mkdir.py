"""mkdir, mktemp, mkfifo, mknod: new directories and temporary names; nothing that exists is replaced."""

from __future__ import annotations

import errno
import random
import re
from dataclasses import dataclass

from ramet.commands.files.cp import lookup
from ramet.commands.files.touch import quiet_setattr
from ramet.commands.framework.command import (
    Command,
    UsageError,
    called,
    flag,
    mixed,
    optional,
    quote,
    typographic,
    value,
)
from ramet.commands.framework.file_modes import BadMode, change_mode
from ramet.core.errors import Unsupported, reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.resource import How
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


@dataclass(frozen=True, slots=True)
class MktempOptions:
    directory: bool = flag("-d", "--directory", help="create a directory, not a file")
    dry_run: bool = flag("-u", "--dry-run", help="do not create anything; merely print a name")
    quiet: bool = flag("-q", "--quiet", help="suppress diagnostics about file/dir-creation failure")
    suffix: str | None = value("--suffix", metavar="SUFF", help="append SUFF to TEMPLATE")
    tmpdir: str | None = mixed(
        optional(
            "--tmpdir", metavar="DIR", const="", help="interpret TEMPLATE relative to DIR, else $TMPDIR, else /tmp"
        ),
        value("-p", metavar="DIR", help="interpret TEMPLATE relative to DIR"),
        default=None,
    )
    in_tmp: bool = flag("-t", help="interpret TEMPLATE as a single file name component, relative to $TMPDIR")


async def mktemp(proc: Proc, o: MktempOptions, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError("too many templates")
    template = operands[0] if operands else "tmp.XXXXXXXXXX"
    suffix = o.suffix or ""
    if o.suffix is not None and not template.endswith("X"):
        raise UsageError(f"with --suffix, template {quote(template)} must end in X", hint=False)
    if o.suffix is None and "X" in template:
        end = template.rindex("X") + 1
        template, suffix = template[:end], template[end:]
    if "/" in suffix:
        raise UsageError(f"invalid suffix {quote(suffix)}, contains directory separator", hint=False)
    found = re.search(r"X*\Z", template)
    run = len(found[0]) if found else 0
    if run < 3:
        raise UsageError(f"too few X's in template {quote(operands[0] if operands else template)}", hint=False)
    base: str | None = None
    tmp = proc.env.get("TMPDIR") or "/tmp"
    if o.in_tmp:
        if "/" in template:
            raise UsageError(f"invalid template, {quote(template)}, contains directory separator", hint=False)
        base = proc.env.get("TMPDIR") or o.tmpdir or "/tmp"
    elif o.tmpdir is not None:
        base = o.tmpdir or tmp
        if template.startswith("/"):
            raise UsageError(f"invalid template, {quote(template)}; with --tmpdir, it may not be absolute", hint=False)
    elif not operands:
        base = tmp
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    chooser = random.SystemRandom()
    for _ in range(100):
        name = template[:-run] + "".join(chooser.choices(letters, k=run)) + suffix
        full = name if base is None else f"{base.rstrip('/')}/{name}"
        try:
            path = proc.path(full)
            if o.dry_run:
                if await lookup(proc, path) is not None:
                    continue
            elif o.directory:
                await proc.fs.mkdir(path)
                await quiet_setattr(proc, path, Attrs(mode=0o700))
            else:
                await proc.fs.write(path, b"", How.CREATE)
                await quiet_setattr(proc, path, Attrs(mode=0o600))
        except FileExistsError:
            continue
        except OSError as error:
            if not o.quiet:
                shape = f"{base.rstrip('/')}/{template}{suffix}" if base is not None else template + suffix
                what = "directory" if o.directory else "file"
                proc.complain(
                    typographic(proc, f"failed to create {what} via template {quote(shape)}: {reason(error)}")
                )
            return 1
        await proc.emit(encode(full + "\n"))
        return 0
    proc.complain("failed to find an unused name")
    return 1


@dataclass(frozen=True, slots=True)
class MkfifoOptions:
    mode: str | None = value("-m", "--mode", metavar="MODE", help="set file permission bits to MODE, not a=rw - umask")


async def mkfifo(proc: Proc, o: MkfifoOptions, operands: list[str]) -> int:
    mode = 0o666 & ~proc.umask
    if o.mode is not None:
        try:
            mode = change_mode(o.mode, 0o666, False, proc.umask)
        except BadMode:
            raise UsageError("invalid mode", hint=False) from None
        if mode & ~0o777:
            raise UsageError("mode must specify only file permission bits", hint=False)
    status = 0
    for word in operands:
        try:
            path = proc.path(word)
            await proc.fs.mkfifo(path)
            await quiet_setattr(proc, path, Attrs(mode=mode))
        except OSError as error:
            proc.complain(f"cannot create fifo {quote(word)}: {reason(error)}")
            status = 1
    return status


async def mknod(proc: Proc, o: MkfifoOptions, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError(f"missing operand after {quote(operands[-1])}" if operands else "missing operand")
    name, kind, *numbers = operands
    if kind != "p":
        if len(numbers) < 2:
            told = "\nSpecial files require major and minor device numbers."
            raise UsageError(f"missing operand after {quote(operands[-1])}{told if not numbers else ''}")
        if len(numbers) > 2:
            raise UsageError(f"extra operand {quote(numbers[2])}")
        if kind not in "bcu":
            raise UsageError(f"invalid device type {quote(kind)}")
        for number, which in zip(numbers, ("major", "minor"), strict=True):
            if not re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", number):
                raise UsageError(f"invalid {which} device number {quote(number)}", hint=False)
        proc.complain(f"{called(name)}: Operation not permitted")
        return 1
    if numbers:
        told = "\nFifos do not have major and minor device numbers." if len(numbers) == 2 else ""
        raise UsageError(f"extra operand {quote(numbers[0])}{told}")
    try:
        path = proc.path(name)
        await proc.fs.mkfifo(path)
        mode = 0o666 & ~proc.umask if o.mode is None else change_mode(o.mode, 0o666, False, proc.umask)
        await quiet_setattr(proc, path, Attrs(mode=mode))
    except BadMode:
        raise UsageError("invalid mode", hint=False) from None
    except OSError as error:
        proc.complain(f"{called(name)}: {reason(error)}")
        return 1
    return 0


COMMANDS = [
    Command(
        "mknod",
        mknod,
        MkfifoOptions,
        summary="Create the special file NAME of the given TYPE: p, a FIFO; devices are not permitted.",
        usage="[OPTION]... NAME TYPE [MAJOR MINOR]",
        ignored=("-Z --context[=",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
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
    Command(
        "mktemp",
        mktemp,
        MktempOptions,
        summary="Create a temporary file or directory, safely, and print its name.",
        usage="[OPTION]... [TEMPLATE]",
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
    Command(
        "mkfifo",
        mkfifo,
        MkfifoOptions,
        summary="Create named pipes (FIFOs) with the given NAMEs.",
        usage="[OPTION]... NAME...",
        min_operands=1,
        ignored=("-Z --context[=",),
        original="GNU coreutils 9.1",
    ),
]
