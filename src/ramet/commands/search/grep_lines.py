"""Select, count and print the matching lines of one input, block by block, with context.

A block is searched as a whole; only printed lines cost a step of a Python loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ramet.concurrency.sizes import LARGE
from ramet.patterns import Matcher, after_char
from ramet.patterns.classes import is_word
from ramet.patterns.count import occurrences
from ramet.patterns.match_lines import numbered, select

Span = tuple[int, int]
_BUFFER = 96 * 1024
"""Bytes per buffer of GNU grep: a NUL makes its whole buffer binary, not earlier ones."""


@dataclass(frozen=True, slots=True)
class Colours:
    """SGR sequences of the parts of a line; empty means uncoloured."""

    selected_match: str = "01;31"
    context_match: str = "01;31"
    selected_line: str = ""
    context_line: str = ""
    file: str = "35"
    line: str = "32"
    byte: str = "32"
    separator: str = "36"
    no_erase: bool = False
    swap: bool = False
    """With -v, selected lines are coloured as context and the other way round."""

    def start(self, sgr: str) -> bytes:
        return f"\x1b[{sgr}m".encode() + (b"" if self.no_erase else b"\x1b[K")

    @property
    def end(self) -> bytes:
        return b"\x1b[m" if self.no_erase else b"\x1b[m\x1b[K"

    def paint(self, sgr: str, data: bytes) -> bytes:
        return self.start(sgr) + data + self.end if sgr else data


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a search that does not depend on the input."""

    select: Matcher | None
    """Finds lines; None without patterns."""
    pieces: Matcher | None
    """Finds the parts of a selected line."""
    words: bool = False
    whole_line: bool = False
    invert: bool = False
    delim: bytes = b"\n"
    count: bool = False
    stop_early: bool = False
    """One selected line answers the question (-q, -l, -L)."""
    max_count: int | None = None
    only_matching: bool = False
    line_number: bool = False
    byte_offset: bool = False
    initial_tab: bool = False
    null_name: bool = False
    before: int = -1
    after: int = -1
    separator: bytes | None = b"--"
    match_mark: bytes = b":"
    """Separator after the name and numbers of a selected line."""
    context_mark: bytes = b"-"
    colours: Colours | None = None
    binary: str = "binary"
    utf8: bool = True

    @property
    def quiet(self) -> bool:
        return self.count or self.stop_early

    @property
    def plain(self) -> bool:
        """Whether selected lines are printed unchanged."""
        return not (self.only_matching or self.line_number or self.byte_offset or self.initial_tab or self.colours)

    @property
    def numbered(self) -> bool:
        """Whether only a number or file name precedes a selected line."""
        return not (self.only_matching or self.byte_offset or self.initial_tab or self.colours)

    @property
    def bare_pieces(self) -> bool:
        """Whether only matches are printed, with an optional file name."""
        ahead = self.line_number or self.byte_offset or self.initial_tab or self.colours
        return self.only_matching and not (ahead or self.words or self.invert)


def _complete(block: bytes) -> bytes:
    return block if block.endswith(b"\n") else block + b"\n"


def word_spans(matcher: Matcher, line: bytes, utf8: bool) -> Iterator[Span]:
    """Yield the matches that are whole words, trying shorter ones at the same place as GNU does."""
    pos, size = 0, len(line)
    while pos <= size:
        found = _word_at(matcher, line, pos, utf8)
        if found is None:
            return
        start, stop = found
        if stop > start:
            yield found
            pos = stop
        else:
            pos = after_char(line, start)


def _word_at(matcher: Matcher, line: bytes, pos: int, utf8: bool) -> Span | None:
    """Find the first whole word from `pos` on.

    Like GNU, shorter matches are tried in the line without its last `pos` bytes.
    """
    found = matcher.search(line, pos)
    while found is not None:
        start, stop = found
        while True:
            if not _is_word_before(line, start, utf8) and not _is_word_after(line, stop, utf8):
                return start, stop
            end = stop - 1 - pos
            shorter = matcher.search(line[:end], start) if end > start else None
            if shorter is None or shorter[0] != start or shorter[1] == start:
                break
            stop = shorter[1]
        if start >= len(line):
            return None
        found = matcher.search(line, after_char(line, start))
    return None


def _is_word_before(line: bytes, pos: int, utf8: bool) -> bool:
    if pos == 0:
        return False
    if line[pos - 1] < 0x80 or not utf8:
        return line[pos - 1] < 0x80 and is_word(chr(line[pos - 1]))
    return is_word(line[max(0, pos - 4) : pos].decode("utf-8", "surrogateescape")[-1:])


def _is_word_after(line: bytes, pos: int, utf8: bool) -> bool:
    if pos >= len(line):
        return False
    if line[pos] < 0x80 or not utf8:
        return line[pos] < 0x80 and is_word(chr(line[pos]))
    return is_word(line[pos : pos + 4].decode("utf-8", "surrogateescape")[:1])


@dataclass(slots=True)
class Shared:
    """State across inputs: whether a group of lines was printed."""

    used: bool = False


@dataclass(slots=True)
class LineSearch:
    """Search of one input: feed it blocks, it fills `out`."""

    plan: Plan
    shared: Shared
    name: bytes | None = None
    """File name printed before each line; None: not printed."""
    width: int = 0
    """Minimum width of numbers."""
    out: list[bytes] = field(default_factory=list)
    selected: int = 0
    done: bool = False
    unused: bytes = b""
    """Input after the last searched line, when `max_count` ended the search."""
    binary_hit: bool = False
    _is_binary: bool = False
    _before: bytes = b""
    _number: int = 0
    _offset: int = 0
    _pending: int = 0
    _adjacent: bool = False
    _counted: int = 0
    _stopping: bool = False
    held: int = 0
    """Bytes of the line that is not complete yet."""
    _rest: list[bytes] = field(default_factory=list)
    _read: int = 0

    def ends_large_line(self, block: bytes) -> bool:
        """Return whether this block, or the end of the input, ends a line of more than `LARGE` bytes."""
        return self.held > LARGE and (not block or self.plan.delim in block)

    def feed_more(self, block: bytes) -> None:
        """Search a block that may end inside a line; the rest is kept for the next block."""
        plan = self.plan
        first = -1
        if plan.delim == b"\n" and plan.binary != "text" and not self._is_binary:
            first = block.find(b"\0")
        if first >= 0:
            cut = max((self._read + first) // _BUFFER * _BUFFER - self._read, 0)
            if cut:
                self._feed_some(block[:cut])
                block = block[cut:]
                self._read += cut
            self._is_binary = True
        self._read += len(block)
        if self.done:
            self.unused += block
        else:
            self._feed_some(block)

    def _feed_some(self, block: bytes) -> None:
        delim = self.plan.delim
        if self._rest:
            head = block.find(delim) + 1
            if not head:
                self._rest.append(block)
                self.held += len(block)
                return
            self._rest.append(block[:head])
            line, self._rest, self.held = b"".join(self._rest), [], 0
            self.feed(line)
        else:
            head = 0
        cut = block.rfind(delim) + 1
        if self.done:
            self.unused += block[head:]
            return
        if cut < len(block):
            self._rest.append(block[cut:])
            self.held = len(block) - cut
        if head < cut:
            if self._fast and b"\0" not in block:
                self._count(block, head, cut)
            else:
                self.feed(block[head:cut] if head or cut < len(block) else block)
            if self.done:
                self.unused += b"".join(self._rest)

    def finish(self) -> None:
        """Search the last line, if it has no delimiter."""
        if self._rest and not self.done:
            rest, self._rest = b"".join(self._rest), []
            self.feed(rest)

    @property
    def _fast(self) -> bool:
        plan = self.plan
        return plan.count and plan.max_count is None and plan.delim == b"\n" and not self._is_binary

    def _count(self, block: bytes, start: int, stop: int) -> None:
        plan = self.plan
        matched = 0 if plan.select is None else plan.select.count_lines(block, start, stop)
        self.selected += occurrences(block, b"\n", start, stop) - matched if plan.invert else matched

    def feed(self, block: bytes) -> None:
        """Search a block that ends at a line end or the end of input; sets `done` when no more input is needed."""
        plan = self.plan
        if plan.delim == b"\n" and plan.binary != "text" and (self._is_binary or b"\0" in block):
            self._feed_binary(block.replace(b"\0", b"\n"))
            return
        if plan.quiet:
            self._feed_quiet(block)
        elif plan.before < 0 and plan.after < 0:
            self._feed_lines(block)
        else:
            self._feed_context(block)

    # ------------------------------------------------------------------ which lines

    def _hits(self, block: bytes, start: int = 0) -> Iterator[Span]:
        """Yield the spans of the selected lines of a block, without delimiters."""
        select, delim = self.plan.select, self.plan.delim
        matched: Iterator[Span] = iter(()) if select is None else self._matched(select, block, start)
        if not self.plan.invert:
            yield from matched
            return
        pos, find, end = start, block.find, len(block)
        for low, high in matched:
            while pos < low:
                stop = find(delim, pos)
                yield pos, stop
                pos = stop + 1
            pos = high + 1
        while pos < end:
            stop = find(delim, pos)
            if stop < 0:
                stop = end
            yield pos, stop
            pos = stop + 1

    def _matched(self, select: Matcher, block: bytes, start: int) -> Iterator[Span]:
        delim = self.plan.delim
        if delim == b"\n":
            return select.lines(block, start)
        return self._matched_records(select, block, start)

    def _matched_records(self, select: Matcher, block: bytes, start: int) -> Iterator[Span]:
        """Match NUL-terminated records one by one, as they may contain newlines."""
        pos = start
        if select.literal is not None and select.literal not in block:
            return
        while pos < len(block):
            stop = block.find(b"\0", pos)
            if stop < 0:
                stop = len(block)
            if select.test(block[pos:stop]):
                yield pos, stop
            pos = stop + 1

    def _lines_in(self, block: bytes) -> int:
        delim = self.plan.delim
        return occurrences(block, delim) + (0 if block.endswith(delim) else 1)

    # ------------------------------------------------------------------ ways to consume a block

    def _feed_quiet(self, block: bytes) -> None:
        plan = self.plan
        if plan.stop_early:
            for _ in self._hits(block):
                self.selected = 1
                self.done = True
                return
            return
        if plan.delim == b"\n" and plan.max_count is None:
            matched = 0 if plan.select is None else plan.select.count_lines(block)
            self.selected += self._lines_in(block) - matched if plan.invert else matched
            return
        for _, stop in self._hits(block):
            self.selected += 1
            if plan.max_count is not None and self.selected >= plan.max_count:
                self.done = True
                self.unused = block[stop + 1 :]
                return

    def _feed_binary(self, block: bytes) -> None:
        plan = self.plan
        if plan.binary == "without-match":
            self.done = True
            return
        self._is_binary = True
        if plan.quiet:
            self._feed_quiet(block)
            return
        for _ in self._hits(block):
            self.selected += 1
            self.binary_hit = self.done = self.shared.used = True
            return

    def _feed_lines(self, block: bytes) -> None:
        """Search without context: print straight from the block."""
        plan, out = self.plan, self.out
        check = plan.binary != "text" and plan.utf8 and not _valid(block)
        limit = plan.max_count
        simple = plan.plain and not check
        if limit is None and not check and plan.select is not None and plan.delim == b"\n":
            if simple and self.name is None:
                data, count = select(plan.select, _complete(block), plan.invert)
                self.selected += count
                if data:
                    out.append(data)
                return
            if plan.numbered:
                self._feed_numbered(plan.select, _complete(block))
                return
            alike = plan.bare_pieces and plan.pieces is plan.select
            if alike and plan.pieces is not None and self._feed_pieces(plan.pieces, block):
                return
        head = self.name_head(plan.match_mark) if simple else b""
        last = 0
        for start, stop in self._hits(block):
            if simple:
                if head:
                    out.append(head)
                out.append(block[start : stop + 1])
                if stop == len(block):
                    out.append(plan.delim)
            else:
                if plan.line_number:
                    self._number += occurrences(block, plan.delim, last, start) + 1
                    last = stop + 1
                self._print(block, start, stop, True, check)
            self.selected += 1
            if limit is not None and self.selected >= limit:
                self.done = True
                self.unused = block[stop + 1 :]
                return
        if plan.line_number and not simple:
            self._number += occurrences(block, plan.delim, last)
        self._offset += len(block)

    def _feed_numbered(self, matcher: Matcher, block: bytes) -> None:
        """Print lines with only a number or file name before them."""
        plan, head = self.plan, self.name_head(self.plan.match_mark)
        lines = numbered(matcher, block, plan.invert, self._number + 1)
        if plan.line_number:
            form = head.replace(b"%", b"%%") + b"%d" + plan.match_mark.replace(b"%", b"%%") + b"%b\n"
            shown = [form % pair for pair in lines]
            self._number += occurrences(block, b"\n")
        else:
            shown = [head + line + b"\n" for _, line in lines]
        self.selected += len(shown)
        self.out += shown

    def _feed_pieces(self, matcher: Matcher, block: bytes) -> bool:
        """Print only the matches, found in one call; return False if lines must be searched one by one."""
        pattern = matcher.over_block(block)
        if pattern is None:
            return False
        # No line begins after the last newline.
        end = len(block) - block.endswith(b"\n")
        if pattern.groups:
            found = [match[0] for match in pattern.finditer(block, 0, end)]
        else:
            found = pattern.findall(block, 0, end)
        shown = list(filter(None, found))
        if shown:
            head = self.name_head(self.plan.match_mark)
            self.out += (head, (b"\n" + head).join(shown), b"\n")
        self.selected += len(found)
        self._offset += len(block)
        return True

    def _feed_context(self, block: bytes) -> None:
        """Search with context: unprinted lines begin at `edge`; `_adjacent`: a printed line ends there."""
        plan, delim = self.plan, self.plan.delim
        kept = len(self._before)
        if kept:
            # Lines kept from the last block are leading context only.
            self._offset -= kept
            self._number -= self._before.count(delim)
            block = self._before + block
        check = plan.binary != "text" and plan.utf8 and not _valid(block)
        edge = looked = 0
        if not self._stopping:
            for start, stop in self._hits(block, kept):
                edge = self._trailing(block, edge, check, start)
                first = self._lead(block, edge, start)
                # With -v, adjacent lines form one group.
                joined = (self._adjacent and first == edge) or (plan.invert and start == looked > 0)
                if self.shared.used and plan.separator is not None and not joined:
                    self._print_separator(plan.separator)
                while first < start:
                    end = block.find(delim, first)
                    if self._show(block, first, end, False, check):
                        self._adjacent, edge = True, end + 1
                    first = end + 1
                if self._show(block, start, stop, True, check):
                    self._adjacent, edge = True, stop + 1
                self.shared.used = True
                self._pending = max(plan.after, 0)
                looked = stop + 1
                self.selected += 1
                if plan.max_count is not None and self.selected >= plan.max_count:
                    self._stopping = True
                    self.unused = block[looked:]
                    break
        edge = self._trailing(block, edge, check)
        if self._stopping and (not self._pending or edge < len(block)):
            self.done = True
        cut = self._lead(block, edge, len(block))
        if cut > edge:
            self._adjacent = False
        self._number += occurrences(block, delim, self._counted)
        self._counted = 0
        self._offset += len(block)
        self._before = block[cut:]

    def _show(self, block: bytes, start: int, stop: int, chosen: bool, check: bool) -> bool:
        if not self.plan.line_number:
            return self._print(block, start, stop, chosen, check)
        if start >= self._counted:
            self._number += occurrences(block, self.plan.delim, self._counted, start)
        else:
            self._number -= occurrences(block, self.plan.delim, start, self._counted)
        self._counted = start
        self._number += 1
        printed = self._print(block, start, stop, chosen, check)
        self._number -= 1
        return printed

    def _print_separator(self, separator: bytes) -> None:
        colours = self.plan.colours
        self.out.append((colours.paint(colours.separator, separator) if colours else separator) + b"\n")

    def _trailing(self, block: bytes, pos: int, check: bool, stop: int | None = None) -> int:
        """Print pending trailing context before `stop`; return the position after it."""
        end = len(block) if stop is None else stop
        self._adjacent = self._adjacent or self._pending > 0
        while self._pending > 0 and pos < end:
            close = block.find(self.plan.delim, pos)
            if close < 0:
                close = len(block)
            if not self._show(block, pos, close, False, check):
                # A line that cannot be printed ends the context.
                self._pending = 0
                break
            self._pending -= 1
            pos = close + 1
        return min(pos, len(block))

    def _lead(self, block: bytes, low: int, start: int) -> int:
        """Return where the leading context of a line begins, not before `low`."""
        for _ in range(self.plan.before):
            if start <= low:
                break
            start = block.rfind(self.plan.delim, low, start - 1) + 1 or low
        return max(start, low)

    # ------------------------------------------------------------------ printing

    def name_head(self, sep: bytes) -> bytes:
        plan, colours = self.plan, self.plan.colours
        if self.name is None:
            return b""
        name = colours.paint(colours.file, self.name) if colours else self.name
        if plan.null_name:
            return name + b"\0"
        return name + (colours.paint(colours.separator, sep) if colours else sep)

    def _head(self, sep: bytes, offset: int, empty: bool) -> bytes:
        plan, colours = self.plan, self.plan.colours
        head = self.name_head(sep)
        mark = colours.paint(colours.separator, sep) if colours else sep
        width = self.width
        if plan.line_number:
            number = b"%*d" % (width, self._number)
            head += (colours.paint(colours.line, number) if colours else number) + mark
        if plan.byte_offset:
            number = b"%*d" % (width, offset)
            head += (colours.paint(colours.byte, number) if colours else number) + mark
        if plan.initial_tab and head and not empty:
            head += b"\t"
        return head

    def _print(self, block: bytes, start: int, stop: int, chosen: bool, check: bool) -> bool:
        """Print a line; return False for binary data, which is not printed."""
        plan = self.plan
        line = block[start:stop]
        sep = plan.match_mark if chosen else plan.context_mark
        matching = chosen != plan.invert
        if plan.only_matching:
            if matching:
                self._print_pieces(line, self._offset + start, sep, check)
            return True
        if check and not _valid(line):
            self.binary_hit = True
            return False
        self.out.append(self._head(sep, self._offset + start, not line))
        colours = plan.colours
        if colours is not None:
            swapped = colours.swap and plan.invert
            line_sgr = colours.selected_line if chosen != swapped else colours.context_line
            match_sgr = colours.selected_match if chosen else colours.context_match
            if matching and match_sgr:
                line = self._painted(line, line_sgr, match_sgr)
            elif line_sgr and line:
                line = colours.paint(line_sgr, line)
        self.out.append(line)
        self.out.append(plan.delim)
        return True

    def _pieces(self, line: bytes) -> Iterator[Span]:
        plan = self.plan
        if plan.pieces is None:
            return
        if plan.words and not plan.whole_line:
            yield from word_spans(plan.pieces, line, plan.utf8)
            return
        for start, stop in plan.pieces.finditer(line):
            if stop > start:
                yield start, stop

    def _print_pieces(self, line: bytes, offset: int, sep: bytes, check: bool) -> None:
        colours = self.plan.colours
        for start, stop in self._pieces(line):
            piece = line[start:stop]
            if check and not _valid(piece):
                self.binary_hit = True
                continue
            self.out.append(self._head(sep, offset + start, False))
            self.out.append(colours.paint(colours.selected_match, piece) if colours else piece)
            self.out.append(self.plan.delim)

    def _painted(self, line: bytes, line_sgr: str, match_sgr: str) -> bytes:
        colours = self.plan.colours
        assert colours is not None
        parts: list[bytes] = []
        pos = 0
        for start, stop in self._pieces(line):
            if line_sgr:
                # The colour of the line is set again before each match and never reset.
                parts.append(colours.start(line_sgr))
            parts.append(line[pos:start])
            parts.append(colours.paint(match_sgr, line[start:stop]))
            pos = stop
        if pos < len(line):
            parts.append(colours.paint(line_sgr, line[pos:]))
        return b"".join(parts)


def _valid(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
