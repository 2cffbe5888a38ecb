"""Encryption at rest: nothing to read without a key, the same ids with one; keys are copied, rotated and destroyed."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.servers import S3Server
from tests.store.places import objects_at

from ramet import DiskResource, Store
from ramet.core.errors import RametError
from ramet.store.frames import MARKER
from ramet.store.keyrings import Keyrings
from ramet.store.keys import KmsKey, LocalKey, new_key_file, open_key
from ramet.store.logs import ObjectLog
from ramet.store.objects import DirectoryObjects, MemoryObjects, Objects, ObstoreObjects
from ramet.store.reliance import new_ids
from ramet.store.rewriting import Rewriters
from ramet.store.sealed import SealedObjects, open_sealed
from ramet.store.sealing import DataKey, Names, Sealer, derive, padded_size

KEY, OTHER = bytes(range(32)), bytes(range(32, 64))
PLANTED = ("planted-content", "planted-name", "planted-message", "planted-workspace", "planted-tag", "planted-author")


def run(store: Store, name: str, *scripts: str, **options: Any) -> None:
    async def act() -> None:
        async with store.open(name, **options) as ws:
            for script in scripts:
                await ws.execute(script)
                await ws.commit(script)

    asyncio.run(act())


def text(store: Store, name: str, script: str) -> str:
    async def act() -> str:
        async with store.open(name, readonly=True) as ws:
            return (await ws.execute(script)).text

    return asyncio.run(act())


def refused(code: str, *args: Any, **options: Any) -> RametError:
    with pytest.raises(RametError) as caught:
        Store(*args, **options)
    assert caught.value.code == code and caught.value.remediation
    return caught.value


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            yield path, Path(path).read_bytes()


# ----------------------------------------------------------------------------------------------- opening and refusing


def test_a_store_is_encrypted_from_the_start_or_not_at_all(tmp_path: Path) -> None:
    Store(str(tmp_path / "sealed"), key=KEY).create("w")
    assert Store(str(tmp_path / "sealed"), key=KEY).ls() == ["w"]
    assert "no key was given" in refused("wrong_key", str(tmp_path / "sealed")).cause
    assert "local-" in refused("wrong_key", str(tmp_path / "sealed"), key=OTHER).cause
    Store(str(tmp_path / "plain")).create("w")
    assert "not encrypted" in refused("wrong_key", str(tmp_path / "plain"), key=KEY).cause
    assert not (tmp_path / "plain" / MARKER).exists()


def test_a_marker_that_is_gone_or_changed_is_no_way_in(tmp_path: Path) -> None:
    where = str(tmp_path / "store")
    Store(where, key=KEY).create("w")
    marker = tmp_path / "store" / MARKER
    held = marker.read_bytes()
    marker.unlink()
    refused("wrong_key", where, key=KEY)
    for broken in (b"", b"{}", b'{"format": 1}', held.replace(b"aes-256-gcm-1", b"rot-13")):
        marker.write_bytes(broken)
        assert refused("unsupported" if b"rot" in broken else "store_corrupt", where, key=KEY)
        with pytest.raises(RametError):
            Store(where)
    plain = json.loads(held)
    wrapped = bytearray(base64.b64decode(plain["encryption"]["wraps"][0]["data"]))
    wrapped[-1] ^= 1
    plain["encryption"]["wraps"][0]["data"] = base64.b64encode(wrapped).decode()
    marker.write_bytes(json.dumps(plain).encode())
    refused("wrong_key", where, key=KEY)


def test_of_many_that_make_a_store_at_once_all_have_the_same(tmp_path: Path) -> None:
    where = str(tmp_path / "store")
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: Store(where, key=KEY), range(16)))
    for number, store in enumerate(stores):
        store.create(f"w{number}")
    assert len(Store(where, key=KEY).ls()) == 16 == len(stores[0].ls())


def test_keys_come_from_files_variables_and_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    made = new_key_file(str(path))
    assert path.stat().st_mode & 0o777 == 0o600 and open_key(f"file:{path}").id == made.id
    secret = base64.b64decode(path.read_text())
    for form in (secret, secret.hex(), base64.b64encode(secret).decode(), base64.urlsafe_b64encode(secret).decode()):
        assert open_key(form).id == made.id
    monkeypatch.setenv("A_KEY", secret.hex().upper())
    assert open_key("env:A_KEY").id == made.id
    monkeypatch.setenv("A_KEY", f"file:{path}")
    assert open_key("env:A_KEY").id == made.id
    with pytest.raises(RametError, match="exists already"):
        new_key_file(str(path))
    path.chmod(0o640)
    with pytest.raises(RametError, match="open to other users"):
        open_key(f"file:{path}")
    for bad in ("file:" + str(tmp_path / "none"), "file:" + str(tmp_path), "env:NO_SUCH", "kms:", "short", "g" * 64):
        with pytest.raises(RametError) as caught:
            open_key(bad)
        assert caught.value.code in ("wrong_key", "invalid_config")


def test_no_key_is_in_a_repr_or_an_error(tmp_path: Path) -> None:
    store = Store(str(tmp_path), key=KEY)
    store.create("w")
    sealed = store.repository.objects
    assert isinstance(sealed, SealedObjects)
    shown = [
        repr(sealed),
        repr(sealed.under("w")),
        repr(sealed.vault),
        repr(sealed.under("w").key),
        repr(LocalKey(KEY)),
    ]
    shown += [repr(ring) for ring in store.keys.show()]
    for bad in (KEY.hex()[:-1], "k" * 43 + "!"):
        with pytest.raises(RametError) as caught:
            open_key(bad)
        shown.append(str(caught.value.as_dict()))
        assert bad not in shown[-1]
    for hidden in (KEY.hex(), base64.b64encode(KEY).decode(), repr(KEY)):
        assert not any(hidden in line for line in shown)


# ---------------------------------------------------------------------------------------------------- nothing readable


def planted(store: Store, tree: Path) -> None:
    """Everything that a store keeps, each with words that must not show."""
    tree.mkdir(exist_ok=True)
    (tree / "planted-name-on-disk").write_text("planted-content on disk")
    store.create("planted-workspace")
    mounts = {"/disk": DiskResource(str(tree))}

    async def act() -> None:
        async with store.open("planted-workspace", mounts=mounts) as ws:
            await ws.execute("mkdir /planted-name; seq 9999 > /planted-name/n; echo planted-content > /planted-name/f")
            await ws.execute("ln -s planted-content /link; export PLANTED=planted-content")
            await ws.commit("planted-message", author="planted-author")
        async for event in store.events():
            assert event.id
        from ramet.workspace.delivery import JsonLines

        await store.deliver(JsonLines(str(tree.parent / "events.jsonl")), "planted-name")

    asyncio.run(act())
    store["planted-workspace"].tag("planted-tag", message="planted-message", author="planted-author")
    store["planted-workspace"].fork(None, "planted-workspace-2")
    store.verify()


def test_a_directory_says_nothing(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "store"), key=KEY)
    planted(store, tmp_path / "tree")
    revision = store.find("planted-workspace")
    chunk = store.repository.node(revision, "/planted-name/f").payload
    digests = [revision.id, revision.mounts[0].tree, chunk]
    kept = list(everything(tmp_path / "store"))
    assert any("/local/stat-" in path for path, _ in kept), "the caches of this machine are looked at, too"
    for path, data in kept:
        for word in PLANTED:
            assert word not in path and word.encode() not in data, path
        for digest in digests:
            assert digest is not None and digest not in data and digest.hex() not in path, path
            assert digest.hex().encode() not in data
        assert KEY not in data and KEY.hex().encode() not in data


def test_what_is_in_a_bucket_looks_random_and_sizes_are_coarse() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "seq 20000 > /n; yes | head -c 300000 > /y", "echo more > /m")
    for key in place.list(""):
        data = place.get(key)
        if key == MARKER:
            continue
        body = data[8:] if key.endswith(".pack") else data
        assert len(body) >= 256
        counts = [body.count(bytes([value])) for value in range(256)]
        assert max(counts) < 8 * len(body) / 256 + 24, key
        if key.endswith(".pack"):
            assert len(data) == padded_size(len(data)), "a pack has one of few sizes"
    entries = {len(place.get(key)) for key in place.list("refs/")}
    assert len(entries) == 1, "entries of logs all look alike"


def test_padding_costs_little_and_is_monotonic() -> None:
    last = 0
    for size in [*range(0, 5000, 7), *(2**n + d for n in range(10, 40) for d in (-1, 0, 1, 999))]:
        padded = padded_size(size)
        assert padded >= size and (size < 256 or padded <= size * 1.12) and padded_size(padded) == padded
    for size in range(0, 100_000, 13):
        assert padded_size(size) >= last
        last = padded_size(size)


def test_a_machine_keeps_nothing_plain_of_a_bucket(tmp_path: Path, s3: S3Server) -> None:
    plain = objects_at("s3", tmp_path, s3, f"local-{tmp_path.name}")
    assert isinstance(plain, ObstoreObjects)
    plain.local = str(tmp_path / "cache")
    store = Store(plain, key=KEY)
    planted(store, tmp_path / "tree")
    for number in range(36):
        run(store, "planted-workspace", f"echo planted-content {number} > /planted-name/{number}", mounts={})
    again = Store(plain, key=KEY)
    assert text(again, "planted-workspace-2", "cat /planted-name/f") == "planted-content\n"
    kept = list(everything(tmp_path / "cache"))
    assert {path.split("/cache/")[1].split("/")[0].split("-")[0] for path, _ in kept} >= {"indexes", "packs", "stat"}
    kept += [(key, plain.get(key)) for key in plain.list("") if "/local-" not in key]
    for path, data in kept:
        assert not any(word in path.rpartition("/cache/")[2] or word.encode() in data for word in PLANTED), path


def test_plain_files_are_kept_only_when_that_is_wanted(tmp_path: Path) -> None:
    where = str(tmp_path / "store")
    store = Store(where, key=KEY)
    store.create("w")
    run(store, "w", "echo planted-content > /f")
    for how in ("hardlink", "reflink"):
        with pytest.raises(RametError, match="keeps no plain files"):
            store["w"].checkout(str(tmp_path / how), how=how)
    assert not (tmp_path / "store" / "local" / "files").exists()
    Store(where, key=KEY, plain_cache=True)["w"].checkout(str(tmp_path / "out"), how="hardlink")
    assert any((tmp_path / "store" / "local" / "files").iterdir())


# ----------------------------------------------------------------------------------------------------------- same ids


def test_content_has_the_same_ids_everywhere(tmp_path: Path, s3: S3Server) -> None:
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "large").write_bytes(random.Random(7).randbytes(3_000_000))
    (tree / "a" / "b" / "small").write_text("small\n")
    (tree / "link").symlink_to("a/b")
    for path in sorted(tree.rglob("*"), reverse=True):
        os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)
    manifests: dict[str, str] = {}
    for sealed in (False, True):
        for kind in ("memory", "directory", "s3"):
            place = objects_at(kind, tmp_path / f"{sealed}-{kind}", s3, f"same-ids-{sealed}-{tmp_path.name}")
            store = Store(place, key=KEY) if sealed else Store(place)
            store.create("w")

            async def act(store: Store = store) -> str:
                async with store.open("w", mounts={"/t": DiskResource(str(tree))}) as ws:
                    revision = await ws.commit("all")
                return next(mount.tree.hex() for mount in revision.mounts if mount.prefix == "/t" and mount.tree)

            manifests[f"{sealed}-{kind}"] = asyncio.run(act())
            again = Store(place, key=KEY) if sealed else Store(place)
            assert again.verify().ok
            again["w"].checkout(str(tmp_path / f"out-{sealed}-{kind}"), prefix="/t")
            assert (tmp_path / f"out-{sealed}-{kind}" / "large").read_bytes() == (tree / "large").read_bytes()
    assert len(manifests) == 6 and len(set(manifests.values())) == 1


# ----------------------------------------------------------------------------------------------------- damage and fraud


def objects_of(store: Store) -> SealedObjects:
    found = store.repository.objects
    assert isinstance(found, SealedObjects)
    return found


@pytest.mark.parametrize("space", ["packs/", "revisions/", "refs/", "tags/", "keys/"])
def test_every_flipped_or_cut_object_is_noticed(space: str) -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo one > /f")
    store["w"].tag("t")
    dice = random.Random(space)
    for key in list(place.list(space)):
        held = place.get(key)
        for change in ("flip", "cut", "empty", "junk"):
            data = bytearray(held)
            if change == "flip":
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            damaged = {"flip": bytes(data), "cut": held[: len(held) // 2], "empty": b"", "junk": dice.randbytes(300)}
            place.put(key, damaged[change])
            try:
                report = Store(place, key=KEY).verify()
            except RametError as error:
                assert error.code == "store_corrupt", (key, change)
            else:
                assert not report.ok, (key, change)
        place.put(key, held)
    assert Store(place, key=KEY).verify().ok


def test_an_object_in_the_place_of_another_is_refused() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo one > /f", "echo two > /f")
    first, *_, last = place.list("refs/")
    place.put(last, place.get(first))
    with pytest.raises(RametError) as caught:
        Store(place, key=KEY).ls()
    assert caught.value.code == "store_corrupt"


def test_a_plain_pack_can_not_get_into_an_encrypted_store() -> None:
    sealed = open_sealed(MemoryObjects(), KEY)
    with pytest.raises(RametError):
        sealed.put("packs/x.pack", b"RAMETPK1 something that everybody can read")
    with pytest.raises(RametError, match="belongs to a workspace"):
        sealed.put("revisions/x", b"something that everybody can read")
    assert list(sealed.list("packs/")) == list(sealed.list("revisions/")) == []


def test_repair_works_on_what_is_encrypted() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    store.create("other")
    run(store, "w", "echo one > /one; seq 5000 > /n")
    run(store, "other", "echo one > /one; seq 5000 > /n")
    for key in list(place.list("packs/")):
        if key.endswith(".idx"):
            place.delete(key)
    done = Store(place, key=KEY).repair()
    assert done.ok and done.salvaged and len(done.rebuilt) == 2
    again = Store(place, key=KEY)
    assert again.verify().ok and text(again, "w", "cat /one; tail -1 /n") == "one\n5000\n"
    again.keys.shred("w")
    fresh = Store(place, key=KEY)
    assert text(fresh, "other", "cat /one; tail -1 /n") == "one\n5000\n" and fresh.verify().ok


# -------------------------------------------------------------------------------------------- whose keys open what


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
                key.hex() for key in new_ids(repository.packs, revision, None) if not repository.packs.keeps(key, keys)
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
        assert not list(place.list("damaged/")) and len(after.repository.packs.packs()) == 1
        writes += 1
    assert writes > 6


def test_a_keyring_that_cannot_be_read_stops_a_shredding() -> None:
    place, store = some_rings()
    sealed = objects_of(store)
    theirs = next(key for key in sealed.list("keys/b/") if "-" not in key)
    raw = sealed.vault.names.sealed(theirs)
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


def test_a_rotation_that_is_cut_off_anywhere_locks_nobody_out() -> None:
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


# ----------------------------------------------------------------------------------------------------- the rest of it


def test_everything_that_a_store_does(tmp_path: Path) -> None:
    place = DirectoryObjects(str(tmp_path / "store"))
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo one > /f; seq 3000 > /n", "echo two >> /f")
    assert [change.path for change in store["w"].diff()] == ["/f"] and len(store["w"].blame("/f")) == 2
    archive = io.BytesIO()
    store["w"].export(archive)
    archive.seek(0)
    assert store.import_archive("copy", archive).revision.content_manifest == store.find("w").content_manifest
    assert b"commit refs/heads/w" in b"".join(store["w"].git_stream())
    store["w"].revert("1")
    assert text(store, "w", "cat /f") == "one\n"
    store["w"].checkout(str(tmp_path / "out"))
    assert (tmp_path / "out" / "f").read_text() == "one\n"
    store.rm("copy")
    assert store.gc(grace=0).removed and store.verify().ok
    assert text(Store(place, key=KEY), "w", "cat /f; tail -1 /n") == "one\n3000\n"


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
    assert len(fresh.repository.packs.packs()) == len(fresh.repository.packs.names()) == 21
    place.keys.clear()
    assert store.gc(grace=0).removed == 0 and Store(place, key=KEY).verify().ok


def test_a_directory_is_not_read_again_by_another_process(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "f").write_text("x")
    os.utime(tree / "f", ns=(10**18, 10**18))
    where = str(tmp_path / "store")
    Store(where, key=KEY).create("w")
    for _ in range(2):
        run(Store(where, key=KEY), "w", "true", mounts={"/t": DiskResource(str(tree))})
    store = Store(where, key=KEY)
    assert store.repository.stat_cache("w", str(tree)).folders
    store.create("v")
    assert not store.repository.stat_cache("v", str(tree)).folders, "what another workspace knew is not there"


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


def test_packs_that_go_while_nobody_asked_for_them() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    for name in ("a", "b"):
        store.create(name)
        run(store, name, f"echo {name} > /f")
    lazy = Store(place, key=KEY)
    store.keys.shred("b")
    lazy.repository.packs.refresh()
    assert lazy.repository.packs.names() == store.repository.packs.packs() and text(lazy, "a", "cat /f") == "a\n"


def test_objects_of_others_in_the_same_place_are_not_there(tmp_path: Path) -> None:
    place = DirectoryObjects(str(tmp_path))
    sealed = open_sealed(place, KEY)
    assert sealed.create("notes/one", b"1") and not sealed.create("notes/one", b"2")
    for stranger in ("notes/plain", "notes/" + "A" * 43, "notes/!!", "notes/deep/er"):
        place.put(stranger, b"x")
    assert list(sealed.list("notes/")) == list(sealed.list("notes")) == ["notes/one"]
    assert sealed.get_range("notes/one", 0, 1) == b"1" and list(sealed.list("notes/", "notes/one")) == []
    with pytest.raises(KeyError):
        sealed.get("notes/two")
    sealed.delete("notes/one")
    assert list(sealed.list("notes/")) == []
    assert open_sealed(sealed, None) is sealed and isinstance(sealed, SealedObjects)
    raw = sealed.as_they_are
    assert raw.create("notes/raw", b"x") and raw.get_range("notes/raw", 0, 1) == b"x" == place.get(
        next(place.list("notes/"))
    )
    assert list(raw.list("notes/")) == ["notes/raw"]


def test_many_names_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.store.sealing._KEPT_NAMES", 4)
    names = Names(KEY)
    for number in range(12):
        assert names.plain(names.sealed(f"refs/w{number}/00000000000000000001")) == f"refs/w{number}/{1:020d}"
    assert len(names._known) <= 4 and len(names._parts) <= 4


def test_entries_in_a_database_that_were_changed_are_damage() -> None:
    sealed = objects_of(Store("memory:", key=KEY))
    plain = ObjectLog(MemoryObjects(), "refs")
    log = sealed.log(plain, "refs")
    assert log.append("w", 1, b"one") and log.newest("w") == (1, b"one")
    (name,) = plain.names()
    newest = plain.newest(name)
    assert newest is not None and plain.append(name, 2, newest[1])
    assert log.newest("w") == (2, b""), "an entry of another number is none"


def test_a_pack_whose_key_nothing_tells_is_not_written_anew() -> None:
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "echo x > /x")
    (pack,) = store.repository.packs.packs()
    for end in ("idx", "pack"):
        place.put(f"packs/{pack}.{end}", random.Random(1).randbytes(500))
    rewriters = Rewriters(store.repository.objects, store.repository.packs)
    assert rewriters.like(pack) is None and rewriters.bytes_written == 0
    place.delete(f"packs/{pack}.idx")
    assert rewriters.like(pack) is None
    rewriters.abandon()
    broken = Store(place, key=KEY).repair()
    assert not broken.ok and broken.salvaged == 0


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


def test_a_marker_that_goes_away_while_the_store_is_open(tmp_path: Path) -> None:
    store = Store(str(tmp_path), key=KEY)
    store.create("w")
    (tmp_path / MARKER).unlink()
    with pytest.raises(RametError) as caught:
        run(store, "w", "echo x > /x")
    assert caught.value.code == "store_corrupt", "no keyring is made for a store that cannot be opened again"


# ------------------------------------------------------------------------------------------------------- test vectors


def test_the_vectors_of_the_format() -> None:
    """docs/format.md names these; whoever implements the format again must come to the same bytes."""
    root = bytes(range(32))
    assert derive(root, b"ramet mask 1").hex() == _vector("mask key")
    assert Names(root).sealed("refs/notes/00000000000000000001") == _vector("name")
    key = DataKey(bytes(12), derive(root, b"ramet common 1"))
    sealer = Sealer(derive(root, b"ramet mask 1"), lambda _: key)
    sealed = sealer.seal(key, b"ramet object 1\0refs/notes/00000000000000000001", b"hello", 3)
    assert sealed.hex() == _vector("sealed object")
    assert sealer.open(b"ramet object 1\0refs/notes/00000000000000000001", sealed) == b"hello"
    assert LocalKey(root).id == _vector("key id")


def _vector(name: str) -> str:
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
    return line.split("`")[1]
