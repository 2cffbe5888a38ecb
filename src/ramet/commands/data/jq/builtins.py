"""jq's built-in functions that take filters as arguments (`NATIVES`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ramet.commands.data.jq import dates, values
from ramet.commands.data.jq.compile import Compiler, Native
from ramet.commands.data.jq.functions import (
    PLAIN,
    add,
    getpath_checked,
    length,
    tostream,
)
from ramet.commands.data.jq.parser import Node
from ramet.commands.data.jq.paths import checked, get_path, index, set_path, short
from ramet.commands.data.jq.prelude import PRELUDE_NAMES
from ramet.commands.data.jq.scopes import Env, Run, Scope
from ramet.commands.data.jq.values import (
    Json,
    compare,
    described,
    dumps,
    equal,
    fail,
    is_number,
    sort_key,
    truthy,
)


def _plain_native(function: Callable[..., Json]) -> Native:
    """Return a function of the input and of the values of its arguments; the last argument varies slowest."""

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
    step = compiler.compile(args[0] if args else ("optional", ("iterate", ("identity",))), scope, path)

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
                raise fail(f"Invalid path expression with result {short(item[1])}")
            yield ((*item[0], *at), getpath_checked(item[1], at))

    return run


def _limit(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    amount, source = compiler.value(args[0], scope), compiler.compile(args[1], scope, path)

    def run(env: Env, item: Any) -> Iterator[Any]:
        for count in amount(env, item[1] if path else item):
            side = compare(count, 0)
            if side <= 0:
                if side < 0:
                    yield from source(env, item)
                continue
            if not is_number(count):
                raise fail(f"{described(count)} and number (1) cannot be subtracted")
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
                raise fail("skip doesn't support negative count")
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
        if found or not path:
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
        # The step restarts with the same input; an error or the consumer ends this.
        while True:
            tick()
            yield from step(env, item)

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
                if not isinstance(item, dict):
                    raise fail(f"Cannot iterate over {described(item)}")
                both = f"{described(item)} and {described([list(key_run(env, each)) for each in item.values()])}"
                raise fail(
                    f"{both} cannot be iterated over"
                    if name in ("min", "max")
                    else f"{both} cannot be sorted, as they are not both arrays"
                )
            pairs = [(list(key_run(env, element)), element) for element in item]
            if name in ("min", "max"):
                yield _extreme_pair(pairs, name == "max")
                return
            if _comparable(pairs):
                pairs = sorted(pairs, key=lambda pair: pair[0][0])
            else:
                pairs = sorted(pairs, key=lambda pair: sort_key(pair[0]))
            if name == "sort":
                found = [element for _, element in pairs]
                yield found
                return
            groups: list[tuple[Json, list[Json]]] = []
            for key, element in pairs:
                if groups and equal(groups[-1][0], key):
                    groups[-1][1].append(element)
                else:
                    groups.append((key, [element]))
            found = [group if name == "group" else group[0] for _, group in groups]
            yield found

        return compiler.computed(run, path)

    return make


def _comparable(pairs: list[tuple[Json, Json]]) -> bool:
    """Return whether all keys are one text each, or all one number each: these Python compares as jq does."""
    if not all(len(key) == 1 for key, _ in pairs):
        return False
    kinds = {type(key[0]) for key, _ in pairs}
    return kinds == {str} or (kinds <= {int, float} and all(key[0] == key[0] for key, _ in pairs))


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
        raise fail("break")

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
        value = item[1] if path else item
        compiler.host.complain(value if isinstance(value, str) else dumps(value))
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
                raise fail(f"{described(value)} halt_error/1: number required")
            raise Halt(int(code), value, True)
        yield from ()

    return run


def _from_host(name: str) -> Native:
    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        return compiler.computed(lambda env, item: iter((getattr(compiler.host, name)(),)), path)

    return make


def _zoned(function: Callable[..., Json]) -> Native:
    """Return a time function that takes the zone as last argument."""

    def make(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
        forms = compiler.value(args[0], scope) if args else None

        def run(env: Env, item: Any) -> Iterator[Any]:
            zone = str(compiler.host.environment().get("TZ", ""))
            if forms is None:
                yield function(item, zone)
            else:
                for form in forms(env, item):
                    yield function(item, form, zone)

        return compiler.computed(run, path)

    return make


def _module_meta(compiler: Compiler, args: tuple[Node, ...], scope: Scope, path: bool) -> Run:
    return compiler.computed(lambda env, item: iter((compiler.host.module_meta(item),)), path)


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
                path_of = index(event, 0)
                if compare(length(path_of), count) > 0:
                    yield set_path(event, [0], index(path_of, {"start": count, "end": None}))

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
    from ramet.commands.data.jq import regex as matching

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
    ("localtime", 0): _zoned(dates.localtime),
    ("strftime", 1): _zoned(dates.strftime),
    ("strflocaltime", 1): _zoned(partial(dates.strftime, local=True)),
    ("env", 0): _from_host("environment"),
    ("get_search_list", 0): _from_host("search_list"),
    ("modulemeta", 0): _module_meta,
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
