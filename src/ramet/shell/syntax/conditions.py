"""The grammar inside ``[[ ... ]]``; an error here keeps ``$?`` as it was, as bash does."""

from __future__ import annotations

from collections.abc import Callable

from ramet.shell.syntax.errors import SyntaxFailure, TooDeep
from ramet.shell.syntax.nodes import (
    CondAnd,
    CondBinary,
    CondExpr,
    CondGroup,
    CondNot,
    CondOr,
    CondUnary,
    CondWord,
    Word,
)
from ramet.shell.syntax.scanner import COMPLEX, EOF, NEWLINE, OPERATOR, WORD
from ramet.shell.syntax.words import WordReader

UNARY = frozenset(f"-{c}" for c in "abcdefghknoprstuvwxzGLNORS")
_REGEX_STARTS = frozenset(["(", "|", "||", "|&"])
"""Operators elsewhere; behind =~ a word begins with them."""
BINARY = frozenset(["=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"])

_UNARY_ARGUMENT = "unexpected argument to conditional unary operator"
_BINARY_ARGUMENT = "unexpected argument to conditional binary operator"


class ConditionReader(WordReader):
    """Reads conditional expressions."""

    def condition(self) -> CondExpr:
        """The expression after ``[[`` and its ``]]``."""
        begin = self.start
        if self.options.condition_open:
            self.unexpected()
        try:
            return self._whole(begin)
        except SyntaxFailure as failure:
            failure.condition = True
            if failure.status is None:
                self._rest_of_line(failure)
            raise

    def _rest_of_line(self, failure: SyntaxFailure) -> None:
        """bash reads on to the end of the line, and may find a quote that nothing closes."""
        try:
            while self.kind not in (NEWLINE, EOF):
                if self.kind == COMPLEX:
                    self.read_word()
                    self.peek()
                else:
                    self.skip()
        except SyntaxFailure as second:
            failure.more.append((second.line, second.message))
            failure.status, failure.lenient = 2, second.lenient

    def _whole(self, begin: int) -> CondExpr:
        expr = self._cond_or()
        if self.kind != WORD or self.raw != "]]":
            if self.kind == EOF:
                raise self._cond_failure("unexpected EOF while looking for `]]'", begin)
            self._whole_token("unexpected EOF while looking for `]]'", lambda: self.line_at(begin))
            token = "" if self.kind in (WORD, COMPLEX) else f": unexpected token `{self.token_text()}'"
            raise self._cond_failure(f"syntax error in conditional expression{token}", begin)
        self.skip()
        return expr

    def _whole_token(self, message: str, line: Callable[[], int]) -> None:
        """bash has read all of the word in sight before it says something about it: that nothing closes a quote in it
        comes first."""
        if self.kind != COMPLEX:
            return
        token = self.kind, self.raw, self.start
        try:
            self.read_word()
            self.kind, self.raw, self.start = token  # and not the last one of a substitution in it
        except SyntaxFailure as failure:
            if not failure.inner:
                failure.more.append((line(), message))
            raise

    def _cond_failure(self, message: str, place: int | None = None) -> SyntaxFailure:
        line = self.line_at(self.start if place is None else place)
        over = self._at_end()
        return SyntaxFailure(message, line, status=2 if over else None, lenient=over)

    def _at_end(self) -> bool:
        """Whether the text is over: that is an ordinary syntax error."""
        return self.kind == EOF or (self.kind == NEWLINE and not self.text[self.start :].strip("\n"))

    def _cond_operand(self, read: Callable[[], Word], complaint: str) -> Word:
        """A word of the expression; when the text ends inside of it, the condition complains as well."""
        try:
            word = read()
        except SyntaxFailure as failure:
            if not failure.inner:
                failure.more.append((self.last_line(), complaint))
            raise
        self.peek()
        return word

    def _cond_newlines(self) -> None:
        while self.kind == NEWLINE:
            self.skip()

    def _cond_or(self) -> CondExpr:
        items = [self._cond_and()]
        while self.kind == OPERATOR and self.raw == "||":
            self.skip()
            items.append(self._cond_and())
        return items[0] if len(items) == 1 else CondOr(tuple(items))

    def _cond_and(self) -> CondExpr:
        items = [self._cond_term()]
        while self.kind == OPERATOR and self.raw == "&&":
            self.skip()
            items.append(self._cond_term())
        return items[0] if len(items) == 1 else CondAnd(tuple(items))

    def _cond_term(self) -> CondExpr:
        self._cond_newlines()
        negated = False
        while self.kind == WORD and self.raw == "!":
            negated = not negated
            self.skip()
            self._cond_newlines()
        expr = self._cond_primary()
        if negated:
            expr = CondNot(expr)
        if self.kind == NEWLINE:
            # A newline may follow a whole term, not the first word of one.
            self._cond_newlines()
        return expr

    def _cond_primary(self) -> CondExpr:
        if self.kind == OPERATOR and self.raw == "(":
            self.deeper()
            opened = self.line_at(self.start)
            self.skip()
            try:
                expr = self._cond_or()
            except SyntaxFailure as failure:
                if not isinstance(failure, TooDeep) and not failure.inner:
                    failure.more.append((opened, "expected `)'"))
                raise
            self.depth -= 1
            if self.kind != OPERATOR or self.raw != ")":
                self._whole_token("expected `)'", lambda: self.line_at(self.start))
                prefix = (
                    ""
                    if self.kind in (WORD, COMPLEX) and self.raw != "]]"
                    else f"unexpected token `{self.token_text()}', "
                )
                raise self._cond_failure(f"{prefix}expected `)'")
            self.skip()
            return CondGroup(expr)
        if self.kind not in (WORD, COMPLEX) or (self.kind == WORD and self.raw == "]]"):
            if self.kind == OPERATOR:
                raise self._cond_failure(f"unexpected token `{self.raw}' in conditional command")
            # bash says nothing about a missing operand and stops.
            raise self._cond_failure("" if self.kind != EOF else "unexpected token `EOF' in conditional command")
        if self.kind == WORD and self.raw in UNARY:
            return self._cond_unary()
        left = self._cond_operand(self.read_word, "unexpected token `\udcff' in conditional command")
        if self.kind == WORD and self.raw in BINARY:
            return self._cond_binary(left, self.raw)
        if self.kind == OPERATOR and self.raw in "<>":
            return self._cond_binary(left, self.raw)
        if (self.kind == WORD and self.raw == "]]") or (self.kind == OPERATOR and self.raw in ("&&", "||", ")")):
            return CondWord(left)
        if self.kind in (WORD, COMPLEX):
            message = "conditional binary operator expected"
            self._whole_token(message, self.last_line)
            raise self._cond_failure(message, self.pos)
        raise self._cond_failure(f"unexpected token `{self.token_text()}', conditional binary operator expected")

    def _cond_unary(self) -> CondExpr:
        op = self.raw
        self.skip()
        if self.kind in (WORD, COMPLEX) and self.raw != "]]":
            return CondUnary(op, self._cond_operand(self.read_word, _UNARY_ARGUMENT))
        raise self._cond_failure(f"unexpected argument `{self.token_text()}' to conditional unary operator")

    def _cond_binary(self, left: Word, op: str) -> CondExpr:
        self.skip()
        if op == "=~" and self.kind == OPERATOR and self.raw == ")":
            raise self._cond_failure("syntax error in conditional expression: unexpected token `)'")
        if self.kind not in (WORD, COMPLEX) and not (
            op == "=~" and self.kind == OPERATOR and self.raw in _REGEX_STARTS
        ):
            raise self._cond_failure(f"unexpected argument `{self.token_text()}' to conditional binary operator")
        if self.kind == WORD and self.raw == "]]":
            raise self._cond_failure("unexpected argument `]]' to conditional binary operator")
        if op == "=~":
            read = self.read_regex
        elif op in ("=", "==", "!="):
            read = self.read_pattern
        else:
            read = self.read_word
        return CondBinary(op, left, self._cond_operand(read, _BINARY_ARGUMENT))
