"""S3Resource keeps the contract of a resource against a real S3 server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from tests.servers import S3Server, seaweed

from ramet.backends.s3 import S3Config, S3Resource
from ramet.layers.stack import Policy, build
from ramet.testing import CHECKS, Check, run_check


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweed(tmp_path_factory.mktemp("seaweed")) as running:
        yield running


def make(server: S3Server, prefix: str) -> S3Resource:
    return S3Resource(
        S3Config.of("minio", endpoint=server.endpoint, bucket=server.bucket, prefix=prefix,
                    aws_access_key_id=server.key, aws_secret_access_key=server.secret)
    )  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract(check: Check, server: S3Server) -> None:
    run_check(check, lambda: make(server, uuid.uuid4().hex), pytest.skip)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_contract_as_it_is_mounted(check: Check, server: S3Server) -> None:
    run_check(check, lambda: build(make(server, uuid.uuid4().hex), Policy()), pytest.skip)
