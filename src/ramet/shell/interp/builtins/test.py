"""`test` and `[`: POSIX rules by number of arguments, a grammar beyond four."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from ramet.concurrency.recursion import HOP
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, is_number
from ramet.shell.expand.errors import BadSubscript, Fatal, ShellError
from ramet.shell.interp.run.conditions import FILE_TESTS, UNARY, compare_files, file_test, plain_unary
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.shell_state import Builtin, ShellState
from ramet.text.file_tests import FILE_PAIRS, NUMERIC

BINARY: Final = frozenset((*NUMERIC, *FILE_PAIRS, "=", "==", "!=", "<", ">"))


class Usage(Exception):
    """The expression is wrong: status 2."""


def integer(text: str) -> int:
    if len(text) < 19 and text.isdecimal() and text.isascii():
        return int(text)
    stripped = text.strip(" \t\n")
    digits = stripped[1:] if stripped[:1] in "+-" else stripped
    if not digits or not digits.isascii() or not digits.isdigit():
        raise Usage(f"{text}: integer expression expected")
    number = int(stripped) if len(digits) < LONGEST_NUMBER else 1 << 63
    if not -(1 << 63) <= number < 1 << 63:
        raise Usage(f"{text}: integer expression expected")
    return number


def binary(sh: ShellState, left: str, op: str, right: str) -> bool | Awaitable[bool]:
    if op in ("=", "=="):
        return left == right
    if op == "!=":
        return left != right
    if op in NUMERIC:
        return NUMERIC[op](integer(left), integer(right))
    if op == "<":
        return left < right
    if op == ">":
        return left > right
    return compare_files(sh, op, left, right)


def _is_descriptor(word: str) -> bool:
    return is_number(word.strip().lstrip("+-"))


def unary(sh: ShellState, op: str, word: str) -> bool | Awaitable[bool]:
    if op in FILE_TESTS:
        return file_test(sh, op, word)
    if op == "-t" and not _is_descriptor(word):
        return False
    try:
        return plain_unary(sh, op, word)
    except (BadSubscript, Fatal):
        raise
    except ShellError as error:
        raise Usage(error.message) from None


def _decide(sh: ShellState, args: list[str], end: str = "") -> bool | Awaitable[bool]:
    """Up to three arguments need no grammar; `end` is the word that closes them."""
    count = len(args)
    if count == 0:
        return False
    if count == 1:
        return args[0] != ""
    if count == 2:
        if args[0] == "!":
            return args[1] == ""
        if len(args[0]) == 2 and args[0] in UNARY:
            return unary(sh, args[0], args[1])
        raise Usage(f"{args[0]}: unary operator expected")
    if count == 3:
        if args[1] in BINARY:
            return binary(sh, args[0], args[1], args[2])
        if args[1] == "-a":
            return args[0] != "" and args[2] != ""
        if args[1] == "-o":
            return args[0] != "" or args[2] != ""
        if args[0] == "!":
            return _negated(_decide(sh, args[1:], end))
        if args[0][:1] == "(" and args[2][:1] == ")":  # bash looks at the first characters only, and only here
            return args[1] != ""
        raise Usage(f"{args[1]}: binary operator expected")
    if count == 4:
        if args[0] == "!":
            return _negated(_decide(sh, args[1:], end))
        if args[0] == "(" and args[3] == ")":
            return _decide(sh, args[1:3], end)
    return _TestParser(sh, args, end).parse()


def _negated(found: bool | Awaitable[bool]) -> bool | Awaitable[bool]:
    if isinstance(found, bool):
        return not found

    async def later() -> bool:
        return not await found

    return later()


class _TestParser:
    """Expressions of five words and more."""

    def __init__(self, sh: ShellState, args: list[str], end: str) -> None:
        self.sh, self.args, self.pos, self.end = sh, args, 0, end
        self.depth = 0

    def peek(self, offset: int = 0) -> str | None:
        place = self.pos + offset
        return self.args[place] if place < len(self.args) else None

    async def parse(self) -> bool:
        found = await self.either()
        if self.pos < len(self.args):
            left = self.args[self.pos]
            raise Usage(f"syntax error: `{left}' unexpected" if left.startswith("-") else "too many arguments")
        return found

    async def either(self) -> bool:
        found = await self.both()
        while self.peek() == "-o":
            self.pos += 1
            await self.sh.budget.yield_turn()
            other = await self.both()
            found = found or other
        return found

    async def both(self) -> bool:
        found = await self.negation()
        while self.peek() == "-a":
            self.pos += 1
            await self.sh.budget.yield_turn()
            other = await self.negation()
            found = found and other
        return found

    async def negation(self) -> bool:
        wanted = True
        while self.peek() == "!" and self.pos + 1 < len(self.args):
            self.pos += 1
            wanted = not wanted
        return await self.primary() is wanted

    async def primary(self) -> bool:
        word = self.peek()
        if word is None:
            raise Usage("argument expected")
        following = self.peek(1)
        if word == "(" and self.peek(2) == ")" and following is not None:
            self.pos += 3
            return following != ""
        if word == "(":
            self.pos += 1
            self.depth += 1
            found = await (self.either() if self.depth % HOP else asyncio.create_task(self.either()))
            self.depth -= 1
            if self.peek() != ")":
                there = self.peek() or self.end
                raise Usage(f"`)' expected, found {there}" if there else "`)' expected")
            self.pos += 1
            return found
        if following in BINARY and self.peek(2) is not None:
            right = self.args[self.pos + 2]
            self.pos += 3
            return await _settled(binary(self.sh, word, following, right))
        if word == "-t" and following is not None and not _is_descriptor(following):
            self.pos += 1  # `-t` alone tests standard output
            return await _settled(unary(self.sh, word, "1"))
        if word in UNARY and following is not None:
            self.pos += 2
            return await _settled(unary(self.sh, word, following))
        self.pos += 1
        return word != ""


async def _settled(found: bool | Awaitable[bool]) -> bool:
    return found if isinstance(found, bool) else await found


def test(sh: ShellState, argv: list[str]) -> Result:
    name = argv[0]
    if name == "[":
        if len(argv) < 2 or argv[-1] != "]":
            sh.complain("[: missing `]'")
            return 2
        args = argv[1:-1]
    else:
        args = argv[1:]
    try:
        found = _decide(sh, args, "]" if name == "[" else "")
    except Usage as error:
        return sh.error(f"{name}: {error}", 2)
    if isinstance(found, bool):
        return 0 if found else 1
    return drive(_later(sh, name, found))


async def _later(sh: ShellState, name: str, found: Awaitable[Any]) -> int:
    try:
        return 0 if await found else 1
    except Usage as error:
        return sh.error(f"{name}: {error}", 2)


TABLE: Final[dict[str, Builtin]] = {"test": test, "[": test}
