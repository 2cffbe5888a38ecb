"""Options of diff."""

from __future__ import annotations

from dataclasses import dataclass

from ramet.commands.framework.command import choose, flag, mixed, optional, ordered, several, value


@dataclass(frozen=True, slots=True)
class DiffOptions:
    format: str = mixed(
        choose(
            {
                "--normal": "normal",
                "-e --ed": "ed",
                "-f --forward-ed": "forward-ed",
                "-n --rcs": "rcs",
                "-y --side-by-side": "side-by-side",
                "-u": "unified",
                "-c": "context",
            },
            help={
                "--normal": "output a normal diff (the default)",
                "-e --ed": "output an ed script",
                "-f --forward-ed": "output an ed script in forward order",
                "-n --rcs": "output an RCS format diff",
                "-y --side-by-side": "output in two columns",
                "-u": "output 3 lines of unified context",
                "-c": "output 3 lines of copied context",
            },
        ),
        default="",
    )
    unified: str | None = mixed(
        value("-U", metavar="NUM", help="output NUM lines of unified context"),
        optional("--unified", metavar="NUM", const="3", help="output NUM (default 3) lines of unified context"),
        default=None,
    )
    context: str | None = mixed(
        value("-C", metavar="NUM", help="output NUM lines of copied context"),
        optional("--context", metavar="NUM", const="3", help="output NUM (default 3) lines of copied context"),
        default=None,
    )
    brief: bool = flag("-q", "--brief", help="report only when files differ")
    identical: bool = flag("-s", "--report-identical-files", help="report when two files are the same")
    width: str = value("-W", "--width", metavar="NUM", default="130", help="output at most NUM print columns")
    left_column: bool = flag("--left-column", help="output only the left column of common lines")
    suppress_common: bool = flag("--suppress-common-lines", help="do not output common lines")
    show_function: bool = flag("-p", "--show-c-function", help="show which C function each change is in")
    function_line: str | None = value(
        "-F", "--show-function-line", metavar="RE", help="show the most recent line matching RE"
    )
    labels: tuple[str, ...] = several(
        "--label", "-L", metavar="LABEL", help="use LABEL instead of file name and timestamp"
    )
    expand_tabs: bool = flag("-t", "--expand-tabs", help="expand tabs to spaces in output")
    initial_tab: bool = flag("-T", "--initial-tab", help="make tabs line up by prepending a tab")
    tabsize: str = value("--tabsize", metavar="NUM", default="8", help="tab stops every NUM print columns")
    suppress_blank: bool = flag("--suppress-blank-empty", help="suppress space or tab before empty output lines")
    recursive: bool = flag("-r", "--recursive", help="recursively compare any subdirectories found")
    no_deref: bool = flag("--no-dereference", help="don't follow symbolic links")
    new_file: bool = flag("-N", "--new-file", help="treat absent files as empty")
    one_way_new: bool = flag("-P", "--unidirectional-new-file", help="treat absent first files as empty")
    ignore_name_case: bool = choose(
        {"--ignore-file-name-case": True, "--no-ignore-file-name-case": False},
        default=False,
        help="ignore (or consider) case when comparing file names",
    )
    exclude: tuple[str, ...] = several("-x", "--exclude", metavar="PAT", help="exclude files that match PAT")
    exclude_from: tuple[str, ...] = several(
        "-X", "--exclude-from", metavar="FILE", help="exclude files that match any pattern in FILE"
    )
    starting: str | None = value(
        "-S", "--starting-file", metavar="FILE", help="start with FILE when comparing directories"
    )
    from_file: str | None = value("--from-file", metavar="FILE1", help="compare FILE1 to all operands")
    to_file: str | None = value("--to-file", metavar="FILE2", help="compare all operands to FILE2")
    ignore_case: bool = flag("-i", "--ignore-case", help="ignore case differences in file contents")
    tab_expansion: bool = flag("-E", "--ignore-tab-expansion", help="ignore changes due to tab expansion")
    trailing: bool = flag("-Z", "--ignore-trailing-space", help="ignore white space at line end")
    space_change: bool = flag("-b", "--ignore-space-change", help="ignore changes in the amount of white space")
    all_space: bool = flag("-w", "--ignore-all-space", help="ignore all white space")
    blank_lines: bool = flag("-B", "--ignore-blank-lines", help="ignore changes where lines are all blank")
    ignore_re: tuple[str, ...] = several(
        "-I", "--ignore-matching-lines", metavar="RE", help="ignore changes where all lines match RE"
    )
    text: bool = flag("-a", "--text", help="treat all files as text")
    strip_cr: bool = flag("--strip-trailing-cr", help="strip trailing carriage return on input")
    ifdef: str | None = value("-D", "--ifdef", metavar="NAME", help="output merged file with '#ifdef NAME' diffs")
    line_format: str | None = value("--line-format", metavar="LFMT", help="format all input lines with LFMT")
    old_line: str | None = value("--old-line-format", metavar="LFMT", help="format lines from FILE1 with LFMT")
    new_line: str | None = value("--new-line-format", metavar="LFMT", help="format lines from FILE2 with LFMT")
    same_line: str | None = value("--unchanged-line-format", metavar="LFMT", help="format common lines with LFMT")
    old_group: str | None = value("--old-group-format", metavar="GFMT", help="format groups only in FILE1 with GFMT")
    new_group: str | None = value("--new-group-format", metavar="GFMT", help="format groups only in FILE2 with GFMT")
    same_group: str | None = value("--unchanged-group-format", metavar="GFMT", help="format common groups with GFMT")
    changed_group: str | None = value("--changed-group-format", metavar="GFMT", help="format changed groups with GFMT")
    minimal: bool = flag("-d", "--minimal", help="try hard to find a smaller set of changes")
    horizon: str | None = value("--horizon-lines", metavar="NUM", help="keep NUM lines of the common prefix and suffix")
    large: bool = flag("-H", "--speed-large-files", help="assume large files and many scattered small changes")
    color: str = optional(
        "--color",
        metavar="WHEN",
        const="auto",
        default="never",
        choices=("never", "always", "auto"),
        help="color output; WHEN is 'never', 'always', or 'auto'",
    )
    palette: str | None = value("--palette", metavar="PALETTE", help="the colors to use when --color is active")
    order: tuple[tuple[str, object], ...] = ordered()
