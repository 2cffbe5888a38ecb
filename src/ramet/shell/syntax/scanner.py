"""The characters of a script as tokens: position, one token of lookahead, line numbers, and how failures are worded.

Rule: a token is found by one match of one regular expression without nested repetition that could backtrack, so
that cost is linear.
Lexing does not depend on context; where the grammar needs another view (``[[ x =~ re ]]``, assignments, ``((``),
the parser reads
again from ``start``.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple, NoReturn

from ramet.shell.syntax.errors import SyntaxFailure

EOF, WORD, NEWLINE, OPERATOR, COMPLEX = range(5)
"""Kinds of tokens, the middle ones in the order of `TOKEN`'s groups. WORD is a word whose extent is known from its
text alone (``raw``), COMPLEX one that must be read."""

_BRACED = r"\$\{(?!![#?])[^{}'\"`$\\\n()<>]{0,200}+\}"
SIMPLE = (
    r"(?>(?:[^ \t\n\"'`$\\|&;()<>]{1,4096}+"
    r"|'[^'\n]{0,4096}+'"
    r"|\"(?>(?:[^\"\\$`\n]{1,4096}+|\\[^\n]|\$[A-Za-z_0-9@*#?!-]|" + _BRACED + r"){0,200})\""
    r"|\$[A-Za-z_0-9@*#?!$-]|" + _BRACED + r"|\\[^\n]){1,200})"
)
"""A word whose extent and meaning (`${!?}` has two) are known from its text alone, up to some length: the interpreter
lock is held during a match."""
_OPERATORS = (
    "&>>", "&>", "&&", "&", "||", "|&", "|", ";;&", ";;", ";&", ";",
    "<<<", "<<-", "<<", "<&", "<>", ">>", ">&", ">|", "(", ")",
)  # fmt: skip
_OPERATOR_SET = frozenset(_OPERATORS) | {"<", ">"}
ALONE = r"(?![^ \t\n|&;)])"
"""After a word: it is one in any view."""
COMMENT = r"\#[^\n]*+"
TOKEN = re.compile(
    r"[ \t]*+(?>(?:\\\n[ \t]*+)*)(?:" + COMMENT + r")?"
    r"(?:((?!\#)[^ \t\n\"'`$\\|&;()<>]{1,4096}+)" + ALONE + r"|(\n)"
    r"|((?=[|&;()<>])(?:" + "|".join(map(re.escape, _OPERATORS)) + r"|[<>](?!\()))"
    r"|((?!\#)" + SIMPLE + r")(?![^ \t\n|&;()<>]|[<>]\())?",
    re.ASCII,
).match
"""A plain word, a newline, an operator, any word whose extent is known."""
_CUT_WORD = re.compile(
    r"(?:[A-Za-z0-9_-][A-Za-z0-9_]{0,4096}+(?>(?:\\\n[A-Za-z0-9_]{0,4096}+){1,200})"
    r"|[][{}!=~]{1,2}+(?>(?:\\\n[][{}!=~]{0,2}+){1,200}))(?=[ \t\n|&;()]|\Z)",
    re.ASCII,
).match
_EXTGLOB = frozenset("?*+@!")


class Options(NamedTuple):
    """What the reading of a script depends on besides its text."""

    extglob: bool = False
    posix: bool = False
    expand_aliases: bool = False
    bytewise: bool = False
    """The C locale, which has no characters for ``$'\\u00e9'``."""
    condition_open: bool = False
    """A ``[[`` that failed goes on: bash does not know of another one then, until something else fails."""


class Scanner:
    """One text and a place in it. ``pos`` is the end of what was consumed; the token after it is in the other
    fields."""

    def __init__(self, text: str, options: Options, start_line: int) -> None:
        self.text = text
        self.n = len(text)
        self.pos = 0
        self.horizon = sys.maxsize
        """How far a command may reach before `Unready` is raised."""
        self.options = options
        self.start_line = start_line
        self.kind = EOF
        self.start = 0
        self.stop = 0
        self.raw = ""
        self._line_pos = 0
        self._line_end = -1  # where the line of that place is known to end
        self._line = start_line

    # -------------------------------------------------------------------- tokens

    def peek(self) -> None:
        """Finds the token after ``pos``."""
        m = TOKEN(self.text, self.pos, self.n)
        assert m is not None  # every part of the expression is optional
        kind = m.lastindex
        if kind is None:
            self._unusual(m.end())
            return
        raw = self.raw = m[kind]
        stop = self.stop = m.end()
        self.start = stop - len(raw)
        if kind <= NEWLINE:
            self.kind = kind
        elif kind == OPERATOR:
            self.kind = kind
            if self.text.startswith("\\\n", stop):
                self._join_operator()
        elif raw[-1] in _EXTGLOB and self.options.extglob and self.text.startswith("(", stop) and stop < self.n:
            self.kind, self.raw = COMPLEX, ""
        else:
            self.kind = WORD

    def _unusual(self, start: int) -> None:
        """Find the end of the text at ``start``, or a word whose extent is not known from its text alone."""
        self.start = self.stop = start
        self.raw = ""
        self.kind = EOF if start >= self.n else COMPLEX
        if self.kind == COMPLEX and (cut := _CUT_WORD(self.text, start, self.n)) is not None:
            # A plain word that line continuations cut is plain still, and may be a keyword.
            self.kind, self.raw, self.stop = WORD, cut[0].replace("\\\n", ""), cut.end()

    def _join_operator(self) -> None:
        """An operator may be cut by line continuations: ``&\\<newline>&``."""
        stop, op = self.stop, self.raw
        while self.text.startswith("\\\n", stop):
            stop += 2
            if not self.text.startswith("\\\n", stop):
                if op + self.text[stop : stop + 1] not in _OPERATOR_SET or stop >= self.n:
                    break
                op += self.text[stop]
                stop += 1
                self.stop, self.raw = stop, op

    def skip(self) -> None:
        """Consumes the token in sight (not a word that must be read) and looks at the next."""
        self.pos = self.stop
        self.peek()

    def read_again(self, text: str, pos: int) -> None:
        """Go back to `pos` in a text that is the same up to there."""
        self.line_at(pos)
        self.text, self.n, self.pos = text, len(text), pos
        self._line_end = -1

    # --------------------------------------------------------------------- lines

    def line_at(self, pos: int) -> int:
        """The number of the line that holds ``pos``; cheap when asked with rising positions."""
        if self._line_pos <= pos <= self._line_end:
            return self._line
        if pos >= self._line_pos:
            self._line += self.text.count("\n", self._line_pos, pos)
        else:
            self._line -= self.text.count("\n", pos, self._line_pos)
        self._line_pos = pos
        end = self.text.find("\n", pos)
        self._line_end = len(self.text) if end < 0 else end
        return self._line

    def longer(self, most: int) -> bool:
        """Return whether more than `most` characters are left of the line."""
        return len(self.text) - self.pos > most and self.text.find("\n", self.pos + 1, self.pos + most + 1) < 0

    def last_line(self) -> int:
        """The line bash names when the text ends too early: the one after the last."""
        text = self.text
        return self.start_line + text.count("\n") + (0 if text.endswith("\n") else 1)

    def source_line(self, pos: int) -> str:
        """The line that holds ``pos``, for the second message of a syntax error."""
        begin = self.text.rfind("\n", 0, pos) + 1
        end = self.text.find("\n", pos)
        return self.text[begin : len(self.text) if end < 0 else end]

    # ------------------------------------------------------------------ failures

    def unexpected(self) -> NoReturn:
        """The token in sight does not fit the grammar."""
        raise self.failure()

    def failure(self) -> SyntaxFailure:
        """The error that names the token in sight."""
        if self.kind == EOF and self.start >= len(self.text):
            return SyntaxFailure("syntax error: unexpected end of file", self.last_line())
        token = self.token_text()
        end = max(self.pos, self.start)  # all of the token is read
        message = "".join(("syntax error near unexpected token `", token, "'"))
        return SyntaxFailure(message, self.line_at(end), "".join(("`", self.source_line(end), "'")))

    def token_text(self) -> str:
        """The token in sight as error messages show it."""
        if self.kind == NEWLINE or self.kind == EOF:
            return "newline"
        return self.raw

    def missing(self, closer: str, opened: int | None) -> SyntaxFailure:
        """The text ended inside a construct that began at ``opened`` (None: bash names the last line)."""
        line = self.last_line() if opened is None else self.line_at(opened)
        message = f"unexpected EOF while looking for matching `{closer}'"
        return SyntaxFailure(message, line, lenient=opened is not None)
