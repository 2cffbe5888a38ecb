"""awk's values: float, str, `Field` (input text, numeric if it looks like a number) or None (unset).

- Only the conversions here know how numbers are spelled.
"""

from __future__ import annotations

import math
import re
from typing import Any

from ramet.commands.awk.syntax.tree import AwkError

Value = Any
"""float | str | Field | None; written as Any because generated code passes values about unchecked."""


class Field(str):
    """Text that came from input: compares as a number when it looks like one."""

    __slots__ = ()


class TypedRegex(str):
    """A strongly typed regular expression: `@/.../`."""

    __slots__ = ()


class Array(dict[str, Value]):
    """An awk array: reading an element creates it."""

    __slots__ = ()

    def __missing__(self, key: str) -> Value:
        self[key] = None
        return None


_PREFIX = re.compile(r"[ \t\n\r\f\v]*([+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))")
_WHOLE = re.compile(r"[ \t\n\r\f\v]*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[ \t\n\r\f\v]*\Z", re.ASCII)
_SPECIAL = re.compile(r"[ \t\n\r\f\v]*([+-])(inf|nan)[ \t\n\r\f\v]*\Z", re.IGNORECASE)


def to_number(text: str) -> float:
    """Return the number that a text starts with; 0 when it starts with none."""
    try:
        value = float(text)
        if "_" not in text and value - value == 0.0:
            return value
    except ValueError:
        pass
    except TypeError:
        raise AwkError("fatal: attempt to use array in a scalar context") from None
    found = _PREFIX.match(text)
    if found is not None:
        return float(found[1])
    special = _SPECIAL.match(text)
    if special is not None:
        return float(special[1] + special[2])
    return 0.0


class Numbers(dict[str, float]):
    """Cache of numeric conversions, as columns repeat values; `misses` counts new ones."""

    __slots__ = ("misses",)
    _MOST = 1 << 16

    def __init__(self) -> None:
        super().__init__()
        self.misses = 0

    def __missing__(self, text: str) -> float:
        self.misses += 1
        if len(self) >= self._MOST:
            self.clear()
        value = self[text] = to_number(text)
        return value


def looks_numeric(text: str) -> float | None:
    """Return the number, if the whole text is one."""
    try:
        value = float(text)
        if value - value == 0.0 and "_" not in text and text.isascii():
            return value
    except ValueError:
        if not text or text[0] not in "+- \t\n":
            return None
    if _WHOLE.match(text):
        return float(text)
    special = _SPECIAL.match(text)
    return float(special[1] + special[2]) if special is not None else None


def num(value: Value) -> float:
    if value.__class__ is float:
        number: float = value
        return number
    return 0.0 if value is None else to_number(value)


def truth(value: Value) -> bool:
    kind = value.__class__
    if kind is float:
        return bool(value != 0.0)
    if value is None:
        return False
    if kind is Field:
        number = looks_numeric(value)
        return value != "" if number is None else number != 0.0
    return bool(value != "")


def number_text(value: float, form: str) -> str:
    """Return a number as text: whole ones as integers, others by CONVFMT or OFMT."""
    try:
        whole = int(value)
    except (OverflowError, ValueError):
        if value != value:
            return "-nan" if math.copysign(1.0, value) < 0 else "+nan"
        return "+inf" if value > 0 else "-inf"
    if whole == value:
        return str(whole)
    if form == "%.6g":
        return f"{value:.6g}"
    from ramet.commands.awk.run.printf import sprintf

    return sprintf(form, (value,), form)


def compare(left: Value, right: Value, form: str) -> int:
    """-1, 0 or 1: numbers when both sides are or look it, text otherwise."""
    a = as_number(left)
    if a is not None:
        b = as_number(right)
        if b is not None:
            return -1 if a < b else 1 if a > b else 0
    x = number_text(left, form) if left.__class__ is float else left or ""
    y = number_text(right, form) if right.__class__ is float else right or ""
    return -1 if x < y else 1 if x > y else 0


def as_number(value: Value) -> float | None:
    """Return the number that a value is or looks like; None where it is text."""
    kind = value.__class__
    if kind is float:
        return float(value)
    if value is None:
        return 0.0
    return looks_numeric(value) if kind is Field else None
