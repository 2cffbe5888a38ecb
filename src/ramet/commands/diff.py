"""diff and sdiff: files and directories compared with GNU's options, messages and exit codes."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ramet.commands import diff_output as output
from ramet.commands.clock import at, strftime, zone_of
from ramet.commands.declare import Command, UsageError, choose, flag, mixed, optional, quote, several, shown, value
from ramet.commands.diff_core import Change, changes
from ramet.commands.diff_formats import Formats
from ramet.commands.globs import fnmatch
from ramet.commands.regexes import bre_bytes
from ramet.core.errors import LimitExceeded, reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat


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


def _old_diff(words: list[str]) -> list[str]:
    """`-5u`, `-u5`, `-5`: a number beside -u or -c is its context."""
    out: list[str] = []
    for word in words:
        found = re.fullmatch(r"-([a-zA-Z]*?)(?:(\d+)([uc])|([uc])(\d+))([a-zA-Z]*)", word)
        if found is not None:
            number, kind = found[2] or found[5], (found[3] or found[4]).upper()
            rest = found[1] + found[6]
            out += [*([f"-{rest}"] if rest else []), f"-{kind}", number]
        else:
            out.append(word)
    return out


@dataclass
class _Diff:
    """One run: the options decided, and the status so far."""

    proc: Proc
    o: DiffOptions
    format: str
    style: output.Style
    key: Callable[[bytes], bytes] | None
    ignored: Callable[[list[bytes]], bool] | None
    excluded: list[str] = field(default_factory=list)
    formats: Formats | None = None
    status: int = 0
    command: str = ""

    def trouble(self, message: str) -> None:
        self.proc.complain(message)
        self.status = 2


async def diff(proc: Proc, o: DiffOptions, operands: list[str]) -> int:
    job = await _prepare(proc, o)
    if o.from_file is not None or o.to_file is not None:
        pairs = [(o.from_file, w) for w in operands] if o.from_file is not None else [(w, o.to_file) for w in operands]
    else:
        if len(operands) < 2:
            raise UsageError("missing operand after " + quote(operands[0] if operands else "diff"))
        if len(operands) > 2:
            raise UsageError(f"extra operand {quote(operands[2])}")
        pairs = [(operands[0], operands[1])]
    for a, b in pairs:
        await _pair(job, str(a), str(b))
    return job.status


async def _prepare(proc: Proc, o: DiffOptions) -> _Diff:
    words = proc.argv[1:]
    format_, lines = o.format or "normal", "3"
    if o.unified is not None:
        format_, lines = "unified", o.unified
    if o.context is not None:
        format_, lines = "context", o.context
    if not lines.isdigit():
        raise UsageError(f"invalid context length {quote(lines)}")
    if not o.width.isdigit() or int(o.width) == 0:
        raise UsageError(f"invalid width {quote(o.width)}")
    if o.show_function and format_ == "normal":
        format_ = "context"
    function: Callable[[bytes], bool] | None = None
    if o.function_line is not None:
        function = bre_bytes(o.function_line).test
    elif o.show_function:
        function = re.compile(rb"[A-Za-z$_]").match  # type: ignore[assignment]
    style = output.Style(
        context=int(lines),
        color=o.color == "always",
        expand_tabs=int(o.tabsize) if o.expand_tabs else 0,
        initial_tab=o.initial_tab,
        function=function,
        width=int(o.width),
        left_column=o.left_column,
        suppress_common=o.suppress_common,
        suppress_blank=o.suppress_blank,
    )
    excluded = list(o.exclude)
    for word in o.exclude_from:
        from ramet.commands.inputs import slurp

        try:
            excluded += [decode(line) for line in (await slurp(proc, word)).split(b"\n") if line]
        except OSError as error:
            raise UsageError(f"{shown(word)}: {reason(error)}", hint=False) from None
    shown_words = [w for w in words if w.startswith("-")]
    job = _Diff(proc, o, format_, style, _key(o), _ignored(o), excluded, _formats(o))
    job.command = " ".join(["diff", *_command_options(words, shown_words)])
    return job


def _formats(o: DiffOptions) -> Formats | None:
    lines = (o.old_line, o.new_line, o.same_line)
    groups = (o.old_group, o.new_group, o.same_group, o.changed_group)
    if o.line_format is None and not any(given is not None for given in (*lines, *groups)):
        return None
    return Formats.of([o.line_format if given is None else given for given in lines], groups)


def _command_options(words: list[str], flags: list[str]) -> list[str]:
    """The options as they were given, for the headers of a recursive comparison."""
    out: list[str] = []
    takes = {
        "-x",
        "-X",
        "-U",
        "-C",
        "-I",
        "-W",
        "-S",
        "-L",
        "-F",
        "-D",
        "--exclude",
        "--label",
        "--exclude-from",
        "--width",
    }
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            out.append(shown(word))
            if word in takes and i + 1 < len(words):
                i += 1
                out.append(shown(words[i]))
        i += 1
    del flags
    return out


def _key(o: DiffOptions) -> Callable[[bytes], bytes] | None:
    steps: list[Callable[[bytes], bytes]] = []
    if o.strip_cr:
        steps.append(lambda line: line.removesuffix(b"\r"))
    if o.all_space:
        steps.append(lambda line: line.translate(None, b" \t\r\v\f"))
    elif o.space_change:
        steps.append(lambda line: re.sub(rb"[ \t\r\v\f]+", b" ", line).rstrip(b" "))
    else:
        if o.tab_expansion:
            steps.append(lambda line: line.expandtabs(8))
        if o.trailing:
            steps.append(lambda line: line.rstrip(b" \t\r\v\f"))
    if o.ignore_case:
        steps.append(bytes.lower)
    if not steps:
        return None
    if len(steps) == 1:
        return steps[0]

    def key(line: bytes) -> bytes:
        for step in steps:
            line = step(line)
        return line

    return key


def _ignored(o: DiffOptions) -> Callable[[list[bytes]], bool] | None:
    if not (o.blank_lines or o.ignore_re):
        return None
    matchers = [bre_bytes(text) for text in o.ignore_re]
    spaces = o.all_space or o.space_change or o.trailing

    def test(lines: list[bytes]) -> bool:
        for line in lines:
            blank = o.blank_lines and (not line.strip() if spaces else not line)
            if not blank and not any(m.test(line) for m in matchers):
                return False
        return True

    return test


# ------------------------------------------------------------------------------------------------- what to compare


async def _stat(job: _Diff, word: str) -> Stat | None:
    if word == "-" or job.proc.descriptor(word) is not None:
        return Stat(Kind.FILE)
    return await job.proc.fs.stat(job.proc.path(word), follow=not job.o.no_deref)


async def _pair(job: _Diff, a: str, b: str) -> None:
    proc, o = job.proc, job.o
    stats: list[Stat | None] = []
    missing = 0
    for word, new in ((a, o.new_file or o.one_way_new), (b, o.new_file)):
        try:
            stats.append(await _stat(job, word))
        except OSError as error:
            stats.append(None)
            missing += 1
            if not (new and error.errno == errno.ENOENT) or missing == 2:
                job.trouble(f"{shown(word)}: {reason(error)}")
    if job.status == 2 and None in stats:
        return
    left, right = stats
    if left is not None and right is not None and left.is_dir != right.is_dir:
        # A file against a directory means the file of that name in it.
        if left.is_dir:
            a = f"{a.rstrip('/')}/{b.rstrip('/').rpartition('/')[2]}"
        else:
            b = f"{b.rstrip('/')}/{a.rstrip('/').rpartition('/')[2]}"
        await _pair(job, a, b)
        return
    if left is not None and right is not None and left.is_dir and right.is_dir:
        await _directories(job, a, b)
        return
    await _files(job, a, b, left, right, header=False)
    del proc


async def _directories(job: _Diff, a: str, b: str) -> None:
    proc, o = job.proc, job.o
    listings: list[dict[str, Stat]] = []
    for word in (a, b):
        entries = {}
        if word:
            try:
                entries = {
                    n: s async for n, s in proc.fs.scan(proc.path(word)) if not any(fnmatch(n, p) for p in job.excluded)
                }
            except FileNotFoundError:
                entries = {}
        listings.append(entries)
    first, second = listings
    fold: Callable[[str], str] = (lambda n: n.lower()) if o.ignore_name_case else (lambda n: n)
    right_names = {fold(n): n for n in second}
    names = sorted({fold(n) for n in first} | set(right_names), key=encode)
    left_names = {fold(n): n for n in first}
    for name in names:
        if o.starting is not None and name < o.starting:
            continue
        x, y = left_names.get(name), right_names.get(name)
        path_a, path_b = (
            f"{a.rstrip('/') or '/'}/{x or name}".replace("//", "/"),
            f"{b.rstrip('/') or '/'}/{y or name}".replace("//", "/"),
        )
        if x is None or y is None:
            await _only(job, a, b, x, y, path_a, path_b, first, second)
            continue
        await _entry(job, path_a, path_b, first[x], second[y])
        await proc.budget.breathe()


async def _only(
    job: _Diff,
    a: str,
    b: str,
    x: str | None,
    y: str | None,
    path_a: str,
    path_b: str,
    first: dict[str, Stat],
    second: dict[str, Stat],
) -> None:
    o = job.o
    stat = first[x] if x is not None else second[y or ""]
    if o.new_file or (o.one_way_new and x is None):
        if stat.is_dir:
            if o.recursive:
                await _directories(job, path_a, path_b)
            return
        await _files(
            job, path_a, path_b, first[x] if x is not None else None, second[y] if y is not None else None, header=True
        )
        return
    await job.proc.emit(encode(f"Only in {a if x is not None else b}: {x if x is not None else y}\n"))
    job.status = max(job.status, 1)


async def _entry(job: _Diff, path_a: str, path_b: str, left: Stat, right: Stat) -> None:
    proc, o = job.proc, job.o
    if not o.no_deref:
        try:
            if left.kind is Kind.LINK:
                left = await proc.fs.stat(proc.path(path_a), follow=True)
            if right.kind is Kind.LINK:
                right = await proc.fs.stat(proc.path(path_b), follow=True)
        except OSError as error:
            job.trouble(f"{shown(path_a if left.kind is Kind.LINK else path_b)}: {reason(error)}")
            return
    if left.is_dir and right.is_dir:
        if o.recursive:
            await _directories(job, path_a, path_b)
        else:
            await proc.emit(encode(f"Common subdirectories: {path_a} and {path_b}\n"))
        return
    if left.kind is not right.kind:
        kinds = {Kind.DIR: "directory", Kind.LINK: "symbolic link", Kind.FILE: "regular file"}
        names = [kinds.get(s.kind, "special file") for s in (left, right)]
        names = [
            "regular empty file" if s.kind is Kind.FILE and s.size == 0 else n
            for s, n in zip((left, right), names, strict=True)
        ]
        await proc.emit(encode(f"File {path_a} is a {names[0]} while file {path_b} is a {names[1]}\n"))
        job.status = max(job.status, 1)
        return
    if left.kind is Kind.LINK:
        if left.target != right.target:
            await proc.emit(encode(f"Symbolic links {path_a} and {path_b} differ\n"))
            job.status = max(job.status, 1)
        return
    await _files(job, path_a, path_b, left, right, header=True)


_MANY = 5000
"""Lines from which on a comparison takes longer than the event loop should wait."""


async def _content(job: _Diff, word: str, stat: Stat | None) -> bytes:
    if stat is None:
        return b""
    reader = await job.proc.open(word)
    try:
        limit = job.proc.budget.limits.string_bytes
        parts: list[bytes] = []
        size = 0
        while block := await reader.read():
            parts.append(block)
            size += len(block)
            if size > limit:
                raise LimitExceeded("string_bytes", limit)
            await job.proc.budget.breathe()
        return b"".join(parts)
    finally:
        await job.proc.close(reader)


async def _files(job: _Diff, a: str, b: str, left: Stat | None, right: Stat | None, *, header: bool) -> None:
    proc, o = job.proc, job.o
    try:
        word = a
        data_a = await _content(job, a, left)
        word = b
        data_b = data_a if a == b == "-" else await _content(job, b, right)
    except OSError as error:
        job.trouble(f"{shown(word)}: {reason(error)}")
        return
    if data_a == data_b:
        if o.identical:
            await proc.emit(encode(f"Files {a} and {b} are identical\n"))
        if (job.format == "side-by-side" or job.formats is not None) and not o.brief and not header:
            found: list[Change] = []
        else:
            return
    binary = not o.text and (b"\0" in data_a[:32768] or b"\0" in data_b[:32768])
    if data_a != data_b and binary:
        # Two binary files that differ are trouble only for scripts that wanted the lines.
        if o.brief:
            await proc.emit(encode(f"Files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
            job.status = max(job.status, 1)
        else:
            await proc.emit(encode(f"Binary files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
            job.status = max(job.status, 1)
        return
    first, second = _side(job, a, left, data_a, 0), _side(job, b, right, data_b, 1)
    if len(first.lines) + len(second.lines) < _MANY:
        found = _compare(job, first, second)
    else:
        # Beside the event loop, which keeps its turns while the thread computes.
        found = await asyncio.to_thread(_compare, job, first, second)
    if not found:
        if o.identical and data_a != data_b:
            await proc.emit(encode(f"Files {a} and {b} are identical\n"))
        if (job.format != "side-by-side" and job.formats is None) or o.brief:
            return
    else:
        job.status = max(job.status, 1)
    if o.brief:
        await proc.emit(encode(f"Files {_shown_name(job, a, 0)} and {_shown_name(job, b, 1)} differ\n"))
        return
    if header and found:
        await proc.emit(encode(f"{job.command} {shown(a)} {shown(b)}\n"))
    if o.ifdef is not None:
        pieces = output.ifdef(first, second, found, o.ifdef)
    elif job.formats is not None:
        pieces = job.formats.merged(first, second, found)
    else:
        pieces = output.FORMATS[job.format](first, second, found, job.style)
    batch: list[bytes] = []
    for piece in pieces:
        batch.append(piece)
        if len(batch) >= 2000:
            await proc.emit(b"".join(batch))
            batch.clear()
            await proc.budget.breathe()
    await proc.emit(b"".join(batch))
    if job.format in ("ed", "forward-ed") and found:
        for side in (first, second):
            if not side.ended:
                job.proc.complain(f"{shown(side.name)}: No newline at end of file\n")
                job.status = 2


def _side(job: _Diff, word: str, stat: Stat | None, data: bytes, index: int) -> output.Side:
    lines = data.split(b"\n")
    ended = not lines[-1]
    if ended:
        lines.pop()
    if job.o.strip_cr:
        lines = [line.removesuffix(b"\r") for line in lines]
    if index < len(job.o.labels):
        label = encode(job.o.labels[index])
    else:
        moment = (
            stat.mtime_ns
            if stat is not None and stat.mtime_ns is not None
            else 0
            if stat is None
            else int(job.proc.now() * 10**9)
        )
        pattern = "%Y-%m-%d %H:%M:%S.%N %z"
        if job.format == "context" and job.proc.env.get("LC_ALL") == "C":
            pattern = "%a %b %e %T %Y"
        label = encode(f"{_label_name(word)}\t{strftime(pattern, *at(moment, zone_of(job.proc)))}")
    return output.Side(word, label, lines, ended or not data)


def _shown_name(job: _Diff, word: str, index: int) -> str:
    return job.o.labels[index] if index < len(job.o.labels) else word


def _label_name(word: str) -> str:
    if any(c in word for c in ' "\\\n\t') and not all(ord(c) >= 32 and c not in '"\\' for c in word):
        return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
    return word


def _compare(job: _Diff, a: output.Side, b: output.Side) -> list[Change]:
    key = job.key
    xs: list[bytes] = a.lines if key is None else [key(line) for line in a.lines]
    ys: list[bytes] = b.lines if key is None else [key(line) for line in b.lines]
    blind = job.o.all_space or job.o.space_change or job.o.trailing
    if a.ended != b.ended and not blind and a.lines and b.lines:
        # A last line without its newline differs from the same line with one.
        if not a.ended:
            xs = [*xs[:-1], xs[-1] + b"\n"]
        else:
            ys = [*ys[:-1], ys[-1] + b"\n"]

    def check() -> None:
        job.proc.budget.check()

    found = changes(xs, ys, minimal=job.o.minimal, check=check)
    if job.ignored is not None:
        test = job.ignored
        kept = [c for c in found if not test(a.lines[c.a : c.b] + b.lines[c.c : c.d])]
        if not kept:
            return []
        if job.format in ("unified", "context"):
            # Ignored changes still show where a hunk holds real ones.
            groups = [g for g in output._hunks(found, job.style.context) if any(c in kept for c in g)]
            return [c for g in groups for c in g]
        return kept
    return found


# -------------------------------------------------------------------------------------------------------- sdiff


@dataclass(frozen=True, slots=True)
class SdiffOptions:
    width: str = value("-w", "--width", metavar="NUM", default="130", help="output at most NUM print columns")
    left_column: bool = flag("-l", "--left-column", help="output only the left column of common lines")
    suppress: bool = flag("-s", "--suppress-common-lines", help="do not output common lines")
    ignore_case: bool = flag("-i", "--ignore-case", help="consider upper- and lower-case to be the same")
    all_space: bool = flag("-W", "--ignore-all-space", help="ignore all white space")
    space_change: bool = flag("-b", "--ignore-space-change", help="ignore changes in the amount of white space")
    blank_lines: bool = flag("-B", "--ignore-blank-lines", help="ignore changes whose lines are all blank")
    text: bool = flag("-a", "--text", help="treat all files as text")
    minimal: bool = flag("-d", "--minimal", help="try hard to find a smaller set of changes")


async def sdiff(proc: Proc, o: SdiffOptions, operands: list[str]) -> int:
    options = DiffOptions(
        format="side-by-side",
        width=o.width,
        left_column=o.left_column,
        suppress_common=o.suppress,
        ignore_case=o.ignore_case,
        all_space=o.all_space,
        space_change=o.space_change,
        blank_lines=o.blank_lines,
        text=o.text,
        minimal=o.minimal,
    )
    return await diff(proc, options, operands)


COMMANDS = [
    Command(
        "diff",
        diff,
        DiffOptions,
        summary="Compare FILES line by line.",
        usage="[OPTION]... FILES",
        bad_usage=2,
        rewrite=_old_diff,
        refused={"-l --paginate": "there is no printer; pipe into pr"},
        examples=[
            ("diff -u OLD NEW", "unified, as patch reads it"),
            ("diff -rq A B", "which files of two trees differ"),
        ],
    ),
    Command(
        "sdiff",
        sdiff,
        SdiffOptions,
        summary="Side-by-side comparison of differences between files.",
        usage="[OPTION]... FILE1 FILE2",
        bad_usage=2,
        min_operands=2,
        refused={"-o= --output=": "interactive merging needs a terminal"},
    ),
]
