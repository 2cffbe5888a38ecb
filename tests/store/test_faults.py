"""Processes that are killed at any point of any verb lose nothing that was acknowledged, and leave no hole.

`RAMET_FAULTS=1000` kills a thousand on each kind of store; without it a few dozen.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.store.faults import Countdown, Nursery, objects_of
from tests.store.gc.test_collect import big, write
from tests.store.refs.test_refs import Dying, Killed
from tests.support.servers import S3Server

from ramet import Store
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import MemoryObjects
from ramet.store.refs.retention import Retention
from ramet.workspace.stored.events import JsonLines
from ramet.workspace.stored.git_push import Push, pending_pushes, record_push, run_push

KILLS = int(os.environ.get("RAMET_FAULTS", "0"))
PER_STORE = 40
SEED = int(os.environ.get("RAMET_FAULTS_SEED", "1"))


class Scene:
    """One store on which workers die, and what must be true of it afterwards."""

    def __init__(self, place: dict[str, Any], folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        bare = folder / "there.git"
        subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
        self.place = {**place, "folder": str(folder), "git": str(bare)}
        self.git = bare
        store = self.store()
        for name in ("kept", "limited", "pushed"):
            store.create(name)
        store.retention(Retention(keep_last=2), "limited")
        asyncio.run(_begin(store))
        asyncio.run(store.deliver(JsonLines(f"{folder}/events"), "sink"))

    def store(self) -> Store:
        return Store(objects_of(self.place, Countdown(None)))

    def told(self) -> list[dict[str, Any]]:
        path = self.folder / "told"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def check(self) -> None:
        """Everything that was acknowledged holds, and everything that holds can be read."""
        store = self.store()
        report = store.verify()
        assert report.ok, [str(damage) for damage in report.damages]
        repository = store.repository
        removed = {told["workspace"] for told in self.told() if told["what"] == "remove"}
        for told in self.told():
            name = told["workspace"]
            if told["what"] == "remove" or name in removed:
                continue
            identity = RevisionId(bytes.fromhex(told["revision"]))
            if told["what"] != "tag":
                assert repository.committed(name, identity), told
            if name == "kept" or (told["what"] == "fork" and name not in removed):
                assert identity in {revision.id for revision in store[name].log()}, told
        for name in store.ls():
            head = store[name].head
            assert head is None or repository.is_whole(head), name
            for tag in store[name].tags():
                assert repository.is_whole(repository.read_revision(tag.target)), tag

    def end(self) -> None:
        """What was written down to be told and pushed is, after one more try."""
        self.check()
        store = self.store()
        store.gc(grace=0)
        self.check()
        asyncio.run(store.deliver(JsonLines(f"{self.folder}/events"), "sink"))
        lines = [json.loads(line) for line in (self.folder / "events").read_text().splitlines()]
        envelopes: dict[str, dict[str, Any]] = {}
        for line in lines:
            assert envelopes.setdefault(line["id"], line) == line, "an id stands for one event, however often it comes"
        happened = {event.id for event in asyncio.run(_events(store))}
        assert happened == set(envelopes), happened ^ set(envelopes)
        for push in pending_pushes(store.repository):
            run_push(store.repository, push, {})
        assert not pending_pushes(store.repository)
        refs = subprocess.run(["git", "-C", str(self.git), "for-each-ref"], check=True, capture_output=True, text=True)
        for told in self.told():
            if told["what"] == "push":
                assert f"refs/heads/{told['branch']}" in refs.stdout


async def _begin(store: Store) -> None:
    for name in ("kept", "limited"):
        async with store.open(name) as ws:
            await ws.execute("echo begin > /f0")


async def _events(store: Store) -> list[Any]:
    return [event async for event in store.events()]


def kills(scene: Scene, nursery: Nursery, number: int, rng: random.Random, every: int) -> Counter[str]:
    """Kill so many workers; some work in pairs, half die at a write and half at any time."""
    counted: Counter[str] = Counter()
    while counted["killed"] < number:
        workers: list[dict[str, Any]] = []
        for _ in range(rng.choice([1, 1, 2])):
            worker: dict[str, Any] = {"seed": rng.randrange(1 << 30)}
            worker.update({"left": rng.randrange(90)} if rng.random() < 0.5 else {"delay": rng.random() * 0.4})
            workers.append(worker)
        for status in nursery.run(scene.place, workers):
            assert status in (0, -9), "a worker fails by being killed, or not at all"
            counted["killed" if status else "finished"] += 1
        counted["rounds"] += 1
        if counted["rounds"] % every == 0:
            scene.check()
    scene.end()
    return counted


@pytest.mark.timeout(KILLS * 10 or 300)
@pytest.mark.parametrize("kind", ["directory", "encrypted", "s3"])
def test_no_kill_loses_anything(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rng = random.Random(f"{kind}-{SEED}")
    wanted = KILLS or {"directory": 16, "encrypted": 8, "s3": 6}[kind]
    done = 0
    with Nursery() as nursery:
        while done < wanted:
            number = min(PER_STORE, wanted - done)
            folder = tmp_path / str(done)
            if kind == "s3":
                server: S3Server = request.getfixturevalue("s3")
                place = {
                    "bucket": server.bucket, "endpoint": server.endpoint, "key": server.key, "secret": server.secret,
                    "region": server.region, "prefix": f"faults/{tmp_path.name}-{done}",
                }  # fmt: skip
            else:
                place = {"root": str(tmp_path / f"store-{done}"), "encrypted": kind if kind == "encrypted" else ""}
            counted = kills(Scene(place, folder), nursery, number, rng, 5)
            done += counted["killed"]
            if KILLS:
                print(f"{kind}: {done} killed", dict(counted), flush=True)


def test_death_at_every_write_of_a_collection_and_of_a_commit_with_a_push() -> None:
    """As above, at each write one after the other, in memory: after every one of them the store is whole."""
    objects = MemoryObjects()
    store = Store(objects)
    for name in ("w", "gone"):
        write(store, name, big("/a", 1, 20_000), f"{big('/b', 2, 4_000)}; rm /a", "echo 3 > /c")
    store["w"].tag("t", "2")
    store.rm("gone")
    store.retention(Retention(keep_last=1))
    noted: list[str] = []

    async def terminate(store: Store) -> None:
        async with store.open("w", commit="never") as ws:
            await ws.execute("echo 4 > /d")

            def noting(revision: Revision) -> None:
                noted.append(revision.id.hex())
                record_push(store.repository, Push("w", revision.id.hex(), "https://there/x", "b", ("/",), "u", None))

            await ws.commit("four", noting=noting)

    for number in range(500):
        dying = Dying(dict(objects._objects), number)
        noted.clear()
        died = True
        try:
            mortal = Store(dying)
            mortal.gc(grace=0)
            asyncio.run(terminate(mortal))
            mortal.gc(grace=0)
            died = False
        except Killed:
            pass
        left = MemoryObjects()
        left._objects.update(dying._objects)
        later = Store(left, clock=lambda: time.time() + 3600)
        report = later.verify()
        assert report.ok, (number, [str(damage) for damage in report.damages])
        head = later.find("w")
        assert head.seq in (3, 4) and b"".join(later["w"].show("/c")) == b"3\n"
        pushes = [push.revision for push in pending_pushes(later.repository)]
        assert pushes == (noted if head.seq == 4 else []), "a push holds if and only if its revision does"
        later.gc(grace=0)
        assert later.verify().ok and b"".join(later["w"].show("/b", "t")) != b""
        assert [push.revision for push in pending_pushes(later.repository)] == pushes
        for hours in (2, 3, 4):  # a pack without an index waits: its writer may be at work
            last = Store(left, clock=lambda: time.time() + 3600 * hours)  # noqa: B023  # it is used in this round
            last.gc(grace=0)
        assert not last.repository.gc_log.now().doomed, number
        if not died:
            break
    assert number > 40
