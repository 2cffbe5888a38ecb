"""Conditions: the primaries of `[[ ]]` and `test`, and `[[ ]]` itself compiled to closures."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ramet.concurrency.offload import offload
from ramet.concurrency.recursion import apart, roomy
from ramet.concurrency.sizes import LARGE, LONG_SCRIPT
from ramet.core import paths
from ramet.core.paths import encode
from ramet.core.stat import Kind, Stat, default_mode
from ramet.core.streams import FileStream, PipeReader, PipeWriter
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, among, is_name, is_number
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.c_locale import as_bytes, bytewise
from ramet.shell.expand.compile_depth import level
from ramet.shell.expand.errors import BadSubscript, Discard
from ramet.shell.expand.long_text import Deferred, Parts, decoded, length, long_match, put_together, whole
from ramet.shell.expand.pattern.matcher import compile_pattern
from ramet.shell.expand.pattern.plain import text_pattern
from ramet.shell.expand.values import Assoc, NameRef
from ramet.shell.expand.word import to_text as texts
from ramet.shell.expand.word.pieces import ready
from ramet.shell.expand.word.quote_marks import regex_text
from ramet.shell.interp.process.dev_fd import WithDescriptors
from ramet.shell.interp.run.maybe_async import Run, drive
from ramet.shell.interp.state.assignment_hooks import compatibility
from ramet.shell.interp.state.scopes import split_subscript
from ramet.shell.interp.state.shell_state import ShellState
from ramet.shell.syntax.nodes import (
    Cond,
    CondAnd,
    CondBinary,
    CondExpr,
    CondGroup,
    CondNot,
    CondOr,
    CondUnary,
    CondWord,
    DoubleQuoted,
)
from ramet.text.casing import lower

if TYPE_CHECKING:
    from ramet.patterns import Matcher

FILE_TESTS: Final = frozenset(
    [
        "-a",
        "-b",
        "-c",
        "-d",
        "-e",
        "-f",
        "-g",
        "-h",
        "-k",
        "-p",
        "-r",
        "-s",
        "-u",
        "-w",
        "-x",
        "-L",
        "-N",
        "-S",
        "-O",
        "-G",
    ]
)
UNARY: Final = FILE_TESTS | {"-z", "-n", "-v", "-o", "-R", "-t"}
NUMERIC: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": int.__eq__,
    "-ne": int.__ne__,
    "-lt": int.__lt__,
    "-le": int.__le__,
    "-gt": int.__gt__,
    "-ge": int.__ge__,
}
FILE_PAIRS: Final = frozenset(("-nt", "-ot", "-ef"))
_KINDS: Final = {
    "-b": (Kind.DEVICE, False),
    "-c": (Kind.DEVICE, True),
    "-d": (Kind.DIR, True),
    "-f": (Kind.FILE, True),
    "-p": (Kind.FIFO, True),
    "-S": (Kind.SOCKET, True),
}
_BITS: Final = {"-r": 0o444, "-w": 0o222, "-x": 0o111, "-u": 0o4000, "-g": 0o2000, "-k": 0o1000}


class RegexError(Exception):
    """A regular expression that does not compile: status 2."""


class _Long(Exception):
    """A test takes its time: `finish` is how it ends while others run."""

    def __init__(self, finish: Callable[[], Awaitable[bool]]) -> None:
        super().__init__()
        self.finish = finish


class OperandError(Exception):
    """An operand of `-eq` and its like that is no number: the test fails, the line goes on."""


async def stat_of(sh: ShellState, word: str, follow: bool = True) -> Stat | None:
    """What is behind a word; None when nothing is."""
    if not word:
        return None
    if word.startswith(("/dev/fd", "/proc/")):
        try:
            return await WithDescriptors(sh.shell.fs, sh.fds).stat(paths.parse(word, sh.cwd), follow)
        except OSError:
            return None
    if word.startswith("/dev/"):
        found = await _device(sh, word)
        if found is not None:
            return found
    try:
        slashed = word[-1] == "/"
        there = await sh.shell.fs.stat(sh.shell.fs.named(word, sh.cwd), follow=follow or slashed)
        return None if slashed and there.kind is not Kind.DIR else there
    except OSError as error:
        if error.errno in (errno.EIO,):
            raise
        return None


async def _device(sh: ShellState, word: str) -> Stat | None:
    name = word[5:]
    if name in ("null", "zero", "random", "urandom", "full", "tty"):
        return Stat(Kind.DEVICE, mode=0o666)
    number = {"stdin": 0, "stdout": 1, "stderr": 2}.get(name)
    if number is None and name.startswith("fd/") and is_number(name[3:]):
        number = int(name[3:])
    if number is None or number not in sh.fds:
        return None
    stream = sh.fds[number].stream
    if isinstance(stream, FileStream):
        return await stream.stat()
    return Stat(Kind.FIFO if isinstance(stream, PipeReader | PipeWriter) else Kind.FILE, mode=0o600)


async def file_test(sh: ShellState, op: str, word: str) -> bool:
    if op in ("-h", "-L"):
        stat = await stat_of(sh, word, follow=False)
        return stat is not None and stat.kind is Kind.LINK
    stat = await stat_of(sh, word)
    if stat is None or (word.endswith("/") and not stat.is_dir):
        return False
    if op in _KINDS:
        kind, plain = _KINDS[op]
        return plain and stat.kind is kind
    if op == "-s":
        return stat.kind is Kind.DIR or (stat.kind is not Kind.DEVICE and (stat.size is None or stat.size > 0))
    if op in _BITS:
        mode = stat.mode if stat.mode is not None else default_mode(stat.kind)
        if op in ("-r", "-w") and sh.shell.user.uid == 0:
            return True
        return bool(mode & _BITS[op])
    if op == "-N":
        if stat.atime_ns is None:
            return stat.is_file and stat.size != 0  # written, and as far as anybody knows not read since
        return (stat.mtime_ns or 0) > stat.atime_ns
    return True


async def compare_files(sh: ShellState, op: str, left: str, right: str) -> bool:
    first, second = await stat_of(sh, left), await stat_of(sh, right)
    if op == "-ef":
        if first is None or second is None:
            return False
        a = await sh.shell.fs.resolve(sh.shell.fs.named(left, sh.cwd))
        b = await sh.shell.fs.resolve(sh.shell.fs.named(right, sh.cwd))
        return a == b or (
            first.inode is not None
            and first.inode == second.inode
            and sh.shell.fs.mount_of(a) == sh.shell.fs.mount_of(b)
        )
    if op == "-ot":
        first, second = second, first
    if first is None:
        return False
    return second is None or (first.mtime_ns or 0) > (second.mtime_ns or 0)


def plain_unary(sh: ShellState, op: str, word: str) -> bool:
    """The unary tests that need no file system."""
    if op == "-n":
        return bool(word)
    if op == "-z":
        return not word
    if op == "-v":
        return is_set(sh, word)
    if op == "-o":
        return among(word, sh.options)
    if op == "-R":
        value = sh.vars.get(word)
        return type(value) is NameRef and bool(value.target)
    number = int(word) if len(word) <= LONGEST_NUMBER and is_number(word.strip()) else -1  # -t
    return number in sh.fds and sh.fds[number].stream.terminal


def is_set(sh: ShellState, word: str) -> bool:
    """`-v name`, `-v name[sub]`."""
    if is_number(word):
        return int(word) == 0 or int(word) <= len(sh.params)
    name, subscript = split_subscript(word)
    if not is_name(name):
        return False
    if subscript is None:
        # A reference to an element is never set, whatever the element is.
        return sh.variables.follow(name)[1] is None and sh.variables.get(name) is not None
    if not subscript:
        return False
    if subscript in ("@", "*"):
        array = sh.variables.array(sh.variables.follow(name)[0])
        if isinstance(array, Assoc):
            return subscript in array.items
        return bool(sh.variables.elements(name))
    return sh.variables.element(name, subscript) is not None


# --------------------------------------------------------------------------------------------------- [[ ... ]]

Test = tuple[bool, Callable[[ShellState], Any]]
"""(wait, function to a truth value)."""


def compile_cond(node: Cond) -> Run:
    wait, test = _expr(node.expr)
    line = node.line
    if not wait:

        def run(sh: ShellState) -> Any:
            sh.line, sh.last_command = line, node
            if sh.instrumented:
                return drive(watched(sh))
            try:
                status = 0 if test(sh) else 1
            except _Long as long:
                return drive(settled(sh, long.finish()))
            except RegexError:
                status = 2
            except OperandError as error:
                status = sh.error(f"[[: {error}")
            sh.status = status
            sh.pipe_statuses = None
            return status

    async def settled(sh: ShellState, pending: Awaitable[bool]) -> int:
        try:
            sh.status = 0 if await pending else 1
        except RegexError:
            sh.status = 2
        except OperandError as error:
            sh.status = sh.error(f"[[: {error}")
        sh.pipe_statuses = None
        return sh.status

    async def watched(sh: ShellState) -> int:
        sh.line, sh.last_command = line, node
        if sh.instrumented and (ends := await sh.shell.before_compound(sh, node)) is not None:
            return ends
        try:
            found = test(sh)
            sh.status = 0 if (await found if wait else found) else 1
        except _Long as long:
            return await settled(sh, long.finish())
        except RegexError:
            sh.status = 2
        except OperandError as error:
            sh.status = sh.error(f"[[: {error}")
        sh.pipe_statuses = None
        return sh.status

    return (lambda sh: drive(watched(sh))) if wait else run


def _operand(sh: ShellState, text: str) -> int:
    try:
        return sh.evaluate(text)
    except BadSubscript:
        raise
    except (Discard, ArithFailure) as error:
        raise OperandError(str(error)) from error


def _expr(node: CondExpr) -> Test:
    while isinstance(node, CondGroup):
        node = node.expr
    if isinstance(node, CondWord):
        return _map(texts.operand(node.word), "-n", bool)
    if isinstance(node, CondUnary):
        return _unary(node)
    if isinstance(node, CondBinary):
        return _binary(node)
    with level as station:
        wait, test = _nested(node)
    return (wait, (apart if wait else roomy)(test)) if station else (wait, test)


def _nested(node: CondNot | CondAnd | CondOr) -> Test:
    if isinstance(node, CondNot):
        inner_node = node.expr
        if isinstance(inner_node, CondUnary):
            wait, inner = _unary(inner_node, "! ")
        elif isinstance(inner_node, CondWord):
            wait, inner = _map(texts.operand(inner_node.word), "! -n", bool)
        elif isinstance(inner_node, CondBinary):
            wait, inner = _binary(inner_node, "! ")
        else:
            wait, inner = _expr(inner_node)

        async def negated(sh: ShellState) -> bool:
            try:
                return not await inner(sh)
            except _Long as long:
                return not await long.finish()

        async def opposite(long: _Long) -> bool:
            return not await long.finish()

        def negative(sh: ShellState) -> bool:
            try:
                return not inner(sh)
            except _Long as long:
                raise _Long(partial(opposite, long)) from None

        return (True, negated) if wait else (False, negative)
    return _chain([_expr(item) for item in node.items], isinstance(node, CondAnd))


def _chain(tests: list[Test], conjunction: bool) -> Test:
    if len(tests) <= _ROW and not any(wait for wait, _ in tests):
        runs = [run for _, run in tests]

        def all_of(sh: ShellState) -> bool:
            try:
                for run in runs:  # noqa: SIM110 - tests nest, and `all` would call them by way of the thread's stack
                    if not run(sh):
                        return False
                return True
            except _Long as long:
                raise _Long(partial(others, sh, long, runs.index(run) + 1)) from None

        def any_of(sh: ShellState) -> bool:
            try:
                for run in runs:  # noqa: SIM110
                    if run(sh):
                        return True
                return False
            except _Long as long:
                raise _Long(partial(others, sh, long, runs.index(run) + 1)) from None

        async def others(sh: ShellState, long: _Long, place: int) -> bool:
            """The tests from one on, after one that takes its time."""
            found = await long.finish()
            for run in runs[place:]:
                if found is not conjunction:
                    break
                try:
                    found = run(sh)
                except _Long as longer:
                    found = await longer.finish()
            return found

        return False, all_of if conjunction else any_of

    async def waiting(sh: ShellState) -> bool:
        for place, (wait, run) in enumerate(tests, 1):
            if not place % _ROW:
                await sh.budget.yield_turn()
            try:
                found = run(sh)
                if wait:
                    found = await found
            except _Long as long:
                found = await long.finish()
            if bool(found) is not conjunction:
                return not conjunction
        return conjunction

    return True, waiting


_ROW: Final = 64
"""Tests in a row after which others may want to run."""


def _trace(sh: ShellState, *words: str) -> None:
    from ramet.shell.interp.run.xtrace import trace

    trace(sh, ["[[", *words, "]]"], raw=True)


def _shown(value: str) -> str:
    return value if value else "''"


def _map(text: texts.Text, op: str, change: Callable[[str], bool]) -> Test:
    """A test of whether there is any text."""
    inner = text.run
    if not text.wait:
        parts = text.parts or inner

        def run(sh: ShellState) -> bool:
            value = parts(sh)
            if isinstance(value, Parts):
                # All that is asked of what is very long is whether it is there.
                value = whole(value) if sh.xtrace or isinstance(value, Deferred) else "x"[: length(value)]
            if sh.xtrace:
                _trace(sh, op, _shown(value))
            return change(value)

        return False, run

    async def waiting(sh: ShellState) -> bool:
        value = await inner(sh)
        if sh.xtrace:
            _trace(sh, op, _shown(value))
        return change(value)

    return True, waiting


def _unary(node: CondUnary, sign: str = "") -> Test:
    text, op = texts.operand(node.word), node.op
    inner = text.run
    if op in FILE_TESTS:

        async def on_file(sh: ShellState) -> bool:
            value = await inner(sh) if text.wait else inner(sh)
            if sh.xtrace:
                _trace(sh, sign + op, _shown(value))
            return await file_test(sh, op, value)

        return True, on_file
    if op == "-n":
        return _map(text, sign + op, bool)
    if op == "-z":
        return _map(text, sign + op, lambda value: not value)

    def test(sh: ShellState, value: str) -> bool:
        if sh.xtrace:
            _trace(sh, sign + op, _shown(value))
        return plain_unary(sh, op, value)

    async def later(sh: ShellState, value: str | Parts) -> bool:
        found = await put_together(sh, value) if isinstance(value, Parts) else value
        return await offload(sh.budget, partial(test, sh, found)) if len(found) > LARGE else test(sh, found)

    if not text.wait:
        parts = text.parts or inner

        def run(sh: ShellState) -> bool:
            value = parts(sh)
            if isinstance(value, Parts) or len(value) > LARGE:
                raise _Long(partial(later, sh, value))
            return test(sh, value)

        return False, run

    async def waiting(sh: ShellState) -> bool:
        return await later(sh, await inner(sh))

    return True, waiting


def _binary(node: CondBinary, sign: str = "") -> Test:
    op = node.op
    if op == "=~":
        return _regex_test(texts.operand(node.left), texts.regex(node.right), sign)
    if op in ("=", "==", "!="):
        return _pattern_test(node, op != "!=", sign)
    left = texts.operand(node.left)
    right = texts.operand(node.right)
    if op in NUMERIC:
        compare = NUMERIC[op]

        def numbers(sh: ShellState, a: str, b: str) -> bool:
            try:
                return compare(_operand(sh, a), _operand(sh, b))
            except OperandError as error:
                sh.complain(f"[[: {error}")
                return False  # of this comparison only

        return _pair(sign, op, left, right, numbers)
    if op == "<":
        return _pair(sign, op, left, right, lambda sh, a, b: a < b)
    if op == ">":
        return _pair(sign, op, left, right, lambda sh, a, b: a > b)

    async def files(sh: ShellState) -> bool:
        a = await left.run(sh) if left.wait else left.run(sh)
        b = await right.run(sh) if right.wait else right.run(sh)
        if sh.xtrace:
            _trace(sh, sign + _shown(a), op, _shown(b))
        return await compare_files(sh, op, a, b)

    return True, files


def _pair(
    sign: str,
    op: str,
    left: texts.Text,
    right: texts.Text,
    test: Callable[[ShellState, str, str], bool],
    traced: texts.Text | None = None,
) -> Test:
    """`traced`: the right side as a trace shows it, where that differs."""
    first, second = left.run, right.run
    if traced is None or traced.wait:
        traced = None

    def compared(sh: ShellState, a: str, b: str) -> bool:
        if sh.xtrace:
            _trace(sh, sign + _shown(a), op, _shown(b if traced is None else traced.run(sh)))
        return test(sh, a, b)

    async def waiting(sh: ShellState) -> bool:
        a = await first(sh) if left.wait else first(sh) if left.parts is None else await ready(sh, left)
        b = await second(sh) if right.wait else second(sh) if right.parts is None else await ready(sh, right)
        return compared(sh, a, b)

    if left.wait or right.wait:
        return True, waiting
    if left.parts is not None or right.parts is not None:
        some, others = left.parts or first, right.parts or second

        def parted(sh: ShellState) -> bool:
            a, b = some(sh), others(sh)
            if type(a) is str and type(b) is str:
                return test(sh, a, b) if not sh.xtrace else compared(sh, a, b)
            raise _Long(partial(made, sh, a, b))

        async def made(sh: ShellState, a: str | Parts, b: str | Parts) -> bool:
            """The same with operands that are yet to be put together."""
            left = a if isinstance(a, str) else await put_together(sh, a)
            right = b if isinstance(b, str) else await put_together(sh, b)
            try:
                return compared(sh, left, right)
            except _Long as long:
                return await long.finish()

        return False, parted

    def run(sh: ShellState) -> bool:
        a, b = first(sh), second(sh)
        if sh.xtrace:
            _trace(sh, sign + _shown(a), op, _shown(b if traced is None else traced.run(sh)))
        return test(sh, a, b)

    return False, run


_BACK_REFERENCE: Final = re.compile(r"\\[1-9]").search
"""What makes a regular expression run on an engine that can take its time even on a short text."""


def _pattern_test(node: CondBinary, wanted: bool, sign: str) -> Test:
    left, right = texts.operand(node.left), texts.pattern(node.right)
    traced = texts.text(node.right, quote=lambda quoted: "".join(["\\" + char for char in quoted]))
    if node.right.parts and all(isinstance(part, DoubleQuoted) for part in node.right.parts):

        def equal(sh: ShellState, value: str, other: str) -> bool:
            if len(value) > LARGE and value is not other:
                raise _Long(partial(offload, sh.budget, partial(compared, "nocasematch" in sh.shopts, value, other)))
            if "nocasematch" in sh.shopts:
                return (lower(value) == lower(other)) is wanted
            return (value == other) is wanted

        def compared(nocase: bool, value: str, other: str) -> bool:
            return text_pattern(lower(other) if nocase else other).matches(lower(value) if nocase else value) is wanted

        return _pair(sign, node.op, left, texts.operand(node.right), equal, traced)
    if right.const is not None and not any(c in right.const for c in "*?[\\("):
        fixed = right.const

        def same(sh: ShellState, value: str, pattern: str) -> bool:
            if "nocasematch" in sh.shopts:
                return (lower(value) == lower(fixed)) is wanted
            return (value == fixed) is wanted

        return _pair(sign, node.op, left, right, same, traced)

    def matches(sh: ShellState, value: str, pattern: str) -> bool:
        if not value.isascii() and bytewise(sh):
            value, pattern = as_bytes(value), as_bytes(pattern)
        return compile_pattern(pattern, True, "nocasematch" in sh.shopts).matches(value) is wanted

    def match(sh: ShellState, value: str, pattern: str) -> bool:
        if long_match(pattern, len(value)):
            raise _Long(partial(offload, sh.budget, partial(matches, sh, value, pattern)))
        return matches(sh, value, pattern)

    return _pair(sign, node.op, left, right, match, traced)


def _regex_test(left: texts.Text, right: texts.Text, sign: str) -> Test:
    async def run(sh: ShellState) -> bool:
        value, marked = await ready(sh, left), await ready(sh, right)
        plain = compatibility(sh) < _QUOTED_SINCE if len(marked) > LARGE or "\0" in marked else False
        pattern = (
            await offload(sh.budget, partial(_unmarked, marked, plain))
            if len(marked) > LARGE
            else _unmarked(marked, plain)
        )
        if sh.xtrace:
            _trace(sh, sign + _shown(value), "=~", _shown(pattern))
        return await _regex_match(sh, value, pattern)

    return True, run


def _unmarked(marked: str, plain: bool) -> str:
    """The regular expression; where it is `plain`, quoted characters of it mean what others mean."""
    return marked.replace("\0", "") if plain else regex_text(marked)


_LONGEST_REGEX: Final = 1 << 22
"""Characters from which on no regular expression is one: twice as long with marks, it need not be looked at."""
_QUOTED_SINCE: Final = 32
"""The level of compatibility from which on quoted characters of a regular expression stand for themselves."""


def _spans_in_long(matcher: Matcher, data: bytes) -> list[tuple[int, int]] | None:
    """The spans of a match and its groups in a long text: where it is finds the engine that others can run beside."""
    found = matcher.bulk(data).search(data, 0)
    if found is None:
        return None
    return matcher.spans(data, found[0]) if matcher.groups else [found]


async def _regex_match(sh: ShellState, value: str, pattern: str) -> bool:
    """`=~`: sets BASH_REMATCH."""

    def groups() -> list[str] | None:
        from ramet import patterns

        data = encode(value)
        try:
            matcher = patterns.compile(
                encode(pattern),
                patterns.POSIX_EXTENDED,
                icase="nocasematch" in sh.shopts,
                utf8=(pattern.isascii() and value.isascii()) or not bytewise(sh),
                seconds=sh.budget.limits.regex_seconds,
            )
            spans = matcher.spans(data) if len(data) < LARGE else _spans_in_long(matcher, data)
        except patterns.PatternError as error:
            raise RegexError(str(error)) from None
        except patterns.MatchTimeout:
            raise sh.budget.exceeded("regex_seconds") from None
        return None if spans is None else [decoded(data, b, a) if a >= 0 else "" for a, b in spans]

    # The first one of all waits until there is an engine.
    long = len(value) >= LARGE or len(pattern) > LONG_SCRIPT or "ramet.patterns.matcher" not in sys.modules
    long = long or bool(_BACK_REFERENCE(pattern))
    try:
        found = await offload(sh.budget, groups) if long else groups()
    except RegexError as error:
        if len(pattern) > LONG_SCRIPT:  # perhaps one that is too big for us alone
            sh.complain(f"[[: {error}")
        raise
    sh.variables.renew("BASH_REMATCH", found or ())
    return found is not None
