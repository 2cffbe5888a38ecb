"""`AzureResource`: a container of Azure Blob Storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ramet.backends.objects.config import StoreConfig
from ramet.backends.objects.object_store import ObjectResource
from ramet.core.errors import wrong_type


@dataclass(frozen=True, kw_only=True, repr=False)
class AzureConfig(StoreConfig):
    """A container and its credentials. Without credentials, those of the environment or the machine are used."""

    bucket: str
    """The container."""
    account: str
    prefix: str = ""
    account_key: str | None = None
    sas_token: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    tenant_id: str | None = None
    anonymous: bool = False
    endpoint_url: str | None = None
    """With the account in it, as Azurite wants it: `http://127.0.0.1:10000/devstoreaccount1`."""
    ttl: float = 30.0

    kind = "azure"
    secrets = ("account_key", "sas_token", "client_secret")


class AzureResource(ObjectResource):
    """A container, or what lies below a prefix: `AzureResource(config=AzureConfig(account="a", bucket="data"))`."""

    def __init__(self, config: AzureConfig) -> None:
        if not isinstance(config, AzureConfig):
            raise wrong_type("the configuration of AzureResource", config, "Pass a AzureConfig.")
        from obstore.store import AzureStore

        self.config = config
        options: dict[str, Any] = {
            "account_name": config.account,
            "account_key": config.account_key,
            "sas_key": config.sas_token,
            "client_id": config.client_id,
            "client_secret": config.client_secret,
            "tenant_id": config.tenant_id,
            "skip_signature": config.anonymous or None,
            "endpoint": config.endpoint_url,
        }
        super().__init__(config.client(AzureStore, options), config)
