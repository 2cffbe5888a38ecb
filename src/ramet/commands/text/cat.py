"""Passing text through: cat, rev, tee, nl. Blocks, never lines, where nothing has to be numbered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from ramet.commands.framework.command import Command, UsageError, called, flag, optional, quote, value
from ramet.commands.framework.inputs import PART, Apart, Inputs, is_utf8
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload_large
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind
from ramet.core.streams import FileStream, Writer, line_blocks

# ---------------------------------------------------------------------------------------------------------- cat


@dataclass(frozen=True, slots=True)
class CatOptions:
    all: bool = flag("-A", "--show-all", help="equivalent to -vET")
    number_nonblank: bool = flag("-b", "--number-nonblank", help="number nonempty output lines, overrides -n")
    ve: bool = flag("-e", help="equivalent to -vE")
    ends: bool = flag("-E", "--show-ends", help="display $ at end of each line")
    number: bool = flag("-n", "--number", help="number all output lines")
    squeeze: bool = flag("-s", "--squeeze-blank", help="suppress repeated empty output lines")
    vt: bool = flag("-t", help="equivalent to -vT")
    tabs: bool = flag("-T", "--show-tabs", help="display TAB characters as ^I")
    nonprinting: bool = flag("-v", "--show-nonprinting", help="use ^ and M- notation, except for LFD and TAB")


def caret(byte: int) -> str:
    """A byte in `cat -v` notation."""
    if byte >= 128:
        return "M-" + caret(byte - 128)
    if byte < 32:
        return "^" + chr(byte + 64)
    return "^?" if byte == 127 else chr(byte)


async def cat(proc: Proc, o: CatOptions, operands: list[str]) -> int:
    inputs = Inputs(proc, operands)
    await _cat(proc, o, inputs)
    return inputs.status


async def _cat(proc: Proc, o: CatOptions, inputs: Inputs) -> None:
    ends, tabs = o.ends or o.all or o.ve, o.tabs or o.all or o.vt
    visible = o.nonprinting or o.all or o.ve or o.vt
    if not (ends or tabs or visible or o.number or o.number_nonblank or o.squeeze):
        async for word, reader in inputs.each():
            if await _feeds_itself(proc, reader):
                proc.complain(f"{word}: input file is output file")
                inputs.status = 1
            else:
                await _pass_through(proc, reader)
        return
    table: dict[int, str] = {}
    if visible:
        table = {code: caret(code) for code in range(256) if code not in (9, 10)}
    if tabs:
        table[9] = "^I"
    number, blank, fresh, held = 0, False, True, ""
    async for block in inputs.blocks(PART):
        text = held + block.decode("latin-1")
        if ends and not visible:
            held = "\r" if text.endswith("\r") else ""  # it is shown if the line ends here
            text = text.removesuffix("\r").replace("\r\n", "^M\n")
        if table:
            text = text.translate(table)
        if not (o.number or o.number_nonblank or o.squeeze):
            await proc.emit((text.replace("\n", "$\n") if ends else text).encode("latin-1"))
            continue
        if o.number and not o.number_nonblank and not o.squeeze and not ends:
            text, number, fresh = _numbered(text, number, fresh)
            await proc.emit(text.encode("latin-1"))
            continue
        out: list[str] = []
        for line in text.splitlines(keepends=True) if not _ODD_BREAKS.search(text) else _split_keep(text):
            if fresh and line == "\n":
                if blank and o.squeeze:
                    continue
                blank = True
            else:
                blank = False
            if fresh and (not blank if o.number_nonblank else o.number):
                number += 1
                out.append(f"{number:6d}\t")
            fresh = line.endswith("\n")
            out.append(line.replace("\n", "$\n") if ends else line)
        await proc.emit("".join(out).encode("latin-1"))
    await proc.emit(held.encode())


def _numbered(text: str, number: int, fresh: bool) -> tuple[str, int, bool]:
    """A text with numbers before its lines, the last one's number, and whether the next text begins a line.

    `fresh` says whether this one does.
    """
    begun, newline, text = ("", "", text) if fresh else text.partition("\n")
    if not text:
        return begun + newline, number, bool(newline)
    lines = text.split("\n")
    whole = not lines[-1]
    if whole:
        lines.pop()
    shown = "\n".join([f"{i:6d}\t{line}" for i, line in enumerate(lines, number + 1)])
    return f"{begun}{newline}{shown}\n" if whole else begun + newline + shown, number + len(lines), whole


_ODD_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85]")


def _split_keep(text: str) -> list[str]:
    pieces = text.split("\n")
    last = pieces.pop()
    lines = [piece + "\n" for piece in pieces]
    if last:
        lines.append(last)
    return lines


async def _feeds_itself(proc: Proc, reader: object) -> bool:
    """`cat f >> f`, which would never end."""
    out = proc.stdout
    if not (isinstance(out, FileStream) and isinstance(reader, FileStream)):
        return False
    source, target = await reader.stat(), await out.stat()
    return (
        source.kind is target.kind is Kind.FILE
        and source.inode is not None
        and source.inode == target.inode
        and reader.tell() < (source.size or 0)
    )


async def _pass_through(proc: Proc, reader: object) -> None:
    out = proc.stdout
    while block := await reader.read():  # type: ignore[attr-defined]
        out.write(block)
        if out.full:
            await out.drain()


# ---------------------------------------------------------------------------------------------------------- rev


@dataclass(frozen=True, slots=True)
class RevOptions:
    zero: bool = flag("-0", "--zero", help="use the byte zero as line separator")


async def rev(proc: Proc, o: RevOptions, operands: list[str]) -> int:
    utf8, end = is_utf8(proc), b"\0" if o.zero else b"\n"
    inputs = Inputs(proc, operands, form="cannot open {}: {}", dash=False, name=str)
    async for _, reader in inputs.each():
        async for block in line_blocks(reader, end, PART):
            if not utf8 or block.isascii():
                lines = [line[::-1] for line in block.removesuffix(end).split(end)]
            else:
                lines = [encode(decode(line)[::-1]) for line in block.removesuffix(end).split(end)]
            await proc.emit(end.join(lines) + end if block.endswith(end) else end.join(lines))
            await proc.budget.yield_turn()
    return inputs.status


# ---------------------------------------------------------------------------------------------------------- tee


@dataclass(frozen=True, slots=True)
class TeeOptions:
    append: bool = flag("-a", "--append", help="append to the given FILEs, do not overwrite")
    interrupts: bool = flag("-i", "--ignore-interrupts", help="ignore interrupt signals")
    diagnose: bool = flag("-p", help="diagnose errors writing to non pipes")
    errors: str = optional(
        "--output-error",
        metavar="MODE",
        const="warn-nopipe",
        default="",
        help="set behavior on write error",
        choices=("warn", "warn-nopipe", "exit", "exit-nopipe"),
    )


async def tee(proc: Proc, o: TeeOptions, operands: list[str]) -> int:
    status = 0
    files: list[tuple[str, Writer]] = []
    for word in operands:
        try:
            # Here a hyphen is a name like any other.
            files.append((word, await proc.create("./-" if word == "-" else word, append=o.append)))
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            status = 1
    if o.errors.startswith("exit") and status:
        return status
    tolerant = o.diagnose or bool(o.errors)
    out: Writer | None = proc.stdout
    try:
        while block := await proc.stdin.read():
            if out is not None:
                try:
                    out.write(block)
                    if out.full:
                        await out.drain()
                except BrokenPipeError:
                    if not tolerant:
                        raise
                    out = None
            for word, writer in list(files):
                try:
                    writer.write(block)
                    if writer.full:
                        await writer.drain()
                except OSError as error:
                    proc.complain(f"{called(word)}: {reason(error)}")
                    files.remove((word, writer))
                    status = 1
            if out is None and not files:
                break
    finally:
        for _, writer in files:
            await proc.close(writer)
    return status


# ----------------------------------------------------------------------------------------------------------- nl


def _style(text: str) -> str:
    if text in ("a", "t", "n") or text.startswith("p"):
        return text
    raise ValueError(f"invalid body numbering style: {quote(text)}")


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
    width, step = number(o.width, "line number field width", 1), number(o.increment, "line number increment")
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
    inputs = Apart(proc, operands)

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
        "cat",
        cat,
        CatOptions,
        summary="Concatenate FILE(s) to standard output.",
        ignored=("-u",),
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "closing standard input: {}"),
    ),
    Command(
        "rev",
        rev,
        RevOptions,
        summary="Reverse the characters of every line.",
        version_letters="V",
        help_letters="h",
        stdin_error=StdinError("stdin: 0: {}"),
    ),
    Command(
        "tee",
        tee,
        TeeOptions,
        summary="Copy standard input to each FILE, and also to standard output.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        write_error=("'standard output': ", 1),
        stdin_error=StdinError("read error: {}", "standard input: {}"),
    ),
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
