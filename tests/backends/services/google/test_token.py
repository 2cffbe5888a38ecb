"""Access to Google: renewals, service accounts, functions, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.drive_fake import DriveFake
from tests.support.google_fake import CLIENT, REFRESH, SECRET
from tests.support.service_fake import Reply

from ramet.backends import GoogleDriveConfig, GoogleDriveResource
from ramet.core.errors import RametError
from ramet.core.paths import Path as At

MINE = At("/My Drive")


@pytest.fixture
def drive() -> Iterator[DriveFake]:
    with DriveFake() as running:
        running.add("a.txt", b"a")
        yield running


def listed(drive: DriveFake, times: int = 1, token: Any = None, **settings: Any) -> list[str]:
    async def act() -> list[str]:
        config = GoogleDriveConfig(
            base_url=drive.base, token_url=f"{drive.base}/token", private=True, ttl=0, **settings
        )
        resource = GoogleDriveResource(config, token=token)
        try:
            for _ in range(times):
                found = await asyncio.gather(*(_names(resource) for _ in range(4)))
            return found[0]
        finally:
            await resource.close()

    return asyncio.run(act())


async def _names(resource: GoogleDriveResource) -> list[str]:
    return [name async for name, _ in resource.scan(MINE)]


USER: dict[str, Any] = {"client_id": CLIENT, "client_secret": SECRET, "refresh_token": REFRESH}


def test_a_refresh_token_is_used_once_for_all(drive: DriveFake) -> None:
    assert listed(drive, 3, **USER) == ["a.txt"] and len(drive.grants) == 1


def test_secrets_in_variables(drive: DriveFake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("G_SECRET", SECRET)
    monkeypatch.setenv("G_REFRESH", REFRESH)
    given: dict[str, Any] = {"client_id": CLIENT, "client_secret_env": "G_SECRET", "refresh_token_env": "G_REFRESH"}
    assert listed(drive, **given) == ["a.txt"]
    monkeypatch.delenv("G_SECRET")
    with pytest.raises(PermissionError, match="the environment variable G_SECRET is not set"):
        listed(drive, **given)


def test_a_token_that_ends_is_renewed_before(drive: DriveFake) -> None:
    drive.lasts = 59  # less than the minute before its end at which a token is renewed
    listed(drive, 2, **USER)
    assert len(drive.grants) > 2 and 401 not in drive.statuses


def test_a_refused_token_is_renewed_once(drive: DriveFake) -> None:
    drive.fault("GET", "/files/root", Reply(401, {"error": {"code": 401, "message": "expired"}}))
    assert listed(drive, **USER) == ["a.txt"] and len(drive.grants) == 2


def test_an_access_token_or_a_function(drive: DriveFake) -> None:
    assert listed(drive, access_token="given") == ["a.txt"]
    assert listed(drive, token=lambda: "given") == ["a.txt"]
    with pytest.raises(PermissionError, match="refuses the token"):
        listed(drive, access_token="old")
    with pytest.raises(PermissionError, match="there is no token; set refresh_token"):
        listed(drive)


@pytest.fixture
def account(tmp_path: Path) -> tuple[Path, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    file = tmp_path / "key.json"
    info = {"type": "service_account", "client_email": "robot@example.org", "private_key": text,
            "private_key_id": "k1", "token_uri": "https://elsewhere.example.org/token"}  # fmt: skip
    file.write_text(json.dumps(info))
    return file, key.public_key()


def test_a_service_account_acts_for_a_user(drive: DriveFake, account: tuple[Path, Any]) -> None:
    file, key = account
    assert listed(drive, service_account_file=str(file), subject="ada@example.org") == ["a.txt"]
    (form,) = drive.grants
    claims = jwt.decode(form["assertion"], key, algorithms=["RS256"], audience="https://oauth2.googleapis.com/token")
    assert claims["sub"] == "ada@example.org" and claims["iss"] == "robot@example.org"
    assert claims["scope"] == "https://www.googleapis.com/auth/drive"


def test_a_service_account_that_is_refused(drive: DriveFake, account: tuple[Path, Any], tmp_path: Path) -> None:
    drive.grant = Reply(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})
    with pytest.raises(PermissionError, match=r"refuses the service account: .*invalid_grant.*look at its key"):
        listed(drive, service_account_file=str(account[0]))
    broken = tmp_path / "broken.json"
    broken.write_text('{"private_key": "hunter2"}')
    with pytest.raises(PermissionError, match="is not the key of a service account; make a JSON key") as refused:
        listed(drive, service_account_file=str(broken))
    assert "hunter2" not in str(refused.value)
    with pytest.raises(PermissionError, match="cannot be read: No such file"):
        listed(drive, service_account_file=str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"refresh_token": "r"}, "a refresh_token and no client_id"),
        ({**USER, "access_token": "a"}, "refresh_token and access_token"),
        ({"subject": "ada@example.org"}, "a subject and no service_account_file"),
        ({"client_secret": "a", "client_secret_env": "B"}, "both client_secret and client_secret_env"),
        ({"export": "odt"}, "cannot export 'odt'"),
        ({"folder_id": "a b"}, "cannot be one"),
        ({"token_url": "nowhere"}, "is not an address"),
    ],
)
def test_what_cannot_work_is_refused_at_once(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(RametError, match=words):
        GoogleDriveConfig(**settings)
