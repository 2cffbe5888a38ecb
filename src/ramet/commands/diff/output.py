"""Output formats of diff: normal, unified, context, ed, RCS, side by side and if-then-else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ramet.commands.diff.changes import Change
from ramet.commands.framework.inputs import char_width
from ramet.core.paths import decode, encode


@dataclass
class Side:
    """One of the two files: its name as shown, its header line, and its lines (without newlines)."""

    name: str
    label: bytes
    lines: list[bytes]
    ended: bool = True
    """Whether the last line has its newline."""

    def is_open(self, i: int) -> bool:
        """Whether a line is the last one and has no newline."""
        return not self.ended and i == len(self.lines) - 1

    def line(self, i: int, lead: bytes = b"") -> bytes:
        tail = b"\n\\ No newline at end of file\n" if self.is_open(i) else b"\n"
        return lead + self.lines[i] + tail


PALETTE = {"rs": "0", "hd": "1", "ad": "32", "de": "31", "ln": "36"}
"""SGR codes of the parts of a comparison, by the names that --palette has for them."""


@dataclass(frozen=True)
class Style:
    context: int = 3
    color: bool = False
    palette: Mapping[str, str] = field(default_factory=lambda: PALETTE)
    expand_tabs: bool = False
    tabsize: int = 8
    initial_tab: bool = False
    function: Callable[[bytes], bool] | None = None
    width: int = 130
    left_column: bool = False
    suppress_common: bool = False
    suppress_blank: bool = False

    def start(self, part: str) -> bytes:
        return f"\x1b[{self.palette[part]}m".encode()

    @property
    def end(self) -> bytes:
        return f"\x1b[{self.palette['rs']}m".encode()


def _span(start: int, end: int) -> str:
    """`3` or `3,5` from a half-open range."""
    return f"{start + 1}" if end - start == 1 else f"{start + 1},{end}" if end > start else f"{start}"


def _paint(part: str, line: bytes, style: Style) -> bytes:
    if not style.color:
        return line
    body, newline, rest = line.partition(b"\n")
    return style.start(part) + body + style.end + newline + rest


def _text(side: Side, i: int, lead: bytes, style: Style) -> bytes:
    if not (style.suppress_blank or style.expand_tabs or style.initial_tab):
        return side.line(i, lead)
    line = side.line(i)
    if style.suppress_blank and not side.lines[i]:
        return lead.rstrip(b" ") + line
    if style.expand_tabs and b"\t" in line:
        line = line.expandtabs(style.tabsize)
    if style.initial_tab:
        lead = lead.rstrip(b" ") + b"\t" if lead else b"\t"
    return lead + line


def normal(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    for c in found:
        kind = "c" if c.b > c.a and c.d > c.c else "d" if c.b > c.a else "a"
        yield (
            _paint("ln", f"{_span(c.a, c.b)}{kind}{_span(c.c, c.d)}\n".encode(), style)
            if style.color
            else f"{_span(c.a, c.b)}{kind}{_span(c.c, c.d)}\n".encode()
        )
        for i in range(c.a, c.b):
            yield _paint("de", _text(a, i, b"< ", style), style)
        if kind == "c":
            yield b"---\n"
        for i in range(c.c, c.d):
            yield _paint("ad", _text(b, i, b"> ", style), style)


def _hunks(found: list[Change], context: int) -> Iterator[list[Change]]:
    """Group changes whose contexts touch."""
    group: list[Change] = []
    for c in found:
        if group and c.a - group[-1].b > 2 * context:
            yield group
            group = []
        group.append(c)
    if group:
        yield group


def _function(a: Side, upto: int, style: Style) -> bytes:
    if style.function is None:
        return b""
    for i in range(upto - 1, -1, -1):
        if style.function(a.lines[i]):
            return b" " + a.lines[i].lstrip(b" \t")[:40].rstrip()
    return b""


def unified(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    yield _paint("hd", b"--- " + a.label + b"\n", style)
    yield _paint("hd", b"+++ " + b.label + b"\n", style)
    for group in _hunks(found, style.context):
        start_a, start_b = max(0, group[0].a - style.context), max(0, group[0].c - style.context)
        end_a, end_b = min(len(a.lines), group[-1].b + style.context), min(len(b.lines), group[-1].d + style.context)
        head = f"@@ -{_range(start_a, end_a)} +{_range(start_b, end_b)} @@".encode()
        if style.color:
            yield style.start("ln") + head + style.end + _function(a, start_a, style) + b"\n"
        else:
            yield head + _function(a, start_a, style) + b"\n"
        at = start_a
        for c in group:
            for i in range(at, c.a):
                yield _text(a, i, b" ", style)
            for i in range(c.a, c.b):
                yield _paint("de", _text(a, i, b"-", style), style)
            for i in range(c.c, c.d):
                yield _paint("ad", _text(b, i, b"+", style), style)
            at = c.b
        for i in range(at, end_a):
            yield _text(a, i, b" ", style)


def _range(start: int, end: int) -> str:
    count = end - start
    if count == 1:
        return f"{start + 1}"
    return f"{start + 1},{count}" if count else f"{start},0"


def context(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    yield _paint("hd", b"*** " + a.label + b"\n", style)
    yield _paint("hd", b"--- " + b.label + b"\n", style)
    for group in _hunks(found, style.context):
        start_a, start_b = max(0, group[0].a - style.context), max(0, group[0].c - style.context)
        end_a, end_b = min(len(a.lines), group[-1].b + style.context), min(len(b.lines), group[-1].d + style.context)
        yield b"***************" + _function(a, start_a, style) + b"\n"
        yield _paint("ln", f"*** {_pair(start_a, end_a)} ****\n".encode(), style)
        if any(c.b > c.a for c in group):
            yield from _context_side(a, start_a, end_a, [(c.a, c.b, c.d > c.c) for c in group], b"-", style, "de")
        yield _paint("ln", f"--- {_pair(start_b, end_b)} ----\n".encode(), style)
        if any(c.d > c.c for c in group):
            yield from _context_side(b, start_b, end_b, [(c.c, c.d, c.b > c.a) for c in group], b"+", style, "ad")


def _pair(start: int, end: int) -> str:
    if end - start > 1:
        return f"{start + 1},{end}"
    return f"{end}"


def _context_text(side: Side, i: int, mark: bytes, style: Style) -> bytes:
    """Format a line with its mark; a blank for common lines."""
    if style.suppress_blank and not side.lines[i]:
        return _text(side, i, mark, style)
    return mark + _text(side, i, b"" if style.initial_tab else b" ", style)


def _context_side(
    side: Side, start: int, end: int, spans: list[tuple[int, int, bool]], mark: bytes, style: Style, color: str
) -> Iterator[bytes]:
    at = start
    for low, high, both in spans:
        for i in range(at, low):
            yield _context_text(side, i, b" ", style)
        for i in range(low, high):
            yield _paint(color, _context_text(side, i, b"!" if both else mark, style), style)
        at = high
    for i in range(at, end):
        yield _context_text(side, i, b" ", style)


def ed(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    for c in reversed(found):
        kind = "c" if c.b > c.a and c.d > c.c else "d" if c.b > c.a else "a"
        yield f"{_span(c.a, c.b)}{kind}\n".encode()
        if c.d > c.c:
            inserting = True
            for i in range(c.c, c.d):
                if not inserting:
                    yield b"a\n"
                    inserting = True
                if b.lines[i] == b".":
                    # A lone dot would end the text: write two and remove one.
                    yield b"..\n.\ns/.//\n"
                    inserting = False
                else:
                    yield b.lines[i] + b"\n"
            if inserting:
                yield b".\n"


def forward_ed(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    for c in found:
        kind = "c" if c.b > c.a and c.d > c.c else "d" if c.b > c.a else "a"
        yield f"{kind}{_span(c.a, c.b).replace(',', ' ')}\n".encode()
        if c.d > c.c:
            for i in range(c.c, c.d):
                yield b.lines[i] + b"\n"
            yield b".\n"


def rcs(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    for c in found:
        if c.b > c.a:
            yield f"d{c.a + 1} {c.b - c.a}\n".encode()
        if c.d > c.c:
            yield f"a{c.b} {c.d - c.c}\n".encode()
            for i in range(c.c, c.d):
                yield b.lines[i] + (b"\n" if b.ended or i < len(b.lines) - 1 else b"")


def ifdef(a: Side, b: Side, found: list[Change], name: str, style: Style) -> Iterator[bytes]:
    at = 0
    raw = encode(name)

    def lines(side: Side, start: int, end: int) -> Iterator[bytes]:
        for i in range(start, end):
            line = side.lines[i].expandtabs(style.tabsize) if style.expand_tabs else side.lines[i]
            yield line + b"\n"

    for c in found:
        yield from lines(a, at, c.a)
        if c.b > c.a:
            yield b"#ifndef " + raw + b"\n"
            yield from lines(a, c.a, c.b)
            if c.d > c.c:
                yield b"#else /* " + raw + b" */\n"
        else:
            yield b"#ifdef " + raw + b"\n"
        yield from lines(b, c.c, c.d)
        if c.b > c.a and c.d == c.c:
            yield b"#endif /* ! " + raw + b" */\n"
        else:
            yield b"#endif /* " + raw + b" */\n"
        at = c.b
    yield from lines(a, at, len(a.lines))


def side_by_side(a: Side, b: Side, found: list[Change], style: Style) -> Iterator[bytes]:
    """Print two columns; a row of lines without newline has no newline."""
    columns = _Columns.of(style)
    at_a = at_b = 0
    for c in (*found, Change(len(a.lines), len(a.lines), len(b.lines), len(b.lines))):
        if at_a < c.a:
            span = Change(at_a, c.a, at_b, c.c)
            yield from _common_rows(a, b, span, style, columns)
        at_a, at_b = c.b, c.d
        if c.a < c.b or c.c < c.d:
            yield from _changed_rows(a, b, c, columns)


def _common_rows(a: Side, b: Side, span: Change, style: Style, columns: _Columns) -> Iterator[bytes]:
    if style.suppress_common:
        return
    for i in range(min(span.b - span.a, span.d - span.c)):
        left, right = a.lines[span.a + i], b.lines[span.c + i]
        row = columns.row(left, b"(", None) if style.left_column else columns.row(left, b" ", right)
        open_b = style.left_column or b.is_open(span.c + i)
        yield row if not (open_b and a.is_open(span.a + i)) else row.removesuffix(b"\n")


def _changed_rows(a: Side, b: Side, c: Change, columns: _Columns) -> Iterator[bytes]:
    both = min(c.b - c.a, c.d - c.c)
    for i in range(both):
        # A missing last newline is a difference, shown by the direction of the slash.
        open_a, open_b = a.is_open(c.a + i), b.is_open(c.c + i)
        mark = b"|" if open_a == open_b else b"\\" if open_a else b"/"
        row = columns.row(a.lines[c.a + i], mark, b.lines[c.c + i])
        yield row.removesuffix(b"\n") if open_a and open_b else row
    for i in range(c.a + both, c.b):
        row = columns.row(a.lines[i], b"<", None)
        yield row.removesuffix(b"\n") if a.is_open(i) else row
    for i in range(c.c + both, c.d):
        row = columns.row(None, b">", b.lines[i])
        yield row.removesuffix(b"\n") if b.is_open(i) else row


@dataclass(frozen=True)
class _Columns:
    """Geometry of two columns: width, start of the second, tab size."""

    half: int
    second: int
    tabsize: int
    expand: bool

    @classmethod
    def of(cls, style: Style) -> _Columns:
        """The columns of a width, aligned to tab stops."""
        tab = 1 if style.expand_tabs else style.tabsize
        room = tab + 3
        middle = (style.width >> 1) + (room >> 1) + (style.width & room & 1)
        middle -= middle % tab
        half = max(0, min(middle - 3, style.width - middle))
        return cls(half, middle if half else style.width, style.tabsize, style.expand_tabs)

    def row(self, left: bytes | None, mark: bytes, right: bytes | None) -> bytes:
        out = bytearray()
        column = 0
        if left is not None:
            text, column = self._clip(left, 0)
            out += text
        if mark != b" ":
            place = (self.half + self.second - 1) // 2
            out += self._tabs(column, place) + mark
            column = place + 1
        if right:
            out += self._tabs(column, self.second)
            out += self._clip(right, self.second)[0]
        return bytes(out) + b"\n"

    def _tabs(self, start: int, to: int) -> bytes:
        """Tabs and spaces from one column to another."""
        tab = self.tabsize
        tabs = 0 if self.expand or tab <= 1 else max(0, to // tab - start // tab)
        if tabs:
            start = to - to % tab
        return b"\t" * tabs + b" " * (to - start)

    def _clip(self, line: bytes, indent: int) -> tuple[bytes, int]:
        """Clip a line to a column that begins at `indent`; return it and its width."""
        limit = self.half
        if line.isascii() and not _MOVES.search(line):
            text = line[:limit]
            return text, len(text)
        out: list[str] = []
        place = shown = 0  # column in the line, and column written so far: tabs past the limit are not written
        for char in decode(line):
            if char == "\t":
                spaces = self.tabsize - place % self.tabsize
                if place == shown:
                    stop = shown + spaces
                    if self.expand:
                        out.append(" " * (min(limit, stop) - shown))
                        shown = max(shown, min(limit, stop))
                    elif stop < limit:
                        out.append(char)
                        shown = stop
                place += spaces
            elif char == "\r":
                out.append(char + decode(self._tabs(0, indent)))
                place = shown = 0
            elif char == "\b":
                if place:
                    place -= 1
                    if place < limit:
                        out.append(" " * (place - shown) if shown <= place else char)
                        shown = place
            elif char in "\f\v" or "\udc80" <= char <= "\udcff":
                if place < limit:
                    out.append(char)
            else:
                place += 1 if " " <= char <= "~" else char_width(char)
                if place <= limit:
                    shown = place
                    out.append(char)
        return encode("".join(out)), shown


_MOVES = re.compile(rb"[\x00-\x1f\x7f]")
"""Characters that are not one column wide."""


FORMATS: dict[str, Callable[[Side, Side, list[Change], Style], Iterator[bytes]]] = {
    "normal": normal,
    "unified": unified,
    "context": context,
    "ed": ed,
    "forward-ed": forward_ed,
    "rcs": rcs,
    "side-by-side": side_by_side,
}
