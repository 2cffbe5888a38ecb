"""Table of resources for configurations: their settings, and how to create them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, NamedTuple

from ramet.core.errors import RametError
from ramet.core.resource import Resource
from ramet.workspace.config.kinds import ChoiceKind, Field, FlagKind, Kind, ListKind, MapKind, NumberKind, TextKind

Values = Mapping[str, Any]


class Backend(NamedTuple):
    """A resource by name: a description, its settings, and its constructor."""

    says: str
    fields: Callable[[], dict[str, Field]]
    make: Callable[[Values], Resource]
    extra: str = ""


# ----------------------------------------------------------------------------------------------- from dataclasses


@cache
def field_docstrings(cls: type) -> Mapping[str, str]:
    """Return the docstrings of the fields of a dataclass; empty without source code."""
    import ast
    import inspect
    import textwrap

    found: dict[str, str] = {}
    for base in cls.__bases__:
        found |= {} if base is object else field_docstrings(base)
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):
        return found
    body = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(body, ast.ClassDef)
    for before, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(after, ast.Expr):
            text = ast.literal_eval(after.value) if isinstance(after.value, ast.Constant) else ""
            if isinstance(text, str):
                found[before.target.id] = " ".join(text.split())
    return found


def _field_help(cls: type, name: str) -> str:
    return field_docstrings(cls).get(name, "")


def fields_of(cls: Any, *, secret: tuple[str, ...] = (), paths: tuple[str, ...] = ()) -> dict[str, Field]:
    """Convert the fields of a dataclass to settings, by type."""
    hints = typing.get_type_hints(cls)
    made: dict[str, Field] = {}
    for field in dataclasses.fields(cls):
        kind = _kind(field.name, hints[field.name], field.name in secret, field.name in paths)
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = None if field.default is dataclasses.MISSING else field.default
        made[field.name] = Field(kind, "", default, required, partial(_field_help, cls, field.name))
    return made


def _kind(name: str, hint: Any, secret: bool, path: bool) -> Kind:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = [one for one in typing.get_args(hint) if one is not type(None)]
    if typing.get_origin(hint) is tuple:
        return ListKind(_kind(name, typing.get_args(hint)[0], secret, path))
    if typing.get_origin(hint) is Mapping:
        return MapKind(_kind(name, typing.get_args(hint)[1], secret, path))
    if hint is bool:
        return FlagKind()
    if hint in (int, float):
        size = name.endswith("_bytes") or name in ("sort_memory", "quota")
        time = name in ("ttl", "file_ttl", "wall_time", "regex_seconds", "first", "longest", "deadline", "timeout")
        return NumberKind("size" if size else "time" if time else "", whole=hint is int)
    if hint is not str:
        raise TypeError(f"{name} has the type {hint}, which no setting has")
    return TextKind(secret=secret, path=path)


# ------------------------------------------------------------------------------------------------------ the table


def _ram(values: Values) -> Resource:
    from ramet.backends.local.ram import RAMResource

    return RAMResource(quota=values["quota"])


def _disk(values: Values) -> Resource:
    from ramet.backends.local.disk import DiskResource

    return DiskResource(values["root"], create=values["create"], fsync=values["fsync"])


def _s3_fields(service: str) -> dict[str, Field]:
    from string import Formatter

    from ramet.backends.objects.s3 import PRESETS, S3Config

    found = fields_of(S3Config, secret=S3Config.secrets)
    del found["service"]
    if service != "aws":
        preset = PRESETS[service]
        found["region"] = dataclasses.replace(found["region"], default=preset.region, required=preset.region is None)
        names = [name for _, name, _, _ in Formatter().parse(preset.endpoint) if name and name != "region"]
        found.update({name: Field(TextKind(), "A part of the service's address.", required=True) for name in names})
    return found


def _s3(service: str, values: Values) -> Resource:
    from ramet.backends.objects.s3 import S3Config, S3Resource

    return S3Resource(S3Config.of(service, **{name: value for name, value in values.items() if value is not None}))


def _s3_row(service: str, says: str) -> Backend:
    return Backend(says, lambda: _s3_fields(service), lambda values: _s3(service, values))


def _gcs_fields() -> dict[str, Field]:
    from ramet.backends.objects.gcs import GCSConfig

    return fields_of(GCSConfig, secret=GCSConfig.secrets, paths=("service_account_path",))


def _gcs(values: Values) -> Resource:
    from ramet.backends.objects.gcs import GCSConfig, GCSResource

    return GCSResource(GCSConfig(**values))


def _azure_fields() -> dict[str, Field]:
    from ramet.backends.objects.azure import AzureConfig

    return fields_of(AzureConfig, secret=AzureConfig.secrets)


def _azure(values: Values) -> Resource:
    from ramet.backends.objects.azure import AzureConfig, AzureResource

    return AzureResource(AzureConfig(**values))


def _redis(values: Values) -> Resource:
    from ramet.backends.databases.redis import RedisResource

    return RedisResource(**values)


def _ssh_fields() -> dict[str, Field]:
    from ramet.backends.remote.ssh import SSHConfig

    return fields_of(SSHConfig, paths=("known_hosts", "client_keys"))


def _ssh(values: Values) -> Resource:
    from ramet.backends.remote.ssh import SSHConfig, SSHResource

    return SSHResource(SSHConfig(**values))


def _http_fields() -> dict[str, Field]:
    from ramet.backends.remote.http import HTTPConfig

    return fields_of(HTTPConfig, secret=("headers",))


def _http(values: Values) -> Resource:
    from ramet.backends.remote.http import HTTPConfig, HTTPResource

    return HTTPResource(HTTPConfig(**{**values, "headers": values["headers"] or {}}))


def _postgres_fields() -> dict[str, Field]:
    from ramet.backends.databases.postgres import PostgresConfig

    return fields_of(PostgresConfig)


def _postgres(values: Values) -> Resource:
    from ramet.backends.databases.postgres import PostgresConfig, PostgresResource

    return PostgresResource(PostgresConfig(**values))


def _mongo_fields() -> dict[str, Field]:
    from ramet.backends.databases.mongo import MongoConfig

    return fields_of(MongoConfig)


def _mongo(values: Values) -> Resource:
    from ramet.backends.databases.mongo import MongoConfig, MongoResource

    return MongoResource(MongoConfig(**values))


def _mail_fields() -> dict[str, Field]:
    from ramet.backends.remote.mail import MailConfig

    return fields_of(MailConfig, paths=("ca_file",))


def _mail(values: Values) -> Resource:
    from ramet.backends.remote.mail import MailConfig, MailResource

    return MailResource(MailConfig(**values))


def _fsspec(values: Values) -> Resource:
    from ramet.backends.remote.fsspec import FsspecResource

    return FsspecResource(values["url"], values["root"], ttl=values["ttl"], **(values["options"] or {}))


def _service(says: str, module: str, name: str, extra: str = "") -> Backend:
    """A service by the module and the names of its classes."""
    place = f"ramet.backends.services.{module}"

    def fields() -> dict[str, Field]:
        config = getattr(import_module(place), f"{name}Config")
        return fields_of(config, secret=config.secrets, paths=config.paths)

    def make(values: Values) -> Resource:
        module = import_module(place)
        config = getattr(module, f"{name}Config")
        made: Resource = getattr(module, f"{name}Resource")(config(**values))
        return made

    return Backend(says, fields, make, extra or module)


_RAM = {
    "quota": Field(
        NumberKind("size", whole=True),
        "Bytes that it may hold; without it 2 GiB, or a quarter of the memory if that is less.",
    )
}
_DISK = {
    "root": Field(TextKind(path=True), "The directory; relative to the configuration file.", required=True),
    "create": Field(FlagKind(), "Make the directory when it is missing.", True),
    "fsync": Field(ChoiceKind(("never", "file", "full")), "When what was written is forced to the disk.", "never"),
}
_REDIS = {
    "url": Field(TextKind(), "Where it is; a password belongs into a secret.", "redis://localhost:6379/0"),
    "prefix": Field(TextKind(), "Before every key; one tree per prefix.", "ramet"),
    "file_ttl": Field(NumberKind("time", whole=True), "Seconds after which files are forgotten; 0 is never.", 0),
    "ttl": Field(NumberKind("time"), "Seconds for which what was seen may be trusted.", 5.0),
    "timeout": Field(NumberKind("time"), "Seconds without an answer after which it counts as unreachable.", 30.0),
}
_FSSPEC = {
    "url": Field(TextKind(), "Protocol and path, as fsspec writes them.", required=True),
    "root": Field(TextKind(), "A directory below that.", ""),
    "ttl": Field(NumberKind("time"), "Seconds for which what was seen may be trusted.", 5.0),
    "options": Field(MapKind(TextKind()), "What the filesystem's own constructor takes."),
}

BACKENDS: Final[Mapping[str, Backend]] = {
    "ram": Backend("memory", lambda: _RAM, _ram),
    "disk": Backend("a directory of this machine", lambda: _DISK, _disk),
    "s3": _s3_row("aws", "a bucket of Amazon S3, or of any service with `endpoint_url`"),
    "gcs": Backend("a bucket of Google Cloud Storage", _gcs_fields, _gcs),
    "azure": Backend("a container of Azure Blob Storage", _azure_fields, _azure),
    "redis": Backend("a tree in Redis", lambda: _REDIS, _redis, "redis"),
    "ssh": Backend("a directory of another machine", _ssh_fields, _ssh, "ssh"),
    "http": Backend("what a web server offers, to be read", _http_fields, _http, "http"),
    "postgres": Backend("a PostgreSQL database, to be read", _postgres_fields, _postgres, "postgres"),
    "mongo": Backend("the databases of a MongoDB server, to be read", _mongo_fields, _mongo, "mongo"),
    "mail": Backend("a mailbox by IMAP, to be read; letters leave by SMTP", _mail_fields, _mail),
    "github": _service(
        "a repository on GitHub: code, issues, pull requests, releases", "github.repository", "GitHub", "github"
    ),
    "github_ci": _service("the workflow runs of a repository on GitHub", "github.ci", "GitHubCI", "github"),
    "gsheets": _service("the spreadsheets of Google Sheets", "google.sheets", "GoogleSheets", "gsheets"),
    "gslides": _service("the presentations of Google Slides", "google.slides", "GoogleSlides", "gslides"),
    "gdocs": _service("the documents of Google Docs", "google.docs", "GoogleDocs", "gdocs"),
    "gmail": _service("a mailbox of Gmail", "google.gmail", "Gmail", "gmail"),
    "gdrive": _service("a Google Drive", "google.drive", "GoogleDrive", "gdrive"),
    "linear": _service("the teams of Linear: issues, projects, documents", "linear.workspace", "Linear", "linear"),
    "notion": _service("the pages and databases of a Notion workspace", "notion.workspace", "Notion", "notion"),
    "slack": _service("the channels of a Slack workspace, by day", "slack.workspace", "Slack", "slack"),
    "trello": _service("the boards of Trello: lists, cards, comments", "trello", "Trello"),
    "discord": _service("the servers that a Discord bot is in, by channel and day", "discord", "Discord"),
    "telegram": _service("the inbox of a Telegram bot, by chat and day", "telegram", "Telegram"),
    "langfuse": _service(
        "a project of Langfuse: traces, prompts, datasets", "langfuse.project", "Langfuse", "langfuse"
    ),
    "paperclip": _service("papers of bioRxiv, medRxiv and PubMed Central, to be read", "paperclip", "Paperclip"),
    "fsspec": Backend("any fsspec filesystem", lambda: _FSSPEC, _fsspec, "fsspec"),
    "backblaze": _s3_row("backblaze", "a bucket of Backblaze B2"),
    "digitalocean": _s3_row("digitalocean", "a Space of DigitalOcean"),
    "hetzner": _s3_row("hetzner", "a bucket of Hetzner"),
    "ibm": _s3_row("ibm", "a bucket of IBM Cloud"),
    "linode": _s3_row("linode", "a bucket of Linode"),
    "minio": _s3_row("minio", "a bucket of a MinIO server"),
    "oci": _s3_row("oci", "a bucket of Oracle Cloud"),
    "ovh": _s3_row("ovh", "a bucket of OVHcloud"),
    "r2": _s3_row("r2", "a bucket of Cloudflare R2"),
    "scaleway": _s3_row("scaleway", "a bucket of Scaleway"),
    "supabase": _s3_row("supabase", "a bucket of Supabase"),
    "tigris": _s3_row("tigris", "a bucket of Tigris"),
    "wasabi": _s3_row("wasabi", "a bucket of Wasabi"),
}


def import_reference(reference: str) -> Any:
    """Import `package.module:name`."""
    module, _, name = reference.partition(":")
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise RametError("invalid_config", f"cannot import {reference}: {error}", "check the name") from None
    return found
