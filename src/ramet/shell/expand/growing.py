"""Very long texts, put together a part at a time.

A text of a hundred megabytes takes longer to copy than anyone may be held up. Python lengthens a text in place as long
as nothing else has it, so one that grows by parts never costs more than the next of them: what joins them is a loop
with `+=`, not `"".join`.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from functools import partial
from io import BytesIO
from itertools import chain
from typing import Any, Final

from ramet.core.paths import decode, encode
from ramet.shell.expand.aside import LARGE, aside, checkpoint


class Parts(list[str]):
    """Texts that are yet to become one: together they are too long for that to be done at once."""


class Span(Parts):
    """A part of a text that is yet to be taken from it."""

    def __init__(self, text: str, start: int, stop: int) -> None:
        super().__init__((text,))
        self.start, self.stop = start, stop


def grown(parts: Iterable[str]) -> str:
    """The text that long parts make."""
    text = ""
    for part in parts:
        checkpoint()
        text += part
    return text


def spliced(text: str, start: int, stop: int, new: str = "") -> str:
    """A text with something else in the place of a part of it."""
    if len(text) <= _SLICE:
        return text[:start] + new + text[stop:]
    return grown(chain(spanned(text, 0, start), (new,), spanned(text, stop, len(text))))


def decoded(data: bytes | bytearray) -> str:
    """Bytes of any number as text."""
    if len(data) < LARGE:
        return decode(bytes(data))
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    size = len(data)
    return grown(decoder.decode(bytes(data[at : at + LARGE]), at + LARGE >= size) for at in range(0, size, LARGE))


def encoded(text: str) -> bytes:
    """The bytes of a text of any length. What is written to such a file is taken from it without a copy."""
    if len(text) < LARGE:
        return encode(text)
    data = BytesIO()
    for at in range(0, len(text), LARGE):
        checkpoint()
        data.write(encode(text[at : at + LARGE]))
    return data.getvalue()


async def decoded_patiently(host: Any, data: bytes) -> str:
    """The same while others run."""
    return decode(data) if len(data) < LARGE else await aside(host, partial(decoded, data))


async def put_together(host: Any, parts: Parts) -> str:
    """The text that some parts make, while others run."""
    text = ""
    for part in slices(parts):
        text += part
        await host.budget.breathe()
    return text


def slices(parts: Parts) -> Iterator[str]:
    """What parts make, in slices of a length that is soon copied."""
    for part in parts:
        start, stop = (parts.start, parts.stop) if isinstance(parts, Span) else (0, len(part))
        yield from spanned(part, start, stop)


def spanned(text: str, start: int, stop: int) -> Iterator[str]:
    """A part of a text in slices."""
    for at in range(start, stop, _SLICE):
        yield text[at : min(at + _SLICE, stop)]


_SLICE: Final = 1 << 20
