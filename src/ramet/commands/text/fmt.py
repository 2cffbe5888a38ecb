"""Layout of text: fold, fmt, expand and unexpand."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from operator import add
from typing import NamedTuple

from ramet.commands.framework.command import Command, UsageError, flag, quote, several, value
from ramet.commands.framework.inputs import PART, Inputs, filter_lines, parse_count
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LARGE
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks

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

    def change(lines: list[bytes], plain: bool) -> list[bytes]:
        out: list[bytes] = []
        plain = plain or o.bytes
        for line in lines:
            if not plain and not _PLAIN.fullmatch(line):
                out += _fold(line, width, o.bytes, o.spaces)
            elif len(line) <= width:
                out.append(line)
            elif not o.spaces:
                out += [line[i : i + width] for i in range(0, len(line), width)]
            elif plain and not o.bytes:
                out += _fold_plain(line, width)
            else:
                out += _fold(line, width, o.bytes, o.spaces)
        return out

    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        rest = b""
        while block := await reader.read(PART):
            text = rest + block
            plain = not (b"\t" in text or b"\b" in text or b"\r" in text)
            lines = text.split(b"\n")
            # What is left of an unfinished line is one row, which perhaps goes on.
            *begun, rest = change([lines.pop()], plain)
            rows = change(lines, plain) + begun
            await proc.emit(b"\n".join(rows) + b"\n" if rows else b"")
            await proc.budget.yield_turn()
        await proc.emit(rest)
    return inputs.status


_PLAIN = re.compile(rb"[^\t\b\r]*")


def _fold_plain(line: bytes, width: int) -> list[bytes]:
    """A line whose bytes are a column each, broken behind blanks."""
    out: list[bytes] = []
    at, end, find = 0, len(line), line.rfind
    while end - at > width:
        cut = find(b" ", at, at + width) + 1 or at + width
        out.append(line[at:cut])
        at = cut
    out.append(line[at:])
    return out


def _fold(line: bytes, width: int, by_bytes: bool, spaces: bool) -> list[bytes]:
    out: list[bytes] = []
    if (by_bytes and b"\t" not in line) or _PLAIN.fullmatch(line):
        return _fold_plain(line, width)
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

    if tabs.size and not o.initial:
        return await _expand_blocks(proc, operands, tabs)

    def change(lines: list[bytes]) -> list[bytes]:
        return [_expand(line, tabs, o.initial) for line in lines]

    return await filter_lines(proc, operands, change, complete=False)


async def _expand_blocks(proc: Proc, operands: list[str], tabs: Tabs) -> int:
    """Stops that are all as far apart: many lines at once."""
    inputs = Inputs(proc, operands)
    async for _, reader in inputs.each():
        async for block in line_blocks(reader, size=PART):
            if b"\b" in block or b"\r" in block:
                block = b"\n".join([_expand(line, tabs, False) for line in block.split(b"\n")])
            await proc.emit(block.expandtabs(tabs.size) if b"\t" in block else block)
            await proc.budget.yield_turn()
    return inputs.status


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
    blanks = everything and b"  " in line
    if b"\t" not in line and not blanks and not line.startswith(b" "):
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
        "-w", "--width", metavar="WIDTH", default="75", help="maximum line width (default of 75 columns)"
    )
    goal: str | None = value("-g", "--goal", metavar="WIDTH", help="goal width (default of 93% of width)")


_ONLY_FIRST = "-WIDTH is recognized only when it is the first\noption; use -w N instead"


def _old_width(words: list[str]) -> list[str]:
    """`-30`, only as the first word."""
    taken = False
    for place, word in enumerate(words):
        if word == "--":
            break
        if place and not taken and re.match(r"-\d", word):
            raise UsageError(f"invalid option -- {word[1]}; {_ONLY_FIRST}")
        taken = re.fullmatch(r"-[cstu]*[pwg]|--[pwg][a-z]*", word) is not None
    return [f"-w{words[0][1:]}", *words[1:]] if words and re.match(r"-\d", words[0]) else words


async def fmt(proc: Proc, o: FmtOptions, operands: list[str]) -> int:
    o = replace(o, tagged=o.tagged and not o.crown)
    width = parse_count(o.width, "width", 0, _MOST_CHARS // 2)
    goal = width * 187 // 200
    if o.goal is not None:
        goal = parse_count(o.goal, "width", 0, width)
        width = goal + 10 if o.width == "75" else width
    inputs = Inputs(proc, operands, form="cannot open {} for reading: {}", directory="read error", name=quote)
    prefix = encode(o.prefix).strip(b" ")
    lead = encode(o.prefix)[: len(encode(o.prefix)) - len(encode(o.prefix).lstrip(b" "))]
    async for _, reader in inputs.each():
        made = _Paragraphs(o, width, goal, prefix, lead)
        async for block in line_blocks(reader, size=PART):
            lines = block.split(b"\n")
            unfinished = bool(lines[-1])
            if not unfinished:
                lines.pop()
            for index, line in enumerate(lines, 1):
                found = made.feed(line, unfinished and index == len(lines))
                if len(line) > LARGE:
                    await proc.emit(await offload(proc.budget, partial(b"".join, found)))
                    continue
                for finished in found:
                    await proc.emit(finished)
                    await proc.budget.yield_turn()
        await proc.emit(made.end())
    return inputs.status


_TABBED = re.compile(rb" *\t")
_WORDS = re.compile(rb"([^ \t][^ \t\v\f\r]*)([ \t]*)")
_ODD_SPACE = re.compile(rb"  |[\t\v\f\r]")


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


class Word(NamedTuple):
    """A word, the space behind it, and what it is."""

    text: bytes
    space: int
    paren: bool
    punct: bool
    period: bool
    final: bool
    special: bool
    """Whether anything of this is so."""


_MOST_WORDS, _MOST_CHARS = 998, 5000
"""What GNU's fmt keeps of a paragraph: of a longer one it puts out the lines up to a good break."""
_LINE_CREDIT = 9
_PUNCTUATION = string.punctuation.encode()


_LINE_COST = 70 * 70
_MOST_KNOWN = 4096


def _word(text: bytes, space: int, last: bool, uniform: bool) -> Word:
    """A word with the blanks behind it, or at the end of its line."""
    punct = text[-1] in _PUNCTUATION
    period = punct and text.rstrip(b"])'\"")[-1:] in (b".", b"?", b"!")
    final = period and (last or space > 1)
    if last or uniform:
        space = 2 if final else 1
    paren = text[0] in b"(['`\""
    return Word(text, space, paren, punct, period, final, paren or punct)


class _Paragraphs:
    """GNU's fmt: gathers a paragraph, then chooses breaks by least cost. Gives out what is finished as bytes."""

    def __init__(self, o: FmtOptions, width: int, goal: int, prefix: bytes, lead: bytes) -> None:
        self.o, self.width, self.goal, self.prefix, self.lead = o, width, goal, prefix, lead
        self.hanging = 0
        """How far the lines behind a tag were indented last."""
        self.words: list[Word] = []
        self._known: dict[bytes, Word] = {}
        self.chars = self.lines = self.first = self.other = 0
        self.before = 0
        """How long the line was that was put out last of this paragraph."""
        self.tabs = False
        """Whether a tab was seen: from then on blanks become tabs again."""

    def feed(self, line: bytes, unfinished: bool = False) -> Iterator[bytes]:
        """One more line of input; what it finishes, a part at a time."""
        self.tabs = self.tabs or _TABBED.match(line) is not None
        indent, body, ok = self._parse(line)
        if self.lines:
            if ok and body and self._goes_on(indent):
                self.tabs = self.tabs or b"\t" in line
                self.lines += 1
                yield from self._add(body)
                return
            yield self.end()
        self.tabs = self.tabs or b"\t" in line
        if not ok or not body:
            yield self._shown([b""]) if ok else self._as_it_is(line, indent) + (b"" if unfinished else b"\n")
            return
        self.first = self.other = indent
        self.lines = 1
        yield from self._add(body)
        if self.o.split:
            yield self.end()

    def end(self) -> bytes:
        """The paragraph is complete."""
        if not self.lines:
            return b""
        if self.o.tagged and not self.o.split:
            if self.lines == 1:
                # A single line goes on as the paragraph before did, yet never as it begins.
                self.other = self.hanging if self.hanging != self.first else 0 if self.first else 3
            self.hanging = self.other
        # The end of a paragraph is the end of a sentence, whatever stands there.
        self.words[-1] = self.words[-1]._replace(final=True, special=True)
        out = self._put(len(self.words), self._breaks()[1])
        self.chars = self.lines = self.before = 0
        return out

    def _goes_on(self, indent: int) -> bool:
        """Whether a line belongs to the paragraph at hand."""
        if self.o.crown or self.o.tagged:
            if self.lines > 1:
                return indent == self.other
            if self.o.tagged and indent == self.first:
                return False
            self.other = indent
            return True
        return indent == self.first

    def _add(self, body: bytes) -> Iterator[bytes]:
        for word in self._words(body):
            size = len(word.text)
            while self.words and (len(self.words) >= _MOST_WORDS or self.chars + size > _MOST_CHARS):
                yield self._relieve()
            self.words.append(word)
            self.chars += size

    def _relieve(self) -> bytes:
        """Put out the lines up to a break that costs little, near the end."""
        best, jump = self._breaks()
        count = len(self.words)
        split, least, at = count, float("inf"), jump[0]
        while at != count:
            cost = best[at] - best[jump[at]]
            if cost < least:
                split, least = at, cost
            least += _LINE_CREDIT
            at = jump[at]
        return self._put(split, jump)

    def _put(self, end: int, jump: list[int]) -> bytes:
        out: list[bytes] = []
        words, at, indent = self.words, 0, self.first
        while at < end:
            stop = jump[at]
            text = b"".join([word.text + b" " * word.space for word in words[at : stop - 1]]) + words[stop - 1].text
            out.append(self._indent_text(indent) + text)
            at, indent = stop, self.other
        self.before = len(out[-1]) if out else self.before
        self.words = words[end:]
        self.chars = sum([len(word.text) for word in self.words])
        return self._shown(out)

    def _shown(self, lines: list[bytes]) -> bytes:
        if self.tabs:
            lines = [_with_tabs(line) for line in lines]
        return b"".join([line + b"\n" for line in lines])

    def _as_it_is(self, line: bytes, indent: int) -> bytes:
        """A line that does not begin as it should: only the blanks ahead of it are written anew."""
        return (_with_tabs(b" " * indent) if self.tabs else b" " * indent) + line.lstrip(b" \t")

    def _parse(self, line: bytes) -> tuple[int, bytes, bool]:
        if b"\t" in line:
            line = line.expandtabs(8)
        rest = line.lstrip(b" ")
        indent, body = len(line) - len(rest), rest.rstrip(b" ")
        if body and indent < len(self.lead):
            return indent, body, False
        if self.prefix:
            if not body.startswith(self.prefix):
                return indent, body, False
            rest = body[len(self.prefix) :]
            inner = len(rest) - len(rest.lstrip(b" "))
            return indent * 1000 + inner, rest.strip(b" "), True
        return indent, body, True

    def _words(self, line: bytes) -> Iterator[Word]:
        if not _ODD_SPACE.search(line):
            known = self._known
            *texts, last = line.split(b" ")
            for text in texts:
                yield known.get(text) or self._word(text)
            yield _word(last, 0, True, self.o.uniform)
            return
        for found in _WORDS.finditer(line):
            text, blanks = found.groups()
            yield _word(text, len(blanks), found.end() == len(line), self.o.uniform)

    def _word(self, text: bytes) -> Word:
        """A word with one blank behind it, of which there are likely more."""
        word = _word(text, 1, False, self.o.uniform)
        if len(self._known) < _MOST_KNOWN:
            self._known[text] = word
        return word

    def _breaks(self) -> tuple[list[int], list[int]]:
        """For every word the least cost from there on if it begins a line, and which word then begins the next."""
        words, width, goal = self.words, self.width, self.goal
        count = tail = far = len(words)
        sizes = [len(word.text) for word in words]
        # Where each word begins if all stand on one line, and where the line ends that the word is not on any more.
        begins = [0, *accumulate(map(add, sizes, [word.space for word in words]))]
        ends = [0, *map(add, begins, sizes)]
        costs = self._base_costs()
        best, jump, lengths = [0] * (count + 1), [count] * (count + 1), [0] * (count + 1)
        indent = self._indent_width(self.other)
        for start in range(count - 1, -1, -1):
            shift, like = indent - begins[start], 0
            if start == 0:
                shift, like = self._indent_width(self.first), self.before
            first = start + 1
            while far > first and ends[far] + shift >= width:
                far -= 1
            # From the longest line to the shortest: those that are far too short cannot cost less, whatever follows.
            at, least, chosen, length = far, -1, count, 0
            lowest = min(best[first : far + 1])
            while at >= first:
                size = ends[at] + shift
                cost = best[at]
                if at < count:
                    short = goal - size
                    bad = short * short * 100
                    if 0 <= least < lowest + bad and short > 0:
                        break
                    cost += bad
                    if at < tail or jump[at] != count:
                        ragged = size - lengths[at]
                        cost += ragged * ragged * 50
                if like:
                    cost += (size - like) ** 2 * 50
                if cost <= least or least < 0:
                    least, chosen, length = cost, at, size
                at -= 1
            best[start], jump[start], lengths[start] = least + costs[start], chosen, length
            if chosen == count:
                tail = start
            if start == 1:
                far = count  # the first line may be indented otherwise
        return best, jump

    def _base_costs(self) -> list[int]:
        """What a line costs that begins with each of the words, however long it is."""
        words = self.words
        costs = [_LINE_COST] * len(words)
        special = [index for index, word in enumerate(words) if word.special]
        for at in {near for index in special for near in range(index, min(index + 3, len(words)))}:
            costs[at] = self._base_cost(at, words)
        return costs

    def _indent_width(self, indent: int) -> int:
        return indent if not self.prefix else indent // 1000 + len(self.prefix) + indent % 1000

    def _indent_text(self, indent: int) -> bytes:
        if not self.prefix:
            return b" " * indent
        return b" " * (indent // 1000) + self.prefix + b" " * (indent % 1000)

    def _base_cost(self, this: int, words: list[Word]) -> int:
        cost = _LINE_COST
        word = words[this]
        if this > 0:
            before = words[this - 1]
            if before.period:
                cost += -50 * 50 if before.final else 600 * 600
            elif before.punct:
                cost -= 40 * 40
            elif this > 1 and words[this - 2].final:
                cost += 200 * 200 // (len(before.text) + 2)
        if word.paren:
            cost -= 40 * 40
        elif word.final:
            cost += 150 * 150 // (len(word.text) + 2)
        return cost


COMMANDS = [
    Command(
        "fold",
        fold,
        FoldOptions,
        summary="Wrap input lines in each FILE, writing to standard output.",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
    Command(
        "fmt",
        fmt,
        FmtOptions,
        summary="Reformat each paragraph in the FILE(s), writing to standard output.",
        rewrite=_old_width,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="closing standard input: {}"),
    ),
    Command(
        "expand",
        expand,
        ExpandOptions,
        summary="Convert tabs in each FILE to spaces.",
        rewrite=_old_tabs,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
    Command(
        "unexpand",
        unexpand,
        UnexpandOptions,
        summary="Convert blanks in each FILE to tabs.",
        rewrite=_old_first_tabs,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError("-: {}", "-: {}"),
    ),
]
