"""rg: recursive search that leaves out hidden, ignored and binary files, with the options people use."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from operator import itemgetter

from ramet import patterns
from ramet.commands.declare import Command, UsageError, choose, flag, mixed, ordered, several, value
from ramet.commands.declare import count as repeated
from ramet.commands.grep_lines import Colours, Plan, Search, Shared
from ramet.commands.ignore_files import Rule, glob_regex, ignored, parse
from ramet.commands.inputs import slurp
from ramet.commands.rg_json import Messages
from ramet.commands.sieving import Sieve, sieve
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import FileStream, PipeReader
from ramet.patterns import Lines, Matcher, MatchTimeout, PatternError

_TYPES = """
    bash: *.bash *.sh .bashrc .bash_profile
    c: *.c *.h *.cats
    cpp: *.cpp *.cc *.cxx *.hpp *.hh *.hxx *.h *.inl
    css: *.css *.scss
    csv: *.csv
    docker: *Dockerfile*
    go: *.go
    html: *.html *.htm *.ejs
    java: *.java *.jsp
    js: *.js *.jsx *.mjs *.cjs *.vue
    json: *.json *.sarif composer.lock
    log: *.log
    lua: *.lua
    make: Makefile makefile GNUmakefile *.mk *.mak
    markdown: *.md *.markdown *.mdown *.mkdn
    md: *.md *.markdown *.mdown *.mkdn
    php: *.php *.php3 *.php4 *.php5 *.phtml
    py: *.py *.pyi
    python: *.py *.pyi
    ruby: *.rb *.ru *.gemspec Gemfile Rakefile
    rust: *.rs
    sh: *.sh *.bash *.zsh *.ksh
    sql: *.sql *.psql
    swift: *.swift
    toml: *.toml Cargo.lock
    ts: *.ts *.tsx *.cts *.mts
    txt: *.txt
    typescript: *.ts *.tsx *.cts *.mts
    xml: *.xml *.xsd *.xsl *.svg
    yaml: *.yaml *.yml
"""
TYPES = dict(line.strip().split(": ") for line in _TYPES.strip().splitlines())


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"error parsing flag: value is not a valid number: {text}", 2, hint=False)
    return int(text)


@dataclass(frozen=True, slots=True)
class RgOptions:
    patterns: tuple[str, ...] = several("-e", "--regexp", metavar="PATTERN", help="a pattern to search for")
    pattern_files: tuple[str, ...] = several("-f", "--file", metavar="FILE", help="patterns from a file")
    case: str = choose(
        {"-i --ignore-case": "i", "-S --smart-case": "S", "-s --case-sensitive": "s"}, default="s", help="case rules"
    )
    fixed: bool = flag("-F", "--fixed-strings", help="treat patterns as literal strings")
    words: bool = flag("-w", "--word-regexp", help="match only whole words")
    whole_line: bool = flag("-x", "--line-regexp", help="match only whole lines")
    invert: bool = flag("-v", "--invert-match", help="select lines that do not match")
    line_number: bool | None = choose({"-n --line-number": True, "-N --no-line-number": False}, help="line numbers")
    column: bool = flag("--column", help="show column numbers")
    vimgrep: bool = flag("--vimgrep", help="one line per match: file, line, column")
    with_name: bool | None = choose({"-H --with-filename": True, "-I --no-filename": False}, help="file names")
    files_with: str = choose(
        {"-l --files-with-matches": "with", "--files-without-match": "without"},
        default="",
        help="print only the names of files with, or without, a match",
    )
    count: bool = flag("-c", "--count", help="how many lines match in each file")
    count_matches: bool = flag("--count-matches", help="how many matches each file has")
    only_matching: bool = flag("-o", "--only-matching", help="print only the matched parts")
    replace: str | None = value("-r", "--replace", metavar="TEXT", help="replace every match in the output")
    quiet: bool = flag("-q", "--quiet", help="print nothing")
    max_count: int | None = value("-m", "--max-count", metavar="NUM", convert=_number, help="matching lines per file")
    after: int | None = value("-A", "--after-context", metavar="NUM", convert=_number, help="lines after")
    before: int | None = value("-B", "--before-context", metavar="NUM", convert=_number, help="lines before")
    context: int | None = value("-C", "--context", metavar="NUM", convert=_number, help="lines before and after")
    separator: str | None = mixed(
        value("--context-separator", metavar="SEP", help="between groups of lines"),
        flag("--no-context-separator", const=None, help="nothing between groups"),
        default="--",
    )
    globs: tuple[str, ...] = several("-g", "--glob", metavar="GLOB", help="only these files; ! leaves out")
    iglobs: tuple[str, ...] = several("--iglob", metavar="GLOB", help="the same, ignoring case")
    types: tuple[str, ...] = several("-t", "--type", metavar="TYPE", help="only files of this type")
    types_not: tuple[str, ...] = several("-T", "--type-not", metavar="TYPE", help="no files of this type")
    type_list: bool = flag("--type-list", help="show the known types")
    json: bool = flag("--json", help="print the results as JSON, one message per line")
    hidden: bool = flag("-.", "--hidden", help="search hidden files and directories")
    no_ignore: bool = flag("--no-ignore", "--no-ignore-vcs", help="do not respect ignore files")
    unrestricted: int = repeated("-u", "--unrestricted", help="less filtering; up to three times")
    text: bool = flag("-a", "--text", help="search binary files as if they were text")
    follow: bool = flag("-L", "--follow", help="follow symbolic links")
    max_depth: int | None = value(
        "-d", "--max-depth", "--maxdepth", metavar="NUM", convert=_number, help="levels to go"
    )
    list_files: bool = flag("--files", help="print the files that would be searched")
    null_name: bool = flag("-0", "--null", help="a NUL byte after file names")
    heading: bool = choose(
        {"--heading": True, "--no-heading": False}, default=False, help="file names on their own line"
    )
    pretty: bool = flag("-p", "--pretty", help="colours, headings and line numbers")
    colour: str = value(
        "--color",
        metavar="WHEN",
        default="auto",
        choices=("always", "never", "auto", "ansi"),
        help="when to colour the output",
    )
    trim: bool = flag("--trim", help="remove leading white space from lines")
    no_messages: bool = flag("--no-messages", help="no messages about files that cannot be read")
    pcre: bool = flag("-P", "--pcre2", help="accepted: look-around and back-references always work")
    order: tuple[tuple[str, object], ...] = ordered()


async def rg(proc: Proc, o: RgOptions, operands: list[str]) -> int:
    operands = list(operands)
    if o.type_list:
        listed = "".join(f"{name}: {', '.join(globs.split())}\n" for name, globs in sorted(TYPES.items()))
        await proc.emit(listed.encode())
        return 0
    try:
        wanted = [] if o.list_files else await _patterns(proc, o, operands)
        run = _Run(proc, o, wanted, operands)
        status = await run.all()
        if run.messages is not None:
            await proc.emit(run.messages.summary())
        return status
    except PatternError as error:
        proc.complain(f"regex parse error: {error}")
        return 2
    except MatchTimeout as error:
        proc.complain(str(error))
        return 2


async def _patterns(proc: Proc, o: RgOptions, operands: list[str]) -> list[bytes]:
    wanted = [encode(pattern) for pattern in o.patterns]
    for name in o.pattern_files:
        try:
            lines = (await slurp(proc, name)).split(b"\n")
        except OSError as error:
            raise UsageError(f"{name}: {reason(error)}", 2, hint=False) from None
        wanted += lines[:-1] if not lines[-1] else lines
    if not o.patterns and not o.pattern_files:
        if not operands:
            raise UsageError("the following required arguments were not provided: <PATTERN>", 2, hint=False)
        wanted.append(encode(operands.pop(0)))
    return wanted


class _Run:
    def __init__(self, proc: Proc, o: RgOptions, wanted: list[bytes], operands: list[str]) -> None:
        self.proc, self.o, self.operands, self.wanted = proc, o, operands, wanted
        self.icase = o.case == "i" or (o.case == "S" and not any(_has_upper(pattern) for pattern in wanted))
        self.hidden = o.hidden or o.unrestricted >= 2
        self.no_ignore = o.no_ignore or o.unrestricted >= 1
        self.matcher = self.compiled(wanted) if wanted else None
        self.plan = self.planned()
        self.messages = Messages(self.matcher) if o.json and self.matcher is not None else None
        self.shared = Shared()
        self.selected = self.failed = False
        self.show_name = False
        self.globs = [
            self.glob(str(stored), name == "iglobs") for name, stored in o.order if name in ("globs", "iglobs")
        ]
        self.types = [_type_globs(name) for name in o.types]
        self.types_not = [_type_globs(name) for name in o.types_not]

    def compiled(self, wanted: list[bytes]) -> Matcher:
        dialect = patterns.FIXED if self.o.fixed else patterns.RUST
        whole = "line" if self.o.whole_line else "word" if self.o.words else ""
        if self.o.fixed and whole:
            wanted, dialect = [_escaped(pattern) for pattern in wanted], patterns.RUST
        seconds = self.proc.budget.limits.regex_seconds
        return patterns.compile_any(wanted, dialect, icase=self.icase, lines=Lines.BLOCK, seconds=seconds, whole=whole)

    def planned(self) -> Plan:
        o = self.o
        context = -1 if o.context is None else o.context
        coloured = o.colour in ("always", "ansi") or o.pretty
        return Plan(
            select=self.matcher,
            pieces=self.matcher,
            invert=o.invert,
            count=o.count and not (o.quiet or o.files_with),
            stop_early=o.quiet or bool(o.files_with),
            max_count=o.max_count,
            only_matching=o.only_matching,
            line_number=bool(o.line_number) or o.vimgrep or o.pretty or (o.column and o.line_number is None),
            null_name=o.null_name,
            before=context if o.before is None else o.before,
            after=context if o.after is None else o.after,
            separator=None if o.separator is None else encode(o.separator),
            colours=Colours(file="35", line="32", separator="", no_erase=True) if coloured else None,
            binary="text" if o.text or o.unrestricted >= 3 else "binary",
        )

    def glob(self, glob: str, icase: bool) -> tuple[bool, object]:
        wanted = not glob.startswith("!")
        pattern = glob if wanted else glob[1:]
        anchored = "/" in pattern.rstrip("/")
        text = pattern.removeprefix("/").rstrip("/")
        found = glob_regex(text.lower() if icase else text, not anchored)
        return wanted, ((lambda name: found.fullmatch(name.lower())) if icase else found.fullmatch)

    # ------------------------------------------------------------------ files

    async def all(self) -> int:
        o, proc = self.o, self.proc
        operands = self.operands
        standard = isinstance(proc.stdin, (PipeReader, FileStream)) and not o.list_files
        if not operands and standard:
            self.show_name = bool(o.with_name)
            await self.search("<stdin>", await proc.stdin.read_all(proc.budget.limits.string_bytes))
        else:
            self.show_name = True if o.with_name is None else o.with_name
            if o.with_name is None and len(operands) == 1 and not o.vimgrep:
                self.show_name = await self.is_directory(operands[0])
            for word in operands or ["."]:
                await self.operand(word, "" if not operands else None)
        if self.failed and not (o.quiet and self.selected):
            return 2
        return 0 if self.selected else 1

    async def is_directory(self, word: str) -> bool:
        try:
            return (await self.proc.fs.stat(self.proc.path(word), follow=True)).is_dir
        except OSError:
            return False

    async def operand(self, word: str, prefix: str | None) -> None:
        proc = self.proc
        if word == "-":
            await self.search("<stdin>", await proc.stdin.read_all())
            return
        try:
            path = proc.path(word)
            if (await proc.fs.stat(path, follow=True)).is_dir:
                shown = prefix if prefix is not None else word if word.endswith("/") else word + "/"
                passes = await self.sieve(path)
                async for file, name in self.walk(path, shown):
                    if self.o.quiet and self.selected:
                        return
                    if passes is not None and not passes(file):
                        continue
                    await self.file(file, name)
                return
            await self.file(path, word, named=True)
        except OSError as error:
            self.fail(word, error)

    async def sieve(self, top: Path) -> Sieve | None:
        o = self.o
        if self.matcher is None or o.invert or o.list_files or o.files_with == "without" or self.messages is not None:
            return None
        return await sieve(self.proc, self.wanted, self.matcher.literal, self.icase, top)

    def fail(self, word: str, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise error
        self.failed = True
        if not self.o.no_messages:
            self.proc.complain(f"{word}: {reason(error)} (os error {error.errno})")

    async def walk(self, top: Path, prefix: str) -> AsyncIterator[tuple[Path, str]]:
        """Files below a directory, in order, without what is hidden or ignored."""
        fs = self.proc.fs
        rules = [] if self.no_ignore else await self.parent_rules(top)
        pending: list[tuple[Path, str, int, list[Rule] | None]] = [(top, prefix, 1, rules)]
        while pending:
            place, shown, depth, known = pending.pop()
            if known is None:
                yield place, shown
                continue
            try:
                entries = sorted(await ops.kinds(fs, place), key=itemgetter(0))
            except OSError as error:
                self.fail(shown or ".", error)
                continue
            if not self.no_ignore:
                known = known + await self.rules_in(place, {name for name, _ in entries})
            below: list[tuple[Path, str, int, list[Rule] | None]] = []
            for name, stat in entries:
                path, kind = place / name, stat.kind
                if kind is Kind.LINK and self.o.follow:
                    try:
                        kind = (await fs.stat(path, follow=True)).kind
                    except OSError as error:
                        self.fail(shown + name, error)
                        continue
                if kind not in (Kind.FILE, Kind.DIR):
                    continue
                relative = str(path)[len(str(top)) :].lstrip("/")
                chosen = self.chosen(relative, name, kind is Kind.DIR)
                if chosen is False or (chosen is None and self.left_out(known, path, name, kind is Kind.DIR)):
                    continue
                if kind is Kind.DIR:
                    if self.o.max_depth is None or depth < self.o.max_depth:
                        below.append((path, f"{shown}{name}/", depth + 1, known))
                elif (chosen is not None or not any(wanted for wanted, _ in self.globs)) and self.typed(name):
                    below.append((path, shown + name, depth, None))
            pending.extend(reversed(below))

    def chosen(self, relative: str, name: str, directory: bool) -> bool | None:
        """What -g says of a path: the last glob that matches; directories are only ever left out by it."""
        for wanted, match in reversed(self.globs):
            if match(relative):  # type: ignore[operator]
                return None if directory and wanted else wanted
        return None

    def left_out(self, rules: list[Rule], path: Path, name: str, directory: bool) -> bool:
        if name.startswith(".") and not self.hidden:
            return True
        return bool(rules) and ignored(rules, str(path), directory)

    def typed(self, name: str) -> bool:
        if any(match.fullmatch(name) for globs in self.types_not for match in globs):
            return False
        return not self.types or any(match.fullmatch(name) for globs in self.types for match in globs)

    async def parent_rules(self, top: Path) -> list[Rule]:
        rules: list[Rule] = []
        chain: list[Path] = []
        current = top
        while current.name:
            current = current.parent
            chain.append(current)
        for directory in reversed(chain):
            rules += await self.rules_in(directory, None)
        return rules

    async def rules_in(self, directory: Path, names: set[str] | None) -> list[Rule]:
        rules: list[Rule] = []
        base = str(directory).rstrip("/") + "/"
        for name in (".gitignore", ".ignore", ".rgignore"):
            if names is not None and name not in names:
                continue
            if name == ".gitignore" and not await self.in_repository(directory):
                continue
            try:
                data = await ops.read_bytes(self.proc.fs, directory / name)
            except OSError:
                continue
            rules += parse(data.decode("utf-8", "surrogateescape"), base)
        return rules

    async def in_repository(self, directory: Path) -> bool:
        current = directory
        while True:
            if await ops.exists(self.proc.fs, current / ".git"):
                return True
            if not current.name:
                return False
            current = current.parent

    # ------------------------------------------------------------------ searching

    async def file(self, path: Path, name: str, named: bool = False) -> None:
        if self.o.list_files:
            self.selected = True
            await self.proc.emit(encode(name) + (b"\0" if self.o.null_name else b"\n"))
            return
        try:
            data = await ops.read_bytes(self.proc.fs, path)
        except OSError as error:
            self.fail(name, error)
            return
        if not named and self.plan.binary != "text" and b"\0" in data[:65536]:
            return
        await self.search(name, data)
        await self.proc.budget.breathe()

    async def search(self, name: str, data: bytes) -> None:
        o = self.o
        if self.messages is not None:
            out = self.messages.file(name, data, o.max_count)
            self.selected = self.selected or bool(out)
            await self.proc.emit(out)
            return
        if o.replace is not None or o.column or o.vimgrep or o.count_matches or o.trim:
            out = self.detailed(name, data)
        else:
            search = Search(self.plan, self.shared, encode(name) if self.show_name and not o.heading else None)
            if data:
                search.feed(data)
            if not o.files_with:
                self.selected = self.selected or bool(search.selected)
            out = b"".join(search.out)
            if search.binary_hit:
                out += encode(f"{name}: binary file matches\n" if self.show_name else "binary file matches\n")
            if self.plan.count and search.selected:
                out += search.name_head(b":") + b"%d\n" % search.selected
            if o.files_with and bool(search.selected) == (o.files_with == "with"):
                out += b"" if o.quiet else encode(name) + (b"\0" if o.null_name else b"\n")
                self.selected = True
        if out:
            if (o.heading or o.pretty) and self.show_name and not o.files_with:
                out = (b"\n" if self.shared.used else b"") + encode(name) + b"\n" + out
                self.shared.used = True
            await self.proc.emit(out)

    def detailed(self, name: str, data: bytes) -> bytes:
        """Output that looks at each match: columns, replacements, counts of matches."""
        o, matcher = self.o, self.matcher
        assert matcher is not None
        out: list[bytes] = []
        number = total = lines = 0
        last = 0
        head = encode(name) + b":" if self.show_name and not o.heading else b""
        for start, stop in matcher.lines(data):
            number += data.count(b"\n", last, start) + 1
            last = stop + 1
            line = data[start:stop]
            spans = [span for span in matcher.finditer(line) if span[1] > span[0]]
            total += len(spans)
            lines += 1
            if o.count_matches:
                continue
            for place, part in self.parts(line, spans):
                prefix = head + (b"%d:" % number if self.plan.line_number else b"")
                if o.column or o.vimgrep:
                    prefix += b"%d:" % (place + 1)
                out.append(prefix + (part.lstrip(b" \t") if o.trim else part) + b"\n")
            if o.max_count is not None and lines >= o.max_count:
                break
        self.selected = self.selected or lines > 0
        if o.count_matches and total:
            out.append(head + b"%d\n" % total)
        return b"" if o.quiet else b"".join(out)

    def parts(self, line: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, bytes]]:
        """What is printed for a line, with the column it begins at."""
        o = self.o
        if o.only_matching:
            return [(start, self.replaced(line, start, stop)) for start, stop in spans]
        first = spans[0][0] if spans else 0
        if o.replace is None:
            return [(start, line) for start, _ in spans] if o.vimgrep and spans else [(first, line)]
        pieces: list[bytes] = []
        at = 0
        for start, stop in spans:
            pieces += [line[at:start], self.replaced(line, start, stop)]
            at = stop
        return [(first, b"".join(pieces) + line[at:])]

    def replaced(self, line: bytes, start: int, stop: int) -> bytes:
        if self.o.replace is None or self.matcher is None:
            return line[start:stop]
        spans = self.matcher.spans(line, start) or [(start, stop)]
        return _filled(encode(self.o.replace), line, spans)


def _filled(template: bytes, line: bytes, spans: list[tuple[int, int]]) -> bytes:
    """A replacement with `$1`, `${1}` and `$0` put in; `$$` is a dollar."""
    out: list[bytes] = []
    at = 0
    while at < len(template):
        if template[at : at + 1] != b"$":
            out.append(template[at : at + 1])
            at += 1
            continue
        if template[at + 1 : at + 2] == b"$":
            out.append(b"$")
            at += 2
            continue
        braces = template[at + 1 : at + 2] == b"{"
        end = at + (2 if braces else 1)
        digits = end
        while end < len(template) and template[end : end + 1].isdigit():
            end += 1
        if end == digits:
            out.append(b"$")
            at += 1
            continue
        group = int(template[digits:end])
        if group < len(spans) and spans[group][0] >= 0:
            out.append(line[spans[group][0] : spans[group][1]])
        at = end + (1 if braces else 0)
    return b"".join(out)


def _type_globs(name: str) -> list[re.Pattern[str]]:
    if name not in TYPES:
        raise UsageError(f"unrecognized file type: {name}", 2, hint=False)
    return [glob_regex(glob, False) for glob in TYPES[name].split()]


def _has_upper(pattern: bytes) -> bool:
    text = pattern.decode("utf-8", "replace")
    plain = [char for at, char in enumerate(text) if at == 0 or text[at - 1] != "\\"]
    return any(char.isupper() for char in plain)


def _escaped(pattern: bytes) -> bytes:
    return b"\\Q" + pattern + b"\\E"


COMMANDS = [
    Command(
        "rg",
        rg,
        RgOptions,
        summary="Recursively search the current directory for lines that match a pattern.",
        usage="[OPTIONS] PATTERN [PATH]...",
        details="Hidden files, what .gitignore and .ignore leave out, and binary files are skipped.",
        examples=(
            ("rg -n TODO -t py", "in Python files, with line numbers"),
            ("rg -l foo -g '!tests/**'", "names only"),
        ),
        refused={
            "-U --multiline": "lines are searched one by one",
            "-z --search-zip": "unpack first",
            "--stats": "count with -c",
            "--sort=": "output is always sorted by path",
            "--sortr=": "output is always sorted by path",
        },
        ignored=(
            "--no-config",
            "-j= --threads=",
            "--line-buffered",
            "--block-buffered",
            "--mmap",
            "--no-mmap",
            "--no-require-git",
        ),
        bad_usage=2,
    )
]
