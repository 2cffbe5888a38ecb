"""Spool an upload in an unnamed file; for an encrypted store the file is encrypted.

The file's key is random, exists only in memory, and goes away with the file.
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
    """A file encrypted on disk: written once, sequentially, then read at any offset.

    AES-256 in counter mode, so that the offset determines the cipher's state. Each file has its own key.
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

    def _cipher_bytes(self, data: bytes) -> bytes:
        """Encrypt or decrypt bytes at the current offset; in counter mode both are the same operation."""
        if self._at != self._place:
            self._cipher = self._cipher_at(self._place)
        done = self._cipher.update(data)
        self._at = self._place = self._place + len(data)
        return done

    def write(self, data: Any, /) -> int:
        if self._place != self._size:
            raise io.UnsupportedOperation("only sequential writes")
        plain = bytes(data)
        self._file.seek(self._place)
        self._file.write(self._cipher_bytes(plain))
        self._size = self._place
        return len(plain)

    def readinto(self, buffer: Any, /) -> int:
        self._file.seek(self._place)
        data = self._cipher_bytes(self._file.read(len(buffer)))
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
    """Open an unnamed file to write and then read (mode 0600 until unlinked); `sealed` encrypts it."""
    if not sealed:
        with tempfile.TemporaryFile(prefix="ramet-upload-") as file:
            yield file
        return
    with tempfile.TemporaryFile(prefix="ramet-upload-", buffering=0) as bare, EncryptedFile(bare) as raw:
        yield cast("IO[bytes]", io.BufferedRandom(raw, PIECE))
