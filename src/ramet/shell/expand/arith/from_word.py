"""Build arithmetic expressions from the parts of a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ramet.shell.expand.arith import evaluate as arith
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import TooLong
from ramet.shell.expand.word.param_lookup import escape_key, escaped_key
from ramet.shell.expand.word.pieces import Text, concat, const
from ramet.shell.syntax.nodes import Literal, Part


def subscripted(parts: tuple[Part, ...], pieces: list[Text]) -> set[int]:
    """Return which parts of an expression are expanded or quoted in subscripts; mark brackets in the others.

    Where anything is expanded, bash expands subscripts first and then allows none within them.
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
            marked = ""
            for piece in _BRACKETS(part.text):
                inner = depth > (piece == "]")
                depth = max(0, depth + (piece == "[") - (piece == "]"))
                marked += "\\" + piece if inner and piece in "[]" else piece
            pieces[place] = const(marked)
    return subscripts


_BRACKETS: Final = re.compile(r"[^][]+|[][]").findall


def joined_pieces(pieces: list[Text], subscripts: set[int]) -> Text:
    """Return the way to the text of an expression."""
    return concat([escaped_key(piece) if place in subscripts else piece for place, piece in enumerate(pieces)])


def filled(pieces: list[Text], subscripts: set[int]) -> Callable[[Any], int] | None:
    """Compile an expression whose expansions are numbers, as nearly always, once; None where that is not possible."""
    texts, keys = [""], list[int]()
    holes: list[Callable[[Any], Any]] = []
    for place, piece in enumerate(pieces):
        if piece.const is not None:
            texts[-1] += escape_key(piece.const) if place in subscripts else piece.const
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
            values[place] = escape_key(values[place])
        whole = texts[0]
        for text, value in zip(texts[1:], values, strict=True):
            whole += value + text
        return calculated(host, whole)

    return run


def calculated(host: Any, expression: str) -> int:
    """Return the value of an expression. `TooLong` carries the way on for a caller that can offload it."""
    try:
        host.allow_expression(len(expression), expression)
    except TooLong as error:
        error.resume = partial(arith.evaluate, expression, host.variables)
        raise
    return int(host.calculate(expression))
