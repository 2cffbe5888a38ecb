"""Processes that work on a store and die: what the tests of faults start.

A nursery is a process without threads that forks a worker for each line it is told, kills it at a random time or lets
it kill itself at a given write, and says what became of it. What a worker was told to be durable it writes to a file.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ramet import AgentRun, RametError, Store
from ramet.store.crypto.encrypted_objects import open_encrypted
from ramet.store.gc import consolidate as joining
from ramet.store.objects.objects import DirectoryObjects, Objects, ObstoreObjects
from ramet.workspace.stored.events import JsonLines
from ramet.workspace.stored.git_push import GitSettings

KEY = bytes(range(32))
OPERATIONS = 6
FORKS = 6
BUSY = frozenset({"workspace_busy", "head_moved", "lease_lost", "workspace_exists", "workspace_not_found",
                  "content_collected", "revision_expired", "revision_not_committed"})  # fmt: skip
"""What may happen to one who works beside others."""


class Countdown:
    """Ends the process, as `kill -9` does, when it was asked often enough."""

    def __init__(self, left: int | None) -> None:
        self.left = left

    def step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


class MortalDirectory(DirectoryObjects):
    """A directory whose writer may die before, inside and after each write."""

    def __init__(self, root: str, countdown: Countdown) -> None:
        super().__init__(root, sync=False)
        self._countdown = countdown

    def _write_temporary(self, key: str, data: bytes, sync: bool = True) -> str:
        self._countdown.step()
        temporary = super()._write_temporary(key, data, sync)
        self._countdown.step()
        return temporary

    def _sync_parent(self, key: str) -> None:
        self._countdown.step()

    def _unlink(self, key: str) -> bool:
        self._countdown.step()
        return super()._unlink(key)


class MortalBucket(ObstoreObjects):
    """A bucket whose writer may die before and after each write."""

    countdown = Countdown(None)

    def put(self, key: str, data: bytes) -> None:
        self.countdown.step()
        super().put(key, data)
        self.countdown.step()

    def create(self, key: str, data: bytes) -> bool:
        self.countdown.step()
        done = super().create(key, data)
        self.countdown.step()
        return done

    def delete(self, key: str) -> None:
        self.countdown.step()
        super().delete(key)


def objects_of(place: dict[str, Any], countdown: Countdown) -> Objects:
    if "root" in place:
        directory = MortalDirectory(place["root"], countdown)
        return open_encrypted(directory, KEY) if place.get("encrypted") else directory
    from obstore.store import S3Store

    store = S3Store(
        place["bucket"], endpoint=place["endpoint"], access_key_id=place["key"], secret_access_key=place["secret"],
        region=place["region"], virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip
    made = MortalBucket(store, place["prefix"])
    made.countdown = countdown
    return made


class Worker:
    """Does a few things that one seed chooses, and writes down what it was told to be done."""

    def __init__(self, place: dict[str, Any], seed: int, left: int | None) -> None:
        self.rng, self.seed, self.number = random.Random(seed), seed, 0
        self.folder = place["folder"]
        self.store = Store(objects_of(place, Countdown(left)))
        self.git = place.get("git", "")

    def told(self, **what: Any) -> None:
        line = json.dumps(what).encode() + b"\n"
        fd = os.open(f"{self.folder}/told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, line)
        os.close(fd)

    def run(self) -> None:
        acts: list[tuple[int, Callable[[], None]]] = [
            (5, self.commit), (2, self.fork), (1, self.remove), (2, self.collect), (2, self.deliver), (1, self.tag),
            (3, self.join),
            (1 if self.git else 0, self.push),
        ]  # fmt: skip
        for _ in range(OPERATIONS):
            self.number += 1
            (act,) = self.rng.choices([act for _, act in acts], [weight for weight, _ in acts])
            try:
                act()
            except RametError as error:
                if error.code not in BUSY:
                    raise

    def commit(self) -> None:
        name = self.rng.choice(["kept", "limited", *(n for n in self.store.ls() if n.startswith("f-"))])
        text = self.rng.randbytes(self.rng.choice([10, 2000, 30_000])).hex()

        async def act() -> None:
            async with self.store.open(name, wait=2, commit="never") as ws:
                await ws.execute(f"printf %s {text} > /f{self.rng.randrange(4)}")
                made = await ws.commit(f"{self.seed}.{self.number}")
                self.told(what="commit", workspace=name, revision=made.id.hex())

        asyncio.run(act())

    def fork(self) -> None:
        if sum(name.startswith("f-") for name in self.store.ls()) >= FORKS:
            return
        name = f"f-{self.seed}-{self.number}"
        made = self.store[self.rng.choice(["kept", "limited"])].fork(None, name)
        self.told(what="fork", workspace=name, revision=made.id.hex())

    def remove(self) -> None:
        forks = [name for name in self.store.ls() if name.startswith("f-")]
        if forks:
            name = self.rng.choice(forks)
            self.told(what="remove", workspace=name)  # from here on it may be gone
            self.store.rm(name)

    def tag(self) -> None:
        made = self.store["limited"].tag("t", force=True)
        self.told(what="tag", workspace="limited", revision=made.target.hex())

    def collect(self) -> None:
        self.store.gc(grace=0)

    def join(self) -> None:
        joining.MIN_SMALL_PACKS, joining.MIN_MERGED_PACKS, joining.DEAD_AFTER = 2, 2, 0.05  # type: ignore[misc]
        self.store.repository.consolidate_packs()

    def deliver(self) -> None:
        asyncio.run(self.store.deliver(JsonLines(f"{self.folder}/events"), "sink"))

    def push(self) -> None:
        run = AgentRun(store=self.store)
        settings = GitSettings(paths=("/workspace",), remotes={"there": self.git})
        sandbox = run.sandbox(workspace="pushed", name=f"a{self.seed}-{self.number}", git=settings)
        sandbox.files.write("data", self.rng.randbytes(100).hex())
        revision = sandbox.terminate(outputs=[{"git": {"remote": "there"}}])
        assert revision is not None
        self.told(what="push", workspace="pushed", revision=revision.id.hex(), branch=f"attempt/{sandbox.name}")


def pause(seconds: float) -> None:
    """Stand still with everything, as a machine that is suspended does."""
    time.sleep(seconds)


class Racer:
    """Counts in one file together with others, and now and then takes a lease for dead that lives."""

    def __init__(self, place: dict[str, Any], seed: int, left: int | None) -> None:
        self.rng, self.seed, self.rounds = random.Random(seed), seed, place["rounds"]
        self.folder, self.ahead = place["folder"], 0.0
        self.store = Store(objects_of(place, Countdown(None)), clock=lambda: time.time() + self.ahead)

    def run(self) -> None:
        done = 0
        until = time.monotonic() + 250
        while done < self.rounds and time.monotonic() < until:
            self.ahead = self.rng.choice([0.0, 0.0, 0.0, 200.0])
            try:
                asyncio.run(self.once(f"{self.seed}.{done}"))
                done += 1
            except RametError as error:
                if error.code not in ("workspace_busy", "lease_lost", "head_moved"):
                    raise
                if error.code != "workspace_busy":
                    self.note("late")
            time.sleep(self.rng.random() * 0.02)
        assert done == self.rounds, "never its turn"

    async def once(self, token: str) -> None:
        async with self.store.open("w", commit="never") as ws:
            await ws.execute(f"n=$(cat /n 2>/dev/null || echo 0); echo $((n + 1)) > /n; echo {token} >> /log")
            if self.rng.random() < 0.3:
                pause(self.rng.random() * 0.15)  # the whole process sleeps, and may wake up late
            await ws.commit(token)
            self.note(token)

    def note(self, text: str) -> None:
        fd = os.open(f"{self.folder}/told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{text}\n".encode())
        os.close(fd)


class Neighbour:
    """Writes, reads, or collects without any grace, beside the others; the seed says which."""

    def __init__(self, place: dict[str, Any], seed: int, left: int | None) -> None:
        self.rng, self.seed, self.rounds = random.Random(seed), seed, place["rounds"]
        self.folder = place["folder"]
        self.store = Store(objects_of(place, Countdown(None)))

    def run(self) -> None:
        joining.MIN_SMALL_PACKS, joining.DEAD_AFTER = 2, 0.05  # type: ignore[misc]
        if self.seed == 0:
            self.repeat(lambda: (self.store.gc(grace=0), self.store.repository.consolidate_packs()))
        elif self.seed == 1:
            self.repeat(lambda: asyncio.run(self.read()))
        else:
            asyncio.run(self.write())
            os.close(os.open(f"{self.folder}/done-{self.seed}", os.O_CREAT | os.O_WRONLY, 0o600))

    def repeat(self, act: Callable[[], object]) -> None:
        number = 0
        while sum(name.startswith("done-") for name in os.listdir(self.folder)) < 2:
            act()
            number += 1
        assert number

    async def read(self) -> None:
        async with self.store.open("w2", readonly=True) as ws:
            done = await ws.execute("cat /f* | wc -c")
            assert done.exit_code == 0, done.error_text

    async def write(self) -> None:
        async with self.store.open(f"w{self.seed}", commit="never") as ws:
            for number in range(self.rounds):
                text = self.rng.randbytes(self.rng.choice([50, 5000, 40_000])).hex()
                await ws.execute(f"printf %s {text} > /f{self.rng.randrange(6)}; echo {number} > /f-number")
                await ws.commit(str(number))


KINDS: dict[str, Callable[[dict[str, Any], int, int | None], Worker | Racer | Neighbour]] = {
    "worker": Worker, "racer": Racer, "neighbour": Neighbour,
}  # fmt: skip


def _kind(name: str) -> Callable[[dict[str, Any], int, int | None], Any]:
    if name.startswith("draft"):
        from tests.store import drafters

        return drafters.Worker if name == "drafter" else drafters.Racer
    return KINDS[name]


LATE = (
    "ramet.store.refs.feed",
    "ramet.store.gc.collect",
    "ramet.store.gc.costs",
    "ramet.store.crypto.encrypted_objects",
    "ramet.workspace.stored.export",
)
"""What is imported when it is needed: workers are forked from a process that has it all."""


def nursery() -> None:
    """Fork a worker for each order; an order may name several that work at the same time."""
    for name in (*LATE, "tests.store.drafters"):
        import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        children = []
        for worker in order["workers"]:
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    _kind(order["kind"])(order["place"], worker["seed"], worker.get("left")).run()
                    status = 0
                except BaseException:
                    import traceback

                    traceback.print_exc()
                finally:
                    os._exit(status)
            children.append((time.monotonic() + worker.get("delay", 180.0), pid))
        ends = []
        for until, pid in sorted(children):
            ends.append(_end(pid, until))
        print(json.dumps({"ends": ends}), flush=True)


def _end(pid: int, until: float) -> int:
    """Wait for a worker, and kill it when its time is over."""
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Nursery:
    """The other end: a process that is told whom to start."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.faults"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "XDG_CACHE_HOME": "/nonexistent"},
        )  # fmt: skip

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(200)
        self._process.stdout.close()

    def run(self, place: dict[str, Any], workers: list[dict[str, Any]], kind: str = "worker") -> list[int]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"place": place, "workers": workers, "kind": kind}) + "\n")
        self._process.stdin.flush()
        ends: list[int] = json.loads(self._process.stdout.readline())["ends"]
        return ends


if __name__ == "__main__":
    nursery()
