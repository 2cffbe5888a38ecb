"""Input into variables: read, mapfile, readarray."""

from __future__ import annotations

import asyncio
import re
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final

from ramet.core.errors import reason
from ramet.core.paths import decode, encode
from ramet.core.streams import Reader
from ramet.shell.expand import quote
from ramet.shell.expand.aside import LARGE, aside
from ramet.shell.expand.errors import BadNumber, BadSubscript, Fatal, Readonly, ShellError
from ramet.shell.expand.fields import delimiters, split_plain, words_between
from ramet.shell.expand.values import Assoc, Indexed
from ramet.shell.interp.assign import put
from ramet.shell.interp.drive import Result, drive
from ramet.shell.interp.session import Builtin, Session
from ramet.shell.interp.variables import TRANSFORM, is_name, split_subscript

_WHITE: Final = " \t\n"
TIMED_OUT: Final = 142
_USAGE: Final = (
    "read: usage: read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] "
    "[-t timeout] [-u fd] [name ...]\n"
)


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


def _options(sh: Session, argv: list[str]) -> _Read | int:
    request = _Read()
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = str(argv[i])
        i += 1
        if word == "--":
            break
        place = 1
        while place < len(word):
            letter = word[place]
            place += 1
            if letter in "ers":
                request.raw = request.raw or letter == "r"
                continue
            if letter not in "adinNptu":
                sh.complain(f"read: -{letter}: invalid option")
                sh.err(_USAGE)
                return 2
            value = word[place:]
            place = len(word)
            if not value:
                if i >= len(argv):
                    sh.complain(f"read: -{letter}: option requires an argument")
                    sh.err(_USAGE)
                    return 2
                value = str(argv[i])
                i += 1
            wrong = _option(sh, request, letter, value)
            if wrong:
                return wrong
    request.names = [str(word) for word in argv[i:]]
    for name in request.names:
        if not is_name(split_subscript(name)[0]) or name.endswith("[]"):
            return sh.error(f"read: `{name}': not a valid identifier")
    return request


def _option(sh: Session, request: _Read, letter: str, value: str) -> int:
    if letter == "a":
        request.array = value
    elif letter == "d":
        request.delim = encode(value)[:1] or b"\0"
    elif letter in "nN":
        if not value.isdigit():
            return sh.error(f"read: {value}: invalid number")
        request.count, request.exact = int(value), letter == "N"
    elif letter == "p":
        request.prompt = value
    elif letter == "t":
        try:
            request.timeout = float(value)
        except ValueError:
            return sh.error(f"read: {value}: invalid timeout specification")
        if request.timeout < 0:
            return sh.error(f"read: {value}: invalid timeout specification")
    elif letter == "u":
        if not value.isdigit():
            return sh.error(f"read: {value}: invalid file descriptor specification")
        request.fd = int(value)
        description = sh.fds.get(request.fd)
        if description is None or description.reader is None:
            return sh.error(f"read: {value}: invalid file descriptor: Bad file descriptor")
    return 0


def read(sh: Session, argv: list[str]) -> Result:
    request = _options(sh, argv)
    if isinstance(request, int):
        return request
    reader = sh.reader(request.fd)
    if request.count is None and request.timeout is None:
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
            if len(line) <= _SPAN:
                taken = _Taken(request.delim)
                if taken.add(line) is not None:  # else it goes on
                    return _assign(sh, request, bytes(taken.out), taken.escaped, 0)
            reader.unread(line)
    return drive(_read(sh, request, reader))


async def _read(sh: Session, request: _Read, reader: Reader) -> int:
    if request.timeout == 0:
        ready = getattr(reader, "ready", True)
        return 0 if ready else 1
    source = _Source(reader, request.timeout, sh)
    try:
        if request.count is not None:
            data, escaped, complete = await _characters(source, request)
        else:
            data, escaped, complete = await _line(source, request)
    except OSError as error:
        return sh.error(f"read: read error: {request.fd}: {reason(error)}")
    status = TIMED_OUT if source.expired else 0 if complete else 1
    if len(data) > LARGE:
        return await aside(sh, lambda: _assign(sh, request, data, escaped, status))
    return _assign(sh, request, data, escaped, status)


class _Source:
    """Bytes of the input, with a deadline."""

    def __init__(self, reader: Reader, timeout: float | None, sh: Session) -> None:
        self.reader, self.sh = reader, sh
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.expired = False

    async def block(self) -> bytes:
        await self.sh.budget.breathe()
        if self.deadline is None:
            return await self.reader.read()
        left = self.deadline - time.monotonic()
        try:
            return await asyncio.wait_for(self.reader.read(), max(left, 0))
        except TimeoutError:
            self.expired = True
            return b""


async def _line(source: _Source, request: _Read) -> tuple[bytes, Sequence[int], bool]:
    """A line up to the delimiter, backslashes resolved unless raw: (bytes, places of escaped bytes, complete)."""
    taken = _Taken(request.delim)
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
            continue
        for start in range(0, len(block), _SPAN):
            rest = taken.add(block[start : start + _SPAN])
            if rest is not None:
                source.reader.unread(rest + block[start + _SPAN :])
                return taken.result(True)
            await source.sh.budget.breathe()


_SPAN: Final = 1 << 13
"""Bytes that are looked at one by one before others may want to run."""
_BACKSLASH: Final = 0x5C


@cache
def _special(delim: bytes) -> re.Pattern[bytes]:
    """Finds what is not just a character of a line."""
    return re.compile(rb"\\(?:.|\Z)|" + re.escape(delim), re.DOTALL)


class _Taken:
    """What of a line is read already, backslashes resolved."""

    def __init__(self, delim: bytes) -> None:
        self.out = bytearray()
        self.escaped = array("q")  # there may be millions, and they go at once
        self.pending = False  # a backslash waits for its character
        self._special = _special(delim)

    def result(self, complete: bool) -> tuple[bytes, Sequence[int], bool]:
        return bytes(self.out), self.escaped, complete

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


async def _characters(source: _Source, request: _Read) -> tuple[bytes, Sequence[int], bool]:
    """`-n` and `-N`: so many characters."""
    out = bytearray()
    escaped = array("q")
    left, pending = request.count or 0, False
    if not left:
        return b"", (), True
    ends = (b"" if request.raw else rb"\\") + (b"" if request.exact else re.escape(request.delim))
    find = re.compile(b"[" + ends + b"]").search if ends else None
    block, place = b"", 0
    while True:
        if place >= len(block):
            block, place = await source.block(), 0
            if not block:
                return bytes(out), escaped, False
        plain, count = (b"", 0) if pending else _plain_characters(block[place : place + _SPAN], left, find)
        if count:
            await source.sh.budget.breathe()
            out += plain
            place += len(plain)
            left -= count
        else:
            found = _CHARACTER(block, place)
            assert found is not None
            char = found[0]
            if found.end() == len(block) and _goes_on(char) and (more := await source.block()):
                block, place = block[place:] + more, 0
                continue
            place += len(char)
            if pending:
                pending = False
                if char == b"\n":
                    continue
                escaped.append(len(out))
            elif char == b"\\" and not request.raw:
                pending = True
                continue
            elif char == request.delim and not request.exact:
                source.reader.unread(block[place:])
                return bytes(out), escaped, True
            out += char
            left -= 1
        if not left:
            source.reader.unread(block[place:])
            return bytes(out), escaped, True


_CHARACTER: Final = re.compile(
    b"[\xc2-\xdf].?|[\xe0-\xef](?:[\x80-\xbf].?|.?)|[\xf0-\xf4](?:[\x80-\xbf](?:[\x80-\xbf].?|.?)|.?)|.", re.DOTALL
).match
"""A character; where the bytes of one break off, the byte at which that is noticed counts to it, as in bash."""


def _goes_on(char: bytes) -> bool:
    """Whether the next bytes may belong to a character."""
    return _BEGUN(char) is not None


_BEGUN: Final = re.compile(b"[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2}", re.DOTALL).fullmatch


def _plain_characters(
    data: bytes, most: int, find: Callable[[bytes], re.Match[bytes] | None] | None
) -> tuple[bytes, int]:
    """The characters at the start of some bytes that are nothing but that, and how many they are."""
    found = None if find is None else find(data)
    if found is not None:
        data = data[: found.start()]
    if data.isascii():
        data = data[:most]
        return data, len(data)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data[: error.start].decode()
    if len(text) > most:
        text = text[:most]
    return text.encode(), len(text)


def _assign(sh: Session, request: _Read, data: bytes, escaped: Sequence[int], status: int) -> int:
    if b"\0" in data:
        data = data.replace(b"\0", b"")
        escaped = ()
    text = decode(data)
    if escaped and not text.isascii():
        escaped = _as_characters(data, escaped)
    try:
        if request.array is not None:
            if not is_name(request.array):
                return sh.error(f"read: `{request.array}': not a valid identifier")
            name, _ = sh.store.follow(request.array)
            if type(sh.vars.get(name)) is Assoc:
                return sh.error(f"read: {name}: not an indexed array")
            sh.store.set_list(request.array, split_all(text, sh.ifs, set(escaped)))
        elif not request.names:
            put(sh, "REPLY", text)
        elif request.exact:
            _store(sh, request.names[0], text)
            for name in request.names[1:]:
                _store(sh, name, "")
        else:
            values = split_some(text, sh.ifs, len(request.names), set(escaped))
            for name, value in zip(request.names, values, strict=True):
                _store(sh, name, value)
    except Readonly as error:
        return sh.error(error.message)
    except (BadSubscript, Fatal):
        raise
    except BadNumber as error:
        raise BadNumber(f"read: {error.message}") from None
    except ShellError as error:
        return sh.error(error.message)
    return status


def _as_characters(data: bytes, places: Sequence[int]) -> Sequence[int]:
    """Places of bytes as those of the characters that begin there."""
    found = array("q")
    before = count = 0
    for place in places:
        count += len(decode(data[before:place]))
        before = place
        found.append(count)
    return found


def _store(sh: Session, name: str, value: str) -> None:
    base, subscript = split_subscript(name)
    if subscript is not None:
        sh.store.set_element(base, subscript, value)
    else:
        put(sh, name, value)


class _Cutter:
    """Cuts fields off a text by IFS, honouring escaped characters."""

    def __init__(self, text: str, ifs: str, escaped: set[int]) -> None:
        self.text, self.escaped = text, escaped
        self.white = [c for c in ifs if c in _WHITE]
        self.other = [c for c in ifs if c not in _WHITE]
        self.delimiter = delimiters(ifs)[0]
        self.any = re.compile(f"[{re.escape(ifs)}]").search
        self.pos = 0
        self.skip_white()

    def skip_white(self) -> None:
        while self.pos < len(self.text) and self.text[self.pos] in self.white and self.pos not in self.escaped:
            self.pos += 1

    def field(self) -> str:
        start = self.pos
        text, escaped = self.text, self.escaped
        if not escaped:
            match = self.delimiter.search(text, start)
            if match is None:
                self.pos = len(text)
                return text[start:]
            self.pos = match.end()
            return text[start : match.start()]
        found = self.any(text, start)
        while found is not None and found.start() in escaped:
            found = self.any(text, found.end())
        self.pos = end = len(text) if found is None else found.start()
        self.skip_white()
        if self.pos < len(text) and text[self.pos] in self.other and self.pos not in escaped:
            self.pos += 1
            self.skip_white()
        return text[start:end]

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
    cutter = _Cutter(text, ifs, escaped)
    values: list[str] = []
    while len(values) < count - 1:
        values.append("" if cutter.ended else cutter.field())
    start = cutter.pos
    one = "" if cutter.ended else cutter.field()
    if cutter.ended:
        values.append(one)
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
        return words_between(ifs)(text) if len(text) < LARGE else split_plain(text, ifs)
    if not escaped:
        pattern, white, _ = delimiters(ifs)
        parts = pattern.split(text.lstrip(white) if white else text)
        return parts if parts[-1] else parts[:-1]
    cutter = _Cutter(text, ifs, escaped)
    values: list[str] = []
    while not cutter.ended:
        values.append(cutter.field())
    return values


# ---------------------------------------------------------------------------------------------------- mapfile

_MAPFILE: Final = "[-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]"


def mapfile(sh: Session, argv: list[str]) -> Result:
    options: dict[str, str] = {}
    strip = False
    i = 1
    while i < len(argv) and argv[i].startswith("-") and len(argv[i]) > 1:
        word = str(argv[i])
        i += 1
        if word == "--":
            break
        place = 1
        while place < len(word):
            letter = word[place]
            place += 1
            if letter == "t":
                strip = True
                continue
            if letter not in "dnOsuCc":
                sh.complain(f"{argv[0]}: -{letter}: invalid option")
                sh.err(f"{argv[0]}: usage: {argv[0]} {_MAPFILE}\n")
                return 2
            if place < len(word):
                options[letter], place = word[place:], len(word)
            elif i < len(argv):
                options[letter] = str(argv[i])
                i += 1
            else:
                sh.complain(f"{argv[0]}: -{letter}: option requires an argument")
                return 2
    name = str(argv[i]) if i < len(argv) else "MAPFILE"
    if not name:
        return sh.error(f"{argv[0]}: empty array variable name", 2)
    if not is_name(name):
        return sh.error(f"{argv[0]}: `{name}': not a valid identifier")
    for letter in "nOsuc":
        if letter in options and (not options[letter].isdigit() or (letter == "c" and not int(options[letter]))):
            what = {"n": "line count", "O": "array origin", "s": "line count", "u": "file descriptor specification"}
            return sh.error(f"{argv[0]}: {options[letter]}: invalid {what.get(letter, 'callback quantum')}")
    return drive(_mapfile(sh, str(argv[0]), name, options, strip))


async def _mapfile(sh: Session, command: str, name: str, options: dict[str, str], strip: bool) -> int:
    delim = encode(options["d"])[:1] or b"\0" if "d" in options else b"\n"
    source = int(options.get("u", "0"))
    if source not in sh.fds and "u" in options:
        return sh.error(f"{command}: {source}: invalid file descriptor: Bad file descriptor")
    reader = sh.reader(source)
    limit, skip = int(options.get("n", "0")), int(options.get("s", "0"))
    callback, quantum = options.get("C"), int(options.get("c", "5000")) or 5000
    target, _ = sh.store.follow(name)
    if type(sh.vars.get(target)) is Assoc:
        return sh.error(f"{command}: {name}: not an indexed array")
    try:
        sh.store.writable(target)
        if "O" in options:
            array = sh.store.indexed(target)
        else:
            sh.store.set_list(target, ())
            array = sh.store.indexed(target)
        origin = int(options.get("O", "0"))
        if not limit and not callback:
            return await _whole(sh, target, reader, delim, skip, strip, array, origin)
        count = 0
        while not limit or count < limit:
            line = reader.readline_now(delim)
            if line is None:
                line = await reader.readline(delim)
            if not line:
                break
            if skip:
                skip -= 1
                continue
            text = decode((line[:-1] if strip and line.endswith(delim) else line).partition(b"\0")[0])
            if callback and (count + 1) % quantum == 0:
                result = await sh.shell.run_text(
                    sh, f"{callback} {origin + count} {quote.single(text)}", keep_line=True
                )
                if result > 255:
                    return result
            sh.store.indexed(target).set(origin + count, sh.store.transform(target, text))
            count += 1
            if not count & 1023:
                await sh.budget.breathe()
    except OSError as error:
        return sh.error(f"{command}: {reason(error)}")
    except (BadSubscript, Fatal):
        raise
    except BadNumber as error:
        raise BadNumber(f"{command}: {error.message}") from None
    except ShellError as error:
        return sh.error(error.message)
    return 0


async def _whole(
    sh: Session, target: str, reader: Reader, delim: bytes, skip: int, strip: bool, array: Indexed, origin: int
) -> int:
    """All lines, many at a time."""
    index, size = origin - skip, 0
    keep = b"" if strip or delim == b"\0" else delim
    transform = sh.store.transform if sh.store.attrs.get(target, 0) & TRANSFORM else None
    parts: list[bytes] = []
    while True:
        await sh.budget.breathe()
        block = await reader.read(_BLOCK)
        ended = not block
        size += len(block)
        if size > sh.budget.limits.string_bytes:
            raise sh.budget.exceeded("string_bytes")
        parts.append(block)
        if not ended and delim not in block:
            continue
        work = partial(_lines, parts, delim, keep, ended)
        lines, last = work() if len(parts) < _LONG_LINE else await aside(sh, work)
        parts = [last]
        if transform is not None:
            lines = [transform(target, line) for line in lines]
        for line in lines:
            if index >= origin:
                array.set(index, line)
            index += 1
        if ended:
            return 0


def _lines(parts: list[bytes], delim: bytes, keep: bytes, ended: bool) -> tuple[list[str], bytes]:
    """The lines that some blocks make, and what is left of them. A NUL ends what a line has of use."""
    data = b"".join(parts)
    pieces = data.split(delim)
    last = pieces.pop()
    pieces = [piece + keep for piece in pieces] if keep else pieces
    if ended and last:
        pieces.append(last)
    if b"\0" in data and delim != b"\0":
        pieces = [piece.partition(b"\0")[0] for piece in pieces]
    return [decode(piece) for piece in pieces], last


_BLOCK: Final = 1 << 16
_LONG_LINE: Final = 16
"""Blocks of a line that becomes text aside."""


TABLE: Final[dict[str, Builtin]] = {"read": read, "mapfile": mapfile, "readarray": mapfile}
