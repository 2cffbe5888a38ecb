"""jq's functions: plain ones over values (`PLAIN`), with filters (`NATIVES`), and written in jq (`PRELUDE`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from ramet.commands.jq import dates, formats, values
from ramet.commands.jq.compile import Compiler, Env, Native, Run, Scope, checked
from ramet.commands.jq.parser import Node
from ramet.commands.jq.paths import delete_paths, get_path, index, indices, set_path
from ramet.commands.jq.values import (
    JqError,
    Json,
    compare,
    described,
    dumps,
    equal,
    fail,
    is_number,
    kind,
    number,
    sort_key,
    sorted_values,
    to_double,
    to_text,
    truthy,
)

# ------------------------------------------------------------------------------------------------------ over values


def length(value: Json) -> Json:
    if value is None:
        return 0
    if isinstance(value, bool):
        raise fail(f"{described(value)} has no length")
    return abs(value) if is_number(value) else len(value)


def keys(value: Json, ordered: bool = True) -> Json:
    if isinstance(value, dict):
        return sorted(value) if ordered else list(value)
    if isinstance(value, list):
        return list(range(len(value)))
    raise fail(f"{described(value)} has no keys")


def has(value: Json, key: Json) -> Json:
    if isinstance(value, dict) and isinstance(key, str):
        return key in value
    if isinstance(value, list) and is_number(key):
        return 0 <= key < len(value)
    raise fail(f"Cannot check whether {kind(value)} has a {kind(key)} key")


def contains(value: Json, part: Json) -> Json:
    if isinstance(value, dict) and isinstance(part, dict):
        return all(key in value and contains(value[key], item) for key, item in part.items())
    if isinstance(value, list) and isinstance(part, list):
        return all(any(kind(own) == kind(item) and contains(own, item) for own in value) for item in part)
    if isinstance(value, str) and isinstance(part, str):
        return part in value
    if kind(value) == kind(part):
        return equal(value, part)
    raise fail(f"{described(value)} and {described(part)} cannot have their containment checked")


def tonumber(value: Json) -> Json:
    if is_number(value):
        return value
    if isinstance(value, str):
        text = value.strip(" \t\n\r")
        if re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", text) and text == value.strip():
            return values.parse_int(text) if re.fullmatch(r"-?\d+", text) else values.parse_float(text)
        if text.lower() == "nan":
            return math.nan
    raise fail(f"{described(value)} cannot be parsed as a number")


def fromjson(value: Json) -> Json:
    if not isinstance(value, str):
        raise fail(f"{described(value)} cannot be parsed as JSON")
    text = value.strip(" \t\r\n")
    if text.lower() in ("nan", "-nan"):
        return math.nan
    try:
        result, end = values.decoder.raw_decode(text)
        if end != len(text):
            raise ValueError
    except (ValueError, RecursionError):
        from ramet.commands.jq.reader import complaint

        raise fail(f"{complaint(value)} (while parsing '{value}')") from None
    return result


def tojson(value: Json) -> Json:
    return dumps(value)


def floor(value: Json) -> Json:
    return _mathematical("floor", value, lambda x: x if x - x != 0 else float(math.floor(x)))


def _mathematical(name: str, value: Json, function: Callable[[float], float]) -> Json:
    if not is_number(value):
        raise fail(f"{described(value)} number required")
    try:
        return number(function(to_double(value)))
    except (ValueError, ZeroDivisionError):
        return math.nan
    except OverflowError:
        return math.inf


def startswith(value: Json, part: Json) -> Json:
    if not (isinstance(value, str) and isinstance(part, str)):
        raise fail("startswith() requires string inputs")
    return value.startswith(part)


def endswith(value: Json, part: Json) -> Json:
    if not (isinstance(value, str) and isinstance(part, str)):
        raise fail("endswith() requires string inputs")
    return value.endswith(part)


def ltrimstr(value: Json, part: Json) -> Json:
    return value.removeprefix(part) if isinstance(value, str) and isinstance(part, str) else value


def rtrimstr(value: Json, part: Json) -> Json:
    return value.removesuffix(part) if isinstance(value, str) and isinstance(part, str) and part else value


_SPACE = " \t\n\r\f\v\x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def _trimmer(method: str) -> Callable[[Json], Json]:
    def trim(value: Json) -> Json:
        if not isinstance(value, str):
            raise fail("trim input must be a string")
        return getattr(value, method)(_SPACE)

    return trim


def explode(value: Json) -> Json:
    if not isinstance(value, str):
        raise fail(f"{described(value)} cannot be exploded")
    return [ord(char) for char in value]


def implode(value: Json) -> Json:
    if not isinstance(value, list):
        raise fail("implode input must be an array")
    out: list[str] = []
    for code in value:
        if not is_number(code):
            raise fail("Unicode codepoint must be numeric")
        whole = int(code)
        out.append(chr(whole) if 0 <= whole < 0x110000 and not 0xD800 <= whole < 0xE000 else "\ufffd")
    return "".join(out)


def split(value: Json, separator: Json) -> Json:
    if not (isinstance(value, str) and isinstance(separator, str)):
        raise fail("split input and separator must be strings")
    return values.split_text(value, separator)


def join(value: Json, separator: Json) -> Json:
    if not isinstance(value, list):
        raise fail(f"Cannot iterate over {described(value) if value is not None else 'null'}")
    if not value:
        return ""
    result: Json = None
    for item in value:
        piece = "" if item is None else to_text(item) if is_number(item) or isinstance(item, bool) else item
        result = piece if result is None else values.add(values.add(result, separator), piece)
        if result is piece:
            result = values.add("", piece)
    return result


def flatten(value: Json, depth: Json = 1e9) -> Json:
    if not is_number(depth):
        raise fail("flatten depth must not be negative")
    if depth < 0:
        raise fail("flatten depth must not be negative")
    if not isinstance(value, (list, dict)):
        raise fail(f"Cannot iterate over {described(value) if value is not None else 'null'}")
    out: list[Json] = []
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, list) and depth >= 1:
            out.extend(flatten(item, depth - 1))
        else:
            out.append(item)
    return out


def reverse(value: Json) -> Json:
    if value is None:
        return []
    if isinstance(value, str):
        return value[::-1]
    if not isinstance(value, list):
        raise fail(f"Cannot index {kind(value)} with number")
    return value[::-1]


def _array(value: Json, doing: str) -> list[Json]:
    if not isinstance(value, list):
        raise fail(f"{described(value)} cannot be {doing}, as it is not an array")
    return value


def unique(value: Json) -> Json:
    out: list[Json] = []
    for item in sorted_values(_array(value, "sorted")):
        if not out or not equal(out[-1], item):
            out.append(item)
    return out


def add(value: Json) -> Json:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        raise fail(f"Cannot iterate over {described(value) if value is not None else 'null'}")
    if value and all(type(item) is str for item in value):
        return "".join(value)
    if value and all(type(item) is list for item in value):
        return [element for item in value for element in item]
    result: Json = None
    for item in value:
        result = values.add(result, item)
    return result


def from_entries(value: Json) -> Json:
    result: dict[str, Json] = {}
    items = value.values() if isinstance(value, dict) else value
    if not isinstance(value, (list, dict)):
        raise fail(f"Cannot iterate over {described(value) if value is not None else 'null'}")
    for entry in items:
        key: Json = None
        found: Json = None
        if isinstance(entry, dict):
            for name in ("key", "k", "name", "Name", "Key", "K"):
                key = entry.get(name)
                if key is not None and key is not False:
                    break
            else:
                key = False if any(entry.get(n) is False for n in ("key", "k", "name", "Name", "Key", "K")) else None
            for name in ("value", "v", "Value", "V"):
                if name in entry and entry[name] is not None:
                    found = entry[name]
                    break
        else:
            index(entry, "key")
        if isinstance(key, bool):
            key = "true" if key else "false"
        elif key is None:
            key = "null"
        elif is_number(key):
            key = dumps(key)
        if not isinstance(key, str):
            raise fail(f"Cannot use {described(key)} as object key")
        result[key] = found
    return result


def to_entries(value: Json) -> Json:
    return [{"key": key, "value": value[key]} for key in keys(value, False)]


def transpose(value: Json) -> Json:
    if not value:
        return []
    width = max(len(row) for row in value)
    return [[row[at] if at < len(row) else None for row in value] for at in range(width)]


def tostream(value: Json) -> Iterator[Json]:
    def walk(path: list[Json], item: Json, top: bool) -> Iterator[Json]:
        if isinstance(item, (list, dict)) and item:
            names = list(range(len(item))) if isinstance(item, list) else list(item)
            for name in names:
                yield from walk([*path, name], item[name], False)
            yield [[*path, names[-1]]]
        else:
            yield [path, item]

    yield from walk([], value, True)


def _case(value: Json, upper: bool) -> Json:
    if not isinstance(value, str):
        raise fail(f"{'ascii_upcase' if upper else 'ascii_downcase'} input must be a string")
    low, high = ("a", "z") if upper else ("A", "Z")
    return "".join((char.upper() if upper else char.lower()) if low <= char <= high else char for char in value)


def utf8bytelength(value: Json) -> Json:
    if not isinstance(value, str):
        raise fail(f"{described(value)} only strings have UTF-8 byte length")
    return len(value.encode())


def extreme(value: Json, highest: bool) -> Json:
    items = _array(value, "sorted")
    best: Json = None
    for position, item in enumerate(items):
        if position == 0 or (compare(item, best) >= 0 if highest else compare(item, best) < 0):
            best = item
    return best


def getpath_checked(value: Json, path: Json) -> Json:
    if not isinstance(path, list):
        raise fail("Path must be specified as an array")
    return get_path(value, path)


def setpath(value: Json, path: Json, new: Json) -> Json:
    if not isinstance(path, list):
        raise fail("Path must be specified as an array")
    return set_path(value, path, new)


def delpaths(value: Json, paths: Json) -> Json:
    if not isinstance(paths, list):
        raise fail("Paths must be specified as an array")
    if not all(isinstance(path, list) for path in paths):
        raise fail("Path must be specified as an array")
    return delete_paths(value, paths)


def error(value: Json, message: Json) -> Json:
    raise JqError(message)


def toarray(value: Json) -> Json:
    return value if isinstance(value, list) else [value]


def absolute(value: Json) -> Json:
    if not is_number(value):
        raise fail(f"{described(value)} has no absolute value")
    return -value if value < 0 else value


def significand(x: float) -> float:
    if x == 0 or x - x != 0:
        return x
    return math.frexp(x)[0] * 2


def logb(x: float) -> float:
    if x == 0:
        return -math.inf
    return math.inf if x - x != 0 else float(math.frexp(x)[1] - 1)


def gamma_sign(value: Json) -> Json:
    return [_mathematical("lgamma_r", value, math.lgamma), 1 if value > 0 or math.floor(value) % 2 == 0 else -1]


def frexp(value: Json) -> Json:
    if value - value != 0:
        return [value, 0]
    mantissa, exponent = math.frexp(to_double(value))
    return [number(mantissa), exponent]


def modf(value: Json) -> Json:
    if value - value != 0:
        return [0 if value == value else math.nan, value]
    fraction, whole = math.modf(to_double(value))
    return [number(fraction), number(whole)]


def ldexp(value: Json, x: Json, exponent: Json) -> Json:
    try:
        return number(math.ldexp(to_double(x), int(exponent)))
    except OverflowError:
        return math.copysign(math.inf, x)


def power(value: Json, x: Json, y: Json) -> Json:
    if not (is_number(x) and is_number(y)):
        raise fail(f"{described(x if not is_number(x) else y)} number required")
    try:
        return number(math.pow(to_double(x), to_double(y)))
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.inf if x == 0 else math.nan


def drem(value: Json, x: Json, y: Json) -> Json:
    try:
        return number(math.remainder(to_double(x), to_double(y)))
    except ValueError:
        return math.nan


def bsearch(value: Json, wanted: Json) -> Json:
    items = _array(value, "searched from") if isinstance(value, list) else None
    if items is None:
        raise fail(f"{described(value)} cannot be searched from")
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        order = compare(items[middle], wanted)
        if order == 0:
            return middle
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return -1 - low


def _two_numbers(function: Callable[[float, float], float]) -> Callable[[Json, Json, Json], Json]:
    def run(value: Json, x: Json, y: Json) -> Json:
        for item in (x, y):
            if not is_number(item):
                raise fail(f"{described(item)} number required")
        try:
            return number(function(to_double(x), to_double(y)))
        except (ValueError, OverflowError):
            return math.nan

    return run


def _one(name: str, function: Callable[[float], float]) -> Callable[[Json], Json]:
    return lambda value: _mathematical(name, value, function)


def _round(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x) if x - x == 0 else x


def _whole_or(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: function(x) if x - x == 0 else x


_MATH: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "asinh": math.asinh,
    "acosh": math.acosh, "atanh": math.atanh, "exp": math.exp, "exp2": lambda x: math.pow(2.0, x),
    "exp10": lambda x: math.pow(10.0, x),
    "pow10": lambda x: math.pow(10.0, x), "expm1": math.expm1, "log1p": math.log1p, "cbrt": math.cbrt,
    "log": lambda x: -math.inf if x == 0 else math.log(x), "log2": lambda x: -math.inf if x == 0 else math.log2(x),
    "log10": lambda x: -math.inf if x == 0 else math.log10(x), "significand": significand, "logb": logb,
    "gamma": math.lgamma, "lgamma": math.lgamma, "tgamma": math.gamma, "ceil": _whole_or(math.ceil),
    "trunc": _whole_or(math.trunc), "round": _round, "rint": _whole_or(round), "nearbyint": _whole_or(round),
    "fabs": abs,
}  # fmt: skip


PLAIN: dict[tuple[str, int], Callable[..., Json]] = {
    ("length", 0): length,
    ("utf8bytelength", 0): utf8bytelength,
    ("not", 0): lambda value: not truthy(value),
    ("keys", 0): keys,
    ("keys_unsorted", 0): lambda value: keys(value, False),
    ("has", 1): has,
    ("contains", 1): contains,
    ("add", 0): add,
    ("type", 0): kind,
    ("tostring", 0): to_text,
    ("tonumber", 0): tonumber,
    ("tojson", 0): tojson,
    ("fromjson", 0): fromjson,
    ("floor", 0): floor,
    ("startswith", 1): startswith,
    ("endswith", 1): endswith,
    ("ltrimstr", 1): ltrimstr,
    ("rtrimstr", 1): rtrimstr,
    ("trimstr", 1): lambda value, part: rtrimstr(ltrimstr(value, part), part),
    ("trim", 0): _trimmer("strip"),
    ("ltrim", 0): _trimmer("lstrip"),
    ("rtrim", 0): _trimmer("rstrip"),
    ("explode", 0): explode,
    ("implode", 0): implode,
    ("split", 1): split,
    ("join", 1): join,
    ("flatten", 0): flatten,
    ("flatten", 1): flatten,
    ("reverse", 0): reverse,
    ("sort", 0): lambda value: sorted_values(_array(value, "sorted")),
    ("unique", 0): unique,
    ("min", 0): lambda value: extreme(value, False),
    ("max", 0): lambda value: extreme(value, True),
    ("from_entries", 0): from_entries,
    ("to_entries", 0): to_entries,
    ("transpose", 0): transpose,
    ("ascii_downcase", 0): lambda value: _case(value, False),
    ("ascii_upcase", 0): lambda value: _case(value, True),
    ("ascii", 0): lambda value: chr(int(value)),
    ("setpath", 2): setpath,
    ("delpaths", 1): delpaths,
    ("error", 1): error,
    ("error", 0): lambda value: error(value, value),
    ("toarray", 0): toarray,
    ("abs", 0): absolute,
    ("bsearch", 1): bsearch,
    ("indices", 1): indices,
    ("_indices", 1): indices,
    ("index", 1): lambda value, part: (indices(value, part) or [None])[0],
    ("rindex", 1): lambda value, part: (indices(value, part) or [None])[-1],
    ("infinite", 0): lambda value: math.inf,
    ("nan", 0): lambda value: math.nan,
    ("isinfinite", 0): lambda value: to_double(_needs_number(value)) in (math.inf, -math.inf),
    ("isnan", 0): lambda value: _needs_number(value) != value,
    ("isnormal", 0): lambda value: (
        abs(to_double(_needs_number(value))) >= 2.2250738585072014e-308 and value - value == 0
    ),
    ("pow", 2): power,
    ("ldexp", 2): ldexp,
    ("scalb", 2): ldexp,
    ("scalbln", 2): ldexp,
    ("drem", 2): drem,
    ("atan2", 2): _two_numbers(math.atan2),
    ("fmin", 2): _two_numbers(min),
    ("fmax", 2): _two_numbers(max),
    ("fmod", 2): _two_numbers(math.fmod),
    ("fma", 3): lambda value, x, y, z: values.add(values.multiply(x, y), z),
    ("copysign", 2): _two_numbers(math.copysign),
    ("hypot", 2): _two_numbers(math.hypot),
    ("nextafter", 2): _two_numbers(math.nextafter),
    ("nexttoward", 2): _two_numbers(math.nextafter),
    ("fdim", 2): _two_numbers(lambda x, y: max(x - y, 0.0)),
    ("frexp", 0): frexp,
    ("modf", 0): modf,
    ("lgamma_r", 0): gamma_sign,
    ("gmtime", 0): dates.gmtime,
    ("localtime", 0): dates.gmtime,
    ("mktime", 0): dates.mktime,
    ("timegm", 0): dates.mktime,
    ("strftime", 1): dates.strftime,
    ("strflocaltime", 1): lambda value, form: dates.strftime(value, form, "strflocaltime/1"),
    ("strptime", 1): dates.strptime,
    ("have_literal_numbers", 0): lambda value: True,
    ("have_decnum", 0): lambda value: True,
    ("format", 1): lambda value, name: formats.known("@" + name)(value),
    ("getpath", 1): getpath_checked,
}
for _name, _function in _MATH.items():
    PLAIN[_name, 0] = _one(_name, _function)


def _needs_number(value: Json) -> Json:
    if not is_number(value):
        raise fail(f"{described(value)} number required")
    return value


def _plain_native(function: Callable[..., Json]) -> Native:
    """A function of the input and of the values of its arguments; the last argument varies slowest."""

    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        runs = [compiler.value(arg, scope) for arg in args]

        def product(at: int, env: Env, item: Json) -> Iterator[tuple[Json, ...]]:
            if at < 0:
                yield ()
                return
            for value in runs[at](env, item):
                for before in product(at - 1, env, item):
                    yield (*before, value)

        if not runs:

            def run0(env: Env, item: Any) -> Iterator[Any]:
                yield function(item)

            return compiler.computed(run0, path)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for given in product(len(runs) - 1, env, item):
                yield function(item, *given)

        return compiler.computed(run, path)

    return make


# ----------------------------------------------------------------------------------------------------- with filters


def _empty(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    return lambda env, item: iter(())


def _select(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    test = compiler.value(args[0], scope)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for chosen in test(env, item[1] if path else item):
            if truthy(chosen):
                yield item

    return run


def _recurse(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    step = compiler.compile(args[0] if args else ("try", ("iterate", ("identity",)), None), scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        tick = compiler.host.tick
        yield item
        stack = [step(env, item)]
        while stack:
            for below in stack[-1]:
                tick()
                yield below
                stack.append(step(env, below))
                break
            else:
                stack.pop()

    return run


def _path(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    inner = compiler.compile(args[0], scope, True)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for at, value in inner(env, ((), item)):
            yield list(checked(at, value))

    return compiler.computed(run, path)


def _getpath(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    where = compiler.value(args[0], scope)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for at in where(env, item[1] if path else item):
            if not path:
                yield getpath_checked(item, at)
                continue
            if item[0] is None:
                raise fail(f"Invalid path expression with result {dumps(item[1])}")
            yield ((*item[0], *at), getpath_checked(item[1], at))

    return run


def _limit(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    amount, source = compiler.value(args[0], scope), compiler.compile(args[1], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for count in amount(env, item[1] if path else item):
            if not is_number(count):
                raise fail("Limit must be a number")
            if count <= 0:
                if count < 0:
                    yield from source(env, item)
                continue
            left = count
            for result in source(env, item):
                yield result
                left -= 1
                if left <= 0:
                    break

    return run


def _skip(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    amount, source = compiler.value(args[0], scope), compiler.compile(args[1], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for count in amount(env, item[1] if path else item):
            if count < 0:
                raise fail("Invalid arguments: negative count")
            for number_, result in enumerate(source(env, item)):
                if number_ >= count:
                    yield result

    return run


def _first(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    source = compiler.compile(args[0], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for result in source(env, item):
            yield result
            return

    return run


def _last(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    source = compiler.compile(args[0], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        tick = compiler.host.tick
        found = False
        last: Any = None
        for result in source(env, item):
            tick()
            last, found = result, True
        if found:
            yield last

    return run


def _until(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    test, step = compiler.value(args[0], scope), compiler.compile(args[1], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        tick = compiler.host.tick
        stack: list[Iterator[Any]] = [iter((item,))]
        while stack:
            for current in stack[-1]:
                tick()
                done = False
                for verdict in test(env, current[1] if path else current):
                    done = truthy(verdict)
                    break
                if done:
                    yield current
                    continue
                stack.append(step(env, current))
                break
            else:
                stack.pop()

    return run


def _while(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    test, step = compiler.value(args[0], scope), compiler.compile(args[1], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        tick = compiler.host.tick
        stack: list[Iterator[Any]] = [iter((item,))]
        while stack:
            for current in stack[-1]:
                tick()
                if any(truthy(verdict) for verdict in test(env, current[1] if path else current)):
                    yield current
                    stack.append(step(env, current))
                    break
            else:
                stack.pop()

    return run


def _repeat(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    step = compiler.compile(args[0], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        tick = compiler.host.tick
        stack: list[Iterator[Any]] = [iter((item,))]
        while stack:
            for current in stack[-1]:
                tick()
                yield current
                stack.append(step(env, current))
                break
            else:
                stack.pop()

    return run


def _range(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    runs = [compiler.value(arg, scope) for arg in args]

    def span(start: Json, stop: Json, step: Json) -> Iterator[Json]:
        if not (is_number(start) and is_number(stop) and is_number(step)):
            raise fail("Range bounds must be numeric")
        tick = compiler.host.tick
        current = start
        if step > 0:
            while current < stop:
                tick()
                yield current
                current = values.add(current, step)
        elif step < 0:
            while current > stop:
                tick()
                yield current
                current = values.add(current, step)
        elif start < stop:
            while True:
                tick()
                yield current

    def run(env: Env, item: Any) -> Iterator[Any]:
        if len(runs) == 1:
            for stop in runs[0](env, item):
                yield from span(0, stop, 1)
            return
        for start in runs[0](env, item):
            for stop in runs[1](env, item):
                if len(runs) == 2:
                    yield from span(start, stop, 1)
                else:
                    for step in runs[2](env, item):
                        yield from span(start, stop, step)

    return compiler.computed(run, path)


def _quantifier(positive: bool) -> Native:
    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        source = compiler.value(args[0] if len(args) == 2 else ("iterate", ("identity",)), scope)
        test = compiler.value(args[-1] if args else ("identity",), scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            for element in source(env, item):
                for verdict in test(env, element):
                    if truthy(verdict) is positive:
                        yield positive
                        return
            yield not positive

        return compiler.computed(run, path)

    return make


def _isempty(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    source = compiler.value(args[0], scope)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for _ in source(env, item):
            yield False
            return
        yield True

    return compiler.computed(run, path)


def _by(name: str) -> Native:
    """sort_by, group_by, unique_by, min_by and max_by: the key is all that the filter yields for an element."""

    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        key_run = compiler.value(args[0], scope)

        def run(env: Env, item: Any) -> Iterator[Any]:
            if not isinstance(item, list):
                if name in ("min", "max"):
                    raise fail(f"Cannot index {kind(item)} with number")
                doing = "sorted" if name == "sort" else "grouped"
                raise fail(f"{described(item)} cannot be {doing}, as it is not an array")
            pairs = [(list(key_run(env, element)), element) for element in item]
            if name in ("min", "max"):
                yield _extreme_pair(pairs, name == "max")
                return
            pairs.sort(key=lambda pair: sort_key(pair[0]))
            if name == "sort":
                yield [element for _, element in pairs]
                return
            groups: list[tuple[Json, list[Json]]] = []
            for key, element in pairs:
                if groups and equal(groups[-1][0], key):
                    groups[-1][1].append(element)
                else:
                    groups.append((key, [element]))
            yield [group if name == "group" else group[0] for _, group in groups]

        return compiler.computed(run, path)

    return make


def _extreme_pair(pairs: list[tuple[Json, Json]], highest: bool) -> Json:
    best: tuple[Json, Json] | None = None
    for pair in pairs:
        if best is None or (compare(pair[0], best[0]) >= 0 if highest else compare(pair[0], best[0]) < 0):
            best = pair
    return None if best is None else best[1]


def _add_of(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    source = compiler.value(args[0], scope)
    return compiler.computed(lambda env, item: iter((add(list(source(env, item))),)), path)


def _input(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    compiler.host.uses_input = True

    def run(env: Env, item: Any) -> Iterator[Any]:
        for value in compiler.host.inputs():
            yield value
            return
        raise fail("No more inputs")

    return compiler.computed(run, path)


def _inputs(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    compiler.host.uses_input = True
    return compiler.computed(lambda env, item: compiler.host.inputs(), path)


def _debug(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    message = compiler.value(args[0], scope) if args else None

    def run(env: Env, item: Any) -> Iterator[Any]:
        value = item[1] if path else item
        for shown in message(env, value) if message is not None else (value,):
            compiler.host.complain(dumps(["DEBUG:", shown]) + "\n")
        yield item

    return run


def _stderr(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    def run(env: Env, item: Any) -> Iterator[Any]:
        compiler.host.complain(dumps(item[1] if path else item))
        yield item

    return run


class Halt(Exception):
    """halt and halt_error: the end of everything."""

    def __init__(self, status: int, value: Json, shown: bool) -> None:
        super().__init__(status)
        self.status, self.value, self.shown = status, value, shown


def _halt(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    def run(env: Env, item: Any) -> Iterator[Any]:
        raise Halt(0, None, False)
        yield

    return run


def _halt_error(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    status = compiler.value(args[0], scope) if args else None

    def run(env: Env, item: Any) -> Iterator[Any]:
        value = item[1] if path else item
        for code in status(env, value) if status is not None else (5,):
            if not is_number(code):
                raise fail("halt_error/1: number required")
            raise Halt(int(code), value, True)
        yield from ()

    return run


def _from_host(name: str) -> Native:
    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        return compiler.computed(lambda env, item: iter((getattr(compiler.host, name)(),)), path)

    return make


def _tostream(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    return compiler.computed(lambda env, item: tostream(item), path)


def _fromstream(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    source = compiler.value(args[0], scope)

    def run(env: Env, item: Any) -> Iterator[Any]:
        current: Json = None
        started = False
        for event in source(env, item):
            where = event[0]
            if len(event) == 2:
                if not where:
                    yield event[1]
                    continue
                current, started = set_path(current, where, event[1]), True
            elif len(where) == 1 and started:
                yield current
                current, started = None, False

    return compiler.computed(run, path)


def _truncate_stream(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    source = compiler.value(args[-1], scope)
    depth = compiler.value(args[0], scope) if len(args) == 2 else None

    def run(env: Env, item: Any) -> Iterator[Any]:
        for count in depth(env, item) if depth is not None else (item,):
            for event in source(env, item if depth is not None else None):
                if len(event[0]) > count:
                    yield [event[0][int(count) :], *event[1:]]

    return compiler.computed(run, path)


def _walk(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    change = compiler.value(args[0], scope)

    def visit(env: Env, value: Json) -> Iterator[Json]:
        if isinstance(value, list):
            value = [result for item in value for result in visit(env, item)]
        elif isinstance(value, dict):
            made: dict[str, Json] = {}
            for key, item in value.items():
                for result in visit(env, item):
                    made[key] = result
                    break
            value = made
        return change(env, value)

    return compiler.computed(lambda env, item: visit(env, item), path)


def _builtins(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    names = sorted(f"{name}/{arity}" for name, arity in [*NATIVES, *PRELUDE_NAMES] if not name.startswith("_"))
    return compiler.constant(list(names), path)


def _pick(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    chosen = compiler.compile(args[0], scope, True)

    def run(env: Env, item: Any) -> Iterator[Any]:
        result: Json = None
        for at, value in chosen(env, ((), item)):
            result = set_path(result, checked(at, value), get_path(item, checked(at, value)))
        yield result

    return compiler.computed(run, path)


def _matching(name: str) -> Native:
    from ramet.commands.jq import matching

    return matching.native(name)


def _splits(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    inner = _matching("split")(compiler, args if len(args) == 2 else (*args, ("literal", None)), scope, False)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for parts in inner(env, item):
            yield from parts

    return compiler.computed(run, path)


NATIVES: dict[tuple[str, int], Native] = {
    **{key: _plain_native(function) for key, function in PLAIN.items()},
    ("empty", 0): _empty,
    ("select", 1): _select,
    ("recurse", 0): _recurse,
    ("recurse", 1): _recurse,
    ("path", 1): _path,
    ("getpath", 1): _getpath,
    ("limit", 2): _limit,
    ("skip", 2): _skip,
    ("first", 1): _first,
    ("last", 1): _last,
    ("until", 2): _until,
    ("while", 2): _while,
    ("repeat", 1): _repeat,
    ("range", 1): _range,
    ("range", 2): _range,
    ("range", 3): _range,
    ("any", 0): _quantifier(True),
    ("any", 1): _quantifier(True),
    ("any", 2): _quantifier(True),
    ("all", 0): _quantifier(False),
    ("all", 1): _quantifier(False),
    ("all", 2): _quantifier(False),
    ("isempty", 1): _isempty,
    ("sort_by", 1): _by("sort"),
    ("group_by", 1): _by("group"),
    ("unique_by", 1): _by("unique"),
    ("min_by", 1): _by("min"),
    ("max_by", 1): _by("max"),
    ("add", 1): _add_of,
    ("input", 0): _input,
    ("inputs", 0): _inputs,
    ("debug", 0): _debug,
    ("debug", 1): _debug,
    ("stderr", 0): _stderr,
    ("halt", 0): _halt,
    ("halt_error", 0): _halt_error,
    ("halt_error", 1): _halt_error,
    ("input_filename", 0): _from_host("input_filename"),
    ("input_line_number", 0): _from_host("input_line_number"),
    ("now", 0): _from_host("now"),
    ("env", 0): _from_host("environment"),
    ("get_search_list", 0): _from_host("search_list"),
    ("tostream", 0): _tostream,
    ("fromstream", 1): _fromstream,
    ("truncate_stream", 1): _truncate_stream,
    ("truncate_stream", 2): _truncate_stream,
    ("walk", 1): _walk,
    ("builtins", 0): _builtins,
    ("pick", 1): _pick,
    ("test", 1): _matching("test"),
    ("test", 2): _matching("test"),
    ("match", 1): _matching("match"),
    ("match", 2): _matching("match"),
    ("capture", 1): _matching("capture"),
    ("capture", 2): _matching("capture"),
    ("scan", 1): _matching("scan"),
    ("scan", 2): _matching("scan"),
    ("split", 2): _matching("split"),
    ("splits", 1): _splits,
    ("splits", 2): _splits,
    ("sub", 2): _matching("sub"),
    ("sub", 3): _matching("sub"),
    ("gsub", 2): _matching("gsub"),
    ("gsub", 3): _matching("gsub"),
}

PRELUDE = """
def map(f): [.[] | f];
def map_values(f): .[] |= f;
def recurse(f; c): def again: ., (f | select(c) | again); again;
def recurse_down: recurse;
def values: select(. != null);
def nulls: select(. == null);
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def strings: select(type == "string");
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def scalars: select(type | . != "array" and . != "object");
def finites: select(isinfinite or isnan | not);
def normals: select(isnormal);
def with_entries(f): to_entries | map(f) | from_entries;
def del(f): delpaths([path(f)]);
def paths: path(..) | select(length > 0);
def paths(f): path(.. | select(f)) | select(length > 0);
def leaf_paths: paths(scalars);
def first: .[0];
def last: .[-1];
def nth($n): .[$n];
def nth($n; f): if $n < 0 then error("Out of bounds negative array index") else first(skip($n; f)) end;
def in(xs): . as $x | xs | has($x);
def inside(xs): . as $x | xs | contains($x);
def combinations: if length == 0 then [] else .[0][] as $x | .[1:] | combinations as $rest | [$x] + $rest end;
def combinations(n): . as $all | [range(n) | $all] | combinations;
def isvalid(f): try (f | true) catch false;
def todate: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdate: fromdateiso8601;
def date: todate;
def dateadd(u; n): . + n;
def datesub(u; n): . - n;
def INDEX(rows; key): reduce rows as $row ({}; .[$row | key | tostring] |= $row);
def INDEX(key): INDEX(.[]; key);
def JOIN($table; key): [.[] | [., $table[key]]];
def JOIN($table; rows; key): rows | [., $table[key]];
def JOIN($table; rows; key; combine): rows | [., $table[key]] | combine;
def IN(xs): any(xs == .; .);
def IN(xs; ys): any(xs == ys; .);
"""
PRELUDE_NAMES = [
    (found[1], 0 if not found[2] else found[2].count(";") + 1)
    for found in re.finditer(r"^def ([A-Za-z_]\w*)(?:\(([^)]*)\))?:", PRELUDE, re.MULTILINE)
]
