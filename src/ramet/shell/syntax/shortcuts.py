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

_N = r"[A-Za-z_][A-Za-z0-9_]{0,65535}+(?![A-Za-z0-9_])"
_USUAL_OPERATION = r"(?:(:[-=?+]|[-=?+]|##?|%%?)([A-Za-z0-9_./,: *-]{0,65535}+))?"
USUAL_DOLLAR = re.compile(rf"\$(?:({_N})(?!\\)|\{{({_N}){_USUAL_OPERATION}\}})", re.ASCII).match
"""``$x``, ``${x}`` and ``${x:-text}`` and its kin with plain text, which mean the same in every mode."""
_USUAL = re.compile(
    r"'([^']*+)'|\$(" + _N + r")"
    r"|\"([^\"`$\\]*+)\$(?:(" + _N + r")|\{(" + _N + ")" + _USUAL_OPERATION + r"\})([^\"`$\\]*+)\"",
    re.ASCII,
).fullmatch
"""The shapes that most words with quotes or a dollar have: ``'text'``, ``$x`` and ``"text$x text"``."""


def usual_param(name: str, op: str | None, text: str) -> Param:
    if op is None:
        return Param(name)
    return Param(name, None, "value", op, (Word((Literal(text),)) if text else EMPTY,))


def usual_word(raw: str) -> Word | None:
    """The word when it has one of the usual shapes. ``raw`` matches `scanner.SIMPLE`.

    The commonest are told by a glance at their characters, which costs a fraction of a match.
    """
    if raw[0] == '"':
        inside = raw[1:-1]
        if '"' not in inside and "\\" not in inside:
            if "$" not in inside:
                return Word((DoubleQuoted((Literal(inside),) if inside else ()),))
            if inside[0] == "$" and inside.isascii() and (name := inside[1:]).isidentifier():
                return Word((DoubleQuoted((Param(name, None, "value", "", (), False),)),))
    elif "$" not in raw and '"' not in raw and "'" not in raw and "\\" not in raw:
        return Word((Literal(raw),))
    m = _USUAL(raw)
    if m is None:
        return None
    single, bare, before, name, braced, op, argument, after = m.groups()
    if bare is not None:
        return Word((Param(bare, None, "value", "", (), False),))
    if single is not None:
        return Word((SingleQuoted(single),))
    param: Part = usual_param(braced, op, argument) if name is None else Param(name, None, "value", "", (), False)
    if before:
        return Word((DoubleQuoted((Literal(before), param, Literal(after)) if after else (Literal(before), param)),))
    return Word((DoubleQuoted((param, Literal(after)) if after else (param,)),))
