"""Keys of encrypted workspaces: what they open, what forks and merges get, how they are rotated and destroyed."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.encrypted import KEY, OTHER, everything, objects_of, refused, run, text

from ramet import Store
from ramet.core.errors import RametError
from ramet.store.commit.reliance_check import new_object_ids
from ramet.store.crypto.codec import MARKER
from ramet.store.crypto.keyrings import Keyrings
from ramet.store.crypto.wrapping_keys import KmsKey, LocalKey
from ramet.store.objects.objects import MemoryObjects, Objects


def ids(store: Store, name: str) -> set[str]:
    return {identity for ring in store.keys.show() if ring.workspace == name for identity in ring.ids}


def on_its_own(store: Store) -> None:
    """Every workspace opens everything of its history with its own keys."""
    repository = store.repository
    repository.packs.refresh()
    for name in store.ls():
        keys = repository.keys_of(name)
        assert keys is not None
        for revision in store[name].log():
            sealed_with = objects_of(store).key_of(f"revisions/{revision.id.hex()}")
            assert sealed_with in keys, (name, revision.name)
            lost = [
                key.hex()
                for key in new_object_ids(repository.packs, revision, None)
                if not repository.packs.keeps(key, keys)
            ]
            assert not lost, (name, revision.name)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_workspaces_do_not_need_each_other(seed: int) -> None:
    """Random histories; then all but one workspace are shredded, one after the other, and the others stay whole."""
    dice = random.Random(seed)
    place = MemoryObjects()
    store = Store(place, key=KEY)
    names = ["w0"]
    store.create("w0")
    run(store, "w0", "mkdir /d; seq 500 > /d/same; echo start > /start")
    for number in range(1, 26):
        name, what = dice.choice(names), dice.random()
        if dice.random() < 0.3:
            store = Store(place, key=KEY)
        if what < 0.4:
            same = dice.randrange(4)
            run(
                store, name, f"mkdir -p /e{same}; seq {300 + same} > /e{same}/same; echo {number} > /by-{name}-{number}"
            )
        elif what < 0.6:
            log = store[name].log()
            names.append(f"w{number}")
            store[name].fork(dice.choice(log).id.hex(), names[-1])
        elif what < 0.75:
            store[name].merge(dice.choice(names))
        elif what < 0.82:
            store[name].revert(dice.choice(store[name].log()).id.hex())
        elif what < 0.88:
            archive = io.BytesIO()
            store[name].export(archive)
            archive.seek(0)
            names.append(f"w{number}")
            store.import_archive(names[-1], archive)
        elif what < 0.95:
            store.gc(grace=0)
        elif len(names) > 2:
            names.remove(name)
            store.rm(name)
    on_its_own(store)
    before = {name: [r.id for r in store[name].log()] for name in names}
    files = {name: text(store, name, "find / -type f | sort | xargs cat") for name in names}
    dice.shuffle(names)
    while len(names) > 1:
        store = Store(place, key=KEY)
        store.keys.shred(names.pop())
        store = Store(place, key=KEY)
        assert store.verify().ok
        on_its_own(store)
        for name in names:
            assert [r.id for r in store[name].log()] == before[name]
            assert text(store, name, "find / -type f | sort | xargs cat") == files[name]


def test_a_workspace_relies_on_nothing_that_only_another_can_open() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    for name in ("a", "b"):
        store.create(name)
        run(store, name, "seq 30000 > /same; mkdir /d; echo x > /d/x")
    assert not ids(store, "a") & ids(store, "b")
    done = store.keys.shred("a")
    assert done.destroyed == 1 and not done.kept_by and done.removed
    fresh = Store(place, key=KEY)
    assert fresh.verify().ok and text(fresh, "b", "tail -1 /same; cat /d/x") == "30000\nx\n"


def test_a_tree_that_was_committed_elsewhere_is_written_again_for_its_own_keys() -> None:
    """A memory mount remembers where it is stored; another workspace must not rely on that."""
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("a")
    store.create("b")

    async def act() -> None:
        async with store.open("a") as ws:
            await ws.execute("seq 30000 > /same")
            await ws.commit("in a")
            shared = ws.mounts()[0].resource
            async with store.open("b", mounts={"/": shared}) as other:
                await other.commit("in b")

    asyncio.run(act())
    store.keys.shred("a")
    assert Store(place, key=KEY).verify().ok and text(Store(place, key=KEY), "b", "tail -1 /same") == "30000\n"


def test_a_fork_opens_what_was_there_and_nothing_later() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("a")
    run(store, "a", "echo early > /f")
    store["a"].fork(None, "b")
    run(store, "a", "echo late > /late")
    run(store, "b", "echo mine > /mine")
    assert len(ids(store, "a") & ids(store, "b")) == 1
    late = store.repository.node(store.find("a"), "/late").payload
    pack = store.repository.packs.place(late).pack
    assert store.repository.packs.key_of(pack).hex() not in ids(store, "b")
    early = store.repository.packs.key_of(
        store.repository.packs.place(store.repository.node(store.find("b"), "/f").payload).pack
    )
    assert early.hex() in ids(store, "b")
    done = store.keys.shred("a")
    assert done.destroyed == 1 and done.kept_by == {"b": 1}
    fresh = Store(place, key=KEY)
    assert fresh.ls() == ["b"] and text(fresh, "b", "cat /f /mine") == "early\nmine\n" and fresh.verify().ok
    assert [revision.name for revision in fresh["b"].log()] == ["b-2", "b-1", "a-1"]
    with pytest.raises(RametError):
        fresh.repository.packs.read(late)


def test_a_fork_of_the_past_gets_no_key_of_what_came_after() -> None:
    store = Store("memory:", key=KEY)
    store.create("a")
    run(store, "a", "echo 1 > /f")
    store["a"].fork(None, "b")
    run(store, "a", "echo 2 > /f")
    store["a"].fork("1", "c")
    assert ids(store, "c") - ids(store, "b") == ids(store, "c") - ids(store, "a")
    run(store, "a", "echo 3 > /f")
    assert len(ids(store, "a")) == 2, "nobody has the second key, so it goes on"
    assert text(store, "c", "cat /f") == "1\n"


def test_a_fork_of_a_fork_opens_all_of_its_past() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("a")
    run(store, "a", "echo 1 > /f1")
    store["a"].fork(None, "b")
    run(store, "b", "echo 2 > /f2")
    store["b"].fork(None, "c")
    run(store, "c", "echo 3 > /f3")
    store.keys.shred("a")
    store.keys.shred("b")
    fresh = Store(place, key=KEY)
    assert text(fresh, "c", "cat /f1 /f2 /f3") == "1\n2\n3\n" and fresh.verify().ok
    assert len(fresh["c"].log()) == 5


def test_what_was_merged_stays_readable() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("a")
    run(store, "a", "echo base > /base")
    store["a"].fork(None, "b")
    run(store, "b", "seq 9000 > /theirs")
    run(store, "a", "echo ours > /ours")
    assert store["a"].merge("b").ok
    store["a"].fork(None, "c")
    for name in ("b", "a"):
        store.keys.shred(name)
    fresh = Store(place, key=KEY)
    assert text(fresh, "c", "cat /base /ours; tail -1 /theirs") == "base\nours\n9000\n" and fresh.verify().ok


def test_a_merge_with_conflicts_and_a_fork_that_is_refused_copy_no_keys() -> None:
    store = Store("memory:", key=KEY)
    store.create("a")
    run(store, "a", "echo base > /f")
    store["a"].fork(None, "b")
    run(store, "a", "echo one > /f")
    run(store, "b", "echo two > /f")
    before = ids(store, "a"), ids(store, "b")
    assert not store["a"].merge("b").ok
    with pytest.raises(RametError, match="exists"):
        store["b"].fork(None, "a")
    assert (ids(store, "a"), ids(store, "b")) == before


# ---------------------------------------------------------------------------------------------------------- destroying


def test_shredding_leaves_nothing_to_open(tmp_path: Path) -> None:
    where = tmp_path / "store"
    store = Store(str(where), key=KEY)
    store.create("gone")
    store.create("stays")
    run(store, "gone", "seq 20000 > /n", "rm /n")
    store["gone"].tag("t", message="hello")
    run(store, "stays", "echo x > /x")
    before = dict(everything(where))
    done = store.keys.shred("gone")
    assert done.destroyed == 1 and done.removed == 4
    after = dict(everything(where))
    fresh = Store(str(where), key=KEY)
    assert fresh.ls() == ["stays"] and fresh.verify().ok and "gone" not in fresh
    # Whoever kept a copy of the bucket without the keyring has nothing: what was removed does not open any more.
    for path, data in before.items():
        if "/packs/" in path and path not in after:
            Path(path).write_bytes(data)
    again = Store(str(where), key=KEY)
    assert again.verify().ok, "what nobody can open is no damage"
    lost = [path for path in before if path.endswith(".pack") and path not in after]
    assert lost and len(again.repository.packs.packs()) == 1
    with pytest.raises(RametError) as caught:
        objects_of(again).get(f"packs/{Path(lost[0]).stem}.idx")
    assert caught.value.code == "wrong_key" and "destroyed" in caught.value.cause
    assert [ring.state for ring in again.keys.show()] == ["shredded", "exists"]
    again.create("gone")
    run(again, "gone", "echo anew > /f")
    assert text(again, "gone", "cat /f") == "anew\n" and again.verify().ok


def test_a_workspace_in_use_or_unknown_is_not_shredded() -> None:
    store = Store("memory:", key=KEY)
    store.create("w")

    async def act() -> None:
        async with store.open("w"):
            with pytest.raises(RametError) as caught:
                store.keys.shred("w")
            assert caught.value.code == "workspace_busy"

    asyncio.run(act())
    assert store.ls() == ["w"] and store.keys.shred("w").destroyed == 1 and store.ls() == []
    with pytest.raises(RametError) as caught:
        store.keys.shred("never-there")
    assert caught.value.code == "workspace_not_found"
    with pytest.raises(RametError) as caught:
        Store("memory:").keys.show()
    assert caught.value.code == "unsupported"


class Meanwhile(MemoryObjects):
    """Does something when it was asked for so many things."""

    left = -1
    act: Any = None

    def step(self) -> None:
        self.left -= 1
        if self.left == -1 and self.act is not None:
            act, self.act = self.act, None
            act()

    def get(self, key: str) -> bytes:
        self.step()
        return super().get(key)

    def put(self, key: str, data: bytes) -> None:
        self.step()
        super().put(key, data)
        self.step()

    def create(self, key: str, data: bytes) -> bool:
        self.step()
        return super().create(key, data)

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        self.step()
        return super().list(prefix, after)


def test_a_fork_and_a_shredding_at_once_leave_all_of_it_or_nothing() -> None:
    """Wherever in a fork its source is shredded, it is refused, or it opens everything it has."""
    place = Meanwhile()
    Store(place, key=KEY).create("w")
    run(Store(place, key=KEY), "w", "echo one > /f", "echo two > /f")
    before, ends = dict(place._objects), set()
    for number in range(400):
        place._objects, place.act = dict(before), None
        store, other = Store(place, key=KEY), Store(place, key=KEY)
        place.left, place.act = number, lambda other=other: other.keys.shred("w")
        try:
            store["w"].fork(None, "side")
            ends.add("made")
        except RametError as error:
            ends.add(error.code)
        over = place.act is not None
        place.act = None
        after = Store(place, key=KEY)
        report = after.verify()
        assert report.ok, (number, [str(damage) for damage in report.damages])
        if "side" in after:
            assert text(after, "side", "cat /f") == "two\n", number
            on_its_own(after)
        if not over:
            assert "w" not in after
            held = ids(after, "side")
            assert "side" in after or not held, (number, "a key outlived its shredding")
        if over:
            break
    assert over and "made" in ends and "workspace_not_found" in ends


def test_shredding_twice_takes_nothing_from_a_fork() -> None:
    place, store = some_rings()
    for _ in range(3):
        done = store.keys.shred("a")
        assert done.kept_by == {"b": 1}
        fresh = Store(place, key=KEY)
        assert text(fresh, "b", "cat /f") == "1\n" and fresh.verify().ok


def test_a_shredding_that_is_cut_off_anywhere_is_ended_by_the_next() -> None:
    writes = 0
    while True:
        place, store = some_rings()
        place.left = writes
        try:
            store.keys.shred("a")
            break
        except Interrupted:
            place.left = None
        between = Store(place, key=KEY)
        assert text(between, "b", "cat /f") == "1\n" and between.verify().ok, writes
        between.keys.shred("a")
        after = Store(place, key=KEY)
        assert after.ls() == ["b"] and text(after, "b", "cat /f") == "1\n" and after.verify().ok
        assert not list(place.list("damaged/")) and len(after.repository.packs.packs()) == 2
        writes += 1
    assert writes > 6


def test_a_keyring_that_cannot_be_read_stops_a_shredding() -> None:
    place, store = some_rings()
    sealed = objects_of(store)
    theirs = next(key for key in sealed.list("keys/b/") if "-" not in key)
    raw = sealed.keychain.names.encrypt(theirs)
    held = place.get(raw)
    place.put(raw, held[:-1])
    with pytest.raises(RametError) as caught:
        Store(place, key=KEY).keys.shred("a")
    assert caught.value.code == "store_corrupt", "it may have copies of the keys"
    place.put(raw, held)
    assert Store(place, key=KEY).verify().ok


def test_a_removed_workspace_keeps_its_keys_until_they_are_shredded() -> None:
    store = Store("memory:", key=KEY)
    store.create("w")
    run(store, "w", "echo x > /x")
    store.rm("w")
    assert [ring.state for ring in store.keys.show()] == ["removed"]
    assert store.keys.shred("w").destroyed == 1


# ------------------------------------------------------------------------------------------------------------ rotating


class Interrupted(Exception):
    """What a power cut is to a test."""


class Brittle(MemoryObjects):
    """Fails at a chosen write."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None

    def _spend(self) -> None:
        if self.left is not None:
            if not self.left:
                raise Interrupted
            self.left -= 1

    def put(self, key: str, data: bytes) -> None:
        self._spend()
        super().put(key, data)

    def delete(self, key: str) -> None:
        self._spend()
        super().delete(key)


def some_rings() -> tuple[Brittle, Store]:
    place = Brittle()
    store = Store(place, key=KEY)
    store.create("a")
    run(store, "a", "echo 1 > /f")
    store["a"].fork(None, "b")
    run(store, "a", "echo 2 > /f")
    return place, store


def opens(place: Objects, key: bytes) -> bool:
    """Whether a key opens the store and everything in it."""
    try:
        store = Store(place, key=key)
        return text(store, "a", "cat /f") == "2\n" and text(store, "b", "cat /f") == "1\n" and store.verify().ok
    except RametError as error:
        assert error.code == "wrong_key", error
        return False


def test_rotation_changes_keyrings_and_no_data() -> None:
    place, store = some_rings()
    before = {key: place.get(key) for key in place.list("")}
    assert store.keys.rotate(OTHER)
    changed = {key for key in place.list("") if place.get(key) != before[key]}
    assert changed and all(key == MARKER or key.startswith("keys/") for key in changed)
    assert opens(place, OTHER) and not opens(place, KEY)
    assert store.keys.rotate(OTHER) == 0, "there is nothing left to do"
    run(store, "a", "echo 2 > /f; echo 3 > /g")
    assert {ring.wrapped_by for ring in Store(place, key=OTHER).keys.show()} == {(LocalKey(OTHER).id,)}


def test_a_rotation_that_is_cut_off_anywhere_keeps_a_working_key() -> None:
    writes = 0
    while True:
        place, store = some_rings()
        place.left = writes
        try:
            store.keys.rotate(OTHER)
            break
        except Interrupted:
            place.left = None
        old, new = opens(place, KEY), opens(place, OTHER)
        assert old or new, writes
        Store(place, key=KEY if old else OTHER).keys.rotate(OTHER)
        assert opens(place, OTHER) and not opens(place, KEY)
        writes += 1
    assert writes > 6


def test_a_ring_that_was_made_while_rotating_is_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    place, store = some_rings()
    late = Store(place, key=KEY)
    assert text(late, "a", "cat /f") == "2\n"
    store.keys.rotate(OTHER)
    with pytest.raises(RametError) as caught:
        late["a"].fork(None, "late")
    assert caught.value.code == "wrong_key", "nobody could open a ring that only the old key wraps"
    run(late, "a", "echo 2 > /f; echo more > /more")
    assert text(Store(place, key=OTHER), "a", "cat /more") == "more\n", "a key more in a ring that is there is no harm"
    monkeypatch.setattr(Keyrings, "_still_valid", lambda rings: None)
    late.create("late")
    run(late, "late", "echo x > /x")
    fresh = Store(place, key=OTHER)
    with pytest.raises(RametError) as caught:
        fresh.keys.rotate(OTHER)
    assert caught.value.code == "wrong_key"
    assert fresh.keys.rotate(OTHER, KEY) and text(Store(place, key=OTHER), "late", "cat /x") == "x\n"


# -------------------------------------------------------------------------------------------------------------- KMS


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    moto = pytest.importorskip("moto")
    import boto3

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with moto.mock_aws():
        yield boto3.client("kms")


def test_a_key_of_kms_wraps_and_never_leaves(kms: Any) -> None:
    key = kms.create_key()["KeyMetadata"]
    kms.create_alias(AliasName="alias/ramet", TargetKeyId=key["KeyId"])
    place = MemoryObjects()
    store = Store(place, key=f"kms:{key['KeyId']}")
    store.create("w")
    run(store, "w", "echo x > /x")
    for name in (key["KeyId"], key["Arn"], "alias/ramet"):
        assert text(Store(place, key=f"kms:{name}"), "w", "cat /x") == "x\n", "one key has several names"
    other = kms.create_key()["KeyMetadata"]["KeyId"]
    refused("wrong_key", place, key=f"kms:{other}")
    refused("wrong_key", place, key="kms:alias/none")
    refused("wrong_key", place, key=KEY)
    store.keys.rotate(KEY)
    assert text(Store(place, key=KEY), "w", "cat /x") == "x\n"
    Store(place, key=KEY).keys.rotate(f"kms:{other}")
    assert text(Store(place, key=KmsKey(other)), "w", "cat /x") == "x\n"
    refused("wrong_key", place, key=KEY)


def test_a_kms_that_is_away_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = pytest.importorskip("botocore.exceptions")

    class Away:
        def encrypt(self, **values: Any) -> Any:
            raise exceptions.EndpointConnectionError(endpoint_url="https://kms.example")

    key = KmsKey("alias/x", Away())
    assert "alias/x" in repr(key)
    with pytest.raises(RametError) as caught:
        key.wrap(bytes(32))
    assert caught.value.code == "unavailable"
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(RametError) as caught:
        KmsKey("alias/x").wrap(bytes(32))
    assert caught.value.code == "missing_extra" and "ramet[kms]" in caught.value.remediation
    with pytest.raises(RametError):
        LocalKey(b"short")


def test_collecting_keeps_what_each_ring_needs() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    for name in ("a", "b"):
        store.create(name)
        run(store, name, "seq 30000 > /same; head -c 400000 /dev/zero | tr '\\0' x > /waste", "rm /waste")
    store.gc(grace=0)
    for number in range(70):
        run(store, "a", f"echo {number} > /n")
    store.gc(grace=0)
    store.gc(grace=0)
    store.keys.shred("a")
    fresh = Store(place, key=KEY)
    assert fresh.verify().ok and text(fresh, "b", "tail -1 /same") == "30000\n"


class Reads(MemoryObjects):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    def get(self, key: str) -> bytes:
        self.keys.append(key)
        return super().get(key)


def test_opening_a_workspace_reads_its_own_keyring_and_no_other() -> None:
    place = Reads()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo x > /x")
    for number in range(20):
        store["w"].fork(None, f"f{number}")
        run(store, f"f{number}", f"echo {number} > /n")
    place.keys.clear()
    fresh = Store(place, key=KEY)
    assert text(fresh, "f3", "cat /x /n") == "x\n3\n"
    assert len([key for key in place.keys if key.startswith("keys/")]) <= 2
    assert len(fresh.repository.packs.packs()) == len(fresh.repository.packs.names()) == 41
    place.keys.clear()
    assert store.gc(grace=0).removed == 0 and Store(place, key=KEY).verify().ok


def test_what_another_process_forked_is_heard_of_by_a_writer_that_is_open() -> None:
    place = MemoryObjects()
    store, other = Store(place, key=KEY), Store(place, key=KEY)
    store.create("a")

    async def act() -> None:
        async with store.open("a") as ws:
            await ws.execute("echo early > /early")
            await ws.commit("early")
            other["a"].fork(None, "b")
            await ws.execute("echo late > /late")
            await ws.commit("late")

    asyncio.run(act())
    late = store.repository.packs.place(store.repository.node(store.find("a"), "/late").payload).pack
    assert store.repository.packs.key_of(late).hex() not in ids(other, "b")
    on_its_own(Store(place, key=KEY))


def test_packs_that_go_without_a_reader() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    for name in ("a", "b"):
        store.create(name)
        run(store, name, f"echo {name} > /f")
    lazy = Store(place, key=KEY)
    store.keys.shred("b")
    lazy.repository.packs.refresh()
    assert lazy.repository.packs.names() == store.repository.packs.packs() and text(lazy, "a", "cat /f") == "a\n"


def test_a_ring_whose_keys_do_not_open_is_damage() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo x > /x")
    sealed = objects_of(store)
    (batch,) = sealed.list("keys/w/")
    held = sealed.get(batch)
    plain = json.loads(held)
    plain["sealed"] = base64.b64encode(bytes(60)).decode()
    for damaged in (json.dumps(plain).encode(), b"{}", b"no json"):
        sealed.put(batch, damaged)
        with pytest.raises(RametError) as caught:
            text(Store(place, key=KEY), "w", "cat /x")
        assert caught.value.code == "store_corrupt"
    sealed.put(batch, held)
    assert text(Store(place, key=KEY), "w", "cat /x") == "x\n"


# ----------------------------------------------------------------------- keyrings that were replaced or put back


def keyring(place: MemoryObjects) -> dict[str, bytes]:
    """The objects of all keyrings, as they lie in the store."""
    names = objects_of(Store(place, key=KEY))
    return {key: place.get(key) for key in map(names.keychain.names.encrypt, names.list("keys/"))}


def test_a_keyring_that_is_put_back_after_a_shredding_opens_nothing() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo secret > /x")
    before = {key: place.get(key) for key in place.list("")}
    store.keys.shred("w")
    for key, data in before.items():
        if "store.json" not in key:
            place.put(key, data)  # everything but the marker: keyring, packs, revisions and refs
    with pytest.raises(RametError) as caught:
        text(Store(place, key=KEY), "w", "cat /x")
    assert caught.value.code in ("wrong_key", "store_corrupt", "workspace_not_found") and "secret" not in str(
        caught.value
    )
    again = Store(place, key=KEY)
    if "w" not in again:
        again.create("w")
        run(again, "w", "echo new > /y")
        assert text(Store(place, key=KEY), "w", "cat /y") == "new\n", "a key that is back encrypts nothing"


def test_a_key_that_is_put_back_opens_and_encrypts_nothing() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo secret > /x")
    old, gone = keyring(place), objects_of(store).keychain.rings.ring("w").ids
    store.keys.shred("w")
    for key, data in old.items():
        place.put(key, data)
    again = Store(place, key=KEY)
    rings = objects_of(again).keychain.rings
    with pytest.raises(RametError, match="the key was destroyed"):
        rings.rings()
        rings.secret(gone[0])
    assert rings.write_key("w")[0] not in gone
    again.create("w")
    run(again, "w", "echo new > /y")
    assert text(Store(place, key=KEY), "w", "cat /y") == "new\n"
    assert again.verify().ok


def test_a_fork_keeps_a_key_that_its_source_destroyed() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo kept > /x")
    store["w"].fork(None, "twin")
    old = keyring(place)
    store.keys.shred("w")
    for key, data in old.items():
        place.put(key, data)
    assert text(Store(place, key=KEY), "twin", "cat /x") == "kept\n"


def test_a_keyring_of_another_store_or_workspace_is_refused() -> None:
    place, other = MemoryObjects(), MemoryObjects()
    for where in (place, other):
        store = Store(where, key=KEY)
        for name in ("w", "v"):
            store.create(name)
            run(store, name, f"echo {name} > /x")
    sealed, foreign = objects_of(Store(place, key=KEY)), objects_of(Store(other, key=KEY))
    (mine,) = sealed.list("keys/w/")
    (next_door,), (theirs,) = sealed.list("keys/v/"), foreign.list("keys/w/")
    name = sealed.keychain.names.encrypt(mine)
    held = place.get(name)
    for replaced in (
        place.get(sealed.keychain.names.encrypt(next_door)),
        other.get(foreign.keychain.names.encrypt(theirs)),
    ):
        place.put(name, replaced)
        with pytest.raises(RametError) as caught:
            text(Store(place, key=KEY), "w", "cat /x")
        assert caught.value.code in ("store_corrupt", "wrong_key")
        assert text(Store(place, key=KEY), "v", "cat /x") == "v\n", "others are not affected"
    place.put(name, held)
    assert text(Store(place, key=KEY), "w", "cat /x") == "w\n"


def test_a_keyring_of_before_a_rotation_does_not_let_the_old_key_in() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo x > /x")
    old = keyring(place)
    store.keys.rotate(OTHER)
    for key, data in old.items():
        place.put(key, data)
    with pytest.raises(RametError) as caught:
        Store(place, key=KEY).ls()
    assert caught.value.code == "wrong_key", "the old key opens neither the store nor a ring"
    with pytest.raises(RametError) as caught:
        text(Store(place, key=OTHER), "w", "cat /x")
    assert caught.value.code == "wrong_key", "and a ring that is older than the store says so"
