"""Shortcut: `$(echo $x)` without a subshell, where a substitution can change nothing but its output.

It equals `run/subshell.py` because nothing in the words assigns, runs or asks which shell it is in. Expanding them here
has no effect, so that anything unusual (a file pattern, a computed variable, an error) is expanded again in a subshell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ramet.concurrency.sizes import LONG_SCRIPT
from ramet.core.errors import LimitExceeded
from ramet.core.streams import Capture
from ramet.shell.expand.arith.evaluate import Unbound
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.errors import ShellError
from ramet.shell.expand.word import compile as words
from ramet.shell.expand.word.braces import has_braces
from ramet.shell.interp.builtins import BUILTINS
from ramet.shell.interp.process.descriptors import Description
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import (
    AnsiQuoted,
    ArithSub,
    CommandSub,
    DoubleQuoted,
    Escaped,
    Literal,
    Param,
    Part,
    Script,
    Simple,
    SingleQuoted,
    Word,
    made_of,
)
from ramet.text.pattern.tokens import PatternTooCostly

_BUILTINS: Final = frozenset(("echo", "printf", "pwd"))
_COUNTING: Final = re.compile(r"%[^%A-Za-z]*[hlLjztq]*n").search
"""The conversion of `printf` that assigns."""
_MOST: Final = 4096
"""Characters of the words that are expanded here."""
_PURE: Final = frozenset(("", "-", ":-", "+", ":+", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,"))
_SPECIAL: Final = frozenset("#?$!0123456789")
"""Parameters that a subshell has as its parent has them; not `$-`, which may lose a letter, and not `$_`."""
_FAILURES: Final = (ShellError, ArithFailure, Unbound, LimitExceeded, PatternTooCostly)


_SUM: Final = re.compile(
    r"(?!.*(?:\+\+|--))(?:[\w\s()+*/%<>&|^~!?:-]|(?<!\w)\$\w+\$(?!\w))*", re.ASCII | re.DOTALL
).fullmatch
"""Arithmetic that assigns nothing, if its variables, or their values between dollars, are numbers, not expressions."""
_NAMES: Final = re.compile(r"\b[A-Za-z_]\w*", re.ASCII).findall


class Plan(NamedTuple):
    name: str
    expand: Callable[[ShellState], Any]
    variables: tuple[str, ...]
    numbers: tuple[str, ...]


_NONE: Final = Plan("", lambda sh: [], (), ())


def prepared(sh: ShellState, node: CommandSub) -> tuple[Plan, list[str]] | None:
    """Return how to run a substitution in this shell, and its words; None where a script could notice."""
    assert node.body is not None
    if not FAST:
        return None
    made = made_of(node.body)
    plan: Plan | None = made.get(_plan)
    if plan is None:
        plan = made[_plan] = (_plan(node.body) if node.size < LONG_SCRIPT else None) or _NONE
    if plan is _NONE or sh.instrumented or sh.traps or plan.name in sh.functions or plan.name in sh.disabled:
        return None
    if sh.aliases and "expand_aliases" in sh.shopts:
        return None
    values = sh.vars
    for name in plan.variables:
        value = values.get(name, "")
        if type(value) is not str or len(value) > _MOST:
            return None
    for name in plan.numbers:
        value = values.get(name)
        if type(value) is not str or not value.isdigit():
            return None
    argv = _expanded(sh, plan)
    if argv is None or sum(map(len, argv)) > _MOST:
        return None
    if plan.name == "printf" and (len(argv) < 2 or argv[1][:1] == "-" or _COUNTING(argv[1])):
        return None
    return plan, argv


def _expanded(sh: ShellState, plan: Plan) -> list[str] | None:
    """Return the words; None where they must be expanded in a subshell."""
    had_globs = sh.has_globs
    sh.has_globs = False
    try:
        argv = plan.expand(sh)
        if type(argv) is not list:
            argv.close()
            return None
        return None if sh.has_globs else argv
    except _FAILURES:
        return None  # the subshell reports it
    finally:
        sh.has_globs = had_globs


async def run(sh: ShellState, plan: Plan, argv: list[str], capture: Capture) -> int:
    """Run the builtin with its output going to the capture."""
    fds = sh.fds
    before = fds.get(1)
    fds[1] = Description(capture)
    try:
        result = BUILTINS[plan.name](sh, argv)
        return result if isinstance(result, int) else await result
    finally:
        if before is None:
            del fds[1]
        else:
            fds[1] = before


def _plan(body: Script) -> Plan | None:
    statement = body.statements[0] if len(body.statements) == 1 else None
    if statement is None or statement.background or not isinstance(node := statement.node, Simple):
        return None
    if node.assigns or node.redirects or not node.words:
        return None
    plain = [word for word in node.words if isinstance(word, Word)]
    first = plain[0].parts if plain else ()
    if len(plain) < len(node.words) or len(first) != 1 or not isinstance(first[0], Literal):
        return None
    name = first[0].text
    if name not in _BUILTINS or (name == "pwd" and len(plain) > 1):
        return None
    uses = _Uses([], [])
    if any(map(has_braces, plain)) or not all(_harmless(part, uses) for word in plain for part in word.parts):
        return None
    compiled = words.words(plain)
    return None if compiled.wait else Plan(name, compiled.run, *map(tuple, uses))


class _Uses(NamedTuple):
    """Variables that must be plain texts, and those that must be numbers, for words to be harmless."""

    variables: list[str]
    numbers: list[str]


def _harmless(part: Part, uses: _Uses) -> bool:
    """Return whether a part may be expanded repeatedly; add to `uses` what that depends on at run time."""
    if isinstance(part, Literal | SingleQuoted | Escaped | AnsiQuoted):
        return True
    if isinstance(part, DoubleQuoted):
        return all(_harmless(inner, uses) for inner in part.parts)
    if isinstance(part, ArithSub):
        return _sum(part.body.parts, uses)
    if not isinstance(part, Param) or part.bad is not None or part.op not in _PURE or part.name == "_":
        return False
    if part.form not in ("value", "length") or part.subscript is not None:
        return False
    if part.name[0].isalpha() or part.name[0] == "_":
        uses.variables.append(part.name)
    elif part.name[0] not in _SPECIAL:
        return False
    return all(_harmless(inner, uses) for word in part.args for inner in word.parts)


def _sum(parts: tuple[Part, ...], uses: _Uses) -> bool:
    """Return the same for an arithmetic expression."""
    text = ""
    for part in parts:
        if isinstance(part, Literal):
            text += part.text
        elif isinstance(part, Param) and part.name.isidentifier() and part == Param(part.name, braced=part.braced):
            text += f"${part.name}$"
        else:
            return False
    uses.numbers.extend(_NAMES(text))
    return _SUM(text) is not None
