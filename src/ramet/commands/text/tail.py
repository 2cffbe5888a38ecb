"""tail: print the last lines or bytes of files, and follow them as they grow."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, called, choose, flag, mixed, optional, quote, value
from ramet.commands.framework.inputs import only_opens, parse_size
from ramet.commands.framework.stdin_errors import StdinError
from ramet.commands.text.head_tail import (
    after_nth,
    byte_count,
    line_count,
    print_title,
    refuse_late_count,
    report_open_error,
)
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.proc import JobTable, Proc
from ramet.core.streams import BLOCK, FileStream, Reader
from ramet.patterns.count import occurrences


@dataclass(frozen=True, slots=True)
class TailOptions:
    amount: tuple[str, str] = mixed(
        value(
            "-n",
            "--lines",
            metavar="[+]NUM",
            convert=line_count,
            help="output the last NUM lines; with '+', from line NUM on",
        ),
        value(
            "-c",
            "--bytes",
            metavar="[+]NUM",
            convert=byte_count,
            help="output the last NUM bytes; with '+', from byte NUM on",
        ),
        default=("lines", "10"),
    )
    follow: str = mixed(
        choose({"-f": "descriptor", "-F": "name+retry"}, help="output appended data as the file grows"),
        optional(
            "--follow",
            metavar="HOW",
            const="descriptor",
            choices=("descriptor", "name"),
            help="follow by name or descriptor",
        ),
        default="",
    )
    retry: bool = flag("--retry", help="keep trying to open a file if it is inaccessible")
    interval: str = value(
        "-s", "--sleep-interval", metavar="N", default="1", help="seconds between looks when following"
    )
    pid: str | None = value("--pid", metavar="PID", help="with -f, terminate after process PID ends")
    unchanged: str | None = value(
        "--max-unchanged-stats",
        metavar="N",
        help="with --follow=name, reopen a file that has not changed after N looks",
    )
    headed: bool | None = choose(
        {"-q --quiet --silent": False, "-v --verbose": True},
        help={
            "-q --quiet --silent": "never output headers giving file names",
            "-v --verbose": "always output headers giving file names",
        },
    )
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


def _old_tail(words: list[str]) -> list[str]:
    """`-5`, `+5`, `-5c`, `-20f`, `-l`: the historical form, only as the first word."""
    found = re.fullmatch(r"([-+])(\d*)([bcl]?)(f?)", words[0]) if words else None
    if found is None:
        refuse_late_count(words, "option used in invalid context")
        return words
    alone = found[3] and (found[1] == "+" or found[3] != "c")
    sign, number, unit, follow = found.groups()
    # Only one file may follow, and no other option.
    others = words[2:] if words[1:2] == ["--"] else words[1:]
    historical = not others or (len(others) == 1 and (len(words) == 3 or not re.match("-.", others[0])))
    if not (number or alone) or (sign == "+" and not historical):
        refuse_late_count(words, "option used in invalid context")
        return words
    if not historical:
        raise UsageError(f"option used in invalid context -- {(number or unit)[0]}", hint=False)
    number = (number or "10") + ("b" if unit == "b" else "")
    flag_ = "-c" if unit in ("b", "c") and unit else "-n"
    return [flag_, ("+" if sign == "+" else "") + number, *(["-f"] if follow else []), *words[1:]]


async def tail(proc: Proc, o: TailOptions, operands: list[str]) -> int:
    unit, text = o.amount
    from_start = text.startswith("+")
    amount = parse_size(text[1:] if text[:1] in "+-" and text else text, f"number of {unit}")
    try:
        pause = float(o.interval)
    except ValueError:
        raise UsageError(f"invalid number of seconds: {quote(o.interval)}", hint=False) from None
    if o.pid is not None and not o.pid.isdigit():
        raise UsageError(f"invalid PID: {quote(o.pid)}", hint=False)
    if o.unchanged is not None and not o.unchanged.isdigit():
        what = "invalid maximum number of unchanged stats between opens"
        raise UsageError(f"{what}: {quote(o.unchanged)}", hint=False)
    if not (o.follow or amount or from_start):
        return 0  # Nothing is read.
    if not o.follow:
        if o.retry:
            proc.complain("warning: --retry ignored; --retry is useful only when following")
        if o.pid is not None:
            proc.complain("warning: PID ignored; --pid=PID is useful only when following")
    delim = b"\0" if o.zero else b"\n"
    words = operands or ["-"]
    titled = len(operands) > 1 if o.headed is None else o.headed
    status, first = 0, True
    open_files: list[_Followed] = []
    by_name = o.follow.startswith("name")
    retry = o.retry or o.follow.endswith("retry")
    for word in words:
        try:
            reader = await proc.open(word)
        except OSError as error:
            first = await report_open_error(proc, word, error, titled, first)
            status = 1
            if o.follow and retry and not only_opens(error):
                open_files.append(_Followed(word, None))
            continue
        if titled:
            await print_title(proc, word, first)
        first = False
        if from_start:
            await _from(proc, reader, unit, amount, delim)
        elif unit == "bytes":
            await _last_bytes(proc, reader, amount)
        else:
            await _last_lines(proc, reader, amount, delim)
        if o.follow and isinstance(reader, FileStream):
            open_files.append(_Followed(word, reader))
        else:
            await proc.close(reader)
    if o.follow:
        if not open_files:
            if any(w != "-" for w in words):
                proc.complain("no files remaining")
            return status
        await _follow(proc, open_files, pause, by_name, retry, titled, _alive(proc, o.pid))
    return status


@dataclass(slots=True)
class _Followed:
    word: str
    reader: FileStream | None


def _alive(proc: Proc, pid: str | None) -> JobTable | None:
    return None if pid is None else proc.services.jobs


async def _follow(
    proc: Proc, files: list[_Followed], pause: float, by_name: bool, retry: bool, titled: bool, jobs: object
) -> None:
    """Poll the files until the reader of the output is gone, the deadline passes or the task is cancelled."""
    last = files[-1].word
    while True:
        if proc.stdout.full:
            await proc.stdout.drain()
        left = proc.budget.left()
        await asyncio.sleep(min(pause, 0.05 if left is None else max(0.0, min(left, 0.05))))
        proc.budget.check()
        for item in files:
            if by_name or item.reader is None:
                await _reopen(proc, item, retry)
            if item.reader is None:
                continue
            size = (await item.reader.stat()).size
            if size is not None and size < item.reader.tell():
                proc.complain(f"{called(item.word)}: file truncated")
                item.reader.seek(0)
            while block := await item.reader.read():
                if titled and last != item.word:
                    await print_title(proc, item.word, False)
                last = item.word
                await proc.emit(block)


async def _reopen(proc: Proc, item: _Followed, retry: bool) -> None:
    """Reopen a file by name; a new file is read from its start."""
    try:
        now = await proc.fs.stat(proc.path(item.word), follow=True)
        if item.reader is not None:
            before = await item.reader.stat()
            if before.inode == now.inode and (before.inode is not None or (now.size or 0) >= item.reader.tell()):
                return
            while block := await item.reader.read():
                await proc.emit(block)
            await proc.close(item.reader)
        reader = await proc.open(item.word)
    except OSError as error:
        if item.reader is not None:
            proc.complain(f"{quote(item.word)} has become inaccessible: {reason(error)}")
            await proc.close(item.reader)
            item.reader = None
        return
    if isinstance(reader, FileStream):
        if item.reader is None:
            proc.complain(f"{quote(item.word)} has appeared;  following new file")
        else:
            proc.complain(f"{quote(item.word)} has been replaced;  following new file")
        item.reader = reader


async def _from(proc: Proc, reader: Reader, unit: str, amount: int, delim: bytes) -> None:
    skip = max(0, amount - 1)
    if unit == "bytes":
        if isinstance(reader, FileStream):
            reader.seek(reader.tell() + skip)
        else:
            while skip > 0 and (block := await reader.read(min(skip, BLOCK))):
                skip -= len(block)
    else:
        while skip > 0 and (block := await reader.read()):
            have = occurrences(block, delim)
            if have >= skip:
                await proc.emit(block[after_nth(block, delim, skip) :])
                skip = 0
            else:
                skip -= have
    while block := await reader.read():
        await proc.emit(block)
        await proc.budget.yield_turn()


async def _last_bytes(proc: Proc, reader: Reader, amount: int) -> None:
    size = (await reader.stat()).size if isinstance(reader, FileStream) else None
    if isinstance(reader, FileStream) and size is not None:
        reader.seek(max(reader.tell(), size - amount))
        while block := await reader.read():
            await proc.emit(block)
            await proc.budget.yield_turn()
        return
    held: deque[bytes] = deque()
    total = 0
    while block := await reader.read():
        held.append(block)
        total += len(block)
        while held and total - len(held[0]) >= amount:
            total -= len(held.popleft())
        reader.hold_whole(total)
        await proc.budget.yield_turn()
    skip = max(0, total - amount)
    for block in held:
        await proc.emit(block[skip:])
        skip = 0
        await proc.budget.yield_turn()


async def _last_lines(proc: Proc, reader: Reader, amount: int, delim: bytes) -> None:
    size = (await reader.stat()).size if isinstance(reader, FileStream) else None
    if isinstance(reader, FileStream) and size is not None and size > BLOCK:
        reader.seek(await _start_of_last(proc.budget, reader, reader.tell(), size, amount, delim))
        while block := await reader.read():
            await proc.emit(block)
            await proc.budget.yield_turn()
        return
    held: deque[tuple[bytes, int]] = deque()
    total = size = 0
    while block := await reader.read():
        count = occurrences(block, delim)
        held.append((block, count))
        total += count
        size += len(block)
        # One more than asked: the last line may lack its end, and the first block may begin inside a line.
        while held and total - held[0][1] > amount:
            done, count = held.popleft()
            total -= count
            size -= len(done)
        reader.hold_whole(size)
        await proc.budget.yield_turn()
    if not amount or not held:
        return
    skip = total + (not held[-1][0].endswith(delim)) - amount
    for block, count in held:
        if skip <= 0:
            await proc.emit(block)
        elif count >= skip:
            await proc.emit(block[after_nth(block, delim, skip) :])
        skip -= count
        await proc.budget.yield_turn()


async def _start_of_last(budget: Budget, reader: FileStream, low: int, size: int, amount: int, delim: bytes) -> int:
    """The offset where the last `amount` lines begin, found from the end."""
    if amount == 0:
        return size
    at, wanted, first = size, amount, True
    while at > low:
        step = min(BLOCK, at - low)
        at -= step
        reader.seek(at)
        block = await reader.read_exactly(step)
        await budget.yield_turn()
        end = len(block)
        if first and block.endswith(delim):
            end -= 1
        first = False
        have = occurrences(block, delim, 0, end)
        if have < wanted:
            wanted -= have
            continue
        for _ in range(wanted):
            end = block.rfind(delim, 0, end)
        return at + end + 1
    return low


COMMANDS = [
    Command(
        "tail",
        tail,
        TailOptions,
        summary="Print the last 10 lines of each FILE to standard output.",
        rewrite=_old_tail,
        examples=[("tail -n +2 FILE", "everything from line 2 on"), ("tail -f LOG", "follow a growing file")],
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="-: {}"),
    ),
]
