"""The grammar: from tokens to commands, one complete line at a time, as bash reads.

Rules: lists, chains, pipelines and clauses are loops; only real nesting recurses, and `deeper` bounds it.
Here-documents are read
when the newline after them is consumed. Aliases are spliced into the text before it is read further.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal as OneOf

from ramet.shell.syntax.assignments import ASSIGNMENT, AssignmentReader
from ramet.shell.syntax.errors import SyntaxFailure, Unready
from ramet.shell.syntax.nodes import (
    AndOr,
    ArithCommand,
    Assignment,
    Case,
    CaseItem,
    Command,
    CommandSub,
    Cond,
    Coproc,
    For,
    ForArith,
    Function,
    Group,
    If,
    Node,
    Pipeline,
    Redirect,
    Script,
    Select,
    Simple,
    Statement,
    Subshell,
    While,
    Word,
)
from ramet.shell.syntax.redirects import CLOSERS, REDIRECTIONS, continues
from ramet.shell.syntax.scanner import COMPLEX, EOF, NEWLINE, OPERATOR, WORD, Options
from ramet.shell.syntax.words import WORDS

RESERVED = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "until",
        "for",
        "select",
        "in",
        "function",
        "{",
        "}",
        "!",
        "[[",
        "]]",
        "time",
        "coproc",
    ]
)
_CLOSING_OPERATORS = frozenset([")", ";;", ";&", ";;&"])
_DECLARATIONS = frozenset(["declare", "typeset", "local", "export", "readonly", "alias"])
_DEFINES = re.compile(r"[ \t]*\(").match
_DESCRIPTOR = frozenset("0123456789{")
_WRAPPERS = frozenset(["command", "builtin"])
_COMPOUND_OK = frozenset(["eval", "let"])


class Parser(AssignmentReader):
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
        super().__init__(text, options, start_line)
        self.aliases: Mapping[str, str] = aliases if aliases is not None else {}
        self._expanding: list[tuple[str, int]] = []  # aliases being read, each with the length of the text after it
        self._alias_next = -1  # length of the text after an alias that ended in a blank

    # --------------------------------------------------------------------- lists

    def next(self) -> Script | None:
        """The next complete command line, or None at the end of the text."""
        self.depth = 0
        self.n = len(self.text)
        self._closing = ""
        begin, warned = self.pos, len(self.warnings)
        self.peek()
        while self.kind == NEWLINE:
            self.skip()
        if self.kind == EOF:
            return None
        try:
            statements = self._complete_line()
        except Unready:
            self.pos = begin
            self._pending.clear()
            del self.warnings[warned:]
            raise
        except SyntaxFailure as failure:
            self._pending.clear()
            if not failure.fatal:
                # bash drops the rest of the line it is on.
                end = self.text.find("\n", self.pos)
                self.pos = len(self.text) if end < 0 else end
            raise
        return Script(tuple(statements))

    def _complete_line(self) -> list[Statement]:
        statements: list[Statement] = []
        while True:
            line = self.line_at(self.start)
            node = self._and_or()
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

    def _newlines(self) -> None:
        if self.pos > self.horizon:
            raise Unready
        while self.kind == NEWLINE:
            self.pos = self.stop
            if self._pending:
                self._documents()
            self.peek()

    def _list(self, empty_allowed: bool = False) -> Script:
        """A compound list, up to a word or operator that closes something."""
        statements: list[Statement] = []
        self._newlines()
        while True:
            kind, raw = self.kind, self.raw
            if (
                (kind == WORD and raw in CLOSERS)
                or (kind == OPERATOR and raw in _CLOSING_OPERATORS)
                or kind == EOF
            ):  # fmt: skip
                break
            line = self.line_at(self.start)
            node = self._and_or()
            background = False
            if self.kind == OPERATOR and (self.raw == ";" or self.raw == "&"):
                background = self.raw == "&"
                self.skip()
            elif self.kind != NEWLINE:
                statements.append(Statement(node, False, line))
                break
            statements.append(Statement(node, background, line))
            self._newlines()
        if not statements and not empty_allowed:
            self.unexpected()
        return Script(tuple(statements))

    def script_in_parens(self, opened: int) -> Script:
        outer, self._pending = self._pending, []
        closing, self._closing = self._closing, ")"
        self.deeper()
        self.peek()
        body = self._list(empty_allowed=True)
        if self.kind == EOF:
            raise self.missing(")", None)
        if self.kind != OPERATOR or self.raw != ")":
            self.unexpected()
        self.pos = self.stop
        if self._pending:
            self._documents()
        self.depth -= 1
        self._pending, self._closing = outer, closing
        return body

    def _and_or(self) -> Node:
        first = self._pipeline()
        if self.kind != OPERATOR or (self.raw != "&&" and self.raw != "||"):
            return first
        rest: list[tuple[OneOf["&&", "||"], Command | Pipeline]] = []
        while self.kind == OPERATOR and (self.raw == "&&" or self.raw == "||"):
            op: OneOf["&&", "||"] = "&&" if self.raw == "&&" else "||"
            self.skip()
            self._newlines()
            rest.append((op, self._pipeline()))
        return AndOr(first, tuple(rest))

    def _pipeline(self) -> Command | Pipeline:
        if self.kind == WORD and (self.raw == "!" or self.raw == "time"):
            return self._prefixed_pipeline()
        first = self._command()
        if self.kind != OPERATOR or (self.raw != "|" and self.raw != "|&"):
            return first
        return self._stages(first, False, "", 0)

    def _prefixed_pipeline(self) -> Command | Pipeline:
        """A pipeline after ``!`` and ``time``."""
        negated = False
        timed: OneOf["", "time", "time -p"] = ""
        prefixed = False
        line = 0
        while self.kind == WORD and (self.raw == "!" or self.raw == "time"):
            if self.raw == "time" and timed:
                break
            if not prefixed:
                line = self.line_at(self.start)
            prefixed = True
            if self.raw == "!":
                negated = not negated
                self.skip()
            else:
                timed = "time"
                self.skip()
                if self.kind == WORD and self.raw == "-p":
                    timed = "time -p"
                    self.skip()
                if self.kind == WORD and self.raw == "--":
                    timed = "time -p"
                    self.skip()
        if prefixed and self._no_command():
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

    def _no_command(self) -> bool:
        """After ``!`` or ``time``: does the pipeline end here?"""
        return self.kind in (EOF, NEWLINE) or (self.kind == OPERATOR and self.raw in (";", "&", ")", "&&", "||"))

    # ------------------------------------------------------------------ commands

    def _command(self) -> Command:
        while True:
            if self.kind == WORD:
                raw = self.raw
                if raw in RESERVED:
                    return self._reserved(raw)
                if raw in self.aliases and self._alias_here(raw):
                    if self.kind in (NEWLINE, EOF):
                        # An alias that is empty or a comment, and nothing after it on this line.
                        return Simple((), (), (), self.line_at(self.start))
                    continue
                return self._simple()
            if self.kind == OPERATOR:
                if self.raw == "(":
                    return self._parenthesis()
                if self.raw not in REDIRECTIONS:
                    self.unexpected()
            elif self.kind != COMPLEX:
                self.unexpected()
            return self._simple()

    def _alias(self, name: str) -> bool:
        """Puts the alias's text in place of its name; False when it is being expanded already."""
        text, start, stop = self.text, self.start, self.stop
        left = len(text) - start
        while self._expanding and self._expanding[-1][1] >= left:
            self._expanding.pop()
        if any(name == other for other, _ in self._expanding):
            return False
        value = self.aliases[name]
        tail = len(text) - stop
        self._expanding.append((name, tail))
        self.text = text[:start] + value + text[stop:]
        self.n += len(value) - (stop - start)
        self._closers.clear()
        self._line_end = -1
        if value.endswith((" ", "\t")):
            self._alias_next = tail
        self.pos = start
        self.peek()
        return True

    def _reserved(self, raw: str) -> Command:
        compound = _COMPOUND.get(raw)
        if compound is not None:
            self.deeper()
            command = compound(self)
            self.depth -= 1
            return command
        if raw == "function":
            return self._function_keyword()
        if raw == "coproc":
            return self._coproc()
        if raw == "time":
            return self._simple()
        raise self.failure()

    def _compound_command(self) -> Command | None:
        """The compound command in sight, or None."""
        if self.kind == WORD and self.raw in _COMPOUND:
            return self._reserved(self.raw)
        if self.kind == OPERATOR and self.raw == "(":
            return self._parenthesis()
        return None

    def _expect(self, word: str) -> None:
        if self.kind != WORD or self.raw != word:
            self.unexpected()
        self.skip()

    def _parenthesis(self) -> Command:
        line = self.line_at(self.start)
        if self.text.startswith("(", self.stop) and self.stop < self.n:
            end = self.arith_end(self.stop + 1)
            if end >= 0 and self.text.startswith(")", end + 1) and end + 1 < self.n:
                self.pos = self.stop + 1
                body = self.arithmetic(end)
                self.pos = end + 2
                self.peek()
                return ArithCommand(body, self._redirects(), line)
            if end < 0 and self.arith_end(self.stop) < 0:
                raise self.missing(")", self.start)
        self.deeper()
        self.skip()
        script = self._list()
        self.depth -= 1
        if self.kind != OPERATOR or self.raw != ")":
            self.unexpected()
        self.skip()
        return Subshell(script, self._redirects(), line)

    def _group(self) -> Command:
        line = self.line_at(self.start)
        self.skip()
        body = self._list()
        self._expect("}")
        return Group(body, self._redirects(), line)

    def _if(self) -> Command:
        line = self.line_at(self.start)
        clauses: list[tuple[Script, Script]] = []
        orelse = None
        while True:
            self.skip()
            condition = self._list()
            self._expect("then")
            clauses.append((condition, self._list()))
            if self.kind != WORD or self.raw != "elif":
                break
        if self.kind == WORD and self.raw == "else":
            self.skip()
            orelse = self._list()
        self._expect("fi")
        return If(tuple(clauses), orelse, self._redirects(), line)

    def _while(self) -> Command:
        line, until = self.line_at(self.start), self.raw == "until"
        self.skip()
        condition = self._list()
        body = self._do()
        return While(condition, body, until, self._redirects(), line)

    def _do(self) -> Script:
        self._expect("do")
        body = self._list()
        self._expect("done")
        return body

    def _loop_body(self) -> Script:
        """``do ... done`` or, after ``for`` and ``select``, ``{ ... }``."""
        if self.kind == WORD and self.raw == "{":
            self.skip()
            body = self._list()
            self._expect("}")
            return body
        return self._do()

    def _for(self) -> Command:
        line, select = self.line_at(self.start), self.raw == "select"
        self.skip()
        if self.kind == OPERATOR and self.raw == "(" and self.text.startswith("(", self.stop) and not select:
            return self._for_arith(line)
        if self.kind not in (WORD, COMPLEX):
            self.unexpected()
        begin = self.start
        self.read_word()
        name = self.text[begin : self.pos]
        self.peek()
        words: tuple[Word, ...] | None = None
        if self.kind == OPERATOR and self.raw == ";":
            self.skip()
            self._newlines()
        else:
            self._newlines()
            if self.kind == WORD and self.raw == "in":
                self.skip()
                words = self._for_words()
        body = self._loop_body()
        kind = Select if select else For
        return kind(name, words, body, self._redirects(), line)

    def _for_words(self) -> tuple[Word, ...]:
        words = []
        while self.kind in (WORD, COMPLEX):
            words.append(self.read_word())
            self.peek()
        if self.kind == OPERATOR and self.raw == ";":
            self.skip()
        elif self.kind != NEWLINE:
            self.unexpected()
        self._newlines()
        return tuple(words)

    def _for_arith(self, line: int) -> Command:
        opened = self.start
        begin = self.stop + 1
        end = self.arith_end(begin)
        if end < 0:
            raise self.missing(")", opened)
        if not self.text.startswith(")", end + 1):
            self.pos = self.stop
            self.peek()
            self.unexpected()
        pieces = self._semicolons(begin, end)
        if len(pieces) != 3:
            whole = self.text[opened : end + 2]
            message = "arithmetic expression required" if len(pieces) < 3 else "`;' unexpected"
            raise SyntaxFailure(f"syntax error: {message}", line, f"syntax error: `{whole}'")
        words = []
        for first, last in pieces:
            self.pos = first
            while first < last and self.text[first] in " \t\n":
                first += 1
            self.pos = first
            words.append(self.arithmetic(last))
        self.pos = end + 2
        self.peek()
        if self.kind == OPERATOR and self.raw == ";":
            self.skip()
        self._newlines()
        body = self._loop_body()
        return ForArith(words[0], words[1], words[2], body, self._redirects(), line)

    def _semicolons(self, begin: int, end: int) -> list[tuple[int, int]]:
        """The stretches of ``begin..end`` between semicolons that are not inside quotes or brackets."""
        pieces, first, pos, depth = [], begin, begin, 0
        while pos < end:
            c = self.text[pos]
            if c == ";" and not depth:
                pieces.append((first, pos))
                first = pos + 1
            elif c in "([{":
                depth += 1
            elif c in ")]}":
                depth -= 1
            elif c in "\"'`":
                pos = max(pos, self._quote_end(c, pos))
            pos += 1
        pieces.append((first, end))
        return pieces

    def _case(self) -> Command:
        line = self.line_at(self.start)
        self.skip()
        if self.kind not in (WORD, COMPLEX):
            self.unexpected()
        word = self.read_word()
        self.peek()
        self._newlines()
        self._expect("in")
        self._newlines()
        items: list[CaseItem] = []
        while not (self.kind == WORD and self.raw == "esac"):
            items.append(self._case_item())
        self.skip()
        return Case(word, tuple(items), self._redirects(), line)

    def _case_item(self) -> CaseItem:
        if self.kind == OPERATOR and self.raw == "(":
            self.skip()
        patterns = []
        while True:
            if self.kind not in (WORD, COMPLEX):
                self.unexpected()
            patterns.append(self.read_word())
            self.peek()
            if self.kind == OPERATOR and self.raw == "|":
                self.skip()
                continue
            if self.kind != OPERATOR or self.raw != ")":
                self.unexpected()
            break
        self.skip()
        body = self._list(empty_allowed=True)
        end: OneOf[";;", ";&", ";;&"] = ";;"
        if self.kind == OPERATOR and self.raw in (";;", ";&", ";;&"):
            end = ";;" if self.raw == ";;" else ";&" if self.raw == ";&" else ";;&"
            self.skip()
            self._newlines()
        elif self.kind != WORD or self.raw != "esac":
            self.unexpected()
        return CaseItem(tuple(patterns), body, end)

    def _cond(self) -> Command:
        line = self.line_at(self.start)
        self.skip()
        expr = self.condition()
        return Cond(expr, self._redirects(), line)

    # ----------------------------------------------------------------- functions

    def _function_keyword(self) -> Command:
        line = self.line_at(self.start)
        self.skip()
        if self.kind not in (WORD, COMPLEX):
            self.unexpected()
        begin = self.start
        self.read_word()
        name = self.text[begin : self.pos]
        self.peek()
        if self.kind == OPERATOR and self.raw == "(" and re.compile(r"[ \t]*\)").match(self.text, self.stop):
            self.skip()
            self.skip()
        return self._function_body(name, True, line)

    def _function_body(self, name: str, keyword: bool, line: int) -> Command:
        self._newlines()
        body = self._compound_command()
        if body is None:
            self.unexpected()
        return Function(name, body, keyword, line)

    def _coproc(self) -> Command:
        line = self.line_at(self.start)
        self.skip()
        body = self._compound_command()
        if body is not None:
            return Coproc("COPROC", body, line)
        if self.kind == WORD:
            place, name = self.pos, self.raw
            self.skip()
            body = self._compound_command()
            if body is not None:
                return Coproc(name, body, line)
            self.pos = place
            self.peek()
        return Coproc("COPROC", self._command(), line)

    # ----------------------------------------------------------- simple commands

    def _simple(self) -> Command:
        start = self.start
        line = self.line_at(start)
        assigns: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirects: list[Redirect] = []
        declaring = False
        wrapped, compound_ok = False, ""
        known = WORDS.get
        text, aliased, usual = self.text, bool(self.aliases), False
        second, parts = -1, -1
        while True:
            kind = self.kind
            parts += 1
            if parts == 2:
                second = self.pos
            if kind == WORD:
                raw = self.raw
                if aliased:
                    if self._alias_next >= 0 and words and self._alias_follows(raw):
                        text, parts = self.text, parts - 1
                        continue
                    if (assigns or redirects) and not words and self._alias_here(raw):
                        text, parts = self.text, parts - 1
                        continue
                if raw[0] in _DESCRIPTOR and text.startswith(("<", ">"), self.stop) and self._descriptor(raw):
                    redirects.append(self._redirect(*self._prefix(raw)))
                    continue
                if usual:
                    # One more argument of a command that takes its words as they are.
                    self.pos = self.stop
                    words.append(known(raw) or self._remember(raw))
                    self.peek()
                    continue
                if not words or declaring:
                    if ("=" in raw or "[" in raw) and (assignment := self._assignment(raw)) is not None:
                        (words if words else assigns).append(assignment)
                        self.peek()
                        continue
                    if not words:
                        if _DEFINES(self.text, self.stop) and not assigns and not redirects:
                            self.skip()
                            return self._function_after(raw, line)
                        declaring = raw in _DECLARATIONS
                        wrapped = raw in _WRAPPERS
                        compound_ok = raw if raw in _COMPOUND_OK else ""
                elif wrapped:
                    declaring = raw in _DECLARATIONS
                    wrapped = raw in _WRAPPERS or raw.startswith("-")
                elif compound_ok and raw.endswith("=") and self.text.startswith("(", self.stop) and ASSIGNMENT(raw):
                    words.append(self._evaluated_compound() if compound_ok == "eval" else self._raw_compound())
                    self.peek()
                    continue
                words.append(self.read_word())
                usual = not declaring and not wrapped and not compound_ok
                self.peek()
            elif kind == COMPLEX:
                if (not words or declaring) and (assignment := self._assignment("")) is not None:
                    (words if words else assigns).append(assignment)
                    self.peek()
                    continue
                wrapped = False
                words.append(self.read_word())
                usual = not declaring and not compound_ok
                self.peek()
                if len(words) == 1 and self.kind == OPERATOR and self.raw == "(" and not assigns and not redirects:
                    return self._function_after(self.text[start : self.pos], line)
            elif kind == OPERATOR and self.raw in REDIRECTIONS:
                redirects.append(self._redirect(None, None))
            else:
                break
        if kind == OPERATOR and self.raw == "(":
            self.unexpected()
        if self.line_at(self.pos) != line and not (assigns and words):
            # bash knows the line of a command when it has read one word more than the first.
            line = self.line_at(self.pos if second < 0 else second)
        return Simple(tuple(assigns), tuple(words), tuple(redirects), line)

    def _alias_here(self, raw: str) -> bool:
        return self.options.expand_aliases and raw in self.aliases and self._alias(raw)

    def _alias_follows(self, raw: str) -> bool:
        """After an alias that ends in a blank the next word is looked up as well."""
        if len(self.text) - self.start > self._alias_next:
            return False
        self._alias_next = -1
        return self._alias_here(raw)

    def _function_after(self, name: str, line: int) -> Command:
        """The rest of a definition; ``(`` is in sight."""
        self.skip()
        if self.kind != OPERATOR or self.raw != ")":
            self.unexpected()
        self.skip()
        return self._function_body(name, False, line)

    # ----------------------------------------------------------------- fragments

    def fragment(self, body: str, line: int) -> Word:
        inner = Parser("", self.aliases, self.options, line)
        inner.text, inner.n, inner.depth = body, len(body), self.depth
        try:
            return inner.document()
        except SyntaxFailure:
            # bash reads documents when they are expanded, and fails then: so does this substitution.
            return Word((CommandSub(None, "$(", True, line),))


_COMPOUND: dict[str, Callable[[Parser], Command]] = {
    "if": Parser._if,
    "for": Parser._for,
    "while": Parser._while,
    "until": Parser._while,
    "case": Parser._case,
    "select": Parser._for,
    "{": Parser._group,
    "[[": Parser._cond,
}
