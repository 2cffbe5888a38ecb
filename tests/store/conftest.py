"""Fixtures that the tests of the store share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.servers import S3Server
from tests.store.places import KINDS, objects_at

from ramet.store.objects.objects import Objects


@pytest.fixture
def s3(weed: S3Server) -> S3Server:
    return weed


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """The same test on every kind of store."""
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return objects_at(request.param, tmp_path, server, re.sub(r"\W+", "-", request.node.name))
