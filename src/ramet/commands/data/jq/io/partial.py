"""A JSON value that is longer than what is read of it at a time: it grows by all the members that are whole.

Each piece of its text is cut at a comma, completed by brackets for whatever is open before and behind it, and read as
a value of its own, whose members are then put where they belong. What cannot be read so is left to others as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ramet.commands.data.jq.io.large import LARGE, LONG_TEXT
from ramet.commands.data.jq.io.reader import JsonReader, ParseError, whole_lines
from ramet.commands.data.jq.values import Json

_PIECE: Final = 64 * 1024
"""Bytes that are read at once: what takes a moment."""
_DEEPEST: Final = 64
"""Open brackets from which on a value is left to others."""
_MORE, _MARK = "\0\0", "\0\1"
"""The key of a member that goes on, and the member behind the last one of a piece."""
_KEY: Final = b'{"\\u0000\\u0000":'
_LAST_ITEM: Final = b',"\\u0000\\u0001"'
_LAST_PAIR: Final = b',"\\u0000\\u0001":0'
_LIST: Final = ord("[")
_OTHERS: Final = bytes(set(range(256)) - set(b"[]{}"))


Shape = tuple[bytes, bytes]
"""Which brackets a text closes that it did not open, and which it leaves open, its strings aside."""


def is_long(reader: JsonReader, rest: list[bytes]) -> bool:
    """Whether what was read so far is the beginning of a large array or object."""
    if reader.stuck + sum(map(len, rest)) < LARGE or not (reader.stuck or reader.idle):
        return False
    begin = reader.text[reader.at : reader.at + 64] if reader.stuck else rest[0][:64].decode("latin-1")
    return begin.lstrip()[:1] in ("[", "{")


class Unreadable(Exception):
    """The text has to be read as a whole."""


class Growing:
    """One large array or object. `text` keeps all that it was fed, for who has to read it in another way."""

    def __init__(self) -> None:
        self.text: list[bytes] = []
        self.value: Any = None
        self.left = b""
        """What was fed and comes behind the value, when that is complete."""
        self._rest = b""
        self._parts: list[bytes] = []
        self._size = self._wait = 0
        """How much is still to be read, and how much there must be before it is of use to look again."""
        self._open: list[tuple[int, Any]] = []
        """The brackets that are open, and what is in each of them so far."""

    @property
    def is_slow(self) -> bool:
        """Whether the next look at it takes long: a member has come to be very long."""
        return self._wait > LONG_TEXT

    def feed(self, data: bytes) -> Iterator[bool]:
        """Take more of the text, a moment's work at each turn; whether the value is complete. Raises Unreadable."""
        self.text.append(data)
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._wait:
            return
        self._rest, self._parts = b"".join((self._rest, *self._parts)), []
        while len(self._rest) >= self._wait:
            window = self._rest[: max(_PIECE, self._wait)]
            whole = len(window) == len(self._rest)
            cut, shape = _comma(window)
            if self._closed_by(window[:cut], shape) or (whole and self._closed_by(window, _brackets(_plain(window)))):
                yield True
                return
            if whole and len(window) < _PIECE:
                return
            if not cut:
                self._wait = 2 * len(window)
                continue
            self._grow(window[:cut], shape)
            self._rest, self._wait = self._rest[cut + 1 :], 0
            self._size = len(self._rest)
            yield False

    def finish(self) -> bool:
        """Nothing more will come: whether the value is complete. Raises Unreadable."""
        self._rest = b"".join((self._rest, *self._parts))
        return self._closed_by(self._rest, _brackets(_plain(self._rest)))

    def _closed_by(self, text: bytes, shape: Shape) -> bool:
        """Whether the value ends within this text; it is then complete, and the lines behind it are left."""
        if not self._open:
            return False  # a value that was not begun is none that grows
        if len(shape[0]) < len(self._open):
            return False
        end = self._last_line(text)
        self._grow(text[:end], _brackets(_plain(text[:end])))
        if self._open:
            raise Unreadable
        self.left = self._rest[end:]
        return True

    def _last_line(self, text: bytes) -> int:
        """Where the first line ends at which everything is closed."""
        low, high = 0, len(text)
        while low < high:
            middle = text.find(b"\n", (low + high) // 2, high)
            if middle < 0:
                middle = text.rfind(b"\n", low, high)
                if middle < 0:
                    break
            if len(_brackets(_plain(text[:middle]))[0]) >= len(self._open):
                high = middle
            else:
                low = middle + 1
        return high

    def _grow(self, text: bytes, shape: Shape) -> None:
        if b"\\u0000\\u000" in text or b"\0" in text:
            raise Unreadable
        closed, opened = shape
        before = self._open
        kept = before[: len(before) - len(closed)] if len(closed) <= len(before) else None
        if kept is None or len(kept) + len(opened) > _DEEPEST or not (before or opened):
            raise Unreadable
        kinds = [*(kind for kind, _ in kept), *opened]
        lead = b"".join([b"[" if kind == _LIST else _KEY for kind, _ in before[:-1]])
        lead += bytes([before[-1][0]]) if before else b""
        tail = (b"" if not kinds else _LAST_ITEM if kinds[-1] == _LIST else _LAST_PAIR) + b"".join(
            [b"]" if kind == _LIST else b"}" for kind in reversed(kinds)]
        )
        new = _read(lead + text + tail)
        spine = _spine(new, kinds)
        if before:
            _merge([into for _, into in before], new)
        else:
            self.value = new
        self._open = [*kept, *zip(opened, spine[len(kept) :], strict=True)]


def _spine(new: Any, kinds: list[int]) -> list[Any]:
    """What is open at the end of a piece, from the outside in; the innermost loses its mark."""
    spine: list[Any] = []
    at = new
    for kind in kinds:
        if not isinstance(at, list if kind == _LIST else dict) or not at:
            raise Unreadable
        spine.append(at)
        at = at[-1] if isinstance(at, list) else at[next(reversed(at))]
    if kinds:
        last = spine[-1]
        mark = last.pop() if isinstance(last, list) else last.popitem()[0]
        if mark != _MARK:
            raise Unreadable
    return spine


def _merge(spine: list[Any], new: Any) -> None:
    """Put the members of a piece into what was open when it began."""
    for into, inner in zip(spine, [*spine[1:], None], strict=True):
        if isinstance(into, list):
            first = new[0] if inner is not None else None
            into.extend(new[1:] if inner is not None else new)
        else:
            first = new.pop(_MORE) if inner is not None else None
            into.update(new)
        new = first


def _read(text: bytes) -> Json:
    # Lines mean nothing within a value, but end one for the quick reader.
    values = whole_lines(text.replace(b"\n", b" "))
    if values is None:
        reader = JsonReader()
        reader.feed(text, True)
        try:
            values = list(reader.take(True))
        except ParseError:
            raise Unreadable from None
    if len(values) != 1:
        raise Unreadable
    return values[0]


def _plain(text: bytes) -> list[bytes]:
    """A text parted by its quotes: every other part is within a string. Positions stay what they are."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    return text.split(b'"')


def _comma(window: bytes) -> tuple[int, Shape]:
    """The last comma that parts two members, or 0 when there is none, and the shape of the text before it."""
    cut = window.rfind(b",")
    while cut > 0:
        parts = _plain(window[:cut])
        if len(parts) % 2:
            return cut, _brackets(parts)
        cut = window.rfind(b",", 0, max(cut - len(parts[-1]) - 1, 0))
    return 0, (b"", b"")


def _brackets(parts: list[bytes]) -> Shape:
    shape = b"".join(parts[::2]).translate(None, _OTHERS)
    size = -1
    while len(shape) != size:
        size = len(shape)
        shape = shape.replace(b"[]", b"").replace(b"{}", b"")
    closed = shape.rstrip(b"[{")
    return closed, shape[len(closed) :]
