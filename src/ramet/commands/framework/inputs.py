"""Shared input helpers: open operands with GNU's messages, read lines, parse counts, measure text."""

from __future__ import annotations

import errno
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TypeVar

from ramet.commands.framework.command import UsageError, called, quote
from ramet.concurrency.offload import offload_large
from ramet.concurrency.sizes import HUGE, LARGE
from ramet.core.errors import LimitExceeded, reason
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, Reader, line_blocks

T = TypeVar("T")

PART = 32 * 1024
"""Bytes per read of commands that work on every line: the lines of one read take less than 20 ms."""
HELD = 4096
"""Bytes of output that the C library buffers in the originals; their error messages overtake it."""


def leave(reader: Reader, rest: bytes, taken: int) -> None:
    """Return unused input to the reader; from a pipe, the first `taken` bytes are lost as in the originals."""
    if not reader.lasting:
        rest = rest[taken:]
    if rest:
        reader.unread(rest)


def only_opens(error: OSError) -> bool:
    """Return whether the originals would open this and fail on reading: a directory, a closed standard input."""
    return error.errno in (errno.EISDIR, errno.EBADF)


class Inputs:
    """The operands of a command, opened one after another; an unreadable one is reported and sets the status."""

    def __init__(
        self,
        proc: Proc,
        words: Sequence[str],
        *,
        form: str = "{}: {}",
        failure: int = 1,
        directory: str = "",
        dash: bool = True,
        name: Callable[[str], str] = called,
    ) -> None:
        self.proc, self.words, self.form, self.failure = proc, list(words) or ["-"], form, failure
        self.directory = directory or form
        """Message for inputs that open and fail on reading: a directory, a closed standard input."""
        self.status = 0
        self.failed = 0
        """Number of inputs that could not be read."""
        self.missing = 0
        """Number of inputs that could not be opened."""
        self.name = name
        """Formats a file name for messages."""
        self.dash = dash or not words
        """Whether `-` is standard input."""

    def fail(self, word: str, error: OSError) -> None:
        if error.errno == errno.EPIPE:
            raise error
        form, name = (self.directory, called) if only_opens(error) else (self.form, self.name)
        self.proc.complain(form.format(name(word), reason(error)))
        self.status = self.failure
        self.failed += 1
        self.missing += not only_opens(error)

    async def each(self) -> AsyncIterator[tuple[str, Reader]]:
        for word in self.words:
            try:
                reader = await self.proc.open(word, dash=self.dash)
            except OSError as error:
                self.fail(word, error)
                continue
            try:
                yield word, reader
            finally:
                await self.proc.close(reader)

    async def blocks(self, size: int = BLOCK) -> AsyncIterator[bytes]:
        """Read all files as one stream."""
        async for _, reader in self.each():
            while block := await reader.read(size):
                yield block
                await self.proc.budget.yield_turn()

    async def joined_lines(self, delim: bytes = b"\n") -> AsyncIterator[bytes]:
        """Read all files as one stream of blocks that end at a line end."""
        rest: list[bytes] = []
        held, longest = 0, self.proc.budget.limits.string_bytes
        async for block in self.blocks(PART):
            cut = block.rfind(delim) + 1
            if not cut:
                rest.append(block)
                held += len(block)
                if held > longest:
                    raise self.proc.budget.exceeded("string_bytes")
                continue
            held = 0
            rest.append(block[:cut])
            yield rest[0] if len(rest) == 1 else b"".join(rest)
            rest = [block[cut:]] if cut < len(block) else []
        if rest:
            yield b"".join(rest)


class LineInputs(Inputs):
    """Inputs that each begin a new line: a missing last newline is added."""

    async def blocks(self, size: int = BLOCK) -> AsyncIterator[bytes]:
        async for _, reader in self.each():
            last = b"\n"
            while block := await reader.read(size):
                last = block[-1:]
                yield block
                await self.proc.budget.yield_turn()
            if last != b"\n":
                yield b"\n"


async def filter_lines(
    proc: Proc,
    words: Sequence[str],
    change: Callable[[list[bytes]], list[bytes]],
    delim: bytes = b"\n",
    *,
    complete: bool = True,
    form: str = "{}: {}",
) -> int:
    """Pass every file through `change` by blocks of lines; `complete` adds a missing last delimiter."""
    inputs = Inputs(proc, words, form=form)
    async for _, reader in inputs.each():
        async for block in line_blocks(reader, delim, PART):
            work = partial(_changed, block, change, delim, complete)
            await proc.emit(await offload_large(proc.budget, len(block), work, LARGE))
            await proc.budget.yield_turn()
    return inputs.status


def _changed(block: bytes, change: Callable[[list[bytes]], list[bytes]], delim: bytes, complete: bool) -> bytes:
    pieces = block.split(delim)
    ended = not pieces[-1]
    if ended:
        pieces.pop()
    out = change(pieces)
    if out and (ended or complete):
        out.append(b"")
    return delim.join(out)


async def lead(proc: Proc, word: str, size: int) -> bytes:
    """Read the first bytes of one operand, which may be endless; OSError is the caller's."""
    reader = await proc.open(word)
    parts: list[bytes] = []
    try:
        while size > 0 and (block := await reader.read(size)):
            parts.append(block)
            size -= len(block)
    finally:
        await proc.close(reader)
    return b"".join(parts)


async def slurp(proc: Proc, word: str) -> bytes:
    """Read all of one operand; OSError is the caller's. An endless input is an error."""
    reader = await proc.open(word)
    parts: list[bytes] = []
    most = proc.budget.limits.whole
    room = most
    try:
        while block := await reader.read(HUGE):
            room -= len(block)
            if room < 0:
                raise LimitExceeded("whole_bytes", most)
            parts.append(block)
    finally:
        await proc.close(reader)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_lines(proc: Proc, word: str, delim: bytes = b"\n") -> list[bytes]:
    """Read all lines of one operand, without delimiters."""
    return (await read_ended_lines(proc, word, delim))[0]


async def read_ended_lines(proc: Proc, word: str, delim: bytes = b"\n") -> tuple[list[bytes], bool]:
    """Read all lines, and return whether the last one has its delimiter."""
    found: list[bytes] = []
    ended = True
    reader = await proc.open(word)
    room = proc.budget.limits.whole
    try:
        async for block in line_blocks(reader, delim):
            room -= len(block)
            if room < 0:
                raise proc.budget.exceeded("whole_bytes")
            found += split_lines(block, delim)
            ended = block.endswith(delim)
    finally:
        await proc.close(reader)
    return found, ended


def split_lines(block: bytes, delim: bytes = b"\n") -> list[bytes]:
    """Split a block into its lines without their delimiters."""
    lines = block.split(delim)
    if not lines[-1]:
        lines.pop()
    return lines


# ------------------------------------------------------------------------------------------------------ numbers

_POWERS = "KMGTPEZYRQ"
_NUMBER = re.compile(r"\s*\+?(\d+)([A-Za-z]*)\Z")


def size_suffix(suffix: str, lower: str = "km") -> int | None:
    """The factor of a GNU size suffix (`K` 1024, `kB` 1000, `KiB` 1024, `b` 512); None when it means nothing.

    `lower` are the letters that may be small: each command of GNU has its own.
    """
    if not suffix:
        return 1
    if suffix == "b":
        return 512
    if suffix == "B":
        return 1
    letter, rest = suffix[0].upper() if suffix[0] in lower else suffix[0], suffix[1:]
    if letter not in _POWERS:
        return None
    base = {"": 1024, "iB": 1024, "B": 1000, "D": 1000}.get(rest)
    return None if base is None else int(base ** (_POWERS.index(letter) + 1))


def parse_size(text: str, what: str) -> int:
    """A count such as `10`, `1K`, `3MB`; `what` names it in the message (`number of lines`)."""
    found = _NUMBER.match(text)
    factor = size_suffix(found[2]) if found else None
    if found is None or factor is None:
        raise UsageError(f"invalid {what}: {quote(text)}", hint=False)
    amount = int(found[1]) * factor
    if amount >= 1 << 64:
        raise UsageError(f"invalid {what}: {quote(text)}: Value too large for defined data type", hint=False)
    return amount


def parse_count(text: str, what: str, low: int = 0, high: int | None = None) -> int:
    """A plain decimal number."""
    found = re.match(r"\s*\+?(\d+)\Z", text)
    if found is None:
        raise UsageError(f"invalid {what}: {quote(text)}", hint=False)
    if int(found[1]) < low or (high is not None and int(found[1]) > high):
        raise UsageError(f"invalid {what}: {quote(text)}: Numerical result out of range", hint=False)
    return int(found[1])


# --------------------------------------------------------------------------------------------------------- text


def is_unbuffered(proc: Proc) -> bool:
    """Return whether `stdbuf` disabled output buffering."""
    return proc.env.get("_STDBUF_O") in ("0", "L")


def wants_color(proc: Proc, when: str) -> bool:
    """Return whether to colour the output: `always`, or on a terminal `auto`.

    An option that is not given is `auto` where $CLICOLOR is set, as `ramet shell` does.
    """
    if when in ("always", "yes", "force"):
        return True
    asked = when in ("auto", "tty", "if-tty") or (not when and bool(proc.env.get("CLICOLOR")))
    return asked and proc.stdout.terminal and proc.env.get("TERM") != "dumb" and not proc.env.get("NO_COLOR")


def is_utf8(proc: Proc) -> bool:
    """Return whether the locale is UTF-8: yes unless it names C, POSIX or another charset."""
    env = proc.env
    name = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or "C.UTF-8"
    charset = name.partition(".")[2].partition("@")[0]
    return name not in ("C", "POSIX") and charset.lower().replace("-", "") in ("", "utf8")


def char_width(char: str) -> int:
    """Columns a character takes: 0 for combining and control characters, 2 for wide ones."""
    code = ord(char)
    if 32 <= code < 127:
        return 1
    if code < 32 or 127 <= code < 160:
        return 0
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0 if code != 0xAD else 1
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def text_width(text: str) -> int:
    """Columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(char_width, text))
