"""`StoreConfig`: the base of all object-store configurations; its `repr` shows no secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, ClassVar

from ramet.backends.redacted_urls import without_password
from ramet.core.errors import RametError
from ramet.core.resource import REDACTED, Description


class StoreConfig:
    """Base of object-store configurations: dataclasses whose `secrets` are never shown."""

    kind: ClassVar[str]
    secrets: ClassVar[tuple[str, ...]]
    bucket: str
    prefix: str
    ttl: float
    endpoint_url: str | None

    def __post_init__(self) -> None:
        if self.endpoint_url is not None and not re.match(r"https?://[^/\s]", self.endpoint_url):
            raise RametError(
                "invalid_config",
                f"{without_password(self.endpoint_url)!r} is not the address of an object store",
                "give one that begins with https:// (or http://, for a server without TLS)",
            )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.redacted().items() if value is not None)
        return f"{type(self).__name__}({shown})"

    def redacted(self) -> dict[str, object]:
        plain = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        shown = {name: REDACTED if name in self.secrets and value else value for name, value in plain.items()}
        if self.endpoint_url is not None:
            shown["endpoint_url"] = without_password(self.endpoint_url)
        return shown

    def describe(self) -> Description:
        hidden = tuple(name for name in self.secrets if getattr(self, name) is not None)
        if self.endpoint_url is not None and without_password(self.endpoint_url) != self.endpoint_url:
            hidden += ("endpoint_url",)
        return Description(self.kind, self.redacted(), hidden, needs_override=True)

    def client(self, kind: Callable[..., Any], options: Mapping[str, Any]) -> Any:
        """Make obstore's client; an option that is None is left to the environment."""
        from obstore.exceptions import BaseError

        try:
            return kind(self.bucket, **self._connection(), **{k: v for k, v in options.items() if v is not None})
        except BaseError as error:
            cause = str(error).partition("\n")[0].rpartition(" error: ")[2]
            for name in self.secrets:
                cause = cause.replace(str(getattr(self, name) or REDACTED), REDACTED)
            raise RametError(
                "invalid_config",
                f"{self.kind} bucket {self.bucket!r}: {cause}",
                "check the credentials and the endpoint",
            ) from None

    def _connection(self) -> dict[str, Any]:
        """Return obstore's client options: plain HTTP only if the endpoint says so, and bounded retries."""
        plain = (self.endpoint_url or "").startswith("http://")
        return {
            "client_options": {"allow_http": plain, "timeout": "60s", "connect_timeout": "5s"},
            "retry_config": {"max_retries": 2, "backoff": {"init_backoff": timedelta(milliseconds=50)}},
        }
