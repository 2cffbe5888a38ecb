"""The grammar: from tokens to commands, one complete line at a time, as bash reads.

Rules: lists, chains, pipelines and clauses are loops; only real nesting recurses, and `deeper` bounds it.
Here-documents are read
when the newline after them is consumed. Aliases are spliced into the text before it is read further.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal as OneOf

from ramet.shell.syntax.compound import CompoundReader
from ramet.shell.syntax.errors import SyntaxFailure, Unready
from ramet.shell.syntax.nodes import AndOr, Command, Param, Pipeline, Script, Simple, Statement, Word
from ramet.shell.syntax.redirects import CLOSERS, REDIRECTIONS, continues
from ramet.shell.syntax.scanner import COMPLEX, EOF, NEWLINE, OPERATOR, WORD, Options
from ramet.shell.syntax.simple import NAMES, RESERVED

_BLANK = re.compile(r"(?>(?:[ \t]*+(?:\#[^\n]*+)?\n){1,1000})").match
_LINKS = frozenset(["&&", "||"])
_CLOSING_OPERATORS = frozenset([")", ";;", ";&", ";;&"])


class Parser(CompoundReader):
    """Reads a script. ``options`` and ``aliases`` may be changed between two calls of `next`.

    The caller empties ``warnings``.
    """

    def __init__(
        self,
        text: str,
        aliases: Mapping[str, str] | None = None,
        options: Options = Options(),  # noqa: B008 - a frozen value
        start_line: int = 1,
    ) -> None:
        if not text.endswith("\n") and not continues(text, 0, len(text)):
            # As bash does: then a missing word is an unexpected newline, not an unexpected end.
            text += "\n"
        super().__init__(text, aliases if aliases is not None else {}, options, start_line)

    # --------------------------------------------------------------------- lists

    def next(self) -> Script | None:
        """The next complete command line, or None at the end of the text."""
        self.depth = 0
        self.n = len(self.text)
        self._closing = ""
        self._unaliased = None
        if self._bad:
            self._bad.clear()
        begin = (self.text, self.pos, self._line_pos, self._line, self.start_line)
        warned = len(self.warnings)
        try:
            self.peek()
            while self.kind == NEWLINE:
                self.pos = self.stop
                self._blank_lines()
                self.peek()
            if self.kind == EOF:
                return None
            statements = self._complete_line()
            if len(statements) > 1 or not isinstance(statements[0].node, Simple):
                self._put_end(statements)
        except Unready:
            self._go_back(begin)
            del self.warnings[warned:]
            raise
        except RecursionError:
            self._pending.clear()
            raise self.too_deep(self.depth) from None
        except SyntaxFailure as failure:
            self._pending.clear()
            if not failure.fatal:
                # bash drops the rest of the line it is on.
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            raise
        finally:
            self.shallow()
        return Script(tuple(statements))

    def _put_end(self, statements: list[Statement]) -> None:
        end = self.line_at(self.pos - 1)
        for one in statements:
            if not isinstance(one.node, Simple):
                object.__setattr__(one, "end", end)

    def _go_back(self, state: tuple[str, int, int, int, int]) -> None:
        """All is as it was when `next` began, also where aliases have changed the text."""
        self.text, self.pos, self._line_pos, self._line, self.start_line = state
        self._line_end = -1
        self._alias_next = self._alias_over = False
        self._pending.clear()
        self._expanding.clear()
        self._closers.clear()

    def _complete_line(self) -> list[Statement]:
        statements: list[Statement] = []
        while True:
            start = self.start
            line = self._line if self._line_pos <= start <= self._line_end else self.line_at(start)
            first = self._pipeline()
            node = self._and_or(first) if self.kind == OPERATOR and self.raw in _LINKS else first
            background = False
            if self.kind == OPERATOR:
                if self.raw == "&":
                    background = True
                elif self.raw != ";":
                    self.unexpected()
                self.skip()
            elif self.kind == WORD or self.kind == COMPLEX:
                self.unexpected()
            statements.append(Statement(node, background, line))
            if self.kind == NEWLINE:
                self.pos = self.stop
                if self._pending:
                    self._documents()
                return statements
            if self.kind == EOF:
                if self._pending:
                    self.pos = self.n
                    self._documents()
                return statements
            if self.pos > self.horizon:
                raise Unready

    def _newlines(self) -> None:
        if self.pos > self.horizon:
            raise Unready
        while self.kind == NEWLINE:
            self.pos = self.stop
            if self._pending:
                self._documents()
            self.peek()
            if self.kind == NEWLINE:  # there is more than one
                self._blank_lines()
                self.peek()

    def _blank_lines(self) -> None:
        """Consumes lines that hold nothing but blanks and comments."""
        while (blank := _BLANK(self.text, self.pos, self.n)) is not None:
            self.pos = blank.end()
            if self.pos > self.horizon:
                raise Unready

    def _list(self, empty_allowed: bool = False) -> Script:
        """A compound list, up to a word or operator that closes something."""
        statements: list[Statement] = []
        if self.kind == NEWLINE or self.pos > self.horizon:
            self._newlines()
        while True:
            kind = self.kind
            if kind == WORD:
                if self.aliases and self._alias_begins(self.raw):  # it may stand for a word that closes something
                    self._newlines()
                    continue
                if self.raw in CLOSERS:
                    break
            elif kind == EOF or (kind == OPERATOR and self.raw in _CLOSING_OPERATORS):
                break
            start = self.start
            line = self._line if self._line_pos <= start <= self._line_end else self.line_at(start)
            first = self._pipeline()
            node = self._and_or(first) if self.kind == OPERATOR and self.raw in _LINKS else first
            if self.kind == OPERATOR and (self.raw == ";" or self.raw == "&"):
                statements.append(Statement(node, self.raw == "&", line))
                self.skip()
            elif self.kind == NEWLINE:
                statements.append(Statement(node, False, line, True))
            else:
                statements.append(Statement(node, False, line))
                break
            if self.kind == NEWLINE or self.pos > self.horizon:
                self._newlines()
        if not statements and not empty_allowed:
            self.unexpected()
        return Script(tuple(statements))

    def script_in_parens(self, opened: int) -> Script:
        outer, self._pending = self._pending, []
        closing, self._closing = self._closing, ")"
        aliases, self.aliases = self.aliases, {}  # they take part when the substitution runs
        options = self.options
        if options.condition_open:
            self.options = options._replace(condition_open=False)
        self.deeper()
        self.peek()
        try:
            body = self._list(empty_allowed=True)
            if self.kind != OPERATOR or self.raw != ")":
                self.unexpected()
        except SyntaxFailure as failure:
            if failure.message.endswith("unexpected end of file"):
                raise self.missing(")", None) from None
            failure.inner = failure.fatal and not failure.message.startswith("unexpected EOF")
            raise
        self.pos = self.stop
        self.depth -= 1
        if self._pending:
            outer = self._put_off(outer)
        self._pending, self._closing, self.aliases, self.options = outer, closing, aliases, options
        return body

    def _and_or(self, first: Command | Pipeline) -> AndOr:
        """What follows the first link of a chain."""
        rest: list[tuple[OneOf["&&", "||"], Command | Pipeline]] = []
        while self.kind == OPERATOR and (self.raw == "&&" or self.raw == "||"):
            op: OneOf["&&", "||"] = "&&" if self.raw == "&&" else "||"
            self.skip()
            self._newlines()
            rest.append((op, self._pipeline()))
        return AndOr(first, tuple(rest))

    def _pipeline(self) -> Command | Pipeline:
        if self.raw in NAMES and not self.aliases:
            first: Command = self._simple()
        elif self.aliases and self._aliased_to_nothing():
            first = Simple((), (), (), self.line_at(self.start))
        elif self.kind == WORD and (self.raw == "!" or self.raw == "time"):
            return self._prefixed_pipeline()
        else:
            first = self._command()
        if self.kind != OPERATOR or (self.raw != "|" and self.raw != "|&"):
            return first
        return self._stages(first, False, "", 0)

    def _prefixed_pipeline(self) -> Command | Pipeline:
        """A pipeline after ``!`` and ``time``."""
        negated = False
        timed: OneOf["", "time", "time -p"] = ""
        prefixed = ""
        line = 0
        while self.kind == WORD and (self.raw == "!" or self.raw == "time"):
            if not prefixed:
                line = self.line_at(self.start)
                prefixed = self.raw
            if self.raw == "!":
                negated = not negated
                self.skip()
            else:
                timed = timed or "time"  # said again, it is still said once
                self.skip()
                if self.kind == WORD and self.raw == "-p":
                    timed = "time -p"
                    self.skip()
                if self.kind == WORD and self.raw == "--":
                    timed = "time -p"
                    self.skip()
            if self.aliases and self._aliased_to_nothing():
                break
        if self._no_command(prefixed):
            return Pipeline((), negated, timed, (), line)
        first = self._command()
        if not negated and not timed and (self.kind != OPERATOR or (self.raw != "|" and self.raw != "|&")):
            return first
        return self._stages(first, negated, timed, line)

    def _stages(self, first: Command, negated: bool, timed: OneOf["", "time", "time -p"], line: int) -> Pipeline:
        """The rest of a pipeline."""
        stages, merge = [first], []
        while self.kind == OPERATOR and (self.raw == "|" or self.raw == "|&"):
            merge.append(self.raw == "|&")
            self.skip()
            self._newlines()
            if self.kind == WORD and self.raw == "!":
                self.unexpected()
            stages.append(self._command())
        merge.append(False)
        return Pipeline(tuple(stages), negated, timed, tuple(merge), line or self.line_at(self.start))

    def _no_command(self, prefix: str) -> bool:
        """After ``!`` or ``time``: does the pipeline end here? Only ``time`` may end a substitution."""
        if self.kind != OPERATOR:
            return self.kind in (EOF, NEWLINE)
        return self.raw == ";" or (self.raw == ")" and prefix == "time" and self._closing == ")")

    # ------------------------------------------------------------------ commands

    def _aliased_to_nothing(self) -> bool:
        """Puts aliases' texts in place of them where a command begins; was that all there is on this line?"""
        replaced = False
        while self.kind == WORD and self.raw in self.aliases and self._alias_begins(self.raw):
            replaced = True
        return replaced and self.kind in (NEWLINE, EOF)

    def _command(self) -> Command:
        if self.aliases and self._aliased_to_nothing():
            return Simple((), (), (), self.line_at(self.start))
        if self.kind == WORD:
            return self._reserved(self.raw) if self.raw in RESERVED else self._simple()
        if self.kind == OPERATOR:
            if self.raw == "(":
                return self._parenthesis()
            if self.raw not in REDIRECTIONS:
                self.unexpected()
        elif self.kind != COMPLEX:
            self.unexpected()
        return self._simple()

    # ----------------------------------------------------------------- fragments

    def fragment(self, body: str, line: int) -> Word:
        inner = Parser("", self.aliases, self.options, line)
        inner.text, inner.n, inner.depth = body, len(body), self.depth
        try:
            return inner.document()
        except SyntaxFailure:
            # bash reads documents when they are expanded, and fails then: so does this parameter.
            return Word((Param("", bad=body.strip()),))
        finally:
            inner.shallow()
