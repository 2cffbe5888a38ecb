"""Shared helpers of head and tail: counts, historical options, file headers."""

from __future__ import annotations

import errno
import functools
import re

from ramet.commands.framework.command import UsageError, quote
from ramet.commands.framework.inputs import only_opens, parse_size
from ramet.core.errors import reason
from ramet.core.paths import encode
from ramet.core.proc import Proc


def _amount(unit: str, text: str) -> tuple[str, str]:
    """Check a count when it is parsed: an invalid one is an error even where a later one counts."""
    try:
        parse_size(text[1:] if text[:1] == "-" else text, f"number of {unit}")
    except UsageError:
        if text[:1] != "+":
            raise
        raise UsageError(f"invalid number of {unit}: {quote(text)}", hint=False) from None
    return unit, text


line_count = functools.partial(_amount, "lines")
byte_count = functools.partial(_amount, "bytes")


def refuse_late_count(words: list[str], said: str) -> None:
    """Refuse a historical count (`-5`) that is not the first word."""
    for place, word in enumerate(words):
        if word == "--":
            return
        if re.match(r"-\d", word) and not (place and _TAKING.fullmatch(words[place - 1])):
            raise UsageError(f"{said} -- {word[1]}", hint="trailing" in said)


_TAKING = re.compile(r"-[a-zA-Z]*[ncs]|--(?:l|b|pid|s|m)[a-z-]*")
"""Words whose argument is the next word."""


def _named(word: str) -> str:
    return "standard input" if word == "-" else word


async def print_title(proc: Proc, word: str, first: bool) -> None:
    await proc.emit(encode(f"{'' if first else chr(10)}==> {_named(word)} <==\n"))


async def report_open_error(proc: Proc, word: str, error: OSError, titled: bool, first: bool) -> bool:
    """Report an unreadable file, under its title if it was opened; return whether the next title is the first."""
    if not only_opens(error):
        proc.complain(f"cannot open {quote(word)} for reading: {reason(error)}")
        return first
    if titled:
        await print_title(proc, word, first)
    failed = "cannot fstat" if error.errno == errno.EBADF else "error reading"
    proc.complain(f"{failed} {quote(_named(word))}: {reason(error)}")
    return first and not titled


def after_nth(block: bytes, delim: bytes, count: int) -> int:
    """The offset just behind the `count`th delimiter."""
    at = 0
    for _ in range(count):
        at = block.index(delim, at) + 1
    return at
