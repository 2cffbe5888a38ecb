"""join and look: sorted files read side by side, and a binary search in one."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from ramet.commands.cut import Sorted
from ramet.commands.declare import Command, UsageError, choose, flag, quote, several, shown, value
from ramet.commands.inputs import read_lines
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc


@dataclass(frozen=True, slots=True)
class JoinOptions:
    unpaired: tuple[str, ...] = several("-a", metavar="FILENUM", help="also print unpairable lines from file FILENUM")
    empty: str | None = value("-e", metavar="STRING", help="replace missing (empty) input fields with STRING")
    ignore_case: bool = flag("-i", "--ignore-case", help="ignore differences in case when comparing fields")
    both: str | None = value("-j", metavar="FIELD", help="equivalent to '-1 FIELD -2 FIELD'")
    output: tuple[str, ...] = several("-o", metavar="FORMAT", help="obey FORMAT while constructing output line")
    separator: str | None = value("-t", metavar="CHAR", help="use CHAR as input and output field separator")
    only: tuple[str, ...] = several("-v", metavar="FILENUM", help="like -a FILENUM, but suppress joined output lines")
    first: tuple[str, ...] = several("-1", metavar="FIELD", help="join on this FIELD of file 1")
    second: tuple[str, ...] = several("-2", metavar="FIELD", help="join on this FIELD of file 2")
    check: str = choose(
        {"--check-order": "yes", "--nocheck-order": "no"},
        default="auto",
        help="check (or not) that the input is correctly sorted",
    )
    header: bool = flag("--header", help="treat the first line in each file as field headers")
    zero: bool = flag("-z", "--zero-terminated", help="line delimiter is NUL, not newline")


_BLANKS = re.compile(rb"[ \t\n]+")


@dataclass
class _Side:
    """One of the two files: groups of lines with equal keys."""

    source: Sorted
    number: int
    field: int
    separator: bytes | None
    fold: bool
    fields: list[bytes] | None = None
    key: bytes = b""
    disorder: bytes | None = None
    at_line: int = 0
    strict: bool = False

    def split(self, line: bytes) -> list[bytes]:
        if self.separator is None:
            return _BLANKS.split(line.lstrip(b" \t\n"))
        return line.split(self.separator) if self.separator else [line]

    async def advance(self) -> None:
        line = await self.source.advance()
        if line is None:
            self.fields = None
            return
        before, had = self.key, self.fields is not None
        self.fields = self.split(line)
        key = self.fields[self.field] if self.field < len(self.fields) else b""
        self.key = key.lower() if self.fold else key
        if had and self.key < before and self.disorder is None and self.strict:
            self.disorder, self.at_line = line, self.source.number

    async def group(self, budget: Budget) -> list[list[bytes]]:
        assert self.fields is not None
        key, out = self.key, [self.fields]
        await self.advance()
        while self.fields is not None and self.key == key:
            out.append(self.fields)
            await self.advance()
            if not len(out) & 1023:
                await budget.breathe()
        return out


def _field(texts: tuple[str, ...], both: str | None) -> int:
    given = [*texts, *((both,) if both is not None else ())] or ["1"]
    for text in given:
        if not re.fullmatch(r"\d+", text) or int(text) == 0:
            raise UsageError(f"invalid field number: {quote(text)}", hint=False)
    other = next((text for text in given if int(text) != int(given[0])), None)
    if other is not None:
        pair = f"{int(both)}, {int(given[0])}" if both is not None else f"{int(given[0])}, {int(other)}"
        raise UsageError(f"incompatible join fields {pair}", hint=False)
    return int(given[0]) - 1


def _separator(text: str | None) -> bytes | None:
    if text is None:
        return None
    if text == "\\0":
        return b"\0"
    raw = encode(text)
    if len(raw) > 1:
        raise UsageError(f"multi-character tab {quote(text)}", hint=False)
    return raw


async def join(proc: Proc, o: JoinOptions, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError("missing operand" if not operands else f"missing operand after {quote(operands[0])}")
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote(operands[2])}")
    if operands == ["-", "-"]:
        raise UsageError("both files cannot be standard input: No such file or directory", hint=False)
    for number in (*o.unpaired, *o.only):
        if number not in ("1", "2"):
            raise UsageError(f"invalid field number: {quote(number)}", hint=False)
    separator, end = _separator(o.separator), b"\0" if o.zero else b"\n"
    sides: list[_Side] = []
    for n, (word, field) in enumerate(
        zip(operands, (_field(o.first, o.both), _field(o.second, o.both)), strict=True), 1
    ):
        try:
            sides.append(_Side(Sorted(await proc.open(word), end), n, field, separator, o.ignore_case))
        except OSError as error:
            proc.complain(f"{shown(word)}: {reason(error)}")
            return 1
    left, right = sides
    writer = _Rows(o, left, right, separator, end)
    left.strict = right.strict = o.check == "yes"
    await left.advance()
    await right.advance()
    show1, show2 = "1" in o.unpaired + o.only, "2" in o.unpaired + o.only
    pairs = not o.only
    writer.auto_counts(left, right)
    if o.header and left.fields is not None and right.fields is not None:
        writer.pair(left.fields, right.fields)
        await left.advance()
        await right.advance()
        left.disorder = right.disorder = None
    elif o.header:
        for side in sides:
            if side.fields is not None:
                writer.single(side, side.fields)
                await side.advance()
    turn = 0
    unpairable = False
    while left.fields is not None or right.fields is not None:
        if right.fields is None or (left.fields is not None and left.key < right.key):
            assert left.fields is not None
            unpairable = unpairable or right.fields is not None
            left.strict = right.strict = unpairable or o.check == "yes"
            if show1:
                writer.single(left, left.fields)
            await left.advance()
        elif left.fields is None or right.key < left.key:
            unpairable = unpairable or left.fields is not None
            left.strict = right.strict = unpairable or o.check == "yes"
            if show2:
                writer.single(right, right.fields)
            await right.advance()
        else:
            first, second = await left.group(proc.budget), await right.group(proc.budget)
            in_order = left.disorder is None and right.disorder is None
            if pairs and (in_order or o.check != "yes"):
                for a in first:
                    for b in second:
                        writer.pair(a, b)
                        if len(writer.out) > 1023:
                            await proc.emit(writer.take())
                            await proc.budget.breathe()
        if (left.disorder is not None or right.disorder is not None) and o.check == "yes":
            break
        turn += 1
        if turn & 1023 == 0:
            await proc.emit(writer.take())
            await proc.budget.breathe()
    await proc.emit(writer.take())
    return _order_status(proc, o, sides, operands, unpairable)


def _order_status(proc: Proc, o: JoinOptions, sides: list[_Side], operands: list[str], unpairable: bool) -> int:
    if o.check == "no" or (o.check == "auto" and not unpairable):
        return 0
    status = 0
    for side, word in zip(sides, operands, strict=True):
        if side.disorder is not None:
            proc.complain(f"{shown(word)}:{side.at_line}: is not sorted: {decode(side.disorder)}")
            status = 1
            if o.check == "yes":
                return 1
    if status and o.check == "auto":
        proc.complain("input is not in sorted order")
    return status


class _Rows:
    """Builds output lines, by format or in the default order."""

    def __init__(self, o: JoinOptions, left: _Side, right: _Side, separator: bytes | None, end: bytes) -> None:
        self.o, self.left, self.right, self.end = o, left, right, end
        self.glue = b" " if separator is None else separator
        self.empty = encode(o.empty or "")
        self.out: list[bytes] = []
        self.format: list[tuple[int, int]] | None = None
        self.auto = o.output == ("auto",)
        if o.output and not self.auto:
            self.format = []
            for piece in re.split(r"[ ,\t]+", " ".join(o.output)):
                if piece == "0":
                    self.format.append((0, 0))
                    continue
                found = re.fullmatch(r"([12])\.(\d+)", piece)
                if found is None:
                    if re.fullmatch(r"[12]\..*", piece):
                        raise UsageError(f"invalid field number: {quote(piece[2:])}", hint=False)
                    raise UsageError(f"invalid file number in field spec: {quote(piece)}", hint=False)
                if int(found[2]) == 0:
                    raise UsageError(f"invalid field number: {quote(found[2])}", hint=False)
                self.format.append((int(found[1]), int(found[2]) - 1))

    def auto_counts(self, left: _Side, right: _Side) -> None:
        if self.auto:
            self.format = [(0, 0)]
            for side in (left, right):
                count = len(side.fields) if side.fields is not None else 1
                self.format += [(side.number, i) for i in range(count) if i != side.field]

    def take(self) -> bytes:
        data = b"".join(self.out)
        self.out.clear()
        return data

    def pair(self, a: list[bytes], b: list[bytes]) -> None:
        self._row(a, b, self.left)

    def single(self, side: _Side, fields: list[bytes]) -> None:
        if side.number == 1:
            self._row(fields, None, side)
        else:
            self._row(None, fields, side)

    def _row(self, a: list[bytes] | None, b: list[bytes] | None, key_side: _Side) -> None:
        rows = {1: a, 2: b}
        key_row = a if a is not None else b
        assert key_row is not None
        key_field = (self.left if a is not None else self.right).field
        key = key_row[key_field] if key_field < len(key_row) else b""
        if self.format is not None:
            cells = []
            for number, index in self.format:
                row = rows[number] if number else None
                cell = key if number == 0 else (row[index] if row is not None and index < len(row) else b"")
                cells.append(cell or self.empty)
        else:
            cells = [key or self.empty]
            for side, row in ((self.left, a), (self.right, b)):
                if row is not None:
                    cells += [cell or self.empty for i, cell in enumerate(row) if i != side.field]
        self.out.append(self.glue.join(cells) + self.end)


# --------------------------------------------------------------------------------------------------------- look


@dataclass(frozen=True, slots=True)
class LookOptions:
    dictionary: bool = flag("-d", "--alphanum", help="compare only blanks and alphanumeric characters")
    fold: bool = flag("-f", "--ignore-case", help="ignore case differences")
    terminate: str | None = value("-t", "--terminate", metavar="CHAR", help="define the string-termination character")
    alternative: bool = flag("-a", "--alternative", help="use the alternative dictionary")


async def look(proc: Proc, o: LookOptions, operands: list[str]) -> int:
    if not operands:
        raise UsageError("bad usage")
    prefix = encode(operands[0])
    if o.terminate:
        prefix = prefix.partition(encode(o.terminate))[0] + (
            encode(o.terminate)[:1] if encode(o.terminate) in prefix else b""
        )
    name = operands[1] if len(operands) > 1 else "/usr/share/dict/words"
    plain = len(operands) == 1

    def key(line: bytes) -> bytes:
        if o.dictionary or plain:
            line = re.sub(rb"[^A-Za-z0-9 \t]", b"", line)
        return line.lower() if o.fold or plain else line

    try:
        lines = await read_lines(proc, name)
    except OSError as error:
        proc.complain(f"{shown(name)}: {reason(error)}")
        return 1
    wanted = key(prefix)
    at = bisect_left(lines, wanted, key=key)
    out: list[bytes] = []
    while at < len(lines) and key(lines[at]).startswith(wanted):
        out.append(lines[at] + b"\n")
        at += 1
    await proc.emit(b"".join(out))
    return 0 if out else 1


COMMANDS = [
    Command(
        "join",
        join,
        JoinOptions,
        summary="For each pair of input lines with identical join fields, write a line.",
        usage="[OPTION]... FILE1 FILE2",
    ),
    Command(
        "look",
        look,
        LookOptions,
        summary="Display lines beginning with a given string.",
        usage="[OPTION]... STRING [FILE]",
    ),
]
