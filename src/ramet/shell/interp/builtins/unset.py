"""unset: of variables, elements, name references and functions."""

from __future__ import annotations

from functools import partial
from typing import Final

from ramet.concurrency.offload import checkpoint, offload
from ramet.concurrency.sizes import BATCH, LARGE
from ramet.shell.expand.arith.numerals import is_name
from ramet.shell.expand.errors import BadSubscript, Fatal, Readonly, ShellError
from ramet.shell.expand.values import READONLY, Assoc, Dynamic, Indexed, NameRef
from ramet.shell.interp.builtins.usage import flags_of
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state import function_table
from ramet.shell.interp.state.assignment_hooks import NOTICED, compatibility
from ramet.shell.interp.state.scopes import split_subscript
from ramet.shell.interp.state.shell_state import Builtin, ShellState


def unset(sh: ShellState, argv: list[str]) -> Result:
    options = flags_of(sh, argv, "fvn")
    if options is None:
        return 2
    functions, variables, references = ("f" in options[0], "v" in options[0], "n" in options[0])
    if functions and variables:
        return sh.error("unset: cannot simultaneously unset a function and a variable")
    if len(options[1]) > BATCH or any(len(word) > LARGE for word in options[1]):
        return drive(offload(sh.budget, partial(_unset_all, sh, options[1], functions, variables, references)))
    return _unset_all(sh, options[1], functions, variables, references)


def _unset_all(sh: ShellState, words: list[str], functions: bool, variables: bool, references: bool) -> int:
    status = 0
    for word in words:
        checkpoint()
        try:
            status = _unset_one(sh, str(word), functions, variables, references) or status
        except Readonly as error:
            status = sh.error(f"unset: {error.name}: cannot unset: readonly variable")
        except (BadSubscript, Fatal):
            raise
        except ShellError as error:
            status = sh.error(f"unset: {error.message}")
    return status


def _unset_one(sh: ShellState, word: str, functions: bool, variables: bool, references: bool) -> int:
    store = sh.variables
    if functions:
        return _unset_function(sh, word)
    name, subscript = split_subscript(word)
    if (
        "assoc_expand_once" in sh.shopts
        and word.endswith("]")
        and sh.variables.is_assoc(base := word.partition("[")[0])
    ):
        name, subscript = base, word[len(base) + 1 : -1]
    if not is_name(name):
        if not variables:
            return _unset_function(sh, word)
        sh.complain(f"unset: `{word}': not a valid identifier")
        return 1
    if references:
        store.writable(name)
        if subscript is None and type(store.values.get(name)) is NameRef:
            store.unset(name)
        return 0
    target, deeper = store.follow(name)
    if target != name and deeper is not None and subscript is None:
        subscript = deeper
    name = target or name
    if subscript is not None:
        return _unset_element(sh, name, subscript)
    if name == "PIPESTATUS" and isinstance(store.values.get(name), Dynamic):
        return 0  # every command makes it again
    if name in store.values:
        store.unset(name)
        if name in NOTICED:
            NOTICED[name](sh, None)
    elif not variables and word in sh.functions:
        return _unset_function(sh, word)
    return 0


def _unset_function(sh: ShellState, name: str) -> int:
    if function_table.flags(sh, name) & READONLY:
        return sh.error(f"unset: {name}: cannot unset: readonly function")
    function_table.forget(sh, name)
    return 0


def _unset_element(sh: ShellState, name: str, subscript: str) -> int:
    store = sh.variables
    value = store.values.get(name)
    if not subscript:
        return 0
    if name not in store.values:
        return 0
    if isinstance(value, Dynamic) and value.assoc:
        return 0  # what is computed stays
    if not isinstance(value, Indexed | Assoc):
        store.writable(name)
        if (value is None or isinstance(value, str)) and subscript not in ("@", "*") and not sh.evaluate_key(subscript):
            store.unset(name)
            return 0
        return sh.error(f"unset: {name}: not an array variable")
    if subscript in ("@", "*") and compatibility(sh) < 52:
        store.unset(name)
        return 0
    if subscript in ("@", "*") and not (isinstance(value, Assoc) and subscript in value.items):
        store.writable(name)
        if isinstance(value, Indexed):
            # Of an associative array only the key `@` would go.
            store.values[name] = Indexed([], store.token)
        return 0
    if isinstance(value, Assoc):
        key = subscript if "assoc_expand_once" in sh.shopts else sh.expand_key(subscript)
        if not key:
            sh.complain(f"unset: [{subscript}]: bad array subscript")
            return 1
        store.unset_item(name, key)
    else:
        store.unset_item(name, sh.evaluate_key(subscript))
    return 0


TABLE: Final[dict[str, Builtin]] = {"unset": unset}
