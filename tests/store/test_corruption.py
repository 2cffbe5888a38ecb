"""A flipped bit anywhere in a plain store gives the right bytes or `store_corrupt`, never other bytes.

`RAMET_CORRUPTIONS=2000` flips that many bits; without it a few dozen.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.store.verbs.test_verbs import make

from ramet import RametError, Store
from ramet.store.checkout.directory import checkout
from ramet.store.checkout.walk import walk
from ramet.store.crypto.codec import PACK_MAGIC
from ramet.store.model import trees
from ramet.store.model.ids import chunk_id, kind_of
from ramet.store.objects.compression import compress
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects
from ramet.store.packs.index import RECORD, encode_index
from ramet.store.packs.reader import PackReader
from ramet.store.packs.writer import PackWriter

FLIPS = int(os.environ.get("RAMET_CORRUPTIONS", "60"))
SEED = int(os.environ.get("RAMET_CORRUPTIONS_SEED", "1"))
SCRIPTS = (
    "mkdir -p /d/e; seq 1 4000 > /d/a; echo one > /one; head -c 1500000 /dev/urandom > /random",
    "echo two > /two; for i in {1..50}; do echo $i > /d/e/$i; done; head -c 70000 /dev/urandom > /d/r",
    "rm /one; echo three > /two",
)
Contents = dict[tuple[str, str], bytes]


@pytest.fixture(scope="module")
def original() -> MemoryObjects:
    objects = MemoryObjects()
    store = make(objects, *SCRIPTS)
    store["w"].tag("first", "w-1")
    store["w"].fork("w-2", "x")
    make(objects, "echo more > /more", name="x", store=store)
    store.gc(grace=0)
    return objects


def copy_of(objects: MemoryObjects) -> MemoryObjects:
    twin = MemoryObjects()
    for key in objects.list(""):
        twin.put(key, objects.get(key))
    return twin


def flip(objects: MemoryObjects, key: str, bit: int) -> None:
    data = bytearray(objects.get(key))
    data[bit // 8] ^= 1 << bit % 8
    objects.put(key, bytes(data))


def contents(objects: MemoryObjects) -> Contents:
    """Read every file of every revision, of heads by their tags, and raise at the first that cannot be read."""
    store = Store(objects)
    found: Contents = {}
    for name in store.ls():
        handle = store[name]
        revisions = [*handle.log(), *(store.find(f"{name}@{tag.name}") for tag in handle.tags())]
        for revision in revisions:
            for path, node in walk(store.repository.packs.read, revision):
                if node.kind == trees.FILE:
                    found[revision.name, path] = b"".join(handle.show(path, revision.id.hex()))
    return found


def damage(objects: MemoryObjects, expected: Contents) -> RametError | None:
    """Return how a damaged store refuses; None when all that it holds is right."""
    try:
        found = contents(objects)
    except RametError as error:
        return error
    assert found == expected, "wrong bytes without a word"
    return None


def test_a_flipped_bit_is_never_other_content(original: MemoryObjects) -> None:
    expected = contents(original)
    rng = random.Random(SEED)
    keys = [key for key in original.list("") if not key.startswith("probes/")]
    outcomes: Counter[str] = Counter()
    for number in range(FLIPS):
        objects = copy_of(original)
        key = keys[number % len(keys)]
        flip(objects, key, rng.randrange(8 * len(objects.get(key))))
        refusal = damage(objects, expected)
        if refusal is None:
            outcomes[f"{key.partition('/')[0]} intact"] += 1
            continue
        assert refusal.code == "store_corrupt", (key, refusal)
        assert refusal.remediation and named(refusal.cause), (key, refusal)
        outcomes[f"{key.partition('/')[0]} refused"] += 1
    print(dict(outcomes), file=sys.stderr)
    assert outcomes["packs refused"]


def named(cause: str) -> bool:
    """Return whether a message has an id or the name of a workspace."""
    words = cause.replace("'", " ").replace(":", " ").replace("/", " ").split()
    return any(word in ("w", "x") or (len(word) >= 12 and set(word) <= set("0123456789abcdef")) for word in words)


def test_repair_brings_back_what_another_copy_has(original: MemoryObjects) -> None:
    expected = contents(original)
    rng = random.Random(SEED)
    for _ in range(max(3, FLIPS // 20)):
        objects = copy_of(original)
        for key in list(objects.list("packs/")):  # a second copy of every object, in packs of other names
            if key.endswith(".idx"):
                add_copy(objects, key[6:-4])
        key = rng.choice([key for key in original.list("packs/") if key.endswith(".pack")])
        for _ in range(3):
            flip(objects, key, rng.randrange(64, 8 * len(objects.get(key))))
        Store(objects).repair()
        assert Store(objects).verify().ok and contents(objects) == expected


def add_copy(objects: MemoryObjects, name: str) -> None:
    """Copy the objects of a pack into another one, as two machines that commit the same files do."""
    reader, empty = PackReader(objects), PackReader(MemoryObjects())
    reader.load(name)
    writer = PackWriter(objects, empty)
    for key in reader.index(name).ids():
        data = reader.read(key)
        (writer.add_tree if kind_of(key, data) == "tree" else writer.add)(key, data)
    writer.finish()


def test_a_checkout_names_the_files_that_are_damaged(original: MemoryObjects, tmp_path: Path) -> None:
    objects = copy_of(original)
    store = Store(objects)
    head = store["w"].head
    assert head is not None and head.mounts[0].tree is not None
    node = store.repository.node(head, "/d/r")
    place = store.repository.packs.find(node.chunks[0])
    assert place is not None
    flip(objects, f"packs/{place.pack}.pack", 8 * (place.start + place.length - 100))
    receipt = checkout(Store(objects).repository.packs, head.mounts[0].tree, str(tmp_path / "out"))
    assert receipt.problems == [str(tmp_path / "out/d/r")]


BOMB = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from ramet import RametError
from ramet.store.objects.objects import DirectoryObjects
from ramet.store.packs.reader import PackReader
reader = PackReader(DirectoryObjects(sys.argv[1]))
reader.refresh()
try:
    reader.read(bytes.fromhex(sys.argv[2]))
except RametError as error:
    print(error.code, error.cause)
print(next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_a_frame_expands_no_further_than_the_format_allows(tmp_path: Path) -> None:
    bomb = compress(bytes(1 << 30))
    wanted = b"wanted"
    key = chunk_id(wanted)
    objects = DirectoryObjects(str(tmp_path / "store"))
    objects.put("packs/bomb.pack", PACK_MAGIC + bomb)
    objects.put("packs/bomb.idx", encode_index([RECORD.pack(key, len(PACK_MAGIC), len(bomb), 0, len(wanted))]))
    done = subprocess.run(
        [sys.executable, "-c", BOMB, objects.root, key.hex()], capture_output=True, text=True, timeout=60
    )
    said, peak = done.stdout.splitlines()
    assert said.startswith("store_corrupt") and key.hex() in said, done.stderr
    assert int(peak) < 200


def test_an_object_that_no_frame_may_hold_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ramet.store.packs.writer.OBJECT_BYTES", 1000)
    objects = MemoryObjects()
    writer = PackWriter(objects, PackReader(objects))
    writer.add(chunk_id(bytes(1000)), bytes(1000))
    with pytest.raises(RametError, match="limit"):
        writer.add(chunk_id(bytes(1001)), bytes(1001))


def test_an_index_that_names_gigabytes_is_damaged(original: MemoryObjects) -> None:
    objects = copy_of(original)
    key = next(key for key in objects.list("packs/") if key.endswith(".idx"))
    table = bytearray(objects.get(key))
    table[12 + 40] = 0xF0  # the first byte of the size of the first frame
    objects.put(key, bytes(table))
    reader = PackReader(objects)
    reader.load(key[6:-4])
    with pytest.raises(RametError, match="more bytes than an object"):
        reader.read(bytes(table[12:44]))


def test_a_new_store_is_for_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(DirectoryObjects(str(tmp_path / "below" / "store")), "echo x > /x")
    finally:
        os.umask(before)
    assert oct((tmp_path / "below" / "store").stat().st_mode) == oct(0o40700)
    assert oct((tmp_path / "below").stat().st_mode) == oct(0o40777), "a directory above is the user's"
