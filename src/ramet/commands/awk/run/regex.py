"""awk's regular expressions: matching and substitution on `str`, with offsets in characters."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from ramet import patterns
from ramet.commands.awk.syntax.tree import AwkError
from ramet.concurrency.offload import checkpoint
from ramet.concurrency.sizes import LONG_PATTERN
from ramet.patterns import PatternError
from ramet.patterns.emit import Coding, Engine, Lines, Target, emit
from ramet.patterns.parse import AWK, Dialect, parse
from ramet.patterns.re_safe import is_simple
from ramet.patterns.tree import AnyChar, Assert, Assertion, Char, CharSet, Node, children, literal, nullable

Span = tuple[int, int]


class Rx:
    """One regular expression. `plain` is the text of a literal pattern."""

    __slots__ = ("_utf8", "matcher", "nullable", "plain", "text")

    def __init__(self, source: str, icase: bool, utf8: bool, seconds: float, dialect: Dialect) -> None:
        try:
            self.matcher = patterns.compile(
                source.encode("utf-8", "surrogateescape"), dialect, icase=icase, utf8=utf8, seconds=seconds
            )
            tree = self.matcher.tree or parse(source, dialect).tree
        except PatternError as error:
            raise AwkError(f"error: {error}: /{source}/", 1) from None
        self._utf8 = utf8
        self.nullable = nullable(tree)
        self.plain = None if icase else literal(tree)
        self.text = _text_pattern(tree, utf8) if not icase and len(source) <= LONG_PATTERN else None
        """The pattern for `re` on str, if exact for all characters."""

    def test(self, text: str) -> bool:
        if self.plain is not None:
            return self.plain in text
        if self.text is not None:
            return self.text.search(text) is not None
        data = text.encode("utf-8", "surrogateescape")
        return self.matcher.engine(data).search(data, 0) is not None

    def search(self, text: str, pos: int = 0) -> Span | None:
        if self.text is not None:
            found = self.text.search(text, pos)
            return None if found is None else found.span()
        data = text.encode("utf-8", "surrogateescape")
        if text.isascii() or not self._utf8:
            return self.matcher.engine(data).search(data, pos)
        span = self.matcher.engine(data).search(data, len(text[:pos].encode("utf-8", "surrogateescape")))
        return None if span is None else (_chars(data, span[0]), _chars(data, span[1]))

    def spans(self, text: str, pos: int = 0) -> list[Span] | None:
        data = text.encode("utf-8", "surrogateescape")
        if text.isascii() or not self._utf8:
            return self.matcher.spans(data, pos)
        spans = self.matcher.spans(data, len(text[:pos].encode("utf-8", "surrogateescape")))
        if spans is None:
            return None
        return [(_chars(data, start), _chars(data, stop)) if start >= 0 else (-1, -1) for start, stop in spans]

    def tester(self) -> Callable[[str], object]:
        """Return the cheapest callable that is true for texts with a match."""
        if self.plain is None and self.text is not None:
            return self.text.search
        return self.test


def _chars(data: bytes, offset: int) -> int:
    return len(data[:offset].decode("utf-8", "surrogateescape"))


_PLAIN_CLASSES = {"digit", "xdigit", "blank", "cntrl"}
_PLACES = {Assertion.LINE_START, Assertion.LINE_END, Assertion.TEXT_START, Assertion.TEXT_END}


def _text_pattern(tree: Node, utf8: bool) -> re.Pattern[str] | None:
    """A pattern for `re` over text, if it is proven exact: it names only ASCII and no class that is Unicode's."""
    todo = [tree]
    while todo:
        node = todo.pop()
        if not utf8 and (isinstance(node, AnyChar) or (isinstance(node, CharSet) and node.negated)):
            # It then matches bytes that are not characters.
            return None
        if isinstance(node, CharSet):
            if not set(node.classes) <= _PLAIN_CLASSES or any(high > 0x7F for _, high in node.ranges):
                return None
        elif (isinstance(node, Char) and node.char > "\x7f") or (isinstance(node, Assert) and node.kind not in _PLACES):
            return None
        todo.extend(children(node))
    if not is_simple(tree, Coding.BYTES, Lines.TEXT, False):
        return None
    return re.compile(emit(tree, Target(Engine.RE, Coding.UTF8, Lines.TEXT)))


@functools.lru_cache(maxsize=512)
def compiled(source: str, icase: bool = False, utf8: bool = True, seconds: float = 10.0, dialect: Dialect = AWK) -> Rx:
    return Rx(source, icase, utf8, seconds, dialect)


def wrong(error: AwkError) -> AwkError:
    """Return what is said of a pattern that is wrong and was made while the program ran."""
    return AwkError("fatal: invalid regexp: " + str(error).removeprefix("error: "))


_KNOWN = frozenset("()*+-.?[]^|{}/$\\abfnrtv01234567\n")
_GNU = frozenset("<>`'swyBSW")
_ESCAPE = re.compile(r"\\(x(?=[0-9a-fA-F])|.)", re.DOTALL)


def odd_escapes(source: str, extensions: bool = True) -> list[str]:
    """Return the characters that are escaped in a pattern without being operators, each of them once."""
    if "\\" not in source:
        return []
    found = dict.fromkeys(match[1] for match in _ESCAPE.finditer(source) if match.end() - match.start() == 2)
    hexes = {match[1] for match in re.finditer(r"\\(x)(?=[0-9a-fA-F])", source)}
    return [c for c in found if c not in _KNOWN and not (extensions and c in _GNU) and c not in hexes]


def odd_escape_words(char: str) -> str:
    return f"warning: regexp escape sequence `\\{char}' is not a known regexp operator"


# ------------------------------------------------------------------------------------------------ substitution


_BEFORE_AMPERSAND = re.compile(r"\\+&")


def replacement(text: str) -> str | list[str | None]:
    """Return the replacement of sub and gsub: constant text, or parts where None stands for the match."""
    if "&" not in text and "\\" not in text:
        return text
    parts: list[str | None] = []
    run: list[str] = []
    pos = 0
    while pos < len(text):
        char = text[pos]
        if char == "\\" and (found := _BEFORE_AMPERSAND.match(text, pos)):
            # Pairs of backslashes before an ampersand are one each; an odd one makes it an ordinary character.
            pairs, odd = divmod(found.end() - pos - 1, 2)
            run.append("\\" * pairs)
            if odd:
                run.append("&")
            else:
                parts += ["".join(run), None]
                run = []
            pos = found.end()
        elif char == "&":
            parts += ["".join(run), None]
            run = []
            pos += 1
        else:
            run.append(char)
            pos += 1
    parts.append("".join(run))
    if None not in parts:
        return "".join(part or "" for part in parts)
    return parts


def substitute(rx: Rx, with_: str, text: str, every: bool) -> tuple[str, int]:
    """`text` with the first match or all of them replaced, and how many there were."""
    parts = replacement(with_)
    if isinstance(parts, str):
        constant = parts
        if rx.plain:
            count = text.count(rx.plain)
            if not count:
                return text, 0
            return (text.replace(rx.plain, constant), count) if every else (text.replace(rx.plain, constant, 1), 1)
        if rx.text is not None and not rx.nullable:
            return rx.text.subn(constant.replace("\\", "\\\\"), text, 0 if every else 1)
        return _replace(rx, lambda spans: constant, text, every, 0 if every else 1, False)
    return _replace(
        rx,
        lambda spans: "".join(text[spans[0][0] : spans[0][1]] if part is None else part for part in parts),
        text,
        every,
        0 if every else 1,
        False,
    )


def general_substitute(rx: Rx, with_: str, text: str, which: int) -> str:
    """gensub: `\\0` to `\\9` and `&` are the match and its groups; `which` is 0 for all matches."""

    def fill(spans: list[Span]) -> str:
        out: list[str] = []
        pos = 0
        while pos < len(with_):
            char = with_[pos]
            if char == "\\" and pos + 1 < len(with_):
                after = with_[pos + 1]
                pos += 2
                if after.isdecimal() and after.isascii():
                    group = int(after)
                    if group < len(spans) and spans[group][0] >= 0:
                        out.append(text[spans[group][0] : spans[group][1]])
                elif after in "&\\":
                    out.append(after)
                else:
                    out.append("\\" + after)
                continue
            out.append(text[spans[0][0] : spans[0][1]] if char == "&" else char)
            pos += 1
        return "".join(out)

    return _replace(rx, fill, text, which == 0, which, True)[0]


def _replace(
    rx: Rx, fill: Callable[[list[Span]], str], text: str, every: bool, which: int, groups: bool
) -> tuple[str, int]:
    out: list[str] = []
    pos, copied, last, count, seen, end = 0, 0, -1, 0, 0, len(text)
    while pos <= end:
        if groups:
            spans = rx.spans(text, pos)
            if spans is None:
                break
        else:
            found = rx.search(text, pos)
            if found is None:
                break
            spans = [found]
        start, stop = spans[0]
        if start == stop and start == last:
            pos = start + 1
            continue
        seen += 1
        if not seen & 255:
            checkpoint()
        if every or seen == which:
            count += 1
            out.append(text[copied:start])
            out.append(fill(spans))
            copied = stop
            if not every:
                break
        last = stop
        pos = stop if stop > start else start + 1
    if not count:
        return text, 0
    out.append(text[copied:])
    return "".join(out), count
