"""test and [: check file types and compare values."""

from __future__ import annotations

import re

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, quote, typographic
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.text.file_tests import FILE_PAIRS, NUMERIC, OF_LINKS, compare, holds


class ConditionError(Exception):
    """Wrong expression of `test`; the message to print."""


async def test(proc: Proc, o: None, words: list[str]) -> int:
    if proc.argv[0].endswith("["):
        if not words or words[-1] != "]":
            proc.complain(typographic(proc, "missing ']'"))
            return 2
        words = words[:-1]
    try:
        return 0 if await _Test(proc, words).whole() else 1
    except ConditionError as bad:
        proc.complain(typographic(proc, str(bad)))
        return 2


_UNARY = frozenset("bcdefgGhkLNnOprsStuwxz")
_BINARY = frozenset((*NUMERIC, *FILE_PAIRS, "=", "==", "!=", "<", ">"))


class _Test:
    def __init__(self, proc: Proc, words: list[str]) -> None:
        self.proc, self.words, self.at = proc, words, 0

    async def whole(self) -> bool:
        words = self.words
        count = len(words)
        if count == 0:
            return False
        if count == 1:
            return words[0] != ""
        if count == 2:
            if words[0] == "!":
                return words[1] == ""
            if self._is_unary(words[0]):
                return await self.unary(words[0], words[1])
            raise ConditionError(f"{quote(words[0])}: unary operator expected")
        if count == 3:
            if words[1] in _BINARY:
                return await self.binary(*words)
            if words[0] == "!":
                return not await _Test(self.proc, words[1:]).whole()
            if words[0] == "(" and words[2] == ")":
                return words[1] != ""
            if words[1] not in ("-a", "-o"):
                raise ConditionError(f"{quote(words[1])}: binary operator expected")
        if count == 4 and words[0] == "!":
            return not await _Test(self.proc, words[1:]).whole()
        if count == 4 and words[0] == "(" and words[3] == ")":
            return await _Test(self.proc, words[1:3]).whole()
        result = await self.disjunction()
        if self.at < count:
            raise ConditionError(f"extra argument {quote(words[self.at])}")
        return result

    def _is_unary(self, word: str) -> bool:
        return len(word) == 2 and word[0] == "-" and word[1] in _UNARY

    async def disjunction(self) -> bool:
        result = await self.conjunction()
        while self.at < len(self.words) and self.words[self.at] == "-o":
            self.at += 1
            right = await self.conjunction()
            result = result or right
        return result

    async def conjunction(self) -> bool:
        result = await self.term()
        while self.at < len(self.words) and self.words[self.at] == "-a":
            self.at += 1
            right = await self.term()
            result = result and right
        return result

    async def term(self) -> bool:
        words = self.words
        if self.at >= len(words):
            raise ConditionError(f"missing argument after {quote(words[-1])}")
        word = words[self.at]
        if word == "!":
            self.at += 1
            return not await self.term()
        if self.at + 2 < len(words) and words[self.at + 1] in _BINARY:
            left, op, right = words[self.at : self.at + 3]
            self.at += 3
            return await self.binary(left, op, right)
        if word == "(":
            self.at += 1
            result = await self.disjunction()
            if self.at >= len(words) or words[self.at] != ")":
                raise ConditionError("')' expected")
            self.at += 1
            return result
        if self._is_unary(word) and self.at + 1 < len(words):
            self.at += 2
            return await self.unary(word, words[self.at - 1])
        self.at += 1
        return word != ""

    async def unary(self, op: str, word: str) -> bool:
        letter = op[1]
        if letter == "n":
            return word != ""
        if letter == "z":
            return word == ""
        if letter == "t":
            return False
        if not word:
            return False
        if self.proc.descriptor(word) is not None:
            return letter in "erwp"
        stat = await lookup(self.proc, self.proc.path(word), follow=op not in OF_LINKS)
        return stat is not None and holds(op, stat, self.proc.user.uid)

    async def binary(self, left: str, op: str, right: str) -> bool:
        if op in ("=", "=="):
            return left == right
        if op == "!=":
            return left != right
        if op in ("<", ">"):
            return encode(left) < encode(right) if op == "<" else encode(left) > encode(right)
        if op in FILE_PAIRS:
            return await self._files(left, op, right)
        return NUMERIC[op](self._integer(left), self._integer(right))

    def _integer(self, word: str) -> int:
        found = re.fullmatch(r"\s*([+-]?\d+)\s*", word)
        if found is None:
            raise ConditionError(f"invalid integer {quote(word)}")
        return int(found[1])

    async def _files(self, left: str, op: str, right: str) -> bool:
        fs, first, second = self.proc.fs, self.proc.path(left), self.proc.path(right)
        a = await lookup(self.proc, first, follow=True)
        b = await lookup(self.proc, second, follow=True)
        return await compare(fs, op, (first, a), (second, b))


COMMANDS = [
    Command(
        "test",
        test,
        raw=True,
        bad_usage=2,
        summary="Check file types and compare values.",
        usage="EXPRESSION",
        details="Strings: -n -z = != < >; integers: -eq -ne -lt -le -gt -ge;\n"
        "files: -e -f -d -s -r -w -x -L -nt -ot -ef; ! -a -o ( ).",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        literal_help=True,
    ),
    Command(
        "[",
        test,
        raw=True,
        bad_usage=2,
        summary="Check file types and compare values.",
        usage="EXPRESSION ]",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        literal_help=True,
    ),
]
