"""Match shell patterns in time that no pattern can blow up; each is parsed once.

- A pattern without extended groups is a row of fixed segments between stars, found one after the other by string
  searches.
- Extended groups run on sets of positions, one bit each in a big integer: all ways to match are followed at once and
  nothing backtracks.
- Input is a sequence of (text, quoted) pieces; in unquoted text a backslash quotes the next character.
- `is_costly` says which matches to offload.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ramet.concurrency.offload import checkpoint
from ramet.concurrency.recursion import room
from ramet.concurrency.sizes import LARGE, LONG_SCRIPT, SMALL
from ramet.text.pattern.plain import MAX_EXTENDED, Pattern, Segment, TextPattern, Where, one_regex
from ramet.text.pattern.tokens import (
    ACTIVE,
    ONE,
    STAR,
    PatternGroup,
    PatternStar,
    PatternTooCostly,
    Piece,
    Token,
    TokenReader,
    characters,
)

# ------------------------------------------------------------------------ matching


class _Glob(Pattern):
    """Segments between stars; ``head`` and ``tail`` say whether a star stands at the start and the end."""

    __slots__ = ("head", "segments", "tail", "width")

    def __init__(self, tokens: Sequence[Token], nocase: bool) -> None:
        literal = "".join(tokens) if all(isinstance(t, str) for t in tokens) else None  # type: ignore[arg-type]
        dot = bool(tokens) and isinstance(tokens[0], str) and tokens[0].startswith(".")
        super().__init__(literal, nocase, dot, bool(tokens) and tokens[0] is STAR)
        runs: list[list[Token]] = [[]]
        for token in tokens:
            if token is STAR:
                runs.append([])
            else:
                runs[-1].append(token)
        self.head = not runs[0]
        self.tail = not runs[-1]
        self.segments = [Segment(run, nocase) for run in runs if run]
        if len(runs) == 1:
            self.head = self.tail = False
        self.width = sum(segment.width for segment in self.segments)

    @property
    def quick(self) -> bool:  # type: ignore[override]
        return not self.segments or (len(self.segments) == 1 and self.segments[0].text is not None)

    def replace(self, text: str, where: Where, replacement: str | Callable[[str], str], most: int = sys.maxsize) -> str:
        if where != "//" or self.width != 1 or not self._fixed() or not isinstance(replacement, str):
            return super().replace(text, where, replacement, most)
        if len(text) * len(replacement) > most:  # perhaps too much: they are counted
            return super().replace(text, where, replacement, most)
        # Single characters, as in `${x//[^a-z]/_}`: one substitution.
        pattern, new = self.segments[0].pattern, replacement.replace("\\", "\\\\")
        assert pattern is not None
        return pattern.sub(new, text)

    def _fixed(self) -> bool:
        return len(self.segments) == 1 and not self.head and not self.tail

    def matches(self, text: str) -> bool:
        segments, n = self.segments, len(text)
        if n < self.width:
            return False
        if not segments:
            return True
        if self._fixed():
            return n == self.width and segments[0].at(text, 0)
        pos, end = 0, n
        first, last = 0, len(segments)
        if not self.head:
            if not segments[0].at(text, 0):
                return False
            pos = segments[0].width
            first = 1
        if not self.tail:
            last -= 1
            end = n - segments[last].width
            if end < pos or not segments[last].at(text, end):
                return False
        for segment in segments[first:last]:
            at = segment.find(text, pos, end)
            if at < 0:
                return False
            pos = at + segment.width
        return True

    def _chain(self, text: str, pos: int, end: int, upto: int) -> int:
        """Finds the segments after the first, up to ``upto``, each as early as possible; where they end, or -1."""
        for segment in self.segments[1:upto]:
            at = segment.find(text, pos, end)
            if at < 0:
                return -1
            pos = at + segment.width
        return pos

    def _forward(self, text: str, begin: int, longest: bool) -> int:
        """The end of the match whose first segment stands at ``begin`` (a star at the head stands there too)."""
        segments, n = self.segments, len(text)
        if not segments:
            return n if longest else begin
        pos = begin
        if self.head:
            at = segments[0].find(text, begin, n)
            if at < 0:
                return -1
            pos = at
        end = self._chain(text, pos + segments[0].width, n, len(segments))
        if end < 0:
            return -1
        if not longest:
            return end
        if self.tail:
            return n
        if len(segments) == 1 and not self.head:
            return end
        last = segments[-1]
        return last.rfind(text, end - last.width, n) + last.width

    def prefix(self, text: str, longest: bool) -> int:
        if not self.head and self.segments and not self.segments[0].at(text, 0):
            return -1
        return self._forward(text, 0, longest)

    def suffix(self, text: str, longest: bool) -> int:
        segments, n = self.segments, len(text)
        if not segments:
            return 0 if longest else n
        end = n
        last = len(segments) - 1
        if self.tail:
            at = segments[last].rfind(text, 0, end)
        else:
            at = n - segments[last].width
            if not segments[last].at(text, at):
                at = -1
        if at < 0:
            return -1
        end = at
        for segment in reversed(segments[:last]):
            at = segment.rfind(text, 0, end)
            if at < 0:
                return -1
            end = at
        if not longest:
            return end
        if self.head:
            return 0
        if len(segments) == 1 and not self.tail:
            return end
        # The earliest place of the first segment from which the rest still follows.
        return segments[0].find(text, 0, end + segments[0].width)

    def find(self, text: str, pos: int) -> tuple[int, int] | None:
        if not self.segments:
            return (pos, len(text)) if self.head else (pos, pos)
        begin = pos if self.head else self.segments[0].find(text, pos, len(text))
        if begin < 0:
            return None
        # Where the rest does not follow the first place, it follows no later one.
        end = self._forward(text, begin, True)
        return None if end < 0 else (begin, end)


# ------------------------------------------------------------------ extended groups


class _Positions:
    """The positions of one text as bits, with the places of each character as masks."""

    __slots__ = ("all", "known", "masks", "nocase", "text", "where")

    def __init__(self, text: str, nocase: bool) -> None:
        if len(text) > MAX_EXTENDED:
            raise PatternTooCostly(f"pattern with extended groups on {len(text)} characters (limit {MAX_EXTENDED})")
        self.text = text[::-1]  # the first character is the lowest bit
        self.nocase = nocase
        self.all = (1 << (len(text) + 1)) - 1
        self.masks: dict[object, int] = {}
        self.known: dict[tuple[int, int], int] = {}  # a group that repeats, where it starts -> where it ends
        self.where = set(text)

    def mask(self, token: Token) -> int:
        """Where a character stands that the token matches."""
        key = token if isinstance(token, str) else id(token)
        found = self.masks.get(key)
        if found is None:
            if token is ONE:
                found = self.all >> 1
            elif not self.text:
                found = 0
            else:
                test = re.compile(one_regex(token), re.DOTALL | (re.IGNORECASE if self.nocase else 0)).fullmatch
                table = {ord(c): "1" if test(c) else "0" for c in self.where}
                found = int(self.text.translate(table), 2)
            self.masks[key] = found
        return found

    def ends(self, tokens: Sequence[Token], starts: int) -> int:
        """Where matches of the tokens end that begin at ``starts``."""
        for token in tokens:
            if not starts:
                return 0
            if token is STAR:
                starts = self.all & ~((starts & -starts) - 1)
            elif isinstance(token, PatternGroup):
                starts = self._group(token, starts)
            else:
                starts = (starts & self.mask(token)) << 1
        return starts

    def _alternatives(self, group: PatternGroup, starts: int) -> int:
        ends = 0
        for alternative in group.alternatives:
            ends |= self.ends(alternative, starts)
        return ends

    def _group(self, group: PatternGroup, starts: int) -> int:
        op = group.op
        if op == "@":
            return self._alternatives(group, starts)
        if op == "?":
            return starts | self._alternatives(group, starts)
        if op == "!":
            ends = 0
            while starts:
                checkpoint()
                start = starts & -starts
                starts ^= start
                ends |= self.all & ~(start - 1) & ~self._alternatives(group, start)
            return ends
        known = self.known.get((id(group), starts))
        if known is not None:
            return known  # repetitions of repetitions would ask again and again
        reached = starts if op == "*" else 0
        if all(len(one) == 1 and not isinstance(one[0], PatternGroup | PatternStar) for one in group.alternatives):
            return reached | self._run(group, starts)
        frontier = starts
        while frontier:
            checkpoint()
            frontier = self._alternatives(group, frontier) & ~reached
            reached |= frontier
        self.known[id(group), starts] = reached
        return reached

    def _run(self, group: PatternGroup, starts: int) -> int:
        """Where runs of single characters end: a carry goes through all of a run at once."""
        chars = 0
        for (token,) in group.alternatives:
            chars |= self.mask(token)
        begun = starts & chars
        return ((((begun + chars) ^ chars) | begun) & chars) << 1


class _Extended(Pattern):
    """A pattern with extended groups."""

    __slots__ = ("backward", "deep", "forward")

    def __init__(self, tokens: list[Token], nocase: bool, deep: bool = False) -> None:
        first = tokens[0]
        super().__init__(
            None, nocase, _dotted(tokens), first is STAR or (isinstance(first, PatternGroup) and first.op == "*")
        )
        self.forward = tokens
        self.backward = _reversed(tokens)
        self.deep = deep

    def _ends(self, tokens: Sequence[Token], text: str, starts: int) -> int:
        positions = _Positions(text, self.nocase)
        if not self.deep:
            return positions.ends(tokens, starts)
        with room:
            return positions.ends(tokens, starts)

    def matches(self, text: str) -> bool:
        return bool(self._ends(self.forward, text, 1) >> len(text))

    def prefix(self, text: str, longest: bool) -> int:
        return _bit(self._ends(self.forward, text, 1), longest)

    def suffix(self, text: str, longest: bool) -> int:
        length = _bit(self._ends(self.backward, text[::-1], 1), longest)
        return -1 if length < 0 else len(text) - length

    def find(self, text: str, pos: int) -> tuple[int, int] | None:
        rest = text[pos:]
        # Reading backwards from every position tells where matches begin; the leftmost is the highest bit.
        begin = _bit(self._ends(self.backward, rest[::-1], (1 << (len(rest) + 1)) - 1), True)
        if begin < 0:
            return None
        begin = len(rest) - begin
        end = _bit(self._ends(self.forward, rest[begin:], 1), True)
        return pos + begin, pos + begin + end


def _bit(ends: int, longest: bool) -> int:
    if not ends:
        return -1
    return ends.bit_length() - 1 if longest else (ends & -ends).bit_length() - 1


def _reversed(tokens: Sequence[Token]) -> list[Token]:
    return [
        PatternGroup(token.op, [_reversed(a) for a in token.alternatives]) if isinstance(token, PatternGroup) else token
        for token in reversed(tokens)
    ]


def _dotted(tokens: Sequence[Token]) -> bool:
    """Does the pattern name a leading dot?"""
    rows = [tokens]
    while rows:
        for first in rows.pop():
            if first == ".":
                return True
            if not isinstance(first, PatternGroup) or first.op == "!":
                break
            rows += first.alternatives
            if first.op not in "?*":
                break
    return False


class _Run(_Extended):
    """Exactly one ``*(set)`` or ``+(set)``, the most common extended pattern: trimming and squeezing of
    characters."""

    __slots__ = ("least", "regex")

    def __init__(self, tokens: list[Token], nocase: bool) -> None:
        super().__init__(tokens, nocase)
        group = tokens[0]
        assert isinstance(group, PatternGroup)
        self.least = 1 if group.op == "+" else 0
        units = [alternative[0] for alternative in group.alternatives]
        source = "|".join(map(one_regex, units)) if len(units) > 1 else one_regex(units[0])
        self.regex = re.compile(f"(?:{source})+", re.DOTALL | (re.IGNORECASE if nocase else 0))

    def _reach(self, text: str, pos: int) -> int:
        """Where the run ends that begins here."""
        found = self.regex.match(text, pos)
        return pos if found is None else found.end()

    def matches(self, text: str) -> bool:
        return self._reach(text, 0) == len(text) and len(text) >= self.least

    def prefix(self, text: str, longest: bool) -> int:
        end = self._reach(text, 0)
        return -1 if end < self.least else end if longest else self.least

    def suffix(self, text: str, longest: bool) -> int:
        begin = len(text) - self._reach(text[::-1], 0)
        if len(text) - begin < self.least:
            return -1
        return begin if longest else len(text) - self.least

    def find(self, text: str, pos: int) -> tuple[int, int] | None:
        if self.least:
            found = self.regex.search(text, pos)
            return None if found is None else found.span()
        return pos, self._reach(text, pos)


class _Choice(Pattern):
    """``@(text|text)``: one of some texts."""

    __slots__ = ("texts",)

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = sorted(set(texts), key=len, reverse=True)
        super().__init__(None, False, any(text.startswith(".") for text in self.texts))

    def matches(self, text: str) -> bool:
        return text in self.texts

    def _lengths(self, longest: bool) -> list[str]:
        return self.texts if longest else self.texts[::-1]

    def prefix(self, text: str, longest: bool) -> int:
        return next((len(one) for one in self._lengths(longest) if text.startswith(one)), -1)

    def suffix(self, text: str, longest: bool) -> int:
        return next((len(text) - len(one) for one in self._lengths(longest) if text.endswith(one)), -1)

    def find(self, text: str, pos: int) -> tuple[int, int] | None:
        places = [(at, -len(one)) for one in self.texts if (at := text.find(one, pos)) >= 0]
        if not places:
            return None
        begin, length = min(places)
        return begin, begin - length


# ------------------------------------------------------------------------ compiling

_patterns: dict[tuple[tuple[Piece, ...] | str, bool, bool], Pattern] = {}
_PATTERNS_KEPT = 2048


def is_costly(pattern: str, size: int) -> bool:
    """Return whether matching this pattern on `size` characters is work to offload."""
    return len(pattern) > LONG_SCRIPT or size > (LONG_SCRIPT if "(" in pattern else LARGE)


def compile_pattern(pieces: Sequence[Piece] | str, extglob: bool = False, nocase: bool = False) -> Pattern:
    """Return the matcher of a pattern; plain str is one unquoted piece. All but long ones are cached."""
    if len(pieces) > SMALL:
        return _build([(pieces, False)] if isinstance(pieces, str) else pieces, extglob, nocase)
    key = (pieces if isinstance(pieces, str) else tuple(pieces), extglob, nocase)
    found = _patterns.get(key)
    if found is None:
        found = _build([(pieces, False)] if isinstance(pieces, str) else pieces, extglob, nocase)
        if len(_patterns) >= _PATTERNS_KEPT:
            _patterns.clear()
        _patterns[key] = found
    return found


_STARS_AND_TEXT: Final = re.compile(r"\\(.)|(\*)|[^\\*]+", re.DOTALL)
_NOT_JUST_STARS: Final = re.compile(r"(?<!\\)(?:\\\\)*[?\[(]|\\\Z").search


def _texts_and_stars(pieces: Sequence[Piece]) -> list[Token] | None:
    """Return whole texts and stars as tokens; None for a pattern that holds anything else."""
    tokens: list[Token] = []
    for text, quoted in pieces:
        if quoted:
            tokens.append(text)
        elif "\\" not in text:
            if any(char in text for char in "?[("):
                return None
            start = 0
            while (star := text.find("*", start)) >= 0:
                tokens += [text[start:star], STAR]
                start = star + 1
            tokens.append(text[start:])
        elif _NOT_JUST_STARS(text):
            return None
        else:
            for match in _STARS_AND_TEXT.finditer(text):
                tokens.append(STAR if match[2] else match[1] or match[0])
    return [token for token in tokens if token != ""]


def _build(pieces: Sequence[Piece], extglob: bool, nocase: bool) -> Pattern:
    if not nocase:
        tokens = _texts_and_stars(pieces)
        if tokens is not None:
            return _Glob(tokens, False) if STAR in tokens else TextPattern("".join(tokens))  # type: ignore[arg-type]
    if not nocase and all(quoted or not ACTIVE(text) for text, quoted in pieces):
        whole = "".join(text for text, _ in pieces)
        if not extglob or "(" not in whole:
            return TextPattern(whole)
    if extglob and sum(text.count("(") for text, _ in pieces) > _ROOMY:
        with room:
            return _parsed(pieces, extglob, nocase, True)
    return _parsed(pieces, extglob, nocase, False)


def _parsed(pieces: Sequence[Piece], extglob: bool, nocase: bool, deep: bool) -> Pattern:
    read = TokenReader(characters(pieces), extglob).tokens(0, 0)
    assert read is not None  # only a nested call can fail
    tokens = read[0][0]
    if not tokens:
        return TextPattern("")
    if not any(isinstance(token, PatternGroup) for token in tokens):
        if not nocase and all(isinstance(token, str) for token in tokens):
            return TextPattern("".join(tokens))  # type: ignore[arg-type]
        return _Glob(tokens, nocase)
    if len(tokens) == 1 and isinstance(group := tokens[0], PatternGroup):
        units = group.alternatives
        if group.op in "*+" and all(len(a) == 1 and not isinstance(a[0], PatternGroup | PatternStar) for a in units):
            return _Run(tokens, nocase)
        if group.op == "@" and not nocase and all(all(isinstance(t, str) for t in a) for a in units):
            return _Choice("".join(a) for a in units)  # type: ignore[arg-type]
    return _Extended(tokens, nocase, deep)


_ROOMY: Final = 32
"""Groups for which there is room in any case, however they nest."""
