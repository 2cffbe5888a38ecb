"""Settings that all tests share."""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.store.places import KINDS, objects_at
from tests.support import descriptions
from tests.support.servers import S3Server, seaweed

from ramet.store.objects.objects import Objects

# Shared machines are slow at times: how long an example takes says nothing about what it shows.
settings.register_profile("ramet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ramet")

# Collecting tests makes a million objects that all stay: nobody looks for garbage among them, then or later.
gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.collect()
    gc.freeze()


_unfreeze, _unfrozen = gc.unfreeze, False


def _noted() -> None:
    global _unfrozen
    _unfreeze()
    _unfrozen = True


gc.unfreeze = _noted  # a server does so when it ends


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    global _unfrozen
    if _unfrozen:
        gc.collect(1)
        gc.freeze()
        _unfrozen = False


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was skipped and why."""
    reasons = Counter(
        re.sub(
            r"^the resource does not claim .*", "capability not claimed", report.longrepr[2].removeprefix("Skipped: ")
        )
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        listed = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"SKIPPED {reasons.total()}: {listed}")
    asked = any("services/" in report.nodeid for report in terminalreporter.stats.get("passed", ()))
    if asked and (unchecked := descriptions.missing()):
        names = ", ".join(unchecked)
        terminalreporter.write_line(f"NOT CHECKED against the vendor's description (make descriptions): {names}")


@pytest.fixture(scope="session")
def weed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server that speaks S3, for all tests of a process: it takes seconds to start. Each has a prefix of its own."""
    with seaweed(tmp_path_factory.mktemp("weed")) as running:
        yield running


@pytest.fixture
def s3(weed: S3Server) -> S3Server:
    return weed


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """The same test on every kind of store."""
    server = request.getfixturevalue("s3") if request.param == "s3" else None
    return objects_at(request.param, tmp_path, server, re.sub(r"\W+", "-", request.node.name))
