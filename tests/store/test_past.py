"""Old entries of a log are joined: nothing that happened is forgotten, and nobody who comes late is taken in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.store.encrypted import KEY
from tests.store.gc.test_collect import Clock
from tests.store.refs.test_refs import Dying, Killed

from ramet import RametError, Store
from ramet.store.objects.log import ObjectLog
from ramet.store.objects.objects import MemoryObjects
from ramet.store.refs import gc_log
from ramet.store.refs.gc_log import GcState
from ramet.store.refs.leases import Leases
from ramet.store.refs.refs import COMPACT_AGE, COMPACT_ENTRIES, KEPT_ENTRIES
from ramet.store.repository import Repository

HOUR = COMPACT_AGE + 1


def busy(repository: Repository, clock: Clock, commits: int = 5, renewals: int = 130) -> list[str]:
    """A workspace that was held long and committed to now and then; the ids of its heads."""
    repository.create("w")
    heads = []
    for number in range(commits):
        store = Store(repository.objects, clock=clock)

        async def commit(store: Store = store, number: int = number) -> str:
            async with store.open("w") as ws:
                await ws.execute(f"echo {number} > f")
                return (await ws.commit(str(number))).id.hex()

        heads.append(asyncio.run(commit()))
        held = repository.refs.acquire("w", "somebody")
        for _ in range(renewals):
            clock.now += 20
            held = repository.refs.renew("w", held)
        repository.refs.release("w", held)
    return heads


def events(repository: Repository, since: str | None = None) -> list[tuple[str, str]]:
    from ramet.store.refs.feed import events as feed

    return [(event.id, event.cursor) for event in feed(repository, since)]


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_compacted_entries_stay_readable(key: bytes | None) -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock, key=key)
    heads = busy(repository, clock)
    before = events(repository)
    entries = list(repository.refs.history("w"))
    assert len(entries) > COMPACT_ENTRIES
    last = entries[-1]
    clock.now += HOUR
    assert repository.refs.compact("w") == len(entries) - KEPT_ENTRIES
    assert len(list(repository.objects.list("refs/w/"))) == KEPT_ENTRIES
    for seen in (repository, Repository(repository.objects, clock=clock)):
        assert seen.refs.last("w") == last
        assert events(seen) == before
        for number, (_, cursor) in enumerate(before):
            assert events(seen, cursor) == before[number + 1 :]
        assert [r.id.hex() for r in seen.log("w")] == heads[::-1]
        assert all(seen.was_head("w", head[:12]) for head in heads)
        left = list(seen.refs.history("w"))
        assert len(left) < 100 and [e.head for e in left if e.kind == "commit"] == [
            e.head for e in entries if e.kind == "commit"
        ]
        assert {e.fence: e.head for e in left} == {e.fence: e.head for e in entries}
        for after in range(0, last.number + 1, 37):
            assert [e for e in left if e.number > after] == list(seen.refs.history("w", after))
    assert Store(repository.objects, clock=clock).verify().ok
    assert repository.refs.compact("w") == 0


def test_what_is_joined_is_joined_again_and_stays_one_object() -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock)
    busy(repository, clock)
    for _ in range(4):
        clock.now += HOUR
        repository.refs.compact("w")
        held = repository.refs.acquire("w", "somebody")
        for _ in range(COMPACT_ENTRIES):
            held = repository.refs.renew("w", held)
        repository.refs.release("w", held)
    numbers = [entry.number for entry in repository.refs.history("w")]
    assert numbers == sorted(set(numbers)) and len(events(repository)) == 5
    assert len(list(repository.objects.list("past/w/"))) == 1


def test_collections_join_what_is_old() -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock)
    busy(repository, clock)
    before = events(repository)
    clock.now += HOUR
    assert repository.gc(dry=True) is not None and not list(repository.objects.list("past/"))
    repository.gc()
    assert len(list(repository.objects.list("past/w/"))) == 1 and events(repository)[: len(before)] == before


def test_young_entries_stay() -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock)
    repository.create("w")
    held = repository.refs.acquire("w", "somebody")
    for _ in range(2 * COMPACT_ENTRIES):
        held = repository.refs.renew("w", held)
    assert repository.refs.compact("w") == 0 and not list(repository.objects.list("past/"))


def test_a_sleeper_whose_number_was_used_and_removed_gets_an_error() -> None:
    """Its append finds the number free: it was used, and the entry was joined with others."""
    clock, place = Clock(), MemoryObjects()
    repository = Repository(place, clock=clock)
    repository.create("w")
    slept = Leases(ObjectLog(place), clock)
    held = slept.acquire("w", "slept")
    clock.now += HOUR
    busier = repository.refs.acquire("w", "other")
    for _ in range(COMPACT_ENTRIES + KEPT_ENTRIES):
        busier = repository.refs.renew("w", busier)
    clock.now += HOUR
    assert repository.refs.compact("w")
    assert f"refs/w/{held.number + 1:020d}" not in place._objects
    with pytest.raises(RametError) as caught:
        slept.move("w", held, head=None, kind="commit")
    assert caught.value.code == "lease_lost"
    assert f"refs/w/{held.number + 1:020d}" not in place._objects
    fresh = Leases(ObjectLog(place), clock)
    with pytest.raises(RametError):
        fresh.move("w", held, head=None, kind="commit")
    assert repository.refs.renew("w", busier).number == busier.number + 1


def test_death_at_every_write_of_the_joining() -> None:
    clock, place = Clock(), MemoryObjects()
    repository = Repository(place, clock=clock)
    busy(repository, clock)
    before, heads = events(repository), {e.fence: e.head for e in repository.refs.history("w")}
    clock.now += HOUR
    for number in range(2 * COMPACT_ENTRIES + 10):
        if number > 6 and number % 61:
            continue
        dying = Dying(dict(place._objects), number)
        try:
            Leases(ObjectLog(dying), clock).compact("w")
        except Killed:
            pass
        left = MemoryObjects()
        left._objects.update(dying._objects)
        after = Repository(left, clock=clock)
        assert events(after) == before and {e.fence: e.head for e in after.refs.history("w")} == heads
        after.refs.compact("w")
        assert events(after) == before


class Interrupting(MemoryObjects):
    """Has the log joined between what a reader lists and what it reads."""

    act: Callable[[], object] | None = None

    def list(self, prefix: str, after: str = "") -> Iterator[str]:
        found = [*super().list(prefix, after)]
        if prefix == "refs/w/" and self.act is not None:
            act, self.act = self.act, None
            act()
        return iter(found)


def test_a_reader_does_not_notice() -> None:
    clock, place = Clock(), Interrupting()
    repository = Repository(place, clock=clock)
    busy(repository, clock)
    before = events(repository)
    clock.now += HOUR
    place.act = lambda: repository.refs.compact("w")
    assert events(Repository(place, clock=clock)) == before
    assert list(place.list("past/w/"))


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_a_damaged_one_is_reported_and_quarantined(key: bytes | None) -> None:
    clock, place = Clock(), MemoryObjects()
    repository = Repository(place, clock=clock, key=key)
    heads = busy(repository, clock)
    clock.now += HOUR
    repository.refs.compact("w")
    (past,) = list(place.list("past/"))
    damaged = bytearray(place._objects[past])
    damaged[len(damaged) // 2] ^= 1
    place._objects[past] = bytes(damaged)
    with pytest.raises(RametError) as caught:
        list(repository.refs.history("w"))
    assert caught.value.code == "store_corrupt"
    store = Store(place, clock=clock, key=key)
    assert [damage.what for damage in store.verify().damages] == ["entry"]
    store.repair()
    assert store.verify().ok and [r.id.hex() for r in store["w"].log()] == heads[::-1]


# ------------------------------------------------------------------------------------------------- collections


def decided(repository: Repository, clock: Clock, entries: int = gc_log.COMPACT_ENTRIES + 60) -> list[GcState]:
    """A store that was collected from very often; all that was decided."""
    for number in range(entries):
        clock.now += 30
        kind, removed = ("swept", {"packs": number}) if number % 50 == 0 else ("mark", {})
        state = repository.gc_log.now()
        doomed = {"packs/x": gc_log.Condemnation(clock.now)}
        said = replace(state, kind=kind, time=clock.now, removed=removed, doomed=doomed)
        assert repository.gc_log.append(said) is not None
    return list(repository.gc_log.history())


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "encrypted"])
def test_of_old_decisions_stays_what_was_removed(key: bytes | None) -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock, key=key)
    entries = decided(repository, clock)
    before, last = events(repository), entries[-1]
    assert len(before) == 7
    clock.now += HOUR
    gone = repository.gc_log.compact(clock.now)
    assert gone == len(entries) - KEPT_ENTRIES and repository.gc_log.compact(clock.now) == 0
    assert len(list(repository.objects.list("gc/store/"))) == KEPT_ENTRIES
    for seen in (repository, Repository(repository.objects, clock=clock, key=key)):
        assert seen.gc_log.now() == last and seen.gc_log.number() == last.number
        assert events(seen) == before and events(seen, before[3][1]) == before[4:]
    assert repository.gc(grace=0) is not None and Store(repository.objects, clock=clock, key=key).verify().ok


def test_decisions_are_joined_while_they_go_on() -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock)
    for _ in range(3):
        decided(repository, clock)
        clock.now += HOUR
        repository.gc()
        assert len(list(repository.objects.list("gc/store/"))) < gc_log.COMPACT_ENTRIES
    assert len(list(repository.objects.list("past/@gc/store/"))) == 1
    assert len([event for event in events(repository) if event[0].startswith("gc:")]) >= 21
    assert repository.gc_log.compact(clock.now) == 0


def test_young_decisions_stay() -> None:
    clock = Clock()
    repository = Repository(MemoryObjects(), clock=clock)
    entries = decided(repository, clock)
    gone = repository.gc_log.compact(clock.now)
    left = repository.gc_log._log.entries(gc_log.LOG_NAME)
    assert 0 < gone < len(entries) - KEPT_ENTRIES
    assert all(gc_log.decode(*row).time > clock.now - COMPACT_AGE for row in left if row[0] > gone)


def test_who_decides_late_is_refused_though_the_number_is_free_again() -> None:
    clock = Clock()
    objects = MemoryObjects()
    late, other = Repository(objects, clock=clock), Repository(objects, clock=clock)
    first = late.gc_log.append(GcState(0, "mark", clock.now))
    assert first is not None
    last = decided(other, clock)[-1]
    clock.now += HOUR
    other.gc_log.compact(clock.now)
    assert late.gc_log.append(replace(first, kind="sweep")) is None
    assert late.gc_log.now() == last and f"gc/store/{first.number + 1:020d}" not in list(objects.list("gc/"))


@pytest.mark.parametrize("at", range(4))
def test_who_dies_while_decisions_are_joined_loses_nothing(at: int) -> None:
    clock = Clock()
    objects = MemoryObjects()
    repository = Repository(objects, clock=clock)
    last, before = decided(repository, clock)[-1], events(repository)
    clock.now += HOUR
    with pytest.raises(Killed):
        Repository(Dying(objects._objects, at), clock=clock).gc_log.compact(clock.now)
    for _ in range(2):
        again = Repository(objects, clock=clock)
        assert again.gc_log.now() == last and events(again) == before
        again.gc_log.compact(clock.now)


def test_a_damaged_old_decision_harms_nothing() -> None:
    clock = Clock()
    objects = MemoryObjects()
    repository = Repository(objects, clock=clock)
    last = decided(repository, clock)[-1]
    objects.put(f"gc/store/{7:020d}", b"damaged")
    clock.now += HOUR
    assert repository.gc_log.compact(clock.now) == last.number - KEPT_ENTRIES
    assert Repository(objects, clock=clock).gc_log.now() == last
