"""Permission bits: symbolic and octal modes, `drwxr-xr-x` strings, and default modes."""

from __future__ import annotations

import re
from functools import lru_cache

from ramet.core.stat import Kind, Stat, default_mode

TYPE_LETTER = {Kind.FILE: "-", Kind.DIR: "d", Kind.LINK: "l", Kind.FIFO: "p", Kind.SOCKET: "s", Kind.DEVICE: "c"}
TYPE_BITS = {
    Kind.FILE: 0o100000,
    Kind.DIR: 0o040000,
    Kind.LINK: 0o120000,
    Kind.FIFO: 0o010000,
    Kind.SOCKET: 0o140000,
    Kind.DEVICE: 0o020000,
}
BLOCK = 4096


def mode_of(stat: Stat) -> int:
    return default_mode(stat.kind) if stat.mode is None else stat.mode


@lru_cache(maxsize=1024)
def mode_string(kind: Kind, mode: int) -> str:
    """`-rwxr-xr-x`."""
    out = [TYPE_LETTER[kind]]
    for shift, special, letter in ((6, 0o4000, "s"), (3, 0o2000, "s"), (0, 0o1000, "t")):
        bits = mode >> shift & 7
        execute = bool(bits & 1)
        last = ("x" if execute else "-") if not mode & special else (letter if execute else letter.upper())
        out += ["r" if bits & 4 else "-", "w" if bits & 2 else "-", last]
    return "".join(out)


def size_of(stat: Stat) -> int:
    """Return the size to show: one block for directories, the length of the target for links."""
    if stat.kind is Kind.DIR:
        return BLOCK
    if stat.kind is Kind.LINK:
        return len((stat.target or "").encode("utf-8", "surrogateescape"))
    return stat.size or 0


def allocated(stat: Stat) -> int:
    """Bytes on an imaginary disk of 4 KiB blocks."""
    if stat.kind is Kind.LINK:
        return 0
    return -(-size_of(stat) // BLOCK) * BLOCK


def nlink_of(stat: Stat) -> int:
    return stat.nlink if stat.nlink is not None else 2 if stat.kind is Kind.DIR else 1


class BadMode(ValueError):
    """The text is not a mode."""


_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[rwxXst]*|[ugo]|[0-7]+))+)")
_ACTION = re.compile(r"([-+=])([ugo](?![rwxXst])|[0-7]+|[rwxXst]*)")
_MASKS = {"u": 0o4700, "g": 0o2070, "o": 0o1007, "a": 0o7777}
_BITS = {"r": 0o444, "w": 0o222, "x": 0o111}


def change_mode(text: str, mode: int, is_dir: bool, umask: int) -> int:
    """The mode that `text` (octal or symbolic) makes of `mode`."""
    if re.fullmatch(r"[0-7]+", text):
        number = int(text, 8)
        if number > 0o7777:
            raise BadMode(text)
        # Numeric modes of fewer than five digits leave a directory's set-id bits alone.
        return number | (mode & 0o6000) if is_dir and len(text) < 5 else number
    if re.fullmatch(r"[-+=][0-7]+", text):
        return _apply(mode, text[0], int(text[1:], 8), 0o7777)
    for clause in text.split(","):
        found = _CLAUSE.fullmatch(clause)
        if found is None:
            raise BadMode(text)
        who = found[1]
        mask = 0
        for letter in who:
            mask |= _MASKS[letter]
        for op, perms in _ACTION.findall(found[2]):
            mode = _symbolic(mode, who, mask, op, perms, is_dir, umask)
    return mode


def _symbolic(mode: int, who: str, mask: int, op: str, perms: str, is_dir: bool, umask: int) -> int:
    if perms.isdigit():
        return _apply(mode, op, int(perms, 8), 0o7777)
    bits = 0
    if perms in ("u", "g", "o"):
        own = mode >> {"u": 6, "g": 3, "o": 0}[perms] & 7
        bits = own << 6 | own << 3 | own
    else:
        for letter in perms:
            if letter in _BITS:
                bits |= _BITS[letter]
            elif letter == "X":
                bits |= 0o111 if is_dir or mode & 0o111 else 0
            elif letter == "s":
                bits |= 0o6000 & (mask or 0o6000)
            else:
                bits |= 0o1000
    allowed = mask if who else 0o7777 & ~umask
    if op == "=":
        keep = (0o6000 if is_dir else 0) & ~bits
        cleared = (mask or 0o7777) & ~keep
        return (mode & ~cleared) | (bits & allowed)
    return _apply(mode, op, bits & allowed, 0o7777)


def _apply(mode: int, op: str, bits: int, mask: int) -> int:
    if op == "+":
        return mode | bits
    if op == "-":
        return mode & ~bits
    return (mode & ~mask) | bits
