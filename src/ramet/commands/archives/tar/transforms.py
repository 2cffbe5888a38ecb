"""`tar --transform`: sed expressions that change member names and link targets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ramet.commands.framework.command import UsageError
from ramet.commands.framework.posix_regex import bre_bytes, ere_bytes
from ramet.core.paths import decode, encode
from ramet.patterns import Matcher

_PIECE = re.compile(rb"\\([0-9])|\\([ULluE])|\\(.)|(&)|([^\\&]+|\\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Rule:
    matcher: Matcher
    replacement: bytes
    kinds: str
    """Kinds of names to change: r members, s symlink targets, h hard link targets."""
    every: bool
    first: int
    """Number of the first match to replace."""


def transformer(texts: tuple[str, ...]) -> Callable[[str, str], str]:
    """`s/PATTERN/REPLACEMENT/FLAGS` on names; the flags r, s, h say what kind of name it is for."""
    rules = [rule for text in texts for rule in _rules(text)]

    def apply(name: str, kind: str) -> str:
        raw = encode(name)
        for rule in rules:
            if kind in rule.kinds:
                raw = _replaced(rule, raw)
        return decode(raw)

    return apply


def _rules(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    kinds = "rsh"
    pos = 0
    while pos < len(text):
        if text.startswith("flags=", pos):
            end = text.find(";", pos)
            end = len(text) if end < 0 else end
            kinds = _kinds(text[pos + 6 : end], kinds)
        else:
            mark = text[pos + 1 : pos + 2]
            parts, end = _parts(text, pos + 2, mark) if text[pos] == "s" and mark else ([], 0)
            if len(parts) != 2:
                raise UsageError("Invalid transform expression", 2)
            flags = re.match(r"[^;]*", text[end:])
            assert flags is not None
            end += flags.end()
            rules.append(_rule(parts[0], parts[1], flags[0], kinds))
        pos = end + 1
    return rules


def _parts(text: str, pos: int, mark: str) -> tuple[list[str], int]:
    """Return the pattern and the replacement between marks, and where the flags begin."""
    parts: list[str] = []
    part = ""
    while pos < len(text) and len(parts) < 2:
        char = text[pos]
        if char == "\\" and text[pos + 1 : pos + 2] == mark:
            part, pos = part + mark, pos + 1
        elif char == "\\":
            part, pos = part + text[pos : pos + 2], pos + 1
        elif char == mark:
            parts.append(part)
            part = ""
        else:
            part += char
        pos += 1
    return parts, pos


def _rule(pattern: str, replacement: str, flags: str, kinds: str) -> _Rule:
    number = re.search(r"\d+", flags)
    if re.search(r"[^0-9gixrRsShH]", flags):
        raise UsageError(f"Unknown flag in transform expression: {flags}", 2)
    matcher = (ere_bytes if "x" in flags else bre_bytes)(pattern, icase="i" in flags)
    return _Rule(matcher, encode(replacement), _kinds(flags, kinds), "g" in flags, int(number[0]) if number else 1)


def _kinds(flags: str, kinds: str) -> str:
    """Apply flags: small letters add a kind of names, capitals remove it."""
    for flag in flags:
        if flag in "rsh":
            kinds = kinds + flag
        elif flag in "RSH":
            kinds = kinds.replace(flag.lower(), "")
    return kinds


def _replaced(rule: _Rule, raw: bytes) -> bytes:
    out: list[bytes] = []
    pos = count = 0
    while (spans := rule.matcher.spans(raw, pos)) is not None:
        start, end = spans[0]
        count += 1
        out.append(raw[pos:start])
        out.append(_expanded(rule.replacement, raw, spans) if count >= rule.first else raw[start:end])
        if end == start:
            out.append(raw[end : end + 1])
            pos = end + 1
        else:
            pos = end
        if pos > len(raw) or (count >= rule.first and not rule.every):
            break
    out.append(raw[pos:])
    return b"".join(out)


def _expanded(replacement: bytes, raw: bytes, spans: list[tuple[int, int]]) -> bytes:
    """The replacement with the groups put in, and with the case that `\\U`, `\\L`, `\\u` and `\\l` ask for."""
    out: list[str] = []
    mode = once = ""
    for found in _PIECE.finditer(replacement):
        if found[2]:
            letter = decode(found[2])
            if letter in "ul":
                once = letter
            else:
                mode = "" if letter == "E" else letter
            continue
        number = int(found[1]) if found[1] else 0 if found[4] else None
        if number is None:
            piece = decode(found[3] or found[5])
        elif number >= len(spans) or spans[number][0] < 0:
            piece = ""
        else:
            piece = decode(raw[spans[number][0] : spans[number][1]])
        piece = piece.upper() if mode == "U" else piece.lower() if mode == "L" else piece
        if once and piece:
            piece = (piece[0].upper() if once == "u" else piece[0].lower()) + piece[1:]
            once = ""
        out.append(piece)
    return encode("".join(out))
