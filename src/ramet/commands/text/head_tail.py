"""The first and the last of files: head and tail, which seek where they can and follow files within the budget."""

from __future__ import annotations

import asyncio
import errno
import functools
import re
from collections import deque
from dataclasses import dataclass

from ramet.commands.framework.command import Command, UsageError, called, choose, flag, mixed, optional, quote, value
from ramet.commands.framework.inputs import Inputs, leave, only_opens, parse_size
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import BLOCK, FileStream, Reader
from ramet.patterns.count import occurrences


def _amount(unit: str, text: str) -> tuple[str, str]:
    """A count as it was written, looked at at once: a wrong one is told even where a later one counts."""
    try:
        parse_size(text[1:] if text[:1] == "-" else text, f"number of {unit}")
    except UsageError:
        if text[:1] != "+":
            raise
        raise UsageError(f"invalid number of {unit}: {quote(text)}", hint=False) from None
    return unit, text


_lines = functools.partial(_amount, "lines")
_bytes = functools.partial(_amount, "bytes")

# --------------------------------------------------------------------------------------------------------- head


@dataclass(frozen=True, slots=True)
class HeadOptions:
    amount: tuple[str, str] = mixed(
        value(
            "-n",
            "--lines",
            metavar="[-]NUM",
            convert=_lines,
            help="print the first NUM lines; with a leading '-', all but the last NUM",
        ),
        value(
            "-c",
            "--bytes",
            metavar="[-]NUM",
            convert=_bytes,
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
    _late(words[1:] if found else words, "invalid trailing option")
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


def _late(words: list[str], said: str) -> None:
    """A count in the historical form that is not the first word is no option."""
    for place, word in enumerate(words):
        if word == "--":
            return
        if re.match(r"-\d", word) and not (place and _TAKING.fullmatch(words[place - 1])):
            raise UsageError(f"{said} -- {word[1]}", hint="trailing" in said)


_TAKING = re.compile(r"-[a-zA-Z]*[ncs]|--(?:l|b|pid|s|m)[a-z-]*")
"""Words whose argument is the next word."""


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
                    await _title(proc, word, first)
                first = False
                continue
            first = await _fail(proc, word, error, titled, first)
            inputs.status = 1
            continue
        try:
            if titled:
                await _title(proc, word, first)
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


def _named(word: str) -> str:
    return "standard input" if word == "-" else word


async def _title(proc: Proc, word: str, first: bool) -> None:
    await proc.emit(encode(f"{'' if first else chr(10)}==> {_named(word)} <==\n"))


async def _fail(proc: Proc, word: str, error: OSError, titled: bool, first: bool) -> bool:
    """The complaint about a file, under its title where it was opened; whether the next title is the first still."""
    if not only_opens(error):
        proc.complain(f"cannot open {quote(word)} for reading: {reason(error)}")
        return first
    if titled:
        await _title(proc, word, first)
    failed = "cannot fstat" if error.errno == errno.EBADF else "error reading"
    proc.complain(f"{failed} {quote(_named(word))}: {reason(error)}")
    return first and not titled


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
            end = _nth(block, delim, amount)
            leave(reader, block[end:], -end % _BUFFER)
            await proc.emit(block[:end])
            return
        await proc.budget.yield_turn()


_BUFFER = 8192
"""Bytes that head takes from a pipe at a time."""


def _nth(block: bytes, delim: bytes, count: int) -> int:
    """The offset just behind the `count`th delimiter."""
    at = 0
    for _ in range(count):
        at = block.index(delim, at) + 1
    return at


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
        await proc.budget.yield_turn()
    if size > amount:
        await proc.emit(held[0][: size - amount])
    _give_back(reader, min(size, amount))


def _give_back(reader: Reader, size: int) -> None:
    """What was read and not shown stays to be read where the input is a file, as GNU leaves it."""
    if size and isinstance(reader, FileStream):
        reader.seek(reader.tell() - size)


async def _all_but_last_lines(proc: Proc, reader: Reader, amount: int, delim: bytes) -> None:
    held: deque[tuple[bytes, int]] = deque()
    total, last = 0, delim
    while block := await reader.read():
        count, last = occurrences(block, delim), block[-1:]
        held.append((block, count))
        total += count
        # A line that is complete here is none of the last ones if there are enough of them behind it.
        while held and total - held[0][1] > amount:
            done, count = held.popleft()
            total -= count
            await proc.emit(done)
        await proc.budget.yield_turn()
    keep = total + (last != delim) - amount
    left = 0
    for block, count in held:
        cut = 0 if keep <= 0 else len(block) if count < keep else _nth(block, delim, keep)
        if cut:
            await proc.emit(block[:cut])
        left += len(block) - cut
        keep -= count
    _give_back(reader, left)


# --------------------------------------------------------------------------------------------------------- tail


@dataclass(frozen=True, slots=True)
class TailOptions:
    amount: tuple[str, str] = mixed(
        value(
            "-n",
            "--lines",
            metavar="[+]NUM",
            convert=_lines,
            help="output the last NUM lines; with '+', from line NUM on",
        ),
        value(
            "-c",
            "--bytes",
            metavar="[+]NUM",
            convert=_bytes,
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
        _late(words, "option used in invalid context")
        return words
    alone = found[3] and (found[1] == "+" or found[3] != "c")
    sign, number, unit, follow = found.groups()
    # Behind it there is room for one file, and no other option.
    others = words[2:] if words[1:2] == ["--"] else words[1:]
    historical = not others or (len(others) == 1 and (len(words) == 3 or not re.match("-.", others[0])))
    if not (number or alone) or (sign == "+" and not historical):
        _late(words, "option used in invalid context")
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
        return 0  # Nothing is wanted of any file.
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
            first = await _fail(proc, word, error, titled, first)
            status = 1
            if o.follow and retry and not only_opens(error):
                open_files.append(_Followed(word, None))
            continue
        if titled:
            await _title(proc, word, first)
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


def _alive(proc: Proc, pid: str | None) -> object:
    return None if pid is None else proc.services.jobs


async def _follow(
    proc: Proc, files: list[_Followed], pause: float, by_name: bool, retry: bool, titled: bool, jobs: object
) -> None:
    """Look again and again until the reader of our output goes, the time is up or we are cancelled."""
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
                    await _title(proc, item.word, False)
                last = item.word
                await proc.emit(block)


async def _reopen(proc: Proc, item: _Followed, retry: bool) -> None:
    """The file of that name as it is now: another one than before is read from its start."""
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
                await proc.emit(block[_nth(block, delim, skip) :])
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
    total = 0
    while block := await reader.read():
        count = occurrences(block, delim)
        held.append((block, count))
        total += count
        # One more than asked: the last line may lack its end, and the first block may begin inside a line.
        while held and total - held[0][1] > amount:
            total -= held.popleft()[1]
        await proc.budget.yield_turn()
    if not amount or not held:
        return
    skip = total + (not held[-1][0].endswith(delim)) - amount
    for block, count in held:
        if skip <= 0:
            await proc.emit(block)
        elif count >= skip:
            await proc.emit(block[_nth(block, delim, skip) :])
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
        "head",
        head,
        HeadOptions,
        summary="Print the first 10 lines of each FILE to standard output.",
        rewrite=_old_head,
        examples=[("head -n 3 FILE", "the first three lines"), ("head -c 1K FILE", "the first 1024 bytes")],
    ),
    Command(
        "tail",
        tail,
        TailOptions,
        summary="Print the last 10 lines of each FILE to standard output.",
        rewrite=_old_tail,
        examples=[("tail -n +2 FILE", "everything from line 2 on"), ("tail -f LOG", "follow a growing file")],
    ),
]
