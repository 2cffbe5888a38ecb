"""Simple commands: assignments, words, redirections, and the aliases that stand for them.

Most of a script is words that mean themselves: `_bulk` finds the end of all of them in one match, and they are read
when they are needed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from ramet.shell.syntax.assignments import ASSIGNMENT, AssignmentReader
from ramet.shell.syntax.errors import Unready
from ramet.shell.syntax.lazy_simple import LazySimple, read_plain
from ramet.shell.syntax.nodes import Assignment, Command, Redirect, Simple, Word
from ramet.shell.syntax.redirects import REDIRECTIONS
from ramet.shell.syntax.scanner import ALONE, COMMENT, COMPLEX, NEWLINE, OPERATOR, SIMPLE, WORD, Options
from ramet.shell.syntax.words import WORDS, remember

RESERVED = frozenset(
    [
        "if", "then", "elif", "else", "fi", "do", "done", "case", "esac", "while", "until", "for", "select", "in",
        "function", "{", "}", "!", "[[", "]]", "time", "coproc",
    ]
)  # fmt: skip
_DECLARATIONS = frozenset(["declare", "typeset", "local", "export", "readonly", "alias"])
_DEFINES = re.compile(r"[ \t]*\(").match
_QUOTED = re.compile(r"""['"\\]""").search
_DESCRIPTOR = frozenset("0123456789{")
_WRAPPER = "command"
"""By POSIX's rules a declaration is one behind this, too, except that bash reads no arrays there."""
_COMPOUND_OK = frozenset(["eval", "let"])
_USUAL_NAME = re.compile(r"[^=\[{0-9][^=\[]*+\Z|\[\Z").match
_UNUSUAL = _DECLARATIONS | {_WRAPPER} | _COMPOUND_OK
"""Commands whose words are not all read alike."""

_TARGET = r"[ \t]{0,4096}+(?>>>|[<>](?:&(?!-[^ \t\n|&;)]))?)[ \t]{0,4096}+(?!\#)" + SIMPLE + ALONE
_BULK = re.compile(
    r"((?>(?:[ \t]{1,4096}+(?!\#)"
    + SIMPLE
    + ALONE
    + r"){0,200})(?>(?:(?:[ \t]{1,4096}+[0-9])?"
    + _TARGET
    + r"){0,200}))"
    r"[ \t]{0,4096}+(?:" + COMMENT + r")?(?:(\n)|((?>;;?&?|\|[|&]?|&&|&(?!>)|\)))(?!\\))?",
    re.ASCII,
).match
"""Words, then redirections of the usual kinds, and the token after them."""
_PLAIN, _LINE_END, _OPERATOR = range(1, 4)
"""Its groups."""

NAMES: dict[str, Word] = {}
"""Words that began commands of the usual kind, by their text."""
_NAMES_KEPT = 4096
_MANY_ALIASES = 64
"""Aliases that stand for each other from which on a command counts as a long one."""


def _begins_compound(raw: str) -> bool:
    """Is a word all of an assignment but its value?"""
    m = ASSIGNMENT(raw)
    return m is not None and (m.end() == len(raw) or (m[0][-1] == "[" and raw.endswith("=")))


class SimpleReader(AssignmentReader):
    """Reads simple commands."""

    def __init__(self, text: str, aliases: Mapping[str, str], options: Options, start_line: int) -> None:
        super().__init__(text, options, start_line)
        self.aliases = aliases
        self._expanding: dict[str, int] = {}  # aliases being read, each with the length of the text after it
        self._alias_next = False  # whether the next word is looked up as well, as an alias that ended in a blank asks
        self._alias_over = False  # whether a word that ended the text of an alias was replaced by another's
        self._unaliased: str | None = None  # the text as it was before aliases of this command line were replaced

    def _function_body(self, name: str, keyword: bool, line: int) -> Command:
        raise NotImplementedError

    def _simple(self) -> Command:
        start = self.start
        line = self._line if self._line_pos <= start <= self._line_end else self.line_at(start)
        if self.aliases or (first := NAMES.get(self.raw) or self._name()) is None:
            return self._rest(start, line, [], [])
        begin = self.pos = self.stop
        ends = self._bulk()
        if ends and self.pos <= self._line_end:
            if self.pos == begin:
                command = Simple((), (first,), (), line)
                return self._before_documents(command) if self._pending else command
            return LazySimple(first, self.text[begin : self.pos], line)
        if self.pos == begin and self.kind == OPERATOR and self.raw == "(":
            return self._function_after(self.text[start:begin], line)
        words: list[Word | Assignment] = [first]
        redirects: list[Redirect] = []
        if self.pos != begin:
            read_plain(self.text[begin : self.pos], self.line_at(begin), words, redirects)
        return self._rest(start, line, words, redirects)

    def _name(self) -> Word | None:
        """The word in sight, if it may begin a command whose words are all read alike."""
        raw = self.raw
        if self.kind != WORD or raw in RESERVED or raw in _UNUSUAL or not _USUAL_NAME(raw):
            return None
        word = WORDS.get(raw) or remember(raw)
        if len(NAMES) >= _NAMES_KEPT:
            NAMES.clear()
        NAMES[raw] = word
        return word

    def _rest(self, start: int, line: int, words: list[Word | Assignment], redirects: list[Redirect]) -> Command:
        """The command at ``start`` of which some words and redirections are read."""
        assigns: list[Assignment] = []
        declaring = wrapped = False
        redirected = False  # behind the name of a declaration, where bash takes no more arrays
        compound_ok = ""
        aliased, usual = bool(self.aliases), bool(words)
        assigned = 0  # the end of what assigns first
        second, parts = -1, len(words) + len(redirects) - 1
        while True:
            if self.pos > self.horizon:
                raise Unready
            kind = self.kind
            parts += 1
            if second < 0 and parts >= 2:
                second = self.pos
            if kind == WORD:
                raw = self.raw
                if aliased:
                    if (self._expanding or self._alias_next) and self._alias_follows(raw, bool(words)):
                        parts -= 1
                        continue
                    if (assigns or redirects) and not words and self._alias_here(raw):
                        parts -= 1
                        continue
                if raw[0] in _DESCRIPTOR and self.text.startswith(("<", ">"), self.stop) and self._descriptor(raw):
                    second = self.start if parts == 1 and words else second  # of it bash has read no more yet
                    redirects.append(self._redirect(*self._prefix(raw)))
                    redirected = bool(words)
                    continue
                if not words or (declaring and not ((wrapped or redirected) and self.text.startswith("(", self.stop))):
                    if ("=" in raw or "[" in raw) and (assignment := self._assignment(raw, bool(words))) is not None:
                        (words if words else assigns).append(assignment)
                        assigned = assigned or self.pos
                        self.peek()
                        continue
                    if not words:
                        if "[" in raw and (bracketed := self._bracketed()) is not None:
                            words.append(bracketed)
                            self.peek()
                            continue
                        if raw in _UNUSUAL:
                            declaring = raw in _DECLARATIONS
                            wrapped = raw == _WRAPPER and self.options.posix
                            compound_ok = raw if raw in _COMPOUND_OK else ""
                        else:
                            usual = not aliased
                        if not assigns and not redirects and _DEFINES(self.text, self.stop):
                            self.skip()
                            return self._function_after(raw, line)
                elif wrapped and not declaring:
                    declaring = raw in _DECLARATIONS
                    wrapped = declaring or raw == _WRAPPER
                elif compound_ok and not redirected and self.text.startswith("(", self.stop) and _begins_compound(raw):
                    words.append(self._evaluated_compound() if compound_ok == "eval" else self._raw_compound())
                    self.peek()
                    continue
                words.append(WORDS.get(raw) or remember(raw))
                self.pos = self.stop
            elif kind == COMPLEX:
                if (not words or declaring) and (assignment := self._assignment("", bool(words))) is not None:
                    (words if words else assigns).append(assignment)
                    assigned = assigned or self.pos
                    self.peek()
                    continue
                wrapped = False
                bracketed = None if words else self._bracketed()
                if aliased:
                    self._leave_aliases(self.start)
                begin = self.start
                words.append(self.read_word() if bracketed is None else bracketed)
                if self._alias_next and not _QUOTED(self.text, begin, self.pos):
                    self._alias_next = False
                usual = not aliased and not declaring and not compound_ok
                if len(words) == 1 and not assigns and not redirects:
                    self.peek()
                    if self.kind == OPERATOR and self.raw == "(":
                        return self._function_after(self.text[start : self.pos], line)
            elif kind == OPERATOR and self.raw in REDIRECTIONS:
                second = self.start if parts == 1 and words else second
                self._leave_aliases(self.start)
                redirects.append(self._redirect(None, None))
                redirected = bool(words)
                self._alias_next = False
                continue
            else:
                break
            if usual:
                begin = self.pos
                self._bulk()
                if self.pos != begin:
                    read_plain(self.text[begin : self.pos], self.line_at(begin), words, redirects)
                parts = len(assigns) + len(words) + len(redirects) - 1
            else:
                self.peek()
        if kind == OPERATOR and self.raw == "(":
            self.unexpected()
        if not (self._line_pos <= self.pos <= self._line_end and self._line == line):
            # bash knows the line of a command when it has read one word more than the first, if that assigns nothing.
            line = self.line_at(assigned if assigns and words else self.pos if second < 0 else second)
        command = Simple(tuple(assigns), tuple(words), tuple(redirects), line)
        if self._pending and len(words) == 1 and not (assigns or redirects):
            return self._before_documents(command)
        return command

    def _before_documents(self, command: Simple) -> Simple:
        """A command of one word: bash knows its line when it has read the token after it, and with a newline the
        documents that follow."""
        if self.kind == NEWLINE:
            self._late = command
        return command

    def _bulk(self) -> bool:
        """Consumes what is plain after ``pos``, all of it on one line, and looks at the token after it; does the
        command end there? What was consumed is for `read_plain`."""
        m = _BULK(self.text, self.pos, self.n)
        assert m is not None  # every part of the expression is optional
        kind = m.lastindex
        self.pos = m.end(_PLAIN)
        if kind == _LINE_END:
            self.kind, self.raw, self.stop = NEWLINE, "\n", m.end()
            self.start = self.stop - 1
        elif kind == _OPERATOR:
            raw = self.raw = m[_OPERATOR]
            self.kind, self.stop = OPERATOR, m.end()
            self.start = self.stop - len(raw)
        else:
            self.peek()
            return False
        return True

    def _alias_here(self, raw: str) -> bool:
        return self.options.expand_aliases and raw in self.aliases and self._alias(raw)

    def _alias_begins(self, raw: str) -> bool:
        """Where a command may begin, reserved words stand for other text as well, unless by POSIX's rules."""
        return (raw not in RESERVED or (raw != "}" and not self.options.posix)) and self._alias_here(raw)

    def _alias_follows(self, raw: str, command_known: bool) -> bool:
        """After an alias that ends in a blank the next word without quotes is looked up as well, then the first word of
        what it stands for, and so on; if it begins a command, that has been done."""
        self._leave_aliases(self.start)
        if not self._alias_next or _QUOTED(raw):
            return False
        if self._expanding and next(reversed(self._expanding.values())) == len(self.text) - self.stop:
            if self._alias_over:  # to know where the word ends bash leaves the aliases whose text it ends
                self._leave_aliases(self.stop)
            else:
                self._alias_over = True
        self._alias_next = self._alias_next and command_known and self._alias_here(raw)
        return self._alias_next

    def _leave_aliases(self, pos: int) -> None:
        """Forgets the aliases whose text ends before ``pos``: the last one tells whether the next word is looked up."""
        expanding, left = self._expanding, len(self.text) - pos
        while expanding and next(reversed(expanding.values())) >= left:
            name, _ = expanding.popitem()
            self._alias_next = self.aliases.get(name, "").endswith((" ", "\t"))  # it may be gone
            self._alias_over = False

    def source_line(self, pos: int) -> str:
        """What bash shows is what it reads from: the text of an alias, or else the line as it was written."""
        if self._unaliased is None:
            return super().source_line(pos)
        left = len(self.text) - pos
        for name, tail in reversed(self._expanding.items()):
            if tail < left:
                return self.aliases[name]
        text, self.text = self.text, self._unaliased
        try:
            return super().source_line(len(self.text) - left)
        finally:
            self.text = text

    def _function_after(self, name: str, line: int) -> Command:
        """The rest of a definition; ``(`` is in sight."""
        self.skip()
        if self.kind != OPERATOR or self.raw != ")":
            self.unexpected()
        self.skip()
        return self._function_body(name, False, line)

    def _alias(self, name: str) -> bool:
        """Puts the alias's text in place of its name; False when it is being expanded already."""
        text, start, stop = self.text, self.start, self.stop
        expanding = self._expanding
        self._leave_aliases(start)
        if name in expanding:
            return False
        value = self.aliases[name]
        if (len(expanding) > _MANY_ALIASES or start + len(value) > self.horizon) and self.horizon < sys.maxsize:
            raise Unready
        tail = len(text) - stop
        expanding[name] = tail
        if self._unaliased is None:
            self._unaliased = text
        if (lines := value.count("\n")) > 0:  # they are none of the script
            self.line_at(start)
            self._line -= lines
            self.start_line -= lines
        self.text = text[:start] + value + text[stop:]
        self.n += len(value) - (stop - start)
        self._closers.clear()
        self._bad.clear()
        self._line_end = -1
        self.pos = start
        self.peek()
        return True
