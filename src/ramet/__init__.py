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
    from ramet.backends.services.discord import DiscordConfig as DiscordConfig
    from ramet.backends.services.discord import DiscordResource as DiscordResource
    from ramet.backends.services.github.ci import GitHubCIConfig as GitHubCIConfig
    from ramet.backends.services.github.ci import GitHubCIResource as GitHubCIResource
    from ramet.backends.services.github.repository import GitHubConfig as GitHubConfig
    from ramet.backends.services.github.repository import GitHubResource as GitHubResource
    from ramet.backends.services.google.docs import GoogleDocsConfig as GoogleDocsConfig
    from ramet.backends.services.google.docs import GoogleDocsResource as GoogleDocsResource
    from ramet.backends.services.google.drive import GoogleDriveConfig as GoogleDriveConfig
    from ramet.backends.services.google.drive import GoogleDriveResource as GoogleDriveResource
    from ramet.backends.services.google.gmail import GmailConfig as GmailConfig
    from ramet.backends.services.google.gmail import GmailResource as GmailResource
    from ramet.backends.services.google.sheets import GoogleSheetsConfig as GoogleSheetsConfig
    from ramet.backends.services.google.sheets import GoogleSheetsResource as GoogleSheetsResource
    from ramet.backends.services.google.slides import GoogleSlidesConfig as GoogleSlidesConfig
    from ramet.backends.services.google.slides import GoogleSlidesResource as GoogleSlidesResource
    from ramet.backends.services.langfuse.project import LangfuseConfig as LangfuseConfig
    from ramet.backends.services.langfuse.project import LangfuseResource as LangfuseResource
    from ramet.backends.services.linear.workspace import LinearConfig as LinearConfig
    from ramet.backends.services.linear.workspace import LinearResource as LinearResource
    from ramet.backends.services.notion.workspace import NotionConfig as NotionConfig
    from ramet.backends.services.notion.workspace import NotionResource as NotionResource
    from ramet.backends.services.paperclip import PaperclipConfig as PaperclipConfig
    from ramet.backends.services.paperclip import PaperclipResource as PaperclipResource
    from ramet.backends.services.slack.workspace import SlackConfig as SlackConfig
    from ramet.backends.services.slack.workspace import SlackResource as SlackResource
    from ramet.backends.services.telegram import TelegramConfig as TelegramConfig
    from ramet.backends.services.telegram import TelegramResource as TelegramResource
    from ramet.backends.services.trello import TrelloConfig as TrelloConfig
    from ramet.backends.services.trello import TrelloResource as TrelloResource
    from ramet.core.errors import LimitExceeded as LimitExceeded
    from ramet.core.errors import RametError as RametError
    from ramet.core.limits import Limits as Limits
    from ramet.core.stat import Stat as Stat
    from ramet.native.options import Native as Native
    from ramet.native.options import NativeLimits as NativeLimits
    from ramet.network.network import Network as Network
    from ramet.store.model.revisions import Revision as Revision
    from ramet.store.refs.retention import Retention as Retention
    from ramet.store.refs.tags import Tag as Tag
    from ramet.store.verbs.blame import BlameLine as BlameLine
    from ramet.workspace.agent.sandbox import AgentRun as AgentRun
    from ramet.workspace.config import load_config as load_config
    from ramet.workspace.mounts import MountMode as MountMode
    from ramet.workspace.policy import Policy as Policy
    from ramet.workspace.record.history import ExecutionRecord as Record
    from ramet.workspace.record.history import RecordFilter as RecordFilter
    from ramet.workspace.result import CommandFailed as CommandFailed
    from ramet.workspace.result import IOResult as IOResult
    from ramet.workspace.stored.commit_policy import CommitPolicy as CommitPolicy
    from ramet.workspace.stored.open_options import OpenOptions as OpenOptions
    from ramet.workspace.stored.store import Store as Store
    from ramet.workspace.stored.trial import Trial as Trial
    from ramet.workspace.sync import SyncWorkspace as SyncWorkspace
    from ramet.workspace.workspace import Settings as Settings
    from ramet.workspace.workspace import Workspace as Workspace

__version__ = "0.1.0"

_PLACES = {
    "AgentRun": "ramet.workspace.agent.sandbox",
    "AzureConfig": "ramet.backends.objects.azure",
    "AzureResource": "ramet.backends.objects.azure",
    "BlameLine": "ramet.store.verbs.blame",
    "CommandFailed": "ramet.workspace.result",
    "CommitPolicy": "ramet.workspace.stored.commit_policy",
    "DiscordConfig": "ramet.backends.services.discord",
    "DiscordResource": "ramet.backends.services.discord",
    "DiskResource": "ramet.backends.local.disk",
    "FsspecResource": "ramet.backends.remote.fsspec",
    "GCSConfig": "ramet.backends.objects.gcs",
    "GCSResource": "ramet.backends.objects.gcs",
    "GitHubCIConfig": "ramet.backends.services.github.ci",
    "GitHubCIResource": "ramet.backends.services.github.ci",
    "GitHubConfig": "ramet.backends.services.github.repository",
    "GitHubResource": "ramet.backends.services.github.repository",
    "GmailConfig": "ramet.backends.services.google.gmail",
    "GmailResource": "ramet.backends.services.google.gmail",
    "GoogleSheetsConfig": "ramet.backends.services.google.sheets",
    "GoogleSheetsResource": "ramet.backends.services.google.sheets",
    "GoogleSlidesConfig": "ramet.backends.services.google.slides",
    "GoogleSlidesResource": "ramet.backends.services.google.slides",
    "GoogleDocsConfig": "ramet.backends.services.google.docs",
    "GoogleDocsResource": "ramet.backends.services.google.docs",
    "GoogleDriveConfig": "ramet.backends.services.google.drive",
    "GoogleDriveResource": "ramet.backends.services.google.drive",
    "HTTPConfig": "ramet.backends.remote.http",
    "HTTPResource": "ramet.backends.remote.http",
    "IOResult": "ramet.workspace.result",
    "LangfuseConfig": "ramet.backends.services.langfuse.project",
    "LangfuseResource": "ramet.backends.services.langfuse.project",
    "LimitExceeded": "ramet.core.errors",
    "Limits": "ramet.core.limits",
    "LinearConfig": "ramet.backends.services.linear.workspace",
    "LinearResource": "ramet.backends.services.linear.workspace",
    "MailConfig": "ramet.backends.remote.mail",
    "MailResource": "ramet.backends.remote.mail",
    "MongoConfig": "ramet.backends.databases.mongo",
    "MongoResource": "ramet.backends.databases.mongo",
    "MountMode": "ramet.workspace.mounts",
    "Native": "ramet.native.options",
    "NativeLimits": "ramet.native.options",
    "Network": "ramet.network.network",
    "NotionConfig": "ramet.backends.services.notion.workspace",
    "NotionResource": "ramet.backends.services.notion.workspace",
    "OpenOptions": "ramet.workspace.stored.open_options",
    "PaperclipConfig": "ramet.backends.services.paperclip",
    "PaperclipResource": "ramet.backends.services.paperclip",
    "Policy": "ramet.workspace.policy",
    "PostgresConfig": "ramet.backends.databases.postgres",
    "PostgresResource": "ramet.backends.databases.postgres",
    "RAMResource": "ramet.backends.local.ram",
    "RametError": "ramet.core.errors",
    "Record": "ramet.workspace.record.history:ExecutionRecord",
    "RecordFilter": "ramet.workspace.record.history",
    "RedisResource": "ramet.backends.databases.redis",
    "Retention": "ramet.store.refs.retention",
    "Revision": "ramet.store.model.revisions",
    "S3Config": "ramet.backends.objects.s3",
    "S3Resource": "ramet.backends.objects.s3",
    "SSHConfig": "ramet.backends.remote.ssh",
    "SSHResource": "ramet.backends.remote.ssh",
    "Settings": "ramet.workspace.workspace",
    "SlackConfig": "ramet.backends.services.slack.workspace",
    "SlackResource": "ramet.backends.services.slack.workspace",
    "Stat": "ramet.core.stat",
    "Store": "ramet.workspace.stored.store",
    "SyncWorkspace": "ramet.workspace.sync",
    "Tag": "ramet.store.refs.tags",
    "TelegramConfig": "ramet.backends.services.telegram",
    "TelegramResource": "ramet.backends.services.telegram",
    "Trial": "ramet.workspace.stored.trial",
    "TrelloConfig": "ramet.backends.services.trello",
    "TrelloResource": "ramet.backends.services.trello",
    "Workspace": "ramet.workspace.workspace",
    "connect": "ramet.apps.client.connect",
    "load_config": "ramet.workspace.config",
}

__all__ = [
    "AgentRun",
    "AzureConfig",
    "AzureResource",
    "BlameLine",
    "CommandFailed",
    "CommitPolicy",
    "DiscordConfig",
    "DiscordResource",
    "DiskResource",
    "FsspecResource",
    "GCSConfig",
    "GCSResource",
    "GitHubCIConfig",
    "GitHubCIResource",
    "GitHubConfig",
    "GitHubResource",
    "GmailConfig",
    "GmailResource",
    "GoogleDocsConfig",
    "GoogleDocsResource",
    "GoogleDriveConfig",
    "GoogleDriveResource",
    "GoogleSheetsConfig",
    "GoogleSheetsResource",
    "GoogleSlidesConfig",
    "GoogleSlidesResource",
    "HTTPConfig",
    "HTTPResource",
    "IOResult",
    "LangfuseConfig",
    "LangfuseResource",
    "LimitExceeded",
    "Limits",
    "LinearConfig",
    "LinearResource",
    "MailConfig",
    "MailResource",
    "MongoConfig",
    "MongoResource",
    "MountMode",
    "NotionConfig",
    "NotionResource",
    "OpenOptions",
    "PaperclipConfig",
    "PaperclipResource",
    "Policy",
    "PostgresConfig",
    "PostgresResource",
    "RAMResource",
    "RametError",
    "Record",
    "RecordFilter",
    "RedisResource",
    "Retention",
    "Revision",
    "S3Config",
    "S3Resource",
    "SSHConfig",
    "SSHResource",
    "Settings",
    "SlackConfig",
    "SlackResource",
    "Stat",
    "Store",
    "SyncWorkspace",
    "Tag",
    "TelegramConfig",
    "TelegramResource",
    "TrelloConfig",
    "TrelloResource",
    "Workspace",
    "__version__",
    "connect",
    "load_config",
]


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'ramet' has no attribute {name!r}")
    module, _, other = place.partition(":")
    value = getattr(import_module(module), other or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
