"""The lines of substitutions as bash counts them: it prints what it has read, and reads that when it runs it."""

from __future__ import annotations

from itertools import islice
from typing import Final

from ramet.shell.interp.session import Session
from ramet.shell.syntax.cache import parse
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import Script, Simple
from ramet.shell.syntax.printer import substitution_text

_relined: dict[int, tuple[Script, Script]] = {}
_KEPT: Final = 1024
_FEW: Final = 16
_LONGEST: Final = 4096
"""Characters of a substitution that is read again: what is longer keeps the lines that it has in the script."""


def relined(sh: Session, body: Script, size: int) -> Script:
    """The same commands with the lines that they have in bash's print of them, from 1 on.

    A body whose print does not read as itself, such as one with `elif`, stays as it is.
    """
    if size > _LONGEST or (len(body.statements) == 1 and isinstance(body.statements[0].node, Simple)):
        return body
    known = _relined.get(id(body))
    if known is not None and known[0] is body:
        return known[1]
    try:
        again = parse(substitution_text(body), sh.syntax_options())
    except SyntaxFailure:
        again = body
    if again != body:
        again = body
    if len(_relined) >= _KEPT:
        for key in list(islice(_relined, _FEW)):
            del _relined[key]
    _relined[id(body)] = (body, again)
    return again
