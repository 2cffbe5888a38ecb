"""Parse a stream of JSON texts into values, many lines at a time where each line is a value."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Callable, Iterator

from ramet.commands.data.jq.values import Json, Literal, decoder, parse_float
from ramet.patterns import PERL
from ramet.patterns import compile as compile_pattern
from ramet.patterns.emit import Lines

_SPACE = re.compile(r"[ \t\r\n\x1e\ufeff]*")
_DEEPEST = 10_000


_ODD_NUMBERS = re.compile(r'"(?:[^"\\]|\\.)*"|[^][{}",:\s]+')
_ODD_NUMBER = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?([eE][+-]?\d+)?")


def _respelled(found: re.Match[str]) -> str:
    """Return a number as the standard has it: jq also reads `nan`, `+1`, `01`, `1.` and `.5`."""
    word = found[0]
    if word[0] == '"':
        return word
    if word.lower() in ("nan", "-nan"):
        return "NaN"
    number = _ODD_NUMBER.fullmatch(word)
    if number is None or not any(char.isdigit() for char in word):
        return word
    sign, whole, fraction, power = number.groups()
    return ("-" if sign == "-" else "") + (whole or "0") + (f".{fraction}" if fraction else "") + (power or "")


_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89abAB])|(u[dD][c-fC-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""Escapes in strings: the first group is half a character without the other one, the second the other one alone."""


def _wrong(string: str) -> str | None:
    """Return what is wrong with the inside of a string."""
    at = 0
    while at < len(string):
        char = string[at]
        at += 1
        if char < " ":
            return "Invalid string: control characters from U+0000 through U+001F must be escaped"
        if char != "\\":
            continue
        if string[at] not in 'bfnrtu"\\/':
            return "Invalid escape"
        if string[at] == "u":
            if len(string) < at + 5:
                return "Invalid \\uXXXX escape"
            if not _HEX.fullmatch(string, at + 1, at + 5):
                return "Invalid characters in \\uXXXX escape"
            found = _ESCAPES.match(string, at - 1)
            if found is not None and found[1]:
                return "Invalid \\uXXXX\\uXXXX surrogate pair escape"
            at += 4
        at += 1
    return None


_HEX = re.compile("[0-9a-fA-F]{4}")


class ParseError(Exception):
    """The input is not JSON."""


class JsonReader:
    """Feed it bytes, take values out. `line` counts the newlines of what has been taken."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.line = 0
        self.column = 0
        """How many bytes of its line stand before the text."""
        self.wait = 0
        self.halves = False
        """Whether there may be characters that are spelled as two halves."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes, last: bool = False) -> None:
        more = self._decoder.decode(data, last)
        self._become(self.text[self.at :] + more if self.at < len(self.text) else more)
        self.halves = "\\ud" in self.text or "\\uD" in self.text

    def take(self, last: bool) -> Iterator[Json]:
        """Yield the values that are complete; with `last` what is left over is an error."""
        if not last and len(self.text) < self.wait:
            return
        while True:
            found = _SPACE.match(self.text, self.at)
            start = found.end() if found else self.at
            if start >= len(self.text):
                self._count(len(self.text))
                return
            try:
                value, end = decoder.raw_decode(self.text, start)
            except ValueError:
                if not last:
                    # Perhaps the rest is still to come: try again when there is much more of it.
                    self._count(start)
                    self.wait = 2 * (len(self.text) - start)
                    return
                if not self._respell(start):
                    raise ParseError(self._complaint(start)) from None
                continue
            except RecursionError:
                raise ParseError("Exceeds depth limit for parsing") from None
            if self.halves and self._repair(start, end):
                continue
            if not last and end == len(self.text) and self.text[end - 1] not in '"]}':
                # A number or word at the very end may go on in the next block.
                self._count(start)
                return
            if end < len(self.text) and self.text[end] not in ' \t\r\n,]}[{":\x1e' and self.text[end - 1] not in '"]}':
                word = _ODD_NUMBERS.match(self.text, start)
                if word is not None and _respelled(word) != word[0] and (last or word.end() < len(self.text)):
                    self._count(start)
                    self._become(_respelled(word) + self.text[word.end() :])
                    continue
                raise ParseError(self._complaint(start))
            self._count(end)
            self.wait = 0
            yield value

    def _respell(self, start: int) -> bool:
        """Return numbers that the standard parser does not read become such that it does; whether there were any."""
        fixed = _ODD_NUMBERS.sub(_respelled, self.text[start:])
        if fixed == self.text[start:]:
            return False
        self._count(start)
        self._become(fixed)
        return True

    def _repair(self, start: int, end: int) -> bool:
        """Second halves of characters that stand alone are replaced; first ones are wrong. Whether there were any."""
        text = self.text[start:end]
        if any(found[1] for found in _ESCAPES.finditer(text)):
            raise ParseError(self._complaint(start))
        fixed = _ESCAPES.sub(lambda found: "\\ufffd" if found[2] else found[0], text)
        if fixed == text:
            return False
        self._count(start)
        self._become(fixed + self.text[end:])
        return True

    def _complaint(self, start: int) -> str:
        return complaint(self.text[start:], self.line, self._columns(start))

    def _columns(self, end: int) -> int:
        """Return how many bytes of its line stand before a place in the text."""
        begin = self.text.rfind("\n", 0, end) + 1
        return (0 if begin else self.column) + len(self.text[begin:end].encode("utf-8", "surrogateescape"))

    def _become(self, text: str) -> None:
        """Another text takes the place of what has not been taken."""
        self.column = self._columns(self.at)
        self.text, self.at = text, 0

    def _count(self, end: int) -> None:
        self.line += self.text.count("\n", self.at, end)
        self.at = end

    def ends_later(self) -> bool:
        """Return whether the line that was reached has an end in what was fed."""
        return self.text.find("\n", self.at) >= 0

    @property
    def stuck(self) -> int:
        """Characters of an incomplete value."""
        return len(self.text) - self.at if self.wait else 0

    def left(self) -> bytes:
        """Return what is left over, which is then gone."""
        data = self.text[self.at :].encode("utf-8", "surrogateescape")
        self._become("")
        self.wait = 0
        return data

    def skip(self, data: bytes) -> None:
        """Count the lines and columns of a text that was read in another way."""
        newlines = data.count(b"\n")
        self.line += newlines
        self.column = len(data) - data.rfind(b"\n") - 1 if newlines else self.column + len(data)

    @property
    def idle(self) -> bool:
        """Whether nothing is left over from what was fed."""
        return self.at >= len(self.text)


_STRANGE = compile_pattern(rb"(?:^|[\[:,\s])-0(?:$|[^.0-9eE])|[0-9]{300}", PERL, utf8=False, lines=Lines.TEXT)
"""What the quick parser reads as another number than jq does."""
_SPELLED = compile_pattern(
    rb"[0-9.][eE][-+0-9]|\.[0-9]*0(?:$|[^0-9])|(?:[0-9]\.?){16}|\.0000", PERL, utf8=False, lines=Lines.TEXT
)
"""Numbers that may have to be kept as they were written."""
_UNLIKE = compile_pattern(rb"[0-9.][eE][-+0-9]|\x7f", PERL, utf8=False, lines=Lines.TEXT)
"""What the quick writer may spell as it was written where jq does not."""


@functools.lru_cache(maxsize=1)
def _quick() -> tuple[Callable[[bytes], list[Json]], Callable[[bytes], list[Json]]]:
    """Return what reads many values at once: as plain numbers, and with numbers kept as they were written."""
    import msgspec

    return msgspec.json.Decoder().decode_lines, msgspec.json.Decoder(float_hook=parse_float).decode_lines


def whole_lines(block: bytes, plain: bool = False) -> list[Json] | None:
    """Return the values of a block that ends with a line, in one call; None when care is needed.

    Not valid as a whole means care: the block may end within a value. `plain` reads no number as it was written.
    """
    if _STRANGE.search(block) is not None:
        return None
    as_numbers, as_written = _quick()
    try:
        return (as_numbers if plain or _SPELLED.search(block) is None else as_written)(block)
    except (ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=1)
def _writer() -> Callable[[list[Json]], bytes]:
    import msgspec

    def spelled(value: object) -> object:
        assert isinstance(value, Literal)
        return msgspec.Raw(value.text.encode())

    return msgspec.json.Encoder(enc_hook=spelled).encode_lines


def copied_lines(block: bytes) -> bytes | None:
    """Return what `jq -c .` makes of a block that ends with a line; None when care is needed."""
    values = whole_lines(block, plain=True)
    if values is None:
        return None
    if not values:
        return b""
    shown = _writer()(values)
    # The same text again is the answer, whatever the numbers in it are.
    if _UNLIKE.search(block) is None and len(shown) == len(block) + 1 and shown.startswith(block):
        return shown
    if _SPELLED.search(block) is not None:
        values = whole_lines(block)
        if values is None:
            return None
        shown = _writer()(values)
    return shown.replace(b"\x7f", b"\\u007f")


def complaint(text: str, lines_before: int = 0, columns_before: int = 0) -> str:
    """Return what jq says about a text that is not JSON, and where: behind the character at which it noticed."""
    scan = _Scan(lines_before + 1, columns_before)
    for char in text:
        found = scan.take(char)
        if found is not None:
            return f"{found} at line {scan.line}, column {scan.column}"
    found = scan.literal() if not scan.in_string else "Unfinished string"
    return f"{found or 'Unfinished JSON term'} at EOF at line {scan.line}, column {scan.column}"


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-?nan|-?Infinity", re.IGNORECASE)


class _Scan:
    """Reads JSON character by character as jq does, only to find out what is wrong with it.

    `open` holds a bracket for each array or object and how many members it has; `key` stands for a key whose value is
    still to come; `value` is the kind of the value that was read last and belongs nowhere yet.
    """

    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column
        self.in_string = self.escaped = False
        self.within: list[str] = []
        """The characters of the string that is being read."""
        self.token = ""
        self.open: list[tuple[str, int]] = []
        self.value = ""

    def take(self, char: str) -> str | None:
        self.column += len(char.encode("utf-8", "surrogateescape"))
        if char == "\n":
            self.line, self.column = self.line + 1, 0
        if self.in_string:
            return self.string(char)
        if char in " \t\r\n":
            return self.literal()
        if char in '[]{},:"':
            found = self.literal()
            if found is not None:
                return found
            if char == '"':
                self.in_string = True
                return None
            return self.structure(char)
        self.token += char
        return None

    def string(self, char: str) -> str | None:
        if char == '"' and not self.escaped:
            self.in_string = False
            inside = "".join(self.within)
            self.within.clear()
            return _wrong(inside) or self.whole("string")
        self.escaped = char == "\\" and not self.escaped
        self.within.append(char)
        return None

    def whole(self, kind: str) -> str | None:
        if self.value:
            return "Expected separator between values"
        self.value = kind if self.open else ""
        return None

    def literal(self) -> str | None:
        token, self.token = self.token, ""
        if not token:
            return None
        for word in ("true", "false", "null"):
            if token[0] == word[0] and token != "nan":
                return self.whole("word") if token == word else "Invalid literal"
        return self.whole("number") if _NUMBER.fullmatch(token) else "Invalid numeric literal"

    def structure(self, char: str) -> str | None:
        top, members = self.open[-1] if self.open else ("", 0)
        if char in "[{":
            if self.value:
                return "Expected separator between values"
            self.open.append((char, 0))
        elif char == ":":
            if not self.value:
                return "Expected string key before ':'"
            if top != "{":
                return "':' not as part of an object"
            if self.value != "string":
                return "Object keys must be strings"
            self.open.append(("key", 0))
            self.value = ""
        elif char == ",":
            if not self.value:
                return "Expected value before ','"
            return self.member(top)
        elif char == "]":
            if top != "[":
                return "Unmatched ']'"
            if not self.value and members:
                return "Expected another array element"
            self.closed()
        else:
            if not top or (not self.value and top != "{"):
                return "Unmatched '}'"
            if self.value:
                found = self.member(top) if top == "key" else "Objects must consist of key:value pairs"
                if found is not None:
                    return found
            elif members:
                return "Expected another key-value pair"
            self.closed()
        return None

    def member(self, top: str) -> str | None:
        """Return the value goes where it belongs."""
        if top == "{":
            return "Objects must consist of key:value pairs"
        if top == "key":
            self.open.pop()
        kind, members = self.open[-1]
        self.open[-1] = (kind, members + 1)
        self.value = ""
        return None

    def closed(self) -> None:
        self.open.pop()
        self.value = "container" if self.open else ""
