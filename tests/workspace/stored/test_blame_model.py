"""Random changes of all kinds by random agents, on a model that knows who wrote each line: blame agrees with it.

History, log, events and past revisions are compared with the model too. A part of the rounds has a directory on disk.

The size is `RAMET_BLAME_ROUNDS` (120 rounds); `RAMET_BLAME_SEED` is the first seed. A round is one workspace. Lines are
unique unless they repeat on purpose: of equal lines in the history of a file, any writer is right.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import pytest

from ramet import DiskResource, RametError, Store
from ramet.core.paths import parse
from ramet.store.objects.objects import MemoryObjects
from ramet.store.refs.feed import events
from ramet.workspace.agent.tools import TOOLS, Toolbox, call_tool
from ramet.workspace.stored.store import WorkspaceOpener
from ramet.workspace.workspace import Workspace

ROUNDS = int(os.environ.get("RAMET_BLAME_ROUNDS", "120"))
SEED = int(os.environ.get("RAMET_BLAME_SEED", "1"))
PARTS = 4
AGENTS = ("ada", "bob", "cy", "dan", "eve")
NAMES = ("/a", "/b", "/c", "/d/a", "/d/b", "/e/a")
ON_DISK = ("/disk/a", "/disk/b")
VERBS = ("revert", "merge")
"""Kinds of events that a verb makes."""

Line = tuple[str, str]
"""A line and its writer."""
Files = dict[str, list[Line]]


@dataclass
class Model:
    """The truth about one workspace."""

    files: Files = field(default_factory=dict)
    records: list[tuple[str, str]] = field(default_factory=list)
    """Kind and agent of each record."""
    wrote: dict[str, set[str]] = field(default_factory=dict)
    """All writers of a text, in any file."""

    def new(self, text: str, agent: str) -> Line:
        self.wrote.setdefault(text, set()).add(agent)
        return text, agent

    def copy(self) -> Model:
        return Model(
            {path: list(lines) for path, lines in self.files.items()}, list(self.records),
            {text: set(who) for text, who in self.wrote.items()},
        )  # fmt: skip


class Round:
    """One workspace and its model."""

    def __init__(self, seed: int) -> None:
        self.seed, self.random = seed, random.Random(seed)
        self.store = Store(MemoryObjects())
        self.store.create("w")
        self.model = Model()
        self.texts = 0
        self.steps: list[str] = []
        self.forks = 0
        self.seen: dict[str, Files] = {}
        """The files of each revision."""
        self.verbs: list[str] = []
        """The kinds of the events that verbs made on `w`."""
        self.disk = self.random.random() < 0.25
        self.names = NAMES + ON_DISK if self.disk else NAMES
        self.directories = TemporaryDirectory()
        self.opens = 0
        self.undone = False
        """Whether what one agent did was undone: a line that came back by that may be unknown, and is never wrong."""

    def open(self, name: str) -> WorkspaceOpener:
        """Open a workspace; its disk is a new directory each time, which gets the saved content."""
        if not self.disk:
            return self.store.open(name)
        self.opens += 1
        place = os.path.join(self.directories.name, str(self.opens))
        disk = {"/disk": DiskResource(place, create=True)}
        saved = self.store[name].head is not None
        return self.store.open(name, resources=disk) if saved else self.store.open(name, mounts=disk)

    # ------------------------------------------------------------------------------------------------- changes

    def text(self) -> str:
        if self.random.random() < 0.1:
            return "same"
        self.texts += 1
        return f"line{self.texts}"

    def path(self, files: Files) -> str:
        return self.random.choice(sorted(files)) if files else ""

    async def command(self, ws: Workspace, model: Model) -> None:
        """Change files by one command, or by a write of another kind, of one agent."""
        agent, files = self.random.choice(AGENTS), model.files
        kinds: list[Callable[[Workspace, Model, str], Awaitable[str]]] = [self.create, self.write, self.read]
        if files:
            kinds += [self.append, self.append, self.edit, self.edit, self.insert, self.delete, self.move, self.move]
            kinds += [self.copy, self.remove, self.move_directory, self.edit_by_tool, self.rewrite, self.several]
        step = await self.random.choice(kinds)(ws, model, agent)
        self.steps.append(f"{agent}: {step}")

    async def run(self, ws: Workspace, model: Model, agent: str, command: str) -> str:
        result = await ws.execute(command, agent_id=agent)
        assert result.exit_code == 0, (command, result.stderr)
        model.records.append(("command", agent))
        return command

    async def create(self, ws: Workspace, model: Model, agent: str) -> str:
        path = self.random.choice(self.names)
        lines = [model.new(self.text(), agent) for _ in range(self.random.randint(0, 5))]
        model.files[path] = lines
        words = " ".join(text for text, _ in lines)
        command = f"printf '%s\\n' {words} > {path}" if lines else f": > {path}"
        return await self.run(ws, model, agent, f"mkdir -p {os.path.dirname(path)}; {command}")

    async def rewrite(self, ws: Workspace, model: Model, agent: str) -> str:
        """Write another file and move it over the old one, as editors do, in one command."""
        path = self.path(model.files)
        line = model.new(self.text(), agent)
        model.files[path] = [line, *model.files[path]]
        return await self.run(ws, model, agent, f"{{ echo {line[0]}; cat {path}; }} > {path}~; mv {path}~ {path}")

    async def append(self, ws: Workspace, model: Model, agent: str) -> str:
        path, line = self.path(model.files), model.new(self.text(), agent)
        model.files[path].append(line)
        return await self.run(ws, model, agent, f"echo {line[0]} >> {path}")

    async def several(self, ws: Workspace, model: Model, agent: str) -> str:
        path, one, two = self.path(model.files), model.new(self.text(), agent), model.new(self.text(), agent)
        model.files[path] = [one, *model.files[path], two]
        script = f"echo {two[0]} >> {path}; sed -i '1i {one[0]}' {path}"
        if len(model.files[path]) == 2:  # sed has no first line to insert before when it starts with one line
            script = f"printf '%s\\n' {one[0]} {two[0]} > {path}"
        return await self.run(ws, model, agent, script)

    async def edit(self, ws: Workspace, model: Model, agent: str) -> str:
        path = self.path(model.files)
        lines = model.files[path]
        if not lines:
            return await self.append(ws, model, agent)
        at, line = self.random.randrange(len(lines)), model.new(self.text(), agent)
        if lines[at][0] != line[0]:
            lines[at] = line
        return await self.run(ws, model, agent, f"sed -i '{at + 1}s/.*/{line[0]}/' {path}")

    async def insert(self, ws: Workspace, model: Model, agent: str) -> str:
        path = self.path(model.files)
        lines = model.files[path]
        if not lines:
            return await self.append(ws, model, agent)
        at, line = self.random.randrange(len(lines)), model.new(self.text(), agent)
        lines.insert(at, line)
        return await self.run(ws, model, agent, f"sed -i '{at + 1}i {line[0]}' {path}")

    async def delete(self, ws: Workspace, model: Model, agent: str) -> str:
        path = self.path(model.files)
        lines = model.files[path]
        if not lines:
            return await self.append(ws, model, agent)
        at = self.random.randrange(len(lines))
        del lines[at]
        return await self.run(ws, model, agent, f"sed -i {at + 1}d {path}")

    async def move(self, ws: Workspace, model: Model, agent: str) -> str:
        old, new = self.path(model.files), self.random.choice(NAMES)
        if old == new:
            return await self.append(ws, model, agent)
        model.files[new] = model.files.pop(old)
        return await self.run(ws, model, agent, f"mkdir -p {os.path.dirname(new)}; mv {old} {new}")

    async def move_directory(self, ws: Workspace, model: Model, agent: str) -> str:
        if any(path.startswith("/e/") for path in model.files) or not any(p.startswith("/d/") for p in model.files):
            return await self.append(ws, model, agent)
        for path in [path for path in model.files if path.startswith("/d/")]:
            model.files["/e/" + path[3:]] = model.files.pop(path)
        return await self.run(ws, model, agent, "rm -rf /e; mv /d /e")

    async def copy(self, ws: Workspace, model: Model, agent: str) -> str:
        old, new = self.path(model.files), self.random.choice(NAMES)
        if old == new:
            return await self.append(ws, model, agent)
        model.files[new] = list(model.files[old])
        return await self.run(ws, model, agent, f"mkdir -p {os.path.dirname(new)}; cp {old} {new}")

    async def remove(self, ws: Workspace, model: Model, agent: str) -> str:
        path = self.path(model.files)
        del model.files[path]
        return await self.run(ws, model, agent, f"rm {path}")

    async def read(self, ws: Workspace, model: Model, agent: str) -> str:
        return await self.run(ws, model, agent, "ls / > /dev/null")

    async def write(self, ws: Workspace, model: Model, agent: str) -> str:
        """Write a file without a command."""
        path = self.random.choice(NAMES[:3])
        lines = [model.new(self.text(), agent) for _ in range(self.random.randint(1, 3))]
        model.files[path] = lines
        data = "".join(f"{text}\n" for text, _ in lines).encode()
        with ws.recording("write", f"write {path}", agent_id=agent):
            await ws.fs.write(parse(path), data)
        model.records.append(("write", agent))
        return f"write {path} {data!r}"

    async def edit_by_tool(self, ws: Workspace, model: Model, agent: str) -> str:
        path = self.path(model.files)
        texts = [text for text, _ in model.files[path]]
        at = next((at for at, text in enumerate(texts) if texts.count(text) == 1 and text != "same"), None)
        if at is None:
            return await self.append(ws, model, agent)
        line = model.new(self.text(), agent)
        old, model.files[path][at] = model.files[path][at][0], line
        box = Toolbox(ws, agent_id=agent)
        given = {"path": path, "old": f"{old}\n", "new": f"{line[0]}\n"}
        done = await call_tool(TOOLS, box, "edit", given)
        assert not done.failed, done.content
        model.records.append(("tool", agent))
        return f"edit {path} {given}"

    # ------------------------------------------------------------------------------------- branches, the store

    async def branch(self, ws: Workspace) -> None:
        """Keep one of two branches, or none."""
        tries = [(branch, self.model.copy()) for branch in ws.speculate(2)]
        first = len(self.model.records)
        for number, (branch, model) in enumerate(tries):
            self.steps.append(f"branch {number}")
            for _ in range(self.random.randint(1, 3)):
                await self.command(branch, model)
        keep = self.random.randrange(3)
        if keep < 2:
            branch, model = tries[keep]
            self.steps.append(f"keep {keep}")
            assert (await branch.commit()).ok
            model.records.insert(first, ("branch", "default"))
            self.model = model
        for branch, _ in tries:
            await branch.close()

    async def live(self, name: str = "w") -> None:
        """Work in the open workspace, with commits at any point."""
        async with self.open(name) as ws:
            for _ in range(self.random.randint(1, 8)):
                chance = self.random.random()
                if chance < 0.2:
                    self.seen[(await ws.commit()).name] = self.model.copy().files
                    self.steps.append("commit")
                elif chance < 0.3:
                    await self.branch(ws)
                else:
                    await self.command(ws, self.model)
        head = self.store[name].head
        if head is not None:
            self.seen[head.name] = self.model.copy().files

    async def by_verbs(self) -> None:
        """Revert, revert a path, undo, or fork, work on both sides, and merge."""
        ref, chance, model = self.store["w"], self.random.random(), self.model
        if not self.seen:
            return  # only reads so far, which make no revision
        past = self.random.choice(sorted(self.seen))
        then = self.seen[past]
        actor = self.store.repository.actor
        if chance < 0.3:
            self.steps.append(f"revert {past}")
            ref.revert(past)
            self.verbs.append("revert")
            model.files = then
            model.records.append(("revert", actor))
        elif chance < 0.45:
            path = self.random.choice(sorted({*then, *model.files}) or ["/a"])
            self.steps.append(f"revert {path} to {past}")
            ref.revert(past, paths=[path])
            self.verbs.append("revert")
            model.files = {name: lines for name, lines in model.files.items() if name != path}
            if path in then:
                model.files[path] = then[path]
            model.records.append(("revert", actor))
        elif chance < 0.65:
            self.undo(self.random.choice([None, None, *AGENTS]))
        elif chance < 0.85:
            await self.fork_and_merge()
        self.model.files = self.model.copy().files  # the past stays as it was
        self.seen[ref.find().name] = self.model.copy().files

    def undo(self, agent: str | None) -> None:
        """Undo the last change, or what an agent changed."""
        ref, head = self.store["w"], self.store["w"].find()
        self.steps.append(f"undo {agent or 'the last change'}")
        try:
            done = ref.undo(agent=agent)
        except RametError as error:
            assert error.code in ("not_found", "unsupported"), self.told()
            self.steps.append(error.cause)
            return
        if done.revision is None:
            self.steps.append("conflicts")
            return
        self.verbs.append("revert")
        self.undone |= agent is not None
        self.model.records.append(("revert", self.store.repository.actor))
        self.model.files = self.stored(self.model)
        if agent is None and done.revision.lineage == f"undo:{head.name}":
            parents = [one.name for one in ref.log() if one.id in head.parents[:1]]
            before = self.seen[parents[0]] if parents else {}
            assert _texts(self.model.files) == _texts(before), self.told()

    def stored(self, model: Model, revision: str | None = None) -> Files:
        """The files of a revision. What a merge puts together is the merge's business; who wrote the lines is not."""
        found: Files = {}
        for path in (*self.names, "/e/b"):
            try:
                texts = b"".join(self.store["w"].show(path, revision)).decode().splitlines()
            except RametError:
                continue
            found[path] = [(text, min(model.wrote[text])) for text in texts]
        return found

    async def fork_and_merge(self) -> None:
        ref, before = self.store["w"], self.model
        self.forks += 1
        side, actor = f"side{self.forks}", self.store.repository.actor
        self.steps.append(f"fork {side}")
        ref.fork(None, side)
        seen, self.seen = self.seen, {}
        self.model = before.copy()
        self.model.records.append(("fork", actor))
        await self.live(side)
        self.check(side)
        self.steps.append("back")
        theirs, self.model, self.seen = self.model, before, seen
        await self.live()
        ours = self.model
        if not ref.merge(side).ok:
            self.steps.append("conflicts")
            return
        self.steps.append("merge")
        if ref.find().lineage == f"merge:{self.store[side].find().name}":
            ours.records.append(("merge", actor))
            self.verbs.append("merge")
        for text, who in theirs.wrote.items():
            ours.wrote.setdefault(text, set()).update(who)
        ours.files = self.stored(ours)

    # -------------------------------------------------------------------------------------------------- checks

    def check(self, name: str = "w") -> None:
        ref, model = self.store[name], self.model
        history = [(one.kind, one.agent_id) for one in ref.history()]
        assert history == model.records, self.told()
        numbers = [one.number for one in ref.history()]
        assert numbers == list(range(1, len(numbers) + 1)), self.told()
        revisions = [one for one in ref.log() if one.workspace == name]
        assert [one.seq for one in revisions] == list(range(len(revisions), 0, -1)), self.told()
        told = [event.data for event in events(self.store.repository) if event.data["workspace"] == name]
        assert [one["revision"] for one in told] == [one.name for one in reversed(revisions)], self.told()
        if name == "w":
            assert [one["kind"] for one in told if one["kind"] in VERBS] == self.verbs, self.told()
            for past, files in self.random.sample(sorted(self.seen.items()), min(2, len(self.seen))):
                assert _texts(self.stored(model, past)) == _texts(files), (past, self.told())
        for path, lines in model.files.items():
            found = ref.blame(path)
            assert [line.text.decode().rstrip("\n") for line in found] == [text for text, _ in lines], self.told()
            for line, (text, agent) in zip(found, lines, strict=True):
                if line.writer is None and self.undone:
                    continue
                assert line.writer is not None, (path, text, agent, "unknown", self.told())
                right = {agent} if text != "same" else model.wrote[text]
                assert line.writer.agent_id in right, (path, text, agent, line.writer, self.told())

    def told(self) -> str:
        return f"seed {self.seed}\n" + "\n".join(self.steps)

    async def act(self) -> None:
        with self.directories:
            await self.rounds()

    async def rounds(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            await self.live()
            await self.by_verbs()
            self.steps.append("check")
            self.check()


def _texts(files: Files) -> dict[str, list[str]]:
    return {path: [text for text, _ in lines] for path, lines in files.items()}


@pytest.mark.parametrize("part", range(PARTS))
def test_blame_is_right(part: int) -> None:
    for seed in range(SEED + part, SEED + ROUNDS, PARTS):
        asyncio.run(Round(seed).act())
