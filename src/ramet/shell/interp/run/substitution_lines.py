"""Line numbers in substitutions as bash counts them: it prints the parsed text and parses that again."""

from __future__ import annotations

from typing import Any, Final

from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.cache import parse
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.lazy_simple import LazySimple
from ramet.shell.syntax.nodes import If, Script, Simple, Statement, made_of
from ramet.shell.syntax.printer import substitution_text

_LONGEST: Final = 4096
"""Characters of a substitution that is read again: what is longer keeps the lines that it has in the script."""


def relined(sh: ShellState, body: Script, size: int) -> Script:
    """The same commands with the lines that they have in bash's print of them, from 1 on.

    A body whose print does not read as itself stays as it is.
    """
    if size > _LONGEST or (len(body.statements) == 1 and isinstance(body.statements[0].node, Simple)):
        return body
    made = made_of(body)
    known: Script | bool | None = made.get(relined)
    if known is not None:
        return known if isinstance(known, Script) else body
    try:
        again = parse(substitution_text(body), sh.syntax_options())
    except SyntaxFailure:
        again = body
    if again != body and again != _unfolded(body):
        again = body
    made[relined] = again if again is not body else False  # which would hold itself
    return again


def _unfolded(tree: Any) -> Any:
    """The same tree with every `elif` as an `if` within `else`, which is how it is printed."""
    if isinstance(tree, tuple):
        return tuple(map(_unfolded, tree))
    if not hasattr(type(tree), "_key") or type(tree) is LazySimple:
        return tree
    made = tree._kind(*(_unfolded(getattr(tree, name)) for name in tree._fields))
    if isinstance(made, If):
        *before, last = made.clauses
        made = If((last,), made.orelse, () if before else made.redirects)
        for place, clause in reversed(list(enumerate(before))):
            redirects = () if place else tree.redirects
            made = If((clause,), Script((Statement(made, False),)), redirects)
    return made
