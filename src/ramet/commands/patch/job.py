"""State of one run of patch: options, directory and exit status."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import flag, optional, value
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class PatchOptions:
    strip: str | None = value("-p", "--strip", metavar="NUM", help="strip NUM leading components from file names")
    fuzz: str = value(
        "-F", "--fuzz", metavar="LINES", default="2", help="set the fuzz factor to LINES for inexact matching"
    )
    ignore_space: bool = flag("-l", "--ignore-whitespace", help="ignore white space changes between patch and input")
    normal: bool = flag("-n", "--normal", help="interpret the patch as a normal difference")
    context: bool = flag("-c", "--context", help="interpret the patch as a context difference")
    unified: bool = flag("-u", "--unified", help="interpret the patch as a unified difference")
    ed: bool = flag("-e", "--ed", help="interpret the patch as an ed script")
    forward: bool = flag("-N", "--forward", help="ignore patches that appear to be reversed or already applied")
    reverse: bool = flag("-R", "--reverse", help="assume patches were created with old and new files swapped")
    input: str | None = value("-i", "--input", metavar="PATCHFILE", help="read patch from PATCHFILE instead of stdin")
    output: str | None = value("-o", "--output", metavar="FILE", help="output patched files to FILE")
    reject: str | None = value("-r", "--reject-file", metavar="FILE", help="output rejects to FILE")
    remove_empty: bool = flag("-E", "--remove-empty-files", help="remove output files that are empty after patching")
    backup: bool = flag("-b", "--backup", help="back up the original contents of each file")
    backup_mismatch: bool = flag("--backup-if-mismatch", help="back up if the patch does not match exactly")
    no_backup_mismatch: bool = flag("--no-backup-if-mismatch", help="back up mismatches only if otherwise requested")
    prefix: str = value("-B", "--prefix", metavar="PREFIX", default="", help="prepend PREFIX to backup file names")
    suffix: str | None = value("-z", "--suffix", metavar="SUFFIX", help="append SUFFIX to backup file names (.orig)")
    base_prefix: str = value(
        "-Y", "--basename-prefix", metavar="PREFIX", default="", help="prepend PREFIX to base names of backup files"
    )
    version_control: str | None = value(
        "-V",
        "--version-control",
        metavar="STYLE",
        choices=("simple", "never", "numbered", "t", "existing", "nil"),
        help="how backup files are named: simple, numbered, or existing",
    )
    ifdef: str | None = value("-D", "--ifdef", metavar="NAME", help="make merged if-then-else output using NAME")
    set_time: bool = flag("-T", "--set-time", help="set times of patched files, assuming the patch uses local time")
    set_utc: bool = flag("-Z", "--set-utc", help="set times of patched files, assuming the patch uses UTC")
    directory: str | None = value("-d", "--directory", metavar="DIR", help="change the working directory to DIR first")
    dry_run: bool = flag("--dry-run", help="do not actually change any files; just print what would happen")
    posix: bool = flag("--posix", help="conform to the POSIX standard")
    silent: bool = flag("-s", "--quiet", "--silent", help="work silently unless an error occurs")
    batch: bool = flag("-t", "--batch", help="ask no questions; skip bad-Prereq patches; assume reversed")
    force: bool = flag("-f", "--force", help="like -t, but ignore bad-Prereq patches, and assume unreversed")
    verbose: bool = flag("--verbose", help="output extra information about the work being done")
    merge: str | None = optional(
        "--merge", metavar="STYLE", const="merge", help="merge using conflict markers instead of creating reject files"
    )
    reject_format: str | None = value(
        "--reject-format", metavar="FORMAT", choices=("context", "unified"), help="create context or unified rejects"
    )


@dataclass
class PatchJob:
    proc: Proc
    o: PatchOptions
    cwd: Path
    status: int = 0
    fuzz: int = 2

    async def say(self, text: str) -> None:
        if self.o.silent:
            return
        if self.o.output == "-":
            self.proc.stderr.write(encode(text + "\n"))  # standard output is for the file
        else:
            await self.proc.emit(encode(text + "\n"))

    def path(self, word: str) -> Path:
        from ramet.core import paths

        return paths.parse(word, self.cwd)
