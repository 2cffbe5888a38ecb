"""The format of `compress` (.Z): codes of 9 to 16 bits, packed in groups of eight, for texts that were seen before."""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = b"\x1f\x9d"
_CLEAR = 256
_FIRST = 257
_BLOCK_MODE = 0x80
_GAP = 10_000
"""After how many bytes it is looked at whether what was learnt is still of use."""
_STEP = 1 << 20
_WIDER = 10
"""Codes that may have 9 bits get 10 nevertheless once all of those are taken: every program has it so."""


class BadCode(Exception):
    """The data names a text that was never seen."""


class Packer:
    """Packs blocks; a group of eight codes is as many bytes as a code has bits."""

    def __init__(self, bits: int = 16) -> None:
        self._most, self._widest = bits, max(bits, _WIDER)
        self._out = bytearray(MAGIC + bytes([_BLOCK_MODE | bits]))
        self._prefix = -1
        self._group = 0
        self._held = 0
        """How many bits of the group are taken."""
        self._taken = self._given = 0
        self._checkpoint = _GAP
        self._ratio = 0
        self._forget()

    def _forget(self) -> None:
        self._known: dict[int, int] = {}
        self._free = _FIRST
        self._width = 9

    def compress(self, data: bytes, /) -> bytes:
        known, prefix, most = self._known, self._prefix, 1 << self._most
        taken = self._taken
        for byte in data:
            taken += 1
            if prefix < 0:
                prefix = byte
                continue
            key = prefix << 8 | byte
            code = known.get(key)
            if code is not None:
                prefix = code
                continue
            self._put(prefix)
            if self._free < most:
                known[key] = self._free
                self._free += 1
            elif taken >= self._checkpoint and self._grows_worse(taken):
                self._put(_CLEAR)
                self._align()
                self._forget()
                known = self._known
            prefix = byte
        self._prefix, self._taken = prefix, taken
        return self._made()

    def flush(self) -> bytes:
        if self._prefix >= 0:
            self._put(self._prefix)
        self._out += self._group.to_bytes((self._held + 7) // 8, "little")
        return self._made()

    def _made(self) -> bytes:
        made = bytes(self._out)
        self._given += len(made)
        self._out.clear()
        return made

    def _grows_worse(self, taken: int) -> bool:
        self._checkpoint = taken + _GAP
        ratio = (taken << 8) // (self._given + len(self._out) or 1)
        if ratio > self._ratio:
            self._ratio = ratio
            return False
        self._ratio = 0
        return True

    def _put(self, code: int) -> None:
        width = self._width
        self._group |= code << self._held
        self._held += width
        if self._held == width * 8:
            self._out += self._group.to_bytes(width, "little")
            self._group = self._held = 0
        if self._free >= 1 << width and width < self._widest:
            self._align()
            self._width += 1

    def _align(self) -> None:
        """Codes of another size begin in a group of their own."""
        if self._held:
            self._out += self._group.to_bytes(self._width, "little")
            self._group = self._held = 0


class Unpacker:
    """Unpacks blocks; what comes out of one step is bounded."""

    def __init__(self) -> None:
        self._data = b""
        self._head = True
        self._most, self._blocks = 16, True
        self._width = 9
        self._known: list[bytes] = []
        self._last: bytes | None = None

    def feed(self, data: bytes, *, end: bool = False) -> Iterator[bytes]:
        """What the codes of a block stand for, a part at a time; `end` says that no more will come."""
        self._data += data
        if self._head:
            if len(self._data) < 3:
                if end:
                    raise BadCode
                return
            flags = self._data[2]
            self._most, self._blocks = flags & 0x1F, bool(flags & _BLOCK_MODE)
            if not 9 <= self._most <= 16:
                raise BadCode
            self._data, self._head = self._data[3:], False
            self._forget()
        out: list[bytes] = []
        at = size = 0
        while True:
            width = self._width
            group = self._data[at : at + width]
            if len(group) < width and not end:
                break
            codes = len(group) * 8 // width
            if not codes:
                break
            at += width
            for piece in self._texts(int.from_bytes(group, "little"), codes):
                out.append(piece)
                size += len(piece)
            if size >= _STEP:
                yield b"".join(out)
                out, size = [], 0
        self._data = self._data[at:]
        if out:
            yield b"".join(out)

    def _forget(self) -> None:
        self._known = [bytes([byte]) for byte in range(256)]
        if self._blocks:
            self._known.append(b"")
        self._width, self._last = 9, None

    def _texts(self, group: int, codes: int) -> Iterator[bytes]:
        """The texts of a group, up to where the size of the codes changes."""
        known, last, width = self._known, self._last, self._width
        mask, most = (1 << width) - 1, 1 << self._most
        for _ in range(codes):
            code = group & mask
            group >>= width
            if code == _CLEAR and self._blocks:
                self._forget()
                return
            if last is None:
                if code > 255:
                    raise BadCode
                text = known[code]
            else:
                if code < len(known):
                    text = known[code]
                elif code == len(known):
                    text = last + last[:1]
                else:
                    raise BadCode
                if len(known) < most:
                    known.append(last + text[:1])
            self._last = last = text
            yield text
            if len(known) > mask and width < max(self._most, _WIDER):
                self._width += 1
                return
