"""test and [: check file types and compare values."""

from __future__ import annotations

import re

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, quote, typographic
from ramet.commands.framework.file_modes import mode_of
from ramet.core.paths import encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat


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
_BINARY = {"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}


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
        stat = await lookup(self.proc, self.proc.path(word), follow=letter not in "hL")
        if stat is None:
            return False
        return self._check(letter, stat)

    def _check(self, letter: str, stat: Stat) -> bool:
        kinds = {
            "b": None,
            "c": Kind.DEVICE,
            "d": Kind.DIR,
            "f": Kind.FILE,
            "h": Kind.LINK,
            "L": Kind.LINK,
            "p": Kind.FIFO,
            "S": Kind.SOCKET,
        }
        if letter in kinds:
            return stat.kind is kinds[letter]
        mode = mode_of(stat)
        if letter == "s":
            return stat.kind is Kind.DIR or (stat.size or 0) > 0
        if letter in "rwx":
            return bool(mode & {"r": 0o444, "w": 0o222, "x": 0o111}[letter])
        if letter in "ugk":
            return bool(mode & {"u": 0o4000, "g": 0o2000, "k": 0o1000}[letter])
        if letter == "N":
            return (stat.mtime_ns or 0) > (stat.accessed_ns or 0)
        return letter in "eOG"

    async def binary(self, left: str, op: str, right: str) -> bool:
        if op in ("=", "=="):
            return left == right
        if op == "!=":
            return left != right
        if op in ("<", ">"):
            return encode(left) < encode(right) if op == "<" else encode(left) > encode(right)
        if op in ("-nt", "-ot", "-ef"):
            return await self._files(left, op, right)
        a, b = self._integer(left), self._integer(right)
        return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[op]

    def _integer(self, word: str) -> int:
        found = re.fullmatch(r"\s*([+-]?\d+)\s*", word)
        if found is None:
            raise ConditionError(f"invalid integer {quote(word)}")
        return int(found[1])

    async def _files(self, left: str, op: str, right: str) -> bool:
        proc = self.proc
        a, b = await lookup(proc, proc.path(left), follow=True), await lookup(proc, proc.path(right), follow=True)
        if op == "-ef":
            if a is None or b is None:
                return False
            x, y = await proc.fs.resolve(proc.path(left)), await proc.fs.resolve(proc.path(right))
            return x == y or (a.inode is not None and a.inode == b.inode and proc.fs.mount_of(x) == proc.fs.mount_of(y))
        if op == "-ot":
            a, b = b, a
        if a is None:
            return False
        return b is None or (a.mtime_ns or 0) > (b.mtime_ns or 0)


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
