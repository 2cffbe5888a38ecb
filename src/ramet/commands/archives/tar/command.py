"""The tar command: settle its options and run the operation of its mode."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from ramet.commands.archives.codecs import FORMATS
from ramet.commands.archives.tar.create import create_archive
from ramet.commands.archives.tar.format import BLOCK, RECORD
from ramet.commands.archives.tar.job import Failed, TarJob
from ramet.commands.archives.tar.names import STYLES
from ramet.commands.archives.tar.options import TarOptions, old_tar
from ramet.commands.archives.tar.read import read_archive, tell_label, verify_archive
from ramet.commands.archives.tar.select import read_exclusions
from ramet.commands.archives.tar.transforms import transformer
from ramet.commands.archives.tar.update import append_archives, append_members, delete_members
from ramet.commands.files.cp_options import CONTROL
from ramet.commands.framework.command import Command, UsageError, help_text, parse, quote
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.width import bounded

_FORMATS = ("gnu", "oldgnu", "pax", "posix", "ustar", "v7")
_DEFAULTS = "--format=gnu -f- -b20 --quoting-style=escape --rmt-command=/usr/sbin/rmt --rsh-command=/usr/bin/rsh\n"
_KEYWORDS = (
    "all", "alone-zero-block", "bad-dumpdir", "cachedir", "contiguous-cast", "file-changed", "file-ignored",
    "file-removed", "file-shrank", "file-unchanged", "filename-with-nuls", "ignore-archive", "ignore-newer",
    "new-directory", "rename-directory", "symlink-cast", "timestamp", "unknown-cast", "unknown-keyword", "xdev",
    "decompress-program", "existing-file", "xattr-write", "record-size", "failed-read", "missing-zero-blocks",
    "verbose", "none",
)  # fmt: skip


async def tar(proc: Proc, o: TarOptions, operands: list[str]) -> int:
    if proc.env.get("TAR_OPTIONS"):
        # They come before the options of the command line.
        o, _ = parse(COMMANDS[0], [*shlex.split(proc.env["TAR_OPTIONS"]), *old_tar(proc.argv[1:])])
    if o.show_defaults or o.usage:
        await proc.emit(encode(_DEFAULTS if o.show_defaults else help_text(COMMANDS[0])))
        return 0
    if not o.mode:
        proc.complain("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
        proc.stderr.write(b"Try 'tar --help' or 'tar --usage' for more information.\n")
        return 2
    if len({given for kind, given in o.order if kind == "mode"}) > 1:
        one = "You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option"
        raise UsageError(one, 2)
    job = TarJob(proc, _complete_options(proc, o), proc.cwd, sum(1 for name, _ in o.order if name == "verbose"))
    job.record = _record(o)
    if o.transform:
        job.rename = await offload_long(proc, o.transform, partial(transformer, o.transform))
    try:
        job.quoting = _style(o.quoting_style)
        await read_exclusions(job)
        if o.index_file is not None:
            job.listing_to = job.index = await proc.create(o.index_file)
        await _OPERATIONS.get(o.mode, read_archive)(job)
        if o.verify and o.mode in ("c", "r", "u") and o.file not in (None, "-"):
            await verify_archive(job)
    except Failed as failed:
        if failed.args:
            proc.complain(str(failed))
            proc.complain("Error is not recoverable: exiting now")
        return 2
    finally:
        if job.index is not None:
            await proc.close(job.index)
    if job.status == 2:
        proc.complain("Exiting with failure status due to previous errors")
    return job.status


_OPERATIONS: dict[str, Callable[[TarJob], Awaitable[None]]] = {
    "c": create_archive,
    "r": append_members,
    "u": append_members,
    "A": append_archives,
    "delete": delete_members,
    "label": tell_label,
}
"""The operation of each mode; all others read the archive."""


def _complete_options(proc: Proc, o: TarOptions) -> TarOptions:
    """Return the options with what follows from others and from the environment; wrong values are refused here."""
    if o.program is not None:
        o = dataclasses.replace(o, packing=_packing(o.program))
    if o.old and o.mode == "c":
        o = dataclasses.replace(o, format="v7")
    if o.file is None and proc.env.get("TAPE"):
        o = dataclasses.replace(o, file=proc.env["TAPE"])
    if o.format not in _FORMATS:
        raise UsageError(f"{o.format}: Invalid archive format", 2)
    if not o.strip.isdecimal():
        raise UsageError(f"{o.strip}: Invalid number of elements", 2)
    if o.backup and o.backup != "default":
        o = dataclasses.replace(o, backup=_chosen("--backup", o.backup, CONTROL, 2))
    _chosen("--sort", o.sort, ("none", "name", "inode"))
    for keyword in o.warnings:
        _chosen("--warning", keyword.removeprefix("no-"), _KEYWORDS)
    if o.atime is not None:
        _chosen("--atime-preserve", o.atime, ("replace", "system"))
    return o


def _chosen(option: str, given: str, choices: Sequence[str], together: int = 1) -> str:
    """Return the choice that a word abbreviates; `together` consecutive choices mean the same."""
    matches = [given] if given in choices else [choice for choice in choices if choice.startswith(given) and given]
    if len(matches) == 1:
        return matches[0]
    rows = [choices[at : at + together] for at in range(0, len(choices), together)]
    listed = "\n".join("  - " + ", ".join(quote(choice) for choice in row) for row in rows)
    what = "ambiguous" if matches else "invalid"
    raise UsageError(
        f"{what} argument {quote(given)} for {quote(option)}\nValid arguments are:\n{listed}", 2, hint=False
    )


def _record(o: TarOptions) -> int:
    """Return how many bytes a record has, by the last option that says so."""
    size = RECORD
    for name, given in o.order:
        text = str(given)
        if name == "blocking":
            if not text.isdecimal() or not int(text):
                raise UsageError(f"{text}: Invalid blocking factor", 2)
            size = int(text) * BLOCK
        elif name == "record_size":
            number = text.rstrip("bBckKMGw")
            unit = {"": 1, "c": 1, "w": 2, "b": 512, "B": 1024, "k": 1024, "K": 1024, "M": 1 << 20, "G": 1 << 30}
            if not number.isdecimal() or text[len(number) :] not in unit:
                raise UsageError(f"{text}: Invalid record size", 2)
            size = int(number) * unit[text[len(number) :]]
            if not size or size % BLOCK:
                raise UsageError(f"Record size must be a multiple of {BLOCK}.", 2)
    return bounded(size)


def _style(given: str) -> str:
    matches = [given] if given in STYLES else [style for style in STYLES if style.startswith(given)]
    if len(matches) != 1:
        raise Failed(f"Unknown quoting style '{given}'. Try 'tar --quoting-style=help' to get a list.")
    return matches[0]


_PROGRAMS = {"pigz": "gzip", "gunzip": "gzip", "pbzip2": "bzip2", "pxz": "xz", "zstdmt": "zstd", "unzstd": "zstd"}


def _packing(program: str) -> str:
    """Return the compression that a program stands for; no other is run."""
    name = program.split()[0].rpartition("/")[2] if program.split() else ""
    name = _PROGRAMS.get(name, name)
    if name not in FORMATS:
        known = "gzip, bzip2, xz, lzma and zstd"
        raise UsageError(f"only {known} are understood: {quote(program)}", 2, hint=False)
    return name


COMMANDS = [
    Command(
        "tar",
        tar,
        TarOptions,
        summary="Save many files together into a single archive, and restore individual files from it.",
        usage="[OPTION...] [FILE]...",
        bad_usage=64,
        rewrite=old_tar,
        ignored=(
            "-B --read-full-records",
            "-S --sparse",
            "--no-same-owner",
            "--same-owner",
            "--no-same-permissions",
            "-s --preserve-order --same-order",
            "--xattrs",
            "--no-xattrs",
            "--acls",
            "--no-acls",
            "--selinux",
            "--no-selinux",
            "--force-local",
            "--hole-detection=",
            "--sparse-version=",
            "--xattrs-include=",
            "--xattrs-exclude=",
            "--restrict",
            "--seek -n",
            "--no-seek",
            "--delay-directory-restore",
            "--no-delay-directory-restore",
            "--check-device",
            "--no-check-device",
        ),
        refused={
            "--lzop": "LZO compression is not supported",
            "--lzip": "lzip compression is not supported",
            "-Z --compress --uncompress": "LZW compression is not supported",
            "-g= --listed-incremental=": "incremental archives are not supported",
            "-G --incremental": "incremental archives are not supported",
            "--level=": "incremental archives are not supported",
            "--show-snapshot-field-ranges": "incremental archives are not supported",
            "-M --multi-volume": "archives of several volumes are not supported",
            "-L= --tape-length=": "archives of several volumes are not supported",
            "-F= --info-script= --new-volume-script=": "archives of several volumes are not supported",
            "--volno-file=": "archives of several volumes are not supported",
            "--checkpoint[=": "checkpoints are not supported",
            "--checkpoint-action=": "checkpoints are not supported",
            "--rmt-command=": "there are no remote tapes",
            "--rsh-command=": "there are no remote tapes",
        },
        examples=[
            ("tar czf a.tar.gz DIR", "pack a directory"),
            ("tar xf a.tar -C DIR", "unpack there"),
            ("tar tvf a.tar", "what is inside"),
        ],
        original="GNU tar 1.34",
        hint="'{} --help' or '{} --usage'",
        stdin_error=StdinError(
            "-: Cannot read: {}\ntar: At beginning of tape, quitting now\ntar: Error is not recoverable: exiting now",
            status=2,
            fatal=True,
        ),
    )
]
