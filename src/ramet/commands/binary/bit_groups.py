"""Regroup bytes into groups of fewer bits and back (base32, base2), column by column."""

from __future__ import annotations

from dataclasses import dataclass

_Parts = tuple[tuple[int, bytes], ...]
"""Recipe of a result column: input columns, each through a table, combined by OR."""


def _table(shift: int, mask: int, values: dict[int, int] | None = None) -> bytes:
    """Table of bytes, or of their values, shifted left and masked."""
    known = values if values is not None else {byte: byte for byte in range(256)}
    moved = ((known.get(byte, 0), shift) for byte in range(256))
    return bytes([(value << by if by >= 0 else value >> -by) & mask for value, by in moved])


def _columns(width: int, group: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return for each character of a group its source bytes and their shifts."""
    out: list[tuple[tuple[int, int], ...]] = []
    for end in range(width, 8 * group + 1, width):
        first, last = (end - width) // 8, (end - 1) // 8
        out.append(tuple((byte, end - 8 * (byte + 1)) for byte in range(first, last + 1)))
    return tuple(out)


@dataclass(frozen=True)
class Regrouping:
    """Characters of `alphabet`, each `width` bits, the first of them the highest; a group is `group` bytes."""

    alphabet: bytes
    width: int
    group: int
    encoding: tuple[_Parts, ...]
    decoding: tuple[_Parts, ...]

    def encode(self, data: bytes) -> bytes:
        """Encode whole groups."""
        return _regrouped(data, self.group, self.encoding).translate(self.alphabet.ljust(256, b"\0"))

    def decode(self, text: bytes) -> bytes:
        """Decode whole groups of valid characters."""
        return _regrouped(text, len(self.encoding), self.decoding)


def regrouping(alphabet: bytes, width: int, group: int) -> Regrouping:
    values = {char: value for value, char in enumerate(alphabet)}
    columns = _columns(width, group)
    encoding = tuple(tuple((byte, _table(shift, (1 << width) - 1)) for byte, shift in parts) for parts in columns)
    back: list[list[tuple[int, bytes]]] = [[] for _ in range(group)]
    for char, parts in enumerate(columns):
        for byte, shift in parts:
            back[byte].append((char, _table(-shift, 255, values)))
    return Regrouping(alphabet, width, group, encoding, tuple(map(tuple, back)))


def _regrouped(data: bytes, step: int, columns: tuple[_Parts, ...]) -> bytes:
    out = bytearray(len(data) // step * len(columns))
    size = len(data) // step
    for place, parts in enumerate(columns):
        made = [data[column::step].translate(table) for column, table in parts]
        if len(made) > 1:
            bits = 0
            for one in made:
                bits |= int.from_bytes(one, "little")
            made = [bits.to_bytes(size, "little")]
        out[place :: len(columns)] = made[0]
    return bytes(out)
