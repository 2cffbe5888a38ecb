"""`LazySimple`: simple commands whose words are parsed on first access.

Of a script most commands run once or never (branches, functions of a library): where such a command ends is known from
one match, and until it is compiled its text is all that is kept of it.
Rule: only commands that cannot fail to parse stay unparsed; access gives the tree that parsing at once would give.
"""

from __future__ import annotations

import re
from typing import Any

from ramet.shell.syntax.nodes import Assignment, Redirect, Simple, Word
from ramet.shell.syntax.scanner import SIMPLE
from ramet.shell.syntax.words import WORDS, remember

_WORDS = re.compile(SIMPLE, re.ASCII).findall
_WORDS_AND_REDIRECTIONS = re.compile(r"[ \t]*+(?:([0-9]?)(>>|[<>]&?)[ \t]*+)?(" + SIMPLE + ")", re.ASCII).findall


def read_plain(text: str, line: int, words: list[Word | Assignment], redirects: list[Redirect]) -> None:
    """Adds the words and redirections of a stretch of text that `simple.SimpleReader._bulk` has looked over."""
    known = WORDS.get
    if "<" not in text and ">" not in text:
        words += [known(raw) or remember(raw) for raw in _WORDS(text)]
        return
    for fd, op, raw in _WORDS_AND_REDIRECTIONS(text):
        word = known(raw) or remember(raw)
        if op:
            redirects.append(Redirect(op, word, int(fd) if fd else None, None, None, line))
        else:
            words.append(word)


class LazySimple(Simple):
    """A simple command of one line without assignments, of which the first word is read.

    After the first access it is a `Simple` like any other.
    """

    __slots__ = ()

    def __init__(self, first: Word, text: str, line: int) -> None:
        put: Any = self
        put._first = first
        put._text = text
        put.assigns = ()
        put.line = line

    def __getattr__(self, name: str) -> Any:
        """The words or the redirections, for the first time; threads that ask at once all find the same."""
        if name != "words" and name != "redirects":
            raise AttributeError(name)
        words: list[Word | Assignment] = [self._first]
        redirects: list[Redirect] = []
        read_plain(self._text, self.line, words, redirects)
        put: Any = self
        put.words, put.redirects = tuple(words), tuple(redirects)
        put.__class__ = Simple
        return put.words if name == "words" else put.redirects


def first_word(command: Simple) -> Word | Assignment | None:
    """The first word of a command; the others stay unread."""
    if type(command) is LazySimple:
        return command._first
    return command.words[0] if command.words else None
