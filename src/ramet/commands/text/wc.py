"""wc: count lines, words, characters and bytes by translating and counting whole blocks."""

from __future__ import annotations

import codecs
import errno
from dataclasses import dataclass

from ramet.commands.framework.command import Command, called, flag, quote, typographic, value
from ramet.commands.framework.files0_from import Listed, listed
from ramet.commands.framework.inputs import char_width, is_utf8, only_opens
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.sizes import HUGE
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import FileStream, Reader
from ramet.patterns.count import occurrences


@dataclass(frozen=True, slots=True)
class WcOptions:
    bytes: bool = flag("-c", "--bytes", help="print the byte counts")
    chars: bool = flag("-m", "--chars", help="print the character counts")
    lines: bool = flag("-l", "--lines", help="print the newline counts")
    files0: str | None = value("--files0-from", metavar="F", help="read input from the NUL-terminated names in file F")
    longest: bool = flag("-L", "--max-line-length", help="print the maximum display width")
    words: bool = flag("-w", "--words", help="print the word counts")


_SPACES = b" \t\n\r\v\f"
_WORDS = bytes(32 if c in _SPACES else 120 for c in range(256))
_SILENT = bytes(c for c in (*range(32), 127) if c not in _SPACES)
"""Control characters neither begin nor end a word."""
_BLANK_CODES = (0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000)
"""Characters beyond ASCII that end a word; GNU counts those without a line break among them."""
_WIDE_SPACES = [chr(code).encode() for code in _BLANK_CODES]


@dataclass(slots=True)
class Counts:
    lines: int = 0
    words: int = 0
    chars: int = 0
    bytes: int = 0
    longest: int = 0

    def add(self, other: Counts) -> None:
        self.lines += other.lines
        self.words += other.words
        self.chars += other.chars
        self.bytes += other.bytes
        self.longest = max(self.longest, other.longest)


async def wc(proc: Proc, o: WcOptions, operands: list[str]) -> int:
    if not (o.bytes or o.chars or o.lines or o.longest or o.words):
        wanted: tuple[str, ...] = ("lines", "words", "bytes")
    else:
        wanted = tuple(n for n in ("lines", "words", "chars", "bytes", "longest") if getattr(o, n))
    words = [Listed(word) for word in operands or ["-"]]
    if o.files0 is not None:
        try:
            words = await listed(proc, o.files0, operands)
        except IsADirectoryError as error:
            proc.complain(f"{called(o.files0)}: read error: {reason(error)}")
            return 1
        except OSError as error:
            proc.complain(f"cannot open {quote(o.files0)} for reading: {reason(error)}")
            return 1
    named = bool(operands) or o.files0 is not None
    total, status = Counts(), 0
    rows: list[tuple[Counts, str | None] | str] = []
    """Counts with their names, and messages between them: the width of the columns is known only at the end."""
    sizes, odd = 0, False
    for word, problem in words:
        counts = Counts()
        if problem or not word:
            rows.append(problem or "invalid zero-length file name")
            status = 1
            continue
        try:
            reader = await proc.open(word)
        except OSError as error:
            status = 1
            rows.append(f"{called(word) if named else typographic(proc, quote('standard input'))}: {reason(error)}")
            if only_opens(error):
                odd = odd or error.errno == errno.EISDIR
                rows.append((counts, word if named else None))
            continue
        if isinstance(reader, FileStream):
            sizes += (await reader.stat()).size or 0
        else:
            odd = True
        try:
            await _count(proc, reader, counts, wanted)
        finally:
            await proc.close(reader)
        total.add(counts)
        rows.append((counts, word if named else None))
    # GNU uses columns of width 7 if an input has no known size.
    # Names that are read from a pipe give no sizes.
    piped = o.files0 is not None and (o.files0 == "-" or o.files0.startswith("/dev/"))
    width = 1 if piped or (len(words) == 1 and len(wanted) == 1) else max(len(str(sizes)), 7 if odd else 1)
    if len(words) > 1:
        rows.append((total, "total"))
    for row in rows:
        if isinstance(row, str):
            proc.complain(row)
            continue
        counts, name = row
        text = " ".join(str(getattr(counts, n)).rjust(width) for n in wanted)
        await proc.emit(encode(f"{text} {name}\n" if name is not None else f"{text}\n"))
    return status


async def _count(proc: Proc, reader: Reader, counts: Counts, wanted: tuple[str, ...]) -> None:
    if wanted == ("bytes",) and isinstance(reader, FileStream):
        size = (await reader.stat()).size
        if size:
            counts.bytes = max(0, size - reader.tell())
            reader.seek(size)
            return
    utf8 = is_utf8(proc)
    need_words, need_chars, need_width = "words" in wanted, "chars" in wanted, "longest" in wanted
    decoder = codecs.getincrementaldecoder("utf-8")("ignore") if utf8 and need_chars else None
    width = _Width(utf8) if need_width else None
    lines = words = size = chars = 0
    in_word = False
    while block := await reader.read(HUGE):
        size += len(block)
        lines += occurrences(block, b"\n")
        if need_words:
            if utf8 and not block.isascii():
                for space in _WIDE_SPACES:
                    if space in block:
                        block = block.replace(space, b" ")
            marks = block.translate(_WORDS, _SILENT)
            if marks:
                words += marks.count(b" x") + (0 if in_word else marks.startswith(b"x"))
                in_word = marks.endswith(b"x")
        if decoder is not None:
            chars += len(decoder.decode(block))
        if width is not None:
            for at in range(0, len(block), _LOOKED_AT):
                width.feed(block[at : at + _LOOKED_AT])
                await proc.budget.yield_turn()
    counts.lines, counts.words, counts.bytes = lines, words, size
    counts.chars = chars if decoder is not None else size
    counts.longest = width.finish() if width is not None else 0


_LOOKED_AT = 16 * 1024
"""Bytes whose characters are measured between two yields."""


class _Width:
    """The display width of the longest line."""

    def __init__(self, utf8: bool) -> None:
        self.longest = self.column = 0
        self.decoder = codecs.getincrementaldecoder("utf-8" if utf8 else "latin-1")("ignore")

    def feed(self, block: bytes) -> None:
        for i, line in enumerate(self.decoder.decode(block).split("\n")):
            if i:
                self.longest = max(self.longest, self.column)
                self.column = 0
            if line.isascii() and line.isprintable():
                self.column += len(line)
                continue
            for char in line:
                if char == "\t":
                    self.column += 8 - self.column % 8
                elif char in "\r\f":
                    self.longest = max(self.longest, self.column)
                    self.column = 0
                elif char != "\v":
                    self.column += char_width(char)

    def finish(self) -> int:
        return max(self.longest, self.column)


COMMANDS = [
    Command(
        "wc",
        wc,
        WcOptions,
        summary="Print newline, word, and byte counts for each FILE.",
        examples=[("wc -l FILE", "the number of lines"), ("wc -w < FILE", "the number of words")],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="-: {}"),
    ),
]
