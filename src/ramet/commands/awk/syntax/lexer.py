"""Split awk source into tokens on demand; the parser decides whether a slash starts a regex."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ramet.commands.awk.syntax.builtin_names import BUILTINS, EXTENSIONS
from ramet.commands.awk.syntax.dialect import GNU, Dialect
from ramet.commands.awk.syntax.tree import AwkError

KEYWORDS = frozenset(
    [
        "BEGIN",
        "END",
        "BEGINFILE",
        "ENDFILE",
        "function",
        "func",
        "if",
        "else",
        "while",
        "for",
        "do",
        "break",
        "continue",
        "next",
        "nextfile",
        "exit",
        "return",
        "delete",
        "in",
        "getline",
        "print",
        "printf",
        "switch",
        "case",
        "default",
    ]
)
_OPERATORS = (
    "**=", "&&", "||", "==", "!=", "<=", ">=", "!~", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "**", ">>", "|&",
    "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", ">", "<", "|", "?", ":", "~", "$", "=",
)  # fmt: skip
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_DECIMAL = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)?")
IN_NAMESPACE = "__ns__"
"""What stands inside the program for the `::` between a namespace and a name."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class AwkToken(NamedTuple):
    kind: str
    """`number`, `string`, `name`, `call` (a name before a parenthesis), `builtin`, `newline`, `end` or the word."""
    text: str
    start: int
    line: int


class Lexer:
    def __init__(self, text: str, dialect: Dialect = GNU) -> None:
        self.text, self.dialect = text, dialect
        self.namespace = "awk"
        """Where names live that do not say it themselves."""
        self.pos = 0
        self.line = 1
        self.warnings: list[str] = []
        self._warned: set[str] = set()

    def odd(self, char: str) -> None:
        """An escape sequence that means nothing: gawk says once what it takes it for."""
        if char not in self._warned:
            self._warned.add(char)
            self.warnings.append(
                f"cmd. line:{self.line}: warning: escape sequence `\\{char}' treated as plain `{char}'"
            )

    def error(self, message: str, at: int, line: int | None = None) -> AwkError:
        """Return the line of the source, and below it what is wrong at which place, as gawk shows it."""
        start = self.text.rfind("\n", 0, at) + 1
        end = self.text.find("\n", at)
        shown = self.text[start : len(self.text) if end < 0 else end]
        place = f"cmd. line:{self.line if line is None else line}: "
        before = self.text[start:at].encode("utf-8", "surrogateescape")
        blanks = "".join("\t" if byte == 9 else " " for byte in before)
        return AwkError(f"{place}{shown}\nawk: {place}{blanks}^ {message}", 1)

    def next(self) -> AwkToken:
        self._skip()
        text, pos = self.text, self.pos
        if pos >= len(text):
            return AwkToken("end", "", pos, self.line)
        char = text[pos]
        if char == "\n":
            self.pos += 1
            self.line += 1
            return AwkToken("newline", "\n", pos, self.line - 1)
        if char == '"':
            return AwkToken("string", self._string(), pos, self.line)
        found = (_NUMBER if self.dialect.extensions else _DECIMAL).match(text, pos)
        if found and (char.isdecimal() or char == "."):
            self.pos = found.end()
            return AwkToken("number", found[0], pos, self.line)
        if char == "_" and text.startswith('"', pos + 1) and self.dialect.extensions:
            self.pos += 1
            return AwkToken("string", self._string(), pos, self.line)
        found = _NAME.match(text, pos)
        if found:
            return self._word(found[0], pos)
        for operator in _OPERATORS:
            if text.startswith(operator, pos):
                if self.dialect.posix and operator.startswith("**"):
                    raise self.error("syntax error", pos + 1)
                self.pos += len(operator)
                same = {"**": "^", "**=": "^="}.get(operator, operator)
                return AwkToken(same, same, pos, self.line)
        if char == "@":
            self.pos += 1
            return AwkToken("@", "@", pos, self.line)
        if char == "\\":
            raise self.error("backslash not last character on line", pos)
        raise self.error(f"invalid char '{char}' in expression", pos)

    def _skip(self) -> None:
        text = self.text
        while self.pos < len(text):
            char = text[self.pos]
            if char in " \t\r":
                self.pos += 1
            elif char == "\\" and text.startswith(("\n", "\r\n"), self.pos + 1):
                self.pos = text.index("\n", self.pos) + 1
                self.line += 1
            elif char == "#":
                end = text.find("\n", self.pos)
                self.pos = len(text) if end < 0 else end
            else:
                return

    def _word(self, word: str, pos: int) -> AwkToken:
        self.pos = pos + len(word)
        if not self.dialect.extensions and (word in EXTENSIONS or (self.dialect.posix and word == "func")):
            pass
        elif word in KEYWORDS:
            return AwkToken("function" if word == "func" else word, word, pos, self.line)
        elif word in BUILTINS:
            return AwkToken("builtin", word, pos, self.line)
        word = self._qualified(word)
        if self.text.startswith("(", self.pos):
            return AwkToken("call", word, pos, self.line)
        return AwkToken("name", word, pos, self.line)

    def _qualified(self, word: str) -> str:
        """Return a name with its namespace; those of capitals only are everywhere the same, as those of awk itself."""
        space, _, name = word.rpartition("::")
        if not space:
            if self.namespace == "awk" or word.isupper():
                return word
            space = self.namespace
        return name if space == "awk" else f"{space}{IN_NAMESPACE}{name}"

    def _string(self) -> str:
        end = self.pos + 1
        text = self.text
        while end < len(text) and text[end] != '"':
            if text[end] == "\n":
                raise self.error("unterminated string", self.pos)
            if text[end] == "\\" and end + 1 < len(text):
                if text[end + 1] == "\n":
                    if self.dialect.posix:
                        why = "POSIX does not allow physical newlines in string values"
                        raise AwkError(f"cmd. line:{self.line}: fatal: {why}")
                    self.line += 1
                end += 1
            end += 1
        if end >= len(text):
            raise self.error("unterminated string", self.pos)
        value = unescape(text[self.pos + 1 : end], self.odd, hexadecimal=not self.dialect.posix)
        self.pos = end + 1
        return value

    def regex(self, start: int) -> str:
        """The regular expression whose opening slash is at `start`; the position moves behind the closing one."""
        text, pos = self.text, start + 1
        out: list[str] = []
        in_set = False
        while pos < len(text) and text[pos] != "\n":
            char = text[pos]
            if char == "\\" and pos + 1 < len(text):
                out.append("/" if text[pos + 1] == "/" else text[pos : pos + 2])
                pos += 2
                continue
            if in_set:
                if char == "]":
                    in_set = False
                elif char == "[" and text[pos + 1 : pos + 2] in (":", ".", "="):
                    close = text.find(text[pos + 1] + "]", pos + 2)
                    if close > 0:
                        out.append(text[pos : close + 2])
                        pos = close + 2
                        continue
            elif char == "[":
                in_set = True
                out.append(char)
                pos += 1
                if text.startswith("^", pos):
                    out.append("^")
                    pos += 1
                if text.startswith("]", pos):
                    out.append("]")
                    pos += 1
                continue
            elif char == "/":
                self.pos = pos + 1
                return "".join(out)
            out.append(char)
            pos += 1
        raise self.error("unterminated regexp", start + 1)


def unescape(text: str, odd: Callable[[str], None] | None = None, *, hexadecimal: bool = True) -> str:
    """Return the value of the inside of a string constant (or of a command-line assignment)."""
    if "\\" not in text:
        return text
    out: list[str] = []
    pos = 0
    while pos < len(text):
        char = text[pos]
        pos += 1
        if char != "\\" or pos >= len(text):
            out.append(char)
            continue
        char = text[pos]
        pos += 1
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char == "\n":
            continue
        elif char in "01234567":
            end = pos
            while end < len(text) and end - pos < 2 and text[end] in "01234567":
                end += 1
            out.append(_byte(int(text[pos - 1 : end], 8) & 0xFF))
            pos = end
        elif char == "x" and not hexadecimal:
            out.append(char)
        elif char == "x" and pos < len(text) and text[pos] in "0123456789abcdefABCDEF":
            end = pos
            while end < len(text) and end - pos < 2 and text[end] in "0123456789abcdefABCDEF":
                end += 1
            out.append(_byte(int(text[pos:end], 16)))
            pos = end
        else:
            if odd is not None:
                odd(char)
            out.append(char)
    return _joined(out, text)


def _byte(value: int) -> str:
    return chr(value) if value < 0x80 else chr(0xDC00 + value)


def _joined(parts: list[str], source: str) -> str:
    text = "".join(parts)
    if text.isascii() or _characters(source) != source:
        # In a source of bytes they stay separate.
        return text
    # Bytes given one by one may spell characters together.
    return _characters(text)


def _characters(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> str:
    """Return the text with a character for each byte, for locales and options that know no others."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("ascii", "surrogateescape")
