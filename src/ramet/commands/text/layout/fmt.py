"""fmt: fill paragraphs, with line breaks chosen by least cost as GNU fmt does."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from operator import add
from typing import NamedTuple

from ramet.commands.framework.command import Command, UsageError, flag, quote, value
from ramet.commands.framework.inputs import PART, Inputs, parse_count
from ramet.commands.framework.stdin_errors import StdinError
from ramet.concurrency.offload import offload
from ramet.concurrency.sizes import LARGE
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.streams import line_blocks


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
    """Convert runs of blanks that pass a tab stop back to tabs."""
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
    """A word, the space after it, and its punctuation."""

    text: bytes
    space: int
    paren: bool
    punct: bool
    period: bool
    final: bool
    special: bool
    """Whether any of the flags is set."""


_MOST_WORDS, _MOST_CHARS = 998, 5000
"""Size of the paragraph buffer of GNU fmt: a longer paragraph is printed up to a good break."""
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
    """Collect a paragraph, then choose line breaks by least cost, as GNU fmt does."""

    def __init__(self, o: FmtOptions, width: int, goal: int, prefix: bytes, lead: bytes) -> None:
        self.o, self.width, self.goal, self.prefix, self.lead = o, width, goal, prefix, lead
        self.hanging = 0
        """Indent of the lines after the last tag."""
        self.words: list[Word] = []
        self._known: dict[bytes, Word] = {}
        self.chars = self.lines = self.first = self.other = 0
        self.before = 0
        """Length of the last printed line of this paragraph."""
        self.tabs = False
        """Whether the input has tabs: from then on blanks become tabs."""

    def feed(self, line: bytes, unfinished: bool = False) -> Iterator[bytes]:
        """Add a line of input; yield the output it completes."""
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
            yield self._render([b""]) if ok else self._as_it_is(line, indent) + (b"" if unfinished else b"\n")
            return
        self.first = self.other = indent
        self.lines = 1
        yield from self._add(body)
        if self.o.split:
            yield self.end()

    def end(self) -> bytes:
        """Finish the paragraph and return its lines."""
        if not self.lines:
            return b""
        if self.o.tagged and not self.o.split:
            if self.lines == 1:
                # A single line takes the hanging indent of the paragraph before, unless that equals its first indent.
                self.other = self.hanging if self.hanging != self.first else 0 if self.first else 3
            self.hanging = self.other
        # The end of a paragraph ends a sentence.
        self.words[-1] = self.words[-1]._replace(final=True, special=True)
        out = self._put(len(self.words), self._breaks()[1])
        self.chars = self.lines = self.before = 0
        return out

    def _goes_on(self, indent: int) -> bool:
        """Return whether a line continues the paragraph."""
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
        """Print the lines up to the cheapest late break."""
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
        return self._render(out)

    def _render(self, lines: list[bytes]) -> bytes:
        if self.tabs:
            lines = [_with_tabs(line) for line in lines]
        return b"".join([line + b"\n" for line in lines])

    def _as_it_is(self, line: bytes, indent: int) -> bytes:
        """Copy a line without the prefix; only its indent is rewritten."""
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
        """Return the cached word with one blank after it."""
        word = _word(text, 1, False, self.o.uniform)
        if len(self._known) < _MOST_KNOWN:
            self._known[text] = word
        return word

    def _breaks(self) -> tuple[list[int], list[int]]:
        """Return for every word the least cost of a line that begins there, and the word that begins the next line."""
        words, width, goal = self.words, self.width, self.goal
        count = tail = far = len(words)
        sizes = [len(word.text) for word in words]
        # Offsets of the words on one line, and the end of the line before each word.
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
            # From the longest line to the shortest; much shorter ones cannot cost less.
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
        """Return the cost of beginning a line with each word, independent of its length."""
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
        "fmt",
        fmt,
        FmtOptions,
        summary="Reformat each paragraph in the FILE(s), writing to standard output.",
        rewrite=_old_width,
        original="GNU coreutils 9.1",
        curly_quotes=True,
        stdin_error=StdinError(closing="closing standard input: {}"),
    ),
]
