"""Parse magic files (`file -m`): tests of bytes at offsets."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ramet import patterns
from ramet.commands.framework.command import UsageError
from ramet.core.paths import decode, encode

_SIZES = {"byte": "b", "short": "h", "long": "i", "quad": "q", "float": "f", "double": "d"}
_LINE = re.compile(r"(>*)(&?)(0x[0-9a-fA-F]+|\d+)\s+(\S+)\s+((?:\\.|\S)+)(?:\s+(.*))?", re.DOTALL)
_NUMBER = re.compile(r"(u?)(be|le|)(byte|short|long|quad|float|double)(?:&(0x[0-9a-fA-F]+|\d+))?")


@dataclass(frozen=True, slots=True)
class Test:
    level: int
    offset: int
    relative: bool
    kind: str
    wanted: str
    message: str
    mime: str = ""


def tests_of(text: str) -> list[Test]:
    """Return the tests of a text; a kind that is not known is refused rather than skipped."""
    found: list[Test] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("!:mime") and found:
            found[-1] = replace(found[-1], mime=line[6:].strip())
            continue
        if not line.strip() or line[0] in "#!":
            continue
        parts = _LINE.fullmatch(line.rstrip("\r"))
        if parts is None:
            raise UsageError(f"magic line {number} is not understood: {line}", hint=False)
        levels, relative, offset, kind, wanted, message = parts.groups()
        base = kind.partition("/")[0]
        if base not in ("string", "search", "regex", "default", "ustring") and not _NUMBER.fullmatch(kind):
            raise UsageError(f"magic line {number}: the type {kind} is not supported", hint=False)
        found.append(Test(len(levels), int(offset, 0), bool(relative), kind, wanted, (message or "").strip()))
    return found


def identified(tests: Iterable[Test], data: bytes) -> tuple[str, str] | None:
    """What the first test of the first level that holds says, with those below it that hold too; and a MIME type."""
    said = ""
    mime = ""
    depth = -1  # the tests of the level below the last that held may go on
    end = 0
    begun = False
    for test in tests:
        if test.level == 0 and begun:
            break
        if test.level > depth + 1:
            continue
        held = _match(test, data, test.offset + (end if test.relative else 0))
        if held is None:
            depth = min(depth, test.level - 1)
            continue
        depth, begun = test.level, True
        shown, end = held
        mime = test.mime or mime
        message = _filled(test.message, shown)
        if message.startswith(("\\b", "\b")):
            said += message.lstrip("\b").removeprefix("\\b")
        elif message:
            said += (" " if said else "") + message
    return (said, mime) if begun and (said or mime) else None


def of_text(tests: Iterable[Test], data: bytes) -> bool:
    """Return whether the test that holds first looks for text, of which more may be said."""
    first = next((t for t in tests if t.level == 0 and _match(t, data, t.offset) is not None), None)
    return first is not None and first.kind.startswith(("search", "regex"))


def _filled(message: str, value: str | float) -> str:
    def put(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        if isinstance(value, str):
            return value
        return f"%{found[1]}{'d' if found[2] in 'iu' else found[2]}" % (value if found[2] in "feg" else int(value))

    return re.sub(r"%(?:%|([-+ #0-9.]*)[hlqj]*([diuxXocsfeg]))", put, message)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "a": "\a", "f": "\f", "v": "\v"}


def _unescaped(text: str) -> bytes:
    def put(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return chr(int(found[2], 8)) if found[2] else _ESCAPES.get(found[3], found[3])

    raw = decode(encode(text))
    pieces: list[bytes] = []
    at = 0
    for found in re.finditer(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", raw, re.DOTALL):
        pieces += [encode(raw[at : found.start()]), put(found).encode("latin-1", "replace")]
        at = found.end()
    return b"".join([*pieces, encode(raw[at:])])


def _match(test: Test, data: bytes, at: int) -> tuple[str | float, int] | None:
    """Return what was found and where it ends; None when the test does not hold."""
    kind, _, flags = test.kind.partition("/")
    if kind == "default":
        return "", at
    if kind in ("string", "search", "regex", "ustring"):
        return _text(test, kind, flags, data, at)
    numeric = _NUMBER.fullmatch(test.kind)
    assert numeric is not None
    unsigned, order, name, mask = numeric.groups()
    code = _SIZES[name]
    size = struct.calcsize("=" + code)
    if at + size > len(data):
        return None
    number = struct.unpack_from((">" if order == "be" else "<") + (code.upper() if unsigned else code), data, at)[0]
    if mask:
        number &= int(mask, 0)
    if test.wanted == "x":
        return number, at + size
    operator = test.wanted[0] if test.wanted[0] in "=<>!&^~" else "="
    try:
        text = test.wanted.lstrip("=<>!&^~")
        wanted = float(text) if name in ("float", "double") else int(text, 0)
    except ValueError:
        raise UsageError(f"not a number in a magic file: {test.wanted}", hint=False) from None
    if operator in "=!" and not unsigned and isinstance(wanted, int) and wanted >= 1 << (8 * size - 1):
        wanted -= 1 << 8 * size
    holds = {
        "=": number == wanted,
        "!": number != wanted,
        "<": number < wanted,
        ">": number > wanted,
        "&": operator == "&" and int(number) & int(wanted) == int(wanted),
        "^": operator == "^" and int(number) & int(wanted) != int(wanted),
    }.get(operator, False)
    return (number, at + size) if holds else None


def _text(test: Test, kind: str, flags: str, data: bytes, at: int) -> tuple[str, int] | None:
    wanted = test.wanted
    if wanted == "x":
        line = re.split(rb"[\0\r\n]", data[at:], maxsplit=1)[0]
        return decode(line), at + len(line)
    operator = wanted[0] if wanted[0] in "=<>!" and len(wanted) > 1 else ""
    value = _unescaped(wanted[1:] if operator else wanted)
    if kind == "regex":
        try:
            matcher = patterns.compile((b"(?mi)" if "c" in flags else b"(?m)") + value, patterns.PERL, seconds=1.0)
        except patterns.PatternError as error:
            raise UsageError(f"in a magic file: {error}", hint=False) from None
        part = data[at : at + 8192]
        spans = matcher.spans(part, 0)
        return (decode(part[spans[0][0] : spans[0][1]]), at + spans[0][1]) if spans is not None else None
    if kind == "search":
        reach = re.match(r"\d+", flags)
        stop = at + (int(reach[0]) if reach else len(data)) + len(value)
        place = data.find(value, at, stop)
        return (decode(value), place + len(value)) if place >= 0 else None
    have = data[at : at + len(value)]
    if any(letter in flags for letter in "cC"):
        have, value = have.lower(), value.lower()
    if operator in ("<", ">"):
        line = re.split(rb"[\0\r\n]", data[at:], maxsplit=1)[0]
        return (decode(line), at + len(line)) if (line > value if operator == ">" else line < value) else None
    if (have == value) == (operator != "!"):
        return decode(have), at + len(value)
    return None
