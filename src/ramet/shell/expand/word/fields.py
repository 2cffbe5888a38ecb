"""Fields under construction: word splitting by IFS, quote removal, and the marks that globbing needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from ramet.concurrency.offload import checkpoint, interruptible
from ramet.concurrency.sizes import LARGE, SMALL
from ramet.core.paths import TEXT_MAX
from ramet.shell.expand.c_locale import as_bytes, as_text, bytewise
from ramet.shell.expand.long_text import has_any, search, spanned, windows
from ramet.shell.expand.size_check import within

DEFAULT_IFS: Final = " \t\n"
PLAIN: Final = re.compile(r"[ \t\n*?\[\\]|[@!+]\(").search
"""None for text that default splitting and globbing leave as one unchanged field."""
ACTIVE: Final = re.compile(r"[*?]|[@!+]\(|(?:\A|/)[^\[/]*+\[[^/]+\]", re.DOTALL).search
"""Whether anything makes an unquoted text a pattern. A bracket that closes is sought from the first one of each name
on, once; it does not reach over a slash."""
LONG: Final = 4096
"""Characters from which on a text is looked at with string searches first, which are many times faster."""
_SEPARATORS: Final = 256
"""Characters of IFS that are taken as they are."""
_MANY: Final = 64
"""Values from which on it pays to look at all of them at once."""
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL).sub
_ACTIVE_SOMEWHERE: Final = "\\*?[]()|!@+^-:"
_QUOTE: Final = re.compile(f"[{re.escape(_ACTIVE_SOMEWHERE)}]")


def may_be_pattern(text: str) -> bool:
    """Does text hold a pattern, if nothing in it is quoted?"""
    if len(text) <= LONG:
        return ACTIVE(text) is not None
    if has_any(text, "*?"):
        return True
    if has_any(text, "(") and any(text.find(mark) >= 0 for mark in ("@(", "!(", "+(")):
        return True
    return has_bracket(text, "/")


def has_bracket(text: str, border: str = "") -> bool:
    """Whether a bracket opens, and closes behind a character at least; `border` is what it does not reach over."""
    start = text.find("[")
    while start >= 0:
        end = text.find(border, start) if border else -1
        if text.rfind("]", start + 2, end if end >= 0 else len(text)) >= 0:
            return True
        start = text.find("[", end) if end >= 0 else -1
    return False


def is_active(text: str) -> bool:
    """Does unquoted text hold a pattern?"""
    if not may_be_pattern(text):
        return False
    if len(text) <= SMALL:
        return "\\" not in text or ACTIVE(_ESCAPED("x", text)) is not None
    return text.find("\\") < 0 or may_be_pattern("".join(_unescaped(text)))


def _unescaped(text: str) -> Iterator[str]:
    """A long text with something plain in the place of what is escaped, a part at a time."""
    pos = 0
    while pos < len(text):
        checkpoint()
        part = text[pos : pos + SMALL]
        if (len(part) - len(part.rstrip("\\"))) % 2 and len(part) > 1:
            part = part[:-1]  # it goes with what follows
        yield _ESCAPED("x", part)
        pos += len(part)


def _all_plain(text: str) -> bool:
    """Nothing in it to split by default or to glob; by searches that cost little however long it is."""
    return not has_any(text, " \t\n*?[\\(")


def escape(text: str) -> str:
    """Quoted text as a pattern that matches only itself."""
    if len(text) > LONG and not has_any(text, _ACTIVE_SOMEWHERE):
        return text
    if len(text) > SMALL:
        return "".join(map(_escaped, windows(text)))
    return _escaped(text)


def _escaped(text: str) -> str:
    return _QUOTE.sub(r"\\\g<0>", text)


class GlobWord(str):
    """A field with active pattern characters: its text, and the pattern to look for in the tree.

    Of a long text it has only the beginning in itself, since that is a copy; `str` gives all of it.
    """

    __slots__ = ("pattern", "text")
    pattern: str
    text: str

    def __new__(cls, text: str, pattern: str) -> GlobWord:
        word = super().__new__(cls, text if len(text) <= LONG else text[:LONG])
        word.text, word.pattern = text, pattern
        return word

    def __str__(self) -> str:
        return self.text


def distinct(ifs: str) -> str:
    """The same separators, each of them once: it may be long, and the first one counts for more than the others."""
    return ifs if len(ifs) <= _SEPARATORS else _distinct(ifs)


_known: list[tuple[str, str]] = []
"""What `_distinct` found last. They are told apart by what they are: to hash or to compare long texts takes a while."""


def _distinct(ifs: str) -> str:
    for text, known in _known:
        if text is ifs:
            return known
    found = ""
    for part in windows(ifs):
        # What is known already is all there is in most parts: this says so without a look at each character in Python.
        if rest := part.strip(found) if found else part:
            found = "".join(dict.fromkeys(found + rest))
    _known[:] = [(ifs, found), *_known[:1]]
    return found


@lru_cache(maxsize=256)
def delimiters(ifs: str) -> tuple[re.Pattern[str], str, str]:
    """What separates fields: (pattern of one delimiter, the whitespace of IFS, the rest of IFS)."""
    white = "".join(c for c in ifs if c in DEFAULT_IFS)
    other = "".join(c for c in ifs if c not in DEFAULT_IFS)
    spaces = f"[{re.escape(white)}]" if white else ""
    if not other:
        return re.compile(f"{spaces}+"), white, other
    marks = f"[{re.escape(other)}]"
    if not spaces:
        return re.compile(marks), white, other
    return re.compile(f"{spaces}*{marks}{spaces}*|{spaces}+"), white, other


@lru_cache(maxsize=16)
def words_between(white: str) -> Callable[..., list[str]]:
    """Finds the words between white space in a part of a text."""
    return re.compile(f"[^{re.escape(white)}]+").findall


def _separators(pattern: re.Pattern[str], ifs: str, text: str) -> Iterator[re.Match[str]]:
    """What separates the fields of a long text, sought a part at a time."""
    other = re.compile(f"[^{re.escape(ifs)}]")
    pos = 0
    while pos < len(text):
        checkpoint()
        end = min(pos + SMALL, len(text))
        if end < len(text) and text[end - 1] in ifs:
            end = search(other, text, end)  # no part ends within a separator
        yield from pattern.finditer(text, pos, end)
        pos = end


class Fields:
    """Takes the parts of a word in order and gives its fields."""

    __slots__ = ("_after_space", "_open", "_pieces", "done", "globs", "host", "ifs", "patient")

    def __init__(self, ifs: str | None, done: list[str] | None = None) -> None:
        self.ifs = DEFAULT_IFS if ifs is None else distinct(ifs)
        self.done: list[str] = [] if done is None else done
        """The fields that are finished, behind those of the words before if there are any."""
        self.globs = False
        self.patient = False
        """Whether someone waits when putting something into this takes its time."""
        self.host: Any = None
        """Whose limits hold for what is put together."""
        self._pieces: list[tuple[str, bool]] = []
        self._open = False
        self._after_space = False

    def quoted(self, text: str) -> None:
        self._pieces.append((text, True))
        self._open = True
        self._after_space = False

    def literal(self, text: str) -> None:
        """Unquoted text of the script itself: never split, but active for globbing."""
        if text:
            self._pieces.append((text, False))
            self._open = True
            self._after_space = False

    def split(self, text: str) -> None:
        """The result of an unquoted expansion."""
        if not text:
            return
        if not self.ifs:
            self.literal(text)
            return
        pattern, white, other = delimiters(self.ifs)
        matches: Iterator[re.Match[str]]
        if len(text) > LONG:
            globs = has_any(text, "*?[(")
            if not has_any(text, self.ifs):
                # Text without a pattern in it may as well be quoted, which spares it a second look.
                self._pieces.append((text, not globs))
                self._open = True
                self._after_space = False
                return
            if not other and not globs:
                self._split_long(text, white)
                return
            matches = interruptible(_separators(pattern, self.ifs, text))
        else:
            matches = pattern.finditer(text)
        pos = 0
        for match in matches:
            start, end = match.span()
            if start > pos:
                if start - pos <= SMALL:
                    self.literal(text[pos:start])
                else:
                    self._long_literal(text, pos, start)
            hard = bool(other) and any(c in other for c in match[0])
            if self._open:
                self.end()
                self._after_space = not hard
            elif hard:
                if self._after_space:
                    self._after_space = False
                else:
                    self.done.append("")
            pos = end
        if len(text) - pos > SMALL:
            self._long_literal(text, pos, len(text))
        elif pos < len(text):
            self.literal(text[pos:])

    def _long_literal(self, text: str, start: int, stop: int) -> None:
        for part in spanned(text, start, stop):
            self.literal(part)

    def _split_long(self, text: str, white: str) -> None:
        """Splits text at white space, with nothing in it to glob: a window at a time, its words all at once."""
        find = words_between(white)
        for part in windows(text):
            found = find(part)
            if part[0] in white:
                self.end()
                self._after_space = True
            if not found:
                continue
            self.literal(found[0])
            if len(found) > 1:
                self.end()
                self.done += found[1:-1]
                self.literal(found[-1])
            if part[-1] in white:
                self.end()
                self._after_space = True

    def end(self, wait: bool = False) -> bool:
        """Finish the field that is being built, if there is one. True, and nothing done yet, for one that takes its
        time where somebody can wait."""
        if not self._open:
            return False
        pieces = self._pieces
        if len(pieces) == 1:
            text, quoted = pieces[0]
            if quoted:
                self.done.append(text)
            elif wait and len(text) > LARGE:
                return True
            elif is_active(text):
                self._glob(text, text)
            else:
                self.done.append(text)
        else:
            size = sum([len(piece) for piece, _ in pieces])
            if self.host is not None:
                within(self.host, size)
            if wait and size > LARGE:
                return True
            text = "".join([piece for piece, _ in pieces])
            bare = "".join([piece if not quoted else "x" for piece, quoted in pieces])
            if is_active(bare):
                # What is too long to be in a name is so without its end: the pattern matches nothing either way.
                self._glob(text, "".join([escape(piece[:TEXT_MAX]) if quoted else piece for piece, quoted in pieces]))
            else:
                self.done.append(text)
        self._pieces = []
        self._open = False
        return False

    def _glob(self, text: str, pattern: str) -> None:
        self.done.append(GlobWord(text, pattern))
        self.globs = True

    def part(self) -> None:
        """The first character of IFS, between two values."""
        if self._open:
            self.end()
        elif self.ifs and self.ifs[0] not in DEFAULT_IFS:
            self.done.append("")

    def several(self, values: list[str]) -> None:
        """`"$@"`: each value a quoted field of its own; the first and last join what stands beside them."""
        if not values:
            return
        self.quoted(values[0])
        if len(values) > 1:
            self.end()
            self.done += values[1:-1]
            self.quoted(values[-1])

    def several_split(self, values: list[str]) -> None:
        """Unquoted `$@` and `$*`: each value is split on its own."""
        if self.ifs and self.ifs[0] not in DEFAULT_IFS:
            # A separator that is not white makes the empty ones count.
            self.split(self.ifs[0].join(values))
            return
        for start in range(0, len(values), SMALL):
            checkpoint()
            if start:
                self.end()
            self._split_each(values[start : start + SMALL] if len(values) > SMALL else values)

    def _split_each(self, values: list[str]) -> None:
        if len(values) > _MANY and self.ifs == DEFAULT_IFS and _all_plain("".join(values)):
            self.several(list(filter(None, values)))  # nothing in them to split or to glob
            return
        first = True
        for value in values:
            if not first and self._open:
                self.end()
                self._after_space = True  # which is what stands between two values
            first = False
            self.split(value)


class _ByteFields(Fields):
    """The same where every byte is a character: one of IFS separates even inside of what would be one in UTF-8."""

    __slots__ = ()

    def split(self, text: str) -> None:
        super().split(as_bytes(text))

    def end(self, wait: bool = False) -> bool:
        before = len(self.done)
        later = super().end(wait)
        self.done[before:] = [field if isinstance(field, GlobWord) else as_text(field) for field in self.done[before:]]
        return later


def fields_for(host: Any, out: list[str]) -> Fields:
    """Fields by the IFS of a session, to be put behind others."""
    ifs = host.variables.get("IFS")
    if ifs is not None and not ifs.isascii() and bytewise(host):
        fields: Fields = _ByteFields(as_bytes(ifs), out)
    else:
        fields = Fields(ifs, out)
    fields.host = host
    return fields


def split_plain(text: str, ifs: str | None) -> list[str]:
    """Splitting of a text that stands alone, without quotes (`read -a`, `compgen -W`)."""
    fields = Fields(ifs)
    fields.split(text)
    fields.end()
    return [str(field) for field in fields.done] if fields.globs else fields.done
