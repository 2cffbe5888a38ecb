"""What ed does to single lines: parts between delimiters, substitution, and lines as `l` shows them."""

from __future__ import annotations

import re

from ramet.concurrency.offload import checkpoint
from ramet.patterns import Matcher


def apart(line: bytes) -> bytes:
    """A line as an object of its own, so that it is found again wherever it moves."""
    return bytes(bytearray(line)) if len(line) > 1 else _Short(line)


class _Short(bytes):
    """A line that is told apart from others: Python has only one of each of the shortest."""


def number_of(lines: list[bytes], line: bytes, near: int) -> int | None:
    """Where a line is, which is looked for from a place on; None where it is gone."""
    for places in (range(near, len(lines)), range(min(near, len(lines)))):
        for index in places:
            if lines[index] is line:
                return index + 1
    return None


_SET = re.compile(r"\[\^?\]?[^]]*\]")


def delimited(text: str, mark: str) -> tuple[str, str, bool]:
    """What stands before an unescaped delimiter, what stands behind it, and whether there was one."""
    plain = re.compile(rf"(?:[^\\\[{re.escape(mark)}]+|\\.)*+", re.DOTALL)
    at = 0
    while (found := plain.match(text, at)) is not None and found.end() < len(text):
        at = found.end()
        if text[at] == "[":
            close = _SET.match(text, at)
            if close and mark not in ("[", "]") and mark not in close[0]:
                at = close.end()
                continue
        if text[at] == mark:
            return text[:at], text[at + 1 :], True
        at += 1
    return text, "", False


_PIECE = re.compile(rb"\\(\d)|\\(.)|(&)", re.DOTALL)


def replaced(matcher: Matcher, line: bytes, template: bytes, every: bool, number: int) -> bytes | None:
    out: list[bytes] = []
    pos, copied, seen, last = 0, 0, 0, -1
    while pos <= len(line):
        checkpoint()
        spans = matcher.spans(line, pos)
        if spans is None:
            break
        start, stop = spans[0]
        if start == stop == last:
            pos = stop + 1
            continue
        seen += 1
        if seen >= number:
            out += [line[copied:start], _filled(template, line, spans)]
            copied = stop
            if not every:
                break
        last = stop
        pos = stop if stop > start else stop + 1
    return b"".join([*out, line[copied:]]) if out else None


def _filled(template: bytes, line: bytes, spans: list[tuple[int, int]]) -> bytes:
    def put(found: re.Match[bytes]) -> bytes:
        if found[3] or found[1]:
            index = int(found[1] or b"0")
            start, stop = spans[index] if index < len(spans) else (-1, -1)
            return line[start:stop] if start >= 0 else b""
        return bytes(found[2])

    return _PIECE.sub(put, template)


_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 11: b"\\v", 12: b"\\f", 13: b"\\r", 92: b"\\\\", 36: b"\\$"}


_COLUMNS = 72
_SLICE = 1 << 14
"""Bytes of a line after which it is asked whether anybody still waits."""


def visible(line: bytes, marked: bool = True) -> bytes:
    """A line as `l` shows it, broken where it would be wider than a terminal; `marked` at its end."""
    done: list[bytes] = []
    column = 0
    for start in range(0, len(line), _SLICE):
        checkpoint()
        out: list[bytes] = []
        for byte in line[start : start + _SLICE]:
            piece = _ESCAPES.get(byte) or (b"%c" % byte if 32 <= byte < 127 else b"\\%03o" % byte)
            if column + len(piece) > _COLUMNS:
                out.append(b"\\\n")
                column = 0
            out.append(piece)
            column += len(piece)
        done.append(b"".join(out))
    if marked:
        done.append(b"$")
    return b"".join(done)
