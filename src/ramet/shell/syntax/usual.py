"""Words and parameters of the shapes that most of them have, each recognized by one match."""

from __future__ import annotations

import re

from ramet.shell.syntax.nodes import (
    DoubleQuoted,
    Literal,
    Param,
    Part,
    SingleQuoted,
    Word,
)

EMPTY = Word(())

_N = r"[A-Za-z_][A-Za-z0-9_]*+"
_USUAL_OPERATION = r"(?:(:[-=?+]|[-=?+]|##?|%%?)([A-Za-z0-9_./,: *-]*+))?"
USUAL_DOLLAR = re.compile(rf"\$(?:({_N})(?!\\)|\{{({_N}){_USUAL_OPERATION}\}})", re.ASCII).match
"""``$x``, ``${x}`` and ``${x:-text}`` and its kin with plain text, which mean the same in every mode."""
_USUAL = re.compile(
    r"([^'\"`$\\]++)|'([^']*+)'|\$(" + _N + r")"
    r"|\"([^\"`$\\]*+)(?:\$(?:(" + _N + r")|\{(" + _N + ")" + _USUAL_OPERATION + r"\})([^\"`$\\]*+))?\"",
    re.ASCII,
).fullmatch
"""The shapes that most words have: text, ``'text'``, ``$x`` and ``"text"``, with one plain parameter in it or none."""


def usual_param(name: str, op: str | None, text: str) -> Param:
    if op is None:
        return Param(name)
    return Param(name, None, "value", op, (Word((Literal(text),)) if text else EMPTY,))


def usual_word(raw: str) -> Word | None:
    """The word when it has one of the usual shapes."""
    m = _USUAL(raw)
    if m is None:
        return None
    text, single, bare, before, name, braced, op, argument, after = m.groups()
    if text is not None:
        return Word((Literal(text),))
    if bare is not None:
        return Word((Param(bare, None, "value", "", (), False),))
    if single is not None:
        return Word((SingleQuoted(single),))
    inside: list[Part] = [Literal(before)] if before else []
    if name is not None:
        inside.append(Param(name, None, "value", "", (), False))
    elif braced is not None:
        inside.append(usual_param(braced, op, argument))
    if after:
        inside.append(Literal(after))
    return Word((DoubleQuoted(tuple(inside)),))
