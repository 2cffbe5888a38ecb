"""Spool an upload in an unnamed file; for an encrypted store the file is encrypted.

The key of such a file is made for it, is nowhere but in memory, and is gone with it.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

BLOCK: Final = 16
PIECE: Final = 1 << 18


class EncryptedFile(io.RawIOBase):
    """A file that is written once, from its beginning, and then read anywhere; what is on the disk is encrypted.

    AES-256 in counter mode: the position of a byte tells the state of the cipher. A key is used for one file only.
    """

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self._file, self._key = file, os.urandom(32)
        self._place = self._size = 0
        self._at = 0
        self._cipher = self._cipher_at(0)

    def _cipher_at(self, place: int) -> CipherContext:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        cipher = Cipher(AES(self._key), CTR((place // BLOCK).to_bytes(BLOCK, "big"))).encryptor()
        cipher.update(bytes(place % BLOCK))
        self._at = place
        return cipher

    def _turned(self, data: bytes) -> bytes:
        """What is written for these bytes at this place, and what was read from there: it is the same act."""
        if self._at != self._place:
            self._cipher = self._cipher_at(self._place)
        turned = self._cipher.update(data)
        self._at = self._place = self._place + len(data)
        return turned

    def write(self, data: Any, /) -> int:
        if self._place != self._size:
            raise io.UnsupportedOperation("it is written from its beginning to its end")
        plain = bytes(data)
        self._file.seek(self._place)
        self._file.write(self._turned(plain))
        self._size = self._place
        return len(plain)

    def readinto(self, buffer: Any, /) -> int:
        self._file.seek(self._place)
        data = self._turned(self._file.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def tell(self) -> int:
        return self._place

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


@contextlib.contextmanager
def spool(sealed: bool) -> Iterator[IO[bytes]]:
    """A file to write and then to read, without a name (mode 0600 until it has none); `sealed` encrypts it."""
    if not sealed:
        with tempfile.TemporaryFile(prefix="ramet-upload-") as file:
            yield file
        return
    with tempfile.TemporaryFile(prefix="ramet-upload-", buffering=0) as bare, EncryptedFile(bare) as raw:
        yield cast("IO[bytes]", io.BufferedRandom(raw, PIECE))
