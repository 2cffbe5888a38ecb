"""Compile `[[ ]]`, and evaluate the tests that it shares with `test`."""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ramet.concurrency.offload import offload
from ramet.concurrency.recursion import in_new_task, level, room
from ramet.concurrency.sizes import BATCH, LARGE, LONG_SCRIPT
from ramet.core import paths
from ramet.core.paths import decode, encode
from ramet.core.stat import Kind, Stat
from ramet.core.streams import FileStream, PipeReader, PipeWriter
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, is_name, is_number
from ramet.shell.expand.arith.parser import ArithFailure
from ramet.shell.expand.c_locale import as_bytes, bytewise
from ramet.shell.expand.errors import BadSubscript, LineError
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
from ramet.text.file_tests import NUMERIC, OF_LINKS, compare, holds
from ramet.text.pattern.matcher import compile_pattern, is_costly

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


class RegexError(Exception):
    """A regular expression that does not compile: status 2."""


class OperandError(Exception):
    """An operand of `-eq` and its like that is not a number: the test fails, the line goes on."""


async def stat_of(sh: ShellState, word: str, follow: bool = True) -> Stat | None:
    """Return the status of the file that a word names; None without one."""
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
    stat = await stat_of(sh, word, follow=op not in OF_LINKS)
    if stat is None or (word.endswith("/") and not stat.is_dir):
        return False
    return holds(op, stat, sh.shell.user.uid)


async def compare_files(sh: ShellState, op: str, left: str, right: str) -> bool:
    first, second = await stat_of(sh, left), await stat_of(sh, right)
    if op == "-ef" and (first is None or second is None):
        return False
    fs = sh.shell.fs
    return await compare(fs, op, (fs.named(left, sh.cwd), first), (fs.named(right, sh.cwd), second))


def plain_unary(sh: ShellState, op: str, word: str) -> bool:
    """Evaluate a unary test that needs no file system."""
    if op == "-n":
        return bool(word)
    if op == "-z":
        return not word
    if op == "-v":
        return is_set(sh, word)
    if op == "-o":
        return word in sh.options
    if op == "-R":
        value = sh.vars.get(word)
        return type(value) is NameRef and bool(value.target)
    number = int(word) if len(word) <= LONGEST_NUMBER and is_number(word.strip()) else -1  # -t
    return number in sh.fds and bool(sh.fds[number].stream.terminal)


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

Test = Callable[[ShellState], "bool | Awaitable[bool]"]
"""A compiled condition, which returns its truth value at once or an awaitable for it."""


def compile_cond(node: Cond) -> Run:
    test = _expr(node.expr)
    line = node.line

    def run(sh: ShellState) -> Any:
        sh.line, sh.last_command = line, node
        if sh.instrumented:
            return drive(watched(sh))
        try:
            found = test(sh)
        except RegexError:
            status = 2
        except OperandError as error:
            status = sh.error(f"[[: {error}")
        else:
            if type(found) is not bool:
                return drive(settled(sh, found))
            status = 0 if found else 1
        sh.status = status
        sh.pipe_statuses = None
        return status

    async def settled(sh: ShellState, found: bool | Awaitable[bool]) -> int:
        try:
            sh.status = 0 if (found if isinstance(found, bool) else await found) else 1
        except RegexError:
            sh.status = 2
        except OperandError as error:
            sh.status = sh.error(f"[[: {error}")
        sh.pipe_statuses = None
        return sh.status

    async def watched(sh: ShellState) -> int:
        if (ends := await sh.shell.before_compound(sh, node)) is not None:
            return ends
        return await settled(sh, _evaluated(sh, test))

    return run


async def _evaluated(sh: ShellState, test: Test) -> bool:
    found = test(sh)
    return found if isinstance(found, bool) else await found


def _operand(sh: ShellState, text: str) -> int:
    try:
        return sh.evaluate(text)
    except BadSubscript:
        raise
    except (LineError, ArithFailure) as error:
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
        test = _nested(node)
    return _stationed(test) if station else test


def _stationed(test: Test) -> Test:
    """Return the same with a raised recursion limit; a test that waits goes on in a new task."""
    awaited = in_new_task(lambda found: found)

    def run(sh: ShellState) -> bool | Awaitable[bool]:
        with room:
            found = test(sh)
        return found if type(found) is bool else awaited(found)

    return run


def _nested(node: CondNot | CondAnd | CondOr) -> Test:
    if not isinstance(node, CondNot):
        return _chain([_expr(item) for item in node.items], isinstance(node, CondAnd))
    inner_node = node.expr
    if isinstance(inner_node, CondUnary):
        inner = _unary(inner_node, "! ")
    elif isinstance(inner_node, CondWord):
        inner = _map(texts.operand(inner_node.word), "! -n", bool)
    elif isinstance(inner_node, CondBinary):
        inner = _binary(inner_node, "! ")
    else:
        inner = _expr(inner_node)

    async def later(pending: Awaitable[bool]) -> bool:
        return not await pending

    def negated(sh: ShellState) -> bool | Awaitable[bool]:
        found = inner(sh)
        return not found if type(found) is bool else later(found)

    return negated


def _chain(tests: list[Test], conjunction: bool) -> Test:
    async def rest(sh: ShellState, pending: Awaitable[bool], number: int) -> bool:
        if await pending is not conjunction:
            return not conjunction
        for place in range(number, len(tests)):
            if not place % BATCH:
                await sh.budget.yield_turn()
            if await _evaluated(sh, tests[place]) is not conjunction:
                return not conjunction
        return conjunction

    if len(tests) > BATCH:
        return lambda sh: rest(sh, _evaluated(sh, tests[0]), 1)

    def all_of(sh: ShellState) -> bool | Awaitable[bool]:
        for test in tests:
            found = test(sh)
            if found is not True:
                return False if found is False else rest(sh, found, tests.index(test) + 1)
        return True

    def any_of(sh: ShellState) -> bool | Awaitable[bool]:
        for test in tests:
            found = test(sh)
            if found is not False:
                return True if found is True else rest(sh, found, tests.index(test) + 1)
        return False

    return all_of if conjunction else any_of


def _trace(sh: ShellState, *words: str) -> None:
    from ramet.shell.interp.run.xtrace import trace

    trace(sh, ["[[", *words, "]]"], raw=True)


def _traced_word(value: str) -> str:
    return value if value else "''"


def _map(text: texts.Text, op: str, change: Callable[[str], bool]) -> Test:
    """Compile a test of one operand."""
    inner = text.run
    if text.wait:

        async def waiting(sh: ShellState) -> bool:
            value = await inner(sh)
            if sh.xtrace:
                _trace(sh, op, _traced_word(value))
            return change(value)

        return waiting

    def run(sh: ShellState) -> bool:
        value = inner(sh)
        if sh.xtrace:
            _trace(sh, op, _traced_word(value))
        return change(value)

    return run


def _unary(node: CondUnary, sign: str = "") -> Test:
    text, op = texts.operand(node.word), node.op
    if op == "-n":
        return _map(text, sign + op, bool)
    if op == "-z":
        return _map(text, sign + op, lambda value: not value)
    inner = text.run

    async def waiting(sh: ShellState) -> bool:
        value = await inner(sh) if text.wait else inner(sh)
        if sh.xtrace:
            _trace(sh, sign + op, _traced_word(value))
        return await file_test(sh, op, value) if op in FILE_TESTS else plain_unary(sh, op, value)

    def run(sh: ShellState) -> bool:
        value = inner(sh)
        if sh.xtrace:
            _trace(sh, sign + op, _traced_word(value))
        return plain_unary(sh, op, value)

    return waiting if text.wait or op in FILE_TESTS else run


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
    return _pair(sign, op, left, right, lambda sh, a, b: compare_files(sh, op, a, b))


def _pair(
    sign: str,
    op: str,
    left: texts.Text,
    right: texts.Text,
    test: Callable[[ShellState, str, str], bool | Awaitable[bool]],
    traced: texts.Text | None = None,
) -> Test:
    """Compile a test of two operands. `traced`: the right side as a trace shows it, where that differs."""
    first, second = left.run, right.run
    if traced is None or traced.wait:
        traced = None

    def trace(sh: ShellState, a: str, b: str) -> None:
        _trace(sh, sign + _traced_word(a), op, _traced_word(b if traced is None else traced.run(sh)))

    if left.wait or right.wait:

        async def waiting(sh: ShellState) -> bool:
            a, b = await ready(sh, left), await ready(sh, right)
            if sh.xtrace:
                trace(sh, a, b)
            found = test(sh, a, b)
            return found if isinstance(found, bool) else await found

        return waiting

    def run(sh: ShellState) -> bool | Awaitable[bool]:
        a, b = first(sh), second(sh)
        if sh.xtrace:
            trace(sh, a, b)
        return test(sh, a, b)

    return run


_BACK_REFERENCE: Final = re.compile(r"\\[1-9]").search
"""Find what makes a regular expression run on an engine that may be slow even on a short text."""


def _pattern_test(node: CondBinary, wanted: bool, sign: str) -> Test:
    left, right = texts.operand(node.left), texts.pattern(node.right)
    traced = texts.text(node.right, quote=lambda quoted: "".join(["\\" + char for char in quoted]))

    def equal(sh: ShellState, value: str, other: str) -> bool:
        if "nocasematch" in sh.shopts:
            return (lower(value) == lower(other)) is wanted
        return (value == other) is wanted

    if node.right.parts and all(isinstance(part, DoubleQuoted) for part in node.right.parts):
        return _pair(sign, node.op, left, texts.operand(node.right), equal, traced)
    if right.const is not None and not any(c in right.const for c in "*?[\\("):
        return _pair(sign, node.op, left, right, equal, traced)

    def matches(sh: ShellState, value: str, pattern: str) -> bool:
        if not value.isascii() and bytewise(sh):
            value, pattern = as_bytes(value), as_bytes(pattern)
        return compile_pattern(pattern, True, "nocasematch" in sh.shopts).matches(value) is wanted

    def match(sh: ShellState, value: str, pattern: str) -> bool | Awaitable[bool]:
        if is_costly(pattern, len(value)):
            return offload(sh.budget, partial(matches, sh, value, pattern))
        return matches(sh, value, pattern)

    return _pair(sign, node.op, left, right, match, traced)


def _regex_test(left: texts.Text, right: texts.Text, sign: str) -> Test:
    async def run(sh: ShellState) -> bool:
        value, marked = await ready(sh, left), await ready(sh, right)
        if "\0" in marked and compatibility(sh) < _QUOTED_SINCE:
            pattern = marked.replace("\0", "")
        else:
            pattern = regex_text(marked)
        if sh.xtrace:
            _trace(sh, sign + _traced_word(value), "=~", _traced_word(pattern))
        return await _regex_match(sh, value, pattern)

    return run


_QUOTED_SINCE: Final = 32
"""The level of compatibility from which on quoted characters of a regular expression stand for themselves."""


def _spans_in_long(matcher: Matcher, data: bytes) -> list[tuple[int, int]] | None:
    """Return the spans of a match and its groups in a long text, found by the engine that releases the GIL."""
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
        return None if spans is None else [decode(data[a:b]) if a >= 0 else "" for a, b in spans]

    # The first import of the engine is offloaded too.
    large = len(value) >= LARGE or len(pattern) > LONG_SCRIPT or "ramet.patterns.matcher" not in sys.modules
    try:
        found = await offload(sh.budget, groups) if large or _BACK_REFERENCE(pattern) else groups()
    except RegexError as error:
        if len(pattern) > LONG_SCRIPT:  # perhaps too big for our engine alone
            sh.complain(f"[[: {error}")
        raise
    sh.variables.renew("BASH_REMATCH", found or ())
    return found is not None
