"""Values of parameters: `${...}` with all operators but the choosing ones (`param_defaults`).

A getter gives text, None when unset, a list for `@` forms and a `Star` for `*` forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from ramet.concurrency.offload import in_thread, interruptible
from ramet.shell.expand import quote
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, is_name, is_number
from ramet.shell.expand.c_locale import all_ascii, as_bytes, as_text, bytewise
from ramet.shell.expand.errors import ErrexitExempt, Fatal, LineError
from ramet.shell.expand.size_check import joined, total, within
from ramet.shell.expand.values import Assoc, Indexed, NameRef, to_evaluate
from ramet.shell.expand.word import transform
from ramet.shell.syntax.nodes import AnsiQuoted, DoubleQuoted, Literal, Param, SingleQuoted, Word
from ramet.shell.syntax.printer import word_text
from ramet.text.pattern.matcher import compile_pattern


class Star(list[str]):
    """The values of a `*` form, which join by the first character of IFS where one text is wanted."""

    __slots__ = ()


Found = str | list[str] | None
Base = Callable[[Any, str | None], Found]
"""(host, evaluated subscript) -> value."""
Apply = Callable[[Any, Found, Sequence[str]], Found]
"""(host, value, evaluated arguments) -> value."""


def star_join(host: Any, values: list[str]) -> str:
    ifs = host.variables.get("IFS")
    return joined(host, " " if ifs is None else ifs[:1], values)


def one_text(host: Any, found: Found) -> str:
    """A value where exactly one text is wanted."""
    if type(found) is str:
        return found
    if found is None:
        return ""
    return star_join(host, found) if type(found) is Star else joined(host, " ", found)


def unbound(host: Any, label: str) -> None:
    if host.nounset:
        raise Fatal(f"{label}: unbound variable", 127)


# ----------------------------------------------------------------------------------------------------- fetching


def base_of(node: Param) -> Base:
    """Return the function that reads the value before the operator."""
    name, form = node.name, node.form
    if form == "names":
        if node.op == "@":
            return lambda host, key: host.variables.names(name)

        def names_joined(host: Any, key: str | None) -> Found:
            found = host.variables.names(name)
            return Star(found) if host.variables.get("IFS") != "" else "".join(found)

        return names_joined
    if form == "keys" and not node.op:
        star = node.subscript == "*"
        return lambda host, key: Star(host.variables.keys(name)) if star else host.variables.keys(name)
    if form in ("indirect", "keys"):
        return _indirect(node)
    return _direct(node)


def _direct(node: Param) -> Base:
    name = node.name
    if node.form == "length" and node.subscript in ("@", "*"):
        return _element_count(name)
    if node.op == ":" and node.subscript in ("@", "*") and node.form == "value":
        return _sliced(name, Star if node.subscript == "*" else list)
    if node.subscript == "@":
        return lambda host, key: host.variables.elements(name)
    if node.subscript == "*":
        return lambda host, key: Star(host.variables.elements(name))
    if node.subscript is not None and node.form == "length":
        return lambda host, key: _measured(host, node, key or "")
    if node.subscript is not None:
        return lambda host, key: element(host, name, key or "")
    if name == "@":
        return lambda host, key: host.params
    if name == "*":
        return lambda host, key: Star(host.params)
    if name[:1].isdigit() and len(name) > LONGEST_NUMBER:
        return lambda host, key: None
    if name.isdigit():
        return _positional(int(name))
    if not (name[0].isalpha() or name[0] == "_") or name == "_":
        return lambda host, key: host.special(name)
    return lambda host, key: host.variables.get(name)


def _measured(host: Any, node: Param, subscript: str) -> Found:
    """Return the element of `${#a[n]}`; a subscript that names no element ends the command."""
    store, name = host.variables, node.name
    target, deeper = store.follow(name)
    if deeper is None and not store.is_assoc(target):
        index = host.evaluate_subscript(subscript)
        array = store.array(target)
        if index + (0 if array is None else array.top) < 0 and store.values.get(target) is not None:
            raise LineError(f"{param_text(node)[len(name) + 1 :]}: bad array subscript")
        if array is None and host.nounset:
            raise LineError(f"{name}: unbound variable")
        if array is None and index < 0:
            return None
        return store.item(target, index) or ""
    if not subscript:
        raise LineError(f"{param_text(node)[len(name) + 1 :]}: bad array subscript")
    return element(host, name, subscript) or ""


def _element_count(name: str) -> Base:
    """Return a sequence as long as the array, for `${#a[@]}`, which needs no values."""

    def get(host: Any, key: str | None) -> Found:
        target, deeper = host.variables.follow(name)
        array = host.variables.array(target) if deeper is None else None
        return host.variables.elements(name) if array is None else range(len(array))  # type: ignore[return-value]

    return get


def _sliced(name: str, kind: type[list[str]]) -> Base:
    """Return whether an array has values, for `${a[@]:n:m}`, which reads only its slice."""

    def get(host: Any, key: str | None) -> Found:
        target, deeper = host.variables.follow(name)
        array = host.variables.array(target) if deeper is None else None
        return kind(host.variables.elements(name) if array is None else [""] if len(array) else [])

    return get


def _positional(number: int) -> Base:
    if number == 0:
        return lambda host, key: host.special("0")
    index = number - 1

    def get(host: Any, key: str | None) -> Found:
        params = host.params
        return params[index] if index < len(params) else None

    return get


def element(host: Any, name: str, subscript: str) -> str | None:
    """`${name[subscript]}` with the subscript as expanded text."""
    store = host.variables
    if store.is_assoc(name):
        if not subscript:
            store.amiss(f"{name}: bad array subscript")
        found: str | None = store.item(name, subscript)
        return found
    return store.item(name, host.evaluate_subscript(to_evaluate(subscript)))  # type: ignore[no-any-return]


def _indirect(node: Param) -> Base:
    direct = _direct(node)
    plain = node.subscript is None

    def get(host: Any, key: str | None) -> Found:
        if plain:
            value = host.vars.get(node.name)
            if type(value) is NameRef:
                if value.target in ("", node.name):  # nowhere, or in a circle
                    raise LineError(f"{param_text(node)}: invalid indirect expansion")
                target, deeper = host.variables.follow(node.name)
                return str(target) if deeper is None else f"{target}[{deeper}]"
        found = direct(host, key)
        if isinstance(found, list) and found:
            return parameter(
                host, joined(host, " " if node.name == "@" else (host.variables.get("IFS") or " ")[0], found)
            )
        if not isinstance(found, str):
            declared = host.vars.get(node.name)
            known = isinstance(declared, Indexed | Assoc) or (declared is None and node.name in host.vars)
            if known or (not plain and declared is not None) or not is_name(node.name):
                return None
            raise LineError(f"{param_text(node)}: invalid indirect expansion")
        return parameter(host, found)

    return get


def param_text(node: Param) -> str:
    if isinstance(node.subscript, Word):
        return f"{node.name}[{word_text(node.subscript)}]"
    return node.name if node.subscript is None else f"{node.name}[{node.subscript}]"


def parameter(host: Any, text: str) -> Found:
    """Return the value of the parameter that a text names: `x`, `3`, `@`, `a[1]`, `a[@]`."""
    if text == "@":
        return list(host.params)
    if text == "*":
        return Star(host.params)
    if is_number(text):
        return _positional(int(text))(host, None)
    if is_name(text):
        return host.variables.get(text)  # type: ignore[no-any-return]
    if len(text) == 1 and text in "#?-$!":
        return host.special(text)  # type: ignore[no-any-return]
    name, bracket, rest = text.partition("[")
    if bracket and rest.endswith("]") and is_name(name):
        subscript = rest[:-1]
        if subscript == "@":
            return host.variables.elements(name)  # type: ignore[no-any-return]
        if subscript == "*":
            return Star(host.variables.elements(name))
        return host.variables.element(name, subscript)  # type: ignore[no-any-return]
    raise LineError((text, ": invalid variable name"))


def target_of(host: Any, node: Param) -> str:
    """Return the name that `${x:=word}` assigns to."""
    if node.form == "indirect":
        value = host.variables.get(node.name)
        return value or ""
    return node.name


# ---------------------------------------------------------------------------------------------------- operators


def apply_of(node: Param) -> Apply | None:
    """Return the function of the operator; None without one."""
    apply = _operator(node)
    if apply is None or (node.form == "length" and node.subscript in ("@", "*")):
        return apply
    operator = apply

    def localized(host: Any, found: Found, args: Sequence[str]) -> Found:
        if (type(found) is str and found.isascii()) or not bytewise(host) or all_ascii(found):
            return operator(host, found, args)
        return each(operator(host, each(found, as_bytes), [as_bytes(arg) for arg in args]), as_text)

    return localized


def _operator(node: Param) -> Apply | None:
    op = node.op
    if node.form == "length":
        return _length(node)
    if not op or node.form == "names":
        return None
    if op in ("#", "##", "%", "%%"):
        return _strip(op)
    if op[0] == "/":
        return _replace(op)
    if op[0] in "^,~":
        return _case(node)
    if op == ":":
        return _slice(node)
    if op[0] == "@":
        return _at(node)
    raise AssertionError(op)


def each(found: Found, change: Callable[[str], str]) -> Found:
    if type(found) is str:
        return change(found)
    if found is None:
        return None
    return type(found)([change(value) for value in (interruptible(found) if in_thread() else found)])


def _strip(op: str) -> Apply:
    longest = len(op) == 2
    name = "without_prefix" if op[0] == "#" else "without_suffix"

    def apply(host: Any, found: Found, args: Sequence[str]) -> Found:
        if not args[0]:
            return found
        pattern = compile_pattern(args[0], host.shopt("extglob"))
        remove = getattr(pattern, name)
        if type(found) is str:
            return remove(found, longest)  # type: ignore[no-any-return]
        return each(found, lambda value: remove(value, longest))

    return apply


def _replace(op: str) -> Apply:
    def apply(host: Any, found: Found, args: Sequence[str]) -> Found:
        if not args[0] and op in ("/", "//"):
            return found
        if ("[!]" in args[0] or "[^]" in args[0]) and _has_wrong_length(args[0]):
            return found
        pattern = compile_pattern(args[0], host.shopt("extglob"), host.shopt("nocasematch"))
        replacement = args[1] if len(args) > 1 else ""
        ampersand = host.shopt("patsub_replacement")
        most = host.budget.limits.string_bytes
        return each(found, lambda value: transform.replace(value, pattern, replacement, op, ampersand, most))

    return apply


_MEASURED: Final = re.compile(
    r"\\.?|\*|[?+@!]\(|(\[[!^]\])|\[(?:\\.|[^\\])(?>(?:\\.|\[:[^]]*:\]|\[\..*?\.\]|\[=.*?=\]|[^]\\])*)\]|.", re.DOTALL
).finditer


def _has_wrong_length(pattern: str) -> bool:
    """Return whether bash computes a wrong length of match for the pattern, and so never finds one: it measures
    `[!]a]` as `[!]` and two characters. Only patterns of a fixed length are measured."""
    wrong = False
    for found in _MEASURED(pattern):
        if found[0] == "*" or (found[0][0] != "\\" and found[0].endswith("(") and len(found[0]) == 2):
            return False
        wrong = wrong or found[1] is not None
    return wrong


def _case(node: Param) -> Apply:
    op = node.op
    quoted = any(
        isinstance(part, SingleQuoted | AnsiQuoted | DoubleQuoted) for word in node.args for part in word.parts
    )

    def apply(host: Any, found: Found, args: Sequence[str]) -> Found:
        matches: Callable[[str], bool] | None = None
        if quoted and not args[0]:
            return found  # a pattern that is empty, unlike none, matches no character
        if args and args[0]:
            matches = compile_pattern(args[0], True).matches  # extended without being asked

        return each(found, lambda value: transform.change_case(value, op, matches))

    return apply


def _numbers(host: Any, node: Param, args: Sequence[str]) -> tuple[int, int | None]:
    """Evaluate the offset and the length of a slice."""
    try:
        return host.evaluate(args[0] or "0"), host.evaluate(args[1] or "0") if len(args) > 1 else None
    except ErrexitExempt as error:
        raise ErrexitExempt((f"{param_text(node)}: ", *error.parts)) from None


def _slice(node: Param) -> Apply:
    def apply(host: Any, found: Found, args: Sequence[str]) -> Found:
        if found is None:
            return None
        offset, length = _numbers(host, node, args)
        try:
            return part(host, found, offset, length)
        except ErrexitExempt:
            raise ErrexitExempt(f"{args[1]}: substring expression < 0") from None

    def part(host: Any, found: str | list[str], offset: int, length: int | None) -> Found:
        if isinstance(found, str):
            return transform.substring(found, offset, length)
        kind = type(found)
        if node.name in ("@", "*") and node.form == "value":
            if offset <= 0:
                found, offset = [host.special("0") or "", *found], offset + 1
            return _as_kind(kind, transform.slice_list(found, offset - 1, length))
        name, _ = host.variables.follow(node.name)
        array = host.variables.array(name)
        if array is None and node.form == "value":
            # The only value of a scalar is sliced as text.
            if not found or abs(offset) > len(found[0]):
                return kind()
            return transform.substring(found[0], offset, length)
        if not found:
            return kind()
        array = array or Indexed(tuple(found))
        return _as_kind(kind, transform.slice_array(array, offset, length))

    return apply


def _as_kind(kind: type[list[str]], found: list[str]) -> list[str]:
    return found if kind is list else kind(found)


_OF_VARIABLES: Final = ("@A", "@a", "@K", "@k")


def _target_param(host: Any, node: Param) -> Param:
    """Return the parameter that `${!x@A}` refers to."""
    name, bracket, rest = target_of(host, node).partition("[")
    if not bracket:
        return Param(name, None, "value", node.op)
    inside = rest[:-1]
    if inside == "@" or inside == "*":
        return Param(name, "@" if inside == "@" else "*", "value", node.op)
    return Param(name, Word((Literal(inside),)), "value", node.op)


def _at(node: Param) -> Apply:
    op = node.op
    whole = node.subscript in ("@", "*")
    if node.form == "indirect" and op in _OF_VARIABLES:
        return lambda host, found, args: _at(_target_param(host, node))(host, found, args)

    def name_of(host: Any) -> str:
        name, _ = host.variables.follow(target_of(host, node))
        return str(name)

    def apply(host: Any, found: Found, args: Sequence[str]) -> Found:
        if op == "@P":
            return each(found, host.prompt)
        if op == "@a":
            letters = transform.attribute_letters(host.variables, name_of(host))
            if isinstance(found, list):
                array = host.variables.array(name_of(host))
                declared = bool(letters) and (array is None or array.blank)
                return type(found)([letters] * (len(found) or declared))
            return letters if letters or found is not None else None
        if op == "@A":
            if node.name in ("@", "*"):
                values = [quote.at_q(quote.as_locale(host, value)) for value in host.params]
                if node.name == "*":
                    return "set -- " + star_join(host, values) if values else None
                if not values:
                    return []
                return ["set", "--", *values] if _spaces(host) else [f"set -- {values[0]}", *values[1:]]
            name, deeper = host.variables.follow(target_of(host, node))
            if deeper is not None and node.subscript is None:
                return None
            array = host.variables.array(name)
            if array is not None and not whole:
                return transform.element_declaration(host.variables, name, found if isinstance(found, str) else None)
            if found is None and node.subscript is not None and not whole:
                letters = transform.attribute_letters(host.variables, name)
                return f"declare -{letters} {name}" if letters else None
            kind = type(found)
            if array is not None:
                within(host, total(array.stored()))
            declared = transform.declaration(host.variables, name, bytewise(host))
            if declared is None and kind is list:
                return []
            if declared is None or not whole or kind is Star:
                return declared
            if array is None or not _spaces(host):
                return [declared]
            first = declared.index(" ")
            second = declared.find(" ", first + 1)
            if second < 0:
                return [declared[:first], declared[first + 1 :]]
            return [declared[:first], declared[first + 1 : second], declared[second + 1 :]]
        array = host.variables.array(name_of(host)) if whole and op in ("@K", "@k") else None
        if isinstance(array, Indexed | Assoc):
            if op == "@K":
                within(host, total(array.stored()))
                return transform.pairs_text(array, bytewise(host))
            row = [text for key, value in array.pairs() for text in (str(key), value)]
            return Star(row) if type(found) is Star else row
        return each(found, lambda value: transform.simple_transform(op, value))

    return apply


def _spaces(host: Any) -> bool:
    """Return whether a space separates fields, also with an empty IFS."""
    return " " in (host.variables.get("IFS") or " ")


def _length(node: Param) -> Apply:
    label = node.name
    array = node.subscript in ("@", "*")

    def apply(host: Any, found: Found, args: Sequence[str]) -> Found:
        if (
            type(host.vars.get(label)) is NameRef
            and node.subscript is None
            and host.variables.follow(label)[1] is not None
        ):
            return str(len(found or "")) if host.nounset else "0"  # elements behind a reference are not looked for
        if array and host.nounset and label not in ("@", "*"):
            counted = host.variables.array(host.variables.follow(label)[0])
            if counted is None or (counted.blank and not len(counted)):
                raise LineError(f"{label}: unbound variable")
        if found is None:
            unbound(host, label)
            return "0"
        return str(len(found))

    return apply
