"""jq's values: order, arithmetic, JSON text, and the errors that programs can catch."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from ramet.concurrency.sizes import SMALL
from ramet.core.errors import LimitExceeded
from ramet.core.limits import DEFAULT_LIMITS

Json = Any
"""None, bool, int, float, str, list or dict; a value is never changed once it is shared."""


LONGEST: ContextVar[int] = ContextVar("longest", default=DEFAULT_LIMITS.string_bytes)
"""Characters of a text that the program of this context puts together; of an array it is an eighth of that, for what
items take. A context variable, so that adding two values takes no third argument."""
_LARGEST_REPEATED = (1 << 31) - 1


class JqError(Exception):
    """An error of the program, with the value that `catch` sees."""

    def __init__(self, value: Json) -> None:
        super().__init__(value)
        self.value = value


UNFIT = (TypeError, ValueError, OverflowError, IndexError, KeyError, AttributeError)
"""What Python says when a builtin meets a value that it does not fit; to the program it is an error like any other."""


def as_error(error: Exception) -> JqError:
    return error if isinstance(error, JqError) else JqError(f"the input does not fit here ({error})")


class JqBreak(Exception):
    """`break $label` on its way to its label."""

    def __init__(self, label: object) -> None:
        super().__init__("break")
        self.label = label


class CompileError(Exception):
    """The program cannot be compiled."""


def fail(message: str) -> JqError:
    return JqError(message)


class Literal(float):
    """A number that prints as it was written, as decimal arithmetic spells it, until something is computed with it."""

    __slots__ = ("text",)

    def __new__(cls, value: float, text: str) -> Literal:
        made = super().__new__(cls, value)
        made.text = text
        return made

    text: str


_KINDS = {
    type(None): "null",
    Literal: "number",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_RANKS = {type(None): 0, int: 3, float: 3, Literal: 3, str: 4, list: 5, dict: 6}
_LONGEST = 11


def kind(value: Json) -> str:
    return _KINDS[type(value)]


def described(value: Json) -> str:
    """Return a value as error messages show it: its kind and its shortened text."""
    text = dumps(value)
    if len(text.encode()) > _LONGEST + 3:
        cut = text.encode()[:_LONGEST].decode("utf-8", "ignore")
        text = cut + "..."
    return f"{kind(value)} ({text})"


def truthy(value: Json) -> bool:
    return value is not None and value is not False


# -------------------------------------------------------------------------------------------------------- order


def rank(value: Json) -> int:
    if value is True:
        return 2
    if value is False:
        return 1
    return _RANKS[type(value)]


def compare(left: Json, right: Json) -> int:
    """-1, 0 or 1: null < false < true < numbers < strings < arrays < objects."""
    a, b = rank(left), rank(right)
    if a != b:
        return -1 if a < b else 1
    if a < 3:
        return 0
    if a == 3:
        # nan is below every number, itself included.
        return -1 if left < right or left != left else 0 if left == right else 1
    if a == 4:
        return -1 if left < right else 0 if left == right else 1
    if a == 5:
        for x, y in zip(left, right, strict=False):
            order = compare(x, y)
            if order:
                return order
        return -1 if len(left) < len(right) else 0 if len(left) == len(right) else 1
    order = compare(sorted(left), sorted(right))
    if order:
        return order
    for key in sorted(left):
        order = compare(left[key], right[key])
        if order:
            return order
    return 0


sort_key = functools.cmp_to_key(compare)


def equal(left: Json, right: Json) -> bool:
    return compare(left, right) == 0


def sorted_values(values: Iterable[Json]) -> list[Json]:
    items = list(values)
    if all(type(item) is str for item in items) or all(type(item) is int for item in items):
        return sorted(items)
    return sorted(items, key=sort_key)


# ----------------------------------------------------------------------------------------------------- arithmetic


def number(value: float) -> Json:
    """Return a result of arithmetic: whole numbers that a double holds exactly are kept as int."""
    if value == value and abs(value) < 1e16 and value == int(value):
        whole = int(value)
        return whole if whole or math.copysign(1.0, value) > 0 else value
    return value


def to_double(value: Json) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_EXACT = 1 << 53


def _small(left: int, right: int) -> bool:
    """Return whether both are numbers that a double holds exactly; others are doubles to arithmetic."""
    return -_EXACT <= left <= _EXACT and -_EXACT <= right <= _EXACT


def _whole(value: int) -> Json:
    """Return an int result: beyond what a double holds exactly it becomes the double."""
    return value if -_EXACT <= value <= _EXACT else number(to_double(value))


def negated(value: Json) -> Json:
    """`-value`, of a double: what was written more precisely than that is rounded."""
    if type(value) is int and value:
        return _whole(-value)
    return number(-to_double(value))


def is_number(value: Json) -> bool:
    known = type(value)
    return known is int or known is float or known is Literal


def add(left: Json, right: Json) -> Json:
    a, b = type(left), type(right)
    if a is int and b is int and _small(left, right):
        return _whole(left + right)
    if left is None:
        return right
    if right is None:
        return left
    if is_number(left) and is_number(right):
        return number(to_double(left) + to_double(right))
    if a is str and b is str:
        bounded(len(left) + len(right))
        return left + right
    if a is list and b is list:
        bounded(8 * (len(left) + len(right)))
        return left + right
    if a is dict and b is dict:
        return {**left, **right}
    raise fail(f"{described(left)} and {described(right)} cannot be added")


def bounded(size: int) -> None:
    """Raise LimitExceeded, which programs cannot catch, if a string would be too long."""
    if size > SMALL and size > (most := LONGEST.get()):
        raise LimitExceeded("string_bytes", most)


def joined(separator: str, parts: list[str]) -> str:
    """`separator.join`, unless that is too long."""
    bounded(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def subtract(left: Json, right: Json) -> Json:
    if type(left) is int and type(right) is int and _small(left, right):
        return _whole(left - right)
    if is_number(left) and is_number(right):
        return number(to_double(left) - to_double(right))
    if isinstance(left, list) and isinstance(right, list):
        return [item for item in left if not any(equal(item, other) for other in right)]
    raise fail(f"{described(left)} and {described(right)} cannot be subtracted")


def multiply(left: Json, right: Json) -> Json:
    if type(left) is int and type(right) is int and _small(left, right):
        return _whole(left * right)
    if is_number(left) and is_number(right):
        return number(to_double(left) * to_double(right))
    if isinstance(right, str) and is_number(left):
        left, right = right, left
    if isinstance(left, str) and is_number(right):
        if not right >= 0:
            return None
        if not left:
            return left
        if len(left) * right > _LARGEST_REPEATED:
            raise fail("Repeat string result too long")
        times = int(right)
        bounded(len(left) * times)
        return left * times
    if isinstance(left, dict) and isinstance(right, dict):
        return _merge(left, right)
    raise fail(f"{described(left)} and {described(right)} cannot be multiplied")


def _merge(left: dict[str, Json], right: dict[str, Json]) -> dict[str, Json]:
    result = dict(left)
    for key, value in right.items():
        known = result.get(key)
        result[key] = _merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return result


def divide(left: Json, right: Json) -> Json:
    if is_number(left) and is_number(right):
        if right == 0:
            raise fail(f"{described(left)} and {described(right)} cannot be divided because the divisor is zero")
        return number(to_double(left) / to_double(right))
    if isinstance(left, str) and isinstance(right, str):
        return split_text(left, right)
    raise fail(f"{described(left)} and {described(right)} cannot be divided")


def split_text(text: str, separator: str) -> list[Json]:
    if not text:
        return []
    return list(text) if not separator else list(text.split(separator))


def modulo(left: Json, right: Json) -> Json:
    if not (is_number(left) and is_number(right)):
        raise fail(f"{described(left)} and {described(right)} cannot be divided (remainder)")
    if left != left or right != right:
        return math.nan
    a, b = _to_int64(left), abs(_to_int64(right))
    if b == 0:
        shown = f"{described(left)} and {described(right)}"
        raise fail(f"{shown} cannot be divided (remainder) because the divisor is zero")
    return -(-a % b) if a < 0 else a % b


def _to_int64(value: Json) -> int:
    if value in (math.inf, -math.inf):
        return (1 << 63) - 1 if value > 0 else -(1 << 63)
    return max(-(1 << 63), min((1 << 63) - 1, int(value)))


# ---------------------------------------------------------------------------------------------------- text form


def number_text(value: Json) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is Literal:
        return value.text
    if value != value:
        return "null"
    if value in (math.inf, -math.inf):
        return "1.7976931348623157e+308" if value > 0 else "-1.7976931348623157e+308"
    text = repr(value)
    sign = "-" if text[0] == "-" else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0)
    if whole == "0":
        point = int(power or 0) - (len(fraction) - len(fraction.lstrip("0")))
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0"
    if point <= -4 or point > len(digits) + 15:
        exponent = point - 1
        rest = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


_UNLIKE = re.compile(rb"[0-9]e[-+0-9]|\.0(?![0-9])|0\.0000|\x7f|null")
"""Text that the quick encoder may spell differently from jq; it writes NaN as null."""


@functools.lru_cache(maxsize=1)
def _quick() -> tuple[Callable[[Json], bytes], Callable[..., bytes]]:
    """Return what writes a value at once, and what spreads such a text over lines."""
    import msgspec

    def spelled(value: object) -> object:
        assert isinstance(value, Literal)
        return msgspec.Raw(value.text.encode())

    return msgspec.json.Encoder(enc_hook=spelled).encode, msgspec.json.format


def _quick_text(value: Json) -> bytes | None:
    """Return the compact text of a value; None when care is needed."""
    try:
        data = _quick()[0](value)
    except (ValueError, RecursionError, OverflowError):
        return None
    return data if _UNLIKE.search(data) is None else None


_ODD_TEXT = re.compile(r"e\+|NaN|Infinity|\x7f|\.0")
_FRACTION = re.compile(r"[\[,:]-?\d+[.e]")


class _Found(Exception):
    pass


def _found(value: object) -> object:
    raise _Found


@functools.lru_cache(maxsize=1)
def _probe() -> Any:
    """Return what goes through a value as fast as can be and stops at a number that is kept as it was written."""
    import msgspec

    return msgspec.json.Encoder(enc_hook=_found).encode


def _has_literal(value: Json) -> bool:
    try:
        _probe()(value)
    except (_Found, RecursionError, UnicodeEncodeError, OverflowError):
        return True
    return False


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def dumps(value: Json, *, sort: bool = False, ascii_only: bool = False) -> str:
    """Return the compact text of a value."""
    kind_ = type(value)
    if (kind_ is dict or kind_ is list) and not sort and not ascii_only:
        quick = _quick_text(value)
        if quick is not None:
            return quick.decode()
        text = _compact(value)
        # The standard encoder spells some numbers (and one character) differently.
        if _ODD_TEXT.search(text) is None and (_FRACTION.search(text) is None or not _has_literal(value)):
            return text
    if kind_ is str:
        return quoted(value, ascii_only)
    if kind_ is int:
        return str(value)
    if value is None:
        return "null"
    if kind_ is bool:
        return "true" if value else "false"
    if kind_ is float or kind_ is Literal:
        return number_text(value)
    if kind_ is list:
        return "[" + ",".join(dumps(item, sort=sort, ascii_only=ascii_only) for item in value) + "]"
    keys = sorted(value) if sort else value
    return (
        "{"
        + ",".join(f"{quoted(key, ascii_only)}:{dumps(value[key], sort=sort, ascii_only=ascii_only)}" for key in keys)
        + "}"
    )


def quoted(text: str, ascii_only: bool = False) -> str:
    shown = encode_basestring_ascii(text) if ascii_only else encode_basestring(text)
    return shown.replace("\x7f", "\\u007f") if "\x7f" in shown else shown


def pretty(value: Json, indent: str, *, sort: bool = False, ascii_only: bool = False) -> str:
    """Return the text of a value over several lines."""
    if not sort and not ascii_only and indent and not indent.strip(" ") and isinstance(value, (list, dict)):
        quick = _quick_text(value)
        if quick is not None:
            return _quick()[1](quick, indent=len(indent)).decode()
    out: list[str] = []
    _pretty(value, indent, "\n", sort, ascii_only, out)
    return "".join(out)


def _pretty(value: Json, indent: str, margin: str, sort: bool, ascii_only: bool, out: list[str]) -> None:
    if isinstance(value, list) and value:
        inner = margin + indent
        out.append("[")
        for index, item in enumerate(value):
            out.append(inner if not index else "," + inner)
            _pretty(item, indent, inner, sort, ascii_only, out)
        out.append(margin + "]")
    elif isinstance(value, dict) and value:
        inner = margin + indent
        out.append("{")
        for index, key in enumerate(sorted(value) if sort else value):
            out.append(inner if not index else "," + inner)
            out.append(quoted(key, ascii_only) + ": ")
            _pretty(value[key], indent, inner, sort, ascii_only, out)
        out.append(margin + "}")
    else:
        out.append(dumps(value, ascii_only=ascii_only))


def to_text(value: Json) -> str:
    """`tostring`."""
    return value if isinstance(value, str) else dumps(value)


# --------------------------------------------------------------------------------------------------------- reading


def parse_float(text: str) -> Json:
    value = float(text)
    if text[-1] != "0" and repr(value) == text and "e" not in text:
        return value
    if len(text) < _LONG:
        try:
            exact = Decimal(text)
        except InvalidOperation:
            return value  # its power of ten is beyond all decimals
        if math.isinf(value) and exact.adjusted() > _LARGEST_POWER:
            return value
        shown = str(exact)
    else:
        shown = text
    made = number(value)
    # Other numbers are spelled alike by every writer.
    return made if type(made) is int and shown == str(made) else Literal(value, shown)


_LONG = 5000
"""Characters from which on a number keeps its spelling unparsed."""


_LARGEST_POWER = 999_999_999
"""Beyond this power of ten a number is infinite also to decimal arithmetic."""


def parse_int(text: str) -> Json:
    if text == "-0":
        return -0.0
    return int(text) if len(text) < 400 else number(float(text))


def _constant(name: str) -> Json:
    if name == "NaN":
        return math.nan
    if name.endswith("Infinity"):
        return -math.inf if name[0] == "-" else math.inf
    raise ValueError(name)


decoder = json.JSONDecoder(parse_float=parse_float, parse_int=parse_int, parse_constant=_constant)
