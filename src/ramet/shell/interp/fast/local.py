"""Shortcut: `local name=value ...` in a function, without the machinery of `declare`.

It equals the builtin `local` because the words are plain names and values without options, attributes, arrays or
appending, and the variables are ordinary ones: everything else is checked at run time and goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ramet.shell.expand.arith.numerals import is_name
from ramet.shell.expand.errors import Readonly
from ramet.shell.expand.values import NameRef
from ramet.shell.expand.word import to_text as texts
from ramet.shell.interp.run.maybe_async import Result, Run, drive
from ramet.shell.interp.state.scopes import MISSING
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.interp.state.special_variables import KEPT_BY_SHELL
from ramet.shell.interp.state.variables import Variables
from ramet.shell.plain_mode import FAST
from ramet.shell.syntax.nodes import ArrayLiteral, Assignment, Literal, Simple, Word


def compile_local(node: Simple, slow: Callable[..., Any]) -> Run | None:
    """Compile a plain `local` command; None when there is anything unusual about the words."""
    first = node.words[0]
    if not FAST or not 2 <= len(node.words) <= _FEW or not isinstance(first, Word) or len(first.parts) != 1:
        return None
    if type(name := first.parts[0]) is not Literal or name.text != "local":
        return None
    plans: list[tuple[str, Callable[[ShellState], Any] | None]] = []
    for word in node.words[1:]:
        if isinstance(word, Assignment):
            if word.subscript is not None or word.append or isinstance(word.value, ArrayLiteral):
                return None
            value = texts.declared(word.value)
            if value.wait:
                return None
            plans.append((word.name, value.run))
        elif len(word.parts) == 1 and type(word.parts[0]) is Literal and is_name(word.parts[0].text):
            plans.append((word.parts[0].text, None))
        else:
            return None
    if any(name in KEPT_BY_SHELL for name, _ in plans):
        return None
    line = node.line

    def run(sh: ShellState) -> Result:
        store = sh.variables
        if (
            sh.instrumented
            or not store.scopes
            or store.scopes[-1].temporary
            or not sh.frames
            or not sh.frames[-1].function
            or "localvar_inherit" in sh.shopts
            or "local" in sh.functions
            or "local" in sh.disabled
            or sh.allexport
        ):
            return drive(slow(sh, None))
        sh.line, sh.last_command = line, node
        found = [(name, None if value is None else value(sh)) for name, value in plans]
        values, attrs, scope = sh.vars, store.attrs, store.scope_at(len(store.scopes) - 1)
        for name, text in found:
            if name in attrs or name in scope:
                if type(values.get(name)) is NameRef:
                    name = led_to(store, name)
                    if not is_name(name):
                        continue  # an element cannot be local
                try:
                    if name not in scope:
                        store.local(name)
                    scope.temps.discard(name)
                    if text is not None:
                        store.writable(name)
                        store.set(name, text)
                except Readonly as error:
                    sh.status = sh.error(f"local: {error.message}")
                    return 1
            else:
                scope[name] = (values.get(name, MISSING), 0)
                values[name] = text
        name, text = found[-1]
        sh.last_arg = name if text is None else f"{name}={text}"
        sh.pipe_statuses = None
        sh.status = 0
        return 0

    return run


def led_to(store: Variables, name: str) -> str:
    """Return the name that becomes local: after `local -n r=x` in the same function, `local r` makes `x` local."""
    own = store.scopes[store._own_depth()]
    for _ in range(len(own) + 1):
        value = store.values.get(name)
        if name not in own or type(value) is not NameRef or not value.target:
            break
        name = value.target
    return name


_FEW: Final = 64
"""Variables that are declared without a turn of the event loop."""
