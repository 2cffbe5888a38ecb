"""Arithmetic expressions put together from the parts of a word."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import TooLong
from ramet.shell.expand.long_text import Deferred, Parts, length, whole
from ramet.shell.expand.values import HUGE
from ramet.shell.expand.word.param_lookup import kept, kept_key
from ramet.shell.expand.word.pieces import Text, concat, const
from ramet.shell.syntax.nodes import Literal, Part


def subscripted(parts: tuple[Part, ...], pieces: list[Text]) -> set[int]:
    """Which parts of an expression are expanded or quoted in subscripts; brackets in the others are marked.

    Where anything is expanded, bash expands subscripts by themselves and lets none within them be one.
    """
    subscripts: set[int] = set()
    if all(piece.const is not None for piece in pieces):
        return subscripts
    depth = 0
    for place, part in enumerate(parts):
        if type(part) is not Literal:
            if depth > 0:
                subscripts.add(place)
        elif "[" in part.text or "]" in part.text:
            shown = ""
            for piece in _BRACKETS(part.text):
                inner = depth > (piece == "]")
                depth = max(0, depth + (piece == "[") - (piece == "]"))
                shown += "\\" + piece if inner and piece in "[]" else piece
            pieces[place] = const(shown)
    return subscripts


_BRACKETS: Final = re.compile(r"[^][]+|[][]").findall


def joined_pieces(pieces: list[Text], subscripts: set[int]) -> Text:
    """The text of an expression."""
    return concat([kept(piece) if place in subscripts else piece for place, piece in enumerate(pieces)])


def filled(pieces: list[Text], subscripts: set[int]) -> Callable[[Any], int] | None:
    """An expression whose expansions are numbers, as nearly always: its code is made once, not per text."""
    texts, keys = [""], list[int]()
    holes: list[Callable[[Any], Any]] = []
    for place, piece in enumerate(pieces):
        if piece.const is not None:
            texts[-1] += kept_key(piece.const) if place in subscripts else piece.const
        else:
            if place in subscripts:
                keys.append(len(holes))
            holes.append(piece.run)
            texts.append("")
    code = arith.template(texts)
    if code is None:
        return None

    def run(host: Any) -> int:
        try:
            values = [hole(host) for hole in holes]
        except ArithFailure as failure:
            failure.nested = True
            raise
        found = code(host.variables, values)
        if found is not None:
            return found
        for place in keys:
            values[place] = kept_key(values[place])
        if sum(map(len, values)) > HUGE:
            return calculated(host, Parts(one for pair in zip(texts, [*values, ""], strict=True) for one in pair))
        whole = texts[0]
        for text, value in zip(texts[1:], values, strict=True):
            whole += value + text
        return calculated(host, whole)

    return run


def calculated(host: Any, expression: str | Parts) -> int:
    """The value of an expression; who can wait goes on with one that is too long for those who cannot."""
    if isinstance(expression, Parts):
        parts, head = expression, _head(expression)
        resume: Callable[[], int] = lambda: int(host.calculate(whole(parts)))  # noqa: E731
        size = length(parts)
    else:
        resume, size, head = partial(host.calculate, expression), len(expression), expression
    try:
        host.allow_expression(size, head)
    except TooLong as error:
        error.resume = resume
        raise
    return resume()


def _head(parts: Parts) -> str:
    """What stands first, for a message."""
    return next((one for one in parts if type(one) is str and one), "")


def guarded(pieces: list[Text], run: Callable[[Any], int]) -> Callable[[Any], int]:
    """An expression; one with very many values of an array in it is for those who can wait."""
    larges = [piece.large for piece in pieces if piece.large is not None]
    if not larges:
        return run

    def looked_at(host: Any) -> int:
        for large in larges:
            pending = large(host)
            if pending is not None:
                pending.close()
                try:
                    host.allow_expression(sys.maxsize, "")
                except TooLong as error:
                    error.resume = partial(run, host)
                    raise
        return run(host)

    return looked_at


def bounded(text: Text, always: Callable[[Any], bool]) -> Text:
    """A text that is an expression where it is `always` one: one that is far too long for that is refused before it is
    put together."""
    parts = text.parts
    if text.wait or parts is None:
        return text

    def run(host: Any) -> str:
        found = parts(host)
        if not isinstance(found, Parts):
            return found
        if always(host):
            host.allow_expression(length(found), _head(found))
        return whole(found)

    return text._replace(run=run)


def number_parts(value: Callable[[Any], int]) -> Callable[[Any], str | Parts]:
    """The text of a number, for those who can wait."""

    def parts(host: Any) -> str | Parts:
        try:
            return str(value(host))
        except TooLong as error:
            resume = error.resume
            if resume is None:
                raise
            host.parted = True
            return Deferred(lambda: str(resume()))

    return parts
