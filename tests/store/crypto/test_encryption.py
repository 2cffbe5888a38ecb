"""Encryption at rest: nothing to read without a key, the same ids with one, and no change goes unnoticed."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.store.encrypted import KEY, OTHER, everything, objects_of, refused, run, text
from tests.store.places import objects_at
from tests.support.servers import S3Server

from ramet import DiskResource, Store
from ramet.core.errors import RametError
from ramet.store.crypto.codec import MARKER
from ramet.store.crypto.encrypted_objects import EncryptedObjects, open_encrypted
from ramet.store.crypto.format import DataKey, NameCipher, Sealer, derive, padded_size
from ramet.store.crypto.wrapping_keys import LocalKey, new_key_file, open_key
from ramet.store.objects.log import ObjectLog
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects, ObstoreObjects
from ramet.store.packs.repack import RepackWriters

PLANTED = ("planted-content", "planted-name", "planted-message", "planted-workspace", "planted-tag", "planted-author")


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
    with pytest.raises(RametError, match="cannot create a key: "):
        new_key_file(str(path))
    path.chmod(0o640)
    with pytest.raises(RametError, match="other users can read it"):
        open_key(f"file:{path}")
    for bad in ("file:" + str(tmp_path / "none"), "file:" + str(tmp_path), "env:NO_SUCH", "kms:", "short", "g" * 64):
        with pytest.raises(RametError) as caught:
            open_key(bad)
        assert caught.value.code in ("wrong_key", "invalid_config")


def test_no_key_is_in_a_repr_or_an_error(tmp_path: Path) -> None:
    store = Store(str(tmp_path), key=KEY)
    store.create("w")
    sealed = store.repository.objects
    assert isinstance(sealed, EncryptedObjects)
    shown = [
        repr(sealed),
        repr(sealed.for_workspace("w")),
        repr(sealed.keychain),
        repr(sealed.for_workspace("w").key),
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
        from ramet.workspace.stored.events import JsonLines

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


def test_swapped_blocks_are_found_by_every_reader() -> None:
    """Both are whole and have the right key; only their digests tell that they are not where they belong."""
    place = MemoryObjects()
    store = Store(place, key=KEY)
    store.create("w")
    run(store, "w", "printf %300000s a > /a; printf %300000s b > /b")
    repository = store.repository
    one, two = (repository.packs.place(repository.node(store.find("w"), path).payload) for path in ("/a", "/b"))
    assert one.pack == two.pack and one.start != two.start and one.length == two.length, "blocks of the same size"
    data = bytearray(place.get(f"packs/{one.pack}.pack"))
    first, second = (bytes(data[at.start : at.start + at.length]) for at in (one, two))
    data[one.start : one.start + one.length], data[two.start : two.start + two.length] = second, first
    place.put(f"packs/{one.pack}.pack", bytes(data))
    fresh = Store(place, key=KEY)
    with pytest.raises(RametError) as caught:
        b"".join(fresh["w"].show("/a"))
    assert caught.value.code == "store_corrupt" and not fresh.verify().ok


def test_a_plain_pack_can_not_get_into_an_encrypted_store() -> None:
    sealed = open_encrypted(MemoryObjects(), KEY)
    with pytest.raises(RametError):
        sealed.put("packs/x.pack", b"RAMETPK1 something that everybody can read")
    with pytest.raises(RametError, match="cannot write without a workspace"):
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


def test_objects_of_others_in_the_same_place_are_not_there(tmp_path: Path) -> None:
    place = DirectoryObjects(str(tmp_path))
    sealed = open_encrypted(place, KEY)
    assert sealed.create("notes/one", b"1") and not sealed.create("notes/one", b"2")
    for stranger in ("notes/plain", "notes/" + "A" * 43, "notes/!!", "notes/deep/er"):
        place.put(stranger, b"x")
    assert list(sealed.list("notes/")) == list(sealed.list("notes")) == ["notes/one"]
    assert sealed.get_range("notes/one", 0, 1) == b"1" and list(sealed.list("notes/", "notes/one")) == []
    with pytest.raises(KeyError):
        sealed.get("notes/two")
    sealed.delete("notes/one")
    assert list(sealed.list("notes/")) == []
    assert open_encrypted(sealed, None) is sealed and isinstance(sealed, EncryptedObjects)
    raw = sealed.raw_objects
    assert raw.create("notes/raw", b"x") and raw.get_range("notes/raw", 0, 1) == b"x" == place.get(
        next(place.list("notes/"))
    )
    assert list(raw.list("notes/")) == ["notes/raw"]


def test_many_names_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.store.crypto.format._KEPT_NAMES", 4)
    names = NameCipher(KEY)
    for number in range(12):
        assert names.decrypt(names.encrypt(f"refs/w{number}/00000000000000000001")) == f"refs/w{number}/{1:020d}"
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
    rewriters = RepackWriters(store.repository.objects, store.repository.packs)
    assert rewriters.for_pack(pack) is None and rewriters.bytes_written == 0
    place.delete(f"packs/{pack}.idx")
    assert rewriters.for_pack(pack) is None
    rewriters.abandon()
    broken = Store(place, key=KEY).repair()
    assert not broken.ok and broken.salvaged == 0


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
    assert NameCipher(root).encrypt("refs/notes/00000000000000000001") == _vector("name")
    key = DataKey(bytes(12), derive(root, b"ramet common 1"))
    sealer = Sealer(derive(root, b"ramet mask 1"), lambda _: key)
    sealed = sealer.seal(key, b"ramet object 1\0refs/notes/00000000000000000001", b"hello", 3)
    assert sealed.hex() == _vector("sealed object")
    assert sealer.open(b"ramet object 1\0refs/notes/00000000000000000001", sealed) == b"hello"
    assert LocalKey(root).id == _vector("key id")


def _vector(name: str) -> str:
    page = (Path(__file__).parents[3] / "docs" / "format.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
    return line.split("`")[1]
