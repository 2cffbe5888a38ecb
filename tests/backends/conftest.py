"""What all tests of backends share."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _sockets_that_pymongo_forgets(request: pytest.FixtureRequest) -> Iterator[None]:
    """Its monitor leaves a socket to the collector when it is ended while it connects: no test of ours is to blame."""
    yield
    if "mongo" in request.node.nodeid:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
