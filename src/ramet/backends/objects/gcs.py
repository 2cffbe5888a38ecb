"""`GCSResource`: a bucket of Google Cloud Storage."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

from ramet.backends.objects.config import StoreConfig
from ramet.backends.objects.object_store import ObjectResource
from ramet.core.errors import fail, wrong_type
from ramet.core.paths import Path


@dataclass(frozen=True, kw_only=True, repr=False)
class GCSConfig(StoreConfig):
    """A bucket and its credentials. Without credentials, those of the environment or the machine are used."""

    bucket: str
    prefix: str = ""
    service_account_key: str | None = None
    """The JSON text of a service account's key."""
    service_account_path: str | None = None
    bearer_token: str | None = None
    anonymous: bool = False
    endpoint_url: str | None = None
    ttl: float = 30.0

    kind = "gcs"
    secrets = ("service_account_key", "bearer_token")


class GCSResource(ObjectResource):
    """A bucket, or what lies below a prefix of it: `GCSResource(config=GCSConfig(bucket="data"))`."""

    def __init__(self, config: GCSConfig) -> None:
        if not isinstance(config, GCSConfig):
            raise wrong_type("the configuration of GCSResource", config, "Pass a GCSConfig.")
        from obstore.store import GCSStore

        self.config = config
        options: dict[str, Any] = {
            "service_account": config.service_account_path,
            "service_account_key": config.service_account_key,
            "bearer_token": config.bearer_token,
            "skip_signature": config.anonymous or None,
            "base_url": config.endpoint_url,
        }
        super().__init__(config.client(GCSStore, options), config)

    async def _condition(self, path: Path, version: str) -> dict[str, str]:
        """The service compares generations: the one that has this ETag now, or none."""
        import obstore

        key = self._key(path)
        try:
            found = await self._ask(path, lambda: obstore.head_async(self._store, key))
        except FileNotFoundError:
            raise fail(errno.ESTALE, path) from None
        if (found["e_tag"] or "").strip('"') != version or found["version"] is None:
            raise fail(errno.ESTALE, path)
        return {"version": found["version"]}
