"""Sandboxes that are killed while they work, for the tests of drafts; started by the nursery of `tests.store.faults`.

A worker writes down what a call is going to make of the files before it calls, and that it returned afterwards. Whoever
comes next must find one of the two.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.store.faults import Countdown, objects_of, pause

from ramet import AgentRun, RametError, Store
from ramet.core.ops import read_bytes, walk
from ramet.core.paths import parse
from ramet.core.stat import Kind
from ramet.workspace.agent.sandbox import HOME, Sandbox
from ramet.workspace.stored import drafts as drafting

Model = dict[str, str]
"""What is below `/workspace`: the content of files, `-> target` of links, `/` for directories."""

CALLS = 8


def files_of(sandbox: Sandbox) -> Model:
    async def look() -> Model:
        fs = sandbox._ws.get_session().fs
        found: Model = {}
        async for path, stat in walk(fs, parse(HOME)):
            name = str(path)[len(HOME) + 1 :]
            if stat.kind is Kind.FILE:
                found[name] = (await read_bytes(fs, path)).decode()
            else:
                found[name] = "/" if stat.kind is Kind.DIR else f"-> {stat.target}"
        return found

    found: Model = sandbox._do(look())
    return found


def told(folder: str) -> list[dict[str, Any]]:
    path = f"{folder}/told"
    if not os.path.exists(path):
        return [{"done": {}}]
    found: list[dict[str, Any]] = [{"done": {}}]
    with open(path, encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError):  # a kill may also hit who writes here: then it had not begun, or was not done
                found.append(json.loads(line))
    return found


def allowed(folder: str) -> list[Model]:
    """What may be there: what the last call that returned left, or what the one left that did not."""
    lines = told(folder)
    last = max(number for number, line in enumerate(lines) if "done" in line)
    return [lines[last]["done"], *(line["begun"] for line in lines[last + 1 :])]


def differences(one: Model, other: Model) -> list[tuple[str, str, str]]:
    names = sorted({*one, *other})
    return [(n, one.get(n, "")[:40], other.get(n, "")[:40]) for n in names if one.get(n) != other.get(n)]


class Worker:
    """Uses one sandbox for a while."""

    def __init__(self, place: dict[str, Any], seed: int, left: int | None) -> None:
        drafting.MAX_STEPS, drafting.STEP_BYTES = 5, 20_000  # type: ignore[misc]
        self.rng, self.folder = random.Random(seed), place["folder"]
        self.place = place
        self.store = Store(objects_of(place, Countdown(left)))
        self.files: Model = {}

    def note(self, **what: Model) -> None:
        fd = os.open(f"{self.folder}/told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, b"\n" + json.dumps(what).encode() + b"\n")
        os.close(fd)

    def run(self) -> None:
        sandbox = AgentRun(store=self.store).sandbox(workspace="w", wait=10)
        self.files = files_of(sandbox)
        may = allowed(self.folder)
        assert self.files in may, f"what was acknowledged is there: {differences(self.files, may[0])}"
        self.note(done=self.files)
        acts: list[tuple[int, Callable[[Sandbox], None]]] = [
            (4, self.write), (3, self.append), (2, self.remove), (2, self.move), (1, self.link), (1, self.twin),
            (2, self.large), (2, self.folders), (1, self.commit), (1, self.collect),
        ]  # fmt: skip
        for _ in range(self.rng.randrange(1, CALLS)):
            (act,) = self.rng.choices([act for _, act in acts], [weight for weight, _ in acts])
            act(sandbox)
        if self.rng.random() < 0.3:
            sandbox.terminate()
        else:
            os._exit(0)  # as good as a kill: nothing is ended in order

    def call(self, sandbox: Sandbox, command: str, after: Model) -> None:
        self.note(begun=after)
        done = sandbox.exec(command)
        assert done.exit_code == 0, (command, done.error_text)
        self.files = after
        self.note(done=after)

    def text(self, size: int) -> str:
        return self.rng.randbytes(size // 2).hex()

    def some(self, kind: str = "") -> str | None:
        """A name that is there, of a file or of anything."""
        names = [name for name, what in self.files.items() if kind != "file" or what[:1] not in ("/", "-")]
        return self.rng.choice(sorted(names)) if names else None

    def write(self, sandbox: Sandbox) -> None:
        name, text = f"f{self.rng.randrange(6)}", self.text(40)
        if self.files.get(name, "")[:1] in ("/", "-"):
            return
        after = self.filled(name, text)
        if self.rng.random() < 0.5:
            self.call(sandbox, f"printf %s {text} > {name}", after)
            return
        self.note(begun=after)
        sandbox.files.write(name, text)
        self.files = after
        self.note(done=after)

    def append(self, sandbox: Sandbox) -> None:
        name, text = self.some("file"), self.text(30)
        if name is not None:
            self.call(sandbox, f"printf %s {text} >> {name}", self.filled(name, self.files[name] + text))

    def filled(self, name: str, text: str) -> Model:
        """The files when one has this content; no two have the same but those that are one."""
        old = self.files.get(name)
        return {**self.files, **{n: text for n, what in self.files.items() if what == old}, name: text}

    def remove(self, sandbox: Sandbox) -> None:
        name = self.some()
        if name is not None:
            left = {n: what for n, what in self.files.items() if n != name and not n.startswith(f"{name}/")}
            self.call(sandbox, f"rm -r {name}", left)

    def move(self, sandbox: Sandbox) -> None:
        name, new = self.some(), f"m{self.rng.randrange(1000)}"
        if name is not None and "/" not in name and new not in self.files:
            moved = {n: w for n, w in self.files.items() if n != name and not n.startswith(f"{name}/")}
            moved.update({new + n[len(name) :]: w for n, w in self.files.items() if n not in moved})
            self.call(sandbox, f"mv {name} {new}", moved)

    def link(self, sandbox: Sandbox) -> None:
        name = f"l{self.rng.randrange(50)}"
        if name not in self.files:
            self.call(sandbox, f"ln -s nowhere {name}", {**self.files, name: "-> nowhere"})

    def twin(self, sandbox: Sandbox) -> None:
        name, new = self.some("file"), f"twin-{self.rng.randrange(1000)}"
        if name is not None and new not in self.files:
            self.call(sandbox, f"ln {name} {new}", {**self.files, new: self.files[name]})

    def large(self, sandbox: Sandbox) -> None:
        name, text = f"big{self.rng.randrange(2)}", self.text(30_000)
        self.call(sandbox, f"printf %s {text} > {name}", self.filled(name, text))

    def folders(self, sandbox: Sandbox) -> None:
        name, text = f"d{self.rng.randrange(4)}", self.text(20)
        if self.files.get(name, "/") == "/" and f"{name}/in" not in self.files:
            after = {**self.files, name: "/", f"{name}/in": "/", f"{name}/in/f": text}
            self.call(sandbox, f"mkdir -p {name}/in; printf %s {text} > {name}/in/f", after)

    def commit(self, sandbox: Sandbox) -> None:
        sandbox._do(sandbox._ws.commit("on the way"))

    def collect(self, sandbox: Sandbox) -> None:
        """Somebody else collects without any grace."""
        try:
            Store(objects_of(self.place, Countdown(None))).gc(grace=0)
        except RametError as error:
            if error.code != "head_moved":
                raise


class Racer:
    """Adds lines to one file together with others, and now and then takes a lease for dead that lives."""

    def __init__(self, place: dict[str, Any], seed: int, left: int | None) -> None:
        self.rng, self.seed, self.rounds = random.Random(seed), seed, place["rounds"]
        self.folder, self.ahead = place["folder"], 0.0
        self.store = Store(objects_of(place, Countdown(None)), clock=lambda: time.time() + self.ahead)

    def run(self) -> None:
        done, tried, until = 0, 0, time.monotonic() + 250
        while done < self.rounds and time.monotonic() < until:
            # Such a clock runs ahead ever faster: it takes also leases for dead that were taken with such a clock.
            self.ahead = self.rng.choice([0.0, 0.0, 500 * (time.time() % 100_000)])
            tried += 1
            try:
                asyncio.run(self.once(f"{self.seed}.{tried}"))
                done += 1
            except RametError as error:
                if error.code not in ("workspace_busy", "lease_lost", "head_moved"):
                    raise
                if error.code != "workspace_busy":
                    self.note("late")
            time.sleep(self.rng.random() * 0.02)
        assert done == self.rounds, "never its turn"

    async def once(self, token: str) -> None:
        ws = await self.store.open("w", commit="never", drafts="each").__aenter__()
        for number in range(self.rng.randrange(1, 4)):
            await ws.execute(f"echo {token}.{number} >> /log")
            self.note(f"{token}.{number}")
            if self.rng.random() < 0.3:
                pause(self.rng.random() * 0.1)  # the whole process sleeps, and may wake up late
        if self.rng.random() < 0.5:
            await ws.commit(token)
            await ws.finish()  # else it is left as it is, as by one who died; this one waits for its own lease, then

    def note(self, text: str) -> None:
        fd = os.open(f"{self.folder}/told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{text}\n".encode())
        os.close(fd)
