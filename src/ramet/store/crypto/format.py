"""Encryption format: authenticated encryption of bytes and names; docs/format.md describes the bytes.

- Equal bytes with an equal label and key give equal ciphertext; any difference gives another nonce, since the nonce is
  a keyed digest of everything that is encrypted and authenticated.
- Without a key, everything but sizes looks random; even the id of the key is masked.
- No key appears in a repr, an error or a log.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import struct
from collections.abc import Callable
from typing import Final

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

from ramet.core.errors import RametError

SECRET: Final = 32
"""Bytes of every key."""
KEY_ID: Final = 12
NONCE: Final = 12
TAG: Final = 16
HEADER: Final = NONCE + KEY_ID + 4
OVERHEAD: Final = HEADER + TAG
SMALLEST: Final = 256
"""Minimum size of an object in bytes, so that all tiny objects look alike."""
_LENGTH: Final = struct.Struct(">I")
_NUMBER: Final = re.compile(r"[0-9]{20}")
_KEPT_NAMES: Final = 65_536


def derive(key: bytes, label: bytes) -> bytes:
    """Derive a key for one purpose: the first block of HKDF-Expand (RFC 5869) with SHA-256."""
    return hmac.digest(key, label + b"\x01", "sha256")


def padded_size(size: int) -> int:
    """Return the padded size of `size` bytes: Padmé, which hides all but the leading bits and adds 12 % at most."""
    size = max(size, SMALLEST)
    exponent = size.bit_length() - 1
    unseen = exponent - exponent.bit_length()
    mask = (1 << max(unseen, 0)) - 1
    return (size + mask) & ~mask


class DataKey:
    """A key that encrypts content, with its id."""

    __slots__ = ("_cipher", "_nonces", "id")

    def __init__(self, identity: bytes, secret: bytes) -> None:
        self.id = identity
        self._cipher = AESGCM(derive(secret, b"ramet encrypt 1"))
        self._nonces = derive(secret, b"ramet nonce 1")

    def __repr__(self) -> str:
        return f"<data key {self.id.hex()}>"

    def encrypt(self, about: bytes, data: bytes) -> tuple[bytes, bytes]:
        """Return the nonce, and the ciphertext with its tag; `about` is authenticated."""
        digest = blake3(len(about).to_bytes(4, "big") + about).digest() + blake3(data).digest()
        nonce = hmac.digest(self._nonces, digest, "sha256")[:NONCE]
        return nonce, self._cipher.encrypt(nonce, data, about)

    def decrypt(self, nonce: bytes, about: bytes, data: bytes | memoryview) -> bytes:
        return self._cipher.decrypt(nonce, data, about)


FindKey = Callable[[bytes], DataKey]


class Sealer:
    """Encrypts and decrypts bytes: nonce (12), masked [key id (12), length (4)], ciphertext, tag (16).

    The label says what the bytes are and where they belong; bytes of another label do not decrypt.
    """

    def __init__(self, mask: bytes, find: FindKey) -> None:
        self._mask, self._find = mask, find

    def seal(self, key: DataKey, label: bytes, data: bytes, pad: int = 0) -> bytes:
        about = key.id + _LENGTH.pack(len(data))
        nonce, sealed = key.encrypt(label + about, data + bytes(pad) if pad else data)
        return b"".join((nonce, self._masked(nonce, about), sealed))

    def open(self, label: bytes, sealed: bytes) -> bytes:
        """Decrypt bytes that were encrypted with this label; `store_corrupt` when they were changed."""
        about, size = self._about(sealed)
        key = self._find(about[:KEY_ID])
        try:
            data = key.decrypt(sealed[:NONCE], label + about, memoryview(sealed)[HEADER:])
        except InvalidTag:
            raise damaged_object() from None
        return data if size == len(data) else data[:size]

    def key_of(self, sealed: bytes) -> bytes:
        """Return the key id of encrypted bytes, or of their first bytes."""
        return self._about(sealed)[0][:KEY_ID]

    def length_of(self, sealed: bytes) -> int:
        return self._about(sealed)[1]

    def _about(self, sealed: bytes) -> tuple[bytes, int]:
        if len(sealed) < HEADER:
            raise damaged_object()
        about = self._masked(sealed[:NONCE], sealed[NONCE:HEADER])
        return about, int(_LENGTH.unpack_from(about, KEY_ID)[0])

    def _masked(self, nonce: bytes, about: bytes) -> bytes:
        mask = hmac.digest(self._mask, nonce, "sha256")
        return (int.from_bytes(about, "big") ^ int.from_bytes(mask[: len(about)], "big")).to_bytes(len(about), "big")


def damaged_object() -> RametError:
    return RametError("store_corrupt", "an encrypted object is damaged or swapped", "run verify, then repair")


class NameCipher:
    """Encrypts the keys of objects, part by part (AES-SIV), each part bound to its parents.

    Plain are the first part, which is the kind of the object, the 20-digit number of a log entry, so that entries sort,
    and the names of packs, which are digests of encrypted bytes.
    """

    def __init__(self, root: bytes) -> None:
        self._cipher = AESSIV(derive(root, b"ramet names 1 a") + derive(root, b"ramet names 1 b"))
        self._known: dict[tuple[str, str], str] = {}
        self._parts: dict[tuple[str, str], str | None] = {}

    @staticmethod
    def is_clear(key: str) -> bool:
        return key.startswith("packs/")

    def encrypt(self, key: str) -> str:
        """Return the key of an object in the bucket."""
        if self.is_clear(key):
            return key
        parts = key.split("/")
        done = [parts[0]]
        for number, part in enumerate(parts[1:], 1):
            last = number == len(parts) - 1
            done.append(
                part if last and _NUMBER.fullmatch(part) else self._encrypt_part("/".join(parts[:number]), part)
            )
        return "/".join(done)

    def decrypt(self, key: str) -> str | None:
        """Return the plain key of an object of the bucket; None when it does not belong to this store."""
        if self.is_clear(key):
            return key
        parts = key.split("/")
        if len(parts) == 1:
            return None  # the marker
        done = parts[0]
        for number, part in enumerate(parts[1:], 1):
            if number < len(parts) - 1 or not _NUMBER.fullmatch(part):
                found = self._decrypt_part(done, part)
                if found is None:
                    return None
                part = found
            done = f"{done}/{part}"
        return done

    def digest(self, text: bytes) -> str:
        """Return the file name of a local cache entry."""
        return base64.urlsafe_b64encode(self._cipher.encrypt(text, [b"ramet local name 1"])[:24]).decode()

    def _encrypt_part(self, parent: str, part: str) -> str:
        known = self._known.get((parent, part))
        if known is None:
            data = part.encode("utf-8", "surrogateescape") + b"\x80"
            data += bytes(-len(data) % 16)
            known = base64.urlsafe_b64encode(self._cipher.encrypt(data, [_about(parent)])).rstrip(b"=").decode()
            if len(self._known) >= _KEPT_NAMES:
                self._known.clear()
            self._known[parent, part] = known
        return known

    def _decrypt_part(self, parent: str, part: str) -> str | None:
        try:
            return self._parts[parent, part]
        except KeyError:
            pass
        try:
            raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
            data = self._cipher.decrypt(raw, [_about(parent)])
        except (InvalidTag, binascii.Error, ValueError):
            found = None
        else:
            found = data.rstrip(b"\0")[:-1].decode("utf-8", "surrogateescape")
        if len(self._parts) >= _KEPT_NAMES:
            self._parts.clear()
        self._parts[parent, part] = found
        return found


def _about(parent: str) -> bytes:
    return b"ramet name 1\0" + parent.encode("utf-8", "surrogateescape")
