"""Tilde expansion: `~` and `~user` at the start of words and after colons of assignments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ramet.shell.expand.arith.numerals import LONGEST_NAME
from ramet.shell.expand.word.pieces import Text, const
from ramet.shell.expand.word.quote_marks import Quote, marked
from ramet.shell.syntax.nodes import Escaped, Literal, Part, Word

ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,65535}+\+?=")
"""What a word begins with that has the tildes of an assignment."""
TILDE_WORD: Final = re.compile(r"~([^/:]*)")


def untilded(word: Word) -> Word:
    """A word that looks like an assignment and is none: its tildes are text."""
    first = word.parts[0] if word.parts else None
    if type(first) is not Literal or "~" not in first.text or not ASSIGNMENT.match(first.text):
        return word
    pieces: list[Part] = []
    for number, piece in enumerate(first.text.split("~")):
        pieces += [Escaped("~")] if number else []
        pieces += [Literal(piece)] if piece else []
    return Word((*pieces, *word.parts[1:]))


def tilded(text: str, first: bool, last: bool, assign: bool, quote: Quote, loose: bool) -> Iterator[Text]:
    """The text of a word's first or a later part, with `~` at the start of the word (and after each colon of an
    assignment) expanded.

    `loose`: the word only looks like an assignment, which in POSIX mode is not enough.
    """
    rest, at_start = text, first
    while rest:
        if at_start and rest[0] == "~":
            match = TILDE_WORD.match(rest, 0, LONGEST_NAME)  # no user name is longer
            assert match is not None
            if match.end() < min(len(rest), LONGEST_NAME) or (last and len(rest) < LONGEST_NAME):
                yield _tilde(match[1], quote, loose)
                rest = rest[match.end() :]
                at_start = False
                continue
        cut = rest.find(":") if assign else -1
        if cut < 0:
            yield const(rest)
            return
        yield const(rest[: cut + 1])
        rest, at_start = rest[cut + 1 :], True


def _tilde(prefix: str, quote: Quote, loose: bool) -> Text:
    def run(host: Any) -> str:
        found = None if loose and host.posix else host.tilde(prefix)
        return "~" + prefix if found is None else marked(found, quote)

    return Text(False, run)
