"""Layout of text: fold, fmt, expand and unexpand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ramet.commands.declare import Command, UsageError, flag, quote, several, value
from ramet.commands.inputs import PART, Inputs, filter_lines, parse_count
from ramet.core.paths import encode
from ramet.core.proc import Proc

# --------------------------------------------------------------------------------------------------------- fold


@dataclass(frozen=True, slots=True)
class FoldOptions:
    bytes: bool = flag("-b", "--bytes", help="count bytes rather than columns")
    spaces: bool = flag("-s", "--spaces", help="break at spaces")
    width: str = value(
        "-w", "--width", metavar="WIDTH", default="80", digits=True, help="use WIDTH columns instead of 80"
    )


async def fold(proc: Proc, o: FoldOptions, operands: list[str]) -> int:
    width = parse_count(o.width, "number of columns", 1)

    def change(lines: list[bytes]) -> list[bytes]:
        out: list[bytes] = []
        for line in lines:
            if len(line) <= width and (o.bytes or _PLAIN.fullmatch(line)):
                out.append(line)
            elif (o.bytes or _PLAIN.fullmatch(line)) and not o.spaces:
                out += [line[i : i + width] for i in range(0, len(line), width)]
            else:
                out += _fold(line, width, o.bytes, o.spaces)
        return out

    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        rest = b""
        while block := await reader.read(PART):
            lines = (rest + block).split(b"\n")
            # What is left of an unfinished line is one row, which perhaps goes on.
            *begun, rest = change([lines.pop()])
            rows = change(lines) + begun
            await proc.emit(b"\n".join(rows) + b"\n" if rows else b"")
            await proc.budget.breathe()
        await proc.emit(rest)
    return inputs.status


_PLAIN = re.compile(rb"[^\t\b\r]*")


def _fold(line: bytes, width: int, by_bytes: bool, spaces: bool) -> list[bytes]:
    out: list[bytes] = []
    if (by_bytes and b"\t" not in line) or _PLAIN.fullmatch(line):
        at, end = 0, len(line)
        while end - at > width:
            cut = line.rfind(b" ", at, at + width) + 1 or at + width
            out.append(line[at:cut])
            at = cut
        out.append(line[at:])
        return out
    start, column, i = 0, 0, 0
    while i < len(line):
        byte = line[i]
        after = _column(byte, column, by_bytes)
        if after > width and i > start:
            cut = i
            if spaces:
                blank = max(line.rfind(b" ", start, i), line.rfind(b"\t", start, i))
                if blank >= start:
                    cut = blank + 1
            out.append(line[start:cut])
            start = cut
            column = 0
            for byte in line[start:i]:
                column = _column(byte, column, by_bytes)
            continue
        column = after
        i += 1
    out.append(line[start:])
    return out


def _column(byte: int, column: int, by_bytes: bool) -> int:
    if by_bytes:
        return column + 1
    if byte == 8:
        return max(0, column - 1)
    if byte == 13:
        return 0
    return column + 8 - column % 8 if byte == 9 else column + 1


# ------------------------------------------------------------------------------------------ expand and unexpand


class Tabs:
    """Tab stops: a fixed size, or a list with perhaps `/N` or `+N` behind it."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.stops: list[int] = []
        self.size, self.extend, self.increment = 0, 0, 0
        for text in texts:
            self._read(text)
        if self.extend and self.increment:
            raise UsageError("'/' specifier is mutually exclusive with '+'", hint=False)
        if 0 in self.stops:
            raise UsageError("tab size cannot be 0", hint=False)
        if any(b <= a for a, b in zip(self.stops, self.stops[1:], strict=False)):
            raise UsageError("tab sizes must be ascending", hint=False)
        if len(self.stops) == 1 and not self.extend and not self.increment:
            self.size = self.stops[0]
        if not self.stops:
            self.size = self.extend or self.increment or 8

    def _read(self, text: str) -> None:
        """One list of stops; what a `/` or `+` says holds for all numbers behind it."""
        kind, at = "", 0
        while at < len(text):
            found = re.compile(r"[, \t]+|[/+]|\d+").match(text, at)
            if found is None:
                raise UsageError(f"tab size contains invalid character(s): {quote(text[at:])}", hint=False)
            if found[0] in "/+":
                if at and text[at - 1].isdigit():
                    raise UsageError(f"'{found[0]}' specifier not at start of number: {quote(text[at:])}", hint=False)
                kind = found[0]
            elif found[0][0].isdigit():
                if int(found[0]) >= 1 << 64:
                    raise UsageError(f"tab stop is too large {quote(found[0])}", hint=False)
                self._add(kind, int(found[0]))
            at = found.end()

    def _add(self, kind: str, number: int) -> None:
        if (kind == "/" and self.extend) or (kind == "+" and self.increment):
            raise UsageError(f"'{kind}' specifier only allowed with the last value", hint=False)
        if kind == "/":
            self.extend = number
        elif kind == "+":
            self.increment = number
        else:
            self.stops.append(number)

    def next(self, column: int) -> int | None:
        """The first stop beyond `column`; None behind the last one."""
        if self.size:
            return column + self.size - column % self.size
        for stop in self.stops:
            if stop > column:
                return stop
        if self.extend:
            return column + self.extend - column % self.extend
        if self.increment:
            last = self.stops[-1]
            return column + self.increment - (column - last) % self.increment
        return None


@dataclass(frozen=True, slots=True)
class ExpandOptions:
    initial: bool = flag("-i", "--initial", help="do not convert tabs after non blanks")
    tabs: tuple[str, ...] = several(
        "-t", "--tabs", metavar="LIST", help="tab stops: N apart, or a comma separated list"
    )


def _old_tabs(words: list[str]) -> list[str]:
    """`-4` and `-4,8`."""
    for word in words:
        if re.fullmatch(r"-\d[\d,]*", word) and any(int(n or 0) >= 1 << 64 for n in word[1:].split(",")):
            raise UsageError("tab stop value is too large", hint=False)
    return [f"-t{w[1:]}" if re.fullmatch(r"-\d[\d,]*", w) else w for w in words]


def _old_first_tabs(words: list[str]) -> list[str]:
    """Likewise for unexpand, which takes these for leading blanks only."""
    new = _old_tabs(words)
    if new == words or any(re.match(r"-[a-zA-Z]*[at]|--[at]", word) for word in words):
        return new
    return ["--first-only", *new]


async def expand(proc: Proc, o: ExpandOptions, operands: list[str]) -> int:
    tabs = Tabs(o.tabs)

    def change(lines: list[bytes]) -> list[bytes]:
        if tabs.size and not o.initial:
            size = tabs.size
            return [
                line.expandtabs(size)
                if b"\t" in line and b"\b" not in line and b"\r" not in line
                else _expand(line, tabs, False)
                for line in lines
            ]
        return [_expand(line, tabs, o.initial) for line in lines]

    return await filter_lines(proc, operands, change, complete=False)


def _expand(line: bytes, tabs: Tabs, initial: bool) -> bytes:
    if b"\t" not in line:
        return line
    out = bytearray()
    column = 0
    converting = True
    for byte in line:
        if byte == 9 and converting:
            stop = tabs.next(column)
            spaces = 1 if stop is None else stop - column
            out += b" " * spaces
            column += spaces
            continue
        if byte == 8:
            column = max(0, column - 1)
        else:
            column += 1
        out.append(byte)
        if initial and byte not in (32, 9):
            converting = False
    return bytes(out)


@dataclass(frozen=True, slots=True)
class UnexpandOptions:
    all: bool = flag("-a", "--all", help="convert all blanks, instead of just initial blanks")
    first_only: bool = flag("--first-only", help="convert only leading sequences of blanks (overrides -a)")
    tabs: tuple[str, ...] = several("-t", "--tabs", metavar="LIST", help="tab stops; enables -a")


async def unexpand(proc: Proc, o: UnexpandOptions, operands: list[str]) -> int:
    tabs = Tabs(o.tabs)
    everything = (o.all or bool(o.tabs)) and not o.first_only
    return await filter_lines(
        proc, operands, lambda lines: [unexpanded(line, tabs, everything) for line in lines], complete=False
    )


def unexpanded(line: bytes, tabs: Tabs, everything: bool) -> bytes:
    if b"\t" not in line and (not everything or b"  " not in line) and not line.startswith(b" "):
        return line  # a lone blank stays what it is
    out = bytearray()
    column = 0
    pending = bytearray()
    # Whether the pending blanks begin with one that just reached a stop, and whether a blank came before.
    lone, after_blank = False, True
    for i, byte in enumerate(line):
        blank = byte in (32, 9)
        if blank:
            stop = tabs.next(column)
            if stop is None:
                return bytes(out + _settled(pending, lone) + line[i:])
            if byte == 9:
                column = stop
            else:
                column += 1
                if not (after_blank and column == stop):
                    lone = lone or column == stop
                    pending.append(32)
                    after_blank = True
                    continue
            # A stop is reached: what is pending becomes this tab, but for a lone blank that reached the stop before.
            pending[:] = b"\t" if lone else b""
            byte = 9
        elif byte == 8:
            column = max(0, column - 1)
        else:
            column += 1
        out += _settled(pending, lone)
        pending.clear()
        lone, after_blank = False, blank
        out.append(byte)
        if not everything and not blank:
            return bytes(out) + line[i + 1 :]
    return bytes(out + _settled(pending, lone))


def _settled(pending: bytearray, lone: bool) -> bytearray:
    """Blanks that no tab replaces; the first does become one when it reached a stop and others follow."""
    return bytearray(b"\t") + pending[1:] if lone and len(pending) > 1 else pending


# ---------------------------------------------------------------------------------------------------------- fmt


@dataclass(frozen=True, slots=True)
class FmtOptions:
    crown: bool = flag("-c", "--crown-margin", help="preserve indentation of first two lines")
    prefix: str = value(
        "-p", "--prefix", metavar="STRING", default="", help="reformat only lines beginning with STRING"
    )
    split: bool = flag("-s", "--split-only", help="split long lines, but do not refill")
    tagged: bool = flag("-t", "--tagged-paragraph", help="indentation of first line different from second")
    uniform: bool = flag("-u", "--uniform-spacing", help="one space between words, two after sentences")
    width: str = value(
        "-w", "--width", metavar="WIDTH", default="75", digits=True, help="maximum line width (default of 75 columns)"
    )
    goal: str | None = value("-g", "--goal", metavar="WIDTH", help="goal width (default of 93% of width)")


async def fmt(proc: Proc, o: FmtOptions, operands: list[str]) -> int:
    goal = parse_count(o.goal, "width") if o.goal is not None else None
    width = parse_count(o.width, "width", 1) if goal is None or o.width != "75" else goal + 10
    goal = width * 187 // 200 if goal is None else goal
    inputs = Inputs(proc, operands, form="cannot open '{}' for reading: {}", directory="read error")
    prefix = encode(o.prefix).strip(b" ")
    lead = encode(o.prefix)[: len(encode(o.prefix)) - len(encode(o.prefix).lstrip(b" "))]
    async for _, reader in inputs.each():
        lines = (await reader.read_all()).split(b"\n")
        if not lines[-1]:
            lines.pop()
        made = _Paragraphs(o, width, goal, prefix, lead).format(lines)
        if any(b"\t" in line for line in lines):
            made = b"\n".join(_with_tabs(line) for line in made.split(b"\n"))
        await proc.emit(made)
    return inputs.status


def _with_tabs(line: bytes) -> bytes:
    """Runs of blanks that pass a tab stop become tabs again, as they were in the input."""
    out = b""
    column = 0
    for piece in re.split(rb"( +)", line):
        target = (column + len(piece)) // 8 * 8
        if piece.startswith(b" ") and column + 1 < target:
            tabs = (target - column // 8 * 8) // 8
            out += b"\t" * tabs + b" " * (column + len(piece) - target)
        else:
            out += piece
        column += len(piece)
    return out


class _Paragraphs:
    """GNU's fmt: gathers a paragraph, then chooses breaks by least cost."""

    def __init__(self, o: FmtOptions, width: int, goal: int, prefix: bytes, lead: bytes) -> None:
        self.o, self.width, self.goal, self.prefix, self.lead = o, width, goal, prefix, lead
        self.hanging = 0
        """How far the lines behind a tag were indented last."""

    def format(self, lines: list[bytes]) -> bytes:
        out: list[bytes] = []
        i = 0
        while i < len(lines):
            indent, body, ok = self._parse(lines[i])
            if not ok or not body:
                out.append(lines[i].rstrip() if ok else lines[i])
                i += 1
                continue
            group = [(indent, body)]
            i += 1
            other = indent
            if not self.o.split:
                while i < len(lines):
                    following, text, good = self._parse(lines[i])
                    if not good or not text:
                        break
                    if self.o.crown or self.o.tagged:
                        if len(group) == 1:
                            if self.o.tagged and following == indent:
                                break
                            other = following
                        elif following != other:
                            break
                    elif following != indent:
                        break
                    group.append((following, text))
                    i += 1
            if self.o.tagged and not self.o.split:
                if len(group) == 1:
                    # A single line goes on as the paragraph before did, yet never as it begins.
                    other = self.hanging if self.hanging != indent else 0 if indent else 3
                self.hanging = other
            words = self._words([text for _, text in group])
            out += self._fill(words, indent, other)
        return b"".join(line + b"\n" for line in out)

    def _parse(self, line: bytes) -> tuple[int, bytes, bool]:
        line = line.expandtabs(8)
        indent = len(line) - len(line.lstrip(b" "))
        body = line.strip(b" ")
        if self.prefix:
            if not body.startswith(self.prefix):
                return indent, body, False
            rest = body[len(self.prefix) :]
            inner = len(rest) - len(rest.lstrip(b" "))
            return indent * 1000 + inner, rest.strip(b" "), True
        return indent, body, True

    def _words(self, lines: list[bytes]) -> list[tuple[bytes, int, bool, bool, bool]]:
        """Words with the space behind them and what they are: paren, punct, final."""
        out: list[tuple[bytes, int, bool, bool, bool]] = []
        for n, line in enumerate(lines):
            found = list(re.finditer(rb"([^ \t]+)([ \t]*)", line))
            for m, item in enumerate(found):
                word = item[1]
                paren = word[:1] in (b"(", b"[", b"'", b"`", b'"')
                stripped = word.rstrip(b"])'\"")
                period = stripped[-1:] in (b".", b"?", b"!")
                punct = word[-1:] in b".,;:?!)'\"" and word[-1:] != b""
                last = m == len(found) - 1
                space = len(item[2])
                final = period and (last or space > 1)
                if last or self.o.uniform:
                    space = 2 if final else 1
                # The end of a paragraph is the end of a sentence, whatever stands there.
                final = final or (last and n == len(lines) - 1)
                out.append((word, space, paren, punct, final))
        return out

    def _fill(self, words: list[tuple[bytes, int, bool, bool, bool]], first: int, other: int) -> list[bytes]:
        count = len(words)
        best = [0.0] * (count + 1)
        jump = [count] * (count + 1)
        lengths = [0] * (count + 1)
        first_in, other_in = self._indent_width(first), self._indent_width(other)
        for start in range(count - 1, -1, -1):
            indent = first_in if start == 0 else other_in
            size = indent
            best_cost = float("inf")
            at_ = start
            while True:
                size += len(words[at_][0])
                if size >= self.width and at_ > start:
                    break
                at_ += 1
                cost = self._line_cost(at_, size, count, jump, lengths) + best[at_]
                if cost < best_cost:
                    best_cost, jump[start], lengths[start] = cost, at_, size
                if at_ >= count:
                    break
                size += words[at_ - 1][1]
                if size >= self.width:
                    break
            best[start] = best_cost + self._base_cost(start, words)
        out: list[bytes] = []
        at_ = 0
        while at_ < count:
            end = jump[at_]
            text = b"".join(w[0] + b" " * (w[1] if k < end - at_ - 1 else 0) for k, w in enumerate(words[at_:end]))
            out.append(self._indent_text(first if at_ == 0 else other) + text)
            at_ = end
        return out

    def _indent_width(self, indent: int) -> int:
        return indent if not self.prefix else indent // 1000 + len(self.prefix) + indent % 1000

    def _indent_text(self, indent: int) -> bytes:
        if not self.prefix:
            return b" " * indent
        return b" " * (indent // 1000) + self.prefix + b" " * (indent % 1000)

    def _line_cost(self, following: int, size: int, count: int, jump: list[int], lengths: list[int]) -> float:
        if following == count:
            return 0
        cost = float((self.goal - size) ** 2 * 100)
        if jump[following] != count:
            cost += (size - lengths[following]) ** 2 * 50
        return cost

    def _base_cost(self, this: int, words: list[tuple[bytes, int, bool, bool, bool]]) -> float:
        cost = 70.0 * 70
        if this > 0:
            word, _, _, punct, final = words[this - 1]
            period = word.rstrip(b"])'\"")[-1:] in (b".", b"?", b"!")
            if period:
                cost = cost - 50 * 50 if final else cost + 600 * 600
            elif punct:
                cost -= 40 * 40
            elif this > 1 and words[this - 2][4]:
                cost += 200 * 200 / (len(word) + 2)
        if words[this][2]:
            cost -= 40 * 40
        elif words[this][4]:
            cost += 150 * 150 / (len(words[this][0]) + 2)
        return cost


COMMANDS = [
    Command("fold", fold, FoldOptions, summary="Wrap input lines in each FILE, writing to standard output."),
    Command("fmt", fmt, FmtOptions, summary="Reformat each paragraph in the FILE(s), writing to standard output."),
    Command("expand", expand, ExpandOptions, summary="Convert tabs in each FILE to spaces.", rewrite=_old_tabs),
    Command(
        "unexpand", unexpand, UnexpandOptions, summary="Convert blanks in each FILE to tabs.", rewrite=_old_first_tabs
    ),
]
