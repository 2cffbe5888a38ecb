"""Ramet: every backend as one file tree, a real shell over it, every state saved and versioned.

    from ramet import Workspace, RAMResource, DiskResource, MountMode

Names are imported when they are first used, so that `import ramet` stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramet.apps.client.connect import connect as connect
    from ramet.backends.databases.mongo import MongoConfig as MongoConfig
    from ramet.backends.databases.mongo import MongoResource as MongoResource
    from ramet.backends.databases.postgres import PostgresConfig as PostgresConfig
    from ramet.backends.databases.postgres import PostgresResource as PostgresResource
    from ramet.backends.databases.redis import RedisResource as RedisResource
    from ramet.backends.local.disk import DiskResource as DiskResource
    from ramet.backends.local.ram import RAMResource as RAMResource
    from ramet.backends.objects.azure import AzureConfig as AzureConfig
    from ramet.backends.objects.azure import AzureResource as AzureResource
    from ramet.backends.objects.gcs import GCSConfig as GCSConfig
    from ramet.backends.objects.gcs import GCSResource as GCSResource
    from ramet.backends.objects.s3 import S3Config as S3Config
    from ramet.backends.objects.s3 import S3Resource as S3Resource
    from ramet.backends.remote.fsspec import FsspecResource as FsspecResource
    from ramet.backends.remote.http import HTTPConfig as HTTPConfig
    from ramet.backends.remote.http import HTTPResource as HTTPResource
    from ramet.backends.remote.mail import MailConfig as MailConfig
    from ramet.backends.remote.mail import MailResource as MailResource
    from ramet.backends.remote.ssh import SSHConfig as SSHConfig
    from ramet.backends.remote.ssh import SSHResource as SSHResource
    from ramet.backends.services.github import GitHubConfig as GitHubConfig
    from ramet.backends.services.github import GitHubResource as GitHubResource
    from ramet.core.errors import RametError as RametError
    from ramet.core.limits import Limits as Limits
    from ramet.store.refs.retention import Retention as Retention
    from ramet.workspace.agent.sandbox import AgentRun as AgentRun
    from ramet.workspace.config import load_config as load_config
    from ramet.workspace.mounts import MountMode as MountMode
    from ramet.workspace.result import IOResult as IOResult
    from ramet.workspace.stored.commit_policy import CommitPolicy as CommitPolicy
    from ramet.workspace.stored.open_options import OpenOptions as OpenOptions
    from ramet.workspace.stored.store import Store as Store
    from ramet.workspace.workspace import Workspace as Workspace

__version__ = "0.1.0"

_PLACES = {
    "AgentRun": "ramet.workspace.agent.sandbox",
    "AzureConfig": "ramet.backends.objects.azure",
    "AzureResource": "ramet.backends.objects.azure",
    "CommitPolicy": "ramet.workspace.stored.commit_policy",
    "DiskResource": "ramet.backends.local.disk",
    "FsspecResource": "ramet.backends.remote.fsspec",
    "GCSConfig": "ramet.backends.objects.gcs",
    "GCSResource": "ramet.backends.objects.gcs",
    "GitHubConfig": "ramet.backends.services.github",
    "GitHubResource": "ramet.backends.services.github",
    "HTTPConfig": "ramet.backends.remote.http",
    "HTTPResource": "ramet.backends.remote.http",
    "IOResult": "ramet.workspace.result",
    "Limits": "ramet.core.limits",
    "MailConfig": "ramet.backends.remote.mail",
    "MailResource": "ramet.backends.remote.mail",
    "MongoConfig": "ramet.backends.databases.mongo",
    "MongoResource": "ramet.backends.databases.mongo",
    "MountMode": "ramet.workspace.mounts",
    "OpenOptions": "ramet.workspace.stored.open_options",
    "PostgresConfig": "ramet.backends.databases.postgres",
    "PostgresResource": "ramet.backends.databases.postgres",
    "RAMResource": "ramet.backends.local.ram",
    "RametError": "ramet.core.errors",
    "RedisResource": "ramet.backends.databases.redis",
    "Retention": "ramet.store.refs.retention",
    "S3Config": "ramet.backends.objects.s3",
    "S3Resource": "ramet.backends.objects.s3",
    "SSHConfig": "ramet.backends.remote.ssh",
    "SSHResource": "ramet.backends.remote.ssh",
    "Store": "ramet.workspace.stored.store",
    "Workspace": "ramet.workspace.workspace",
    "connect": "ramet.apps.client.connect",
    "load_config": "ramet.workspace.config",
}

__all__ = [
    "AgentRun",
    "AzureConfig",
    "AzureResource",
    "CommitPolicy",
    "DiskResource",
    "FsspecResource",
    "GCSConfig",
    "GCSResource",
    "GitHubConfig",
    "GitHubResource",
    "HTTPConfig",
    "HTTPResource",
    "IOResult",
    "Limits",
    "MailConfig",
    "MailResource",
    "MongoConfig",
    "MongoResource",
    "MountMode",
    "OpenOptions",
    "PostgresConfig",
    "PostgresResource",
    "RAMResource",
    "RametError",
    "RedisResource",
    "Retention",
    "S3Config",
    "S3Resource",
    "SSHConfig",
    "SSHResource",
    "Store",
    "Workspace",
    "__version__",
    "connect",
    "load_config",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'ramet' has no attribute {name!r}")
    value = getattr(import_module(place), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
