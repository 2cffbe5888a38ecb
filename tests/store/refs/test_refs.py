"""The same protocol wherever refs are kept: memory, a directory, S3, PostgreSQL. One writer, no lost update."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.store.places import KEY, KINDS, objects_at
from tests.store.verbs.test_verbs import make, refused
from tests.support.servers import postgres, postgres_programs

from ramet import RametError, Store
from ramet.store.crypto.codec import require_encrypted, unlock
from ramet.store.model.ids import RevisionId
from ramet.store.objects.log import Log, ObjectLog
from ramet.store.objects.objects import DirectoryObjects, MemoryObjects
from ramet.store.objects.postgres_log import PostgresConnection, PostgresLog
from ramet.store.refs.leases import CLOCK_SKEW, Leases, describe_holder, holder_name
from ramet.store.refs.refs import RECHECK_AFTER
from ramet.store.refs.retention import Retention
from ramet.store.refs.tags import Tags

needs_postgres = pytest.mark.skipif(postgres_programs() is None, reason="PostgreSQL is not installed")


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    with postgres() as address:
        yield address


Logs = Callable[[str], Log]


POSTGRES = [pytest.param(kind, marks=needs_postgres) for kind in ("postgres", "encrypted-postgres")]


@pytest.fixture(params=[*KINDS, *POSTGRES])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Logs]:
    """Gives the log of a space, as another process would see it: nothing is shared but the server."""
    name = re.sub(r"\W+", "-", request.node.name)
    if request.param.endswith("postgres"):
        keychain = require_encrypted(unlock(MemoryObjects(), KEY, False, time.time))
        servers: list[PostgresConnection] = []

        def of_server(space: str) -> Log:
            servers.append(PostgresConnection(request.getfixturevalue("database")))
            log = PostgresLog(servers[-1], name, space)
            return keychain.log(log, space) if request.param.startswith("encrypted") else log

        yield of_server
        for server in servers:
            server.close()
        return
    objects = objects_at(
        request.param, tmp_path, request.getfixturevalue("s3") if request.param == "s3" else None, name
    )
    yield lambda space: ObjectLog(objects, space)


def head(number: int) -> RevisionId:
    return RevisionId(bytes([number]) * 32)


def test_a_log_is_a_log(logs: Logs) -> None:
    one, two = logs("refs"), logs("refs")
    assert one.newest("w") is None and one.names() == [] and list(one.entries("w")) == []
    assert one.append("w", 1, b"a") and two.append("w", 2, b"b") and not one.append("w", 2, b"c")
    assert two.newest("w") == (2, b"b") and two.newest("w", 1) == (2, b"b") and two.newest("w", 2) is None
    assert list(one.entries("w")) == [(1, b"a"), (2, b"b")]
    assert one.append("v", 1, b"\0\xff") and two.names() == ["v", "w"] and two.newest("v") == (1, b"\0\xff")
    tags = logs("tags")
    assert tags.names() == [], "spaces are apart"
    assert tags.append("w/x", 1, b"") and tags.append("ww/x", 1, b"") and tags.names("w/") == ["w/x"]


def test_only_one_of_many_moves_a_head(logs: Logs) -> None:
    Leases(logs("refs")).create("w", None)
    writers = [Leases(logs("refs")) for _ in range(6)]
    seen = [writer.last("w") for writer in writers]
    barrier, won, codes = threading.Barrier(6), [], []

    def attempt(number: int) -> None:
        barrier.wait()
        try:
            won.append(writers[number].move("w", seen[number], head=head(number), kind="commit"))
        except RametError as error:
            codes.append(error.code)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and codes == ["head_moved"] * 5
    assert Leases(logs("refs")).last("w").head == won[0].head


def test_leases_expire_and_are_fenced(logs: Logs) -> None:
    now = [1000.0]
    one, two = Leases(logs("refs"), lambda: now[0]), Leases(logs("refs"), lambda: now[0])
    one.create("w", None)
    mine = one.acquire("w", "elsewhere/1/2/a", ttl=60)
    assert refused(lambda: two.acquire("w", "elsewhere/3/4/b")) == "workspace_busy"
    now[0] += 40
    mine = one.renew("w", mine, ttl=60)
    now[0] += 60 + CLOCK_SKEW - 1
    assert refused(lambda: two.acquire("w", "elsewhere/3/4/b")) == "workspace_busy"
    now[0] += 2
    theirs = two.acquire("w", "elsewhere/3/4/b")
    assert theirs.fence > mine.fence
    assert refused(lambda: one.move("w", mine, head=head(1), kind="commit")) == "lease_lost"
    assert refused(lambda: one.renew("w", mine)) == "lease_lost"
    one.release("w", mine)
    assert two.last("w").holder == "elsewhere/3/4/b", "letting go of what was lost changes nothing"
    two.release("w", theirs)
    assert one.acquire("w", "elsewhere/1/2/a").fence > theirs.fence


def test_names_that_cannot_be_are_not_looked_for(logs: Logs) -> None:
    refs = Leases(logs("refs"))
    for name in ("../w", "a/b", "", ".", "w\0", "x" * 200):
        assert refused(lambda name=name: refs.last(name)) == "workspace_not_found"  # type: ignore[misc]
        assert refused(lambda name=name: refs.create(name, None)) == "invalid_argument"  # type: ignore[misc]
        assert not refs.exists(name)


def test_tags_race(logs: Logs) -> None:
    one, two = Tags(logs("tags")), Tags(logs("tags"))
    one.create("w", "t", head(1))
    assert refused(lambda: two.create("w", "t", head(2))) == "already_exists"
    two.create("w", "t", head(2), force=True)
    found = one.find("w", "t")
    assert found is not None and found.target == head(2) and [tag.name for tag in one.of("w")] == ["t"]
    one.clear("w")
    assert two.of("w") == []


class Listed(MemoryObjects):
    """Counts what is listed."""

    count = 0

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        self.count += 1
        return super().list(prefix, after)


def test_a_known_last_entry_is_checked_without_listing_the_log() -> None:
    objects, clock = Listed(), [1000.0]
    mine, theirs = (Leases(ObjectLog(objects), lambda: clock[0]) for _ in range(2))
    mine.create("w", None)
    theirs.last("w")
    for number in range(1, 9):
        mine.move("w", mine.last("w"), head=head(number), kind="commit")
        objects.count = 0
        assert theirs.last("w").head == head(number) == theirs.last("w").head and objects.count == 0
    for number in range(9, 19):
        mine.move("w", mine.last("w"), head=head(number), kind="commit")
    assert theirs.last("w").head == head(18), "also of many new entries"
    clock[0] += RECHECK_AFTER
    objects.count = 0
    assert theirs.last("w").head == head(18) and objects.count == 1, "what followed may be compacted by now"


def test_names_of_logs_in_a_directory_are_found_without_listing_their_entries(tmp_path: Path) -> None:
    objects = DirectoryObjects(str(tmp_path), sync=False)
    log, tags = ObjectLog(objects), ObjectLog(objects, "tags")
    for number in range(1, 4):
        assert log.append("w", number, b"{}") and log.append("v", number, b"{}") and tags.append("w/t", number, b"{}")
    (tmp_path / "refs" / "empty").mkdir()
    objects.list = None  # type: ignore[method-assign, assignment]
    assert log.names() == ["v", "w"] and log.names("w") == ["w"]
    assert tags.names() == tags.names("w/") == ["w/t"] and tags.names("v/") == []


class Careless(MemoryObjects):
    """A server that ignores the condition of create-if-absent, and somebody who makes the store at the same moment."""

    meanwhile: Callable[[], object] | None = None

    def create(self, key: str, data: bytes) -> bool:
        self.put(key, data)
        return True

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        if self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        return super().list(prefix, after)


@needs_postgres
def test_two_who_make_an_encrypted_store_at_once_have_the_same_one(database: str) -> None:
    place = Careless()

    def store() -> Store:
        return Store(place, key=KEY, refs=database, refs_name="at-once")

    first: list[Store] = []

    def other() -> None:
        first.append(store())
        first[0].create("theirs")

    place.meanwhile = other
    second = store()
    second.create("mine")
    assert second.ls() == first[0].ls() == store().ls() == ["mine", "theirs"]


@needs_postgres
def test_collecting_and_grants_with_refs_in_postgres(database: str) -> None:
    place = MemoryObjects()
    store = Store(place, refs=database, refs_name="collected")
    make(place, "echo 1 > /a", "echo 2 > /a", store=store)
    store.retention(Retention(keep_last=1))
    store["w"].grant("ada", "readwrite")
    ada = Store(place, refs=database, refs_name="collected", principal="ada")
    assert ada.gc(grace=0).revisions == 1 and ada.verify().ok
    assert [revision.seq for revision in ada["w"].log()] == [2] and not list(place.list("gc/"))
    with pytest.raises(RametError) as caught:
        Store(place, refs=database, refs_name="collected").find("w")
    assert caught.value.code == "permission_denied"


@needs_postgres
def test_a_whole_store_with_its_refs_in_postgres(database: str) -> None:
    class Careless(MemoryObjects):
        """A server that ignores the condition of create-if-absent."""

        def create(self, key: str, data: bytes) -> bool:
            self.put(key, data)
            return True

    objects = Careless()
    assert refused(lambda: Store(objects).create("w")) == "store_unsafe_refs"
    store = Store(objects, refs=database, refs_name="whole")
    make(objects, "echo 1 > /f", "echo 2 > /f", store=store)
    store["w"].tag("first", "1")
    store["w"].fork("first", "other")
    again = Store(objects, refs=database, refs_name="whole")
    assert again.ls() == ["other", "w"] and [tag.name for tag in again["w"].tags()] == ["first"]
    assert b"".join(again["w"].show("/f", "first")) == b"1\n" and again.verify().ok
    assert Store(objects, refs=database, refs_name="apart").ls() == []

    async def act() -> None:
        async with store.open("w"):
            with pytest.raises(RametError) as caught:
                async with again.open("w"):
                    pass
            assert caught.value.code == "workspace_busy"

    asyncio.run(act())


@needs_postgres
def test_a_broken_connection_is_made_again(database: str) -> None:
    server = PostgresConnection(database)
    log = PostgresLog(server, "broken", "refs")
    assert log.append("w", 1, b"a")
    server.run("select pg_backend_pid()", ())
    own = server.run("select pg_backend_pid()", ()).rows[0][0]
    other = PostgresConnection(database)
    other.run("select pg_terminate_backend(%s)", (own,))
    other.close()
    assert log.append("w", 2, b"b") and log.newest("w") == (2, b"b")
    server.close()


def test_addresses_of_refs_are_checked() -> None:
    assert refused(lambda: Store("memory:", refs="mysql://x")) == "invalid_argument"
    assert refused(lambda: Store(MemoryObjects(), refs="postgresql://x")) == "invalid_argument"
    store = Store("memory:", refs="postgresql://nobody:secret-word@127.0.0.1:1/none?connect_timeout=1")
    with pytest.raises(RametError) as caught:
        store.ls()
    assert caught.value.code == "unavailable" and "secret-word" not in str(caught.value)


# ----------------------------------------------------------------------------------------- processes and crashes

COUNTER = """
import asyncio, sys
from ramet import Store
async def main():
    store = Store(sys.argv[1], **({"refs": sys.argv[2]} if len(sys.argv) > 2 else {}))
    for _ in range(4):
        async with store.open("w", wait=60) as ws:
            await ws.execute("n=$(cat /n 2>/dev/null || echo 0); echo $((n + 1)) > /n")
asyncio.run(main())
"""


@pytest.mark.parametrize("refs", ["objects", pytest.param("postgres", marks=needs_postgres)])
def test_many_processes_count_together(tmp_path: Path, refs: str, request: pytest.FixtureRequest) -> None:
    more = [request.getfixturevalue("database")] if refs == "postgres" else []
    store = Store(str(tmp_path), refs=more[0] if more else None)
    store.create("w")
    command = [sys.executable, "-c", COUNTER, str(tmp_path), *more]
    children = [subprocess.Popen(command) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert b"".join(store["w"].show("/n")) == b"12\n" and store.verify().ok


MIXED = """
import asyncio, random, sys, time
from ramet import RametError, Store
store, own = Store(sys.argv[1]), sys.argv[2]
rng = random.Random(own)

def patiently(act):
    for _ in range(20_000):
        try:
            return act()
        except RametError as error:
            if error.code not in ("workspace_busy", "head_moved"):
                raise
        time.sleep(0.005)
    raise SystemExit("never my turn")

async def write(name):
    async with store.open(name, wait=60) as ws:
        await ws.execute(f"echo {rng.random()} > /{own}")

store["w"].fork("1", own)
for number in range(4):
    asyncio.run(write(own))
    assert patiently(lambda: store["w"].merge(own)).ok
    patiently(lambda: store["w"].tag(f"{own}.{number}"))
    patiently(lambda: store["w"].tag("shared", force=True))
"""


def test_processes_fork_merge_and_tag_at_once(tmp_path: Path) -> None:
    store = make(DirectoryObjects(str(tmp_path)), "echo base > /base")
    names = ["one", "two", "three"]
    children = [subprocess.Popen([sys.executable, "-c", MIXED, str(tmp_path), name]) for name in names]
    assert [child.wait() for child in children] == [0, 0, 0]
    fresh = Store(str(tmp_path))
    assert fresh.verify().ok and len(fresh["w"].tags()) == 13
    merges = [revision for revision in fresh["w"].log() if len(revision.parents) == 2]
    assert len(merges) == 12 and store.find("w").id == fresh.find("w").id
    for name in names:
        assert b"".join(fresh["w"].show(f"/{name}")) == b"".join(fresh[name].show(f"/{name}"))


class Killed(BaseException):
    """What stands for SIGKILL: from then on nothing is written any more, also not by what cleans up."""


class Dying(MemoryObjects):
    """Dies at a given write, before or after it."""

    def __init__(self, objects: dict[str, bytes], left: int) -> None:
        self._objects, self.left = objects, left

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def put(self, key: str, data: bytes) -> None:
        self.step()
        super().put(key, data)
        self.step()

    def create(self, key: str, data: bytes) -> bool:
        self.step()
        done = super().create(key, data)
        self.step()
        return done

    def delete(self, key: str) -> None:
        self.step()
        super().delete(key)
        self.step()


def test_death_at_every_write_of_the_verbs() -> None:
    objects = MemoryObjects()
    store = make(objects, "echo 1 > /f", "echo 2 > /f")
    store["w"].fork("1", "side")
    make(objects, "echo s > /s", name="side", store=store)
    store.create("gone")
    store["gone"].import_archive(io.BytesIO(archive(store)))
    store["gone"].tag("t")
    for number in range(500):
        dying = Dying(dict(objects._objects), number)
        store = Store(dying)
        try:
            handle = store["w"]
            handle.tag("t", "1")
            handle.revert("1")
            handle.fork(None, "fork")
            handle.revert("2", paths=["/f"])
            handle.merge("side")
            handle.import_archive(io.BytesIO(archive(store)))
            handle.untag("t")
            store.rm("gone")
            died = False
        except Killed:
            died = True
        left = MemoryObjects()
        left._objects.update(dying._objects)
        later = Store(left, clock=lambda: time.time() + 3600)
        report = later.verify()
        assert report.ok, (number, report.damages)
        assert later["w"].log()[-1].name == "w-1"
        assert later["w"].revert("1").seq >= 3, "whoever comes later goes on"
        if "gone" not in later:
            later.create("gone")
            assert later["gone"].tags() == []
        if not died:
            break
    assert number > 40


def archive(store: Store) -> bytes:
    out = io.BytesIO()
    store["side"].export(out, kind="tar")
    return out.getvalue()


def test_an_outage_does_not_lock_out_the_process_that_held_the_lease() -> None:
    class Broken(MemoryObjects):
        down = False

        def create(self, key: str, data: bytes) -> bool:
            if self.down and key.startswith("refs/"):
                raise OSError("unreachable")
            return super().create(key, data)

    objects = Broken()
    store = Store(objects)
    store.create("w")

    async def act() -> None:
        async with store.open("w") as ws:
            await ws.execute("echo kept > /f")
            await ws.commit("kept")
        opening = store.open("w")
        await opening.__aenter__()
        objects.down = True
        with pytest.raises(OSError, match="unreachable"):
            await opening.__aexit__(None, None, None)
        objects.down = False
        async with store.open("w") as ws:
            assert (await ws.execute("cat /f")).text == "kept\n"

    asyncio.run(act())


def test_a_lease_whose_taking_was_not_answered_is_taken_again() -> None:
    class Mute(MemoryObjects):
        mute = False

        def create(self, key: str, data: bytes) -> bool:
            done = super().create(key, data)
            if self.mute and key.startswith("refs/"):
                raise OSError("no answer")
            return done

    objects = Mute()
    refs = Leases(ObjectLog(objects))
    refs.create("w", None)
    objects.mute = True
    with pytest.raises(OSError, match="no answer"):
        refs.acquire("w", holder_name())
    objects.mute = False
    assert refs.acquire("w", holder_name()).fence == 2


@pytest.mark.parametrize("jump", [-86_400.0, -66.0, 66.0, 86_400.0])
def test_a_clock_that_jumps_gives_no_two_writers(jump: float) -> None:
    """A holder of another machine: only its time says whether it lives, and the fence decides in any case."""
    now = [1_000_000.0]
    refs = Leases(ObjectLog(MemoryObjects()), lambda: now[0])
    refs.create("w", None)
    first = refs.acquire("w", "elsewhere/1/1/aa")
    now[0] += jump
    if jump < 0:
        with pytest.raises(RametError, match="is held by"):
            refs.acquire("w", "other/1/1/bb")
        assert refs.renew("w", first).fence == first.fence
        return
    second = refs.acquire("w", "other/1/1/bb")
    now[0] -= jump
    with pytest.raises(RametError) as caught:
        refs.renew("w", first)
    assert caught.value.code == "lease_lost" and second.fence == first.fence + 1


def test_a_holder_is_described_without_its_arguments() -> None:
    script = "from ramet.store.refs.leases import holder_name; print(holder_name(), flush=True); input()  # hunter2"
    words = [sys.executable, "-c", script, "hunter2"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = describe_holder(process.stdout.readline().strip())
        process.communicate("\n")
    assert told.startswith(f"process {process.pid} (python") and " since 20" in told and "hunter2" not in told
    assert describe_holder("elsewhere/7/12/0a1b2c3d") == "process 7 on elsewhere"
