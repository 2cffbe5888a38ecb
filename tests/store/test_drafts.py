"""Drafts: what a call changed which has returned survives a kill of the process, and only that is different.

`RAMET_DRAFT_KILLS=500` kills five hundred sandboxes on each kind of store; without it a few dozen.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.store.drafters import allowed, files_of
from tests.store.encrypted import KEY, OTHER, everything
from tests.store.faults import Countdown, Nursery, objects_of
from tests.store.refs.test_refs import Dying, Killed
from tests.support.servers import S3Server

from ramet import AgentRun, DiskResource, RametError, RAMResource, Retention, Store
from ramet.store.commit.commit_filter import CommitFilter
from ramet.store.commit.ignore_rules import DEFAULT_RULES
from ramet.store.commit.memory_tree import commit_memory
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects
from ramet.store.repository import Repository
from ramet.workspace.stored import drafts as drafting
from ramet.workspace.stored.workspace import StoredWorkspace

KILLS = int(os.environ.get("RAMET_DRAFT_KILLS", "0"))
SEED = int(os.environ.get("RAMET_FAULTS_SEED", "1"))


def later() -> float:
    """When leases of now are long over."""
    return time.time() + 3600


def abandoned(store: Store, *scripts: str, name: str = "w", then: Any = None, **options: Any) -> None:
    """A workspace that is opened, worked in, and never closed."""

    async def act() -> None:
        ws = await store.open(name, commit="never", **{"drafts": "each", **options}).__aenter__()
        for script in scripts:
            await ws.execute(script)
        if then is not None:
            await then(ws)

    asyncio.run(act())


def opened(store: Store, script: str = ":", name: str = "w", **options: Any) -> tuple[str, list[Any]]:
    """What the next one to open it sees, and what was recovered for it."""

    async def act() -> tuple[str, list[Any]]:
        async with store.open(name, commit="never", **options) as ws:
            return (await ws.execute(script)).text, ws.recovered

    return asyncio.run(act())


def drafts_in(store: Store) -> list[str]:
    return list(store.repository.objects.list("drafts/"))


class Counting(MemoryObjects):
    """Counts what is asked of a server."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, key: str) -> bytes:
        self.asked.append(f"get {key}")
        return super().get(key)

    def get_range(self, key: str, start: int, size: int) -> bytes:
        self.asked.append(f"get {key}")
        return super().get_range(key, start, size)

    def put(self, key: str, data: bytes) -> None:
        self.asked.append(f"put {key}")
        super().put(key, data)

    def create(self, key: str, data: bytes) -> bool:
        self.asked.append(f"create {key}")
        return super().create(key, data)

    def delete(self, key: str) -> None:
        self.asked.append(f"delete {key}")
        super().delete(key)

    def list(self, prefix: str, after: str = "") -> Any:
        self.asked.append(f"list {prefix}")
        return super().list(prefix, after)


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


@pytest.mark.timeout(KILLS * 5 or 300)
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


# ------------------------------------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_change_is_two_requests_and_none_where_nothing_changed(key: bytes | None) -> None:
    place = Counting()
    store = Store(place, key=key)
    store.create("w")

    async def act() -> None:
        async with store.open("w", drafts="each") as ws:
            await ws.execute("mkdir d; echo 1 > d/f")
            for script, most in (("echo 2 > d/f", 2), ("cat d/f; ls; pwd", 0), ("x=1", 2), ("x=1", 0), ("rm d/f", 2)):
                place.asked.clear()
                await ws.execute(script)
                puts = [asked for asked in place.asked if asked.startswith("put")]
                # One to write it, one to see that nobody has taken over; with keys, one to see that they are the same.
                assert len(puts) <= 1 and len(place.asked) <= (most + 1 if key and most else most), place.asked
            await ws.commit("one")
            if ws._gc_task is not None:
                await ws._gc_task  # what a commit asks for in the background is not what is counted here
            place.asked.clear()
            await ws.execute("mv d e; echo x > y")  # a directory of the store gets another name
            assert len(place.asked) <= 6, place.asked

    asyncio.run(act())


def test_an_end_in_order_looks_as_if_there_had_been_no_drafts(tmp_path: Path) -> None:
    seen = []
    for drafts in ("off", "each"):
        store = Store(str(tmp_path / drafts))
        run = AgentRun(store=store)
        run.create_workspace("w")
        sandbox = run.sandbox(workspace="w", name="box", drafts=drafts)
        for number in range(150):
            sandbox.exec(f"echo {number} > f{number % 7}; touch -d 2020-01-01 f* .")
        sandbox.terminate()
        assert not drafts_in(store)
        (revision,) = store["w"].log()
        packs = [key for key in store.repository.objects.list("packs/") if key.endswith(".pack")]
        seen.append((revision.message, revision.lineage, len(packs), revision.content_manifest[:0]))
        kinds = [entry.kind for entry in store.repository.refs.history("w")]
        assert kinds == ["create", "lease", "commit", "release"]
    assert seen[0] == seen[1]


def test_large_contents_go_into_packs_once(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.create("w")
    text = random.Random(1).randbytes(3_000_000).hex()

    def packed() -> int:
        return sum(len(store.repository.objects.get(key)) for key in store.repository.objects.list("packs/"))

    async def act() -> None:
        async with store.open("w", drafts="each", mounts={"/data": RAMResource()}) as ws:
            await ws.dispatch("write", "/data/big", text.encode())
            before = packed()
            assert before > 2_900_000, "it is there before there is a revision"
            await ws.execute("mv /data/big /data/large; chmod 600 /data/large; echo x >> /data/large")
            await ws.commit("all")
            assert packed() < before + 700_000, "only what changed of it was written again"

    asyncio.run(act())
    assert b"".join(store["w"].show("/data/large")) == text.encode() + b"x\n" and not drafts_in(store)


# --------------------------------------------------------------------------------------------------- the next open


def test_death_at_every_write_makes_one_revision_all_the_same() -> None:
    """Of the writing of drafts, of a commit on the way, of the recovery and of what comes after it."""
    objects = MemoryObjects()
    store = Store(objects)
    store.create("w")
    abandoned(store, "mkdir d; echo 1 > d/f; echo 1 > g")

    async def work(store: Store, seen: list[str]) -> None:
        async with store.open("w", commit="never", drafts="each") as ws:
            for number in range(2, 5):
                await ws.execute(f"echo {number} > g")
                seen.append(str(number))
            await ws.commit("on the way")
            await ws.execute("echo 5 > g")
            seen.append("5")
            await ws.commit("the end")

    for number in range(300):
        dying, seen = Dying(dict(objects._objects), number), list[str]()
        try:
            asyncio.run(work(Store(dying, clock=later), seen))
            died = False
        except Killed:
            died = True
        left = MemoryObjects()
        left._objects.update(dying._objects)
        after = Store(left, clock=lambda: later() + 3600)
        text, _ = opened(after, "cat d/f g")
        last = int(seen[-1]) if seen else 1
        assert text in (f"1\n{last}\n", f"1\n{last + 1}\n"), (number, text, seen)
        assert not drafts_in(after) and after.ls() == ["w"]
        report = after.verify()
        assert report.ok, (number, [str(damage) for damage in report.damages])
        log = after["w"].log()
        assert len({(r.content_manifest, r.kernel) for r in log}) == len(log), "no revision says what another said"
        kinds = Counter(entry.kind for entry in after.repository.refs.history("w"))
        assert kinds["recover:1"] == 1 and kinds["recover:2"] <= 1, (number, kinds)
        if not died:
            break
    assert not died


def test_a_death_in_an_end_with_outputs_keeps_those_or_everything() -> None:
    """Never both: a revision of the outputs is not followed by one of what they left out."""
    objects = MemoryObjects()
    Store(objects).create("w")
    seen = set()
    for number in range(200):
        dying = Dying(dict(objects._objects), 1000)

        async def work(dying: Dying = dying, number: int = number) -> None:
            async with Store(dying).open("w", commit="never", drafts="each") as ws:
                await ws.execute("mkdir a b; echo 1 > a/f; echo 2 > b/f")
                dying.left = number
                await ws.commit("the end", outputs=["/a"])

        try:
            asyncio.run(work())
            died = False
        except Killed:
            died = True
        left = MemoryObjects()
        left._objects.update(dying._objects)
        after = Store(left, clock=later)
        text, _ = opened(after, "cat a/f b/f")
        seen.add(text)
        assert [r.seq for r in after["w"].log()] == [1] and not drafts_in(after) and after.verify().ok
        if not died:
            break
    assert not died and seen == {"1\n2\n", "1\n"}


SCRIPTS = (
    "echo {n} > f{a}", "echo {n} >> f{a}", "seq {n}00 > g{a}", "echo {n} >> g{a}", "truncate -s 5000 g{a}",
    "rm -rf f{a}",
    "mkdir -p d{a}/e{b}; echo {n} > d{a}/e{b}/f", "rm -rf d{a}", "mv d{a} d{b}", "mv f{a} f{b}", "ln -sfn f{a} l{b}",
    "rm -f l{a}; mkdir -p l{a}", "rm -rf l{a}; echo {n} > l{a}", "chmod 7{a}{b} f* d* g*", "touch -d @{n} f{a} d{b} .",
    "cp -r d{a} c{b}", "mkfifo p{a}", "rm -f p{a}; echo {n} > p{a}", "rm -rf l{a}; mkfifo l{a}", "seq 9000 > h{a}",
    "cp h{a} h{b}", "printf {n} | dd of=h{a} bs=1 seek=20000 conv=notrunc", "echo {n} > /tmp/t{a}; x={n}",
    "ln f{a} k{b}", "echo {n} >> k{a}", "touch 'n {a}' .netrc; echo {n} > d{a}/.npmrc",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_a_draft_is_exactly_what_is_there(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of what is recovered have the ids of what was there: names, kinds, modes, times, links and contents."""
    monkeypatch.setattr(drafting, "MAX_STEPS", 7)
    monkeypatch.setattr(drafting, "STEP_BYTES", 60_000)
    rng, place = random.Random(seed), MemoryObjects()
    store = Store(place)
    store.create("w")

    def trees(ws: StoredWorkspace) -> dict[str, str]:
        writer = Repository(MemoryObjects()).writer()
        rams = {str(m.prefix): m.memory for m in ws.mounts(scratch=True) if m.memory is not None}
        rules = CommitFilter(DEFAULT_RULES)
        return {p: commit_memory(ram.fork(), writer, object(), rules).tree.hex() for p, ram in rams.items()}

    async def recovered() -> dict[str, str]:
        copy = MemoryObjects()
        copy._objects.update(place._objects)
        async with Store(copy, clock=later).open("w", commit="never") as ws:
            assert not list(copy.list("drafts/")) and len(ws.recovered) <= 1
            assert ws.base is not None
            return {mount.prefix: mount.tree.hex() for mount in ws.base.mounts if mount.tree is not None}

    async def then(ws: StoredWorkspace) -> None:
        links = seed % 2
        for number in range(60):
            script = rng.choice(SCRIPTS[: None if links else -3])
            await ws.execute(script.format(n=rng.randrange(1, 100), a=rng.randrange(3), b=rng.randrange(3)))
            if rng.random() < 0.08:
                await ws.commit(str(number))
            if rng.random() < 0.08:
                Store(place).gc(grace=0)
            if number % 3 == 2:
                assert await recovered() == trees(ws), (number, script)

    abandoned(store, "mkdir d0 d1; echo 0 > f0", then=then)


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_what_others_committed_meanwhile_is_not_overwritten(key: bytes | None) -> None:
    place = MemoryObjects()
    store = Store(place, key=key, clock=later)
    store.create("w")

    async def begin() -> None:
        async with store.open("w") as ws:
            await ws.execute("mkdir /d; echo old > /d/f; echo old > /g")

    asyncio.run(begin())
    abandoned(Store(place, key=key), "echo mine > /g; echo mine > /h")
    store["w"].revert("1", "somebody else moves the head")
    text, (found,) = opened(Store(place, key=key, clock=lambda: later() + 3600), "cat /g; ls /")
    assert text.startswith("old\n") and "h\n" not in text
    assert found.workspace == "w-recovered-2"
    after = Store(place, key=key, clock=lambda: later() + 7200)
    assert opened(after, "cat /d/f /g /h", name=found.workspace)[0] == "old\nmine\nmine\n"
    if key is not None:
        after.keys.shred("w")
        other = Store(place, key=key, clock=lambda: later() + 7200)
        assert opened(other, "cat /d/f /g /h", name=found.workspace)[0] == "old\nmine\nmine\n"
    assert after.verify().ok and not drafts_in(after)


def test_memory_and_directories_of_one_process_are_one_revision(tmp_path: Path) -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")
    mounts = {"/dir": DiskResource(str(tmp_path)), "/mem": RAMResource()}
    abandoned(store, "echo 1 > /dir/f; echo 2 > /mem/f", mounts=mounts)
    after = Store(place, clock=later)
    text, (found,) = opened(after, "cat /dir/f /mem/f", resources={"/dir": DiskResource(str(tmp_path))})
    assert text == "1\n2\n" and found.revision.seq == 1 and [r.seq for r in after["w"].log()] == [1]
    assert not drafts_in(after) and not list(place.list("bindings/"))


def test_sessions_history_links_times_and_modes_come_back() -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")
    scripts = [
        "export A=1; b=(x y); f() { echo called; }; mkdir -p p/q; cd p; echo one > q/one; ln q/one q/two",
        "chmod 751 q; touch -d 2021-02-03T04:05:06 q/one q; ln -s q/one l; mkfifo pipe; b+=(z)",
        *(f"echo {number} >> log" for number in range(300)),
        "mv q r; echo end > r/end; touch -d 2021-02-03T04:05:06 r",
    ]
    abandoned(store, *scripts)
    script = "echo $A ${b[*]}; f; pwd; stat -c '%a %Y %h' r r/one r/two; readlink l; wc -l < log; tail -1 log; ls"
    text, (found,) = opened(Store(place, clock=later), script)
    assert text.splitlines() == [
        "1 x y z", "called", "/p", "751 1612325106 2", "644 1612325106 2", "644 1612325106 2", "q/one", "300", "299",
        "l", "log", "r",
    ]  # fmt: skip
    assert found.revision.ops == {"first": 1, "last": 304, "writers": {}, "lines": {}}

    async def numbers() -> list[int]:
        async with Store(place, clock=lambda: later() + 3600).open("w", readonly=True) as ws:
            return [record.number for record in ws.history]

    assert asyncio.run(numbers()) == list(range(1, 305))


def test_a_late_writer_is_refused_and_its_draft_ignored() -> None:
    place, ahead = MemoryObjects(), [0.0]
    store = Store(place, clock=lambda: time.time() + ahead[0])
    store.create("w")

    async def late(ws: StoredWorkspace) -> None:
        ahead[0] = 3600.0  # it slept, and somebody else took over meanwhile
        assert (await other(Store(place, clock=later))) == "1\n"
        for clock in (3600.0, 0.0):  # also with a clock that says that there is time left
            ahead[0] = clock
            with pytest.raises(RametError) as caught:
                await ws.execute(f"echo late > f; x={clock}")
            assert caught.value.code == "lease_lost"

    async def other(store: Store) -> str:
        async with store.open("w") as ws:
            return (await ws.execute("cat f; echo theirs > g")).text

    abandoned(store, "echo 1 > f", then=late)
    assert drafts_in(store), "what the late one wrote"
    after = Store(place, clock=lambda: later() + 3600)
    text, recovered = opened(after, "cat f g")
    assert (text, recovered, after.ls()) == ("1\ntheirs\n", [], ["w"])
    assert not drafts_in(after) and after.verify().ok


def test_who_opens_too_late_leaves_nothing_to_believe() -> None:
    """The lease is taken, then the process sleeps, and another one takes it over before the draft is opened."""

    class Slow(MemoryObjects):
        def put(self, key: str, data: bytes) -> None:
            if key.startswith("drafts/") and later_one:
                opened(Store(self, clock=later_one.pop()), "echo theirs > f", drafts="each")
            super().put(key, data)

    later_one: list[Any] = []
    place = Slow()
    store = Store(place)
    store.create("w")
    later_one.append(later)
    with pytest.raises(RametError) as caught:
        opened(store, "echo mine > f", drafts="each")
    assert caught.value.code == "lease_lost" and not drafts_in(store)
    assert opened(Store(place, clock=lambda: later() + 3600))[1] == [] and store.ls() == ["w"]


class Unsynced(DirectoryObjects):
    """Knows what a loss of power may take."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.laid: list[str] = []

    def put_unsynced(self, key: str, data: bytes) -> None:
        super().put_unsynced(key, data)
        self.laid.append(key)


@pytest.mark.parametrize("lost", [1.0, 0.3])
def test_a_loss_of_power_takes_at_most_what_was_not_synced(tmp_path: Path, lost: float) -> None:
    place, rng = Unsynced(str(tmp_path)), random.Random(1)
    store = Store(place)
    store.create("w")
    abandoned(store, *(f"echo {number} > f" for number in range(80)))
    gone = [key for key in place.laid if rng.random() < lost]
    for key in gone:
        place.delete(key)
    after = Store(str(tmp_path), clock=later)
    text, (found,) = opened(after, "cat f")
    assert 64 <= int(text) < 80 and found.workspace == "w"
    assert after.verify().ok and not drafts_in(after)


# ------------------------------------------------------------------------------------------ what else a store does


def test_collections_keep_what_drafts_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "STEP_BYTES", 10_000)
    place = MemoryObjects()
    store, other = Store(place), Store(place)
    store.create("w")
    big = random.Random(3).randbytes(20_000).hex()

    async def then(ws: StoredWorkspace) -> None:
        other.gc(grace=0)
        await ws.execute(f"printf %s {big} > big2; cp big big3")
        other.retention(Retention(keep_last=1))
        await ws.commit("one")
        await ws.execute("rm big; echo s > small")
        await ws.commit("two")
        other.gc(grace=0)
        await ws.execute("mv d e; rm big2")
        other.gc(grace=0)

    abandoned(store, f"mkdir d; echo 1 > d/f; printf %s {big} > big", then=then)
    Store(place).gc(grace=0)
    after = Store(place, clock=later)
    assert after.verify().ok
    text, (found,) = opened(after, "cat e/f small; wc -c < big3; ls -d big* e small")
    assert text == f"1\ns\n{len(big)}\nbig3\ne\nsmall\n" and found.workspace == "w"
    after.gc(grace=0)
    assert after.verify().ok


@pytest.mark.parametrize("how", ["rm", "shred", "again"])
def test_what_is_removed_has_no_drafts(how: str) -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    abandoned(store, "echo 1 > f")
    after = Store(place, key=KEY, clock=later)
    assert len(drafts_in(after)) == 2
    if how == "shred":
        after.keys.shred("w")
    else:
        after.rm("w")
    if how == "again":
        after.create("w")
        assert opened(after, "ls /")[1] == []
    assert bool(drafts_in(after)) is (how == "rm") and after.verify().ok, "the trash keeps them"
    after.gc(grace=0)
    assert not drafts_in(after)


def test_a_draft_comes_back_with_its_workspace() -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")
    abandoned(store, "echo 1 > f")
    after = Store(place, clock=later)
    after.rm("w")
    after.restore("w")
    text, recovered = opened(after, "cat f")
    assert text == "1\n" and len(recovered) == 1


def test_a_new_key_opens_old_drafts() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    abandoned(store, "echo 1 > f")
    store.keys.rotate(OTHER)
    text, recovered = opened(Store(place, key=OTHER, clock=later), "cat f")
    assert text == "1\n" and len(recovered) == 1


def test_no_secret_is_in_a_draft(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.create("w")

    async def then(ws: StoredWorkspace) -> None:
        for path in ("/a/.ssh/id", "/x.key", "/.netrc"):
            await ws.dispatch("write", path, b"planted")
        await ws.execute("mv a b; cp x.key y.key; rm x.key; export Z=$TOKEN")

    abandoned(
        store, "mkdir -p a/.ssh; echo fine > a/f; Y=$TOKEN; echo $TOKEN", then=then, secrets={"TOKEN": "planted-too"},
        withhold=["*.key"],
    )  # fmt: skip
    packed = [drafting_text(data) for path, data in everything(tmp_path) if "/drafts/" in path]
    assert any(b"fine" in text for text in packed)
    assert not [text for text in packed if b"planted" in text]
    text, (found,) = opened(Store(str(tmp_path), clock=later), "ls -A / b")
    assert found.revision.withheld == ("/.netrc", "/b/.ssh", "/y.key") and ".netrc" not in text


def drafting_text(data: bytes) -> bytes:
    """Everything that a step says, as it is before it is packed."""
    from ramet.store.objects.compression import decompress
    from ramet.store.refs.drafts import DIGEST, MAGIC

    return decompress(data[len(MAGIC) + DIGEST :])


def test_content_that_a_commit_would_refuse_is_refused() -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")

    async def then(ws: StoredWorkspace) -> None:
        with pytest.raises(RametError) as caught:
            await ws.execute("echo AKIAIOSFODNN7EXAMPLQ > key")
        assert caught.value.code == "secret_found"
        await ws.execute("echo nothing > key; echo 2 > f")

    abandoned(store, "echo 1 > f", then=then, scan="refuse")
    assert opened(Store(place, clock=later), "cat f key")[0] == "2\nnothing\n"


def test_a_commit_with_outputs_on_the_way(tmp_path: Path) -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")

    async def then(ws: StoredWorkspace) -> None:
        await ws.commit("narrow", outputs=["/a"])
        await ws.execute("echo 3 > a/more")

    abandoned(store, "mkdir a b; echo 1 > a/f; echo 2 > b/f", then=then)
    after = Store(place, clock=later)
    text, _ = opened(after, "cat a/f b/f a/more")
    assert text == "1\n2\n3\n" and [r.seq for r in after["w"].log()] == [2, 1]


# -------------------------------------------------------------------------------------------------------- damage


def test_damage_is_reported_and_what_came_before_it_is_kept() -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")
    abandoned(store, *(f"echo {number} > f{number}" for number in range(5)))
    steps = drafts_in(store)
    place._objects[steps[3]] = place._objects[steps[3]][:-1] + b"?"
    after = Store(place, clock=later)
    report = after.verify()
    assert {damage.what for damage in report.damages} == {"draft"} and "w" in str(report.damages[0])
    with pytest.raises(RametError):
        after.gc(grace=0)  # what cannot be read may need anything
    text, (found,) = opened(after, "ls -d f*")
    assert text == "f0\nf1\n" and found.workspace == "w"
    assert after.verify().ok and len(list(place.list("damaged/drafts/"))) == 3


@pytest.mark.parametrize("drop", [False, True])
def test_repair_quarantines_what_it_cannot_read(drop: bool) -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")
    abandoned(store, "echo 0 > f0", "echo 1 > f1")
    place._objects[drafts_in(store)[-1]] = b"?"
    after = Store(place, clock=later)
    after.repair(drop=drop)
    assert after.verify().ok and bool(list(place.list("damaged/"))) is not drop
    assert opened(after, "ls -d f*")[0] == "f0\n"


def test_repair_lets_go_of_what_needs_content_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "STEP_BYTES", 10)
    place = MemoryObjects()
    store = Store(place)
    store.create("w")
    abandoned(store, "echo a large content > f")
    for key in list(place.list("packs/")):
        place.delete(key)
    after = Store(place, clock=later)
    assert [damage.what for damage in after.verify().damages] == ["draft"]
    with pytest.raises(RametError):
        opened(after)
    after.repair(drop=True)
    assert after.verify().ok and opened(Store(place, clock=lambda: later() + 3600), "echo f*") == ("f*\n", [])


# ------------------------------------------------------------------------------------------------------- policies


@pytest.mark.parametrize(("drafts", "kept"), [("off", False), ("each", True), (0.001, True), (3600, False)])
def test_when_drafts_are_written(drafts: str | float, kept: bool) -> None:
    place = MemoryObjects()
    store = Store(place)
    store.create("w")

    async def then(ws: StoredWorkspace) -> None:
        for _ in range(20_000):
            if len(drafts_in(store)) > 1 or not kept:
                break
            await asyncio.sleep(0.005)

    abandoned(store, "echo 1 > f", drafts=drafts, then=then)
    assert bool(opened(Store(place, clock=later))[1]) is kept


@pytest.mark.parametrize("drafts", ["always", 0, -1, True, float("nan")])
def test_policies_that_cannot_be(drafts: Any) -> None:
    store = Store("memory:")
    store.create("w")
    with pytest.raises(RametError) as caught:
        store.open("w", drafts=drafts)
    assert caught.value.code == "invalid_argument"
