"""Very long texts and bytes: memory for them that grows without being copied.

Python lengthens a text in place as long as nothing else has it (`text += part` on a local name), so one that grows by
parts never costs more than the next of them. There are two exceptions. The C library keeps blocks of less than 32 MB
among all others and moves one that outgrows this to a place of its own, with a copy that takes tens of milliseconds,
while a block that once was larger stays in its own place. So `apart` asks for much, touches none of it, and gives
back all but what it needs; for more than the 64 MB that may lie free among the others. And the interpreter copies a
text until it has seen it grow a few times, so all of them grow in one place, `growth`, which has seen that.
"""

from __future__ import annotations

import codecs
import threading
from collections.abc import Generator, Iterable, Iterator
from io import BytesIO
from typing import Final

from ramet.concurrency.offload import checkpoint

SLICE: Final = 1 << 20
"""Characters that are copied at once."""
_OWN_PLACE: Final = 72 << 20
"""Bytes of which every block has a place of its own."""


def room(size: int) -> BytesIO:
    """A file for about so many bytes, with room for them that costs nothing until they are there.

    What is written is taken from it by `taken`.
    """
    return BytesIO(bytes(max(size, _OWN_PLACE)))  # zeros of this number are only promised, and nobody else has them


def taken(file: BytesIO) -> bytes:
    """What was written to a file of `room`, which is of no use after that."""
    file.truncate()
    return file.getvalue()


class _Kept(threading.local):
    text = ""


_kept = _Kept()


def apart(text: str) -> str:
    """The same text in a place of its own, for what is to become very long."""
    _kept.text = text
    try:
        moved = b"\xff".decode("utf-8", _LEAP)
    finally:
        _kept.text = ""
    return moved if moved == text else text  # no decoder has to do it like this


def grown(parts: Iterable[str]) -> str:
    """The text that parts make, however long they are. There should not be very many."""
    growing = growth(parts)
    while True:
        checkpoint()
        try:
            next(growing)
        except StopIteration as end:
            return str(end.value)


def growth(parts: Iterable[str]) -> Generator[None, None, str]:
    """The same step by step."""
    text, moved = "", False
    for part in sliced(parts):
        text += part
        if not moved and len(text) > SLICE:
            text, moved = apart(text), True
        yield
    return text


def sliced(parts: Iterable[str]) -> Iterator[str]:
    """The same parts, long ones in several."""
    for part in parts:
        if len(part) <= SLICE:
            yield part
        else:
            yield from spanned(part, 0, len(part))


def spanned(text: str, start: int, stop: int, size: int = SLICE) -> Iterator[str]:
    """A part of a text in slices."""
    for at in range(start, stop, size):
        yield text[at : min(at + size, stop)]


def part_of(text: str, start: int, stop: int) -> str:
    """`text[start:stop]`, however much that is."""
    if stop - start <= SLICE or (start == 0 and stop == len(text)):
        return text[start:stop]
    return grown(spanned(text, start, stop))


def decoded(data: bytes, coding: str = "utf-8", errors: str = "surrogateescape") -> str:
    """Bytes of any number as text."""
    if len(data) <= SLICE:
        return data.decode(coding, errors)
    return grown(decoded_blocks((data[at : at + SLICE] for at in range(0, len(data), SLICE)), coding, errors))


def decoded_blocks(blocks: Iterable[bytes], coding: str = "utf-8", errors: str = "surrogateescape") -> Iterator[str]:
    """Blocks of bytes as text, where characters may stand across the border of two blocks."""
    decoder = codecs.getincrementaldecoder(coding)(errors)
    for block in blocks:
        yield decoder.decode(block)
    yield decoder.decode(b"", True)


def encoded(text: str, coding: str = "utf-8") -> bytes:
    """The bytes of a text of any length."""
    if len(text) <= SLICE:
        return text.encode(coding, "surrogateescape")
    data = room(len(text))
    for part in spanned(text, 0, len(text)):
        checkpoint()
        data.write(part.encode(coding, "surrogateescape"))
    return taken(data)


def _leap(error: UnicodeError) -> tuple[str, int]:
    """Lets a decoder expect much and get little: it is given more to decode, and then goes on at the end of that."""
    assert isinstance(error, UnicodeDecodeError)
    if len(error.object) == 1:
        error.object = _hole
        return "", 0
    return _kept.text, len(error.object)


def _zeros() -> bytes:
    file = room(0)
    file.write(b"\xff")
    return file.getvalue()


_hole: Final = _zeros()
_LEAP: Final = "ramet.leap"
_WARM: Final = 128
"""Steps after which the interpreter knows that texts grow there, and lengthens them in place; the first it copies."""
codecs.register_error(_LEAP, _leap)
grown("" for _ in range(_WARM))
