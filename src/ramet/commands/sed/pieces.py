"""Growing hold and pattern space: lines joined in linear time."""

from __future__ import annotations

from typing import Final

_MANY: Final = 4096
"""Pieces that are joined to save memory."""


class Pieces:
    """A text with appended pieces, each after a delimiter."""

    __slots__ = ("_delim", "_joined", "_pieces", "size")

    def __init__(self, delim: bytes, text: bytes = b"") -> None:
        self._delim = delim
        self._joined: list[bytes] = []
        self._pieces = [text]
        self.size = len(text)

    def add(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self.size += len(piece) + 1
        if len(self._pieces) >= _MANY:
            self._joined.append(self._delim.join(self._pieces))
            self._pieces = []

    def text(self) -> bytes:
        if len(self._joined) + len(self._pieces) > 1:
            self._pieces = [self._delim.join(self._joined + self._pieces)]
            self._joined = []
        return (self._pieces or self._joined)[0]
