"""Retention: what expires, what never does, and how a history that ends somewhere says so."""

from __future__ import annotations

import asyncio

import pytest
from tests.store.gc.test_collect import Clock, big, write

from ramet import RametError, Store
from ramet.store.gc.costs import compute_costs
from ramet.store.objects.objects import MemoryObjects
from ramet.store.refs.retention import Retention, parse_duration
from ramet.workspace.stored.events import JsonLines
from ramet.workspace.workspace import Settings

DAY = 86400.0


def daily(clock: Clock, store: Store, name: str, days: int) -> None:
    """One revision a day; the clock ends at the last one."""
    store.create(name)

    async def act(number: int) -> None:
        async with store.open(name, commit="never", settings=Settings(clock=clock)) as ws:
            await ws.execute(f"echo {number} > /n")
            await ws.commit(f"day {number}")

    for number in range(1, days + 1):
        if number > 1:
            clock.now += DAY
        asyncio.run(act(number))


def left(store: Store, name: str = "w") -> list[int]:
    return [revision.seq for revision in store[name].log()]


def code(act: object) -> str:
    assert callable(act)
    with pytest.raises(RametError) as caught:
        act()
    assert caught.value.remediation
    return caught.value.code


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Retention(), [8, 7, 6, 5, 4, 3, 2, 1]),
        (Retention(keep_last=3), [8, 7, 6]),
        (Retention(keep_within=2 * DAY), [8, 7, 6]),
        (Retention(keep_last=2, keep_within=4 * DAY), [8, 7, 6, 5, 4]),
        (Retention(keep_last=1), [8]),
        (Retention(keep_within=0), [8]),
        (Retention(keep_last=1, min_age=3.5 * DAY), [8, 7, 6, 5]),
        (Retention(min_age=1), [8, 7, 6, 5, 4, 3, 2, 1]),
        (Retention(keep_last=1, hold="trial"), [8, 7, 6, 5, 4, 3, 2, 1]),
    ],
    ids=str,
)
def test_what_expires(policy: Retention, expected: list[int]) -> None:
    clock, place = Clock(), MemoryObjects()
    store = Store(place, clock=clock)
    daily(clock, store, "w", 8)
    store.retention(policy, "w")
    store.gc(grace=0)
    assert left(store) == expected and left(Store(place)) == expected
    assert Store(place).verify().ok


def test_the_store_says_what_its_workspaces_do_not() -> None:
    clock = Clock()
    store = Store("memory:", clock=clock)
    for name in ("a", "b"):
        daily(clock, store, name, 4)
    store.retention(Retention(keep_last=1))
    store.retention(Retention(keep_last=3), "b")
    assert store.retention(name="a").keep_last == 1 and store.retention(name="b").keep_last == 3
    store.gc(grace=0)
    assert left(store, "a") == [4] and left(store, "b") == [4, 3, 2]


def test_tags_pins_and_forks_keep() -> None:
    clock, place = Clock(), MemoryObjects()
    store = Store(place, clock=clock)
    daily(clock, store, "w", 8)
    store["w"].tag("release", "2")
    store["w"].pin("3", why="under review")
    store["w"].pin("4", seconds=100)
    store["w"].fork("5", "fork")
    store.retention(Retention(keep_last=1))
    store.gc(grace=0)
    fresh = Store(place, clock=clock)
    assert left(fresh) == [8] and b"".join(fresh["w"].show("/n", "release")) == b"2\n"
    assert b"".join(fresh["fork"].show("/n")) == b"5\n" and fresh.verify().ok
    pins = {pin.why or "short": pin for pin in fresh.repository.pins.all()}
    for pin in pins.values():
        assert fresh.repository.is_whole(fresh.repository.read_revision(pin.target, expired=True))
    clock.now += 200
    store.gc(grace=0)
    assert [pin.why for pin in store.repository.pins.all()] == ["under review"]
    assert code(lambda: store.repository.read_revision(pins["short"].target, expired=True)) == "revision_not_found"
    assert store.repository.is_whole(store.repository.read_revision(pins["under review"].target, expired=True))
    store["w"].untag("release")
    store.gc(grace=0)
    assert code(lambda: store["w"].show("/n", "2")) == "revision_expired"


def test_the_end_of_a_history_is_reported() -> None:
    clock = Clock()
    store = Store("memory:", clock=clock)
    daily(clock, store, "w", 5)
    old = store.find("w@2")
    store.retention(Retention(keep_last=2))
    store.gc(grace=0)
    for spec in ("2", "w-2", old.id.hex(), "head~2"):
        assert code(lambda spec=spec: store.find(f"w@{spec}")) == "revision_expired", spec
    assert code(lambda: store["w"].diff("4")) == "revision_expired"
    assert code(lambda: store.find("w@9")) == "revision_not_found"
    assert [d.path for d in store["w"].diff("5")] == ["/n"] and store["w"].diff("4", "5")
    assert store.repository.expired_parents(store.find("w@4")) == (store.find("w@4").parents)
    assert len(store["w"].graph()) >= 2 and store["w"].blame("/n")[0].revision.seq == 5
    assert b"commit refs/heads/w" in b"".join(store["w"].git_stream())
    assert store["w"].revert("4").seq == 6


def test_during_the_grace_what_expired_is_out_of_reach_already() -> None:
    clock = Clock()
    store = Store("memory:", clock=clock)
    daily(clock, store, "w", 3)
    store.retention(Retention(keep_last=1))
    assert store.gc().expired == ["w-1", "w-2"] and left(store) == [3]
    assert code(lambda: store.find("w@2")) == "revision_expired" and store.gc().expired == []


def test_nothing_of_a_held_workspace_goes() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1), big("/a", 2))
    store.hold("w", "litigation 42")
    store.retention(Retention(keep_last=1))
    assert code(lambda: store.rm("w")) == "workspace_held" and "litigation 42" in str(_error(store))
    store.gc(grace=0)
    assert left(store) == [2, 1]
    store.lift("w")
    store.gc(grace=0)
    assert left(store) == [2]
    store.rm("w")


def _error(store: Store) -> RametError:
    with pytest.raises(RametError) as caught:
        store.rm("w")
    return caught.value


def test_a_hold_that_came_too_late_for_a_removal_still_keeps_the_content() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", big("/a", 1))
    store.repository.policies.set(Retention(hold="late"), "w")
    store.repository.refs.delete("w")
    store.gc(grace=0)
    assert store.verify().ok and len(list(place.list("revisions/"))) == 1


def test_what_was_removed_is_kept_for_the_least_age() -> None:
    clock, place = Clock(), MemoryObjects()
    store = Store(place, clock=clock)
    daily(clock, store, "w", 2)
    store.retention(Retention(min_age=10 * DAY))
    store.rm("w")
    store.gc(grace=0)
    assert len(list(place.list("revisions/"))) == 2
    clock.now += 11 * DAY
    store.gc(grace=0)
    assert not list(place.list("revisions/")) and not list(place.list("packs/"))


def test_an_event_that_a_sink_has_not_had_keeps_its_revision(tmp_path: object) -> None:
    clock = Clock()
    store = Store("memory:", clock=clock)
    daily(clock, store, "w", 1)
    asyncio.run(store.deliver(JsonLines(f"{tmp_path}/events"), "sink"))
    write(store, "w", "echo a > /a", "echo b > /b", "echo c > /c")
    store.retention(Retention(keep_last=1))
    store.gc(grace=0)
    asyncio.run(store.deliver(JsonLines(f"{tmp_path}/events"), "sink"))
    with open(f"{tmp_path}/events") as file:
        assert "expired" not in file.read()
    assert store.gc(grace=0).revisions == 2
    write(store, "w", "echo d > /d", "echo e > /e")
    assert store.gc(grace=0).revisions == 1
    store.forget_sink("sink")
    assert store.gc(grace=0).revisions == 1


@pytest.mark.parametrize(
    ("text", "expected"), [("90", 90), ("90s", 90), ("15m", 900), ("12h", 43200), ("1.5d", 129600), ("2w", 1209600)]
)
def test_spans_of_time(text: str, expected: float) -> None:
    assert parse_duration(text) == expected


def test_what_cannot_be_said() -> None:
    store = Store("memory:")
    store.create("w")
    for act in (
        lambda: Retention(keep_last=0),
        lambda: Retention(min_age=-1),
        lambda: parse_duration("1 fortnight"),
        lambda: store.retention(Retention(hold="x")),
        lambda: store.hold("w", ""),
        lambda: store.gc(grace=-1),
    ):
        assert code(act) == "invalid_argument"
    assert code(lambda: store.hold("none", "x")) == "workspace_not_found"


def test_what_each_workspace_costs() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "one", big("/a", 1, 100_000))
    store["one"].fork(None, "two")
    write(store, "two", big("/b", 2, 50_000))
    write(store, "three", "echo x > /x")
    write(store, "gone", big("/c", 3, 70_000))
    store.rm("gone")
    found = store.cost()
    one, three, two = found.workspaces
    assert (one.workspace, two.workspace, three.workspace) == ("one", "two", "three")
    assert one.unique < 5000 and 100_000 < one.shared == two.shared == found.shared
    assert two.unique > 50_000 and three.unique < 3000 and two.revisions == 3
    assert found.unused > 70_000
    held = sum(len(place.get(key)) for key in place.list("packs/"))
    assert abs(found.total - held) < 100
    assert abs(sum(c.unique for c in found.workspaces) + found.shared + found.unused - held) < 200
    assert compute_costs(store.repository) == found


def test_what_is_damaged_is_reported_and_not_taken_for_a_policy() -> None:
    place = MemoryObjects()
    store = Store(place)
    write(store, "w", "echo 1 > /x", "echo 2 > /x")
    store.retention(Retention(keep_last=1), "w")
    (policy,) = place.list("policy/w/")
    kept = place.get(policy)
    for damage in (b"[]", b"{}", b'{"keep_last": "x", "hold": ""}', b"{"):
        place.put(policy, damage)
        assert code(lambda: Store(place).gc(grace=0)) == "store_corrupt"
    place.put(policy, kept)
    place.put("pins/p", b"{")
    assert code(lambda: Store(place).gc(grace=0)) == "store_corrupt"
    place.delete("pins/p")
    assert Store(place).gc(grace=0).revisions == 1


def test_a_name_that_is_used_again_has_no_policy_but_its_hold() -> None:
    store = Store("memory:")
    for name, hold in (("w", ""), ("v", "case")):
        store.create(name)
        store.retention(Retention(keep_last=3), name)
        store.repository.refs.delete(name)
        if hold:
            store.repository.policies.set(Retention(keep_last=3, hold=hold), name)
        store.create(name)
        assert store.retention(name=name) == Retention(hold=hold)
    assert store.repository.policies.names() == ["v", "w"]


def test_two_who_change_a_policy_at_once() -> None:
    store = Store("memory:")
    log = store.repository.policies._log
    append = log.append

    def late(name: str, number: int, data: bytes) -> bool:
        append(name, number, data + b" ")
        return append(name, number, data)

    log.append = late  # type: ignore[method-assign]
    assert code(lambda: store.retention(Retention(keep_last=1))) == "head_moved"
