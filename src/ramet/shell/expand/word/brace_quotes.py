"""Braces in double quotes that stand in `${...}` in double quotes: for bash, which expands braces in the text of a word
and knows no nesting of quotes there, the inner quotes end the outer ones (`"${x:-"{a,b}"}"` is two words)."""

from __future__ import annotations

from collections.abc import Sequence

from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import DoubleQuoted, Literal, Param, Part, Simple, Word
from ramet.shell.syntax.parser import Parser


def bared(parts: Sequence[Part]) -> bool:
    """Is there a brace in such quotes?"""
    return any(isinstance(part, DoubleQuoted) and _holds_quotes(part.parts) for part in parts)


def _holds_quotes(parts: Sequence[Part]) -> bool:
    params = [part for part in parts if isinstance(part, Param) and part.args]  # a list: they may nest in thousands
    while params:
        for word in params.pop().args:
            for part in word.parts:
                if isinstance(part, Param):
                    params.append(part)
                elif isinstance(part, DoubleQuoted) and any(
                    isinstance(one, Literal) and "{" in one.text for one in part.parts
                ):
                    return True
    return False


def bare_units(text: str) -> list[str | Part]:
    """The text of a word as brace expansion sees it: characters, and as `Literal` what is quoted for it."""
    units: list[str | Part] = []
    quote, within, place = "", 0, 0
    while place < len(text):
        char, following = text[place], text[place + 1 : place + 2]
        width, active = 1, False
        if char == "\\" and quote != "'":
            width = 2
        elif char == "$" and following == "{" and quote != "'":
            width = 2
            within += not quote
        elif following == "(" and (char == "$" or (char in "<>" and not quote)) and quote in ("", '"'):
            width = _substitution(text, place + 1) - place
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif within:
            within += (char == "{") - (char == "}")
        else:
            active = True
        units.append(char if active else Literal(text[place : place + width]))
        place += width
    return units


def _substitution(text: str, begin: int) -> int:
    """Where the parenthesis that opens here is closed."""
    level = 0
    for place in range(begin, len(text)):
        level += (text[place] == "(") - (text[place] == ")")
        if not level:
            return place + 1
    return len(text)


def reread(units: Sequence[str | Part]) -> Word | None:
    """What such units are as a word; None where they are none."""
    text = "".join([unit.text if isinstance(unit, Literal) else str(unit) for unit in units])
    try:
        script = Parser(f": {text}").next()
    except SyntaxFailure:
        return None
    node = script.statements[0].node if script is not None and script.statements else None
    return (
        node.words[1] if isinstance(node, Simple) and len(node.words) == 2 and isinstance(node.words[1], Word) else None
    )
