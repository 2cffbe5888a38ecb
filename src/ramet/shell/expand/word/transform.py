"""Operators of `${x...}` on plain texts: slices, changes of case, `@` transformations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from ramet.shell.expand import quote
from ramet.shell.expand.c_locale import as_bytes
from ramet.shell.expand.errors import ErrexitExempt
from ramet.shell.expand.values import ATTRIBUTE_LETTERS, Assoc, Indexed, NameRef
from ramet.shell.syntax.ansi_c import ansi_decode
from ramet.text.casing import Changed, lower, upper
from ramet.text.pattern.plain import Pattern

_SWAPPED: Final = Changed(lambda char: upper(char) if char.islower() else lower(char))


def swapped(text: str) -> str:
    return text.swapcase() if text.isascii() else text.translate(_SWAPPED)


def change_case(value: str, op: str, matches: Callable[[str], bool] | None) -> str:
    """`^ ^^ , ,, ~ ~~`; without a pattern every character qualifies."""
    change = upper if op[0] == "^" else lower if op[0] == "," else swapped
    if len(op) == 1:
        if not value or (matches is not None and not matches(value[0])):
            return value
        return change(value[0]) + value[1:]
    if matches is None:
        return change(value)
    return value.translate(Changed(lambda char: change(char) if matches(char) else char))


def substring(value: str, offset: int, length: int | None) -> str:
    """`${x:offset:length}`."""
    if offset < 0:
        offset += len(value)
        if offset < 0:
            return ""
    if offset > len(value):
        return ""
    if length is None:
        return value[offset:]
    if length < 0:
        end = len(value) + length
        if end < offset:
            raise ErrexitExempt(f"{length}: substring expression < 0")
        return value[offset:end]
    return value[offset : offset + length]


def slice_list(values: list[str], offset: int, length: int | None) -> list[str]:
    """A slice of positional parameters, with `$0` before them where the offset reaches that far."""
    if offset < 0:
        offset += len(values)
        if offset < 0:
            return []
    if length is None:
        return values[offset:]
    if length < 0 and offset <= len(values):
        raise ErrexitExempt(f"{length}: substring expression < 0")
    return values[offset : offset + length] if length > 0 else []


def slice_array(array: Indexed | Assoc, offset: int, length: int | None) -> list[str]:
    """Elements from an index on; the length counts elements that exist."""
    if length is not None and length < 0:
        # What begins outside of the array is empty, however long.
        top = len(array) + 1 if isinstance(array, Assoc) else array.top
        if offset >= top or offset < -top:
            return []
        raise ErrexitExempt(f"{length}: substring expression < 0")
    if isinstance(array, Assoc):
        found = array.keys()
        offset = max(offset - 1, 0) if offset >= 0 else len(found) + offset
        if offset < -1:
            return []
        offset = max(offset, 0)
        length = max(length, 1) if length is not None else None  # bash takes one element where none is asked for
        found = found[offset:] if length is None else found[offset : offset + length]
        return list(map(array.items.__getitem__, found))
    if offset < 0:
        offset += array.top
        if offset < 0:
            return []
    if length is None:
        return array.between(offset, array.top)
    if array.whole is not None:
        return array.between(offset, offset + length)
    return array.between(offset, array.top)[:length]


def replace(value: str, pattern: Pattern, replacement: str, op: Any, ampersand: bool, most: int) -> str:
    """`${x/pattern/replacement}`, of at most `most` characters. A NUL marks quoted characters of the replacement."""
    if not ampersand or ("&" not in replacement and "\\" not in replacement):
        plain = replacement.replace("\0", "")
        return pattern.replace(value, op, plain, most)
    parts: list[str | None] = []
    literal: list[str] = []
    i = 0
    while i < len(replacement):
        char = replacement[i]
        if char in "\0\\" and replacement[i + 1 : i + 2] in ("&", "\\"):
            literal.append(replacement[i + 1])
            i += 2
            continue
        if char == "&":
            parts += ["".join(literal), None]
            literal = []
        elif char != "\0":
            literal.append(char)
        i += 1
    parts.append("".join(literal))
    if len(parts) == 1:
        return pattern.replace(value, op, parts[0] or "", most)
    fill = "".join
    return pattern.replace(value, op, lambda found: fill([found if part is None else part for part in parts]), most)


def attribute_letters(store: Any, name: str) -> str:
    """`${x@a}`."""
    value = store.values.get(name)
    flags = store.attrs.get(name, 0)
    array = value if isinstance(value, Indexed | Assoc) else store.array(name)
    letters = "A" if type(array) is Assoc else "a" if array is not None else ""
    return letters + "".join(letter for letter, bit in ATTRIBUTE_LETTERS if flags & bit)


def declaration(store: Any, name: str, by_bytes: bool = False) -> str | None:
    """`${x@A}`: the command that would make this variable again; `by_bytes` in the C locale."""
    value = store.values.get(name)
    letters = attribute_letters(store, name)
    array = store.array(name)
    head = f"declare -{letters} {name}=" if letters else f"{name}="
    if array is not None:
        return head[:-1] if array.blank and not len(array) else (head + array_text(array, by_bytes))
    text = value.target if type(value) is NameRef else store.get(name)
    if text is None:
        return head[:-1] if letters else None
    return head + quote.at_q(as_bytes(text) if by_bytes and not text.isascii() else text)


def element_declaration(store: Any, name: str, value: str | None) -> str | None:
    """`${a[1]@A}`, `${a@A}`: the attributes of the array with the value of one element."""
    letters = attribute_letters(store, name)
    head = f"declare -{letters} {name}"
    return head if value is None else (head + "=" + quote.at_q(value))


def array_text(array: Indexed | Assoc, by_bytes: bool = False) -> str:
    """`([0]="a" [1]="b")` as `declare -p` writes it; `by_bytes` in the C locale."""
    if not len(array):
        return "()"
    end = " )" if isinstance(array, Assoc) else ")"
    return "([" + " [".join(_pairs(array, "]=", by_bytes)) + end


def _pairs(array: Indexed | Assoc, between: str, by_bytes: bool) -> Iterator[str]:
    """Yield each key and its quoted value with `between` between them."""
    named = isinstance(array, Assoc)
    for key, value in array.pairs():
        if by_bytes:
            key, value = as_bytes(key) if isinstance(key, str) else key, as_bytes(value)
        yield f"{key_text(str(key)) if named else key}{between}{quote.double(value)}"


def key_text(key: str) -> str:
    """The key of an associative array as a subscript: quoted where it needs to be."""
    plain = key and key != "@" and not quote.is_special(key) and not quote.unprintable(key)
    return key if plain else quote.double(key)


def pairs_text(array: Indexed | Assoc, by_bytes: bool = False) -> str:
    """`${a[@]@K}`."""
    end = " " if isinstance(array, Assoc) and len(array) else ""
    return " ".join(_pairs(array, " ", by_bytes)) + end


def simple_transform(op: str, value: str) -> str:
    """The `@` operators that look at the value alone."""
    if op == "@Q":
        return quote.at_q(value)
    if op == "@U":
        return upper(value)
    if op == "@u":
        return upper(value[:1]) + value[1:]
    if op == "@L":
        return lower(value)
    if op == "@E":
        return ansi_decode(value)
    return quote.at_q(value)  # @K and @k of a plain value
