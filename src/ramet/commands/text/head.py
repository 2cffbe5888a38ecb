"""head: print the first lines or bytes of files."""

from __future__ import annotations

import errno
import re
from collections import deque
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, choose, flag, mixed, value
from ramet.commands.framework.inputs import Inputs, leave, parse_size
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.text.head_tail import (
    after_nth,
    byte_count,
    line_count,
    print_title,
    refuse_late_count,
    report_open_error,
)
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, FileStream, Reader
from ramet.patterns.count import occurrences


@dataclass(frozen=True, slots=True)
class HeadOptions:
    amount: tuple[str, str] = mixed(
        value(
            "-n",
            "--lines",
            metavar="[-]NUM",
            convert=line_count,
            help="print the first NUM lines; with a leading '-', all but the last NUM",
        ),
        value(
            "-c",
            "--bytes",
            metavar="[-]NUM",
            convert=byte_count,
            help="print the first NUM bytes; with a leading '-', all but the last NUM",
        ),
        default=("lines", "10"),
    )
    headed: bool | None = choose(
        {"-q --quiet --silent": False, "-v --verbose": True},
        help={
            "-q --quiet --silent": "never print headers giving file names",
            "-v --verbose": "always print headers giving file names",
        },
    )
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


def _old_head(words: list[str]) -> list[str]:
    """`-5`, `-5c`, `-5q`: the historical form, only as the first word."""
    found = re.fullmatch(r"-(\d+)(.*)", words[0], re.DOTALL) if words else None
    refuse_late_count(words[1:] if found else words, "invalid trailing option")
    if found is None:
        return words
    if wrong := found[2].lstrip("bckmlqvz"):
        raise UsageError(f"invalid trailing option -- {wrong[0]}")
    number, letters = found[1], found[2]
    unit = "-c" if set(letters) & set("cbkm") else "-n"
    for letter, factor in (("b", "b"), ("k", "K"), ("m", "M")):
        if letter in letters:
            number += factor
    rest = "".join(c for c in letters if c in "qvz")
    return [unit, number, *([f"-{rest}"] if rest else []), *words[1:]]


async def head(proc: Proc, o: HeadOptions, operands: list[str]) -> int:
    unit, text = o.amount
    drop_last = text.startswith("-")
    amount = parse_size(text.lstrip("-") if drop_last else text, f"number of {unit}")
    delim = b"\0" if o.zero else b"\n"
    titled = len(operands) > 1 if o.headed is None else o.headed
    inputs = Inputs(proc, operands, form="cannot open {} for reading: {}")
    first = True
    for word in inputs.words:
        try:
            reader = await proc.open(word)
        except OSError as error:
            if error.errno == errno.EISDIR and not (amount or drop_last):  # of which nothing is to be read
                if titled:
                    await print_title(proc, word, first)
                first = False
                continue
            first = await report_open_error(proc, word, error, titled, first)
            inputs.status = 1
            continue
        try:
            if titled:
                await print_title(proc, word, first)
            first = False
            if drop_last:
                await (_all_but_last_bytes if unit == "bytes" else _all_but_last_lines)(proc, reader, amount, delim)
            elif unit == "bytes":
                await _first_bytes(proc, reader, amount)
            else:
                await _first_lines(proc, reader, amount, delim)
        finally:
            await proc.close(reader)
    return inputs.status


async def _first_bytes(proc: Proc, reader: Reader, amount: int) -> None:
    while amount > 0 and (block := await reader.read(min(amount, BLOCK))):
        amount -= len(block)
        await proc.emit(block)
        await proc.budget.yield_turn()


async def _first_lines(proc: Proc, reader: Reader, amount: int, delim: bytes) -> None:
    while amount > 0 and (block := await reader.read()):
        have = occurrences(block, delim)
        if have < amount:
            amount -= have
            await proc.emit(block)
        else:
            end = after_nth(block, delim, amount)
            leave(reader, block[end:], -end % _BUFFER)
            await proc.emit(block[:end])
            return
        await proc.budget.yield_turn()


_BUFFER = 8192
"""Bytes that head takes from a pipe at a time."""


async def _all_but_last_bytes(proc: Proc, reader: Reader, amount: int, delim: bytes) -> None:
    held: deque[bytes] = deque()
    size = 0
    while block := await reader.read():
        held.append(block)
        size += len(block)
        while size - len(held[0]) >= amount:
            size -= len(held[0])
            await proc.emit(held.popleft())
            if not held:
                break
        reader.hold_whole(size)
        await proc.budget.yield_turn()
    if size > amount:
        await proc.emit(held[0][: size - amount])
    _give_back(reader, min(size, amount))


def _give_back(reader: Reader, size: int) -> None:
    """Seek a file back over bytes that were read and not shown, as GNU does."""
    if size and isinstance(reader, FileStream):
        reader.seek(reader.tell() - size)


async def _all_but_last_lines(proc: Proc, reader: Reader, amount: int, delim: bytes) -> None:
    held: deque[tuple[bytes, int]] = deque()
    total, size, last = 0, 0, delim
    while block := await reader.read():
        count, last = occurrences(block, delim), block[-1:]
        held.append((block, count))
        total += count
        size += len(block)
        # A complete line can be printed when enough lines follow it.
        while held and total - held[0][1] > amount:
            done, count = held.popleft()
            total -= count
            size -= len(done)
            await proc.emit(done)
        reader.hold_whole(size)
        await proc.budget.yield_turn()
    keep = total + (last != delim) - amount
    left = 0
    for block, count in held:
        cut = 0 if keep <= 0 else len(block) if count < keep else after_nth(block, delim, keep)
        if cut:
            await proc.emit(block[:cut])
        left += len(block) - cut
        keep -= count
    _give_back(reader, left)


COMMANDS = [
    Command(
        "head",
        head,
        HeadOptions,
        summary="Print the first 10 lines of each FILE to standard output.",
        rewrite=_old_head,
        examples=[("head -n 3 FILE", "the first three lines"), ("head -c 1K FILE", "the first 1024 bytes")],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("error reading 'standard input': {}", "-: {}"),
    ),
]
