"""Drafts: what a call changed which has returned survives a kill of the process, and only that is different.

`RAMET_DRAFT_KILLS=500` kills five hundred sandboxes on each kind of store; without it a few dozen.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.servers import S3Server
from tests.store.drafters import allowed, files_of
from tests.store.faults import Countdown, Nursery, objects_of

from ramet import AgentRun, Store

KILLS = int(os.environ.get("RAMET_DRAFT_KILLS", "0"))
SEED = int(os.environ.get("RAMET_FAULTS_SEED", "1"))


def check(place: dict[str, Any]) -> Store:
    """What was acknowledged is there, once, and nothing else is left."""
    store = Store(objects_of(place, Countdown(None)))
    sandbox = AgentRun(store=store).sandbox(workspace="w", wait=10)
    found = files_of(sandbox)
    assert found in allowed(place["folder"]), "what was acknowledged is there"
    sandbox.terminate()
    assert store.ls() == ["w"], "nobody else was at work, so nothing went aside"
    assert not list(store.repository.objects.list("drafts/"))
    report = store.verify()
    assert report.ok, [str(damage) for damage in report.damages]
    kinds = Counter(entry.kind for entry in store.repository.refs.history("w"))
    assert all(count == 1 for kind, count in kinds.items() if kind.startswith("recover:")), kinds
    return store


@pytest.mark.timeout(KILLS * 5 or 120)
@pytest.mark.parametrize("kind", ["directory", "encrypted", "s3"])
def test_no_kill_loses_what_was_acknowledged(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rng = random.Random(f"{kind}-{SEED}")
    wanted = KILLS or {"directory": 40, "encrypted": 14, "s3": 8}[kind]
    place: dict[str, Any] = {"root": str(tmp_path / "store"), "encrypted": kind if kind == "encrypted" else ""}
    if kind == "s3":
        server: S3Server = request.getfixturevalue("s3")
        place = {
            "bucket": server.bucket, "endpoint": server.endpoint, "key": server.key, "secret": server.secret,
            "region": server.region, "prefix": f"drafts/{tmp_path.name}",
        }  # fmt: skip
    place["folder"] = str(tmp_path)
    Store(objects_of(place, Countdown(None))).create("w")
    with Nursery() as nursery:
        for number in range(wanted):
            worker: dict[str, Any] = {"seed": rng.randrange(1 << 30)}
            worker.update({"left": rng.randrange(70)} if rng.random() < 0.7 else {"delay": rng.random() * 0.3})
            assert nursery.run(place, [worker], "drafter")[0] in (0, -9), "it fails by being killed, or not at all"
            if number % 10 == 9:
                check(place)
    store = check(place)
    recovered = sum(revision.message.startswith("recovered") for revision in store["w"].log())
    assert recovered, "some of them had something to lose"
    if KILLS:
        print(f"{kind}: {wanted} killed, {recovered} recovered", flush=True)
