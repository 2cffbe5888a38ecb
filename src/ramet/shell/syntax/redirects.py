"""Redirections and here-documents: operators with their targets, and the bodies that follow the line.

Rule: a body is read when the newline after its line is consumed, and put into the redirection that asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ramet.concurrency.offload import checkpoint
from ramet.shell.syntax.conditions import ConditionReader
from ramet.shell.syntax.errors import Unready
from ramet.shell.syntax.nodes import (
    AnsiQuoted,
    DoubleQuoted,
    Escaped,
    HereDoc,
    Literal,
    Part,
    Redirect,
    Simple,
    SingleQuoted,
    Word,
)
from ramet.shell.syntax.printer import word_text
from ramet.shell.syntax.scanner import COMPLEX, NEWLINE, OPERATOR, WORD, Options
from ramet.shell.syntax.shortcuts import EMPTY

CLOSERS = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])
"""Reserved words that end a list."""
DUPLICATIONS = frozenset(["<&", ">&"])
_CLOSED = Word((Literal("-"),))
REDIRECTIONS = frozenset(["<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<", "<<-", "<<<"])
_FD_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,65535}+(?:\[[^]]*\])?)\}", re.ASCII).fullmatch


class _Pending:
    """A here-document whose body comes after the next newline."""

    __slots__ = ("delimiter", "line", "put_off", "quoted", "redirect", "strip")

    def __init__(self, redirect: Redirect, delimiter: str, quoted: bool, line: int) -> None:
        self.redirect = redirect
        self.delimiter = delimiter
        self.quoted = quoted
        self.strip = redirect.op == "<<-"
        self.line = line
        self.put_off = False  # a substitution that ended in its line has left it to the command around it


class RedirectReader(ConditionReader):
    """Reads redirections. ``warnings`` collects (line, message) pairs for what bash warns about and goes on."""

    def __init__(self, text: str, options: Options, start_line: int) -> None:
        super().__init__(text, options, start_line)
        self.warnings: list[tuple[int, str]] = []
        self._pending: list[_Pending] = []
        self._late: Simple | None = None  # a command whose line is that where the documents end
        self._closing = ""  # what ends the text we are in besides its end: `)` inside a command substitution

    def fragment(self, body: str, line: int) -> Word:
        """Read a separate text as the body of an unquoted here-document that begins at ``line``."""
        raise NotImplementedError

    def _redirects(self) -> tuple[Redirect, ...]:
        """The redirections after a compound command."""
        if self.kind == NEWLINE or (self.kind == OPERATOR and self.raw not in REDIRECTIONS):
            return ()
        found: list[Redirect] = []
        while True:
            if self.kind == OPERATOR and self.raw in REDIRECTIONS:
                found.append(self._redirect(None, None))
            elif (
                self.kind == WORD
                and self.text.startswith(("<", ">"), self.stop)
                and self.stop < self.n
                and self._descriptor(self.raw)
            ):
                found.append(self._redirect(*self._prefix(self.raw)))
            else:
                if found and self.kind == WORD and self.raw in CLOSERS:
                    # After a redirection these are no reserved words: `{ (a) > f }`.
                    self.unexpected()
                return tuple(found)

    def _descriptor(self, raw: str) -> bool:
        """Is this word, right before a redirection operator, a descriptor?"""
        return _is_number(raw) or (raw[0] == "{" and _FD_VARIABLE(raw) is not None)

    def _prefix(self, raw: str) -> tuple[int | None, str | None]:
        self.skip()
        return (None, raw[1:-1]) if raw[0] == "{" else (int(raw), None)

    def _redirect(self, fd: int | None, var: str | None) -> Redirect:
        op, line = self.raw, self.line_at(self.start)
        if op in DUPLICATIONS and self.text.startswith("-", self.stop):
            # `>&-` is one token: what follows it is another word.
            self.pos = self.stop + 1
            self.peek()
            return Redirect(op, _CLOSED, fd, var, None, line)
        self.skip()
        if self.kind not in (WORD, COMPLEX) or (
            self.kind == WORD
            and op not in DUPLICATIONS
            and _is_number(self.raw)
            and self.text.startswith(("<", ">"), self.stop)
        ):
            self.unexpected()  # a number before another redirection is not a file name
        target = self.read_word()
        if op == "<<" or op == "<<-":
            delimiter, quoted = _delimiter(target.parts)
            redirect = Redirect(op, target, fd, var, HereDoc(EMPTY, delimiter, quoted), line)
            self._pending.append(_Pending(redirect, delimiter, quoted, line))
        else:
            redirect = Redirect(op, target, fd, var, None, line)
        self.peek()
        return redirect

    def _documents(self) -> None:
        """Reads the bodies that follow the newline just consumed."""
        pending, self._pending = self._pending, []
        for one in pending:
            one.line = self.line_at(self.pos - 1)
            body = self._body(one)
            if one.quoted:
                word = Word((Literal(body),)) if body else EMPTY
            else:
                word = self.fragment(body, self.line_at(self.pos) - body.count("\n") - 1)
            here = HereDoc(word, one.delimiter, one.quoted)
            object.__setattr__(one.redirect, "here", here)
        if self._late is not None:
            object.__setattr__(self._late, "line", self.line_at(self.pos - 1))
            self._late = None

    def _put_off(self, outer: list[_Pending]) -> list[_Pending]:
        """A substitution ends before the bodies of its here-documents: they stand behind the line that it ends in, and
        before those of the command around it."""
        fresh = [one for one in self._pending if not one.put_off]
        if fresh:
            documents = "here-document" if len(fresh) == 1 else "here-documents"
            message = f"warning: command substitution: {len(fresh)} unterminated {documents}"
            self.warnings.append((self.line_at(self.pos), message))
        for one in fresh:
            one.put_off = True
        before = [one for one in outer if one.put_off]
        return [*before, *self._pending, *(one for one in outer if not one.put_off)]

    def _body(self, one: _Pending) -> str:
        """The text up to the delimiter, which is consumed."""
        text, begin = self.text, self.pos
        pos, end, delimiter = begin, self.n, one.delimiter
        while pos < end:
            checkpoint()
            if pos > self.horizon:
                raise Unready
            stop = text.find("\n", pos, end)
            line = text[pos : end if stop < 0 else stop]
            bare = line.lstrip("\t") if one.strip else line
            if bare == delimiter:
                self.pos = end if stop < 0 else stop + 1
                return self._stripped(text[begin:pos], one)
            if self._closing and bare.startswith(delimiter) and self._closing in bare[len(delimiter) :]:
                # `$(cat <<E ... E)`: the parenthesis may follow the delimiter, somewhere in its line.
                self.pos = pos + len(line) - len(bare) + len(delimiter)
                self._unfinished(one, self.line_at(pos))
                return self._stripped(text[begin:pos], one)
            if not one.quoted and stop >= 0 and continues(text, pos, stop):
                # A continued line is looked at as a whole.
                first = pos
                while stop >= 0 and continues(text, pos, stop):
                    pos = stop + 1
                    stop = text.find("\n", pos, end)
                whole = text[first : end if stop < 0 else stop].replace("\\\n", "")
                if (whole.lstrip("\t") if one.strip else whole) == delimiter:
                    self.pos = end if stop < 0 else stop + 1
                    return self._stripped(text[begin:first], one)
            if stop < 0:
                break
            pos = stop + 1
        self.pos = end
        self._unfinished(one, self.last_line() - 1)
        return self._stripped(text[begin:end], one)

    def _unfinished(self, one: _Pending, line: int) -> None:
        wanted = f"warning: here-document at line {one.line} delimited by end-of-file (wanted `{one.delimiter}')"
        self.warnings.append((line, wanted))

    def _stripped(self, body: str, one: _Pending) -> str:
        if not one.strip:
            return body
        # The text after a line continuation does not start a line.
        without = (_TABS if one.quoted else _TABS_OF_LINES).sub
        return without("", body)


def _is_number(raw: str) -> bool:
    """Whether digits are those of a descriptor: what does not fit is a word."""
    return raw.isdigit() and raw.isascii() and len(raw) <= _DIGITS and int(raw) <= _LARGEST


_DIGITS, _LARGEST = 4096, 0x7FFFFFFF


_TABS = re.compile(r"(?m)^\t+")
_TABS_OF_LINES = re.compile(r"(?m)^(?<!\\\n)\t+")


def continues(text: str, begin: int, end: int) -> bool:
    """Does the line end in an odd number of backslashes?"""
    pos = end
    while pos > begin and text[pos - 1] == "\\":
        pos -= 1
    return (end - pos) % 2 == 1


def _delimiter(parts: Sequence[Part]) -> tuple[str, bool]:
    """A here-document's delimiter without its quotes, and whether it had any.

    Quotes inside of a substitution are part of its text: nothing in a delimiter is expanded.
    """
    pieces: list[str] = []
    quoted = False
    for part in parts:
        if isinstance(part, Literal):
            pieces.append(part.text)
        elif isinstance(part, Escaped):
            pieces.append(part.char)
            quoted = True
        elif isinstance(part, SingleQuoted):
            pieces.append(part.text)
            quoted = True
        elif isinstance(part, AnsiQuoted):
            pieces.append(part.value)
            quoted = True
        elif isinstance(part, DoubleQuoted):
            pieces.append(_delimiter(part.parts)[0])
            quoted = True
        else:
            pieces.append(word_text(Word((part,))))
    return "".join(pieces), quoted
