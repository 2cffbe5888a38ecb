"""Assignments: scalar and array, with subscripts of any text, and the compound values of declarations."""

from __future__ import annotations

import re

from ramet.shell.syntax.errors import SyntaxFailure, Unready
from ramet.shell.syntax.nodes import ArrayElement, ArrayLiteral, Assignment, Literal, Part, Word
from ramet.shell.syntax.redirects import RedirectReader
from ramet.shell.syntax.scanner import COMPLEX, EOF, NEWLINE, OPERATOR, WORD

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,65535}+(?:\[|\+?=)", re.ASCII).match
_CUT_ASSIGNMENT = re.compile(
    r"[A-Za-z_](?>(?:[A-Za-z0-9_]{1,4096}+|\\\n){0,200})(?:\[|\+?(?>(?:\\\n){0,200})=)", re.ASCII
).match
_assignments: dict[str, Assignment] = {}
_ASSIGNMENTS_KEPT = 4096
_WORD_ENDS = frozenset(" \t\n;&|<>()")


def _ends_word(subscript: Word) -> bool:
    return any(isinstance(part, Literal) and not _WORD_ENDS.isdisjoint(part.text) for part in subscript.parts)


def _in_one(array: ArrayLiteral, head: str) -> list[Part]:
    """The elements with the parentheses around them, as parts of one word."""
    parts: list[Part] = [Literal(head)]
    for count, element in enumerate(array.elements):
        if count:
            parts.append(Literal(" "))
        if element.subscript is not None:
            sign = "+=" if element.append else "="
            parts += (Literal("["), *element.subscript.parts, Literal("]" + sign))
        parts += element.value.parts
    parts.append(Literal(")"))
    return parts


class AssignmentReader(RedirectReader):
    """Reads assignments."""

    def _assignment(self, raw: str, argument: bool = False) -> Assignment | None:
        """Reads the word in sight as an assignment; None, with nothing consumed, when it is none.

        The subscript of an `argument` is part of a word, and ends with it.
        """
        known = _assignments.get(raw) if raw else None
        start, stop = self.start, self.stop
        if known is not None and not self.text.startswith("(", stop):
            self.pos = stop
            return known
        m = ASSIGNMENT(self.text, start, self.n)
        if m is None and not raw:
            m = _CUT_ASSIGNMENT(self.text, start, self.n)
        if m is None:
            return None
        head = m[0].replace("\\\n", "")
        self.pos = m.end()
        subscript = None
        if head[-1] == "[":
            name = head[:-1]
            try:
                subscript = self.subscript()
            except SyntaxFailure:
                if not argument:
                    raise  # else it is something in the lines that follow
            if argument and (subscript is None or _ends_word(subscript)):
                self.pos = start
                self.peek()  # the word is in sight again, whatever the search for its bracket has seen
                return None
            if subscript is None:
                raise self.missing("]", start)
            if self.text.startswith("=", self.pos):
                append = False
                self.pos += 1
            elif self.text.startswith("+=", self.pos):
                append = True
                self.pos += 2
            else:
                self.pos = start
                self.peek()
                return None
        else:
            append = head[-2] == "+"
            name = head[:-2] if append else head[:-1]
        if self.text.startswith("(", self.pos) and self.pos < self.n:
            opened = self.pos
            array = self._array(opened)
            if self.pos >= self.n or self.text[self.pos] in _WORD_ENDS:
                return Assignment(name, subscript, append, array)
            # `a=(x)y`: bash takes all of it for one text.
            return Assignment(name, subscript, append, Word((*_in_one(array, "("), *self.rest_of_word().parts)))
        found = Assignment(name, subscript, append, self.rest_of_word())
        if raw and self.pos == stop and len(raw) < 80:
            if len(_assignments) >= _ASSIGNMENTS_KEPT:
                _assignments.clear()
            _assignments[raw] = found
        return found

    def _bracketed(self) -> Word | None:
        """The word in sight where a command begins, if it is a name with a bracket that closes behind blanks or the
        like: to bash it might become an assignment, and all of it is one word."""
        start = self.start
        m = ASSIGNMENT(self.text, start, self.n)
        if m is None or m[0][-1] != "[":
            return None
        self.pos = m.end()
        inner = self.subscript()
        if inner is None or not _ends_word(inner):
            self.pos = start
            self.peek()
            return None
        return Word((Literal(m[0]), *inner.parts, Literal("]"), *self.rest_of_word().parts))

    def _array(self, opened: int) -> ArrayLiteral:
        """Reads ``(...)`` of a compound assignment; ``pos`` is on the parenthesis."""
        self.pos += 1
        try:
            return self._elements(opened)
        except SyntaxFailure as failure:
            if failure.fatal and failure.message.startswith("unexpected EOF"):
                # A quote or the like is open: all that follows was read in search of its end.
                failure.status, failure.lenient, failure.array = 1, False, True
                failure.more.append((self.last_line(), "syntax error: unexpected end of file"))
            raise

    def _elements(self, opened: int) -> ArrayLiteral:
        elements: list[ArrayElement] = []
        self.peek()
        while True:
            if self.kind == NEWLINE:
                if self.pos > self.horizon:
                    raise Unready
                self.skip()
            elif self.kind in (WORD, COMPLEX):
                elements.append(self._element())
                self.peek()
            elif self.kind == OPERATOR and self.raw == ")":
                self.pos = self.stop
                return ArrayLiteral(tuple(elements))
            else:
                failure = self.missing(")", opened) if self.kind == EOF else self.failure()
                raise SyntaxFailure(failure.message, failure.line, failure.second, status=1, fatal=False)

    def _element(self) -> ArrayElement:
        if self.text.startswith("[", self.start):
            place = self.start
            self.pos = place + 1
            subscript = self.subscript()
            if subscript is None:
                raise self.missing("]", place)
            if self.text.startswith(("=", "+="), self.pos):
                append = self.text[self.pos] == "+"
                self.pos += 2 if append else 1
                return ArrayElement(subscript, append, self.rest_of_word())
        return ArrayElement(None, False, self.read_word())

    def _raw_compound(self) -> Word:
        """``let x=(1+2)*3``: the parentheses are text of the word, and yet hold nothing but words, as those of arrays
        do."""
        begin, self.pos = self.start, self.stop
        self._array(self.pos)
        text = self.text[begin : self.pos]
        parts = self.rest_of_word().parts
        if parts and isinstance(parts[0], Literal):
            text += parts[0].text
            parts = parts[1:]
        return Word((Literal(text), *parts))

    def _evaluated_compound(self) -> Word:
        """``eval a=(...)``: words like any others, and one text with the parentheses around them."""
        head = self.raw
        self.pos = self.stop
        return Word(tuple(_in_one(self._array(self.pos), head + "(")))
