"""The command `tar`: its declaration, and which operation a mode asks for."""

from __future__ import annotations

import dataclasses

from ramet.commands.compression import FORMATS
from ramet.commands.declare import Command, UsageError, quote
from ramet.commands.inputs import slurp
from ramet.commands.tar.changing import append_archives, append_members, delete_members
from ramet.commands.tar.job import Failed, Job
from ramet.commands.tar.names import transformer
from ramet.commands.tar.options import TarOptions, old_tar
from ramet.commands.tar.reading import read_archive, tell_label
from ramet.commands.tar.writing import create_archive
from ramet.core.paths import decode
from ramet.core.proc import Proc


def _late(o: TarOptions) -> list[str]:
    """Patterns that were given behind the last name, where they come too late."""
    late: list[str] = []
    for name, stored in reversed(o.order):
        if not name:
            return late[::-1]
        if name == "exclude":
            late.append(str(stored))
    return []


async def tar(proc: Proc, o: TarOptions, operands: list[str]) -> int:
    if not o.mode:
        proc.complain("You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
        proc.stderr.write(b"Try 'tar --help' or 'tar --usage' for more information.\n")
        return 2
    if o.program is not None:
        o = dataclasses.replace(o, packing=_packing(o.program))
    verbose = sum(1 for name, _ in o.order if name == "verbose")
    job = Job(proc, o, proc.cwd, verbose)
    late = _late(o) if o.mode in ("c", "r", "u") else []
    job.excluded = list(o.exclude[: len(o.exclude) - len(late)])
    if late:
        proc.complain(
            "The following options were used after any non-optional arguments in archive create or update mode.  "
            "These options are positional and affect only arguments that follow them.  Please, rearrange them properly."
        )
        for pattern in late:
            proc.complain(f"--exclude {quote(pattern)} has no effect")
        job.status = 2
    for word in o.exclude_from:
        job.excluded += [decode(line) for line in (await slurp(proc, word)).split(b"\n") if line]
    if o.exclude_vcs:
        job.excluded += [
            ".git",
            ".gitignore",
            ".gitmodules",
            ".gitattributes",
            ".svn",
            ".hg",
            ".hgignore",
            ".bzr",
            "CVS",
            "RCS",
            "SCCS",
            "_darcs",
        ]
    if o.exclude_backups:
        job.excluded += [".#*", "*~", "#*#"]
    if o.transform:
        job.rename = transformer(o.transform)
    if o.index_file is not None:
        job.listing_to = job.index = await proc.create(o.index_file)
    try:
        if o.mode == "c":
            await create_archive(job, operands)
        elif o.mode in ("r", "u"):
            await append_members(job, operands)
        elif o.mode == "A":
            await append_archives(job, operands)
        elif o.mode == "delete":
            await delete_members(job, operands)
        elif o.mode == "label":
            return await tell_label(job, operands)
        else:
            await read_archive(job, operands)
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


_PROGRAMS = {"pigz": "gzip", "gunzip": "gzip", "pbzip2": "bzip2", "pxz": "xz", "zstdmt": "zstd", "unzstd": "zstd"}


def _packing(program: str) -> str:
    """The compression that a program stands for; no other is run."""
    name = program.split()[0].rpartition("/")[2] if program.split() else ""
    name = _PROGRAMS.get(name, name)
    if name not in FORMATS:
        raise UsageError(f"only gzip, bzip2, xz, lzma and zstd are understood: {quote(program)}", 2, hint=False)
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
            "-b= --blocking-factor=",
            "-B --read-full-records",
            "-S --sparse",
            "--no-same-owner -o",
            "--same-owner",
            "--no-same-permissions",
            "-s --preserve-order --same-order",
            "--atime-preserve[=",
            "--xattrs",
            "--no-xattrs",
            "--acls",
            "--no-acls",
            "--selinux",
            "--no-selinux",
            "--checkpoint[=",
            "--warning=",
            "--force-local",
            "--quoting-style=",
            "--record-size=",
            "--hard-dereference",
            "--seek -n",
            "--no-seek",
            "--no-overwrite-dir",
            "--overwrite-dir",
            "--delay-directory-restore",
            "--no-delay-directory-restore",
            "--old-archive",
            "--posix",
            "--no-wildcards-match-slash",
            "--wildcards-match-slash",
            "--verbatim-files-from",
            "--no-verbatim-files-from",
            "--check-device",
            "--no-check-device",
            "--recursive-unlink",
            "--no-quote-chars=",
            "--keep-directory-symlink",
            "-R --block-number",
            "-l --check-links",
        ),
        refused={
            "-M --multi-volume": "there are no tapes to change",
            "-g= --listed-incremental=": "incremental dumps are not supported",
            "-G --incremental": "incremental dumps are not supported",
            "-w --interactive --confirmation": "there is no terminal to ask",
            "-Z --compress --uncompress": "the compress format is obsolete",
            "--lzip": "the lzip format is not supported",
            "--lzop": "the lzop format is not supported",
            "-L= --tape-length=": "there are no tapes",
            "-F= --info-script= --new-volume-script=": "there are no tapes",
            "--checkpoint-action=": "not supported",
            "--rmt-command=": "there are no remote tapes",
            "--rsh-command=": "there are no remote tapes",
        },
        examples=[
            ("tar czf a.tar.gz DIR", "pack a directory"),
            ("tar xf a.tar -C DIR", "unpack there"),
            ("tar tvf a.tar", "what is inside"),
        ],
    )
]
