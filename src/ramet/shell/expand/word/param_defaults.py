"""Choosing operators of parameters: `${x:-word}`, `${x:=word}`, `${x:?word}`, `${x:+word}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ramet.shell.expand.errors import Fatal, LineError, Readonly
from ramet.shell.expand.word.params import (
    Found,
    param_text,
    parameter,
    target_of,
    unbound,
)
from ramet.shell.expand.word.pieces import Text
from ramet.shell.syntax.cache import parse
from ramet.shell.syntax.errors import SyntaxFailure
from ramet.shell.syntax.nodes import Param, Simple, Word
from ramet.shell.syntax.printer import word_text


def refuse_unset(host: Any, node: Param) -> None:
    """`set -u` refuses a parameter that is not set, except to say what an array is that has other elements."""
    asked = node.op in ("@a", "@A") and node.subscript is None
    if not (asked and len(host.variables.array(node.name) or ())):
        unbound(host, label_of(node))


def label_of(node: Param) -> str:
    """How an error names the parameter."""
    if node.form in ("indirect", "keys"):
        return f"!{param_text(node)}"
    if node.subscript is not None:
        return param_text(node)
    if node.braced:
        return node.name
    return f"${node.name}" if node.name.isdigit() or (not node.name[0].isalnum() and node.name[0] != "_") else node.name


def is_null(found: Found, colon: bool) -> bool:
    """Whether a choosing operator sees the parameter as absent."""
    if found is None:
        return True
    if isinstance(found, str):
        return colon and not found
    return not found or (colon and len(found) == 1 and not found[0])


def _assign(host: Any, node: Param, key: str | None, value: str) -> Found:
    name = target_of(host, node)
    if node.subscript in ("@", "*"):
        raise LineError(f"{label_of(node)}: bad array subscript", 2)
    if key is not None:
        if not key and host.variables.is_assoc(name):
            raise LineError(f"{label_of(node)}: bad array subscript", 2)
        host.variables.set_element(name, key, value)
        return host.variables.element(name, key)  # type: ignore[no-any-return]
    if not name or not (name[0].isalpha() or name[0] == "_"):
        raise LineError(f"${name}: cannot assign in this way")
    base, bracket, rest = name.partition("[")
    try:
        if bracket:
            host.variables.set_element(base, rest[:-1], value)
        else:
            host.variables.set(name, value)
    except Readonly as error:
        error.status = 2
        raise
    return parameter(host, name)


def _refuse(node: Param, message: str) -> None:
    if not node.args or not node.args[0].parts:
        message = "parameter null or not set" if node.op == ":?" else "parameter not set"
    raise Fatal((f"{label_of(node).lstrip('$')}: ", message))


def message_word(word: Word) -> Word:
    """The message of `"${x?...}"`, which is read again as if no quotes stood around it."""
    written = word_text(word)
    if "'" not in written and "\\" not in written:
        return word
    try:
        script = parse(f"${{x?{written}}}")
    except SyntaxFailure:
        return word
    node = script.statements[0].node if len(script.statements) == 1 else None
    if isinstance(node, Simple) and len(node.words) == 1 and isinstance(again := node.words[0], Word):
        part = again.parts[0]
        if len(again.parts) == 1 and isinstance(part, Param) and part.op == "?" and part.args:
            return part.args[0]
    return word


class Choice(NamedTuple):
    """A choosing operator: how to read the value, and the word to take otherwise."""

    node: Param
    wait: bool
    get: Callable[[Any], Any]
    word: Word
    key: Text | None

    def takes_word(self, found: Found, assign: bool = False) -> bool:
        """`assign`: in the value of an assignment, where a list with one empty value in it is not empty."""
        if assign and isinstance(found, list) and found:
            return self.node.op[-1] == "+"
        colon = self.node.op[0] == ":" and not (self.node.form == "indirect" and isinstance(found, list))
        null = is_null(found, colon)
        return not null if self.node.op[-1] == "+" else null


def chosen(choice: Choice, host: Any, argument: str, key: str | None) -> Found:
    """The value once the word is expanded."""
    last = choice.node.op[-1]
    if last == "=":
        return _assign(host, choice.node, key, argument)
    if last == "?":
        _refuse(choice.node, argument)
    return argument
