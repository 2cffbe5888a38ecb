"""nl: number the lines of files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.inputs import LineInputs
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload_large
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.width import bounded


@dataclass(frozen=True, slots=True)
class NlOptions:
    body: str = value("-b", "--body-numbering", metavar="STYLE", default="t", help="use STYLE for numbering body lines")
    delimiter: str = value("-d", "--section-delimiter", metavar="CC", default="\\:", help="use CC for logical pages")
    footer: str = value("-f", "--footer-numbering", metavar="STYLE", default="n", help="STYLE for footer lines")
    header: str = value("-h", "--header-numbering", metavar="STYLE", default="n", help="STYLE for header lines")
    increment: str = value("-i", "--line-increment", metavar="NUMBER", default="1", help="line number increment")
    join_blank: str = value(
        "-l", "--join-blank-lines", metavar="NUMBER", default="1", help="count NUMBER empty lines as one"
    )
    format: str = value("-n", "--number-format", metavar="FORMAT", default="rn", help="ln, rn or rz")
    no_renumber: bool = flag("-p", "--no-renumber", help="do not reset line numbers for each section")
    separator: str = value(
        "-s", "--number-separator", metavar="STRING", default="\t", help="add STRING after the number"
    )
    start: str = value("-v", "--starting-line-number", metavar="NUMBER", default="1", help="first line number")
    width: str = value("-w", "--number-width", metavar="NUMBER", default="6", help="use NUMBER columns for numbers")


async def nl(proc: Proc, o: NlOptions, operands: list[str]) -> int:
    from ramet.commands.framework.posix_regex import bre_bytes, offload_long

    def number(text: str, what: str, low: int | None = None) -> int:
        if not re.fullmatch(r"\s*[+-]?\d+", text):
            raise UsageError(f"invalid {what}: {quote(text)}", hint=False)
        if not -(1 << 63) <= int(text) < 1 << 63:
            raise UsageError(f"invalid {what}: {quote(text)}: Value too large for defined data type", hint=False)
        if low is not None and int(text) < low:
            raise UsageError(f"invalid {what}: {quote(text)}: Numerical result out of range", hint=False)
        return int(text)

    for style, which in ((o.body, "body"), (o.header, "header"), (o.footer, "footer")):
        if style not in ("a", "t", "n") and not style.startswith("p"):
            raise UsageError(f"invalid {which} numbering style: {quote(style)}")
    width, step = bounded(number(o.width, "line number field width", 1)), number(o.increment, "line number increment")
    start, blank_group = number(o.start, "starting line number"), number(o.join_blank, "line number of blank lines", 1)
    if o.format not in ("ln", "rn", "rz"):
        raise UsageError(f"invalid line numbering format: {quote(o.format)}")
    pair = o.delimiter + ":" if len(o.delimiter) == 1 else o.delimiter
    mark = encode(pair)
    sections = {mark * 3: o.header, mark * 2: o.body, mark: o.footer} if mark else {}
    styles = [s for s in {o.body, o.header, o.footer} if s.startswith("p")]
    patterns = await offload_long(proc, styles, lambda: {s: bre_bytes(s[1:]) for s in styles})
    separator = encode(o.separator)
    empty = b" " * (width + len(separator))
    style, line_number, blanks = o.body, start, 0
    inputs = LineInputs(proc, operands)

    flags = {"ln": "-", "rz": "0", "rn": ""}[o.format]
    form = f"%{flags}{width}d".encode() + separator.replace(b"%", b"%%")

    def numbered(block: bytes) -> bytes:
        nonlocal style, line_number, blanks
        pieces = block.split(b"\n")
        if not pieces[-1]:
            pieces.pop()
        out: list[bytes] = []
        for line in pieces:
            if line in sections:
                style = sections[line]
                if not o.no_renumber:
                    line_number = start
                out.append(b"")
                continue
            if style == "a":
                if line or blank_group == 1:
                    wanted, blanks = True, 0
                else:
                    blanks += 1
                    wanted = blanks == blank_group
                    blanks = 0 if wanted else blanks
            elif style == "t":
                wanted = bool(line)
            elif style == "n":
                wanted = False
            else:
                wanted = patterns[style].search(line) is not None
            out.append((form % line_number if wanted else empty) + line)
            if wanted:
                line_number += step
        if out:
            out.append(b"")
        return b"\n".join(out)

    async for block in inputs.joined_lines():
        await proc.emit(await offload_large(proc.budget, len(block), partial(numbered, block)))
    return inputs.status


COMMANDS = [
    Command(
        "nl",
        nl,
        NlOptions,
        summary="Write each FILE to standard output, with line numbers added.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
]
