"""awk's built-in functions: the code of a call (`EMITTERS`) and the function that it calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from ramet.commands.awk.run import regex
from ramet.commands.awk.run.array_order import asort, keys, offload_asort, offload_keys
from ramet.commands.awk.run.fields import contents, cut
from ramet.commands.awk.run.printf import sprintf
from ramet.commands.awk.run.state import NO_FIELD
from ramet.commands.awk.run.streams import Runtime
from ramet.commands.awk.run.times import mktime, strftime
from ramet.commands.awk.run.values import Array, TypedRegex, Value, looks_numeric, num
from ramet.commands.awk.run.values import Field as FieldValue
from ramet.commands.awk.syntax.lexer import IN_NAMESPACE
from ramet.commands.awk.syntax.tree import AwkError, Expr, Field, Grouping, Index, Num, Regex, Typed, Var
from ramet.concurrency.offload import checkpoint
from ramet.text import casing as letters

if TYPE_CHECKING:
    from ramet.commands.awk.compile.emit import Emitter

Args = tuple[Expr, ...]

# ------------------------------------------------------------------------------------------------ at run time


def divide(left: float, right: float, where: str = "") -> float:
    if right == 0.0:
        raise AwkError(f"fatal: division by zero attempted{where}")
    return left / right


def modulo(left: float, right: float, where: str = " in `%'") -> float:
    if right == 0.0:
        raise AwkError(f"fatal: division by zero attempted{where}")
    return math.fmod(left, right) if math.isfinite(left) else -math.nan


def power(left: float, right: float) -> float:
    try:
        result = left**right
    except OverflowError:
        return math.inf if left > 0 or right % 2 == 0 else -math.inf
    except ZeroDivisionError:
        return math.inf
    return -math.nan if isinstance(result, complex) else result


def put(value: Value, array: Array, key: str) -> Value:
    array[key] = value
    return value


def put_value(value: Value, array: Array, key: str, name: str) -> Value:
    """Assign an element that may be an array, which cannot be replaced."""
    if isinstance(array.get(key), Array):
        raise AwkError(f'fatal: attempt to use array `{name}["{key}"]\' in a scalar context')
    array[key] = value
    return value


def element(array: Array, key: str, name: str) -> Value:
    """Return an element where it stands for a value."""
    found = array[key]
    if isinstance(found, Array):
        raise AwkError(f'fatal: attempt to use array `{name}["{key}"]\' in a scalar context')
    return found


def nested(array: Array, key: str, name: str = "") -> Array:
    """Return the array that is an element of an array; made when there is nothing yet."""
    found = array.get(key)
    if found is None:
        found = array[key] = Array()
    elif not isinstance(found, Array):
        raise AwkError(f'fatal: attempt to use scalar `{name}["{key}"]\' as an array')
    return found


def aggregate(value: Value, name: str) -> Array:
    """Return a parameter that must be an array."""
    if value is None:
        return Array()
    if not isinstance(value, Array):
        raise AwkError(f"fatal: attempt to use scalar parameter `{name}' as an array")
    return value


def scalar(value: Value, name: str) -> Value:
    """Return a parameter that must be a scalar."""
    if isinstance(value, Array):
        raise AwkError(f"fatal: attempt to use array `{name}' in a scalar context")
    return value


async def indirect(runtime: Runtime, name: str, args: tuple[Value, ...]) -> Value:
    """Return a call of the function that a variable names."""
    name = name.removeprefix("awk::").replace("::", IN_NAMESPACE)
    known = runtime.functions.get(name)
    if known is None:
        plain = _CALLABLE.get(name)
        if plain is None:
            raise AwkError(f"fatal: `{name}' is not a function, so it cannot be called indirectly")
        return plain(runtime, *args)
    waiting, arrays = known
    if len(args) > len(arrays):
        raise AwkError(f"fatal: function `{name}' called with more arguments than declared")
    given = [*args, *([None] * (len(arrays) - len(args)))]
    for place, wanted in enumerate(arrays):
        if wanted and not isinstance(given[place], Array):
            given[place] = Array()
    patient = runtime.namespace.get("w_" + name)
    result = (patient or runtime.namespace["f_" + name])(*given)
    return await result if waiting or patient is not None else result


def undefined(name: str) -> Value:
    raise AwkError(f"fatal: function `{name}' not defined")


def set_number(runtime: Runtime, name: str, value: Value) -> Value:
    setattr(runtime, name, num(value))
    return value


def substr(text: str, start: float, length: float | None) -> str:
    """Characters from `start` (1 is the first, anything before counts as 1), at most `length` of them."""
    if length is not None and length != length:
        return ""
    first = len(text) if start >= len(text) + 1 else max(int(start), 1) - 1 if start > 0 else 0
    if length is None or length > len(text):
        return text[first:]
    count = int(length) if length > 0 else 0
    return text[first : first + count]


def trunc(value: float) -> float:
    return float(math.trunc(value)) if value - value == 0.0 else value


def split(runtime: Runtime, text: str, array: Array, by: Value, seps: Array | None) -> float:
    array.clear()
    if seps is not None:
        seps.clear()
    pairs: Sequence[tuple[str, str]] | zip[tuple[str, str]]
    if by is None:
        fs: Value = runtime.special["FS"] if runtime.split_by == "FS" else " "
    else:
        fs = by
    one_by_one = (fs.plain if isinstance(fs, regex.Rx) else fs) == ""
    if not text:
        pairs = ()  # even with an invalid separator
    elif one_by_one:
        pairs = zip(text, repeat(""))
    elif isinstance(fs, regex.Rx):
        pairs = cut(fs, text)
    else:
        fs = runtime.text(fs)
        if seps is None:
            pairs = zip(runtime.splitter_for(fs)(text), repeat(""))
        elif fs == " ":
            stripped = text.lstrip(" \t\n")
            lead = text[: len(text) - len(stripped)]
            if lead:
                seps["0"] = lead
            pairs = cut(regex.compiled("[ \t\n]+"), stripped.rstrip(" \t\n"))
            tail = stripped[len(stripped.rstrip(" \t\n")) :]
            if tail and pairs:
                pairs = [*pairs[:-1], (pairs[-1][0], tail)]
        else:
            rx = runtime.dynamic(fs if len(fs) > 1 else ("\\" + fs if fs in ".[]|()*+?{}^$\\" else fs))
            pairs = cut(rx, text)
    index = 0
    for index, (piece, separator) in enumerate(pairs, 1):
        if not index & 1023:
            checkpoint()
        array[str(index)] = FieldValue(piece)
        if seps is not None and separator:
            seps[str(index)] = separator
    if one_by_one and seps is not None:
        seps.update((str(between), "") for between in range(1, index))
    return float(index)


def patsplit(runtime: Runtime, text: str, array: Array, by: Value, seps: Array | None) -> float:
    rx = runtime.dynamic(runtime.special["FPAT"] if by is None else by)
    array.clear()
    spans = contents(rx, text)
    for index, (start, stop) in enumerate(spans, 1):
        array[str(index)] = FieldValue(text[start:stop])
    if seps is not None:
        seps.clear()
        edges = [0, *(point for span in spans for point in span), len(text)]
        for index in range(len(edges) // 2):
            seps[str(index)] = text[edges[2 * index] : edges[2 * index + 1]]
    return float(len(spans))


def match(runtime: Runtime, text: str, rx: regex.Rx, array: Array | None) -> float:
    if array is not None:
        array.clear()
        spans = rx.spans(text)
        found = None if spans is None else spans[0]
        for group, (start, stop) in enumerate(spans or ()):
            if start >= 0:
                array[str(group)] = FieldValue(text[start:stop])
                array[f"{group}{runtime.subsep}start"] = float(start + 1)
                array[f"{group}{runtime.subsep}length"] = float(stop - start)
    else:
        found = rx.search(text)
    if found is None:
        runtime.RSTART, runtime.RLENGTH = 0.0, -1.0
    else:
        runtime.RSTART, runtime.RLENGTH = float(found[0] + 1), float(found[1] - found[0])
    return runtime.RSTART


def gensub(runtime: Runtime, rx: regex.Rx, with_: str, how: Value, text: str) -> str:
    if isinstance(how, str) and looks_numeric(how) is None:
        which = 0 if how[:1] in ("g", "G") else 1
        odd = which == 1
    else:
        odd = num(how) < 1.0
        which = max(int(num(how)), 1)
    if odd:
        runtime.warn(f"gensub: third argument `{runtime.text(how)}' treated as 1")
    return runtime.grown(regex.general_substitute(rx, with_, text, which))


def srand(runtime: Runtime, seed: Value, given: bool) -> float:
    old = num(runtime.seed)
    runtime.seed = num(seed) if given else float(int(runtime.proc.now()))
    runtime.random.seed(runtime.seed)
    return old


def strtonum(value: Value) -> float:
    if not isinstance(value, str):
        return num(value)
    digits = value
    try:
        if digits[:2] in ("0x", "0X"):
            end = 2
            while end < len(digits) and digits[end] in "0123456789abcdefABCDEF":
                end += 1
            return float(int(digits[2:end] or "0", 16))
        if digits[:1] == "0" and digits.isdecimal() and not set(digits) & {"8", "9"}:
            return float(int(digits, 8))
    except ValueError:
        return 0.0
    return num(value)


def bits(name: str, *values: float) -> float:
    if len(values) < 2 and name != "compl":
        raise AwkError(f"fatal: {name}: called with less than two arguments")
    numbers = [int(value) for value in values]
    if name in ("lshift", "rshift") and min(values) < 0:
        raise AwkError(f"fatal: {name}({values[0]:f}, {values[1]:f}): negative values are not allowed")
    for place, number in enumerate(numbers, 1):
        if number < 0:
            if name == "compl":
                raise AwkError(f"fatal: compl({values[0]:f}): negative value is not allowed")
            raise AwkError(f"fatal: {name}: argument {place} negative value {values[place - 1]:g} is not allowed")
    if name == "compl":
        return _significant_bits(~numbers[0] & ((1 << 64) - 1))
    if name == "lshift":
        return _significant_bits((numbers[0] << (numbers[1] & 63)) & ((1 << 64) - 1))  # as the machine counts
    if name == "rshift":
        return float(numbers[0] >> (numbers[1] & 63))
    result = numbers[0]
    for number in numbers[1:]:
        result = {"and": result & number, "or": result | number, "xor": result ^ number}[name]
    return _significant_bits(result)


def _significant_bits(number: int) -> float:
    """As many of the bits as a number can hold, counted from the lowest that is set."""
    return float(number & ((1 << 53) - 1) * (number & -number))


def typeof(runtime: Runtime, value: Value, unset: str = "untyped") -> str:
    if isinstance(value, dict):
        return "array"
    if value is None:
        return unset
    if value.__class__ is float:
        return "number"
    if value.__class__ is TypedRegex:
        return "regexp"
    if value is NO_FIELD:
        return "unassigned"
    if isinstance(value, FieldValue):
        return "strnum" if runtime.looks_numeric(value) is not None else "string"
    return "string"


def length(runtime: Runtime, value: Value) -> float:
    return float(len(value)) if isinstance(value, dict) else float(len(runtime.text(value)))


# ----------------------------------------------------------------------------------------------- as it is written


def _optional(e: Emitter, args: Args, index: int, method: str = "value") -> str:
    return str(getattr(e, method)(args[index])) if index < len(args) else "None"


def _array_argument(e: Emitter, args: Args, index: int) -> str:
    if index >= len(args):
        return "None"
    arg = args[index]
    if isinstance(arg, Index):
        return e.nested(e.array(arg.name), (*arg.outer, arg.subscripts), arg.name)
    assert isinstance(arg, Var)
    return e.array(arg.name)


def _pattern(e: Emitter, args: Args, index: int) -> str:
    if index >= len(args):
        return "None"
    arg = args[index]
    if isinstance(arg, (Regex, Typed)):
        return e.rx(arg)
    return e.value(arg)


def _need(args: Args, low: int, high: int, name: str) -> None:
    if not low <= len(args) <= high:
        raise AwkError(f"error: {len(args)} is invalid as number of arguments for {name}", 1)


def _emit_length(e: Emitter, args: Args) -> str:
    if not args:
        return f"float(len({e.field_text(Field(Num(0.0)))}))"
    arg = args[0]
    if isinstance(arg, Var) and e.is_array(arg):
        return f"float(len({e.array(arg.name)}))"
    if (isinstance(arg, Var) and arg.name in e.params) or isinstance(arg, Index):
        return f"length(R, {e.passed_on(arg)})"
    return f"float(len({e.text(arg)}))"


def _emit_substitute(every: bool) -> Callable[[Emitter, Args], str]:
    def write(e: Emitter, args: Args) -> str:
        _need(args, 2, 3, "gsub" if every else "sub")
        target: Expr = args[2] if len(args) > 2 else Field(Num(0.0))
        if isinstance(target, Grouping) and len(target.items) == 1:
            target = target.items[0]
        result = e.temp()
        call = f"substitute({e.rx(args[0])}, {e.text(args[1])}, {e.text(target)}, {every})"
        if isinstance(target, (Var, Field)) or hasattr(target, "subscripts"):
            stored = f"({e.store(target, f'R.grown({result}[0])')} if {result}[1] else None)"
        else:
            stored = "None"
        return f"(({result} := {call}), {stored}, float({result}[1]))[2]"

    return write


def _emit_split(function: str) -> Callable[[Emitter, Args], str]:
    def write(e: Emitter, args: Args) -> str:
        _need(args, 2, 4, function)
        array, seps = _array_argument(e, args, 1), _array_argument(e, args, 3)
        return f"{function}(R, {e.text(args[0])}, {array}, {_pattern(e, args, 2)}, {seps})"

    return write


def _emit_match(e: Emitter, args: Args) -> str:
    _need(args, 2, 3, "match")
    return f"match(R, {e.text(args[0])}, {e.rx(args[1])}, {_array_argument(e, args, 2)})"


def _emit_substr(e: Emitter, args: Args) -> str:
    _need(args, 2, 3, "substr")
    rest = e.number(args[2]) if len(args) > 2 else "None"
    return f"substr({e.text(args[0])}, {e.number(args[1])}, {rest})"


def _emit_gensub(e: Emitter, args: Args) -> str:
    _need(args, 3, 4, "gensub")
    text = e.text(args[3]) if len(args) > 3 else e.field_text(Field(Num(0.0)))
    return f"gensub(R, {e.rx(args[0])}, {e.text(args[1])}, {e.value(args[2])}, {text})"


def _emit_sprintf(e: Emitter, args: Args) -> str:
    _need(args, 1, 10_000, "sprintf")
    values = "".join(f"{e.value(arg)}, " for arg in args[1:])
    return f"R.grown(sprintf({e.text(args[0])}, ({values}), R.convfmt))"


def _emit_math(function: str, before: str = "") -> Callable[[Emitter, Args], str]:
    def write(e: Emitter, args: Args) -> str:
        _need(args, 1, 1, function)
        return f"{function}({before}{e.number(args[0])})"

    return write


def _emit_bits(name: str) -> Callable[[Emitter, Args], str]:
    return lambda e, args: f"bits({name!r}, {', '.join(e.number(arg) for arg in args)})"


def _emit_asort(indices: bool) -> Callable[[Emitter, Args], str]:
    def write(e: Emitter, args: Args) -> str:
        _need(args, 1, 3, "asorti" if indices else "asort")
        source, into = _array_argument(e, args, 0), _array_argument(e, args, 1)
        if len(args) == 2 and args[0] == args[1]:
            e.facts.warnings.append(
                f"cmd. line:{e.line}: warning: asort/asorti: using the same array as source and destination without "
                "a third argument is silly."
            )
        given = f"(R, {source}, {into}, {_optional(e, args, 2)}, {indices})"
        return f"(await offload_asort{given})" if e.awaits else f"asort{given}"

    return write


def _emit_strftime(e: Emitter, args: Args) -> str:
    form = e.text(args[0]) if args else "None"
    stamp = e.number(args[1]) if len(args) > 1 else "None"
    utc = e.condition(args[2]) if len(args) > 2 else "False"
    return f"strftime(R, {form}, {stamp}, {utc})"


def _emit_typeof(e: Emitter, args: Args) -> str:
    arg = args[0]
    if isinstance(arg, Var):
        if e.is_mixed(arg.name):
            return f"typeof(R, p_{arg.name})"
        if e.is_array(arg):
            if not e.is_traced(arg.name):
                return "'array'"
            return f"('array' if a_{arg.name} or {arg.name!r} in R.touched else 'untyped')"
        if e.is_traced(arg.name):
            return f"typeof(R, v_{arg.name}, 'unassigned' if {arg.name!r} in R.touched else 'untyped')"
    if isinstance(arg, Regex):
        return "'number'"
    return f"typeof(R, {e.passed_on(arg)})"


def _emit_isarray(e: Emitter, args: Args) -> str:
    arg = args[0]
    if isinstance(arg, Var) and e.is_mixed(arg.name):
        return f"(1.0 if isinstance(p_{arg.name}, dict) else 0.0)"
    if isinstance(arg, Var) and e.is_array(arg):
        return "1.0"
    return f"(1.0 if isinstance({e.passed_on(arg)}, dict) else 0.0)"


def _emit_close(e: Emitter, args: Args) -> str:
    end = f", {e.text(args[1])}" if len(args) > 1 else ""
    return f"(await R.close({e.text(args[0])}{end}))"


EMITTERS: dict[str, Callable[[Emitter, Args], str]] = {
    "length": _emit_length,
    "substr": _emit_substr,
    "index": lambda e, args: (
        f"float(R.folded({e.text(args[0])}).find(R.folded({e.text(args[1])})) + 1)"
        if "IGNORECASE" in e.facts.uses
        else f"float({e.text(args[0])}.find({e.text(args[1])}) + 1)"
    ),
    "split": _emit_split("split"),
    "patsplit": _emit_split("patsplit"),
    "sub": _emit_substitute(False),
    "gsub": _emit_substitute(True),
    "gensub": _emit_gensub,
    "match": _emit_match,
    "sprintf": _emit_sprintf,
    "sin": _emit_math("sin"),
    "cos": _emit_math("cos"),
    "exp": _emit_math("exponential", "R, "),
    "log": _emit_math("logarithm", "R, "),
    "sqrt": _emit_math("root", "R, "),
    "int": _emit_math("trunc"),
    "atan2": lambda e, args: f"atan2({e.number(args[0])}, {e.number(args[1])})",
    "rand": lambda e, args: "R.random.random()",
    "srand": lambda e, args: f"srand(R, {_optional(e, args, 0)}, {bool(args)})",
    "tolower": lambda e, args: f"lowered({e.text(args[0])})",
    "toupper": lambda e, args: f"uppered({e.text(args[0])})",
    "system": lambda e, args: f"(await R.system({e.text(args[0])}))",
    "close": _emit_close,
    "fflush": lambda e, args: f"R.fflush({e.text(args[0]) if args else ''})",
    "systime": lambda e, args: "float(int(R.proc.now()))",
    "strftime": _emit_strftime,
    "mktime": lambda e, args: f"mktime(R, {e.text(args[0])}, {e.condition(args[1]) if len(args) > 1 else False})",
    "strtonum": lambda e, args: f"strtonum({e.value(args[0])})",
    "and": _emit_bits("and"),
    "or": _emit_bits("or"),
    "xor": _emit_bits("xor"),
    "compl": _emit_bits("compl"),
    "lshift": _emit_bits("lshift"),
    "rshift": _emit_bits("rshift"),
    "asort": _emit_asort(False),
    "asorti": _emit_asort(True),
    "isarray": _emit_isarray,
    "typeof": _emit_typeof,
    "mkbool": lambda e, args: f"(1.0 if {e.condition(args[0])} else 0.0)",
    # There are no translations: a text stands for itself.
    "dcgettext": lambda e, args: e.text(args[0]),
    "dcngettext": lambda e, args: f"({e.text(args[0])} if {e.number(args[2])} == 1.0 else {e.text(args[1])})",
    "bindtextdomain": lambda e, args: e.text(args[0]),
    "intdiv": lambda e, args: f"intdiv(R, {e.number(args[0])}, {e.number(args[1])}, {_array_argument(e, args, 2)})",
}


WARNING = frozenset(("exp", "log", "sqrt", "gensub", "intdiv"))
"""Functions that may warn, with the position of the record."""


def sine(value: float) -> float:
    return -math.nan if math.isinf(value) else math.sin(value)


def cosine(value: float) -> float:
    return -math.nan if math.isinf(value) else math.cos(value)


def exponential(runtime: Runtime, value: float) -> float:
    try:
        result = math.exp(value)
    except OverflowError:
        result = math.inf
    if (result == 0 or result == math.inf) and math.isfinite(value):
        runtime.warn(f"exp: argument {value:g} is out of range")
    return result


def logarithm(runtime: Runtime, value: float) -> float:
    if value > 0:
        return math.log(value)
    if value < 0:
        runtime.warn(f"log: received negative argument {value:g}")
    return -math.inf if value == 0 else -math.nan


def root(runtime: Runtime, value: float) -> float:
    if value < 0:
        runtime.warn(f"sqrt: received negative argument {value:g}")
    return math.sqrt(value) if value >= 0 else -math.nan


def intdiv(runtime: Runtime, left: float, right: float, array: Array) -> float:
    dividend, divisor = int(left), int(right)
    if divisor == 0:
        runtime.warn("intdiv: division by zero attempted")
        return -1.0
    quotient = abs(dividend) // abs(divisor)
    quotient = quotient if (dividend < 0) == (divisor < 0) else -quotient
    array["quotient"], array["remainder"] = float(quotient), float(dividend - quotient * divisor)
    return 0.0


_CALLABLE: dict[str, Callable[..., Value]] = {
    "length": length,
    "tolower": lambda runtime, text: letters.lower(runtime.text(text)),
    "toupper": lambda runtime, text: letters.upper(runtime.text(text)),
    "substr": lambda runtime, text, start, count=None: substr(
        runtime.text(text), num(start), None if count is None else num(count)
    ),
    "index": lambda runtime, text, part: float(runtime.text(text).find(runtime.text(part)) + 1),
    "sprintf": lambda runtime, form, *args: sprintf(runtime.text(form), args, runtime.convfmt),
    "int": lambda runtime, value: trunc(num(value)),
    "sin": lambda runtime, value: sine(num(value)),
    "cos": lambda runtime, value: cosine(num(value)),
    "exp": lambda runtime, value: exponential(runtime, num(value)),
    "log": lambda runtime, value: logarithm(runtime, num(value)),
    "sqrt": lambda runtime, value: root(runtime, num(value)),
    "split": lambda runtime, text, array, by=None, seps=None: split(runtime, runtime.text(text), array, by, seps),
    "strtonum": lambda runtime, value: strtonum(value),
}
"""Built-in functions that can be called by name."""

RUNTIME_NAMES = {
    "nested": nested,
    "aggregate": aggregate,
    "scalar": scalar,
    "undefined": undefined,
    "indirect": indirect,
    "divide": divide,
    "modulo": modulo,
    "power": power,
    "put": put,
    "element": element,
    "put_value": put_value,
    "set_number": set_number,
    "substr": substr,
    "trunc": trunc,
    "split": split,
    "patsplit": patsplit,
    "match": match,
    "gensub": gensub,
    "srand": srand,
    "strtonum": strtonum,
    "bits": bits,
    "strftime": strftime,
    "mktime": mktime,
    "typeof": typeof,
    "lowered": letters.lower,
    "uppered": letters.upper,
    "length": length,
    "keys": keys,
    "asort": asort,
    "offload_asort": offload_asort,
    "offload_keys": offload_keys,
    "exponential": exponential,
    "logarithm": logarithm,
    "root": root,
    "intdiv": intdiv,
    "substitute": regex.substitute,
    "sin": sine,
    "cos": cosine,
    "atan2": math.atan2,
}
