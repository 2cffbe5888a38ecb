"""Arithmetic expressions put together from the parts of a word."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ramet.shell.expand import arith
from ramet.shell.expand.arith_parse import ArithFailure
from ramet.shell.expand.fetching import kept, kept_key
from ramet.shell.expand.pieces import Text, concat, const
from ramet.shell.expand.values import HUGE
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
        found = code(host.store, values)
        if found is not None:
            return found
        for place in keys:
            values[place] = kept_key(values[place])
        if (size := sum(map(len, values))) > HUGE:
            host.allow_expression(size, texts[0] or values[0])
        whole = texts[0]
        for text, value in zip(texts[1:], values, strict=True):
            whole += value + text
        return int(host.calculate(whole))

    return run
