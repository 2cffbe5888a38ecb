"""What a snapshot saves of every backend: type, config, what is redacted, and whether loading needs it again."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ramet import Workspace
from ramet import backends as b
from ramet.backends import RAMResource
from ramet.core.resource import Resource
from ramet.workspace.snapshot.archive import read_tar

SECRET = "hunter2hunter2"


@dataclass(frozen=True)
class Row:
    prefix: str
    type: str
    make: Callable[[], Resource]
    saved: dict[str, Any]
    redacted: tuple[str, ...] = ()
    needs_override: bool = True


def google(name: str) -> Callable[[], Resource]:
    given = {"client_id": "me.apps", "client_secret": SECRET, "refresh_token": SECRET}
    return lambda: getattr(b, f"{name}Resource")(getattr(b, f"{name}Config")(**given))


def s3(service: str, **place: str) -> Callable[[], Resource]:
    given: Any = {**place, "aws_access_key_id": SECRET, "aws_secret_access_key": SECRET}
    return lambda: b.S3Resource(b.S3Config.of(service, bucket="data", **given))


KEYS = ("aws_access_key_id", "aws_secret_access_key")
REPOSITORY: dict[str, Any] = {"owner": "octocat", "repo": "hello"}
TOKENS = ("client_secret", "refresh_token")
ROWS = [
    Row("/ram", "ram", RAMResource, {}, needs_override=False),
    Row("/disk", "disk", b.DiskResource.temporary, {}, needs_override=False),
    Row("/redis", "redis", lambda: b.RedisResource(f"redis://:{SECRET}@prod:6379/0"), {"prefix": "ramet"}, ("url",)),
    Row("/s3", "s3", s3("aws", region="eu-central-1"), {"bucket": "data", "region": "eu-central-1"}, KEYS),
    Row("/r2", "r2", s3("r2", account="0123456789abcdef0123456789abcdef"), {"bucket": "data"}, KEYS),
    Row("/oci", "oci", s3("oci", namespace="ns", region="eu-frankfurt-1"), {"bucket": "data"}, KEYS),
    Row("/supabase", "supabase", s3("supabase", project="abc", region="eu-central-1"), {"bucket": "data"}, KEYS),
    Row("/gcs", "gcs", lambda: b.GCSResource(b.GCSConfig(bucket="data", bearer_token=SECRET)), {"bucket": "data"},
        ("bearer_token",)),
    Row("/gdrive", "gdrive", google("GoogleDrive"), {"client_id": "me.apps"}, TOKENS),
    Row("/gmail", "gmail", google("Gmail"), {"client_id": "me.apps"}, TOKENS),
    *(
        Row(f"/{kind}", kind, google(name), {"client_id": "me.apps"}, TOKENS)
        for kind, name in (("gdocs", "GoogleDocs"), ("gsheets", "GoogleSheets"), ("gslides", "GoogleSlides"))
        if f"{name}Resource" in b.__all__
    ),
    Row("/slack", "slack", lambda: b.SlackResource(b.SlackConfig(token=SECRET, search_token=SECRET)),
        {"base_url": "https://slack.com/api"}, ("token", "search_token")),
    Row("/discord", "discord", lambda: b.DiscordResource(b.DiscordConfig(token=SECRET, guild_ids=("1",))),
        {"guild_ids": ["1"]}, ("token",)),
    Row("/telegram", "telegram", lambda: b.TelegramResource(b.TelegramConfig(token=SECRET)),
        {"base_url": "https://api.telegram.org"}, ("token",)),
    Row("/notion", "notion", lambda: b.NotionResource(b.NotionConfig(api_key=SECRET)),
        {"base_url": "https://api.notion.com/v1"}, ("api_key",)),
    Row("/linear", "linear", lambda: b.LinearResource(b.LinearConfig(api_key=SECRET, team_ids=("ENG",))),
        {"team_ids": ["ENG"]}, ("api_key",)),
    Row("/trello", "trello", lambda: b.TrelloResource(b.TrelloConfig(api_key=SECRET, api_token=SECRET)),
        {"base_url": "https://api.trello.com/1"}, ("api_key", "api_token")),
    Row("/github", "github", lambda: b.GitHubResource(b.GitHubConfig(token=SECRET, **REPOSITORY)), REPOSITORY,
        ("token",)),
    Row("/github_ci", "github_ci", lambda: b.GitHubCIResource(b.GitHubCIConfig(token=SECRET, **REPOSITORY)), REPOSITORY,
        ("token",)),
    Row("/email", "mail", lambda: b.MailResource(b.MailConfig(host="imap.example.com", username="ada",
                                                              password_env="MAIL_PASSWORD")),
        {"host": "imap.example.com", "password_env": "MAIL_PASSWORD"}),
    Row("/langfuse", "langfuse", lambda: b.LangfuseResource(b.LangfuseConfig(public_key="pk-lf-1", secret_key=SECRET)),
        {"public_key": "pk-lf-1"}, ("secret_key",)),
    Row("/mongodb", "mongo", lambda: b.MongoResource(b.MongoConfig(url=f"mongodb://ada:{SECRET}@db.example.com")), {},
        ("url",)),
    Row("/ssh", "ssh", lambda: b.SSHResource(b.SSHConfig(host="build.example.com", username="ci", root="/srv",
                                                         client_keys=("/home/ci/.ssh/id_hunter2hunter2",))),
        {"host": "build.example.com", "username": "ci", "root": "/srv"}, ("client_keys",), needs_override=False),
    Row("/paperclip", "paperclip", lambda: b.PaperclipResource(b.PaperclipConfig()),
        {"credentials_path": "~/.paperclip/credentials.json"}, needs_override=False),
]  # fmt: skip
NEEDED = sorted(row.prefix for row in ROWS if row.needs_override)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One snapshot of all backends; Redis, whose content a snapshot holds, is an empty one."""
    path = tmp_path_factory.mktemp("policy") / "snap.tar"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(b.RedisResource, "dump", lambda self: iter(()))
        ws = Workspace({row.prefix: row.make() for row in ROWS})
        ws.snapshot(path)
    yield path


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.prefix[1:])
def test_what_is_saved_of_a_backend(saved: Path, row: Row) -> None:
    opened = read_tar(saved)
    opened.close()
    mount = next(one for one in opened.manifest["mounts"] if one["prefix"] == row.prefix)
    assert mount["type"] == row.type and mount["needs_override"] is row.needs_override
    assert sorted(mount["redacted_fields"]) == sorted(row.redacted)
    config = mount["config"]
    assert {name: config.get(name) for name in row.saved} == row.saved
    assert all("<REDACTED>" in str(config[name]) or config[name] == [] for name in row.redacted), config


def test_no_secret_is_anywhere_in_the_snapshot(saved: Path) -> None:
    assert SECRET.encode() not in saved.read_bytes()
    with tarfile.open(saved) as tar:
        for member in tar:
            found = tar.extractfile(member)
            assert found is None or SECRET.encode() not in found.read(), member.name


def test_all_that_is_missing_is_named_at_once(saved: Path) -> None:
    with pytest.raises(ValueError) as caught:
        Workspace.load(saved)
    words, _, rest = str(caught.value).partition("[")
    named, _, advice = rest.partition("]")
    assert words == "Workspace.load: resources= must include overrides for: "
    assert sorted(named.replace("'", "").split(", ")) == NEEDED
    assert advice == (
        ". These mounts were saved with redacted creds or transient connection state and need fresh resources."
    )


@pytest.mark.parametrize("prefix", NEEDED)
def test_one_that_is_missing_is_named(saved: Path, prefix: str) -> None:
    given = {row.prefix: RAMResource() for row in ROWS if row.needs_override and row.prefix != prefix}
    with pytest.raises(ValueError, match=rf"must include overrides for: \['{prefix}'\]"):
        Workspace.load(saved, resources=given)


def test_with_the_rest_given_everything_loads(saved: Path) -> None:
    given = {row.prefix: row.make() for row in ROWS if row.needs_override}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(b.RedisResource, "restore", lambda self, items: None)
        ws = Workspace.load(saved, resources=given)
    shown = repr(ws.mounts())
    assert all(f"{row.prefix}" in shown for row in ROWS) and SECRET not in shown
    kinds = {type(row.make()).__name__ for row in ROWS if not row.needs_override}
    assert kinds == {"RAMResource", "DiskResource", "SSHResource", "PaperclipResource"}


def test_a_paperclip_with_an_address_of_its_own_is_not_trusted(tmp_path: Path) -> None:
    """Else a snapshot could send the credentials of the one who loads it anywhere."""
    config = b.PaperclipConfig(base_url="https://evil.example.com")
    Workspace({"/p": b.PaperclipResource(config)}).snapshot(tmp_path / "snap.tar")
    with pytest.raises(ValueError, match=r"overrides for: \['/p'\]"):
        Workspace.load(tmp_path / "snap.tar")
