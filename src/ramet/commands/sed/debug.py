"""What `sed --debug` prints: the program in its plain form, and what each command does to the spaces.

Nothing here changes what a script does; the machine tells a `Trace` what it is about to do and what it has done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ramet.commands.sed.program import Address, Flags, Instruction, Kind
from ramet.patterns import Matcher

_ESCAPES = {7: "\\a", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 92: "\\\\"}
_BLANKS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SIGNED = 0xFFFFFF00
"""Bytes beyond ASCII are shown as the negative numbers that they are to C."""
_SHOWS_PATTERN = frozenset("sGxynNz")
_SHOWS_HOLD = frozenset("hHgx")
_CONTROL = re.compile(r"\\c([@-_a-z])|\\.", re.DOTALL)
_PART = re.compile(r"\\(.)|(&)|[^\\&]+", re.DOTALL)


def shown_bytes(data: bytes) -> str:
    """Data in which every character can be seen."""
    return "".join(
        _ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\o{byte | (_SIGNED if byte > 127 else 0):03o}")
        for byte in data
    )


def _controls(text: str) -> str:
    """The text with its control characters (`\\cA`) themselves."""
    return _CONTROL.sub(lambda found: chr(ord(found[1].upper()) ^ 0x40) if found[1] else found[0], text)


def shown_regex(regex: str) -> str:
    """A pattern between slashes; the characters that it gives by name are there themselves."""
    text = re.sub(r"\\(.)", lambda found: _BLANKS.get(found[1], found[0]), _controls(regex), flags=re.DOTALL)
    return "/" + shown_bytes(text.encode("utf-8", "surrogateescape")).replace("/", "\\/") + "/"


def shown_replacement(text: str) -> str:
    """A replacement, with the changes of case where they begin and end."""
    out: list[str] = []
    lasting = once = ""
    told = ""
    for found in _PART.finditer(_controls(text)):
        letter = found[1] or ""
        if letter and letter in "LUE":
            out.append(_change(told, lasting + once))
            told, lasting, once = lasting + once, "" if letter == "E" else letter, ""
        elif letter and letter in "lu":
            out.append(_change(told, lasting + once))
            told, once = lasting + once, letter
        else:
            out.append(_change(told, lasting + once))
            told = lasting + once
            if found[2] or letter == "0":
                out.append("&")
            elif letter.isdecimal() and letter:
                out.append(found[0])
            else:
                out.append(_BLANKS.get(letter, letter) or found[0])
            if found[2] or letter:
                once = ""
    return "".join(out)


def _change(before: str, now: str) -> str:
    return "" if before == now else "\\" + (now[-1:] or "E")


def shown_substitution(regex: str, replacement: str, flags: Flags) -> str:
    parts = [
        "i" if flags.icase else "",
        "m" if flags.multi else "",
        "g" if flags.every else "",
        "e" if flags.run else "",
        "p" if flags.show else "",
        str(flags.number) if flags.number else "",
        f"w{flags.file}" if flags.file is not None else "",
    ]
    return shown_regex(regex) + shown_replacement(replacement) + "/" + "".join(parts)


def _address(address: Address) -> str:
    if address.kind is Kind.REGEX:
        return address.shown or "//"
    if address.kind is Kind.LAST:
        return "$"
    if address.kind is Kind.STEP:
        return f"{address.first}~{address.step}"
    if address.kind in (Kind.PLUS, Kind.MULTIPLE) and not address.first:
        return "[ADDR-NULL]"
    return {Kind.PLUS: "+", Kind.MULTIPLE: "~"}.get(address.kind, "") + str(address.first)


def shown_command(item: Instruction) -> str:
    """One instruction as a line of a script."""
    head = _address(item.first) if item.first is not None else ""
    if item.second is not None:
        head += "," + _address(item.second)
    head += ("!" if item.negated else "") + (" " if head or item.negated else "")
    text = item.text.decode("utf-8", "surrogateescape")
    name = item.name
    if name in "aic":
        tail = "\\" + text
    elif name in "sy:wW":
        tail = item.shown if name in "sy" else text
    elif name == "e":
        tail = " " + text + ("\n" if text else "")
    elif name in "lqQ":
        tail = f" {item.number}" if item.number >= 0 else ""
    else:
        tail = f" {text}" if text else ""
    return head + name + tail


def levels(program: Sequence[Instruction]) -> list[int]:
    """How deep in blocks each instruction is."""
    found: list[int] = []
    level = 0
    for item in program:
        level -= item.name == "}"
        found.append(level)
        level += item.name == "{"
    return found


class Trace:
    """Writes through `write`, which adds nothing of its own."""

    def __init__(self, program: Sequence[Instruction], write: Callable[[bytes], object]) -> None:
        self._write = write
        self._lines = ["  " * level + shown_command(item) for level, item in zip(levels(program), program, strict=True)]

    def say(self, text: str) -> None:
        self._write((text + "\n").encode("utf-8", "surrogateescape"))

    def program(self) -> None:
        self.say("\n".join(["SED PROGRAM:", *("  " + line for line in self._lines)]))

    def line(self, name: str, number: int) -> None:
        self.say(f"INPUT:   '{'STDIN' if name == '-' else name}' line {number}")

    def pattern(self, space: bytes) -> None:
        self.say("PATTERN: " + shown_bytes(space))

    def before(self, index: int) -> None:
        self.say("COMMAND: " + self._lines[index])

    def matched(self, matcher: Matcher, space: bytes) -> None:
        spans = matcher.engine(space).spans(space, 0)
        if spans is None:
            return
        self.say("MATCHED REGEX REGISTERS")
        for index, (start, stop) in enumerate(spans):
            if start >= 0:
                found = space[start:stop].decode("utf-8", "surrogateescape")
                self.say(f"  regex[{index}] = {start}-{stop} '{found}'")

    def after(self, name: str, space: bytes, hold: bytes) -> None:
        if name in _SHOWS_PATTERN:
            self.pattern(space)
        if name in _SHOWS_HOLD:
            self.say("HOLD:    " + shown_bytes(hold))

    def end(self) -> None:
        self.say("END-OF-CYCLE:")
