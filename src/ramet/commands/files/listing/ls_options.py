"""The options of ls, dir and vdir."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import choose, flag, mixed, optional, ordered, several, value

_FORMATS = ("verbose", "long", "commas", "horizontal", "across", "vertical", "single-column")
_SORTS = ("none", "time", "size", "extension", "version", "width", "name")
_STYLES = (
    "literal",
    "shell",
    "shell-always",
    "shell-escape",
    "shell-escape-always",
    "c",
    "c-maybe",
    "escape",
    "locale",
    "clocale",
)
_WHEN = ("always", "yes", "force", "never", "no", "none", "auto", "tty", "if-tty")


@dataclass(frozen=True, slots=True)
class LsOptions:
    all: str = choose(
        {"-a --all": "all", "-A --almost-all": "almost"},
        default="",
        help={"-a --all": "do not ignore entries starting with .", "-A --almost-all": "do not list implied . and .."},
    )
    author: bool = flag("--author", help="with -l, print the author of each file")
    block_size: str | None = value(
        "--block-size", metavar="SIZE", help="with -l, scale sizes by SIZE when printing them"
    )
    backups: bool = flag("-B", "--ignore-backups", help="do not list implied entries ending with ~")
    time_kind: str = mixed(
        choose({"-c": "ctime", "-u": "atime"}, help="sort by, and show, that time"),
        value(
            "--time",
            metavar="WORD",
            choices=("atime", "access", "use", "ctime", "status", "birth", "creation", "mtime", "modification"),
            help="which timestamp to use",
        ),
        default="mtime",
    )
    format: str = mixed(
        choose(
            {"-l": "long", "-C": "vertical", "-x": "across", "-m": "commas", "-1": "single-column"},
            help={
                "-l": "use a long listing format",
                "-C": "list entries by columns",
                "-x": "list entries by lines instead of by columns",
                "-m": "fill width with a comma separated list",
                "-1": "list one file per line",
            },
        ),
        value(
            "--format",
            metavar="WORD",
            choices=_FORMATS,
            help="across, commas, horizontal, long, single-column, verbose, vertical",
        ),
        default="",
    )
    color: str = optional("--color", metavar="WHEN", const="always", default="", choices=_WHEN, help="color the output")
    directory: bool = flag("-d", "--directory", help="list directories themselves, not their contents")
    dired: bool = flag("-D", "--dired", help="generate output designed for Emacs' dired mode")
    hyperlink: str = optional(
        "--hyperlink", metavar="WHEN", const="always", default="never", choices=_WHEN, help="hyperlink file names"
    )
    unsorted: bool = flag("-f", help="do not sort, enable -aU, disable -ls --color")
    indicator: str = mixed(
        choose({"-p": "slash", "--file-type": "file-type"}, help="append an indicator to entries"),
        flag("-F", const="always", help="like --classify"),
        optional(
            "--classify",
            metavar="WHEN",
            const="always",
            choices=_WHEN,
            help="append indicator (one of */=>@|) to entries",
        ),
        value(
            "--indicator-style",
            metavar="WORD",
            choices=("none", "slash", "file-type", "classify"),
            help="append indicator with style WORD",
        ),
        default="none",
    )
    full_time: bool = flag("--full-time", help="like -l --time-style=full-iso")
    no_owner: bool = flag("-g", help="like -l, but do not list owner")
    no_group: bool = flag("-G", "--no-group", help="in a long listing, don't print group names")
    no_group_long: bool = flag("-o", help="like -l, but do not list group information")
    dirs_first: bool = flag("--group-directories-first", help="group directories before files")
    human: str = choose(
        {"-h --human-readable": "1024", "--si": "1000"},
        default="",
        help={
            "-h --human-readable": "print sizes like 1K 234M 2G etc.",
            "--si": "likewise, but use powers of 1000 not 1024",
        },
    )
    follow_args: str = choose(
        {"-H --dereference-command-line": "all", "--dereference-command-line-symlink-to-dir": "dir"},
        default="",
        help="follow symbolic links listed on the command line",
    )
    hide: tuple[str, ...] = several(
        "--hide", metavar="PATTERN", help="do not list implied entries matching shell PATTERN"
    )
    inode: bool = flag("-i", "--inode", help="print the index number of each file")
    ignore: tuple[str, ...] = several(
        "-I", "--ignore", metavar="PATTERN", help="do not list implied entries matching shell PATTERN"
    )
    kibibytes: bool = flag("-k", "--kibibytes", help="default to 1024-byte blocks for file system usage")
    follow: bool = flag("-L", "--dereference", help="show information for the file a link references")
    numeric: bool = flag("-n", "--numeric-uid-gid", help="like -l, but list numeric user and group IDs")
    quoting: str = mixed(
        choose(
            {"-N --literal": "literal", "-b --escape": "escape", "-Q --quote-name": "c"},
            help="how entry names are quoted",
        ),
        value("--quoting-style", metavar="WORD", choices=_STYLES, help="use quoting style WORD for entry names"),
        default="",
    )
    control: str = choose(
        {"-q --hide-control-chars": "hide", "--show-control-chars": "show"},
        default="show",
        help="print ? instead of nongraphic characters, or not",
    )
    reverse: bool = flag("-r", "--reverse", help="reverse order while sorting")
    recursive: bool = flag("-R", "--recursive", help="list subdirectories recursively")
    blocks: bool = flag("-s", "--size", help="print the allocated size of each file, in blocks")
    sort: str = mixed(
        choose(
            {"-S": "size", "-t": "time", "-U": "none", "-v": "version", "-X": "extension"},
            help={
                "-S": "sort by file size, largest first",
                "-t": "sort by time, newest first",
                "-U": "do not sort",
                "-v": "natural sort of (version) numbers",
                "-X": "sort alphabetically by extension",
            },
        ),
        value("--sort", metavar="WORD", choices=_SORTS, help="sort by WORD instead of name"),
        default="",
    )
    time_style: str | None = value(
        "--time-style", metavar="STYLE", help="time/date format with -l: full-iso, long-iso, iso, locale, +FORMAT"
    )
    tab: str | None = value("-T", "--tabsize", metavar="COLS", help="assume tab stops at each COLS instead of 8")
    width: str | None = value("-w", "--width", metavar="COLS", help="set output width to COLS; 0 means no limit")
    context: bool = flag("-Z", "--context", help="print any security context of each file")
    zero: bool = flag("--zero", help="end each output line with NUL, not newline")
    order: tuple[tuple[str, object], ...] = ordered()
