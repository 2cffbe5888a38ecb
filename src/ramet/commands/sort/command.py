"""The command `sort`: inputs are read whole or merged, and the result goes out in blocks."""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Iterable
from typing import IO, Any

from ramet.commands.declare import Command, UsageError, quote, shown
from ramet.commands.inputs import slurp
from ramet.commands.sort.keys import Line
from ramet.commands.sort.options import SortOptions, old_keys
from ramet.commands.sort.order import Order, make_order
from ramet.commands.sort.runs import batched, cut_at_line, distinct, merged_sources, run_lines, sorted_lines, spill
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks


async def sort(proc: Proc, o: SortOptions, operands: list[str]) -> int:
    names = operands or ["-"]
    if o.files0 is not None:
        if operands:
            raise UsageError(f"extra operand {quote(operands[0])}\nfile operands cannot be combined with --files0-from")
        try:
            names = [decode(n) for n in (await slurp(proc, o.files0)).split(b"\0") if n]
        except OSError as error:
            proc.complain(f"open failed: {shown(o.files0)}: {reason(error)}")
            return 2
        if not names:
            raise UsageError(f"no input from {quote(o.files0)}", hint=False)
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
    salt = b""
    if o.random or o.word == "random" or any("R" in k for k in o.keys):
        import os

        salt = (await slurp(proc, o.random_source))[:16] if o.random_source else os.urandom(16)
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
        lines_in = [_line_source(proc, word, end) for word in names]
        return await _write_out(proc, o, end, merged_sources(lines_in, order), order)
    return await _sort_all(proc, o, order, names, end)


async def _readable(proc: Proc, word: str) -> bool:
    try:
        if proc.descriptor(word) is None:
            stat = await proc.fs.stat(proc.path(word), follow=True)
            if stat.is_dir:
                proc.complain(f"read failed: {shown(word)}: Is a directory")
                return False
    except OSError as error:
        proc.complain(f"cannot read: {shown(word)}: {reason(error)}")
        return False
    return True


async def _line_source(proc: Proc, word: str, end: bytes) -> AsyncIterator[list[Line]]:
    reader = await proc.open(word)
    try:
        async for block in line_blocks(reader, end):
            lines = block.decode("latin-1").split(end.decode())
            if not lines[-1]:
                lines.pop()
            yield lines
    finally:
        await proc.close(reader)


async def _sort_all(proc: Proc, o: SortOptions, order: Order, names: list[str], end: bytes) -> int:
    held: list[bytes] = []
    size = 0
    runs: list[IO[bytes]] = []
    delim = end.decode()
    try:
        for word in names:
            try:
                reader = await proc.open(word)
            except OSError as error:
                proc.complain(f"cannot read: {shown(word)}: {reason(error)}")
                return 2
            last = end
            while block := await reader.read():
                held.append(block)
                last = block[-1:]
                size += len(block)
                # A line costs about twice its bytes while it is being sorted.
                if size * 2 > proc.budget.limits.sort_memory and end in block:
                    whole, rest = cut_at_line(held, end)
                    runs.append(spill(sorted_lines(whole, order, delim, o.unique), delim))
                    held, size = rest, sum(map(len, rest))
                await proc.budget.breathe()
            if last != end:
                held.append(end)
            await proc.close(reader)
        lines = sorted_lines(held, order, delim, o.unique)
        held = []
        if not runs:
            return await _write_list(proc, o, end, lines)
        sources: list[Iterable[Line]] = [*(run_lines(run, delim) for run in runs), lines]
        if order.key is None:
            merged = heapq.merge(*sources, reverse=order.reverse)
        else:
            merged = heapq.merge(*sources, key=order.merge_key())
        return await _write_out(proc, o, end, batched(merged), order)
    finally:
        for run in runs:
            run.close()


async def _write_list(proc: Proc, o: SortOptions, end: bytes, lines: list[Line]) -> int:
    out = proc.stdout
    if o.output is not None:
        try:
            out = await proc.create(o.output)
        except OSError as error:
            proc.complain(f"open failed: {shown(o.output)}: {reason(error)}")
            return 2
    delim = end.decode()
    for at in range(0, len(lines), 20_000):
        out.write((delim.join(lines[at : at + 20_000]) + delim).encode("latin-1"))
        if out.full:
            await out.drain()
        await proc.budget.breathe()
    await proc.close(out)
    return 0


async def _write_out(proc: Proc, o: SortOptions, end: bytes, batches: AsyncIterator[list[Line]], order: Order) -> int:
    key = order.key
    last: Any = object()
    if o.output is not None:
        # The output may be one of the inputs: collect first, as sort -o promises.
        everything = [line async for batch in batches for line in batch]
        return await _write_list(proc, o, end, distinct(everything, key) if o.unique else everything)
    delim = end.decode()
    async for batch in batches:
        if o.unique:
            kept: list[Line] = []
            for line in batch:
                this = line if key is None else key(line)
                if this != last:
                    kept.append(line)
                    last = this
            batch = kept
        if batch:
            await proc.emit((delim.join(batch) + delim).encode("latin-1"))
        await proc.budget.breathe()
    return 0


async def _check(proc: Proc, o: SortOptions, order: Order, word: str, end: bytes) -> int:
    if word != "-" and not await _readable(proc, word):
        return 2
    key = order.merge_key() if not o.unique else (order.key or (lambda line: line))
    number = 0
    before: Any = None
    async for lines in _line_source(proc, word, end):
        for line in lines:
            number += 1
            this = key(line)
            wrong = number > 1 and (this < before or (o.unique and this == before))
            if o.unique and order.reverse and number > 1:
                wrong = this > before or this == before
            if wrong:
                if o.check in ("diagnose", "diagnose-first"):
                    proc.complain(f"{shown(word)}:{number}: disorder: {decode(line.encode('latin-1'))}")
                return 1
            before = this
        await proc.budget.breathe()
    return 0


COMMANDS = [
    Command(
        "sort",
        sort,
        SortOptions,
        summary="Write sorted concatenation of all FILE(s) to standard output.",
        bad_usage=2,
        rewrite=old_keys,
        ignored=("-S= --buffer-size=", "-T= --temporary-directory=", "--parallel=", "--batch-size=", "-y="),
        refused={
            "--debug": "key annotation needs a terminal",
            "--compress-program=": "runs of a sort stay inside the sort",
        },
        examples=[
            ("sort -k2,2n -t, FILE", "by the second comma-separated field, as a number"),
            ("sort -u FILE", "distinct lines"),
        ],
    ),
]
