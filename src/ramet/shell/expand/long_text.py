"""Very long texts, put together and looked through a part at a time.

A text of a hundred megabytes takes longer to copy than anyone may be held up. Python lengthens a text in place as long
as nothing else has it, so one that grows by parts never costs more than the next of them: what joins them is a loop
with `+=`, not `"".join` (see `concurrency.bigtext`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from ramet.concurrency import bigtext as growth
from ramet.concurrency.bigtext import SLICE as _SLICE
from ramet.concurrency.bigtext import decoded_blocks as decoded_blocks
from ramet.concurrency.bigtext import grown as grown
from ramet.concurrency.bigtext import part_of as part_of
from ramet.concurrency.bigtext import spanned as spanned
from ramet.concurrency.offload import checkpoint, offload
from ramet.concurrency.sizes import LARGE, LONG_SCRIPT, SMALL
from ramet.core.paths import decode, encode
from ramet.shell.expand.values import HUGE


class Parts(list[Any]):
    """Texts, or parts of such, that are yet to become one: together they are too long for that to be done at once."""


class Span(Parts):
    """A part of a text that is yet to be taken from it."""

    def __init__(self, text: str, start: int, stop: int) -> None:
        super().__init__((text,))
        self.start, self.stop = start, stop


class Deferred(Parts):
    """A text that is yet to be made of another one, which takes its time."""

    def __init__(self, make: Callable[[], str]) -> None:
        super().__init__()
        self.make = make


# ------------------------------------------------------------------------------------------------- putting together


async def grown_patiently(host: Any, parts: Iterable[str]) -> str:
    """What `grown` gives, while others run."""
    growing = growth.growth(parts)
    while True:
        await host.budget.yield_turn()
        try:
            next(growing)
        except StopIteration as end:
            return str(end.value)


async def put_together(host: Any, parts: Parts) -> str:
    """The text that some parts make, while others run."""
    if isinstance(parts, Deferred):
        return await offload(host.budget, parts.make)
    return await grown_patiently(host, slices(await made(host, parts)))


async def made(host: Any, parts: Parts) -> Parts:
    """The same parts, none of which is yet to be made."""
    if isinstance(parts, Deferred):
        return Parts((await offload(host.budget, parts.make),))
    for place, part in enumerate(parts):
        if isinstance(part, Parts):
            parts[place] = await made(host, part)
    return parts


def whole(parts: Parts) -> str:
    """The text that some parts make, for who is aside already."""
    if isinstance(parts, Deferred):
        return parts.make()
    start, stop = (parts.start, parts.stop) if isinstance(parts, Span) else (0, sys.maxsize)
    return "".join(whole(part) if isinstance(part, Parts) else part[start : min(stop, len(part))] for part in parts)


def length(text: str | Parts) -> int:
    """How long a text is, or will be as far as that is known."""
    if isinstance(text, str):
        return len(text)
    return text.stop - text.start if isinstance(text, Span) else sum(map(length, text))


def joined(separator: str, parts: Iterable[str]) -> str:
    """`separator.join` for parts of any number and any length."""
    return "".join(blocks(between(separator, parts)))


def between(separator: str, parts: Iterable[str]) -> Iterator[str]:
    """The parts with a separator between any two of them."""
    before = ""
    for part in parts:
        if len(part) < LARGE:
            yield before + part
        else:
            yield before
            yield part
        before = separator


def blocks(parts: Iterable[str]) -> Iterator[str]:
    """Texts as some of a size that is soon copied: several short ones in one, a very long one in several."""
    row: list[str] = []
    size = 0
    for part in parts:
        row.append(part)
        size += len(part)
        if size > LARGE:
            if len(row) > 1 and len(part) > LARGE:
                row.pop()
                yield "".join(row)
                row = [part]
            text = row[0] if len(row) == 1 else "".join(row)
            yield from spanned(text, 0, len(text), LARGE)
            row, size = [], 0
        elif len(row) >= _ROW:
            yield "".join(row)
            row, size = [], 0
    if row:
        yield "".join(row)


_ROW: Final = 256
"""Texts that are put together at once, however short."""


def spliced(text: str, start: int, stop: int, new: str = "") -> str:
    """A text with something else in the place of a part of it."""
    if len(text) <= _SLICE and len(new) <= _SLICE:
        return text[:start] + new + text[stop:]
    return "".join(chain(spanned(text, 0, start), (new,), spanned(text, stop, len(text))))


def behind(head: str, text: str) -> str:
    """`head + text`, however long the text is."""
    return head + text if len(text) <= _SLICE else "".join((head, text))


# -------------------------------------------------------------------------------------------------- text and bytes


def decoded(data: bytes | bytearray, stop: int | None = None, start: int = 0) -> str:
    """Bytes of any number as text, or those from one place to another."""
    if stop is None:
        stop = len(data)
        if stop < LARGE and not start:
            return decode(bytes(data))
    if stop - start < LARGE:
        return decode(bytes(data[start:stop]))
    return "".join(decoded_blocks(bytes(data[at : min(at + LARGE, stop)]) for at in range(start, stop, LARGE)))


def encoded(text: str) -> bytes:
    """The bytes of a text of any length."""
    if len(text) < LARGE:
        return encode(text)
    data = growth.room(len(text))
    for at in range(0, len(text), LARGE):
        checkpoint()
        data.write(encode(text[at : at + LARGE]))
    return growth.taken(data)


async def script_text(host: Any, data: bytes) -> str:
    """The text of a file of commands. A very long one has the newline at its end that a parser would put there."""
    if len(data) < LARGE:
        return decode(data)
    if len(data) < HUGE or data.endswith((b"\n", b"\\")):
        return await offload(host.budget, partial(decoded, data))
    return await offload(host.budget, lambda: "".join(decoded_blocks(chain(_blocks_of(data), (b"\n",)))))


def _blocks_of(data: bytes) -> Iterator[bytes]:
    return (data[at : at + LARGE] for at in range(0, len(data), LARGE))


# -------------------------------------------------------------------------------------------------- looking through


def has_any(text: str, chars: str) -> bool:
    """Whether any of some characters is in a text of any length."""
    if len(text) <= SMALL:
        return any(char in text for char in chars)
    return any(char in part for part in windows(text) for char in chars)


def find(text: str, part: str, pos: int = 0) -> int:
    """`text.find`, a part of it at a time."""
    if len(part) > _SLICE:
        return _find_long(text, part, pos)
    while len(text) - pos > _SLICE + len(part):
        at = text.find(part, pos, pos + _SLICE + len(part))
        if at >= 0:
            return at
        pos += _SLICE
        checkpoint()
    return text.find(part, pos)


def _find_long(text: str, part: str, pos: int) -> int:
    """The same for what is very long itself: where its beginning is, the rest is compared."""
    begins = part[:SMALL]
    for _ in range(_BEGINNINGS):
        pos = find(text, begins, pos)
        if pos < 0 or pos + len(part) > len(text):
            return -1
        if starts(text, part, pos):
            return pos
        pos += 1
    return text.find(part, pos)  # it begins too often: only that is sure to end soon, although not at once


_BEGINNINGS: Final = 16


def starts(text: str, part: str, pos: int = 0) -> bool:
    """`text.startswith(part, pos)`, a part of it at a time."""
    if len(part) <= _SLICE:
        return text.startswith(part, pos)
    if pos + len(part) > len(text):
        return False
    for place, some in enumerate(spanned(part, 0, len(part))):
        checkpoint()
        if not text.startswith(some, pos + place * _SLICE):
            return False
    return True


def search(one: re.Pattern[str], text: str, pos: int = 0) -> int:
    """Where the pattern of a single character first matches, sought a part at a time; the end if it does nowhere."""
    while pos < len(text):
        found = one.search(text, pos, pos + SMALL)
        if found is not None:
            return found.start()
        pos += SMALL
        checkpoint()
    return len(text)


# ---------------------------------------------------------------------------------------------------------- slices


def slices(parts: Parts) -> Iterator[str]:
    """What parts make that are all there, in slices of a length that is soon copied."""
    for part in parts:
        if isinstance(part, Parts):
            yield from slices(part)
        else:
            start, stop = (parts.start, parts.stop) if isinstance(parts, Span) else (0, len(part))
            yield from spanned(part, start, stop)


_EXTENDED: Final = 2048


def long_match(pattern: str, size: int) -> bool:
    """Whether so many characters take a while to match: groups look at each of them again and again."""
    return len(pattern) > LONG_SCRIPT or size > (_EXTENDED if "(" in pattern else LARGE)


def windows(text: str) -> Iterator[str]:
    """A long text in parts."""
    for start in range(0, len(text), SMALL):
        checkpoint()
        yield text[start : start + SMALL]
