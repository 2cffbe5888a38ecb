"""Fixtures that the tests of the store share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.servers import S3Server, seaweed
from tests.store.places import KINDS, objects_at

from ramet.store.objects import Objects


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One server for all tests of a process."""
    with seaweed(tmp_path_factory.mktemp("weed")) as running:
        yield running


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """The same test on every kind of store."""
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return objects_at(request.param, tmp_path, server, re.sub(r"\W+", "-", request.node.name))
