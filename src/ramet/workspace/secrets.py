"""`Secrets`: redact secret values from everything that is recorded, shown or saved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ramet.core.paths import decode, encode
from ramet.core.resource import REDACTED

_USERINFO: Final = re.compile(rb"(://)[^/\s:@'\"]*:[^/\s@'\"]+@")
"""A password in a URL, which is redacted without being declared."""
SHORTEST: Final = 4
"""Minimum length of a value to redact in texts, to avoid accidental matches. Variables are always redacted."""


class Secrets:
    """Named secrets of a workspace, visible only to commands as environment variables."""

    __slots__ = ("_raw", "_values")

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = dict(values or {})
        self._raw: tuple[bytes, ...] = ()
        self._index()

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def __bool__(self) -> bool:
        return bool(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def set(self, name: str, value: str) -> None:
        self._values[name] = value
        self._index()

    def env(self) -> dict[str, str]:
        """Return the secrets as environment variables for commands."""
        return dict(self._values)

    def copy(self) -> Secrets:
        return Secrets(self._values)

    def _index(self) -> None:
        raw = {encode(value) for value in self._values.values() if len(value) >= SHORTEST}
        self._raw = tuple(sorted(raw, key=len, reverse=True))  # longest first: a value may contain another

    def scrub(self, data: bytes) -> bytes:
        if b"://" in data:
            data = _USERINFO.sub(rb"\1" + REDACTED.encode() + b"@", data)
        for raw in self._raw:
            if raw in data:
                data = data.replace(raw, REDACTED.encode())
        return data

    def scrub_text(self, text: str) -> str:
        return decode(self.scrub(encode(text))) if self._raw or "://" in text else text

    def scrub_env(self, env: Mapping[str, str]) -> dict[str, str]:
        """Redact an environment: secret variables lose their value, others the secrets inside them."""
        return {k: REDACTED if k in self._values else self.scrub_text(v) for k, v in env.items()}
