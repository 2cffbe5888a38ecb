"""pr: text cut into pages with headers, in one or more columns."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.clock import NANO, at, strftime, zone_of
from ramet.commands.declare import Command, flag, optional, value
from ramet.commands.fmt import Tabs, unexpanded
from ramet.commands.inputs import Inputs, parse_count
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc


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
    first: str = value("-N", "--first-line-number", metavar="NUMBER", default="1", help="start counting with NUMBER")
    indent: str = value("-o", "--indent", metavar="MARGIN", default="0", help="offset each line with MARGIN spaces")
    quiet: bool = flag("-r", "--no-file-warnings", help="omit warning when a file cannot be opened")
    separator: str | None = optional(
        "-s", "--separator", metavar="CHAR", const="\t", help="separate columns by a single character"
    )
    sep_string: str | None = optional(
        "-S", "--sep-string", metavar="STRING", const="", help="separate columns by STRING"
    )
    omit: bool = flag("-t", "--omit-header", help="omit page headers and trailers")
    omit_all: bool = flag("-T", "--omit-pagination", help="omit page headers and trailers, eliminate any pagination")
    width: str = value(
        "-w", "--width", metavar="PAGE_WIDTH", default="72", help="set page width for multiple text-column output only"
    )


async def pr(proc: Proc, o: PrOptions, operands: list[str]) -> int:
    columns = parse_count(o.columns, "number of columns", 1)
    length, width = parse_count(o.length, "page length", 1), parse_count(o.width, "page width", 1)
    omit = o.omit or o.omit_all or length <= 10
    inputs = Inputs(proc, operands)
    texts: list[tuple[str, list[str], int]] = []
    ended = True
    async for word, reader in inputs.each():
        lines = decode(await reader.read_all()).split("\n")
        ended = not lines[-1]
        if ended:
            lines.pop()
        moment = int(proc.now() * NANO)
        if word != "-":
            moment = (await proc.fs.stat(proc.path(word), follow=True)).mtime_ns or moment
        texts.append(("" if word == "-" else word, lines, moment))
    if o.merge and texts:
        count = max(len(lines) for _, lines, _ in texts)
        columns = len(texts)
        rows = [[lines[i] if i < len(lines) else "" for _, lines, _ in texts] for i in range(count)]
        moment = texts[0][2] if len(texts) == 1 else int(proc.now() * NANO)
        await _pages(proc, o, rows, moment, "", columns, length, width, omit, ended)
        return inputs.status
    for name, lines, moment in texts:
        lines = [line.expandtabs(8) if columns > 1 else line for line in lines]
        body = length if omit else length - 10
        if o.double:
            body //= 2
        rows = []
        if columns == 1:
            rows = [[line] for line in lines]
        else:
            per_page = body * columns
            for start in range(0, len(lines), per_page):
                chunk = lines[start : start + per_page]
                height = -(-len(chunk) // columns) if o.omit_all or start + per_page >= len(lines) else body
                if o.across:
                    rows += [chunk[i : i + columns] for i in range(0, len(chunk), columns)]
                else:
                    rows += [chunk[i::height] for i in range(height)]
        await _pages(proc, o, rows, moment, name, columns, length, width, omit, ended)
    return inputs.status


async def _pages(
    proc: Proc,
    o: PrOptions,
    rows: list[list[str]],
    moment: int,
    name: str,
    columns: int,
    length: int,
    width: int,
    omit: bool,
    ended: bool,
) -> None:
    separator = o.sep_string if o.sep_string is not None else o.separator
    number = parse_count(o.first, "starting line number") if o.number is not None else None
    sep, digits = "\t", 5
    if o.number:
        found = re.fullmatch(r"(\D?)(\d*)", o.number)
        if found:
            sep, digits = found[1] or "\t", int(found[2] or 5)
    cell = (width - (columns - 1) * (len(separator) if separator else 1)) // columns if columns > 1 else width
    margin = " " * parse_count(o.indent, "line offset")
    out: list[str] = []
    for row in rows:
        text = ""
        if columns == 1:
            text = row[0]
        elif separator is not None:
            text = separator.join(row)
        else:
            text = "".join(c[:cell].ljust(cell + 1) if i < len(row) - 1 else c[:cell] for i, c in enumerate(row))
        if columns > 1 and separator is None:
            text = decode(unexpanded(encode(text), Tabs(()), True))
        if number is not None:
            text = f"{str(number).rjust(digits)[-digits:]}{sep}{text}"
            number += 1
        out.append(margin + text)
        if o.double:
            out.append("")
    if omit:
        if o.double and out and not ended:
            out.pop()
        await proc.emit(encode("".join(line + "\n" for line in out)))
        return
    body = length - 10
    stamp = strftime(o.date, *at(moment, zone_of(proc)))
    title = o.header if o.header is not None else name
    for page, start in enumerate(range(0, max(len(out), 1), body), 1):
        chunk = out[start : start + body]
        if not chunk:
            break
        left, right = stamp, f"Page {page}"
        room = width - len(left) - len(right) - len(title)
        middle = " " * max(1, room // 2) + title + " " * max(1, room - room // 2)
        head = f"\n\n{left}{middle}{right}\n\n\n"
        filler = "\f" if o.formfeed else "\n" * (body - len(chunk)) + "\n" * 5
        await proc.emit(encode(head + "".join(line + "\n" for line in chunk) + filler))


COMMANDS = [
    Command(
        "pr",
        pr,
        PrOptions,
        summary="Paginate or columnate FILE(s) for printing.",
        ignored=("-b",),
        refused={
            "-c --show-control-chars": "use cat -v before",
            "-e[= --expand-tabs[=": "use expand before",
            "-i[= --output-tabs[=": "use unexpand after",
            "-J --join-lines": "use paste",
            "-v --show-nonprinting": "use cat -v before",
            "-W= --page-width=": "use -w, or cut -c after",
            "--pages=": "use sed or head on the result",
        },
    ),
]
