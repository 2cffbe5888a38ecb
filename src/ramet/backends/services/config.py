"""`ServiceConfig`: the settings that all services share, with secrets that are never shown.

A secret `x` is given by value, or as the name of an environment variable in `x_env`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, fields
from typing import ClassVar
from urllib.parse import urlsplit

from ramet.backends.redacted_urls import secret_from
from ramet.backends.services.bounds import Bounds
from ramet.core.errors import RametError, fail
from ramet.core.paths import Path
from ramet.core.resource import REDACTED, Description


@dataclass(frozen=True, kw_only=True, repr=False)
class ServiceConfig:
    """What every service needs: an address, and how long to trust its answers."""

    kind: ClassVar[str]
    """The name of the service in snapshots and configuration files."""
    secrets: ClassVar[tuple[str, ...]] = ()
    """Fields that hold secrets."""
    paths: ClassVar[tuple[str, ...]] = ()
    """Fields that hold paths of this machine."""

    base_url: str
    """The address of the API."""
    writable: bool = False
    """Whether edits, `post` and `query -w` may change the service."""
    ttl: float = 60.0
    """Seconds for which what was seen may be trusted."""
    timeout: float = 30.0
    """Seconds without a sign of life after which the service counts as unreachable."""
    private: bool = False
    """Whether its hosts may have loopback or private addresses."""
    concurrency: int = 8
    """Requests that are under way at a time."""
    requests_per_second: float | None = None
    """Requests that are sent per second at most; without it, only the service's own limit counts."""

    def __post_init__(self) -> None:
        name = type(self).__name__
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise RametError(
                "invalid_config",
                f"the base_url of {name} is not an http or https address without a query and a password",
                "give an address such as https://api.example.org",
            )
        if self.concurrency < 1 or (self.requests_per_second is not None and not self.requests_per_second > 0):
            raise RametError(
                "invalid_config",
                f"{name} allows no requests",
                "give a concurrency of at least 1, and requests_per_second above 0",
            )
        for secret in self.secrets:
            value = getattr(self, secret)
            if value is not None and getattr(self, f"{secret}_env") is not None:
                raise RametError(
                    "invalid_config", f"{name} has both {secret} and {secret}_env", f"give {secret} or {secret}_env"
                )
            if value is not None and (not value or not value.isascii() or not value.isprintable() or " " in value):
                raise RametError(
                    "invalid_config",
                    f"the {secret} of {name} is empty or holds characters that no token has",
                    "copy it again, without a line end",
                )

    @property
    def host(self) -> str:
        """The host of the API."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def bounds(self) -> Bounds:
        return Bounds(self.concurrency, self.requests_per_second)

    def secret(self, name: str) -> str | None:
        """The secret field `name`, by value or out of its variable."""
        value: str | None = getattr(self, name)
        return value if value is not None else secret_from(getattr(self, f"{name}_env"))

    def check_writable(self, path: Path) -> None:
        """Refuse a change of the service unless the configuration allows it."""
        if not self.writable:
            raise fail(errno.EROFS, path, f"Read-only file system: set writable=True in {type(self).__name__}")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._public().items() if value not in (None, ()))
        return f"{type(self).__name__}({shown})"

    def _public(self) -> dict[str, object]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: REDACTED if name in self.secrets and value else value for name, value in values.items()}

    def describe(self) -> Description:
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in self._public().items()}
        redacted = tuple(name for name in self.secrets if plain[name] is not None)
        return Description(self.kind, plain, redacted, needs_override=True)
