"""Compound commands, functions and coprocesses: what begins with a reserved word or a parenthesis."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal as OneOf

from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import (
    ArithCommand,
    Case,
    CaseItem,
    Command,
    Cond,
    Coproc,
    For,
    ForArith,
    Function,
    Group,
    If,
    Script,
    Select,
    Subshell,
    While,
    Word,
)
from ramet.shell.syntax.scanner import COMPLEX, NEWLINE, OPERATOR, WORD
from ramet.shell.syntax.simple import SimpleReader

_NO_PARAMETERS = re.compile(r"[ \t]*\)").match


class CompoundReader(SimpleReader):
    """Reads compound commands."""

    def _list(self, empty_allowed: bool = False) -> Script:
        """A compound list, up to a word or operator that closes something."""
        raise NotImplementedError

    def _command(self) -> Command:
        """Any command but a pipeline."""
        raise NotImplementedError

    def _newlines(self) -> None:
        raise NotImplementedError

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
                line = self.line_at(end)  # it counts as being where it ends
                self.pos += 2
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
        line = self.line_at(self.start)  # as above: where it ends
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

    def _loop_body(self, separated: bool = True) -> Script:
        """``do ... done`` or, after ``for`` and ``select``, ``{ ... }``."""
        if self.kind == WORD and self.aliases and separated:
            self._alias_begins(self.raw)
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
            # bash takes it for the end of the text, and says nothing.
            over = self.text[end + 1 : end + 3] in ("", "\n")
            raise SyntaxFailure("", line, status=2 if over else None, lenient=over)
        pieces = self._semicolons(begin, end)
        if len(pieces) != 3:
            whole = self.text[opened : end + 2]
            message = "arithmetic expression required" if len(pieces) < 3 else "`;' unexpected"
            raise SyntaxFailure(f"syntax error: {message}", line, f"syntax error: `{whole}'")
        words = []
        for first, last in pieces:
            self.pos = first
            while first < last and self.text[first] in " \t":
                first += 1
            self.pos = first
            words.append(self.arithmetic(last))
        self.pos = end + 2
        self.peek()
        separated = self.kind == NEWLINE or (self.kind == OPERATOR and self.raw == ";")
        if self.kind == OPERATOR and self.raw == ";":
            self.skip()
        self._newlines()
        body = self._loop_body(separated)
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
        if self.kind == OPERATOR and self.raw == "(" and _NO_PARAMETERS(self.text, self.stop):
            self.skip()
            self.skip()
        return self._function_body(name, True, line)

    def _function_body(self, name: str, keyword: bool, line: int) -> Command:
        self._newlines()
        begin = self.start
        body = self._compound_command()
        if body is None:
            self.unexpected()
        return Function(name, body, keyword, line, self.pos - begin)

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
        self.deeper()
        command = self._command()
        self.depth -= 1
        return Coproc("COPROC", command, line)


_COMPOUND: dict[str, Callable[[CompoundReader], Command]] = {
    "if": CompoundReader._if,
    "for": CompoundReader._for,
    "while": CompoundReader._while,
    "until": CompoundReader._while,
    "case": CompoundReader._case,
    "select": CompoundReader._for,
    "{": CompoundReader._group,
    "[[": CompoundReader._cond,
}
