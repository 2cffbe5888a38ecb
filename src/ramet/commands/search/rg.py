"""rg: search a tree, without hidden, ignored and binary files by default."""

from __future__ import annotations

import asyncio
import errno
import importlib
import lzma
import re
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TypeVar

from ramet import patterns
from ramet.commands.framework.command import Command, UsageError, help_text
from ramet.commands.framework.inputs import slurp
from ramet.commands.framework.posix_regex import offload_long
from ramet.commands.search.grep_lines import Colours, LineSearch, Plan, Shared
from ramet.commands.search.pushdown import Sieve, sieve
from ramet.commands.search.rg_checks import check_plain, chosen_colours
from ramet.commands.search.rg_json import Messages
from ramet.commands.search.rg_multiline import SpanSearch
from ramet.commands.search.rg_options import TYPES, RgOptions
from ramet.commands.search.rg_walk import Walk
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LARGE
from ramet.core import ops
from ramet.core.errors import reason
from ramet.core.paths import Path, decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Capture, FileStream, PipeReader
from ramet.patterns import Lines, Matcher, MatchTimeout, PatternError, perl
from ramet.text.glob import fnmatch

T = TypeVar("T")


async def rg(proc: Proc, o: RgOptions, operands: list[str]) -> int:
    operands = list(operands)
    if o.asked or o.engine_version:
        await proc.emit(
            encode(help_text(COMMANDS[0]) if o.asked else "PCRE2 expressions are read by ramet's own engine\n")
        )
        return 0
    if o.type_list:
        listed = "".join(f"{name}: {', '.join(globs.split())}\n" for name, globs in sorted(TYPES.items()))
        await proc.emit(listed.encode())
        return 0
    try:
        wanted = [] if o.list_files else await _patterns(proc, o, operands)
        run = await offload_long(proc, wanted, partial(_RgRun, proc, o, wanted, operands))
        status = await run.all()
        if o.stats and run.messages is None:
            await proc.emit(run.statistics())
        if run.messages is not None:
            await proc.emit(run.messages.summary())
        return status
    except PatternError as error:
        proc.complain(f"regex parse error:{error}" if str(error)[0] == "\n" else f"regex parse error: {error}")
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


_NOTHING = (
    b"No files were searched, which means ripgrep probably applied a filter you didn't expect.\n"
    b"Running with --debug will show why files are being skipped.\n"
)


_BLOCK = 128 * 1024
"""Bytes that are searched between two yields."""


def _blocks(data: bytes, delim: bytes) -> Iterator[bytes]:
    """Split a file into blocks that end at a line end; one with a NUL stays whole."""
    if len(data) <= _BLOCK or b"\0" in data:
        if data:
            yield data
        return
    start = 0
    while start < len(data):
        end = data.find(delim, min(start + _BLOCK, len(data) - 1)) + 1 or len(data)
        yield data[start:end]
        start = end


class _Colours(Colours):
    """Colours as rg writes them: each begins with a reset."""

    def start(self, sgr: str) -> bytes:
        return b"\x1b[0m" + b"".join(b"\x1b[" + code.encode() + b"m" for code in sgr.split(";"))

    @property
    def end(self) -> bytes:
        return b"\x1b[0m"


_ALL_LINES = 1 << 40
_NEWLINE = re.compile(rb"(?<!\\)(?:\\\\)*(?:\\n|\n)")
_NO_NEWLINES = """the literal '"\\n"' is not allowed in a regex

Consider enabling multiline mode with the --multiline flag (or -U for short).
When multiline mode is enabled, new line characters can be matched."""
_LINE_END = re.compile(rb"(?<!\\)\$(?=[)|]|\Z)")
_UNPACKERS = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma", ".lzma": "lzma"}


class _RgRun:
    def __init__(self, proc: Proc, o: RgOptions, wanted: list[bytes], operands: list[str]) -> None:
        self.proc, self.o, self.operands, self.wanted = proc, o, operands, wanted
        self.icase = o.case == "i" or (o.case == "S" and not any(_has_upper(pattern) for pattern in wanted))
        self.matcher = self.compiled(wanted) if wanted else None
        self.plan = self.planned()
        self.messages = Messages(self.matcher) if o.json and self.matcher is not None else None
        self.shared = Shared()
        self.selected = self.failed = False
        self.show_name = False
        self.looked = False
        """Whether any file was searched."""
        self.walk = Walk(proc, o, self.fail)
        self.names = perl.group_names(wanted[0].decode("utf-8", "replace")) if wanted else {}
        self.found = self.found_lines = self.found_files = self.searched = self.bytes_searched = self.printed = 0

    def compiled(self, wanted: list[bytes]) -> Matcher:
        dialect = patterns.FIXED if self.o.fixed else patterns.RUST
        whole = "line" if self.o.whole_line else "word" if self.o.words else ""
        if self.o.fixed and whole:
            wanted, dialect = [_escaped(pattern) for pattern in wanted], patterns.RUST
        seconds, lines = self.proc.budget.limits.regex_seconds, Lines.BLOCK
        if self.o.null_data:
            lines = Lines.TEXT
        if dialect == patterns.RUST:
            if not self.o.pcre and self.o.engine == "default":
                for pattern in wanted:
                    check_plain(pattern.decode("utf-8", "replace"))
            if self.o.multiline:
                lines = Lines.MULTI
            elif any((b"\\" in pattern or b"\n" in pattern) and _NEWLINE.search(pattern) for pattern in wanted):
                raise UsageError(_NO_NEWLINES, 2, hint=False)
            if self.o.crlf:
                wanted = [_LINE_END.sub(rb"(?:\\r?$)", pattern) for pattern in wanted]
            if self.o.dotall:
                wanted = [b"(?s)" + pattern for pattern in wanted]
        return patterns.compile_any(wanted, dialect, icase=self.icase, lines=lines, seconds=seconds, whole=whole)

    def planned(self) -> Plan:
        o = self.o
        context = -1 if o.context is None else o.context
        before, after = context if o.before is None else o.before, context if o.after is None else o.after
        if o.passthru:
            before = after = _ALL_LINES
        elif max(before, after) <= 0:
            before = after = -1
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
            byte_offset=o.byte_offset,
            before=before,
            after=after,
            separator=None if o.separator is None else encode(o.separator),
            match_mark=encode(o.match_mark),
            context_mark=encode(o.context_mark),
            delim=b"\0" if o.null_data else b"\n",
            colours=_Colours(**chosen_colours(o.colours)) if coloured else None,
            binary="text" if o.text else "binary",
        )

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
            if not operands and not self.looked and not self.failed and not o.no_messages and not o.list_files:
                proc.stderr.write(_NOTHING)
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
                files = self.walk.below(path, shown)
                if self.o.sort is not None and self.o.sort != ("path", ""):
                    files = self.ordered([found async for found in files])
                async for file, name in files:
                    if self.o.quiet and self.selected:
                        return
                    self.looked = True
                    if passes is not None and not passes(file):
                        continue
                    await self.file(file, name)
                return
            await self.file(path, word, named=True)
        except OSError as error:
            self.fail(word, error)

    async def ordered(self, files: list[tuple[Path, str]]) -> AsyncIterator[tuple[Path, str]]:
        """Sort files by time, ascending or descending."""
        by, direction = self.o.sort or ("none", "")
        if by not in ("path", "none"):
            times = {path: (await self.proc.fs.stat(path)).mtime_ns or 0 for path, _ in files}
            files.sort(key=lambda found: times[found[0]])
        for found in reversed(files) if direction else files:
            yield found

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

    # ------------------------------------------------------------------ searching

    async def file(self, path: Path, name: str, named: bool = False) -> None:
        if self.o.list_files:
            self.selected = True
            if self.o.quiet:
                return
            await self.proc.emit(encode(name) + (b"\0" if self.o.null_name else b"\n"))
            return
        try:
            limit = self.o.max_filesize
            if limit is not None and not named and ((await self.proc.fs.stat(path)).size or 0) > limit:
                return
            if self.o.pre and self._prepared(name):
                made = await self._preprocess(name, path)
                if made is None:
                    return
                data = made
            elif named and self.proc.descriptor(name) is not None:
                data = await slurp(self.proc, name)
            else:
                data = await ops.read_bytes(self.proc.fs, path)
            if self.o.search_zip:
                data = await _unpacked(name, data)
        except OSError as error:
            self.fail(name, error)
            return
        if (
            not (named or self.o.binary or self.o.unrestricted >= 3)
            and self.plan.binary != "text"
            and b"\0" in data[:65536]
        ):
            return
        await self.search(name, data)
        await self.proc.budget.yield_turn()

    def _prepared(self, name: str) -> bool:
        """Return whether --pre applies to a file: the last matching glob wins."""
        globs = self.o.pre_globs
        if not globs:
            return True
        chosen = all(glob.startswith("!") for glob in globs)
        base = name.rpartition("/")[2]
        for glob in globs:
            pattern = glob.removeprefix("!")
            if fnmatch(name if "/" in pattern else base, pattern):
                chosen = not glob.startswith("!")
        return chosen

    async def _preprocess(self, name: str, path: Path) -> bytes | None:
        """Run the --pre command on a file; None after a reported failure."""
        assert self.o.pre is not None
        limit = self.proc.budget.limits.output_bytes
        out, told = Capture(limit), Capture(limit)
        reader = await self.proc.open(str(path))
        try:
            status = await self.proc.run([self.o.pre, name], stdin=reader, stdout=out, stderr=told)
        finally:
            await self.proc.close(reader)
        if status == 0:
            return out.getvalue()
        said = decode(told.getvalue()).strip()
        command = f'"{self.o.pre}" "{name}"'
        if status == 127:
            said = f"preprocessor command could not start: '{command}': No such file or directory (os error 2)"
        else:
            bar = "-" * 79
            said = f"preprocessor command failed: '{command}': \n{bar}\n{said or '<stderr is empty>'}\n{bar}"
        self.proc.stderr.write(encode(f"{name}: {said}\n"))
        self.failed = True
        return None

    async def search(self, name: str, data: bytes) -> None:
        o = self.o
        if self.messages is not None:
            out = await self.offload(len(data), partial(self.messages.file, name, data, o.max_count))
            self.selected = self.selected or bool(out)
            await self.proc.emit(out)
            return
        self.searched += 1
        self.bytes_searched += len(data)
        if o.stats and self.matcher is not None:
            self.count_all(data)
        if o.multiline and self.matcher is not None and not o.files_with:
            spans = SpanSearch(self.plan, self.matcher, encode(name) if self.show_name and not self.headed else None)
            fill = self.filled if o.replace is not None else None
            out = await self.offload(len(data), partial(spans.run, data, fill, self.shared))
            self.selected = self.selected or spans.selected
            if (self.plan.count or o.count_matches) and (spans.matches or o.include_zero):
                out = spans.name_head() + b"%d\n" % spans.matches
            if o.quiet:
                out = b""
        elif o.replace is not None or o.column or o.vimgrep or o.count_matches or o.trim or o.max_columns:
            out = await self.offload(len(data), partial(self.detailed, name, data))
        else:
            search = LineSearch(self.plan, self.shared, encode(name) if self.show_name and not self.headed else None)
            for block in _blocks(data, self.plan.delim):
                await self.offload(len(block), partial(search.feed, block))
                if search.done:
                    break
                await self.proc.budget.yield_turn()
            if not o.files_with:
                self.selected = self.selected or bool(search.selected)
            out = b"".join(search.out)
            if search.binary_hit:
                where = f'binary file matches (found "\\0" byte around offset {data.find(0)})\n'
                out += encode(f"{name}: {where}" if self.show_name else where)
            if self.plan.count and (search.selected or o.include_zero):
                out += search.name_head(b":") + b"%d\n" % search.selected
            if o.files_with and bool(search.selected) == (o.files_with == "with"):
                out += b"" if o.quiet else encode(name) + (b"\0" if o.null_name else b"\n")
                self.selected = True
        if out:
            if self.headed:
                out = (b"\n" if self.shared.used else b"") + encode(name) + b"\n" + out
                self.shared.used = True
            self.printed += len(out)
            await self.proc.emit(out)

    async def offload(self, size: int, work: Callable[[], T]) -> T:
        """Run `work` on `size` bytes; in a thread if the bytes or the patterns are many."""
        if size > LARGE:
            return await offload(self.proc.budget, work)
        return await offload_long(self.proc, self.wanted, work)

    @property
    def headed(self) -> bool:
        """Whether file names are headings above their lines; not for counts."""
        o = self.o
        plain = not (o.files_with or o.count or o.count_matches)
        return (o.heading or o.pretty) and self.show_name and plain

    def count_all(self, data: bytes) -> None:
        assert self.matcher is not None
        found = sum(1 for _ in self.matcher.finditer(data)) if data else 0
        self.found += found
        self.found_lines += self.matcher.count_lines(data)
        self.found_files += bool(found)

    def statistics(self) -> bytes:
        lines = (
            "",
            f"{self.found} matches",
            f"{self.found_lines} matched lines",
            f"{self.found_files} files contained matches",
            f"{self.searched} files searched",
            f"{self.printed} bytes printed",
            f"{self.bytes_searched} bytes searched",
            "0.000000 seconds spent searching",
            "0.000000 seconds",
        )
        return "\n".join(lines).encode() + b"\n"

    def detailed(self, name: str, data: bytes) -> bytes:
        """Format output that depends on each match: columns, replacements, counts."""
        o, matcher = self.o, self.matcher
        assert matcher is not None
        out: list[bytes] = []
        number = total = lines = 0
        last = 0
        mark = self.plan.match_mark
        head = encode(name) + mark if self.show_name and not self.headed else b""
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
                prefix = head + (b"%d" % number + mark if self.plan.line_number else b"")
                if o.column or o.vimgrep:
                    prefix += b"%d" % (place + 1) + mark
                if o.byte_offset:
                    prefix += b"%d" % (start + (place if o.only_matching else 0)) + mark
                out.append(prefix + self.shortened(part.lstrip(b" \t") if o.trim else part) + b"\n")
            if o.max_count is not None and lines >= o.max_count:
                break
        self.selected = self.selected or lines > 0
        if o.count_matches and total:
            out.append(head + b"%d\n" % total)
        return b"" if o.quiet else b"".join(out)

    def shortened(self, line: bytes) -> bytes:
        limit = self.o.max_columns
        if not limit or len(line) < limit:
            return line
        return line[:limit] + b" [... omitted end of long line]" if self.o.preview else b"[Omitted long matching line]"

    def filled(self, text: bytes, spans: list[tuple[int, int]]) -> bytes:
        return _filled(encode(self.o.replace or ""), text, spans, self.names)

    def parts(self, line: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, bytes]]:
        """Format a line, with its column."""
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
        return self.filled(line, spans)


_REFERENCE = re.compile(rb"\$(?:(\$)|\{(\w+)\}|(\w+))")


def _filled(template: bytes, text: bytes, spans: list[tuple[int, int]], names: dict[str, int]) -> bytes:
    """Expand `$1`, `${1}`, `$name` and `$0` of a replacement; `$$` is a dollar."""

    def put(found: re.Match[bytes]) -> bytes:
        if found[1]:
            return b"$"
        name = (found[2] or found[3]).decode("utf-8", "replace")
        group = int(name) if name.isdecimal() else names.get(name, -1)
        known = 0 <= group < len(spans) and spans[group][0] >= 0
        return text[spans[group][0] : spans[group][1]] if known else b""

    return _REFERENCE.sub(put, template)


async def _unpacked(name: str, data: bytes) -> bytes:
    """Decompress a file by its extension; return other data unchanged."""
    module = _UNPACKERS.get(name[name.rfind(".") :]) if "." in name else None
    if module is None:
        return data
    try:
        unpacked: bytes = await asyncio.to_thread(importlib.import_module(module).decompress, data)
    except (OSError, EOFError, ValueError, RuntimeError, lzma.LZMAError):
        return b""
    return unpacked


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
        ignored=(
            "--no-config",
            "-j= --threads=",
            "--line-buffered",
            "--block-buffered",
            "--mmap",
            "--no-mmap",
            "--one-file-system",
            "--no-ignore-messages",
            "--no-ignore-global",
            "--no-ignore-exclude",
            "--dfa-size-limit=",
            "--regex-size-limit=",
            "--debug",
            "--trace",
            "--no-unicode",
            "--no-pcre2-unicode",
            "--auto-hybrid-regex",
            "--ignore-file-case-insensitive",
            "--no-ignore-file-case-insensitive",
            "--no-auto-hybrid-regex",
            "--no-block-buffered",
            "--no-line-buffered",
            "--no-one-file-system",
            "--ignore-exclude",
            "--ignore-global",
            "--ignore-messages",
            "--unicode",
            "--pcre2-unicode",
        ),
        bad_usage=2,
        version_letters="V",
    )
]
