"""Word splitting by IFS: build the fields of a word, with the marks that globbing needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

from ramet.concurrency.offload import interruptible
from ramet.concurrency.sizes import LARGE, LONG_SCRIPT
from ramet.core.paths import TEXT_MAX
from ramet.shell.expand.c_locale import as_bytes, as_text, bytewise
from ramet.shell.expand.size_check import within

DEFAULT_IFS: Final = " \t\n"
PLAIN: Final = re.compile(r"[ \t\n*?\[\\]|[@!+]\(").search
"""None for text that default splitting and globbing leave as one unchanged field."""
ACTIVE: Final = re.compile(r"[*?]|[@!+]\(|(?:\A|/)[^\[/]*+\[[^/]+\]", re.DOTALL).search
"""Find what makes an unquoted text a pattern. A bracket expression does not reach over a slash."""
_MANY: Final = 64
"""Values from which on one search in their joined text is faster than one in each."""
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL).sub
_ACTIVE_SOMEWHERE: Final = "\\*?[]()|!@+^-:"
_QUOTE: Final = re.compile(f"[{re.escape(_ACTIVE_SOMEWHERE)}]")


def may_be_pattern(text: str) -> bool:
    """Return whether a text without quotes holds a pattern."""
    if len(text) > LONG_SCRIPT and not _has_any(text, "*?[("):
        return False  # string searches are many times faster
    return ACTIVE(text) is not None


def _has_any(text: str, chars: str) -> bool:
    return any(char in text for char in chars)


def is_active(text: str) -> bool:
    """Return whether unquoted text, in which a backslash quotes, holds a pattern."""
    return may_be_pattern(text) and ("\\" not in text or ACTIVE(_ESCAPED("x", text)) is not None)


def escape(text: str) -> str:
    """Return quoted text as a pattern that matches only itself."""
    return _QUOTE.sub(r"\\\g<0>", text)


class GlobWord(str):
    """A field with active pattern characters: its text, and the pattern to look for in the tree."""

    __slots__ = ("pattern",)
    pattern: str

    def __new__(cls, text: str, pattern: str) -> GlobWord:
        word = super().__new__(cls, text)
        word.pattern = pattern
        return word


@lru_cache(maxsize=256)
def delimiters(ifs: str) -> tuple[re.Pattern[str], str, str]:
    """Return the pattern of one delimiter of fields, the whitespace of IFS, and the rest of IFS."""
    ifs = "".join(dict.fromkeys(ifs))
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
    """Return a function that finds the words between white space in a text."""
    return re.compile(f"[^{re.escape(white)}]+").findall


class Fields:
    """A builder that takes the parts of a word in order and appends its fields to `done`."""

    __slots__ = ("_after_space", "_open", "_pieces", "done", "globs", "host", "ifs")

    def __init__(self, ifs: str | None, done: list[str] | None = None) -> None:
        self.ifs = DEFAULT_IFS if ifs is None else ifs
        self.done: list[str] = [] if done is None else done
        """The finished fields, after those of the words before."""
        self.globs = False
        self.host: Any = None
        """The shell whose limits hold."""
        self._pieces: list[tuple[str, bool]] = []
        self._open = False
        self._after_space = False

    def quoted(self, text: str) -> None:
        self._pieces.append((text, True))
        self._open = True
        self._after_space = False

    def literal(self, text: str) -> None:
        """Add unquoted text of the script: never split, but active for globbing."""
        if text:
            self._pieces.append((text, False))
            self._open = True
            self._after_space = False

    def split(self, text: str) -> None:
        """Add the result of an unquoted expansion."""
        if not text:
            return
        if not self.ifs:
            self.literal(text)
            return
        pattern, white, other = delimiters(self.ifs)
        if len(text) > LONG_SCRIPT and not _has_any(text, "*?[("):
            self._split_unglobbed(text, pattern, white, other)
            return
        pos = 0
        matches: Iterable[re.Match[str]] = pattern.finditer(text)
        for match in interruptible(matches) if len(text) > LARGE else matches:
            start, end = match.span()
            if start > pos:
                self.literal(text[pos:start])
            self._separate(match[0], other)
            pos = end
        if pos < len(text):
            self.literal(text[pos:])

    def _separate(self, delimiter: str, other: str) -> None:
        hard = bool(other) and any(c in other for c in delimiter)
        if self._open:
            self.end()
            self._after_space = not hard
        elif hard:
            if self._after_space:
                self._after_space = False
            else:
                self.done.append("")

    def _split_unglobbed(self, text: str, pattern: re.Pattern[str], white: str, other: str) -> None:
        """Split a long text without a pattern in it, where all fields but the first and last are found by one call."""
        first = pattern.search(text)
        if first is None:
            self._pieces.append((text, True))  # as good as quoted, which spares it another search
            self._open = True
            self._after_space = False
            return
        self.literal(text[: first.start()])
        self._separate(first[0], other)
        *fields, last = pattern.split(text[first.end() :])
        self.done += fields
        if fields:
            self._after_space = not (other and text.rstrip(white)[-1:] in other)
        self.literal(last)

    def end(self) -> None:
        """Finish the field that is being built, if there is one."""
        if not self._open:
            return
        pieces = self._pieces
        if len(pieces) == 1:
            text, quoted = pieces[0]
            if quoted:
                self.done.append(text)
            elif is_active(text):
                self._glob(text, text)
            else:
                self.done.append(text)
        else:
            if self.host is not None:
                within(self.host, sum([len(piece) for piece, _ in pieces]))
            text = "".join([piece for piece, _ in pieces])
            bare = "".join([piece if not quoted else "x" for piece, quoted in pieces])
            if is_active(bare):
                # What is too long to be in a name is so without its end: the pattern matches nothing either way.
                self._glob(text, "".join([escape(piece[:TEXT_MAX]) if quoted else piece for piece, quoted in pieces]))
            else:
                self.done.append(text)
        self._pieces = []
        self._open = False

    def _glob(self, text: str, pattern: str) -> None:
        self.done.append(GlobWord(text, pattern))
        self.globs = True

    def part(self) -> None:
        """Separate two values, as the first character of IFS does."""
        if self._open:
            self.end()
        elif self.ifs and self.ifs[0] not in DEFAULT_IFS:
            self.done.append("")

    def several(self, values: list[str]) -> None:
        """Add the values of `"$@"`, one quoted field each; the first and last join the text around them."""
        if not values:
            return
        self.quoted(values[0])
        if len(values) > 1:
            self.end()
            self.done += values[1:-1]
            self.quoted(values[-1])

    def several_split(self, values: list[str]) -> None:
        """Add the values of unquoted `$@` and `$*`, each split separately."""
        if self.ifs and self.ifs[0] not in DEFAULT_IFS:
            # A separator that is not white makes the empty ones count.
            self.split(self.ifs[0].join(values))
            return
        if len(values) > _MANY and self.ifs == DEFAULT_IFS and not _has_any("".join(values), " \t\n*?[\\("):
            self.several(list(filter(None, values)))  # nothing in them to split or to glob
            return
        first = True
        for value in values:
            if not first and self._open:
                self.end()
                self._after_space = True
            first = False
            self.split(value)


class _ByteFields(Fields):
    """Fields of the C locale: a byte of IFS separates even inside of a UTF-8 character."""

    __slots__ = ()

    def split(self, text: str) -> None:
        before = len(self.done)
        super().split(as_bytes(text))
        self._decode(before)

    def end(self) -> None:
        before = len(self.done)
        super().end()
        self._decode(before)

    def _decode(self, before: int) -> None:
        self.done[before:] = [field if isinstance(field, GlobWord) else as_text(field) for field in self.done[before:]]


def fields_for(host: Any, out: list[str]) -> Fields:
    """Return a builder that splits by the IFS of a shell and appends to `out`."""
    ifs = host.variables.get("IFS")
    if ifs is not None and not ifs.isascii() and bytewise(host):
        fields: Fields = _ByteFields(as_bytes(ifs), out)
    else:
        fields = Fields(ifs, out)
    fields.host = host
    return fields


def split_plain(text: str, ifs: str | None) -> list[str]:
    """Split a text without quotes (`read -a`, `compgen -W`)."""
    fields = Fields(ifs)
    fields.split(text)
    fields.end()
    return [str(field) for field in fields.done] if fields.globs else fields.done
