"""`DatabaseConfig` and `Database`: the base of read-only database mounts."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

from ramet.backends.redacted_urls import secret_from, without_password
from ramet.backends.unwritable import Unwritable
from ramet.core.resource import Cap, Description
from ramet.core.stat import Kind, Stat


class DatabaseConfig:
    """A dataclass with a URL that may contain a password, and the name of a variable that should hold it."""

    kind: ClassVar[str]
    address: ClassVar[str]
    """The field that the address is in."""
    password_env: str | None
    ttl: float

    @property
    def where(self) -> str:
        """The address as it may be shown."""
        return without_password(getattr(self, self.address))

    @property
    def password(self) -> str | None:
        return secret_from(self.password_env)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address}={self.where!r})"

    def describe(self) -> Description:
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        hidden = (self.address,) if self.where != plain[self.address] else ()
        return Description(self.kind, {**plain, self.address: self.where}, hidden, needs_override=True)


class Database(Unwritable):
    caps = Cap.READ
    config: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.config.where!r})"

    def describe(self) -> Description:
        found: Description = self.config.describe()
        return found

    @property
    def _file(self) -> Stat:
        return Stat(Kind.FILE, ttl=self.config.ttl)

    @property
    def _directory(self) -> Stat:
        return Stat(Kind.DIR, ttl=self.config.ttl)
