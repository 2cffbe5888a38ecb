"""Run a jq program: compile it, read its inputs, write its results."""

from __future__ import annotations

import errno
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from ramet.commands.data.jq import values
from ramet.commands.data.jq.builtins import NATIVES
from ramet.commands.data.jq.compile import Compiler
from ramet.commands.data.jq.functions import tostream
from ramet.commands.data.jq.io.colours import Palette, coloured
from ramet.commands.data.jq.io.members import Odd, decode
from ramet.commands.data.jq.io.members import encode as encode_members
from ramet.commands.data.jq.io.partial_events import broken_events
from ramet.commands.data.jq.io.positions import InputPlace, Places
from ramet.commands.data.jq.io.reader import JsonReader, ParseError, whole_lines
from ramet.commands.data.jq.io.seq import Ignored, sequence
from ramet.commands.data.jq.modules import Modules
from ramet.commands.data.jq.options import JqOptions
from ramet.commands.data.jq.parser import Node, parse
from ramet.commands.data.jq.prelude import definitions
from ramet.commands.data.jq.scopes import ROOT, Run, Scope
from ramet.commands.data.jq.values import CompileError, JqBreak, JqError, Json, as_error
from ramet.commands.data.jq.worker import REPORTED, Worker
from ramet.commands.framework.inputs import HELD, is_unbuffered
from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH, HUGE, LARGE, SMALL
from ramet.core.errors import reason
from ramet.core.limits import Cancelled
from ramet.core.paths import encode
from ramet.core.proc import Proc

T = TypeVar("T")

QUICK = frozenset((
    "not", "empty", "length", "utf8bytelength", "keys", "values", "keys_unsorted", "map", "map_values", "select", "has",
    "in", "type", "add", "join", "split", "tostring", "tonumber", "tojson", "fromjson", "sort", "sort_by", "group_by",
    "unique", "unique_by", "min", "max", "min_by", "max_by", "reverse", "contains", "inside", "first", "last",
    "to_entries", "from_entries", "with_entries", "startswith", "endswith", "ltrimstr", "rtrimstr", "ascii_downcase",
    "ascii_upcase", "any", "all", "floor", "sqrt", "fabs", "round", "ceil", "abs", "trim", "ltrim", "rtrim", "error",
    "null", "true", "false", "del", "path", "paths", "leaf_paths", "getpath", "setpath", "delpaths", "flatten",
    "explode", "implode", "index", "rindex", "indices", "todate", "fromdate", "strftime", "strptime", "mktime",
    "gmtime", "now", "env", "scalars", "iterables", "arrays", "objects", "strings", "numbers", "booleans", "nulls",
    "transpose", "tostream", "isempty", "nth", "infinite", "nan", "isnan", "isinfinite",
))  # fmt: skip
"""Built-in functions of bounded cost."""


def _may_last(node: Node) -> bool:
    """Return whether a program may run longer than in proportion to its input."""
    todo: list[Any] = [node]
    while todo:
        part = todo.pop()
        if not isinstance(part, (tuple, list)) or not part:
            continue
        if part[0] == "call" and part[1] not in QUICK and part[1:] != ("recurse", ()):
            return True
        if part[0] in ("reduce", "foreach", "local", "def"):
            return True
        todo.extend(part[1:] if isinstance(part[0], str) else part)
    return False


class Host:
    """The environment of a program."""

    def __init__(self, proc: Proc, o: JqOptions) -> None:
        self.proc, self.o = proc, o
        self.seconds = proc.budget.limits.regex_seconds
        self.uses_input = False
        self.pending: Iterator[Json] = iter(())
        self.places = Places()
        self.name: str | None = None
        self._ticks = 0
        self.large = False
        """Whether an input was so large that the program runs in a thread."""
        self.endless = False
        """Whether the program may run long without a result."""
        self.stopped = False
        self.said: list[str] | None = None
        """Messages of `debug` and `stderr` from the thread."""
        self._environment = dict(proc.env)
        self.modules: dict[str, Json] = {}
        """Metadata of modules for `modulemeta`."""

    def tick(self) -> None:
        """Check the budget; loops and recursions call this at every turn."""
        self._ticks += 1
        if not self._ticks & 1023:
            if self.stopped:
                raise Cancelled
            self.proc.budget.check()

    def variable(self, name: str) -> tuple[Json, bool]:
        if name == "$ENV":
            return self._environment, True
        if name == "$ARGS":
            return {"positional": self.o.positional, "named": self.o.named}, True
        if name == "$__prog_args":
            return self.o.positional, True
        plain = name[1:]
        return (self.o.named[plain], True) if plain in self.o.named else (None, False)

    def inputs(self) -> Iterator[Json]:
        return self.pending

    def complain(self, text: str) -> None:
        if self.said is not None:
            self.said.append(text)
        else:
            self.proc.stderr.write(encode(text))

    def input_filename(self) -> Json:
        return self.places.name

    def input_line_number(self) -> Json:
        return self.places.line

    def now(self) -> Json:
        return values.number(self.proc.now())

    def environment(self) -> Json:
        return self._environment

    def module_meta(self, name: Json) -> Json:
        if not isinstance(name, str):
            raise JqError("modulemeta input module name must be a string")
        if name not in self.modules:
            raise JqError(f"module not found: {name}\n")
        return self.modules[name]

    def search_list(self) -> Json:
        return list(self.o.libraries) or ["~/.jq", "$ORIGIN/../lib/jq", "$ORIGIN/../lib"]


class JqRun:
    """One jq over its inputs."""

    def __init__(self, proc: Proc, o: JqOptions) -> None:
        self.proc, self.o = proc, o
        self.host = Host(proc, o)
        self.status = 0
        self.last: Json = None
        self.any_output = False
        self.out: list[str] = []
        self.unbuffered = o.unbuffered or is_unbuffered(proc)
        self.palette = self.colours(proc.env.get("JQ_COLORS", ""))
        self.failed_file = False
        self.modules = Modules(proc, o.libraries)
        self.compiler = Compiler(NATIVES, self.host)

    def colours(self, setting: str) -> Palette | None:
        palette = Palette.parse(setting)
        if palette is None:
            self.proc.stderr.write(b"Failed to set $JQ_COLORS\n")
        return (palette or Palette()) if self.o.colour else None

    # ------------------------------------------------------------------ program

    async def program(self, text: str) -> Run:
        compiler = self.compiler
        scope = ROOT
        tree = _parsed(text)
        for definition in definitions(text, bool(tree[1])):
            scope = compiler.define(scope, definition)
        base = scope
        self.host.endless = _may_last(tree[1:])
        if "modulemeta" in text:
            self.host.modules = await self.modules.described()
        scope = await self.imports(compiler, scope, tree, [])
        for definition in tree[2]:
            scope = compiler.define(scope, definition)
        body: Node = tree[3] if tree[3] is not None else ("identity",)
        run = compiler.compile(body, scope)
        _check(scope, base)
        return run

    async def imports(self, compiler: Compiler, scope: Scope, tree: Node, chain: list[str], origin: str = "") -> Scope:
        """Return the scope with what a program or module imports; `origin` is the directory that the module is from."""
        base = scope
        for _, path, alias, meta in tree[1]:
            bases = self.modules.bases(meta, origin)
            if alias is not None and alias.startswith("$"):
                data, _ = await self.modules.text(path, ".json", bases)
                reader = JsonReader()
                reader.feed(data.encode(), True)
                content = list(reader.take(True))
                self.o.named[alias[1:]] = content
                self.o.named[f"{alias[1:]}::{alias[1:]}"] = content
                continue
            if path in chain:
                raise CompileError(f"module {path} imports itself")
            text, directory = await self.modules.text(path, ".jq", bases)
            library = parse(text)
            if library[3] is not None:
                raise CompileError("library should only have function definitions, not a main expression")
            inner = await self.imports(compiler, base, library, [*chain, path], directory)
            for definition in library[2]:
                inner = compiler.define(inner, definition)
                name = definition[1] if alias is None else f"{alias}::{definition[1]}"
                scope = compiler.define(scope, ("def", name, definition[2], definition[3]))
                scope.function[0].scope = inner.function[0].scope
        return scope

    # ------------------------------------------------------------------ input

    async def blocks(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the content of all inputs, block by block, with its name."""
        for word in self.o.words or ["-"]:
            standard = word == "-"
            try:
                reader = self.proc.stdin if standard else await self.proc.open(word, dash=False)
            except OSError as error:
                self.unreadable(word, error)
                continue
            self.base = self.newlines
            try:
                while block := await reader.read():
                    yield ("<stdin>" if standard else word), block
                    self.newlines += block.count(b"\n")
                    await self.proc.budget.yield_turn()
            except OSError as error:
                if error.errno == errno.EPIPE:
                    raise
                self.unreadable(word, error)
            finally:
                await self.proc.close(reader)

    def unreadable(self, word: str, error: OSError) -> None:
        self.failed_file = True
        if word == "-":
            # jq reports an unreadable open file when it begins the next one.
            if self.o.words and word != self.o.words[-1]:
                self.proc.stderr.write(encode(f"jq: error: {reason(error)}\n"))
            return
        self.proc.stderr.write(encode(f"jq: error: Could not open file {word}: {reason(error)}\n"))

    newlines = base = 0
    """Lines read so far, and those before the current file."""
    place = InputPlace(0)
    """The place of the batch read last."""

    def note(self, count: int, start: int, lines: bytes | None = None, exact: tuple[int, ...] = ()) -> None:
        base = self.base
        self.place = InputPlace(
            count, self.host.name, start - base, lines, tuple(max(line - base, 0) for line in exact)
        )

    async def values(self) -> AsyncIterator[list[Json]]:
        """Yield the input values, in batches."""
        if self.o.seq:
            async for batch in self.sequence():
                yield batch
            return
        async for batch in self.batches(whole_lines):
            if self.o.stream:
                last = self.place.line(max(len(batch) - 1, 0))
                events = chain.from_iterable(map(tostream, batch))
                while some := list(islice(events, BATCH)):
                    self.place = InputPlace(len(some), self.host.name, exact=(last,))
                    yield some
                continue
            yield batch
        if self.broken is not None:
            begun, path = broken_events(self.broken)
            if self.o.stream_errors:
                begun.append([self.parse_error, path])
                self.parse_error = None
            self.place = InputPlace(len(begun), self.host.name, exact=(self.newlines - self.base,))
            yield begun

    async def sequence(self) -> AsyncIterator[list[Json]]:
        """Yield the texts of a sequence; what is wrong with one of them does not keep the others from being read."""
        data: list[bytes] = []
        async for name, block in self.blocks():
            self.host.name = name
            data.append(block)
        self.note(1, 0, exact=(self.newlines,))
        for value in sequence(b"".join(data)):
            if isinstance(value, Ignored):
                self.proc.stderr.write(encode(f"jq: ignoring parse error: {value}\n"))
            else:
                yield list(tostream(value)) if self.o.stream else [value]

    async def batches(self, quick: Callable[[bytes], Any]) -> AsyncIterator[Any]:
        """Yield what `quick` makes of many lines at once or, where it cannot, lists of values."""
        reader = JsonReader()
        rest: list[bytes] = []
        size = wait = 0
        async for name, block in self.blocks():
            self.host.name = name
            rest.append(block)
            size += len(block)
            if size > self.proc.budget.limits.whole:
                raise self.proc.budget.exceeded("whole_bytes")
            end = block.rfind(b"\n")
            if end < 0 or size < wait:
                continue
            rest[-1] = block[:end]
            head, rest = b"".join(rest), [block[end + 1 :]]
            size, wait = len(rest[0]), 0
            if reader.stuck + len(head) > 2 * LARGE:
                data = reader.left() + head + b"\n"
                found = await offload(self.proc.budget, partial(self.large, reader, data, False))
                if found is not None:
                    batches, left = found
                    for batch, self.place in batches:
                        yield batch
                    if left:
                        # One value is longer than all of this: look again when there is twice as much.
                        rest.insert(0, left)
                        size, wait = size + len(left), 2 * len(left)
                    continue
                head = data[:-1]
            made = quick(head) if reader.idle and len(head) <= 2 * LARGE else None
            if made is not None:
                lines = head.count(b"\n") + 1
                self.note(len(made), reader.line, None if len(made) == lines else head)
                reader.line += lines
                yield made
                continue
            reader.feed(head + b"\n")
            for batch in self.taken(reader, False):
                yield batch
        if reader.stuck + size > LARGE:
            data = reader.left() + b"".join(rest)
            found = await offload(self.proc.budget, partial(self.large, reader, data, True))
            if found is not None:
                for batch, self.place in found[0]:
                    yield batch
                return
            rest = [data]
        reader.feed(b"".join(rest), True)
        for batch in self.taken(reader, True):
            yield batch

    def large(
        self, reader: JsonReader, data: bytes, last: bool
    ) -> tuple[list[tuple[list[Json], InputPlace]], bytes] | None:
        """Return the batches of a large text and what is left of it; None if it needs the careful reader."""
        try:
            found, end = decode(data, last)
        except Odd:
            return None
        self.host.large = True
        batches: list[tuple[list[Json], InputPlace]] = []
        at = 0
        for batch, ended in found:
            first, begin, at = reader.line, at, ended
            reader.skip(data[begin:ended])
            line = reader.line + (data.find(b"\n", at) >= 0)
            exact = (line,) if len(batch) == 1 else ()
            self.note(len(batch), first, None if exact else data[begin:ended], exact)
            batches.append((batch, self.place))
        left = data[end:]
        if not left.strip():
            reader.skip(left)
            left = b""
        return batches, left

    def taken(self, reader: JsonReader, last: bool) -> Iterator[list[Json]]:
        """Yield complete values in batches; `place` is where the batch yielded last is from."""
        batch: list[Json] = []
        lines: list[int] = []
        begun = reader.at
        try:
            for value in reader.take(last):
                batch.append(value)
                # jq reads line by line: the line that a value ends on has been read when the value has.
                lines.append(reader.line + reader.ends_later())
                if not begun <= reader.at < begun + SMALL:
                    self.note(len(batch), 0, exact=tuple(lines))
                    yield batch
                    batch, lines, begun = [], [], reader.at
        except ParseError as error:
            # What came before an error is still an input.
            self.parse_error = str(error)
            self.broken = reader.text[reader.at :] if self.o.stream else None
        if batch:
            self.note(len(batch), 0, exact=tuple(lines))
            yield batch

    parse_error: str | None = None
    broken: str | None = None
    """The broken text, with --stream."""

    async def raw_values(self) -> AsyncIterator[list[Json]]:
        rest: list[bytes] = []
        number = held = 0
        async for name, block in self.blocks():
            self.host.name = name
            cut = block.rfind(b"\n")
            if cut < 0:
                rest.append(block)
                held += len(block)
                if held > self.proc.budget.limits.string_bytes:
                    raise self.proc.budget.exceeded("string_bytes")
                continue
            lines = await self.texts(b"".join((*rest, block[:cut])))
            rest, held = [block[cut + 1 :]], len(block) - cut - 1
            self.note(len(lines), number)
            number += len(lines)
            yield lines
        if last := b"".join(rest):
            self.note(1, 0, exact=(number,))
            yield await self.texts(last)

    async def texts(self, data: bytes) -> list[Json]:
        """Return lines as values."""
        self.host.large = self.host.large or len(data) > HUGE
        return await offload_large(self.proc.budget, len(data), partial(_texts, data))

    # ------------------------------------------------------------------ running

    async def run(self, run: Run) -> None:
        o = self.o
        source = self.raw_values() if o.raw_input else self.values()
        if o.null_input and not self.host.uses_input:
            await self.one(run, None)  # the input stays unread
        elif o.slurp:
            await self.run_slurped(run, source)
        elif o.null_input or self.host.uses_input:
            everything: list[Json] = []
            async for batch in source:
                everything += batch
                self.host.places.add(self.place)
                await self.proc.budget.yield_turn()
            self.host.pending = self.host.places.counted(everything)
            self.host.places.index = -1
            if o.null_input:
                await self.one(run, None)
            else:
                for value in self.host.pending:
                    await self.one(run, value)
        else:
            async for batch in source:
                self.host.places.only(self.place)
                await self.some(run, batch)
                if self.parse_error is not None and self.broken is None:
                    break
        if self.parse_error is not None:
            self.proc.stderr.write(encode(f"jq: parse error: {self.parse_error}\n"))
            self.status = 5

    async def run_slurped(self, run: Run, source: AsyncIterator[list[Json]]) -> None:
        if self.o.raw_input:
            data = []
            async for name, block in self.blocks():
                self.host.name = name
                data.append(block)
            everything = b"".join(data)
            self.host.large = self.host.large or len(everything) > HUGE
            decoded = partial(everything.decode, "utf-8", "replace")
            whole: Json = await offload_large(self.proc.budget, len(everything), decoded)
        else:
            whole = []
            async for batch in source:
                whole += batch
                await self.proc.budget.yield_turn()
            self.host.large = self.host.large or len(whole) > BATCH
        if self.parse_error is not None:
            return
        self.host.places.only(InputPlace(1, self.host.name, exact=(self.newlines - self.base,)))
        if self.o.null_input:
            self.host.pending = iter((whole,))
        await self.one(run, None if self.o.null_input else whole)

    def where(self) -> str:
        places = self.host.places
        if not places.any:
            return "<unknown>"
        return f"{places.name or '<stdin>'}:{places.line}"

    async def some(self, run: Run, batch: list[Json]) -> None:
        """Run the program on several inputs."""
        if self.host.endless or self.host.large:
            await self.offload(Worker(run, self.host.places.counted(batch), self.host.places, self.text))
            return
        places = self.host.places
        for places.index, value in enumerate(batch):
            await self.one(run, value)

    async def one(self, run: Run, value: Json) -> None:
        """Run the program on one input; the last input decides the status."""
        self.status = 0
        if self.host.endless or self.host.large:
            await self.offload(Worker(run, iter((value,)), self.host.places, self.text))
            return
        count = 0
        try:
            for result in run(None, value):
                self.emit(result)
                count += 1
                if self.unbuffered or not count & 255:
                    await self.yield_turn()
        except REPORTED as error:
            self.failed(error)
        if len(self.out) > 256:
            await self.yield_turn()

    def failed(self, error: Exception) -> None:
        if isinstance(error, JqBreak):
            self.report("break")
        elif isinstance(error, RecursionError):
            self.report("the program is nested too deeply")
        else:
            self.report(as_error(error).value)

    async def offload(self, work: Worker) -> None:
        """Run a program that may compute for long in a thread, so that a timeout or cancel can stop it."""
        host = self.host
        ended = False
        failed: Json = None
        while not ended:
            outcomes, ended = await self.run_in_thread(work.take)
            for outcome in outcomes:
                if outcome.error is None:
                    self.out.append(outcome.text)
                    self.last, self.any_output = outcome.value, True
                elif isinstance(outcome.error, REPORTED):
                    failed = outcome.place
                    current, host.places.index = host.places.index, outcome.place
                    self.failed(outcome.error)
                    host.places.index = current
                else:
                    raise outcome.error
            await self.yield_turn()
        if failed != host.places.index:
            self.status = 0

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """Offload work of the program, and write what it says by `debug` and `stderr`."""
        host = self.host
        host.said = []
        try:
            found = await offload(self.proc.budget, work)
        except BaseException:
            host.stopped = True  # the thread sees it at its next tick
            raise
        finally:
            said, host.said = host.said, None
        for text in said:
            host.complain(text)
        return found

    def report(self, value: Json) -> None:
        self.status = 5
        if isinstance(value, str):
            text = f"jq: error (at {self.where()}): {value}\n"
        else:
            text = f"jq: error (at {self.where()}) (not a string): {values.dumps(value)}\n"
        self.proc.stderr.write(text.encode("utf-8", "replace"))

    async def yield_turn(self) -> None:
        if self.unbuffered or sum(map(len, self.out)) >= HELD:
            await self.flush()
        await self.proc.budget.yield_turn()

    def push(self) -> None:
        if self.out:
            self.proc.stdout.write("".join(self.out).encode("utf-8", "replace"))
            self.out.clear()

    async def flush(self) -> None:
        self.push()
        if self.proc.stdout.full:
            await self.proc.stdout.drain()

    def emit(self, value: Json) -> None:
        self.out.append(self.text(value))
        self.last, self.any_output = value, True

    def text(self, value: Json) -> str:
        """Return what is written of a result."""
        o = self.o
        end = "" if o.join else "\0" if o.nul else "\n"
        if o.raw_output and isinstance(value, str):
            return (self.raw(value) if o.ascii or o.nul else value) + end
        indent = None if o.compact else o.indent
        if self.palette is not None:
            shown = coloured(value, self.palette, indent, o.sort, o.ascii)
        elif self.host.large:
            shown = encode_members(value, indent, sort=o.sort, ascii_only=o.ascii)
        elif indent is None:
            shown = values.dumps(value, sort=o.sort, ascii_only=o.ascii)
        else:
            shown = values.pretty(value, indent, sort=o.sort, ascii_only=o.ascii)
        return f"\x1e{shown}{end}" if o.seq else shown + end

    def raw(self, text: str) -> str:
        """Return a string without its quotes, where that is possible: not where only ASCII may be written."""
        if self.o.ascii:
            return values.dumps(text, ascii_only=True)
        if self.o.nul and ("\0" in text):
            raise JqError("Cannot dump a string containing NUL with --raw-output0 option")
        return text


def _texts(data: bytes) -> list[Json]:
    return [line.decode("utf-8", "replace") for line in data.split(b"\n")]


def _check(scope: Scope, base: Scope) -> None:
    """Compile functions that are never called, to find their errors."""
    current: Scope | None = scope
    while current is not None and current is not base:
        if current.kind == "function":
            current.function[0].run(False)
        current = current.parent


_parsed = functools.lru_cache(maxsize=128)(parse)
