"""Random histories: whatever is committed, forked, merged, reverted, tagged, removed, imported, the store is whole."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from ramet import RametError, Store
from ramet.store.checkout.walk import content, walk
from ramet.store.model.graph import draw_graph, newest_first
from ramet.store.model.ids import RevisionId
from ramet.store.model.revisions import Revision
from ramet.store.objects.objects import MemoryObjects
from ramet.store.verbs.bisect import BisectSearch

Files = dict[str, bytes]
FILE_NAMES = st.sampled_from(["/a", "/b", "/d/a", "/d/e/f"])
WORDS = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=5)
TEXTS = WORDS.map(lambda words: "".join(word + "\n" for word in words))


@dataclass
class Model:
    """What a workspace must hold, revision by revision."""

    revisions: list[tuple[str, Files]] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)


class Histories(RuleBasedStateMachine):
    workspaces = Bundle("workspaces")

    @initialize()
    def begin(self) -> None:
        self.objects = MemoryObjects()
        self.store = Store(self.objects)
        self.models: dict[str, Model] = {}
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"w{self.count}"

    def files(self, revision: Revision) -> Files:
        read = self.store.repository.packs.read
        return {path: b"".join(content(read, node)) for path, node in walk(read, revision) if node.kind == 0}

    def noted(self, name: str, revision: Revision) -> None:
        self.models[name].revisions.append((revision.id.hex(), self.files(revision)))

    @rule(target=workspaces)
    def create(self) -> str:
        name = self.fresh()
        self.store.create(name)
        self.models[name] = Model()
        return name

    @rule(name=workspaces, changes=st.dictionaries(FILE_NAMES, TEXTS | st.none(), min_size=1, max_size=3))
    def commit(self, name: str, changes: dict[str, str | None]) -> None:
        async def act() -> Revision:
            async with self.store.open(name) as ws:
                for path, text in changes.items():
                    await ws.execute(f"mkdir -p {path.rpartition('/')[0] or '/'}")
                    if text is None:
                        await ws.execute(f"rm -f {path}")
                    else:
                        await ws.execute(f"cat > {path}", stdin=text)
                return await ws.commit("m")

        before = self.models[name].revisions[-1][1] if self.models[name].revisions else {}
        self.noted(name, asyncio.run(act()))
        wanted = dict(before)
        for path, text in changes.items():
            wanted.pop(path, None)
            if text is not None:
                wanted[path] = text.encode()
        assert self.models[name].revisions[-1][1] == wanted

    @rule(target=workspaces, name=workspaces, data=st.data())
    def fork(self, name: str, data: st.DataObject) -> str:
        revisions = self.models[name].revisions
        new = self.fresh()
        if not revisions:
            self.store.create(new)
            self.models[new] = Model()
            return new
        identity, files = data.draw(st.sampled_from(revisions))
        revision = self.store[name].fork(identity, new)
        self.models[new] = Model()
        self.noted(new, revision)
        assert self.models[new].revisions[0][1] == files
        return new

    @rule(name=workspaces, data=st.data())
    def revert(self, name: str, data: st.DataObject) -> None:
        revisions = self.models[name].revisions
        if revisions:
            identity, files = data.draw(st.sampled_from(revisions))
            self.noted(name, self.store[name].revert(identity))
            assert revisions[-1][1] == files

    @rule(name=workspaces, other=workspaces)
    def merge(self, name: str, other: str) -> None:
        if name == other or not self.models[name].revisions or not self.models[other].revisions:
            return
        ours, theirs = self.models[name].revisions[-1][1], self.models[other].revisions[-1][1]
        head = self.store.find(name)
        result = self.store[name].merge(other)
        if not result.ok:
            assert self.store.find(name) == head and result.conflicts
            return
        assert result.revision is not None
        if result.revision.id != head.id:
            assert len(result.revision.parents) == 2
            self.noted(name, result.revision)
        merged = self.files(result.revision)
        assert set(merged) <= set(ours) | set(theirs)
        for path in set(ours) & set(theirs):
            assert ours[path] != theirs[path] or merged.get(path) == ours[path]

    @rule(name=workspaces, tag=st.sampled_from(["red", "green"]), data=st.data())
    def tag(self, name: str, tag: str, data: st.DataObject) -> None:
        revisions = self.models[name].revisions
        if revisions:
            number = data.draw(st.integers(0, len(revisions) - 1))
            self.store[name].tag(tag, revisions[number][0], force=True)
            self.models[name].tags[tag] = number

    @rule(name=workspaces, other=workspaces)
    def carry(self, name: str, other: str) -> None:
        if not self.models[name].revisions:
            return
        out = io.BytesIO()
        self.store[name].export(out, kind="tar")
        out.seek(0)
        head = self.store[other].import_archive(out).revision
        self.noted(other, head)
        assert self.models[other].revisions[-1][1] == self.models[name].revisions[-1][1]

    @rule(name=consumes(workspaces))
    def remove(self, name: str) -> None:
        self.store.rm(name)
        del self.models[name]

    @rule()
    def reopen(self) -> None:
        self.store = Store(self.objects)

    @invariant()
    def parts_of_a_log_are_what_the_whole_says(self) -> None:
        for name in self.models if hasattr(self, "models") else ():
            handle = self.store[name]
            whole = handle.log()
            assert handle.log(limit=2) == whole[:2] and handle.log(limit=0) == []
            for one in whole[:1] + whole[-1:]:
                below = self.store.repository.ancestors(one)
                assert handle.log(without=one) == [other for other in whole if other.id not in below]
                assert handle.log(one, limit=3) == newest_first(below.values())[:3]
                assert handle.find(one.id.hex()) == one

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.ls() == sorted(self.models)
        for name, model in self.models.items():
            handle = self.store[name]
            assert {tag.name: tag.target.hex() for tag in handle.tags()} == {
                tag: model.revisions[number][0] for tag, number in model.tags.items()
            }
            if model.revisions:
                assert handle.find().id.hex() == model.revisions[-1][0]

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.verify().ok
        for name, model in self.models.items():
            for identity, files in model.revisions:
                assert self.files(self.store.repository.find(name, identity)) == files
            log = self.store[name].log()
            places = {revision.id: number for number, revision in enumerate(log)}
            assert all(places[parent] > places[r.id] for r in log for parent in r.parents)
            assert [row.revision for row in draw_graph(log) if row.revision is not None] == log
            if log:
                assert b"".join(self.store[name].git_stream()).endswith(b"done\n")


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=14, deadline=None)


# ------------------------------------------------------------------------------------------------------- bisect


def shaped(shape: list[list[int]]) -> list[Revision]:
    """Revisions whose parents are given by number."""
    made: list[Revision] = []
    for number, parents in enumerate(shape):
        ids = tuple(made[parent % number].id for parent in dict.fromkeys(p % number for p in parents)) if number else ()
        made.append(Revision("w", number + 1, ids, "", (), time=float(number)))
    return made


def ancestors(revisions: list[Revision], start: Revision) -> dict[RevisionId, Revision]:
    known = {revision.id: revision for revision in revisions}
    found: dict[RevisionId, Revision] = {}
    pending = [start.id]
    while pending:
        identity = pending.pop()
        if identity not in found:
            found[identity] = known[identity]
            pending.extend(known[identity].parents)
    return found


SHAPES = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=2), min_size=2, max_size=25)


@given(SHAPES, st.integers(0, 1000))
def test_bisect_finds_the_culprit_in_any_history(shape: list[list[int]], choice: int) -> None:
    revisions = shaped(shape)
    tip = revisions[-1]
    line = ancestors(revisions, tip)
    good = revisions[0]
    suspects = [revision for revision in line.values() if revision.id != good.id]
    if good.id not in line or not suspects:
        return
    culprit = suspects[choice % len(suspects)]
    search = BisectSearch.between(ancestors(revisions, good), line, tip)
    steps = 0
    while (revision := search.next()) is not None:
        search.record(revision, "bad" if culprit.id in ancestors(revisions, revision) else "good")
        steps += 1
        assert steps <= len(suspects)
    assert search.suspects == [culprit]


@given(SHAPES)
def test_orders_and_pictures_of_any_history(shape: list[list[int]]) -> None:
    revisions = shaped(shape)
    order = newest_first(revisions)
    places = {revision.id: number for number, revision in enumerate(order)}
    assert len(order) == len(revisions) == len(places)
    assert all(places[parent] > places[revision.id] for revision in order for parent in revision.parents)
    assert newest_first(reversed(revisions)) == order
    rows = draw_graph(order)
    assert [row.revision for row in rows if row.revision is not None] == order
    assert all(row.lines.count("*") == (row.revision is not None) for row in rows)


def test_a_history_that_is_not_one_is_refused() -> None:
    one, two = Revision("w", 1, (), "", ()), Revision("v", 1, (), "", ())
    try:
        BisectSearch.between({one.id: one}, {two.id: two}, two)
    except RametError as error:
        assert error.code == "invalid_argument"
    else:
        raise AssertionError
