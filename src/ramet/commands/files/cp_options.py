"""Options of cp and mv, and the kinds of backups."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import choose, flag, mixed, optional, ordered, several, value

CONTROL = ("none", "off", "simple", "never", "existing", "nil", "numbered", "t")


@dataclass(frozen=True, slots=True)
class CpOptions:
    archive: bool = flag("-a", "--archive", help="same as -dR --preserve=all")
    attributes_only: bool = flag("--attributes-only", help="don't copy the file data, just the attributes")
    backup: str = mixed(
        flag("-b", const="default", help="make a backup of each existing destination file"),
        optional(
            "--backup", metavar="CONTROL", const="default", choices=CONTROL, help="like -b, with a kind of backup"
        ),
        default="",
    )
    contents: bool = flag("--copy-contents", help="copy contents of special files when recursive")
    links_d: bool = flag("-d", help="same as --no-dereference --preserve=links")
    clobber: str = choose(
        {"-f --force": "force", "-i --interactive": "ask", "-n --no-clobber": "never"},
        default="",
        help={
            "-f --force": "remove a destination that cannot be opened, and try again",
            "-i --interactive": "prompt before overwrite",
            "-n --no-clobber": "do not overwrite an existing file",
        },
    )
    follow: str = choose(
        {"-H": "args", "-L --dereference": "all", "-P --no-dereference": "never"},
        default="",
        help={
            "-H": "follow command-line symbolic links in SOURCE",
            "-L --dereference": "always follow symbolic links in SOURCE",
            "-P --no-dereference": "never follow symbolic links in SOURCE",
        },
    )
    hard: bool = flag("-l", "--link", help="hard link files instead of copying")
    symbolic: bool = flag("-s", "--symbolic-link", help="make symbolic links instead of copying")
    preserve: tuple[str, ...] = mixed(
        flag("-p", const=("mode,ownership,timestamps",), help="same as --preserve=mode,ownership,timestamps"),
        optional(
            "--preserve",
            metavar="ATTR_LIST",
            const=("mode,ownership,timestamps",),
            help="preserve the specified attributes",
        ),
        default=(),
    )
    no_preserve: tuple[str, ...] = several(
        "--no-preserve", metavar="ATTR_LIST", help="don't preserve the specified attributes"
    )
    parents: bool = flag("--parents", help="use full source file name under DIRECTORY")
    recursive: bool = flag("-R", "-r", "--recursive", help="copy directories recursively")
    reflink: str = optional(
        "--reflink",
        metavar="WHEN",
        const="always",
        default="auto",
        choices=("auto", "always", "never"),
        help="control clone copies",
    )
    remove_destination: bool = flag(
        "--remove-destination", help="remove each existing destination file before opening it"
    )
    sparse: str = value(
        "--sparse",
        metavar="WHEN",
        default="auto",
        choices=("never", "auto", "always"),
        help="control creation of sparse files",
    )
    strip_slashes: bool = flag("--strip-trailing-slashes", help="remove any trailing slashes from each SOURCE")
    suffix: str | None = value("-S", "--suffix", metavar="SUFFIX", help="override the usual backup suffix")
    target: str | None = value(
        "-t", "--target-directory", metavar="DIRECTORY", help="copy all SOURCE arguments into DIRECTORY"
    )
    no_target: bool = flag("-T", "--no-target-directory", help="treat DEST as a normal file")
    update: bool = flag("-u", "--update", help="copy only when SOURCE is newer than the destination, or it is missing")
    verbose: bool = flag("-v", "--verbose", help="explain what is being done")
    one_system: bool = flag("-x", "--one-file-system", help="stay on this file system")
    order: tuple[tuple[str, object], ...] = ordered()


@dataclass(frozen=True, slots=True)
class MvOptions:
    backup: str = mixed(
        flag("-b", const="default", help="make a backup of each existing destination file"),
        optional(
            "--backup", metavar="CONTROL", const="default", choices=CONTROL, help="like -b, with a kind of backup"
        ),
        default="",
    )
    clobber: str = choose(
        {"-f --force": "force", "-i --interactive": "ask", "-n --no-clobber": "never"},
        default="",
        help={
            "-f --force": "do not prompt before overwriting",
            "-i --interactive": "prompt before overwrite",
            "-n --no-clobber": "do not overwrite an existing file",
        },
    )
    strip_slashes: bool = flag("--strip-trailing-slashes", help="remove any trailing slashes from each SOURCE")
    suffix: str | None = value("-S", "--suffix", metavar="SUFFIX", help="override the usual backup suffix")
    target: str | None = value(
        "-t", "--target-directory", metavar="DIRECTORY", help="move all SOURCE arguments into DIRECTORY"
    )
    no_target: bool = flag("-T", "--no-target-directory", help="treat DEST as a normal file")
    update: bool = flag("-u", "--update", help="move only when SOURCE is newer than the destination, or it is missing")
    verbose: bool = flag("-v", "--verbose", help="explain what is being done")
