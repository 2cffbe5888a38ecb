"""GCSResource keeps the contract of a resource against a server written after the published XML API."""

from __future__ import annotations

import asyncio
import errno
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.gcs_server import BUCKET, TOKEN, gcs_server

from ramet.backends.objects.azure import AzureConfig, AzureResource
from ramet.backends.objects.gcs import GCSConfig, GCSResource
from ramet.core import ops
from ramet.core.errors import RametError
from ramet.core.paths import parse
from ramet.layers.stack import Policy, build
from ramet.testing import CHECKS, Check, refused, run_check

P = parse


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with gcs_server() as address:
        yield address


def test_wrong_credentials_are_told_in_one_line() -> None:
    with pytest.raises(RametError, match=r"gcs bucket 'b': .*missing\.json: No such file") as told:
        GCSResource(GCSConfig(bucket="b", service_account_path="missing.json"))
    assert "\n" not in told.value.cause and told.value.code == "invalid_config"
    with pytest.raises(RametError, match="SAS") as hidden:
        AzureResource(AzureConfig(bucket="b", account="a", sas_token="sig-secret"))
    assert "sig-secret" not in str(hidden.value)


def make(endpoint: str, prefix: str = "", **more: str) -> GCSResource:
    given: dict[str, Any] = {"bucket": BUCKET, "bearer_token": TOKEN, **more}
    return GCSResource(GCSConfig(endpoint_url=endpoint, prefix=prefix or uuid.uuid4().hex, **given))


@pytest.mark.parametrize("mounted", [False, True])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, mounted: bool, endpoint: str) -> None:
    run_check(check, lambda: build(make(endpoint), Policy()) if mounted else make(endpoint), pytest.skip)


def test_a_condition_is_a_generation(endpoint: str) -> None:
    async def act() -> None:
        prefix = uuid.uuid4().hex
        mine, theirs = make(endpoint, prefix), make(endpoint, prefix)
        first = await mine.write(P("/f"), b"one")
        second = await theirs.write(P("/f"), b"two", if_version=first.version)
        with refused(errno.ESTALE):
            await mine.write(P("/f"), b"lost update", if_version=first.version)
        assert await ops.read_bytes(mine, P("/f")) == b"two"
        await mine.write(P("/f"), b"three", if_version=second.version)

    asyncio.run(act())


@pytest.mark.parametrize(("more", "said"), [
    ({"bucket": "nosuch"}, "does not exist"), ({"bearer_token": "wrong"}, "refuses these credentials"),
])  # fmt: skip
def test_errors_say_what_is_wrong(more: dict[str, str], said: str, endpoint: str) -> None:
    async def act() -> None:
        with pytest.raises(OSError, match=said):
            await ops.read_bytes(make(endpoint, **more), P("/f"))

    asyncio.run(act())
