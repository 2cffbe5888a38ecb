"""`compile()`: a pattern of any dialect to a `Matcher` over bytes, leftmost-longest for POSIX.

The engine is chosen per pattern and per data: plain `find`, `re` where it is proven exact and linear, RE2 for all
else it can say, and `regex` under a time limit for back-references and Perl syntax.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from ramet.concurrency.sizes import LONG_PATTERN
from ramet.patterns import parse as dialects
from ramet.patterns import perl, tree
from ramet.patterns import size_limits as bounds
from ramet.patterns.alternations import Split, group_numbers, split_choice
from ramet.patterns.count import lines_with
from ramet.patterns.emit import Coding, Engine, Inexpressible, Lines, Target, emit
from ramet.patterns.engines import (
    MEMORY,
    LiteralEngine,
    MatchEngine,
    Re2Engine,
    ReEngine,
    RegexEngine,
    RegexTextEngine,
    Renumbered,
    Span,
)
from ramet.patterns.errors import TOO_BIG, PatternError
from ramet.patterns.multi import PLAIN, Grouped, TextsEngine, UnionEngine, groups
from ramet.patterns.parse import Dialect, Parsed
from ramet.patterns.perl_reader import Style
from ramet.patterns.re_safe import is_simple
from ramet.patterns.tree import Node

SECONDS = 10.0
_PART_MEMORY = 16 << 20
"""Bytes for one of many automata."""
_WIDE = "\xe9".encode()
_SAMPLE = 16 * 1024
_OFTEN = 5
"""Matching lines per sample from which on `re`, cheap per match, beats the engine that is cheap per byte."""


class Matcher:
    """A compiled pattern. Positions are byte offsets; context before `pos` counts for anchors and word boundaries."""

    __slots__ = (
        "_ascii",
        "_bulk",
        "_to_line_end",
        "_unending",
        "_wide",
        "folded",
        "groups",
        "literal",
        "same",
        "warnings",
    )

    def __init__(self, groups: int, literal: bytes | None, warnings: tuple[str, ...], same: bool) -> None:
        self.groups = groups
        self.literal = literal
        """The bytes this is a plain search for, if it is one."""
        self.warnings = warnings
        self.same = same
        """Whether one engine serves all data."""
        self._ascii: MatchEngine | None = None
        self._wide: MatchEngine | None = None
        self._bulk: MatchEngine | None = None
        self._to_line_end: re.Pattern[bytes] | None = None
        self._unending = False
        self.folded: bytes | None = None
        """The same in lower case, if it is a plain search for ASCII that ignores case."""

    def _make(self, ascii_only: bool) -> MatchEngine:
        raise NotImplementedError

    @property
    def tree(self) -> Node | None:
        """The tree of a pattern over characters, where it has one."""
        return None

    @property
    def by_bytes(self) -> bool:
        """Whether the GNU library looks at single bytes, and so finds nothing even inside a character."""
        return False

    @property
    def long(self) -> bool:
        """Whether compiling another engine for it is expensive."""
        return False

    def ready(self) -> None:
        """Compile the engines now; expensive for a long pattern."""
        for sample in (b"",) if self.same else (b"", _WIDE):
            engine = self.engine(sample)
            if self.groups:
                engine.spans(sample, 0)

    def variant(self, lines: Lines) -> Matcher:
        """The same pattern with another view of newlines."""
        return self

    def over_lines(self) -> Matcher | None:
        """The same pattern for blocks of many lines; None when it may match a newline or is slow on long data."""
        return None

    def engine(self, data: bytes) -> MatchEngine:
        """The engine for this data; looping callers fetch it once per block."""
        if self.same or data.isascii():
            if self._ascii is None:
                self._ascii = self._make(not self.same)
            return self._ascii
        if self._wide is None:
            self._wide = self._make(False)
        return self._wide

    def bulk(self, data: bytes) -> MatchEngine:
        """The engine for a large block: the one with the best throughput rather than the cheapest call."""
        narrow = self.same or data.isascii()
        if narrow and self._bulk is None:
            self._bulk = self._make_bulk(not self.same) or self.engine(b"")
        return self._bulk if narrow and self._bulk is not None else self.engine(data)

    def _make_bulk(self, ascii_only: bool) -> MatchEngine | None:
        return None

    def search(self, data: bytes, pos: int = 0) -> Span | None:
        """The span of the leftmost match."""
        return self.engine(data).search(data, pos)

    def spans(self, data: bytes, pos: int = 0) -> list[Span] | None:
        """The spans of the leftmost match and of its groups."""
        return self.engine(data).spans(data, pos)

    def test(self, data: bytes) -> bool:
        return self.engine(data).search(data, 0) is not None

    def finditer(self, data: bytes) -> Iterator[Span]:
        """All matches from left to right; an empty one never touches the match before it."""
        search, pos, end, last = self.engine(data).search, 0, len(data), -1
        while pos <= end:
            found = search(data, pos)
            if found is None:
                return
            start, stop = found
            if start == stop:
                if start != last:
                    yield found
                pos = after_char(data, start)
            else:
                yield found
                pos = last = stop

    def lines(self, block: bytes, start: int = 0, stop: int | None = None) -> Iterator[Span]:
        """The lines of a block (without newline) that hold a match; for patterns compiled with `Lines.BLOCK`."""
        pos, end = start, len(block) if stop is None else stop
        dense = self._dense_pattern(block, start, end)
        rfind = block.rfind
        if dense is not None:
            for found in dense.finditer(block, start, end):
                low, high = found.span()
                yield rfind(b"\n", pos, low) + 1 or pos, high
                pos = high + 1
            return
        search, find = self.bulk(block).search, block.find
        while pos < end:
            hit = search(block, pos)
            if hit is None or hit[0] >= end:
                # An empty match behind the last newline is no line.
                if hit is not None and hit[0] == end == len(block) and not block.endswith(b"\n"):
                    yield rfind(b"\n", pos, end) + 1 or pos, end
                return
            first = rfind(b"\n", pos, hit[0]) + 1 or pos
            last = find(b"\n", hit[1], end)
            if last < 0:
                last = end
            yield first, last
            pos = last + 1

    def _dense_pattern(self, block: bytes, start: int, end: int) -> re.Pattern[bytes] | None:
        """The pattern with the rest of its line, where lines match so often that a search for each costs too much."""
        if self._to_line_end is None and not self._unending:
            self._to_line_end = self._make_to_line_end()
            self._unending = self._to_line_end is None
        pattern = self._to_line_end
        if pattern is None or end - start < _SAMPLE or not (self.same or block.isascii()):
            return None
        return pattern if len(pattern.findall(block, start, start + _SAMPLE)) >= _OFTEN else None

    def over_block(self, block: bytes) -> re.Pattern[bytes] | None:
        """What finds all matches in the lines of a block, perhaps also empty ones; None when they need care."""
        if not (self.same or block.isascii()):
            return None
        engine = self.engine(block)
        if not isinstance(engine, ReEngine) or (engine.nullable and not block.isascii()):
            return None
        return engine.pattern

    def _make_to_line_end(self) -> re.Pattern[bytes] | None:
        if self.literal:
            return None if b"\n" in self.literal else re.compile(re.escape(self.literal) + b".*")
        engine = self.engine(b"")
        if isinstance(engine, ReEngine) and not engine.nullable:
            return re.compile(b"(?:" + engine.pattern.pattern + b").*", engine.pattern.flags)
        return None

    def count_lines(self, block: bytes, start: int = 0, stop: int | None = None) -> int:
        """How many lines of a block hold a match."""
        pos, end, count = start, len(block) if stop is None else stop, 0
        if self.literal and b"\n" not in self.literal:
            return lines_with(block, self.literal, start, end)
        if self.folded and b"\n" not in self.folded and block.isascii():
            return lines_with(block.lower(), self.folded, start, end)
        search, find = self.bulk(block).search, block.find
        while pos < end:
            found = search(block, pos)
            if found is None or found[0] >= end:
                if found is not None and found[0] == end == len(block) and not block.endswith(b"\n"):
                    count += 1
                break
            count += 1
            pos = find(b"\n", found[1], end) + 1
            if not pos:
                break
        return count


def after_char(data: bytes, pos: int) -> int:
    """The position behind the character at `pos`, in UTF-8 or, where it is none, one byte on."""
    if pos >= len(data) or data[pos] < 0xC2:
        return pos + 1
    lead = data[pos]
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    try:
        data[pos : pos + size].decode()
    except UnicodeDecodeError:
        return pos + 1
    return pos + size


class _PosixMatcher(Matcher):
    __slots__ = ("_coding", "_icase", "_lines", "_odd", "_parsed", "_seconds")

    def __init__(self, parsed: Parsed, lines: Lines, icase: bool, utf8: bool, seconds: float) -> None:
        text = tree.literal(parsed.tree)
        encoding = "utf-8" if utf8 else "latin-1"
        plain = None
        if text is not None and not (icase and text.lower() != text.upper()):
            plain = text.encode(encoding, "surrogateescape")
        super().__init__(parsed.groups, plain, parsed.warnings, not utf8 or plain is not None)
        self._parsed, self._lines, self._icase, self._seconds = parsed, lines, icase, seconds
        self._coding = Coding.UTF8 if utf8 else Coding.BYTES
        self._odd: MatchEngine | None = None
        if text and plain is None and text.isascii():
            self.folded = text.lower().encode()

    @property
    def tree(self) -> Node | None:
        return self._parsed.tree if self._coding is Coding.UTF8 else None

    @property
    def by_bytes(self) -> bool:
        return self._coding is not Coding.UTF8 or not (self._icase or tree.of_characters(self._parsed.tree))

    @property
    def long(self) -> bool:
        return self._parsed.long

    def _make(self, ascii_only: bool) -> MatchEngine:
        if self.literal is not None:
            return LiteralEngine(self.literal)
        engine = self._engine(ascii_only)
        return Renumbered(engine, self._parsed.groups, self._parsed.same) if self._parsed.same else engine

    def _engine(self, ascii_only: bool) -> MatchEngine:
        coding = Coding.ASCII if ascii_only else self._coding
        node, icase, lines = self._parsed.tree, self._icase, self._lines
        folds = icase and self._coding is Coding.UTF8
        if coding is not Coding.UTF8 and not self._parsed.long and is_simple(node, coding, lines, icase):
            return ReEngine(emit(node, Target(Engine.RE, coding, lines, folds=folds)), icase, tree.nullable(node))
        if not self._parsed.back_references:
            try:
                long = self._parsed.long and not self._parsed.same
                if long and (split := split_choice(node, texts=not icase)) is not None:
                    return self._union(split, coding)
                return Re2Engine(
                    emit(node, Target(Engine.RE2, coding, lines, folds=icase)), icase, coding is Coding.UTF8
                )
            except Inexpressible:
                pass
            except PatternError:
                raise PatternError(TOO_BIG) from None
        return self._backtracking(coding, self._guard(coding))

    def _union(self, split: Split, coding: Coding) -> MatchEngine:
        """Compile engines for the parts of a split tree."""
        utf8 = self._coding is Coding.UTF8
        target = Target(Engine.RE2, coding, self._lines, folds=self._icase)
        engines: list[MatchEngine] = [
            Re2Engine(emit(part, target), self._icase, coding is Coding.UTF8, memory=_PART_MEMORY)
            for part in split.trees
        ]
        numbers = [group_numbers(part) for part in split.trees]
        if split.texts:
            texts = [text.encode("utf-8" if utf8 else "latin-1", "surrogateescape") for text in split.texts]
            found = TextsEngine(texts, fold=False, whole="", lines=self._lines, utf8=utf8, seconds=self._seconds)
            engines.append(Grouped(found, len(split.around)))
            numbers.append(split.around)
        return UnionEngine(engines, self._parsed.groups, numbers)

    def engine(self, data: bytes) -> MatchEngine:
        if self.same or not self._parsed.words or data.isascii() or _is_utf8(data):
            return super().engine(data)
        if self._odd is None:  # RE2 cannot say that a byte which is no UTF-8 ends a word
            self._odd = self._backtracking(Coding.UTF8, None)
            if self._parsed.same:
                self._odd = Renumbered(self._odd, self._parsed.groups, self._parsed.same)
        return self._odd

    def _backtracking(self, coding: Coding, guard: MatchEngine | None) -> MatchEngine:
        source, icase = (
            emit(self._parsed.tree, Target(Engine.REGEX, coding, self._lines, folds=self._icase)),
            self._icase,
        )
        if coding is Coding.UTF8:
            return RegexTextEngine(source, icase, True, self._seconds, guard)
        return RegexEngine(source, icase, True, self._seconds, guard)

    def variant(self, lines: Lines) -> Matcher:
        return _PosixMatcher(self._parsed, lines, self._icase, self._coding is Coding.UTF8, self._seconds)

    def over_lines(self) -> Matcher | None:
        # Of a long pattern the engines are there already, and those for blocks would take as long again.
        if self._parsed.long or self._parsed.back_references or _has_newline(self._parsed.tree):
            return None
        return self.variant(Lines.BLOCK)

    def _make_bulk(self, ascii_only: bool) -> MatchEngine | None:
        if self.literal == b"" or self._parsed.back_references or self._parsed.long:
            return None
        coding = Coding.ASCII if ascii_only else self._coding
        node, folds = self._parsed.tree, self._icase and self._coding is Coding.UTF8
        if self.literal is not None:
            coding = Coding.BYTES
            node = tree.Sequence(tuple(tree.Char(char) for char in self.literal.decode("latin-1")))
        try:
            source = emit(node, Target(Engine.RE2, coding, self._lines, captures=False, folds=folds))
            return Re2Engine(source, self._icase, coding is Coding.UTF8)
        except (Inexpressible, PatternError):
            return None

    def _guard(self, coding: Coding) -> MatchEngine | None:
        """A linear engine that matches wherever the pattern might: back-references widened to their group's body."""
        try:
            widened = _widen(self._parsed.tree, _bodies(self._parsed.tree))
            folds = self._icase and self._coding is Coding.UTF8
            source = emit(widened, Target(Engine.RE2, coding, self._lines, captures=False, folds=folds))
            return Re2Engine(source, self._icase, coding is Coding.UTF8)
        except (Inexpressible, PatternError, RecursionError):
            return None


def _bodies(node: Node) -> dict[int, Node]:
    found: dict[int, Node] = {}
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, tree.Group):
            found[current.number] = current.body
        todo.extend(tree.children(current))
    return found


def _has_newline(node: Node) -> bool:
    todo = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, tree.Char) and current.char == "\n":
            return True
        todo.extend(tree.children(current))
    return False


def _widen(node: Node, bodies: dict[int, Node]) -> Node:
    if isinstance(node, tree.BackRef):
        body = bodies[node.number]
        anything = tree.contains(body, (tree.BackRef, tree.Assert))
        return tree.Repeat(tree.AnyChar(), 0, None) if anything else body
    if isinstance(node, tree.Assert) and node.kind in (tree.Assertion.WORD_START, tree.Assertion.WORD_END):
        return tree.EMPTY
    if isinstance(node, tree.Group):
        return tree.Group(node.number, _widen(node.body, bodies))
    if isinstance(node, tree.Sequence):
        return tree.Sequence(tuple(_widen(part, bodies) for part in node.parts))
    if isinstance(node, tree.Choice):
        return tree.Choice(tuple(_widen(option, bodies) for option in node.options))
    if isinstance(node, tree.Repeat):
        return tree.Repeat(_widen(node.body, bodies), node.low, node.high)
    return node


_GROUPING = re.compile(r"[(\[{\\#]")
"""Constructs that keep an alternative of a Perl pattern from being compiled on its own."""


class _PerlMatcher(Matcher):
    __slots__ = ("_icase", "_lines", "_pattern", "_seconds", "_unicode", "_utf8")

    def __init__(self, pattern: str, lines: Lines, icase: bool, utf8: bool, seconds: float, unicode: bool) -> None:
        super().__init__(0, None, (), not utf8)
        self._pattern, self._icase, self._utf8, self._seconds = pattern, icase, utf8, seconds
        self._lines, self._unicode = lines, unicode
        if "(?<" in pattern:
            perl.check_lookbehind(pattern)
        self.engine(b"")

    def _make(self, ascii_only: bool) -> MatchEngine:
        prefix = "" if self._lines is Lines.TEXT else "(?m)"
        if len(self._pattern) > LONG_PATTERN and not _GROUPING.search(self._pattern):
            # What comes first is to be found first, so the options stay in their order.
            rows = groups(self._pattern.split("|"))
            if len(rows) > 1:
                made = [self._one("|".join(row), prefix, ascii_only, _PART_MEMORY) for row in rows]
                return UnionEngine(made, first=True)
        return self._one(self._pattern, prefix, ascii_only)

    def _one(self, pattern: str, prefix: str, ascii_only: bool, memory: int = MEMORY) -> MatchEngine:
        style = Style(self._unicode and self._utf8, self._lines is Lines.BLOCK, icase=self._icase)
        narrow = not self._utf8 or ascii_only
        if narrow:
            source = perl.for_re2(pattern, style)
            if source is not None:
                try:
                    return Re2Engine(prefix + source, self._icase, utf8=False, longest=False, memory=memory)
                except PatternError:
                    pass
            source = prefix + perl.rewrite(pattern, style)
            if not self._utf8 or source.isascii():
                return RegexEngine(source, self._icase, False, self._seconds)
        source = prefix + perl.rewrite(pattern, style._replace(text=True))
        return RegexTextEngine(source, self._icase, False, self._seconds)


class _ManyMatcher(Matcher):
    """Compile more patterns than one automaton should hold: plain texts together, the others in groups."""

    __slots__ = ("_again", "_folds", "_parts", "_texts")

    def __init__(self, patterns: tuple[bytes, ...], again: _Again) -> None:
        super().__init__(0, None, (), True)
        self._again, self._folds = again, again.icase
        texts = [pattern for pattern in patterns if again.is_text(pattern)]
        self._texts = texts
        others = [pattern for pattern in patterns if not again.is_text(pattern)]
        self._parts = [again.compile(group) for group in groups(others)]
        self.warnings = tuple(dict.fromkeys(word for part in self._parts for word in part.warnings))

    def engine(self, data: bytes) -> MatchEngine:
        wide = not data.isascii()
        if wide and self._wide is not None:
            return self._wide
        if not wide and self._ascii is not None:
            return self._ascii
        made = self._union(wide)
        if wide:
            self._wide = made
        else:
            self._ascii = made
        return made

    def bulk(self, data: bytes) -> MatchEngine:
        return self.engine(data)

    def _union(self, wide: bool) -> MatchEngine:
        again, parts, engines = self._again, self._parts, list[MatchEngine]()
        if wide and self._folds:
            # Beyond ASCII, letters of either case need not be equally long: that is for the general engines.
            parts = parts + [again.compile(group) for group in groups(self._texts)]
        elif self._texts:
            engines.append(again.texts(self._texts))
        sample = _WIDE if wide else b""
        engines += [part.bulk(sample) for part in parts]
        return engines[0] if len(engines) == 1 else UnionEngine(engines)

    def variant(self, lines: Lines) -> Matcher:
        return self._again.compile_all(lines)

    def over_lines(self) -> Matcher | None:
        if any(part.over_lines() is None for part in self._parts):
            return None
        return self.variant(Lines.BLOCK)


class _Again(NamedTuple):
    """How a set of patterns was asked for, to compile a part of it or all of it otherwise."""

    patterns: tuple[bytes, ...]
    dialect: Dialect | str
    icase: bool
    lines: Lines
    utf8: bool
    seconds: float
    whole: str

    def is_text(self, pattern: bytes) -> bool:
        if self.icase and not pattern.isascii():
            return False
        if self.dialect == FIXED:
            return pattern != b"" and b"\n" not in pattern
        return PLAIN.fullmatch(pattern) is not None

    def compile(self, part: tuple[bytes, ...]) -> Matcher:
        return _compile.__wrapped__(part, *self[1:])

    def compile_all(self, lines: Lines) -> Matcher:
        return _compile_many(self._replace(lines=lines))

    def texts(self, texts: list[bytes]) -> MatchEngine:
        return TextsEngine(
            texts, fold=self.icase, whole=self.whole, lines=self.lines, utf8=self.utf8, seconds=self.seconds
        )


@lru_cache(maxsize=4)
def _compile_many(again: _Again) -> Matcher:
    return _ManyMatcher(again.patterns, again)


FIXED = "fixed"
PERL = "perl"
RUST = "rust"
"""As `PERL`, but what is a letter, a digit or a blank is not a matter of ASCII."""
_LARGEST = 4 * bounds.LENGTH
"""Bytes that are too many characters, however long each of them is."""
_MANY = 16 * 1024
"""Bytes of patterns from which on they are searched for in parts."""


def compile(
    pattern: bytes,
    dialect: Dialect | str = dialects.POSIX_EXTENDED,
    *,
    icase: bool = False,
    lines: Lines = Lines.TEXT,
    utf8: bool = True,
    seconds: float = SECONDS,
) -> Matcher:
    """The matcher of one pattern; PatternError when it is not valid."""
    if len(pattern) > _LARGEST and isinstance(dialect, Dialect):
        raise PatternError(TOO_BIG)  # before anybody reads all of it
    make = _compile if len(pattern) <= LONG_PATTERN else _compile_long
    return make((pattern,), dialect, icase, lines, utf8, seconds, "")


def compile_any(
    patterns: Sequence[bytes],
    dialect: Dialect | str,
    *,
    icase: bool = False,
    lines: Lines = Lines.TEXT,
    utf8: bool = True,
    seconds: float = SECONDS,
    whole: str = "",
) -> Matcher:
    """The matcher of several patterns; `whole` asks that a match be a `line` or a `word` (for selection only)."""
    wanted = tuple(patterns)
    if len(wanted) > 1 and dialect not in (PERL, RUST) and sum(map(len, wanted)) > _MANY:
        if utf8 and not all(map(_is_utf8, wanted)):
            utf8 = False
        return _compile_many(_Again(wanted, dialect, icase, lines, utf8, seconds, whole))
    make = _compile if sum(map(len, wanted)) <= LONG_PATTERN else _compile_long
    return make(wanted, dialect, icase, lines, utf8, seconds, whole)


@lru_cache(maxsize=256)
def _compile(
    patterns: tuple[bytes, ...],
    dialect: Dialect | str,
    icase: bool,
    lines: Lines,
    utf8: bool,
    seconds: float,
    whole: str,
) -> Matcher:
    texts = [_decode(pattern, utf8) for pattern in patterns]
    if any(not text.isascii() and _has_surrogate(text) for text in texts):
        if dialect == PERL:
            raise PatternError(perl.flaw(b"\n".join(patterns)))
        # A byte that is no UTF-8 can only be found byte by byte.
        utf8 = False
        texts = [pattern.decode("latin-1") for pattern in patterns]
    if dialect in (PERL, RUST):
        alone = len(texts) == 1 or not any(map(_GROUPING.search, texts))
        pattern = "|".join(texts if alone else [f"(?:{text})" for text in texts])
        if whole:
            perl.rewrite(pattern, Style(unicode=dialect == RUST))
            pattern = perl.whole_line(pattern) if whole == "line" else f"(?<!\\w)(?:{pattern})(?!\\w)"
        return _PerlMatcher(pattern, lines, icase, utf8, seconds, dialect == RUST)
    if isinstance(dialect, Dialect):
        parsed = dialects.choice([dialects.parse(text, dialect) for text in texts])
    else:
        parsed = dialects.choice([dialects.parse_fixed(text) for text in texts])
    if whole:
        wrapped = _WHOLE[whole](parsed.tree)
        parsed = replace(parsed, tree=wrapped, words=whole == "word")
    return _PosixMatcher(parsed, lines, icase, utf8, seconds)


@lru_cache(maxsize=4)
def _compile_long(patterns: tuple[bytes, ...], *how: Any) -> Matcher:
    """The same with its engines; only a few such patterns are kept."""
    made = _compile.__wrapped__(patterns, *how)
    made.ready()
    return made


def _whole_line(node: Node) -> Node:
    return tree.Sequence((tree.Assert(tree.Assertion.LINE_START), node, tree.Assert(tree.Assertion.LINE_END)))


def _whole_word(node: Node) -> Node:
    outside = tree.CharSet(((95, 95),), ("alnum",), True)
    before = tree.Choice((tree.Assert(tree.Assertion.LINE_START), outside, _ODD))
    after = tree.Choice((outside, _ODD, tree.Assert(tree.Assertion.LINE_END)))
    return tree.Sequence((before, node, after))


_ODD = tree.CharSet(((0xDC80, 0xDCFF),))
"""A byte that is no UTF-8."""
_WHOLE = {"line": _whole_line, "word": _whole_word}


def _decode(pattern: bytes, utf8: bool) -> str:
    return pattern.decode("utf-8", "surrogateescape") if utf8 else pattern.decode("latin-1")


def _is_utf8(pattern: bytes) -> bool:
    return pattern.isascii() or not _has_surrogate(pattern.decode("utf-8", "surrogateescape"))


def _has_surrogate(text: str) -> bool:
    return any(0xDC80 <= ord(char) <= 0xDCFF for char in text)
