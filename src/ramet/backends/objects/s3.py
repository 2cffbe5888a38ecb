"""`S3Resource`: a bucket of Amazon S3 or of any service that speaks its protocol, each a row of one table."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from ramet.backends.objects.config import StoreConfig
from ramet.backends.objects.object_store import ObjectResource
from ramet.core.errors import RametError, wrong_type


class Preset(NamedTuple):
    """How a service is reached: its endpoint with `{places}` to fill in, and the region where it has only one."""

    endpoint: str
    region: str | None = None


PRESETS: Final = {
    "aws": Preset(""),
    "backblaze": Preset("https://s3.{region}.backblazeb2.com"),
    "digitalocean": Preset("https://{region}.digitaloceanspaces.com"),
    "hetzner": Preset("https://{region}.your-objectstorage.com"),
    "ibm": Preset("https://s3.{region}.cloud-object-storage.appdomain.cloud"),
    "linode": Preset("https://{region}.linodeobjects.com"),
    "minio": Preset("{endpoint}", "us-east-1"),
    "oci": Preset("https://{namespace}.compat.objectstorage.{region}.oraclecloud.com"),
    "ovh": Preset("https://s3.{region}.io.cloud.ovh.net"),
    "r2": Preset("https://{account}.r2.cloudflarestorage.com", "auto"),
    "scaleway": Preset("https://s3.{region}.scw.cloud"),
    "supabase": Preset("https://{project}.storage.supabase.co/storage/v1/s3"),
    "tigris": Preset("https://fly.storage.tigris.dev", "auto"),
    "wasabi": Preset("https://s3.{region}.wasabisys.com"),
}
"""Services by name. `aws` needs no endpoint."""


class ServiceKeywords(TypedDict, total=False):
    """What `S3Config.of` takes: the places in the endpoint of a service, and the fields of a configuration."""

    account: str
    endpoint: str
    namespace: str
    project: str
    endpoint_url: str | None
    prefix: str
    aws_access_key_id: str | None
    aws_secret_access_key: str | None
    aws_session_token: str | None
    anonymous: bool
    virtual_hosted: bool
    ttl: float


@dataclass(frozen=True, kw_only=True, repr=False)
class S3Config(StoreConfig):
    """A bucket and its credentials. Without keys, those of the environment or the machine's role are used."""

    bucket: str
    region: str = "us-east-1"
    endpoint_url: str | None = None
    prefix: str = ""
    aws_access_key_id: str | None = None
    aws_secret_access_key: str | None = None
    aws_session_token: str | None = None
    anonymous: bool = False
    virtual_hosted: bool = False
    ttl: float = 30.0
    """Seconds for which what was seen may be trusted; then the version is asked for."""
    service: str = "aws"

    secrets = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")

    @classmethod
    def of(cls, service: str, *, bucket: str, region: str | None = None, **given: Unpack[ServiceKeywords]) -> S3Config:
        """The configuration for a service of the table: `S3Config.of("r2", account="...", bucket="...")`."""
        preset = PRESETS.get(service)
        if preset is None:
            known = ", ".join(PRESETS)
            raise RametError("invalid_config", f"unknown service {service!r}", f"use one of {known}, or endpoint_url")
        own = {field.name for field in fields(cls)}
        settings: dict[str, Any] = {name: value for name, value in given.items() if name in own}
        places = {name: str(value) for name, value in given.items() if name not in own}
        region = region or preset.region or "us-east-1"
        try:
            endpoint = preset.endpoint.format(region=region, **places)
        except KeyError as missing:
            raise RametError("invalid_config", f"{service} needs {missing.args[0]}", "give it by name") from None
        return cls(bucket=bucket, region=region, service=service, **{"endpoint_url": endpoint or None, **settings})

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "s3" if self.service == "aws" else self.service


class S3Resource(ObjectResource):
    """A bucket, or what lies below a prefix of it.

    S3Resource(config=S3Config(bucket="data", region="eu-central-1"))
    S3Resource(config=S3Config.of("r2", account="...", bucket="data", aws_access_key_id=..., ...))
    """

    def __init__(self, config: S3Config) -> None:
        if not isinstance(config, S3Config):
            raise wrong_type("the configuration of S3Resource", config, "Pass a S3Config.")
        from obstore.store import S3Store

        self.config = config
        options: dict[str, Any] = {
            "region": config.region,
            "endpoint": config.endpoint_url,
            "access_key_id": config.aws_access_key_id,
            "secret_access_key": config.aws_secret_access_key,
            "session_token": config.aws_session_token,
            "skip_signature": config.anonymous or None,
            "virtual_hosted_style_request": config.virtual_hosted or None,
        }
        super().__init__(config.client(S3Store, options), config)
