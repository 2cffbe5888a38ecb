"""Command sort: read inputs, sort or merge or check them, write the result in blocks."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from ramet.commands.framework.command import Command, UsageError, called, quote
from ramet.commands.framework.files0_from import listed
from ramet.commands.framework.inputs import lead
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.text.sort.keys import KeyOf, Line
from ramet.commands.text.sort.merge import chunk
from ramet.commands.text.sort.options import SortOptions, old_keys
from ramet.commands.text.sort.order import Order, make_order
from ramet.commands.text.sort.runs import PIECE, Runs, packed
from ramet.commands.text.sort.sources import merged_sources
from ramet.commands.text.sort.tally import Tally
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks


async def sort(proc: Proc, o: SortOptions, operands: list[str]) -> int:
    _check_values(o)
    names = operands or ["-"]
    if o.files0 is not None:
        try:
            found = await listed(proc, o.files0, operands)
        except IsADirectoryError:
            raise UsageError(f"cannot read file names from {quote(o.files0)}", hint=False) from None
        except OSError as error:
            proc.complain(f"open failed: {called(o.files0)}: {reason(error)}")
            return 2
        if not found:
            raise UsageError(f"no input from {quote(o.files0)}", hint=False)
        for name, problem in found:
            if name == "-":
                raise UsageError("when reading file names from stdin, no file name of '-' allowed", hint=False)
            if problem:
                raise UsageError(problem, hint=False)
        names = [name for name, _ in found]
    separator = None
    if o.separator is not None:
        raw = encode(o.separator)
        if not raw:
            raise UsageError("empty tab", hint=False)
        if o.separator == "\\0":
            raw = b"\0"
        if len(raw) > 1:
            raise UsageError(f"multi-character tab {quote(o.separator)}", hint=False)
        separator = raw.decode("latin-1")
        if any(name == "separator" and given != o.separator for name, given in o.order):
            raise UsageError("incompatible tabs", hint=False)
    salt = b""
    if o.random or o.word == "random" or any("R" in k for k in o.keys):
        import os

        salt = (await lead(proc, o.random_source, 16)) if o.random_source else os.urandom(16)
        if len(salt) < 16:
            raise UsageError(f"{quote(str(o.random_source))}: end of file", hint=False)
    order = make_order(o, separator, salt)
    end = b"\0" if o.zero else b"\n"
    if o.check:
        if len(names) > 1:
            raise UsageError(
                f"extra operand {quote(names[1])} not allowed with -{'C' if o.check in ('quiet', 'silent') else 'c'}",
                hint=False,
            )
        return await _check(proc, o, order, names[0], end)
    for word in names:
        if word != "-" and not await _readable(proc, word):
            return 2
    if o.merge:
        lines_in = [_line_source(proc, word, end, order) for word in names]
        return await _write_out(proc, o, end, merged_sources(lines_in, order), order)
    return await _sort_all(proc, o, order, names, end)


def _check_values(o: SortOptions) -> None:
    """Validate options, including those that have no effect here."""
    if o.buffer is not None:
        found = re.fullmatch(r"(\d+)(.*)", o.buffer)
        if found is None:
            raise UsageError(f"invalid -S argument {quote(o.buffer)}", hint=False)
        if found[2] not in ("", *"%bkKmMgGtTPEZY"):
            raise UsageError(f"invalid suffix in -S argument {quote(o.buffer)}", hint=False)
    if o.parallel is not None:
        if not o.parallel.isdigit():
            raise UsageError(f"invalid --parallel argument {quote(o.parallel)}", hint=False)
        if not int(o.parallel):
            raise UsageError("number in parallel must be nonzero", hint=False)
    if o.batch is not None and (not o.batch.isdigit() or int(o.batch) < 2):
        small = "\nsort: minimum --batch-size argument is '2'" if o.batch.isdigit() else ""
        raise UsageError(f"invalid --batch-size argument {quote(o.batch)}{small}", hint=False)
    checks = {str(stored) for name, stored in o.order if name == "check"}
    if len({"quiet" if how == "silent" else "diagnose" if how == "diagnose-first" else how for how in checks}) > 1:
        raise UsageError("options '-cC' are incompatible", hint=False)
    if o.check and o.output is not None:
        letter = "C" if o.check in ("quiet", "silent") else "c"
        raise UsageError(f"options '-{letter}o' are incompatible", hint=False)
    if len({stored for name, stored in o.order if name == "output"}) > 1:
        raise UsageError("multiple output files specified", hint=False)


async def _readable(proc: Proc, word: str, failed: str = "cannot read") -> bool:
    try:
        if proc.descriptor(word) is None:
            stat = await proc.fs.stat(proc.path(word), follow=True)
            if stat.is_dir:
                proc.complain(f"read failed: {called(word)}: Is a directory")
                return False
    except OSError as error:
        proc.complain(f"{failed}: {called(word)}: {reason(error)}")
        return False
    return True


async def _line_source(proc: Proc, word: str, end: bytes, order: Order) -> AsyncIterator[list[Line]]:
    """Yield the lines of a file in lists."""
    reader = await proc.open(word)
    try:
        async for block in line_blocks(reader, end):
            whole = block if block.endswith(end) else b"".join((block, end))
            yield chunk(whole, end, order)[0]
    finally:
        await proc.close(reader)


async def _sort_all(proc: Proc, o: SortOptions, order: Order, names: list[str], end: bytes) -> int:
    # Lines being sorted or merged, and allocator overhead, take the rest of the memory.
    memory = proc.budget.limits.sort_memory // 8
    budget = proc.budget
    runs = Runs(order, end, memory)
    tally = Tally(order, end, memory) if order.total or o.unique else None
    try:
        async for piece in _pieces(proc, names, end):
            if tally is None:
                await runs.add(piece, budget)
            elif not await tally.add(piece, budget):
                for counted in tally.pieces(o.unique):
                    await runs.add(counted, budget)
                    await budget.yield_turn()
                tally = None
            await budget.yield_turn()
        if tally is None:
            return await _write_out(proc, o, end, runs.merged(budget), order)
        if o.unique:
            for counted in tally.pieces(unique=True):
                await runs.add(counted, budget)
            return await _write_out(proc, o, end, runs.merged(budget), order)
        return await _write_blocks(proc, o, tally.sorted(budget))
    except _UnreadableInput:
        return 2
    finally:
        runs.close()


class _UnreadableInput(Exception):
    """An input could not be opened; it is reported already."""


async def _pieces(proc: Proc, names: list[str], end: bytes) -> AsyncIterator[bytes]:
    """Yield all input in pieces of about `PIECE` bytes that end at a line end."""
    held: list[bytes] = []
    size = 0
    for word in names:
        try:
            reader = await proc.open(word)
        except OSError as error:
            proc.complain(f"cannot read: {called(word)}: {reason(error)}")
            raise _UnreadableInput from None
        try:
            last = end
            while block := await reader.read(PIECE):
                held.append(block)
                last = block[-1:]
                size += len(block)
                if size >= PIECE and (cut := block.rfind(end) + 1):
                    held[-1] = block[:cut]
                    yield held[0] if len(held) == 1 else b"".join(held)
                    held = [block[cut:]] if cut < len(block) else []
                    size = len(block) - cut
                elif size >= PIECE:
                    reader.hold(size)
            if last != end:
                held.append(end)
        finally:
            await proc.close(reader)
    if held:
        yield b"".join(held)


async def _write_out(proc: Proc, o: SortOptions, end: bytes, batches: AsyncIterator[list[Line]], order: Order) -> int:
    return await _write_blocks(proc, o, _packed(batches, end, order.key, o.unique))


async def _packed(
    batches: AsyncIterator[list[Line]], end: bytes, key: KeyOf | None, unique: bool
) -> AsyncIterator[bytes]:
    """Encode lists of lines as blocks; with `unique`, only the first line of equal keys."""
    last: Any = object()
    delim = end.decode()
    async for batch in batches:
        if unique:
            kept: list[Line] = []
            for line in batch:
                this = line if key is None else key(line)
                if this != last:
                    kept.append(line)
                    last = this
            batch = kept
        if batch:
            yield packed(batch, delim)


async def _write_blocks(proc: Proc, o: SortOptions, blocks: AsyncIterator[bytes]) -> int:
    if o.output is None:
        async for block in blocks:
            await proc.emit(block)
        return 0
    if o.merge:
        # The output may be one of the inputs, which a merge still reads: collect first, as sort -o promises.
        everything = [block async for block in blocks]
        blocks = _again(everything)
    try:
        out = await proc.create(o.output)
    except OSError as error:
        proc.complain(f"open failed: {called(o.output)}: {reason(error)}")
        return 2
    async for block in blocks:
        out.write(block)
        if out.full:
            await out.drain()
        await proc.budget.yield_turn()
    await proc.close(out)
    return 0


async def _again(blocks: list[bytes]) -> AsyncIterator[bytes]:
    for block in blocks:
        yield block


async def _check(proc: Proc, o: SortOptions, order: Order, word: str, end: bytes) -> int:
    if word != "-" and not await _readable(proc, word, "open failed"):
        return 2
    key = order.merge_key() if not o.unique else (order.key or (lambda line: line))
    number = 0
    before: Any = None
    async for lines in _line_source(proc, word, end, order):
        for line in lines:
            number += 1
            this = key(line)
            wrong = number > 1 and (this < before or (o.unique and this == before))
            if o.unique and order.reverse and number > 1:
                wrong = this > before or this == before
            if wrong:
                if o.check in ("diagnose", "diagnose-first"):
                    proc.complain(f"{called(word)}:{number}: disorder: {decode(line.encode('latin-1'))}")
                return 1
            before = this
        await proc.budget.yield_turn()
    return 0


COMMANDS = [
    Command(
        "sort",
        sort,
        SortOptions,
        summary="Write sorted concatenation of all FILE(s) to standard output.",
        bad_usage=2,
        rewrite=old_keys,
        ignored=("-T= --temporary-directory=", "--compress-program=", "-y="),
        examples=[
            ("sort -k2,2n -t, FILE", "by the second comma-separated field, as a number"),
            ("sort -u FILE", "distinct lines"),
        ],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        bad_choice=1,
        write_error=("write failed: 'standard output': ", 2),
        stdin_error=StdinError("stat failed: -: {}", status=2, fatal=True, directory="read failed: -: {}"),
    ),
]
