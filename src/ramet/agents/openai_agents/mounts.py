"""Cloud mounts of a manifest as mounts of the workspace, without installing or starting anything.

A bucket's key stays in this process; commands of the sandbox cannot see it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agents.sandbox.errors import MountConfigError

from ramet.core.resource import Resource


def _s3(mount: Any) -> Resource:
    from ramet.backends.objects.s3 import S3Config, S3Resource

    return S3Resource(
        S3Config(
            bucket=mount.bucket,
            prefix=mount.prefix or "",
            region=mount.region or "us-east-1",
            endpoint_url=mount.endpoint_url,
            aws_access_key_id=mount.access_key_id,
            aws_secret_access_key=mount.secret_access_key,
            aws_session_token=mount.session_token,
            anonymous=mount.access_key_id is None,
        )
    )


def _r2(mount: Any) -> Resource:
    from ramet.backends.objects.s3 import S3Config, S3Resource

    return S3Resource(
        S3Config(
            bucket=mount.bucket,
            region="auto",
            service="r2",
            endpoint_url=mount.custom_domain or f"https://{mount.account_id}.r2.cloudflarestorage.com",
            aws_access_key_id=mount.access_key_id,
            aws_secret_access_key=mount.secret_access_key,
            anonymous=mount.access_key_id is None,
        )
    )


def _gcs(mount: Any) -> Resource:
    if mount.access_id is not None:  # the keys of its S3 protocol
        from ramet.backends.objects.s3 import S3Config, S3Resource

        return S3Resource(
            S3Config(
                bucket=mount.bucket,
                prefix=mount.prefix or "",
                region=mount.region or "auto",
                endpoint_url=mount.endpoint_url or "https://storage.googleapis.com",
                aws_access_key_id=mount.access_id,
                aws_secret_access_key=mount.secret_access_key,
            )
        )
    from ramet.backends.objects.gcs import GCSConfig, GCSResource

    given = (mount.service_account_file, mount.service_account_credentials, mount.access_token)
    return GCSResource(
        GCSConfig(
            bucket=mount.bucket,
            prefix=mount.prefix or "",
            service_account_path=mount.service_account_file,
            service_account_key=mount.service_account_credentials,
            bearer_token=mount.access_token,
            endpoint_url=mount.endpoint_url,
            anonymous=not any(given),
        )
    )


def _azure(mount: Any) -> Resource:
    from ramet.backends.objects.azure import AzureConfig, AzureResource

    return AzureResource(
        AzureConfig(
            bucket=mount.container,
            account=mount.account,
            account_key=mount.account_key,
            client_id=mount.identity_client_id,
            endpoint_url=mount.endpoint,
            anonymous=mount.account_key is None and mount.identity_client_id is None,
        )
    )


NATIVE: Final[dict[str, Callable[[Any], Resource]]] = {
    "s3_mount": _s3,
    "r2_mount": _r2,
    "gcs_mount": _gcs,
    "azure_blob_mount": _azure,
}
"""Supported mount entries, by type."""


def native_resource(mount: Any) -> Resource:
    """Return the resource of a manifest's mount entry; raise an SDK error for an unsupported type."""
    make = NATIVE.get(mount.type)
    if make is None:
        raise MountConfigError(
            message=f"a ramet sandbox cannot mount {mount.type}", context={"type": mount.type, "supported": [*NATIVE]}
        )
    try:
        return make(mount)
    except (ValueError, TypeError) as error:
        raise MountConfigError(
            message="invalid mount configuration", context={"type": mount.type, "error": type(error).__name__}
        ) from None  # the client's message may contain the key
