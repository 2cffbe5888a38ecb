"""grep, egrep and fgrep: options, patterns and files; `grep_lines` works on the lines."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ramet import patterns
from ramet.commands.framework.command import Command, UsageError, choose, flag, mixed, optional, ordered, several, value
from ramet.commands.framework.inputs import PART, is_utf8, leave, slurp, wants_color
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.search.grep_lines import Colours, LineSearch, Plan, Shared
from ramet.commands.search.grep_tree import TreeWalk
from ramet.commands.search.pushdown import sieve
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import HUGE
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import BLOCK, FileStream, Reader
from ramet.patterns import Dialect, Lines, Matcher, MatchTimeout, PatternError
from ramet.patterns.count import find
from ramet.patterns.errors import CLASS_SYNTAX
from ramet.text.pattern.matcher import compile_pattern

_MATCHERS = {"grep": "G", "egrep": "E", "fgrep": "F", "perl": "P", "awk": "A", "gawk": "A", "posixawk": "A"}


def _context(text: str) -> int:
    if not re.fullmatch(r"[ \t\n\v\f\r]*\+?[0-9]+", text):
        raise UsageError(f"{text}: invalid context length argument", hint=False)
    return int(text)


def _limit(text: str) -> int:
    if not re.fullmatch(r"[ \t\n\v\f\r]*[+-]?[0-9]+", text):
        raise UsageError("invalid max count", hint=False)
    return int(text)


def _devices(text: str) -> str:
    if text not in ("read", "skip"):
        raise UsageError("unknown devices method", hint=False)
    return text


def _directories(text: str) -> str:
    found = [word for word in ("read", "recurse", "skip") if text and word.startswith(text)]
    if text not in found and len(found) != 1:
        what = "ambiguous" if found else "invalid"
        listed = "\n  - ‘read’\n  - ‘recurse’\n  - ‘skip’"
        raise UsageError(f"{what} argument ‘{text}’ for ‘--directories’\nValid arguments are:{listed}", 1)
    return found[0]


def _matcher(text: str) -> str:
    if text not in _MATCHERS:
        raise UsageError(f"invalid matcher {text}", hint=False)
    return _MATCHERS[text]


def _binary_type(text: str) -> str:
    if text not in ("binary", "text", "without-match"):
        raise UsageError("unknown binary-files type", hint=False)
    return text


@dataclass(frozen=True, slots=True)
class GrepOptions:
    syntax: str = mixed(
        choose(
            {
                "-E --extended-regexp": "E",
                "-F --fixed-strings": "F",
                "-G --basic-regexp": "G",
                "-P --perl-regexp": "P",
            },
            help={
                "-E --extended-regexp": "PATTERNS are extended regular expressions",
                "-F --fixed-strings": "PATTERNS are strings",
                "-G --basic-regexp": "PATTERNS are basic regular expressions",
                "-P --perl-regexp": "PATTERNS are Perl regular expressions",
            },
        ),
        value("-X", metavar="MATCHER", convert=_matcher, help="grep, egrep, fgrep, perl, awk, gawk or posixawk"),
        default="",
    )
    patterns: tuple[str, ...] = several("-e", "--regexp", metavar="PATTERNS", help="use PATTERNS for matching")
    pattern_files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="take PATTERNS from FILE")
    icase: bool = choose(
        {"-i -y --ignore-case": True, "--no-ignore-case": False},
        default=False,
        help={
            "-i -y --ignore-case": "ignore case distinctions in patterns and data",
            "--no-ignore-case": "do not ignore case distinctions (default)",
        },
    )
    words: bool = flag("-w", "--word-regexp", help="match only whole words")
    whole_line: bool = flag("-x", "--line-regexp", help="match only whole lines")
    null_data: bool = flag("-z", "--null-data", help="a data line ends in 0 byte, not newline")
    no_messages: bool = flag("-s", "--no-messages", help="suppress error messages")
    invert: bool = flag("-v", "--invert-match", help="select non-matching lines")
    max_count: int | None = value(
        "-m", "--max-count", metavar="NUM", convert=_limit, help="stop after NUM selected lines"
    )
    byte_offset: bool = flag("-b", "--byte-offset", help="print the byte offset with output lines")
    unix_offsets: bool = flag("-u", "--unix-byte-offsets", help="obsolete; has no effect but a warning")
    line_number: bool = flag("-n", "--line-number", help="print line number with output lines")
    line_buffered: bool = flag("--line-buffered", help="flush output on every line")
    with_name: bool | None = choose(
        {"-H --with-filename": True, "-h --no-filename": False},
        help={
            "-H --with-filename": "print file name with output lines",
            "-h --no-filename": "suppress the file name prefix on output",
        },
    )
    label: str = value("--label", default="(standard input)", help="use LABEL as the standard input file name prefix")
    only_matching: bool = flag("-o", "--only-matching", help="show only nonempty parts of lines that match")
    quiet: bool = flag("-q", "--quiet", "--silent", help="suppress all normal output")
    binary: str = mixed(
        value("--binary-files", metavar="TYPE", convert=_binary_type, help="binary, text or without-match"),
        flag("-a", "--text", const="text", help="equivalent to --binary-files=text"),
        flag("-I", const="without-match", help="equivalent to --binary-files=without-match"),
        default="binary",
    )
    directories: str = mixed(
        value("-d", "--directories", metavar="ACTION", convert=_directories, help="read, recurse or skip"),
        flag("-r", "--recursive", const="recurse", help="like --directories=recurse"),
        flag("-R", "--dereference-recursive", const="dereference", help="likewise, but follow all symlinks"),
        default="read",
    )
    devices: str = value(
        "-D", "--devices", metavar="ACTION", default="read", convert=_devices, help="read or skip devices and pipes"
    )
    include: tuple[str, ...] = several("--include", metavar="GLOB", help="search only files that match GLOB")
    exclude: tuple[str, ...] = several("--exclude", metavar="GLOB", help="skip files that match GLOB")
    exclude_from: tuple[str, ...] = several("--exclude-from", metavar="FILE", help="skip files by patterns from FILE")
    exclude_dir: tuple[str, ...] = several("--exclude-dir", metavar="GLOB", help="skip directories that match GLOB")
    list_files: str = choose(
        {"-L --files-without-match": "without", "-l --files-with-matches": "with"},
        default="",
        help={
            "-L --files-without-match": "print only names of FILEs with no selected lines",
            "-l --files-with-matches": "print only names of FILEs with selected lines",
        },
    )
    count: bool = flag("-c", "--count", help="print only a count of selected lines per FILE")
    initial_tab: bool = flag("-T", "--initial-tab", help="make tabs line up (if needed)")
    null_name: bool = flag("-Z", "--null", help="print 0 byte after FILE name")
    before: int | None = value("-B", "--before-context", metavar="NUM", convert=_context, help="leading context")
    after: int | None = value("-A", "--after-context", metavar="NUM", convert=_context, help="trailing context")
    context: int | None = value(
        "-C", "--context", metavar="NUM", convert=_context, digits=True, help="print NUM lines of output context"
    )
    separator: str | None = mixed(
        value("--group-separator", metavar="SEP", help="print SEP on line between matches with context"),
        flag("--no-group-separator", const=None, help="do not print separator for matches with context"),
        default="--",
    )
    colour: str = optional(
        "--color",
        "--colour",
        metavar="WHEN",
        const="auto",
        default="",
        choices=("always", "never", "auto", "yes", "no", "force", "none", "tty", "if-tty"),
        help="use markers to highlight the matching strings",
    )
    order: tuple[tuple[str, object], ...] = ordered()


_READ = 96 * 1024
"""Bytes per read of a pipe in GNU grep."""
_LARGEST_FILE = (1 << 63) - 1
_DIALECTS: dict[str, Dialect | str] = {
    "E": patterns.GREP_EXTENDED,
    "G": patterns.GREP_BASIC,
    "F": patterns.FIXED,
    "P": patterns.PERL,
    "A": patterns.AWK,
}


async def grep(proc: Proc, o: GrepOptions, operands: list[str], default: str = "G") -> int:
    for name, _ in o.order if o.unix_offsets else ():
        if name == "unix_offsets":
            proc.complain("warning: --unix-byte-offsets (-u) is obsolete")
    kinds = {stored for name, stored in o.order if name == "syntax"}
    if len(kinds) > 1:
        raise UsageError("conflicting matchers specified", hint=False)
    operands = list(operands)
    found = await _patterns(proc, o, operands)
    wanted = list(found)
    nothing = wanted == [b""] and not (o.words or o.whole_line) if o.invert else not wanted
    if (o.max_count == 0 or nothing) and o.list_files != "without":
        return 1
    try:
        make = partial(_matchers, o, wanted, o.syntax or default, is_utf8(proc), proc.budget.limits.regex_seconds)
        made = await offload_long(proc, wanted, make)
    except PatternError as error:
        wrong = await offload_long(proc, wanted, partial(_wrong, found, o, o.syntax or default))
        for message in wrong or (str(error),):
            proc.complain(message)
        return 2
    plan = _plan(proc, o, made, o.syntax or default)
    if o.max_count == 0:
        plan = replace(plan, select=None, pieces=None, invert=False)
    run = _GrepRun(proc, o, plan, wanted, many=len(operands) > 1)
    try:
        await run.all(operands)
    except MatchTimeout as error:
        where = "(standard input)" if _hopeless(plan.select) else run.name
        proc.complain(f"{where}: {error}" if where else str(error))
        return 2
    if run.failed and not (o.quiet and run.selected):
        return 2
    return 0 if run.selected else 1


def _hopeless(matcher: Matcher | None) -> bool:
    """Return whether a pattern times out on an empty text, which GNU tries first."""
    try:
        if matcher is not None:
            matcher.test(b"")
    except MatchTimeout:
        return True
    return False


async def _patterns(proc: Proc, o: GrepOptions, operands: list[str]) -> dict[bytes, str]:
    """Return all patterns with their file and line; the first operand without -e and -f."""
    if not o.patterns and not o.pattern_files:
        if not operands:
            raise UsageError("", 2)
        return dict.fromkeys(encode(operands.pop(0)).split(b"\n"), "")
    wanted: dict[bytes, str] = {}
    for name, stored in o.order:
        if name == "patterns":
            for pattern in encode(str(stored)).split(b"\n"):
                wanted.setdefault(pattern, "")
        elif name == "pattern_files":
            data = await _listed(proc, str(stored))
            await offload_long(proc, (data,), partial(_add_lines, wanted, data, str(stored)))
    return wanted


async def _listed(proc: Proc, name: str) -> bytes:
    """Read a file named by an option; failing is a usage error."""
    try:
        return await slurp(proc, name)
    except OSError as error:
        raise UsageError(f"{name}: {reason(error)}", 2, hint=False) from None


def _add_lines(wanted: dict[bytes, str], data: bytes, name: str) -> None:
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, pattern in enumerate(lines, 1):
        wanted.setdefault(pattern, f"{name}:{number}: ")


def _wrong(found: dict[bytes, str], o: GrepOptions, syntax: str) -> list[str]:
    """Return the errors of the patterns, with file and line."""
    messages: list[str] = []
    for pattern, place in found.items() if syntax in "EG" else ():
        try:
            patterns.compile(pattern, _DIALECTS[syntax], icase=o.icase)
        except PatternError as error:
            messages.append(str(error) if str(error) == CLASS_SYNTAX else place + str(error))
    return messages


_ODD_REPEAT = re.compile(rb"[\^$`'|(][*+?{]|^[*+?{]")
"""A repetition after an anchor, or after nothing."""
_LONE_BRACE = re.compile(rb"(?:^|[|(^$]|\\[bB<>`'])\{(?!\d*,?\d*\})")
"""A literal brace in a place where only the automaton of GNU accepts it."""
_LIBRARY_ONLY = re.compile(rb"\\[1-9]|\[[=.]")
_LIBRARY_ONLY_WIDE = re.compile(rb"\\[1-9<>bBwWsS]|\[(?!:digit:)[\^:=.]|\[[^]]+-[^]]")
"""Constructs that GNU's automaton leaves to the regex library: back-references, multibyte constructs."""
_Matchers = tuple[Matcher, Matcher] | tuple[None, None]


def _matchers(o: GrepOptions, wanted: list[bytes], syntax: str, utf8: bool, seconds: float) -> _Matchers:
    """Compile the matchers for lines and for the matching parts of a line."""
    if syntax == "P" and len(wanted) > 1:
        raise PatternError("the -P option only supports a single pattern")
    if not wanted:
        return None, None
    lines = Lines.TEXT if o.null_data else Lines.BLOCK
    whole = "line" if o.whole_line else "word" if o.words else ""
    compile_any = partial(patterns.compile_any, wanted, icase=o.icase, lines=lines, utf8=utf8, seconds=seconds)
    library_only = (_LIBRARY_ONLY_WIDE if utf8 else _LIBRARY_ONLY).search
    select = pieces = compile_any(_DIALECTS[syntax], whole=whole)
    lone = syntax == "E" and any(map(_LONE_BRACE.search, wanted))
    if whole == "word" and syntax != "P":
        pieces = compile_any(_DIALECTS[syntax])
        select = compile_any(patterns.GREP_SELECTING, whole=whole) if lone else select
    elif syntax == "E" and (lone or (any(map(_ODD_REPEAT.search, wanted)) and not any(map(library_only, wanted)))):
        select = compile_any(patterns.GREP_SELECTING, whole=whole)
    if len(wanted) > 1:
        select.bulk(b"")
    return select, pieces


def _plan(proc: Proc, o: GrepOptions, made: _Matchers, syntax: str) -> Plan:
    select, pieces = made
    for warning in select.warnings if select is not None else ():
        proc.complain(f"warning: {warning}")
    context = -1 if o.context is None else o.context
    return Plan(
        select=select,
        pieces=pieces,
        words=o.words and syntax != "P",
        whole_line=o.whole_line,
        invert=o.invert,
        delim=b"\0" if o.null_data else b"\n",
        count=o.count and not (o.quiet or o.list_files),
        stop_early=o.quiet or bool(o.list_files),
        max_count=None if o.max_count is None or o.max_count < 0 else o.max_count,
        only_matching=o.only_matching,
        line_number=o.line_number,
        byte_offset=o.byte_offset,
        initial_tab=o.initial_tab,
        null_name=o.null_name,
        before=context if o.before is None else o.before,
        after=context if o.after is None else o.after,
        separator=None if o.separator is None else encode(o.separator),
        colours=_chosen_colours(proc) if wants_color(proc, o.colour) else None,
        binary=o.binary,
        utf8=is_utf8(proc),
    )


_CAPABILITIES = {
    "ms": "selected_match",
    "mc": "context_match",
    "sl": "selected_line",
    "cx": "context_line",
    "fn": "file",
    "ln": "line",
    "bn": "byte",
    "se": "separator",
}


def _chosen_colours(proc: Proc) -> Colours:
    old = proc.env.get("GREP_COLOR", "")
    setting = proc.env.get("GREP_COLORS", "")
    if old:
        proc.complain(f"warning: GREP_COLOR='{old}' is deprecated; use GREP_COLORS='mt={old}'")
        setting = f"mt={old}:{setting}"
    return _colours(setting)


def _colours(setting: str) -> Colours:
    """Parse GREP_COLORS; parsing stops at the first error, as in GNU."""
    changes: dict[str, str] = {}
    no_erase = swap = False
    for part in setting.split(":") if setting else ():
        name, equals, sgr = part.partition("=")
        if equals and not re.fullmatch(r"[0-9;]*", sgr):
            break
        if name == "mt" and equals:
            changes["selected_match"] = changes["context_match"] = sgr
        elif name in _CAPABILITIES and equals:
            changes[_CAPABILITIES[name]] = sgr
        elif name == "ne" and not equals:
            no_erase = True
        elif name == "rv" and not equals:
            swap = True
    return Colours(no_erase=no_erase, swap=swap, **changes)


_SPECIAL = frozenset((Kind.DEVICE, Kind.FIFO, Kind.SOCKET))


@dataclass
class _Globs:
    """--include and --exclude in order: the last matching glob wins."""

    rules: list[tuple[bool, Callable[[str], bool]]] = field(default_factory=list)

    def add(self, glob: str, include: bool) -> None:
        self.rules.append((include, compile_pattern(glob).matches))

    def skips(self, names: Sequence[str]) -> bool:
        if not self.rules:
            return False
        for include, match in reversed(self.rules):
            if any(match(name) for name in names):
                return not include
        return self.rules[0][0]

    def by_name(self) -> Callable[[str], bool] | None:
        """Return a test that skips bare names; None if all are searched."""
        return (lambda name: self.skips((name,))) if self.rules else None


def _suffixes(word: str) -> list[str]:
    """Return a name and all its suffixes after a slash, which the globs match."""
    word = word.rstrip("/") or "/"
    parts = word.split("/")
    return ["/".join(parts[index:]) for index in range(len(parts)) if parts[index]] or [word]


class _GrepRun:
    """One grep over its files."""

    def __init__(self, proc: Proc, o: GrepOptions, plan: Plan, wanted: list[bytes], many: bool) -> None:
        self.proc, self.o, self.plan, self.wanted = proc, o, plan, wanted
        self.recursive = o.directories in ("recurse", "dereference")
        self.show_name = o.with_name if o.with_name is not None else many
        self.shared = Shared()
        self.selected = False
        self.failed = False
        self.name = ""
        """Name of the current input."""
        self.files, self.dirs = _Globs(), _Globs()

    async def all(self, operands: list[str]) -> None:
        for name, stored in self.o.order:
            if name in ("include", "exclude"):
                self.files.add(str(stored), name == "include")
            elif name == "exclude_from":
                for line in (await _listed(self.proc, str(stored))).decode("utf-8", "surrogateescape").split("\n"):
                    if glob := line.rstrip(" \t\v\f\r"):
                        self.files.add(glob, False)
            elif name == "exclude_dir":
                self.dirs.add(str(stored).rstrip("/") or "/", False)
        if not operands and self.recursive:
            await self.tree(self.proc.cwd, "")
            return
        for word in operands or ["-"]:
            if self.o.quiet and self.selected:
                return
            await self.operand(word)

    async def operand(self, word: str) -> None:
        proc = self.proc
        if word == "-":
            try:
                await self.stream(proc.stdin, self.o.label)
            except OSError as error:
                self.fail(self.o.label, error)
            return
        try:
            if self.recursive and proc.descriptor(word) is None:
                stat = await proc.fs.stat(proc.path(word), follow=True)
                if stat.kind is Kind.DIR:
                    if not self.dirs.skips([word] if word.endswith("/") else _suffixes(word)):
                        await self.tree(proc.path(word), word if word.endswith("/") else word + "/")
                    return
            if (self.files.rules or self.dirs.rules) and await self.is_excluded(word):
                return
            if self.o.devices == "skip" and (await proc.fs.stat(proc.path(word))).kind in _SPECIAL:
                return
            reader = await proc.open(word, dash=False)
        except OSError as error:
            self.fail(word, error)
            if error.errno == errno.EISDIR and self.o.directories == "read":
                # A directory counts as an empty file.
                self.report(self.search(word), word)
            return
        try:
            await self.stream(reader, word)
        except OSError as error:
            self.fail(word, error)
        finally:
            await proc.close(reader)

    async def is_excluded(self, word: str) -> bool:
        """Return whether the globs exclude an operand; a missing file is never excluded, so that it is reported."""
        try:
            stat = await self.proc.fs.stat(self.proc.path(word))
        except OSError:
            return False
        return (self.dirs if stat.kind is Kind.DIR else self.files).skips(_suffixes(word))

    def fail(self, word: str, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise error
        if error.errno == errno.EISDIR and self.o.directories == "skip":
            return
        self.failed = True
        if not self.o.no_messages:
            self.proc.complain(f"{word}: {reason(error)}")

    async def tree(self, top: Path, prefix: str) -> None:
        if self.o.with_name is None:
            self.show_name = True
        rejects, fs, out, budget = self.rejects(), self.proc.fs, self.proc.stdout, self.proc.budget
        passes = None
        if rejects is not None:
            passes = await sieve(self.proc, self.wanted, self.text_of_pattern, self.o.icase, top)
        async for batch in self.walk().batches(top, prefix):
            await budget.yield_turn()
            directory, names = batch.directory, batch.names
            if passes is not None:
                names = [name for name in names if passes(directory / name)]
            contents = await ops.small_files(fs, directory, names)
            left: Iterable[tuple[str, bytes | None]] = zip(names, contents, strict=True)
            if rejects is not None:
                left = [(name, data) for name, data in left if data is None or not rejects(data)]
            for bare, data in left:
                name = batch.shown(bare)
                if data is None:
                    try:
                        data = await ops.read_bytes(fs, directory / bare)
                    except OSError as error:
                        self.fail(name, error)
                        continue
                    await budget.yield_turn()
                    if rejects is not None and rejects(data):
                        continue
                search = self.search(name)
                if self.plan.initial_tab:
                    search.width = self.digits(len(data))
                if data:
                    search.feed(data)
                self.report(search, name)
                if out.full:
                    await out.drain()
                if self.o.quiet and self.selected:
                    return

    def walk(self) -> TreeWalk:
        follow = ("directories", "dereference") in self.o.order  # a later -r does not cancel -R
        return TreeWalk(self.proc, follow, self.files.by_name(), self.dirs.by_name(), self.fail)

    @property
    def text_of_pattern(self) -> bytes | None:
        """The literal text of the pattern, None for a real pattern."""
        pieces = self.plan.pieces
        return None if pieces is None else pieces.literal if pieces.literal is not None else pieces.folded

    def rejects(self) -> Callable[[bytes], bool] | None:
        """Return a cheap test for files without output; None if every file prints something."""
        plan = self.plan
        if plan.select is None or plan.invert or plan.count or self.o.list_files == "without" or plan.delim != b"\n":
            return None
        select, literal = plan.select, plan.select.literal
        if literal is not None:
            return lambda data: find(data, literal) < 0
        return lambda data: b"\0" not in data and select.bulk(data).search(data, 0) is None

    async def is_output(self, reader: Reader) -> bool:
        """Return whether the output file is the input, where more than one line may be printed."""
        o, out = self.o, self.proc.stdout
        if self.plan.quiet or o.max_count in (0, 1) or not isinstance(out, FileStream):
            return False
        if not isinstance(reader, FileStream):
            return False
        source, target = await reader.stat(), await out.stat()
        return source.kind is Kind.FILE and source.inode is not None and source.inode == target.inode

    def search(self, name: str) -> LineSearch:
        self.name = name
        return LineSearch(self.plan, self.shared, encode(name) if self.show_name else None)

    def digits(self, size: int | None) -> int:
        """Return the width of numbers for -T: that of the file size, if known."""
        return len(str(_LARGEST_FILE if size is None else size + self.plan.line_number))

    async def stream(self, reader: Reader, name: str) -> None:
        if await self.is_output(reader):
            self.failed = True
            if not self.o.no_messages:
                self.proc.complain(f"{name}: input file is also the output")
            return
        search = self.search(name)
        if self.plan.initial_tab:
            stat = await reader.stat() if isinstance(reader, FileStream) else None
            regular = stat is not None and stat.kind is Kind.FILE
            search.width = self.digits(stat.size if regular and stat is not None else None)
        out, budget = self.proc.stdout, self.proc.budget
        size = HUGE if self.plan.quiet else PART if self.plan.only_matching else BLOCK
        if self.plan.delim != b"\n":
            size = PART // 4  # records are matched one by one
        while not search.done:
            block = await reader.read(size)
            step = partial(search.feed_more, block) if block else search.finish
            if search.ends_large_line(block):
                await offload(budget, step)
            else:
                step()
            reader.hold(search.held)
            if search.out:
                out.write(b"".join(search.out))
                search.out.clear()
                if out.full:
                    await out.drain()
            if not block:
                break
            await budget.yield_turn()
        if search.unused and self.plan.max_count is not None and reader is self.proc.stdin:
            leave(reader, search.unused, _READ)
        self.report(search, name)

    def report(self, search: LineSearch, name: str) -> None:
        """Print the pending lines of an input, its count or its name."""
        write, plan = self.proc.stdout.write, self.plan
        if search.selected:
            self.selected = True
        if search.out:
            write(b"".join(search.out))
        if plan.count:
            head = search.name_head(b":")
            write(head + b"%d\n" % search.selected)
        if search.binary_hit and plan.binary != "without-match":
            self.proc.complain(f"{name}: binary file matches")
        if self.o.list_files and not self.o.quiet and bool(search.selected) == (self.o.list_files == "with"):
            raw = encode(name)
            if plan.colours:
                raw = plan.colours.paint(plan.colours.file, raw)
            write(raw + (b"\0" if plan.null_name else b"\n"))


async def egrep(proc: Proc, o: GrepOptions, operands: list[str]) -> int:
    return await grep(replace(proc, argv=["grep", *proc.argv[1:]]), o, operands, "E")


async def fgrep(proc: Proc, o: GrepOptions, operands: list[str]) -> int:
    return await grep(replace(proc, argv=["grep", *proc.argv[1:]]), o, operands, "F")


_CLUSTER = re.compile(r"-([EFGPiywxzsvbnHhoqaIrRLlcTZUu]+)(\d+)(.*)", re.DOTALL)


def _split_numbers(words: list[str]) -> list[str]:
    """Split `-c5` into `-c -5`: context numbers may follow short flags."""
    out: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            return out + words[index:]
        found = _CLUSTER.fullmatch(word)
        if found is None:
            out.append(word)
        else:
            out += [f"-{found[1]}", f"-{found[2]}{found[3]}"]
    return out


_USAGE = "[OPTION]... PATTERNS [FILE]..."
_DETAILS = """
    When FILE is '-', read standard input. With no FILE, read '.' if recursive, '-' otherwise. Exit status is 0 if any
    line is selected, 1 otherwise; if any error occurs and -q is not given, the exit status is 2.
"""
COMMANDS = [
    Command(
        "grep",
        grep,
        GrepOptions,
        summary="Search for PATTERNS in each FILE.",
        usage=_USAGE,
        details=_DETAILS,
        examples=(
            ("grep -rn TODO src", "every TODO with file and line"),
            ("grep -cE '^(GET|POST) ' log", "how many lines start with either word"),
            ("grep -oP '(?<=id=)\\d+' log", "only the numbers after id="),
        ),
        ignored=("-U --binary",),
        bad_usage=2,
        rewrite=_split_numbers,
        original="GNU grep 3.8",
        version_letters="V",
        usage_on_error="line",
        write_error=("write error: ", 2),
    ),
    Command(
        "egrep",
        egrep,
        GrepOptions,
        summary="Search for extended regular expressions (grep -E).",
        usage=_USAGE,
        ignored=("-U --binary",),
        bad_usage=2,
        rewrite=_split_numbers,
        original="GNU grep 3.8",
        version_letters="V",
        usage_on_error="line",
    ),
    Command(
        "fgrep",
        fgrep,
        GrepOptions,
        summary="Search for plain strings (grep -F).",
        usage=_USAGE,
        ignored=("-U --binary",),
        bad_usage=2,
        rewrite=_split_numbers,
        original="GNU grep 3.8",
        version_letters="V",
        usage_on_error="line",
    ),
]
