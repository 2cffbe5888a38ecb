"""join: join the lines of two sorted files on a common field."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import gt, itemgetter

from ramet.commands.framework.command import Command, UsageError, called, choose, flag, quote, several, value
from ramet.commands.framework.inputs import PART
from ramet.commands.framework.stdin_errors import StdinError
from ramet.core.errors import reason
from ramet.core.limits import Budget
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.streams import Reader, line_blocks


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


class _Side:
    """One of the two files: lines with their keys, a block of them at a time."""

    def __init__(
        self, reader: Reader, number: int, field: int, separator: bytes | None, fold: bool, end: bytes
    ) -> None:
        self.number, self.field, self.separator, self.fold, self.end = number, field, separator, fold, end
        self._blocks = line_blocks(reader, end, PART)
        self.lines: list[bytes] = []
        self.keys: list[bytes] = []
        self.at = -1
        self.ragged = False
        """Whether this block is out of order."""
        self.strict = False
        """Whether disorder is an error."""
        self.disorder: bytes | None = None
        self.told = False
        """Whether the disorder was reported."""
        self.at_line = 0
        self._before = 0
        self._raw: list[bytes] = []

    @property
    def line(self) -> bytes | None:
        return self.lines[self.at] if self.lines else None

    @property
    def key(self) -> bytes:
        return self.keys[self.at]

    def fields(self, line: bytes) -> list[bytes]:
        """Split a line of `lines` into fields."""
        if not line:
            return []
        separator = b" " if self.separator is None else self.separator
        if not separator:
            return [line]
        return line.split(separator)

    async def advance(self) -> None:
        before = self.keys[self.at] if self.keys else None
        self.at += 1
        if self.at >= len(self.lines):
            await self._load(before)
        watched = self.ragged and self.strict and self.disorder is None
        if watched and before is not None and self.key < before:
            self.disorder, self.at_line = self._raw[self.at], self._before + self.at + 1

    async def _load(self, last: bytes | None) -> None:
        self._before += len(self.lines)
        self.at, self.ragged = 0, False
        block = await anext(self._blocks, b"")
        self._raw = self.lines = block.split(self.end)
        if not self.lines[-1]:
            self.lines.pop()
        if self.separator is None and not self._parted(block):
            # From here on one blank separates fields, as in the output.
            self.lines = list(map(_single_blanks, self.lines))
        self.keys = self._keys()
        keys = self.keys if last is None else [last, *self.keys]
        self.ragged = any(map(gt, keys, keys[1:]))

    def _parted(self, block: bytes) -> bool:
        """Return whether single blanks separate all fields already."""
        if b"\t" in block or (b"  " in block) or block[:1] == b" ":
            return False
        return b"\n" not in block if self.end == b"\0" else b"\n " not in block

    def _keys(self) -> list[bytes]:
        field, separator = self.field, b" " if self.separator is None else self.separator
        if not separator:
            keys = self.lines if field == 0 else [b""] * len(self.lines)
        elif field == 0:
            keys = [line.partition(separator)[0] for line in self.lines]
        else:
            most = field + 1
            keys = [
                parts[field] if len(parts) > field else b""
                for line in self.lines
                for parts in [line.split(separator, most)]
            ]
        return [bytes.lower(key) for key in keys] if self.fold else keys

    async def group(self, budget: Budget) -> list[bytes]:
        """The lines from here on that have the same key."""
        key, out = self.key, [self.lines[self.at]]
        await self.advance()
        while self.lines and self.key == key:
            out.append(self.lines[self.at])
            await self.advance()
            if not len(out) & 1023:
                await budget.yield_turn()
        return out


def _single_blanks(line: bytes) -> bytes:
    """Replace the blanks between fields by one blank."""
    return b" ".join(_BLANKS.split(line.lstrip(b" \t\n")))


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


_FIELDS = re.compile(r"(?:0|[12]\.[0-9]+)(?:[ ,\t](?:0|[12]\.[0-9]+))*")


def _listed(texts: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Parse -o to (file, field) pairs, (0, 0) for the key; None without a list."""
    out: list[tuple[int, int]] = []
    for piece in (piece for text in texts if text != "auto" for piece in re.split(r"[ ,\t]", text)):
        file, dot, number = piece[:1], piece[1:2], piece[2:]
        if file not in ("0", "1", "2"):
            raise UsageError(f"invalid file number in field spec: {quote(piece)}", hint=False)
        if (piece != "0") if file == "0" else dot != ".":
            raise UsageError(f"invalid field specifier: {quote(piece)}", hint=False)
        if file != "0" and (not number.isdecimal() or int(number) == 0):
            raise UsageError(f"invalid field number: {quote(number)}", hint=False)
        out.append((0, 0) if file == "0" else (int(file), int(number) - 1))
    return out or None


async def join(proc: Proc, o: JoinOptions, operands: list[str]) -> int:
    separator, end = _separator(o.separator), b"\0" if o.zero else b"\n"
    for number in (*o.unpaired, *o.only):
        if number not in ("1", "2"):
            raise UsageError(f"invalid field number: {quote(number)}", hint=False)
    fields = (_field(o.first, o.both), _field(o.second, o.both))
    _listed(o.output)
    if len(operands) < 2:
        raise UsageError("missing operand" if not operands else f"missing operand after {quote(operands[0])}")
    if len(operands) > 2:
        if not o.output or not all(map(_FIELDS.fullmatch, operands[:-2])):
            raise UsageError(f"extra operand {quote(operands[2])}")
        # The fields of -o may be separate words.
        o, operands = replace(o, output=(*o.output, *operands[:-2])), operands[-2:]
    if operands == ["-", "-"]:
        raise UsageError("both files cannot be standard input: No such file or directory", hint=False)
    sides: list[_Side] = []
    for n, (word, field) in enumerate(zip(operands, fields, strict=True), 1):
        try:
            sides.append(_Side(await proc.open(word), n, field, separator, o.ignore_case, end))
        except OSError as error:
            proc.complain(f"{called(word)}: {reason(error)}")
            return 1
    left, right = sides
    writer = _Rows(o, left, right, separator, end)
    left.strict = right.strict = o.check == "yes"
    await left.advance()
    await right.advance()
    writer.auto_counts(left, right)
    if o.header and left.line is not None and right.line is not None:
        writer.pair(left.line, right.line)
        await left.advance()
        await right.advance()
        left.disorder = right.disorder = None
    elif o.header:
        for side in sides:
            if side.line is not None:
                writer.single(side, side.line)
                await side.advance()
    unpairable = False
    while left.lines or right.lines:
        if not (left.ragged or right.ragged):
            unpairable = writer.merge() or unpairable
        if not right.lines or (left.lines and left.key < right.key):
            if writer.show1:
                writer.single(left, left.lines[left.at])
            await left.advance()
            await _tell(proc, o, sides, operands, writer)
            unpairable = unpairable or bool(right.lines)
        elif not left.lines or right.key < left.key:
            if writer.show2:
                writer.single(right, right.lines[right.at])
            await right.advance()
            await _tell(proc, o, sides, operands, writer)
            unpairable = unpairable or bool(left.lines)
        else:
            first, second = await left.group(proc.budget), await right.group(proc.budget)
            await _tell(proc, o, sides, operands, writer)
            in_order = left.disorder is None and right.disorder is None
            if writer.pairs and (in_order or o.check != "yes"):
                for a in first:
                    for b in second:
                        writer.pair(a, b)
                        if len(writer.out) > 1023:
                            await proc.emit(writer.take())
                            await proc.budget.yield_turn()
        if (left.disorder is not None or right.disorder is not None) and o.check == "yes":
            break
        # The line after the first unpairable one is not checked yet.
        left.strict = right.strict = unpairable or o.check == "yes"
        if len(writer.out) > 1023:
            await proc.emit(writer.take())
        await proc.budget.yield_turn()
    await proc.emit(writer.take())
    if not any(side.told for side in sides):
        return 0
    if o.check == "auto":
        proc.complain("input is not in sorted order")
    return 1


async def _tell(proc: Proc, o: JoinOptions, sides: list[_Side], operands: list[str], writer: _Rows) -> None:
    """Report each unsorted file once, after the rows before it."""
    for side, word in zip(sides, operands, strict=True):
        if side.disorder is None or side.told or o.check == "no":
            continue
        side.told = True
        await proc.emit(writer.take())
        proc.complain(f"{called(word)}:{side.at_line}: is not sorted: {decode(side.disorder)}")
        if o.check == "yes":
            return


class _Rows:
    """Builds output lines, by format or in the default order."""

    def __init__(self, o: JoinOptions, left: _Side, right: _Side, separator: bytes | None, end: bytes) -> None:
        self.o, self.left, self.right, self.end = o, left, right, end
        self.glue = b" " if separator is None else separator
        self.empty = encode(o.empty or "")
        self.out: list[bytes] = []
        self.format = _listed(o.output)
        self.auto = bool(o.output) and self.format is None
        self.show1, self.show2 = "1" in o.unpaired + o.only, "2" in o.unpaired + o.only
        self.pairs = not o.only
        self.plain = not o.output and not self.empty and left.field == right.field == 0
        """Whether a pair is the left line with what follows the key in the right one."""
        self._picks: dict[tuple[int, int], Callable[[tuple[bytes, ...]], Sequence[bytes]]] = {}

    def auto_counts(self, left: _Side, right: _Side) -> None:
        if self.auto:
            self.format = [(0, 0)]
            for side in (left, right):
                count = len(side.fields(side.line)) if side.line is not None else 0
                self.format += [(side.number, i) for i in range(count) if i != side.field]

    def merge(self) -> bool:
        """Merge up to the end of a block or a repeated key; return whether a line was unpairable."""
        left, right = self.left, self.right
        for side, other, shown_ in ((left, right, self.show1), (right, left, self.show2)):
            if not other.lines and side.lines:
                if shown_:
                    for line in side.lines[side.at : -1]:
                        self.single(side, line)
                side.at = len(side.lines) - 1
                return False
        ours, theirs, lines, others = left.keys, right.keys, left.lines, right.lines
        i, j, lone = left.at, right.at, False
        # The next line of each side is needed, too.
        most, mosts = len(lines) - 1, len(others) - 1
        out, end, plain = self.out, self.end, self.plain
        while i < most and j < mosts:
            a, b = ours[i], theirs[j]
            if a == b:
                if ours[i + 1] == a or theirs[j + 1] == b:
                    break
                if not self.pairs:
                    pass
                elif plain:
                    out += (lines[i], others[j][len(b) :], end)
                else:
                    self.pair(lines[i], others[j])
                i += 1
                j += 1
            elif a < b:
                lone = True
                if self.show1:
                    self.single(left, lines[i])
                i += 1
            else:
                lone = True
                if self.show2:
                    self.single(right, others[j])
                j += 1
        left.at, right.at = i, j
        return lone

    def take(self) -> bytes:
        """Return the finished rows and forget them."""
        out, self.out = self.out, []
        return b"".join(out)

    def pair(self, a: bytes, b: bytes) -> None:
        if self.plain:
            stop = b.find(self.glue) if self.glue else -1
            self.out += (a, b[stop:] if stop >= 0 else b"", self.end)
        else:
            self._row(self.left.fields(a), self.right.fields(b))

    def single(self, side: _Side, line: bytes) -> None:
        if self.plain:
            self.out += (line, self.end)
        elif side.number == 1:
            self._row(side.fields(line), None)
        else:
            self._row(None, side.fields(line))

    def _row(self, a: list[bytes] | None, b: list[bytes] | None) -> None:
        sizes = (-1 if a is None else len(a), -1 if b is None else len(b))
        pick = self._picks.get(sizes) or self._pick(*sizes)
        cells = pick((*(a or ()), *(b or ()), b""))
        if self.empty and b"" in cells:
            cells = [cell or self.empty for cell in cells]
        self.out.append(self.glue.join(cells) + self.end)

    def _pick(self, ours: int, theirs: int) -> Callable[[tuple[bytes, ...]], Sequence[bytes]]:
        """Make a getter for the cells of a row; `ours` and `theirs` are field counts, -1 without a line.

        The last field is empty and stands in for missing ones.
        """
        start = max(ours, 0)
        missing = start + max(theirs, 0)

        def place(number: int, index: int) -> int:
            count, before = (ours, 0) if number == 1 else (theirs, start)
            return before + index if index < count else missing

        key = place(1, self.left.field) if ours >= 0 else place(2, self.right.field)
        if self.format is not None:
            places = [key if number == 0 else place(number, index) for number, index in self.format]
        else:
            places = [key]
            for side, count in ((self.left, ours), (self.right, theirs)):
                places += [place(side.number, index) for index in range(count) if index != side.field]
        # With one index, `itemgetter` returns the cell instead of a tuple.
        pick = itemgetter(*places) if len(places) > 1 else itemgetter(slice(places[0], places[0] + 1))
        self._picks[ours, theirs] = pick
        return pick


COMMANDS = [
    Command(
        "join",
        join,
        JoinOptions,
        summary="For each pair of input lines with identical join fields, write a line.",
        usage="[OPTION]... FILE1 FILE2",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("read error: {}", fatal=True),
    ),
]
