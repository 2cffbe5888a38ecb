"""The options of tar, and its old style of letters without a dash."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.framework.command import UsageError, choose, flag, mixed, optional, ordered, several, value


@dataclass(frozen=True, slots=True)
class TarOptions:
    mode: str = choose(
        {
            "-c --create": "c",
            "-x --extract --get": "x",
            "-t --list": "t",
            "-r --append": "r",
            "-u --update": "u",
            "-d --diff --compare": "d",
            "--delete": "delete",
            "-A --catenate --concatenate": "A",
            "--test-label": "label",
        },
        default="",
        help={
            "-c --create": "create a new archive",
            "-x --extract --get": "extract files from an archive",
            "-t --list": "list the contents of an archive",
            "-r --append": "append files to the end of an archive",
            "-u --update": "only append files newer than copy in archive",
            "-d --diff --compare": "find differences between archive and file system",
            "--delete": "delete from the archive",
            "-A --catenate --concatenate": "append archives to an archive",
            "--test-label": "tell the label of the archive, or whether it is one of these",
        },
    )
    file: str | None = value(
        "-f", "--file", metavar="ARCHIVE", help="use archive file ARCHIVE; - is standard input or output"
    )
    packing: str = choose(
        {
            "-z --gzip --gunzip --ungzip": "gzip",
            "-j --bzip2": "bzip2",
            "-J --xz": "xz",
            "--lzma": "lzma",
            "--zstd": "zstd",
            "-a --auto-compress": "auto",
            "--no-auto-compress": "",
        },
        default="",
        help="filter the archive through that compression",
    )
    order: tuple[tuple[str, object], ...] = ordered(operands=True)
    directory: tuple[str, ...] = several("-C", "--directory", metavar="DIR", help="change to directory DIR")
    files_from: tuple[str, ...] = several(
        "-T", "--files-from", metavar="FILE", help="get names to extract or create from FILE"
    )
    null: bool = choose({"--null": True, "--no-null": False}, default=False, help="-T reads null-terminated names")
    verbatim: bool = choose(
        {"--verbatim-files-from": True, "--no-verbatim-files-from": False},
        default=False,
        help="-T reads names that begin with a dash as names, or as options",
    )
    unquote: bool = choose(
        {"--unquote": True, "--no-unquote": False}, default=True, help="read escapes in names that are given, or not"
    )
    exclude: tuple[str, ...] = several("--exclude", metavar="PATTERN", help="exclude files, given as a PATTERN")
    exclude_from: tuple[str, ...] = several(
        "-X", "--exclude-from", metavar="FILE", help="exclude patterns listed in FILE"
    )
    exclude_vcs: bool = flag("--exclude-vcs", help="exclude version control system directories")
    exclude_backups: bool = flag("--exclude-backups", help="exclude backup and lock files")
    caches: str = choose(
        {"--exclude-caches": "inside", "--exclude-caches-under": "under", "--exclude-caches-all": "all"},
        default="",
        help="exclude contents of directories with CACHEDIR.TAG, but for the tag; all of them; the directory as well",
    )
    tags: tuple[str, ...] = several(
        "--exclude-tag", metavar="FILE", help="exclude contents of directories with FILE, but for FILE itself"
    )
    tags_under: tuple[str, ...] = several(
        "--exclude-tag-under", metavar="FILE", help="exclude contents of directories with FILE"
    )
    tags_all: tuple[str, ...] = several("--exclude-tag-all", metavar="FILE", help="exclude directories with FILE")
    ignore_files: tuple[str, ...] = several(
        "--exclude-ignore", metavar="FILE", help="read patterns for a directory from FILE in it, if there is one"
    )
    ignore_files_below: tuple[str, ...] = several(
        "--exclude-ignore-recursive", metavar="FILE", help="the same for what is below that directory as well"
    )
    vcs_ignores: bool = flag("--exclude-vcs-ignores", help="read patterns from the ignore files of version control")
    add_file: tuple[str, ...] = several("--add-file", metavar="FILE", help="add FILE, whatever its name begins with")
    label: str | None = value("-V", "--label", metavar="TEXT", help="create an archive with the label TEXT")
    past_zeros: bool = flag("-i", "--ignore-zeros", help="ignore zeroed blocks in the archive")
    clamp: bool = flag("--clamp-mtime", help="with --mtime, change only the times of newer files")
    index_file: str | None = value("--index-file", metavar="FILE", help="send verbose output to FILE")
    program: str | None = value(
        "-I", "--use-compress-program", metavar="PROG", help="gzip, bzip2, xz, lzma or zstd, with or without options"
    )
    strip: str = value(
        "--strip-components",
        "--strip",
        metavar="NUMBER",
        default="0",
        help="strip NUMBER leading components from file names on extraction",
    )
    transform: tuple[str, ...] = several(
        "--transform", "--xform", metavar="EXPRESSION", help="use sed replace EXPRESSION to transform file names"
    )
    to_stdout: bool = flag("-O", "--to-stdout", help="extract files to standard output")
    overwrite: str = choose(
        {
            "-k --keep-old-files": "keep",
            "--skip-old-files": "skip",
            "--keep-newer-files": "newer",
            "--overwrite": "over",
            "-U --unlink-first": "unlink",
        },
        default="",
        help={
            "-k --keep-old-files": "don't replace existing files when extracting, treat them as errors",
            "--skip-old-files": "don't replace existing files when extracting, silently skip over them",
            "--keep-newer-files": "don't replace existing files that are newer than their archive copies",
            "--overwrite": "overwrite existing files when extracting",
            "-U --unlink-first": "remove each file prior to extracting over it",
        },
    )
    preserve: bool = flag(
        "-p", "--preserve-permissions", "--same-permissions", help="extract information about file permissions"
    )
    touch: bool = flag("-m", "--touch", help="don't extract file modified time")
    verbose: int = mixed(*[flag("-v", "--verbose", const=1, help="verbosely list files processed")], default=0)
    dereference: bool = flag("-h", "--dereference", help="follow symlinks; archive the files they point to")
    absolute: bool = flag("-P", "--absolute-names", help="don't strip leading '/'s from file names")
    no_recursion: bool = choose(
        {"--no-recursion": True, "--recursion": False},
        default=False,
        help="avoid descending automatically in directories",
    )
    owner: str | None = value("--owner", metavar="NAME", help="force NAME as owner for added files")
    group: str | None = value("--group", metavar="NAME", help="force NAME as group for added files")
    numeric: bool = flag("--numeric-owner", help="always use numbers for user/group names")
    mode_text: str | None = value("--mode", metavar="CHANGES", help="force (symbolic) mode CHANGES for added files")
    mtime: str | None = value("--mtime", metavar="DATE-OR-FILE", help="set mtime for added files")
    sort: str = value("--sort", metavar="ORDER", default="name", help="directory sorting order: none, name or inode")
    format: str = mixed(
        value("-H", "--format", metavar="FORMAT", help="create archive of the format gnu, oldgnu, pax, ustar or v7"),
        flag("--old-archive", "--portability", const="v7", help="same as --format=v7"),
        flag("--posix", const="posix", help="same as --format=posix"),
        default="gnu",
    )
    newer: str | None = value(
        "-N", "--newer", "--after-date", metavar="DATE", help="only store files newer than DATE, or than that file"
    )
    newer_content: str | None = value(
        "--newer-mtime", metavar="DATE", help="the same where only the data are looked at, not the status"
    )
    old: bool = flag("-o", help="when creating, same as --old-archive; when extracting, same as --no-same-owner")
    pax: tuple[str, ...] = several(
        "--pax-option", metavar="KEYWORDS", help="control what the headers of pax archives hold"
    )
    blocking: str | None = value("-b", "--blocking-factor", metavar="BLOCKS", help="BLOCKS x 512 bytes per record")
    record_size: str | None = value("--record-size", metavar="NUMBER", help="NUMBER of bytes per record")
    block_number: bool = flag("-R", "--block-number", help="show block number within archive with each message")
    quoting_style: str = value(
        "--quoting-style", metavar="STYLE", default="escape", help="how names are shown: literal, shell, c, escape ..."
    )
    quote_chars: str | None = value("--quote-chars", metavar="STRING", help="quote these characters as well")
    no_quote_chars: str | None = value("--no-quote-chars", metavar="STRING", help="do not quote these characters")
    backup: str = mixed(
        optional("--backup", metavar="CONTROL", const="default", help="back up before removal, by a kind of backup"),
        default="",
    )
    suffix: str | None = value("--suffix", metavar="STRING", help="back up before removal, override the usual suffix")
    hard_dereference: bool = flag("--hard-dereference", help="archive the files that hard links refer to")
    check_links: bool = flag("-l", "--check-links", help="print a message if not all links are dumped")
    owner_map: str | None = value("--owner-map", metavar="FILE", help="use FILE to map owners to other owners")
    group_map: str | None = value("--group-map", metavar="FILE", help="use FILE to map groups to other groups")
    overwrite_dir: bool = choose(
        {"--overwrite-dir": True, "--no-overwrite-dir": False},
        default=True,
        help="overwrite metadata of existing directories when extracting, or preserve them",
    )
    keep_links: bool = flag("--keep-directory-symlink", help="preserve symlinks to directories when extracting")
    recursive_unlink: bool = flag("--recursive-unlink", help="empty hierarchies prior to extracting a file there")
    ignore_command_error: bool = choose(
        {"--ignore-command-error": True, "--no-ignore-command-error": False},
        default=False,
        help="ignore exit codes of the commands that files are piped to",
    )
    show_defaults: bool = flag("--show-defaults", help="show what is taken where no option says otherwise")
    show_omitted: bool = flag("--show-omitted-dirs", help="say which directories do not match what is asked for")
    interactive: bool = flag("-w", "--interactive", "--confirmation", help="ask for every action")
    warnings: tuple[str, ...] = several("--warning", metavar="KEYWORD", help="which warnings are wanted")
    atime: str | None = optional(
        "--atime-preserve", metavar="METHOD", const="replace", help="put back the access times of what is read"
    )
    usage: bool = flag("--usage", "-?", help="say how the command is used")
    wildcards: bool = choose({"--wildcards": True, "--no-wildcards": False}, default=None, help="use wildcards, or not")
    match_slash: bool = choose(
        {"--wildcards-match-slash": True, "--no-wildcards-match-slash": False},
        default=None,
        help="wildcards match '/', or not",
    )
    anchored: bool = choose(
        {"--anchored": True, "--no-anchored": False},
        default=None,
        help="patterns match file name start, or after any '/'",
    )
    ignore_case: bool = choose({"--ignore-case": True, "--no-ignore-case": False}, default=False, help="ignore case")
    remove: bool = flag("--remove-files", help="remove files after adding them to the archive")
    one_system: bool = flag("--one-file-system", help="stay in local file system when creating archive")
    verify: bool = flag("-W", "--verify", help="attempt to verify the archive after writing it")
    show_names: bool = flag(
        "--show-transformed-names", "--show-stored-names", help="show file or archive names after transformation"
    )
    utc: bool = flag("--utc", help="print file modification times in UTC")
    full_time: bool = flag("--full-time", help="print file time to its full resolution")
    totals: bool = flag("--totals", help="print total bytes after processing the archive")
    occurrence: str | None = optional(
        "--occurrence", metavar="NUMBER", const="1", help="process only the NUMBERth occurrence of each file"
    )
    starting: str | None = value(
        "-K", "--starting-file", metavar="MEMBER", help="begin at member MEMBER in the archive"
    )
    ignore_failed: bool = flag("--ignore-failed-read", help="do not exit with nonzero on unreadable files")
    one_top: str | None = optional(
        "--one-top-level",
        metavar="DIR",
        const="",
        help="extract into DIR, or into a directory named as the archive, what is not there already",
    )
    to_command: str | None = value("--to-command", metavar="COMMAND", help="pipe extracted files to another program")


_WITH_ARGUMENT = "fCTXHKNbgVLFI"


def old_tar(words: list[str]) -> list[str]:
    """`tar xzf a.tar`: the first word holds letters, their arguments follow in order; -vv counts twice."""
    if not words or words[0].startswith("-") or not re.fullmatch(r"[A-Za-z0-9]+", words[0]):
        return words
    out: list[str] = []
    rest = list(words[1:])
    for letter in words[0]:
        out.append(f"-{letter}")
        if letter in _WITH_ARGUMENT:
            if not rest:
                raise UsageError(f"Old option '{letter}' requires an argument.", 2)
            out.append(rest.pop(0))
    return out + rest
