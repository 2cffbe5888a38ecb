"""expr and test: small languages of one word per token."""

from __future__ import annotations

import re
from functools import partial

from ramet.commands.files.cp import lookup
from ramet.commands.framework.command import Command, UsageError, quote, typographic
from ramet.commands.framework.file_modes import mode_of
from ramet.commands.framework.posix_regex import offload_long
from ramet.concurrency.recursion import DEEPEST, room
from ramet.core.paths import decode, encode
from ramet.core.proc import Proc
from ramet.core.stat import Kind, Stat
from ramet.patterns import EXPR, PatternError, compile


class _Bad(Exception):
    """The expression is wrong; what to say about it."""


# --------------------------------------------------------------------------------------------------------- expr


async def expr(proc: Proc, o: None, words: list[str]) -> int:
    if words and words[0] == "--":
        words = words[1:]
    if not words:
        raise UsageError("missing operand", status=2)
    try:
        result = await offload_long(proc, words, partial(_result, words))
    except _Bad as bad:
        said = str(bad).partition("expecting ')' ")
        proc.complain(said[0] + said[1] + typographic(proc, said[2]) if said[1] else typographic(proc, said[0]))
        return 2
    await proc.emit(encode(str(result)) + b"\n")
    return 0 if _truth(result) else 1


Value = str | int


def _result(words: list[str]) -> Value:
    parser = _Expr(words)
    with room:
        result = parser.alternative(True)
    if parser.at < len(words):
        raise _Bad(f"syntax error: unexpected argument {quote(words[parser.at])}")
    return result


_INTEGER = re.compile(r"-?\d+")


def _truth(value: Value) -> bool:
    if isinstance(value, int):
        return value != 0
    return not (value == "" or re.fullmatch(r"-?0+", value) is not None)


def _number(value: Value) -> int:
    if isinstance(value, int):
        return value
    if _INTEGER.fullmatch(value) is None:
        raise _Bad("non-integer argument")
    return int(value)


class _Expr:
    """Precedence: `|`, `&`, comparisons, `+ -`, `* / %`, `:`, primaries. Both sides are always parsed, used or not."""

    def __init__(self, words: list[str]) -> None:
        self.words, self.at, self.depth = words, 0, 0

    def peek(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def next(self) -> str:
        if self.at >= len(self.words):
            raise _Bad(f"syntax error: missing argument after {quote(self.words[-1])}")
        self.at += 1
        return self.words[self.at - 1]

    def alternative(self, live: bool) -> Value:
        left = self.conjunction(live)
        while self.peek() == "|":
            self.at += 1
            right = self.conjunction(live and not _truth(left))
            if not _truth(left):
                left = right if _truth(right) else 0
        return left

    def conjunction(self, live: bool) -> Value:
        left = self.comparison(live)
        while self.peek() == "&":
            self.at += 1
            right = self.comparison(live and _truth(left))
            if not (_truth(left) and _truth(right)):
                left = 0
        return left

    def comparison(self, live: bool) -> Value:
        left = self.sum(live)
        while (op := self.peek()) in ("<", "<=", "=", "==", "!=", ">=", ">"):
            self.at += 1
            right = self.sum(live)
            a, b = str(left), str(right)
            x: object = a
            y: object = b
            if _INTEGER.fullmatch(a) and _INTEGER.fullmatch(b):
                x, y = int(a), int(b)
            else:
                x, y = encode(a), encode(b)
            left = int(
                {"<": x < y, "<=": x <= y, "=": x == y, "==": x == y, "!=": x != y, ">=": x >= y, ">": x > y}[op or ""]  # type: ignore[operator]
            )
        return left

    def sum(self, live: bool) -> Value:
        left = self.product(live)
        while (op := self.peek()) in ("+", "-"):
            self.at += 1
            right = self.product(live)
            if live:
                left = _number(left) + _number(right) if op == "+" else _number(left) - _number(right)
        return left

    def product(self, live: bool) -> Value:
        left = self.match(live)
        while (op := self.peek()) in ("*", "/", "%"):
            self.at += 1
            right = self.match(live)
            if not live:
                continue
            a, b = _number(left), _number(right)
            if op == "*":
                left = a * b
                continue
            if b == 0:
                raise _Bad("division by zero")
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            left = quotient if op == "/" else a - b * quotient
        return left

    def match(self, live: bool) -> Value:
        left = self.primary(live)
        while self.peek() == ":":
            self.at += 1
            left = _match(str(left), str(self.primary(live)))
        return left

    def primary(self, live: bool) -> Value:
        word = self.next()
        if word == "(":
            self.depth += 1
            if self.depth > DEEPEST:
                raise _Bad(f"syntax error: maximum nesting level exceeded ({DEEPEST})")
            value = self.alternative(live)
            self.depth -= 1
            closing = self.peek()
            if closing is None:
                raise _Bad(f"syntax error: expecting ')' after {quote(self.words[-1])}")
            if closing != ")":
                raise _Bad(f"syntax error: expecting ')' instead of {quote(closing)}")
            self.at += 1
            return value
        if word == ")":
            raise _Bad("syntax error: unexpected ')'")
        if word == "+":
            return self.next()
        if word in ("length", "match", "substr", "index") and self.at >= len(self.words):
            raise _Bad(f"syntax error: missing argument after '{word}'")
        if word == "length" and self.at < len(self.words):
            return len(_text(self.primary(live)))
        if word == "match" and self.at < len(self.words):
            text = str(self.primary(live))
            return _match(text, str(self.primary(live)))
        if word == "index" and self.at < len(self.words):
            text, chars = _text(self.primary(live)), _text(self.primary(live))
            return min((text.index(c) + 1 for c in chars if c in text), default=0)
        if word == "substr" and self.at < len(self.words):
            text = _text(self.primary(live))
            position, length = self.primary(live), self.primary(live)
            try:
                start, size = _number(position), _number(length)
            except _Bad:
                return ""
            return text[start - 1 : start - 1 + size] if start > 0 and size > 0 else ""
        return word


def _text(value: Value) -> str:
    return str(value)


def _match(text: str, pattern: str) -> Value:
    try:
        matcher = compile(encode("^" + pattern if not pattern.startswith("^") else pattern), EXPR)
    except PatternError as error:
        raise _Bad(str(error)) from None
    raw = encode(text)
    spans = matcher.spans(raw)
    has_group = matcher.groups > 0
    if not spans:
        return "" if has_group else 0
    if has_group:
        start, end = spans[1]
        return decode(raw[start:end]) if start >= 0 else ""
    return len(decode(raw[spans[0][0] : spans[0][1]]))


# --------------------------------------------------------------------------------------------------------- test


async def test(proc: Proc, o: None, words: list[str]) -> int:
    if proc.argv[0].endswith("["):
        if not words or words[-1] != "]":
            proc.complain(typographic(proc, "missing ']'"))
            return 2
        words = words[:-1]
    try:
        return 0 if await _Test(proc, words).whole() else 1
    except _Bad as bad:
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
            raise _Bad(f"{quote(words[0])}: unary operator expected")
        if count == 3:
            if words[1] in _BINARY:
                return await self.binary(*words)
            if words[0] == "!":
                return not await _Test(self.proc, words[1:]).whole()
            if words[0] == "(" and words[2] == ")":
                return words[1] != ""
            if words[1] not in ("-a", "-o"):
                raise _Bad(f"{quote(words[1])}: binary operator expected")
        if count == 4 and words[0] == "!":
            return not await _Test(self.proc, words[1:]).whole()
        if count == 4 and words[0] == "(" and words[3] == ")":
            return await _Test(self.proc, words[1:3]).whole()
        result = await self.disjunction()
        if self.at < count:
            raise _Bad(f"extra argument {quote(words[self.at])}")
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
            raise _Bad(f"missing argument after {quote(words[-1])}")
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
                raise _Bad("')' expected")
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
            raise _Bad(f"invalid integer {quote(word)}")
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
        "expr",
        expr,
        raw=True,
        bad_usage=2,
        summary="Evaluate expressions.",
        usage="EXPRESSION",
        details="Operators, lowest first: |  &  < <= = != >= >  + -  * / %  STRING : REGEXP;\n"
        "match, substr, index, length; ( ).",
        original="GNU coreutils 9.1",
        curly_quotes=True,
        write_error=("write error: ", 3),
    ),
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
