"""Wrapping keys from a file, the environment or a KMS: without one, a store cannot be read.

- A key never appears in a repr, an error, a log, or the arguments of a process.
- A key file that other users can read is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import secrets
import stat as modes
from collections.abc import Mapping
from typing import Any, Final, Protocol

from ramet.core.errors import RametError, missing_extra
from ramet.store.crypto.format import NONCE, SECRET, derive

_ABOUT: Final = b"ramet wrap 1"
_CONTEXT: Final = {"ramet": "wrap 1"}
_HEX: Final = re.compile(r"[0-9a-fA-F]{64}")
_LARGEST_FILE: Final = 4096


class WrappingKey(Protocol):
    """Wraps the keys of a store. `name` is its source, `id` identifies the key; neither reveals it."""

    @property
    def name(self) -> str: ...

    @property
    def id(self) -> str: ...

    def wrap(self, key: bytes) -> bytes: ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """Unwrap a key; `wrong_key` when another key wrapped it."""
        ...


class LocalKey:
    """A key of 32 bytes in this process."""

    def __init__(self, secret: bytes, name: str = "given") -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(secret) != SECRET:
            raise _invalid_key()
        self.name = name
        self.id = f"local-{derive(secret, b'ramet key id 1')[:8].hex()}"
        self._cipher = AESGCM(derive(secret, b"ramet wrap 1"))

    def __repr__(self) -> str:
        return f"<key {self.id} from {self.name}>"

    def wrap(self, key: bytes) -> bytes:
        nonce = secrets.token_bytes(NONCE)
        return nonce + self._cipher.encrypt(nonce, key, _ABOUT)

    def unwrap(self, wrapped: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(wrapped[:NONCE], wrapped[NONCE:], _ABOUT)
        except (InvalidTag, ValueError):
            raise RametError(
                "wrong_key",
                f"key {self.id} does not open the store",
                "pass the key that the store was created or rotated with",
            ) from None


class KmsKey:
    """A key that stays in AWS KMS: wrapping and unwrapping are requests."""

    def __init__(self, key: str, client: Any = None) -> None:
        self.name = f"kms:{key}"
        self.id = f"kms-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        self._key, self._client = key, client

    def __repr__(self) -> str:
        return f"<key {self.id} from {self.name}>"

    def wrap(self, key: bytes) -> bytes:
        return self._ask("encrypt", "CiphertextBlob", Plaintext=key)

    def unwrap(self, wrapped: bytes) -> bytes:
        return self._ask("decrypt", "Plaintext", CiphertextBlob=wrapped)

    def _ask(self, verb: str, wanted: str, **values: Any) -> bytes:
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise missing_extra("kms", "a key in AWS KMS") from None
        try:
            if self._client is None:
                self._client = _kms_client(self._key)
            answer = getattr(self._client, verb)(KeyId=self._key, EncryptionContext=_CONTEXT, **values)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "refused"))
            raise RametError("wrong_key", f"KMS cannot {verb}: {code}", "check the key's id and its policy") from None
        except BotoCoreError as error:
            raise RametError(
                "unavailable", f"cannot reach KMS: {type(error).__name__}", "check region, network and credentials"
            ) from None
        return bytes(answer[wanted])


def _kms_client(key: str) -> Any:
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise missing_extra("kms", "a key in AWS KMS") from None
    region = key.split(":")[3] if key.startswith("arn:") and key.count(":") >= 5 else None
    config = Config(connect_timeout=5, read_timeout=10, retries={"max_attempts": 4, "mode": "standard"})
    return boto3.client("kms", region_name=region, config=config)


KeySource = str | bytes | WrappingKey


def open_key(source: KeySource, environ: Mapping[str, str] | None = None) -> WrappingKey:
    """Open the key at `file:PATH`, `env:NAME` or `kms:ID`; 32 bytes, their hex or base64, are a key themselves."""
    if isinstance(source, bytes):
        return LocalKey(source)
    if not isinstance(source, str):
        return source
    kind, colon, rest = source.partition(":")
    if colon and kind == "file":
        return read_key_file(rest)
    if colon and kind == "env":
        text = (os.environ if environ is None else environ).get(rest)
        if not text:
            raise RametError(
                "wrong_key", f"the environment variable {rest} has no key", "set it, or name another source"
            )
        if text.partition(":")[0] in ("file", "kms"):
            return open_key(text)
        return LocalKey(_decode_key(text), source)
    if colon and kind == "kms" and rest:
        return KmsKey(rest)
    return LocalKey(_decode_key(source))


def read_key_file(path: str) -> LocalKey:
    """Read a key file that only its owner may read."""
    path = os.path.expanduser(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise RametError(
            "wrong_key", f"cannot read the key file {path}: {error.strerror}", "check the path, or create a key there"
        ) from None
    try:
        found = os.fstat(fd)
        if not modes.S_ISREG(found.st_mode):
            raise RametError(
                "invalid_config", f"cannot use the key file {path}: not a regular file", "name a regular file"
            )
        if found.st_mode & 0o077 or found.st_uid not in (os.geteuid(), 0):
            raise RametError(
                "invalid_config",
                f"cannot use the key file {path}: other users can read it",
                f"chmod 600 {path}, and own it",
            )
        text = os.read(fd, _LARGEST_FILE)
    finally:
        os.close(fd)
    return LocalKey(_decode_key(text.decode("ascii", "replace")), f"file:{path}")


def new_key_file(path: str) -> LocalKey:
    """Create a key in a new file that only its owner may read; durable on return."""
    path = os.path.expanduser(path)
    secret = secrets.token_bytes(SECRET)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise RametError(
            "already_exists", f"cannot create a key: {path} exists", "use another path; keys are never overwritten"
        ) from None
    try:
        os.write(fd, base64.b64encode(secret) + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return LocalKey(secret, f"file:{path}")


def _decode_key(text: str) -> bytes:
    """Decode 32 bytes from hex or base64. The error omits the input: it may be a mistyped key."""
    text = text.strip()
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    try:
        found = base64.b64decode(text.translate({ord("-"): "+", ord("_"): "/"}) + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise _invalid_key() from None
    if len(found) != SECRET:
        raise _invalid_key()
    return found


def _invalid_key() -> RametError:
    return RametError(
        "invalid_config",
        "cannot use this value as a key",
        "pass 32 bytes as hex or base64, or file:PATH, env:NAME, kms:ID",
    )
