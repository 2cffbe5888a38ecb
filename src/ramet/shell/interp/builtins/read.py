"""`read`: split a line of input into variables."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Final

from ramet.concurrency.offload import offload, offload_large
from ramet.concurrency.sizes import BATCH, LARGE, SMALL
from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.streams import Reader
from ramet.shell.expand.arith.numerals import LONGEST_NUMBER, is_name, is_number
from ramet.shell.expand.c_locale import bytewise
from ramet.shell.expand.errors import BadNumber, BadSubscript, Fatal, ShellError
from ramet.shell.expand.size_check import within
from ramet.shell.expand.values import Assoc
from ramet.shell.expand.word.fields import delimiters, words_between
from ramet.shell.interp.builtins.usage import bad_option, options_of
from ramet.shell.interp.run.assign import put
from ramet.shell.interp.run.maybe_async import Result, drive
from ramet.shell.interp.state.scopes import split_subscript
from ramet.shell.interp.state.shell_state import Builtin, ShellState

_WHITE: Final = " \t\n"
TIMED_OUT: Final = 142


@dataclass
class _Read:
    """What the options of `read` ask for."""

    raw: bool = False
    array: str | None = None
    delim: bytes = b"\n"
    count: int | None = None
    exact: bool = False
    prompt: str = ""
    timeout: float | None = None
    fd: int = 0
    names: list[str] = field(default_factory=list)
    wrong: int = 0
    """The index of the first invalid name after the first; names before it are assigned."""


def _options(sh: ShellState, argv: list[str]) -> _Read | int:
    """Parse the words; a status when they are wrong."""
    if len(argv) <= _FEW and sum(map(len, argv)) <= _SHORT:
        usual = _usual(tuple(argv))
        if usual is not None:
            return usual
    request = _Read()
    letters, operands, wrong = options_of(argv, "ers", "adinNptu")
    for letter, value in letters:
        problem = _option(request, letter, value)
        if not problem and letter == "u" and request.fd not in sh.fds:
            problem = f"{value}: invalid file descriptor: Bad file descriptor"
        if problem:
            return sh.error(f"read: {problem}")
    if wrong is not None:
        return bad_option(sh, argv[0], *wrong)
    request.names = [str(name) for name in argv[operands:]]
    for place, name in enumerate(request.names):
        if _is_bad_name(name):
            if not place:
                return sh.error(_no_name(name))
            request.wrong = place
            break
    return request


_FEW: Final = 8
_SHORT: Final = 256


@lru_cache(256)
def _usual(argv: tuple[str, ...]) -> _Read | None:
    """The same for a call that is right whatever the session is like, as those in loops are; None for others."""
    request = _Read()
    letters, operands, wrong = options_of(list(argv), "ers", "adinNptu")
    request.names = [str(name) for name in argv[operands:]]
    if wrong or any(letter == "u" or _option(request, letter, value) for letter, value in letters):
        return None
    return None if any(map(_is_bad_name, request.names)) else request


def _no_name(name: str) -> str:
    return f"read: `{name}': not a valid identifier"


def _is_bad_name(name: str) -> bool:
    return not is_name(name) and (not is_name(split_subscript(name)[0]) or name.endswith("[]"))


def _option(request: _Read, letter: str, value: str) -> str:
    """Take an option; return what is wrong with it, if anything."""
    if letter == "r":
        request.raw = True
    elif letter == "a":
        request.array = value
    elif letter == "d":
        request.delim = encode(value[:1])[:1] or b"\0"
    elif letter in "nN":
        if not is_number(value):
            return f"{value}: invalid number"
        request.count, request.exact = int(value), letter == "N"
    elif letter == "p":
        request.prompt = value
    elif letter == "t":
        request.timeout = _seconds(value)
        if request.timeout < 0:
            return f"{value}: invalid timeout specification"
    elif letter == "u":
        if not is_number(value):
            return f"{value}: invalid file descriptor specification"
        request.fd = int(value)
    return ""


def _seconds(value: str) -> float:
    """Parse a timeout in seconds; negative for an invalid one."""
    try:
        return float(value) if len(value) <= LONGEST_NUMBER else -1
    except ValueError:
        return -1


def read(sh: ShellState, argv: list[str]) -> Result:
    request = _options(sh, argv)
    if not isinstance(request, _Read):
        return request
    reader = sh.reader(request.fd)
    if request.count is None and request.timeout is None and len(request.names) <= BATCH:
        # The usual case: the line is there already and has no escapes.
        try:
            line = reader.readline_now(request.delim)
        except OSError as error:
            return sh.error(f"read: read error: {request.fd}: {reason(error)}")
        if line is not None and len(line) <= LARGE and (request.raw or b"\\" not in line):
            complete = line.endswith(request.delim) and bool(line)
            text = line[:-1] if complete else line
            return _assign(sh, request, text, (), 0 if complete else 1)
        if line is not None:
            if len(line) <= SMALL:
                taken = _LineBuffer(request.delim)
                if taken.add(line) is not None:  # else it goes on
                    return _assign(sh, request, taken.out, taken.escaped, 0)
            reader.unread(line)
    return drive(_read(sh, request, reader))


async def _read(sh: ShellState, request: _Read, reader: Reader) -> int:
    if request.timeout == 0:
        ready = getattr(reader, "ready", True)
        return 0 if ready else 1
    timeout = request.timeout
    if timeout is None and (usual := sh.variables.get("TMOUT")) and (seconds := _seconds(usual)) > 0:
        timeout = seconds
    source = _Source(reader, timeout, sh)
    try:
        if request.count is not None:
            data, escaped, complete = await _characters(source, request)
        else:
            data, escaped, complete = await _line(source, request)
    except OSError as error:
        return sh.error(f"read: read error: {request.fd}: {reason(error)}")
    status = TIMED_OUT if source.expired else 0 if complete else 1
    if len(data) > LARGE or len(request.names) > BATCH:
        return await offload(sh.budget, partial(_assign, sh, request, data, escaped, status))
    return _assign(sh, request, data, escaped, status)


class _Source:
    """Bytes of the input, with a deadline."""

    def __init__(self, reader: Reader, timeout: float | None, sh: ShellState) -> None:
        self.reader, self.sh = reader, sh
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.expired = False

    async def block(self) -> bytes:
        if self.deadline is None:
            return await self.reader.read()
        left = self.deadline - time.monotonic()
        try:
            return await asyncio.wait_for(self.reader.read(), max(left, 0))
        except TimeoutError:
            self.expired = True
            return b""


async def _line(source: _Source, request: _Read) -> tuple[_Data, Sequence[int], bool]:
    """A line up to the delimiter, backslashes resolved unless raw: (bytes, places of escaped bytes, complete)."""
    taken = _LineBuffer(request.delim)
    while True:
        block = await source.block()
        if not block:
            return taken.result(False)
        if request.raw or not (taken.pending or b"\\" in block):
            end = block.find(request.delim)
            if end >= 0:
                source.reader.unread(block[end + 1 :])
                taken.out += block[:end]
                return taken.result(True)
            taken.out += block
        else:
            rest = await offload_large(source.sh.budget, len(block), partial(taken.add, block), SMALL)
            if rest is not None:
                source.reader.unread(rest)
                return taken.result(True)
        within(source.sh, len(taken.out))


_BACKSLASH: Final = 0x5C


@cache
def _special(delim: bytes) -> re.Pattern[bytes]:
    """Finds what is not just a character of a line."""
    return re.compile(rb"\\(?:.|\Z)|" + re.escape(delim), re.DOTALL)


class _LineBuffer:
    """The bytes of a line that were read, backslashes resolved."""

    def __init__(self, delim: bytes) -> None:
        self.out = bytearray()
        self.escaped: list[int] = []
        self.pending = False  # a backslash waits for its character
        self._special = _special(delim)

    def result(self, complete: bool) -> tuple[_Data, Sequence[int], bool]:
        return self.out, self.escaped, complete

    def escape(self, byte: int) -> None:
        if byte != 0x0A:  # a line that goes on
            self.escaped.append(len(self.out))
            self.out.append(byte)

    def add(self, part: bytes) -> bytes | None:
        """Take some bytes; what comes after the delimiter, if that is among them."""
        out, place = self.out, 0
        if self.pending and part:
            self.escape(part[0])
            self.pending, place = False, 1
        for found in self._special.finditer(part, place):
            start, end = found.span()
            out += part[place:start]
            place = end
            if end - start == 2:
                self.escape(part[start + 1])
            elif part[start] == _BACKSLASH:
                self.pending = True
            else:
                return part[end:]
        out += part[place:]
        return None


async def _characters(source: _Source, request: _Read) -> tuple[_Data, Sequence[int], bool]:
    """Read `request.count` characters (`-n` and `-N`)."""
    taken = _LineBuffer(request.delim)
    left, pending = request.count or 0, False
    if not left:
        return taken.result(True)
    ends = (b"" if request.raw else rb"\\") + (b"" if request.exact else re.escape(request.delim))
    find = re.compile(b"[\0" + ends + b"]").search
    by_bytes = bytewise(source.sh)
    block, place = b"", 0
    while True:
        if place >= len(block):
            block, place = await source.block(), 0
            if not block:
                return taken.result(False)
        plain, count = (b"", 0) if pending else _plain_characters(block[place : place + SMALL], left, find, by_bytes)
        if count:
            await source.sh.budget.yield_turn()
            taken.out += plain
            place += len(plain)
            left -= count
        else:
            found = (_BYTE if by_bytes else _CHARACTER)(block, place)
            assert found is not None
            char = found[0]
            if not by_bytes and found.end() == len(block) and _goes_on(char) and (more := await source.block()):
                block, place = block[place:] + more, 0
                continue
            place += len(char)
            if char == b"\0" and (request.exact or request.delim != char):  # no character of any text
                await source.sh.budget.yield_turn()
                place = len(block) - len(block[place:].lstrip(b"\0"))
                continue
            if pending:
                pending = False
                if char == b"\n":
                    continue
                taken.escaped.append(len(taken.out))
            elif char == b"\\" and not request.raw:
                pending = True
                continue
            elif char == request.delim and not request.exact:
                source.reader.unread(block[place:])
                return taken.result(True)
            taken.out += char
            left -= 1
        if not left:
            source.reader.unread(block[place:])
            return taken.result(True)


_BYTE: Final = re.compile(b".", re.DOTALL).match
_CHARACTER: Final = re.compile(
    b"[\xc2-\xdf].?|[\xe0-\xef](?:[\x80-\xbf].?|.?)|[\xf0-\xf4](?:[\x80-\xbf](?:[\x80-\xbf].?|.?)|.?)|.", re.DOTALL
).match
"""A character; where the bytes of one break off, the byte at which that is noticed counts to it, as in bash."""


def _goes_on(char: bytes) -> bool:
    """Whether the next bytes may belong to a character."""
    return _BEGUN(char) is not None


_BEGUN: Final = re.compile(b"[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}", re.DOTALL).fullmatch


def _plain_characters(
    data: bytes, most: int, find: Callable[[bytes], re.Match[bytes] | None], by_bytes: bool
) -> tuple[bytes, int]:
    """The characters at the start of some bytes that are nothing but that, and how many they are."""
    found = find(data)
    if found is not None:
        data = data[: found.start()]
    if by_bytes or data.isascii():
        data = data[:most]
        return data, len(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
    if len(text) > most:
        text = text[:most]
    return text.encode(), len(text)


_Data = bytes | bytearray


def _text(data: _Data, escaped: Sequence[int]) -> tuple[str, Sequence[int]]:
    """What was read as text, with the places of escaped characters."""
    if b"\0" in data:
        return decode(bytes(data).replace(b"\0", b"")), ()
    text = decode(bytes(data))
    return text, _as_characters(data, escaped) if escaped and not text.isascii() else escaped


def _assign(sh: ShellState, request: _Read, data: _Data, escaped: Sequence[int], status: int) -> int:
    text, escaped = _text(data, escaped)
    if request.array is not None:
        return _put_list(sh, request.array, text, escaped) or status
    if not request.names:
        return _put(sh, ("REPLY",), (text,)) or status
    values = _values(sh, request, text, escaped)
    if request.wrong:
        failed = _put(sh, request.names[: request.wrong], values[: request.wrong])
        if not failed:
            sh.complain(_no_name(request.names[request.wrong]))
        return 1
    return _put(sh, request.names, values) or status


def _put_list(sh: ShellState, target: str, text: str, escaped: Sequence[int]) -> int:
    if not is_name(target):
        sh.complain(_no_name(target))
        return 1
    name, _ = sh.variables.follow(target)
    if type(sh.vars.get(name)) is Assoc:
        return sh.error(f"read: {name}: not an indexed array")
    try:
        sh.variables.set_list(target, split_all(text, sh.ifs, set(escaped)))
    except ShellError as error:
        return _report(sh, error)
    return 0


def _put(sh: ShellState, names: Sequence[str], values: Sequence[str]) -> int:
    try:
        for name, value in zip(names, values, strict=True):
            if name[-1:] == "]":
                at = name.index("[")
                sh.variables.set_element(name[:at], name[at + 1 : len(name) - 1], value)
            else:
                put(sh, name, value)
    except ShellError as error:
        return _report(sh, error)
    return 0


def _report(sh: ShellState, error: ShellError) -> int:
    """Report an assignment error and return 1; errors that end more than the command are raised."""
    if isinstance(error, BadSubscript | Fatal):
        raise error
    if isinstance(error, BadNumber):
        raise BadNumber(f"read: {error.message}") from None
    sh.complain(error.message)
    return 1


def _values(sh: ShellState, request: _Read, text: str, escaped: Sequence[int]) -> list[str]:
    count = len(request.names)
    return [text, *[""] * (count - 1)] if request.exact else split_some(text, sh.ifs, count, set(escaped))


def _as_characters(data: bytes | bytearray, places: Sequence[int]) -> Sequence[int]:
    """Places of bytes as those of the characters that begin there."""
    found: list[int] = []
    before = count = 0
    for place in places:
        count += len(decode(bytes(data[before:place])))
        before = place
        found.append(count)
    return found


class _FieldSplitter:
    """Cuts fields off a text by IFS, honouring escaped characters."""

    def __init__(self, text: str, ifs: str, escaped: set[int]) -> None:
        self.text, self.escaped = text, escaped
        self.white = [c for c in ifs if c in _WHITE]
        self.other = [c for c in ifs if c not in _WHITE]
        self.delimiter = delimiters(ifs)[0]
        self.any = re.compile(f"[{re.escape(ifs)}]")
        self.pos = 0
        self.skip_white()

    def skip_white(self) -> None:
        while self.pos < len(self.text) and self.text[self.pos] in self.white and self.pos not in self.escaped:
            self.pos += 1

    def field(self) -> str:
        start = self.pos
        return self.text[start : self.next_end()]

    def _separator(self, start: int) -> int:
        found = self.any.search(self.text, start)
        return len(self.text) if found is None else found.start()

    def next_end(self) -> int:
        """Where the next field ends; what comes after its separator is next then."""
        text, start, escaped = self.text, self.pos, self.escaped
        end = self._separator(start)
        if not escaped:
            match = self.delimiter.match(text, end)
            self.pos = end if match is None else match.end()
            return end
        while end in escaped:
            end = self._separator(end + 1)
        self.pos = end
        self.skip_white()
        if self.pos < len(text) and text[self.pos] in self.other and self.pos not in escaped:
            self.pos += 1
            self.skip_white()
        return end

    @property
    def ended(self) -> bool:
        return self.pos >= len(self.text)


def split_some(text: str, ifs: str, count: int, escaped: set[int]) -> list[str]:
    """Fields for `count` names; the last one takes the rest."""
    if not ifs:
        return [text, *[""] * (count - 1)]
    if not escaped and not ifs.strip(_WHITE):
        # Only white space separates, as nearly always.
        found = delimiters(ifs)[0].split(text.lstrip(ifs), count - 1) if count > 1 else [text.lstrip(ifs)]
        found[-1] = found[-1].rstrip(ifs)
        return found + [""] * (count - len(found))
    cutter = _FieldSplitter(text, ifs, escaped)
    values: list[str] = []
    while len(values) < count - 1:
        values.append("" if cutter.ended else cutter.field())
    start = cutter.pos
    end = cutter.next_end()
    if cutter.ended:
        values.append(text[start:end])
        return values
    end = len(text)
    while end > start and text[end - 1] in cutter.white and end - 1 not in escaped:
        end -= 1
    values.append(text[start:end])
    return values


def split_all(text: str, ifs: str, escaped: set[int]) -> list[str]:
    if not ifs:
        return [text] if text else []
    if not escaped and not ifs.strip(_WHITE):
        return words_between(ifs)(text)
    if not escaped:
        pattern, white, _ = delimiters(ifs)
        parts = pattern.split(text.lstrip(white) if white else text)
        return parts if parts[-1] else parts[:-1]
    cutter = _FieldSplitter(text, ifs, escaped)
    values: list[str] = []
    while not cutter.ended:
        values.append(cutter.field())
    return values


TABLE: Final[dict[str, Builtin]] = {"read": read}
