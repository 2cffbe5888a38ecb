"""uniq: report or omit repeated adjacent lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice, pairwise
from operator import eq

from ramet.commands.framework.command import Command, UsageError, called, flag, mixed, optional, quote, value
from ramet.commands.framework.inputs import only_opens
from ramet.concurrency.offload import offload_large
from ramet.core.errors import reason
from ramet.core.proc import Proc
from ramet.core.streams import Writer, line_blocks


@dataclass(frozen=True, slots=True)
class UniqOptions:
    count: bool = flag("-c", "--count", help="prefix lines by the number of occurrences")
    repeated: bool = flag("-d", "--repeated", help="only print duplicate lines, one for each group")
    all_repeated: str = mixed(
        flag("-D", const="none", help="print all duplicate lines"),
        optional(
            "--all-repeated",
            metavar="METHOD",
            const="none",
            choices=("none", "prepend", "separate"),
            help="like -D, but allow separating groups",
        ),
        default="",
    )
    fields: str = value("-f", "--skip-fields", metavar="N", default="0", help="avoid comparing the first N fields")
    group: str = optional(
        "--group",
        metavar="METHOD",
        const="separate",
        default="",
        choices=("prepend", "append", "separate", "both"),
        help="show all items, separating groups",
    )
    ignore_case: bool = flag("-i", "--ignore-case", help="ignore differences in case when comparing")
    chars: str = value("-s", "--skip-chars", metavar="N", default="0", help="avoid comparing the first N characters")
    unique: bool = flag("-u", "--unique", help="only print unique lines")
    width: str | None = value("-w", "--check-chars", metavar="N", help="compare no more than N characters in lines")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


def _old_uniq(words: list[str]) -> list[str]:
    """`-N` skips fields and `+N` skips characters in old scripts."""
    out: list[str] = []
    for before, word in pairwise(["", *words]):
        if before in ("-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars"):
            out.append(word)
        elif found := re.fullmatch(r"-([a-eg-rt-vx-zD]*)(\d+)([a-zD]*)", word):
            # Also among flags, unless an option before them takes the digits.
            out += ["-f", found[2], *(f"-{flags}" for flags in (found[1], found[3]) if flags)]
        elif re.fullmatch(r"\+\d+", word):
            out += ["-s", word[1:]]
        else:
            out.append(word)
    return out


def _number(text: str, what: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{text}: invalid {what}", hint=False)
    return int(text)


async def uniq(proc: Proc, o: UniqOptions, operands: list[str]) -> int:
    fields = _number(o.fields, "number of fields to skip")
    chars = _number(o.chars, "number of bytes to skip")
    width = None if o.width is None else _number(o.width, "number of bytes to compare")
    if o.group and (o.count or o.repeated or o.all_repeated or o.unique):
        raise UsageError("--group is mutually exclusive with -c/-d/-D/-u")
    if o.all_repeated and o.count:
        raise UsageError("printing all duplicated lines and repeat counts is meaningless")
    end = b"\0" if o.zero else b"\n"
    opened = False
    try:
        reader = await proc.open(operands[0] if operands else "-")
        opened = True
        out = await proc.create(operands[1]) if len(operands) > 1 and operands[1] != "-" else proc.stdout
    except OSError as error:
        word = operands[1] if opened else operands[0] if operands else "-"
        unread = only_opens(error) and not opened
        proc.complain(f"error reading {quote(word)}" if unread else f"{called(word)}: {reason(error)}")
        return 1
    key = _key(fields, chars, width, o.ignore_case)
    groups = _Groups(o, end, out)
    held: list[bytes] = []
    held_key: bytes | None = None
    plain = key is None
    counting = not (o.group or o.all_repeated)
    count = 0

    def take(block: bytes) -> None:
        nonlocal held, held_key, count
        lines = block.split(end)
        if not lines[-1]:
            lines.pop()
        if counting and plain and lines and not any(map(eq, lines, islice(lines, 1, None))) and lines[0] != held_key:
            # No two adjacent lines are equal: every line is a group.
            if held_key is not None:
                groups.add(held[0], count)
            groups.add_singles(lines[:-1])
            held, held_key, count = [lines[-1]], lines[-1], 1
            return
        for this, members in groupby(lines, key):
            if counting:
                same = list(members)
                first, n = same[0], len(same)
                if this == held_key:
                    count += n
                    continue
                if held_key is not None:
                    groups.add(held[0], count)
                held, held_key, count = [first], this, n
            elif this == held_key:
                held.extend(members)
            else:
                if held_key is not None:
                    groups.add_all(held)
                held, held_key = list(members), this

    async for block in line_blocks(reader, end):
        await offload_large(proc.budget, len(block), partial(take, block))
        await groups.flush()
    if held_key is not None:
        if counting:
            groups.add(held[0], count)
        else:
            groups.add_all(held)
    groups.finish()
    await groups.flush()
    await proc.close(reader)
    await proc.close(out)
    return 0


def _key(fields: int, chars: int, width: int | None, fold: bool) -> Callable[[bytes], bytes] | None:
    if not (fields or chars or width is not None or fold):
        return None
    skip = re.compile(rb"(?:[ \t]*[^ \t]+|[ \t]+){0,%d}" % min(fields, 1 << 31)) if fields else None

    def key(line: bytes) -> bytes:
        if skip is not None:
            found = skip.match(line)
            line = line[found.end() :] if found else b""
        if chars:
            line = line[chars:]
        if width is not None:
            line = line[:width]
        return line.upper() if fold else line

    return key


class _Groups:
    """Turns groups of equal lines into output."""

    def __init__(self, o: UniqOptions, end: bytes, out: Writer) -> None:
        self.o, self.end, self.out = o, end, out
        self.parts: list[bytes] = []
        self.any = False
        self.only_unique = o.unique
        self.only_repeated = o.repeated

    def add(self, line: bytes, count: int) -> None:
        if self.only_repeated and count == 1:
            return
        if self.only_unique and count > 1:
            return
        if self.o.count:
            line = b"%7d %s" % (count, line)
        self.parts.append(line)

    def add_singles(self, lines: list[bytes]) -> None:
        """Many groups of one line each."""
        if self.only_repeated or not lines:
            return
        if self.o.count:
            joined = (self.end + b"      1 ").join(lines)
            self.parts.append(b"      1 " + joined)
        else:
            self.parts.extend(lines)

    def add_all(self, lines: list[bytes]) -> None:
        if self.o.all_repeated:
            if len(lines) < 2:
                return
            if self.only_unique:  # -u drops the first of equal lines only.
                lines = lines[1:]
            if self.o.all_repeated == "prepend" or (self.o.all_repeated == "separate" and self.any):
                self.parts.append(b"")
        elif self.o.group in ("prepend", "both") or (self.o.group == "separate" and self.any):
            self.parts.append(b"")
        self.any = True
        self.parts.extend(lines)
        if self.o.group == "append":
            self.parts.append(b"")

    def finish(self) -> None:
        if self.o.group == "both" and self.any:
            self.parts.append(b"")

    async def flush(self) -> None:
        if self.parts:
            self.parts.append(b"")
            self.out.write(self.end.join(self.parts))
            self.parts.clear()
            if self.out.full:
                await self.out.drain()


COMMANDS = [
    Command(
        "uniq",
        uniq,
        UniqOptions,
        summary="Filter adjacent matching lines from INPUT, writing to OUTPUT.",
        usage="[OPTION]... [INPUT [OUTPUT]]",
        max_operands=2,
        rewrite=_old_uniq,
        original="GNU coreutils 9.1",
        curly_quotes=True,
    ),
]
