"""pr: text cut into pages with headers, in one or more columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from ramet.commands.framework.command import Command, UsageError, flag, optional, ordered, quote, typographic, value
from ramet.commands.framework.inputs import LONG, PART, Inputs, parse_count
from ramet.concurrency import bigtext as growth
from ramet.concurrency.offload import offload, offload_large
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks
from ramet.text.strftime import NANO, at, strftime, zone_of


@dataclass(frozen=True, slots=True)
class PrOptions:
    columns: str = value(
        "--columns", metavar="COLUMN", default="1", digits=True, help="output COLUMN columns and print columns down"
    )
    across: bool = flag("-a", "--across", help="print columns across rather than down")
    double: bool = flag("-d", "--double-space", help="double space the output")
    date: str = value(
        "-D", "--date-format", metavar="FORMAT", default="%Y-%m-%d %H:%M", help="use FORMAT for the header date"
    )
    formfeed: bool = flag("-F", "-f", "--form-feed", help="use form feeds instead of newlines to separate pages")
    header: str | None = value(
        "-h", "--header", metavar="HEADER", help="use a centered HEADER instead of filename in page header"
    )
    length: str = value("-l", "--length", metavar="PAGE_LENGTH", default="66", help="set the page length in lines")
    merge: bool = flag("-m", "--merge", help="print all files in parallel, one in each column")
    number: str | None = optional("-n", "--number-lines", metavar="[SEP[DIGITS]]", const="", help="number lines")
    first: str | None = value("-N", "--first-line-number", metavar="NUMBER", help="start counting with NUMBER")
    indent: str = value("-o", "--indent", metavar="MARGIN", default="0", help="offset each line with MARGIN spaces")
    quiet: bool = flag("-r", "--no-file-warnings", help="omit warning when a file cannot be opened")
    separator: str | None = optional(
        "-s", "--separator", metavar="CHAR", const="\t", help="separate columns by a single character"
    )
    sep_string: str | None = optional(
        "-S", "--sep-string", metavar="STRING", const="", help="separate columns by STRING"
    )
    expand: str | None = optional(
        "-e", "--expand-tabs", metavar="[CHAR[WIDTH]]", const="", help="expand input CHARs (TABs) to tab WIDTH (8)"
    )
    tabs: str | None = optional(
        "-i",
        "--output-tabs",
        metavar="[CHAR[WIDTH]]",
        const="",
        help="replace spaces with CHARs (TABs)",
    )
    join: bool = flag("-J", "--join-lines", help="merge full lines, without alignment of columns")
    control: bool = flag("-c", "--show-control-chars", help="use hat notation (^G) and octal backslash notation")
    nonprinting: bool = flag("-v", "--show-nonprinting", help="use octal backslash notation")
    pages: str = value(
        "--pages", metavar="FIRST[:LAST]", default="1", help="begin and stop printing with these pages (also +FIRST)"
    )
    page_width: str | None = value(
        "-W", "--page-width", metavar="PAGE_WIDTH", help="set page width always, and truncate lines"
    )
    order: tuple[tuple[str, object], ...] = ordered()
    omit: bool = flag("-t", "--omit-header", help="omit page headers and trailers")
    omit_all: bool = flag("-T", "--omit-pagination", help="omit page headers and trailers, eliminate any pagination")
    width: str = value(
        "-w", "--width", metavar="PAGE_WIDTH", default="72", help="set page width for multiple text-column output only"
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the options come to: how many columns, how wide, and what stands between them."""

    columns: int
    length: int
    width: int
    omit: bool
    glue: str
    joined: bool
    cell: int
    margin: str
    digits: int
    after: str
    """What stands behind a line number."""
    pages: tuple[int, int | None]

    @property
    def body(self) -> int:
        return self.length if self.omit else self.length - 10

    def numbered(self, number: int) -> str:
        shown = str(number).rjust(self.digits)[-self.digits :]
        if self.after != "\t" or self.columns == 1:
            return shown + self.after
        return shown + " " * (8 - self.digits % 8)


def _counts(proc: Proc, o: PrOptions) -> tuple[int, int] | None:
    """Length and width; None when one of them is no number, which has been told."""
    given = (
        (o.length, "'-l PAGE_LENGTH' invalid number of lines"),
        (o.width, "'-w PAGE_WIDTH' invalid number of characters"),
        (o.width if o.page_width is None else o.page_width, "'-W PAGE_WIDTH' invalid number of characters"),
    )
    for text, said in given:
        if not re.fullmatch(r"\+?\d+", text) or not 0 < int(text) < 1 << 31:
            proc.complain(f"{said}: {typographic(proc, quote(text))}{_why_not(text)}")
            return None
    return int(o.length), int(o.page_width or o.width)


def _why_not(text: str) -> str:
    if not re.fullmatch(r"[+-]?\d+", text):
        return ""
    return ": Value too large for defined data type" if int(text) > 0 else ": Numerical result out of range"


def _pages_of(text: str, option: str) -> tuple[int, int | None] | None:
    """The first page and the last; None where numbers do not make a range."""
    found = re.fullmatch(r"(\d+)(?::(\d*)(.*)|)(.*)", text, re.S)
    if found is None or (found[2] == "" and ":" in text):
        raise UsageError(f"invalid {option} argument {quote(text)}", hint=False)
    if found[3]:
        raise UsageError(f"invalid suffix in {option} argument {quote(text)}", hint=False)
    first, last = int(found[1]), int(found[2]) if found[2] else None
    return None if found[4] or not first or (last is not None and last < first) else (first, last)


def _layout(o: PrOptions, length: int, width: int, files: int, pages: tuple[int, int | None]) -> _Layout:
    columns = files if o.merge else parse_count(o.columns, "number of columns", 1)
    joined = o.join
    glue = o.sep_string
    wide = o.page_width is not None or any(name == "width" for name, _ in o.order)
    if glue is None and o.separator is not None:
        # -s alone gives up the alignment, with a width it is kept.
        joined, glue = joined or not wide, o.separator
    if not glue:
        glue = "\t" if joined else " "
    elif not joined and glue == "\t":
        glue = " "
    digits, after = 5, "\t"
    numbered = next((str(given) for name, given in reversed(o.order) if name == "number" and given), "")
    if numbered and (found := re.fullmatch(r"(\D?)(\d*)", numbered)):
        after, digits = found[1] or "\t", int(found[2] or 5)
    used = (digits + (8 - digits % 8 if after == "\t" else 1)) if o.number is not None and o.merge else 0
    cell = (width - used - (columns - 1) * len(glue)) // columns
    if cell < 1:
        raise UsageError("page width too narrow", hint=False)
    return _Layout(
        columns=columns,
        length=length,
        width=width,
        omit=o.omit or o.omit_all or length <= 10,
        glue=glue,
        joined=joined,
        cell=cell,
        margin=" " * parse_count(o.indent, "line offset"),
        digits=digits,
        after=after,
        pages=pages,
    )


class _Quiet(Inputs):
    """Files of which a missing one is a failing status alone."""

    def fail(self, word: str, error: OSError) -> None:
        self.status = 1


async def pr(proc: Proc, o: PrOptions, operands: list[str]) -> int:
    pages = _pages_of(o.pages, "--pages")
    if pages is None:
        raise UsageError(f"invalid page range {quote(o.pages)}", hint=False)
    for place, word in enumerate(operands):
        if word.startswith("+") and o.pages == "1" and (given := _pages_of(word[1:], "+")) is not None:
            pages, operands = given, [*operands[:place], *operands[place + 1 :]]
            break
    counts = _counts(proc, o)
    if counts is None:
        return 1
    layout = _layout(o, *counts, max(1, len(operands)), pages)
    inputs = _Quiet(proc, operands) if o.quiet else Inputs(proc, operands)
    texts: list[tuple[str, list[str], int]] = []
    ended = True
    async for word, reader in inputs.each():
        lines: list[str] = []
        ended = True
        async for block in line_blocks(reader, size=PART):
            ended = block.endswith(b"\n")
            lines += await offload_large(proc.budget, len(block), partial(_lines, o, layout, block), 4 * PART)
            await proc.budget.yield_turn()
        moment = int(proc.now() * NANO)
        if word != "-":
            moment = (await proc.fs.stat(proc.path(word), follow=True)).mtime_ns or moment
        texts.append(("" if word == "-" else word, lines, moment))
    skipped = (layout.pages[0] - 1) * layout.body * (1 if o.merge else layout.columns)
    start = parse_count(o.first, "starting line number") - skipped if o.first is not None else 1
    if o.merge and texts:
        count = max(len(lines) for _, lines, _ in texts)
        moment = texts[0][2] if len(texts) == 1 else int(proc.now() * NANO)
        merged: list[str] = []
        for i in range(count):
            head = layout.numbered(start + i) if o.number is not None else ""
            merged.append(head + _row(layout, [lines[i] if i < len(lines) else "" for _, lines, _ in texts]))
            if not i & 1023:
                await proc.budget.yield_turn()
        await _pages(proc, o, layout, [merged], moment, "", ended)
        return inputs.status
    for name, lines, moment in texts:
        parts = _parts(lines)
        made: list[list[str]] = []
        for part in parts:
            for begin in range(0, len(part) if o.number is not None else 0, 1024):
                for place, line in enumerate(part[begin : begin + 1024], begin):
                    number = layout.numbered(start + place)
                    if len(line) > LONG:
                        part[place] = await offload(proc.budget, partial(growth.grown, (number, line)))
                    else:
                        part[place] = number + line
                await proc.budget.yield_turn()
            start += len(part)
            found = _rows(o, layout, part)
            rows: list[str] = []
            while some := [_row(layout, row) for row in islice(found, 1024)]:
                rows += some
                await proc.budget.yield_turn()
            made.append(rows)
        start -= sum(map(len, parts))
        await _pages(proc, o, layout, made, moment, name, ended)
    return inputs.status


def _lines(o: PrOptions, layout: _Layout, block: bytes) -> list[str]:
    pieces = decode(block).split("\n")
    if not pieces[-1]:
        pieces.pop()
    return _shown(o, layout, pieces)


def _parts(lines: list[str]) -> list[list[str]]:
    """What stands between form feeds: each of these begins a page."""
    if not any("\f" in line for line in lines):
        return [lines]
    parts: list[list[str]] = [[]]
    for line in lines:
        first, *rest = line.split("\f")
        if first or not rest:
            parts[-1].append(first)
        parts += [[text] if text else [] for text in rest]
    if not parts[-1]:
        parts.pop()
    return parts


def _shown(o: PrOptions, layout: _Layout, lines: list[str]) -> list[str]:
    """Lines with their tabs and unprintable characters as asked for."""
    found = re.fullmatch(r"(\D?)(\d*)", o.expand) if o.expand is not None else None
    if found is not None and found[1] not in ("", "\t"):
        lines = [line.replace(found[1], "\t") for line in lines]
    if found is not None or (layout.columns > 1 and layout.glue != "\t"):
        size = int(found[2] or 8) if found is not None else 8
        lines = [line.expandtabs(size) for line in lines]
    if o.control or o.nonprinting:
        lines = [_visible(line, o.control and not o.nonprinting) for line in lines]
    return lines


def _visible(line: str, hats: bool) -> str:
    def shown(byte: int) -> str:
        if hats and (byte < 32 or byte == 127):
            return f"^{chr(byte ^ 64)}"
        return f"\\{byte:03o}"

    return "".join(c if c in "\t\f" or " " <= c <= "~" else "".join(map(shown, encode(c))) for c in line)


def _rows(o: PrOptions, layout: _Layout, lines: list[str]) -> Iterator[list[str]]:
    """Lines of one file side by side; the columns of its last page are made equally long."""
    columns = layout.columns
    body = layout.body // 2 if o.double else layout.body
    if columns == 1 or o.across:
        yield from (lines[i : i + columns] for i in range(0, len(lines), columns))
        return
    for start in range(0, len(lines), body * columns):
        chunk = lines[start : start + body * columns]
        height, more = divmod(len(chunk), columns)
        stacks: list[list[str]] = []
        at_ = 0
        for number in range(columns):
            size = height + (number < more)
            stacks.append(chunk[at_ : at_ + size])
            at_ += size
        yield from ([s[i] for s in stacks if i < len(s)] for i in range(len(stacks[0])))


def _row(layout: _Layout, cells: list[str]) -> str:
    if layout.columns == 1:
        return cells[0]
    if layout.joined:
        return layout.glue.join(cells)
    wide = layout.cell
    return layout.glue.join([*(c[:wide].ljust(wide) for c in cells[:-1]), cells[-1][:wide].rstrip(" ")])


def _tabbed(text: str, size: int, tab: str) -> str:
    """Blanks as tabs where two or more of them reach a stop."""
    if "  " not in text:
        return text
    out: list[str] = []
    column = 0
    for piece in re.findall(r" +|[^ ]+", text):
        if piece[0] != " ":
            out.append(piece)
            column = len((" " * column + piece).expandtabs(size))
            continue
        goal = column + len(piece)
        while goal - column > 1 and (stop := (column // size + 1) * size) <= goal:
            out.append(tab)
            column = stop
        out.append(" " * (goal - column))
        column = goal
    return "".join(out)


async def _pages(
    proc: Proc, o: PrOptions, layout: _Layout, parts: list[list[str]], moment: int, name: str, ended: bool
) -> None:
    pages: list[list[str]] = []
    breaks: list[int] = []  # the pages that a form feed of the input comes before
    for part in parts:
        lines = await _finished(proc, o, layout, part)
        if o.double and lines and not ended and part is parts[-1] and layout.omit:
            lines.pop()
        breaks.append(len(pages))
        pages += [lines[at : at + layout.body] for at in range(0, len(lines), layout.body)] or [[]]
    if pages == [[]]:
        pages = []
    first, last = layout.pages
    if first > len(pages) > 0:
        proc.complain(f"starting page number {first} exceeds page count {len(pages)}")
    if layout.omit:
        feed = "" if o.omit_all else "\f"
        for page, chunk in enumerate(pages[first - 1 : last], first - 1):
            lead = feed if page in breaks and page else ""
            await _emit_lines(proc, lead, chunk, "")
        return
    stamp = strftime(o.date, *at(moment, zone_of(proc)))
    title = o.header if o.header is not None else name
    for page, chunk in enumerate(pages, 1):
        if page < first or (last is not None and page > last):
            continue
        left, right = stamp, f"Page {page}"
        room = layout.width - len(left) - len(right) - len(title)
        middle = " " * max(1, room // 2) + title + " " * max(1, room - room // 2)
        head = f"{layout.margin}\n\n{layout.margin}{left}{middle}{right}\n\n\n"
        filler = "\f" if o.formfeed else "\n" * (layout.body - len(chunk)) + "\n" * 5
        await _emit_lines(proc, head, chunk, filler)


async def _emit_lines(proc: Proc, before: str, lines: list[str], behind: str) -> None:
    if any(len(line) > LONG for line in lines):
        for line in lines:
            await proc.emit(encode(before))
            await proc.emit(await offload_large(proc.budget, len(line), partial(growth.encoded, line)))
            before = "\n"
        behind = f"\n{behind}"
        lines, before = [], ""
    await proc.emit(encode(before + "".join([f"{line}\n" for line in lines]) + behind))
    await proc.budget.yield_turn()


async def _finished(proc: Proc, o: PrOptions, layout: _Layout, lines: list[str]) -> list[str]:
    """Lines with their margin, cut to the width of the page, with tabs for blanks where these are wanted."""
    found = re.fullmatch(r"(\D?)(\d*)", o.tabs) if o.tabs is not None else None
    tab, size = (found[1] or "\t", int(found[2] or 8)) if found is not None else ("\t", 8)
    out: list[str] = []
    for begin in range(0, len(lines), 1024):
        for line in lines[begin : begin + 1024]:
            if o.page_width is not None and layout.columns == 1 and not o.join:
                line = line[: layout.width]
            line = layout.margin + line
            out.append(_tabbed(line, size, tab) if layout.columns > 1 or found is not None else line)
            if o.double:
                out.append("")
        await proc.budget.yield_turn()
    return out


COMMANDS = [
    Command(
        "pr",
        pr,
        PrOptions,
        summary="Paginate or columnate FILE(s) for printing.",
        ignored=("-b",),
    ),
]
